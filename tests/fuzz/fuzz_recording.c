// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the reader of mgpu-renderd's recordings.  The input is the file.  All that the reader
 * hands out is within its limits, and an error says why and where.
 */
#include <endian.h>
#include <linux/virtio_gpu.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "recording.h"

static void check_command(const struct recording *r)
{
	const struct virtio_gpu_resource_attach_backing *a = r->buf;
	const struct virtio_gpu_resource_create_blob *b = r->buf;
	const struct virtio_gpu_mem_entry *e = (const void *)(a + 1);
	const struct virtio_gpu_cmd_submit *s = r->buf;
	const uint8_t *end = r->body + r->len;
	uint32_t nr = 0;

	FUZZ_ASSERT((uintptr_t)r->buf % 8 == 0);
	FUZZ_ASSERT((const uint8_t *)r->buf + r->cmd.len == end);
	FUZZ_ASSERT(r->cmd.len >= sizeof(a->hdr));
	if (le32toh(a->hdr.type) == VIRTIO_GPU_CMD_SUBMIT_3D)
		FUZZ_ASSERT((const uint8_t *)(s + 1) + le32toh(s->size) <= end);
	if (le32toh(a->hdr.type) == VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB) {
		FUZZ_ASSERT(r->cmd.len >= sizeof(*b));
		e = (const void *)(b + 1);
		nr = le32toh(b->nr_entries);
		if (le32toh(b->blob_mem) == VIRTIO_GPU_BLOB_MEM_HOST3D)
			FUZZ_ASSERT(!nr && le64toh(b->size) <= RECORDING_MAX_MEM);
	} else if (le32toh(a->hdr.type) == VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING) {
		nr = le32toh(a->nr_entries);
	}
	FUZZ_ASSERT(!nr || (const uint8_t *)(e + nr) <= end);
	for (uint32_t i = 0; i < nr; i++)
		FUZZ_ASSERT(le64toh(e[i].addr) <= r->cmd.mem_len &&
			    le32toh(e[i].length) <= r->cmd.mem_len - le64toh(e[i].addr));
}

static void check_record(const struct recording *r)
{
	FUZZ_ASSERT(r->at < r->next && r->len <= RECORDING_MAX_BODY);
	FUZZ_ASSERT(r->mems.len <= RECORDING_MAX_MEMS);
	switch (r->type) {
	case RECORD_CAPSET:
		FUZZ_ASSERT(r->bytes && r->bytes <= MGPU_USER_MAX_CAPSET && r->bytes < r->len);
		break;
	case RECORD_COMMAND:
		check_command(r);
		break;
	case RECORD_MEMORY:
	case RECORD_RESULT:
		FUZZ_ASSERT(r->mem && r->bytes && r->bytes <= RECORDING_MAX_RUN);
		FUZZ_ASSERT(r->offset + r->bytes <= r->mem->len);
		FUZZ_ASSERT(!memcmp(r->mem->bytes + r->offset,
				    r->body + sizeof(struct record_memory), r->bytes));
		break;
	default:
		FUZZ_ASSERT(r->type == RECORD_CHECK && r->mem);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct recording r;
	int fd = memfd_create("recording", MFD_CLOEXEC);
	uint64_t ns = 0;
	int ret;

	FUZZ_ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	ret = recording_open(&r, fd);
	while (!ret) {
		ret = recording_next(&r);
		if (ret <= 0)
			break;
		check_record(&r);
		FUZZ_ASSERT(r.ns >= ns);
		ns = r.ns;
		ret = 0;
	}
	FUZZ_ASSERT(!ret == !r.why[0]);
	if (ret)
		FUZZ_ASSERT(!strncmp(r.why, "at byte ", 8) && r.at <= size);
	else
		FUZZ_ASSERT(r.next == size);
	recording_close(&r);
	FUZZ_ASSERT(!r.mems.len);
	return 0;
}

/* ---- seeds ---- */

static uint8_t seed[4096];
static size_t seed_len;

static void put(const void *p, size_t len)
{
	memcpy(seed + seed_len, p, len);
	seed_len += len;
}

static void record(uint32_t type, const void *head, size_t head_len, const void *p, size_t len)
{
	const struct record_header h = {
		.type = htole32(type), .len = htole32((uint32_t)(head_len + len)),
		.ns = htole64(seed_len),
	};

	put(&h, sizeof(h));
	put(head, head_len);
	if (len)
		put(p, len);
}

static void command(const void *p, size_t len, uint64_t mem_len)
{
	const struct record_command c = {
		.flags = htole32(MGPU_USER_CMD_FENCED), .mem_len = htole64(mem_len),
	};

	record(RECORD_COMMAND, &c, sizeof(c), p, len);
}

static void seeds(const char *dir)
{
	const struct recording_header h = {
		.magic = RECORDING_MAGIC, .version = htole32(RECORDING_VERSION),
		.vgpu = htole32(3),
	};
	const struct record_capset set = { .id = htole32(2), .version = htole32(1) };
	const struct {
		struct virtio_gpu_resource_attach_backing c;
		struct virtio_gpu_mem_entry e[2];
	} attach = {
		.c.hdr.type = htole32(VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING),
		.c.resource_id = htole32(1), .c.nr_entries = htole32(2),
		.e = { { .length = htole32(64) }, { .addr = htole64(64), .length = htole32(9) } },
	};
	const struct record_memory mem = { .resource = htole32(1), .offset = htole64(8) };
	const struct record_check check = { .resource = htole32(1) };
	const struct virtio_gpu_transfer_host_3d from = {
		.hdr.type = htole32(VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D),
		.resource_id = htole32(1),
	};
	const struct virtio_gpu_resource_detach_backing detach = {
		.hdr.type = htole32(VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING),
		.resource_id = htole32(1),
	};
	const struct {
		struct virtio_gpu_cmd_submit c;
		__le32 w[2];
	} submit = {
		.c.hdr.type = htole32(VIRTIO_GPU_CMD_SUBMIT_3D), .c.size = htole32(8),
	};

	put(&h, sizeof(h));
	fuzz_seed(dir, "header", seed, seed_len);
	record(RECORD_CAPSET, &set, sizeof(set), "capset", 6);
	command(&submit, sizeof(submit), 0);
	fuzz_seed(dir, "submit", seed, seed_len);
	command(&attach, sizeof(attach), 4096);
	record(RECORD_MEMORY, &mem, sizeof(mem), "memory", 6);
	command(&from, sizeof(from), 0);
	fuzz_seed(dir, "memory", seed, seed_len);
	record(RECORD_RESULT, &mem, sizeof(mem), "result", 6);
	record(RECORD_CHECK, &check, sizeof(check), NULL, 0);
	command(&detach, sizeof(detach), 0);
	fuzz_seed(dir, "all", seed, seed_len);
}

FUZZ_SEEDS(seeds)
