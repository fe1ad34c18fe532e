// SPDX-License-Identifier: GPL-2.0-only
/* A worker's side of a channel of mgpu_user. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "channel.h"

int channel_open(struct channel *ch, int fd, uint32_t vgpu)
{
	void *ring, *arena;
	int ret;

	memset(ch, 0, sizeof(*ch));
	ch->fd = fd;
	ch->a = (struct mgpu_user_attach){
		.size = sizeof(ch->a), .vgpu = vgpu, .flags = MGPU_USER_ATTACH_CGROUPS,
	};
	if (ioctl(fd, MGPU_USER_ATTACH, &ch->a))
		goto fail;
	ring = mmap(NULL, ch->a.ring_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    MGPU_USER_OFF_RING);
	if (ring == MAP_FAILED)
		goto fail;
	ch->ring = ring;
	ch->cmds = (void *)(ch->ring + 1);
	ch->answers = (void *)(ch->cmds + ch->a.entries);
	arena = mmap(NULL, ch->a.arena_len, PROT_READ, MAP_SHARED, fd, MGPU_USER_OFF_ARENA);
	if (arena == MAP_FAILED)
		goto fail;
	ch->arena = arena;
	return 0;
fail:
	ret = -errno;
	channel_close(ch);
	return ret;
}

void channel_close(struct channel *ch)
{
	if (ch->arena)
		munmap((void *)ch->arena, ch->a.arena_len);
	if (ch->ring)
		munmap(ch->ring, ch->a.ring_len);
	close(ch->fd);
	memset(ch, 0, sizeof(*ch));
	ch->fd = -1;
}

bool channel_take(struct channel *ch, struct mgpu_user_cmd *cmd)
{
	if (ch->taken == __atomic_load_n(&ch->ring->cmd_tail, __ATOMIC_ACQUIRE))
		return false;
	*cmd = ch->cmds[ch->taken % ch->a.entries];
	__atomic_store_n(&ch->ring->cmd_head, ++ch->taken, __ATOMIC_RELEASE);
	return true;
}

void channel_answer(struct channel *ch, uint32_t seq, uint32_t type, uint64_t engine_ns)
{
	/* There is always room: the module has no more commands out than entries. */
	ch->answers[ch->put % ch->a.entries] = (struct mgpu_user_answer){
		.seq = seq, .type = type, .engine_ns = engine_ns,
	};
	__atomic_store_n(&ch->ring->answer_tail, ++ch->put, __ATOMIC_RELEASE);
}

int channel_map(struct channel *ch, uint32_t seq, void *p, size_t len, uint32_t cache)
{
	const struct mgpu_user_map m = {
		.size = sizeof(m), .seq = seq, .addr = (uintptr_t)p, .len = len, .cache = cache,
	};

	return ioctl(ch->fd, MGPU_USER_MAP, &m) ? -errno : 0;
}

int channel_export(struct channel *ch, const struct mgpu_user_export *e)
{
	return ioctl(ch->fd, MGPU_USER_EXPORT, e) ? -errno : 0;
}

int channel_turn(struct channel *ch)
{
	struct mgpu_user_turn t = { .size = sizeof(t) };

	return ioctl(ch->fd, MGPU_USER_TURN, &t) ? -errno : 0;
}

int channel_enter(struct channel *ch, uint32_t timeout_ms)
{
	struct mgpu_user_enter e = {
		.size = sizeof(e), .flags = timeout_ms ? MGPU_USER_WAIT : 0,
		.timeout_ms = timeout_ms,
	};

	if (ch->put == ch->told && !timeout_ms)
		return 0;
	if (ioctl(ch->fd, MGPU_USER_ENTER, &e))
		return -errno;
	ch->told = ch->put;
	return 0;
}
