// SPDX-License-Identifier: GPL-2.0-only
/* Memory runs out: fault injection, and the rounds of an operation. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failslab.h"

#define DEBUGFS		"/sys/kernel/debug/"
#define PRINTK		"/proc/sys/kernel/printk"
#define MODULE		"mgpu"

static const char *const counts_name[] = { "allocation", "slab object", "page block" };

/* No file is opened here: that allocates. */
static int put(int fd, long long val)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%lld\n", val);

	return write(fd, text, (size_t)n) == n ? 0 : -errno;
}

/* Find the module's addresses in /proc/modules. */
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
			   &at) == 3 && !strcmp(name, MODULE) && at) {
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

bool faults_offered(void)
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

static int attr_open(struct fault_attr *a)
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
	return ret ? ret : attr_set(a, "task-filter", "N");
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

/* Count the allocations of the module from now on. */
static int faults_of_module(struct faults *f)
{
	char first[32], last[32];
	unsigned long start = 0, end = 0;
	enum counts i;
	int ret;

	ret = module_range(&start, &end);
	snprintf(first, sizeof(first), "%lu", start);
	snprintf(last, sizeof(last), "%lu", end);
	for (i = SLAB; i < NR_COUNTS && !ret; i++) {
		ret = attr_set(&f->attr[i], "require-start", first);
		ret = ret ? ret : attr_set(&f->attr[i], "require-end", last);
	}
	if (ret)
		remark("the allocations of " MODULE " cannot be counted: %d", ret);
	return ret;
}

int faults_open(struct faults *f)
{
	enum counts i;
	int ret = sysfs_read(PRINTK, f->printk, sizeof(f->printk));

	if (ret <= 0)
		return ret ? ret : -ENODATA;
	ret = sysfs_write(PRINTK, "4");
	if (ret)
		return ret;
	f->nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	f->min_order = open(DEBUGFS "fail_page_alloc/min-order", O_RDWR | O_CLOEXEC);
	if (f->nth < 0 || f->min_order < 0)
		return -errno;
	for (i = SLAB; i < NR_COUNTS && !ret; i++) {
		f->attr[i].dir = attr_dir[i];
		ret = attr_open(&f->attr[i]);
	}
	return ret ? ret : faults_of_module(f);
}

int faults_close(struct faults *f)
{
	enum counts i;

	put(f->nth, 0);
	put(f->min_order, 1);
	close(f->nth);
	close(f->min_order);
	for (i = SLAB; i < NR_COUNTS; i++)
		attr_close(&f->attr[i]);
	return sysfs_write(PRINTK, f->printk);
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

static bool worked(int ret)
{
	return ret == 0 || ret == OK || ret == INFO;
}

/*
 * Run a round: 0, or -1 after printing the fault.  *@failed counts the failed
 * allocations.
 */
static int round_of(const struct op *op, struct stage *s, struct faults *f,
		    enum counts counted, unsigned int nth, long long space,
		    unsigned int *failed, int *result)
{
	const char *what = NULL;
	unsigned int n;
	int ret = op->setup ? op->setup(s) : 0, armed;

	if (ret) {
		remark("%s: its setup gave %d (%s)", op->name, ret,
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
			remark("%s: %s %u: %s: 0x%x (%s)", op->name,
			       counts_name[counted], nth, what, (unsigned int)ret,
			       ret < 0 ? strerror(-ret) : "answer");
		else
			remark("%s: after %lld %s: %s: 0x%x (%s)", op->name, space,
			       counted == SLAB ? "bytes" : "pages", what,
			       (unsigned int)ret,
			       ret < 0 ? strerror(-ret) : "answer");
	}
	if (worked(ret) && op->undo && op->undo(s) && !what) {
		remark("%s: what it made cannot be undone", op->name);
		return -1;
	}
	return what ? -1 : (int)n;
}

/* Sweep over one kind of allocations; how many failed is added to @all. */
static bool sweep_of(const struct op *op, struct stage *s, struct faults *f,
		     enum counts counted, unsigned int *all)
{
	unsigned int nth, failed = 0, refused = 0, none = 0, later = 0;
	int ret = 0, result;
	long long space;
	bool good;

	for (nth = 1; nth <= MAX_ALLOCATIONS; nth++) {
		ret = round_of(op, s, f, counted, nth, 0, &failed, &result);
		if (ret <= 0)
			break;
		/* An operation that never fails: twice as many rounds would tell no more. */
		if (worked(result))
			continue;
		refused++;
		ret = round_of(op, s, f, counted, MAX_ALLOCATIONS, 0, &none, &result);
		if (ret || !worked(result))
			break;
	}
	good = !ret && nth <= MAX_ALLOCATIONS;
	if (!good)
		remark("%s: stopped at %s %u", op->name, counts_name[counted], nth);

	for (space = 0; !ret && counted != TASK && space <= 1 << 16;
	     space = space ? space * 4 : 4) {
		int n = round_of(op, s, f, counted, 0, space, &later, &result);

		good &= n >= 0;
		if (n <= 0)
			break;
	}
	remark("%s: %u %ss failed, one at a time, and %u refused it; %u more from some point on",
	       op->name, failed, counts_name[counted], refused, later);
	*all += failed;
	return good;
}

bool sweep(const struct op *op, struct stage *s, struct faults *f)
{
	unsigned int failed = 0;
	bool good;

	if (op->task) {
		good = sweep_of(op, s, f, TASK, &failed);
	} else {
		good = sweep_of(op, s, f, SLAB, &failed);
		good &= sweep_of(op, s, f, PAGES, &failed);
	}
	/* With none of them nothing was tested. */
	if (!failed)
		remark("%s: no allocation failed", op->name);
	return good && failed;
}

bool is_enomem(int ret)
{
	return ret == -ENOMEM;
}

bool is_answer(int ret)
{
	return ret == NOMEM;
}

bool is_start(int ret)
{
	return is_enomem(ret) || is_answer(ret);
}

bool never(int ret)
{
	(void)ret;
	return false;
}

/* ---- stages ---- */

int stage_made(struct stage *s, size_t ram)
{
	struct nl_vgpu v;
	int ret = vm_new(&s->vm, "small-render", ram);

	if (ret)
		return ret;
	s->ram = ram;
	vm_close(&s->vm);
	ret = nl_vgpu_get(&s->nl, s->vm.uuid, &v);
	if (!ret)
		s->vgpu = v.id;
	return ret;
}

int stage_open(struct stage *s)
{
	char uuid[VMM_UUID_LEN + 1];
	int ret;

	memcpy(uuid, s->vm.uuid, sizeof(uuid));
	ret = vm_open(&s->vm, uuid, s->ram);
	s->vm.made = true;
	return ret;
}

int stage_close(struct stage *s)
{
	vm_close(&s->vm);
	return 0;
}

bool stage_empty(struct stage *s)
{
	struct nl_vgpu v;

	vm_close(&s->vm);
	return !nl_vgpu_get(&s->nl, s->vm.uuid, &v) && !v.open && !v.mem_used &&
	       !v.pinned;
}
