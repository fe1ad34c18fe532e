// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-dma: check that DMA changes no byte.  The device is QEMU's "edu", which copies between
 * memory and a buffer of its own.  Bytes go to the device from one page and come back into
 * another one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "cmdline.h"

#define PCI		"/sys/bus/pci/devices"
#define EDU_ID		"0x1234 0x11e8"
#define BAR_SIZE	0x100000

/* Registers, 64 bits wide. The buffer is an address of the device's side. */
#define REG_FROM	0x80
#define REG_TO		0x88
#define REG_COUNT	0x90
#define REG_COMMAND	0x98
#define COMMAND_RUN	1
#define COMMAND_TO_MEMORY 2
#define BUFFER		0x40000
/* QEMU ends when a transfer reaches the last byte of the buffer's 4096. */
#define BUFFER_SIZE	4095

#define PAGE		4096
#define LEAST		16	/* bytes of a transfer: equal by chance once in 2^128 */
#define LIMIT_NS	UINT64_C(10000000000)
#define OUTSIDE_BYTES	64

#define COMMAND		4	/* register of the PCI configuration space */
#define COMMAND_MASTER	4

const char *const program_name = "mgpu-dma";

/**
 * struct edu - the device
 * @addr: PCI address
 * @bar: its registers
 */
struct edu {
	char addr[32];
	volatile unsigned char *bar;
};

/**
 * struct page - a page that a device can reach
 * @at: its bytes
 * @physical: its address
 */
struct page {
	unsigned char *at;
	uint64_t physical;
};

/**
 * struct transfer - bytes that go to the device and back
 * @from: offset in the page that they come from
 * @buffer: offset in the device's buffer
 * @to: offset in the page that they go to
 * @size: their number
 */
struct transfer {
	size_t from;
	size_t buffer;
	size_t to;
	size_t size;
};

/**
 * struct result - what the transfers showed
 * @bytes: bytes that went to the device and back
 * @different: transfers before which the bytes differed
 * @equal: transfers after which they were equal
 * @kept: transfers that changed no other byte of both pages
 */
struct result {
	uint64_t bytes;
	uint32_t different;
	uint32_t equal;
	uint32_t kept;
};

struct options {
	uint32_t rounds;
	uint64_t outside;
};

static const char usage[] =
"usage: mgpu-dma [options]\n"
"\n"
"Have QEMU's PCI device edu copy random bytes from a page of memory to its buffer,\n"
"and from there to another page, and compare both. Sizes and offsets are random.\n"
"\n"
"  --rounds N       copies (8)\n"
"  --outside N      then have it read 64 bytes at this physical address\n"
"\n"
"Prints the device and the number of rounds, bytes, rounds before which the bytes\n"
"differed (different), rounds after which they were equal, and rounds that changed\n"
"no other byte of both pages (kept). The status is 0 if all were so. What is read\n"
"outside is not compared: the host's kernel says whether an IOMMU stopped it.\n";

/* ---- the device ---- */

static int read_word(const char *addr, const char *name, char word[16])
{
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), PCI "/%s/%s", addr, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, word, 15);
	close(fd);
	word[n > 0 ? n : 0] = '\0';
	word[strcspn(word, "\n")] = '\0';
	return 0;
}

static int find_edu(struct edu *edu)
{
	char vendor[16], device[16], id[40];
	DIR *dir = opendir(PCI);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (*e->d_name == '.' || read_word(e->d_name, "vendor", vendor) ||
		    read_word(e->d_name, "device", device))
			continue;
		snprintf(id, sizeof(id), "%s %s", vendor, device);
		if (!strcmp(id, EDU_ID))
			snprintf(edu->addr, sizeof(edu->addr), "%.31s", e->d_name);
	}
	if (dir)
		closedir(dir);
	if (*edu->addr)
		return 0;
	explain("no device edu: give QEMU -device edu\n");
	return -ENODEV;
}

static int open_file(const struct edu *edu, const char *name, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), PCI "/%s/%s", edu->addr, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		explain("%s: %s\n", path, strerror(errno));
	return fd;
}

/* Let the device answer at its addresses, and reach memory. */
static int enable(const struct edu *edu)
{
	int enable = open_file(edu, "enable", O_WRONLY), config = open_file(edu, "config", O_RDWR);
	uint16_t command = 0;
	int ret = -EIO;

	if (enable >= 0 && config >= 0 && write(enable, "1", 1) == 1 &&
	    pread(config, &command, sizeof(command), COMMAND) == sizeof(command)) {
		command |= COMMAND_MASTER;
		if (pwrite(config, &command, sizeof(command), COMMAND) == sizeof(command))
			ret = 0;
	}
	if (ret)
		explain("%s cannot be enabled: %s\n", edu->addr, strerror(errno));
	if (enable >= 0)
		close(enable);
	if (config >= 0)
		close(config);
	return ret;
}

static int map_registers(struct edu *edu)
{
	int fd = open_file(edu, "resource0", O_RDWR);
	void *bar;

	if (fd < 0)
		return -errno;
	bar = mmap(NULL, BAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (bar == MAP_FAILED) {
		explain("the registers of %s: %s\n", edu->addr, strerror(errno));
		return -EIO;
	}
	edu->bar = bar;
	return 0;
}

static volatile uint64_t *reg(const struct edu *edu, size_t offset)
{
	return (volatile uint64_t *)(volatile void *)(edu->bar + offset);
}

/* Copy, and wait until it is done. */
static int copy(const struct edu *edu, uint64_t from, uint64_t to, size_t size, uint64_t direction)
{
	uint64_t limit = now_ns() + LIMIT_NS;

	*reg(edu, REG_FROM) = from;
	*reg(edu, REG_TO) = to;
	*reg(edu, REG_COUNT) = size;
	*reg(edu, REG_COMMAND) = COMMAND_RUN | direction;
	while (*reg(edu, REG_COMMAND) & COMMAND_RUN) {
		if (now_ns() >= limit) {
			explain("%s copies nothing\n", edu->addr);
			return -ETIMEDOUT;
		}
		usleep(1000);
	}
	return 0;
}

/* ---- memory ---- */

/* The kernel tells root the numbers of page frames: bits 0 to 54 of an entry. */
static int find_physical(struct page *page)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)page->at / PAGE * sizeof(entry)));
	close(fd);
	page->physical = (entry & ((UINT64_C(1) << 55) - 1)) * PAGE;
	return n == sizeof(entry) && page->physical ? 0 : -EPERM;
}

static int get_page(struct page *page)
{
	int ret;

	page->at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED | MAP_POPULATE, -1, 0);
	ret = page->at == MAP_FAILED ? -errno : find_physical(page);
	if (ret)
		explain("the physical address of a page is unknown: %s; run mgpu-dma as root\n",
			strerror(-ret));
	return ret;
}

static void fill(void *at, size_t size)
{
	/* Whole in one call: the kernel's source is ready, and both are at most a page. */
	if (getrandom(at, size, 0) != (ssize_t)size) {
		explain("no random bytes: %s\n", strerror(errno));
		exit(1);
	}
}

/* ---- transfers ---- */

static size_t drawn(size_t least, size_t most)
{
	uint32_t random;

	fill(&random, sizeof(random));
	return least + random % (most - least + 1);
}

/* The first is the longest. */
static struct transfer draw(uint32_t round)
{
	struct transfer t = { .size = BUFFER_SIZE };

	if (!round)
		return t;
	t.size = drawn(LEAST, BUFFER_SIZE / 2);
	t.from = drawn(0, PAGE - t.size);
	t.buffer = drawn(0, BUFFER_SIZE - t.size);
	t.to = drawn(0, PAGE - t.size);
	return t;
}

static int transfer(const struct edu *edu, const struct page *from, const struct page *to,
		    const struct transfer *t, struct result *r)
{
	unsigned char before[PAGE], want[PAGE];

	fill(from->at, PAGE);
	fill(to->at, PAGE);
	memcpy(before, from->at, PAGE);
	memcpy(want, to->at, PAGE);
	memcpy(want + t->to, before + t->from, t->size);
	if (copy(edu, from->physical + t->from, BUFFER + t->buffer, t->size, 0))
		return -EIO;
	r->different += memcmp(to->at + t->to, before + t->from, t->size) != 0;
	if (copy(edu, BUFFER + t->buffer, to->physical + t->to, t->size, COMMAND_TO_MEMORY))
		return -EIO;
	r->equal += !memcmp(to->at + t->to, before + t->from, t->size);
	r->kept += !memcmp(from->at, before, PAGE) && !memcmp(to->at, want, t->to) &&
		   !memcmp(to->at + t->to + t->size, want + t->to + t->size,
			   PAGE - t->to - t->size);
	r->bytes += t->size;
	return 0;
}

static int run(const struct edu *edu, const struct options *o)
{
	struct page from, to;
	struct result r = { 0 };

	if (get_page(&from) || get_page(&to))
		return -1;
	for (uint32_t i = 0; i < o->rounds; i++) {
		struct transfer t = draw(i);

		if (transfer(edu, &from, &to, &t, &r))
			return -1;
	}
	printf("dma device=%s rounds=%u bytes=%llu different=%u equal=%u kept=%u\n", edu->addr,
	       o->rounds, (unsigned long long)r.bytes, r.different, r.equal, r.kept);
	if (o->outside && !copy(edu, o->outside, BUFFER, OUTSIDE_BYTES, 0))
		printf("dma outside=%#llx\n", (unsigned long long)o->outside);
	return r.different == o->rounds && r.equal == o->rounds && r.kept == o->rounds ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct options o = { .rounds = 8 };
	const struct cmdline_option options[] = {
		U32("rounds", &o.rounds, 1, 1000),
		U64("outside", &o.outside, 1, 0x1p52, "a physical address"),
		{ 0 },
	};
	int ret = cmdline_parse(options, usage, argc, argv);
	struct edu edu = { 0 };

	if (ret)
		return ret < 0 ? 2 : 0;
	if (find_edu(&edu) || enable(&edu) || map_registers(&edu))
		return 1;
	return run(&edu, &o) ? 1 : 0;
}
