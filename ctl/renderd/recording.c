// SPDX-License-Identifier: GPL-2.0-only
/* Recordings: the reader, and the memory of resources. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/virtio_gpu.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recording.h"

/* ---- memory of resources ---- */

static struct recording_mem **find(const struct recording_mems *mems, uint32_t id)
{
	struct recording_mem *const *m = &mems->bucket[id % RECORDING_BUCKETS];

	while (*m && (*m)->id != id)
		m = &(*m)->next;
	return (struct recording_mem **)m;
}

struct recording_mem *recording_mem(const struct recording_mems *mems, uint32_t id)
{
	return *find(mems, id);
}

struct recording_mem *recording_mapped(const struct recording_mems *mems,
				       const struct recording_mem *last)
{
	size_t i = last ? last->id % RECORDING_BUCKETS : 0;
	struct recording_mem *m = last ? last->next : mems->bucket[0];

	if (!mems->mapped)
		return NULL;
	for (;;) {
		for (; m; m = m->next)
			if (m->mapped)
				return m;
		if (++i == RECORDING_BUCKETS)
			return NULL;
		m = mems->bucket[i];
	}
}

static void set_mapped(struct recording_mems *mems, uint32_t id, bool mapped)
{
	struct recording_mem *m = *find(mems, id);

	if (!m || m->mapped == mapped)
		return;
	m->mapped = mapped;
	mems->mapped += mapped ? 1 : -1u;
}

static void forget(struct recording_mems *mems, uint32_t id)
{
	struct recording_mem **at = find(mems, id), *m = *at;

	if (!m)
		return;
	set_mapped(mems, id, false);
	*at = m->next;
	mems->len -= m->len;
	munmap(m->bytes, m->len);
	free(m->entry);
	free(m);
}

void recording_mems_free(struct recording_mems *mems)
{
	for (size_t i = 0; i < RECORDING_BUCKETS; i++)
		while (mems->bucket[i])
			forget(mems, mems->bucket[i]->id);
}

static int attach(struct recording_mems *mems, uint32_t id, uint64_t len,
		  const struct virtio_gpu_mem_entry *e, uint32_t nr)
{
	struct recording_mem *m;

	/* A second one without a detach: the first one had failed. */
	forget(mems, id);
	if (!len)
		return 0;
	if (len > RECORDING_MAX_MEM || mems->len + len > RECORDING_MAX_MEMS)
		return -EFBIG;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->entry = calloc(nr ? nr : 1, sizeof(*m->entry));
	m->bytes = m->entry ? mmap(NULL, len, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) :
		   MAP_FAILED;
	if (m->bytes == MAP_FAILED) {
		free(m->entry);
		free(m);
		return -ENOMEM;
	}
	memcpy(m->entry, e, nr * sizeof(*m->entry));
	m->nr = nr;
	m->id = id;
	m->len = len;
	mems->len += len;
	*find(mems, id) = m;
	return 0;
}

/* The memory of a blob: the guest's, or else the host's, all of which is one entry. */
static int attach_blob(struct recording_mems *mems, const struct mgpu_user_cmd *cmd,
		       const struct virtio_gpu_resource_create_blob *c)
{
	const struct virtio_gpu_mem_entry all = { .length = htole32((uint32_t)le64toh(c->size)) };
	uint32_t id = le32toh(c->resource_id);

	if (le32toh(c->blob_mem) != VIRTIO_GPU_BLOB_MEM_HOST3D)
		return attach(mems, id, cmd->mem_len, (const void *)(c + 1),
			      le32toh(c->nr_entries));
	return attach(mems, id, le64toh(c->size), &all, 1);
}

int recording_follow(struct recording_mems *mems, const struct mgpu_user_cmd *cmd,
		     const void *buf)
{
	const struct virtio_gpu_ctrl_hdr *hdr = buf;
	/* The number is in the same place in all of them. */
	const struct virtio_gpu_resource_attach_backing *c = buf;

	switch (le32toh(hdr->type)) {
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		return attach(mems, le32toh(c->resource_id), cmd->mem_len, (const void *)(c + 1),
			      le32toh(c->nr_entries));
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		return attach_blob(mems, cmd, buf);
	case VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB:
	case VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB:
		set_mapped(mems, le32toh(c->resource_id),
			   le32toh(hdr->type) == VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB);
		return 0;
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		forget(mems, le32toh(c->resource_id));
		return 0;
	default:
		return 0;
	}
}

/* ---- reading ---- */

__attribute__((format(printf, 2, 3)))
static int bad(struct recording *r, const char *fmt, ...)
{
	int n = snprintf(r->why, sizeof(r->why), "at byte %" PRIu64 ": ", r->at);
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->why + n, sizeof(r->why) - (size_t)n, fmt, args);
	va_end(args);
	return -EBADMSG;
}

/* Read up to @len bytes at r->next, and go on behind them; the number, or a negative errno. */
static ssize_t get(struct recording *r, void *p, size_t len)
{
	size_t done = 0;
	ssize_t n = 1;

	while (done < len && n) {
		n = pread(r->fd, (char *)p + done, len - done, (off_t)(r->next + done));
		if (n < 0 && errno != EINTR) {
			n = -errno;
			snprintf(r->why, sizeof(r->why), "%s", strerror(errno));
			return n;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	r->next += done;
	return (ssize_t)done;
}

int recording_open(struct recording *r, int fd)
{
	struct recording_header h;
	ssize_t n;

	memset(r, 0, sizeof(*r));
	r->fd = fd;
	n = get(r, &h, sizeof(h));
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)sizeof(h.magic) || memcmp(h.magic, RECORDING_MAGIC, sizeof(h.magic)))
		return bad(r, "not a recording of mgpu-renderd");
	if (n < (ssize_t)sizeof(h))
		return bad(r, "the header is cut off");
	if (!h.version || le32toh(h.version) > RECORDING_VERSION)
		return bad(r, "version %u of the format; this mgpu-renderd reads versions up to %u",
			   le32toh(h.version), RECORDING_VERSION);
	r->vgpu = le32toh(h.vgpu);
	return 0;
}

void recording_close(struct recording *r)
{
	close(r->fd);
	free(r->body);
	r->body = NULL;
	recording_mems_free(&r->mems);
}

/* Length of a command without what follows it. */
static size_t least(uint32_t type)
{
	switch (type) {
	case VIRTIO_GPU_CMD_CTX_CREATE:
		return sizeof(struct virtio_gpu_ctx_create);
	case VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE:
	case VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE:
		return sizeof(struct virtio_gpu_ctx_resource);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
		return sizeof(struct virtio_gpu_resource_create_2d);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		return sizeof(struct virtio_gpu_resource_create_3d);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		return sizeof(struct virtio_gpu_resource_create_blob);
	case VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB:
		return sizeof(struct virtio_gpu_resource_map_blob);
	case VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB:
		return sizeof(struct virtio_gpu_resource_unmap_blob);
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		return sizeof(struct virtio_gpu_resource_unref);
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		return sizeof(struct virtio_gpu_resource_attach_backing);
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
		return sizeof(struct virtio_gpu_resource_detach_backing);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
		return sizeof(struct virtio_gpu_transfer_to_host_2d);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D:
	case VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D:
		return sizeof(struct virtio_gpu_transfer_host_3d);
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		return sizeof(struct virtio_gpu_cmd_submit);
	default:
		return sizeof(struct virtio_gpu_ctrl_hdr);
	}
}

/* Check the entries of a command, which are at its end. */
static int check_entries(struct recording *r, const struct virtio_gpu_mem_entry *e, uint32_t nr)
{
	const uint8_t *end = (const uint8_t *)r->buf + r->cmd.len;
	uint64_t all = 0;

	if (nr > (size_t)(end - (const uint8_t *)e) / sizeof(*e))
		return bad(r, "%u entries of memory in %u bytes", nr, r->cmd.len);
	for (uint32_t i = 0; i < nr; i++) {
		if (le64toh(e[i].addr) > r->cmd.mem_len ||
		    le32toh(e[i].length) > r->cmd.mem_len - le64toh(e[i].addr))
			return bad(r, "entry %u is not in the memory, which has %" PRIu64 " bytes",
				   i, (uint64_t)r->cmd.mem_len);
		all += le32toh(e[i].length);
	}
	if (all > r->cmd.mem_len)
		return bad(r, "entries of %" PRIu64 " bytes in a memory of %" PRIu64, all,
			   (uint64_t)r->cmd.mem_len);
	return 0;
}

/* Check what a command says of memory. */
static int check_memory(struct recording *r)
{
	const struct virtio_gpu_resource_attach_backing *a = r->buf;
	const struct virtio_gpu_resource_create_blob *b = r->buf;
	const struct virtio_gpu_cmd_submit *c = r->buf;

	switch (le32toh(a->hdr.type)) {
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		if (le32toh(c->size) > r->cmd.len - sizeof(*c))
			return bad(r, "a stream of %u bytes in a command of %u",
				   le32toh(c->size), r->cmd.len);
		return 0;
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		return check_entries(r, (const void *)(a + 1), le32toh(a->nr_entries));
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		if (le32toh(b->blob_mem) != VIRTIO_GPU_BLOB_MEM_HOST3D)
			return check_entries(r, (const void *)(b + 1), le32toh(b->nr_entries));
		if (b->nr_entries)
			return bad(r, "a blob of the host's memory has %u entries",
				   le32toh(b->nr_entries));
		if (le64toh(b->size) > RECORDING_MAX_MEM)
			return bad(r, "a blob of %" PRIu64 " bytes", (uint64_t)le64toh(b->size));
		return 0;
	default:
		return 0;
	}
}

static int command(struct recording *r)
{
	const struct record_command *b = (const void *)r->body;
	const struct virtio_gpu_ctrl_hdr *hdr;
	int ret;

	if (r->len < sizeof(*b) + sizeof(*hdr))
		return bad(r, "a command of %u bytes", r->len);
	hdr = (const void *)(b + 1);
	r->buf = hdr;
	r->cmd = (struct mgpu_user_cmd){
		.seq = le32toh(b->seq), .flags = le32toh(b->flags),
		.len = r->len - (uint32_t)sizeof(*b),
		.mem = le64toh(b->mem), .mem_len = le64toh(b->mem_len),
	};
	if (r->cmd.flags & ~(uint32_t)(MGPU_USER_CMD_FENCED | MGPU_USER_CMD_NOTICE))
		return bad(r, "a command with unknown flags 0x%x", r->cmd.flags);
	if (r->cmd.len < least(le32toh(hdr->type)))
		return bad(r, "command 0x%x has %u bytes, and %zu at least",
			   le32toh(hdr->type), r->cmd.len, least(le32toh(hdr->type)));
	ret = check_memory(r);
	if (ret)
		return ret;
	ret = recording_follow(&r->mems, &r->cmd, r->buf);
	if (ret == -EFBIG)
		return bad(r, "more memory than there may be, with the %" PRIu64
			   " bytes that are there already", r->mems.len);
	if (ret)
		snprintf(r->why, sizeof(r->why), "%s", strerror(-ret));
	if (le32toh(hdr->type) == VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D)
		r->result_of = le32toh(((const struct virtio_gpu_transfer_host_3d *)
					r->buf)->resource_id);
	return ret;
}

static int memory(struct recording *r)
{
	const struct record_memory *b = (const void *)r->body;
	uint32_t id;

	if (r->len <= sizeof(*b) || r->len - sizeof(*b) > RECORDING_MAX_RUN)
		return bad(r, "a record of memory of %u bytes", r->len);
	id = le32toh(b->resource);
	r->bytes = r->len - (uint32_t)sizeof(*b);
	r->offset = le64toh(b->offset);
	r->mem = recording_mem(&r->mems, id);
	if (b->reserved)
		return bad(r, "a reserved field is 0x%x, not 0", le32toh(b->reserved));
	if (!r->mem)
		return bad(r, "memory of resource %u, which has none", id);
	if (r->offset > r->mem->len || r->bytes > r->mem->len - r->offset)
		return bad(r, "%u bytes at %" PRIu64 " of resource %u, whose memory has %" PRIu64,
			   r->bytes, r->offset, id, r->mem->len);
	if (r->type == RECORD_RESULT && id != r->result_of)
		return bad(r, "a result of resource %u does not follow a transfer from it", id);
	memcpy(r->mem->bytes + r->offset, b + 1, r->bytes);
	return 0;
}

static int check(struct recording *r)
{
	const struct record_check *b = (const void *)r->body;
	uint32_t id;

	if (r->len != sizeof(*b))
		return bad(r, "a check of %u bytes", r->len);
	id = le32toh(b->resource);
	r->mem = recording_mem(&r->mems, id);
	if (!r->mem)
		return bad(r, "a check of resource %u, which has no memory", id);
	if (id != r->result_of)
		return bad(r, "a check of resource %u does not follow a transfer from it", id);
	r->result_of = 0;
	return 0;
}

static int capset(struct recording *r)
{
	const struct record_capset *b = (const void *)r->body;

	if (r->len <= sizeof(*b) || r->len - sizeof(*b) > MGPU_USER_MAX_CAPSET)
		return bad(r, "a capability set of %u bytes", r->len);
	r->capset = le32toh(b->id);
	r->bytes = r->len - (uint32_t)sizeof(*b);
	return 0;
}

/* Read the body of a record. */
static int body(struct recording *r)
{
	ssize_t n;

	if (r->len > RECORDING_MAX_BODY)
		return bad(r, "a record of %u bytes; the longest has %u", r->len,
			   RECORDING_MAX_BODY);
	if (r->len > r->room) {
		free(r->body);
		r->room = 0;
		r->body = malloc(r->len);
		if (!r->body) {
			snprintf(r->why, sizeof(r->why), "%s", strerror(ENOMEM));
			return -ENOMEM;
		}
		r->room = r->len;
	}
	n = get(r, r->body, r->len);
	if (n < 0)
		return (int)n;
	return (size_t)n < r->len ? bad(r, "the record is cut off; 'truncate -s %" PRIu64
					"' keeps those before it", r->at) : 0;
}

int recording_next(struct recording *r)
{
	struct record_header h;
	ssize_t n;
	int ret;

	r->at = r->next;
	n = get(r, &h, sizeof(h));
	if (n <= 0)
		return (int)n;
	if (n < (ssize_t)sizeof(h))
		return bad(r, "the record is cut off; 'truncate -s %" PRIu64
			   "' keeps those before it", r->at);
	r->type = le32toh(h.type);
	r->len = le32toh(h.len);
	if (le64toh(h.ns) < r->ns)
		return bad(r, "the time decreases");
	r->ns = le64toh(h.ns);
	ret = body(r);
	if (ret)
		return ret;
	if (r->type != RECORD_RESULT && r->type != RECORD_CHECK)
		r->result_of = 0;
	switch (r->type) {
	case RECORD_CAPSET:
		ret = capset(r);
		break;
	case RECORD_COMMAND:
		ret = command(r);
		break;
	case RECORD_MEMORY:
	case RECORD_RESULT:
		ret = memory(r);
		break;
	case RECORD_CHECK:
		ret = check(r);
		break;
	default:
		return bad(r, "a record of the unknown type %u", r->type);
	}
	return ret ? ret : 1;
}
