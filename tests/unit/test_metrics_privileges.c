// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test what the process of mgpu-exporter that answers HTTP clients cannot call. Each case is a
 * process that gives up its privileges, and reports in a pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "privileges.h"
#include "tap.h"

#define CALLS	512	/* more than the kernel has */

/* Calls that may do something; fcntl, mmap, mprotect and tgkill may with some arguments. */
static const int allowed[] = {
	SYS_accept4, SYS_brk, SYS_clock_gettime, SYS_clock_nanosleep, SYS_close, SYS_epoll_ctl,
	SYS_epoll_pwait, SYS_epoll_wait, SYS_exit, SYS_exit_group, SYS_fcntl, SYS_futex,
	SYS_getpeername, SYS_getpid, SYS_getrandom, SYS_getsockname, SYS_getsockopt, SYS_gettid,
	SYS_gettimeofday, SYS_madvise, SYS_mmap, SYS_mprotect, SYS_mremap, SYS_munmap, SYS_poll,
	SYS_ppoll, SYS_read, SYS_recvfrom, SYS_recvmsg, SYS_restart_syscall, SYS_rt_sigaction,
	SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sched_yield, SYS_sendmsg, SYS_sendto,
	SYS_setsockopt, SYS_shutdown, SYS_sigaltstack, SYS_tgkill, SYS_time, SYS_write, SYS_writev,
};

/* uretprobe and uprobe: the kernel applies no filter to them. Without a probe they do nothing. */
#define PROBES_FROM	335
#define PROBES_TO	336

static bool is_allowed(long call)
{
	if (call >= PROBES_FROM && call <= PROBES_TO)
		return true;
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		if (allowed[i] == call)
			return true;
	return false;
}

/* Errors of calls in a process without privileges; 0 for none. */
static int errors[CALLS];

/* Have a process give up its privileges and fill in errors. */
static void confined(void (*body)(void))
{
	int ends[2], status = -1;
	size_t got = 0;
	ssize_t n;
	pid_t pid;

	TAP_NEED(!pipe(ends));
	pid = fork();
	TAP_NEED(pid >= 0);
	if (!pid) {
		memset(errors, 0, sizeof(errors));
		if (!privileges_drop())
			_exit(1);
		body();
		_exit(write(ends[1], errors, sizeof(errors)) != sizeof(errors));
	}
	close(ends[1]);
	while (got < sizeof(errors) &&
	       (n = read(ends[0], (char *)errors + got, sizeof(errors) - got)) > 0)
		got += (size_t)n;
	close(ends[0]);
	TAP_EQ(waitpid(pid, &status, 0), pid);
	TAP_EQ(status, 0);
	TAP_NEED(got == sizeof(errors));
}

static void call_all(void)
{
	for (long call = 0; call < CALLS; call++)
		if (!is_allowed(call) && syscall(call, -1, -1, -1, -1, -1, -1) < 0)
			errors[call] = errno;
}

static void refuses_all_others(void)
{
	confined(call_all);
	for (long call = 0; call < CALLS; call++)
		if (!TAP_CHECK(is_allowed(call) || errors[call] == EPERM))
			tap_diag("call %ld: error %d", call, errors[call]);
}

/* Try calls that an attacker would want, with arguments that work before the filter. */
static void call_some(void)
{
	static char *const argv[] = { (char *)"/bin/true", NULL };
	int n = 0;

#define TRY(call)	(errno = 0, errors[n++] = (long)(call) == -1 ? errno : 0)
	TRY(open("/dev/null", O_RDONLY));
	TRY(openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY));
	TRY(socket(AF_INET, SOCK_STREAM, 0));
	TRY(socket(AF_UNIX, SOCK_STREAM, 0));
	TRY(socket(AF_NETLINK, SOCK_RAW, 0));
	TRY(fork());
	TRY(execve(argv[0], argv, NULL));
	TRY(kill(getppid(), 0));
	TRY(syscall(SYS_tgkill, getppid(), getppid(), 0));
	TRY(fcntl(STDOUT_FILENO, F_SETOWN, getppid()));
	TRY(mprotect(NULL, 0, PROT_READ | PROT_EXEC));
	TRY((long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	TRY(setuid(0));
	/* and what it needs */
	TRY((long)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	TRY(syscall(SYS_tgkill, getpid(), getpid(), 0));
	TRY(fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL)));
	TRY(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &(struct timespec){ 0 }));
}

static void refuses_what_attackers_want(void)
{
	confined(call_some);
	for (int i = 0; i < 13; i++)
		TAP_EQ(errors[i], EPERM);
	for (int i = 13; i < 17; i++)
		TAP_EQ(errors[i], 0);
}

int main(void)
{
	tap_run(refuses_all_others, "every system call that is not on the list fails");
	tap_run(refuses_what_attackers_want, "files, sockets, programs and signals are out of reach");
	return tap_done();
}
