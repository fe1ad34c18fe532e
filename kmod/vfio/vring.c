// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device side of a split virtqueue (VIRTIO 1.2, section 2.7).  Pure: builds in
 * user space too.  The guest is hostile: it may change any byte of the rings
 * at any time.
 */
#include "vfio/vring.h"

/*
 * With VERSION_1 a ring's fields are little-endian.  The guest may change each field
 * at any time, so each is read once.
 */
static u16 get16(const __virtio16 *p)
{
	return le16_to_cpu((__force __le16)READ_ONCE(*p));
}

static u32 get32(const __virtio32 *p)
{
	return le32_to_cpu((__force __le32)READ_ONCE(*p));
}

static u64 get64(const __virtio64 *p)
{
	return le64_to_cpu((__force __le64)READ_ONCE(*p));
}

static __virtio16 ring16(u16 val)
{
	return (__force __virtio16)cpu_to_le16(val);
}

static __virtio32 ring32(u32 val)
{
	return (__force __virtio32)cpu_to_le32(val);
}

/* A descriptor in the CPU's byte order. */
struct desc {
	u64 addr;
	u32 len;
	u16 flags;
	u16 next;
};

static void get_desc(const struct vring_desc *from, struct desc *d)
{
	d->addr = get64(&from->addr);
	d->len = get32(&from->len);
	d->flags = get16(&from->flags);
	d->next = get16(&from->next);
}

struct walk {
	struct mgpu_chain *chain;
	u32 limit;	/* descriptors left; a longer chain is a loop */
};

static int add_desc(struct walk *w, const struct desc *d)
{
	struct mgpu_chain *c = w->chain;
	struct mgpu_seg *seg;
	u64 end;

	if (!w->limit--)
		return -ELOOP;
	if (check_add_overflow(d->addr, (u64)d->len, &end))
		return -EFAULT;

	if (d->flags & VRING_DESC_F_WRITE) {
		c->out_len += d->len;
	} else {
		/* Section 2.7.4.2: device-readable descriptors come first. */
		if (c->nr_out)
			return -EINVAL;
		c->in_len += d->len;
	}
	if (!d->len)
		return 0;

	seg = &c->segs[c->nr_in + c->nr_out];
	seg->addr = d->addr;
	seg->len = d->len;
	if (d->flags & VRING_DESC_F_WRITE)
		c->nr_out++;
	else
		c->nr_in++;
	return 0;
}

static int walk_indirect(struct walk *w, const struct desc *table,
			 mgpu_guest_read_fn read, void *ctx)
{
	struct vring_desc wire;
	u32 nr, i = 0, seen;
	struct desc d;
	u64 end;
	int ret;

	if (!table->len || table->len % sizeof(wire))
		return -EINVAL;
	nr = table->len / sizeof(wire);
	if (nr > MGPU_MAX_INDIRECT)
		return -E2BIG;
	if (check_add_overflow(table->addr, (u64)table->len, &end))
		return -EFAULT;

	for (seen = 0; seen < nr; seen++) {
		ret = read(ctx, table->addr + (u64)i * sizeof(wire), &wire,
			   sizeof(wire));
		if (ret)
			return ret;
		get_desc(&wire, &d);
		if (d.flags & VRING_DESC_F_INDIRECT)
			return -EINVAL;
		ret = add_desc(w, &d);
		if (ret)
			return ret;
		if (!(d.flags & VRING_DESC_F_NEXT))
			return 0;
		i = d.next;
		if (i >= nr)
			return -ERANGE;
	}
	return -ELOOP;
}

/**
 * mgpu_vring_pop - take the next buffer
 * @vr: queue
 * @chain: result; the caller provides @chain->segs
 * @read: reads an indirect table; the ring is not accessed afterwards
 * @ctx: argument of @read
 *
 * Return: 1 with @chain filled in, 0 if there is no buffer, or a negative errno if the
 * ring is broken: -ERANGE (index outside of the table, available index jumped, or more
 * buffers in flight than the queue has entries), -ELOOP (endless chain), -EINVAL
 * (invalid flags), -E2BIG, -EFAULT or the error of @read.
 */
int mgpu_vring_pop(struct mgpu_vring *vr, struct mgpu_chain *chain,
		   mgpu_guest_read_fn read, void *ctx)
{
	struct walk w = { .chain = chain, .limit = MGPU_MAX_CHAIN };
	u16 avail_idx, i, seen;
	struct desc d;
	int ret;

	avail_idx = get16(&vr->avail->idx);
	if (avail_idx == vr->last_avail)
		return 0;
	if ((u16)(avail_idx - vr->last_avail) > vr->num)
		return -ERANGE;
	/* All buffers are in flight: the driver offers a buffer twice. */
	if ((u16)(vr->last_avail - vr->used_idx) >= vr->num)
		return -ERANGE;
	/* Read the entry after the index: the entry is valid only then. */
	smp_rmb();

	i = get16(&vr->avail->ring[vr->last_avail % vr->num]);
	if (i >= vr->num)
		return -ERANGE;

	chain->head = i;
	chain->nr_in = 0;
	chain->nr_out = 0;
	chain->in_len = 0;
	chain->out_len = 0;

	for (seen = 0; seen < vr->num; seen++) {
		get_desc(&vr->desc[i], &d);
		if (d.flags & VRING_DESC_F_INDIRECT) {
			/* Section 2.7.5.3.1: never together with NEXT. */
			if (d.flags & VRING_DESC_F_NEXT)
				return -EINVAL;
			ret = walk_indirect(&w, &d, read, ctx);
		} else {
			ret = add_desc(&w, &d);
		}
		if (ret)
			return ret;

		if (!(d.flags & VRING_DESC_F_NEXT)) {
			vr->last_avail++;
			return 1;
		}
		i = d.next;
		if (i >= vr->num)
			return -ERANGE;
	}
	return -ELOOP;
}

/**
 * mgpu_vring_push - return a buffer to the driver
 * @vr: queue
 * @head: head of the buffer's struct mgpu_chain
 * @len: bytes written to the buffer
 */
void mgpu_vring_push(struct mgpu_vring *vr, u16 head, u32 len)
{
	struct vring_used_elem *e = &vr->used->ring[vr->used_idx % vr->num];

	WRITE_ONCE(e->id, ring32(head));
	WRITE_ONCE(e->len, ring32(len));
	vr->used_idx++;
	/* Write the element before the index. */
	smp_store_release(&vr->used->idx, ring16(vr->used_idx));
}

/**
 * mgpu_vring_outstanding - count the buffers that the driver waits for
 * @vr: queue
 *
 * Return: number of buffers that are available and not used; any number if the
 * driver's index is invalid.
 */
u16 mgpu_vring_outstanding(const struct mgpu_vring *vr)
{
	return get16(&vr->avail->idx) - vr->used_idx;
}

/**
 * mgpu_vring_wants_interrupt - test whether the driver asks for used buffer
 * notifications
 * @vr: queue; the caller has called mgpu_vring_push()
 *
 * Return: true if the driver asks for them.
 */
bool mgpu_vring_wants_interrupt(const struct mgpu_vring *vr)
{
	/* Write the index before reading the flag. */
	smp_mb();
	return !(get16(&vr->avail->flags) & VRING_AVAIL_F_NO_INTERRUPT);
}

/**
 * mgpu_vring_notify_disable - ask the driver to send no doorbells
 * @vr: queue
 */
void mgpu_vring_notify_disable(struct mgpu_vring *vr)
{
	WRITE_ONCE(vr->used->flags, ring16(VRING_USED_F_NO_NOTIFY));
}

/**
 * mgpu_vring_notify_enable - ask the driver to send doorbells again
 * @vr: queue
 *
 * Return: true if a buffer is available already; the driver may not have sent a
 * doorbell for it.
 */
bool mgpu_vring_notify_enable(struct mgpu_vring *vr)
{
	WRITE_ONCE(vr->used->flags, 0);
	/* Write the flag before reading the index. */
	smp_mb();
	return get16(&vr->avail->idx) != vr->last_avail;
}
