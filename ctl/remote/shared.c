// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared.h"

#define REGIONS	64u	/* at a time */
#define ALIGN	4096u

static struct {
	pthread_mutex_t lock;
	uint8_t *memory;
	uint64_t size;
	/* Regions in use, by ascending offsets. */
	struct region {
		uint64_t offset;
		uint64_t len;
	} regions[REGIONS];
	unsigned int nr;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

int shared_open(uint64_t size)
{
	int fd = memfd_create("mgpu-remote", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;
	void *p;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		goto failed;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		goto failed;
	/* shared_in_child() */
	madvise(p, size, MADV_DONTFORK);
	shared.memory = p;
	shared.size = size;
	shared.nr = 0;
	return fd;
failed:
	ret = -errno;
	close(fd);
	return ret;
}

void shared_close(void)
{
	if (shared.memory)
		munmap(shared.memory, shared.size);
	shared.memory = NULL;
	shared.size = 0;
	shared.nr = 0;
}

void shared_in_child(void)
{
	pthread_mutex_init(&shared.lock, NULL);
	shared.memory = NULL;
	shared.size = 0;
	shared.nr = 0;
}

uint64_t shared_take(uint64_t len)
{
	uint64_t at = 0;
	unsigned int i;

	if (!shared.size || len > shared.size)
		return SHARED_NONE;
	len = (len + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	pthread_mutex_lock(&shared.lock);
	for (i = 0; i < shared.nr && shared.regions[i].offset - at < len; i++)
		at = shared.regions[i].offset + shared.regions[i].len;
	if (shared.nr == REGIONS || shared.size - at < len) {
		at = SHARED_NONE;
	} else {
		memmove(&shared.regions[i + 1], &shared.regions[i],
			(shared.nr - i) * sizeof(*shared.regions));
		shared.regions[i] = (struct region){ .offset = at, .len = len };
		shared.nr++;
	}
	pthread_mutex_unlock(&shared.lock);
	return at;
}

void shared_put(uint64_t offset)
{
	unsigned int i;

	pthread_mutex_lock(&shared.lock);
	for (i = 0; i < shared.nr && shared.regions[i].offset != offset; i++)
		;
	if (i < shared.nr) {
		shared.nr--;
		memmove(&shared.regions[i], &shared.regions[i + 1],
			(shared.nr - i) * sizeof(*shared.regions));
	}
	pthread_mutex_unlock(&shared.lock);
}

uint64_t shared_size(void)
{
	return shared.size;
}

uint8_t *shared_at(uint64_t offset)
{
	return shared.memory + offset;
}
