// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compute jobs: decode and check command buffers, and run the tiles of jobs.
 * Pure: no kernel calls, builds in user space too.
 *
 * The caller has copied the command out of guest memory, so it does not change any
 * more.  Resources are guest memory and may change while tiles read and write them; a
 * guest that changes them corrupts only its own result.  So addresses come from the
 * checked job alone; GATHER's index, the only number from guest memory that selects an
 * address, is read once and masked.
 *
 * A job's result does not depend on the order of its tiles, on their slots, or on
 * preemption: tiles write disjoint bytes, and the values that slots collect are summed.
 */
#include "compute/compute.h"

/*
 * Upper bounds of a tile: about 256 Ki simple operations, or 1.5 MiB of memory
 * traffic, or 8 Ki reads that each wait for memory.  That takes 0.1 to 1 ms on a
 * current CPU and about 2 ms on a slow or emulated one.
 */
#define TILE_FILL	(128 << 10)	/* words */
#define TILE_MOVE	(64 << 10)	/* words */
#define TILE_PIXELS	(16 << 10)
#define TILE_MACS	(256 << 10)	/* multiply and add */
#define TILE_ITERATIONS	(32 << 10)
#define TILE_HASH	(512 << 10)	/* bytes */
#define TILE_STEPS	(8 << 10)

/* Work units. */
#define UNITS_WORD	1
#define UNITS_PIXEL	16
#define UNITS_MAC	1
#define UNITS_ITERATION	8
#define UNITS_HASH	4		/* a word */
#define UNITS_STEP	4

#define BYTES_PIXEL	20		/* four read, one written */
#define BYTES_STEP	64		/* a cache line, 8 bytes of which are used */

#define MATMUL_COLS	32		/* of a block, with a short panel */
#define MATMUL_SHORT	1024		/* rows */

#define NO_PANEL	(~0ULL)

/* MATMUL's slot-local memory, which is all of its live state. */
struct panel {
	u64 block;			/* number of the block of columns */
	u32 b[];			/* row by row, cols each */
};

static_assert(sizeof(struct mgpu_compute_cmd) == 104, "on the wire");
static_assert(sizeof(struct mgpu_capset_compute) == 64, "on the wire");
static_assert(sizeof(((struct mgpu_compute_cmd *)0)->param) >=
	      sizeof(struct mgpu_compute_mandelbrot), "largest parameters");
static_assert(sizeof(struct panel) + MATMUL_SHORT * MATMUL_COLS * 4 <=
	      MGPU_COMPUTE_LOCAL_MAX, "a slot has room for it");
static_assert(MGPU_COMPUTE_MAX_N * (MATMUL_COLS / 2) <=
	      MATMUL_SHORT * MATMUL_COLS, "tall panels are not larger");
static_assert((MGPU_COMPUTE_MAX_ITERATIONS + 1) * 8 <= MGPU_COMPUTE_LOCAL_MAX,
	      "a slot has room for it");

/* An operation's number of resources, the size of its parameters and its name. */
static const struct op {
	const char *name;
	u32 nr_bufs;
	u32 params;
} ops[MGPU_COMPUTE_NR_OPS] = {
	[MGPU_COMPUTE_FILL] = {
		"fill", 1, sizeof(struct mgpu_compute_fill)
	},
	[MGPU_COMPUTE_COPY] = {
		"copy", 2, sizeof(struct mgpu_compute_move)
	},
	[MGPU_COMPUTE_SCALE] = {
		"scale", 2, sizeof(struct mgpu_compute_scale)
	},
	[MGPU_COMPUTE_MATMUL] = {
		"matmul", 3, sizeof(struct mgpu_compute_matmul)
	},
	[MGPU_COMPUTE_MANDELBROT] = {
		"mandelbrot", 1, sizeof(struct mgpu_compute_mandelbrot)
	},
	[MGPU_COMPUTE_HASH] = {
		"hash", 2, sizeof(struct mgpu_compute_hash)
	},
	[MGPU_COMPUTE_GATHER] = {
		"gather", 2, sizeof(struct mgpu_compute_gather)
	},
	[MGPU_COMPUTE_ACCUMULATE] = {
		"accumulate", 2, sizeof(struct mgpu_compute_move)
	},
};

static bool op_ok(u32 op)
{
	return op && op < MGPU_COMPUTE_NR_OPS;
}

/**
 * mgpu_compute_op_name - get the name of an operation
 * @op: enum mgpu_compute_op
 *
 * Return: a word in small letters, "unknown" for an unknown operation.
 */
const char *mgpu_compute_op_name(u32 op)
{
	return op_ok(op) ? ops[op].name : "unknown";
}

/**
 * mgpu_compute_capset - make the capability set for guests
 * @cap: result
 * @slots: number of slots that a job can use at once
 */
void mgpu_compute_capset(struct mgpu_capset_compute *cap, u32 slots)
{
	u64 mask = 0;
	u32 i;

	for (i = 1; i < MGPU_COMPUTE_NR_OPS; i++)
		mask |= 1ULL << i;

	memset(cap, 0, sizeof(*cap));
	cap->version = cpu_to_le32(MGPU_COMPUTE_VERSION);
	cap->slots = cpu_to_le32(slots);
	cap->max_cmd = cpu_to_le32(MGPU_COMPUTE_MAX_CMD);
	cap->max_bufs = cpu_to_le32(MGPU_COMPUTE_MAX_BUFS);
	cap->max_local = cpu_to_le32(MGPU_COMPUTE_LOCAL_MAX);
	cap->ops = cpu_to_le64(mask);
}

static bool all_zero(const void *p, size_t len)
{
	const u8 *b = p;
	u8 any = 0;

	while (len--)
		any |= *b++;
	return !any;
}

static bool compute_between(u64 v, u64 low, u64 high)
{
	return v >= low && v <= high;
}

/* Add a range; return false if its offset is not a multiple of 8. */
static bool add_range(struct mgpu_compute *job, u32 buf, bool write,
		      __le64 offset, u64 size)
{
	struct mgpu_compute_range *r = &job->range[job->nr_ranges++];

	r->buf = buf;
	r->write = write;
	r->offset = le64_to_cpu(offset);
	r->size = size;
	return r->offset % 8 == 0;
}

static void set_tiles(struct mgpu_compute *job, u64 items, u32 per_tile,
		      u32 groups)
{
	job->items = items;
	job->per_tile = per_tile;
	job->groups = groups;
	job->tiles = (u32)div_u64(items + per_tile - 1, per_tile) * groups;
}

static bool length_ok(u64 len)
{
	return len % 8 == 0 && compute_between(len, 8, MGPU_COMPUTE_MAX_LENGTH);
}

static int decode_fill(const struct mgpu_compute_fill *p,
		       struct mgpu_compute *job)
{
	u64 len = le64_to_cpu(p->length);

	if (!length_ok(len) || !add_range(job, 0, true, p->offset, len))
		return -EINVAL;
	job->fill.pattern = le64_to_cpu(p->pattern);
	set_tiles(job, len / 8, TILE_FILL, 1);
	job->inst = job->items * UNITS_WORD;
	job->bytes = len;
	return 0;
}

/* Decode COPY, with a traffic of 2 (read, write), or ACCUMULATE, with 3. */
static int decode_move(const struct mgpu_compute_move *p,
		       struct mgpu_compute *job, u32 traffic)
{
	u64 len = le64_to_cpu(p->length);

	if (!length_ok(len) || !add_range(job, 0, true, p->dst_offset, len) ||
	    !add_range(job, 1, false, p->src_offset, len))
		return -EINVAL;
	set_tiles(job, len / 8, TILE_MOVE, 1);
	job->inst = job->items * UNITS_WORD;
	job->bytes = len * traffic;
	return 0;
}

static bool decode_picture(const struct mgpu_compute_picture *p,
			   struct mgpu_compute *job, u32 buf, bool write,
			   struct mgpu_compute_size *size)
{
	size->width = le32_to_cpu(p->width);
	size->height = le32_to_cpu(p->height);
	size->stride = le32_to_cpu(p->stride);

	return compute_between(size->width, 1, MGPU_COMPUTE_MAX_DIM) &&
	       compute_between(size->height, 1, MGPU_COMPUTE_MAX_DIM) &&
	       compute_between(size->stride, size->width * 4,
			       MGPU_COMPUTE_MAX_STRIDE) &&
	       size->stride % 4 == 0 && !p->pad &&
	       add_range(job, buf, write, p->offset,
			 (size->height - 1) * (u64)size->stride +
			 size->width * 4);
}

static int decode_scale(const struct mgpu_compute_scale *p,
			struct mgpu_compute *job)
{
	struct mgpu_compute_size *dst = &job->scale.dst;
	struct mgpu_compute_size *src = &job->scale.src;
	u32 rows;

	if (!decode_picture(&p->dst, job, 0, true, dst) ||
	    !decode_picture(&p->src, job, 1, false, src))
		return -EINVAL;
	job->scale.step_x = (src->width << 16) / dst->width;
	job->scale.step_y = (src->height << 16) / dst->height;
	rows = TILE_PIXELS / dst->width;
	set_tiles(job, dst->height, rows ? rows : 1, 1);
	job->inst = (u64)dst->width * dst->height * UNITS_PIXEL;
	job->bytes = (u64)dst->width * dst->height * BYTES_PIXEL;
	return 0;
}

static int decode_matmul(const struct mgpu_compute_matmul *p,
			 struct mgpu_compute *job)
{
	u32 n = le32_to_cpu(p->n), cols, rows, blocks;
	u64 size = (u64)n * n * 4;

	if (!compute_between(n, 1, MGPU_COMPUTE_MAX_N) || p->pad)
		return -EINVAL;
	if (!add_range(job, 0, true, p->c_offset, size) ||
	    !add_range(job, 1, false, p->a_offset, size) ||
	    !add_range(job, 2, false, p->b_offset, size))
		return -EINVAL;
	cols = n <= MATMUL_SHORT ? MATMUL_COLS : MATMUL_COLS / 2;
	blocks = (n + cols - 1) / cols;
	rows = TILE_MACS / (n * cols);
	job->matmul.n = n;
	job->matmul.cols = cols;
	job->local = sizeof(struct panel) + n * cols * 4;
	set_tiles(job, n, rows, blocks);
	job->inst = (u64)n * n * n * UNITS_MAC;
	/* A is read once for each block, B and C are read or written once. */
	job->bytes = (blocks + 2) * size;
	return 0;
}

/* Check that the first and the last of @count numbers, @step apart, are in range. */
static bool fixed_ok(s64 first, s64 step, u32 count)
{
	const s64 max = MGPU_COMPUTE_FIXED_MAX;

	if (first < -max || first > max || step < -2 * max || step > 2 * max)
		return false;
	first += step * (count - 1);
	return first >= -max && first <= max;
}

static int decode_mandelbrot(const struct mgpu_compute_mandelbrot *p,
			     struct mgpu_compute *job)
{
	u32 width = le32_to_cpu(p->width), height = le32_to_cpu(p->height);
	u32 iterations = le32_to_cpu(p->iterations);
	u64 pixels = (u64)width * height;
	u32 hist;

	if (!compute_between(width, 1, MGPU_COMPUTE_MAX_DIM) ||
	    !compute_between(height, 1, MGPU_COMPUTE_MAX_DIM) ||
	    !compute_between(iterations, 1, MGPU_COMPUTE_MAX_ITERATIONS) || p->pad)
		return -EINVAL;
	hist = (iterations + 1) * 8;
	if (!add_range(job, 0, true, p->offset, pixels * 4) ||
	    !add_range(job, 0, true, p->hist_offset, hist))
		return -EINVAL;

	job->mandelbrot.width = width;
	job->mandelbrot.iterations = iterations;
	job->mandelbrot.left = (s64)le64_to_cpu(p->left);
	job->mandelbrot.top = (s64)le64_to_cpu(p->top);
	job->mandelbrot.dx = (s64)le64_to_cpu(p->dx);
	job->mandelbrot.dy = (s64)le64_to_cpu(p->dy);
	if (!fixed_ok(job->mandelbrot.left, job->mandelbrot.dx, width) ||
	    !fixed_ok(job->mandelbrot.top, job->mandelbrot.dy, height))
		return -EINVAL;

	job->local = hist;
	job->regs = hist;
	set_tiles(job, pixels, TILE_ITERATIONS / iterations, 1);
	job->inst = pixels * iterations * UNITS_ITERATION;
	job->bytes = pixels * 4;
	return 0;
}

static int decode_hash(const struct mgpu_compute_hash *p,
		       struct mgpu_compute *job)
{
	u64 len = le64_to_cpu(p->length), chunk = le64_to_cpu(p->chunk);
	u64 chunks;

	if (!length_ok(len) || chunk % 8 ||
	    !compute_between(chunk, MGPU_COMPUTE_MIN_CHUNK, MGPU_COMPUTE_MAX_CHUNK))
		return -EINVAL;
	chunks = div_u64(len + chunk - 1, (u32)chunk);
	if (!add_range(job, 0, true, p->offset, chunks * 8) ||
	    !add_range(job, 0, true, p->sum_offset, 8) ||
	    !add_range(job, 1, false, p->src_offset, len))
		return -EINVAL;

	job->hash.length = len;
	job->hash.chunk = (u32)chunk;
	job->local = 8;
	job->regs = 8;
	set_tiles(job, chunks, TILE_HASH / (u32)chunk, 1);
	job->inst = len / 8 * UNITS_HASH;
	job->bytes = len + chunks * 8;
	return 0;
}

static int decode_gather(const struct mgpu_compute_gather *p,
			 struct mgpu_compute *job)
{
	u32 log2 = le32_to_cpu(p->table_log2), walks = le32_to_cpu(p->walks);
	u32 steps = le32_to_cpu(p->steps);

	if (log2 > MGPU_COMPUTE_MAX_TABLE_LOG2 ||
	    !compute_between(walks, 1, MGPU_COMPUTE_MAX_WALKS) ||
	    !compute_between(steps, 1, MGPU_COMPUTE_MAX_STEPS) || p->pad)
		return -EINVAL;
	if (!add_range(job, 0, true, p->offset, walks * 8ULL) ||
	    !add_range(job, 0, true, p->sum_offset, 8) ||
	    !add_range(job, 1, false, p->table_offset, 8ULL << log2))
		return -EINVAL;

	job->gather.seed = le64_to_cpu(p->seed);
	job->gather.mask = (1ULL << log2) - 1;
	job->gather.steps = steps;
	job->local = 8;
	job->regs = 8;
	set_tiles(job, walks, TILE_STEPS / steps, 1);
	job->inst = (u64)walks * steps * UNITS_STEP;
	job->bytes = (u64)walks * (steps * BYTES_STEP + 8);
	return 0;
}

/**
 * mgpu_compute_decode - check a command buffer and make a job of it
 * @buf: struct mgpu_compute_cmd, private to the caller
 * @len: length of the command, bytes
 * @job: result; all 0 on error
 *
 * Checks everything that does not depend on resources.
 *
 * Context: any.
 * Return: 0; -E2BIG if @buf is longer than MGPU_COMPUTE_MAX_CMD or has fields that
 * this version does not know; -EOPNOTSUPP for another version, an unknown operation or
 * unknown flags; -EINVAL for other errors.
 */
int mgpu_compute_decode(const void *buf, size_t len, struct mgpu_compute *job)
{
	struct mgpu_compute_cmd cmd;
	int ret = -EINVAL;
	u32 i;

	memset(job, 0, sizeof(*job));
	if (len > MGPU_COMPUTE_MAX_CMD)
		return -E2BIG;
	if (len < sizeof(cmd))
		return -EINVAL;
	memcpy(&cmd, buf, sizeof(cmd));
	if (le32_to_cpu(cmd.magic) != MGPU_COMPUTE_MAGIC)
		return -EINVAL;
	if (le32_to_cpu(cmd.version) != MGPU_COMPUTE_VERSION ||
	    !op_ok(le32_to_cpu(cmd.op)) || cmd.flags)
		return -EOPNOTSUPP;
	if (!all_zero((const u8 *)buf + sizeof(cmd), len - sizeof(cmd)))
		return -E2BIG;

	job->op = le32_to_cpu(cmd.op);
	job->slots = le32_to_cpu(cmd.slots);
	job->nr_bufs = le32_to_cpu(cmd.nr_res);
	job->idempotent = job->op != MGPU_COMPUTE_ACCUMULATE;
	if (job->slots > MGPU_COMPUTE_MAX_SLOTS || cmd.pad ||
	    job->nr_bufs != ops[job->op].nr_bufs ||
	    !all_zero((const u8 *)cmd.param + ops[job->op].params,
		      sizeof(cmd.param) - ops[job->op].params))
		goto out;
	for (i = 0; i < MGPU_COMPUTE_MAX_BUFS; i++) {
		job->res[i] = le32_to_cpu(cmd.res[i]);
		if (i < job->nr_bufs ? !job->res[i] : job->res[i])
			goto out;
	}

	switch (job->op) {
	case MGPU_COMPUTE_FILL:
		ret = decode_fill(&cmd.fill, job);
		break;
	case MGPU_COMPUTE_COPY:
		ret = decode_move(&cmd.move, job, 2);
		break;
	case MGPU_COMPUTE_SCALE:
		ret = decode_scale(&cmd.scale, job);
		break;
	case MGPU_COMPUTE_MATMUL:
		ret = decode_matmul(&cmd.matmul, job);
		break;
	case MGPU_COMPUTE_MANDELBROT:
		ret = decode_mandelbrot(&cmd.mandelbrot, job);
		break;
	case MGPU_COMPUTE_HASH:
		ret = decode_hash(&cmd.hash, job);
		break;
	case MGPU_COMPUTE_GATHER:
		ret = decode_gather(&cmd.gather, job);
		break;
	case MGPU_COMPUTE_ACCUMULATE:
		ret = decode_move(&cmd.move, job, 3);
		break;
	}
out:
	if (ret)
		memset(job, 0, sizeof(*job));
	return ret;
}

/* Return whether ranges overlap; both are within a resource, so ends do not overflow. */
static bool compute_overlap(const struct mgpu_compute_range *a,
			    const struct mgpu_compute_range *b)
{
	return a->offset < b->offset + b->size &&
	       b->offset < a->offset + a->size;
}

/**
 * mgpu_compute_check - check that a job is within its resources
 * @job: from mgpu_compute_decode()
 * @bufs: resources of @job, in its order
 *
 * The caller calls this again after a resource changed its address or size.  Resources
 * with different ids are treated as different memory; a guest that backs two resources
 * with the same pages corrupts its own result.
 *
 * Context: any.
 * Return: 0; -ERANGE if a range of the job exceeds its resource; -EINVAL if a range
 * that the job writes overlaps another range.
 */
int mgpu_compute_check(const struct mgpu_compute *job,
		       const struct mgpu_compute_buf *bufs)
{
	const struct mgpu_compute_range *r = job->range;
	u32 i, j;

	for (i = 0; i < job->nr_ranges; i++) {
		if (r[i].size > bufs[r[i].buf].size ||
		    r[i].offset > bufs[r[i].buf].size - r[i].size)
			return -ERANGE;
	}
	for (i = 0; i < job->nr_ranges; i++) {
		for (j = 0; j < i; j++) {
			if ((r[i].write || r[j].write) &&
			    job->res[r[i].buf] == job->res[r[j].buf] &&
			    compute_overlap(&r[i], &r[j]))
				return -EINVAL;
		}
	}
	return 0;
}

/* Return the address of range @i of the job. */
static void *compute_place(const struct mgpu_compute *job,
			   const struct mgpu_compute_buf *bufs, u32 i)
{
	return (u8 *)bufs[job->range[i].buf].base + job->range[i].offset;
}

/* Return the address of the @n numbers of 64 bits that slots add to when they end. */
static __le64 *compute_merged(const struct mgpu_compute *job,
			      const struct mgpu_compute_buf *bufs, u32 *n)
{
	switch (job->op) {
	case MGPU_COMPUTE_MANDELBROT:
	case MGPU_COMPUTE_HASH:
	case MGPU_COMPUTE_GATHER:
		*n = job->regs / 8;
		return compute_place(job, bufs, 1);
	default:
		*n = 0;
		return NULL;
	}
}

/**
 * mgpu_compute_prepare - prepare a job's resources
 * @job: from mgpu_compute_decode()
 * @bufs: resources of @job that mgpu_compute_check() has accepted
 *
 * The caller calls this once before the first tile, and again before an idempotent job
 * is restarted.
 *
 * Context: any; no slot executes the job.
 */
void mgpu_compute_prepare(const struct mgpu_compute *job,
			  const struct mgpu_compute_buf *bufs)
{
	__le64 *to;
	u32 n;

	to = compute_merged(job, bufs, &n);
	if (n)
		memset(to, 0, n * sizeof(*to));
}

/**
 * mgpu_compute_begin - prepare a slot's memory for a job
 * @job: from mgpu_compute_decode()
 * @local: the slot's memory, job->local bytes, aligned to 8
 *
 * Context: any.
 */
void mgpu_compute_begin(const struct mgpu_compute *job, void *local)
{
	struct panel *panel;

	if (job->regs)
		memset(local, 0, job->regs);
	if (job->op == MGPU_COMPUTE_MATMUL) {
		panel = local;
		panel->block = NO_PANEL;
	}
}

/**
 * mgpu_compute_live - get the size of the live state to save from a slot's memory
 * @job: from mgpu_compute_decode()
 *
 * A slot that resumes a preempted job needs these bytes from the start of the previous
 * slot's memory.  It is enough to restore job->regs bytes after mgpu_compute_begin():
 * tiles rebuild the rest when they need it.
 *
 * Return: bytes, job->regs to job->local.
 */
u32 mgpu_compute_live(const struct mgpu_compute *job)
{
	return job->local;
}

static void add_usage(struct mgpu_compute_usage *usage, u64 inst, u64 bytes)
{
	usage->inst += inst;
	usage->bytes += bytes;
}

static void tile_fill(const struct mgpu_compute *job,
		      const struct mgpu_compute_buf *bufs, u64 first, u64 end,
		      struct mgpu_compute_usage *usage)
{
	__le64 *dst = compute_place(job, bufs, 0);
	__le64 pattern = cpu_to_le64(job->fill.pattern);
	u64 i;

	for (i = first; i < end; i++)
		dst[i] = pattern;
	add_usage(usage, (end - first) * UNITS_WORD, (end - first) * 8);
}

static void tile_copy(const struct mgpu_compute *job,
		      const struct mgpu_compute_buf *bufs, u64 first, u64 end,
		      struct mgpu_compute_usage *usage)
{
	__le64 *dst = compute_place(job, bufs, 0);
	const __le64 *src = compute_place(job, bufs, 1);

	memcpy(dst + first, src + first, (end - first) * sizeof(*dst));
	add_usage(usage, (end - first) * UNITS_WORD, (end - first) * 16);
}

static void tile_accumulate(const struct mgpu_compute *job,
			    const struct mgpu_compute_buf *bufs, u64 first,
			    u64 end, struct mgpu_compute_usage *usage)
{
	__le64 *dst = compute_place(job, bufs, 0);
	const __le64 *src = compute_place(job, bufs, 1);
	u64 i;

	for (i = first; i < end; i++)
		dst[i] = cpu_to_le64(le64_to_cpu(dst[i]) + le64_to_cpu(src[i]));
	add_usage(usage, (end - first) * UNITS_WORD, (end - first) * 24);
}

/* A position between two pixels: the pixel before, the next, and 1/256 of the distance. */
struct sample {
	u32 at;
	u32 next;
	u32 part;
};

/*
 * Return the position in the source of the centre of result pixel @i.  Steps are
 * rounded down, so that also the last position is before the source's end.
 */
static struct sample compute_sample(u32 i, u32 step, u32 size)
{
	s64 pos = (s64)i * step + step / 2 - 0x8000;
	struct sample s;

	if (pos < 0)
		pos = 0;
	s.at = (u32)(pos >> 16);
	s.next = s.at + 1 < size ? s.at + 1 : s.at;
	s.part = (u32)(pos >> 8) & 0xff;
	return s;
}

/* Mix two colours at a time; each is at most 255 * 256 before it is shifted back. */
static u32 mix_pixels(u32 a, u32 b, u32 part)
{
	u32 rb = (a & 0xff00ff) * (256 - part) + (b & 0xff00ff) * part;
	u32 g = (a & 0x00ff00) * (256 - part) + (b & 0x00ff00) * part;

	return ((rb >> 8) & 0xff00ff) | ((g >> 8) & 0x00ff00);
}

static void tile_scale(const struct mgpu_compute *job,
		       const struct mgpu_compute_buf *bufs, u64 first, u64 end,
		       struct mgpu_compute_usage *usage)
{
	const struct mgpu_compute_size *to = &job->scale.dst;
	const struct mgpu_compute_size *from = &job->scale.src;
	u8 *dst = compute_place(job, bufs, 0);
	const u8 *src = compute_place(job, bufs, 1);
	const __le32 *above, *below;
	struct sample sx, sy;
	u64 pixels = (end - first) * to->width;
	__le32 *row;
	u32 x, y;

	for (y = (u32)first; y < end; y++) {
		sy = compute_sample(y, job->scale.step_y, from->height);
		above = (const void *)(src + (u64)sy.at * from->stride);
		below = (const void *)(src + (u64)sy.next * from->stride);
		row = (void *)(dst + (u64)y * to->stride);
		for (x = 0; x < to->width; x++) {
			sx = compute_sample(x, job->scale.step_x, from->width);
			row[x] = cpu_to_le32(mix_pixels
				(mix_pixels(le32_to_cpu(above[sx.at]),
					    le32_to_cpu(above[sx.next]),
					    sx.part),
				 mix_pixels(le32_to_cpu(below[sx.at]),
					    le32_to_cpu(below[sx.next]),
					    sx.part),
				 sy.part));
		}
	}
	add_usage(usage, pixels * UNITS_PIXEL, pixels * BYTES_PIXEL);
}

/* Load a block of columns of the right factor into the slot's memory. */
static void load_panel(const struct mgpu_compute *job, struct panel *panel,
		       const __le32 *b, u32 block, u32 width)
{
	u32 n = job->matmul.n, cols = job->matmul.cols;
	u32 i, k;

	b += block * cols;
	for (k = 0; k < n; k++) {
		for (i = 0; i < width; i++)
			panel->b[k * cols + i] = le32_to_cpu(b[i]);
		b += n;
	}
	panel->block = block;
}

static void tile_matmul(const struct mgpu_compute *job,
			const struct mgpu_compute_buf *bufs,
			struct panel *panel, u32 block, u64 first, u64 end,
			struct mgpu_compute_usage *usage)
{
	u32 n = job->matmul.n, cols = job->matmul.cols;
	u32 width = n - block * cols < cols ? n - block * cols : cols;
	__le32 *c = compute_place(job, bufs, 0);
	const __le32 *a = compute_place(job, bufs, 1);
	u64 rows = end - first;
	u32 sum[MATMUL_COLS];
	const u32 *b;
	u32 i, k, v;
	u64 row;

	if (panel->block != block)
		load_panel(job, panel, compute_place(job, bufs, 2), block, width);

	for (row = first; row < end; row++) {
		memset(sum, 0, sizeof(sum));
		b = panel->b;
		for (k = 0; k < n; k++) {
			v = le32_to_cpu(a[row * n + k]);
			for (i = 0; i < width; i++)
				sum[i] += v * b[i];
			b += cols;
		}
		for (i = 0; i < width; i++)
			c[row * n + block * cols + i] = cpu_to_le32(sum[i]);
	}
	/*
	 * Count the panel with the block's first tile, whichever tile loads it: the
	 * cost of a job must not depend on its scheduling.
	 */
	add_usage(usage, rows * n * width * UNITS_MAC,
		  rows * (n + width) * 4 + (first ? 0 : (u64)n * width * 4));
}

/*
 * Count the iterations until a point escapes.  All points execute @iterations
 * iterations, as on a GPU, whose lanes run in lockstep: a point that has escaped
 * restarts and is not counted any more.  So the work of a tile is known in advance.
 *
 * With c at most 4 from either axis no value exceeds 4 + 4 * sqrt(2), whose square has
 * 63 bits with twice the fraction bits.
 */
static u32 compute_escape(s64 cx, s64 cy, u32 iterations)
{
	const s64 limit = 4LL << (2 * MGPU_COMPUTE_FIXED_SHIFT);
	s64 x = 0, y = 0, xx, yy, in;
	u32 alive = 1, n = 0;

	while (iterations--) {
		xx = x * x;
		yy = y * y;
		in = xx + yy <= limit;
		alive &= (u32)in;
		n += alive;
		y = ((x * y >> (MGPU_COMPUTE_FIXED_SHIFT - 1)) & -in) + cy;
		x = ((xx - yy) >> MGPU_COMPUTE_FIXED_SHIFT & -in) + cx;
	}
	return n;
}

static void tile_mandelbrot(const struct mgpu_compute *job,
			    const struct mgpu_compute_buf *bufs, u64 *hist,
			    u64 first, u64 end,
			    struct mgpu_compute_usage *usage)
{
	u32 iterations = job->mandelbrot.iterations;
	__le32 *dst = compute_place(job, bufs, 0);
	u32 x, n;
	u64 i, y;

	y = div_u64_rem(first, job->mandelbrot.width, &x);
	for (i = first; i < end; i++) {
		n = compute_escape(job->mandelbrot.left + x * job->mandelbrot.dx,
				   job->mandelbrot.top + (s64)y * job->mandelbrot.dy,
			   iterations);
		dst[i] = cpu_to_le32(n);
		hist[n]++;
		if (++x == job->mandelbrot.width) {
			x = 0;
			y++;
		}
	}
	add_usage(usage, (end - first) * iterations * UNITS_ITERATION,
		  (end - first) * 4);
}

static void tile_hash(const struct mgpu_compute *job,
		      const struct mgpu_compute_buf *bufs, u64 *sum, u64 first,
		      u64 end, struct mgpu_compute_usage *usage)
{
	u32 words = job->hash.chunk / 8;
	__le64 *dst = compute_place(job, bufs, 0);
	const __le64 *src = compute_place(job, bufs, 2);
	u64 all = job->hash.length / 8;
	u64 i, chunk, stop, done = 0, h;

	for (chunk = first; chunk < end; chunk++) {
		stop = (chunk + 1) * words;
		if (stop > all)
			stop = all;
		h = ~chunk;
		for (i = chunk * words; i < stop; i++) {
			h = (h ^ le64_to_cpu(src[i])) * MGPU_COMPUTE_MIX;
			h ^= h >> 32;
		}
		dst[chunk] = cpu_to_le64(h);
		*sum += h;
		done += stop - chunk * words;
	}
	add_usage(usage, done * UNITS_HASH, (done + end - first) * 8);
}

static void tile_gather(const struct mgpu_compute *job,
			const struct mgpu_compute_buf *bufs, u64 *sum,
			u64 first, u64 end, struct mgpu_compute_usage *usage)
{
	__le64 *dst = compute_place(job, bufs, 0);
	const __le64 *table = compute_place(job, bufs, 2);
	u64 mask = job->gather.mask;
	u32 steps = job->gather.steps;
	u64 walk, at, v, found;
	u32 i;

	for (walk = first; walk < end; walk++) {
		at = (job->gather.seed + walk) * MGPU_COMPUTE_MIX;
		found = 0;
		for (i = 0; i < steps; i++) {
			/* The value selects the next entry: read it once. */
			v = le64_to_cpu(READ_ONCE(table[(at >> 32) & mask]));
			found += v;
			at = (at + v + 1) * MGPU_COMPUTE_MIX;
		}
		dst[walk] = cpu_to_le64(found);
		*sum += found;
	}
	add_usage(usage, (end - first) * steps * UNITS_STEP,
		  (end - first) * (steps * BYTES_STEP + 8));
}

/**
 * mgpu_compute_tile - run a tile
 * @job: from mgpu_compute_decode()
 * @bufs: resources of @job that mgpu_compute_check() has accepted
 * @local: the slot's memory, from mgpu_compute_begin() or restored
 * @tile: number of the tile, 0 to job->tiles - 1, each once; in any order, on any slot
 * @usage: the cost of the tile is added here; the costs of all tiles add up to
 *	job->inst and job->bytes
 *
 * Context: any; takes up to a few milliseconds and does not sleep.  Tiles of one
 * job may run at once with different @local.
 */
void mgpu_compute_tile(const struct mgpu_compute *job,
		       const struct mgpu_compute_buf *bufs, void *local,
		       u32 tile, struct mgpu_compute_usage *usage)
{
	u32 per_group, group, index;
	u64 first, end;

	if (tile >= job->tiles)
		return;
	per_group = job->tiles / job->groups;
	group = tile / per_group;
	index = tile % per_group;
	first = (u64)index * job->per_tile;
	end = first + job->per_tile;
	if (end > job->items)
		end = job->items;

	switch (job->op) {
	case MGPU_COMPUTE_FILL:
		tile_fill(job, bufs, first, end, usage);
		break;
	case MGPU_COMPUTE_COPY:
		tile_copy(job, bufs, first, end, usage);
		break;
	case MGPU_COMPUTE_SCALE:
		tile_scale(job, bufs, first, end, usage);
		break;
	case MGPU_COMPUTE_MATMUL:
		tile_matmul(job, bufs, local, group, first, end, usage);
		break;
	case MGPU_COMPUTE_MANDELBROT:
		tile_mandelbrot(job, bufs, local, first, end, usage);
		break;
	case MGPU_COMPUTE_HASH:
		tile_hash(job, bufs, local, first, end, usage);
		break;
	case MGPU_COMPUTE_GATHER:
		tile_gather(job, bufs, local, first, end, usage);
		break;
	case MGPU_COMPUTE_ACCUMULATE:
		tile_accumulate(job, bufs, first, end, usage);
		break;
	}
}

/**
 * mgpu_compute_end - add a slot's collected values to the result
 * @job: from mgpu_compute_decode()
 * @bufs: resources of @job that mgpu_compute_check() has accepted
 * @local: the slot's memory
 *
 * The caller calls this once for each mgpu_compute_begin(), after the last tile, also
 * for state that was saved and not resumed.
 *
 * Context: any; one call at a time for a job.
 */
void mgpu_compute_end(const struct mgpu_compute *job,
		      const struct mgpu_compute_buf *bufs, void *local)
{
	const u64 *from = local;
	__le64 *to;
	u32 i, n;

	to = compute_merged(job, bufs, &n);
	for (i = 0; i < n; i++)
		to[i] = cpu_to_le64(le64_to_cpu(to[i]) + from[i]);
}
