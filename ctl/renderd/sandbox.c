// SPDX-License-Identifier: GPL-2.0-only
/* The sandbox of a worker. */
#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <linux/prctl.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "complain.h"
#include "memory.h"
#include "sandbox.h"

#define ROOT		"/tmp"	/* where the new root is mounted; any directory would do */
#define NOBODY		65534

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

static int failed(const char *step)
{
	int err = errno;

	complain("cannot make the sandbox: %s: %s", step, strerror(err));
	return err ? -err : -EIO;
}

/* ---- namespaces ---- */

int sandbox_pids(void)
{
	int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC), ret = 0;

	/* A process makes a second namespace only after it has returned to its own. */
	if (own < 0 || setns(own, CLONE_NEWPID) || unshare(CLONE_NEWPID))
		ret = -errno;
	if (own >= 0)
		close(own);
	return ret;
}

/* ---- the file system ---- */

/* Files that renderers read: libraries, drivers, and the settings of both. */
static const char *const readable[] = {
	"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/drirc",
	"/etc/egl", "/etc/glvnd", "/etc/ld.so.cache", "/etc/nvidia", "/etc/vulkan",
};

/* Further ones of programs that use OpenCL. */
static const char *const of_programs[] = { "/etc/OpenCL", "/etc/ld.so.conf", "/etc/ld.so.conf.d" };

static const char *const devices[] = {
	"/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero",
};

/* Make the directories above a path. */
static int make_parents(const char *path)
{
	char dir[256];

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *p = strchr(dir + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(dir, 0755) && errno != EEXIST)
			return -1;
		*p = '/';
	}
	return 0;
}

/* Show a file or a directory at the same place below ROOT; one that is not there is none. */
static int show(const char *path, bool device)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			(device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV),
	};
	char at[256], link[256];
	struct stat st;
	ssize_t len;
	int fd;

	if (lstat(path, &st))
		return 0;
	if (snprintf(at, sizeof(at), ROOT "%s", path) >= (int)sizeof(at)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (make_parents(at))
		return -1;
	if (S_ISLNK(st.st_mode)) {
		len = readlink(path, link, sizeof(link) - 1);
		if (len < 0)
			return -1;
		link[len] = '\0';
		return symlink(link, at);
	}
	if (S_ISDIR(st.st_mode)) {
		if (mkdir(at, 0755))
			return -1;
	} else {
		fd = open(at, O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
		if (fd < 0)
			return -1;
		close(fd);
	}
	if (mount(path, at, NULL, MS_BIND | MS_REC, NULL))
		return -1;
	return mount_setattr(-1, at, AT_RECURSIVE, &attr, sizeof(attr));
}

/* Return whether a node is that of NVIDIA's driver, which uses further files. */
static bool is_nvidia(const struct stat *st)
{
	char path[64], driver[256];
	ssize_t len;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device/driver",
		 major(st->st_rdev), minor(st->st_rdev));
	len = readlink(path, driver, sizeof(driver) - 1);
	if (len < 0)
		return false;
	driver[len] = '\0';
	return !strcmp(strrchr(driver, '/') ? strrchr(driver, '/') + 1 : driver, "nvidia");
}

static int show_gpu(const char *node, const struct stat *st)
{
	glob_t found;
	int ret = 0;

	if (show(node, true))
		return -1;
	if (!is_nvidia(st) || glob("/dev/nvidia*", 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc && !ret; i++)
		ret = show(found.gl_pathv[i], true);
	globfree(&found);
	return ret;
}

/* Show what programs need beside the renderer, and give them room for files. */
static int show_for_programs(void)
{
	for (size_t i = 0; i < ARRAY_LEN(of_programs); i++)
		if (show(of_programs[i], false))
			return -1;
	if (mkdir(ROOT SANDBOX_FILES, 0755))
		return -1;
	/* They link what they have compiled, and load that. */
	return mount("tmpfs", ROOT SANDBOX_FILES, "tmpfs", MS_NOSUID | MS_NODEV,
		     "mode=1777,size=" SANDBOX_FILES_SIZE);
}

/* Have a root that has only what the renderer and programs read. */
static int change_root(const char *node, const struct stat *st, bool programs)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", ROOT, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=0755,size=1m"))
		return failed("the new root");
	for (size_t i = 0; i < ARRAY_LEN(readable); i++)
		if (show(readable[i], false))
			return failed(readable[i]);
	for (size_t i = 0; i < ARRAY_LEN(devices); i++)
		if (show(devices[i], true))
			return failed(devices[i]);
	if (node && show_gpu(node, st))
		return failed(node);
	if ((node || programs) && show("/sys", false))
		return failed("/sys");
	if (programs && show_for_programs())
		return failed(SANDBOX_FILES);
	if (mkdir(ROOT "/proc", 0555) ||
	    mount("proc", ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
		  NULL))
		return failed("/proc");
	/* The old root is mounted over the new one, and goes. */
	if (chdir(ROOT) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) ||
	    chdir("/") ||
	    mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL))
		return failed("the new root");
	return 0;
}

/* ---- rights ---- */

static int find_user(const char *name, uid_t *uid, gid_t *gid)
{
	const struct passwd *pw = getpwnam(name ? name : "mgpu-renderd");

	if (!pw && name) {
		complain("there is no account '%s': make it with adduser --system", name);
		return -ENOENT;
	}
	*uid = pw ? pw->pw_uid : NOBODY;
	*gid = pw ? pw->pw_gid : NOBODY;
	if (!*uid) {
		complain("a worker must not run as root: name another account");
		return -EPERM;
	}
	return 0;
}

/*
 * Signals of its own do not end the first process of a PID namespace: abort() would go on to
 * an instruction that the processor refuses, and the kernel's log would have a fault.
 */
static void on_abort(int sig)
{
	_exit(SANDBOX_ABORTED + sig);
}

int sandbox_prepare(struct sandbox *s, const char *node, const char *user, bool programs)
{
	const struct rlimit none = { 0, 0 };
	struct stat st = { 0 };
	int ret;

	ret = find_user(user, &s->uid, &s->gid);
	if (ret)
		return ret;
	if (node && stat(node, &st))
		return failed(node);
	s->node_gid = st.st_gid;
	if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS))
		return failed("namespaces");
	ret = change_root(node, &st, programs);
	if (ret)
		return ret;
	if (setrlimit(RLIMIT_CORE, &none))
		return failed("limits");
	/* No input can be made up on the supervisor's terminal (TIOCSTI). */
	if (setsid() < 0)
		return failed("a session");
	signal(SIGABRT, on_abort);
	/* There is no place for Mesa's cache. */
	setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
	return 0;
}

int sandbox_enter(const struct sandbox *s)
{
	/* The VMM's cgroup is the root. */
	if (unshare(CLONE_NEWCGROUP))
		return failed("namespaces");
	/* Users get at the node by its group, unless it is root's alone. */
	if (setgroups(s->node_gid ? 1 : 0, &s->node_gid))
		return failed("groups");
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_change_id((int)s->uid, (int)s->gid, CAPNG_CLEAR_BOUNDING))
		return failed("user and capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return failed("no new privileges");
	return 0;
}

/* ---- after the start ---- */

static const int calls[] = {
	/* files that are open, and files for reading */
	SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev),
	SCMP_SYS(pread64), SCMP_SYS(pwrite64), SCMP_SYS(lseek), SCMP_SYS(close),
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(fstat), SCMP_SYS(stat), SCMP_SYS(lstat),
	SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(fstatfs), SCMP_SYS(statfs),
	SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink),
	SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(getcwd), SCMP_SYS(fcntl),
	SCMP_SYS(dup), SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(ioctl), SCMP_SYS(kcmp),
	SCMP_SYS(memfd_create), SCMP_SYS(ftruncate), SCMP_SYS(fallocate),
	/* waiting */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6),
	SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait), SCMP_SYS(eventfd2), SCMP_SYS(pipe2), SCMP_SYS(futex),
	SCMP_SYS(futex_waitv), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep),
	SCMP_SYS(restart_syscall), SCMP_SYS(sched_yield), SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	/* memory */
	SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect),
	SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(msync), SCMP_SYS(mincore),
	SCMP_SYS(membarrier),
	/* threads */
	SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list), SCMP_SYS(rseq),
	SCMP_SYS(set_tid_address), SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_setaffinity),
	SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler),
	SCMP_SYS(sched_get_priority_max), SCMP_SYS(sched_get_priority_min),
	SCMP_SYS(getpriority), SCMP_SYS(getcpu), SCMP_SYS(gettid), SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	/* signals of its own, and what a program may know of itself */
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigtimedwait), SCMP_SYS(sigaltstack), SCMP_SYS(arch_prctl),
	SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(getuid), SCMP_SYS(geteuid),
	SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getrandom), SCMP_SYS(getrusage),
	SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(times), SCMP_SYS(time),
	SCMP_SYS(gettimeofday), SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres),
};

/* Further calls of a server of Venus: processes, and a socket to each. */
static const int server_calls[] = {
	SCMP_SYS(execve), SCMP_SYS(wait4), SCMP_SYS(waitid), SCMP_SYS(socketpair),
	SCMP_SYS(sendmsg), SCMP_SYS(recvmsg), SCMP_SYS(getsockopt), SCMP_SYS(shutdown),
	SCMP_SYS(signalfd4), SCMP_SYS(kill), SCMP_SYS(tgkill),
};

/*
 * Further calls of programs that use OpenCL, whose drivers start compilers and linkers and keep
 * files.
 */
static const int program_calls[] = {
	SCMP_SYS(execveat), SCMP_SYS(vfork), SCMP_SYS(pipe), SCMP_SYS(recvfrom), SCMP_SYS(sendto),
	SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(rmdir), SCMP_SYS(unlink), SCMP_SYS(unlinkat),
	SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(chmod),
	SCMP_SYS(fchmod), SCMP_SYS(fchmodat), SCMP_SYS(umask), SCMP_SYS(utimensat),
	SCMP_SYS(flock), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(fadvise64),
	SCMP_SYS(copy_file_range), SCMP_SYS(chdir), SCMP_SYS(mlock), SCMP_SYS(getpgrp),
	SCMP_SYS(eventfd), SCMP_SYS(getpgid), SCMP_SYS(get_mempolicy),
};

/* Flags that make a namespace, in which a process would have capabilities. */
#define NAMESPACES	(CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | \
			 CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static int add_calls(scmp_filter_ctx ctx, const int *list, size_t nr)
{
	int ret = 0;

	for (size_t i = 0; i < nr && !ret; i++)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, list[i], 0);
	return ret;
}

/* Allow the calls of both a worker and a server of Venus. */
static int add_common(scmp_filter_ctx ctx)
{
	int ret = add_calls(ctx, calls, ARRAY_LEN(calls));

	/* The C library goes back to clone() without clone3(). */
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
				       SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
	/* Limits can be read. */
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1,
				       SCMP_A2(SCMP_CMP_EQ, 0));
	return ret;
}

static int add_worker(scmp_filter_ctx ctx)
{
	int ret = add_common(ctx);

	/* Threads, and no processes. */
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD,
					       CLONE_THREAD));
	/* abort() */
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	return ret;
}

/* A worker speaks with servers, and stops them; in its PID namespace there is nothing else. */
static int add_worker_of_server(scmp_filter_ctx ctx)
{
	static const int list[] = {
		SCMP_SYS(sendmsg), SCMP_SYS(recvmsg), SCMP_SYS(getsockopt), SCMP_SYS(kill),
	};
	int ret = add_worker(ctx);

	return ret ? ret : add_calls(ctx, list, ARRAY_LEN(list));
}

static int add_server(scmp_filter_ctx ctx)
{
	int ret = add_common(ctx);

	if (!ret)
		ret = add_calls(ctx, server_calls, ARRAY_LEN(server_calls));
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACES, 0));
	return ret;
}

/* A server of programs; the process of each bounds its memory, and ends with the server. */
static int add_programs(scmp_filter_ctx ctx)
{
	int ret = add_server(ctx);

	if (!ret)
		ret = add_calls(ctx, program_calls, ARRAY_LEN(program_calls));
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1,
				       SCMP_A0(SCMP_CMP_EQ, 0));
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
				       SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG));
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
				       SCMP_A0(SCMP_CMP_EQ, PR_SET_NO_NEW_PRIVS));
	return ret;
}

/* Bound the system calls of all threads to those that @add allows. */
static int bound_calls(int (*add)(scmp_filter_ctx ctx))
{
	scmp_filter_ctx ctx;
	int ret;

	ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!ctx)
		return failed("system calls");
	/* The renderer has threads already. */
	ret = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!ret)
		ret = add(ctx);
	if (!ret)
		ret = seccomp_load(ctx);
	seccomp_release(ctx);
	errno = -ret;
	return ret ? failed("system calls") : 0;
}

/* Bound memory, and system calls. */
static int seal(uint64_t memory, int (*add)(scmp_filter_ctx ctx))
{
	uint64_t bytes = data_bytes() + memory + SANDBOX_SPARE;
	const struct rlimit data = { bytes, bytes };

	if (setrlimit(RLIMIT_DATA, &data))
		return failed("limits");
	return bound_calls(add);
}

int sandbox_seal(uint64_t memory, bool servers)
{
	return seal(memory, servers ? add_worker_of_server : add_worker);
}

int sandbox_server(uint64_t memory)
{
	return seal(memory, add_server);
}

int sandbox_programs(void)
{
	return bound_calls(add_programs);
}
