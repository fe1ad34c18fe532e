// SPDX-License-Identifier: GPL-2.0-only
/* The recorder: frame events become lines of CSV. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/types.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "clock.h"
#include "complain.h"
#include "frames.skel.h"
#pragma GCC diagnostic pop

#include "account.h"
#include "cputime.h"
#include "frames.h"
#include "mgpu.h"
#include "trace.h"

#define POLL_MS	100

/* A vGPU and its last event. */
struct vgpu {
	char uuid[MGPU_UUID_LEN];	/* "" if unknown or not recorded */
	bool looked_up;
	struct mgpu_frame_event last;	/* frame 0: no event so far */
	bool shown;
};

struct recorder {
	const struct record *r;
	struct frames_bpf *skel;
	struct ring_buffer *ring;
	struct mgpu *mgpu;
	FILE *f;
	struct vgpu *vgpus;		/* sorted by ID */
	char (*wanted)[MGPU_UUID_LEN];
	uint64_t begin_ns;
	uint64_t lines, frames, merged, unknown;
	unsigned int nr_vgpus;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static bool libbpf_verbose;
static char complaint[256];

static int keep_complaint(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	va_list copy;

	if (level == LIBBPF_WARN) {
		va_copy(copy, ap);
		vsnprintf(complaint, sizeof(complaint), fmt, copy);
		va_end(copy);
		complaint[strcspn(complaint, "\n")] = '\0';
	}
	if (libbpf_verbose)
		vfprintf(stderr, fmt, ap);
	return 0;
}

/* ---- which vGPU ---- */

static bool is_wanted(const struct recorder *rec, const char *uuid)
{
	for (size_t i = 0; i < rec->r->nr_vgpus; i++)
		if (!strcmp(rec->wanted[i], uuid))
			return true;
	return !rec->r->nr_vgpus;
}

/* Ask the module which vGPU has this ID, which a later vGPU may reuse. */
static struct vgpu *find_vgpu(struct recorder *rec, const struct mgpu_frame_event *e)
{
	struct mgpu_vgpu_info info;
	struct mgpu_error err = { 0 };
	struct vgpu *v;

	if (e->vgpu >= MGPU_BPF_IDS)
		return NULL;
	v = &rec->vgpus[e->vgpu];
	if (v->looked_up && v->last.frame && e->tgid == v->last.tgid &&
	    e->frame > v->last.frame)
		return v;
	memset(v, 0, sizeof(*v));
	v->looked_up = true;
	if (!mgpu_vgpu_get(rec->mgpu, e->vgpu, &info, &err) && is_wanted(rec, info.uuid))
		strcpy(v->uuid, info.uuid);
	return v;
}

/* ---- events ---- */

static double seconds(uint64_t ns)
{
	return (double)ns * 1e-9;
}

/* A vGPU's first event only gives the start of its counters. */
static int on_event(void *ctx, void *data, size_t size)
{
	struct mgpu_frame_event e;
	struct recorder *rec = ctx;
	const struct mgpu_frame_event *last;
	struct vgpu *v;

	if (size < sizeof(e))
		return 0;
	memcpy(&e, data, sizeof(e));
	v = find_vgpu(rec, &e);
	if (!v || !v->uuid[0]) {
		if (v)
			v->last = e;
		return 0;
	}
	last = &v->last;
	if (!e.tgid) {
		rec->unknown += e.now_ns >= rec->begin_ns;
	} else if (last->frame && e.cpu_ns >= last->cpu_ns &&
		   e.engine_ns >= last->engine_ns && e.now_ns >= rec->begin_ns) {
		fprintf(rec->f, "%.9f,%s,%llu,%llu,%.9f,%.9f,%.9f\n",
			seconds(e.now_ns - rec->begin_ns), v->uuid,
			(unsigned long long)e.frame,
			(unsigned long long)(e.frame - last->frame),
			seconds(e.cpu_ns - last->cpu_ns),
			seconds(e.engine_ns - last->engine_ns),
			seconds(e.held_ns >= last->held_ns ? e.held_ns - last->held_ns : 0));
		rec->lines++;
		rec->frames += e.frame - last->frame;
		rec->merged += e.frame - last->frame - 1;
		rec->nr_vgpus += !v->shown;
		v->shown = true;
	}
	v->last = e;
	return 0;
}

/* ---- beginning and end ---- */

static int load(struct recorder *rec)
{
	int cpus = libbpf_num_possible_cpus(), ret;
	struct frames_bpf *skel;

	libbpf_verbose = rec->r->verbose;
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(keep_complaint);
	skel = frames_bpf__open();
	if (!skel) {
		complain("the BPF programs cannot be opened: %s", strerror(errno));
		return -errno;
	}
	rec->skel = skel;
	/* mgpud's programs charge */
	bpf_program__set_autoload(skel->progs.job_done_charge, false);
	bpf_program__set_autoload(skel->progs.job_preempt_charge, false);
	skel->rodata->nr_cpus = cpus > 0 ? (uint32_t)cpus : 1;
	ret = bpf_map__set_max_entries(skel->maps.cpus, skel->rodata->nr_cpus);
	if (!ret)
		ret = frames_bpf__load(skel);
	if (ret == -EPERM || ret == -EACCES)
		complain("no permission to load BPF programs: run as root, or with CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN and CAP_NET_ADMIN");
	else if (ret && access("/sys/kernel/btf/mgpu", R_OK))
		complain("mgpu.ko is not loaded, or has no BTF: load it, built with pahole and the kernel's vmlinux at hand");
	else if (ret)
		complain("the BPF programs do not load: %s (%s)", strerror(-ret),
			 complaint[0] ? complaint : "try --verbose");
	return ret;
}

static void set_owner(struct recorder *rec, uint32_t vgpu, uint32_t tgid)
{
	struct mgpu_owner_args args = { .vgpu = vgpu, .tgid = tgid };
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts),
		.ctx_in = &args,
		.ctx_size_in = sizeof(args),
	};

	bpf_prog_test_run_opts(bpf_program__fd(rec->skel->progs.owner), &opts);
}

/* Attach first: the programs see later opens, and the list has the others. */
static int begin(struct recorder *rec)
{
	struct mgpu_error err = { 0 };
	struct mgpu_vgpu_info *list = NULL;
	struct mgpu_dev_info *devs = NULL;
	size_t nr, nr_devs = 0;
	int ret;

	ret = frames_bpf__attach(rec->skel);
	if (ret) {
		complain("the BPF programs cannot attach: %s", strerror(-ret));
		return ret;
	}
	ret = mgpu_vgpu_list(rec->mgpu, NULL, &list, &nr, &err);
	if (!ret)
		ret = mgpu_dev_list(rec->mgpu, &devs, &nr_devs, &err);
	for (size_t i = 0; !ret && i < rec->r->nr_vgpus; i++) {
		const struct mgpu_vgpu_info *v;

		ret = mgpu_vgpu_match(list, nr, rec->r->vgpus[i], &v, &err);
		if (!ret)
			strcpy(rec->wanted[i], v->uuid);
	}
	if (ret) {
		complain("%s", err.text);
		goto out;
	}
	for (size_t j = 0; j < nr; j++)
		if (list[j].open && list[j].tgid && list[j].id < MGPU_BPF_IDS)
			set_owner(rec, list[j].id, list[j].tgid);
	rec->ring = ring_buffer__new(bpf_map__fd(rec->skel->maps.events), on_event, rec,
				     NULL);
	if (!rec->ring) {
		ret = -errno;
		complain("no ring buffer: %s", strerror(errno));
		goto out;
	}
	rec->begin_ns = now_ns();
	fprintf(rec->f, "# mgpu-trace cpus=%ld", sysconf(_SC_NPROCESSORS_ONLN));
	if (nr_devs)
		fprintf(rec->f, " engines=%u", devs[0].engines);
	fprintf(rec->f, " begin_s=%.9f\ntime_s,vgpu,frame,frames,cpu_s,engine_s,held_s\n",
		seconds(rec->begin_ns));
	/* show the begin to readers of the file */
	fflush(rec->f);
out:
	free(list);
	free(devs);
	return ret;
}

static int follow(struct recorder *rec)
{
	uint64_t end = rec->begin_ns + (uint64_t)(rec->r->seconds * 1e9);

	while (!stop && (!(rec->r->seconds > 0) || now_ns() < end)) {
		int ret = ring_buffer__poll(rec->ring, POLL_MS);

		if (ret < 0 && ret != -EINTR) {
			complain("the ring buffer cannot be read: %s", strerror(-ret));
			return ret;
		}
		if (ferror(rec->f)) {
			complain("%s: cannot be written: %s", rec->r->path, strerror(errno));
			return -EIO;
		}
	}
	ring_buffer__consume(rec->ring);
	return 0;
}

static void tell(struct recorder *rec)
{
	uint64_t lost = __atomic_load_n(&rec->skel->bss->lost, __ATOMIC_RELAXED);
	double took = seconds(now_ns() - rec->begin_ns);

	fprintf(rec->f, "# end seconds=%.3f lost=%llu\n", took, (unsigned long long)lost);
	fprintf(stderr, "mgpu-trace: %llu frames of %u vGPUs in %.1f s, %llu events lost\n",
		(unsigned long long)rec->frames, rec->nr_vgpus, took,
		(unsigned long long)lost);
	if (rec->merged)
		fprintf(stderr, "mgpu-trace: %llu lines stand for more than one frame; together %llu frames too many\n",
			(unsigned long long)rec->lines, (unsigned long long)rec->merged);
	if (rec->unknown)
		fprintf(stderr, "mgpu-trace: %llu frames left out whose VMM is not known\n",
			(unsigned long long)rec->unknown);
}

int record(const struct record *r)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct recorder rec = { .r = r };
	struct mgpu_error err = { 0 };
	int ret;

	rec.vgpus = calloc(MGPU_BPF_IDS, sizeof(*rec.vgpus));
	rec.wanted = calloc(r->nr_vgpus + 1, sizeof(*rec.wanted));
	if (!rec.vgpus || !rec.wanted) {
		complain("out of memory");
		ret = -ENOMEM;
		goto out;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	ret = mgpu_open(&rec.mgpu, &err);
	if (ret) {
		complain("%s", err.text);
		goto out;
	}
	rec.f = fopen(r->path, "we");
	if (!rec.f) {
		ret = -errno;
		complain("%s: %s", r->path, strerror(errno));
		goto out;
	}
	ret = load(&rec);
	if (!ret)
		ret = begin(&rec);
	if (!ret)
		ret = follow(&rec);
	if (!ret)
		tell(&rec);
out:
	if (rec.f && fclose(rec.f) && !ret) {
		ret = -errno;
		complain("%s: cannot be written: %s", r->path, strerror(errno));
	}
	ring_buffer__free(rec.ring);
	frames_bpf__destroy(rec.skel);
	mgpu_close(rec.mgpu);
	free(rec.vgpus);
	free(rec.wanted);
	return ret;
}
