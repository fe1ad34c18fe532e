// SPDX-License-Identifier: GPL-2.0-only
/*
 * vgpu-compute: a VMM with a render-capable vGPU that computes what standard input
 * says, line by line, until it ends. Its vGPU's UUID is its first line, and the vGPU
 * goes with it.
 *
 *	job CTX OP AMOUNT [SLOTS]	a job in context CTX, 1 to 8, which has none
 *	loop CTX OP AMOUNT [SLOTS]	one after the other
 *	stop CTX			no further one
 *
 * OP is mandelbrot (AMOUNT: iterations, up to 4095) or gather (walks, up to 65536).
 * When a job of "job" has ended: its context, how long it took from its submission,
 * ms, a digest of the result, and the time of its end, ms since the boot; or "failed"
 * and the answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compute.h"

#define CONTEXTS	8
#define SIDE		1024	/* pixels */
#define WALKS		65536
#define STEPS		8192	/* a walk */
#define TABLE_LOG2	16
#define RAM		(64u << 20)
#define BLOB		(5u << 20)	/* of a context */

struct context {
	struct mgpu_compute_cmd cmd;
	uint64_t *result;
	size_t size;		/* of the result */
	bool made, loop;
	int head;		/* -1: no job */
	uint64_t since_ms;
};

static struct vm vm;
static struct context contexts[CONTEXTS + 1];
static uint32_t table;		/* a resource */

static int blob(uint32_t id, uint64_t **p, size_t size)
{
	int ret;

	*p = vm_alloc(&vm, size, 4096);
	if (!*p)
		return -ENOMEM;
	ret = gpu_create_blob(&vm, id, *p, size);
	return ret == VIRTIO_GPU_RESP_OK_NODATA ? 0 : -EIO;
}

static int make(uint32_t id)
{
	struct context *c = &contexts[id];

	if (c->made)
		return 0;
	if (blob(id, &c->result, BLOB) ||
	    ctx_create(&vm, id, MGPU_CAPSET_COMPUTE) != VIRTIO_GPU_RESP_OK_NODATA ||
	    ctx_attach(&vm, id, id) != VIRTIO_GPU_RESP_OK_NODATA ||
	    ctx_attach(&vm, id, table) != VIRTIO_GPU_RESP_OK_NODATA)
		return -EIO;
	c->made = true;
	c->head = -1;
	return 0;
}

static int command(uint32_t id, const char *op, uint32_t amount, uint32_t slots)
{
	struct context *c = &contexts[id];

	if (!strcmp(op, "mandelbrot")) {
		c->cmd = job_mandelbrot(id, SIDE, SIDE, amount);
		c->size = job_mandelbrot_size(SIDE, SIDE, amount);
	} else if (!strcmp(op, "gather") && amount <= WALKS) {
		c->cmd = job_new(MGPU_COMPUTE_GATHER, 2, id, table, 0);
		c->cmd.gather.sum_offset = (uint64_t)amount * 8;
		c->cmd.gather.seed = id;
		c->cmd.gather.table_log2 = TABLE_LOG2;
		c->cmd.gather.walks = amount;
		c->cmd.gather.steps = STEPS;
		c->size = ((size_t)amount + 1) * 8;
	} else {
		return -EINVAL;
	}
	c->cmd.slots = slots;
	return 0;
}

static int begin(uint32_t id)
{
	struct context *c = &contexts[id];

	memset(c->result, 0, c->size);
	c->since_ms = now_ms();
	c->head = ctx_submit(&vm, id, &c->cmd);
	return c->head < 0 ? c->head : 0;
}

static uint64_t digest(const struct context *c)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < c->size / 8; i++)
		h = (h ^ c->result[i]) * 1099511628211u;
	return h;
}

static int ended(uint32_t id, int answer)
{
	struct context *c = &contexts[id];
	uint64_t now = now_ms();

	c->head = -1;
	if (c->loop && answer == VIRTIO_GPU_RESP_OK_NODATA)
		return begin(id);
	if (answer != VIRTIO_GPU_RESP_OK_NODATA)
		printf("%u failed %x\n", id, (unsigned int)answer);
	else
		printf("%u %llu %016llx %llu\n", id,
		       (unsigned long long)(now - c->since_ms),
		       (unsigned long long)digest(c), (unsigned long long)now);
	fflush(stdout);
	return 0;
}

static int obey(const char *line)
{
	char verb[16] = "", op[16] = "";
	uint32_t id, amount, slots = 1;
	int n, ret;

	n = sscanf(line, "%15s %u %15s %u %u", verb, &id, op, &amount, &slots);
	if (n < 2 || id < 1 || id > CONTEXTS)
		return -EINVAL;
	if (!strcmp(verb, "stop")) {
		contexts[id].loop = false;
		return 0;
	}
	if (n < 4 || (strcmp(verb, "job") && strcmp(verb, "loop")))
		return -EINVAL;
	ret = make(id);
	if (!ret && contexts[id].head >= 0)
		ret = -EBUSY;
	if (!ret)
		ret = command(id, op, amount, slots);
	contexts[id].loop = verb[0] == 'l';
	return ret ? ret : begin(id);
}

/* 1 at the end of the input. */
static int read_commands(void)
{
	static char buf[4096];
	static size_t used;
	char *end;
	ssize_t n = read(STDIN_FILENO, buf + used, sizeof(buf) - 1 - used);

	if (n <= 0)
		return n ? -errno : 1;
	used += (size_t)n;
	buf[used] = '\0';
	while ((end = strchr(buf, '\n'))) {
		int ret;

		*end = '\0';
		ret = obey(buf);
		if (ret) {
			fprintf(stderr, "vgpu-compute: %s: %s\n", buf, strerror(-ret));
			return ret;
		}
		used -= (size_t)(end + 1 - buf);
		memmove(buf, end + 1, used + 1);
	}
	return 0;
}

/* Jobs that have ended, in the order in which they did. */
static int collect(void)
{
	/* apart from vq's own: a command that is waited for collects others' ends */
	static uint16_t seen;
	struct vmm_vq *vq = &vm.vq[VMM_CONTROL];

	for (vq_collect(&vm, VMM_CONTROL); seen != vq->used_idx; seen++) {
		int head = (int)vq->used->ring[seen % vq->size].id, ret = 0;

		for (uint32_t id = 1; id <= CONTEXTS && !ret; id++)
			if (contexts[id].made && contexts[id].head == head &&
			    vq->done[head])
				ret = ended(id, gpu_result(&vm, VMM_CONTROL, (uint16_t)head,
							   NULL, 0, 0));
		if (ret)
			return ret;
	}
	return 0;
}

static int go(void)
{
	struct pollfd fds[2] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = vm.irq[VMM_CONTROL + 1], .events = POLLIN },
	};

	for (;;) {
		int ret = 0;

		if (poll(fds, 2, -1) < 0)
			return -errno;
		if (fds[0].revents)
			ret = read_commands();
		if (ret)
			return ret < 0 ? ret : 0;
		/* clear the event first: a later answer makes another interrupt */
		irq_wait(fds[1].fd, 0);
		ret = collect();
		if (ret)
			return ret;
	}
}

int main(void)
{
	uint64_t *p;
	int ret;

	ret = vm_new(&vm, "medium-render", RAM);
	if (!ret)
		ret = vm_start_with(&vm, RENDER_FEATURES);
	table = CONTEXTS + 1;
	if (!ret)
		ret = blob(table, &p, 8ul << TABLE_LOG2);
	for (size_t i = 0; !ret && i < 1ul << TABLE_LOG2; i++)
		p[i] = i * MGPU_COMPUTE_MIX;
	if (!ret) {
		printf("%s\n", vm.uuid);
		fflush(stdout);
		ret = go();
	}
	if (ret)
		fprintf(stderr, "vgpu-compute: %s\n", strerror(-ret));
	vm_delete(&vm);
	return ret ? 1 : 0;
}
