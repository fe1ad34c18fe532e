// SPDX-License-Identifier: GPL-2.0-only
/* Events of the module and states of mgpud become tracks. Pure. */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "account.h"
#include "json_read.h"
#include "jobs.h"
#include "trace_model.h"

#define NR(a)		(sizeof(a) / sizeof((a)[0]))
#define NAME_LEN	128	/* of a vGPU's track, bytes */
#define SLOTS_MAX	1024
/* Bytes reserved for packets that must still be written: of a state, a job, the recording. */
#define STATE_BYTES	96
#define JOB_BYTES	512
#define END_BYTES	8192

/* Kinds of job, enum mgpu_job_kind of the module. */
enum { KIND_FLUSH = 1, KIND_GPU = 5 };

static const char *const kinds[] = {
	"unknown", "flush", "transfer", "cursor", "compute", "gpu",
};

static const char *const reasons[] = { "unknown", "fps-limit", "fps-target" };

/* Names of mgpud's decisions, in struct trace_control's order. */
static const char *const actions[] = { "launch", "resume", "preempt" };

enum { FPS, TARGET, SHARE, GPU_TARGET, COUNTERS };

static const struct {
	const char *name;
	const char *unit;
	const char *key;	/* of mgpud's state */
	double factor;
} counters[] = {
	[FPS] = { TRACK_FPS, "fps", "fps", 1 },
	[TARGET] = { TRACK_TARGET, "fps", "target_fps", 1 },
	[SHARE] = { TRACK_SHARE, "%", "gpu_share", 100 },
	[GPU_TARGET] = { TRACK_GPU_TARGET, "%", "gpu_target_share", 100 },
};

/**
 * struct trace_vgpu - a vGPU
 * @uuid: its UUID
 * @name: of its jobs: that of its VM, or else "vGPU ID"
 * @id: its id
 * @dev: its device
 * @track: its track, above those of frames, @throttled, @waiting, preempted, and @counters
 * @frames: track
 * @throttled: track
 * @waiting: track
 * @preempted: track
 * @counters: tracks
 * @frame_ns: time of its last frame in the recording, 0 for none
 * @hold_ns: for how long the frame whose job starts next was held back
 * @reason: of that
 */
struct trace_vgpu {
	char uuid[40];
	char name[NAME_LEN];
	uint32_t id;
	struct trace_dev *dev;
	uint64_t track;
	uint64_t frames;
	uint64_t throttled;
	uint64_t waiting;
	uint64_t preempted;
	uint64_t counters[COUNTERS];
	uint64_t frame_ns;
	uint64_t hold_ns;
	uint32_t reason;
};

/**
 * struct trace_slot - a slot of a device
 * @track: its track
 * @vgpu: vGPU of the job in it, NULL for none
 * @job: that job
 * @kind: its kind
 * @begin_ns: when it came
 * @queue_ns: for how long it had waited
 * @free_ns: when the job before it left
 */
struct trace_slot {
	uint64_t track;
	const struct trace_vgpu *vgpu;
	uint64_t job;
	uint32_t kind;
	uint64_t begin_ns;
	uint64_t queue_ns;
	uint64_t free_ns;
};

struct trace_dev {
	char name[NAME_LEN];
	uint64_t track;
	struct trace_slot *slots;
	size_t nr;
};

/* A time for which a vGPU was in a state. */
struct trace_state {
	uint64_t track;
	uint64_t begin_ns;
	uint64_t end_ns;
	const char *name;
};

/* Make room for one more element of an array, or set the error. */
static bool add_room(struct trace_file *f, void *array, size_t nr, size_t size)
{
	if (trace_add_room(array, nr, size))
		return true;
	f->error = -ENOMEM;
	return false;
}

static uint64_t add_track(struct trace_model *m, uint64_t parent, const char *name, uint32_t rank,
			  const char *description)
{
	struct trace_track track = {
		.parent = parent, .name = name, .description = description, .rank = rank,
	};

	return trace_file_track(&m->file, &track);
}

void trace_model_init(struct trace_model *m, const struct trace_clocks *clocks, size_t max)
{
	uint64_t root;

	memset(m, 0, sizeof(*m));
	m->begin_ns = clocks->monotonic;
	m->last_ns = clocks->monotonic;
	trace_file_init(&m->file, clocks, max);
	m->file.reserved = END_BYTES;
	m->by_id = calloc(MGPU_BPF_IDS, sizeof(*m->by_id));
	if (!m->by_id)
		m->file.error = -ENOMEM;
	root = add_track(m, 0, TRACK_ROOT, 0,
			 "Recorded by gpuctl trace. All times are by CLOCK_MONOTONIC.");
	m->recording = add_track(m, root, TRACK_RECORDING, 0, NULL);
	m->lost_track = add_track(m, root, TRACK_LOST, 1,
				  "Events that did not fit into the ring buffer: other tracks are incomplete at these times.");
	m->mgpud = add_track(m, root, TRACK_MGPUD, 2, "Decisions of the controller.");
	m->devices = add_track(m, root, TRACK_DEVICES, 3, NULL);
	m->vgpus_track = add_track(m, root, TRACK_VGPUS, 4, NULL);
}

void trace_model_free(struct trace_model *m)
{
	for (size_t i = 0; i < m->nr_vgpus; i++)
		free(m->vgpus[i]);
	for (size_t i = 0; i < m->nr_devs; i++) {
		free(m->devs[i]->slots);
		free(m->devs[i]);
	}
	free(m->vgpus);
	free(m->devs);
	free(m->by_id);
	free(m->states);
	trace_file_free(&m->file);
	memset(m, 0, sizeof(*m));
}

/* ---- vGPUs and devices ---- */

static struct trace_slot *add_slot(struct trace_model *m, struct trace_dev *dev)
{
	struct trace_slot *slot;
	char name[32];

	if (dev->nr == SLOTS_MAX || !add_room(&m->file, &dev->slots, dev->nr, sizeof(*dev->slots)))
		return NULL;
	slot = &dev->slots[dev->nr];
	memset(slot, 0, sizeof(*slot));
	snprintf(name, sizeof(name), "slot %zu", dev->nr);
	slot->track = add_track(m, dev->track, name, (uint32_t)dev->nr++, NULL);
	return slot;
}

static struct trace_dev *add_dev(struct trace_model *m, const char *name)
{
	struct trace_dev *dev;

	if (!add_room(&m->file, &m->devs, m->nr_devs, sizeof(*m->devs)))
		return NULL;
	dev = calloc(1, sizeof(*dev));
	if (!dev) {
		m->file.error = -ENOMEM;
		return NULL;
	}
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	dev->track = add_track(m, m->devices, dev->name, (uint32_t)m->nr_devs,
			       "A job has the lowest slot that was free when it started.");
	m->devs[m->nr_devs++] = dev;
	return dev;
}

void trace_model_dev(struct trace_model *m, const char *name, uint32_t engines, uint32_t slots)
{
	struct trace_arg args[] = {
		{ ARG_ENGINES, NULL, engines }, { "slots", NULL, slots }, { 0 },
	};
	struct trace_dev *dev = m->file.error ? NULL : add_dev(m, name);

	if (!dev)
		return;
	trace_file_instant(&m->file, dev->track, dev->name, m->begin_ns, args);
	while (dev->nr < slots && add_slot(m, dev))
		;
}

static struct trace_dev *find_dev(struct trace_model *m, const char *name)
{
	for (size_t i = 0; i < m->nr_devs; i++)
		if (!strcmp(m->devs[i]->name, name))
			return m->devs[i];
	return add_dev(m, name);
}

static void add_tracks(struct trace_model *m, struct trace_vgpu *v, const char *vm)
{
	char text[NAME_LEN];

	snprintf(text, sizeof(text), "%s%svGPU %u, %.8s", vm, *vm ? ", " : "", v->id, v->uuid);
	v->track = add_track(m, m->vgpus_track, text, v->id, v->uuid);
	v->frames = add_track(m, v->track, TRACK_FRAMES, 0, "From one frame to the next.");
	v->throttled = add_track(m, v->track, TRACK_THROTTLED, 1,
				 "A frame was held back for a limit or a target of the frame rate.");
	v->waiting = add_track(m, v->track, TRACK_WAITING, 2, "A job waited for a slot.");
	v->preempted = add_track(m, v->track, TRACK_PREEMPTED, 3, NULL);
	for (uint32_t i = 0; i < COUNTERS; i++) {
		struct trace_track track = {
			.parent = v->track, .name = counters[i].name, .unit = counters[i].unit,
			.rank = 4 + i,
			.description = i == TARGET || i == GPU_TARGET ?
				"By mgpud; 0 is none." : "By mgpud.",
		};

		v->counters[i] = trace_file_track(&m->file, &track);
	}
}

static struct trace_vgpu *vgpu_of(const struct trace_model *m, uint32_t id)
{
	return id < MGPU_BPF_IDS && m->by_id ? m->by_id[id] : NULL;
}

void trace_model_vgpu(struct trace_model *m, uint32_t id, const char *uuid, const char *vm,
		      const char *dev)
{
	struct trace_vgpu *v = vgpu_of(m, id);

	if (id >= MGPU_BPF_IDS || m->file.error || (v && !strcmp(v->uuid, uuid)) ||
	    !add_room(&m->file, &m->vgpus, m->nr_vgpus, sizeof(*m->vgpus)))
		return;
	v = calloc(1, sizeof(*v));
	if (!v) {
		m->file.error = -ENOMEM;
		return;
	}
	m->vgpus[m->nr_vgpus++] = v;
	v->id = id;
	snprintf(v->uuid, sizeof(v->uuid), "%s", uuid);
	if (*vm)
		snprintf(v->name, sizeof(v->name), "%s", vm);
	else
		snprintf(v->name, sizeof(v->name), "vGPU %u", id);
	v->dev = find_dev(m, dev);
	add_tracks(m, v, vm);
	m->by_id[id] = v->dev ? v : NULL;
}

/* ---- slots ---- */

static struct trace_slot *free_slot(struct trace_model *m, struct trace_dev *dev, uint64_t now_ns)
{
	for (size_t i = 0; i < dev->nr; i++)
		if (!dev->slots[i].vgpu && dev->slots[i].free_ns <= now_ns)
			return &dev->slots[i];
	return add_slot(m, dev);
}

static struct trace_slot *slot_of(const struct trace_vgpu *v, uint64_t job)
{
	for (size_t i = 0; i < v->dev->nr; i++)
		if (v->dev->slots[i].vgpu == v && v->dev->slots[i].job == job)
			return &v->dev->slots[i];
	return NULL;
}

/* Keep bytes for the end of a job or a state; false: there are none. */
static bool reserve(struct trace_model *m, size_t bytes)
{
	struct trace_file *f = &m->file;

	if (f->error)
		return false;
	if (f->len + f->reserved + bytes > f->max)
		f->error = -ENOSPC;
	else
		f->reserved += bytes;
	return !f->error;
}

/* @end: how the job left its slot, NULL if it completed */
static void leave_slot(struct trace_model *m, struct trace_slot *slot, uint64_t now_ns,
		       const char *end, uint64_t engine_ns)
{
	const struct trace_vgpu *v = slot->vgpu;
	const char *kind = kinds[slot->kind < NR(kinds) ? slot->kind : 0];
	struct trace_arg args[] = {
		{ ARG_VGPU_TRACK, NULL, v->track },
		{ "vgpu", NULL, v->id },
		{ "job", NULL, slot->job },
		{ "kind", kind, 0 },
		{ "queue_ns", NULL, slot->queue_ns },
		{ ARG_ENGINE_NS, NULL, engine_ns },
		{ end ? ARG_END : NULL, end, 0 },
		{ 0 },
	};

	m->file.reserved -= JOB_BYTES;
	trace_file_slice(&m->file, slot->track, v->name, slot->begin_ns, now_ns, args);
	slot->vgpu = NULL;
	slot->free_ns = now_ns;
}

/* End the slices of all jobs in flight, whose ends are unknown. */
static void leave_all_slots(struct trace_model *m, uint64_t now_ns, const char *end)
{
	for (size_t i = 0; i < m->nr_devs; i++)
		for (size_t j = 0; j < m->devs[i]->nr; j++)
			if (m->devs[i]->slots[j].vgpu)
				leave_slot(m, &m->devs[i]->slots[j], now_ns, end, 0);
}

static void add_state(struct trace_model *m, uint64_t track, const char *name, uint64_t begin_ns,
		      uint64_t end_ns)
{
	struct trace_file *f = &m->file;

	if (begin_ns < m->begin_ns)
		begin_ns = m->begin_ns;
	if (begin_ns >= end_ns || !add_room(f, &m->states, m->nr_states, sizeof(*m->states)) ||
	    !reserve(m, STATE_BYTES))
		return;
	m->states[m->nr_states++] = (struct trace_state) { track, begin_ns, end_ns, name };
}

static uint64_t before(uint64_t now_ns, uint64_t ns)
{
	return now_ns > ns ? now_ns - ns : 0;
}

static void job_start(struct trace_model *m, struct trace_vgpu *v,
		      const struct mgpu_trace_event *e)
{
	uint64_t submit_ns = before(e->now_ns, e->ns);
	struct trace_slot *slot;

	add_state(m, v->waiting, TRACK_WAITING, submit_ns, e->now_ns);
	if (v->hold_ns && (e->kind == KIND_FLUSH || e->kind == KIND_GPU)) {
		add_state(m, v->throttled, reasons[v->reason < NR(reasons) ? v->reason : 0],
			  before(submit_ns, v->hold_ns), submit_ns);
		v->hold_ns = 0;
	}
	slot = free_slot(m, v->dev, e->now_ns);
	if (!slot || !reserve(m, JOB_BYTES))
		return;
	slot->vgpu = v;
	slot->job = e->nr;
	slot->kind = e->kind;
	slot->begin_ns = e->now_ns;
	slot->queue_ns = e->ns;
}

static void job_end(struct trace_model *m, struct trace_vgpu *v, const struct mgpu_trace_event *e)
{
	struct trace_slot *slot = slot_of(v, e->nr);
	const char *end = NULL;
	char text[32];

	m->jobs++;
	if (e->type == MGPU_TRACE_PREEMPT) {
		struct trace_arg args[] = { { "job", NULL, e->nr }, { 0 } };

		m->preempted++;
		end = END_PREEMPTED;
		trace_file_instant(&m->file, v->preempted, TRACK_PREEMPTED, e->now_ns, args);
	} else if (e->error) {
		snprintf(text, sizeof(text), "error %d", e->error);
		end = text;
	}
	if (slot)
		leave_slot(m, slot, e->now_ns, end, e->ns);
	else
		m->unmatched++;
}

static void frame(struct trace_model *m, struct trace_vgpu *v, const struct mgpu_trace_event *e)
{
	struct trace_arg args[] = { { "frame", NULL, e->nr }, { 0 } };
	uint64_t begin_ns = before(e->now_ns, e->ns);

	m->frames++;
	if (begin_ns < v->frame_ns)
		begin_ns = v->frame_ns;
	/* the frame before it is not in the recording */
	if (!e->ns || begin_ns < m->begin_ns)
		trace_file_instant(&m->file, v->frames, "first frame", e->now_ns, args);
	else
		trace_file_slice(&m->file, v->frames, "frame", begin_ns, e->now_ns, args);
	v->frame_ns = e->now_ns;
}

void trace_model_lost(struct trace_model *m, uint64_t now_ns, uint64_t lost)
{
	struct trace_arg args[] = { { ARG_LOST, NULL, lost - m->lost }, { 0 } };
	char name[48];

	if (lost <= m->lost)
		return;
	snprintf(name, sizeof(name), "%llu events lost", (unsigned long long)(lost - m->lost));
	leave_all_slots(m, m->last_ns, "unknown: events lost");
	for (size_t i = 0; i < m->nr_vgpus; i++)
		m->vgpus[i]->hold_ns = 0;
	if (now_ns <= m->last_ns)
		now_ns = m->last_ns + 1;
	trace_file_slice(&m->file, m->lost_track, name, m->last_ns, now_ns, args);
	m->last_ns = now_ns;
	m->lost = lost;
}

void trace_model_event(struct trace_model *m, const struct mgpu_trace_event *e)
{
	struct trace_vgpu *v = vgpu_of(m, e->vgpu);

	trace_model_lost(m, e->now_ns, e->lost);
	if (e->now_ns > m->last_ns)
		m->last_ns = e->now_ns;
	if (!v) {
		m->others++;
		return;
	}
	m->events++;
	switch (e->type) {
	case MGPU_TRACE_START:
		job_start(m, v, e);
		break;
	case MGPU_TRACE_PREEMPT:
	case MGPU_TRACE_DONE:
		job_end(m, v, e);
		break;
	case MGPU_TRACE_THROTTLE:
		v->hold_ns = e->ns;
		v->reason = e->kind;
		break;
	case MGPU_TRACE_FRAME:
		frame(m, v, e);
		break;
	}
}

/* ---- mgpud ---- */

static void decided(struct trace_model *m, uint64_t now_ns, const char *what, const char *value)
{
	char text[TRACE_TEXT];

	snprintf(text, sizeof(text), "%s %.400s", what, value);
	trace_file_instant(&m->file, m->mgpud, text, now_ns, NULL);
}

static void read_trouble(struct json_object *state, char text[TRACE_TEXT])
{
	struct json_object *list = json_list(state, "trouble");
	struct json_object *first = list ? json_object_array_get_idx(list, 0) : NULL;

	snprintf(text, TRACE_TEXT, "%s", json_object_is_type(first, json_type_string) ?
		 json_object_get_string(first) : "");
}

static void control_changes(struct trace_model *m, uint64_t now_ns, struct json_object *state)
{
	struct json_object *did = json_member(json_member(state, "preempt"), "decisions");
	struct trace_control *was = &m->control;
	char text[TRACE_TEXT];

	json_text(state, "allocator", text, sizeof(text));
	if (strcmp(text, was->allocator))
		decided(m, now_ns, "allocator", strcpy(was->allocator, text));
	read_trouble(state, text);
	if (strcmp(text, was->trouble))
		decided(m, now_ns, "trouble:", *text ? text : "none");
	strcpy(was->trouble, text);
	for (size_t i = 0; i < NR(actions); i++) {
		double count = json_number(did, actions[i]);
		uint64_t now = count >= 0 && count < 1e18 ? (uint64_t)count : 0;
		struct trace_arg args[] = { { "count", NULL, now - was->actions[i] }, { 0 } };

		if (was->seen && now > was->actions[i])
			trace_file_instant(&m->file, m->mgpud, actions[i], now_ns, args);
		was->actions[i] = now;
	}
	was->seen = true;
}

static const struct trace_vgpu *vgpu_named(const struct trace_model *m, struct json_object *object)
{
	char uuid[40];

	json_text(object, "uuid", uuid, sizeof(uuid));
	/* the last one that had the UUID */
	for (size_t i = m->nr_vgpus; i-- > 0;)
		if (!strcmp(m->vgpus[i]->uuid, uuid))
			return m->vgpus[i];
	return NULL;
}

void trace_model_state(struct trace_model *m, uint64_t now_ns, struct json_object *state)
{
	struct json_object *list = json_list(state, "vgpus");
	size_t nr = list ? json_object_array_length(list) : 0;

	control_changes(m, now_ns, state);
	for (size_t i = 0; i < nr; i++) {
		struct json_object *one = json_object_array_get_idx(list, i);
		const struct trace_vgpu *v = vgpu_named(m, one);

		for (int j = 0; v && j < COUNTERS; j++) {
			double value = json_number(one, counters[j].key);

			trace_file_counter(&m->file, v->counters[j], now_ns,
					   isfinite(value) ? value * counters[j].factor : 0);
		}
	}
}

void trace_model_mgpud_event(struct trace_model *m, uint64_t now_ns, struct json_object *event)
{
	const struct trace_vgpu *v = vgpu_named(m, event);
	double at = json_number(event, "time_s") * 1e9;
	char name[64], why[256], text[TRACE_TEXT];

	json_text(event, "event", name, sizeof(name));
	json_text(event, "why", why, sizeof(why));
	snprintf(text, sizeof(text), "%s%s%s%s%s", strcmp(name, "lost") ? name : "events lost",
		 v ? " " : "", v ? v->name : "", *why ? ": " : "", why);
	if (at >= (double)m->begin_ns && at <= (double)now_ns)
		now_ns = (uint64_t)at;
	trace_file_instant(&m->file, m->mgpud, text, now_ns, NULL);
}

void trace_model_note(struct trace_model *m, uint64_t now_ns, const char *text)
{
	trace_file_instant(&m->file, m->mgpud, text, now_ns, NULL);
}

/* ---- the end ---- */

static int by_track(const void *a, const void *b)
{
	const struct trace_state *x = a, *y = b;

	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

/* Several jobs may wait at once: merge times that overlap. */
static void write_states(struct trace_model *m)
{
	struct trace_state *s = m->states;
	uint64_t end_ns;
	size_t i, j;

	if (m->nr_states)
		qsort(s, m->nr_states, sizeof(*s), by_track);
	for (i = 0; i < m->nr_states; i = j) {
		end_ns = s[i].end_ns;
		for (j = i + 1; j < m->nr_states && s[j].track == s[i].track &&
		     s[j].begin_ns <= end_ns; j++)
			if (s[j].end_ns > end_ns)
				end_ns = s[j].end_ns;
		trace_file_slice(&m->file, s[i].track, s[i].name, s[i].begin_ns, end_ns, NULL);
	}
	m->nr_states = 0;
}

void trace_model_finish(struct trace_model *m, uint64_t end_ns, const char *why, uint64_t missed)
{
	struct trace_arg args[] = {
		{ "clock", "CLOCK_MONOTONIC", 0 },
		{ "ended", why, 0 },
		{ "events", NULL, m->events },
		{ "frames", NULL, m->frames },
		{ "jobs", NULL, m->jobs },
		{ "preempted", NULL, m->preempted },
		{ ARG_LOST, NULL, m->lost },
		{ "missed", NULL, missed },
		{ "unmatched", NULL, m->unmatched },
		{ 0 },
	};

	if (m->file.error == -ENOSPC)
		m->file.error = 0;
	if (end_ns < m->last_ns)
		end_ns = m->last_ns;
	leave_all_slots(m, end_ns, "open at the end");
	m->file.reserved = 0;
	write_states(m);
	trace_file_slice(&m->file, m->recording, TRACK_RECORDING, m->begin_ns, end_ns, args);
	trace_file_sort(&m->file);
}
