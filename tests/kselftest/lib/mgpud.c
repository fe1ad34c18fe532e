// SPDX-License-Identifier: GPL-2.0-only
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mgpud.h"

pid_t mgpud_start(void)
{
	const char *build = getenv("BUILD");
	char path[256];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/ctl/mgpud", build ? build : "build");
	if (access(path, X_OK))
		return 0;
	pid = fork();
	if (pid)
		return pid;
	execl(path, path, "--allocator", "none", "--socket",
	      "/tmp/kselftest.mgpud", NULL);
	_exit(127);
}

static uint64_t rise(const struct nl_vgpu *before, const struct nl_vgpu *after,
		     unsigned int attr)
{
	return after->stats[attr] - before->stats[attr];
}

bool charged_by_ebpf(const struct nl_vgpu *before, const struct nl_vgpu *after)
{
	uint64_t engine = rise(before, after, MGPU_A_STATS_ENGINE_NS);
	uint64_t bpf = rise(before, after, MGPU_A_STATS_CHARGED_BPF_NS);
	uint64_t self = rise(before, after, MGPU_A_STATS_CHARGED_SELF_NS);

	if (engine && bpf == engine && !self)
		return true;
	fprintf(stderr, "# engine %" PRIu64 " ns, charged %" PRIu64
		" by eBPF and %" PRIu64 " by the module\n", engine, bpf, self);
	return false;
}
