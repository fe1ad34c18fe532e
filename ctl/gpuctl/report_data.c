// SPDX-License-Identifier: GPL-2.0-only
/* Finds the figures of a recording. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_data.h"
#include "trace_model.h"

#define BINS_MIN	20
#define BINS_PER_S	2
#define VGPUS_MAX	16384

/* Contents of a track; those of a vGPU are ROLE_FRAMES and later ones. */
enum role {
	ROLE_NONE, ROLE_LOST, ROLE_MGPUD, ROLE_DEV, ROLE_SLOT, ROLE_FRAMES, ROLE_THROTTLED,
	ROLE_WAITING, ROLE_PREEMPTED, ROLE_TARGET, ROLE_SHARE_TARGET,
};

/**
 * struct track - a track of the recording
 * @role: what it shows
 * @index: of its vGPU or slot
 * @engines: of the device that it is, or whose slot it is
 * @dev: of a slot: track of its device
 */
struct track {
	enum role role;
	size_t index;
	uint64_t engines;
	size_t dev;
};

/**
 * struct maker - a report that is being made
 * @report: result
 * @r: the recording
 * @tracks: for each track of it
 * @begin_ns: its begin
 * @end_ns: its end
 * @held: for each slot and vGPU: part of each point's time, to find the vGPU that used the slot
 *	longest; NULL if there are too many
 */
struct maker {
	struct report *report;
	const struct trace_reading *r;
	struct track *tracks;
	uint64_t begin_ns;
	uint64_t end_ns;
	double *held;
};

/* More of them are not kept apart by point of time. */
#define HELD_MAX	(16 << 20)

static const struct {
	const char *name;
	enum role role;
} of_vgpu[] = {
	{ TRACK_FRAMES, ROLE_FRAMES },
	{ TRACK_THROTTLED, ROLE_THROTTLED },
	{ TRACK_WAITING, ROLE_WAITING },
	{ TRACK_PREEMPTED, ROLE_PREEMPTED },
	{ TRACK_TARGET, ROLE_TARGET },
	{ TRACK_GPU_TARGET, ROLE_SHARE_TARGET },
};

/* ---- tracks ---- */

static int by_rank(const void *a, const void *b)
{
	const struct report_vgpu *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->track < y->track ? -1 : x->track > y->track;
}

static int find_vgpus(struct maker *m, size_t parent)
{
	const struct trace_reading *r = m->r;
	struct report *report = m->report;
	size_t nr = 0, i, j;

	for (i = 0; i < r->nr_tracks; i++)
		nr += r->tracks[i].parent == parent;
	if (nr > VGPUS_MAX)
		return -EINVAL;
	report->vgpus = calloc(nr + 1, sizeof(*report->vgpus));
	if (!report->vgpus)
		return -ENOMEM;
	for (i = 0; i < r->nr_tracks; i++) {
		struct report_vgpu *v = &report->vgpus[report->nr_vgpus];

		if (r->tracks[i].parent != parent)
			continue;
		v->name = r->tracks[i].name;
		v->uuid = r->tracks[i].description;
		v->track = i;
		v->rank = r->tracks[i].rank;
		report->nr_vgpus++;
	}
	qsort(report->vgpus, report->nr_vgpus, sizeof(*report->vgpus), by_rank);
	for (i = 0; i < report->nr_vgpus; i++)
		m->tracks[report->vgpus[i].track].index = i;
	for (i = 0; i < r->nr_tracks; i++) {
		size_t vgpu = r->tracks[i].parent;

		if (vgpu == TRACE_NONE || r->tracks[vgpu].parent != parent)
			continue;
		for (j = 0; j < sizeof(of_vgpu) / sizeof(of_vgpu[0]); j++)
			if (trace_text_is(&r->tracks[i].name, of_vgpu[j].name)) {
				m->tracks[i].role = of_vgpu[j].role;
				m->tracks[i].index = m->tracks[vgpu].index;
			}
	}
	return 0;
}

static int find_slots(struct maker *m, size_t parent)
{
	const struct trace_reading *r = m->r;
	struct report *report = m->report;
	size_t nr = 0;

	for (size_t i = 0; i < r->nr_tracks; i++) {
		size_t dev = r->tracks[i].parent;

		nr += dev != TRACE_NONE && r->tracks[dev].parent == parent;
		if (dev != parent)
			continue;
		m->tracks[i].role = ROLE_DEV;
		m->tracks[i].engines = 1;
	}
	report->slots = calloc(nr + 1, sizeof(*report->slots));
	if (!report->slots)
		return -ENOMEM;
	for (size_t i = 0; i < r->nr_tracks; i++) {
		size_t dev = r->tracks[i].parent;

		if (dev == TRACE_NONE || r->tracks[dev].parent != parent)
			continue;
		m->tracks[i].role = ROLE_SLOT;
		m->tracks[i].dev = dev;
		m->tracks[i].index = report->nr_slots;
		report->slots[report->nr_slots].dev = r->tracks[dev].name;
		report->slots[report->nr_slots++].name = r->tracks[i].name;
	}
	return 0;
}

/* Find the slice that is the whole recording. */
static bool find_recording(struct maker *m, size_t track)
{
	struct report *report = m->report;

	for (size_t i = 0; i < m->r->nr_events; i++) {
		const struct read_event *e = &m->r->events[i];

		if (e->track != track || e->type != TRACE_BEGIN || e->end_ns <= e->ns)
			continue;
		m->begin_ns = e->ns;
		m->end_ns = e->end_ns;
		report->seconds = (double)(e->end_ns - e->ns) / 1e9;
		report->ended = trace_arg_text(e, "ended");
		report->lost = trace_arg_uint(e, ARG_LOST);
		report->missed = trace_arg_uint(e, "missed");
		report->realtime_ns = m->r->clocks.realtime;
		return true;
	}
	return false;
}

static int find_tracks(struct maker *m)
{
	const struct trace_reading *r = m->r;
	size_t root = trace_track_named(r, TRACE_NONE, TRACK_ROOT);
	size_t recording, lost, mgpud, devices, vgpus;
	int ret;

	if (root == TRACE_NONE)
		return -EINVAL;
	recording = trace_track_named(r, root, TRACK_RECORDING);
	lost = trace_track_named(r, root, TRACK_LOST);
	mgpud = trace_track_named(r, root, TRACK_MGPUD);
	devices = trace_track_named(r, root, TRACK_DEVICES);
	vgpus = trace_track_named(r, root, TRACK_VGPUS);
	if (recording == TRACE_NONE || lost == TRACE_NONE || mgpud == TRACE_NONE ||
	    devices == TRACE_NONE || vgpus == TRACE_NONE || !find_recording(m, recording))
		return -EINVAL;
	m->tracks[lost].role = ROLE_LOST;
	m->tracks[mgpud].role = ROLE_MGPUD;
	ret = find_vgpus(m, vgpus);
	return ret ? ret : find_slots(m, devices);
}

/* ---- points of time ---- */

static double bin_seconds(const struct report *report)
{
	return report->seconds / (double)report->bins;
}

/* Seconds since the begin, within the recording. */
static double at(const struct maker *m, uint64_t ns)
{
	if (ns <= m->begin_ns)
		return 0;
	return (double)((ns < m->end_ns ? ns : m->end_ns) - m->begin_ns) / 1e9;
}

static size_t bin_of(const struct maker *m, double seconds)
{
	size_t bin = (size_t)(seconds / bin_seconds(m->report));

	return bin < m->report->bins ? bin : m->report->bins - 1;
}

/*
 * Add @factor times a slice to the points that it overlaps, as parts of their time. Returns the
 * same as a part of the recording's time.
 */
static double spread(const struct maker *m, const struct read_event *e, double factor,
		     double *points)
{
	double from = at(m, e->ns), to = at(m, e->end_ns), width = bin_seconds(m->report);

	for (size_t bin = bin_of(m, from); bin < m->report->bins && (double)bin * width < to;
	     bin++) {
		double a = fmax(from, (double)bin * width);
		double b = fmin(to, (double)(bin + 1) * width);

		if (b > a)
			points[bin] += factor * (b - a) / width;
	}
	return factor * (to - from) / m->report->seconds;
}

/* ---- events ---- */

static size_t vgpu_of_job(const struct maker *m, const struct read_event *e)
{
	size_t track = trace_track_by_uuid(m->r, trace_arg_uint(e, ARG_VGPU_TRACK));
	size_t i = track == TRACE_NONE ? 0 : m->tracks[track].index;

	return i < m->report->nr_vgpus && m->report->vgpus[i].track == track ? i : SIZE_MAX;
}

/* Return the points of a slot's use by a vGPU. */
static double *held_of(const struct maker *m, size_t slot, size_t vgpu)
{
	return m->held + (slot * m->report->nr_vgpus + vgpu) * REPORT_BINS;
}

/* A job's engine time is spread over the time that it was in its slot. */
static void take_job(const struct maker *m, const struct read_event *e)
{
	const struct track *track = &m->tracks[e->track];
	struct report_slot *slot = &m->report->slots[track->index];
	struct trace_text end = trace_arg_text(e, ARG_END);
	double whole = (double)(e->end_ns - e->ns) / 1e9;
	double engine = (double)trace_arg_uint(e, ARG_ENGINE_NS) / 1e9;
	double part = engine > 0 && engine < whole ? engine / whole : 1;
	double engines = (double)m->tracks[track->dev].engines, share;
	size_t vgpu = vgpu_of_job(m, e);
	struct report_vgpu *v;

	slot->used += spread(m, e, 1, slot->bins);
	if (vgpu == SIZE_MAX)
		return;
	if (m->held)
		spread(m, e, 1, held_of(m, track->index, vgpu));
	v = &m->report->vgpus[vgpu];
	share = spread(m, e, part / engines, v->series[SERIES_SHARE]);
	v->share += share;
	v->engine_s += share * engines * m->report->seconds;
	v->jobs++;
	v->preempted += trace_text_is(&end, END_PREEMPTED);
}

static void take_frame(const struct maker *m, const struct read_event *e, struct report_vgpu *v)
{
	bool slice = e->type == TRACE_BEGIN;

	v->frames++;
	v->series[SERIES_FPS][bin_of(m, at(m, slice ? e->end_ns : e->ns))] +=
		1 / bin_seconds(m->report);
	if (slice)
		v->times[v->nr_times++] = e->end_ns - e->ns;
}

/* A value of mgpud counts from its point of time on. */
static void take_target(const struct maker *m, const struct read_event *e, double *series,
			double factor)
{
	for (size_t bin = bin_of(m, at(m, e->ns)); bin < m->report->bins; bin++)
		series[bin] = e->value > 0 ? e->value * factor : NAN;
}

static void take_decision(const struct maker *m, const struct read_event *e)
{
	struct report *report = m->report;

	report->decisions[report->nr_decisions++] = (struct report_decision) {
		at(m, e->ns), e->name, trace_arg_uint(e, "count"),
	};
}

static void take_gap(const struct maker *m, const struct read_event *e)
{
	struct report *report = m->report;

	report->gaps[report->nr_gaps++] = (struct report_gap) {
		at(m, e->ns), at(m, e->end_ns), trace_arg_uint(e, ARG_LOST),
	};
}

static void take(struct maker *m, const struct read_event *e)
{
	const struct track *track = &m->tracks[e->track];
	struct report *report = m->report;
	bool slice = e->type == TRACE_BEGIN;
	struct report_vgpu *v = track->role >= ROLE_FRAMES ? &report->vgpus[track->index] : NULL;

	switch (track->role) {
	case ROLE_LOST:
		if (slice)
			take_gap(m, e);
		break;
	case ROLE_MGPUD:
		if (!slice)
			take_decision(m, e);
		break;
	case ROLE_SLOT:
		if (slice)
			take_job(m, e);
		break;
	case ROLE_FRAMES:
		take_frame(m, e, v);
		break;
	case ROLE_THROTTLED:
		if (slice)
			v->throttled += spread(m, e, 1, v->series[SERIES_THROTTLED]);
		break;
	case ROLE_WAITING:
		if (slice)
			v->waiting += spread(m, e, 1, v->series[SERIES_WAITING]);
		break;
	case ROLE_PREEMPTED:
		v->series[SERIES_PREEMPTED][bin_of(m, at(m, e->ns))]++;
		break;
	case ROLE_TARGET:
		take_target(m, e, v->series[SERIES_TARGET], 1);
		report->mgpud = true;
		break;
	case ROLE_SHARE_TARGET:
		take_target(m, e, v->series[SERIES_SHARE_TARGET], 0.01);
		break;
	default:
		break;
	}
}

/* Make room for frame times, decisions, gaps and uses of slots, by the numbers of events. */
static int allocate(struct maker *m)
{
	struct report *report = m->report;
	size_t decisions = 0, gaps = 0, i, bin;

	for (i = 0; i < m->r->nr_events; i++) {
		const struct read_event *e = &m->r->events[i];
		struct track *track = &m->tracks[e->track];

		decisions += track->role == ROLE_MGPUD;
		gaps += track->role == ROLE_LOST;
		if (track->role == ROLE_FRAMES)
			report->vgpus[track->index].nr_times++;
		if (track->role == ROLE_DEV && trace_arg_uint(e, ARG_ENGINES))
			track->engines = trace_arg_uint(e, ARG_ENGINES);
	}
	report->decisions = calloc(decisions + 1, sizeof(*report->decisions));
	report->gaps = calloc(gaps + 1, sizeof(*report->gaps));
	if (report->nr_slots * REPORT_BINS <= HELD_MAX / (report->nr_vgpus + 1))
		m->held = calloc(report->nr_slots * REPORT_BINS * report->nr_vgpus + 1,
				 sizeof(*m->held));
	if (!report->decisions || !report->gaps)
		return -ENOMEM;
	for (i = 0; i < report->nr_vgpus; i++) {
		struct report_vgpu *v = &report->vgpus[i];

		v->times = calloc(v->nr_times + 1, sizeof(*v->times));
		if (!v->times)
			return -ENOMEM;
		v->nr_times = 0;
		for (bin = 0; bin < REPORT_BINS; bin++)
			v->series[SERIES_TARGET][bin] = v->series[SERIES_SHARE_TARGET][bin] = NAN;
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Find which vGPU used each slot longest, at each point of time. */
static void find_longest(const struct maker *m)
{
	const struct report *report = m->report;

	for (size_t i = 0; i < report->nr_slots; i++)
		for (size_t bin = 0; bin < REPORT_BINS; bin++) {
			size_t *longest = &report->slots[i].vgpu[bin];
			double most = 0;

			*longest = SIZE_MAX;
			for (size_t v = 0; m->held && v < report->nr_vgpus; v++)
				if (held_of(m, i, v)[bin] > most) {
					most = held_of(m, i, v)[bin];
					*longest = v;
				}
		}
}

static int fill(struct maker *m)
{
	struct report *report = m->report;
	int ret = allocate(m);

	if (ret)
		return ret;
	for (size_t i = 0; i < m->r->nr_events; i++)
		take(m, &m->r->events[i]);
	for (size_t i = 0; i < report->nr_vgpus; i++)
		qsort(report->vgpus[i].times, report->vgpus[i].nr_times, sizeof(uint64_t),
		      by_value);
	find_longest(m);
	return 0;
}

int report_make(struct report *report, const struct trace_reading *r, char *why, size_t len)
{
	struct maker m = { .report = report, .r = r };
	int ret = -ENOMEM;

	memset(report, 0, sizeof(*report));
	m.tracks = calloc(r->nr_tracks + 1, sizeof(*m.tracks));
	if (m.tracks)
		ret = find_tracks(&m);
	if (!ret) {
		report->bins = (size_t)fmin(fmax(report->seconds * BINS_PER_S, BINS_MIN),
					    REPORT_BINS);
		ret = fill(&m);
	}
	free(m.tracks);
	free(m.held);
	if (!ret)
		return 0;
	report_free(report);
	snprintf(why, len, "%s", ret == -ENOMEM ? "out of memory" :
		 "the file is no recording of gpuctl trace: it lacks its tracks");
	return ret;
}

void report_free(struct report *report)
{
	for (size_t i = 0; i < report->nr_vgpus; i++)
		free(report->vgpus[i].times);
	free(report->vgpus);
	free(report->slots);
	free(report->decisions);
	free(report->gaps);
	memset(report, 0, sizeof(*report));
}

double report_frame_time(const struct report_vgpu *vgpu, double q)
{
	size_t i = (size_t)ceil(q * (double)vgpu->nr_times);

	if (!vgpu->nr_times)
		return NAN;
	return (double)vgpu->times[i ? i - 1 : 0] / 1e9;
}
