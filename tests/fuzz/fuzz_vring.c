// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the ring.  The input is, in order: log2 of the ring's size (1 byte),
 * where the indices start (2 bytes), the available ring, the descriptor table,
 * the guest's other memory, where indirect tables are (half of what is left),
 * and changes: between two pops the guest changes bytes of its rings, as a
 * hostile one would.
 */
#include "fuzz.h"
#include "vfio/vring.h"

#define GUEST_SIZE	32768u

static u8 guest[GUEST_SIZE];
static struct mgpu_seg segs[MGPU_MAX_CHAIN];
static u64 reads;

static int guest_read(void *ctx, u64 addr, void *buf, size_t len)
{
	(void)ctx;
	reads++;
	if (addr > GUEST_SIZE || GUEST_SIZE - addr < len)
		return -EFAULT;
	memcpy(buf, guest + addr, len);
	return 0;
}

/* Copy what is left of the input, at most @len bytes. */
static void take(const uint8_t **data, size_t *size, void *to, size_t len)
{
	size_t n = *size < len ? *size : len;

	if (n)
		memcpy(to, *data, n);
	*data += n;
	*size -= n;
}

static void *zalloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	return p;
}

static void check(const struct mgpu_vring *vr, const struct mgpu_chain *c)
{
	u64 in = 0, out = 0;
	u32 i;

	FUZZ_ASSERT(c->head < vr->num);
	FUZZ_ASSERT(c->segs == segs);
	FUZZ_ASSERT((u64)c->nr_in + c->nr_out <= MGPU_MAX_CHAIN);
	for (i = 0; i < c->nr_in + c->nr_out; i++) {
		FUZZ_ASSERT(segs[i].len);
		FUZZ_ASSERT(segs[i].addr + segs[i].len > segs[i].addr ||
			    segs[i].addr + segs[i].len == 0);
		if (i < c->nr_in)
			in += segs[i].len;
		else
			out += segs[i].len;
	}
	FUZZ_ASSERT(in == c->in_len && out == c->out_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mgpu_chain chain = { .segs = segs };
	struct mgpu_vring vr = { 0 };
	u16 last, used, start = 0;
	size_t desc_len, avail_len;
	u8 log = 0, poke[3];
	u32 round;
	int ret;

	take(&data, &size, &log, 1);
	take(&data, &size, &start, 2);
	vr.num = 1u << log % 8;
	vr.last_avail = start;
	vr.used_idx = start;
	desc_len = vr.num * sizeof(*vr.desc);
	avail_len = sizeof(*vr.avail) + vr.num * sizeof(u16);
	vr.desc = zalloc(desc_len);
	vr.avail = zalloc(avail_len);
	vr.used = zalloc(sizeof(*vr.used) +
			 vr.num * sizeof(struct vring_used_elem));

	take(&data, &size, vr.avail, avail_len);
	take(&data, &size, vr.desc, desc_len);
	memset(guest, 0, sizeof(guest));
	take(&data, &size, guest, size / 2);

	for (round = 0; round < 4 * 128; round++) {
		last = vr.last_avail;
		used = vr.used_idx;
		reads = 0;
		ret = mgpu_vring_pop(&vr, &chain, guest_read, NULL);
		FUZZ_ASSERT(ret <= 1);
		/* Bounded work, whatever the guest wrote. */
		FUZZ_ASSERT(reads <= MGPU_MAX_INDIRECT);
		FUZZ_ASSERT(vr.used_idx == used);
		if (ret == 1) {
			FUZZ_ASSERT(vr.last_avail == (u16)(last + 1));
			check(&vr, &chain);
			mgpu_vring_push(&vr, chain.head, chain.out_len);
			FUZZ_ASSERT(le16_to_cpu(vr.used->idx) ==
				    (u16)(used + 1));
			mgpu_vring_wants_interrupt(&vr);
		} else {
			FUZZ_ASSERT(vr.last_avail == last);
			mgpu_vring_notify_disable(&vr);
			mgpu_vring_notify_enable(&vr);
			if (!size)
				break;
		}

		/* The guest changes its mind. */
		memset(poke, 0, sizeof(poke));
		take(&data, &size, poke, sizeof(poke));
		if (poke[0] & 1)
			((u8 *)vr.avail)[(poke[0] >> 1) % avail_len] = poke[2];
		else
			((u8 *)vr.desc)[((poke[0] >> 1) | poke[1] << 7) %
					desc_len] = poke[2];
	}
	free(vr.desc);
	free(vr.avail);
	free(vr.used);
	return 0;
}

/* Some rings that work, so that the fuzzer need not find them. */
static void seeds(const char *dir)
{
	struct {
		u8 log;
		u8 start[2];
		u8 avail_flags[2];
		u8 avail_idx[2];
		u8 avail[4][2];
		struct vring_desc desc[4];
		struct vring_desc table[64];
	} __attribute__((packed)) s;
	u32 i;

	memset(&s, 0, sizeof(s));
	s.log = 2;
	s.avail_idx[0] = 1;
	for (i = 0; i < 4; i++) {
		s.desc[i].addr = cpu_to_le64(0x1000 * i);
		s.desc[i].len = cpu_to_le32(32);
		s.desc[i].flags = cpu_to_le16((i < 3 ? VRING_DESC_F_NEXT : 0) |
					      (i > 1 ? VRING_DESC_F_WRITE : 0));
		s.desc[i].next = cpu_to_le16(i + 1);
	}
	fuzz_seed(dir, "direct", &s, sizeof(s));

	s.desc[0].addr = 0;
	s.desc[0].len = cpu_to_le32(32 * sizeof(s.table[0]));
	s.desc[0].flags = cpu_to_le16(VRING_DESC_F_INDIRECT);
	for (i = 0; i < 64; i++) {
		s.table[i].addr = cpu_to_le64(0x100 * i);
		s.table[i].len = cpu_to_le32(16);
		s.table[i].flags =
			cpu_to_le16((i < 31 ? VRING_DESC_F_NEXT : 0) |
				    (i > 20 ? VRING_DESC_F_WRITE : 0));
		s.table[i].next = cpu_to_le16(i + 1);
	}
	fuzz_seed(dir, "indirect", &s, sizeof(s));
	s.start[0] = 0xfe;
	s.start[1] = 0xff;
	s.avail_idx[0] = 2;
	fuzz_seed(dir, "wrap", &s, sizeof(s));
	s.table[5].flags = cpu_to_le16(VRING_DESC_F_INDIRECT);
	fuzz_seed(dir, "nested", &s, sizeof(s));
}

FUZZ_SEEDS(seeds)
