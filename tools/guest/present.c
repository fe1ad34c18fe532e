// SPDX-License-Identifier: GPL-2.0-only
/*
 * Show frames from a thread of its own, as the drivers of graphics libraries do: the
 * game prepares frames while earlier ones wait for the GPU or for the screen.
 *
 * Buffers are shown in the order in which they were handed over. One flip is under way at
 * a time, as KMS wants it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "game.h"

/**
 * struct present - the thread and its buffers
 * @display: the screen
 * @thread: shows buffers
 * @lock: protects all below
 * @change: anything below has changed
 * @buffer: buffers by number of the frame, a ring
 * @handed: frames that were handed over
 * @shown: frames that were shown
 * @when: when each of the last ones was shown, a ring; CLOCK_MONOTONIC nanoseconds
 * @told: frames that present_wait() told of
 * @error: of a flip, a negative errno
 * @ends: the thread ends after the buffers that it has
 */
struct present {
	struct display *display;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	int buffer[MAX_BUFFERS];
	uint64_t handed, shown;
	uint64_t when[MAX_BUFFERS];
	uint64_t told;
	int error;
	bool ends;
};

static void *present_run(void *arg)
{
	struct present *p = arg;
	int buffer, ret;

	pthread_mutex_lock(&p->lock);
	while (!p->error) {
		if (p->shown == p->handed) {
			if (p->ends)
				break;
			pthread_cond_wait(&p->change, &p->lock);
			continue;
		}
		buffer = p->buffer[p->shown % MAX_BUFFERS];
		pthread_mutex_unlock(&p->lock);
		ret = display_flip(p->display, buffer);
		pthread_mutex_lock(&p->lock);
		if (ret) {
			p->error = ret;
		} else {
			p->when[p->shown % MAX_BUFFERS] = now_ns();
			p->shown++;
		}
		pthread_cond_broadcast(&p->change);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Start to show frames on @d, which nothing else may use meanwhile. 0 or -errno. */
int present_open(struct present **present, struct display *d)
{
	struct present *p = calloc(1, sizeof(*p));
	int ret;

	*present = NULL;
	if (!p)
		return -ENOMEM;
	p->display = d;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->change, NULL);
	ret = pthread_create(&p->thread, NULL, present_run, p);
	if (ret) {
		free(p);
		return -ret;
	}
	*present = p;
	return 0;
}

/* Hand over a buffer to be shown; fewer than MAX_BUFFERS may wait. */
void present_frame(struct present *p, int buffer)
{
	pthread_mutex_lock(&p->lock);
	p->buffer[p->handed++ % MAX_BUFFERS] = buffer;
	pthread_cond_broadcast(&p->change);
	pthread_mutex_unlock(&p->lock);
}

/*
 * Wait until at most @ahead frames are not shown yet, and count all those in @s that have
 * been shown since the last call. Returns 0, or the -errno of a flip.
 */
int present_wait(struct present *p, unsigned int ahead, struct stats *s)
{
	int ret;

	pthread_mutex_lock(&p->lock);
	while (!p->error && p->handed - p->shown > ahead)
		pthread_cond_wait(&p->change, &p->lock);
	while (p->told < p->shown)
		stats_frame(s, p->when[p->told++ % MAX_BUFFERS]);
	ret = p->error;
	pthread_mutex_unlock(&p->lock);
	return ret;
}

/* Show what was handed over, and end the thread. */
void present_close(struct present *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ends = true;
	pthread_cond_broadcast(&p->change);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->change);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
