// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz compute jobs.  The input: how large the three resources are, whether the
 * header is to be made right, then the command.  An accepted job is run, on
 * resources and local memory of exactly their size; it must keep what compute.h
 * promises and touch nothing else.
 */
#include "compute/compute.h"
#include "fuzz.h"

#define MAX_UNITS	(1 << 20)	/* of a job that is run */
#define HEAD		4		/* bytes before the command */

static void *grab(size_t size, int with)
{
	void *p = malloc(size);

	if (!p)
		abort();
	memset(p, with, size);
	return p;
}

static void check(const struct mgpu_compute *job)
{
	u32 i;

	FUZZ_ASSERT(job->op && job->op < MGPU_COMPUTE_NR_OPS);
	FUZZ_ASSERT(job->nr_bufs && job->nr_bufs <= MGPU_COMPUTE_MAX_BUFS);
	FUZZ_ASSERT(job->slots <= MGPU_COMPUTE_MAX_SLOTS);
	FUZZ_ASSERT(job->tiles && job->per_tile && job->groups && job->items);
	FUZZ_ASSERT(job->inst && job->bytes);
	FUZZ_ASSERT(job->inst <= (u64)job->tiles * (256 << 10));
	FUZZ_ASSERT(job->regs <= mgpu_compute_live(job));
	FUZZ_ASSERT(mgpu_compute_live(job) <= job->local);
	FUZZ_ASSERT(job->local <= MGPU_COMPUTE_LOCAL_MAX);
	FUZZ_ASSERT(job->nr_ranges <= MGPU_COMPUTE_MAX_RANGES);
	for (i = 0; i < job->nr_ranges; i++) {
		FUZZ_ASSERT(job->range[i].buf < job->nr_bufs);
		FUZZ_ASSERT(job->range[i].size);
		FUZZ_ASSERT(job->range[i].offset % 8 == 0);
	}
}

static void run(const struct mgpu_compute *job,
		const struct mgpu_compute_buf *bufs)
{
	struct mgpu_compute_usage usage = { 0 };
	void *local[2];
	u32 i;

	mgpu_compute_prepare(job, bufs);
	for (i = 0; i < 2; i++) {
		local[i] = grab(job->local, 0xa5);
		mgpu_compute_begin(job, local[i]);
	}
	for (i = 0; i < job->tiles; i++)
		mgpu_compute_tile(job, bufs, local[i % 2], i, &usage);
	for (i = 0; i < 2; i++) {
		mgpu_compute_end(job, bufs, local[i]);
		free(local[i]);
	}
	FUZZ_ASSERT(usage.inst == job->inst);
	FUZZ_ASSERT(usage.bytes == job->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	struct mgpu_compute_cmd *cmd;
	struct mgpu_compute job;
	bool own[MGPU_COMPUTE_MAX_BUFS];
	size_t len;
	int ret;
	u32 i, j;

	if (size < HEAD)
		return 0;
	len = size - HEAD;
	cmd = grab(len, 0);
	memcpy(cmd, data + HEAD, len);
	if (data[3] & 1 && len >= sizeof(*cmd)) {
		cmd->magic = cpu_to_le32(MGPU_COMPUTE_MAGIC);
		cmd->version = cpu_to_le32(MGPU_COMPUTE_VERSION);
		cmd->flags = 0;
	}

	ret = mgpu_compute_decode(cmd, len, &job);
	FUZZ_ASSERT(!ret || ret == -EINVAL || ret == -E2BIG ||
		    ret == -EOPNOTSUPP);
	free(cmd);
	if (ret)
		return 0;
	check(&job);

	for (i = 0; i < job.nr_bufs; i++) {
		for (j = 0; j < i && job.res[j] != job.res[i]; j++)
			;
		own[i] = j == i;
		if (own[i]) {
			bufs[i].size = (u64)data[i] * data[i];
			bufs[i].base = grab(bufs[i].size, (int)i + 0x5a);
		} else {
			bufs[i] = bufs[j];
		}
	}
	ret = mgpu_compute_check(&job, bufs);
	FUZZ_ASSERT(!ret || ret == -EINVAL || ret == -ERANGE);
	if (!ret && job.inst <= MAX_UNITS)
		run(&job, bufs);
	for (i = 0; i < job.nr_bufs; i++)
		if (own[i])
			free(bufs[i].base);
	return 0;
}

static void seeds(const char *dir)
{
	static const u32 nr_res[MGPU_COMPUTE_NR_OPS] = {
		0, 1, 2, 2, 3, 1, 2, 2, 2
	};
	u8 buf[HEAD + sizeof(struct mgpu_compute_cmd)];
	struct mgpu_compute_cmd cmd;
	char name[32];
	u32 op, i;

	for (op = 1; op < MGPU_COMPUTE_NR_OPS; op++) {
		memset(&cmd, 0, sizeof(cmd));
		cmd.magic = cpu_to_le32(MGPU_COMPUTE_MAGIC);
		cmd.version = cpu_to_le32(MGPU_COMPUTE_VERSION);
		cmd.op = cpu_to_le32(op);
		cmd.nr_res = cpu_to_le32(nr_res[op]);
		for (i = 0; i < nr_res[op]; i++)
			cmd.res[i] = cpu_to_le32(1 + i);
		switch (op) {
		case MGPU_COMPUTE_FILL:
			cmd.fill.length = cpu_to_le64(1024);
			cmd.fill.pattern = cpu_to_le64(0x0102030405060708);
			break;
		case MGPU_COMPUTE_COPY:
		case MGPU_COMPUTE_ACCUMULATE:
			cmd.move.length = cpu_to_le64(1024);
			break;
		case MGPU_COMPUTE_SCALE:
			cmd.scale.dst.width = cpu_to_le32(24);
			cmd.scale.dst.height = cpu_to_le32(16);
			cmd.scale.dst.stride = cpu_to_le32(96);
			cmd.scale.src.width = cpu_to_le32(7);
			cmd.scale.src.height = cpu_to_le32(9);
			cmd.scale.src.stride = cpu_to_le32(32);
			break;
		case MGPU_COMPUTE_MATMUL:
			cmd.matmul.n = cpu_to_le32(40);
			break;
		case MGPU_COMPUTE_MANDELBROT:
			cmd.mandelbrot.hist_offset = cpu_to_le64(4096);
			cmd.mandelbrot.width = cpu_to_le32(16);
			cmd.mandelbrot.height = cpu_to_le32(16);
			cmd.mandelbrot.iterations = cpu_to_le32(200);
			cmd.mandelbrot.left = cpu_to_le64(0 - (2ULL << 28));
			cmd.mandelbrot.top = cpu_to_le64(0 - (1ULL << 28));
			cmd.mandelbrot.dx = cpu_to_le64(3 << 24);
			cmd.mandelbrot.dy = cpu_to_le64(2 << 24);
			break;
		case MGPU_COMPUTE_HASH:
			cmd.hash.sum_offset = cpu_to_le64(1024);
			cmd.hash.length = cpu_to_le64(1000);
			cmd.hash.chunk = cpu_to_le64(64);
			break;
		case MGPU_COMPUTE_GATHER:
			cmd.gather.sum_offset = cpu_to_le64(1024);
			cmd.gather.table_log2 = cpu_to_le32(7);
			cmd.gather.walks = cpu_to_le32(20);
			cmd.gather.steps = cpu_to_le32(50);
			break;
		}
		/* Resources of 10,000 bytes; 1 in the last: a header made right. */
		memset(buf, 100, 3);
		buf[3] = 1;
		memcpy(buf + HEAD, &cmd, sizeof(cmd));
		fuzz_seed(dir, mgpu_compute_op_name(op), buf, sizeof(buf));
		snprintf(name, sizeof(name), "%s-as-it-is",
			 mgpu_compute_op_name(op));
		buf[3] = 0;
		fuzz_seed(dir, name, buf, sizeof(buf));
	}
}

FUZZ_SEEDS(seeds)
