// SPDX-License-Identifier: GPL-2.0-only
/* Recording of what a worker executes. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_gpu.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "complain.h"
#include "record.h"
#include "recording.h"
#include "virgl.h"

/* Commands of a stream that read memory of the resources that they name. */
#define COPY_REGION	17u
#define TRANSFER	43u
#define COPY_TRANSFER	45u

/**
 * struct recorder - a recording that is made
 * @fd: file; -1 after an error
 * @v: renderer
 * @start: beginning, nanoseconds
 * @nr: number of commands
 * @mems: memory as it is recorded
 * @buf: record under construction
 */
struct recorder {
	int fd;
	struct virgl *v;
	uint64_t start;
	uint64_t nr;
	struct recording_mems mems;
	uint8_t buf[sizeof(struct record_header) + RECORDING_MAX_BODY];
};

int recorder_create(const char *dir, uint32_t vgpu)
{
	char path[4096];
	int fd;

	for (unsigned int n = 1; n; n++) {
		if (snprintf(path, sizeof(path), "%s/vgpu-%u-%u.mgpurec", dir, vgpu, n) >=
		    (int)sizeof(path))
			return -ENAMETOOLONG;
		/* It has contents of the guest's memory. */
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static void stop(struct recorder *rec, int error)
{
	complain("the recording ends: %s", strerror(error));
	close(rec->fd);
	rec->fd = -1;
}

static void put(struct recorder *rec, const void *p, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (rec->fd >= 0 && done < len) {
		n = write(rec->fd, (const char *)p + done, len - done);
		if (n < 0 && errno != EINTR)
			stop(rec, errno);
		done += n > 0 ? (size_t)n : 0;
	}
}

/* Write a record, in one call: a worker may be killed between two. */
static void put_record(struct recorder *rec, enum record_type type, const void *head,
		       size_t head_len, const void *rest, size_t rest_len)
{
	const struct record_header h = {
		.type = htole32(type), .len = htole32((uint32_t)(head_len + rest_len)),
		.ns = htole64(now_ns() - rec->start),
	};

	if (rec->fd < 0)
		return;
	if (head_len + rest_len > RECORDING_MAX_BODY) {
		stop(rec, EFBIG);
		return;
	}
	memcpy(rec->buf, &h, sizeof(h));
	memcpy(rec->buf + sizeof(h), head, head_len);
	if (rest_len)
		memcpy(rec->buf + sizeof(h) + head_len, rest, rest_len);
	put(rec, rec->buf, sizeof(h) + head_len + rest_len);
}

static void put_capset(struct recorder *rec, uint32_t id)
{
	static uint8_t data[MGPU_USER_MAX_CAPSET];
	struct record_capset c = { .id = htole32(id) };
	uint32_t version;
	size_t len = virgl_capset(id, &version, data, sizeof(data));

	c.version = htole32(version);
	if (len)
		put_record(rec, RECORD_CAPSET, &c, sizeof(c), data, len);
}

struct recorder *recorder_new(int fd, uint32_t vgpu, struct virgl *v)
{
	struct recording_header h = {
		.version = htole32(RECORDING_VERSION), .vgpu = htole32(vgpu),
	};
	struct recorder *rec;

	if (fd < 0)
		return NULL;
	rec = calloc(1, sizeof(*rec));
	if (!rec) {
		complain("no recording: %s", strerror(ENOMEM));
		close(fd);
		return NULL;
	}
	rec->fd = fd;
	rec->v = v;
	rec->start = now_ns();
	memcpy(h.magic, RECORDING_MAGIC, sizeof(h.magic));
	put(rec, &h, sizeof(h));
	put_capset(rec, 1);
	put_capset(rec, 2);
	return rec;
}

void recorder_free(struct recorder *rec)
{
	if (!rec)
		return;
	if (rec->fd >= 0)
		close(rec->fd);
	recording_mems_free(&rec->mems);
	free(rec);
}

static void put_run(struct recorder *rec, enum record_type type,
		    const struct recording_mem *m, uint64_t from, uint64_t to)
{
	const struct record_memory b = { .resource = htole32(m->id), .offset = htole64(from) };

	if (from < to)
		put_record(rec, type, &b, sizeof(b), m->bytes + from, to - from);
}

/*
 * Record the pages of a resource's memory that changed. Return whether the recording has
 * its memory.
 */
static bool put_changes(struct recorder *rec, enum record_type type, uint32_t id)
{
	struct recording_mem *m = recording_mem(&rec->mems, id);
	uint64_t from = 0, at, n;
	const uint8_t *now;
	size_t len;

	if (!m)
		return false;
	now = virgl_memory(rec->v, id, &len);
	if (!now || len != m->len)
		return false;
	for (at = 0; at < len; at += n) {
		n = len - at < RECORDING_PAGE ? len - at : RECORDING_PAGE;
		if (memcmp(now + at, m->bytes + at, n)) {
			/* The guest may write to the page just now: it is read once. */
			memcpy(m->bytes + at, now + at, n);
			if (at + n - from <= RECORDING_MAX_RUN)
				continue;
			put_run(rec, type, m, from, at);
			from = at;
		} else {
			put_run(rec, type, m, from, at);
			from = at + n;
		}
	}
	put_run(rec, type, m, from, len);
	return true;
}

/*
 * Record memory that a stream can read. Any word of a command that reads memory may be
 * the number of a resource.
 */
static void put_stream_memory(struct recorder *rec, const struct mgpu_user_cmd *cmd,
			      const struct virtio_gpu_cmd_submit *c)
{
	const __le32 *w = (const void *)(c + 1);
	uint32_t nr = (uint32_t)((cmd->len - sizeof(*c)) / sizeof(*w)), len;
	struct recording_mem *mapped = NULL;

	/* Draws name buffers by the state of their context. */
	while ((mapped = recording_mapped(&rec->mems, mapped)))
		put_changes(rec, RECORD_MEMORY, mapped->id);
	for (uint32_t i = 0; i < nr; i += len + 1) {
		uint32_t op = le32toh(w[i]) & 0xff;

		len = le32toh(w[i]) >> 16;
		if (op != COPY_REGION && op != TRANSFER && op != COPY_TRANSFER)
			continue;
		for (uint32_t j = 1; j <= len && j < nr - i; j++) {
			struct recording_mem *m = recording_mem(&rec->mems, le32toh(w[i + j]));

			/* Each once for a command. */
			if (!m || m->mark == rec->nr)
				continue;
			m->mark = rec->nr;
			put_changes(rec, RECORD_MEMORY, m->id);
		}
	}
}

void recorder_before(struct recorder *rec, const struct mgpu_user_cmd *cmd, const void *buf)
{
	/* A replay has no VMM that shows dma-bufs. */
	const uint32_t flags = cmd->flags & ~(uint32_t)MGPU_USER_CMD_EXPORT;
	const struct virtio_gpu_ctrl_hdr *hdr = buf;
	int ret;

	if (!rec || rec->fd < 0)
		return;
	rec->nr++;
	switch (le32toh(hdr->type)) {
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
		put_changes(rec, RECORD_MEMORY,
			    le32toh(((const struct virtio_gpu_transfer_to_host_2d *)
				     buf)->resource_id));
		break;
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D:
	case VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D:
		put_changes(rec, RECORD_MEMORY,
			    le32toh(((const struct virtio_gpu_transfer_host_3d *)
				     buf)->resource_id));
		break;
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
	case VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB:
		/* Of a resource in system memory, and of a blob, the renderer keeps the bytes. */
		put_changes(rec, RECORD_MEMORY,
			    le32toh(((const struct virtio_gpu_resource_detach_backing *)
				     buf)->resource_id));
		break;
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		put_stream_memory(rec, cmd, buf);
		break;
	default:
		break;
	}
	ret = recording_follow(&rec->mems, cmd, buf);
	if (ret) {
		stop(rec, -ret);
		return;
	}
	put_record(rec, RECORD_COMMAND, &(struct record_command){
			   .seq = htole32(cmd->seq), .flags = htole32(flags),
			   .mem = htole64(cmd->mem), .mem_len = htole64(cmd->mem_len),
		   }, sizeof(struct record_command), buf, cmd->len);
}

void recorder_after(struct recorder *rec, const void *buf)
{
	const struct virtio_gpu_transfer_host_3d *c = buf;
	struct record_check check;

	if (!rec || rec->fd < 0 ||
	    le32toh(c->hdr.type) != VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D)
		return;
	check.resource = c->resource_id;
	if (put_changes(rec, RECORD_RESULT, le32toh(c->resource_id)))
		put_record(rec, RECORD_CHECK, &check, sizeof(check), NULL, 0);
}
