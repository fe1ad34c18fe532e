// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device side of a split virtqueue (VIRTIO 1.2, section 2.7).  Pure: builds in
 * user space too.  The guest is hostile: it may change any byte of the rings
 * at any time.
 */
#include "vring.h"

struct walk {
	struct mgpu_chain *chain;
	u32 limit;	/* descriptors left before it must be a loop */
};

static int add_desc(struct walk *w, const struct vring_desc *d, u16 flags)
{
	struct mgpu_chain *c = w->chain;
	u32 len = le32_to_cpu(d->len);
	u64 addr = le64_to_cpu(d->addr), end;
	struct mgpu_seg *seg;

	if (!w->limit--)
		return -ELOOP;
	if (check_add_overflow(addr, (u64)len, &end))
		return -EFAULT;

	if (flags & VRING_DESC_F_WRITE) {
		c->out_len += len;
	} else {
		/* Section 2.7.4.2: what the device reads comes first. */
		if (c->nr_out)
			return -EINVAL;
		c->in_len += len;
	}
	if (!len)
		return 0;

	seg = &c->segs[c->nr_in + c->nr_out];
	seg->addr = addr;
	seg->len = len;
	if (flags & VRING_DESC_F_WRITE)
		c->nr_out++;
	else
		c->nr_in++;
	return 0;
}

static int walk_indirect(struct walk *w, const struct vring_desc *table_desc,
			 mgpu_guest_read_fn read, void *ctx)
{
	u32 bytes = le32_to_cpu(table_desc->len);
	u64 table = le64_to_cpu(table_desc->addr), end;
	struct vring_desc d;
	u32 nr, i = 0, seen;
	u16 flags;
	int ret;

	if (!bytes || bytes % sizeof(d))
		return -EINVAL;
	nr = bytes / sizeof(d);
	if (nr > MGPU_MAX_INDIRECT)
		return -E2BIG;
	if (check_add_overflow(table, (u64)bytes, &end))
		return -EFAULT;

	for (seen = 0; seen < nr; seen++) {
		ret = read(ctx, table + (u64)i * sizeof(d), &d, sizeof(d));
		if (ret)
			return ret;
		flags = le16_to_cpu(d.flags);
		if (flags & VRING_DESC_F_INDIRECT)
			return -EINVAL;
		ret = add_desc(w, &d, flags);
		if (ret)
			return ret;
		if (!(flags & VRING_DESC_F_NEXT))
			return 0;
		i = le16_to_cpu(d.next);
		if (i >= nr)
			return -ERANGE;
	}
	return -ELOOP;
}

/**
 * mgpu_vring_pop - take the next buffer
 * @vr: queue
 * @chain: where to describe it; @chain->segs is the caller's
 * @read: reads an indirect table
 * @ctx: for @read
 *
 * Return: 1 with @chain filled in, 0 when there is none, or a negative errno
 * when the ring is broken: -ERANGE (index outside of the table or available
 * index jumped), -ELOOP (chain without end), -EINVAL (wrong flags), -E2BIG,
 * -EFAULT or what @read returned.
 */
int mgpu_vring_pop(struct mgpu_vring *vr, struct mgpu_chain *chain,
		   mgpu_guest_read_fn read, void *ctx)
{
	struct walk w = { .chain = chain, .limit = MGPU_MAX_CHAIN };
	u16 avail_idx, i, flags, seen;
	struct vring_desc d;
	int ret;

	avail_idx = le16_to_cpu(READ_ONCE(vr->avail->idx));
	if (avail_idx == vr->last_avail)
		return 0;
	if ((u16)(avail_idx - vr->last_avail) > vr->num)
		return -ERANGE;
	/* The entry is valid only once the index is seen. */
	smp_rmb();

	i = le16_to_cpu(READ_ONCE(vr->avail->ring[vr->last_avail %
						  vr->num]));
	if (i >= vr->num)
		return -ERANGE;

	chain->head = i;
	chain->nr_in = 0;
	chain->nr_out = 0;
	chain->in_len = 0;
	chain->out_len = 0;

	for (seen = 0; seen < vr->num; seen++) {
		d.addr = READ_ONCE(vr->desc[i].addr);
		d.len = READ_ONCE(vr->desc[i].len);
		d.flags = READ_ONCE(vr->desc[i].flags);
		d.next = READ_ONCE(vr->desc[i].next);
		flags = le16_to_cpu(d.flags);

		if (flags & VRING_DESC_F_INDIRECT) {
			/* Section 2.7.5.3.1: never together with NEXT. */
			if (flags & VRING_DESC_F_NEXT)
				return -EINVAL;
			ret = walk_indirect(&w, &d, read, ctx);
		} else {
			ret = add_desc(&w, &d, flags);
		}
		if (ret)
			return ret;

		if (!(flags & VRING_DESC_F_NEXT)) {
			vr->last_avail++;
			return 1;
		}
		i = le16_to_cpu(d.next);
		if (i >= vr->num)
			return -ERANGE;
	}
	return -ELOOP;
}

/**
 * mgpu_vring_push - hand a buffer back
 * @vr: queue
 * @head: from mgpu_chain
 * @len: bytes written to it
 */
void mgpu_vring_push(struct mgpu_vring *vr, u16 head, u32 len)
{
	struct vring_used_elem *e = &vr->used->ring[vr->used_idx % vr->num];

	WRITE_ONCE(e->id, cpu_to_le32(head));
	WRITE_ONCE(e->len, cpu_to_le32(len));
	vr->used_idx++;
	/* The element must be there before the index says so. */
	smp_store_release(&vr->used->idx, cpu_to_le16(vr->used_idx));
}

/**
 * mgpu_vring_wants_interrupt - whether the driver asks for used buffer
 * notifications
 * @vr: queue; mgpu_vring_push() was called before
 */
bool mgpu_vring_wants_interrupt(const struct mgpu_vring *vr)
{
	/* The index must be written before the flag is read. */
	smp_mb();
	return !(le16_to_cpu(READ_ONCE(vr->avail->flags)) &
		 VRING_AVAIL_F_NO_INTERRUPT);
}

/**
 * mgpu_vring_notify_disable - ask the driver for no doorbells
 * @vr: queue
 */
void mgpu_vring_notify_disable(struct mgpu_vring *vr)
{
	WRITE_ONCE(vr->used->flags, cpu_to_le16(VRING_USED_F_NO_NOTIFY));
}

/**
 * mgpu_vring_notify_enable - ask the driver for doorbells again
 * @vr: queue
 *
 * Return: true when a buffer came in the meantime, for which there may be no
 * doorbell.
 */
bool mgpu_vring_notify_enable(struct mgpu_vring *vr)
{
	WRITE_ONCE(vr->used->flags, 0);
	/* The flag must be written before the index is read. */
	smp_mb();
	return le16_to_cpu(READ_ONCE(vr->avail->idx)) != vr->last_avail;
}
