// SPDX-License-Identifier: GPL-2.0-only
#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "complain.h"
#include "privileges.h"

static const int calls[] = {
	/* sockets that are open, and complaints */
	SCMP_SYS(accept4), SCMP_SYS(close), SCMP_SYS(getpeername), SCMP_SYS(getsockname),
	SCMP_SYS(getsockopt), SCMP_SYS(read), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg),
	SCMP_SYS(sendmsg), SCMP_SYS(sendto), SCMP_SYS(setsockopt), SCMP_SYS(shutdown),
	SCMP_SYS(write), SCMP_SYS(writev),
	/* waiting */
	SCMP_SYS(clock_nanosleep), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_wait), SCMP_SYS(futex), SCMP_SYS(poll), SCMP_SYS(ppoll),
	SCMP_SYS(restart_syscall), SCMP_SYS(sched_yield),
	/* memory */
	SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(mremap), SCMP_SYS(munmap),
	/* clocks, random numbers, signals of its own, and the end */
	SCMP_SYS(clock_gettime), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(getpid),
	SCMP_SYS(getrandom), SCMP_SYS(gettid), SCMP_SYS(gettimeofday), SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(time),
};

/* Commands of fcntl(). F_SETOWN is none: a socket would send signals to any process. */
static const int flags[] = { F_GETFD, F_SETFD, F_GETFL, F_SETFL };

static int allow(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp data = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	const struct scmp_arg_cmp own = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid());
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(calls) / sizeof(*calls); i++)
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	for (size_t i = 0; !ret && i < sizeof(flags) / sizeof(*flags); i++)
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
				       SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)flags[i]));
	if (!ret)
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, data);
	if (!ret)
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, data);
	/* abort() */
	if (!ret)
		ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, own);
	return ret;
}

bool privileges_drop(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int ret = filter ? 0 : -ENOMEM;

	capng_clear(CAPNG_SELECT_BOTH);
	if (!ret && (capng_apply(CAPNG_SELECT_BOTH) ||
		     prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		ret = -EPERM;
	if (!ret)
		ret = allow(filter);
	if (!ret)
		ret = seccomp_load(filter);
	seccomp_release(filter);
	if (ret)
		complain("cannot give up privileges: %s", strerror(-ret));
	return !ret;
}
