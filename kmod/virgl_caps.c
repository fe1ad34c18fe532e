// SPDX-License-Identifier: GPL-2.0-only
/*
 * virgl capability sets: what a guest is told of a host.  Pure: no kernel
 * calls, builds in user space too.
 *
 * A guest uses what it is told of.  What mgpu_virgl_check() would refuse is
 * taken out, so that guests do not try it.
 */
#include "virgl.h"

/* Set 1, the beginning of set 2: formats, GL's limits and features. */
#define CAPS_V1	308

/* Set 2, as far as it is known; hosts make it longer from time to time. */
struct caps {
	u8 v1[CAPS_V1];
	__le32 limits[21];
	__le32 bits;
	__le32 more_limits[73];
	__le32 bits_v2;
	__le32 names_and_limits[41];
	__le32 nr_video;
	__le32 video[32 * 4];
	__le32 last_limits[3];
};

static_assert(offsetof(struct caps, bits) == 392, "capability_bits");
static_assert(offsetof(struct caps, bits_v2) == 688, "capability_bits_v2");
static_assert(offsetof(struct caps, nr_video) == 856, "num_video_caps");
static_assert(offsetof(struct caps, last_limits) == 1372, "after video_caps");
static_assert(sizeof(struct caps) == 1384, "what virglrenderer 1.1 has");

/* SET_DEBUG_FLAGS; buffers that stay mapped, which are blobs of the host's. */
#define BITS_NOT	0x80004000U

/*
 * All that are known but untyped resources, which are blobs, too, and the sizes of
 * memory, which tell of other guests.  What comes after bit 17 brings new commands.
 */
#define BITS_V2		0x3fff1U

static void keep(void *caps, size_t len, size_t at, u32 mask)
{
	__le32 v;

	if (len < at + sizeof(v))
		return;
	memcpy(&v, (u8 *)caps + at, sizeof(v));
	v = cpu_to_le32(le32_to_cpu(v) & mask);
	memcpy((u8 *)caps + at, &v, sizeof(v));
}

/**
 * mgpu_virgl_mask_capset - take out of a capability set what guests cannot use
 * @capset: MGPU_VIRGL_CAPSET_1 or MGPU_VIRGL_CAPSET_2
 * @caps: the set as the host gives it; changed, and zeros from the end of what
 *	is known on
 * @len: its bytes
 *
 * Return: bytes to hand on: whole words, not more than @len and than what is
 * known of the set; 0 for other sets, of which nothing is left.
 */
size_t mgpu_virgl_mask_capset(u32 capset, void *caps, size_t len)
{
	size_t known, i;

	switch (capset) {
	case MGPU_VIRGL_CAPSET_1:
		known = CAPS_V1;
		break;
	case MGPU_VIRGL_CAPSET_2:
		known = sizeof(struct caps);
		break;
	default:
		known = 0;
	}
	if (known > len)
		known = len;
	known &= ~(size_t)3;
	memset((u8 *)caps + known, 0, len - known);

	keep(caps, known, offsetof(struct caps, bits), ~BITS_NOT);
	keep(caps, known, offsetof(struct caps, bits_v2), BITS_V2);
	for (i = offsetof(struct caps, nr_video);
	     i < offsetof(struct caps, last_limits); i += 4)
		keep(caps, known, i, 0);
	return known;
}
