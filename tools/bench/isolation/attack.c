// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hostile guests.  Each runs in a process of its own, with the least claim to a
 * processor that there is: the bench is about what a vGPU takes from others inside of
 * the module, not about the VMM's own threads, which the host's scheduler limits.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../../kmod/vfio/device.h"
#include "../common/bench.h"
#include "isolation.h"

#define HANG		"/sys/module/mgpu_soft/parameters/hang"
#define JUNK		16384u		/* bytes of a command that is not one */
#define FORMAT		VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM
#define PAGES		(1u << 18)	/* bytes to pin and unpin */

static int refused(int answer)
{
	return answer < 0 ? answer : -EPROTO;
}

static int flush(struct vm *vm, uint32_t side)
{
	int answer = gpu_flush(vm, 1, gpu_rect(0, 0, side, side));

	return answer == OK ? 0 : refused(answer);
}

/* Rings full of long commands of no type, and a small frame now and then. */
static int junk_ring(struct vm *vm, uint32_t id)
{
	struct vmm_vq *vq = &vm->vq[VMM_CONTROL];
	struct vmm_seg segs[2];
	unsigned int n = 0, i;
	uint16_t heads[24];
	uint8_t *junk;
	int head;

	(void)id;
	junk = vm_alloc(vm, JUNK + 4096, 4096);
	if (!junk)
		return -ENOMEM;
	memset(junk, 0x5a, JUNK);
	segs[0] = (struct vmm_seg){ vm_addr(vm, junk), JUNK, false };
	segs[1] = (struct vmm_seg){ vm_addr(vm, junk + JUNK), 24, true };
	for (i = 0; i < ARRAY_LEN(heads); i++) {
		head = vq_add(vm, VMM_CONTROL, segs, 2, true);
		if (head < 0)
			return head;
		heads[i] = (uint16_t)head;
		vq_publish(vm, VMM_CONTROL, (uint16_t)head);
	}
	for (;;) {
		vq_kick(vm, VMM_CONTROL);
		while (vq->used_idx !=
		       __atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE)) {
			vq->used_idx++;
			vq_publish(vm, VMM_CONTROL, heads[n++ % ARRAY_LEN(heads)]);
		}
	}
}

static int doorbell_storm(struct vm *vm, uint32_t id)
{
	int ret = 0;

	(void)id;
	while (!ret)
		ret = vq_kick(vm, VMM_CONTROL);
	return ret;
}

static int reset_loop(struct vm *vm, uint32_t id)
{
	struct gpu_screen s;
	int ret = 0;

	(void)id;
	while (!ret) {
		ret = vm_start(vm);
		vm->ram_used = 0;
		if (!ret)
			ret = gpu_screen_blob(vm, &s, 1, 64, 64);
		if (!ret)
			ret = flush(vm, 64);
	}
	return ret;
}

static int pin_loop(struct vm *vm, uint32_t id)
{
	void *pages = vm_alloc(vm, PAGES, 4096);
	int ret = 0;

	(void)id;
	if (!pages)
		return -ENOMEM;
	while (!ret) {
		ret = gpu_create_blob(vm, 2, pages, PAGES);
		if (ret == OK)
			ret = gpu_unref(vm, 2);
		ret = ret == OK ? 0 : refused(ret);
	}
	return ret;
}

static int hang(struct vm *vm, uint32_t id)
{
	char text[16];
	int ret = 0;

	snprintf(text, sizeof(text), "%u", id);
	while (ret >= 0) {
		ret = sysfs_write(HANG, text);
		/* It is answered with an error, after the job timeout. */
		if (!ret)
			ret = gpu_flush(vm, 1, gpu_rect(0, 0, 64, 64));
	}
	return ret;
}

static int scanout_toggling(struct vm *vm, uint32_t id)
{
	int ret = 0;

	(void)id;
	while (!ret) {
		ret = gpu_set_scanout(vm, 0, gpu_rect(0, 0, 0, 0));
		if (ret == OK)
			ret = gpu_set_scanout_blob(vm, 1, FORMAT, 64, 64, 256, 0);
		ret = ret == OK ? flush(vm, 64) : refused(ret);
	}
	return ret;
}

static int cursor_storm(struct vm *vm, uint32_t id)
{
	void *image = vm_alloc(vm, 64 * 64 * 4, 4096);
	int ret, n = 0;

	(void)id;
	if (!image)
		return -ENOMEM;
	ret = gpu_create_blob(vm, 3, image, 64 * 64 * 4);
	ret = ret == OK ? 0 : refused(ret);
	while (!ret) {
		ret = n++ % 2 ? gpu_cursor(vm, 3, n % 64, n % 32, 0, 0) :
				gpu_cursor_move(vm, n % 32, n % 64);
		/* The cursor's queue has answers without a type. */
		ret = ret < 0 ? ret : 0;
	}
	return ret;
}

static int million_resources(struct vm *vm, uint32_t id)
{
	uint32_t res = 100;
	int ret = 0;

	(void)id;
	while (ret >= 0) {
		ret = gpu_create_2d(vm, res++, FORMAT, 1, 1);
		if (ret == NOMEM) {
			ret = vm_start(vm);
			vm->ram_used = 0;
		}
	}
	return ret;
}

/* Read the screen without end, as a VMM whose guest shows something does. */
static void *read_screen(void *arg)
{
	struct vm *vm = arg;
	const struct vfio_region_info *r = &vm->region[MGPU_REGION_DISPLAY];
	void *buf = malloc(r->size);

	while (buf && pread(vm->device, buf, r->size, (off_t)r->offset) > 0)
		;
	free(buf);
	return NULL;
}

/* Flushes of the largest picture, while the VMM, which gets little time, copies it. */
static int screen_reader(struct vm *vm, uint32_t id)
{
	pthread_t thread;
	int ret;

	(void)id;
	ret = -pthread_create(&thread, NULL, read_screen, vm);
	while (!ret) {
		ret = gpu_flush(vm, 1, gpu_rect(0, 0, ATTACK_W, ATTACK_H));
		ret = ret == OK ? 0 : refused(ret);
	}
	return ret;
}

const struct attack attacks[] = {
	{ .name = "junk-ring", .run = junk_ring },
	{ .name = "doorbell-storm", .run = doorbell_storm },
	{ .name = "reset-loop", .run = reset_loop },
	{ .name = "pin-loop", .run = pin_loop },
	/* Until the quarantine, and as long after it. */
	{ .name = "hang", .run = hang, .seconds = 24 },
	{ .name = "scanout-toggling", .run = scanout_toggling },
	{ .name = "cursor-storm", .run = cursor_storm },
	{ .name = "screen-reader", .run = screen_reader },
	{ .name = "million-resources", .run = million_resources },
	{
		.name = "gl-loop", .prepare = gl_loop_prepare, .run = gl_loop,
		.seconds = 12, .pairs = 3,
		.timeout_ms = MGPU_JOB_TIMEOUT_DEFAULT, .whole = true,
	},
	{ .name = "gl-malformed", .run = gl_malformed, .seconds = 10 },
	/* A worker of mgpu-renderd that gets no memory ends: so these crash it, too. */
	{ .name = "gl-contexts", .run = gl_contexts, .seconds = 10 },
	{ .name = "gl-textures", .run = gl_textures, .seconds = 10 },
	/* As the hang. */
	{
		.name = "gl-hang", .prepare = gl_hang_prepare, .run = gl_hang,
		.seconds = 40, .pairs = 2,
	},
};

const unsigned int nr_attacks = ARRAY_LEN(attacks);
