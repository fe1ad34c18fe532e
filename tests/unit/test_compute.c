// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compute jobs: random ones, run on any number of slots, in any order, stopped,
 * moved and started again, against straightforward code of its own; and
 * commands that must be refused.  Every command, resource and slot's memory is a
 * heap block of exactly its size, so that the address sanitizer sees whatever is
 * touched beyond it.
 */
#include <pthread.h>
#include <stdlib.h>

#include "compute/compute.h"
#include "random.h"
#include "tap.h"

#define JOBS		12000
#define MAX_SLOTS	6
#define MAX_SAVED	8
#define MAX_FLUSHES	3

__extension__ typedef __int128 wide;

/* A job, its resources as they are and as they should be in the end. */
struct setup {
	struct mgpu_compute_cmd cmd;
	struct mgpu_compute job;
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	void *before[MGPU_COMPUTE_MAX_BUFS];
	void *want[MGPU_COMPUTE_MAX_BUFS];
	bool twice;			/* resource 1 is resource 0 */
};

static u64 from_to(u64 low, u64 high)
{
	return low + below(high - low + 1);
}

static void scribble(void *p, size_t len)
{
	u8 *b = p;
	size_t i;

	for (i = 0; i < len; i++)
		b[i] = (u8)rnd();
}

static int decode(const struct mgpu_compute_cmd *cmd, size_t len,
		  struct mgpu_compute *job)
{
	u8 *exact = grab(len);
	int ret;

	memset(exact, 0, len);
	memcpy(exact, cmd, len < sizeof(*cmd) ? len : sizeof(*cmd));
	ret = mgpu_compute_decode(exact, len, job);
	free(exact);
	return ret;
}

/* ---- Expected results ---- */

static u64 get(const u8 *at, u32 len)
{
	u64 v = 0;
	u32 i;

	for (i = 0; i < len; i++)
		v |= (u64)at[i] << (8 * i);
	return v;
}

static void put(u8 *at, u32 len, u64 v)
{
	u32 i;

	for (i = 0; i < len; i++)
		at[i] = (u8)(v >> (8 * i));
}

static void want_fill(const struct mgpu_compute_fill *p, u8 *dst)
{
	u64 i, len = le64_to_cpu(p->length);

	dst += le64_to_cpu(p->offset);
	for (i = 0; i < len; i++)
		dst[i] = (u8)(le64_to_cpu(p->pattern) >> (i % 8 * 8));
}

static void want_copy(const struct mgpu_compute_move *p, u8 *dst, const u8 *src)
{
	memcpy(dst + le64_to_cpu(p->dst_offset), src + le64_to_cpu(p->src_offset),
	       le64_to_cpu(p->length));
}

static void want_accumulate(const struct mgpu_compute_move *p, u8 *dst,
			    const u8 *src)
{
	u64 i, len = le64_to_cpu(p->length);
	u32 carry = 0;

	dst += le64_to_cpu(p->dst_offset);
	src += le64_to_cpu(p->src_offset);
	for (i = 0; i < len; i++) {
		if (i % 8 == 0)
			carry = 0;
		carry += (u32)dst[i] + src[i];
		dst[i] = (u8)carry;
		carry >>= 8;
	}
}

static u32 channel(const struct mgpu_compute_picture *p, const u8 *px, s64 x,
		   s64 y, u32 c)
{
	x = x < le32_to_cpu(p->width) ? x : le32_to_cpu(p->width) - 1;
	y = y < le32_to_cpu(p->height) ? y : le32_to_cpu(p->height) - 1;
	return px[le64_to_cpu(p->offset) + (u64)y * le32_to_cpu(p->stride) +
		  (u64)x * 4 + c];
}

/* Where pixel @i's centre is in the source, in 1/65536. */
static s64 centre(u32 i, u32 from, u32 to)
{
	s64 step = (s64)from * 65536 / to;
	s64 at = i * step + step / 2 - 32768;

	if (at < 0)
		return 0;
	return at > (from - 1) * 65536LL ? (from - 1) * 65536LL : at;
}

static void want_scale(const struct mgpu_compute_scale *p, u8 *dst,
		       const u8 *src)
{
	u32 w = le32_to_cpu(p->dst.width), h = le32_to_cpu(p->dst.height);
	u32 x, y, c, fx, fy, above, under;
	s64 sx, sy;
	u8 *px;

	for (y = 0; y < h; y++) {
		for (x = 0; x < w; x++) {
			sx = centre(x, le32_to_cpu(p->src.width), w);
			sy = centre(y, le32_to_cpu(p->src.height), h);
			fx = (u32)(sx % 65536 / 256);
			fy = (u32)(sy % 65536 / 256);
			sx /= 65536;
			sy /= 65536;
			px = dst + le64_to_cpu(p->dst.offset) +
			     y * le32_to_cpu(p->dst.stride) + x * 4;
			for (c = 0; c < 3; c++) {
				above = (channel(&p->src, src, sx, sy, c) *
					 (256 - fx) +
					 channel(&p->src, src, sx + 1, sy, c) *
					 fx) / 256;
				under = (channel(&p->src, src, sx, sy + 1, c) *
					 (256 - fx) +
					 channel(&p->src, src, sx + 1, sy + 1,
						 c) * fx) / 256;
				px[c] = (u8)((above * (256 - fy) + under * fy) /
					     256);
			}
			px[3] = 0;
		}
	}
}

static u32 product(const u8 *a, const u8 *b, u32 n, u64 row, u64 col)
{
	u64 sum = 0, k;

	for (k = 0; k < n; k++)
		sum += get(a + (row * n + k) * 4, 4) *
		       get(b + (k * n + col) * 4, 4);
	return (u32)sum;
}

static void want_matmul(const struct mgpu_compute_matmul *p, u8 *c, const u8 *a,
			const u8 *b)
{
	u32 n = le32_to_cpu(p->n), i, j;

	c += le64_to_cpu(p->c_offset);
	a += le64_to_cpu(p->a_offset);
	b += le64_to_cpu(p->b_offset);
	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++)
			put(c + ((u64)i * n + j) * 4, 4, product(a, b, n, i, j));
}

/* Division that rounds down, as a shift does. */
static wide floored(wide v, s64 by)
{
	return v >= 0 ? v / by : -((-v + by - 1) / by);
}

static void want_mandelbrot(const struct mgpu_compute_mandelbrot *p, u8 *dst)
{
	const s64 one = 1LL << MGPU_COMPUTE_FIXED_SHIFT;
	u32 w = le32_to_cpu(p->width), h = le32_to_cpu(p->height);
	u32 max = le32_to_cpu(p->iterations), i, j, n;
	u8 *hist = dst + le64_to_cpu(p->hist_offset);
	wide x, y, cx, cy, t;

	dst += le64_to_cpu(p->offset);
	memset(hist, 0, (max + 1) * 8);
	for (j = 0; j < h; j++) {
		for (i = 0; i < w; i++) {
			cx = (s64)le64_to_cpu(p->left) +
			     (wide)(s64)le64_to_cpu(p->dx) * i;
			cy = (s64)le64_to_cpu(p->top) +
			     (wide)(s64)le64_to_cpu(p->dy) * j;
			x = y = 0;
			for (n = 0; n < max && x * x + y * y <= (wide)4 *
			     one * one; n++) {
				t = floored(x * x - y * y, one) + cx;
				y = floored(2 * x * y, one) + cy;
				x = t;
			}
			put(dst + ((u64)j * w + i) * 4, 4, n);
			put(hist + n * 8, 8, get(hist + n * 8, 8) + 1);
		}
	}
}

static void want_hash(const struct mgpu_compute_hash *p, u8 *dst, const u8 *src)
{
	u64 left = le64_to_cpu(p->length), len, i, h, chunk, sum = 0;

	src += le64_to_cpu(p->src_offset);
	for (chunk = 0; left; chunk++) {
		len = left < le64_to_cpu(p->chunk) ? left : le64_to_cpu(p->chunk);
		h = U64_MAX - chunk;
		for (i = 0; i < len; i += 8) {
			h ^= get(src + i, 8);
			h *= MGPU_COMPUTE_MIX;
			h ^= h / 4294967296;
		}
		put(dst + le64_to_cpu(p->offset) + chunk * 8, 8, h);
		sum += h;
		src += len;
		left -= len;
	}
	put(dst + le64_to_cpu(p->sum_offset), 8, sum);
}

static void want_gather(const struct mgpu_compute_gather *p, u8 *dst,
			const u8 *table)
{
	u64 entries = 1ULL << le32_to_cpu(p->table_log2);
	u64 sum = 0, found, at, v, walk;
	u32 step;

	table += le64_to_cpu(p->table_offset);
	for (walk = 0; walk < le32_to_cpu(p->walks); walk++) {
		found = 0;
		at = (walk + le64_to_cpu(p->seed)) * MGPU_COMPUTE_MIX;
		for (step = 0; step < le32_to_cpu(p->steps); step++) {
			v = get(table + (at / 4294967296) % entries * 8, 8);
			found += v;
			at += v + 1;
			at *= MGPU_COMPUTE_MIX;
		}
		put(dst + le64_to_cpu(p->offset) + walk * 8, 8, found);
		sum += found;
	}
	put(dst + le64_to_cpu(p->sum_offset), 8, sum);
}

static void reference(const struct mgpu_compute_cmd *cmd, void *const *buf)
{
	switch (le32_to_cpu(cmd->op)) {
	case MGPU_COMPUTE_FILL:
		want_fill(&cmd->fill, buf[0]);
		break;
	case MGPU_COMPUTE_COPY:
		want_copy(&cmd->move, buf[0], buf[1]);
		break;
	case MGPU_COMPUTE_SCALE:
		want_scale(&cmd->scale, buf[0], buf[1]);
		break;
	case MGPU_COMPUTE_MATMUL:
		want_matmul(&cmd->matmul, buf[0], buf[1], buf[2]);
		break;
	case MGPU_COMPUTE_MANDELBROT:
		want_mandelbrot(&cmd->mandelbrot, buf[0]);
		break;
	case MGPU_COMPUTE_HASH:
		want_hash(&cmd->hash, buf[0], buf[1]);
		break;
	case MGPU_COMPUTE_GATHER:
		want_gather(&cmd->gather, buf[0], buf[1]);
		break;
	case MGPU_COMPUTE_ACCUMULATE:
		want_accumulate(&cmd->move, buf[0], buf[1]);
		break;
	}
}

/* ---- Jobs ---- */

/* Takes room at the end of a resource, sometimes after a gap. */
static __le64 room(u64 *size, u64 len)
{
	u64 at = (*size + 7) / 8 * 8 + below(3) * 8;

	*size = at + len;
	return cpu_to_le64(at);
}

static __le32 small(u64 low, u64 high)
{
	return cpu_to_le32((u32)from_to(low, high));
}

static void make_picture(struct mgpu_compute_picture *p, u64 *size, u32 max)
{
	u32 w = (u32)from_to(1, max), h = (u32)from_to(1, max);
	u32 stride = w * 4 + (u32)below(4) * 4;

	p->width = cpu_to_le32(w);
	p->height = cpu_to_le32(h);
	p->stride = cpu_to_le32(stride);
	p->offset = room(size, (h - 1) * (u64)stride + w * 4);
}

/* First and step of @count numbers from -2.5 to 2.5, or sometimes to 4. */
static void make_axis(__le64 *first, __le64 *step, u32 count)
{
	s64 max = below(4) ? MGPU_COMPUTE_FIXED_MAX * 5 / 8 :
			     MGPU_COMPUTE_FIXED_MAX;
	s64 a = (s64)below(2 * (u64)max + 1) - max;
	s64 b = (s64)below(2 * (u64)max + 1) - max;

	*first = cpu_to_le64((u64)a);
	*step = cpu_to_le64((u64)(count > 1 ? (b - a) / (count - 1) : b));
}

/* A command with random parameters; @max says how large roughly. */
static void make_cmd(struct mgpu_compute_cmd *cmd, u32 op, u64 *size, bool twice,
		     u32 max)
{
	static const u32 nr[MGPU_COMPUTE_NR_OPS] = { 0, 1, 2, 2, 3, 1, 2, 2, 2 };
	u64 *src = twice ? &size[0] : &size[1];
	u64 len = from_to(1, max) * 8;
	struct mgpu_compute_mandelbrot *m = &cmd->mandelbrot;
	u32 i, n, w, h;

	memset(cmd, 0, sizeof(*cmd));
	cmd->magic = cpu_to_le32(MGPU_COMPUTE_MAGIC);
	cmd->version = cpu_to_le32(MGPU_COMPUTE_VERSION);
	cmd->op = cpu_to_le32(op);
	cmd->slots = small(0, MGPU_COMPUTE_MAX_SLOTS);
	cmd->nr_res = cpu_to_le32(nr[op]);
	for (i = 0; i < nr[op]; i++)
		cmd->res[i] = cpu_to_le32(i == 1 && twice ? 7 : 7 + i);

	switch (op) {
	case MGPU_COMPUTE_FILL:
		cmd->fill.offset = room(&size[0], len);
		cmd->fill.length = cpu_to_le64(len);
		cmd->fill.pattern = cpu_to_le64(rnd());
		break;
	case MGPU_COMPUTE_COPY:
	case MGPU_COMPUTE_ACCUMULATE:
		cmd->move.dst_offset = room(&size[0], len);
		cmd->move.src_offset = room(src, len);
		cmd->move.length = cpu_to_le64(len);
		break;
	case MGPU_COMPUTE_SCALE:
		make_picture(&cmd->scale.dst, &size[0], max / 8 + 1);
		make_picture(&cmd->scale.src, src, max / 8 + 1);
		break;
	case MGPU_COMPUTE_MATMUL:
		n = (u32)from_to(1, max / 6 + 1);
		cmd->matmul.n = cpu_to_le32(n);
		cmd->matmul.c_offset = room(&size[0], (u64)n * n * 4);
		cmd->matmul.a_offset = room(src, (u64)n * n * 4);
		cmd->matmul.b_offset = room(&size[2], (u64)n * n * 4);
		break;
	case MGPU_COMPUTE_MANDELBROT:
		w = (u32)from_to(1, max / 12 + 1);
		h = (u32)from_to(1, max / 12 + 1);
		m->iterations = small(1, max / 6 + 1);
		m->width = cpu_to_le32(w);
		m->height = cpu_to_le32(h);
		m->offset = room(&size[0], (u64)w * h * 4);
		m->hist_offset = room(&size[0],
				      (le32_to_cpu(m->iterations) + 1) * 8);
		make_axis(&m->left, &m->dx, w);
		make_axis(&m->top, &m->dy, h);
		break;
	case MGPU_COMPUTE_HASH:
		n = (u32)from_to(MGPU_COMPUTE_MIN_CHUNK / 8, max / 4 + 8) * 8;
		cmd->hash.chunk = cpu_to_le64(n);
		cmd->hash.length = cpu_to_le64(len);
		cmd->hash.offset = room(&size[0], (len + n - 1) / n * 8);
		cmd->hash.sum_offset = room(&size[0], 8);
		cmd->hash.src_offset = room(src, len);
		break;
	case MGPU_COMPUTE_GATHER:
		n = (u32)below(9);
		cmd->gather.seed = cpu_to_le64(rnd());
		cmd->gather.table_log2 = cpu_to_le32(n);
		cmd->gather.walks = small(1, max / 6 + 1);
		cmd->gather.steps = small(1, max / 6 + 1);
		cmd->gather.sum_offset = room(&size[0], 8);
		cmd->gather.offset =
			room(&size[0], le32_to_cpu(cmd->gather.walks) * 8ULL);
		cmd->gather.table_offset = room(src, 8ULL << n);
		break;
	}
}

static void forget(struct setup *s)
{
	u32 i;

	for (i = 0; i < MGPU_COMPUTE_MAX_BUFS; i++) {
		if (i == 1 && s->twice)
			continue;
		free(s->bufs[i].base);
		free(s->before[i]);
		free(s->want[i]);
	}
}

/* Resources of @size bytes for the command that is there, and the result. */
static bool setup_cmd(struct setup *s, const u64 *size)
{
	u32 i;

	for (i = 0; i < MGPU_COMPUTE_MAX_BUFS; i++) {
		if (i == 1 && s->twice) {
			s->bufs[1] = s->bufs[0];
			s->before[1] = s->before[0];
			s->want[1] = s->want[0];
			continue;
		}
		s->bufs[i].size = size[i];
		s->bufs[i].base = grab(size[i]);
		s->before[i] = grab(size[i]);
		s->want[i] = grab(size[i]);
		scribble(s->before[i], size[i]);
		memcpy(s->want[i], s->before[i], size[i]);
	}
	reference(&s->cmd, s->want);
	return TAP_EQ(decode(&s->cmd, sizeof(s->cmd), &s->job), 0) &&
	       TAP_EQ(mgpu_compute_check(&s->job, s->bufs), 0);
}

static bool setup(struct setup *s, u32 op, u32 max)
{
	u64 size[MGPU_COMPUTE_MAX_BUFS] = { 0 };

	memset(s, 0, sizeof(*s));
	s->twice = op != MGPU_COMPUTE_FILL && op != MGPU_COMPUTE_MANDELBROT &&
		   below(4) == 0;
	make_cmd(&s->cmd, op, size, s->twice, max);
	return setup_cmd(s, size);
}

/* Smaller tiles than usual, so that a small job has many. */
static void retile(struct mgpu_compute *job, u32 per_tile)
{
	job->per_tile = per_tile;
	job->tiles = (u32)((job->items + per_tile - 1) / per_tile) * job->groups;
}

static void restore(struct setup *s)
{
	u32 i;

	for (i = 0; i < MGPU_COMPUTE_MAX_BUFS; i++)
		memcpy(s->bufs[i].base, s->before[i], s->bufs[i].size);
}

static bool compare(const struct setup *s, const struct mgpu_compute_usage *u,
		    const char *how)
{
	bool good = TAP_EQ(u->inst, s->job.inst) & TAP_EQ(u->bytes, s->job.bytes);
	u32 i;

	for (i = 0; i < MGPU_COMPUTE_MAX_BUFS; i++)
		good &= TAP_MEM(s->bufs[i].base, s->want[i], s->bufs[i].size);
	if (!good)
		tap_diag("%s %s, %u tiles of %u", mgpu_compute_op_name(s->job.op),
			 how, s->job.tiles, s->job.per_tile);
	return good;
}

static bool in_order(struct setup *s)
{
	struct mgpu_compute_usage usage = { 0 };
	void *local = grab(s->job.local);
	u32 i;

	scribble(local, s->job.local);
	restore(s);
	mgpu_compute_prepare(&s->job, s->bufs);
	mgpu_compute_begin(&s->job, local);
	for (i = 0; i < s->job.tiles; i++)
		mgpu_compute_tile(&s->job, s->bufs, local, i, &usage);
	mgpu_compute_end(&s->job, s->bufs, local);
	free(local);
	return compare(s, &usage, "in order");
}

/* Actions of a random schedule. */
struct disorder {
	bool move;		/* stop on one slot and go to another */
	bool flush;		/* drop all that was done */
	bool cheap;		/* save only what cannot be rebuilt */
};

static void shuffle(u32 *order, u32 n)
{
	u32 i, j, t;

	for (i = 0; i < n; i++)
		order[i] = i;
	for (i = n; i > 1; i--) {
		j = (u32)below(i);
		t = order[i - 1];
		order[i - 1] = order[j];
		order[j] = t;
	}
}

struct slots {
	const struct mgpu_compute *job;
	bool cheap;
	u32 nr;
	void *local[MAX_SLOTS];
	bool busy[MAX_SLOTS];
	void *saved[MAX_SAVED];
	u32 nr_saved;
	u32 live;
	u32 moves;
};

static void slots_save(struct slots *s, u32 i)
{
	s->saved[s->nr_saved] = grab(s->live);
	memcpy(s->saved[s->nr_saved++], s->local[i], s->live);
	scribble(s->local[i], s->job->local);
	s->busy[i] = false;
	s->moves++;
}

static void slots_resume(struct slots *s, u32 i, u32 which)
{
	scribble(s->local[i], s->job->local);
	if (s->cheap)
		mgpu_compute_begin(s->job, s->local[i]);
	memcpy(s->local[i], s->saved[which], s->live);
	free(s->saved[which]);
	s->saved[which] = s->saved[--s->nr_saved];
	s->busy[i] = true;
}

static void slots_drop(struct slots *s)
{
	u32 i;

	for (i = 0; i < s->nr; i++) {
		scribble(s->local[i], s->job->local);
		s->busy[i] = false;
	}
	while (s->nr_saved)
		free(s->saved[--s->nr_saved]);
}

static u32 moves, flushes;

static bool at_random(struct setup *s, const struct disorder *d, const char *how)
{
	struct slots slots = { .job = &s->job, .cheap = d->cheap };
	struct mgpu_compute_usage usage = { 0 };
	u32 *order = grab(s->job.tiles * sizeof(*order));
	u32 done = 0, left = d->flush ? MAX_FLUSHES : 0, i;

	slots.nr = (u32)from_to(1, MAX_SLOTS);
	slots.live = d->cheap ? s->job.regs : mgpu_compute_live(&s->job);
	for (i = 0; i < slots.nr; i++)
		slots.local[i] = grab(s->job.local);
	slots_drop(&slots);
	shuffle(order, s->job.tiles);
	restore(s);
	mgpu_compute_prepare(&s->job, s->bufs);

	while (done < s->job.tiles) {
		i = (u32)below(slots.nr);
		if (left && below(s->job.tiles) < 2) {
			slots_drop(&slots);
			shuffle(order, s->job.tiles);
			mgpu_compute_prepare(&s->job, s->bufs);
			memset(&usage, 0, sizeof(usage));
			done = 0;
			left--;
			flushes++;
		} else if (d->move && slots.busy[i] &&
			   slots.nr_saved < MAX_SAVED && below(3) == 0) {
			slots_save(&slots, i);
		} else {
			if (!slots.busy[i] && slots.nr_saved && below(2)) {
				slots_resume(&slots, i,
					     (u32)below(slots.nr_saved));
			} else if (!slots.busy[i]) {
				mgpu_compute_begin(&s->job, slots.local[i]);
				slots.busy[i] = true;
			}
			mgpu_compute_tile(&s->job, s->bufs, slots.local[i],
					  order[done++], &usage);
		}
	}
	for (i = 0; i < slots.nr; i++)
		if (slots.busy[i])
			mgpu_compute_end(&s->job, s->bufs, slots.local[i]);
	while (slots.nr_saved) {
		slots_resume(&slots, 0, 0);
		mgpu_compute_end(&s->job, s->bufs, slots.local[0]);
	}
	for (i = 0; i < slots.nr; i++)
		free(slots.local[i]);
	free(order);
	moves += slots.moves;
	return compare(s, &usage, how);
}

static bool every_way(struct setup *s)
{
	static const struct disorder shuffled, moved = { .move = true },
		cheaply = { .move = true, .cheap = true },
		flushed = { .move = true, .flush = true };

	return in_order(s) && at_random(s, &shuffled, "shuffled") &&
	       at_random(s, &moved, "moved") &&
	       at_random(s, &cheaply, "moved with what cannot be rebuilt") &&
	       (!s->job.idempotent || at_random(s, &flushed, "flushed"));
}

static void random_jobs(void)
{
	static const u32 largest[] = { 8, 40, 150, 600 };
	u32 jobs[MGPU_COMPUTE_NR_OPS] = { 0 };
	struct setup s;
	bool good = true;
	u32 i, op;
	u64 many;

	rng = 1;
	for (i = 0; i < JOBS && good; i++) {
		op = 1 + i % (MGPU_COMPUTE_NR_OPS - 1);
		/* Large ones are slow: one in sixty-four. */
		good = setup(&s, op, largest[i % 64 ? below(3) : 3]);
		if (good) {
			many = s.job.items < 40 ? s.job.items : 40;
			retile(&s.job, (u32)(s.job.items / from_to(1, many)));
			good = every_way(&s);
			jobs[op]++;
		}
		forget(&s);
		if (!good)
			tap_diag("job %u", i);
	}
	for (op = 1; op < MGPU_COMPUTE_NR_OPS; op++)
		TAP_CHECK(jobs[op] >= JOBS / MGPU_COMPUTE_NR_OPS);
	TAP_CHECK(moves > JOBS);
	TAP_CHECK(flushes > JOBS);
	tap_diag("%u jobs, %u moves between slots, %u flushes", i, moves, flushes);
}

/* More than one tile each, as large as they really are. */
static void real_tiles(void)
{
	static const u32 large[MGPU_COMPUTE_NR_OPS] = {
		[MGPU_COMPUTE_FILL] = 140000, [MGPU_COMPUTE_COPY] = 140000,
		[MGPU_COMPUTE_SCALE] = 1600, [MGPU_COMPUTE_MATMUL] = 700,
		[MGPU_COMPUTE_MANDELBROT] = 700, [MGPU_COMPUTE_HASH] = 140000,
		[MGPU_COMPUTE_GATHER] = 1100, [MGPU_COMPUTE_ACCUMULATE] = 140000,
	};
	struct setup s;
	bool good = true;
	u32 op, tries;

	rng = 2;
	for (op = 1; op < MGPU_COMPUTE_NR_OPS && good; op++) {
		for (tries = 0; tries < 100; tries++) {
			good = setup(&s, op, large[op]);
			if (!good || s.job.tiles > 1)
				break;
			forget(&s);
		}
		TAP_NEED(tries < 100);
		good = good && every_way(&s);
		forget(&s);
	}
}

/* Too large to be computed as a whole here: its first and its last tile. */
static void tall_panels(void)
{
	struct mgpu_compute_usage usage = { 0 };
	struct mgpu_compute_buf bufs[3];
	struct mgpu_compute_cmd cmd;
	struct mgpu_compute job;
	u64 size[3] = { 0 };
	u32 n = 1030, i, j, tile;
	void *local;
	u8 *c;

	rng = 3;
	make_cmd(&cmd, MGPU_COMPUTE_MATMUL, size, false, 6);
	memset(&cmd.matmul, 0, sizeof(cmd.matmul));
	cmd.matmul.n = cpu_to_le32(n);
	TAP_NEED(!decode(&cmd, sizeof(cmd), &job));
	TAP_EQ(job.matmul.cols, 16);
	TAP_EQ(job.groups, 65);
	for (i = 0; i < 3; i++) {
		bufs[i].size = (u64)n * n * 4;
		bufs[i].base = grab(bufs[i].size);
		scribble(bufs[i].base, bufs[i].size);
	}
	TAP_EQ(mgpu_compute_check(&job, bufs), 0);
	local = grab(job.local);
	mgpu_compute_begin(&job, local);
	c = bufs[0].base;
	for (tile = 0; tile < job.tiles; tile += job.tiles - 1) {
		mgpu_compute_tile(&job, bufs, local, tile, &usage);
		/* Of the last block of columns there are six. */
		for (i = 0; i < 6; i++) {
			j = tile ? n - 1 - i : i;
			TAP_EQ((u32)get(c + ((u64)j * n + j) * 4, 4),
			       product(bufs[1].base, bufs[2].base, n, j, j));
		}
	}
	/* Rows of the last tile: the rest of 1030 with 15 a tile. */
	TAP_EQ(usage.inst, 15ULL * 16 * n + n % 15 * 6ULL * n);
	for (i = 0; i < 3; i++)
		free(bufs[i].base);
	free(local);
}

/* Jobs one after the other in the same memory, with other data each. */
static void slots_forget(void)
{
	struct mgpu_compute_usage usage;
	struct setup s;
	void *local = grab(MGPU_COMPUTE_LOCAL_MAX);
	u32 op, round, i;
	bool good = true;

	rng = 12;
	memset(local, 0, MGPU_COMPUTE_LOCAL_MAX);
	for (round = 0; round < 200 && good; round++) {
		/* A few times the same operation, then another. */
		op = 1 + round / 4 % (MGPU_COMPUTE_NR_OPS - 1);
		good = setup(&s, op, 30);
		restore(&s);
		memset(&usage, 0, sizeof(usage));
		mgpu_compute_prepare(&s.job, s.bufs);
		mgpu_compute_begin(&s.job, local);
		for (i = 0; i < s.job.tiles; i++)
			mgpu_compute_tile(&s.job, s.bufs, local, i, &usage);
		mgpu_compute_end(&s.job, s.bufs, local);
		good = good && compare(&s, &usage, "after another");
		forget(&s);
	}
	free(local);
}

/* Threads that take the next tile each. */
struct crew {
	struct setup *s;
	pthread_mutex_t lock;		/* of the merging, and of @usage */
	u32 next;
	struct mgpu_compute_usage usage;
};

static void *crew_member(void *data)
{
	struct crew *crew = data;
	const struct mgpu_compute *job = &crew->s->job;
	struct mgpu_compute_usage usage = { 0 };
	void *local = grab(job->local);
	u32 tile;

	mgpu_compute_begin(job, local);
	while ((tile = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED)) <
	       job->tiles)
		mgpu_compute_tile(job, crew->s->bufs, local, tile, &usage);
	pthread_mutex_lock(&crew->lock);
	mgpu_compute_end(job, crew->s->bufs, local);
	crew->usage.inst += usage.inst;
	crew->usage.bytes += usage.bytes;
	pthread_mutex_unlock(&crew->lock);
	free(local);
	return NULL;
}

static void at_once(void)
{
	pthread_t ids[3];
	struct setup s;
	bool good = true;
	u32 round, i;

	rng = 13;
	for (round = 0; round < 160 && good; round++) {
		struct crew crew = { .s = &s };

		pthread_mutex_init(&crew.lock, NULL);
		good = setup(&s, 1 + round % (MGPU_COMPUTE_NR_OPS - 1), 300);
		retile(&s.job, (u32)(s.job.items / 30 + 1));
		restore(&s);
		mgpu_compute_prepare(&s.job, s.bufs);
		for (i = 0; i < 3; i++)
			if (pthread_create(&ids[i], NULL, crew_member, &crew))
				abort();
		for (i = 0; i < 3; i++)
			pthread_join(ids[i], NULL);
		good = good && compare(&s, &crew.usage, "at once");
		pthread_mutex_destroy(&crew.lock);
		forget(&s);
	}
}

/* ---- Invalid jobs ---- */

static struct mgpu_compute_cmd sample_cmd(u32 op)
{
	struct mgpu_compute_cmd cmd;
	u64 size[3] = { 0 };

	make_cmd(&cmd, op, size, false, 40);
	return cmd;
}

static int decode_whole(const struct mgpu_compute_cmd *cmd)
{
	struct mgpu_compute job, none = { 0 };
	int ret = decode(cmd, sizeof(*cmd), &job);

	if (ret)
		TAP_MEM(&job, &none, sizeof(job));
	return ret;
}

static void headers(void)
{
	struct mgpu_compute_cmd good, cmd;
	struct mgpu_compute job;
	u8 bytes[MGPU_COMPUTE_MAX_CMD + 8] = { 0 };
	u32 op, i;

	rng = 4;
	for (op = 1; op < MGPU_COMPUTE_NR_OPS; op++) {
		good = sample_cmd(op);
		TAP_EQ(decode_whole(&good), 0);
		for (i = 0; i < sizeof(good); i++)
			TAP_EQ(decode(&good, i, &job), -EINVAL);
		for (; i <= MGPU_COMPUTE_MAX_CMD; i++)
			TAP_EQ(decode(&good, i, &job), 0);
		TAP_EQ(decode(&good, i, &job), -E2BIG);
		memcpy(bytes, &good, sizeof(good));
		for (i = sizeof(good); i < MGPU_COMPUTE_MAX_CMD; i++) {
			bytes[i] = 1;
			TAP_EQ(mgpu_compute_decode(bytes, MGPU_COMPUTE_MAX_CMD,
						   &job), -E2BIG);
			bytes[i] = 0;
		}

#define REFUSED(field, value, error)					\
		do {							\
			cmd = good;					\
			cmd.field = (value);				\
			TAP_EQ(decode_whole(&cmd), error);		\
		} while (0)

		REFUSED(magic, ~good.magic, -EINVAL);
		REFUSED(version, cpu_to_le32(2), -EOPNOTSUPP);
		REFUSED(version, 0, -EOPNOTSUPP);
		REFUSED(op, 0, -EOPNOTSUPP);
		REFUSED(op, cpu_to_le32(MGPU_COMPUTE_NR_OPS), -EOPNOTSUPP);
		REFUSED(op, cpu_to_le32(~0u), -EOPNOTSUPP);
		REFUSED(flags, cpu_to_le32(1), -EOPNOTSUPP);
		REFUSED(flags, cpu_to_le32(1u << 31), -EOPNOTSUPP);
		REFUSED(slots, cpu_to_le32(MGPU_COMPUTE_MAX_SLOTS + 1), -EINVAL);
		REFUSED(slots, cpu_to_le32(~0u), -EINVAL);
		REFUSED(pad, cpu_to_le32(1), -EINVAL);
		for (i = 0; i < 5; i++)
			if (i != le32_to_cpu(good.nr_res))
				REFUSED(nr_res, cpu_to_le32(i), -EINVAL);
		REFUSED(nr_res, cpu_to_le32(~0u), -EINVAL);
		for (i = 0; i < MGPU_COMPUTE_MAX_BUFS; i++)
			REFUSED(res[i], good.res[i] ? 0 : cpu_to_le32(1),
				-EINVAL);
	}
}

static const u32 params[MGPU_COMPUTE_NR_OPS] = {
	[MGPU_COMPUTE_FILL] = sizeof(struct mgpu_compute_fill),
	[MGPU_COMPUTE_COPY] = sizeof(struct mgpu_compute_move),
	[MGPU_COMPUTE_SCALE] = sizeof(struct mgpu_compute_scale),
	[MGPU_COMPUTE_MATMUL] = sizeof(struct mgpu_compute_matmul),
	[MGPU_COMPUTE_MANDELBROT] = sizeof(struct mgpu_compute_mandelbrot),
	[MGPU_COMPUTE_HASH] = sizeof(struct mgpu_compute_hash),
	[MGPU_COMPUTE_GATHER] = sizeof(struct mgpu_compute_gather),
	[MGPU_COMPUTE_ACCUMULATE] = sizeof(struct mgpu_compute_move),
};

static void unused_parameters(void)
{
	struct mgpu_compute_cmd good, cmd;
	u32 op, i;

	rng = 5;
	for (op = 1; op < MGPU_COMPUTE_NR_OPS; op++) {
		good = sample_cmd(op);
		for (i = params[op]; i < sizeof(good.param); i++) {
			cmd = good;
			((u8 *)cmd.param)[i] = 1;
			TAP_EQ(decode_whole(&cmd), -EINVAL);
		}
	}
}

#define M(field)	offsetof(struct mgpu_compute_cmd, field)
#define MAX		MGPU_COMPUTE_FIXED_MAX

static void parameters(void)
{
	static const struct {
		u32 op;
		u32 at;			/* the parameter's place */
		u32 len;
		u64 value;
		int ret;
	} cases[] = {
		{ MGPU_COMPUTE_FILL, M(fill.offset), 8, 4, -EINVAL },
		{ MGPU_COMPUTE_FILL, M(fill.offset), 8, U64_MAX - 7, 0 },
		{ MGPU_COMPUTE_FILL, M(fill.length), 8, 0, -EINVAL },
		{ MGPU_COMPUTE_FILL, M(fill.length), 8, 12, -EINVAL },
		{ MGPU_COMPUTE_FILL, M(fill.length), 8, 1ULL << 36, 0 },
		{ MGPU_COMPUTE_FILL, M(fill.length), 8, (1ULL << 36) + 8,
		  -EINVAL },
		{ MGPU_COMPUTE_FILL, M(fill.length), 8, U64_MAX - 7, -EINVAL },
		{ MGPU_COMPUTE_COPY, M(move.dst_offset), 8, 1, -EINVAL },
		{ MGPU_COMPUTE_COPY, M(move.src_offset), 8, 2, -EINVAL },
		{ MGPU_COMPUTE_COPY, M(move.length), 8, 0, -EINVAL },
		{ MGPU_COMPUTE_COPY, M(move.length), 8, 9, -EINVAL },
		{ MGPU_COMPUTE_COPY, M(move.length), 8, U64_MAX - 7, -EINVAL },
		{ MGPU_COMPUTE_ACCUMULATE, M(move.length), 8, 0, -EINVAL },
		{ MGPU_COMPUTE_ACCUMULATE, M(move.length), 8, 1ULL << 36, 0 },
		{ MGPU_COMPUTE_SCALE, M(scale.dst.width), 4, 0, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.dst.height), 4, 0, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.src.width), 4, 0, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.src.height), 4, 0, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.src.height), 4, 16384, 0 },
		{ MGPU_COMPUTE_SCALE, M(scale.src.height), 4, 16385, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.dst.width), 4, 1u << 30, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.src.width), 4, 16385, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.dst.stride), 4, 0, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.dst.stride), 4, 1u << 20, 0 },
		{ MGPU_COMPUTE_SCALE, M(scale.dst.stride), 4, (1u << 20) + 4,
		  -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.src.stride), 4, 1026, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.src.stride), 4, ~0u, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.src.pad), 4, 1, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.dst.pad), 4, 1, -EINVAL },
		{ MGPU_COMPUTE_SCALE, M(scale.dst.offset), 8, 4, -EINVAL },
		{ MGPU_COMPUTE_MATMUL, M(matmul.n), 4, 0, -EINVAL },
		{ MGPU_COMPUTE_MATMUL, M(matmul.n), 4, 2048, 0 },
		{ MGPU_COMPUTE_MATMUL, M(matmul.n), 4, 2049, -EINVAL },
		{ MGPU_COMPUTE_MATMUL, M(matmul.n), 4, ~0u, -EINVAL },
		{ MGPU_COMPUTE_MATMUL, M(matmul.pad), 4, 1, -EINVAL },
		{ MGPU_COMPUTE_MATMUL, M(matmul.a_offset), 8, 4, -EINVAL },
		{ MGPU_COMPUTE_MATMUL, M(matmul.b_offset), 8, 4, -EINVAL },
		{ MGPU_COMPUTE_MATMUL, M(matmul.c_offset), 8, 4, -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.width), 4, 0, -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.height), 4, 16385,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.iterations), 4, 0,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.iterations), 4, 4095,
		  0 },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.iterations), 4, 4096,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.pad), 4, 1, -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.left), 8, MAX + 1,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.left), 8, (u64)-MAX - 1,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.top), 8, 1ULL << 63,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.top), 8, S64_MAX,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.dx), 8, 1ULL << 63,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.dx), 8, 2 * MAX + 1,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.dy), 8, S64_MAX,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.dy), 8, 2 * MAX,
		  -EINVAL },
		{ MGPU_COMPUTE_MANDELBROT, M(mandelbrot.hist_offset), 8, 4,
		  -EINVAL },
		{ MGPU_COMPUTE_HASH, M(hash.length), 8, 0, -EINVAL },
		{ MGPU_COMPUTE_HASH, M(hash.length), 8, 12, -EINVAL },
		{ MGPU_COMPUTE_HASH, M(hash.length), 8, 1ULL << 36, 0 },
		{ MGPU_COMPUTE_HASH, M(hash.chunk), 8, 0, -EINVAL },
		{ MGPU_COMPUTE_HASH, M(hash.chunk), 8, 56, -EINVAL },
		{ MGPU_COMPUTE_HASH, M(hash.chunk), 8, 68, -EINVAL },
		{ MGPU_COMPUTE_HASH, M(hash.chunk), 8, 512 << 10, 0 },
		{ MGPU_COMPUTE_HASH, M(hash.chunk), 8, (512 << 10) + 8, -EINVAL },
		{ MGPU_COMPUTE_HASH, M(hash.chunk), 8, (1ULL << 32) + 64,
		  -EINVAL },
		{ MGPU_COMPUTE_HASH, M(hash.sum_offset), 8, 4, -EINVAL },
		{ MGPU_COMPUTE_GATHER, M(gather.table_log2), 4, 32, 0 },
		{ MGPU_COMPUTE_GATHER, M(gather.table_log2), 4, 33, -EINVAL },
		{ MGPU_COMPUTE_GATHER, M(gather.table_log2), 4, 64, -EINVAL },
		{ MGPU_COMPUTE_GATHER, M(gather.walks), 4, 0, -EINVAL },
		{ MGPU_COMPUTE_GATHER, M(gather.walks), 4, 1u << 24, 0 },
		{ MGPU_COMPUTE_GATHER, M(gather.walks), 4, (1u << 24) + 1,
		  -EINVAL },
		{ MGPU_COMPUTE_GATHER, M(gather.steps), 4, 0, -EINVAL },
		{ MGPU_COMPUTE_GATHER, M(gather.steps), 4, 8192, 0 },
		{ MGPU_COMPUTE_GATHER, M(gather.steps), 4, 8193, -EINVAL },
		{ MGPU_COMPUTE_GATHER, M(gather.pad), 4, 1, -EINVAL },
		{ MGPU_COMPUTE_GATHER, M(gather.table_offset), 8, 7, -EINVAL },
	};
	struct mgpu_compute_cmd cmd;
	size_t i;

	rng = 6;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cmd = sample_cmd(cases[i].op);
		if (cases[i].op == MGPU_COMPUTE_MANDELBROT)
			cmd.mandelbrot.height = cpu_to_le32(2);
		put((u8 *)&cmd + cases[i].at, cases[i].len, cases[i].value);
		if (!TAP_EQ(decode_whole(&cmd), cases[i].ret))
			tap_diag("case %zu, %s", i,
				 mgpu_compute_op_name(cases[i].op));
	}

	/* Rows that would overlap. */
	cmd = sample_cmd(MGPU_COMPUTE_SCALE);
	cmd.scale.dst.width = cpu_to_le32(10);
	cmd.scale.dst.stride = cpu_to_le32(40);
	TAP_EQ(decode_whole(&cmd), 0);
	cmd.scale.dst.stride = cpu_to_le32(36);
	TAP_EQ(decode_whole(&cmd), -EINVAL);
}

/* Exactly enough is enough; 8 bytes less is not, nor is any place beyond. */
static void ranges(void)
{
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	struct mgpu_compute_cmd cmd, moved;
	struct mgpu_compute job;
	u32 op, i, round;
	u64 end, size[3];

	rng = 7;
	for (round = 0; round < 50; round++) {
		for (op = 1; op < MGPU_COMPUTE_NR_OPS; op++) {
			memset(size, 0, sizeof(size));
			make_cmd(&cmd, op, size, false, 40);
			TAP_NEED(!decode_whole(&cmd));
			decode(&cmd, sizeof(cmd), &job);
			for (i = 0; i < 3; i++)
				bufs[i] = (struct mgpu_compute_buf){
					NULL, size[i]
				};
			TAP_EQ(mgpu_compute_check(&job, bufs), 0);
			for (i = 0; i < job.nr_bufs; i++) {
				bufs[i].size = size[i] - 1;
				TAP_EQ(mgpu_compute_check(&job, bufs), -ERANGE);
				bufs[i].size = 0;
				TAP_EQ(mgpu_compute_check(&job, bufs), -ERANGE);
				bufs[i].size = size[i];
			}
			for (i = 0; i < job.nr_ranges; i++) {
				end = bufs[job.range[i].buf].size;
				job.range[i].offset = end;
				TAP_EQ(mgpu_compute_check(&job, bufs), -ERANGE);
				job.range[i].offset = U64_MAX - 7;
				TAP_EQ(mgpu_compute_check(&job, bufs), -ERANGE);
				job.range[i].offset = 0 - job.range[i].size;
				TAP_EQ(mgpu_compute_check(&job, bufs), -ERANGE);
				decode(&cmd, sizeof(cmd), &job);
			}
			/* As far from the start as can be said. */
			moved = cmd;
			moved.param[0] = cpu_to_le64(U64_MAX - 7);
			TAP_EQ(decode(&moved, sizeof(moved), &job), 0);
			TAP_EQ(mgpu_compute_check(&job, bufs), -ERANGE);
		}
	}
}

static int check_move(u32 op, u32 res, u64 dst, u64 src, u64 len)
{
	struct mgpu_compute_buf bufs[3] = { { NULL, 4096 }, { NULL, 4096 } };
	struct mgpu_compute_cmd cmd = sample_cmd(op);
	struct mgpu_compute job;

	cmd.res[0] = cpu_to_le32(5);
	cmd.res[1] = cpu_to_le32(res);
	cmd.move.dst_offset = cpu_to_le64(dst);
	cmd.move.src_offset = cpu_to_le64(src);
	cmd.move.length = cpu_to_le64(len);
	if (decode(&cmd, sizeof(cmd), &job))
		return 1;
	return mgpu_compute_check(&job, bufs);
}

static void overlaps(void)
{
	static const u32 moving[] = {
		MGPU_COMPUTE_COPY, MGPU_COMPUTE_ACCUMULATE
	};
	struct mgpu_compute_buf bufs[3] = {
		{ NULL, 65536 }, { NULL, 65536 }, { NULL, 65536 }
	};
	struct mgpu_compute_cmd cmd;
	struct mgpu_compute job;
	u32 i;

	rng = 8;
	for (i = 0; i < 2; i++) {
		TAP_EQ(check_move(moving[i], 5, 0, 64, 64), 0);
		TAP_EQ(check_move(moving[i], 5, 64, 0, 64), 0);
		TAP_EQ(check_move(moving[i], 5, 0, 56, 64), -EINVAL);
		TAP_EQ(check_move(moving[i], 5, 56, 0, 64), -EINVAL);
		TAP_EQ(check_move(moving[i], 5, 8, 8, 8), -EINVAL);
		TAP_EQ(check_move(moving[i], 6, 8, 8, 8), 0);
	}

	/* Factors may be the same, the product may not be one of them. */
	cmd = sample_cmd(MGPU_COMPUTE_MATMUL);
	memset(&cmd.matmul, 0, sizeof(cmd.matmul));
	cmd.matmul.n = cpu_to_le32(16);
	cmd.res[2] = cmd.res[1];
	TAP_EQ(decode(&cmd, sizeof(cmd), &job), 0);
	TAP_EQ(mgpu_compute_check(&job, bufs), 0);
	cmd.res[0] = cmd.res[1];
	cmd.matmul.c_offset = cpu_to_le64(1016);
	TAP_EQ(decode(&cmd, sizeof(cmd), &job), 0);
	TAP_EQ(mgpu_compute_check(&job, bufs), -EINVAL);
	cmd.matmul.c_offset = cpu_to_le64(1024);
	TAP_EQ(decode(&cmd, sizeof(cmd), &job), 0);
	TAP_EQ(mgpu_compute_check(&job, bufs), 0);

	/* Two results, one upon the other. */
	cmd = sample_cmd(MGPU_COMPUTE_MANDELBROT);
	cmd.mandelbrot.hist_offset = cmd.mandelbrot.offset;
	TAP_EQ(decode(&cmd, sizeof(cmd), &job), 0);
	TAP_EQ(mgpu_compute_check(&job, bufs), -EINVAL);
	cmd = sample_cmd(MGPU_COMPUTE_HASH);
	cmd.hash.sum_offset = cmd.hash.offset;
	TAP_EQ(decode(&cmd, sizeof(cmd), &job), 0);
	TAP_EQ(mgpu_compute_check(&job, bufs), -EINVAL);
	cmd = sample_cmd(MGPU_COMPUTE_GATHER);
	cmd.gather.sum_offset = cmd.gather.offset;
	TAP_EQ(decode(&cmd, sizeof(cmd), &job), 0);
	TAP_EQ(mgpu_compute_check(&job, bufs), -EINVAL);

	/* The sum in the middle of the table. */
	cmd = sample_cmd(MGPU_COMPUTE_GATHER);
	cmd.res[1] = cmd.res[0];
	cmd.gather.table_log2 = cpu_to_le32(8);
	cmd.gather.table_offset = cpu_to_le64(32768);
	cmd.gather.sum_offset = cpu_to_le64(32768 + 1024);
	TAP_EQ(decode(&cmd, sizeof(cmd), &job), 0);
	TAP_EQ(mgpu_compute_check(&job, bufs), -EINVAL);
}

/* ---- Properties of every job ---- */

static void promises(void)
{
	struct mgpu_compute_cmd cmd;
	struct mgpu_compute job;
	u64 size[3];
	u32 i, op, max;

	rng = 9;
	for (i = 0; i < 20000; i++) {
		op = 1 + i % (MGPU_COMPUTE_NR_OPS - 1);
		/* Up to the largest that each takes. */
		max = 1u << below(23);
		if (op == MGPU_COMPUTE_MATMUL || op == MGPU_COMPUTE_MANDELBROT)
			max = max < 12000 ? max : 12000;
		if (op == MGPU_COMPUTE_SCALE)
			max = max < 131000 ? max : 131000;
		if (op == MGPU_COMPUTE_GATHER)
			max = max < 49000 ? max : 49000;
		if (op == MGPU_COMPUTE_HASH)
			max = max < 262000 ? max : 262000;
		memset(size, 0, sizeof(size));
		make_cmd(&cmd, op, size, false, max);
		TAP_NEED(!decode_whole(&cmd));
		decode(&cmd, sizeof(cmd), &job);
		TAP_CHECK(job.tiles >= 1);
		TAP_CHECK(job.inst && job.bytes);
		TAP_CHECK(job.inst <= (u64)job.tiles * (256 << 10));
		TAP_CHECK(job.bytes <= (u64)job.tiles * (3 << 19));
		TAP_CHECK(job.local <= MGPU_COMPUTE_LOCAL_MAX);
		TAP_CHECK(job.regs <= job.local);
		TAP_EQ(mgpu_compute_live(&job), job.local);
		TAP_EQ(job.idempotent, op != MGPU_COMPUTE_ACCUMULATE);
		TAP_EQ(job.slots, le32_to_cpu(cmd.slots));
	}
}

static void no_such_tile(void)
{
	struct mgpu_compute_usage usage = { 0 };
	struct setup s;
	u32 op;

	rng = 10;
	for (op = 1; op < MGPU_COMPUTE_NR_OPS; op++) {
		TAP_NEED(setup(&s, op, 8));
		restore(&s);
		mgpu_compute_tile(&s.job, s.bufs, NULL, s.job.tiles, &usage);
		mgpu_compute_tile(&s.job, s.bufs, NULL, ~0u, &usage);
		TAP_MEM(s.bufs[0].base, s.before[0], s.bufs[0].size);
		forget(&s);
	}
	TAP_EQ(usage.inst | usage.bytes, 0);
}

static void capset(void)
{
	struct mgpu_capset_compute cap;
	u32 op;

	memset(&cap, 0xff, sizeof(cap));
	mgpu_compute_capset(&cap, 5);
	TAP_EQ(le32_to_cpu(cap.version), MGPU_COMPUTE_VERSION);
	TAP_EQ(le32_to_cpu(cap.slots), 5);
	TAP_EQ(le32_to_cpu(cap.max_cmd), MGPU_COMPUTE_MAX_CMD);
	TAP_EQ(le32_to_cpu(cap.max_bufs), MGPU_COMPUTE_MAX_BUFS);
	TAP_EQ(le32_to_cpu(cap.max_local), MGPU_COMPUTE_LOCAL_MAX);
	TAP_EQ(cap.pad, 0);
	TAP_EQ(le64_to_cpu(cap.ops), 0x1fe);
	for (op = 0; op < 4; op++)
		TAP_EQ(cap.reserved[op], 0);
	for (op = 1; op < MGPU_COMPUTE_NR_OPS; op++)
		TAP_CHECK(strcmp(mgpu_compute_op_name(op), "unknown"));
	TAP_STR(mgpu_compute_op_name(MGPU_COMPUTE_FILL), "fill");
	TAP_STR(mgpu_compute_op_name(0), "unknown");
	TAP_STR(mgpu_compute_op_name(op), "unknown");
	TAP_STR(mgpu_compute_op_name(~0u), "unknown");
}

/* ---- A guest that writes to its memory meanwhile ---- */

struct meddler {
	volatile u64 *at;
	u64 words;
	bool stop;
};

static void *meddle(void *data)
{
	struct meddler *m = data;
	u64 v = 12345;

	while (!__atomic_load_n(&m->stop, __ATOMIC_RELAXED)) {
		v = (v ^ v >> 7) * 0x9e3779b97f4a7c15ULL;
		m->at[v % m->words] = v;
	}
	return NULL;
}

static void changing_memory(void)
{
	struct mgpu_compute_usage usage;
	struct meddler m = { 0 };
	struct mgpu_compute_buf buf[3];
	struct mgpu_compute_cmd cmd;
	struct mgpu_compute job;
	u32 op, i, round;
	u64 size[3];
	pthread_t id;
	void *local;

	rng = 11;
	for (op = 1; op < MGPU_COMPUTE_NR_OPS; op++) {
		/* All in one piece of memory, which is written to all the time. */
		memset(size, 0, sizeof(size));
		make_cmd(&cmd, op, size, op != MGPU_COMPUTE_FILL &&
			 op != MGPU_COMPUTE_MANDELBROT, 300);
		TAP_NEED(!decode(&cmd, sizeof(cmd), &job));
		for (i = 0; i < 3; i++) {
			buf[i].size = (size[0] > size[2] ? size[0] : size[2]) + 8;
			buf[i].base = i ? buf[0].base : grab(buf[0].size);
		}
		TAP_EQ(mgpu_compute_check(&job, buf), 0);
		scribble(buf[0].base, buf[0].size);
		m = (struct meddler){ buf[0].base, buf[0].size / 8, false };
		TAP_NEED(!pthread_create(&id, NULL, meddle, &m));
		local = grab(job.local);
		for (round = 0; round < 20; round++) {
			memset(&usage, 0, sizeof(usage));
			mgpu_compute_prepare(&job, buf);
			mgpu_compute_begin(&job, local);
			for (i = 0; i < job.tiles; i++)
				mgpu_compute_tile(&job, buf, local, i, &usage);
			mgpu_compute_end(&job, buf, local);
			TAP_EQ(usage.inst, job.inst);
			TAP_EQ(usage.bytes, job.bytes);
		}
		__atomic_store_n(&m.stop, true, __ATOMIC_RELAXED);
		pthread_join(id, NULL);
		free(local);
		free(buf[0].base);
	}
}

int main(void)
{
	tap_run(random_jobs, "results do not depend on the schedule");
	tap_run(real_tiles, "nor do those of jobs with tiles of the real size");
	tap_run(tall_panels, "large matrices have narrow blocks");
	tap_run(slots_forget, "nothing is left in a slot from job to job");
	tap_run(at_once, "tiles may run at the same time");
	tap_run(headers, "an invalid header is refused");
	tap_run(unused_parameters, "fields that an operation does not use must be zero");
	tap_run(parameters, "parameters out of bounds are refused");
	tap_run(ranges, "jobs keep within their resources");
	tap_run(overlaps, "the result must not overlap an input");
	tap_run(promises, "tiles, local memory and work are bounded");
	tap_run(no_such_tile, "a tile that there is not does nothing");
	tap_run(capset, "a guest can query operations and limits");
	tap_run(changing_memory, "memory that changes does no harm");
	return tap_done();
}
