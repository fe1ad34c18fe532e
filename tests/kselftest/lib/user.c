// SPDX-License-Identifier: GPL-2.0-only
/* A device of mgpu_user, and a small worker. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user.h"
#include "vmm.h"

#define CONTROL	"/dev/mgpu-user-control"
#define WAIT_MS	50u

/* ---- the device ---- */

/* Capabilities that are all there, as far as the module lets guests have them. */
static uint8_t caps[3][2048];

static int name_gpu(struct mgpu_user_create *c, const char *gpu)
{
	unsigned int domain, bus, slot, function;

	if (sscanf(gpu, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		return -EINVAL;
	c->flags |= MGPU_USER_CREATE_PCI;
	c->pci_domain = domain;
	c->pci_bus = (uint8_t)bus;
	c->pci_devfn = (uint8_t)(slot << 3 | function);
	return 0;
}

/* Return 0 or -errno, and then there is no device. */
static int new_dev(struct user_dev *d, struct mgpu_user_create *c, const char *gpu)
{
	struct mgpu_user_capset sets[] = {
		{ .id = 1, .version = 1, .len = 308, .data = (uintptr_t)caps[0] },
		{ .id = 2, .version = 2, .len = 1384, .data = (uintptr_t)caps[1] },
		{ .id = USER_CAPSET, .version = 1, .len = 64, .data = (uintptr_t)caps[2] },
	};
	int ret = gpu ? name_gpu(c, gpu) : 0, err;

	memset(d, 0, sizeof(*d));
	d->fd = -1;
	memset(caps, 0xff, sizeof(caps));
	if (ret)
		return ret;
	c->nr_capsets = c->flags & MGPU_USER_CREATE_CONTEXT_INIT ? 3 : 2;
	c->capsets = (uintptr_t)sets;
	d->control = open(CONTROL, O_RDWR | O_CLOEXEC);
	if (d->control < 0)
		return -errno;
	if (ioctl(d->control, MGPU_USER_CREATE, c)) {
		ret = -errno;
		close(d->control);
		return ret;
	}
	d->id = c->id;
	snprintf(d->path, sizeof(d->path), "/dev/mgpu-user%u", d->id);
	if (gpu)
		snprintf(d->parent, sizeof(d->parent), "%s", gpu);
	else
		snprintf(d->parent, sizeof(d->parent), "mgpu_user.%u", d->id);
	d->fd = open(d->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (d->fd >= 0)
		return 0;
	/* Its driver may have been unbound meanwhile. */
	err = -errno;
	ret = user_dev_delete(d);
	return ret ? ret : err;
}

int user_dev_new(struct user_dev *d, uint32_t flags, uint32_t engines, uint32_t depth,
		 uint32_t vgpu_depth)
{
	struct mgpu_user_create c = {
		.size = sizeof(c), .flags = flags, .engines = engines, .depth = depth,
		.vgpu_depth = vgpu_depth, .max_vgpus = 64,
	};

	return new_dev(d, &c, NULL);
}

int user_dev_new_on(struct user_dev *d, const char *gpu)
{
	struct mgpu_user_create c = {
		.size = sizeof(c), .engines = 1, .depth = 3, .vgpu_depth = 2, .max_vgpus = 64,
	};

	return new_dev(d, &c, gpu);
}

void user_dev_leave(struct user_dev *d)
{
	if (d->fd >= 0)
		close(d->fd);
	close(d->control);
}

int user_dev_delete(struct user_dev *d)
{
	struct mgpu_user_destroy c = { .size = sizeof(c), .id = d->id };
	int ret = ioctl(d->control, MGPU_USER_DESTROY, &c) ? -errno : 0;

	user_dev_leave(d);
	return ret;
}

int user_event(struct user_dev *d, struct mgpu_user_event *e, int timeout_ms)
{
	struct pollfd fd = { .fd = d->fd, .events = POLLIN };
	ssize_t n;

	/* The first read makes the file the supervisor's. */
	n = read(d->fd, e, sizeof(*e));
	if (n < 0 && errno == EAGAIN) {
		if (poll(&fd, 1, timeout_ms) != 1)
			return -ETIMEDOUT;
		n = read(d->fd, e, sizeof(*e));
	}
	if (n < 0)
		return -errno;
	return n == sizeof(*e);
}

/* ---- the channel ---- */

int worker_attach(struct worker *w, const struct user_dev *d, uint32_t vgpu)
{
	void *p;

	memset(w, 0, sizeof(*w));
	w->hold_ring = HOLD_NONE;
	w->turn = TURN_NONE;
	w->fd = open(d->path, O_RDWR | O_CLOEXEC);
	if (w->fd < 0)
		return -errno;
	w->a = (struct mgpu_user_attach){ .size = sizeof(w->a), .vgpu = vgpu };
	if (ioctl(w->fd, MGPU_USER_ATTACH, &w->a))
		goto fail;
	p = mmap(NULL, w->a.ring_len, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd,
		 MGPU_USER_OFF_RING);
	if (p == MAP_FAILED)
		goto fail;
	w->ring = p;
	w->cmds = (void *)(w->ring + 1);
	w->answers = (void *)(w->cmds + w->a.entries);
	p = mmap(NULL, w->a.arena_len, PROT_READ, MAP_SHARED, w->fd, MGPU_USER_OFF_ARENA);
	if (p == MAP_FAILED)
		goto fail;
	w->arena = p;
	return 0;
fail:
	p = (void *)(intptr_t)errno;
	worker_close(w);
	return -(int)(intptr_t)p;
}

static void unmap_res(struct worker_res *r)
{
	if (r->map)
		munmap(r->map, r->mem_len);
	r->map = NULL;
	r->mem = 0;
}

static void free_res(struct worker_res *r)
{
	free(r->bytes);
	r->bytes = NULL;
	if (r->host)
		munmap(r->host, r->host_len);
	r->host = NULL;
	r->id = 0;
}

void worker_close(struct worker *w)
{
	for (size_t i = 0; i < WORKER_RESOURCES; i++) {
		unmap_res(&w->res[i]);
		free_res(&w->res[i]);
	}
	if (w->ring)
		munmap(w->ring, w->a.ring_len);
	if (w->arena)
		munmap((void *)w->arena, w->a.arena_len);
	w->ring = NULL;
	w->arena = NULL;
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

int worker_enter(struct worker *w, uint32_t timeout_ms, uint32_t *ready)
{
	struct mgpu_user_enter e = {
		.size = sizeof(e), .flags = timeout_ms ? MGPU_USER_WAIT : 0,
		.timeout_ms = timeout_ms,
	};
	int ret = ioctl(w->fd, MGPU_USER_ENTER, &e) ? -errno : 0;

	if (ready)
		*ready = e.ready;
	return ret;
}

int worker_turn(struct worker *w)
{
	struct mgpu_user_turn t = { .size = sizeof(t) };

	return ioctl(w->fd, MGPU_USER_TURN, &t) ? -errno : 0;
}

static void answer(struct worker *w, uint32_t seq, uint32_t type)
{
	uint32_t tail = w->ring->answer_tail;

	w->answers[tail % w->a.entries] = (struct mgpu_user_answer){
		.seq = seq, .type = type, .engine_ns = w->busy_ns,
	};
	__atomic_store_n(&w->ring->answer_tail, tail + 1, __ATOMIC_RELEASE);
}

/* ---- commands ---- */

struct worker_res *worker_res(struct worker *w, uint32_t id)
{
	for (size_t i = 0; i < WORKER_RESOURCES; i++)
		if (w->res[i].id == id)
			return &w->res[i];
	return NULL;
}

static uint32_t create(struct worker *w, uint32_t id)
{
	struct worker_res *r = worker_res(w, 0);

	if (!r)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	r->bytes = calloc(1, WORKER_BYTES);
	if (!r->bytes)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	r->id = id;
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t attach(struct worker *w, const struct mgpu_user_cmd *cmd,
		       const struct virtio_gpu_resource_attach_backing *c)
{
	const struct virtio_gpu_mem_entry *e = (const void *)(c + 1);
	struct worker_res *r = worker_res(w, c->resource_id);

	if (!r || c->nr_entries > ARRAY_LEN(r->at))
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	r->mem = cmd->mem;
	r->mem_len = cmd->mem_len;
	r->nr = c->nr_entries;
	for (uint32_t i = 0; i < r->nr; i++) {
		r->at[i] = e[i].addr;
		r->len[i] = e[i].length;
	}
	r->map = mmap(NULL, r->mem_len, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd,
		      (off_t)r->mem);
	if (r->map == MAP_FAILED) {
		r->map = NULL;
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	return VIRTIO_GPU_RESP_OK_NODATA;
}

/* Move the resource's bytes, all of them, wherever the box is. */
static uint32_t move(struct worker *w, uint32_t id, bool to_guest)
{
	struct worker_res *r = worker_res(w, id);
	size_t at = 0, n;

	if (!r || !r->map)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	for (uint32_t i = 0; i < r->nr && at < WORKER_BYTES; i++, at += n) {
		n = r->len[i] < WORKER_BYTES - at ? r->len[i] : WORKER_BYTES - at;
		if (to_guest)
			memcpy(r->map + r->at[i], r->bytes + at, n);
		else
			memcpy(r->bytes + at, r->map + r->at[i], n);
	}
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t detach(struct worker *w, uint32_t id)
{
	struct worker_res *r = worker_res(w, id);

	if (!r)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!w->keep_maps)
		unmap_res(r);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t unref(struct worker *w, uint32_t id)
{
	struct worker_res *r;
	uint32_t type;

	if (w->bar)
		w->bar_seen = w->bar[0];
	type = detach(w, id);
	r = worker_res(w, id);

	if (r)
		free_res(r);
	return type;
}

static uint32_t create_blob(struct worker *w, const struct mgpu_user_cmd *cmd,
			    const struct virtio_gpu_resource_create_blob *c)
{
	struct worker_res *r = worker_res(w, 0);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p;

	if (!r)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (c->nr_entries) {
		r->map = mmap(NULL, cmd->mem_len, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd,
			      (off_t)cmd->mem);
		if (r->map == MAP_FAILED) {
			r->map = NULL;
			return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
		}
		r->mem = cmd->mem;
		r->mem_len = cmd->mem_len;
	}
	if (c->blob_mem != VIRTIO_GPU_BLOB_MEM_GUEST) {
		r->host_len = (c->size + page - 1) & ~(page - 1);
		p = mmap(NULL, r->host_len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
		r->host = p;
	}
	r->id = c->resource_id;
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t map_blob(struct worker *w, uint32_t seq, uint32_t id)
{
	struct worker_res *r = worker_res(w, id);
	struct mgpu_user_map m = { .size = sizeof(m), .seq = seq };

	if (!r || !r->host)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	m.addr = (uintptr_t)r->host;
	m.len = r->host_len;
	m.cache = w->cache;
	if (w->map == WORKER_MAPS_LESS)
		m.len -= (size_t)sysconf(_SC_PAGESIZE);
	w->map_error = 0;
	for (int n = w->map == WORKER_MAPS_NOTHING ? 0 : w->map == WORKER_MAPS_TWICE ? 2 : 1;
	     n; n--)
		if (ioctl(w->fd, MGPU_USER_MAP, &m))
			w->map_error = errno;
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static uint32_t execute(struct worker *w, const struct mgpu_user_cmd *cmd)
{
	const struct virtio_gpu_ctrl_hdr *hdr = (const void *)(w->arena + cmd->offset);
	const void *c = hdr;

	switch (hdr->type) {
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		if (cmd->flags & MGPU_USER_CMD_EXPORT && w->export)
			w->export(w, c);
		return create(w, ((const struct virtio_gpu_resource_create_3d *)
				  c)->resource_id);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
		return create(w, ((const struct virtio_gpu_resource_create_2d *)
				  c)->resource_id);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		return create_blob(w, cmd, c);
	case VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB:
		return map_blob(w, cmd->seq, ((const struct virtio_gpu_resource_map_blob *)
					      c)->resource_id);
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		return attach(w, cmd, c);
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
		return detach(w, ((const struct virtio_gpu_resource_detach_backing *)
				  c)->resource_id);
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		return unref(w, ((const struct virtio_gpu_resource_unref *)c)->resource_id);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D:
	case VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D:
		return move(w, ((const struct virtio_gpu_transfer_host_3d *)c)->resource_id,
			    hdr->type == VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D);
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		w->stream_len = cmd->len - sizeof(struct virtio_gpu_cmd_submit);
		memcpy(w->stream, (const struct virtio_gpu_cmd_submit *)c + 1,
		       w->stream_len < sizeof(w->stream) ? w->stream_len :
		       sizeof(w->stream));
		w->submits++;
		return VIRTIO_GPU_RESP_OK_NODATA;
	default:
		return VIRTIO_GPU_RESP_OK_NODATA;
	}
}

/* Hold the answer to a fenced command back, if the test wants that. */
static bool hold(struct worker *w, const struct mgpu_user_cmd *cmd)
{
	const struct virtio_gpu_ctrl_hdr *hdr = (const void *)(w->arena + cmd->offset);

	if (!(cmd->flags & MGPU_USER_CMD_FENCED) || w->nr_held == ARRAY_LEN(w->held) ||
	    !(hdr->flags & VIRTIO_GPU_FLAG_INFO_RING_IDX) || hdr->ring_idx != w->hold_ring)
		return false;
	w->held[w->nr_held++] = cmd->seq;
	/* The next fence of that ring is answered. */
	w->hold_ring = HOLD_MORE;
	return true;
}

/* Take a turn; false if it is another command. */
static bool take_turn(struct worker *w, const struct mgpu_user_cmd *cmd)
{
	if (!(cmd->flags & MGPU_USER_CMD_TURN))
		return false;
	/* The next one has come: the one before is over. */
	if (w->turn != TURN_NONE)
		answer(w, (uint32_t)w->turn, VIRTIO_GPU_RESP_OK_NODATA);
	w->turn = cmd->seq;
	w->turns++;
	return true;
}

static void answer_held(struct worker *w)
{
	if (w->turn != TURN_NONE && !w->keep_turn) {
		answer(w, (uint32_t)w->turn, VIRTIO_GPU_RESP_OK_NODATA);
		w->turn = TURN_NONE;
	}
	while (w->hold_ring == HOLD_NONE && w->nr_held)
		answer(w, w->held[--w->nr_held], VIRTIO_GPU_RESP_OK_NODATA);
}

static void serve(struct worker *w, const struct mgpu_user_cmd *cmd)
{
	uint32_t type = w->way == WORKER_AGREES ? VIRTIO_GPU_RESP_OK_NODATA : execute(w, cmd);

	if (w->pause_us)
		usleep(w->pause_us);
	w->seen++;
	if (cmd->flags & MGPU_USER_CMD_NOTICE) {
		w->notices++;
		return;
	}
	if (hold(w, cmd))
		return;
	switch (w->way) {
	case WORKER_SILENT:
		return;
	case WORKER_REFUSES:
		type = VIRTIO_GPU_RESP_ERR_UNSPEC;
		break;
	case WORKER_STRANGER:
		answer(w, cmd->seq + 100, type);
		break;
	case WORKER_TWICE:
		answer(w, cmd->seq, type);
		break;
	case WORKER_NONSENSE:
		type = 0x1234;
		break;
	case WORKER_AHEAD:
		if (!(cmd->flags & MGPU_USER_CMD_FENCED))
			return;
		break;
	case WORKER_FLOODS:
		__atomic_store_n(&w->ring->answer_tail, w->ring->answer_tail + 1000,
				 __ATOMIC_RELEASE);
		return;
	}
	answer(w, cmd->seq, type);
}

int worker_run(struct worker *w)
{
	uint32_t head = w->ring->cmd_head, tail;
	int ret = 0;

	while (!w->stop && !ret) {
		tail = __atomic_load_n(&w->ring->cmd_tail, __ATOMIC_ACQUIRE);
		while (head != tail) {
			struct mgpu_user_cmd cmd = w->cmds[head % w->a.entries];

			if (!take_turn(w, &cmd))
				serve(w, &cmd);
			__atomic_store_n(&w->ring->cmd_head, ++head, __ATOMIC_RELEASE);
		}
		answer_held(w);
		ret = worker_enter(w, WAIT_MS, NULL);
		if (ret == -EINTR)
			ret = 0;
	}
	return ret;
}

static void *thread(void *arg)
{
	struct worker *w = arg;

	w->ret = worker_run(w);
	return NULL;
}

int worker_begin(struct worker *w)
{
	w->stop = false;
	return -pthread_create(&w->thread, NULL, thread, w);
}

int worker_end(struct worker *w)
{
	w->stop = true;
	pthread_join(w->thread, NULL);
	return w->ret;
}

pid_t worker_fork(const struct user_dev *d, uint32_t vgpu)
{
	int ready[2], ret = -EPIPE;
	pid_t pid;

	if (pipe(ready))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		static struct worker w;

		close(ready[0]);
		ret = worker_attach(&w, d, vgpu);
		if (write(ready[1], &ret, sizeof(ret)) != sizeof(ret))
			_exit(1);
		close(ready[1]);
		if (ret)
			_exit(1);
		worker_run(&w);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &ret, sizeof(ret)) != sizeof(ret))
		ret = -EPIPE;
	close(ready[0]);
	if (ret) {
		waitpid(pid, NULL, 0);
		return ret;
	}
	return pid;
}
