// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of each frame, one event per frame.
 *
 * Counts: the counters of account.bpf.c and cputime.bpf.c. It includes both files, so
 *	that an event reads all counters at one moment and both count in the same
 *	way. It charges no jobs: load job_done_count and job_preempt_count, and not
 *	the two programs that charge.
 * Attaches to: the same as those files, and mgpu_frame.
 * Costs: in addition to theirs, per frame a walk over the CPUs and one record in a
 *	ring buffer. Attach it for a measurement, not permanently.
 */
#include "cputime.bpf.c"

/* Both files define LICENSE: keep the first definition. */
#define LICENSE LICENSE_of_account
#include "account.bpf.c"
#undef LICENSE

#include "frames.h"

#define TRIES	4	/* attempts to read without a thread switch meanwhile */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MGPU_FRAMES_RING);
} events SEC(".maps");

const volatile __u32 nr_cpus = 1;
__u64 lost;			/* events that did not fit; read by user space */

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

/* Return the CPU time of a slot with that of running threads, see cputime.h. */
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
