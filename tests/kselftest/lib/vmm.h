/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A virtual machine monitor and the guest's driver in one, as small as tests
 * need them: drives a vGPU through /dev/vfio exactly as QEMU and a virtio-gpu
 * driver would.  The virtio structures are found through the PCI capabilities;
 * their offsets are never taken from the module's own header.
 *
 * Functions return 0, or the value that their comment names, or -errno.  They do
 * not print.
 */
#ifndef KSELFTEST_VMM_H
#define KSELFTEST_VMM_H

#include <linux/vfio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_gpu.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "clock.h"

#define VMM_PARENT	"mgpu_soft.0"
#define VMM_BUS		"/sys/class/mdev_bus"
#define VMM_DEVICES	"/sys/bus/mdev/devices"

#define VMM_UUID_LEN	36
#define VMM_RAM_BASE	0x40000000ull	/* guest address of its memory */
#define VMM_RAM		(8u << 20)	/* default size of its memory, bytes */
#define VMM_TIMEOUT	(10000 * vmm_slow())	/* ms; longest wait for an event */
#define VMM_QUIET	200		/* ms; wait that shows the absence of an event */

#define VMM_CONTROL	0
#define VMM_CURSOR	1
#define VMM_NR_VQS	2
#define VMM_MAX_VQ	64

#define VMM_F(bit)	(1ull << (bit))
#define VMM_FEATURES	(VMM_F(VIRTIO_F_VERSION_1) | \
			 VMM_F(VIRTIO_F_ACCESS_PLATFORM) | \
			 VMM_F(VIRTIO_RING_F_INDIRECT_DESC) | \
			 VMM_F(VIRTIO_GPU_F_EDID) | \
			 VMM_F(VIRTIO_GPU_F_RESOURCE_BLOB))

/* Answers to a command. */
#define OK		VIRTIO_GPU_RESP_OK_NODATA
#define INFO		VIRTIO_GPU_RESP_OK_DISPLAY_INFO
#define UNSPEC		VIRTIO_GPU_RESP_ERR_UNSPEC
#define NOMEM		VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY
#define NOSCANOUT	VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID
#define NORES		VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID
#define NOCTX		VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID
#define PARAM		VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

/* ---- sysfs ---- */

int sysfs_read(const char *path, char *buf, size_t len);
long long sysfs_number(const char *path);
int sysfs_write(const char *path, const char *text);
/*
 * Remove a cgroup. A task that has ended, and was waited for, may be in it for some time still:
 * it leaves late in do_exit().
 */
int cgroup_remove(const char *path);
/*
 * sysfs_write() in a process of its own, which holds no descriptor and no mapping:
 * the write may wait until this process closes its own.
 */
pid_t sysfs_write_aside(const char *path, const char *text);
/* Return whether the process ends in time, and with status 0. */
bool ends(pid_t pid, int timeout_ms);

/*
 * Unload a module of this project, or load it, mgpu_soft with the parameters in $MGPU_SOFT:
 * -ENOENT if $BUILD and $KERNEL do not say where it is.
 */
int module_remove(const char *name);
int module_insert(const char *name);

/* The parent device that offers the types: $MGPU_PARENT, or VMM_PARENT. */
const char *vmm_parent(void);
/* Type names without the driver's prefix: "small". */
int mdev_type_path(const char *type, const char *file, char *path, size_t len);
long long mdev_available(const char *type);
void mdev_uuid_new(char *uuid);
int mdev_create(const char *type, const char *uuid);
int mdev_remove(const char *uuid);
bool mdev_exists(const char *uuid);
unsigned int mdev_count(void);

/* ---- the machine ---- */

/* A virtio structure that a capability describes. */
struct vmm_cap {
	bool found;
	uint8_t pos;		/* of the capability in configuration space */
	uint8_t bar;
	uint8_t id;
	uint32_t offset;
	uint32_t length;
};

struct vmm_vq {
	uint16_t size;
	uint16_t notify_off;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t avail_idx;
	uint16_t used_idx;	/* used entries read so far */
	uint64_t free;		/* bit per descriptor */
	uint64_t owned[VMM_MAX_VQ];	/* descriptors of a chain, by its head */
	bool done[VMM_MAX_VQ];	/* the chain is complete, by its head */
	uint32_t len[VMM_MAX_VQ];	/* bytes that the device wrote, by head */
	uint8_t *req;		/* a page for each head */
	uint8_t *resp;		/* a page for each head */
	uint64_t kicks;		/* doorbells rung */
	uint64_t interrupts;	/* interrupts that vq_interrupt() took */
};

struct vm {
	char uuid[VMM_UUID_LEN + 1];
	bool made;		/* vm_new() made the vGPU */
	int container;		/* -1 with an iommufd */
	int group;		/* -1 with an iommufd */
	int iommufd;		/* -1 with a container */
	uint32_t ioas;		/* I/O address space of the iommufd */
	int device;

	uint32_t *display;	/* mapping of display_map(); keeps the device open */
	size_t display_size;

	uint8_t *ram;
	size_t ram_size;
	size_t ram_used;

	struct vfio_device_info info;
	struct vfio_region_info region[16];
	struct vmm_cap cap[9];	/* by VIRTIO_PCI_CAP_*_CFG */
	uint32_t notify_mult;
	uint8_t msix_pos;	/* of the MSI-X capability, 0 for none */
	uint16_t nr_vectors;
	int irq[8];		/* eventfd of each MSI-X vector, or -1 */
	int intx;
	int req_irq;
	struct vmm_vq vq[VMM_NR_VQS];
	uint32_t next_fence;
};

/* A piece of the guest's memory in a chain. */
struct vmm_seg {
	uint64_t addr;
	uint32_t len;
	bool write;
};

/*
 * vm_new() makes a vGPU of a type and a machine for it; vm_open() makes a machine
 * for an existing vGPU; neither starts the driver.  vm_close() undoes both, and
 * accepts a closed machine.
 */
int vm_new(struct vm *vm, const char *type, size_t ram);
/*
 * vm_open() through the device's own node and an iommufd instead of its group and a
 * container; -EOPNOTSUPP where the kernel has no nodes (CONFIG_VFIO_DEVICE_CDEV).
 */
int vm_open_iommufd(struct vm *vm, const char *uuid, size_t ram);
int vm_open(struct vm *vm, const char *uuid, size_t ram);
void vm_close(struct vm *vm);
void vm_delete(struct vm *vm);	/* vm_close, and remove the vGPU */

/* Guest memory. */
void *vm_alloc(struct vm *vm, size_t len, size_t align);
uint64_t vm_addr(const struct vm *vm, const void *p);
int vm_map(struct vm *vm, void *p, size_t len, uint64_t iova);
int vm_unmap(struct vm *vm, uint64_t iova, size_t len);

/*
 * Map the host-visible memory of the device: NULL with an errno.  The caller unmaps it; it
 * keeps the device open.
 */
volatile uint8_t *hostmem_map(struct vm *vm, size_t *len);

/* Regions. */
int vm_read(struct vm *vm, unsigned int region, uint64_t off, void *buf,
	    size_t len);
int vm_write(struct vm *vm, unsigned int region, uint64_t off,
	     const void *buf, size_t len);
uint32_t cfg_read(struct vm *vm, uint32_t off, unsigned int bytes);
int cfg_write(struct vm *vm, uint32_t off, unsigned int bytes, uint32_t val);

/* Virtio structures. */
int vm_discover(struct vm *vm);
uint32_t vio_read(struct vm *vm, unsigned int cap, uint32_t off,
		  unsigned int bytes);
int vio_write(struct vm *vm, unsigned int cap, uint32_t off,
	      unsigned int bytes, uint32_t val);

#define cc_read(vm, field)						\
	vio_read(vm, VIRTIO_PCI_CAP_COMMON_CFG,				\
		 offsetof(struct virtio_pci_common_cfg, field),		\
		 sizeof(((struct virtio_pci_common_cfg *)0)->field))
#define cc_write(vm, field, val)					\
	vio_write(vm, VIRTIO_PCI_CAP_COMMON_CFG,			\
		  offsetof(struct virtio_pci_common_cfg, field),	\
		  sizeof(((struct virtio_pci_common_cfg *)0)->field), val)

uint64_t vio_features(struct vm *vm);
int vio_status(struct vm *vm);
int vio_reset(struct vm *vm);
int vio_negotiate(struct vm *vm, uint64_t features);
int vio_setup_queue(struct vm *vm, unsigned int q);
int vio_driver_ok(struct vm *vm);

/* Interrupts. */
int irq_msix(struct vm *vm, unsigned int vectors);
int irq_msix_off(struct vm *vm);
int irq_intx(struct vm *vm);
int irq_action(struct vm *vm, unsigned int index, unsigned int start,
	       uint32_t flags, uint8_t val);
int irq_request(struct vm *vm);
int irq_wait(int fd, int timeout_ms);	/* count, 0 for none */

/* Start the driver: features, MSI-X, both queues, DRIVER_OK; also after a reset. */
/* Forget the virtqueues and allocations of a device that was reset. */
void vm_forget(struct vm *vm);
int vm_start(struct vm *vm);
int vm_start_with(struct vm *vm, uint64_t features);
int vm_new_started(struct vm *vm, const char *type, size_t ram);

/* Queues. */
int vq_add(struct vm *vm, unsigned int q, const struct vmm_seg *segs,
	   unsigned int n, bool indirect);
void vq_publish(struct vm *vm, unsigned int q, uint16_t head);
int vq_kick(struct vm *vm, unsigned int q);
/* irq_wait() for the queue's eventfd; counts the interrupts. */
int vq_interrupt(struct vm *vm, unsigned int q, int timeout_ms);
unsigned int vq_collect(struct vm *vm, unsigned int q);
int vq_wait(struct vm *vm, unsigned int q, uint16_t head, int timeout_ms);
bool vq_quiet(struct vm *vm, unsigned int q, int timeout_ms);

/* ---- virtio-gpu ---- */

/*
 * Send a command and wait for its answer.  Return the answer's type, or a
 * negative errno; @resp gets up to @resp_len bytes of it.
 */
int gpu_call(struct vm *vm, const void *req, size_t len, void *resp,
	     size_t resp_len);
int gpu_send(struct vm *vm, unsigned int q, const void *req, size_t len,
	     size_t resp_len);		/* returns the head at once */
int gpu_result(struct vm *vm, unsigned int q, uint16_t head, void *resp,
	       size_t resp_len, int timeout_ms);

void gpu_hdr(struct virtio_gpu_ctrl_hdr *hdr, uint32_t type);
struct virtio_gpu_rect gpu_rect(uint32_t x, uint32_t y, uint32_t w,
				uint32_t h);
int gpu_display_info(struct vm *vm, uint32_t *width, uint32_t *height);
int gpu_create_2d(struct vm *vm, uint32_t id, uint32_t format, uint32_t w,
		  uint32_t h);
int gpu_attach(struct vm *vm, uint32_t id, const void *p, size_t len);
int gpu_attach_entries(struct vm *vm, uint32_t id,
		       const struct virtio_gpu_mem_entry *e, uint32_t n);
int gpu_detach(struct vm *vm, uint32_t id);
int gpu_unref(struct vm *vm, uint32_t id);
int gpu_transfer(struct vm *vm, uint32_t id, struct virtio_gpu_rect r,
		 uint64_t offset);
int gpu_set_scanout(struct vm *vm, uint32_t id, struct virtio_gpu_rect r);
int gpu_flush(struct vm *vm, uint32_t id, struct virtio_gpu_rect r);
int gpu_flush_send(struct vm *vm, uint32_t id, struct virtio_gpu_rect r);
int gpu_create_blob(struct vm *vm, uint32_t id, const void *p, size_t size);
int gpu_create_blob_at(struct vm *vm, uint32_t id, uint64_t addr, size_t size);
int gpu_set_scanout_blob(struct vm *vm, uint32_t id, uint32_t format,
			 uint32_t w, uint32_t h, uint32_t stride,
			 uint32_t offset);
int gpu_cursor(struct vm *vm, uint32_t id, int32_t x, int32_t y,
	       uint32_t hot_x, uint32_t hot_y);
int gpu_cursor_move(struct vm *vm, int32_t x, int32_t y);

/* A picture on the screen: resource @id, backing and scanout. */
struct gpu_screen {
	uint32_t id;
	uint32_t width;
	uint32_t height;
	uint32_t *pixels;	/* guest memory */
	bool blob;
};

int gpu_screen_2d(struct vm *vm, struct gpu_screen *s, uint32_t id,
		  uint32_t format, uint32_t w, uint32_t h);
int gpu_screen_blob(struct vm *vm, struct gpu_screen *s, uint32_t id,
		    uint32_t w, uint32_t h);
int gpu_show(struct vm *vm, struct gpu_screen *s); /* transfer, flush all */

/* ---- the display ---- */

#define PLANE_PRIMARY	1u	/* DRM_PLANE_TYPE_* */
#define PLANE_CURSOR	2u

/* Query the plane of the region, or one of dma-bufs; a dma-buf's file.  -errno. */
int display_plane(struct vm *vm, struct vfio_device_gfx_plane_info *plane);
int display_dmabuf(struct vm *vm, uint32_t type, struct vfio_device_gfx_plane_info *plane);
int display_get_dmabuf(struct vm *vm, uint32_t id);
int display_probe(struct vm *vm, uint32_t flags);
uint32_t *display_map(struct vm *vm, size_t *len);	/* NULL: errno */

/* ---- time ---- */

/*
 * Return whether a loop that runs until @end goes on.  Until it has done enough, it has
 * VMM_TIMEOUT more, for a slow machine.
 */
bool goes_on(uint64_t end, bool enough);

/* Return the factor of time limits: $MGPU_SLOW, at least 1. */
int vmm_slow(void);
/* Return whether $MGPU_LONG asks for long tests: make check-long. */
bool vmm_long(void);

/* ---- verdicts ---- */

/* Print a comment, in functions where the harness's TH_LOG() is not available. */
void remark(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Print that a lower bound was missed and is measured once more.  An upper bound is
 * never measured again.
 */
void measured_again(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

/*
 * Trials of a choice that a busy machine may spoil: at least four of five must be
 * right.  They end when the verdict is certain.
 */
struct trials {
	unsigned int right;
	unsigned int wrong;
};

bool trials_go_on(const struct trials *t);
void trial(struct trials *t, bool right);
bool mostly_right(const struct trials *t);

/* ---- the harness ---- */

#ifdef TEST_HARNESS_MAIN
/* Drop the cases whose name does not contain $MGPU_ONLY (tests/run --only). */
static inline int vmm_select_cases(void)
{
	const char *only = getenv("MGPU_ONLY");
	struct __fixture_metadata *f;
	struct __test_metadata **t;
	int n = 0;

	for (f = __fixture_list; f; f = f->next) {
		for (t = &f->tests; *t;) {
			if (only && !strstr((*t)->name, only)) {
				*t = (*t)->next;
			} else {
				t = &(*t)->next;
				n++;
			}
		}
	}
	if (!n)
		puts("1..0 # SKIP no case is selected by --only");
	return n;
}

/* In TEST_HARNESS_MAIN. */
#define test_harness_run(argc, argv) \
	(vmm_select_cases() ? test_harness_run(argc, argv) : KSFT_SKIP)
#endif

#endif /* KSELFTEST_VMM_H */
