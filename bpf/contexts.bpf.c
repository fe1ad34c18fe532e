// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work of compute contexts.
 *
 * Counts: work units, bytes, engine time and cycles of each context, separately for
 *	each operation and for each context that had slots at the same time
 *	(contexts.h), so that user space knows the speed of an operation alone and
 *	next to others.
 * Attaches to: mgpu.ko's tracepoint mgpu_context_run. The order of its arguments is
 *	the interface.
 * Costs: one hash lookup and five atomic adds per event. There is an event when a
 *	context leaves a slot, when its neighbours change, and twenty times a second.
 */
#include "common.bpf.h"
#include "contexts.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MGPU_BPF_RUNS);
	__type(key, struct mgpu_run_key);
	__type(value, struct mgpu_run);
} runs SEC(".maps");

SEC("tp_btf/mgpu_context_run")
int BPF_PROG(context_run, __u32 vgpu, __u32 id, __u32 op, __u32 peer_vgpu, __u32 peer,
	     __u64 inst, __u64 bytes, __u64 engine_ns, __u64 engine_cycles)
{
	struct mgpu_run_key key = {
		.vgpu = vgpu,
		.ctx = id,
		.op = op,
		.peer_vgpu = peer_vgpu,
		.peer = peer,
	};
	struct mgpu_run none = {}, *run;

	run = bpf_map_lookup_elem(&runs, &key);
	if (!run) {
		bpf_map_update_elem(&runs, &key, &none, BPF_NOEXIST);
		run = bpf_map_lookup_elem(&runs, &key);
		if (!run)
			return 0;
	}
	add(&run->inst, inst);
	add(&run->bytes, bytes);
	add(&run->engine_ns, engine_ns);
	add(&run->engine_cycles, engine_cycles);
	add(&run->samples, 1);
	return 0;
}
