// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything at once on the same descriptors: threads reset a vGPU, change its
 * interrupts, read and write its regions, look at its screen, map and unmap the
 * guest's memory, submit commands, and close and open the device, while others are in
 * the middle of their calls.  Afterwards the vGPU works and nothing is left.
 *
 * The seed is printed; MGPU_SEED=N sets it.  With MGPU_LONG=1 it goes on for two
 * minutes.
 *
 * Its jobs are flushes that the engine copies.
 * soft: scanout=eager
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "../../kmod/vfio/device.h"
#include "nl.h"
#include "vmm.h"

#define NR_VMS		2
/* As long as the longest pause between two resets, in which a guest gets to its end. */
#define ROUND_MS	(500 * (unsigned int)vmm_slow())
#define ALIAS		0x100000000ull	/* memory that comes and goes */
#define ALIAS_LEN	(1u << 20)
#define NR_EVENTFDS	8
#define HIGH_FD		900	/* numbers that no other descriptor gets */
#define SIDE		64

enum kind { RESET, IRQS, REGIONS, DISPLAY, DMA, GUEST, REOPEN, NR_KINDS };

static const char *const kind_name[] = {
	"resets", "interrupts", "regions", "display", "DMA", "guest", "reopen",
};

struct machine {
	struct vm vm;
	uint8_t *alias;
};

struct hammer {
	struct machine *m;
	enum kind kind;
	unsigned int seed;
	unsigned int calm;	/* how much less often others disturb the guest */
	atomic_bool *stop;
	pthread_t thread;
	unsigned long tried;
	unsigned long good;
};

static int eventfds[NR_EVENTFDS];

static uint32_t dice(struct hammer *h, uint32_t n)
{
	return (uint32_t)rand_r(&h->seed) % n;
}

/*
 * One time in @n, and less often on a slow machine: a guest takes longer to its end there, with
 * threads in its way that are slowed down less.
 */
static bool now_and_then(struct hammer *h, uint32_t n)
{
	return !dice(h, n * h->calm * (uint32_t)(vmm_slow() * vmm_slow()));
}

/* Pause for up to so long, or until the end of the round. */
static void pause_up_to(struct hammer *h, uint32_t ms)
{
	uint32_t left = dice(h, ms * h->calm * (uint32_t)vmm_slow());

	for (; left && !*h->stop; left -= left < 10 ? left : 10)
		sleep_ms(left < 10 ? left : 10);
}

static int reset(struct hammer *h)
{
	/* Now and then a guest has the time for what it does between two. */
	pause_up_to(h, dice(h, 4) ? 50 : 400);
	return ioctl(h->m->vm.device, VFIO_DEVICE_RESET);
}

static const uint32_t irq_data[] = {
	VFIO_IRQ_SET_DATA_NONE, VFIO_IRQ_SET_DATA_BOOL,
	VFIO_IRQ_SET_DATA_EVENTFD, VFIO_IRQ_SET_DATA_EVENTFD,
};

static const uint32_t irq_what[] = {
	VFIO_IRQ_SET_ACTION_MASK, VFIO_IRQ_SET_ACTION_UNMASK,
	VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_ACTION_TRIGGER,
};

static int irqs(struct hammer *h)
{
	union {
		struct vfio_irq_set set;
		uint8_t bytes[sizeof(struct vfio_irq_set) + 4 * sizeof(int)];
	} u;
	int fds[4];
	uint32_t i;

	memset(&u, 0, sizeof(u));
	u.set.argsz = sizeof(u);
	u.set.index = dice(h, VFIO_PCI_NUM_IRQS);
	u.set.flags = irq_data[dice(h, ARRAY_LEN(irq_data))] |
		      irq_what[dice(h, ARRAY_LEN(irq_what))];
	u.set.start = dice(h, 8) ? 0 : dice(h, 4);
	u.set.count = u.set.index == VFIO_PCI_MSIX_IRQ_INDEX ? dice(h, 4) :
							       dice(h, 2);
	for (i = 0; i < 4; i++)
		fds[i] = dice(h, 4) ? eventfds[dice(h, NR_EVENTFDS)] : -1;
	memcpy(u.set.data, fds, sizeof(fds));
	return ioctl(h->m->vm.device, VFIO_DEVICE_SET_IRQS, &u.set);
}

static int regions(struct hammer *h)
{
	static const uint32_t index[] = {
		VFIO_PCI_CONFIG_REGION_INDEX, MGPU_BAR_VIRTIO, MGPU_BAR_VIRTIO,
		MGPU_BAR_MSIX,
	};
	struct vfio_region_info ri = {
		.argsz = sizeof(ri), .index = dice(h, MGPU_REGION_DISPLAY + 2),
	};
	struct vfio_irq_info ii = {
		.argsz = sizeof(ii), .index = dice(h, VFIO_PCI_NUM_IRQS + 1),
	};
	struct vm *vm = &h->m->vm;
	uint32_t r = index[dice(h, ARRAY_LEN(index))], val = rand_r(&h->seed);
	uint32_t len = 1u << dice(h, 3), off;

	/* The status, addresses of queues, and the doorbells are in the first page. */
	off = dice(h, r == VFIO_PCI_CONFIG_REGION_INDEX ? 256 :
		      dice(h, 2) ? 64 : 0x4000) & ~(len - 1);
	switch (dice(h, 6)) {
	case 0:
		return ioctl(vm->device, VFIO_DEVICE_GET_REGION_INFO, &ri);
	case 1:
		return ioctl(vm->device, VFIO_DEVICE_GET_IRQ_INFO, &ii);
	case 2:
		/* A guest at work is not left in peace for long. */
		if (!now_and_then(h, 8))
			return 0;
		return vm_write(vm, r, off, &val, len);
	case 3:
		return vm_write(vm, MGPU_BAR_VIRTIO, MGPU_NOTIFY_OFF, &val, 2);
	default:
		return vm_read(vm, r, off, &val, len);
	}
}

static int display(struct hammer *h)
{
	struct vm *vm = &h->m->vm;
	struct vfio_device_gfx_plane_info plane;
	size_t size = vm->region[MGPU_REGION_DISPLAY].size, i;
	volatile uint32_t seen = 0;
	uint32_t *p;

	if (display_plane(vm, &plane))
		return -1;
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, vm->device,
		 (off_t)vm->region[MGPU_REGION_DISPLAY].offset);
	if (p == MAP_FAILED)
		return -1;
	for (i = 0; i < 16; i++)
		seen += p[dice(h, size / 4)];
	/* It stays when the device is closed meanwhile. */
	if (dice(h, 4) == 0)
		sleep_ms(dice(h, 20));
	seen += p[dice(h, size / 4)];
	munmap(p, size);
	return 0;
}

static int dma(struct hammer *h)
{
	struct vm *vm = &h->m->vm;
	int ret;

	/* Now and then all of the guest's memory goes. */
	if (now_and_then(h, 32)) {
		ret = vm_unmap(vm, VMM_RAM_BASE, vm->ram_size);
		if (!ret)
			ret = vm_map(vm, vm->ram, vm->ram_size, VMM_RAM_BASE);
		return ret;
	}
	ret = vm_map(vm, h->m->alias, ALIAS_LEN, ALIAS);
	if (dice(h, 2))
		sleep_ms(dice(h, 5));
	if (!ret)
		ret = vm_unmap(vm, ALIAS, ALIAS_LEN);
	return ret;
}

/* Wait for an answer, as long as the device is neither reset nor broken. */
static bool answered(struct vm *vm, int head)
{
	const uint32_t ok = VIRTIO_CONFIG_S_DRIVER_OK;
	uint64_t end = now_ms() + 200 * (uint64_t)vmm_slow();

	do {
		if (vq_wait(vm, VMM_CONTROL, (uint16_t)head, 20) >= 0)
			return true;
	} while ((vio_status(vm) & (ok | VIRTIO_CONFIG_S_NEEDS_RESET)) == ok && now_ms() < end);
	return false;
}

/* A driver that begins anew when anything is wrong, and waits for nothing. */
static int guest(struct hammer *h)
{
	struct vm *vm = &h->m->vm;
	struct virtio_gpu_mem_entry e = { ALIAS, SIDE * SIDE * 4, 0 };
	struct gpu_screen s;
	int i, head, good = 0;

	vm_forget(vm);
	if (cc_write(vm, device_status, 0) ||
	    vio_negotiate(vm, VMM_FEATURES) ||
	    vio_setup_queue(vm, VMM_CONTROL) ||
	    vio_setup_queue(vm, VMM_CURSOR) || vio_driver_ok(vm))
		return -1;
	s.pixels = vm_alloc(vm, SIDE * SIDE * 4, 4096);
	for (i = 0; i < 20; i++) {
		struct virtio_gpu_resource_create_2d c = {
			.resource_id = 1 + dice(h, 2), .width = SIDE,
			.height = SIDE,
			.format = VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
		};
		struct {
			struct virtio_gpu_resource_attach_backing c;
			struct virtio_gpu_mem_entry e;
		} a = {
			.c = { .resource_id = c.resource_id, .nr_entries = 1 },
			.e = e,
		};
		struct virtio_gpu_set_scanout so = {
			.resource_id = c.resource_id,
			.r = gpu_rect(0, 0, SIDE, SIDE),
		};
		struct virtio_gpu_transfer_to_host_2d t = {
			.resource_id = c.resource_id,
			.r = gpu_rect(0, 0, SIDE, SIDE),
		};
		struct virtio_gpu_resource_unref u = {
			.resource_id = c.resource_id,
		};

		if (dice(h, 2))
			a.e.addr = vm_addr(vm, s.pixels);
		gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
		gpu_hdr(&a.c.hdr, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING);
		gpu_hdr(&so.hdr, VIRTIO_GPU_CMD_SET_SCANOUT);
		gpu_hdr(&t.hdr, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D);
		gpu_hdr(&u.hdr, VIRTIO_GPU_CMD_RESOURCE_UNREF);
		gpu_send(vm, VMM_CONTROL, &c, sizeof(c), 24);
		gpu_send(vm, VMM_CONTROL, &a, sizeof(a), 24);
		gpu_send(vm, VMM_CONTROL, &so, sizeof(so), 24);
		gpu_send(vm, VMM_CONTROL, &t, sizeof(t), 24);
		head = gpu_flush_send(vm, c.resource_id,
				      gpu_rect(0, 0, SIDE, SIDE));
		if (dice(h, 4) == 0)
			gpu_send(vm, VMM_CONTROL, &u, sizeof(u), 24);
		if (head < 0 || !answered(vm, head))
			break;
		good++;
	}
	return good ? 0 : -1;
}

/* The last descriptor of the device goes, or never. */
static int reopen(struct hammer *h)
{
	struct vm *vm = &h->m->vm;
	int fd;

	pause_up_to(h, 100);
	if (dice(h, 2))
		close(vm->device);
	fd = ioctl(vm->group, VFIO_GROUP_GET_DEVICE_FD, vm->uuid);
	if (fd < 0)
		return -1;
	dup3(fd, vm->device, O_CLOEXEC);
	close(fd);
	return 0;
}

static int (*const act[])(struct hammer *h) = {
	reset, irqs, regions, display, dma, guest, reopen,
};

static void *hammer(void *arg)
{
	struct hammer *h = arg;

	while (!*h->stop) {
		h->tried++;
		errno = 0;
		if (!act[h->kind](h))
			h->good++;
		else if (errno == EBADF)
			sleep_ms(1);
		/* Threads without a pause keep a slow guest from the processors. */
		if (vmm_slow() > 1 && h->kind != GUEST)
			usleep(200 * h->calm * (useconds_t)(vmm_slow() * vmm_slow()));
	}
	return NULL;
}

/* Settings and lists meanwhile. */
struct settings {
	struct machine *m;
	unsigned int seed;
	atomic_bool *stop;
	unsigned long good;
	pthread_t thread;
};

static void *settings(void *arg)
{
	static const char *const policy[] = {
		"equal", "weighted", "fixed", "best-effort",
	};
	struct settings *s = arg;
	struct nl_vgpu all[16];
	struct nl nl;

	if (nl_open(&nl))
		return NULL;
	while (!*s->stop) {
		const char *uuid = s->m[rand_r(&s->seed) % NR_VMS].vm.uuid;
		unsigned int n = (unsigned int)rand_r(&s->seed);

		s->good += nl_vgpu_dump(&nl, all, ARRAY_LEN(all)) > 0;
		s->good += !nl_vgpu_set_full(&nl, uuid, 1 + n % 10000,
					     n & 1 ? 0 : 30000 + n % 1000000,
					     n & 2 ? 0 : 100000, 1000, 0);
		s->good += !nl_vgpu_set_mode(&nl, uuid, 64 + n % 960,
					     64 + n % 700);
		s->good += !nl_dev_set_policy(&nl, VMM_PARENT, policy[n % 4]);
		sleep_ms(n % 8);
	}
	nl_close(&nl);
	return NULL;
}

/* ---- the machines ---- */

static void move_fd(int *fd, int to)
{
	dup3(*fd, to, O_CLOEXEC);
	close(*fd);
	*fd = to;
}

static int machine_open(struct machine *m, unsigned int i, const char *uuid)
{
	int ret;

	ret = vm_open(&m->vm, uuid, VMM_RAM);
	m->vm.made = true;
	if (ret)
		return ret;
	move_fd(&m->vm.device, HIGH_FD + 10 * (int)i);
	move_fd(&m->vm.group, HIGH_FD + 10 * (int)i + 1);
	move_fd(&m->vm.container, HIGH_FD + 10 * (int)i + 2);
	return 0;
}

/* While others are in calls; vm_close() does the rest when they are not. */
static void slam(struct machine *m, unsigned int seed)
{
	int fds[] = { m->vm.device, m->vm.group, m->vm.container };
	unsigned int i, first = (unsigned int)rand_r(&seed) % 3;

	for (i = 0; i < 3; i++)
		close(fds[(first + i) % 3]);
}

static void machine_close(struct machine *m)
{
	m->vm.device = -1;
	m->vm.group = -1;
	m->vm.container = -1;
	vm_close(&m->vm);
}

static unsigned int nr_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static long long refs(const char *module)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s/refcnt", module);
	return sysfs_number(path);
}

static unsigned int seed_of_run(void)
{
	const char *env = getenv("MGPU_SEED");

	return env ? (unsigned int)strtoul(env, NULL, 0) :
		     (unsigned int)now_ns();
}

FIXTURE(races)
{
	struct nl nl;
};

FIXTURE_SETUP(races)
{
	ASSERT_EQ(0, nl_open(&self->nl));
}

FIXTURE_TEARDOWN(races)
{
	EXPECT_EQ(0, nl_dev_set(&self->nl, VMM_PARENT, "weighted", NL_KEEP));
	nl_close(&self->nl);
}

TEST_F_TIMEOUT(races, everything_at_once_on_the_same_descriptors, 400)
{
	static struct hammer h[NR_VMS][NR_KINDS];
	static struct machine m[NR_VMS];
	char uuid[NR_VMS][VMM_UUID_LEN + 1];
	unsigned long tried[NR_KINDS] = { 0 }, good[NR_KINDS] = { 0 };
	unsigned int i, k, fds, rounds = 0, seed = seed_of_run();
	uint64_t end = now_ms() + (vmm_long() ? 120000 : 5000);
	struct settings s = { .m = m };
	long long used[2];
	pid_t remover[NR_VMS];
	struct gpu_screen screen;
	bool last = false;
	atomic_bool stop;
	struct nl_vgpu v;
	char path[256];
	size_t len;

	TH_LOG("seed %u", seed);
	for (i = 0; i < NR_EVENTFDS; i++) {
		eventfds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		ASSERT_LE(0, eventfds[i]);
	}
	for (i = 0; i < NR_VMS; i++) {
		mdev_uuid_new(uuid[i]);
		ASSERT_EQ(0, mdev_create("small", uuid[i]));
		m[i].alias = aligned_alloc(4096, ALIAS_LEN);
		ASSERT_NE(NULL, m[i].alias);
		memset(m[i].alias, 0x77, ALIAS_LEN);
	}
	fds = nr_fds();
	used[0] = refs("mgpu");
	used[1] = refs("mgpu_soft");

	while (!last) {
		for (k = 0; k < NR_KINDS && good[k]; k++)
			;
		/* A slow machine goes on, with more and more calm, until each has done it once. */
		last = now_ms() >= end + (k == NR_KINDS ? 0 : 4 * (uint64_t)VMM_TIMEOUT);
		stop = false;
		rounds++;
		for (i = 0; i < NR_VMS; i++)
			ASSERT_EQ(0, machine_open(&m[i], i, uuid[i]));
		s.seed = seed + rounds;
		s.stop = &stop;
		ASSERT_EQ(0, pthread_create(&s.thread, NULL, settings, &s));
		for (i = 0; i < NR_VMS; i++) {
			for (k = 0; k < NR_KINDS; k++) {
				h[i][k] = (struct hammer){
					.m = &m[i], .kind = k, .stop = &stop,
					.seed = seed + 1000 * rounds + 10 * i + k,
					.calm = good[GUEST] ? 1 : rounds,
				};
				ASSERT_EQ(0, pthread_create(&h[i][k].thread,
							    NULL, hammer,
							    &h[i][k]));
			}
		}
		sleep_ms(ROUND_MS);
		/* The last time the vGPUs are taken away, too. */
		for (i = 0; last && i < NR_VMS; i++) {
			snprintf(path, sizeof(path), "%s/%s/remove",
				 VMM_DEVICES, uuid[i]);
			remover[i] = sysfs_write_aside(path, "1");
			ASSERT_LT(0, remover[i]);
		}
		if (last)
			sleep_ms(ROUND_MS / 4);
		for (i = 0; i < NR_VMS; i++)
			slam(&m[i], seed + rounds + i);
		sleep_ms(20);
		stop = true;
		pthread_join(s.thread, NULL);
		for (i = 0; i < NR_VMS; i++) {
			for (k = 0; k < NR_KINDS; k++) {
				pthread_join(h[i][k].thread, NULL);
				tried[k] += h[i][k].tried;
				good[k] += h[i][k].good;
			}
			/* The thread that reopens may have done so after the close. */
			slam(&m[i], 0);
			machine_close(&m[i]);
			if (last) {
				EXPECT_TRUE(ends(remover[i], VMM_TIMEOUT));
				EXPECT_FALSE(mdev_exists(uuid[i]));
				continue;
			}
			ASSERT_EQ(0, nl_vgpu_get(&self->nl, uuid[i], &v));
			EXPECT_FALSE(v.open);
			EXPECT_EQ(0, v.pinned);
			EXPECT_EQ(0, v.mem_used);
			/* It works as one that nothing has happened to. */
			ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, uuid[i], 100, 0, 0,
						      NL_KEEP, NL_KEEP));
			ASSERT_EQ(0, vm_open(&m[i].vm, uuid[i], VMM_RAM));
			ASSERT_EQ(0, vm_start(&m[i].vm));
			ASSERT_EQ(0, gpu_screen_2d(&m[i].vm, &screen, 1,
						   VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
						   SIDE, SIDE));
			memset(screen.pixels, 0x5a, SIDE * SIDE * 4);
			ASSERT_EQ(0, gpu_show(&m[i].vm, &screen));
			ASSERT_NE(NULL, display_map(&m[i].vm, &len));
			EXPECT_EQ(0x5a5a5a, m[i].vm.display[SIDE * SIDE - 1] &
					    0xffffff);
			vm_close(&m[i].vm);
		}
		if (!last)
			EXPECT_EQ(used[1], refs("mgpu_soft"));
		EXPECT_EQ(fds, nr_fds());
	}
	for (k = 0; k < NR_KINDS; k++) {
		TH_LOG("%s: %lu, %lu of them succeeded", kind_name[k], tried[k],
		       good[k]);
		EXPECT_LT(0, good[k]);
	}
	TH_LOG("%u rounds, %lu settings", rounds, s.good);
	EXPECT_LT(0, s.good);
	EXPECT_GE(used[0], refs("mgpu"));
}

TEST_HARNESS_MAIN
