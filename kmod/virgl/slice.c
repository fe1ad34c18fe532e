// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slices of a checked command stream.  Pure: no kernel calls, builds in user space too.
 *
 * A stream is cut between two commands where the slice before would become too long.  A
 * draw that is too long by itself is split into bands: the host draws it several times,
 * each time with another scissor rectangle, and the rectangles make up the guest's.  OpenGL
 * requires that the scissor rectangle has no effect on the fragments inside it (version 4.6,
 * appendix A.3, rule 2), so the picture is the same.
 *
 * The cost of commands is learned from the time that earlier slices took.  It decides where
 * to cut and nothing else: a guest that makes it wrong has longer slices, at most those
 * that it would have without cuts.  Documentation/virgl.rst has more.
 */
#include "virgl/slice.h"

#define KIB64		(64U << 10)
#define MAX_ROWS	16384	/* of a texture */
#define MIN_ROWS	16	/* of a band */
#define ROWS_ALIGN	8

#define RAST_SCISSOR	0x4000U	/* flags of a rasterizer */
#define RAST_DISCARD	0x8U
#define OURS		0x80000000U	/* in handles of the module's own rasterizers */

#define FLOAT_SIGN	0x80000000U

#define VERTEX		0	/* stages */
#define FRAGMENT	1
#define COMPUTE		5

/* Nanoseconds. */
#define US		1000U
#define COST_MIN	US
#define COST_MAX	(1000U * 1000 * US)
#define COST_STATE	(US / 2)	/* of a command that only sets state */
#define COST_VERTEX	50U		/* which each band costs once more */
/* Less is noise: hosts look for finished work every 500 us. */
#define LEARN_MIN	(1000U * US)
/* A longer way to the device is another VM's work. */
#define WAY_MAX		(20U * 1000 * US)

/* Of so many streams that are cut, one begins with a slice that learns the way. */
#define PROBE_EVERY	64

/* After so many slices the length of a slice doubles. */
#define DOUBLE_AFTER	24

static u32 word_of(const __le32 *cmd, u32 i)
{
	return le32_to_cpu(cmd[i]);
}

/**
 * mgpu_slicer_init - prepare to cut the streams of a new context
 * @s: to be filled in
 */
void mgpu_slicer_init(struct mgpu_slicer *s)
{
	memset(s, 0, sizeof(*s));
	/* A context begins with a sub-context 0. */
	s->state[0].subs[0].live = true;
}

/* ---- what a context has bound ---- */

static struct mgpu_slice_sub *sub_of(struct mgpu_slice_state *st)
{
	return &st->subs[st->cur];
}

static u32 sub_find(const struct mgpu_slice_state *st, u32 id)
{
	u32 i;

	for (i = 0; i < MGPU_SLICE_SUBS; i++) {
		if (st->subs[i].live && st->subs[i].id == id)
			break;
	}
	return i;
}

/* A sub-context is made, and the host makes it the current one. */
static void sub_create(struct mgpu_slice_state *st, u32 id)
{
	u32 i;

	if (sub_find(st, id) < MGPU_SLICE_SUBS)
		return;
	for (i = 0; i < MGPU_SLICE_SUBS && st->subs[i].live; i++)
		;
	st->lost |= i == MGPU_SLICE_SUBS;
	/* A sub-context that is not followed may have the number: the host does nothing then. */
	sub_of(st)->whole |= st->lost;
	if (i == MGPU_SLICE_SUBS)
		return;
	memset(&st->subs[i], 0, sizeof(st->subs[i]));
	st->subs[i].id = id;
	st->subs[i].live = true;
	st->subs[i].whole = st->lost;
	st->cur = i;
}

/* A sub-context ends.  If it is the current one, the host goes on with sub-context 0. */
static void sub_destroy(struct mgpu_slice_state *st, u32 id)
{
	u32 i = sub_find(st, id);

	if (!id)
		return;
	/* Which one is current is not certain. */
	if (i == MGPU_SLICE_SUBS || st->lost)
		st->subs[0].whole = true;
	if (i == MGPU_SLICE_SUBS)
		return;
	st->subs[i].live = false;
	/* The first entry is that of sub-context 0, which does not end. */
	if (st->cur == i)
		st->cur = 0;
}

static void sub_set(struct mgpu_slice_state *st, u32 id)
{
	u32 i = sub_find(st, id);

	/* The host goes to one that is not followed, or stays if there is none. */
	if (i == MGPU_SLICE_SUBS)
		sub_of(st)->whole = true;
	else
		st->cur = i;
}

static u32 *rast_find(struct mgpu_slice_sub *sub, u32 handle)
{
	u32 i;

	for (i = 0; handle && i < MGPU_SLICE_RASTERIZERS; i++) {
		if (sub->rasts[i][0] == handle)
			return sub->rasts[i];
	}
	return NULL;
}

/* An object with this handle is made or destroyed, of whatever type. */
static void object_gone(struct mgpu_slice_sub *sub, u32 handle)
{
	u32 *rast = rast_find(sub, handle);

	if (rast)
		rast[0] = 0;
	/* The host goes on with its copy, which cannot be bound again. */
	if (sub->rast == handle)
		sub->rast = 0;
}

static void object_made(struct mgpu_slice_sub *sub, const __le32 *cmd, u32 type)
{
	u32 *rast, i;

	object_gone(sub, word_of(cmd, 1));
	if (word_of(cmd, 1) & OURS)
		sub->whole = true;
	if (type != MGPU_VIRGL_RASTERIZER)
		return;
	rast = sub->rasts[sub->next_rast];
	sub->next_rast = (sub->next_rast + 1) % MGPU_SLICE_RASTERIZERS;
	for (i = 0; i < MGPU_SLICE_RAST_WORDS; i++)
		rast[i] = word_of(cmd, 1 + i);
}

static void query_begin(struct mgpu_slice_sub *sub, u32 handle)
{
	u32 i;

	for (i = 0; i < MGPU_SLICE_QUERIES; i++) {
		if (!sub->queries[i] || sub->queries[i] == handle) {
			sub->queries[i] = handle;
			return;
		}
	}
	sub->whole = true;
}

static void query_end(struct mgpu_slice_sub *sub, u32 handle)
{
	u32 i;

	for (i = 0; i < MGPU_SLICE_QUERIES; i++) {
		if (sub->queries[i] == handle)
			sub->queries[i] = 0;
	}
}

/* Return a float of a stream, rounded toward 0, from -MAX_ROWS to MAX_ROWS. */
static s32 float_rows(u32 bits)
{
	s32 exp = (s32)(bits >> 23 & 0xff) - 127;
	u32 v;

	if (exp < 0)
		return 0;
	v = exp >= 14 ? MAX_ROWS : ((bits & 0x7fffff) | 0x800000) >> (23 - exp);
	return bits & FLOAT_SIGN ? -(s32)v : (s32)v;
}

static u32 row_of(s32 v)
{
	return v < 0 ? 0 : v > MAX_ROWS ? MAX_ROWS : (u32)v;
}

/* Note the rows of the viewport: a guess where to split, not a bound. */
static void set_viewport(struct mgpu_slice_sub *sub, const __le32 *cmd, u32 len)
{
	s32 half, middle;

	/* Rectangles of other viewports would have to be split, too. */
	if (word_of(cmd, 1) || len != 7) {
		sub->whole = true;
		return;
	}
	half = float_rows(word_of(cmd, 3) & ~FLOAT_SIGN);
	middle = float_rows(word_of(cmd, 6));
	sub->first = row_of(middle - half);
	sub->last = row_of(middle + half);
}

static void set_scissor(struct mgpu_slice_sub *sub, const __le32 *cmd, u32 len)
{
	if (word_of(cmd, 1) || len != 3) {
		sub->whole = true;
		return;
	}
	sub->rect = (struct mgpu_slice_rect){ word_of(cmd, 2), word_of(cmd, 3) };
}

static bool any_word(const __le32 *cmd, u32 len, u32 first, u32 every)
{
	u32 i;

	for (i = first; i <= len; i += every) {
		if (word_of(cmd, i))
			return true;
	}
	return false;
}

/* Follow a command that sets state of the current sub-context. */
static void sub_follow(struct mgpu_slice_sub *sub, const __le32 *cmd, u32 len)
{
	u32 type = word_of(cmd, 0) >> 8 & 0xff;

	switch (word_of(cmd, 0) & 0xff) {
	case MGPU_VIRGL_CREATE_OBJECT:
		object_made(sub, cmd, type);
		break;
	case MGPU_VIRGL_DESTROY_OBJECT:
		object_gone(sub, word_of(cmd, 1));
		break;
	case MGPU_VIRGL_BIND_OBJECT:
		if (type == MGPU_VIRGL_RASTERIZER)
			sub->rast = word_of(cmd, 1);
		break;
	case MGPU_VIRGL_BIND_SHADER:
		sub->shader[word_of(cmd, 2)] = word_of(cmd, 1);
		break;
	case MGPU_VIRGL_SET_VIEWPORT_STATE:
		set_viewport(sub, cmd, len);
		break;
	case MGPU_VIRGL_SET_SCISSOR_STATE:
		set_scissor(sub, cmd, len);
		break;
	case MGPU_VIRGL_BEGIN_QUERY:
		query_begin(sub, word_of(cmd, 1));
		break;
	case MGPU_VIRGL_END_QUERY:
		query_end(sub, word_of(cmd, 1));
		break;
	case MGPU_VIRGL_SET_RENDER_CONDITION:
		sub->condition = word_of(cmd, 1);
		break;
	case MGPU_VIRGL_SET_STREAMOUT_TARGETS:
		sub->streamout = any_word(cmd, len, 2, 1);
		break;
	/* Shaders of all stages write to these: each band would write once more. */
	case MGPU_VIRGL_SET_SHADER_BUFFERS:
		sub->whole |= word_of(cmd, 1) != COMPUTE && any_word(cmd, len, 5, 3);
		break;
	case MGPU_VIRGL_SET_SHADER_IMAGES:
		sub->whole |= word_of(cmd, 1) != COMPUTE && any_word(cmd, len, 7, 5);
		break;
	case MGPU_VIRGL_SET_ATOMIC_BUFFERS:
		sub->whole |= any_word(cmd, len, 4, 3);
		break;
	}
}

static void state_follow(struct mgpu_slice_state *st, const __le32 *cmd, u32 len)
{
	switch (word_of(cmd, 0) & 0xff) {
	case MGPU_VIRGL_CREATE_SUB_CTX:
		sub_create(st, word_of(cmd, 1));
		break;
	case MGPU_VIRGL_DESTROY_SUB_CTX:
		sub_destroy(st, word_of(cmd, 1));
		break;
	case MGPU_VIRGL_SET_SUB_CTX:
		sub_set(st, word_of(cmd, 1));
		break;
	default:
		sub_follow(sub_of(st), cmd, len);
	}
}

/* ---- costs ---- */

static u32 log2_of(u32 v)
{
	u32 n = 0;

	while (v >>= 1)
		n++;
	return n;
}

/* Return a number of a kind of command, not 0. */
static u32 tag_of(u32 opcode, u32 a, u32 b, u32 size)
{
	u32 h = opcode * 0x9e3779b1u + 1;

	h = (h ^ a) * 0x85ebca6bu;
	h = (h ^ h >> 13 ^ b) * 0xc2b2ae35u;
	h = (h ^ h >> 16 ^ log2_of(size)) * 0x27d4eb2fu;
	h ^= h >> 15;
	return h ? h : 1;
}

static struct mgpu_slice_cost *cost_of(struct mgpu_slicer *s, u32 tag)
{
	return &s->costs[tag % MGPU_SLICE_COSTS];
}

/* Return the learned cost of a kind of command, or the cost to begin with. */
static u32 cost_get(struct mgpu_slicer *s, u32 tag, u32 begin)
{
	struct mgpu_slice_cost *c = cost_of(s, tag);

	if (c->tag != tag)
		*c = (struct mgpu_slice_cost){ tag, begin };
	return c->ns;
}

static u32 vertices_of(const __le32 *cmd)
{
	u32 instances = word_of(cmd, 5), n;

	if (check_mul_overflow(word_of(cmd, 2), instances ? instances : 1, &n))
		n = U32_MAX;
	return n;
}

/* Return the cost of a command, nanoseconds; @tag is set to its kind, 0 for state. */
static u32 cmd_cost(struct mgpu_slicer *s, struct mgpu_slice_state *st, const __le32 *cmd,
		    u32 len, u32 *tag)
{
	const u32 *shader = sub_of(st)->shader;
	u32 op = word_of(cmd, 0) & 0xff, kib64;
	u64 ns;

	switch (op) {
	case MGPU_VIRGL_DRAW_VBO:
		*tag = tag_of(op, shader[FRAGMENT], shader[VERTEX],
			      vertices_of(cmd));
		return cost_get(s, *tag, 200 * US);
	case MGPU_VIRGL_LAUNCH_GRID:
		*tag = tag_of(op, shader[COMPUTE], 0, word_of(cmd, 4));
		return cost_get(s, *tag, 500 * US);
	case MGPU_VIRGL_CLEAR:
	case MGPU_VIRGL_CLEAR_TEXTURE:
	case MGPU_VIRGL_CLEAR_SURFACE:
	case MGPU_VIRGL_BLIT:
	case MGPU_VIRGL_RESOURCE_COPY_REGION:
		*tag = tag_of(op, 0, 0, 0);
		return cost_get(s, *tag, 100 * US);
	case MGPU_VIRGL_RESOURCE_INLINE_WRITE:
		*tag = tag_of(op, 0, 0, 0);
		return cost_get(s, *tag, 20 * US) * (1 + len / (KIB64 / 4));
	case MGPU_VIRGL_TRANSFER3D:
	case MGPU_VIRGL_COPY_TRANSFER3D:
		/* Pixels of most formats have up to 4 bytes, buffers are in bytes. */
		*tag = tag_of(op, 0, 0, 0);
		kib64 = word_of(cmd, 10) > 1 ? 4 : 1;
		ns = (u64)word_of(cmd, 9) * word_of(cmd, 10);
		ns = ns >> 32 ? U32_MAX : ns * kib64 / KIB64 + 1;
		ns *= cost_get(s, *tag, 20 * US);
		return ns > COST_MAX ? COST_MAX : ns;
	default:
		*tag = 0;
		return COST_STATE;
	}
}

/* Add a command to the expected cost of a slice. */
static void load_add(const struct mgpu_slicer *s, struct mgpu_slice_load *load, u32 tag,
		     u32 ns)
{
	struct mgpu_slice_part *p = load->parts, *least = p;
	u32 i;

	load->ns += ns;
	if (!tag)
		return;
	for (i = 0; i < MGPU_SLICE_PARTS; i++, p++) {
		if (p->tag == tag) {
			p->ns = p->ns + ns < ns ? U32_MAX : p->ns + ns;
			return;
		}
		if (p->ns < least->ns)
			least = p;
	}
	if (least->ns < ns)
		*least = (struct mgpu_slice_part){
			.tag = tag, .each = s->costs[tag % MGPU_SLICE_COSTS].ns, .ns = ns,
		};
}

/*
 * Return the time of a slice less that of the way to the device and back. The time of a slice that
 * only sets state, or of a probe, is the way alone, and is added to the average.
 */
static u64 without_way(struct mgpu_slicer *s, const struct mgpu_slice_load *load, u64 ns)
{
	if (!load->parts[0].tag) {
		ns = ns < WAY_MAX ? ns : WAY_MAX;
		s->way_ns = s->way_ns ? (3 * s->way_ns + ns) / 4 : ns;
		return 0;
	}
	return ns - (ns < s->way_ns ? ns : s->way_ns);
}

/**
 * mgpu_slice_learn - learn from the time that a slice took
 * @s: slicer of the context
 * @load: expected cost of the slice
 * @ns: time that it took, any number of nanoseconds
 * @behind: the device had the slice before it ended the job before, so that the way to the
 *	device and back is not in @ns
 */
void mgpu_slice_learn(struct mgpu_slicer *s, const struct mgpu_slice_load *load, u64 ns,
		      bool behind)
{
	u64 expected = load->ns ? load->ns : 1, ratio, cost;
	struct mgpu_slice_cost *c;
	u32 i;

	if (!behind)
		ns = without_way(s, load, ns);
	if (ns < LEARN_MIN && expected < LEARN_MIN)
		return;
	/* In 256ths, a quarter to 16 times; the cost goes half the way there. */
	ratio = ns / 16 >= expected ? 16 * 256 : div64_u64(ns << 8, expected);
	if (ratio < 64)
		ratio = 64;
	for (i = 0; i < MGPU_SLICE_PARTS; i++) {
		c = cost_of(s, load->parts[i].tag);
		if (!load->parts[i].tag || c->tag != load->parts[i].tag)
			continue;
		cost = (c->ns + (load->parts[i].each * ratio >> 8)) / 2;
		c->ns = cost < COST_MIN ? COST_MIN : cost > COST_MAX ? COST_MAX : cost;
	}
}

/* ---- cutting ---- */

/* A plan that is being made. */
struct planner {
	struct mgpu_slicer *s;
	struct mgpu_slice_state *st;
	u32 slice_ns;		/* 0: do not cut */
	u32 bands;		/* of each draw that can be split; 0: by its cost */
};

static struct mgpu_slice *last_slice(struct planner *p)
{
	return &p->s->slices[p->s->nr - 1];
}

static struct mgpu_slice *new_slice(struct planner *p, u32 head)
{
	struct mgpu_slice *slice = &p->s->slices[p->s->nr++];

	*slice = (struct mgpu_slice){ .head = head, .split = -1 };
	return slice;
}

/* Return the length to which the last slice may grow, nanoseconds. */
static u64 slice_limit(const struct planner *p)
{
	return (u64)p->slice_ns << ((p->s->nr - 1) / DOUBLE_AFTER);
}

/* Begin another slice unless the last one is empty. */
static void cut(struct planner *p, u32 at)
{
	const struct mgpu_slice *slice = last_slice(p);

	if (p->s->nr < MGPU_SLICE_MAX && (slice->head_words || slice->split >= 0))
		new_slice(p, at);
}

static bool counts(const struct mgpu_slice_sub *sub)
{
	u32 i;

	for (i = 0; i < MGPU_SLICE_QUERIES; i++) {
		if (sub->queries[i])
			return true;
	}
	return false;
}

/*
 * Return whether the picture is the only thing that a draw changes, and all is known that
 * has to be as before behind it; @band is filled in.
 */
static bool can_split(const struct planner *p, const __le32 *cmd, u32 len,
		      struct mgpu_slice_band *band)
{
	struct mgpu_slice_sub *sub = sub_of(p->st);
	const u32 *rast;

	if (sub->whole || sub->streamout || sub->condition || counts(sub))
		return false;
	/* The number of vertices may be in a buffer. */
	if (len > 14 || word_of(cmd, 12))
		return false;
	rast = rast_find(sub, sub->rast);
	if (!rast || rast[1] & RAST_DISCARD)
		return false;
	/* A host begins with an empty rectangle. */
	if (!sub->rect.max && rast[1] & RAST_SCISSOR)
		return false;
	memcpy(band->rast, rast, sizeof(band->rast));
	band->rect = sub->rect;
	band->words = len + 1;
	band->first = sub->first;
	band->last = sub->last;
	if (rast[1] & RAST_SCISSOR) {
		if (band->first < sub->rect.min >> 16)
			band->first = sub->rect.min >> 16;
		if (band->last > sub->rect.max >> 16)
			band->last = sub->rect.max >> 16;
	}
	return band->last > band->first;
}

/* Return into how many bands to split a draw that costs @ns, below 2 for not at all. */
static u32 bands_for(const struct planner *p, const struct mgpu_slice_band *band,
		     const __le32 *cmd, u32 ns)
{
	u32 most = (band->last - band->first) / MIN_ROWS, room = MGPU_SLICE_MAX - p->s->nr;
	u64 limit = slice_limit(p), nr, cheap;

	if (most > room)
		most = room;
	if (p->bands)
		return p->bands < most ? p->bands : most;
	/* All vertices go through each band, which may cost an eighth more in all. */
	cheap = div64_u64(ns / COST_VERTEX / 8, vertices_of(cmd) + 1ULL);
	if (most > cheap)
		most = cheap;
	nr = div64_u64(ns + limit - 1, limit);
	return nr < most ? nr : most;
}

/* Add a draw in bands: the first behind the commands before it, the others alone. */
static bool add_bands(struct planner *p, const __le32 *cmd, u32 len, u32 at, u32 tag, u32 ns)
{
	struct mgpu_slicer *s = p->s;
	struct mgpu_slice_band *band = &s->bands[s->nr_bands];
	struct mgpu_slice *slice;
	u32 i;

	if ((!p->bands && (!p->slice_ns || ns <= slice_limit(p) / 2 * 3)) ||
	    s->nr_bands == MGPU_SLICE_MAX / 2 || !can_split(p, cmd, len, band))
		return false;
	/* A slice has one band at most, and the commands before it may be dear. */
	if (last_slice(p)->split >= 0 || last_slice(p)->load.ns > slice_limit(p) / 4)
		cut(p, at);
	band->at = at;
	band->nr = bands_for(p, band, cmd, ns);
	if (band->nr < 2 || last_slice(p)->split >= 0)
		return false;
	for (i = 0; i < band->nr; i++) {
		slice = i ? new_slice(p, at) : last_slice(p);
		slice->split = s->nr_bands;
		slice->band = i;
		load_add(s, &slice->load, tag, ns / band->nr);
	}
	s->nr_bands++;
	return true;
}

static void add_cmd(struct planner *p, const __le32 *stream, u32 at)
{
	u32 len = word_of(stream, at) >> 16, tag, ns;
	const __le32 *cmd = stream + at;
	struct mgpu_slice *slice;

	ns = cmd_cost(p->s, p->st, cmd, len, &tag);
	state_follow(p->st, cmd, len);
	if ((word_of(cmd, 0) & 0xff) == MGPU_VIRGL_DRAW_VBO &&
	    add_bands(p, cmd, len, at, tag, ns))
		return;
	slice = last_slice(p);
	/* State alone is no slice. */
	if (p->bands || (p->slice_ns && slice->load.ns > slice_limit(p) / 8 &&
			 slice->load.ns + ns > slice_limit(p)))
		cut(p, at);
	slice = last_slice(p);
	if (slice->split < 0)
		slice->head_words += len + 1;
	else
		slice->tail_words += len + 1;
	load_add(p->s, &slice->load, tag, ns);
}

/*
 * Put a slice of no commands first. Without it, a guest whose streams all draw would have the way
 * learned as a cost: its draws would be cut into ever more bands, each of which takes the way.
 */
static void add_probe(struct mgpu_slicer *s)
{
	memmove(s->slices + 1, s->slices, s->nr * sizeof(*s->slices));
	s->slices[0] = (struct mgpu_slice){ .split = -1, .probe = true, .load.ns = COST_STATE };
	s->nr++;
}

/**
 * mgpu_slice_plan - decide how to cut a stream
 * @s: slicer of the context
 * @stream: from mgpu_virgl_check(), which accepted it
 * @words: length of the stream, up to U32_MAX / 8
 * @slice_ns: wanted length of a slice, nanoseconds, or that of the way to the device and back if
 *	that is longer; 0 for one slice
 * @bands: 0; for tests, number of bands of each draw that can be split, with a cut before
 *	each command
 *
 * Call mgpu_slice_commit() when the host gets the stream; another plan replaces one for
 * which that was not called.
 *
 * Return: number of slices, 1 to MGPU_SLICE_MAX.  The first is the stream itself if there
 * is one.
 */
u32 mgpu_slice_plan(struct mgpu_slicer *s, const __le32 *stream, u32 words, u32 slice_ns,
		    u32 bands)
{
	struct planner p = { .s = s, .slice_ns = slice_ns, .bands = bands };
	u32 at;

	p.st = &s->state[!s->now];
	*p.st = s->state[s->now];
	/* Each slice takes the way: shorter ones cost more than they spare others. */
	if (slice_ns && slice_ns < s->way_ns)
		p.slice_ns = s->way_ns;
	s->nr = 0;
	s->nr_bands = 0;
	new_slice(&p, 0);
	for (at = 0; at < words; at += (word_of(stream, at) >> 16) + 1)
		add_cmd(&p, stream, at);
	if (slice_ns && !bands && s->nr > 1 && s->nr < MGPU_SLICE_MAX && !s->since_probe)
		add_probe(s);
	return s->nr;
}

/**
 * mgpu_slice_commit - note that the host gets the planned stream
 * @s: slicer of the context
 */
void mgpu_slice_commit(struct mgpu_slicer *s)
{
	s->now = !s->now;
	if (s->nr < 2)
		return;
	if (s->slices[0].probe || s->since_probe)
		s->since_probe = (s->since_probe + 1) % PROBE_EVERY;
}

/* ---- writing ---- */

/* Where to write to, or NULL to count. */
struct writer {
	__le32 *to;
	u32 nr;
};

static void put_word(struct writer *w, u32 word)
{
	if (w->to)
		w->to[w->nr] = cpu_to_le32(word);
	w->nr++;
}

static void put_stream(struct writer *w, const __le32 *stream, u32 at, u32 words)
{
	if (w->to && words)
		memcpy(w->to + w->nr, stream + at, words * 4);
	w->nr += words;
}

static void put_handle(struct writer *w, u32 opcode, u32 handle)
{
	put_word(w, 1U << 16 | MGPU_VIRGL_RASTERIZER << 8 | opcode);
	put_word(w, handle);
}

static void put_rect(struct writer *w, u32 min, u32 max)
{
	put_word(w, 3U << 16 | MGPU_VIRGL_SET_SCISSOR_STATE);
	put_word(w, 0);
	put_word(w, min);
	put_word(w, max);
}

/* Put a copy of the guest's rasterizer, with the scissor test. */
static void put_rast(struct writer *w, const struct mgpu_slice_band *b)
{
	u32 i;

	put_word(w, (u32)MGPU_SLICE_RAST_WORDS << 16 | MGPU_VIRGL_RASTERIZER << 8 |
		 MGPU_VIRGL_CREATE_OBJECT);
	put_word(w, b->rast[0] | OURS);
	put_word(w, b->rast[1] | RAST_SCISSOR);
	for (i = 2; i < MGPU_SLICE_RAST_WORDS; i++)
		put_word(w, b->rast[i]);
	put_handle(w, MGPU_VIRGL_BIND_OBJECT, b->rast[0] | OURS);
}

/* Return the row at which a band begins. */
static u32 band_row(const struct mgpu_slice_band *b, u32 band)
{
	return (b->first + (b->last - b->first) * band / b->nr) / ROWS_ALIGN * ROWS_ALIGN;
}

static void put_band(struct writer *w, const __le32 *stream, const struct mgpu_slice_band *b,
		     u32 band)
{
	bool scissor = b->rast[1] & RAST_SCISSOR;
	u32 min = scissor ? b->rect.min : 0;
	u32 max = scissor ? b->rect.max : MAX_ROWS << 16 | MAX_ROWS;
	bool last = band == b->nr - 1;

	if (!band && !scissor)
		put_rast(w, b);
	/* The first and the last band reach as far as the guest's rectangle. */
	put_rect(w, band ? band_row(b, band) << 16 | (min & 0xffff) : min,
		 last ? max : band_row(b, band + 1) << 16 | (max & 0xffff));
	put_stream(w, stream, b->at, b->words);
	if (!last)
		return;
	put_rect(w, b->rect.min, b->rect.max);
	if (scissor)
		return;
	put_handle(w, MGPU_VIRGL_BIND_OBJECT, b->rast[0]);
	put_handle(w, MGPU_VIRGL_DESTROY_OBJECT, b->rast[0] | OURS);
}

static u32 slice_put(const struct mgpu_slicer *s, const __le32 *stream, u32 i, __le32 *to)
{
	const struct mgpu_slice *slice = &s->slices[i];
	const struct mgpu_slice_band *b;
	struct writer w = { .to = to };

	put_stream(&w, stream, slice->head, slice->head_words);
	if (slice->probe)
		put_word(&w, MGPU_VIRGL_NOP);
	if (slice->split < 0)
		return w.nr;
	b = &s->bands[slice->split];
	put_band(&w, stream, b, slice->band);
	put_stream(&w, stream, b->at + b->words, slice->tail_words);
	return w.nr;
}

/**
 * mgpu_slice_words - get the length of a planned slice
 * @s: slicer with a plan
 * @i: number of the slice, from 0
 *
 * Return: words that mgpu_slice_write() writes.
 */
u32 mgpu_slice_words(const struct mgpu_slicer *s, u32 i)
{
	return slice_put(s, NULL, i, NULL);
}

/**
 * mgpu_slice_write - write a planned slice
 * @s: slicer with a plan
 * @stream: the stream that was planned
 * @i: number of the slice, from 0
 * @to: room for mgpu_slice_words() words
 */
void mgpu_slice_write(const struct mgpu_slicer *s, const __le32 *stream, u32 i, __le32 *to)
{
	slice_put(s, stream, i, to);
}
