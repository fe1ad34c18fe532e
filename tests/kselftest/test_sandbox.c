// SPDX-License-Identifier: GPL-2.0-only
/* The sandbox of mgpu-renderd's workers: what a process in it cannot open and cannot call. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "../../ctl/renderd/sandbox.h"

#define MEMORY	(32ull << 20)	/* bytes of resources */

/* Number of a check that failed in the sandbox, from 1; CANNOT: there is no sandbox. */
#define CANNOT	200

static const char *const kinds[] = { "cgroup", "ipc", "mnt", "net", "pid", "uts" };

#define KINDS		(sizeof(kinds) / sizeof(kinds[0]))

/* Namespaces of this process, by kind. */
static char own[KINDS][64];

static bool read_namespace(size_t kind, char name[64])
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[kind]);
	n = readlink(path, name, 63);
	name[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/*
 * Run @checks in a sandbox, which a process with a group more than it needs has entered; with
 * @programs it is one that starts programs.  Return the number of the first that is not so, or 0.
 */
static int in_sandbox_for(bool programs, int (*checks)(void))
{
	const gid_t group = 4;
	struct sandbox s;
	int status;
	pid_t pid;

	for (size_t i = 0; i < KINDS; i++)
		if (!read_namespace(i, own[i]))
			return CANNOT;
	if (sandbox_pids())
		return CANNOT;
	pid = fork();
	if (!pid)
		_exit(setgroups(1, &group) || sandbox_prepare(&s, NULL, NULL, programs) ||
		      sandbox_enter(&s) ? CANNOT : checks());
	if (waitpid(pid, &status, 0) != pid)
		return CANNOT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int in_sandbox(int (*checks)(void))
{
	return in_sandbox_for(false, checks);
}

/* The number of the first check that fails is the result. */
#define CHECK(number, is) do { if (!(is)) return (number); } while (0)
#define FAILS(number, err, call) CHECK(number, (call) == -1 && errno == (err))

static int opens(const char *path, int flags)
{
	return open(path, flags | O_CLOEXEC, 0600);
}

static int files(void)
{
	CHECK(1, opens("/etc/ld.so.cache", O_RDONLY) >= 0);
	CHECK(2, opens("/dev/null", O_RDWR) >= 0);
	FAILS(3, ENOENT, opens("/etc/shadow", O_RDONLY));
	FAILS(4, ENOENT, opens("/etc/passwd", O_RDONLY));
	FAILS(5, ENOENT, opens("/root", O_RDONLY));
	FAILS(6, ENOENT, opens("/home", O_RDONLY));
	FAILS(7, ENOENT, opens("/run", O_RDONLY));
	FAILS(8, ENOENT, opens("/sys/class", O_RDONLY));
	FAILS(9, ENOENT, opens("/dev/mgpu-user-control", O_RDWR));
	FAILS(10, ENOENT, opens("/dev/mem", O_RDONLY));
	FAILS(11, ENOENT, opens("/dev/dri", O_RDONLY));
	FAILS(12, ENOENT, opens("/dev/vfio", O_RDONLY));
	FAILS(13, EROFS, opens("/file", O_RDWR | O_CREAT));
	FAILS(14, EROFS, opens("/usr/file", O_RDWR | O_CREAT));
	CHECK(15, opens("/proc/sys/kernel/core_pattern", O_WRONLY) < 0);
	/* The old root is nowhere. */
	FAILS(16, ENOENT, opens("/../../work", O_RDONLY));
	FAILS(17, ENOENT, opens("/proc/1/root/root", O_RDONLY));
	/* Of all processes, it sees itself. */
	CHECK(18, getpid() == 1);
	FAILS(19, ENOENT, opens("/proc/2", O_RDONLY));
	return 0;
}

static int rights(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];
	struct rlimit core;

	CHECK(1, getuid() && geteuid() && getgid() && getegid());
	CHECK(2, !getgroups(0, NULL));
	CHECK(3, !syscall(SYS_capget, &head, caps));
	for (int i = 0; i < 2; i++)
		CHECK(4, !caps[i].effective && !caps[i].permitted && !caps[i].inheritable);
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		CHECK(5, prctl(PR_CAPBSET_READ, cap) != 1);
	CHECK(6, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	FAILS(7, EPERM, setuid(0));
	FAILS(8, EPERM, mount("tmpfs", "/proc", "tmpfs", 0, NULL));
	CHECK(9, !getrlimit(RLIMIT_CORE, &core) && !core.rlim_max);
	FAILS(10, EPERM, chroot("/usr"));
	FAILS(11, EPERM, (int)syscall(SYS_unshare, CLONE_NEWNET));
	CHECK(12, getsid(0) == getpid());
	return 0;
}

static int namespaces(void)
{
	char now[64];

	for (size_t k = 0; k < KINDS; k++)
		CHECK(1 + (int)k, read_namespace(k, now) && strcmp(now, own[k]));
	return 0;
}

static void *nothing(void *arg)
{
	return arg;
}

static int calls(void)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	char *argv[] = { (char *)"true", NULL };
	pthread_t thread;
	void *ret, *code;

	CHECK(1, !sandbox_seal(MEMORY, false));
	/* A renderer's life goes on. */
	CHECK(2, !pthread_create(&thread, NULL, nothing, argv));
	CHECK(2, !pthread_join(thread, &ret) && ret == argv);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	CHECK(3, code != MAP_FAILED);
	CHECK(4, memfd_create("pixels", MFD_CLOEXEC) >= 0);
	CHECK(5, opens("/etc/ld.so.cache", O_RDONLY) >= 0);
	/* Not so that of a program it would start. */
	FAILS(6, EPERM, fork());
	FAILS(7, EPERM, (int)syscall(SYS_vfork));
	FAILS(8, ENOSYS, (int)syscall(SYS_clone3, NULL, 0));
	FAILS(9, EPERM, execv("/usr/bin/true", argv));
	FAILS(10, EPERM, (int)syscall(SYS_execveat, -1, "/usr/bin/true", argv, NULL, 0));
	FAILS(11, EPERM, socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(12, EPERM, socket(AF_INET, SOCK_STREAM, 0));
	FAILS(13, EPERM, (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	FAILS(14, EPERM, kill(-1, SIGKILL));
	FAILS(15, EPERM, (int)syscall(SYS_bpf, 0, NULL, 0));
	FAILS(16, EPERM, (int)syscall(SYS_io_uring_setup, 1, NULL));
	FAILS(17, EPERM, (int)syscall(SYS_userfaultfd, 0));
	FAILS(18, EPERM, (int)syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
	FAILS(19, EPERM, (int)syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0));
	FAILS(20, EPERM, (int)syscall(SYS_keyctl, 0, 0, 0, 0, 0));
	FAILS(21, EPERM, unshare(CLONE_NEWUSER));
	FAILS(22, EPERM, setns(0, 0));
	FAILS(23, EPERM, prctl(PR_SET_DUMPABLE, 1));
	FAILS(24, EPERM, setrlimit(RLIMIT_DATA, &none));
	FAILS(25, EPERM, chmod("/usr", 0777));
	FAILS(26, EPERM, (int)syscall(SYS_tgkill, 2, 2, SIGKILL));
	return 0;
}

static bool fits(unsigned long long bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	munmap(p, bytes);
	return true;
}

/* The worker of a server of Venus stops it, and gets files of it. */
static int calls_with_venus(void)
{
	char *argv[] = { (char *)"true", NULL };
	int fds[2];
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	CHECK(1, !socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	CHECK(2, !sandbox_seal(MEMORY, true));
	CHECK(3, sendmsg(fds[0], &msg, 0) == 1 && recvmsg(fds[1], &msg, 0) == 1);
	/* No process of its own: there is none but it. */
	FAILS(4, ESRCH, kill(-1, SIGSTOP));
	FAILS(5, EPERM, fork());
	FAILS(6, EPERM, execv("/usr/bin/true", argv));
	FAILS(7, EPERM, socket(AF_UNIX, SOCK_STREAM, 0));
	return 0;
}

/* A server of Venus: a child of a worker. */
static int server_calls(void)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	char *argv[] = { (char *)"true", NULL };
	int status, fds[2];
	pid_t pid;

	CHECK(1, !sandbox_server(MEMORY));
	CHECK(2, !socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	pid = fork();
	if (!pid) {
		execv("/usr/bin/true", argv);
		_exit(1);
	}
	CHECK(3, pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	CHECK(4, fits(MEMORY));
	CHECK(5, !fits(2 * (MEMORY + SANDBOX_SPARE)));
	FAILS(6, EPERM, socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(7, EPERM, socket(AF_INET, SOCK_STREAM, 0));
	FAILS(8, EPERM, (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	FAILS(9, EPERM, unshare(CLONE_NEWUSER));
	FAILS(10, EPERM, (int)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
	FAILS(11, ENOSYS, (int)syscall(SYS_clone3, NULL, 0));
	FAILS(12, EPERM, setns(0, 0));
	FAILS(13, EPERM, setrlimit(RLIMIT_DATA, &none));
	FAILS(14, EPERM, mount("tmpfs", "/proc", "tmpfs", 0, NULL));
	FAILS(15, EPERM, chmod("/usr", 0777));
	FAILS(16, EPERM, (int)syscall(SYS_bpf, 0, NULL, 0));
	FAILS(17, EPERM, (int)syscall(SYS_io_uring_setup, 1, NULL));
	FAILS(18, EPERM, (int)syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0));
	FAILS(19, EPERM, prctl(PR_SET_DUMPABLE, 1));
	return 0;
}

/* A server of programs that use OpenCL: the same, and files and programs of its own. */
static int program_calls(void)
{
	const struct rlimit more = { RLIM_INFINITY, RLIM_INFINITY }, less = { MEMORY, MEMORY };
	char *argv[] = { (char *)"true", NULL };
	int status, fds[2], fd;
	pid_t pid;

	CHECK(1, !sandbox_programs());
	CHECK(2, !socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	pid = fork();
	if (!pid) {
		execv("/usr/bin/true", argv);
		_exit(1);
	}
	CHECK(3, pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	fd = opens(SANDBOX_FILES "/file", O_RDWR | O_CREAT);
	CHECK(4, fd >= 0 && write(fd, "a", 1) == 1);
	/* A driver loads the code that it has linked. */
	CHECK(5, mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	CHECK(6, !rename(SANDBOX_FILES "/file", SANDBOX_FILES "/other"));
	FAILS(7, EROFS, opens("/usr/file", O_RDWR | O_CREAT));
	FAILS(8, EROFS, chmod("/usr", 0777));
	FAILS(9, ENOENT, opens("/etc/passwd", O_RDONLY));
	CHECK(10, opens("/etc/OpenCL", O_RDONLY | O_DIRECTORY) >= 0);
	FAILS(11, EPERM, socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(12, EPERM, socket(AF_INET, SOCK_STREAM, 0));
	FAILS(13, EPERM, (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	FAILS(14, EPERM, unshare(CLONE_NEWUSER));
	FAILS(15, EPERM, mount("tmpfs", "/proc", "tmpfs", 0, NULL));
	FAILS(16, EPERM, (int)syscall(SYS_bpf, 0, NULL, 0));
	FAILS(17, EPERM, prctl(PR_SET_DUMPABLE, 1));
	CHECK(18, !setrlimit(RLIMIT_DATA, &less));
	FAILS(19, EPERM, setrlimit(RLIMIT_DATA, &more));
	return 0;
}

/* Threads that were there before are sealed, too. */
static void *wait_and_call(void *arg)
{
	int *fds = arg;
	char c;

	if (read(fds[0], &c, 1) != 1)
		return NULL;
	return socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM ? arg : NULL;
}

static int threads(void)
{
	pthread_t thread;
	void *ret = NULL;
	int fds[2];

	CHECK(1, !pipe(fds));
	CHECK(2, !pthread_create(&thread, NULL, wait_and_call, fds));
	CHECK(3, !sandbox_seal(MEMORY, false));
	CHECK(4, write(fds[1], "", 1) == 1);
	CHECK(5, !pthread_join(thread, &ret));
	CHECK(6, ret);
	return 0;
}

static int memory(void)
{
	CHECK(1, fits(MEMORY + SANDBOX_SPARE + (4ull << 20)));
	CHECK(2, !sandbox_seal(MEMORY, false));
	CHECK(3, fits(MEMORY + SANDBOX_SPARE - (4ull << 20)));
	CHECK(4, !fits(MEMORY + SANDBOX_SPARE + (4ull << 20)));
	return 0;
}

TEST(a_worker_sees_libraries_and_devices_that_do_nothing)
{
	EXPECT_EQ(0, in_sandbox(files));
}

TEST(a_server_of_programs_makes_a_few_calls)
{
	EXPECT_EQ(0, in_sandbox_for(true, program_calls));
}

TEST(a_worker_is_not_root_and_has_no_capability)
{
	EXPECT_EQ(0, in_sandbox(rights));
}

TEST(a_worker_has_namespaces_of_its_own)
{
	EXPECT_EQ(0, in_sandbox(namespaces));
}

TEST(a_sealed_worker_makes_threads_and_nothing_else)
{
	EXPECT_EQ(0, in_sandbox(calls));
}

TEST(a_sealed_worker_speaks_with_its_server)
{
	EXPECT_EQ(0, in_sandbox(calls_with_venus));
}

TEST(a_server_starts_processes_and_little_else)
{
	EXPECT_EQ(0, in_sandbox(server_calls));
}

TEST(threads_of_the_renderer_are_sealed)
{
	EXPECT_EQ(0, in_sandbox(threads));
}

TEST(memory_is_bounded)
{
	EXPECT_EQ(0, in_sandbox(memory));
}

static int aborts(void)
{
	if (sandbox_seal(MEMORY, false))
		return CANNOT;
	abort();
}

TEST(a_worker_that_aborts_causes_no_fault)
{
	EXPECT_EQ(128 + SIGABRT, in_sandbox(aborts));
}

TEST(an_account_that_is_not_there_is_refused)
{
	struct sandbox s;

	EXPECT_EQ(-ENOENT, sandbox_prepare(&s, NULL, "no-such-account", false));
	EXPECT_EQ(-EPERM, sandbox_prepare(&s, NULL, "root", false));
}

TEST_HARNESS_MAIN
