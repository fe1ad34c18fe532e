// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations of a program on a vGPU.  The guest's memory has fixed places for the rings,
 * commands, answers and tables, so that both threads can write there at the same time,
 * as a hostile guest's processors do.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/pci_regs.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../include/uapi/linux/mgpu_compute.h"
#include "../../../kmod/vfio/device.h"
#include "exec.h"
#include "virgl.h"

/* Places in the guest's memory. */
#define RAM		(8u << 20)
#define CHUNK		(RAM / CHUNKS)
#define RING(q)		(0x4000u * (q))	/* descriptors, available, used: a page each */
#define REQ(slot)	(0x10000u + 0x2000u * (slot))
#define RESP(slot)	(0x40000u + 0x1000u * (slot))
#define TABLE(slot)	(0x50000u + 0x4000u * (slot))
#define SLOTS		16		/* of commands */
#define REQ_MAX		0x2000u
#define DATA		CHUNK		/* the rest: backing of resources */

#define ALIAS		0x100000000ull	/* guest address of the second mapping */
#define ALIAS_OF	5		/* the chunk that is mapped there, too */

#define HIGH_FD		700		/* numbers that no other descriptor gets */
#define MANY		12		/* chains in flight for which a thread waits */
#define PATIENCE	(10 * vmm_slow())	/* ms that a thread waits for answers */

#define CFG		VFIO_PCI_CONFIG_REGION_INDEX

/* State of a thread that executes programs. */
struct thread {
	struct exec *x;
	struct nl *nl;
	struct args a;
};

static void beat(struct exec *x)
{
	__atomic_add_fetch(&x->progress->beat, 1, __ATOMIC_RELAXED);
}

/* ---- registers ---- */

#define REG(field)	offsetof(struct virtio_pci_common_cfg, field)

static void common(struct exec *x, uint32_t off, uint32_t len, uint32_t val)
{
	vm_write(&x->vm, MGPU_BAR_VIRTIO, MGPU_COMMON_OFF + off, &val, len);
}

static const uint64_t features[] = {
	VMM_FEATURES,
	VMM_FEATURES | VMM_F(VIRTIO_GPU_F_VIRGL) | VMM_F(VIRTIO_GPU_F_CONTEXT_INIT),
	GL_FEATURES,
	VMM_F(VIRTIO_F_VERSION_1) | VMM_F(VIRTIO_F_ACCESS_PLATFORM),
	~0ull,
	0,
};

/* The driver's way up to DRIVER_OK; arguments spoil single steps. */
static void start(struct thread *t)
{
	struct exec *x = t->x;
	uint8_t which = arg(&t->a), spoil = arg(&t->a), size = arg(&t->a);
	uint64_t f = features[which % ARRAY_LEN(features)], addr;
	uint32_t status = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER;
	unsigned int q;

	if (!(spoil & 1))
		common(x, REG(device_status), 1, 0);
	common(x, REG(device_status), 1, status);
	common(x, REG(guest_feature_select), 4, 0);
	common(x, REG(guest_feature), 4, (uint32_t)f);
	common(x, REG(guest_feature_select), 4, 1);
	common(x, REG(guest_feature), 4, (uint32_t)(f >> 32));
	status |= VIRTIO_CONFIG_S_FEATURES_OK;
	common(x, REG(device_status), 1, status);
	if (!(spoil & 2))
		common(x, REG(msix_config), 2, 0);
	for (q = 0; q < VMM_NR_VQS; q++) {
		common(x, REG(queue_select), 2, q);
		if (!(spoil & 2))
			common(x, REG(queue_msix_vector), 2, q + 1);
		if (size)
			common(x, REG(queue_size), 2, 1u << size % 8);
		addr = VMM_RAM_BASE + RING(q) + (spoil & 4 ? 0x800000 - 0x10000 : 0);
		common(x, REG(queue_desc_lo), 4, (uint32_t)addr);
		common(x, REG(queue_desc_hi), 4, (uint32_t)(addr >> 32));
		addr += 0x1000;
		common(x, REG(queue_avail_lo), 4, (uint32_t)addr);
		common(x, REG(queue_avail_hi), 4, (uint32_t)(addr >> 32));
		addr += 0x1000;
		common(x, REG(queue_used_lo), 4, (uint32_t)addr);
		common(x, REG(queue_used_hi), 4, (uint32_t)(addr >> 32));
		memset(x->vm.ram + RING(q), 0, 0x3000);
		x->sent[q] = 0;
		if (!(spoil & 8) || !q)
			common(x, REG(queue_enable), 2, 1);
	}
	common(x, REG(device_status), 1, status | VIRTIO_CONFIG_S_DRIVER_OK);
	if (spoil & 8)
		common(x, REG(queue_enable), 2, 1);
}

static void status(struct thread *t)
{
	common(t->x, REG(device_status), 1, arg(&t->a));
}

static void vfio_reset(struct thread *t)
{
	ioctl(t->x->vm.device, VFIO_DEVICE_RESET);
}

static uint32_t width(struct args *a)
{
	static const uint32_t w[] = { 4, 2, 1, 8, 3, 5, 64, 4096 };

	return w[arg(a) % ARRAY_LEN(w)];
}

static void access_region(struct thread *t, unsigned int region, bool write,
			  uint64_t off)
{
	uint32_t len = width(&t->a), val[2];
	uint8_t buf[4096];

	if (!write) {
		vm_read(&t->x->vm, region, off, buf, len);
		return;
	}
	val[0] = arg_num(&t->a);
	val[1] = arg_num(&t->a);
	memset(buf, (int)val[1], sizeof(buf));
	memcpy(buf, val, sizeof(val));
	vm_write(&t->x->vm, region, off, buf, len);
}

static void config(struct thread *t)
{
	bool write = arg(&t->a) & 1;

	access_region(t, CFG, write, arg_num(&t->a));
}

static void bar(struct thread *t)
{
	static const uint32_t page[] = { MGPU_COMMON_OFF, MGPU_ISR_OFF, MGPU_DEVCFG_OFF,
					 MGPU_NOTIFY_OFF };
	uint8_t how = arg(&t->a), where = arg(&t->a);
	uint64_t off = arg_num(&t->a);
	unsigned int region = MGPU_BAR_VIRTIO;

	if (where < 0x80)
		off += page[where % ARRAY_LEN(page)];
	else
		region = where % 12;
	access_region(t, region, how & 1, off);
}

static void common_register(struct thread *t)
{
	static const struct {
		uint8_t off;
		uint8_t len;
	} reg[] = {
		{ REG(queue_select), 2 }, { REG(queue_size), 2 },
		{ REG(queue_enable), 2 }, { REG(queue_msix_vector), 2 },
		{ REG(msix_config), 2 }, { REG(device_status), 1 },
		{ REG(queue_desc_lo), 4 }, { REG(queue_desc_hi), 4 },
		{ REG(queue_avail_lo), 4 }, { REG(queue_avail_hi), 4 },
		{ REG(queue_used_lo), 4 }, { REG(queue_used_hi), 4 },
		{ REG(guest_feature_select), 4 }, { REG(guest_feature), 4 },
		{ REG(device_feature_select), 4 }, { REG(device_feature), 4 },
	};
	unsigned int i = arg(&t->a) % ARRAY_LEN(reg);
	uint32_t val = arg_num(&t->a);

	common(t->x, reg[i].off, arg(&t->a) ? 4 : reg[i].len, val);
}

static void irqs(struct thread *t)
{
	static const uint32_t action[] = {
		VFIO_IRQ_SET_ACTION_MASK, VFIO_IRQ_SET_ACTION_UNMASK,
		VFIO_IRQ_SET_ACTION_TRIGGER,
	};
	static const uint32_t data[] = {
		VFIO_IRQ_SET_DATA_NONE, VFIO_IRQ_SET_DATA_BOOL,
		VFIO_IRQ_SET_DATA_EVENTFD,
	};
	union {
		struct vfio_irq_set set;
		uint8_t bytes[sizeof(struct vfio_irq_set) + 8 * sizeof(int)];
	} u;
	uint8_t how, b;
	int fds[8];
	unsigned int i;

	memset(&u, 0, sizeof(u));
	u.set.argsz = sizeof(u);
	u.set.index = arg(&t->a) % (VFIO_PCI_NUM_IRQS + 1);
	how = arg(&t->a);
	u.set.flags = action[how % 3] | data[how / 3 % 3];
	if (how > 0xe0)
		u.set.flags = how;
	u.set.start = arg_num(&t->a);
	u.set.count = arg_num(&t->a);
	for (i = 0; i < 8; i++) {
		b = arg(&t->a);
		fds[i] = b < 0x80 ? t->x->fds[b % EVENTFDS] : b == 0xff ? 0x7ffffff : -1;
	}
	if (u.set.flags & VFIO_IRQ_SET_DATA_BOOL)
		for (i = 0; i < 8; i++)
			u.set.data[i] = fds[i] > 0;
	else
		memcpy(u.set.data, fds, sizeof(fds));
	ioctl(t->x->vm.device, VFIO_DEVICE_SET_IRQS, &u.set);
}

static void info(struct thread *t)
{
	struct vfio_device_gfx_plane_info plane = { .argsz = sizeof(plane) };
	struct vfio_region_info region = { .argsz = sizeof(region) };
	struct vfio_irq_info irq = { .argsz = sizeof(irq) };
	struct vfio_device_info dev = { .argsz = sizeof(dev) };
	uint8_t which = arg(&t->a);
	uint32_t n = arg_num(&t->a), size = arg(&t->a);
	int fd = t->x->vm.device;

	switch (which % 5) {
	case 0:
		region.index = n;
		region.argsz -= size;
		ioctl(fd, VFIO_DEVICE_GET_REGION_INFO, &region);
		break;
	case 1:
		irq.index = n;
		irq.argsz -= size;
		ioctl(fd, VFIO_DEVICE_GET_IRQ_INFO, &irq);
		break;
	case 2:
		dev.argsz -= size;
		ioctl(fd, VFIO_DEVICE_GET_INFO, &dev);
		break;
	case 3:
		plane.flags = n;
		plane.argsz -= size;
		ioctl(fd, VFIO_DEVICE_QUERY_GFX_PLANE, &plane);
		break;
	default:
		ioctl(fd, VFIO_DEVICE_RESET + n % 24, &plane);
		break;
	}
}

/* Calls with memory that is not there. */
static void bad_pointer(struct thread *t)
{
	uint8_t which = arg(&t->a);
	uint64_t region = t->x->vm.region[arg(&t->a) % ARRAY_LEN(t->x->vm.region)].offset;
	void *volatile nowhere = (void *)8;
	int fd = t->x->vm.device;
	ssize_t n;

	switch (which % 4) {
	case 0:
		n = pread(fd, nowhere, 64, (off_t)region);
		break;
	case 1:
		n = pwrite(fd, nowhere, 64, (off_t)region);
		break;
	case 2:
		n = ioctl(fd, VFIO_DEVICE_SET_IRQS, nowhere);
		break;
	default:
		n = ioctl(fd, VFIO_DEVICE_GET_REGION_INFO, nowhere);
		break;
	}
	(void)n;
}

/* ---- rings ---- */

static struct vring_desc *descs(struct exec *x, uint32_t at)
{
	return (struct vring_desc *)(x->vm.ram + at);
}

static struct vring_avail *avail(struct exec *x, unsigned int q)
{
	return (struct vring_avail *)(x->vm.ram + RING(q) + 0x1000);
}

static struct vring_used *used(struct exec *x, unsigned int q)
{
	return (struct vring_used *)(x->vm.ram + RING(q) + 0x2000);
}

static unsigned int queue_size(unsigned int q)
{
	return q == VMM_CONTROL ? MGPU_VQ_CONTROL_SIZE : MGPU_VQ_CURSOR_SIZE;
}

static void kick(struct exec *x, unsigned int q)
{
	uint16_t val = (uint16_t)q;

	vm_write(&x->vm, MGPU_BAR_VIRTIO, MGPU_NOTIFY_OFF + q * MGPU_NOTIFY_MULT, &val,
		 sizeof(val));
}

static uint16_t in_flight(struct exec *x, unsigned int q)
{
	return (uint16_t)(__atomic_load_n(&avail(x, q)->idx, __ATOMIC_RELAXED) -
			  __atomic_load_n(&used(x, q)->idx, __ATOMIC_ACQUIRE));
}

/* Wait until at most @most chains are in flight, for @ms at most. */
static void wait_for(struct exec *x, unsigned int q, unsigned int most, unsigned int ms)
{
	uint64_t end = now_ms() + ms;

	while (in_flight(x, q) > most && now_ms() < end) {
		beat(x);
		usleep(500);
	}
}

static void publish(struct exec *x, unsigned int q, uint16_t head)
{
	uint16_t idx = __atomic_fetch_add(&x->sent[q], 1, __ATOMIC_RELAXED);

	avail(x, q)->ring[idx % queue_size(q)] = head;
	__atomic_store_n(&avail(x, q)->idx, (uint16_t)(idx + 1), __ATOMIC_RELEASE);
}

static void kicks(struct thread *t)
{
	unsigned int q = arg(&t->a) % 4, n = 1 + arg(&t->a) % 32;

	while (n--)
		kick(t->x, q);
}

/* Some address of the guest's. */
static uint64_t address(struct args *a)
{
	uint8_t b = arg(a);

	if (b < 0x80)
		return VMM_RAM_BASE + DATA + 0x4000ull * b;
	switch (b >> 5) {
	case 4:
		return VMM_RAM_BASE + 0x8000ull * (b & 31);
	case 5:
		return ALIAS + 0x8000ull * (b & 31);
	case 6:
		return VMM_RAM_BASE + CHUNK * (b & 7u) + arg_num(a);
	default:
		return b & 1 ? arg_size(a) : VMM_RAM_BASE + RAM - arg_num(a);
	}
}

static void desc(struct thread *t)
{
	uint8_t where = arg(&t->a);
	unsigned int i = arg(&t->a);
	struct vring_desc *d;

	/* A queue's own descriptors, or those of an indirect table. */
	d = where < 2 ? &descs(t->x, RING(where))[i % queue_size(where)] :
			&descs(t->x, TABLE(where % SLOTS))[i];
	d->addr = where < 2 && i == 3 ? VMM_RAM_BASE + TABLE(2) : address(&t->a);
	d->len = arg_num(&t->a);
	d->flags = arg(&t->a);
	d->next = (uint16_t)arg_num(&t->a);
}

static void available(struct thread *t)
{
	unsigned int q = arg(&t->a) & 1, n;
	uint16_t head = (uint16_t)arg_num(&t->a);

	publish(t->x, q, head);
	n = arg_num(&t->a);
	if (n > 1)
		__atomic_store_n(&avail(t->x, q)->idx,
				 (uint16_t)(avail(t->x, q)->idx + n), __ATOMIC_RELEASE);
	avail(t->x, q)->flags = arg(&t->a) & 1;
}

/* Change words of commands, rings or tables while others read them. */
static void flip(struct thread *t)
{
	static const uint32_t area[] = { REQ(0), RING(0), TABLE(0), RING(1), DATA };
	unsigned int where = area[arg(&t->a) % ARRAY_LEN(area)];
	unsigned int at = arg(&t->a) * 4, n = arg(&t->a) * 64u, i;
	uint32_t mask = 1u << arg(&t->a) % 32;

	for (i = 0; i < n; i++) {
		/* The same word of each slot. */
		uint32_t off = where + at % 0x800 + (where == REQ(0) ? REQ_MAX * (i % SLOTS) : 0);
		uint32_t *p = (uint32_t *)(t->x->vm.ram + off);

		__atomic_fetch_xor(p, mask, __ATOMIC_RELAXED);
	}
}

static void pause_for(struct thread *t)
{
	unsigned int ms = arg(&t->a) % (3 * (unsigned int)PATIENCE);

	wait_for(t->x, VMM_CONTROL, 0, ms);
}

/* ---- commands ---- */

/* How a command goes into the ring: arguments of each command. */
struct delivery {
	uint8_t how;		/* flags below */
	uint8_t ctx;
};

#define FENCE		(1u << 0)
#define RING_IDX	(1u << 1)
#define RESP_SHIFT	2	/* length of the answer's buffer: 2 bits */
#define FORM_SHIFT	4	/* form of the chain: 2 bits */
#define QUIET		(1u << 6)	/* no doorbell */
#define CUT		(1u << 7)	/* another length */

static struct delivery delivery(struct args *a)
{
	struct delivery d = { .how = arg(a) };

	d.ctx = arg(a);
	return d;
}

static void chain_part(struct vring_desc *d, uint64_t addr, uint32_t len, uint16_t flags,
		       uint16_t next)
{
	d->addr = addr;
	d->len = len;
	d->flags = flags;
	d->next = next;
}

/* Put a command in a slot into the ring; @more bytes of DATA follow it. */
static void send(struct exec *x, unsigned int q, struct delivery how, unsigned int slot,
		 uint32_t len, uint32_t more)
{
	static const uint32_t resp_len[] = { 1112, 24, 0, 4096 };
	uint64_t req = VMM_RAM_BASE + REQ(slot), table = VMM_RAM_BASE + TABLE(slot);
	uint32_t resp = resp_len[how.how >> RESP_SHIFT & 3], cut;
	unsigned int form = how.how >> FORM_SHIFT & 3, n = 0, i;
	unsigned int base = slot * (queue_size(q) / SLOTS);
	bool indirect = form || queue_size(q) == SLOTS || more;
	struct vring_desc *d = indirect ? descs(x, TABLE(slot)) : &descs(x, RING(q))[base];
	unsigned int first = indirect ? 0 : base;
	/* The length of the first part. */
	const uint32_t part[] = { len, len / 2, 24, 1 };

	cut = len && part[form] <= len ? part[form] : len;
	chain_part(&d[n], req, cut, VRING_DESC_F_NEXT, (uint16_t)(first + n + 1));
	n++;
	if (cut < len) {
		chain_part(&d[n], req + cut, len - cut, VRING_DESC_F_NEXT,
			   (uint16_t)(first + n + 1));
		n++;
	}
	/* A long stream is the data, in parts of a chunk. */
	for (i = 0; more; i++) {
		cut = more < CHUNK ? more : CHUNK;
		chain_part(&d[n], VMM_RAM_BASE + DATA + CHUNK * (i % (CHUNKS - 1)), cut,
			   VRING_DESC_F_NEXT, (uint16_t)(first + n + 1));
		n++;
		more -= cut;
	}
	if (resp) {
		chain_part(&d[n], VMM_RAM_BASE + RESP(slot), resp, VRING_DESC_F_WRITE, 0);
		n++;
	} else {
		d[n - 1].flags = 0;
	}
	if (indirect)
		chain_part(&descs(x, RING(q))[base], table, n * (uint32_t)sizeof(*d),
			   VRING_DESC_F_INDIRECT, 0);
	if (in_flight(x, q) >= MANY)
		wait_for(x, q, MANY / 2, (unsigned int)PATIENCE);
	publish(x, q, (uint16_t)base);
	if (!(how.how & QUIET))
		kick(x, q);
}

/*
 * Layout of a command behind its header, a letter for a field:
 *
 *   i  resource		n  number	0  zero		d  width or height
 *   f  format			t  target	b  bind		q  64-bit offset or size
 *   r  rectangle		c  capset	m  blob memory	s  64-bit size, never 0
 *   x  box			k  entries' count		e  entries
 *   N  name			S  4 strides	O  4 offsets	z  the payload's size
 */
struct layout {
	uint32_t type;
	const char *fields;
};

static const struct layout commands[NR_OPS - OP_COMMAND] = {
	[OP_CREATE_2D - OP_COMMAND] = { 0x101, "ifdd" },
	[OP_UNREF - OP_COMMAND] = { 0x102, "i0" },
	[OP_SET_SCANOUT - OP_COMMAND] = { 0x103, "rni" },
	[OP_FLUSH - OP_COMMAND] = { 0x104, "ri0" },
	[OP_TRANSFER_2D - OP_COMMAND] = { 0x105, "rqi0" },
	[OP_ATTACH - OP_COMMAND] = { 0x106, "ike" },
	[OP_DETACH - OP_COMMAND] = { 0x107, "i0" },
	[OP_DISPLAY_INFO - OP_COMMAND] = { 0x100, "" },
	[OP_CAPSET_INFO - OP_COMMAND] = { 0x108, "n0" },
	[OP_CAPSET - OP_COMMAND] = { 0x109, "nn" },
	[OP_EDID - OP_COMMAND] = { 0x10a, "n0" },
	[OP_ASSIGN_UUID - OP_COMMAND] = { 0x10b, "i0" },
	[OP_CREATE_BLOB - OP_COMMAND] = { 0x10c, "immkqse" },
	[OP_SET_SCANOUT_BLOB - OP_COMMAND] = { 0x10d, "rniddf0SO" },
	[OP_CTX_CREATE - OP_COMMAND] = { 0x200, "ncN" },
	[OP_CTX_DESTROY - OP_COMMAND] = { 0x201, "" },
	[OP_CTX_ATTACH - OP_COMMAND] = { 0x202, "i0" },
	[OP_CTX_DETACH - OP_COMMAND] = { 0x203, "i0" },
	[OP_CREATE_3D - OP_COMMAND] = { 0x204, "itFbddllnnn0" },
	[OP_TO_HOST_3D - OP_COMMAND] = { 0x205, "xqinnn" },
	[OP_FROM_HOST_3D - OP_COMMAND] = { 0x206, "xqinnn" },
	[OP_MAP_BLOB - OP_COMMAND] = { 0x208, "i0q" },
	[OP_UNMAP_BLOB - OP_COMMAND] = { 0x209, "i0" },
	[OP_CURSOR - OP_COMMAND] = { 0x300, "nnn0inn0" },
	[OP_MOVE_CURSOR - OP_COMMAND] = { 0x301, "nnn0inn0" },
};

/* A command under construction; what does not fit is left out. */
struct writer {
	uint8_t *p;
	uint32_t len;
	uint32_t entries;
};

static void put(struct writer *w, const void *p, uint32_t len)
{
	if (w->len + len > REQ_MAX)
		return;
	memcpy(w->p + w->len, p, len);
	w->len += len;
}

static void put32(struct writer *w, uint32_t v)
{
	put(w, &v, sizeof(v));
}

static void put64(struct writer *w, uint64_t v)
{
	put(w, &v, sizeof(v));
}

/* Return an entry of @v or any number, as the program's next bytes say. */
static uint32_t one_of(struct args *a, const uint32_t *v, unsigned int n)
{
	struct args before = *a;
	uint8_t b = arg(a);

	if (b < n)
		return v[b];
	*a = before;
	return arg_num(a);
}

static uint32_t dim(struct args *a)
{
	static const uint32_t v[] = { 64, 1, 2, 16, 32, 63, 65, 128, 256, 640, 480, 1024,
				      768, 1920, 4096, 16384 };

	return one_of(a, v, ARRAY_LEN(v));
}

static void put_rect(struct writer *w, struct args *a, bool box)
{
	uint8_t kind = arg(a);
	unsigned int i;

	if (kind < 4) {
		const uint32_t full[] = { 0, 0, 64, 64 }, part[] = { 5, 6, 7, 8 },
			       line[] = { 63, 0, 1, 64 }, none[] = { 0, 0, 0, 0 };
		const uint32_t *r[] = { full, part, line, none };

		put32(w, r[kind][0]);
		put32(w, r[kind][1]);
		if (box)
			put32(w, 0);
		put32(w, r[kind][2]);
		put32(w, r[kind][3]);
		if (box)
			put32(w, 1);
		return;
	}
	for (i = 0; i < (box ? 6 : 4); i++)
		put32(w, arg_num(a));
}

static void put_entry(struct writer *w, struct args *a)
{
	static const uint32_t lengths[] = { 64 * 64 * 4, 4096, 8192, 65536, 1, 4095,
					    1u << 20, 24 };
	struct virtio_gpu_mem_entry e = { .addr = address(a) };

	e.length = one_of(a, lengths, ARRAY_LEN(lengths));
	put(w, &e, sizeof(e));
}

static void put_field(struct writer *w, struct args *a, char field)
{
	static const uint32_t formats[] = { 1, 2, 3, 4, 67, 68, 121, 134 };
	static const uint32_t formats_3d[] = { 0, 1, 2, 20, 64, 67, 121, 134 };
	static const uint32_t binds[] = { 0, 1, 2, 8, 16, 32, 1 << 14, 1 << 18, 1 << 20,
					  1 << 15, 2 | 8 };
	static const uint32_t one[] = { 1 };
	char name[64] = "fuzz";
	unsigned int i;
	uint32_t n;

	switch (field) {
	case 'i':
	case 'n':
	case 'm':
	case 't':
		put32(w, arg_num(a));
		break;
	case 'c':
		put32(w, arg_num(a));
		break;
	case '0':
		put32(w, 0);
		break;
	case 'd':
		put32(w, dim(a));
		break;
	case 'l':
		put32(w, one_of(a, one, 1));
		break;
	case 'f':
		put32(w, one_of(a, formats, ARRAY_LEN(formats)));
		break;
	case 'F':
		put32(w, one_of(a, formats_3d, ARRAY_LEN(formats_3d)));
		break;
	case 'b':
		put32(w, one_of(a, binds, ARRAY_LEN(binds)));
		break;
	case 'q':
	case 's':
		put64(w, arg_size(a));
		break;
	case 'r':
	case 'x':
		put_rect(w, a, field == 'x');
		break;
	case 'k':
		n = arg_num(a);
		put32(w, n);
		w->entries = n < 160 ? n : 0;
		break;
	case 'e':
		/* CREATE_BLOB has the size before the entries. */
		for (i = 0; i < w->entries; i++)
			put_entry(w, a);
		break;
	case 'N':
		n = arg(a);
		if (n)
			memset(name, (int)n, sizeof(name));
		put(w, name, sizeof(name));
		break;
	case 'S':
		n = arg_num(a);
		put32(w, n ? n : 64 * 4);
		for (i = 0; i < 3; i++)
			put32(w, 0);
		break;
	case 'O':
		put32(w, arg_num(a));
		for (i = 0; i < 3; i++)
			put32(w, 0);
		break;
	}
}

/* Begin a command in the next slot. */
static unsigned int begin(struct exec *x, struct writer *w, unsigned int q,
			  struct delivery how, uint32_t type)
{
	struct virtio_gpu_ctrl_hdr hdr;
	unsigned int slot = __atomic_load_n(&x->sent[q], __ATOMIC_RELAXED) % SLOTS;

	gpu_hdr(&hdr, type);
	hdr.ctx_id = how.ctx;
	if (how.how & FENCE) {
		hdr.flags |= VIRTIO_GPU_FLAG_FENCE;
		hdr.fence_id = x->sent[q];
	}
	if (how.how & RING_IDX)
		hdr.flags |= VIRTIO_GPU_FLAG_INFO_RING_IDX;
	*w = (struct writer){ .p = x->vm.ram + REQ(slot) };
	put(w, &hdr, sizeof(hdr));
	return slot;
}

static void command(struct thread *t, unsigned int i)
{
	struct delivery how = delivery(&t->a);
	unsigned int q = commands[i].type >= 0x300 ? VMM_CURSOR : VMM_CONTROL, slot;
	struct writer w;
	const char *f;

	if (how.how & CUT && how.ctx & 0x80)
		q = !q;
	slot = begin(t->x, &w, q, how, commands[i].type);
	for (f = commands[i].fields; *f; f++)
		put_field(&w, &t->a, *f);
	if (how.how & CUT)
		w.len = (w.len + arg_num(&t->a)) % REQ_MAX;
	send(t->x, q, how, slot, w.len, 0);
}

/* A command of any type, in words. */
static void raw_command(struct thread *t)
{
	struct delivery how = delivery(&t->a);
	unsigned int q = arg(&t->a) & 1, slot;
	struct writer w;

	slot = begin(t->x, &w, q, how, arg_num(&t->a) + (arg(&t->a) % 4) * 0x100);
	while (t->a.left)
		put32(&w, arg_num(&t->a));
	send(t->x, q, how, slot, how.how & CUT ? w.len % 24 : w.len, 0);
}

/* Parameters of the compute operations, letters as above; g: a number of 64 bits. */
static const char *const compute_params[MGPU_COMPUTE_NR_OPS + 1] = {
	[MGPU_COMPUTE_FILL] = "qqq", [MGPU_COMPUTE_COPY] = "qqq",
	[MGPU_COMPUTE_SCALE] = "qddn0qddn0", [MGPU_COMPUTE_MATMUL] = "qqqn0",
	[MGPU_COMPUTE_MANDELBROT] = "qqddn0gqqq", [MGPU_COMPUTE_HASH] = "qqqqq",
	[MGPU_COMPUTE_GATHER] = "qqqqnnn0", [MGPU_COMPUTE_ACCUMULATE] = "qqq",
};

static void compute(struct thread *t)
{
	struct delivery how = delivery(&t->a);
	uint32_t op = arg_num(&t->a), more = 0, size, at;
	unsigned int slot, i;
	struct writer w;
	const char *f;

	slot = begin(t->x, &w, VMM_CONTROL, how, VIRTIO_GPU_CMD_SUBMIT_3D);
	at = w.len;
	put64(&w, 0);
	put32(&w, MGPU_COMPUTE_MAGIC);
	put32(&w, MGPU_COMPUTE_VERSION);
	put32(&w, op);
	put32(&w, 0);
	put32(&w, arg_num(&t->a));	/* slots */
	put32(&w, arg_num(&t->a));	/* resources */
	for (i = 0; i < MGPU_COMPUTE_MAX_BUFS; i++)
		put32(&w, i < 1 || op == MGPU_COMPUTE_MATMUL || t->a.left ?
			  arg_num(&t->a) * (i < 3) : 0);
	put32(&w, 0);
	f = op <= MGPU_COMPUTE_NR_OPS ? compute_params[op] : NULL;
	for (; f && *f; f++) {
		if (*f == 'g')
			put64(&w, (uint64_t)-(int64_t)arg_size(&t->a));
		else
			put_field(&w, &t->a, *f);
	}
	while (w.len - at - 8 < sizeof(struct mgpu_compute_cmd))
		put32(&w, 0);
	size = w.len - at - 8;
	if (how.how & CUT) {
		more = arg_num(&t->a) % (2 * GL_STREAM_MAX);
		size += arg(&t->a) ? more : arg_num(&t->a);
	}
	memcpy(w.p + at, &size, sizeof(size));
	send(t->x, VMM_CONTROL, how, slot, w.len, more);
}

/* ---- streams ---- */

static void gl_text(struct gl_stream *s, uint8_t type)
{
	static const char text[] = "FRAG\nDCL OUT[0], COLOR\nIMM[0] FLT32 { 1, 0, 0, 1 }\n"
				   "0: MOV OUT[0], IMM[0]\n1: END\n";
	uint32_t words[(sizeof(text) + 3) / 4] = { 0 };
	unsigned int i;

	memcpy(words, text, sizeof(text));
	gl_head(s, 1, 4, 5 + ARRAY_LEN(words));
	gl_word(s, 300u + type);
	gl_word(s, type % 6);
	gl_word(s, sizeof(text));
	gl_word(s, 30);
	gl_word(s, 0);
	for (i = 0; i < ARRAY_LEN(words); i++)
		gl_word(s, words[i]);
}

/* Add commands that a driver would send; objects have the numbers of their resources. */
static void gl_usual(struct gl_stream *s, struct args *a, uint8_t which)
{
	uint8_t res = arg(a), other;

	switch (which % 8) {
	case 0:
		gl_surface(s, 100u + res, res);
		break;
	case 1:
		gl_draw_to(s, 100u + res);
		break;
	case 2:
		gl_clear(s, 0.25f * res, 0.5f, 0.75f, 1);
		break;
	case 3:
		gl_blit(s, res, 64, 64, arg(a), 64, 64);
		break;
	case 4:
		gl_copy(s, res, arg(a), 64, 64);
		break;
	case 5:
		other = arg(a);
		gl_head(s, 28 + other % 3, 0, 1);	/* sub-contexts */
		gl_word(s, res);
		break;
	case 6:
		gl_head(s, 43, 0, 13);			/* TRANSFER3D */
		gl_word(s, res);
		gl_word(s, 0);
		gl_word(s, 0);
		gl_word(s, 0);
		gl_word(s, 0);
		gl_word(s, 0);
		gl_word(s, 0);
		gl_word(s, 0);
		gl_word(s, 64);
		gl_word(s, 64);
		gl_word(s, 1);
		gl_word(s, 0);
		gl_word(s, 1 + arg(a) % 2);
		break;
	default:
		gl_text(s, res);
		break;
	}
}

static void gl(struct thread *t)
{
	struct delivery how = delivery(&t->a);
	uint32_t more = 0, size, at, len, i;
	struct gl_stream s;
	unsigned int slot;
	struct writer w;
	uint8_t cmd, object;

	gl_begin(&s);
	while (t->a.left && s.n < 512) {
		cmd = arg(&t->a);
		if (cmd & 0x80) {
			gl_usual(&s, &t->a, cmd);
			continue;
		}
		object = arg(&t->a);
		len = arg_num(&t->a);
		gl_head(&s, cmd, object, len);
		for (i = 0; i < len && i < 64 && t->a.left; i++)
			gl_word(&s, arg_num(&t->a));
	}
	slot = begin(t->x, &w, VMM_CONTROL, how, VIRTIO_GPU_CMD_SUBMIT_3D);
	at = w.len;
	put64(&w, 0);
	put(&w, s.w, s.n * 4);
	size = w.len - at - 8;
	if (how.how & CUT) {
		more = (how.ctx & 0x80 ? 1u << 20 : 4096u) * (1 + (how.ctx >> 4) % 3);
		size += more;
	}
	memcpy(w.p + at, &size, sizeof(size));
	how.ctx &= 0x8f;
	send(t->x, VMM_CONTROL, how, slot, w.len, more);
}

/* ---- the VMM ---- */

static uint64_t chunk_iova(unsigned int i)
{
	return i == CHUNKS ? ALIAS : VMM_RAM_BASE + (uint64_t)i * CHUNK;
}

static void map_chunk(struct exec *x, unsigned int i)
{
	uint8_t *p = x->vm.ram + CHUNK * (i == CHUNKS ? ALIAS_OF : i);

	if (!vm_map(&x->vm, p, CHUNK, chunk_iova(i)))
		x->mapped[i] = true;
}

static void map(struct thread *t)
{
	map_chunk(t->x, arg(&t->a) % (CHUNKS + 1));
}

/*
 * Serializes unmapping: two threads that unmap at once may deadlock in vfio_iommu_type1
 * (seen with 6.1).  The first has iommu->lock and waits for device_list_lock.  The second
 * has device_list_lock, calls the driver, and waits for iommu->lock to unpin.
 */
static pthread_mutex_t unmapping = PTHREAD_MUTEX_INITIALIZER;

static void unmap(struct thread *t)
{
	unsigned int i = arg(&t->a) % (CHUNKS + 1);

	pthread_mutex_lock(&unmapping);
	if (!vm_unmap(&t->x->vm, chunk_iova(i), CHUNK))
		t->x->mapped[i] = false;
	pthread_mutex_unlock(&unmapping);
	if (arg(&t->a) & 1)
		map_chunk(t->x, i);
}

/* Have the thread that opens the vGPU do something. */
static int ask_opener(struct exec *x, int (*request)(struct exec *x))
{
	x->request = request;
	sem_post(&x->opener.start);
	sem_wait(&x->opener.done);
	return x->result;
}

static void move_fd(int *fd, int to)
{
	if (*fd < 0 || *fd == to)
		return;
	dup3(*fd, to, O_CLOEXEC);
	close(*fd);
	*fd = to;
}

/* The device's descriptor anew, after the last one was closed or before. */
static int device_again(struct exec *x)
{
	int fd;

	if (x->progress->reopened & 1)
		close(x->vm.device);
	fd = ioctl(x->vm.group, VFIO_GROUP_GET_DEVICE_FD, x->vm.uuid);
	if (fd >= 0)
		move_fd(&fd, HIGH_FD);
	return fd < 0 ? -errno : 0;
}

static void reopen(struct thread *t)
{
	if (arg(&t->a) & 1)
		t->x->progress->reopened++;
	/* The opener takes a single request at a time: only the first thread asks. */
	if (t->nl == &t->x->nl)
		ask_opener(t->x, device_again);
}

static void display(struct thread *t)
{
	struct vfio_device_gfx_plane_info plane;
	struct exec *x = t->x;
	size_t size = x->vm.region[MGPU_REGION_DISPLAY].size, i;
	uint8_t how = arg(&t->a), n = arg(&t->a);
	volatile uint32_t seen = 0;
	uint8_t buf[65536];
	uint32_t *p;

	if (!(how & 1))
		display_plane(&x->vm, &plane);
	if (how & 2)
		vm_read(&x->vm, MGPU_REGION_DISPLAY, arg_size(&t->a), buf,
			1 + (n * 641u) % sizeof(buf));
	if (how & 4 || !size)
		return;
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, x->vm.device,
		 (off_t)x->vm.region[MGPU_REGION_DISPLAY].offset);
	if (p == MAP_FAILED)
		return;
	for (i = 0; i < n; i++)
		seen += p[(i * 40503u) % (size / 4)];
	munmap(p, size);
}

/* ---- settings ---- */

/* A vGPU of these machines, or one that is not there; never the neighbour. */
static uint32_t some_vgpu(struct thread *t)
{
	uint8_t b = arg(&t->a);

	if (b < 0x80)
		return t->x->all[(t->x->index + b) % t->x->nr_all].vgpu;
	return 100000u + b;
}

static void set_vgpu(struct thread *t)
{
	static const struct {
		uint16_t attr;
		uint32_t usual[4];
	} setting[] = {
		{ MGPU_A_VGPU_WEIGHT, { 100, 1, 10000, 50 } },
		{ MGPU_A_VGPU_FPS_LIMIT, { 0, 60000, 1000000, 10000000 } },
		{ MGPU_A_VGPU_GPU_LIMIT, { 0, 500000, 100000, 1000000 } },
		{ MGPU_A_VGPU_GPU_PERIOD, { 100000, 1000, 10000, 1000000 } },
		{ MGPU_A_VGPU_GPU_BURST, { 0, 1000, 100000, 1000000 } },
		{ MGPU_A_VGPU_MODE_WIDTH, { 640, 64, 800, 1024 } },
		{ MGPU_A_VGPU_MODE_HEIGHT, { 480, 64, 600, 768 } },
		{ MGPU_A_VGPU_QUARANTINE, { 0, 1, 0, 1 } },
	};
	struct nl_msg m;
	uint32_t id = some_vgpu(t), v;
	uint8_t which = arg(&t->a);
	unsigned int i;
	size_t nest;

	nl_begin(t->nl, &m, MGPU_CMD_VGPU_SET, NLM_F_ACK);
	nest = nl_nest(&m, MGPU_A_BATCH_VGPU);
	nl_put_u32(&m, MGPU_A_VGPU_ID, id);
	for (i = 0; i < ARRAY_LEN(setting); i++) {
		if (!(which & 1u << i))
			continue;
		v = one_of(&t->a, setting[i].usual, 4);
		nl_put_u32(&m, setting[i].attr, v);
		/* targets and floors have the ranges of limits */
		if (setting[i].attr == MGPU_A_VGPU_FPS_LIMIT && which & 1) {
			nl_put_u32(&m, MGPU_A_VGPU_FPS_TARGET, v);
			nl_put_u32(&m, MGPU_A_VGPU_FPS_FLOOR, v);
		}
		if (setting[i].attr == MGPU_A_VGPU_GPU_LIMIT && which & 1)
			nl_put_u32(&m, MGPU_A_VGPU_GPU_TARGET, v);
	}
	nl_nest_end(&m, nest);
	nl_talk(t->nl, &m);
}

static void set_dev(struct thread *t)
{
	static const char *const policy[] = {
		"weighted", "equal", "fixed", "best-effort", "nonsense",
	};
	uint8_t which = arg(&t->a);
	struct nl_msg m;

	nl_begin(t->nl, &m, MGPU_CMD_DEV_SET, NLM_F_ACK);
	nl_put_u32(&m, MGPU_A_DEV_ID, t->x->dev + (which >= 0x80));
	if (!(which & 1))
		nl_put_str(&m, MGPU_A_DEV_POLICY,
			   policy[arg(&t->a) % ARRAY_LEN(policy)]);
	if (which & 2)
		nl_put_u32(&m, MGPU_A_DEV_JOB_TIMEOUT, 500u + 16 * arg(&t->a));
	if (which & 4)
		nl_put_u32(&m, MGPU_A_DEV_SLOTS, arg_num(&t->a));
	nl_talk(t->nl, &m);
}

static void ctx_request(struct thread *t, uint8_t cmd)
{
	struct nl_msg m;
	uint8_t ctx = arg(&t->a), how, one = 1;

	nl_begin(t->nl, &m, cmd, NLM_F_ACK);
	nl_put_u32(&m, MGPU_A_CTX_VGPU_ID, t->x->progress->vgpu);
	nl_put_u32(&m, MGPU_A_CTX_ID, ctx);
	how = arg(&t->a);
	if (cmd == MGPU_CMD_CTX_PREEMPT) {
		nl_put_u32(&m, MGPU_A_CTX_METHOD, how % 4);
		how = arg(&t->a);
		if (how & 1)
			nl_put_u32(&m, MGPU_A_CTX_SLOTS, arg_num(&t->a));
		if (how & 2)
			nl_put(&m, MGPU_A_CTX_HOLD, &one, sizeof(one));
	} else if (how & 1) {
		nl_put(&m, MGPU_A_CTX_FIRST, &one, sizeof(one));
	}
	nl_talk(t->nl, &m);
}

static void ask(struct thread *t)
{
	struct nl_vgpu v[8];
	struct nl_ctx c[8];
	struct nl_dev d;
	uint8_t which = arg(&t->a), n = arg(&t->a);

	switch (which % 5) {
	case 0:
		nl_vgpu_get(t->nl, t->x->vm.uuid, v);
		break;
	case 1:
		nl_vgpu_dump(t->nl, v, ARRAY_LEN(v));
		break;
	case 2:
		nl_ctx_get(t->nl, t->x->progress->vgpu, n, c);
		break;
	case 3:
		nl_ctx_dump(t->nl, n & 1 ? 0 : t->x->progress->vgpu, c, ARRAY_LEN(c));
		break;
	default:
		nl_dev_get_id(t->nl, t->x->dev + n, &d);
		break;
	}
}

/* Requests of any attributes but the sets, which could reach the neighbour. */
static void netlink(struct thread *t)
{
	static const uint8_t cmd[] = {
		MGPU_CMD_DEV_GET, MGPU_CMD_VGPU_GET, MGPU_CMD_CTX_GET, 0, 40,
	};
	uint8_t which = arg(&t->a), len;
	struct nl_msg m;
	uint8_t bytes[64];
	unsigned int i;
	uint16_t type;

	nl_begin(t->nl, &m, cmd[which % ARRAY_LEN(cmd)], NLM_F_ACK);
	while (t->a.left) {
		type = arg(&t->a);
		len = arg(&t->a) % sizeof(bytes);
		for (i = 0; i < len; i++)
			bytes[i] = arg(&t->a);
		nl_put(&m, type, bytes, len);
	}
	nl_talk(t->nl, &m);
}

/* ---- programs ---- */

static void preempt(struct thread *t)
{
	ctx_request(t, MGPU_CMD_CTX_PREEMPT);
}

static void resume(struct thread *t)
{
	ctx_request(t, MGPU_CMD_CTX_RESUME);
}

static void (*const act[OP_COMMAND])(struct thread *t) = {
	[OP_START] = start, [OP_STATUS] = status, [OP_VFIO_RESET] = vfio_reset,
	[OP_CONFIG] = config, [OP_BAR] = bar, [OP_COMMON] = common_register,
	[OP_IRQS] = irqs, [OP_INFO] = info, [OP_BAD_POINTER] = bad_pointer,
	[OP_KICK] = kicks, [OP_DESC] = desc, [OP_AVAIL] = available, [OP_FLIP] = flip,
	[OP_WAIT] = pause_for, [OP_MAP] = map, [OP_UNMAP] = unmap, [OP_REOPEN] = reopen,
	[OP_DISPLAY] = display, [OP_SET_VGPU] = set_vgpu, [OP_SET_DEV] = set_dev,
	[OP_PREEMPT] = preempt, [OP_RESUME] = resume, [OP_ASK] = ask,
	[OP_NETLINK] = netlink, [OP_COMPUTE] = compute, [OP_GL] = gl, [OP_RAW] = raw_command,
};

static void execute(struct exec *x, struct nl *nl, const struct record *r, unsigned int nr)
{
	struct thread t = { .x = x, .nl = nl, .a = { r->args, r->len } };

	__atomic_store_n(&x->progress->op[nr], r->op + 1u, __ATOMIC_RELAXED);
	if (r->op < OP_COMMAND)
		act[r->op](&t);
	else
		command(&t, r->op - OP_COMMAND);
	__atomic_store_n(&x->progress->op[nr], 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&x->progress->ops, 1, __ATOMIC_RELAXED);
	beat(x);
}

static void *second_thread(void *arg_of_thread)
{
	struct exec *x = arg_of_thread;

	if (x->cover.area)
		x->second.error = cover_open(&x->second.cover);
	sem_post(&x->second.done);
	for (;;) {
		sem_wait(&x->second.start);
		if (!x->progress)
			return NULL;
		execute(x, &x->second.nl, &x->queue[x->finished % QUEUE], 1);
		__atomic_add_fetch(&x->finished, 1, __ATOMIC_RELEASE);
	}
}

static void for_second(struct exec *x, const struct record *r)
{
	if (x->queued - __atomic_load_n(&x->finished, __ATOMIC_ACQUIRE) == QUEUE)
		return;
	x->queue[x->queued++ % QUEUE] = *r;
	sem_post(&x->second.start);
}

/* A call that does not return is noticed by who watches the progress. */
static void wait_second(struct exec *x)
{
	while (__atomic_load_n(&x->finished, __ATOMIC_ACQUIRE) != x->queued)
		usleep(200);
}

static void prepare(struct exec *x)
{
	unsigned int i;

	ioctl(x->vm.device, VFIO_DEVICE_RESET);
	for (i = 0; i < CHUNKS + 1; i++)
		if (!x->mapped[i])
			map_chunk(x, i);
	for (i = 0; i < VMM_NR_VQS; i++) {
		memset(x->vm.ram + RING(i), 0, 0x3000);
		x->sent[i] = 0;
	}
	memset(x->vm.ram + TABLE(0), 0, 0x1000 * SLOTS);
	cfg_write(&x->vm, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

int exec_run(struct exec *x, const struct prog *p)
{
	unsigned int at = 0, sum = 0, i;
	struct record r;

	if (fcntl(x->vm.device, F_GETFD) < 0 && ask_opener(x, device_again))
		return -EIO;
	prepare(x);
	cover_reset(&x->cover);
	cover_reset(&x->second.cover);
	cover_reset(&x->opener.cover);
	while (prog_next(p, &at, &r)) {
		if (r.async)
			for_second(x, &r);
		else
			execute(x, &x->nl, &r, 0);
	}
	wait_second(x);
	/* Most programs are waited for; the others are reset in the middle of it. */
	for (i = 0; i < p->len; i++)
		sum += p->data[i];
	if (sum % 4)
		wait_for(x, VMM_CONTROL, 0, (unsigned int)PATIENCE);
	x->progress->answers += used(x, VMM_CONTROL)->idx;
	x->progress->programs++;
	beat(x);
	return 0;
}

/*
 * Look until the screen has one colour: a look while a GPU still draws shows the picture
 * before, and the GPU has jobs of others.
 */
static const char *shows(struct exec *x, uint32_t rgb)
{
	uint64_t end = now_ms() + (x->gpu ? VMM_TIMEOUT : 0);
	struct vfio_device_gfx_plane_info plane;
	size_t len, i;

	for (;;) {
		if (!display_map(&x->vm, &len) || display_plane(&x->vm, &plane))
			return "its screen cannot be mapped";
		for (i = 0; i < 64 * 64 && (x->vm.display[i] & 0xffffff) == rgb; i++)
			;
		if (i == 64 * 64)
			return NULL;
		if (now_ms() >= end)
			return "it shows wrong pixels";
		beat(x);
		sleep_ms(10);
	}
}

const char *exec_well(struct exec *x)
{
	struct vm *vm = &x->vm;
	struct gpu_screen s;
	const char *why;

	/* Jobs that hang are what programs are made of. */
	if (nl_vgpu_set_quarantine(&x->nl, vm->uuid, 0) ||
	    nl_vgpu_set_full(&x->nl, vm->uuid, 100, 0, 0, MGPU_GPU_PERIOD_DEFAULT, 0))
		return "its settings cannot be set";
	prepare(x);
	vm_forget(vm);
	if (vm_discover(vm) || vm_start_with(vm, x->gpu ? GL_FEATURES : VMM_FEATURES))
		return "it does not start after a reset";
	beat(x);
	if (gpu_screen_2d(vm, &s, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, 64, 64))
		return "it makes no screen";
	beat(x);
	memset(s.pixels, 0x5a, 64 * 64 * 4);
	if (gpu_show(vm, &s))
		return "it shows no picture";
	beat(x);
	why = shows(x, 0x5a5a5a);
	munmap(vm->display, vm->display_size);
	vm->display = NULL;
	beat(x);
	return why;
}

/* ---- opening and closing ---- */

static int open_all(struct exec *x)
{
	struct nl_vgpu v;
	unsigned int i;
	int ret;

	ret = vm_open(&x->vm, x->vm.uuid, RAM);
	if (ret)
		return ret;
	move_fd(&x->vm.device, HIGH_FD);
	move_fd(&x->vm.group, HIGH_FD + 1);
	move_fd(&x->vm.container, HIGH_FD + 2);
	/* Not in one piece: each can go by itself. */
	ret = vm_unmap(&x->vm, VMM_RAM_BASE, RAM);
	for (i = 0; i < CHUNKS + 1; i++) {
		x->mapped[i] = false;
		map_chunk(x, i);
		if (!x->mapped[i])
			ret = -EIO;
	}
	if (!ret)
		ret = nl_vgpu_get(&x->opener.nl, x->vm.uuid, &v);
	x->progress->vgpu = v.id;
	x->dev = v.dev_id;
	return ret;
}

static void *opener_thread(void *arg_of_thread)
{
	struct exec *x = arg_of_thread;

	if (x->cover.area)
		x->opener.error = cover_open_remote(&x->opener.cover, x->index + 1);
	sem_post(&x->opener.done);
	for (;;) {
		sem_wait(&x->opener.start);
		if (!x->request)
			return NULL;
		x->result = x->request(x);
		sem_post(&x->opener.done);
	}
}

static int worker_start(struct exec *x, struct worker *w, void *(*fn)(void *))
{
	int ret;

	w->cover.fd = -1;
	sem_init(&w->start, 0, 0);
	sem_init(&w->done, 0, 0);
	ret = nl_open(&w->nl);
	if (ret || pthread_create(&w->thread, NULL, fn, x))
		return ret ? ret : -EAGAIN;
	sem_wait(&w->done);
	return w->error;
}

int exec_init(struct exec *x, const char *uuid, bool cover)
{
	unsigned int i;
	int ret;

	snprintf(x->vm.uuid, sizeof(x->vm.uuid), "%s", uuid);
	x->cover.fd = -1;
	ret = cover ? cover_open(&x->cover) : 0;
	if (ret)
		return ret;
	for (i = 0; i < EVENTFDS; i++) {
		x->fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (x->fds[i] < 0)
			return -errno;
	}
	ret = nl_open(&x->nl);
	if (!ret)
		ret = worker_start(x, &x->opener, opener_thread);
	if (!ret)
		ret = worker_start(x, &x->second, second_thread);
	return ret ? ret : ask_opener(x, open_all);
}

int exec_reopen(struct exec *x)
{
	vm_close(&x->vm);
	return ask_opener(x, open_all);
}

void exec_exit(struct exec *x)
{
	unsigned int i;

	vm_close(&x->vm);
	x->request = NULL;
	sem_post(&x->opener.start);
	pthread_join(x->opener.thread, NULL);
	x->progress = NULL;
	sem_post(&x->second.start);
	pthread_join(x->second.thread, NULL);
	nl_close(&x->opener.nl);
	nl_close(&x->second.nl);
	nl_close(&x->nl);
	for (i = 0; i < EVENTFDS; i++)
		close(x->fds[i]);
}
