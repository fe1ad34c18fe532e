// SPDX-License-Identifier: GPL-2.0-only
/*
 * virgl capability sets, which describe a host to its guests.  Pure: no kernel
 * calls, builds in user space too.
 *
 * A guest uses the capabilities that the set has.  Capabilities whose commands
 * mgpu_virgl_check() would refuse are removed, so that guests do not try them.
 */
#include "virgl/virgl.h"

/* Size of set 1 in bytes; it is the start of set 2: formats, GL limits and features. */
#define CAPS_V1	308

/* The known part of set 2; newer hosts make it longer. */
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
static_assert(sizeof(struct caps) == 1384, "size in virglrenderer 1.1");

/* Removed: SET_DEBUG_FLAGS, and without blobs persistently mapped buffers, which are some. */
#define BITS_NOT	0x00004000U
#define BITS_BLOBS	0x80000000U

/*
 * Kept: all known bits but untyped resources, which are blobs too, and memory sizes,
 * which would leak information about other guests.  Bits above 17 need new commands.
 */
#define BITS_V2		0x3fff1U

static void caps_keep(void *caps, size_t len, size_t at, u32 mask)
{
	__le32 v;

	if (len < at + sizeof(v))
		return;
	memcpy(&v, (u8 *)caps + at, sizeof(v));
	v = cpu_to_le32(le32_to_cpu(v) & mask);
	memcpy((u8 *)caps + at, &v, sizeof(v));
}

/**
 * mgpu_virgl_mask_capset - remove capabilities that guests cannot use
 * @capset: MGPU_VIRGL_CAPSET_1 or MGPU_VIRGL_CAPSET_2
 * @caps: the host's set; changed in place, and zeroed behind its known part
 * @len: length of @caps, bytes
 * @blobs: guests can map blobs
 *
 * Return: length of the set for guests in bytes: whole words, at most @len and at
 * most the known part; 0 for other sets.
 */
size_t mgpu_virgl_mask_capset(u32 capset, void *caps, size_t len, bool blobs)
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

	caps_keep(caps, known, offsetof(struct caps, bits),
		  ~(BITS_NOT | (blobs ? 0 : BITS_BLOBS)));
	caps_keep(caps, known, offsetof(struct caps, bits_v2), BITS_V2);
	for (i = offsetof(struct caps, nr_video);
	     i < offsetof(struct caps, last_limits); i += 4)
		caps_keep(caps, known, i, 0);
	return known;
}
