// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device side of a split virtqueue against well-behaved and hostile
 * drivers.  The rings are heap blocks of exactly their size, so that the
 * address sanitizer sees any access past their ends.
 */
#include <stdlib.h>

#include "tap.h"
#include "vfio/vring.h"

#define NUM		16
#define GUEST_BASE	0x10000u	/* where the guest's memory begins */
#define GUEST_SIZE	0x10000u

static struct mgpu_vring vr;
static struct mgpu_chain chain;
static u8 *guest;		/* memory that the read callback serves */
static unsigned int reads;
static u16 avail_idx;		/* the driver's */

static int guest_read(void *ctx, u64 addr, void *buf, size_t len)
{
	TAP_CHECK(ctx == &vr);
	reads++;
	if (addr < GUEST_BASE || addr - GUEST_BASE > GUEST_SIZE ||
	    GUEST_SIZE - (addr - GUEST_BASE) < len)
		return -EFAULT;
	memcpy(buf, guest + (addr - GUEST_BASE), len);
	return 0;
}

static void ring_free(void)
{
	free(vr.desc);
	free(vr.avail);
	free(vr.used);
	free(guest);
	free(chain.segs);
}

static void ring_new(u16 num)
{
	ring_free();
	memset(&vr, 0, sizeof(vr));
	vr.num = num;
	vr.desc = calloc(num, sizeof(*vr.desc));
	vr.avail = calloc(1, sizeof(*vr.avail) + num * sizeof(u16));
	vr.used = calloc(1, sizeof(*vr.used) +
			    num * sizeof(struct vring_used_elem));
	guest = calloc(1, GUEST_SIZE);
	chain.segs = calloc(MGPU_MAX_CHAIN, sizeof(*chain.segs));
	if (!vr.desc || !vr.avail || !vr.used || !guest || !chain.segs)
		abort();
	reads = 0;
	avail_idx = 0;
}

static void put_desc(struct vring_desc *d, u64 addr, u32 len, u16 flags,
		     u16 next)
{
	d->addr = cpu_to_le64(addr);
	d->len = cpu_to_le32(len);
	d->flags = cpu_to_le16(flags);
	d->next = cpu_to_le16(next);
}

static void desc(u16 i, u64 addr, u32 len, u16 flags, u16 next)
{
	put_desc(&vr.desc[i], addr, len, flags, next);
}

/* Descriptor @i of an indirect table at guest address @table. */
static void idesc(u64 table, u32 i, u64 addr, u32 len, u16 flags, u16 next)
{
	struct vring_desc d;

	put_desc(&d, addr, len, flags, next);
	memcpy(guest + (table - GUEST_BASE) + i * sizeof(d), &d, sizeof(d));
}

static void offer(u16 head)
{
	vr.avail->ring[avail_idx % vr.num] = cpu_to_le16(head);
	avail_idx++;
	vr.avail->idx = cpu_to_le16(avail_idx);
}

static int pop(void)
{
	struct mgpu_seg *segs = chain.segs;

	memset(&chain, 0xa5, sizeof(chain));
	chain.segs = segs;
	return mgpu_vring_pop(&vr, &chain, guest_read, &vr);
}

#define NEXT	VRING_DESC_F_NEXT
#define WRITE	VRING_DESC_F_WRITE
#define INDIR	VRING_DESC_F_INDIRECT

static void empty(void)
{
	ring_new(NUM);
	TAP_EQ(pop(), 0);
	TAP_EQ(vr.last_avail, 0);
}

static void direct_chain(void)
{
	ring_new(NUM);
	desc(3, 0x1000, 24, NEXT, 9);
	desc(9, 0x2000, 100, NEXT, 0);
	desc(0, 0xffffffff00000000, 0x1000, WRITE | NEXT, 15);
	desc(15, 0x4000, 8, WRITE, 77);
	offer(3);
	TAP_NEED(pop() == 1);
	TAP_EQ(chain.head, 3);
	TAP_EQ(chain.nr_in, 2);
	TAP_EQ(chain.nr_out, 2);
	TAP_EQ(chain.in_len, 124);
	TAP_EQ(chain.out_len, 0x1008);
	TAP_EQ(chain.segs[0].addr, 0x1000);
	TAP_EQ(chain.segs[0].len, 24);
	TAP_EQ(chain.segs[1].addr, 0x2000);
	TAP_EQ(chain.segs[2].addr, 0xffffffff00000000);
	TAP_EQ(chain.segs[3].addr, 0x4000);
	TAP_EQ(chain.segs[3].len, 8);
	TAP_EQ(vr.last_avail, 1);
	TAP_EQ(pop(), 0);
	TAP_EQ(reads, 0);
}

static void write_only(void)
{
	ring_new(NUM);
	desc(0, 0x1000, 8, WRITE, 0);
	offer(0);
	TAP_EQ(pop(), 1);
	TAP_EQ(chain.nr_in, 0);
	TAP_EQ(chain.nr_out, 1);
	TAP_EQ(chain.segs[0].addr, 0x1000);
}

static void empty_segments(void)
{
	ring_new(NUM);
	desc(0, 0x1000, 0, NEXT, 1);
	desc(1, 0x2000, 4, NEXT, 2);
	desc(2, 0x3000, 0, WRITE, 0);
	offer(0);
	TAP_EQ(pop(), 1);
	TAP_EQ(chain.nr_in, 1);
	TAP_EQ(chain.nr_out, 0);
	TAP_EQ(chain.segs[0].addr, 0x2000);
}

static void lengths_add_up(void)
{
	u16 i;

	ring_new(NUM);
	for (i = 0; i < NUM; i++)
		desc(i, 0, ~0u, i + 1 < NUM ? NEXT : 0, i + 1);
	offer(0);
	TAP_EQ(pop(), 1);
	TAP_EQ(chain.in_len, NUM * 0xffffffffull);
}

static void order_of_the_ring(void)
{
	u16 i;

	ring_new(NUM);
	for (i = 0; i < NUM; i++)
		desc(i, 0x1000 * (i + 1), i + 1, 0, 0);
	for (i = 0; i < NUM; i++)
		offer((i * 7) % NUM);
	for (i = 0; i < NUM; i++) {
		TAP_EQ(pop(), 1);
		TAP_EQ(chain.head, (i * 7) % NUM);
		TAP_EQ(chain.in_len, (i * 7) % NUM + 1);
	}
	TAP_EQ(pop(), 0);
}

/* Several times around both the ring and the 16 bit indices. */
static void wrap_around(void)
{
	u32 total = 3 * 65536 + 11, put = 0, got = 0;
	u16 i;

	ring_new(NUM);
	for (i = 0; i < NUM; i++)
		desc(i, 0x1000, i + 1, WRITE, 0);
	srand(1);
	while (got < total) {
		while (put - got < NUM && put < total && rand() % 3) {
			offer(put * 5 % NUM);
			put++;
		}
		while (got < put && rand() % 3) {
			TAP_NEED(pop() == 1);
			TAP_NEED(chain.head == got * 5 % NUM);
			mgpu_vring_push(&vr, chain.head, got);
			got++;
			TAP_NEED(le16_to_cpu(vr.used->idx) == (u16)got);
			i = (got - 1) % NUM;
			TAP_NEED(le32_to_cpu(vr.used->ring[i].id) ==
				 chain.head);
			TAP_NEED(le32_to_cpu(vr.used->ring[i].len) == got - 1);
		}
		if (got == put)
			TAP_NEED(pop() == 0);
	}
}

static void every_size(void)
{
	u32 num;
	u16 i;

	for (num = 1; num <= 32768; num *= 2) {
		ring_new(num);
		for (i = 0; i + 1u < num; i++)
			desc(i, 0x1000, 1, NEXT, i + 1);
		desc(num - 1, 0x1000, 1, 0, 0);
		offer(0);
		if (num > MGPU_MAX_CHAIN) {
			TAP_EQ(pop(), -ELOOP);
			continue;
		}
		TAP_EQ(pop(), 1);
		TAP_EQ(chain.nr_in, num);
		mgpu_vring_push(&vr, 0, 0);
		/* A full ring is no jump. */
		desc(0, 0x1000, 1, 0, 0);
		for (i = 0; i < num; i++)
			offer(0);
		for (i = 0; i < num; i++)
			TAP_EQ(pop(), 1);
		TAP_EQ(pop(), 0);
	}
}

/* A guest that offers one buffer over and over has no more out than there are. */
static void more_than_there_are(void)
{
	unsigned int i, lap;

	ring_new(NUM);
	desc(0, 0x1000, 1, 0, 0);
	for (i = 0; i < NUM; i++)
		offer(0);
	for (i = 0; i < NUM; i++)
		TAP_EQ(pop(), 1);
	TAP_EQ(pop(), 0);
	offer(0);
	TAP_EQ(pop(), -ERANGE);
	TAP_EQ(vr.last_avail, NUM);
	for (lap = 0; lap < 3 * NUM; lap++) {
		mgpu_vring_push(&vr, 0, 0);
		TAP_EQ(pop(), 1);
		offer(0);
		TAP_EQ(pop(), -ERANGE);
	}
}

static void index_jump(void)
{
	ring_new(NUM);
	desc(0, 0x1000, 1, 0, 0);
	vr.avail->idx = cpu_to_le16(NUM);
	TAP_EQ(pop(), 1);
	vr.avail->idx = cpu_to_le16(NUM + 2);
	TAP_EQ(pop(), -ERANGE);
	vr.avail->idx = cpu_to_le16(0);		/* backwards */
	TAP_EQ(pop(), -ERANGE);
	vr.avail->idx = cpu_to_le16(0xffff);
	TAP_EQ(pop(), -ERANGE);
	TAP_EQ(vr.last_avail, 1);
}

static void head_out_of_range(void)
{
	static const u16 heads[] = { NUM, NUM + 1, 0x8000, 0xffff };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		ring_new(NUM);
		offer(heads[i]);
		TAP_EQ(pop(), -ERANGE);
		TAP_EQ(vr.last_avail, 0);
	}
}

static void next_out_of_range(void)
{
	ring_new(NUM);
	desc(0, 0x1000, 4, NEXT, NUM);
	offer(0);
	TAP_EQ(pop(), -ERANGE);
	desc(0, 0x1000, 4, NEXT, 0xffff);
	TAP_EQ(pop(), -ERANGE);
}

static void loops(void)
{
	u16 i;

	ring_new(NUM);
	desc(0, 0x1000, 4, NEXT, 0);
	offer(0);
	TAP_EQ(pop(), -ELOOP);

	ring_new(NUM);
	for (i = 0; i < NUM; i++)
		desc(i, 0x1000, 4, NEXT, (i + 1) % NUM);
	offer(5);
	TAP_EQ(pop(), -ELOOP);

	/* Loops of nothing must end too. */
	ring_new(NUM);
	desc(0, 0, 0, NEXT, 1);
	desc(1, 0, 0, NEXT, 0);
	offer(0);
	TAP_EQ(pop(), -ELOOP);
}

static void read_after_write(void)
{
	ring_new(NUM);
	desc(0, 0x1000, 4, WRITE | NEXT, 1);
	desc(1, 0x2000, 4, 0, 0);
	offer(0);
	TAP_EQ(pop(), -EINVAL);
}

static void address_wraps(void)
{
	ring_new(NUM);
	desc(0, ~0ull, 2, 0, 0);
	offer(0);
	TAP_EQ(pop(), -EFAULT);
	desc(0, ~0ull - 0xfff, 0x1000, 0, 0);
	TAP_EQ(pop(), -EFAULT);
	desc(0, ~0ull - 0x1000, 0x1000, 0, 0);
	TAP_EQ(pop(), 1);
}

static void indirect_chain(void)
{
	u64 t = GUEST_BASE + 0x100;

	ring_new(NUM);
	desc(2, t, 4 * sizeof(struct vring_desc), INDIR, 0);
	idesc(t, 0, 0x1000, 10, NEXT, 3);
	idesc(t, 3, 0x2000, 20, NEXT, 1);
	idesc(t, 1, 0x3000, 30, WRITE, 0);
	offer(2);
	TAP_EQ(pop(), 1);
	TAP_EQ(chain.head, 2);
	TAP_EQ(chain.nr_in, 2);
	TAP_EQ(chain.nr_out, 1);
	TAP_EQ(chain.in_len, 30);
	TAP_EQ(chain.out_len, 30);
	TAP_EQ(chain.segs[1].addr, 0x2000);
	TAP_EQ(chain.segs[2].addr, 0x3000);
	TAP_EQ(reads, 3);
}

/* Section 2.7.5.3.2: the WRITE flag of the referring descriptor is ignored. */
static void indirect_write_flag(void)
{
	u64 t = GUEST_BASE;

	ring_new(NUM);
	desc(0, t, sizeof(struct vring_desc), INDIR | WRITE, 0);
	idesc(t, 0, 0x1000, 10, 0, 0);
	offer(0);
	TAP_EQ(pop(), 1);
	TAP_EQ(chain.nr_in, 1);
	TAP_EQ(chain.nr_out, 0);
}

/* Section 2.7.5.3.1 allows direct descriptors in front of the table. */
static void direct_then_indirect(void)
{
	u64 t = GUEST_BASE;

	ring_new(NUM);
	desc(0, 0x500, 5, NEXT, 1);
	desc(1, t, 2 * sizeof(struct vring_desc), INDIR, 0);
	idesc(t, 0, 0x1000, 10, NEXT, 1);
	idesc(t, 1, 0x2000, 20, WRITE, 0);
	offer(0);
	TAP_EQ(pop(), 1);
	TAP_EQ(chain.nr_in, 2);
	TAP_EQ(chain.nr_out, 1);
	TAP_EQ(chain.in_len, 15);
}

static void indirect_longest(void)
{
	u64 t = GUEST_BASE;
	u32 i, n = MGPU_MAX_INDIRECT;

	ring_new(NUM);
	desc(0, t, n * sizeof(struct vring_desc), INDIR, 0);
	for (i = 0; i < n; i++)
		idesc(t, i, 0x1000, 1, (i + 1 < n ? NEXT : 0) |
		      (i >= n / 2 ? WRITE : 0), i + 1);
	offer(0);
	TAP_EQ(pop(), 1);
	TAP_EQ(chain.nr_in, n / 2);
	TAP_EQ(chain.nr_out, n / 2);

	/* With all direct descriptors in front: the longest chain there is. */
	ring_new(MGPU_VQ_CONTROL_SIZE);
	for (i = 0; i < MGPU_VQ_CONTROL_SIZE - 1; i++)
		desc(i, 0x2000, 1, NEXT, i + 1);
	desc(i, t, n * sizeof(struct vring_desc), INDIR, 0);
	for (i = 0; i < n; i++)
		idesc(t, i, 0x1000, 1, i + 1 < n ? NEXT : 0, i + 1);
	offer(0);
	TAP_EQ(pop(), 1);
	TAP_EQ(chain.nr_in, n + MGPU_VQ_CONTROL_SIZE - 1);
}

static void indirect_too_long(void)
{
	ring_new(NUM);
	desc(0, GUEST_BASE, (MGPU_MAX_INDIRECT + 1) *
			    sizeof(struct vring_desc), INDIR, 0);
	offer(0);
	TAP_EQ(pop(), -E2BIG);
	desc(0, GUEST_BASE, ~0u & ~15u, INDIR, 0);
	TAP_EQ(pop(), -E2BIG);
	TAP_EQ(reads, 0);
}

static void indirect_odd_length(void)
{
	static const u32 lens[] = { 0, 1, 15, 17, 24, 31 };
	unsigned int i;

	ring_new(NUM);
	offer(0);
	for (i = 0; i < 6; i++) {
		desc(0, GUEST_BASE, lens[i], INDIR, 0);
		TAP_EQ(pop(), -EINVAL);
	}
	TAP_EQ(reads, 0);
}

static void indirect_in_indirect(void)
{
	u64 t = GUEST_BASE;

	ring_new(NUM);
	desc(0, t, 2 * sizeof(struct vring_desc), INDIR, 0);
	idesc(t, 0, t + 0x100, 16, INDIR, 0);
	offer(0);
	TAP_EQ(pop(), -EINVAL);
	idesc(t, 0, 0x1000, 16, NEXT, 1);
	idesc(t, 1, t, 32, INDIR, 0);
	TAP_EQ(pop(), -EINVAL);
}

static void indirect_with_next(void)
{
	u64 t = GUEST_BASE;

	ring_new(NUM);
	desc(0, t, sizeof(struct vring_desc), INDIR | NEXT, 1);
	idesc(t, 0, 0x1000, 16, 0, 0);
	desc(1, 0x1000, 1, WRITE, 0);
	offer(0);
	TAP_EQ(pop(), -EINVAL);
}

static void indirect_loop(void)
{
	u64 t = GUEST_BASE;
	u32 i, n = MGPU_MAX_INDIRECT;

	ring_new(NUM);
	desc(0, t, n * sizeof(struct vring_desc), INDIR, 0);
	for (i = 0; i < n; i++)
		idesc(t, i, 0x1000, 1, NEXT, (i + 1) % n);
	offer(0);
	TAP_EQ(pop(), -ELOOP);
	TAP_CHECK(reads <= n);

	idesc(t, 0, 0x1000, 1, NEXT, 0);
	desc(0, t, sizeof(struct vring_desc), INDIR, 0);
	TAP_EQ(pop(), -ELOOP);
}

static void indirect_next_out_of_range(void)
{
	u64 t = GUEST_BASE;

	ring_new(NUM);
	desc(0, t, 2 * sizeof(struct vring_desc), INDIR, 0);
	idesc(t, 0, 0x1000, 1, NEXT, 2);
	offer(0);
	TAP_EQ(pop(), -ERANGE);
	idesc(t, 0, 0x1000, 1, NEXT, 0xffff);
	TAP_EQ(pop(), -ERANGE);
}

static void indirect_not_in_memory(void)
{
	ring_new(NUM);
	desc(0, GUEST_BASE + GUEST_SIZE - 8, 16, INDIR, 0);
	offer(0);
	TAP_EQ(pop(), -EFAULT);
	desc(0, 0, 16, INDIR, 0);
	TAP_EQ(pop(), -EFAULT);
	/* The table itself wraps around the address space. */
	desc(0, ~0ull - 15, 32, INDIR, 0);
	reads = 0;
	TAP_EQ(pop(), -EFAULT);
	TAP_EQ(reads, 0);
	TAP_EQ(vr.last_avail, 0);
}

/* A broken entry is not skipped: every later pop sees it again. */
static void broken_stays_broken(void)
{
	ring_new(NUM);
	desc(1, 0x1000, 1, 0, 0);
	offer(NUM);
	offer(1);
	TAP_EQ(pop(), -ERANGE);
	TAP_EQ(pop(), -ERANGE);
	TAP_EQ(vr.last_avail, 0);
	TAP_EQ(le16_to_cpu(vr.used->idx), 0);
}

static void notifications(void)
{
	ring_new(NUM);
	desc(0, 0x1000, 1, 0, 0);
	TAP_CHECK(mgpu_vring_wants_interrupt(&vr));
	vr.avail->flags = cpu_to_le16(VRING_AVAIL_F_NO_INTERRUPT);
	TAP_CHECK(!mgpu_vring_wants_interrupt(&vr));
	vr.avail->flags = cpu_to_le16(0xfffe);
	TAP_CHECK(mgpu_vring_wants_interrupt(&vr));

	mgpu_vring_notify_disable(&vr);
	TAP_EQ(le16_to_cpu(vr.used->flags), VRING_USED_F_NO_NOTIFY);
	TAP_CHECK(!mgpu_vring_notify_enable(&vr));
	TAP_EQ(le16_to_cpu(vr.used->flags), 0);

	/* Buffers that came while doorbells were off are not missed. */
	mgpu_vring_notify_disable(&vr);
	offer(0);
	TAP_CHECK(mgpu_vring_notify_enable(&vr));
	TAP_EQ(pop(), 1);
	TAP_CHECK(!mgpu_vring_notify_enable(&vr));
}

/* Random bytes everywhere: pop always ends and stays inside its bounds. */
static void random_rings(void)
{
	unsigned int round, i, popped = 0, broken = 0;
	u64 in, out;
	u32 s;
	int ret;

	srand(4711);
	for (round = 0; round < 3000; round++) {
		ring_new(1u << rand() % 7);
		for (i = 0; i < vr.num; i++)
			desc(i, rand() % 8 ? GUEST_BASE + rand() % GUEST_SIZE :
			     ~0ull - rand() % 64,
			     rand() % 4 ? rand() % 512 / 16 * 16 : rand(),
			     rand() % 8, rand() % (vr.num + 1));
		for (i = 0; i < GUEST_SIZE / sizeof(struct vring_desc); i++)
			idesc(GUEST_BASE, i, rand(), rand() % 4096,
			      rand() % 32 ? rand() % 4 : rand() % 8,
			      rand() % 24);
		for (i = 0; i < vr.num; i++)
			vr.avail->ring[i] = cpu_to_le16(rand() % (vr.num + 1));
		vr.avail->idx = cpu_to_le16(rand() % (vr.num + 2));
		for (i = 0; i < 100u; i++) {
			ret = pop();
			if (ret <= 0)
				break;
			popped++;
			TAP_NEED(chain.head < vr.num);
			TAP_NEED(chain.nr_in + chain.nr_out <= MGPU_MAX_CHAIN);
			for (in = out = 0, s = 0;
			     s < chain.nr_in + chain.nr_out; s++) {
				TAP_CHECK(chain.segs[s].len);
				TAP_CHECK(chain.segs[s].addr +
					  chain.segs[s].len >=
					  chain.segs[s].addr);
				if (s < chain.nr_in)
					in += chain.segs[s].len;
				else
					out += chain.segs[s].len;
			}
			TAP_EQ(chain.in_len, in);
			TAP_EQ(chain.out_len, out);
			mgpu_vring_push(&vr, chain.head, 0);
		}
		TAP_NEED(i < 100);
		broken += ret < 0;
	}
	/* Both outcomes were exercised. */
	TAP_CHECK(popped > 100);
	TAP_CHECK(broken > 100);
}

int main(void)
{
	tap_run(empty, "an empty ring gives nothing");
	tap_run(direct_chain, "a direct chain arrives in order");
	tap_run(write_only, "a chain may have nothing to read");
	tap_run(empty_segments, "descriptors of no bytes leave no segment");
	tap_run(lengths_add_up, "lengths beyond 4 GiB add up");
	tap_run(order_of_the_ring, "buffers come in the ring's order");
	tap_run(wrap_around, "ring and indices wrap around");
	tap_run(every_size, "every size of ring works, long chains end");
	tap_run(more_than_there_are, "no more buffers are out than the queue has");
	tap_run(index_jump, "an available index that jumps is refused");
	tap_run(head_out_of_range, "a head outside of the table is refused");
	tap_run(next_out_of_range, "a link out of the table is refused");
	tap_run(loops, "loops are refused");
	tap_run(read_after_write, "readable after writable is refused");
	tap_run(address_wraps, "addresses that wrap are refused");
	tap_run(indirect_chain, "an indirect table is followed");
	tap_run(indirect_write_flag, "WRITE on an indirect reference is ignored");
	tap_run(direct_then_indirect, "a table may end a direct chain");
	tap_run(indirect_longest, "a table of 1,024 entries is accepted");
	tap_run(indirect_too_long, "a longer table is refused unread");
	tap_run(indirect_odd_length, "a table of odd length is refused unread");
	tap_run(indirect_in_indirect, "a table in a table is refused");
	tap_run(indirect_with_next, "INDIRECT with NEXT is refused");
	tap_run(indirect_loop, "a loop in a table is refused");
	tap_run(indirect_next_out_of_range, "a link out of a table is refused");
	tap_run(indirect_not_in_memory, "a table outside of memory is refused");
	tap_run(broken_stays_broken, "a broken entry is not skipped");
	tap_run(notifications, "notifications are asked for and not lost");
	tap_run(random_rings, "random rings end and stay within bounds");
	ring_free();
	return tap_done();
}
