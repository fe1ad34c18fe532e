// SPDX-License-Identifier: GPL-2.0-only
/* A worker of mgpu-renderd before it has a vGPU: the libraries that it loads, and its order. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spare.h"
#include "tap.h"

/* A library that this program does not have. */
#define LIBRARY		"libcap-ng.so.0"

/* Ends of the supervisor and of the spare. */
static int fds[2];

/* Run @child as the spare, which has the last end of its socket, and return its status. */
static int spare(int (*child)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		close(fds[0]);
		_exit(child());
	}
	close(fds[1]);
	fds[1] = -1;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void begin(void)
{
	TAP_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
}

static void end(void)
{
	close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
}

/* A list as that of a process that has loaded LIBRARY. */
static void list_of_another(char *list)
{
	int out[2];
	ssize_t n;
	pid_t pid;

	TAP_EQ(pipe(out), 0);
	pid = fork();
	if (!pid) {
		if (!dlopen(LIBRARY, RTLD_NOW))
			_exit(1);
		spare_list_libraries(list, SPARE_LIBRARIES);
		n = write(out[1], list, SPARE_LIBRARIES);
		_exit(n != SPARE_LIBRARIES);
	}
	close(out[1]);
	for (size_t got = 0; (n = read(out[0], list + got, SPARE_LIBRARIES - got)) > 0;)
		got += (size_t)n;
	close(out[0]);
	waitpid(pid, NULL, 0);
}

static void lists_what_is_mapped(void)
{
	static char list[SPARE_LIBRARIES], before[SPARE_LIBRARIES];
	struct stat st;
	unsigned int n = 0;
	char *rest;

	spare_list_libraries(before, sizeof(before));
	list_of_another(list);
	TAP_CHECK(!strstr(before, LIBRARY));
	TAP_CHECK(strstr(list, LIBRARY));
	TAP_CHECK(strstr(list, "libc.so"));
	TAP_CHECK(!strstr(list, "[vdso]"));
	for (char *p = strtok_r(list, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest), n++)
		TAP_EQ(stat(p, &st), 0);
	TAP_CHECK(n > 2);
	/* Of a list that is full, all paths are whole. */
	spare_list_libraries(list, strchr(before, '\n') - before + 2);
	TAP_CHECK(!strncmp(list, before, strlen(list)) && strchr(list, '\n') &&
		  !strchr(list, '\n')[1]);
	spare_list_libraries(list, 1);
	TAP_STR(list, "");
}

static int has_loaded(void)
{
	struct spare_order order;

	if (dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD))
		return 1;
	if (spare_prepare(fds[1]) || spare_wait(fds[1], &order))
		return 2;
	return dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD) ? 0 : 3;
}

static void loads_libraries(void)
{
	char list[SPARE_LIBRARIES + 64] = "/nowhere/lib.so\n/etc/hostname\n";
	struct spare_order order = { .vgpu = 1, .fd = 0, .record = -1 };

	begin();
	list_of_another(list + strlen(list));
	TAP_EQ(spare_load(fds[0], list), 0);
	TAP_EQ(spare_give(fds[0], &order), 0);
	TAP_EQ(spare(has_loaded), 0);
	end();
}

static bool is(int fd, const char *path)
{
	struct stat a, b;

	return !fstat(fd, &a) && !stat(path, &b) && a.st_rdev == b.st_rdev &&
		fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

static int has_both(void)
{
	struct spare_order order = { 0 };

	return spare_prepare(fds[1]) || spare_wait(fds[1], &order) || order.vgpu != 0x12345678 ||
		!is(order.fd, "/dev/zero") || !is(order.record, "/dev/full");
}

static int has_one(void)
{
	struct spare_order order = { 0 };

	return spare_prepare(fds[1]) || spare_wait(fds[1], &order) || order.vgpu != 7 ||
		!is(order.fd, "/dev/zero") || order.record != -1;
}

static void takes_orders(void)
{
	struct spare_order order = {
		.vgpu = 0x12345678, .fd = open("/dev/zero", O_RDWR),
		.record = open("/dev/full", O_RDWR),
	};

	begin();
	TAP_EQ(spare_load(fds[0], ""), 0);
	TAP_EQ(spare_give(fds[0], &order), 0);
	TAP_EQ(spare(has_both), 0);
	/* It has gone. */
	TAP_EQ(spare_give(fds[0], &order), -EPIPE);
	TAP_CHECK(fcntl(order.record, F_GETFD) >= 0);
	end();
	close(order.record);
	order.vgpu = 7;
	order.record = -1;
	begin();
	TAP_EQ(spare_load(fds[0], ""), 0);
	TAP_EQ(spare_give(fds[0], &order), 0);
	TAP_EQ(spare(has_one), 0);
	TAP_CHECK(fcntl(order.fd, F_GETFD) >= 0);
	end();
	close(order.fd);
}

static int waits(void)
{
	struct spare_order order;
	int ret = spare_prepare(fds[1]);

	return ret ? -ret : 64 - spare_wait(fds[1], &order);
}

static void ends_without_a_supervisor(void)
{
	begin();
	shutdown(fds[0], SHUT_RDWR);
	TAP_EQ(spare(waits), ENODEV);
	end();
	begin();
	TAP_EQ(spare_load(fds[0], ""), 0);
	shutdown(fds[0], SHUT_WR);
	TAP_EQ(spare(waits), 64 + ENODEV);
	end();
}

static void *sleeps(void *arg)
{
	pause();
	return arg;
}

static int has_a_thread(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, sleeps, NULL) ? 0 : waits();
}

static void says_that_it_has_threads(void)
{
	struct spare_order order = { .vgpu = 1, .fd = 0, .record = -1 };

	begin();
	TAP_EQ(spare_load(fds[0], ""), 0);
	TAP_EQ(spare_give(fds[0], &order), 0);
	TAP_EQ(spare(has_a_thread), EOPNOTSUPP);
	end();
}

int main(void)
{
	tap_run(lists_what_is_mapped, "the libraries of a process are listed");
	tap_run(loads_libraries, "a spare loads libraries, and leaves out what it cannot load");
	tap_run(takes_orders, "an order has the vGPU and files, which the supervisor keeps");
	tap_run(ends_without_a_supervisor, "a spare ends with its supervisor");
	tap_run(says_that_it_has_threads, "a library that makes a thread is noticed");
	return tap_done();
}
