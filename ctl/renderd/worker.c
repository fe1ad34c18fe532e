// SPDX-License-Identifier: GPL-2.0-only
/* A worker: executes the commands of one vGPU. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "channel.h"
#include "virgl.h"
#include "worker.h"

/* Period of looks at fences where the renderer has no file descriptor for them. */
#define LOOK_MS		1

/* Wait for commands while no fence is pending; a vGPU that is closed ends it at once. */
#define WAIT_MS		10000

static void *map(void *arg, uint64_t offset, uint64_t len)
{
	const struct channel *ch = arg;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, ch->fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

static void done(void *arg, uint32_t seq, uint32_t type)
{
	channel_answer(arg, seq, type, 0);
}

static void execute(struct channel *ch, struct virgl *v)
{
	struct mgpu_user_cmd cmd;
	uint32_t type;

	while (channel_take(ch, &cmd)) {
		type = virgl_execute(v, &cmd, ch->arena + cmd.offset);
		if (type && !(cmd.flags & MGPU_USER_CMD_NOTICE))
			channel_answer(ch, cmd.seq, type, 0);
	}
}

/* Wait for a command or a fence. */
static int wait_for_both(struct channel *ch, struct virgl *v)
{
	struct pollfd fds[] = {
		{ .fd = ch->fd, .events = POLLIN },
		{ .fd = virgl_fd(v), .events = POLLIN },
	};

	if (poll(fds, 2, fds[1].fd < 0 ? LOOK_MS : WAIT_MS) < 0 && errno != EINTR)
		return -errno;
	virgl_poll(v);
	return 0;
}

int worker_main(int fd, uint32_t vgpu, const char *node)
{
	struct channel ch;
	struct virgl *v;
	int ret;

	ret = channel_open(&ch, fd, vgpu);
	if (ret) {
		fprintf(stderr, "cannot serve vGPU %u: %s\n", vgpu, strerror(-ret));
		return ret;
	}
	ret = virgl_new(&v, node, map, done, &ch);
	if (ret) {
		channel_close(&ch);
		return ret;
	}
	while (!ret) {
		execute(&ch, v);
		if (virgl_busy(v)) {
			ret = channel_enter(&ch, 0);
			if (!ret && virgl_busy(v))
				ret = wait_for_both(&ch, v);
		} else {
			ret = channel_enter(&ch, WAIT_MS);
		}
		if (ret == -EINTR)
			ret = 0;
	}
	virgl_free(v);
	channel_close(&ch);
	if (ret == -ENODEV)
		return 0;
	fprintf(stderr, "vGPU %u: %s\n", vgpu, strerror(-ret));
	return ret;
}
