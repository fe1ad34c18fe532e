// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz virgl.  The input: which resources there are and what they look like,
 * then a command stream.  An accepted stream must name nothing but the host's
 * handles where it could name resources; whatever a transfer or a resource is
 * said to be must hold up to plain arithmetic.  Slices of an accepted stream consist of
 * whole commands and name the same handles.
 */
#include "fuzz.h"
#include "virgl/slice.h"
#include "virgl/virgl.h"

#define HEAD		64	/* bytes before the stream */
#define NR_RES		8
#define HOST		0xabcd0000u

static struct mgpu_virgl_res pool[NR_RES];
static bool with_blobs;

static const struct mgpu_virgl_res *find(void *data, u32 id)
{
	FUZZ_ASSERT(id);
	FUZZ_ASSERT(data == pool);
	return id < NR_RES && pool[id].host_id ? &pool[id] : NULL;
}

static u32 get(const uint8_t *data, u32 at)
{
	return data[at % HEAD] | data[(at + 1) % HEAD] << 8;
}

/* Resources of all kinds; those that cannot be are not there. */
static void make_pool(const uint8_t *data)
{
	struct mgpu_virgl_shape *s;
	u64 bytes;
	u32 i;

	memset(pool, 0, sizeof(pool));
	for (i = 1; i < NR_RES; i++) {
		s = &pool[i].shape;
		s->target = data[i * 8] % 10;
		s->format = get(data, i * 8 + 1) % 330;
		s->width = get(data, i * 8 + 3) & 0x3fff;
		s->height = data[i * 8 + 4];
		s->depth = 1 + (s->target == 3 ? data[i * 8 + 5] : 0);
		s->array_size = s->target == 4 ? 6 : 1 + data[i * 8 + 5] % 13;
		if (s->target < 4 || s->target == 5)
			s->array_size = 1;
		s->last_level = data[i * 8 + 6] % 16;
		s->nr_samples = data[i * 8 + 7] % 34;
		if (s->target == 0 || s->target == 1 || s->target == 6)
			s->height = 1;
		if (s->target == 4 || s->target == 8)
			s->height = s->width;
		if (mgpu_virgl_resource_bytes(s, &bytes))
			continue;
		FUZZ_ASSERT(bytes && bytes % 4096 == 0);
		pool[i].host_id = HOST + i;
		pool[i].backing = data[0] & 1 ? bytes : get(data, i * 3);
	}
}

static void check_handle(u32 v, bool null)
{
	if (!v) {
		FUZZ_ASSERT(null);
		return;
	}
	FUZZ_ASSERT(v > HOST && v < HOST + NR_RES);
	FUZZ_ASSERT(pool[v - HOST].host_id);
}

/* Where handles are, by the protocol. */
static void check_command(const u32 *w, u32 len)
{
	u32 op = w[0] & 0xff, obj = w[0] >> 8 & 0xff, i;

	switch (op) {
	case 1:
		if (obj == 6 || obj == 8 || obj == 10 || obj == 11)
			check_handle(w[2], false);
		if (obj == 9)
			check_handle(w[4], false);
		break;
	case 6:
		for (i = 3; i <= len; i += 3)
			check_handle(w[i], true);
		break;
	case 8:
		if (len > 14) {
			check_handle(w[15], true);
			check_handle(w[20], true);
		}
		break;
	case 9:
	case 43:
	case 47:
	case 49:
	case 50:
		check_handle(w[1], false);
		break;
	case 11:
		check_handle(w[1], true);
		break;
	case 16:
		check_handle(w[4], false);
		check_handle(w[13], false);
		break;
	case 17:
		check_handle(w[1], false);
		check_handle(w[6], false);
		break;
	case 27:
		check_handle(w[5], true);
		break;
	case 34:
		for (i = 5; i <= len; i += 3)
			check_handle(w[i], true);
		break;
	case 35:
		for (i = 7; i <= len; i += 5)
			check_handle(w[i], true);
		break;
	case 37:
		check_handle(w[7], true);
		break;
	case 40:
		for (i = 4; i <= len; i += 3)
			check_handle(w[i], true);
		break;
	case 42:
		check_handle(w[2], false);
		break;
	case 45:
		check_handle(w[1], false);
		check_handle(w[12], false);
		break;
	case 48:
		/* A buffer of whole pages that can be mapped. */
		FUZZ_ASSERT(with_blobs && w[11]);
		FUZZ_ASSERT(!w[1] && w[4] && w[4] % 4096 == 0 && w[4] < 1u << 31 && w[10] & 2);
		break;
	default:
		FUZZ_ASSERT(op <= 52 || op == 62);
		FUZZ_ASSERT(op != 41);
	}
}

/* A slice consists of whole commands. */
static void check_slice(const struct mgpu_slicer *s, const __le32 *stream, u32 i)
{
	u32 words = mgpu_slice_words(s, i), at, k;
	__le32 *slice = malloc(words * 4);
	u32 *w = malloc(words * 4 + 4);

	if (!slice || !w)
		abort();
	mgpu_slice_write(s, stream, i, slice);
	for (k = 0; k < words; k++)
		w[k] = le32_to_cpu(slice[k]);
	for (at = 0; at < words; at += (w[at] >> 16) + 1)
		check_command(w + at, w[at] >> 16);
	FUZZ_ASSERT(at == words);
	free(slice);
	free(w);
}

/* Cut a stream as it comes in again and again, with costs from the input. */
static void check_slices(const uint8_t *data, const __le32 *stream, u32 words)
{
	static struct mgpu_slicer s;
	u32 round, nr, i, at;

	mgpu_slicer_init(&s);
	for (round = 0; round < 6; round++) {
		nr = mgpu_slice_plan(&s, stream, words, get(data, round) * 100,
				     round % 2 ? get(data, round) % 9 : 0);
		FUZZ_ASSERT(nr && nr <= MGPU_SLICE_MAX);
		for (i = 0, at = 0; i < nr; i++) {
			const struct mgpu_slice *slice = &s.slices[i];

			check_slice(&s, stream, i);
			/* Nothing is left out, and only draws come more than once. */
			if (slice->head_words || !slice->band)
				FUZZ_ASSERT(slice->head == at);
			at += slice->head_words + slice->tail_words;
			if (slice->split >= 0 &&
			    slice->band == s.bands[slice->split].nr - 1)
				at += s.bands[slice->split].words;
			mgpu_slice_learn(&s, &slice->load,
					 (u64)get(data, i) << get(data, round + i) % 48, i % 2);
		}
		FUZZ_ASSERT(at == words);
		if (round % 3)
			mgpu_slice_commit(&s);
	}
}

static void check_capset(const uint8_t *data, size_t size)
{
	uint8_t *caps = malloc(size);
	size_t left;

	if (!caps)
		abort();
	memcpy(caps, data, size);
	left = mgpu_virgl_mask_capset(data[0] % 4, caps, size, data[0] & 8);
	FUZZ_ASSERT(left <= size && left <= 1384);
	if (left >= 860)
		FUZZ_ASSERT(!memcmp(caps + 856, "\0\0\0\0", 4));
	free(caps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mgpu_virgl_lookup lookup = { .find = find, .data = pool };
	struct mgpu_virgl_info info;
	size_t len, at, nr = 0;
	__le32 *stream;
	u32 *w, i;
	int ret;

	if (size < HEAD)
		return 0;
	make_pool(data);
	check_capset(data, size);
	with_blobs = data[0] & 2;
	lookup.blobs = with_blobs;

	len = size - HEAD;
	stream = malloc(len);
	w = malloc(len + 4);
	if (!stream || !w)
		abort();
	memcpy(stream, data + HEAD, len);
	ret = mgpu_virgl_check(stream, len, &lookup, &info);
	FUZZ_ASSERT(!ret || ret == -EINVAL || ret == -EOPNOTSUPP ||
		    ret == -ENOENT || ret == -ERANGE);
	FUZZ_ASSERT(!ret == (info.why == MGPU_VIRGL_OK));
	FUZZ_ASSERT(!len || info.offset < len);
	FUZZ_ASSERT(mgpu_virgl_why(info.why)[0]);
	if (!ret) {
		for (i = 0; i < len / 4; i++)
			w[i] = le32_to_cpu(stream[i]);
		for (at = 0; at < len / 4; at += (w[at] >> 16) + 1, nr++)
			check_command(w + at, w[at] >> 16);
		FUZZ_ASSERT(at == len / 4);
		FUZZ_ASSERT(nr == info.commands);
		check_slices(data, stream, len / 4);
	}
	free(stream);
	free(w);
	return 0;
}

/* A seed per command, of the lengths that it usually has, with good boxes. */
static void seeds(const char *dir)
{
	static const u16 lens[63] = {
		[0] = 2, [2] = 1, [3] = 1, [4] = 7, [5] = 4, [6] = 9, [7] = 8,
		[8] = 20, [9] = 14, [10] = 5, [11] = 3, [12] = 18, [13] = 1,
		[14] = 4, [15] = 3, [16] = 21, [17] = 13, [18] = 4, [19] = 1,
		[20] = 1, [21] = 2, [22] = 32, [23] = 32, [24] = 1, [25] = 3,
		[26] = 3, [27] = 5, [28] = 1, [29] = 1, [30] = 1, [31] = 2,
		[32] = 6, [33] = 1, [34] = 8, [35] = 12, [36] = 1, [37] = 8,
		[38] = 2, [39] = 1, [40] = 7, [41] = 2, [42] = 6, [43] = 13,
		[44] = 5, [45] = 14, [46] = 2, [47] = 12, [48] = 11, [49] = 10,
		[50] = 1, [51] = 3, [52] = 6, [62] = 10,
	};
	static const u8 objects[12] = { 0, 11, 9, 5, 12, 9, 6, 9, 5, 4, 4, 6 };
	uint8_t buf[HEAD + 64 * 4];
	__le32 w[64];
	char name[32];
	u32 op, obj, len, i;

	memset(buf, 0, HEAD);
	buf[0] = 1 | 2;
	for (i = 1; i < NR_RES; i++) {
		buf[i * 8] = 2;			/* 64 x 64, RGBA */
		buf[i * 8 + 1] = 67;
		buf[i * 8 + 3] = 64;
		buf[i * 8 + 4] = 64;
	}
	for (op = 0; op < 63; op++) {
		for (obj = 0; obj < 12; obj++) {
			if (op > 3 && obj)
				break;
			len = op == 1 ? objects[obj] : lens[op];
			w[0] = cpu_to_le32(op | obj << 8 | len << 16);
			for (i = 1; i <= len; i++)
				w[i] = cpu_to_le32(1);
			if (op == 5)
				w[1] = cpu_to_le32(len - 2);
			/* A single pixel or byte at 0 on level 0. */
			if (op == 9 || op == 43 || op == 45 || op == 47) {
				w[2] = 0;
				w[4] = 0;
				w[5] = 0;
				memset(w + 6 - (op == 47) * 3, 0, 12);
				if (op == 45)
					w[13] = 0;
				if (op == 43)
					w[12] = 0;
			}
			/* The first level and layer of a blit and a copy. */
			if (op == 16)
				w[5] = w[9] = w[14] = w[18] = 0;
			if (op == 17)
				w[2] = w[5] = w[7] = w[10] = 0;
			/* A mapped buffer of a page. */
			if (op == 48) {
				w[1] = w[8] = w[9] = 0;
				w[2] = cpu_to_le32(64);
				w[3] = cpu_to_le32(0x10);
				w[4] = cpu_to_le32(4096);
				w[10] = cpu_to_le32(6);
			}
			memcpy(buf + HEAD, w, (len + 1) * 4);
			snprintf(name, sizeof(name), "%u-%u", op, obj);
			fuzz_seed(dir, name, buf, HEAD + (len + 1) * 4);
		}
	}
}

FUZZ_SEEDS(seeds)
