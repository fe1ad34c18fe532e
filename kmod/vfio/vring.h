/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_VRING_H
#define MGPU_VRING_H

#include <linux/virtio_ring.h>

#include "vfio/device.h"
#include "pure.h"

/**
 * struct mgpu_vring - device side of a split virtqueue
 * @num: entries, a power of two
 * @last_avail: index of the next entry to take
 * @used_idx: index of the next used entry to write
 * @desc: descriptor table, @num entries, shared with the guest
 * @avail: available ring, shared with the guest
 * @used: used ring, shared with the guest
 *
 * The functions read each field that the guest can write once, and then check it.
 * Source: VIRTIO 1.2, section 2.7.
 */
struct mgpu_vring {
	u16 num;
	u16 last_avail;
	u16 used_idx;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
};

/**
 * struct mgpu_seg - a piece of guest memory
 * @addr: guest (I/O virtual) address
 * @len: bytes, not 0
 */
struct mgpu_seg {
	u64 addr;
	u32 len;
};

/**
 * struct mgpu_chain - one buffer that the guest made available
 * @head: index of the first descriptor, for the used ring
 * @nr_in: number of segments that the device reads; they come first
 * @nr_out: number of segments that the device writes
 * @in_len: bytes that the device reads
 * @out_len: bytes that the device may write
 * @segs: MGPU_MAX_CHAIN entries, provided by the caller
 */
struct mgpu_chain {
	u16 head;
	u32 nr_in;
	u32 nr_out;
	u64 in_len;
	u64 out_len;
	struct mgpu_seg *segs;
};

#define MGPU_MAX_CHAIN	(MGPU_MAX_INDIRECT + MGPU_VQ_CONTROL_SIZE)

/* Read guest memory.  Return 0 or a negative errno. */
typedef int (*mgpu_guest_read_fn)(void *ctx, u64 addr, void *buf, size_t len);

int mgpu_vring_pop(struct mgpu_vring *vr, struct mgpu_chain *chain,
		   mgpu_guest_read_fn read, void *ctx);
void mgpu_vring_push(struct mgpu_vring *vr, u16 head, u32 len);
u16 mgpu_vring_outstanding(const struct mgpu_vring *vr);
bool mgpu_vring_wants_interrupt(const struct mgpu_vring *vr);
void mgpu_vring_notify_disable(struct mgpu_vring *vr);
bool mgpu_vring_notify_enable(struct mgpu_vring *vr);

#endif /* MGPU_VRING_H */
