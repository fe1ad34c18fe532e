// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory runs out: each allocation of an operation fails in turn, and in the end
 * all from some point on.  The operation succeeds or returns an error, leaves nothing
 * behind, and works afterwards.  kmemleak reports leaks at the end of the run, and
 * KASAN every use after free.
 *
 * The calling task's fail-nth counts the task's own allocations, those of VFIO, mdev
 * and netlink included.  failslab and fail_page_alloc count the allocations with the
 * module in their stack, in any task: those of the module's workers and engines.
 * fail_page_alloc counts allocations too large for a slab, new slabs, and page tables.
 * Needs a kernel with fault injection (KERNEL=debug).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "compute.h"
#include "nl.h"
#include "vmm.h"

#define DEBUGFS		"/sys/kernel/debug/"
#define PRINTK		"/proc/sys/kernel/printk"

#define BGRX		VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM
#define RAM		(4u << 20)
#define SIDE		64u	/* of a picture or a job, pixels */
#define MAX_ALLOCATIONS	1000	/* of one operation */
/*
 * Of the resource or context that is made: so far from the others that the table of
 * them has to grow.
 */
#define ID		5000

/* ---- faults ---- */

/* The allocations that are counted, and fail. */
enum counts {
	TASK,			/* the calling task's, whatever it allocates */
	SLAB,			/* slab objects with the module in the stack */
	PAGES,			/* pages, likewise */
	NR_COUNTS,
};

static const char *const counts_name[] = { "allocation", "slab object", "page block" };

/* An attribute of fault injection, its files open while a sweep writes them. */
struct fault_attr {
	const char *dir;	/* in debugfs */
	int count;
	int interval;
	int times;
	int space;
	int probability;
};

struct faults {
	int nth;		/* the calling task's fail-nth */
	int min_order;		/* fail_page_alloc's */
	struct fault_attr attr[NR_COUNTS];	/* not TASK's */
};

/* No file is opened here: that allocates. */
static int put(int fd, long long val)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%lld\n", val);

	return write(fd, text, (size_t)n) == n ? 0 : -errno;
}

static int put_path(const char *path, const char *text)
{
	return sysfs_write(path, text);
}

/* Where the core module is, from /proc/modules. */
static int module_range(unsigned long *start, unsigned long *end)
{
	FILE *f = fopen("/proc/modules", "re");
	unsigned long size, at;
	char line[512], name[64];
	int ret = -ENOENT;

	if (!f)
		return -errno;
	while (ret && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %lu %*s %*s %*s %lx", name, &size,
			   &at) == 3 && !strcmp(name, "mgpu") && at) {
			*start = at;
			*end = at + size;
			ret = 0;
		}
	}
	fclose(f);
	return ret;
}

static const char *const attr_dir[NR_COUNTS] = {
	[SLAB] = DEBUGFS "failslab/",
	[PAGES] = DEBUGFS "fail_page_alloc/",
};

/* Whether this kernel can do it at all. */
static bool faults_offered(void)
{
	return access("/proc/thread-self/fail-nth", W_OK) == 0 &&
	       access(DEBUGFS "failslab/require-start", W_OK) == 0 &&
	       access(DEBUGFS "failslab/count", W_OK) == 0 &&
	       access(DEBUGFS "fail_page_alloc/min-order", W_OK) == 0;
}

static int attr_path(const struct fault_attr *a, const char *name, char *path,
		     size_t size)
{
	return snprintf(path, size, "%s%s", a->dir, name) < (int)size ? 0 :
								-ENAMETOOLONG;
}

static int attr_open_file(const struct fault_attr *a, const char *name, int *fd)
{
	char path[128];
	int ret = attr_path(a, name, path, sizeof(path));

	if (ret)
		return ret;
	*fd = open(path, O_RDWR | O_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

static int attr_set(const struct fault_attr *a, const char *name, const char *text)
{
	char path[128];
	int ret = attr_path(a, name, path, sizeof(path));

	return ret ? ret : sysfs_write(path, text);
}

static int attr_open(struct fault_attr *a, const char *start, const char *end)
{
	int ret = attr_open_file(a, "count", &a->count);

	ret = ret ? ret : attr_open_file(a, "interval", &a->interval);
	ret = ret ? ret : attr_open_file(a, "times", &a->times);
	ret = ret ? ret : attr_open_file(a, "space", &a->space);
	ret = ret ? ret : attr_open_file(a, "probability", &a->probability);
	ret = ret ? ret : put(a->probability, 0);
	/* Also what may sleep; the traces would only fill the log. */
	ret = ret ? ret : attr_set(a, "ignore-gfp-wait", "N");
	ret = ret ? ret : attr_set(a, "verbose", "0");
	ret = ret ? ret : attr_set(a, "task-filter", "N");
	ret = ret ? ret : attr_set(a, "require-start", start);
	return ret ? ret : attr_set(a, "require-end", end);
}

static void attr_close(struct fault_attr *a)
{
	put(a->probability, 0);
	close(a->count);
	close(a->interval);
	close(a->times);
	close(a->space);
	close(a->probability);
}

static int faults_open(struct faults *f)
{
	char first[32], last[32];
	unsigned long start = 0, end = 0;
	enum counts i;
	int ret;

	ret = module_range(&start, &end);
	if (ret)
		return ret;
	snprintf(first, sizeof(first), "%lu", start);
	snprintf(last, sizeof(last), "%lu", end);
	f->nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	f->min_order = open(DEBUGFS "fail_page_alloc/min-order", O_RDWR | O_CLOEXEC);
	if (f->nth < 0 || f->min_order < 0)
		return -errno;
	for (i = SLAB; i < NR_COUNTS && !ret; i++) {
		f->attr[i].dir = attr_dir[i];
		ret = attr_open(&f->attr[i], first, last);
	}
	return ret;
}

static void faults_close(struct faults *f)
{
	enum counts i;

	put(f->nth, 0);
	put(f->min_order, 1);
	close(f->nth);
	close(f->min_order);
	for (i = SLAB; i < NR_COUNTS; i++)
		attr_close(&f->attr[i]);
}

/*
 * The @nth allocation from now on fails, once.  Single pages do not for the task:
 * they are its own page tables, too.
 */
static int arm(struct faults *f, enum counts what, unsigned int nth)
{
	struct fault_attr *a = &f->attr[what];
	int ret = put(f->min_order, what == PAGES ? 0 : 1);

	if (what == TASK)
		return ret ? ret : put(f->nth, nth);
	ret = ret ? ret : put(a->count, 0);
	ret = ret ? ret : put(a->space, 0);
	ret = ret ? ret : put(a->interval, nth);
	ret = ret ? ret : put(a->times, 1);
	return ret ? ret : put(a->probability, 100);
}

/* The module gets @space more bytes or pages, and nothing after that. */
static int arm_end(struct faults *f, enum counts what, long long space)
{
	struct fault_attr *a = &f->attr[what];
	int ret = put(f->min_order, what == PAGES ? 0 : 1);

	ret = ret ? ret : put(a->interval, 1);
	ret = ret ? ret : put(a->space, space);
	ret = ret ? ret : put(a->times, 1 << 20);
	return ret ? ret : put(a->probability, 100);
}

/* No more; how many failed. */
static unsigned int disarm(struct faults *f, enum counts what, unsigned int times)
{
	char text[32] = "", path[128];
	bool left;

	if (what == TASK) {
		left = pread(f->nth, text, sizeof(text) - 1, 0) > 0 && atoi(text);
		put(f->nth, 0);
		return !left;
	}
	put(f->attr[what].probability, 0);
	if (attr_path(&f->attr[what], "times", path, sizeof(path)))
		return 0;
	return times - (unsigned int)sysfs_number(path);
}

/* ---- operations ---- */

struct stage {
	struct vm vm;
	struct nl nl;
	uint32_t vgpu;		/* id of the machine's */
	char uuid[VMM_UUID_LEN + 1];	/* of one that an operation makes */
	int fd[8];
	void *at;		/* guest memory */
};

/*
 * An operation.  @setup and @undo are around each round, without faults; @run gives
 * 0, a negative errno, or a VIRTIO_GPU_RESP_*.
 */
struct op {
	const char *name;
	bool task;		/* the calling task's allocations, not the module's */
	int (*setup)(struct stage *s);
	int (*run)(struct stage *s);
	int (*undo)(struct stage *s);
	/* Whether @run's failure is one that the interface promises. */
	bool (*clean)(int ret);
	/* Whether a failure left nothing behind; called before @undo. */
	bool (*nothing_left)(struct stage *s);
};

static bool worked(int ret)
{
	return ret == 0 || ret == OK || ret == INFO;
}

static bool is_enomem(int ret)
{
	return ret == -ENOMEM;
}

static bool is_answer(int ret)
{
	return ret == NOMEM;
}

/* ENOSPC: tmpfs', for the memory that is to be the machine's. */
static bool is_open(int ret)
{
	return ret == -ENOMEM || ret == -ENOSPC;
}

/* Netlink has no memory for the answer, or the module none for the request. */
static bool is_netlink(int ret)
{
	return ret == -ENOMEM || ret == -ENOBUFS;
}

/* The VMM's calls before, or the device itself. */
static bool is_start(int ret)
{
	return is_enomem(ret) || is_answer(ret);
}

static bool never(int ret)
{
	(void)ret;
	return false;
}

/*
 * Run a round: 0, or -1 after printing the fault.  *@failed counts the failed
 * allocations.
 */
static int round_of(struct __test_metadata *_metadata, const struct op *op,
		    struct stage *s, struct faults *f, enum counts counted,
		    unsigned int nth, long long space, unsigned int *failed,
		    int *result)
{
	const char *what = NULL;
	unsigned int n;
	int ret = op->setup ? op->setup(s) : 0, armed;

	if (ret) {
		TH_LOG("%s: its setup gave %d (%s)", op->name, ret,
		       ret < 0 ? strerror(-ret) : "answer");
		return -1;
	}
	armed = nth ? arm(f, counted, nth) : arm_end(f, counted, space);
	ret = armed ? armed : op->run(s);
	n = disarm(f, counted, nth ? 1 : 1 << 20);
	*failed += n;
	*result = ret;
	if (armed)
		what = "the fault cannot be set up";
	else if (!n && !worked(ret))
		what = "fails with memory enough";
	else if (!worked(ret) && !op->clean(ret))
		what = "fails in a way that the interface does not have";
	else if (!worked(ret) && op->nothing_left && !op->nothing_left(s))
		what = "leaves something behind";
	if (what) {
		if (nth)
			TH_LOG("%s: %s %u: %s: 0x%x (%s)", op->name,
			       counts_name[counted], nth, what, (unsigned int)ret,
			       ret < 0 ? strerror(-ret) : "answer");
		else
			TH_LOG("%s: after %lld %s: %s: 0x%x (%s)", op->name, space,
			       counted == SLAB ? "bytes" : "pages", what,
			       (unsigned int)ret,
			       ret < 0 ? strerror(-ret) : "answer");
	}
	if (worked(ret) && op->undo && op->undo(s) && !what) {
		TH_LOG("%s: what it made cannot be undone", op->name);
		return -1;
	}
	return what ? -1 : (int)n;
}

/*
 * Each allocation in turn, and after each that refused the operation this without
 * faults.  How many failed.
 */
static unsigned int sweep_of(struct __test_metadata *_metadata, const struct op *op,
			     struct stage *s, struct faults *f, enum counts counted)
{
	unsigned int nth, failed = 0, refused = 0, none = 0, later = 0;
	int ret = 0, result;
	long long space;

	for (nth = 1; nth <= MAX_ALLOCATIONS; nth++) {
		ret = round_of(_metadata, op, s, f, counted, nth, 0, &failed, &result);
		if (ret <= 0)
			break;
		/* An operation that never fails: twice as many rounds would tell no more. */
		if (worked(result))
			continue;
		refused++;
		ret = round_of(_metadata, op, s, f, counted, MAX_ALLOCATIONS, 0,
			       &none, &result);
		if (ret || !worked(result))
			break;
	}
	EXPECT_EQ(0, ret) {
		TH_LOG("%s: stopped at %s %u", op->name, counts_name[counted], nth);
	}
	EXPECT_GE(MAX_ALLOCATIONS, nth);

	for (space = 0; !ret && counted != TASK && space <= 1 << 16;
	     space = space ? space * 4 : 4) {
		int n = round_of(_metadata, op, s, f, counted, 0, space, &later,
				 &result);

		EXPECT_LE(0, n);
		if (n <= 0)
			break;
	}
	fprintf(TH_LOG_STREAM,
		"# %s: %u %ss failed, one at a time, and %u refused it; %u more from some point on\n",
		op->name, failed, counts_name[counted], refused, later);
	return failed;
}

static void sweep(struct __test_metadata *_metadata, const struct op *op,
		  struct stage *s, struct faults *f)
{
	unsigned int failed;

	if (op->task)
		failed = sweep_of(_metadata, op, s, f, TASK);
	else
		failed = sweep_of(_metadata, op, s, f, SLAB) +
			 sweep_of(_metadata, op, s, f, PAGES);
	/* With none of them nothing was tested. */
	EXPECT_LT(0, failed) {
		TH_LOG("%s: no allocation failed", op->name);
	}
}

/* ---- the harness's part ---- */

FIXTURE(failslab)
{
	bool offered;
	struct faults faults;
	struct stage s;
	char printk[64];
	unsigned int mdevs;
	long long available;
};

FIXTURE_SETUP(failslab)
{
	self->offered = faults_offered();
	if (!self->offered)
		return;
	self->s.vm.container = self->s.vm.group = self->s.vm.device = -1;
	/*
	 * The kernel itself tells of a vmalloc() that fails, with a trace like that
	 * of a warning; it goes to the log, not to the console.  Warnings still end
	 * the run, see panic_on_warn.
	 */
	ASSERT_LT(0, sysfs_read(PRINTK, self->printk, sizeof(self->printk)));
	ASSERT_EQ(0, put_path(PRINTK, "4"));
	ASSERT_EQ(0, nl_open(&self->s.nl));
	self->mdevs = mdev_count();
	self->available = mdev_available("small-render");
	ASSERT_EQ(0, faults_open(&self->faults));
}

FIXTURE_TEARDOWN(failslab)
{
	struct nl_vgpu v;

	if (!self->offered)
		return;
	faults_close(&self->faults);
	if (self->s.vm.made) {
		vm_close(&self->s.vm);
		EXPECT_EQ(0, nl_vgpu_get(&self->s.nl, self->s.vm.uuid, &v));
		EXPECT_FALSE(v.open);
		EXPECT_EQ(0, v.mem_used);
		EXPECT_EQ(0, v.pinned);
		vm_delete(&self->s.vm);
	}
	EXPECT_EQ(self->mdevs, mdev_count());
	EXPECT_EQ(self->available, mdev_available("small-render"));
	nl_close(&self->s.nl);
	EXPECT_EQ(0, put_path(PRINTK, self->printk));
}

#define NEEDS_FAULTS(self)						\
	do {								\
		if (!(self)->offered)					\
			SKIP(return, "no fault injection in this kernel");	\
	} while (0)

/* A vGPU, closed. */
static int stage_made(struct stage *s)
{
	struct nl_vgpu v;
	int ret;

	ret = vm_new(&s->vm, "small-render", RAM);
	if (ret)
		return ret;
	vm_close(&s->vm);
	ret = nl_vgpu_get(&s->nl, s->vm.uuid, &v);
	s->vgpu = v.id;
	return ret;
}

/* Open the vGPU that there is. */
static int stage_open(struct stage *s)
{
	char uuid[VMM_UUID_LEN + 1];
	int ret;

	memcpy(uuid, s->vm.uuid, sizeof(uuid));
	ret = vm_open(&s->vm, uuid, RAM);
	s->vm.made = true;
	return ret;
}

static int stage_start(struct stage *s)
{
	int ret = stage_open(s);

	return ret ? ret : vm_start_with(&s->vm, RENDER_FEATURES);
}

/* A started device that has carried out a command. */
static int stage_running(struct stage *s)
{
	uint32_t w, h;
	int ret = stage_start(s);

	if (!ret && gpu_display_info(&s->vm, &w, &h) != INFO)
		ret = -EIO;
	s->at = vm_alloc(&s->vm, 1 << 20, 4096);
	return ret ? ret : s->at ? 0 : -ENOMEM;
}

static int close_it(struct stage *s)
{
	vm_close(&s->vm);
	return 0;
}

/* Whether the vGPU, closed, holds nothing. */
static bool is_empty(struct stage *s)
{
	struct nl_vgpu v;

	vm_close(&s->vm);
	return !nl_vgpu_get(&s->nl, s->vm.uuid, &v) && !v.open && !v.mem_used &&
	       !v.pinned;
}

/* ---- vGPUs ---- */

static int create_setup(struct stage *s)
{
	mdev_uuid_new(s->uuid);
	return 0;
}

static int create_run(struct stage *s)
{
	return mdev_create("small-render", s->uuid);
}

static int create_undo(struct stage *s)
{
	return mdev_remove(s->uuid);
}

static bool create_left(struct stage *s)
{
	struct nl_vgpu v;

	return !mdev_exists(s->uuid) &&
	       nl_vgpu_get(&s->nl, s->uuid, &v) == -ENODEV;
}

TEST_F(failslab, create)
{
	const struct op op = {
		"create", true, create_setup, create_run, create_undo, is_enomem,
		create_left,
	};

	NEEDS_FAULTS(self);
	sweep(_metadata, &op, &self->s, &self->faults);
}

static int remove_setup(struct stage *s)
{
	mdev_uuid_new(s->uuid);
	return mdev_create("small-render", s->uuid);
}

/* To open the file may fail; the removal itself never. */
static int remove_run(struct stage *s)
{
	char path[256];
	int ret;

	snprintf(path, sizeof(path), "%s/%s/remove", VMM_DEVICES, s->uuid);
	do
		ret = sysfs_write(path, "1");
	while (ret == -ENOMEM);
	return ret;
}

static int remove_undo(struct stage *s)
{
	return mdev_exists(s->uuid);
}

TEST_F(failslab, remove)
{
	const struct op op = {
		"remove", true, remove_setup, remove_run, remove_undo, never,
		NULL,
	};

	NEEDS_FAULTS(self);
	sweep(_metadata, &op, &self->s, &self->faults);
}

TEST_F(failslab, open)
{
	const struct op op = {
		"open", true, NULL, stage_open, close_it, is_open, is_empty,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s));
	sweep(_metadata, &op, &self->s, &self->faults);
}

static int close_run(struct stage *s)
{
	vm_close(&s->vm);
	return 0;
}

static int close_undo(struct stage *s)
{
	return !is_empty(s);
}

TEST_F(failslab, close)
{
	const struct op op = {
		"close", true, stage_running, close_run, close_undo, never, NULL,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s));
	sweep(_metadata, &op, &self->s, &self->faults);
}

/* ---- the VMM's calls ---- */

#define MORE		(VMM_RAM_BASE + (256ull << 20))

static int map_run(struct stage *s)
{
	return vm_map(&s->vm, s->vm.ram, RAM, MORE);
}

static int map_undo(struct stage *s)
{
	return vm_unmap(&s->vm, MORE, RAM);
}

TEST_F(failslab, map)
{
	const struct op op = {
		"map", true, NULL, map_run, map_undo, is_enomem, NULL,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s));
	ASSERT_EQ(0, stage_running(&self->s));
	sweep(_metadata, &op, &self->s, &self->faults);
}

static int irq_run(struct stage *s)
{
	int ret = irq_msix(&s->vm, 3);

	ret = ret ? ret : irq_msix_off(&s->vm);
	ret = ret ? ret : irq_intx(&s->vm);
	return ret ? ret : irq_request(&s->vm);
}

TEST_F(failslab, interrupts)
{
	const struct op op = {
		"interrupts", true, stage_open, irq_run, close_it, is_enomem,
		is_empty,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s));
	sweep(_metadata, &op, &self->s, &self->faults);
}

static int display_run(struct stage *s)
{
	size_t len;

	return display_map(&s->vm, &len) ? 0 : -errno;
}

TEST_F(failslab, display)
{
	const struct op op = {
		"display", true, stage_open, display_run, close_it, is_enomem,
		is_empty,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s));
	sweep(_metadata, &op, &self->s, &self->faults);
}

/* ---- netlink ---- */

/* A socket for each round: a dump that failed stays with its own. */
static int socket_new(struct stage *s)
{
	nl_close(&s->nl);
	return nl_open(&s->nl);
}

static bool socket_left(struct stage *s)
{
	return !socket_new(s);
}

static int vgpu_get(struct stage *s)
{
	struct nl_vgpu v;

	return nl_vgpu_get(&s->nl, s->vm.uuid, &v);
}

static int vgpu_dump(struct stage *s)
{
	struct nl_vgpu v[4];
	int ret = nl_vgpu_dump(&s->nl, v, ARRAY_LEN(v));

	return ret == 1 ? 0 : ret < 0 ? ret : -EBADMSG;
}

static int dev_get(struct stage *s)
{
	struct nl_dev d;

	return nl_dev_get(&s->nl, VMM_PARENT, &d);
}

/* Another value each time, so that there is something to do. */
static int vgpu_set(struct stage *s)
{
	static int64_t weight = 100;

	weight = weight == 100 ? 101 : 100;
	return nl_vgpu_set_full(&s->nl, s->vm.uuid, weight, 60000, 500000, 20000,
				20000);
}

static int vgpu_mode(struct stage *s)
{
	static int64_t width = 640;

	width = width == 640 ? 800 : 640;
	return nl_vgpu_set_mode(&s->nl, s->vm.uuid, width, 480);
}

static int dev_set(struct stage *s)
{
	return nl_dev_set(&s->nl, VMM_PARENT, NULL, MGPU_JOB_TIMEOUT_DEFAULT);
}

/* Two vGPUs in a batch: both, or none. */
static int64_t batch_weight = 200;

static int batch_run(struct stage *s)
{
	struct nl_msg m;

	batch_weight = batch_weight == 200 ? 201 : 200;
	nl_begin(&s->nl, &m, MGPU_CMD_VGPU_SET, 0);
	nl_put_setting(&m, s->vm.uuid, batch_weight, NL_KEEP, NL_KEEP, NL_KEEP,
		       NL_KEEP);
	nl_put_setting(&m, s->uuid, batch_weight, NL_KEEP, NL_KEEP, NL_KEEP,
		       NL_KEEP);
	return nl_talk(&s->nl, &m);
}

static bool batch_left(struct stage *s)
{
	struct nl_vgpu a, b;

	return !socket_new(s) && !nl_vgpu_get(&s->nl, s->vm.uuid, &a) &&
	       !nl_vgpu_get(&s->nl, s->uuid, &b) && a.weight == b.weight;
}

static int ctx_get(struct stage *s)
{
	struct nl_ctx c;

	return nl_ctx_get(&s->nl, s->vgpu, 1, &c);
}

static int ctx_dump(struct stage *s)
{
	struct nl_ctx c[4];
	int ret = nl_ctx_dump(&s->nl, 0, c, ARRAY_LEN(c));

	return ret == 1 ? 0 : ret < 0 ? ret : -EBADMSG;
}

static int ctx_ask(struct stage *s, uint8_t cmd, int method)
{
	uint8_t one = 1;
	struct nl_msg m;

	nl_begin(&s->nl, &m, cmd, NLM_F_ACK);
	nl_put_u32(&m, MGPU_A_CTX_VGPU_ID, s->vgpu);
	nl_put_u32(&m, MGPU_A_CTX_ID, 1);
	if (method >= 0) {
		nl_put_u32(&m, MGPU_A_CTX_METHOD, (uint32_t)method);
		nl_put(&m, MGPU_A_CTX_HOLD, &one, sizeof(one));
	}
	return nl_talk(&s->nl, &m);
}

static int ctx_hold(struct stage *s)
{
	return ctx_ask(s, MGPU_CMD_CTX_PREEMPT, MGPU_PREEMPT_METHOD_SWITCH);
}

static int ctx_resume(struct stage *s)
{
	return ctx_ask(s, MGPU_CMD_CTX_RESUME, -1);
}

static int ctx_hold_first(struct stage *s)
{
	int ret = socket_new(s);

	return ret ? ret : ctx_hold(s);
}

TEST_F(failslab, netlink)
{
	const struct op ops[] = {
		{ "vgpu-get", true, socket_new, vgpu_get, NULL, is_netlink,
		  socket_left },
		{ "vgpu-get dump", true, socket_new, vgpu_dump, NULL, is_netlink,
		  socket_left },
		{ "vgpu-set", true, socket_new, vgpu_set, NULL, is_netlink,
		  socket_left },
		{ "vgpu-set mode", true, socket_new, vgpu_mode, NULL, is_netlink,
		  socket_left },
		{ "vgpu-set batch", true, socket_new, batch_run, NULL,
		  is_netlink, batch_left },
		{ "dev-get dump", true, socket_new, dev_get, NULL, is_netlink,
		  socket_left },
		{ "dev-set", true, socket_new, dev_set, NULL, is_netlink,
		  socket_left },
		{ "ctx-get", true, socket_new, ctx_get, NULL, is_netlink,
		  socket_left },
		{ "ctx-get dump", true, socket_new, ctx_dump, NULL, is_netlink,
		  socket_left },
		{ "ctx-preempt", true, socket_new, ctx_hold, ctx_resume,
		  is_netlink, socket_left },
		{ "ctx-resume", true, ctx_hold_first, ctx_resume, NULL,
		  is_netlink, socket_left },
	};
	struct stage *s = &self->s;
	unsigned int i;

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(s));
	ASSERT_EQ(0, stage_running(s));
	ASSERT_EQ(OK, ctx_create(&s->vm, 1, MGPU_CAPSET_COMPUTE));
	for (i = 0; i < ARRAY_LEN(ops); i++) {
		if (ops[i].run == batch_run) {
			mdev_uuid_new(s->uuid);
			ASSERT_EQ(0, mdev_create("small-render", s->uuid));
			ASSERT_EQ(0, batch_run(s));
		}
		sweep(_metadata, &ops[i], s, &self->faults);
		if (ops[i].run == batch_run) {
			ASSERT_EQ(0, mdev_remove(s->uuid));
		}
	}
}

/* ---- the guest's ---- */

/*
 * DRIVER_OK pins the rings, and the first command its pages.  Rings that cannot be
 * pinned are told with NEEDS_RESET.
 */
static int first_run(struct stage *s)
{
	uint32_t w, h;
	int ret = vm_start_with(&s->vm, RENDER_FEATURES);

	if (ret)
		return ret;
	if (vio_status(&s->vm) & VIRTIO_CONFIG_S_NEEDS_RESET)
		return NOMEM;
	return gpu_display_info(&s->vm, &w, &h);
}

TEST_F(failslab, start)
{
	const struct op op = {
		"start", false, stage_open, first_run, close_it, is_start,
		is_empty,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s));
	sweep(_metadata, &op, &self->s, &self->faults);
}

static int answer(int ret)
{
	return ret == OK ? 0 : ret;
}

static int create_2d(struct stage *s)
{
	return gpu_create_2d(&s->vm, ID, BGRX, SIDE, SIDE);
}

static int unref(struct stage *s)
{
	return answer(gpu_unref(&s->vm, ID));
}

static int detach(struct stage *s)
{
	return answer(gpu_detach(&s->vm, ID));
}

/* Use the object that was made, so that a missing part shows; else unmake it. */
static int used(struct stage *s, int ret, int (*unmake)(struct stage *s))
{
	if (ret != OK && unmake(s))
		return -EIO;
	return ret;
}

static int create_blob(struct stage *s)
{
	int ret = gpu_create_blob(&s->vm, ID, s->at, SIDE * SIDE * 4);

	if (ret != OK)
		return ret;
	ret = gpu_set_scanout_blob(&s->vm, ID, BGRX, SIDE, SIDE, SIDE * 4, 0);
	if (ret == OK)
		ret = gpu_flush(&s->vm, ID, gpu_rect(0, 0, SIDE, SIDE));
	return used(s, ret, unref);
}

static int attach_only(struct stage *s)
{
	/* In pieces, one of them no page's beginning. */
	const struct virtio_gpu_mem_entry e[] = {
		{ .addr = vm_addr(&s->vm, s->at), .length = 8192 },
		{ .addr = vm_addr(&s->vm, s->at) + 5 * 4096 + 16, .length = 4096 },
		{ .addr = vm_addr(&s->vm, s->at) + 9 * 4096, .length = 4096 },
	};

	return gpu_attach_entries(&s->vm, ID, e, ARRAY_LEN(e));
}

static int attach(struct stage *s)
{
	int ret = attach_only(s);

	if (ret != OK)
		return ret;
	ret = gpu_transfer(&s->vm, ID, gpu_rect(0, 0, SIDE, SIDE), 0);
	return used(s, ret, detach);
}

static int context(struct stage *s)
{
	return ctx_create(&s->vm, ID, MGPU_CAPSET_COMPUTE);
}

static int context_end(struct stage *s)
{
	return answer(ctx_destroy(&s->vm, ID));
}

static int context_attach(struct stage *s)
{
	return ctx_attach(&s->vm, 1, 1);
}

static int context_detach(struct stage *s)
{
	return answer(ctx_resource(&s->vm, 1, 1,
				   VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE));
}

TEST_F(failslab, resources_and_contexts)
{
	const struct op before = {
		"resource-create-2d", false, NULL, create_2d, unref, is_answer,
		NULL,
	};
	const struct op ops[] = {
		{ "resource-create-blob", false, NULL, create_blob, unref,
		  is_answer, NULL },
		{ "ctx-create", false, NULL, context, context_end, is_answer,
		  NULL },
		{ "ctx-attach-resource", false, NULL, context_attach,
		  context_detach, is_answer, NULL },
	};
	const struct op backing = {
		"resource-attach-backing", false, NULL, attach, detach,
		is_answer, NULL,
	};
	struct stage *s = &self->s;
	unsigned int i;

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(s));
	ASSERT_EQ(0, stage_running(s));
	ASSERT_EQ(OK, gpu_create_2d(&s->vm, 1, BGRX, 64, 64));
	ASSERT_EQ(OK, ctx_create(&s->vm, 1, MGPU_CAPSET_COMPUTE));
	sweep(_metadata, &before, s, &self->faults);
	for (i = 0; i < ARRAY_LEN(ops); i++)
		sweep(_metadata, &ops[i], s, &self->faults);
	ASSERT_EQ(OK, create_2d(s));
	sweep(_metadata, &backing, s, &self->faults);
	ASSERT_EQ(0, unref(s));
}

/* A job with state to be saved, of which the room for it is a part. */
#define ITERATIONS	255u

static int submit(struct stage *s)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, SIDE, SIDE, ITERATIONS);

	return ctx_result(&s->vm, ctx_submit(&s->vm, 1, &c));
}

TEST_F(failslab, submit)
{
	const struct op op = {
		"submit-3d", false, NULL, submit, NULL, is_answer, NULL,
	};
	struct stage *s = &self->s;

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(s));
	ASSERT_EQ(0, stage_running(s));
	ASSERT_EQ(OK, gpu_create_blob(&s->vm, 1, s->at, 1 << 20));
	ASSERT_EQ(OK, ctx_create(&s->vm, 1, MGPU_CAPSET_COMPUTE));
	ASSERT_EQ(OK, ctx_attach(&s->vm, 1, 1));
	sweep(_metadata, &op, s, &self->faults);
}

/* A picture that is there, and not shown yet. */
static int picture(struct stage *s)
{
	int ret = stage_running(s);

	if (ret)
		return ret;
	if (create_2d(s) != OK || attach_only(s) != OK)
		return -EIO;
	return 0;
}

/* The first flush makes the display buffer. */
static int frame(struct stage *s)
{
	struct virtio_gpu_rect r = gpu_rect(0, 0, SIDE, SIDE);
	int ret = gpu_set_scanout(&s->vm, ID, r);

	ret = ret == OK ? gpu_transfer(&s->vm, ID, r, 0) : ret;
	return ret == OK ? gpu_flush(&s->vm, ID, r) : ret;
}

/* The first cursor makes room for its image and for what is below. */
static int cursor(struct stage *s)
{
	return gpu_cursor(&s->vm, ID, 3, 4, 0, 0);
}

TEST_F(failslab, screen)
{
	const struct op ops[] = {
		{ "set-scanout, transfer, flush", false, picture, frame,
		  close_it, is_answer, is_empty },
		{ "update-cursor", false, picture, cursor, close_it, is_answer,
		  is_empty },
	};
	unsigned int i;

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s));
	for (i = 0; i < ARRAY_LEN(ops); i++)
		sweep(_metadata, &ops[i], &self->s, &self->faults);
}

TEST_HARNESS_MAIN
