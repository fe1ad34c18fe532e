// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each frame cost, one event per frame.
 *
 * Counts: what account.bpf.c and cputime.bpf.c count; they are part of it, so
 *	that all of an event is read at one moment, and nothing is counted in
 *	two ways. It charges nothing: job_done_count and job_preempt_count are
 *	to be loaded, the two that charge are not.
 * Attaches to: what these attach to, and mgpu_frame.
 * Costs: besides theirs, per frame a walk over the CPUs and one record in a
 *	ring buffer. Meant to run for a while, not always.
 */
#include "cputime.bpf.c"

/* one licence for all of it */
#define LICENSE LICENSE_of_account
#include "account.bpf.c"
#undef LICENSE

#include "frames.h"

#define TRIES	4	/* of a reading that a thread switch disturbs */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MGPU_FRAMES_RING);
} events SEC(".maps");

const volatile __u32 nr_cpus = 1;
__u64 lost;			/* events without room: read by user space */

struct running {
	__u64 now;
	__u64 ns;
	__u32 slot;
};

static long add_running(__u32 cpu, struct running *r)
{
	struct mgpu_cpu_cell *cell = bpf_map_lookup_elem(&cpus, &cpu);
	__u64 since;

	if (!cell || READ_ONCE(cell->slot) != r->slot)
		return 0;
	since = READ_ONCE(cell->since);
	if (r->now > since)
		r->ns += r->now - since;
	return 0;
}

/* What ended and what runs right now, as cputime.h says. */
static __always_inline __u64 cpu_time(__u32 slot, __u64 *now)
{
	struct mgpu_cpu_slot *s = bpf_map_lookup_elem(&slots, &slot);
	struct running r = { .slot = slot };
	__u64 ended = 0;
	__u32 i;

	if (!s)
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < TRIES; i++) {
		ended = READ_ONCE(s->ns);
		r.ns = 0;
		r.now = bpf_ktime_get_ns();
		bpf_loop(nr_cpus, add_running, &r, 0);
		if (READ_ONCE(s->ns) == ended)
			break;
	}
	*now = r.now;
	return ended + r.ns;
}

SEC("tp_btf/mgpu_frame")
int BPF_PROG(frame_event, __u32 vgpu, __u64 nr)
{
	struct mgpu_cpu_owner *o = bpf_map_lookup_elem(&vgpu_owner, &vgpu);
	struct mgpu_account *a = account(vgpu);
	struct mgpu_frame_event *e;
	__u64 now, cpu = 0;
	__u32 tgid = 0;
	struct vmm *v;

	if (!a || !o)
		return 0;
	now = bpf_ktime_get_ns();
	tgid = READ_ONCE(o->tgid);
	v = bpf_map_lookup_elem(&vmms, &tgid);
	if (v)
		cpu = cpu_time(v->slot, &now);
	else
		tgid = 0;

	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		add(&lost, 1);
		return 0;
	}
	e->now_ns = now;
	e->frame = nr;
	e->cpu_ns = cpu;
	e->engine_ns = READ_ONCE(a->engine_ns);
	e->held_ns = READ_ONCE(a->throttled_ns);
	e->vgpu = vgpu;
	e->tgid = tgid;
	bpf_ringbuf_submit(e, 0);
	return 0;
}
