// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl trace record: the module's events and mgpud's states go into a file for Perfetto. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <linux/types.h>

#include "account.h"
#include "clock.h"
#include "files.h"
#include "gpuctl.h"
#include "jobs.h"
#include "mgpud_client.h"
#include "trace_model.h"
#include "trace_source.h"

#define LOOK_NS		(50 * 1000 * 1000)	/* from one look at the ring buffer to the next */
#define CONNECT_NS	NSEC			/* from one try to reach mgpud to the next */

/**
 * struct recorder - a recording under way
 * @ctl: options
 * @model: the tracks
 * @mgpu: the module
 * @source: its events
 * @mgpud: the controller, NULL if it does not answer
 * @tried_ns: last try to reach it
 * @told: that it does not answer is in the recording
 * @wanted: UUIDs of the vGPUs to record
 * @known: by id: the module was asked which vGPU has the id
 * @end_ns: end of the recording, CLOCK_MONOTONIC; UINT64_MAX while no end is known
 */
struct recorder {
	const struct gpuctl *ctl;
	struct trace_model model;
	struct mgpu *mgpu;
	struct trace_source *source;
	struct mgpud *mgpud;
	uint64_t tried_ns;
	bool told;
	char wanted[GPUCTL_VGPUS][MGPU_UUID_LEN];
	bool known[MGPU_BPF_IDS];
	uint64_t end_ns;
};

/* Return the end of the recording: that of --time, or the time when a signal was noticed. */
static uint64_t end_of(struct recorder *rec)
{
	if (gpuctl_stop && now_ns() < rec->end_ns)
		rec->end_ns = now_ns();
	return rec->end_ns;
}

/* Return the time now, or the end of the recording if that is past. */
static uint64_t now_or_end(struct recorder *rec)
{
	uint64_t now = now_ns(), end = end_of(rec);

	return now < end ? now : end;
}

/* ---- which vGPUs ---- */

/* Find the vGPU that a word names: by id, UUID or, where that fails, by its name. */
static int find_wanted(const struct mgpu_vgpu_info *list, size_t nr, const char *word,
		       char uuid[MGPU_UUID_LEN], struct mgpu_error *err)
{
	const struct mgpu_vgpu_info *found;
	struct mgpu_error match = { 0 };
	struct vgpu_names names;
	size_t same = 0;
	int ret;

	ret = mgpu_vgpu_match(list, nr, word, &found, &match);
	for (size_t i = 0; ret && i < nr; i++) {
		names_read(&names, &list[i]);
		if (strcmp(names.vm, word) && strcmp(names.given, word))
			continue;
		found = &list[i];
		same++;
	}
	if (ret && same > 1)
		return mgpu_fail(err, -EEXIST, "%zu vGPUs have the name '%s': give a UUID ('gpuctl vgpu list' shows them)",
				 same, word);
	if (ret && !same)
		return mgpu_fail(err, ret, "no VM has the name '%s', and %s", word, match.text);
	strcpy(uuid, found->uuid);
	return 0;
}

static bool is_wanted(const struct recorder *rec, const char *uuid)
{
	for (size_t i = 0; i < rec->ctl->nr_vgpus; i++)
		if (!strcasecmp(rec->wanted[i], uuid))
			return true;
	return !rec->ctl->nr_vgpus;
}

static void add_vgpu(struct recorder *rec, const struct mgpu_vgpu_info *vgpu)
{
	bool wanted = is_wanted(rec, vgpu->uuid);
	struct vgpu_names names;
	const char *name;

	if (vgpu->id >= MGPU_BPF_IDS)
		return;
	rec->known[vgpu->id] = true;
	trace_source_skip(rec->source, vgpu->id, !wanted);
	if (!wanted)
		return;
	names_read(&names, vgpu);
	name = names_shown(&names);
	trace_model_vgpu(&rec->model, vgpu->id, vgpu->uuid, strcmp(name, "-") ? name : "",
			 vgpu->dev_name);
}

/*
 * A vGPU's id may be another one's after an open, and only then has it a VM's name. The first
 * event after the end ends the reading: vGPUs may send events as fast as they are read.
 */
static int on_event(void *data, const struct mgpu_trace_event *e)
{
	struct mgpu_vgpu_info vgpu;
	struct recorder *rec = data;

	if (e->now_ns >= end_of(rec))
		return -ETIME;
	if (e->vgpu < MGPU_BPF_IDS && (!rec->known[e->vgpu] || e->type == MGPU_TRACE_OPEN)) {
		rec->known[e->vgpu] = true;
		if (!mgpu_vgpu_get(rec->mgpu, e->vgpu, &vgpu, NULL))
			add_vgpu(rec, &vgpu);
	}
	trace_model_event(&rec->model, e);
	return rec->model.file.error;
}

/* ---- mgpud ---- */

static void lose_mgpud(struct recorder *rec, const struct mgpu_error *err)
{
	mgpud_close(rec->mgpud);
	rec->mgpud = NULL;
	if (rec->told)
		return;
	rec->told = true;
	trace_model_note(&rec->model, now_ns(), err->text);
	fprintf(stderr, "gpuctl: %s: the recording has no decisions of the controller until it answers\n",
		err->text);
}

static void reach_mgpud(struct recorder *rec)
{
	struct mgpu_error err = { 0 };
	uint64_t now = now_ns();

	if (rec->mgpud || (rec->tried_ns && now - rec->tried_ns < CONNECT_NS))
		return;
	rec->tried_ns = now;
	if (mgpud_connect(&rec->mgpud, NULL, &err) || mgpud_watch(rec->mgpud, &err))
		lose_mgpud(rec, &err);
	else
		rec->told = false;
}

static void read_mgpud(struct recorder *rec)
{
	struct json_object *state, *event;
	struct mgpu_error err = { 0 };
	int ret = 0;

	reach_mgpud(rec);
	while (rec->mgpud) {
		ret = mgpud_next_any(rec->mgpud, &state, &event, 0, &err);
		if (ret == -ETIMEDOUT)
			return;
		if (ret) {
			lose_mgpud(rec, &err);
			return;
		}
		if (state)
			trace_model_state(&rec->model, now_ns(), state);
		if (event)
			trace_model_mgpud_event(&rec->model, now_ns(), event);
		json_object_put(state);
		json_object_put(event);
	}
}

/* ---- recording ---- */

static int begin(struct recorder *rec, struct mgpu_error *err)
{
	struct trace_clocks clocks;
	struct mgpu_vgpu_info *vgpus = NULL;
	struct mgpu_dev_info *devs = NULL;
	size_t nr = 0, nr_devs = 0;
	int ret;

	ret = mgpu_dev_list(rec->mgpu, &devs, &nr_devs, err);
	if (!ret)
		ret = mgpu_vgpu_list(rec->mgpu, NULL, &vgpus, &nr, err);
	for (size_t i = 0; !ret && i < rec->ctl->nr_vgpus; i++)
		ret = find_wanted(vgpus, nr, rec->ctl->vgpus[i], rec->wanted[i], err);
	if (!ret)
		ret = trace_source_open(&rec->source, on_event, rec, err);
	if (ret)
		goto out;
	clocks.monotonic = now_ns();
	clocks.boottime = clock_ns(CLOCK_BOOTTIME);
	clocks.realtime = clock_ns(CLOCK_REALTIME);
	trace_model_init(&rec->model, &clocks, rec->ctl->max_size);
	for (size_t i = 0; i < nr_devs; i++)
		trace_model_dev(&rec->model, devs[i].name, devs[i].engines, devs[i].slots);
	/* the others when they open */
	for (size_t i = 0; i < nr; i++)
		if (vgpus[i].open)
			add_vgpu(rec, &vgpus[i]);
out:
	free(vgpus);
	free(devs);
	return ret;
}

/* Record until the end. Returns why it ended; NULL with an error. */
static const char *follow(struct recorder *rec, struct mgpu_error *err)
{
	struct timespec look = { .tv_nsec = LOOK_NS };
	int ret = 0;

	if (rec->ctl->duration > 0)
		rec->end_ns = rec->model.begin_ns + (uint64_t)(rec->ctl->duration * 1e9);
	while (!ret && now_ns() < end_of(rec)) {
		read_mgpud(rec);
		ret = trace_source_read(rec->source);
		if (!ret)
			ret = rec->model.file.error;
		if (!ret && wait_or_stop(-1, &look, err))
			return NULL;
	}
	if (!ret)
		ret = trace_source_read(rec->source);
	if (!ret || ret == -ETIME) {
		trace_model_lost(&rec->model, now_or_end(rec), trace_source_lost(rec->source));
		ret = 0;
	}
	if (ret == -ENOSPC || rec->model.file.error == -ENOSPC)
		return "size";
	if (ret) {
		mgpu_fail(err, ret, "reading the module's events: %s", strerror(-ret));
		return NULL;
	}
	return gpuctl_stop ? "interrupted" : "time";
}

static void print_result(const struct recorder *rec, const char *why, double seconds,
			 uint64_t missed)
{
	const struct trace_model *m = &rec->model;
	const char *path = rec->ctl->output;
	struct json_object *o;

	if (!rec->ctl->json) {
		printf("%s: %.1f s of %zu vGPU%s, %llu frames, %llu jobs, %llu preempted, %.1f MiB\n",
		       path, seconds, m->nr_vgpus, m->nr_vgpus == 1 ? "" : "s",
		       (unsigned long long)m->frames, (unsigned long long)m->jobs,
		       (unsigned long long)m->preempted, (double)m->file.len / (1 << 20));
		return;
	}
	o = json_object_new_object();
	json_object_object_add(o, "file", json_object_new_string(path));
	json_object_object_add(o, "duration_s", json_object_new_double(seconds));
	json_object_object_add(o, "ended", json_object_new_string(why));
	json_object_object_add(o, "size_bytes", json_object_new_uint64(m->file.len));
	json_object_object_add(o, "vgpus", json_object_new_uint64(m->nr_vgpus));
	json_object_object_add(o, "events", json_object_new_uint64(m->events));
	json_object_object_add(o, "frames", json_object_new_uint64(m->frames));
	json_object_object_add(o, "jobs", json_object_new_uint64(m->jobs));
	json_object_object_add(o, "preempted", json_object_new_uint64(m->preempted));
	json_object_object_add(o, "lost", json_object_new_uint64(m->lost));
	json_object_object_add(o, "missed", json_object_new_uint64(missed));
	out_json(rec->ctl, o);
}

static void warn(const struct recorder *rec, const char *why, uint64_t missed)
{
	const struct trace_model *m = &rec->model;

	if (m->lost)
		fprintf(stderr, "gpuctl: %llu events were lost, which the recording marks: record fewer vGPUs (--vgpu), or give gpuctl a higher priority (nice)\n",
			(unsigned long long)m->lost);
	if (missed)
		fprintf(stderr, "gpuctl: the kernel missed %llu more events: the recording has gaps that it does not mark\n",
			(unsigned long long)missed);
	if (!strcmp(why, "size"))
		fprintf(stderr, "gpuctl: the recording ended early: it had reached --max-size\n");
}

static int finish(struct recorder *rec, const char *why)
{
	uint64_t missed = trace_source_missed(rec->source);
	uint64_t end = now_or_end(rec);

	trace_model_finish(&rec->model, end, why, missed);
	if (rec->model.file.error) {
		fputs("gpuctl: out of memory: nothing was written; record for a shorter time (--time)\n",
		      stderr);
		return EXIT_FAILED;
	}
	if (replace_file(rec->ctl->output, &rec->model.file, trace_file_write))
		return EXIT_FAILED;
	print_result(rec, why, (double)(end - rec->model.begin_ns) / 1e9, missed);
	warn(rec, why, missed);
	return EXIT_OK;
}

int trace_record(const struct gpuctl *ctl, int argc, char **argv)
{
	struct mgpu_error err = { 0 };
	const char *why = NULL;
	struct recorder *rec;
	int status;

	if (argc)
		return usage_error("trace record takes no '%s'", argv[0]);
	if (!ctl->output)
		return usage_error("trace record wants --output FILE, which it makes");
	/* now, and not when an hour is recorded */
	if (check_replaceable(ctl->output))
		return EXIT_FAILED;
	rec = calloc(1, sizeof(*rec));
	if (!rec)
		return usage_error("out of memory");
	rec->ctl = ctl;
	rec->end_ns = UINT64_MAX;
	stop_on_signals();
	if (!mgpu_open(&rec->mgpu, &err) && !begin(rec, &err))
		why = follow(rec, &err);
	status = why ? finish(rec, why) : failed(&err);
	mgpud_close(rec->mgpud);
	trace_source_close(rec->source);
	trace_model_free(&rec->model);
	mgpu_close(rec->mgpu);
	free(rec);
	return status;
}
