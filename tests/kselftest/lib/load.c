// SPDX-License-Identifier: GPL-2.0-only
/*
 * Machines that keep their rings full of flushes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

int load_open(struct load *l, uint32_t side)
{
	int ret;

	memset(l, 0, sizeof(*l));
	l->depth = LOAD_DEPTH;
	l->job = gpu_rect(0, 0, side, side);
	ret = vm_new_started(&l->vm, "small", VMM_RAM);
	if (ret)
		return ret;
	ret = gpu_screen_blob(&l->vm, &l->screen, 1, side, side);
	/* The first frame brings in what is allocated once. */
	if (!ret && gpu_flush(&l->vm, 1, l->job) != OK)
		ret = -EPROTO;
	return ret;
}

int load_send(struct load *l)
{
	int head = gpu_flush_send(&l->vm, 1, l->job);

	if (head < 0)
		return head;
	l->order[(l->first + l->in_flight++) % LOAD_DEPTH] = (uint16_t)head;
	l->sent++;
	return 0;
}

/* Takes the answers that are there and checks that they are the oldest's. */
void load_reap(struct load *l)
{
	struct vmm_vq *vq = &l->vm.vq[VMM_CONTROL];
	uint16_t from = vq->used_idx, want;

	vq_collect(&l->vm, VMM_CONTROL);
	for (; from != vq->used_idx; from++) {
		if (!l->in_flight) {
			l->wrong++;
			continue;
		}
		want = l->order[l->first];
		l->first = (l->first + 1) % LOAD_DEPTH;
		l->in_flight--;
		l->done++;
		if (vq->used->ring[from % vq->size].id != want ||
		    gpu_result(&l->vm, VMM_CONTROL, want, NULL, 0, 0) != OK)
			l->wrong++;
	}
}

int load_run(struct load *l, unsigned int nr, unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	unsigned int i;
	int ret;

	while (now_ms() < end) {
		for (i = 0; i < nr; i++) {
			load_reap(&l[i]);
			if (!l[i].in_flight)
				l[i].dry++;
			while (l[i].in_flight < l[i].depth) {
				ret = load_send(&l[i]);
				if (ret)
					return ret;
			}
		}
		usleep(200);
	}
	return 0;
}

bool load_drain(struct load *l, unsigned int nr)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;
	unsigned int i, left;
	bool good = true;

	do {
		left = 0;
		for (i = 0; i < nr; i++) {
			load_reap(&l[i]);
			left += l[i].in_flight;
		}
		if (left)
			sleep_ms(1);
	} while (left && now_ms() < end);

	for (i = 0; i < nr; i++)
		good &= !l[i].wrong && l[i].sent == l[i].done;
	return good && !left;
}

int hang_next(uint32_t id)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	return sysfs_write(HANG, text);
}

int load_hang(struct load *l, uint32_t id)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;
	int ret = hang_next(id);

	if (!ret)
		ret = load_send(l);
	while (!ret && sysfs_number(HANG)) {
		if (now_ms() >= end)
			ret = -ETIMEDOUT;
		sleep_ms(1);
	}
	return ret;
}
