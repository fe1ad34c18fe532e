// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the reader of job streams (mgpu-sim-preempt).  The input is the file.  Jobs that
 * are taken are in their ranges and in the order of arrival; what is written of them is
 * taken again.
 */
#include <errno.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "preempt_sim.h"

static char path[64];
static int fd = -1;

static void put(const void *data, size_t size)
{
	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
}

static void check_stream(const struct psim_stream *s)
{
	FUZZ_ASSERT(s->n && s->n <= PSIM_JOBS_MAX);
	for (size_t i = 0; i < s->n; i++) {
		const struct psim_job *j = &s->job[i];

		FUZZ_ASSERT(isfinite(j->arrival) && j->arrival >= 0);
		FUZZ_ASSERT(!i || j->arrival >= j[-1].arrival);
		FUZZ_ASSERT(j->kind >= 1 && j->vgpu < 4096);
		FUZZ_ASSERT(j->width >= 1 && j->width <= PREEMPT_SLOTS_MAX);
		FUZZ_ASSERT(j->size >= 1 && j->inst >= 1 && j->ipc > 0 && j->tile >= 1);
		FUZZ_ASSERT(j->bound >= 0 && j->bound <= 1 && j->miss >= 0 && j->miss <= 1);
		FUZZ_ASSERT(j->bytes >= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct psim_shape shape = { .seed = 1, .jobs = 1, .load = 1, .slots = 1 };
	static struct psim_stream s, again;
	char why[512] = "", *text;
	size_t len;
	FILE *f;
	int ret;

	put(data, size);
	ret = psim_read(&s, path, why, sizeof(why));
	FUZZ_ASSERT(!ret == !why[0]);
	if (ret) {
		FUZZ_ASSERT(ret == -EINVAL && !strncmp(why, path, strlen(path)));
		return 0;
	}
	check_stream(&s);

	f = open_memstream(&text, &len);
	FUZZ_ASSERT(f && !psim_write(&s, &shape, f) && !fclose(f));
	put(text, len);
	ret = psim_read(&again, path, why, sizeof(why));
	FUZZ_ASSERT(!ret && again.n == s.n);
	check_stream(&again);
	free(text);
	return 0;
}

#define HEAD \
	"arrival_us,vgpu,kind,size,slots,instr,ipc,bound,miss,bytes,tile_cycles,idempotent\n"

static void seeds(const char *dir)
{
	static const char *const files[] = {
		"# a stream\n" HEAD "1.5,0,1,100,1,2e6,2.4,0.05,0.02,311296,400000,1\n"
		"0,5,8,7,4,1000,0.3,0.9,0.9,0,1,0\n",
		HEAD, "", HEAD "0,0,1,1,1,1,1,0,0,0,1,2\n",
		HEAD "0,0,1,1,1,1,1,2,0,0,1,1\n", "arrival_us\n", HEAD "0,0,1\n",
	};
	static struct psim_stream s;
	const struct psim_shape shape = {
		.seed = 7, .jobs = 12, .load = 0.8, .slots = 4, .wide = 0.5,
	};
	char name[16], *text;
	size_t len;
	FILE *f;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		fuzz_seed(dir, name, files[i], strlen(files[i]));
	}
	psim_generate(&s, &shape);
	f = open_memstream(&text, &len);
	if (!f || psim_write(&s, &shape, f) || fclose(f))
		abort();
	fuzz_seed(dir, "made", text, len);
	free(text);
}

FUZZ_SEEDS(seeds)
