// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu_user: the requests of supervisors and workers, what goes through a channel, and
 * workers that misbehave, hang or die.  The workers are those of lib/user.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drm.h>
#include <drm_fourcc.h>
#include <linux/udmabuf.h>

#include <kselftest_harness.h>

#include "allocs.h"
#include "user.h"
#include "virgl.h"

#define RAM	(16u << 20)
#define SIDE	64u
#define PIXELS	(SIDE * SIDE)
/* ms; a worker that answers must not stand still for as long */
#define JOB_TIMEOUT	2000

/* A VM with its worker. */
struct pair {
	struct gl g;
	struct worker w;
	int ret;
};

static void *open_vm(void *arg)
{
	struct pair *p = arg;

	p->ret = gl_new(&p->g, "small-render", RAM);
	return NULL;
}

/* The VMM's open waits for a worker. @pid: NULL, or the worker is another process. */
static int pair_new(struct pair *p, struct user_dev *d, pid_t *pid)
{
	struct mgpu_user_event e;
	pthread_t vmm;
	int ret;

	p->w.fd = -1;
	/* The first look makes this the supervisor. */
	while ((ret = user_event(d, &e, 0)) == 1)
		;
	if (ret != -ETIMEDOUT)
		return ret;
	ret = -pthread_create(&vmm, NULL, open_vm, p);
	if (ret)
		return ret;
	do {
		ret = user_event(d, &e, VMM_TIMEOUT);
	} while (ret == 1 && e.type != MGPU_USER_EVENT_OPENED);
	ret = ret == 1 ? 0 : -ETIMEDOUT;
	if (!ret && pid) {
		*pid = worker_fork(d, e.vgpu);
		ret = *pid < 0 ? *pid : 0;
	} else if (!ret) {
		ret = worker_attach(&p->w, d, e.vgpu);
		if (!ret)
			ret = worker_begin(&p->w);
	}
	pthread_join(vmm, NULL);
	return ret ? ret : p->ret;
}

static void pair_delete(struct pair *p)
{
	if (p->w.thread)
		worker_end(&p->w);
	if (p->w.a.size)
		worker_close(&p->w);
	if (p->g.vm.made)
		gl_delete(&p->g);
}

/* After a reset of the guest: a context with a picture in its memory. */
static uint32_t *picture(struct gl *g)
{
	if (gl_ctx(&g->vm, 1) != OK)
		return NULL;
	return gl_picture(&g->vm, 1, 1, SIDE, SIDE, 0);
}

static int move(struct gl *g, bool to_host)
{
	struct gl_move m = {
		.ctx = 1, .res = 1, .box = { .w = SIDE, .h = SIDE, .d = 1 }, .up = to_host,
	};

	return gl_move(&g->vm, &m);
}

/* Begin to move the picture to the worker. */
static int move_send(struct gl *g)
{
	struct gl_move m = {
		.ctx = 1, .res = 1, .box = { .w = SIDE, .h = SIDE, .d = 1 }, .up = true,
	};

	return gl_move_send(&g->vm, &m, 0);
}

/* Return whether a picture goes to the worker and comes back. */
static bool keeps(struct gl *g, uint32_t *pixels, uint32_t pattern)
{
	size_t i;

	for (i = 0; i < PIXELS; i++)
		pixels[i] = pattern + (uint32_t)i;
	if (move(g, true) != OK)
		return false;
	memset(pixels, 0, PIXELS * 4);
	if (move(g, false) != OK)
		return false;
	for (i = 0; i < PIXELS; i++)
		if (pixels[i] != pattern + (uint32_t)i)
			return false;
	return true;
}

FIXTURE(user)
{
	struct user_dev d;
	struct pair p[2];
};

FIXTURE_SETUP(user)
{
	ASSERT_EQ(0, user_dev_new(&self->d, 0, 1, 3, 2));
	ASSERT_EQ(0, setenv("MGPU_PARENT", self->d.parent, 1));
}

FIXTURE_TEARDOWN(user)
{
	pair_delete(&self->p[0]);
	pair_delete(&self->p[1]);
	EXPECT_EQ(0, user_dev_delete(&self->d));
}

/* ---- requests ---- */

static int create(const struct user_dev *d, const struct mgpu_user_create *c)
{
	struct mgpu_user_create copy = *c;
	int ret = ioctl(d->control, MGPU_USER_CREATE, &copy);

	if (!ret) {
		struct mgpu_user_destroy destroy = { .size = sizeof(destroy), .id = copy.id };

		ioctl(d->control, MGPU_USER_DESTROY, &destroy);
		return 0;
	}
	return -errno;
}

TEST_F(user, a_device_is_made_of_valid_requests_only)
{
	static uint8_t caps[308];
	struct mgpu_user_capset set = {
		.id = 1, .version = 1, .len = sizeof(caps), .data = (uintptr_t)caps,
	};
	struct mgpu_user_create ok = {
		.size = sizeof(ok), .engines = 1, .depth = 2, .max_vgpus = 4,
		.nr_capsets = 1, .capsets = (uintptr_t)&set,
	}, c;
	struct {
		struct mgpu_user_create c;
		uint64_t more;
	} longer = { .c = ok };
	struct mgpu_user_destroy destroy = { .size = sizeof(destroy) };

	EXPECT_EQ(0, create(&self->d, &ok));
#define REFUSED(err, field, value) do {					\
	c = ok;								\
	c.field = value;						\
	EXPECT_EQ(-(err), create(&self->d, &c));			\
} while (0)
	REFUSED(EINVAL, size, 3);
	REFUSED(EINVAL, flags, 1u << 31);
	REFUSED(EINVAL, engines, 0);
	REFUSED(EINVAL, engines, 3);	/* more than depth */
	REFUSED(EINVAL, depth, MGPU_USER_MAX_ENGINES + 1);
	REFUSED(EINVAL, vgpu_depth, 3);
	REFUSED(EINVAL, max_vgpus, 0);
	REFUSED(EINVAL, max_vgpus, 4096);
	REFUSED(EINVAL, nr_capsets, 0);
	REFUSED(EINVAL, nr_capsets, MGPU_USER_MAX_CAPSETS + 1);
	REFUSED(EFAULT, capsets, 0);
	REFUSED(EINVAL, pci_domain, 1);	/* without MGPU_USER_CREATE_PCI */
	REFUSED(EINVAL, pci_bus, 1);
	REFUSED(EINVAL, pci_devfn, 1);
	REFUSED(EINVAL, reserved, 1);
	set.len = 0;
	EXPECT_EQ(-EINVAL, create(&self->d, &ok));
	set.len = MGPU_USER_MAX_CAPSET + 1;
	EXPECT_EQ(-EINVAL, create(&self->d, &ok));
	set.len = sizeof(caps);
	set.reserved = 1;
	EXPECT_EQ(-EINVAL, create(&self->d, &ok));
	set.reserved = 0;
	set.id = 99;
	EXPECT_EQ(-EOPNOTSUPP, create(&self->d, &ok));
	c = ok;
	c.flags = MGPU_USER_CREATE_CONTEXT_INIT;
	EXPECT_EQ(0, create(&self->d, &c));
	set.id = 256;
	EXPECT_EQ(-EINVAL, create(&self->d, &c));
	set.id = 0;
	EXPECT_EQ(-EINVAL, create(&self->d, &c));
	set.id = 1;

	/* A shorter structure, of an earlier version. */
	c = ok;
	c.size = offsetof(struct mgpu_user_create, pci_domain);
	EXPECT_EQ(0, create(&self->d, &c));
	/* A longer structure, of a later version. */
	longer.c.size = sizeof(longer);
	ASSERT_EQ(0, ioctl(self->d.control, MGPU_USER_CREATE, &longer));
	destroy.id = longer.c.id;
	EXPECT_EQ(0, ioctl(self->d.control, MGPU_USER_DESTROY, &destroy));
	EXPECT_EQ(-ENODEV, ioctl(self->d.control, MGPU_USER_DESTROY, &destroy) ? -errno : 0);
	longer.more = 1;
	EXPECT_EQ(-E2BIG, ioctl(self->d.control, MGPU_USER_CREATE, &longer) ? -errno : 0);
	EXPECT_EQ(-ENOTTY, ioctl(self->d.control, 0x4d00) ? -errno : 0);
}

TEST_F(user, a_channel_belongs_to_one_open_vgpu)
{
	struct mgpu_user_event e;
	struct worker other;
	struct gl *g = &self->p[0].g;
	int fd;

	fd = open(self->d.path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	other.fd = fd;
	EXPECT_EQ(-ENOTCONN, worker_enter(&other, 0, NULL));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(ENOTCONN, errno);
	close(fd);

	EXPECT_EQ(-ETIMEDOUT, user_event(&self->d, &e, 0));
	EXPECT_EQ(-ENODEV, worker_attach(&other, &self->d, 4000));
	ASSERT_EQ(0, pair_new(&self->p[0], &self->d, NULL));
	EXPECT_EQ(-EBUSY, worker_attach(&other, &self->d, g->vgpu));
	fd = open(self->d.path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, ioctl(fd, MGPU_USER_ATTACH, &(struct mgpu_user_attach){
		.size = sizeof(struct mgpu_user_attach), .vgpu = g->vgpu, .flags = 2 }));
	EXPECT_EQ(EINVAL, errno);
	close(fd);

	/* Commands cannot be written by the worker. */
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
				   self->p[0].w.fd, MGPU_USER_OFF_ARENA));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(-1, mprotect((void *)self->p[0].w.arena, 4096, PROT_READ | PROT_WRITE));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE,
				   self->p[0].w.fd, MGPU_USER_OFF_MEM));

	vm_close(&g->vm);
	ASSERT_EQ(1, user_event(&self->d, &e, VMM_TIMEOUT));
	EXPECT_EQ(MGPU_USER_EVENT_CLOSED, e.type);
	EXPECT_EQ(g->vgpu, e.vgpu);
	EXPECT_STREQ(g->vm.uuid, (const char *)e.uuid);
	/* The worker learns it, too. */
	EXPECT_EQ(-ENODEV, worker_end(&self->p[0].w));
	self->p[0].w.thread = 0;
}

/* ---- commands ---- */

TEST_F(user, pictures_and_streams_go_to_the_worker_and_back)
{
	struct pair *p = &self->p[0];
	struct gl_stream s;
	uint32_t *pixels;
	size_t i;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	pixels = picture(&p->g);
	ASSERT_NE(NULL, pixels);
	/* The resource began as zeros. */
	memset(pixels, 0x5a, PIXELS * 4);
	ASSERT_EQ(OK, move(&p->g, false));
	for (i = 0; i < PIXELS && !pixels[i]; i++)
		;
	EXPECT_EQ(PIXELS, i);
	for (i = 0; i < 50; i++)
		EXPECT_TRUE(keeps(&p->g, pixels, (uint32_t)i << 20));

	gl_begin(&s);
	gl_blit(&s, 1, SIDE, SIDE, 1, SIDE / 2, SIDE / 2);
	i = p->w.submits;
	EXPECT_EQ(OK, gl_run(&p->g.vm, 1, &s));
	EXPECT_EQ(i + 1, p->w.submits);
	EXPECT_EQ(s.n * 4, p->w.stream_len);
	EXPECT_EQ(s.w[0], p->w.stream[0]);
	EXPECT_EQ(OK, gl_ctx_end(&p->g.vm, 1));
	EXPECT_EQ(OK, gpu_unref(&p->g.vm, 1));
}

#define AT_A_TIME	8	/* commands in flight */
#define NR_LENGTHS	5

/* Streams of one command that does nothing, at these offsets of the guest's memory. */
static const struct {
	uint32_t at, len;
} lengths[NR_LENGTHS] = {
	{ 0, 200 }, { 4096, 1500 }, { 8192, 9000 }, { 20480, 40000 }, { 61440, 100000 },
};

/* Have the guest send streams and transfers, several at a time.  Return 0 or an error. */
static int draw(struct gl *g, unsigned int commands)
{
	const struct gl_move m = {
		.ctx = 1, .res = 1, .box = { .w = SIDE, .h = SIDE, .d = 1 }, .up = true,
	};
	unsigned int i, kind;
	int head[AT_A_TIME], ret;

	for (i = 0; i < commands + AT_A_TIME; i++) {
		if (i >= AT_A_TIME) {
			ret = gl_result(&g->vm, head[i % AT_A_TIME], NULL);
			if (ret != OK)
				return ret;
		}
		if (i >= commands)
			continue;
		kind = i % (NR_LENGTHS + 1);
		head[i % AT_A_TIME] = kind == NR_LENGTHS ?
			gl_move_send(&g->vm, &m, ++g->vm.next_fence) :
			gl_send_bytes(&g->vm, 1, ++g->vm.next_fence,
				      g->stream + lengths[kind].at, lengths[kind].len,
				      lengths[kind].len);
	}
	return 0;
}

/* Commands of OpenGL allocate for the first of them only. */
TEST_F_TIMEOUT(user, streams_and_transfers_soon_allocate_nothing, 90)
{
	const unsigned int commands = 600;
	struct pair *p = &self->p[0];
	struct nl_vgpu before, after;
	struct allocs a;
	unsigned int i;
	long long n;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	ASSERT_NE(NULL, picture(&p->g));
	for (i = 0; i < NR_LENGTHS; i++)
		*(uint32_t *)(p->g.stream + lengths[i].at) = (lengths[i].len / 4 - 1) << 16;
	ASSERT_EQ(0, nl_vgpu_get(&p->g.nl, p->g.vm.uuid, &before));
	ASSERT_EQ(0, draw(&p->g, commands));

	ASSERT_EQ(0, allocs_begin(&a));
	ASSERT_EQ(0, draw(&p->g, commands));
	n = allocs_end(&a);
	TH_LOG("%lld allocations for %u commands", n, commands);
	EXPECT_LE(0, n);
	EXPECT_GT(commands / 10, n);
	/* Kept buffers are not charged as streams. */
	ASSERT_EQ(0, nl_vgpu_get(&p->g.nl, p->g.vm.uuid, &after));
	EXPECT_EQ(before.mem_used, after.mem_used);

	/* The counters see allocations: each context is one. */
	ASSERT_EQ(0, allocs_begin(&a));
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(OK, gl_ctx(&p->g.vm, 2));
		EXPECT_EQ(OK, gl_ctx_end(&p->g.vm, 2));
	}
	EXPECT_LE(20, allocs_end(&a));
}

/* A worker that refuses commands is an error to the guest, and no more. */
TEST_F(user, errors_of_the_worker_reach_the_guest)
{
	struct pair *p = &self->p[0];
	uint32_t *pixels;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	pixels = picture(&p->g);
	ASSERT_NE(NULL, pixels);
	p->w.way = WORKER_REFUSES;
	EXPECT_EQ(UNSPEC, move(&p->g, true));
	p->w.way = WORKER_FAIR;
	EXPECT_TRUE(keeps(&p->g, pixels, 7));
}

/* Without a supervisor no worker would start. */
TEST_F(user, without_a_supervisor_a_vgpu_does_not_open)
{
	struct pair *p = &self->p[0];

	EXPECT_EQ(-ENODEV, gl_new(&p->g, "small-render", RAM));
	gl_delete(&p->g);
	p->g.vm.made = false;
	EXPECT_EQ(0, pair_new(p, &self->d, NULL));
}

/* ---- time ---- */

/* The worker says how long the GPU worked: it is believed from half of the time to all. */
TEST_F(user, engine_time_is_what_the_worker_says_within_bounds)
{
	/* Time that the worker says of each job of 5 ms, and the least that is charged. */
	static const struct {
		uint64_t said, least;
	} c[] = {
		{ 0, 5000000 }, { 1, 2500000 }, { 4000000, 4000000 }, { UINT64_MAX, 5000000 },
	};
	struct pair *p = &self->p[0];
	const unsigned int jobs = 20;
	uint32_t *pixels;
	size_t i, k;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	pixels = picture(&p->g);
	ASSERT_NE(NULL, pixels);
	p->w.pause_us = 5000;
	for (i = 0; i < ARRAY_LEN(c); i++) {
		uint64_t from = nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_ENGINE_NS);
		uint64_t begin = now_ns(), passed, ns;

		p->w.busy_ns = c[i].said;
		for (k = 0; k < jobs; k++)
			ASSERT_EQ(OK, move(&p->g, true));
		passed = now_ns() - begin;
		ns = nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_ENGINE_NS) - from;
		TH_LOG("%llu ns said: %lu us of %lu us", (unsigned long long)c[i].said,
		       ns / 1000, passed / 1000);
		EXPECT_LE(jobs * c[i].least, ns);
		EXPECT_GE(passed, ns);
	}
}

/* Return the number behind a key of a file's fdinfo; -1 for none. */
static long long fdinfo(int fd, const char *key)
{
	char path[64], text[1024], *at;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (sysfs_read(path, text, sizeof(text)) < 0)
		return -1;
	at = strstr(text, key);
	return at ? atoll(at + strlen(key)) : -1;
}

TEST_F(user, fdinfo_of_a_channel_has_the_counters_of_its_vgpu)
{
	struct pair *p = &self->p[0];
	struct nl_vgpu v;
	uint32_t *pixels;
	size_t i;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	pixels = picture(&p->g);
	ASSERT_NE(NULL, pixels);
	p->w.pause_us = 1000;
	for (i = 0; i < 5; i++)
		ASSERT_EQ(OK, move(&p->g, true));
	EXPECT_EQ(p->g.vgpu, fdinfo(p->w.fd, "drm-client-id:\t"));
	EXPECT_EQ(nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_ENGINE_NS),
		  fdinfo(p->w.fd, "drm-engine-render:\t"));
	EXPECT_LE(5000000, fdinfo(p->w.fd, "drm-engine-render:\t"));
	ASSERT_EQ(0, nl_vgpu_get(&p->g.nl, p->g.vm.uuid, &v));
	EXPECT_LE(PIXELS * 4, v.mem_used);
	EXPECT_EQ((v.mem_used + 1023) / 1024, fdinfo(p->w.fd, "drm-memory-vram:\t"));
	EXPECT_EQ(-1, fdinfo(self->d.fd, "drm-client-id:\t"));
	/* A worker that has lost its vGPU shows nothing of the next one's. */
	vm_close(&p->g.vm);
	EXPECT_EQ(-1, fdinfo(p->w.fd, "drm-client-id:\t"));
}

/* ---- workers that misbehave ---- */

static bool lost(struct user_dev *d, uint32_t vgpu)
{
	struct mgpu_user_event e;

	while (user_event(d, &e, VMM_TIMEOUT) == 1)
		if (e.type == MGPU_USER_EVENT_LOST)
			return e.vgpu == vgpu;
	return false;
}

/* The first VM's worker misbehaves; the second VM notices nothing. */
#define MISBEHAVES(way_, error) do {					\
	uint32_t *own, *other;						\
									\
	ASSERT_EQ(0, pair_new(&self->p[0], &self->d, NULL));			\
	ASSERT_EQ(0, pair_new(&self->p[1], &self->d, NULL));			\
	own = picture(&self->p[0].g);					\
	other = picture(&self->p[1].g);					\
	ASSERT_NE(NULL, own);						\
	ASSERT_NE(NULL, other);						\
	self->p[0].w.way = way_;					\
	/* The first of two answers is a good one. */			\
	if (move(&self->p[0].g, true) == OK)				\
		EXPECT_EQ(WORKER_TWICE, way_);				\
	EXPECT_TRUE(lost(&self->d, self->p[0].g.vgpu));			\
	EXPECT_TRUE(keeps(&self->p[1].g, other, 3));			\
	EXPECT_EQ(error, worker_end(&self->p[0].w));			\
	worker_close(&self->p[0].w);					\
	/* The contexts are lost; a new worker serves the VM after a reset. */ \
	ASSERT_EQ(0, worker_attach(&self->p[0].w, &self->d, self->p[0].g.vgpu)); \
	ASSERT_EQ(0, worker_begin(&self->p[0].w));			\
	EXPECT_NE(OK, move(&self->p[0].g, true));			\
	ASSERT_EQ(0, vm_discover(&self->p[0].g.vm));			\
	ASSERT_EQ(0, gl_restart(&self->p[0].g));			\
	own = picture(&self->p[0].g);					\
	ASSERT_NE(NULL, own);						\
	EXPECT_TRUE(keeps(&self->p[0].g, own, 5));			\
	EXPECT_TRUE(keeps(&self->p[1].g, other, 6));			\
} while (0)

TEST_F_TIMEOUT(user, an_answer_to_no_command_costs_the_worker, 60)
{
	MISBEHAVES(WORKER_STRANGER, -EPROTO);
}

TEST_F_TIMEOUT(user, a_second_answer_costs_the_worker, 60)
{
	MISBEHAVES(WORKER_TWICE, -EPROTO);
}

TEST_F_TIMEOUT(user, an_unknown_answer_costs_the_worker, 60)
{
	MISBEHAVES(WORKER_NONSENSE, -EPROTO);
}

TEST_F_TIMEOUT(user, more_answers_than_fit_cost_the_worker, 60)
{
	MISBEHAVES(WORKER_FLOODS, -EPROTO);
}

TEST_F_TIMEOUT(user, a_worker_that_does_not_answer_is_given_up, 90)
{
	struct nl nl;

	ASSERT_EQ(0, nl_open(&nl));
	ASSERT_EQ(0, nl_dev_set(&nl, self->d.parent, NULL, JOB_TIMEOUT));
	nl_close(&nl);
	MISBEHAVES(WORKER_SILENT, -ENODEV);
}

TEST_F_TIMEOUT(user, a_worker_that_is_killed_is_replaced, 120)
{
	struct pair *p = &self->p[0];
	uint32_t *pixels;
	unsigned int i;
	pid_t pid;

	ASSERT_EQ(0, pair_new(p, &self->d, &pid));
	for (i = 0; i < 20; i++) {
		if (i) {
			pid = worker_fork(&self->d, p->g.vgpu);
			ASSERT_LT(0, pid);
			ASSERT_EQ(0, vm_discover(&p->g.vm));
			ASSERT_EQ(0, gl_restart(&p->g));
		}
		pixels = picture(&p->g);
		ASSERT_NE(NULL, pixels);
		ASSERT_TRUE(keeps(&p->g, pixels, i));
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		ASSERT_TRUE(lost(&self->d, p->g.vgpu));
		EXPECT_NE(OK, move(&p->g, true));
	}
}

/* A resource of 64 x 64 pixels, which the module clears. */
static int send_create(struct vm *vm, uint32_t id)
{
	struct virtio_gpu_resource_create_3d c = {
		.resource_id = id, .target = GL_2D, .format = GL_B8G8R8A8,
		.bind = GL_TARGET | GL_SAMPLED, .width = SIDE, .height = SIDE, .depth = 1,
		.array_size = 1,
	};

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_3D);
	return gpu_send(vm, VMM_CONTROL, &c, sizeof(c), sizeof(struct virtio_gpu_ctrl_hdr));
}

/* Give workers a minute: whatever waits for a silent one fails before. */
static int trust_workers(const struct user_dev *d)
{
	struct nl nl;
	int ret = nl_open(&nl);

	if (ret)
		return ret;
	ret = nl_dev_set(&nl, d->parent, NULL, 60000);
	nl_close(&nl);
	return ret;
}

/* Two slots of three are all that one VM gets. */
TEST_F_TIMEOUT(user, a_worker_that_hangs_leaves_a_slot_to_others, 90)
{
	uint32_t *own, *other, i, seen;
	uint64_t end = now_ms() + VMM_TIMEOUT;

	ASSERT_EQ(0, trust_workers(&self->d));
	ASSERT_EQ(0, pair_new(&self->p[0], &self->d, NULL));
	ASSERT_EQ(0, pair_new(&self->p[1], &self->d, NULL));
	own = picture(&self->p[0].g);
	other = picture(&self->p[1].g);
	ASSERT_NE(NULL, own);
	ASSERT_NE(NULL, other);
	self->p[0].w.way = WORKER_SILENT;
	seen = self->p[0].w.seen;
	for (i = 0; i < 4; i++)
		ASSERT_LE(0, move_send(&self->p[0].g));
	while (self->p[0].w.seen < seen + 2 && now_ms() < end)
		sleep_ms(1);
	EXPECT_TRUE(keeps(&self->p[1].g, other, 3));
	EXPECT_EQ(seen + 2, self->p[0].w.seen);
}

/*
 * A guest was reset while its worker did not run: notices of all that it had fill the
 * channel, and its next job waits for room, in a slot.
 */
TEST_F_TIMEOUT(user, a_full_channel_holds_up_its_own_vm_only, 90)
{
	struct pair *p = &self->p[0];
	struct vm *vm = &p->g.vm;
	uint32_t *other, i;
	int head;

	ASSERT_EQ(0, trust_workers(&self->d));
	ASSERT_EQ(0, pair_new(&self->p[0], &self->d, NULL));
	ASSERT_EQ(0, pair_new(&self->p[1], &self->d, NULL));
	other = picture(&self->p[1].g);
	ASSERT_NE(NULL, other);
	p->w.way = WORKER_AGREES;
	for (i = 1; i < p->w.a.entries; i++) {
		head = send_create(vm, i);
		ASSERT_LE(0, head);
		ASSERT_EQ(OK, gpu_result(vm, VMM_CONTROL, (uint16_t)head, NULL, 0,
					 VMM_TIMEOUT));
	}
	ASSERT_EQ(0, worker_end(&p->w));
	ASSERT_EQ(0, vm_discover(vm));
	ASSERT_EQ(0, gl_restart(&p->g));
	ASSERT_EQ(p->w.a.entries - 1, p->w.ring->cmd_tail - p->w.ring->cmd_head);
	head = send_create(vm, 1);
	ASSERT_LE(0, head);
	EXPECT_TRUE(keeps(&self->p[1].g, other, 3));
	EXPECT_EQ(p->w.a.entries - 1, p->w.ring->cmd_tail - p->w.ring->cmd_head);
	ASSERT_EQ(0, worker_begin(&p->w));
	EXPECT_EQ(OK, gpu_result(vm, VMM_CONTROL, (uint16_t)head, NULL, 0, VMM_TIMEOUT));
}

/* ---- turns ---- */

/* Wait until a worker has taken a number of turns. */
static bool has_turns(const struct worker *w, unsigned int nr, uint64_t ms)
{
	uint64_t end = now_ms() + ms;

	while (w->turns < nr && now_ms() < end)
		sleep_ms(1);
	return w->turns >= nr;
}

static uint64_t jobs_of(struct pair *p)
{
	return nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_JOBS);
}

/* Wait until so many jobs of the vGPU have ended, turns among them, and are charged. */
static bool jobs_end(struct pair *p, uint64_t jobs)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;

	while (jobs_of(p) < jobs && now_ms() < end)
		sleep_ms(1);
	return jobs_of(p) >= jobs;
}

/* Take turns until the last one was charged, and return what all were. */
static uint64_t charge_turns(struct pair *p, unsigned int nr)
{
	uint64_t from = nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_ENGINE_NS);
	uint64_t end = now_ms() + VMM_TIMEOUT;
	uint64_t jobs = jobs_of(p) + (p->w.turn != TURN_NONE);
	unsigned int i, taken = p->w.turns;

	for (i = 1; i <= nr; i++) {
		while (worker_turn(&p->w) == -EBUSY && now_ms() < end)
			sleep_ms(1);
		if (!has_turns(&p->w, taken + i, VMM_TIMEOUT))
			return 0;
	}
	if (!jobs_end(p, jobs + nr))
		return 0;
	return nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_ENGINE_NS) - from;
}

TEST_F(user, a_turn_is_a_job)
{
	struct pair *p = &self->p[0];
	struct mgpu_user_turn t = { .size = sizeof(t), .flags = 1 };
	uint64_t jobs, begin, ns;
	uint32_t *pixels;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	EXPECT_EQ(-1, ioctl(p->w.fd, MGPU_USER_TURN, &t));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(self->d.fd, MGPU_USER_TURN, &(struct mgpu_user_turn){ sizeof(t), 0 }));
	EXPECT_EQ(ENOTCONN, errno);
	pixels = picture(&p->g);
	ASSERT_NE(NULL, pixels);
	jobs = nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_JOBS);
	p->w.keep_turn = true;
	EXPECT_EQ(0, worker_turn(&p->w));
	EXPECT_TRUE(has_turns(&p->w, 1, VMM_TIMEOUT));
	/* Commands go on meanwhile. */
	EXPECT_TRUE(keeps(&p->g, pixels, 5));
	p->w.keep_turn = false;
	begin = now_ns();
	p->w.busy_ns = UINT64_MAX;
	ns = charge_turns(p, 20);
	TH_LOG("20 turns: %lu us of %lu us", ns / 1000, (now_ns() - begin) / 1000);
	EXPECT_LT(0, ns);
	EXPECT_LE(jobs + 23, nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_JOBS));
}

/* Jobs of others that end meanwhile take nothing of a turn's time, and lose nothing of theirs. */
TEST_F(user, a_turn_beside_jobs_of_others_is_charged_whole)
{
	struct pair *p = &self->p[0], *other = &self->p[1];
	uint64_t from[2], begin, passed, jobs, ns;
	uint32_t *pixels;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	ASSERT_EQ(0, pair_new(other, &self->d, NULL));
	pixels = picture(&other->g);
	ASSERT_NE(NULL, pixels);
	p->w.busy_ns = UINT64_MAX;
	p->w.keep_turn = true;
	jobs = jobs_of(p);
	from[0] = nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_ENGINE_NS);
	ASSERT_EQ(0, worker_turn(&p->w));
	ASSERT_TRUE(has_turns(&p->w, 1, VMM_TIMEOUT));
	begin = now_ns();
	while (now_ns() - begin < 200000000)
		ASSERT_EQ(OK, move(&other->g, true));
	/* One that begins before the turn's end, and ends behind it. */
	other->w.pause_us = 100000;
	other->w.busy_ns = UINT64_MAX;
	from[1] = nl_stat(&p->g.nl, other->g.vm.uuid, MGPU_A_STATS_ENGINE_NS);
	ASSERT_LE(0, move_send(&other->g));
	sleep_ms(50);
	p->w.keep_turn = false;
	passed = now_ns() - begin;
	ASSERT_TRUE(jobs_end(p, jobs + 1));
	ns = nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_ENGINE_NS) - from[0];
	TH_LOG("turn: %lu us of %lu us", ns / 1000, passed / 1000);
	EXPECT_LE(passed, ns);
	other->w.pause_us = 0;
	ASSERT_EQ(OK, move(&other->g, true));
	ns = nl_stat(&p->g.nl, other->g.vm.uuid, MGPU_A_STATS_ENGINE_NS) - from[1];
	TH_LOG("job of 100 ms beside its end: %lu us", ns / 1000);
	EXPECT_LE(100000000, ns);
}

/*
 * The next turn waits while one lasts, and no third one.  A vGPU of more weight has it before the
 * jobs of another one, which have waited for longer.
 */
TEST_F(user, a_turn_follows_a_turn)
{
	struct pair *p = &self->p[0], *other = &self->p[1];
	struct nl_vgpu v;
	unsigned int seen;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	ASSERT_EQ(0, pair_new(other, &self->d, NULL));
	ASSERT_NE(NULL, picture(&other->g));
	ASSERT_EQ(0, nl_vgpu_get(&p->g.nl, p->g.vm.uuid, &v));
	ASSERT_EQ(0, nl_dev_set_slots(&p->g.nl, v.dev_id, 1));
	ASSERT_EQ(0, nl_vgpu_set(&p->g.nl, p->g.vm.uuid, MGPU_WEIGHT_MAX, NL_KEEP));
	/* The other one has used more than its share. */
	ASSERT_EQ(0, nl_vgpu_set(&p->g.nl, other->g.vm.uuid, MGPU_WEIGHT_MIN, NL_KEEP));
	other->w.pause_us = 20000;
	ASSERT_EQ(OK, move(&other->g, true));
	p->w.keep_turn = true;
	ASSERT_EQ(0, worker_turn(&p->w));
	ASSERT_TRUE(has_turns(&p->w, 1, VMM_TIMEOUT));
	/* So long has this thread to see the next turn, which ends at once. */
	other->w.pause_us = 2000000;
	seen = other->w.seen;
	for (int i = 0; i < 3; i++)
		ASSERT_LE(0, move_send(&other->g));
	sleep_ms(20);
	EXPECT_EQ(0, worker_turn(&p->w));
	EXPECT_EQ(-EBUSY, worker_turn(&p->w));
	EXPECT_EQ(1, p->w.turns);
	p->w.keep_turn = false;
	EXPECT_TRUE(has_turns(&p->w, 2, VMM_TIMEOUT));
	EXPECT_EQ(seen, other->w.seen);
	other->w.pause_us = 0;
	EXPECT_EQ(OK, move(&other->g, true));
}

/* A vGPU that has used its engine time gets no turn. */
TEST_F(user, a_turn_waits_for_engine_time)
{
	struct pair *p = &self->p[0];
	struct worker *w = &p->w;
	uint64_t jobs, over;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	ASSERT_EQ(0, nl_vgpu_set_full(&p->g.nl, p->g.vm.uuid, NL_KEEP, NL_KEEP, 10000, 100000,
				      0));
	jobs = jobs_of(p);
	w->busy_ns = UINT64_MAX;
	w->keep_turn = true;
	ASSERT_EQ(0, worker_turn(w));
	ASSERT_TRUE(has_turns(w, 1, VMM_TIMEOUT));
	/* One percent of the time: more than it may have in 2 s, the longest wait. */
	sleep_ms(50);
	over = now_ms();
	w->keep_turn = false;
	ASSERT_TRUE(jobs_end(p, jobs + 1));
	EXPECT_EQ(0, worker_turn(w));
	/* Unless this thread stood still until the wait was over. */
	EXPECT_TRUE(!has_turns(w, 2, 500) || now_ms() - over >= 1900);
	ASSERT_EQ(0, nl_vgpu_set_full(&p->g.nl, p->g.vm.uuid, NL_KEEP, NL_KEEP, 0, NL_KEEP,
				      NL_KEEP));
	EXPECT_TRUE(has_turns(w, 2, VMM_TIMEOUT));
}

/* A turn that waits is forgotten; one that the worker has ends before the reset does. */
TEST_F(user, a_reset_ends_a_turn)
{
	struct pair *p = &self->p[0];
	struct vm *vm = &p->g.vm;
	struct worker *w = &p->w;
	uint64_t jobs, over;
	unsigned int turns;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	ASSERT_EQ(0, nl_vgpu_set_full(&p->g.nl, vm->uuid, NL_KEEP, NL_KEEP, 10000, 100000, 0));
	jobs = jobs_of(p);
	w->busy_ns = UINT64_MAX;
	w->keep_turn = true;
	ASSERT_EQ(0, worker_turn(w));
	ASSERT_TRUE(has_turns(w, 1, VMM_TIMEOUT));
	sleep_ms(20);
	over = now_ms();
	w->keep_turn = false;
	ASSERT_TRUE(jobs_end(p, jobs + 1));
	EXPECT_EQ(0, worker_turn(w));
	ASSERT_EQ(0, ioctl(vm->device, VFIO_DEVICE_RESET));
	/* After almost 2 s, it may have had its turn before the reset. */
	turns = now_ms() - over < 1800 ? 1 : w->turns;
	EXPECT_EQ(-EAGAIN, worker_turn(w));
	ASSERT_EQ(0, nl_vgpu_set_full(&p->g.nl, vm->uuid, NL_KEEP, NL_KEEP, 0, NL_KEEP,
				      NL_KEEP));
	ASSERT_EQ(0, vm_discover(vm));
	ASSERT_EQ(0, gl_restart(&p->g));
	EXPECT_EQ(turns, w->turns);
	EXPECT_EQ(0, worker_turn(w));
	EXPECT_TRUE(has_turns(w, turns + 1, VMM_TIMEOUT));
}

TEST_F_TIMEOUT(user, a_turn_without_an_end_costs_the_worker, 60)
{
	struct pair *p = &self->p[0];
	struct nl nl;

	ASSERT_EQ(0, nl_open(&nl));
	ASSERT_EQ(0, nl_dev_set(&nl, self->d.parent, NULL, JOB_TIMEOUT));
	nl_close(&nl);
	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	p->w.keep_turn = true;
	ASSERT_EQ(0, worker_turn(&p->w));
	ASSERT_TRUE(lost(&self->d, p->g.vgpu));
	EXPECT_EQ(-ENODEV, worker_turn(&p->w));
	EXPECT_EQ(1, nl_stat(&p->g.nl, p->g.vm.uuid, MGPU_A_STATS_HANGS));
}

TEST_F(user, a_vgpu_in_quarantine_gets_no_turn)
{
	struct pair *p = &self->p[0];

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	ASSERT_EQ(0, nl_vgpu_set_quarantine(&p->g.nl, p->g.vm.uuid, 1));
	EXPECT_EQ(-EACCES, worker_turn(&p->w));
	ASSERT_EQ(0, nl_vgpu_set_quarantine(&p->g.nl, p->g.vm.uuid, 0));
	EXPECT_EQ(0, worker_turn(&p->w));
	EXPECT_TRUE(has_turns(&p->w, 1, VMM_TIMEOUT));
}

/* ---- cgroups ---- */

#define CGROUPS		"/sys/fs/cgroup"
#define GROUP		CGROUPS "/mgpu-user-test"

/* In a process of its own: attach a worker from the root cgroup. Return where it is then. */
static void attach_from_root(const struct user_dev *d, uint32_t vgpu, char *group, size_t size)
{
	struct mgpu_user_attach a = {
		.size = sizeof(a), .vgpu = vgpu, .flags = MGPU_USER_ATTACH_CGROUPS,
	};
	int fd = open(d->path, O_RDWR | O_CLOEXEC);

	if (sysfs_write(CGROUPS "/cgroup.procs", "0") || ioctl(fd, MGPU_USER_ATTACH, &a))
		snprintf(group, size, "%s", strerror(errno));
	else
		sysfs_read("/proc/self/cgroup", group, size);
}

TEST_F(user, a_worker_joins_the_cgroup_of_its_vmm)
{
	struct pair *p = &self->p[0];
	struct mgpu_user_attach a = {
		.size = sizeof(a), .flags = MGPU_USER_ATTACH_CGROUPS,
	};
	char group[128] = "";
	int fds[2], fd;
	pid_t pid;

	ASSERT_EQ(0, mkdir(GROUP, 0755));
	ASSERT_EQ(0, sysfs_write(GROUP "/cgroup.procs", "0"));
	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	EXPECT_LT(0, p->w.a.mem_limit);
	a.vgpu = p->g.vgpu;
	fd = open(self->d.path, O_RDWR | O_CLOEXEC);
	/* This process has a thread more, the worker's. */
	EXPECT_EQ(-1, ioctl(fd, MGPU_USER_ATTACH, &a));
	EXPECT_EQ(EINVAL, errno);
	close(fd);
	EXPECT_EQ(0, worker_end(&p->w));
	worker_close(&p->w);

	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		attach_from_root(&self->d, p->g.vgpu, group, sizeof(group));
		_exit(write(fds[1], group, sizeof(group)) != sizeof(group));
	}
	EXPECT_EQ(sizeof(group), read(fds[0], group, sizeof(group)));
	EXPECT_NE(NULL, strstr(group, "0::/mgpu-user-test"));
	TH_LOG("the worker is in %s", group);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	close(fds[0]);
	close(fds[1]);
	/* The vGPU's thread of the kernel is in there, too. */
	vm_close(&p->g.vm);
	EXPECT_EQ(0, sysfs_write(CGROUPS "/cgroup.procs", "0"));
	EXPECT_EQ(0, cgroup_remove(GROUP));
}

/* ---- memory ---- */

/*
 * Wait for the @nr-th command from @from on that attaches memory, which no thread of the
 * worker takes meanwhile. Return NULL when it does not come in time.
 */
static const struct mgpu_user_cmd *await_attach(const struct worker *w, uint32_t from,
						unsigned int nr)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;

	while (now_ms() < end) {
		uint32_t tail = __atomic_load_n(&w->ring->cmd_tail, __ATOMIC_ACQUIRE);
		unsigned int found = 0;

		for (uint32_t i = from; i != tail; i++) {
			const struct mgpu_user_cmd *cmd = &w->cmds[i % w->a.entries];
			const struct virtio_gpu_ctrl_hdr *hdr =
				(const void *)(w->arena + cmd->offset);

			if (hdr->type == VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING &&
			    ++found == nr)
				return cmd;
		}
		sleep_ms(1);
	}
	return NULL;
}

/* A worker that keeps its mapping does not see the memory of the guest any more. */
TEST_F(user, memory_that_was_detached_is_not_there)
{
	struct pair *p = &self->p[0];
	struct worker_res *r = NULL;
	uint32_t *pixels;
	volatile uint32_t *seen;
	size_t i;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	p->w.keep_maps = true;
	pixels = picture(&p->g);
	ASSERT_NE(NULL, pixels);
	EXPECT_TRUE(keeps(&p->g, pixels, 0x12340000));
	for (i = 0; i < WORKER_RESOURCES; i++)
		if (p->w.res[i].id)
			r = &p->w.res[i];
	ASSERT_NE(NULL, r);
	ASSERT_NE(NULL, r->map);
	seen = (volatile uint32_t *)(r->map + r->at[0]);
	EXPECT_EQ(0x12340000, seen[0]);
	ASSERT_EQ(OK, gpu_detach(&p->g.vm, 1));
	pixels[0] = 0x77777777;
	EXPECT_EQ(0, seen[0]);
	/* Nor does what it writes reach the guest. */
	seen[0] = 0x11111111;
	EXPECT_EQ(0x77777777, pixels[0]);
}

/*
 * A guest does not wait for one command before it sends the next. The resource is cleared
 * with memory of the module, which is detached again, while the guest's own memory is
 * attached already: that must stay.
 */
TEST_F(user, memory_that_is_attached_behind_a_detach_stays)
{
	struct {
		struct virtio_gpu_resource_attach_backing c;
		struct virtio_gpu_mem_entry e;
	} attach = { .c = { .resource_id = 1, .nr_entries = 1 } };
	struct pair *p = &self->p[0];
	struct vm *vm = &p->g.vm;
	uint32_t *pixels, from;
	int head[2];

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	ASSERT_EQ(OK, gl_ctx(vm, 1));
	pixels = vm_alloc(vm, PIXELS * 4, 4096);
	ASSERT_NE(NULL, pixels);
	attach.e.addr = vm_addr(vm, pixels);
	attach.e.length = PIXELS * 4;

	ASSERT_EQ(0, worker_end(&p->w));
	from = p->w.ring->cmd_tail;
	gpu_hdr(&attach.c.hdr, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING);
	head[0] = send_create(vm, 1);
	head[1] = gpu_send(vm, VMM_CONTROL, &attach, sizeof(attach),
			   sizeof(struct virtio_gpu_ctrl_hdr));
	ASSERT_LE(0, head[0]);
	ASSERT_LE(0, head[1]);
	/* The module's own is the first one. */
	ASSERT_NE(NULL, await_attach(&p->w, from, 2));
	ASSERT_EQ(0, worker_begin(&p->w));
	EXPECT_EQ(OK, gpu_result(vm, VMM_CONTROL, (uint16_t)head[0], NULL, 0, VMM_TIMEOUT));
	EXPECT_EQ(OK, gpu_result(vm, VMM_CONTROL, (uint16_t)head[1], NULL, 0, VMM_TIMEOUT));
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 1));
	EXPECT_TRUE(keeps(&p->g, pixels, 0x24680000));
}

/* The zeros are those of all vGPUs. */
TEST_F(user, zeros_of_the_module_cannot_be_written)
{
	const struct mgpu_user_cmd *cmd;
	struct pair *p = &self->p[0];
	int head, status;
	uint32_t from;
	pid_t pid;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	ASSERT_EQ(0, worker_end(&p->w));
	from = p->w.ring->cmd_tail;
	head = send_create(&p->g.vm, 1);
	ASSERT_LE(0, head);
	cmd = await_attach(&p->w, from, 1);
	ASSERT_NE(NULL, cmd);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		volatile uint8_t *zeros = mmap(NULL, cmd->mem_len, PROT_READ | PROT_WRITE,
					       MAP_SHARED, p->w.fd, (off_t)cmd->mem);

		if (zeros == MAP_FAILED || zeros[0] || zeros[cmd->mem_len - 1])
			_exit(1);
		zeros[0] = 1;
		_exit(2);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	ASSERT_EQ(0, worker_begin(&p->w));
	EXPECT_EQ(OK, gpu_result(&p->g.vm, VMM_CONTROL, (uint16_t)head, NULL, 0,
				 VMM_TIMEOUT));
}

/* The VMM unmaps memory that a worker has, and that answers nothing. */
TEST_F_TIMEOUT(user, a_silent_worker_does_not_hold_up_the_vmm, 60)
{
	struct pair *p = &self->p[0];
	uint64_t begin;
	uint32_t *pixels;

	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	pixels = picture(&p->g);
	ASSERT_NE(NULL, pixels);
	EXPECT_TRUE(keeps(&p->g, pixels, 1));
	p->w.way = WORKER_SILENT;
	begin = now_ns();
	ASSERT_EQ(0, vm_unmap(&p->g.vm, VMM_RAM_BASE, RAM));
	TH_LOG("unmapped in %lu us", (now_ns() - begin) / 1000);
	EXPECT_GT(VMM_TIMEOUT * 1000000ull, now_ns() - begin);
	vm_close(&p->g.vm);
}

/* ---- screens as dma-bufs ---- */

/* A dma-buf that any process can map. */
static struct {
	int card, fd;
	uint32_t stride;
	uint64_t size;
	uint8_t *map;
} buf = { .card = -1, .fd = -1 };

static bool is_vgem(int card)
{
	char name[8] = "";
	struct drm_version v = { .name = name, .name_len = sizeof(name) - 1 };

	return !ioctl(card, DRM_IOCTL_VERSION, &v) && !strcmp(name, "vgem");
}

/* Have vgem make the buffer, which the kernels of distributions have. */
static bool buf_of_vgem(uint32_t width, uint32_t height)
{
	struct drm_mode_create_dumb dumb = { .width = width, .height = height, .bpp = 32 };
	struct drm_prime_handle prime = { .flags = DRM_CLOEXEC | DRM_RDWR };
	char path[32];
	int i;

	for (i = 0; i < 8 && buf.card < 0; i++) {
		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		buf.card = open(path, O_RDWR | O_CLOEXEC);
		if (buf.card >= 0 && !is_vgem(buf.card)) {
			close(buf.card);
			buf.card = -1;
		}
	}
	if (buf.card < 0 || ioctl(buf.card, DRM_IOCTL_MODE_CREATE_DUMB, &dumb))
		return false;
	prime.handle = dumb.handle;
	if (ioctl(buf.card, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime))
		return false;
	buf.fd = prime.fd;
	buf.stride = dumb.pitch;
	buf.size = dumb.size;
	return true;
}

/* Have udmabuf make it, which the debug kernel has. */
static bool buf_of_memory(uint32_t width, uint32_t height)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int mem = memfd_create("test_user", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	buf.stride = width * 4;
	buf.size = buf.stride * height;
	create.memfd = mem;
	create.size = buf.size;
	if (dev >= 0 && mem >= 0 && !ftruncate(mem, buf.size) &&
	    !fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK))
		buf.fd = ioctl(dev, UDMABUF_CREATE, &create);
	if (mem >= 0)
		close(mem);
	if (dev >= 0)
		close(dev);
	return buf.fd >= 0;
}

static bool buf_new(uint32_t width, uint32_t height)
{
	if (!buf_of_vgem(width, height) && !buf_of_memory(width, height))
		return false;
	buf.map = mmap(NULL, buf.size, PROT_READ | PROT_WRITE, MAP_SHARED, buf.fd, 0);
	return buf.map != MAP_FAILED;
}

static void buf_delete(void)
{
	if (buf.map && buf.map != MAP_FAILED)
		munmap(buf.map, buf.size);
	if (buf.fd >= 0)
		close(buf.fd);
	if (buf.card >= 0)
		close(buf.card);
	memset(&buf, 0, sizeof(buf));
	buf.card = -1;
	buf.fd = -1;
}

#define MODIFIER	0x0100000000000001ull

static int export(const struct worker *w, uint32_t id, const struct mgpu_user_export *like)
{
	struct mgpu_user_export e = *like;

	e.resource = id;
	return ioctl(w->fd, MGPU_USER_EXPORT, &e) ? -errno : 0;
}

static struct mgpu_user_export good(void)
{
	return (struct mgpu_user_export){
		.size = sizeof(struct mgpu_user_export), .fd = buf.fd,
		.fourcc = DRM_FORMAT_XRGB8888, .stride = buf.stride, .modifier = MODIFIER,
	};
}

/* Results of the worker's exports. */
static int exported[16];
static unsigned int nr_exported;
/* Exports are like those of virgl on a virtio-gpu. */
static bool export_virgl;

static void export_good(struct worker *w, const struct virtio_gpu_resource_create_3d *c)
{
	struct mgpu_user_export e = good();

	if (export_virgl) {
		e.fourcc = DRM_FORMAT_ABGR8888;
		e.modifier = DRM_FORMAT_MOD_INVALID;
		/* The memory is not where the dma-buf's pages are. */
		e.stride = 2 * buf.size;
	}
	exported[nr_exported++ % ARRAY_LEN(exported)] = export(w, c->resource_id, &e);
}

static void export_badly(struct worker *w, const struct virtio_gpu_resource_create_3d *c)
{
	struct mgpu_user_export e;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

#define TRY(id, field, value) do {					\
	e = good();							\
	e.field = value;						\
	exported[nr_exported++ % ARRAY_LEN(exported)] = export(w, id, &e); \
} while (0)
	TRY(c->resource_id, size, 3);
	TRY(c->resource_id, flags, 1);
	TRY(c->resource_id, offset, 4);
	TRY(c->resource_id, reserved, 1);
	TRY(c->resource_id, fourcc, DRM_FORMAT_RGB565);
	TRY(c->resource_id, stride, c->width * 4 - 4);
	TRY(c->resource_id, stride, (uint32_t)(buf.size / c->height) + 1);
	TRY(c->resource_id, fd, -1);
	TRY(c->resource_id, fd, null);
	TRY(c->resource_id + 1, flags, 0);
	TRY(c->resource_id, flags, 0);
	TRY(c->resource_id, flags, 0);
	close(null);
}

/* Look until there is a plane: the first look may come before the worker has drawn. */
static bool has_plane(struct vm *vm, struct vfio_device_gfx_plane_info *p)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;

	while (!display_dmabuf(vm, PLANE_PRIMARY, p) && now_ms() < end) {
		if (p->size)
			return true;
		sleep_ms(5);
	}
	return false;
}

/* Show a picture of the guest. */
static bool show(struct gl *g)
{
	struct virtio_gpu_rect all = gpu_rect(0, 0, SIDE, SIDE);

	return picture(g) && move(g, true) == OK && gpu_set_scanout(&g->vm, 1, all) == OK &&
	       gpu_flush(&g->vm, 1, all) == OK;
}

FIXTURE(exports)
{
	struct user_dev d;
	struct pair p;
};

FIXTURE_SETUP(exports)
{
	self->d.control = -1;
	nr_exported = 0;
	export_virgl = false;
	ASSERT_TRUE(buf_new(SIDE, SIDE)) {
		TH_LOG("neither vgem nor udmabuf makes a dma-buf");
	}
	ASSERT_EQ(0, user_dev_new(&self->d, MGPU_USER_CREATE_EXPORT, 1, 3, 2));
	ASSERT_EQ(0, setenv("MGPU_PARENT", self->d.parent, 1));
	ASSERT_EQ(0, pair_new(&self->p, &self->d, NULL));
}

FIXTURE_TEARDOWN(exports)
{
	pair_delete(&self->p);
	if (self->d.control >= 0)
		EXPECT_EQ(0, user_dev_delete(&self->d));
	buf_delete();
}

TEST_F(exports, the_vmm_gets_the_buffer)
{
	struct vm *vm = &self->p.g.vm;
	struct vfio_device_gfx_plane_info p;
	struct worker *w = &self->p.w;
	uint8_t *seen;
	uint32_t id;
	int fd;

	EXPECT_EQ(0, display_probe(vm, VFIO_GFX_PLANE_TYPE_DMABUF));
	EXPECT_EQ(0, display_probe(vm, VFIO_GFX_PLANE_TYPE_REGION));
	ASSERT_EQ(0, display_dmabuf(vm, PLANE_PRIMARY, &p));
	EXPECT_EQ(0, p.size);
	w->export = export_good;
	ASSERT_TRUE(show(&self->p.g));
	ASSERT_TRUE(has_plane(vm, &p));
	EXPECT_EQ(1, nr_exported);
	EXPECT_EQ(0, exported[0]);
	EXPECT_EQ(DRM_FORMAT_XRGB8888, p.drm_format);
	EXPECT_EQ(MODIFIER, p.drm_format_mod);
	EXPECT_EQ(SIDE, p.width);
	EXPECT_EQ(SIDE, p.height);
	EXPECT_EQ(buf.stride, p.stride);
	EXPECT_EQ(buf.stride * SIDE, p.size);
	id = p.dmabuf_id;
	EXPECT_EQ(-ENOENT, display_get_dmabuf(vm, id + 1));
	fd = display_get_dmabuf(vm, id);
	ASSERT_LE(0, fd);
	seen = mmap(NULL, buf.size, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, seen);
	memset(buf.map, 0x5b, buf.size);
	EXPECT_EQ(0x5b, seen[buf.size - 1]);

	/* The next picture is in the same one. */
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, SIDE, SIDE)));
	ASSERT_TRUE(has_plane(vm, &p));
	EXPECT_EQ(id, p.dmabuf_id);
	EXPECT_EQ(1, nr_exported);

	/* The next worker's is another, with red first; the VMM keeps what it has. */
	ASSERT_EQ(0, worker_end(w));
	worker_close(w);
	ASSERT_EQ(0, display_dmabuf(vm, PLANE_PRIMARY, &p));
	EXPECT_EQ(0, p.size);
	ASSERT_EQ(0, worker_attach(w, &self->d, self->p.g.vgpu));
	w->export = export_good;
	export_virgl = true;
	ASSERT_EQ(0, worker_begin(w));
	ASSERT_EQ(0, vm_discover(vm));
	ASSERT_EQ(0, gl_restart(&self->p.g));
	EXPECT_EQ(-ENOENT, display_get_dmabuf(vm, id));
	ASSERT_TRUE(show(&self->p.g));
	ASSERT_TRUE(has_plane(vm, &p));
	EXPECT_NE(id, p.dmabuf_id);
	EXPECT_EQ(DRM_FORMAT_XBGR8888, p.drm_format);
	EXPECT_EQ(0, p.drm_format_mod);
	EXPECT_EQ(2 * buf.size, p.stride);
	EXPECT_EQ(0x5b, seen[0]);
	munmap(seen, buf.size);
	close(fd);
}

TEST_F(exports, what_is_no_picture_is_refused)
{
	static const int want[] = {
		-EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EBADF, -EINVAL,
		-ENOENT, 0, -EEXIST,
	};
	struct vm *vm = &self->p.g.vm;
	struct vfio_device_gfx_plane_info p;
	struct mgpu_user_export e = good();
	unsigned int i;

	/* No command asks for it. */
	EXPECT_EQ(-ENOENT, export(&self->p.w, 1, &e));
	self->p.w.export = export_badly;
	ASSERT_TRUE(show(&self->p.g));
	ASSERT_TRUE(has_plane(vm, &p));
	ASSERT_EQ(ARRAY_LEN(want), nr_exported);
	for (i = 0; i < ARRAY_LEN(want); i++)
		EXPECT_EQ(want[i], exported[i]) {
			TH_LOG("export %u", i);
		}
	EXPECT_EQ(-ENOTCONN, export(&(struct worker){ .fd = self->d.fd }, 1, &e));
}

/* A GPU that cannot export costs the picture, and nothing else. */
TEST_F(exports, without_an_export_there_is_no_plane)
{
	struct vm *vm = &self->p.g.vm;
	struct vfio_device_gfx_plane_info p;
	unsigned int looks;

	ASSERT_TRUE(show(&self->p.g));
	/* The worker draws between two looks. */
	for (looks = 0; looks < 50; looks++, sleep_ms(10)) {
		ASSERT_EQ(0, display_dmabuf(vm, PLANE_PRIMARY, &p));
		ASSERT_EQ(0, p.size);
	}
	ASSERT_EQ(0, display_plane(vm, &p));
	EXPECT_EQ(SIDE * SIDE * 4, p.size);
}

TEST_F(user, without_exports_the_region_is_the_only_plane)
{
	struct vfio_device_gfx_plane_info p;

	ASSERT_EQ(0, pair_new(&self->p[0], &self->d, NULL));
	EXPECT_EQ(-EINVAL, display_probe(&self->p[0].g.vm, VFIO_GFX_PLANE_TYPE_DMABUF));
	EXPECT_EQ(-EINVAL, display_dmabuf(&self->p[0].g.vm, PLANE_PRIMARY, &p));
	EXPECT_EQ(-EINVAL, display_get_dmabuf(&self->p[0].g.vm, 1));
}

TEST_F(user, without_blobs_no_stream_names_storage)
{
	struct vm *vm = &self->p[0].g.vm;
	struct gl_stream s;

	ASSERT_EQ(0, pair_new(&self->p[0], &self->d, NULL));
	ASSERT_EQ(OK, gl_ctx(vm, 1));
	gl_begin(&s);
	gl_storage(&s, 7, 4096);
	EXPECT_EQ(PARAM, gl_run(vm, 1, &s));
	EXPECT_EQ(UNSPEC, gl_blob(vm, 1, 7, 4096));
}

/* ---- contexts of any capset, and their rings ---- */

FIXTURE(rings)
{
	struct user_dev d;
	struct pair p;
};

FIXTURE_SETUP(rings)
{
	ASSERT_EQ(0, user_dev_new(&self->d, MGPU_USER_CREATE_CONTEXT_INIT |
				  MGPU_USER_CREATE_BLOB, 1, 8, 0));
	ASSERT_EQ(0, setenv("MGPU_PARENT", self->d.parent, 1));
	ASSERT_EQ(0, pair_new(&self->p, &self->d, NULL));
}

FIXTURE_TEARDOWN(rings)
{
	pair_delete(&self->p);
	EXPECT_EQ(0, user_dev_delete(&self->d));
}

/* Return whether a command is not answered within a while. */
static bool is_open(struct vm *vm, int head)
{
	return gpu_result(vm, VMM_CONTROL, (uint16_t)head, NULL, 0, VMM_QUIET) == -ETIMEDOUT;
}

TEST_F(rings, a_fence_waits_for_those_of_its_ring_only)
{
	struct vm *vm = &self->p.g.vm;
	struct virtio_gpu_ctrl_hdr hdr;
	struct gl_stream none;
	int first, second, other, ctx, plain;

	gl_begin(&none);
	ASSERT_EQ(OK, gl_ctx_of(vm, 1, USER_CAPSET));
	ASSERT_EQ(OK, gl_ctx_of(vm, 2, USER_CAPSET));
	self->p.w.hold_ring = 5;
	first = gl_send_on(vm, 1, 5, &none);
	second = gl_send_on(vm, 1, 5, &none);
	other = gl_send_on(vm, 1, 6, &none);
	ctx = gl_send_on(vm, 2, 5, &none);
	plain = gl_send(vm, 1, ++vm->next_fence, &none);
	EXPECT_EQ(OK, gl_result(vm, plain, NULL));
	EXPECT_EQ(OK, gl_result(vm, ctx, NULL));
	EXPECT_EQ(OK, gl_result(vm, other, &hdr));
	EXPECT_EQ(VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX, hdr.flags);
	EXPECT_EQ(6, hdr.ring_idx);
	EXPECT_EQ(1, hdr.ctx_id);
	/* The worker has answered the second one, and not the first. */
	EXPECT_EQ(1, self->p.w.nr_held);
	EXPECT_TRUE(is_open(vm, second));
	EXPECT_TRUE(is_open(vm, first));
	self->p.w.hold_ring = HOLD_NONE;
	EXPECT_EQ(OK, gl_result(vm, first, NULL));
	EXPECT_EQ(OK, gl_result(vm, second, NULL));
}

TEST_F(rings, a_stream_is_checked_if_its_capset_is_virgl)
{
	struct vm *vm = &self->p.g.vm;
	struct gl_stream s;

	EXPECT_TRUE(vio_features(vm) & VMM_F(VIRTIO_GPU_F_CONTEXT_INIT));
	EXPECT_EQ(PARAM, gl_ctx_of(vm, 1, USER_CAPSET + 1));
	ASSERT_EQ(OK, gl_ctx_of(vm, 1, 2));
	ASSERT_EQ(OK, gl_ctx_of(vm, 2, USER_CAPSET));
	gl_begin(&s);
	gl_word(&s, 0xffff);
	EXPECT_EQ(PARAM, gl_run(vm, 1, &s));
	EXPECT_EQ(0, self->p.w.submits);
	EXPECT_EQ(OK, gl_run(vm, 2, &s));
	EXPECT_EQ(1, self->p.w.submits);
	EXPECT_EQ(4, self->p.w.stream_len);
	EXPECT_EQ(0xffff, self->p.w.stream[0]);
}

/* Streams that are not checked name the guest's own numbers. */
TEST_F(rings, the_worker_gets_the_numbers_of_the_guest)
{
	struct vm *vm = &self->p.g.vm;

	EXPECT_EQ(OK, gl_texture(vm, 77, SIDE, SIDE, 0));
	EXPECT_NE(NULL, worker_res(&self->p.w, 77));
	EXPECT_EQ(OK, gl_texture(vm, (1u << 30) - 1, SIDE, SIDE, 0));
	EXPECT_EQ(NORES, gl_texture(vm, 1u << 30, SIDE, SIDE, 0));
	EXPECT_EQ(OK, gpu_unref(vm, 77));
	EXPECT_EQ(NULL, worker_res(&self->p.w, 77));
	EXPECT_EQ(OK, gl_texture(vm, 77, SIDE, SIDE, 0));
}

/* ---- blobs ---- */

#define BLOB	(3u * 4096)
#define MAPPED	VIRTIO_GPU_RESP_OK_MAP_INFO

TEST_F(rings, the_guest_maps_memory_of_the_worker)
{
	struct vm *vm = &self->p.g.vm;
	volatile uint8_t *bar;
	struct worker_res *r;
	uint32_t val = 0;
	size_t len;

	EXPECT_TRUE(vio_features(vm) & VMM_F(VIRTIO_GPU_F_RESOURCE_BLOB));
	bar = hostmem_map(vm, &len);
	ASSERT_NE(NULL, bar);
	EXPECT_EQ(64u << 20, len);
	EXPECT_EQ(0, bar[0x5000]);
	ASSERT_EQ(OK, gl_ctx_of(vm, 1, USER_CAPSET));
	ASSERT_EQ(OK, gl_blob(vm, 1, 7, BLOB));
	r = worker_res(&self->p.w, 7);
	ASSERT_NE(NULL, r);
	r->host[4096] = 0x5a;
	ASSERT_EQ(MAPPED, gl_map(vm, 7, 0x4000));
	/* The guest had looked there before. */
	EXPECT_EQ(0x5a, bar[0x5000]);
	bar[0x4000 + BLOB - 1] = 0xa5;
	EXPECT_EQ(0xa5, r->host[BLOB - 1]);
	/* A VMM that has not mapped it. */
	EXPECT_EQ(0, vm_read(vm, 4, 0x5000, &val, 4));
	EXPECT_EQ(0x5a, val);
	val = 0x01020304;
	EXPECT_EQ(0, vm_write(vm, 4, 0x4000, &val, 4));
	EXPECT_EQ(4, r->host[0]);
	EXPECT_EQ(-EINVAL, vm_read(vm, 4, len, &val, 4));
	/* Beside it there is nothing. */
	bar[0x3fff] = 1;
	bar[0x4000 + BLOB] = 1;
	EXPECT_EQ(0xa5, r->host[BLOB - 1]);
	EXPECT_EQ(OK, gl_unmap(vm, 7));
	EXPECT_NE(0x5a, bar[0x5000]);
	EXPECT_EQ(PARAM, gl_unmap(vm, 7));
	EXPECT_EQ(MAPPED, gl_map(vm, 7, 0));
	EXPECT_EQ(0x5a, bar[0x1000]);
	/* The guest learns how to map it. */
	EXPECT_EQ(OK, gl_unmap(vm, 7));
	self->p.w.cache = VIRTIO_GPU_MAP_CACHE_WC;
	EXPECT_EQ(MAPPED, gl_map_as(vm, 7, 0, VIRTIO_GPU_MAP_CACHE_WC));
	munmap((void *)bar, len);
}

/* Have blob 7 of a context where the BAR begins, full of 0x5a: OK, or what failed. */
static int full_blob(struct pair *p, volatile const uint8_t *bar)
{
	struct vm *vm = &p->g.vm;
	struct worker_res *r;
	int ret = gl_ctx_of(vm, 1, USER_CAPSET);

	if (ret == OK)
		ret = gl_blob(vm, 1, 7, BLOB);
	if (ret == OK)
		ret = gl_map(vm, 7, 0);
	if (ret != MAPPED)
		return ret;
	r = worker_res(&p->w, 7);
	if (!r)
		return -ENOENT;
	memset(r->host, 0x5a, BLOB);
	return bar[0] == 0x5a ? OK : -EIO;
}

/* Release the blob, or reset the device. */
static int release_blob(struct vm *vm, bool reset)
{
	return reset ? vm_start_with(vm, GL_FEATURES) : gpu_unref(vm, 7) == OK ? 0 : -EIO;
}

TEST_F(rings, what_the_guest_released_it_does_not_find)
{
	struct vm *vm = &self->p.g.vm;
	volatile uint8_t *bar;
	size_t len;
	int i;

	bar = hostmem_map(vm, &len);
	ASSERT_NE(NULL, bar);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(OK, full_blob(&self->p, bar));
		ASSERT_EQ(0, release_blob(vm, !i));
		EXPECT_EQ(0, bar[0]);
	}
	/* The VMM's mapping keeps the device. */
	vm_close(vm);
	EXPECT_EQ(0, bar[BLOB]);
	munmap((void *)bar, len);
}

/* A worker that releases a blob may use its memory for something else at once. */
TEST_F(rings, the_guest_loses_a_blob_before_the_worker_does)
{
	struct worker *w = &self->p.w;
	struct vm *vm = &self->p.g.vm;
	volatile uint8_t *bar;
	uint64_t end;
	size_t len;
	int i;

	bar = hostmem_map(vm, &len);
	ASSERT_NE(NULL, bar);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(OK, full_blob(&self->p, bar));
		w->bar_seen = -1;
		w->bar = bar;
		ASSERT_EQ(0, release_blob(vm, !i));
		end = now_ms() + VMM_TIMEOUT;
		while (w->bar_seen == -1 && now_ms() < end)
			sleep_ms(1);
		EXPECT_EQ(0, w->bar_seen);
		w->bar = NULL;
	}
	munmap((void *)bar, len);
}

/* Storage that a stream of virgl names is made with the blob, and not before. */
TEST_F(rings, blobs_of_virgl)
{
	const uint32_t nop = 11 << 16, pipe_create = 11 << 16 | 48;
	struct vm *vm = &self->p.g.vm;
	struct worker *w = &self->p.w;
	struct gl_stream s, use;
	volatile uint8_t *bar;
	struct gl_move move = { .ctx = 1, .res = 8, .box = { .w = 8, .h = 1, .d = 1 } };
	size_t len;

	bar = hostmem_map(vm, &len);
	ASSERT_NE(NULL, bar);
	ASSERT_EQ(OK, gl_ctx_of(vm, 1, 2));
	ASSERT_EQ(OK, gl_ctx_of(vm, 2, 2));
	gl_begin(&s);
	gl_storage(&s, 7, BLOB);
	ASSERT_EQ(OK, gl_run(vm, 1, &s));
	EXPECT_EQ(1, w->submits);
	EXPECT_EQ(nop, w->stream[0]);
	EXPECT_EQ(PARAM, gl_blob_of(vm, 2, 8, 7, BLOB));
	EXPECT_EQ(PARAM, gl_blob_of(vm, 1, 8, 1ull << 32 | 7, BLOB));
	EXPECT_EQ(PARAM, gl_blob_of(vm, 1, 8, 0, BLOB));
	EXPECT_EQ(1, w->submits);
	ASSERT_EQ(OK, gl_blob_of(vm, 1, 8, 7, BLOB));
	EXPECT_EQ(2, w->submits);
	EXPECT_EQ(12 * 4, w->stream_len);
	EXPECT_EQ(pipe_create, w->stream[0]);
	EXPECT_EQ(BLOB, w->stream[4]);
	EXPECT_EQ(7, w->stream[11]);
	/* It is taken once. */
	EXPECT_EQ(PARAM, gl_blob_of(vm, 1, 9, 7, BLOB));

	/* It is a buffer. */
	gl_begin(&use);
	gl_vertices_from(&use, 8);
	EXPECT_EQ(PARAM, gl_run(vm, 1, &use));
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 8));
	EXPECT_EQ(OK, gl_run(vm, 1, &use));
	EXPECT_EQ(UNSPEC, gl_move(vm, &move));
	ASSERT_EQ(MAPPED, gl_map(vm, 8, 0x1000));
	bar[0x1000] = 0x5a;
	EXPECT_EQ(0x5a, worker_res(w, 8)->host[0]);

	/* Another size than the stream has said, which is asked for once. */
	ASSERT_EQ(OK, gl_run(vm, 1, &s));
	EXPECT_EQ(PARAM, gl_blob_of(vm, 1, 9, 7, BLOB + 4096));
	EXPECT_EQ(PARAM, gl_blob_of(vm, 1, 9, 7, BLOB));
	/* Of two with a number, the newer one. */
	ASSERT_EQ(OK, gl_run(vm, 1, &s));
	gl_begin(&s);
	gl_storage(&s, 7, 4096);
	ASSERT_EQ(OK, gl_run(vm, 1, &s));
	EXPECT_EQ(OK, gl_blob_of(vm, 1, 9, 7, 4096));
	munmap((void *)bar, len);
}

TEST_F(rings, a_number_of_blobs_of_virgl)
{
	struct vm *vm = &self->p.g.vm;
	struct gl_stream s;
	struct nl_vgpu v;
	uint32_t i, n;

	ASSERT_EQ(OK, gl_ctx_of(vm, 1, 2));
	/* Storage without a blob costs nothing, and of 17 the first is forgotten. */
	gl_begin(&s);
	for (i = 1; i <= 17; i++)
		gl_storage(&s, i, 4096);
	for (n = 0; n < 100; n++)
		ASSERT_EQ(OK, gl_run(vm, 1, &s));
	EXPECT_EQ(PARAM, gl_blob(vm, 1, 1, 4096));
	for (i = 2; i <= 17; i++)
		EXPECT_EQ(OK, gl_blob(vm, 1, i, 4096));
	EXPECT_EQ(PARAM, gl_blob(vm, 1, 1, 4096));
	ASSERT_EQ(0, nl_vgpu_get(&self->p.g.nl, vm->uuid, &v));
	EXPECT_EQ(16 * 4096, v.mem_used);
	/* The type has 32 MiB. */
	gl_begin(&s);
	gl_storage(&s, 20, 32u << 20);
	gl_storage(&s, 21, 16u << 20);
	gl_storage(&s, 22, 16u << 20);
	ASSERT_EQ(OK, gl_run(vm, 1, &s));
	EXPECT_EQ(NOMEM, gl_blob(vm, 1, 20, 32u << 20));
	EXPECT_EQ(OK, gl_blob(vm, 1, 21, 16u << 20));
	EXPECT_EQ(NOMEM, gl_blob(vm, 1, 22, 16u << 20));
	/* A context that ends takes its storage with it. */
	gl_begin(&s);
	gl_storage(&s, 30, 4096);
	ASSERT_EQ(OK, gl_run(vm, 1, &s));
	ASSERT_EQ(OK, gl_ctx_end(vm, 1));
	ASSERT_EQ(OK, gl_ctx_of(vm, 1, 2));
	EXPECT_EQ(PARAM, gl_blob(vm, 1, 30, 4096));
	ASSERT_EQ(0, vm_start_with(vm, GL_FEATURES));
	ASSERT_EQ(0, nl_vgpu_get(&self->p.g.nl, vm->uuid, &v));
	EXPECT_EQ(0, v.mem_used);
}

TEST_F(rings, blobs_that_cannot_be_mapped)
{
	struct vm *vm = &self->p.g.vm;
	void *p = vm_alloc(vm, 4096, 4096);
	struct worker *w = &self->p.w;

	ASSERT_EQ(OK, gl_ctx_of(vm, 1, USER_CAPSET));
	ASSERT_EQ(OK, gl_ctx_of(vm, 2, 2));
	EXPECT_EQ(NOCTX, gl_blob(vm, 0, 7, BLOB));
	EXPECT_EQ(NOCTX, gl_blob(vm, 3, 7, BLOB));
	/* No stream has named what it is. */
	EXPECT_EQ(PARAM, gl_blob(vm, 2, 7, BLOB));
	EXPECT_EQ(NOMEM, gl_blob(vm, 1, 7, (32u << 20) + 1));
	EXPECT_EQ(NOMEM, gl_blob(vm, 1, 7, SIZE_MAX));
	ASSERT_EQ(OK, gl_blob(vm, 1, 7, BLOB));
	ASSERT_EQ(OK, gl_blob(vm, 1, 8, BLOB));
	EXPECT_EQ(NORES, gl_map(vm, 9, 0));
	EXPECT_EQ(PARAM, gl_map(vm, 7, 1));
	EXPECT_EQ(PARAM, gl_map(vm, 7, (64u << 20) - 8192));
	EXPECT_EQ(PARAM, gl_map(vm, 7, UINT64_MAX & ~4095ull));
	ASSERT_EQ(MAPPED, gl_map(vm, 7, 0x4000));
	EXPECT_EQ(PARAM, gl_map(vm, 7, 0x8000));
	EXPECT_EQ(PARAM, gl_map(vm, 8, 0x2000));
	EXPECT_EQ(PARAM, gl_map(vm, 8, 0x6000));
	EXPECT_EQ(MAPPED, gl_map(vm, 8, 0x7000));
	EXPECT_EQ(OK, gl_unmap(vm, 8));
	/* A worker that does not do as it says. */
	w->map = WORKER_MAPS_LESS;
	EXPECT_EQ(UNSPEC, gl_map(vm, 8, 0x7000));
	w->map = WORKER_MAPS_NOTHING;
	EXPECT_EQ(UNSPEC, gl_map(vm, 8, 0x7000));
	w->map = WORKER_MAPS_TWICE;
	EXPECT_EQ(MAPPED, gl_map(vm, 8, 0x7000));
	EXPECT_EQ(EEXIST, w->map_error);
	w->way = WORKER_REFUSES;
	EXPECT_EQ(UNSPEC, gl_unmap(vm, 7));
	EXPECT_EQ(UNSPEC, gl_map(vm, 7, 0x10000));
	w->way = WORKER_FAIR;
	w->map = WORKER_MAPS;
	EXPECT_EQ(MAPPED, gl_map(vm, 7, 0x10000));
	/* Memory of the guest is there already, and a texture is no blob. */
	ASSERT_EQ(OK, gpu_create_blob(vm, 10, p, 4096));
	EXPECT_EQ(PARAM, gl_map(vm, 10, 0x20000));
	ASSERT_EQ(OK, gl_texture(vm, 11, SIDE, SIDE, 0));
	EXPECT_EQ(PARAM, gl_map(vm, 11, 0x20000));
	/* A blob's memory stays what it is. */
	EXPECT_EQ(UNSPEC, gpu_attach(vm, 7, p, 4096));
	EXPECT_EQ(UNSPEC, gpu_detach(vm, 10));
}

TEST_F(rings, a_worker_maps_for_its_own_commands_only)
{
	struct mgpu_user_map m = { .size = sizeof(m), .len = 4096 }, bad;
	struct worker *w = &self->p.w;
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	m.addr = (uintptr_t)p;
#define NOT_MAPPED(err, field, value) do {				\
	bad = m;							\
	bad.field = value;						\
	EXPECT_EQ(-(err), ioctl(w->fd, MGPU_USER_MAP, &bad) ? -errno : 0);	\
} while (0)
	NOT_MAPPED(EINVAL, seq, 0);		/* answered */
	NOT_MAPPED(EINVAL, seq, w->ring->cmd_tail);
	NOT_MAPPED(EINVAL, size, 3);
	NOT_MAPPED(EINVAL, reserved, 1);
	NOT_MAPPED(EINVAL, cache, VIRTIO_GPU_MAP_CACHE_WC + 1);
	NOT_MAPPED(EINVAL, addr, m.addr + 1);
	NOT_MAPPED(EINVAL, len, 0);
	NOT_MAPPED(EINVAL, len, 4097);
	NOT_MAPPED(EINVAL, len, 1ull << 40);
	NOT_MAPPED(EFAULT, addr, 0);
	/* Guest memory, which nobody can pin through the worker. */
	NOT_MAPPED(EFAULT, addr, (uintptr_t)w->arena);
	munmap(p, 8192);
}

/* A guest whose worker dies keeps what it has mapped, until it resets its device. */
TEST_F_TIMEOUT(rings, memory_of_a_dead_worker_stays, 60)
{
	struct vm *vm = &self->p.g.vm;
	volatile uint8_t *bar;
	struct worker_res *r;
	uint64_t before;
	size_t len;

	bar = hostmem_map(vm, &len);
	ASSERT_NE(NULL, bar);
	ASSERT_EQ(OK, gl_ctx_of(vm, 1, USER_CAPSET));
	before = gl_left(&self->p.g);
	ASSERT_EQ(OK, gl_blob(vm, 1, 7, BLOB));
	EXPECT_EQ(before + BLOB, gl_left(&self->p.g));
	ASSERT_EQ(MAPPED, gl_map(vm, 7, 0));
	r = worker_res(&self->p.w, 7);
	ASSERT_NE(NULL, r);
	memset(r->host, 0x5a, BLOB);
	worker_end(&self->p.w);
	self->p.w.thread = 0;
	worker_close(&self->p.w);
	self->p.w.a.size = 0;
	EXPECT_EQ(0x5a, bar[BLOB - 1]);
	ASSERT_EQ(0, vm_start_with(vm, GL_FEATURES));
	EXPECT_EQ(0, bar[BLOB - 1]);
	EXPECT_EQ(before, gl_left(&self->p.g));
	munmap((void *)bar, len);
}

/* The memory of a blob of the guest's goes to the worker, and is taken from it. */
TEST_F(rings, a_blob_of_guest_memory)
{
	struct vm *vm = &self->p.g.vm;
	uint8_t *p = vm_alloc(vm, 8192, 4096);
	volatile uint8_t *seen;
	struct worker_res *r;

	ASSERT_NE(NULL, p);
	p[0] = 0x5a;
	self->p.w.keep_maps = true;
	ASSERT_EQ(OK, gpu_create_blob(vm, 7, p, 8192));
	r = worker_res(&self->p.w, 7);
	ASSERT_NE(NULL, r);
	ASSERT_NE(NULL, r->map);
	seen = r->map;
	EXPECT_EQ(0x5a, seen[0]);
	seen[8191] = 0xa5;
	EXPECT_EQ(0xa5, p[8191]);
	EXPECT_EQ(OK, gpu_unref(vm, 7));
	EXPECT_EQ(0, seen[0]);
	/* The VMM takes the memory away. */
	ASSERT_EQ(OK, gpu_create_blob(vm, 8, p, 8192));
	ASSERT_EQ(0, vm_unmap(vm, VMM_RAM_BASE, RAM));
	r = worker_res(&self->p.w, 8);
	ASSERT_NE(NULL, r);
	EXPECT_EQ(0, r->map[0]);
}

/* ---- blobs of memory that a driver may move ---- */

/*
 * The worker's mapping of guest memory is one of a driver: no page of it can be pinned, and the
 * module takes its pages away.  Have blob 7 of a context where the BAR begins, in the memory of
 * the guest's blob 20.
 */
static int drivers_blob(struct pair *p, uint8_t *ram)
{
	struct vm *vm = &p->g.vm;
	struct worker_res *r, *of;
	int ret = gl_ctx_of(vm, 1, USER_CAPSET);
	uint8_t *at;

	p->w.keep_maps = true;
	if (ret == OK)
		ret = gpu_create_blob(vm, 20, ram, BLOB);
	if (ret == OK)
		ret = gl_blob(vm, 1, 7, BLOB);
	if (ret != OK)
		return ret;
	r = worker_res(&p->w, 7);
	of = worker_res(&p->w, 20);
	if (!r || !of)
		return -ENOENT;
	at = mmap(r->host, BLOB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->w.fd,
		  (off_t)of->mem);
	return at == MAP_FAILED ? -errno : gl_map(vm, 7, 0);
}

TEST_F(rings, the_guest_maps_memory_that_a_driver_moves)
{
	struct vm *vm = &self->p.g.vm;
	uint8_t *ram = vm_alloc(vm, 2 * BLOB, 4096), *other = ram + BLOB;
	volatile uint8_t *bar;
	struct worker_res *r, *of;
	uint32_t val = 0;
	size_t len;

	ASSERT_NE(NULL, ram);
	bar = hostmem_map(vm, &len);
	ASSERT_NE(NULL, bar);
	EXPECT_EQ(0, bar[0]);
	ram[0] = 0x5a;
	ASSERT_EQ(MAPPED, drivers_blob(&self->p, ram));
	r = worker_res(&self->p.w, 7);
	EXPECT_EQ(0x5a, bar[0]);
	bar[BLOB - 1] = 0xa5;
	EXPECT_EQ(0xa5, ram[BLOB - 1]);
	/* A VMM that has not mapped it. */
	EXPECT_EQ(0, vm_read(vm, 4, 0, &val, 4));
	EXPECT_EQ(0x5a, val);
	val = 0x01020304;
	EXPECT_EQ(0, vm_write(vm, 4, 4096, &val, 4));
	EXPECT_EQ(4, ram[4096]);

	/* It has other pages now, in part. */
	other[0] = 0x77;
	ASSERT_EQ(OK, gpu_create_blob(vm, 21, other, BLOB));
	of = worker_res(&self->p.w, 21);
	ASSERT_NE(NULL, of);
	ASSERT_NE(MAP_FAILED, mmap(r->host, 4096, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_FIXED, self->p.w.fd, (off_t)of->mem));
	EXPECT_EQ(0x77, bar[0]);
	EXPECT_EQ(4, bar[4096]);
	bar[0] = 0x78;
	EXPECT_EQ(0x78, other[0]);
	EXPECT_EQ(0x5a, ram[0]);
	/* The module takes the pages from the worker, and so from the guest. */
	EXPECT_EQ(OK, gpu_unref(vm, 21));
	EXPECT_EQ(0, bar[0]);
	bar[8] = 1;
	EXPECT_EQ(0, other[8]);
	EXPECT_EQ(0xa5, bar[BLOB - 1]);
	EXPECT_EQ(OK, gpu_unref(vm, 20));
	EXPECT_EQ(0, bar[BLOB - 1]);
	EXPECT_EQ(0, bar[4096]);
	EXPECT_EQ(0, vm_read(vm, 4, 4096, &val, 4));
	EXPECT_EQ(0, val);
	EXPECT_EQ(4, ram[4096]);
	munmap((void *)bar, len);
}

/* A page of the vGPU's own takes the place of memory that the worker has no more. */
TEST_F(rings, memory_that_the_worker_has_unmapped)
{
	struct vm *vm = &self->p.g.vm;
	uint8_t *ram = vm_alloc(vm, BLOB, 4096);
	volatile uint8_t *bar;
	struct worker_res *r;
	uint32_t val = 0x5a5a5a5a;
	size_t len;

	ASSERT_NE(NULL, ram);
	bar = hostmem_map(vm, &len);
	ASSERT_NE(NULL, bar);
	memset(ram, 0x5a, BLOB);
	ASSERT_EQ(MAPPED, drivers_blob(&self->p, ram));
	r = worker_res(&self->p.w, 7);
	EXPECT_EQ(0x5a, bar[0]);
	munmap(r->host, 4096);
	EXPECT_EQ(0, bar[0]);
	bar[0] = 1;
	EXPECT_EQ(1, bar[0]);
	EXPECT_EQ(0x5a, ram[0]);
	EXPECT_EQ(0, vm_read(vm, 4, 0, &val, 4));
	EXPECT_EQ(0, val);
	EXPECT_EQ(0, vm_write(vm, 4, 0, &val, 4));
	EXPECT_EQ(0x5a, bar[4096]);
	/* Memory of the worker's own that comes to lie there is no blob. */
	ASSERT_EQ(r->host, mmap(r->host, 4096, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	memset(r->host, 0x66, 4096);
	EXPECT_EQ(0, bar[1]);
	val = 0x01020304;
	EXPECT_EQ(0, vm_write(vm, 4, 0, &val, 4));
	EXPECT_EQ(0x66, r->host[0]);
	EXPECT_EQ(0, vm_read(vm, 4, 0, &val, 4));
	EXPECT_EQ(0, val);
	/* It cannot be written any more: the guest does not have it. */
	ASSERT_EQ(0, mprotect(r->host + 4096, 4096, PROT_READ));
	EXPECT_EQ(0, bar[4096] & ~1);
	EXPECT_EQ(0x5a, bar[8192]);
	EXPECT_EQ(OK, gl_unmap(vm, 7));
	EXPECT_NE(0x5a, bar[8192]);
	munmap((void *)bar, len);
}

struct moves {
	struct worker *w;
	uint8_t *at;
	off_t of[2];
	atomic_bool stop;
	unsigned long n;
};

static void *move_on(void *arg)
{
	struct moves *m = arg;

	while (!m->stop && mmap(m->at, BLOB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				m->w->fd, m->of[m->n & 1]) != MAP_FAILED)
		m->n++;
	return NULL;
}

/* The guest always finds what the worker has, or had a moment ago. */
TEST_F_TIMEOUT(rings, memory_that_moves_while_the_guest_uses_it, 60)
{
	struct vm *vm = &self->p.g.vm;
	uint8_t *ram = vm_alloc(vm, 2 * BLOB, 4096);
	struct moves m = { .w = &self->p.w };
	uint64_t end = now_ms() + 2000;
	unsigned long wrong = 0, seen[2] = { 0, 0 };
	volatile uint8_t *bar;
	pthread_t thread;
	uint32_t i, val;
	size_t len;

	ASSERT_NE(NULL, ram);
	bar = hostmem_map(vm, &len);
	ASSERT_NE(NULL, bar);
	memset(ram, 0x11, BLOB);
	memset(ram + BLOB, 0x22, BLOB);
	ASSERT_EQ(MAPPED, drivers_blob(&self->p, ram));
	ASSERT_EQ(OK, gpu_create_blob(vm, 21, ram + BLOB, BLOB));
	m.at = worker_res(&self->p.w, 7)->host;
	m.of[0] = (off_t)worker_res(&self->p.w, 20)->mem;
	m.of[1] = (off_t)worker_res(&self->p.w, 21)->mem;
	ASSERT_EQ(0, pthread_create(&thread, NULL, move_on, &m));
	while (goes_on(end, m.n > 1 && seen[1])) {
		for (i = 0; i < BLOB; i += 4096) {
			val = bar[i];
			seen[val == 0x22]++;
			/* Between munmap and mmap there is nothing. */
			wrong += val != 0x11 && val != 0x22 && val != 0;
			if (vm_read(vm, 4, i, &val, 4) ||
			    (val != 0x11111111 && val != 0x22222222 && val))
				wrong++;
		}
	}
	m.stop = true;
	pthread_join(thread, NULL);
	TH_LOG("%lu moves; %lu reads of one, %lu of the other", m.n, seen[0], seen[1]);
	EXPECT_LT(1, m.n);
	EXPECT_LT(0, seen[1]);
	EXPECT_EQ(0, wrong);
	/* Now it moves no more. */
	bar[1] = 0x33;
	EXPECT_EQ(0x33, ram[((m.n - 1) & 1) * BLOB + 1]);
	EXPECT_EQ(OK, gpu_unref(vm, 7));
	EXPECT_EQ(0, bar[1]);
	munmap((void *)bar, len);
}

/* A worker hands over a driver's mapping if all of it is shared and can be written. */
TEST_F(rings, mappings_that_are_refused)
{
	struct vm *vm = &self->p.g.vm;
	struct worker *w = &self->p.w;
	uint8_t *ram = vm_alloc(vm, BLOB, 4096);
	volatile uint8_t *bar;
	struct worker_res *r;
	size_t len;

	ASSERT_NE(NULL, ram);
	bar = hostmem_map(vm, &len);
	ASSERT_NE(NULL, bar);
	ASSERT_EQ(MAPPED, drivers_blob(&self->p, ram));
	ASSERT_EQ(OK, gl_unmap(vm, 7));
	r = worker_res(w, 7);
	ASSERT_EQ(0, mprotect(r->host + 4096, 4096, PROT_READ));
	EXPECT_EQ(UNSPEC, gl_map(vm, 7, 0));
	EXPECT_EQ(EFAULT, w->map_error);
	munmap(r->host + 4096, 4096);
	EXPECT_EQ(UNSPEC, gl_map(vm, 7, 0));
	EXPECT_EQ(EFAULT, w->map_error);
	/* The BAR itself, in which the blob would be within itself. */
	munmap(r->host, BLOB);
	r->host = (uint8_t *)bar;
	EXPECT_EQ(UNSPEC, gl_map(vm, 7, 0));
	EXPECT_EQ(EFAULT, w->map_error);
	r->host = NULL;
	EXPECT_EQ(0, bar[0]);
	munmap((void *)bar, len);
}

/* ---- the GPU as the parent of vGPUs ---- */

/* A PCI function whose driver is not needed here stands for a GPU. */
#define PCI		"/sys/bus/pci/devices/"
#define DRIVERS		"/sys/bus/pci/drivers/"
#define DRIVER		DRIVERS "virtio-pci"
#define RNG		"0x1044"	/* see tools/vm/run */
#define MDEV_BUS	"/sys/class/mdev_bus/"

FIXTURE(gpu)
{
	char address[32];
	struct user_dev d;
	struct pair p;
};

FIXTURE_SETUP(gpu)
{
	char path[300], id[16];
	struct dirent *e;
	DIR *dir;

	self->d.control = -1;
	dir = opendir(DRIVER);
	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), DRIVER "/%s/device", e->d_name);
		if (sysfs_read(path, id, sizeof(id)) > 0 && !strcmp(id, RNG) &&
		    strlen(e->d_name) < sizeof(self->address))
			strcpy(self->address, e->d_name);
	}
	if (dir)
		closedir(dir);
	ASSERT_NE(0, *self->address) {
		TH_LOG("no PCI function " RNG " has the driver virtio-pci");
	}
	ASSERT_EQ(0, setenv("MGPU_PARENT", self->address, 1));
}

FIXTURE_TEARDOWN(gpu)
{
	pair_delete(&self->p);
	if (self->d.control >= 0)
		user_dev_delete(&self->d);
	/* A failed test may have unplugged it. */
	sysfs_write("/sys/bus/pci/rescan", "1");
	if (*self->address)
		sysfs_write(DRIVER "/bind", self->address);
}

static bool has(const char *folder, const char *name, const char *below)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s%s", folder, name, below);
	return !access(path, F_OK);
}

/* Make the device that a failed test removes. */
static int make(struct user_dev *d, const char *gpu)
{
	int ret = user_dev_new_on(d, gpu);

	if (ret)
		d->control = -1;
	return ret;
}

TEST_F(gpu, its_vgpus_are_below_it_once)
{
	struct user_dev other;
	uint32_t *pixels;
	char below[64];

	ASSERT_EQ(0, make(&self->d, self->address));
	EXPECT_TRUE(has(MDEV_BUS, self->address,
			"/mdev_supported_types/virtio-pci-small-render/create"));
	EXPECT_EQ(-EEXIST, user_dev_new_on(&other, self->address));
	ASSERT_EQ(0, pair_new(&self->p, &self->d, NULL));
	snprintf(below, sizeof(below), "/%s", self->p.g.vm.uuid);
	EXPECT_TRUE(has(PCI, self->address, below));
	pixels = picture(&self->p.g);
	ASSERT_NE(NULL, pixels);
	EXPECT_TRUE(keeps(&self->p.g, pixels, 9));
	pair_delete(&self->p);
	memset(&self->p, 0, sizeof(self->p));
	EXPECT_EQ(0, user_dev_delete(&self->d));
	self->d.control = -1;
	EXPECT_FALSE(has(MDEV_BUS, self->address, ""));
	EXPECT_FALSE(has(PCI, self->address, "/mdev_supported_types"));
	/* After the end of the first it is free for another. */
	ASSERT_EQ(0, make(&self->d, self->address));
}

TEST_F(gpu, what_no_parent_can_be_is_refused)
{
	char override[96];
	struct user_dev d;

	EXPECT_EQ(-ENODEV, user_dev_new_on(&d, "ffffffff:00:00.0"));
	EXPECT_EQ(-ENODEV, user_dev_new_on(&d, "0000:fe:1e.7"));
	ASSERT_EQ(0, sysfs_write(DRIVER "/unbind", self->address));
	EXPECT_EQ(-ENODEV, user_dev_new_on(&d, self->address));
	/* Like vfio-pci, pci-stub leaves the function to others. */
	snprintf(override, sizeof(override), PCI "%s/driver_override", self->address);
	ASSERT_EQ(0, sysfs_write(override, "pci-stub"));
	EXPECT_EQ(0, sysfs_write(DRIVERS "pci-stub/bind", self->address));
	EXPECT_EQ(-EBUSY, user_dev_new_on(&d, self->address));
	EXPECT_EQ(0, sysfs_write(DRIVERS "pci-stub/unbind", self->address));
	ASSERT_EQ(0, sysfs_write(override, "\n"));
	ASSERT_EQ(0, sysfs_write(DRIVER "/bind", self->address));
	ASSERT_EQ(0, make(&self->d, self->address));
}

/* The driver is there until the VMM and the worker have let go. */
TEST_F_TIMEOUT(gpu, unbinding_its_driver_takes_the_vgpus_along, 60)
{
	struct pair *p = &self->p;
	struct mgpu_user_event e;
	struct user_dev other;
	uint32_t *pixels;
	char pdev[96];
	pid_t pid;

	ASSERT_EQ(0, make(&self->d, self->address));
	snprintf(pdev, sizeof(pdev), "mgpu_user.%u", self->d.id);
	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	pixels = picture(&p->g);
	ASSERT_NE(NULL, pixels);
	ASSERT_EQ(0, irq_request(&p->g.vm));
	pid = sysfs_write_aside(DRIVER "/unbind", self->address);
	ASSERT_LT(0, pid);
	EXPECT_LT(0, irq_wait(p->g.vm.req_irq, VMM_TIMEOUT));
	EXPECT_FALSE(ends(pid, 300));
	EXPECT_TRUE(has(DRIVER "/", self->address, ""));
	EXPECT_TRUE(keeps(&p->g, pixels, 11));
	vm_close(&p->g.vm);
	p->g.vm.made = false;
	EXPECT_EQ(-ENODEV, worker_end(&p->w));
	/* The worker may have objects on the GPU still. */
	EXPECT_FALSE(ends(pid, 300));
	EXPECT_TRUE(has(DRIVER "/", self->address, ""));
	worker_close(&p->w);
	EXPECT_TRUE(ends(pid, VMM_TIMEOUT));
	memset(p, 0, sizeof(*p));
	EXPECT_FALSE(has(DRIVER "/", self->address, ""));
	EXPECT_FALSE(has(MDEV_BUS, self->address, ""));
	/* The supervisor learns of the end of the vGPU, and then of the device. */
	ASSERT_EQ(1, user_event(&self->d, &e, VMM_TIMEOUT));
	EXPECT_EQ(MGPU_USER_EVENT_CLOSED, e.type);
	EXPECT_EQ(0, user_event(&self->d, &e, VMM_TIMEOUT));

	ASSERT_EQ(0, sysfs_write(DRIVER "/bind", self->address));
	/* Its number is not another's while it is open. */
	ASSERT_EQ(0, user_dev_new_on(&other, self->address));
	EXPECT_NE(other.id, self->d.id);
	EXPECT_EQ(0, user_dev_delete(&other));
	EXPECT_TRUE(has("/sys/bus/platform/devices/", pdev, ""));
	/* A supervisor that died removes nothing: the next request does. */
	user_dev_leave(&self->d);
	ASSERT_EQ(0, make(&self->d, self->address));
	snprintf(pdev, sizeof(pdev), "mgpu_user.%u", other.id);
	EXPECT_FALSE(has("/sys/bus/platform/devices/", pdev, ""));
	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	pixels = picture(&p->g);
	ASSERT_NE(NULL, pixels);
	EXPECT_TRUE(keeps(&p->g, pixels, 13));
}

/* Whichever comes first ends the device; neither waits for the other for ever. */
TEST_F_TIMEOUT(gpu, unbinding_races_with_removal, 90)
{
	struct user_dev d;
	unsigned int i;
	pid_t pid;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, user_dev_new_on(&d, self->address));
		pid = sysfs_write_aside(DRIVER "/unbind", self->address);
		ASSERT_LT(0, pid);
		sleep_ms((i % 5) * 10);
		EXPECT_EQ(0, user_dev_delete(&d));
		ASSERT_TRUE(ends(pid, VMM_TIMEOUT));
		EXPECT_FALSE(has(MDEV_BUS, self->address, ""));
		ASSERT_EQ(0, sysfs_write(DRIVER "/bind", self->address));
	}
}

/* A request finds the driver, or its end: the device never outlives it. */
TEST_F_TIMEOUT(gpu, unbinding_races_with_a_request, 90)
{
	unsigned int i, made = 0, delay_us = 1000;
	struct user_dev d;
	pid_t pid;
	int ret;

	for (i = 0; i < 30; i++) {
		pid = sysfs_write_aside(DRIVER "/unbind", self->address);
		ASSERT_LT(0, pid);
		usleep(delay_us);
		ret = user_dev_new_on(&d, self->address);
		/* About as long as the other process needs. */
		delay_us = ret ? delay_us * 2 / 3 : delay_us * 3 / 2;
		EXPECT_TRUE(!ret || ret == -ENODEV || ret == -ENOENT);
		made += !ret;
		ASSERT_TRUE(ends(pid, VMM_TIMEOUT));
		EXPECT_FALSE(has(MDEV_BUS, self->address, ""));
		if (!ret)
			EXPECT_EQ(0, user_dev_delete(&d));
		ASSERT_EQ(0, sysfs_write(DRIVER "/bind", self->address));
	}
	TH_LOG("%u of %u devices were made before the driver was unbound", made, i);
	EXPECT_LT(0, made);
	EXPECT_LT(made, i);
}

TEST_F_TIMEOUT(gpu, unplugging_it_takes_the_vgpus_along, 60)
{
	struct pair *p = &self->p;
	struct mgpu_user_event e;
	uint32_t *pixels;
	char path[96];
	pid_t pid;

	ASSERT_EQ(0, make(&self->d, self->address));
	ASSERT_EQ(0, pair_new(p, &self->d, NULL));
	pixels = picture(&p->g);
	ASSERT_NE(NULL, pixels);
	ASSERT_EQ(0, irq_request(&p->g.vm));
	snprintf(path, sizeof(path), PCI "%s/remove", self->address);
	pid = sysfs_write_aside(path, "1");
	ASSERT_LT(0, pid);
	EXPECT_LT(0, irq_wait(p->g.vm.req_irq, VMM_TIMEOUT));
	EXPECT_FALSE(ends(pid, 300));
	EXPECT_TRUE(keeps(&p->g, pixels, 12));
	vm_close(&p->g.vm);
	p->g.vm.made = false;
	EXPECT_EQ(-ENODEV, worker_end(&p->w));
	worker_close(&p->w);
	EXPECT_TRUE(ends(pid, VMM_TIMEOUT));
	memset(p, 0, sizeof(*p));
	EXPECT_FALSE(has(PCI, self->address, ""));
	ASSERT_EQ(1, user_event(&self->d, &e, VMM_TIMEOUT));
	EXPECT_EQ(0, user_event(&self->d, &e, VMM_TIMEOUT));
	EXPECT_EQ(0, user_dev_delete(&self->d));
	self->d.control = -1;
	ASSERT_EQ(0, sysfs_write("/sys/bus/pci/rescan", "1"));
	ASSERT_TRUE(has(DRIVER "/", self->address, ""));
	ASSERT_EQ(0, make(&self->d, self->address));
}

TEST_HARNESS_MAIN
