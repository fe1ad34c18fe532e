// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mgpud.h"
#include "vmm.h"

#define OUTPUT	"/tmp/kselftest.mgpud.out"

static const char *program(void)
{
	const char *build = getenv("BUILD");
	static char path[256];

	snprintf(path, sizeof(path), "%s/ctl/mgpud", build ? build : "build");
	return path;
}

pid_t mgpud_spawn(char *const argv[])
{
	pid_t pid;
	int fd;

	unlink(OUTPUT);
	pid = fork();
	if (pid)
		return pid;
	fd = open(OUTPUT, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0)
		execv(program(), argv);
	_exit(127);
}

bool mgpud_says(const char *text)
{
	static char said[1 << 16];

	if (sysfs_read(OUTPUT, said, sizeof(said)) < 0)
		return false;
	return strstr(said, text);
}

/* As comments. */
static void print_output(void)
{
	char line[512];
	FILE *f = fopen(OUTPUT, "re");

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		remark("mgpud: %s", line);
	}
	if (f)
		fclose(f);
}

bool mgpud_await_ready(pid_t pid, uint64_t ms)
{
	uint64_t end = now_ms() + ms;

	while (!mgpud_says("ready ") && now_ms() < end) {
		if (waitpid(pid, NULL, WNOHANG))
			break;
		sleep_ms(5);
	}
	if (mgpud_says("ready "))
		return true;
	print_output();
	return false;
}

pid_t mgpud_start(void)
{
	char *const argv[] = {
		"mgpud", "--allocator", "none", "--socket", "/tmp/kselftest.mgpud", NULL
	};
	pid_t pid;

	if (access(program(), X_OK))
		return 0;
	pid = mgpud_spawn(argv);
	if (pid <= 0 || mgpud_await_ready(pid, 3 * (uint64_t)VMM_TIMEOUT))
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return -1;
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
