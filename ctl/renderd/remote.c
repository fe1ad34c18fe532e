// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts of a guest's programs that use remoted OpenCL.
 *
 * Neither side is trusted: the guest's streams and its memory are checked each time, and a
 * program's process executes the kernels of the guest.  A context of which something is wrong ends
 * alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../remote/launch.h"
#include "../remote/vgpu.h"
#include "clock.h"
#include "complain.h"
#include "remote.h"
#include "sandbox.h"

#define PROGRAM		"mgpu-remoted"
#define JOBS		8u		/* streams of a context that are not complete */
#define IN_MIN		4096u		/* bytes of a ring */
#define IN_MAX		(16u << 20)
/* Bytes that wait for a process: what the front end may send, and a stream of it. */
#define QUEUE_MAX	(2 * REMOTE_VGPU_WINDOW)

/**
 * struct job - a stream that is not complete
 * @seq: number of its command
 * @upto: bytes for the process with those of this stream
 */
struct job {
	uint32_t seq;
	uint64_t upto;
};

/**
 * struct context - a context
 * @id: its number
 * @fd: socket to its process, or -1 if that has ended
 * @rests: file that tells how many bytes the process has dealt with
 * @resource: number of the resource with its ring, 0 before it has one
 * @in_len: bytes of the ring
 * @put: bytes that were put into it
 * @sent: bytes for the process
 * @done: bytes that the process has dealt with
 * @queue: bytes that the socket has no room for
 * @queue_at: the first one that was not sent
 * @queue_len: end of them
 * @queue_size: bytes of the memory
 * @job: streams, the oldest first
 * @nr: their number
 * @since_ns: when the first one began
 * @streams: those that are complete
 */
struct context {
	uint32_t id;
	int fd;
	int rests;
	uint32_t resource;
	uint32_t in_len;
	uint64_t put;
	uint64_t sent;
	uint64_t done;
	uint8_t *queue;
	size_t queue_at;
	size_t queue_len;
	size_t queue_size;
	struct job job[JOBS];
	unsigned int nr;
	uint64_t since_ns;
	uint64_t streams;
};

struct remote {
	const struct remote_ops *ops;
	void *arg;
	int control;
	struct context *context[REMOTE_CONTEXTS];
	unsigned int nr;
};

/* ---- the process that starts others ---- */

/**
 * struct start - how it is started
 * @program: mgpu-remoted
 * @sandbox: give up what it does not need
 * @memory: bytes of objects of a program
 */
struct start {
	int program;
	bool sandbox;
	uint64_t memory;
};

int remote_open_program(void)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof(PROGRAM));
	char *name;
	int fd;

	if (len < 0)
		return -errno;
	path[len] = '\0';
	name = strrchr(path, '/') + 1;
	strcpy(name, PROGRAM);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		complain("cannot open %s: %s", path, strerror(errno));
		return -errno;
	}
	return fd;
}

static void exec_program(int fd, const void *arg)
{
	const struct start *s = arg;
	int program = fcntl(s->program, F_DUPFD_CLOEXEC, LAUNCH_CONTROL + 1);
	char memory[32], programs[16];
	char *argv[] = {
		(char *)PROGRAM, (char *)"--launch", (char *)"--memory", memory,
		(char *)"--programs", programs, NULL,
	};

	snprintf(memory, sizeof(memory), "%llu", (unsigned long long)((s->memory >> 20) + 1));
	snprintf(programs, sizeof(programs), "%u", REMOTE_CONTEXTS);
	/* Drivers keep what they compile, if they can. */
	if (s->sandbox && (setenv("HOME", SANDBOX_FILES, 1) || setenv("TMPDIR", SANDBOX_FILES, 1) ||
			   unsetenv("XDG_CACHE_HOME") || sandbox_programs()))
		return;
	if (dup2(fd, LAUNCH_CONTROL) < 0 || (fd == LAUNCH_CONTROL && fcntl(fd, F_SETFD, 0)))
		return;
	fexecve(program, argv, environ);
	complain("cannot start " PROGRAM ": %s", strerror(errno));
}

int remote_start(struct processes *ps, int program, bool sandbox, uint64_t memory)
{
	const struct start s = { .program = program, .sandbox = sandbox, .memory = memory };
	int ret = processes_start(ps, SOCK_SEQPACKET, exec_program, &s);

	if (ret < 0)
		complain("cannot start " PROGRAM ": %s", strerror(-ret));
	return ret;
}

/* Ask for a process. Return whether there is one, at the other end of the context's files. */
static bool ask(const struct remote *r, struct context *c)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[2];
	ssize_t n;

	if (sendmsg(r->control, &msg, MSG_NOSIGNAL) != 1)
		return false;
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	do {
		n = recvmsg(r->control, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n != 1 || msg.msg_flags & MSG_CTRUNC || !msg.msg_controllen ||
	    control.header.cmsg_len != CMSG_LEN(sizeof(fds)))
		return false;
	memcpy(fds, CMSG_DATA(&control.header), sizeof(fds));
	c->fd = fds[0];
	c->rests = fds[1];
	return true;
}

/* ---- contexts ---- */

static struct context **find(struct remote *r, uint32_t id)
{
	for (unsigned int i = 0; i < r->nr; i++)
		if (r->context[i]->id == id)
			return &r->context[i];
	return NULL;
}

/* Return the context's resource and its length; NULL if the guest has taken it away. */
static struct remote_vgpu_page *page_of(const struct remote *r, const struct context *c,
					size_t *len)
{
	void *p = c->resource ? r->ops->memory(r->arg, c->resource, len) : NULL;

	return p && *len >= REMOTE_VGPU_PAGE + (size_t)c->in_len && !((uintptr_t)p % 8) ? p : NULL;
}

/* Its process has ended, or is to end: the program finds that out. */
static void end(const struct remote *r, struct context *c)
{
	struct remote_vgpu_page *page;
	size_t len;

	if (c->fd < 0)
		return;
	close(c->fd);
	close(c->rests);
	c->fd = -1;
	page = page_of(r, c, &len);
	if (page)
		__atomic_store_n(&page->ended, 1, __ATOMIC_RELEASE);
}

static uint32_t create(struct remote *r, uint32_t id)
{
	struct context *c;

	if (r->nr == REMOTE_CONTEXTS)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	c = calloc(1, sizeof(*c));
	if (!c || !ask(r, c)) {
		free(c);
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	c->id = id;
	r->context[r->nr++] = c;
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static void destroy(struct remote *r, struct context **at)
{
	struct context *c = *at;

	/* Its streams have an answer each, too. */
	for (unsigned int i = 0; i < c->nr; i++)
		r->ops->done(r->arg, c->job[i].seq, VIRTIO_GPU_RESP_OK_NODATA);
	c->resource = 0;
	end(r, c);
	free(c->queue);
	free(c);
	*at = r->context[--r->nr];
}

/* ---- bytes ---- */

/* Tell the front end how much of its bytes the process has. */
static void tell_sent(const struct remote *r, const struct context *c)
{
	struct remote_vgpu_page *page;
	size_t len;

	page = page_of(r, c, &len);
	if (page)
		__atomic_store_n(&page->sent, c->sent - (c->queue_len - c->queue_at),
				 __ATOMIC_RELEASE);
}

/* Write what the socket has room for. Return the number of bytes; -1 if the process has ended. */
static ssize_t write_some(const struct context *c, const void *p, size_t len)
{
	ssize_t n = write(c->fd, p, len);

	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static void send_queue(const struct remote *r, struct context *c)
{
	ssize_t n;

	if (c->fd < 0 || c->queue_at == c->queue_len)
		return;
	n = write_some(c, c->queue + c->queue_at, c->queue_len - c->queue_at);
	if (n < 0) {
		end(r, c);
		return;
	}
	c->queue_at += (size_t)n;
	if (c->queue_at == c->queue_len)
		c->queue_at = c->queue_len = 0;
	tell_sent(r, c);
}

/* Keep bytes for later. Return false if there are too many. */
static bool enqueue(struct context *c, const void *p, size_t len)
{
	size_t rest = c->queue_len - c->queue_at;
	uint8_t *queue;

	if (len > QUEUE_MAX - rest)
		return false;
	if (len > c->queue_size - c->queue_len) {
		if (rest)
			memmove(c->queue, c->queue + c->queue_at, rest);
		c->queue_at = 0;
		c->queue_len = rest;
	}
	if (len > c->queue_size - rest) {
		queue = realloc(c->queue, rest + len);
		if (!queue)
			return false;
		c->queue = queue;
		c->queue_size = rest + len;
	}
	memcpy(c->queue + c->queue_len, p, len);
	c->queue_len += len;
	return true;
}

/* Have bytes sent to the process. Return false if that is more than a front end may send. */
static bool send_bytes(const struct remote *r, struct context *c, const void *p, size_t len)
{
	ssize_t n = 0;

	if (c->fd < 0)
		return true;
	if (c->queue_at == c->queue_len)
		n = write_some(c, p, len);
	if (n < 0) {
		end(r, c);
		return true;
	}
	c->sent += len;
	return (size_t)n == len || enqueue(c, (const uint8_t *)p + n, len - (size_t)n);
}

/* Put bytes of the process into the ring, as far as it has room. */
static void take_bytes(const struct remote *r, struct context *c)
{
	struct remote_vgpu_page *page;
	uint64_t used;
	uint8_t *ring;
	size_t len;
	ssize_t n;

	if (c->fd < 0 || !c->resource)
		return;
	page = page_of(r, c, &len);
	if (!page) {
		end(r, c);
		return;
	}
	ring = (uint8_t *)page + REMOTE_VGPU_PAGE;
	for (;;) {
		used = c->put - __atomic_load_n(&page->taken, __ATOMIC_ACQUIRE);
		if (used > c->in_len) {
			end(r, c);
			return;
		}
		len = c->in_len - used;
		if (len > c->in_len - c->put % c->in_len)
			len = c->in_len - c->put % c->in_len;
		n = len ? read(c->fd, ring + c->put % c->in_len, len) : -1;
		if (n <= 0)
			break;
		c->put += (uint64_t)n;
		__atomic_store_n(&page->put, c->put, __ATOMIC_RELEASE);
	}
	if (!n || (len && errno != EAGAIN && errno != EINTR))
		end(r, c);
}

/* Learn how far the process has come. */
static void look_at_rests(struct context *c)
{
	uint64_t told[64];
	ssize_t n;

	while (c->fd >= 0 && (n = read(c->rests, told, sizeof(told))) >= (ssize_t)sizeof(*told))
		c->done = told[n / (ssize_t)sizeof(*told) - 1];
}

/* ---- streams ---- */

static bool begin(const struct remote *r, struct context *c, const struct remote_vgpu_open *open)
{
	size_t len;

	if (c->resource || !open->resource || open->in_len < IN_MIN || open->in_len > IN_MAX ||
	    open->in_len & (open->in_len - 1))
		return false;
	c->resource = open->resource;
	c->in_len = open->in_len;
	return page_of(r, c, &len);
}

static bool send_data(const struct remote *r, struct context *c, const struct remote_vgpu_data *d)
{
	size_t len;
	const uint8_t *p = (const uint8_t *)page_of(r, c, &len);

	return p && d->offset <= len && d->len <= len - d->offset && d->len <= REMOTE_VGPU_WINDOW &&
		send_bytes(r, c, p + d->offset, d->len);
}

/* Execute an operation, whose bytes are there. Return whether it is one that a front end sends. */
static bool operate(const struct remote *r, struct context *c, const struct remote_vgpu_op *op,
		    const void *p)
{
	struct remote_vgpu_open open;
	struct remote_vgpu_data data;

	if (op->op != REMOTE_VGPU_OPEN && !c->resource)
		return false;
	switch (op->op) {
	case REMOTE_VGPU_OPEN:
		if (op->len != sizeof(open))
			return false;
		memcpy(&open, p, sizeof(open));
		return begin(r, c, &open);
	case REMOTE_VGPU_SEND:
		return send_bytes(r, c, p, op->len);
	case REMOTE_VGPU_DATA:
		if (op->len != sizeof(data))
			return false;
		memcpy(&data, p, sizeof(data));
		return send_data(r, c, &data);
	case REMOTE_VGPU_WAIT:
		return !op->len;
	default:
		return false;
	}
}

static bool operate_all(const struct remote *r, struct context *c, const uint8_t *p, size_t len)
{
	struct remote_vgpu_op op;
	uint64_t padded;

	for (; len; p += padded, len -= padded) {
		if (len < sizeof(op))
			return false;
		memcpy(&op, p, sizeof(op));
		padded = sizeof(op) + (((uint64_t)op.len + 7) & ~7ull);
		if (padded > len || !operate(r, c, &op, p + sizeof(op)))
			return false;
	}
	return true;
}

static uint32_t submit(const struct remote *r, struct context *c, uint32_t seq,
		       const struct virtio_gpu_cmd_submit *cmd)
{
	if (!(cmd->hdr.flags & VIRTIO_GPU_FLAG_INFO_RING_IDX) || cmd->hdr.ring_idx ||
	    c->nr == JOBS || !operate_all(r, c, (const uint8_t *)(cmd + 1), cmd->size)) {
		end(r, c);
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	}
	tell_sent(r, c);
	if (!c->nr)
		c->since_ns = now_ns();
	c->job[c->nr++] = (struct job){ .seq = seq, .upto = c->sent };
	return 0;
}

bool remote_execute(struct remote *r, uint32_t seq, const struct virtio_gpu_ctrl_hdr *hdr,
		    uint32_t *type)
{
	const struct virtio_gpu_ctx_create *make = (const void *)hdr;
	struct context **at;

	if (!r)
		return false;
	if (hdr->type == VIRTIO_GPU_CMD_CTX_CREATE) {
		if (make->context_init != REMOTE_VGPU_CAPSET)
			return false;
		*type = create(r, hdr->ctx_id);
		return true;
	}
	at = find(r, hdr->ctx_id);
	if (!at)
		return false;
	*type = VIRTIO_GPU_RESP_OK_NODATA;
	switch (hdr->type) {
	case VIRTIO_GPU_CMD_CTX_DESTROY:
		destroy(r, at);
		return true;
	case VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE:
	case VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE:
		return true;
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		*type = submit(r, *at, seq, (const void *)hdr);
		return true;
	default:
		return false;
	}
}

/* Complete the first streams of which nothing more is to be waited for. */
static void complete(const struct remote *r, struct context *c, uint64_t now_ns)
{
	struct remote_vgpu_page *page;
	unsigned int nr = 0;
	bool unread;
	size_t len;

	page = page_of(r, c, &len);
	unread = page && __atomic_load_n(&page->taken, __ATOMIC_ACQUIRE) != c->put;
	while (nr < c->nr && (c->fd < 0 || unread || c->done >= c->job[nr].upto ||
			      now_ns - c->since_ns >= REMOTE_VGPU_SLICE_NS)) {
		c->streams++;
		if (page)
			__atomic_store_n(&page->streams, c->streams, __ATOMIC_RELEASE);
		r->ops->done(r->arg, c->job[nr++].seq, VIRTIO_GPU_RESP_OK_NODATA);
		c->since_ns = now_ns;
	}
	c->nr -= nr;
	memmove(c->job, c->job + nr, c->nr * sizeof(*c->job));
}

uint64_t remote_poll(struct remote *r, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; r && i < r->nr; i++) {
		struct context *c = r->context[i];
		uint64_t left;

		send_queue(r, c);
		/* Replies were written before the process has told that it rests. */
		look_at_rests(c);
		take_bytes(r, c);
		complete(r, c, now_ns);
		if (!c->nr)
			continue;
		left = c->since_ns + REMOTE_VGPU_SLICE_NS - now_ns;
		if (left < next)
			next = left;
	}
	return next;
}

/* ---- the rest ---- */

unsigned int remote_fds(struct remote *r, struct pollfd *fds)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; r && i < r->nr; i++) {
		struct context *c = r->context[i];

		/* Without a stream nothing waits for it, and its memory may be full. */
		if (!c->nr || c->fd < 0)
			continue;
		fds[nr++] = (struct pollfd){
			.fd = c->fd,
			.events = (short)(POLLIN | (c->queue_at < c->queue_len ? POLLOUT : 0)),
		};
		fds[nr++] = (struct pollfd){ .fd = c->rests, .events = POLLIN };
	}
	return nr;
}

bool remote_busy(const struct remote *r)
{
	for (unsigned int i = 0; r && i < r->nr; i++)
		if (r->context[i]->nr)
			return true;
	return false;
}

bool remote_used(const struct remote *r)
{
	return r && r->nr;
}

bool remote_works(const struct remote *r)
{
	for (unsigned int i = 0; r && i < r->nr; i++)
		if (r->context[i]->fd >= 0 && r->context[i]->done < r->context[i]->sent)
			return true;
	return false;
}

struct remote *remote_new(int control, const struct remote_ops *ops, void *arg)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (!r) {
		close(control);
		return NULL;
	}
	r->ops = ops;
	r->arg = arg;
	r->control = control;
	return r;
}

void remote_free(struct remote *r)
{
	if (!r)
		return;
	while (r->nr) {
		r->context[0]->nr = 0;
		destroy(r, &r->context[0]);
	}
	close(r->control);
	free(r);
}
