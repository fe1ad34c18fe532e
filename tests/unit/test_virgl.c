// SPDX-License-Identifier: GPL-2.0-only
/*
 * virgl streams, resources and capability sets.  The protocol is written down
 * here a second time, in another form than the checker's, so
 * that neither can be wrong alone.  Every stream is a heap block of exactly its
 * size, so that the address sanitizer sees whatever is touched beyond it.
 */
#include <stdlib.h>

#include "random.h"
#include "tap.h"
#include "virgl/virgl.h"

#define NR_RES		200		/* ids 1 to 200 are attached */
#define FOREIGN		(NR_RES + 1)
#define DECOY		3		/* in every word that is no handle */
#define MAX_LEN		400
#define RANDOM_STREAMS	60000
#define RANDOM_BOXES	60000

/* Numbers of the protocol, as its specification has them. */
#define CREATE		1
#define FRAMEBUFFER	5
#define DRAW		8
#define INLINE_WRITE	9
#define DEBUG_FLAGS	41
#define PIPE_CREATE	48
#define TRANSFER3D	43
#define COPY_TRANSFER3D	45

static struct mgpu_virgl_res pool[NR_RES + 1];
static u64 calls;

static u32 host_of(u32 id)
{
	return 0x80000000u + id * 3;
}

static bool is_host(u32 v)
{
	return v > 0x80000000u && v <= host_of(NR_RES) &&
	       (v - 0x80000000u) % 3 == 0;
}

static const struct mgpu_virgl_res *find(void *data, u32 id)
{
	u64 *n = data;

	TAP_CHECK(id);
	(*n)++;
	return id && id <= NR_RES ? &pool[id] : NULL;
}

static struct mgpu_virgl_lookup lookup = { .find = find, .data = &calls };

static void fill_pool(void)
{
	u32 i;

	for (i = 1; i <= NR_RES; i++) {
		pool[i].host_id = host_of(i);
		pool[i].shape = (struct mgpu_virgl_shape){
			.target = MGPU_VIRGL_2D, .format = 67, .width = 64,
			.height = 64, .depth = 1, .array_size = 1,
		};
		pool[i].backing = 64 * 64 * 4;
	}
}

struct set {
	u32 word;
	u32 value;
};

/*
 * A command: its lengths, where resources are named, and which words must have
 * certain values for it to be a good one.
 */
struct proto {
	const char *name;
	u32 op;
	u32 obj;
	u32 min, max, step;		/* words; step 0: only min */
	u32 res[2];
	u32 zero;			/* of res[], how many may be 0: 0 or 2 */
	u32 list, every;		/* handles that repeat; may be 0 */
	struct set set[6];
	u32 box;			/* its first word, 0 for none */
};

static const struct proto protos[] = {
	{ "nop", 0, 0, 0, 65535, 1, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "blend", CREATE, 1, 11, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "rasterizer", CREATE, 2, 9, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "dsa", CREATE, 3, 5, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "shader", CREATE, 4, 5, 65535, 1, { 0 }, 0, 0, 0, { { 5, 0 } }, 0 },
	{ "elements", CREATE, 5, 1, 129, 4, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "view", CREATE, 6, 6, 0, 0, { 2 }, 0, 0, 0, { { 0 } }, 0 },
	{ "sampler", CREATE, 7, 9, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "surface", CREATE, 8, 5, 0, 0, { 2 }, 0, 0, 0, { { 0 } }, 0 },
	{ "query", CREATE, 9, 4, 0, 0, { 4 }, 0, 0, 0, { { 0 } }, 0 },
	{ "so target", CREATE, 10, 4, 0, 0, { 2 }, 0, 0, 0, { { 0 } }, 0 },
	{ "msaa surface", CREATE, 11, 6, 0, 0, { 2 }, 0, 0, 0, { { 0 } }, 0 },
	{ "bind blend", 2, 1, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "bind rasterizer", 2, 2, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "bind dsa", 2, 3, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "bind elements", 2, 5, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "destroy shader", 3, 4, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "destroy blend", 3, 1, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "destroy msaa", 3, 11, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "viewport", 4, 0, 1, 97, 6, { 0 }, 0, 0, 0, { { 1, 0 } }, 0 },
	{ "framebuffer", FRAMEBUFFER, 0, 2, 10, 1, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "vertex buffers", 6, 0, 0, 96, 3, { 0 }, 0, 3, 3, { { 0 } }, 0 },
	{ "clear", 7, 0, 8, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "draw", DRAW, 0, 12, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "draw patches", DRAW, 0, 14, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "draw indirect", DRAW, 0, 20, 0, 0, { 15, 20 }, 2, 0, 0, { { 0 } }, 0 },
	{ "inline write", INLINE_WRITE, 0, 12, 65535, 1, { 1 }, 0, 0, 0,
	  { { 2, 0 }, { 4, 0 }, { 5, 0 } }, 6 },
	{ "views", 10, 0, 2, 130, 1, { 0 }, 0, 0, 0, { { 2, 0 } }, 0 },
	{ "index buffer", 11, 0, 1, 3, 2, { 1 }, 2, 0, 0, { { 0 } }, 0 },
	{ "constants", 12, 0, 2, 65535, 1, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "stencil ref", 13, 0, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "blend color", 14, 0, 4, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "scissor", 15, 0, 1, 33, 2, { 0 }, 0, 0, 0, { { 1, 0 } }, 0 },
	{ "blit", 16, 0, 21, 0, 0, { 4, 13 }, 0, 0, 0,
	  { { 5, 0 }, { 9, 0 }, { 12, 1 }, { 14, 0 }, { 18, 0 }, { 21, 1 } },
	  0 },
	{ "copy region", 17, 0, 13, 0, 0, { 1, 6 }, 0, 0, 0,
	  { { 2, 0 }, { 5, 0 }, { 7, 0 } }, 8 },
	{ "bind samplers", 18, 0, 2, 34, 1, { 0 }, 0, 0, 0, { { 2, 0 } }, 0 },
	{ "begin query", 19, 0, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "end query", 20, 0, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "query result", 21, 0, 2, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "stipple", 22, 0, 32, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "clip", 23, 0, 32, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "sample mask", 24, 0, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "so targets", 25, 0, 1, 5, 1, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "render condition", 26, 0, 3, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "uniform buffer", 27, 0, 5, 0, 0, { 5 }, 2, 0, 0, { { 0 } }, 0 },
	{ "set sub ctx", 28, 0, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "create sub ctx", 29, 0, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "destroy sub ctx", 30, 0, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "bind shader", 31, 0, 2, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "tess state", 32, 0, 6, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "min samples", 33, 0, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "shader buffers", 34, 0, 2, 98, 3, { 0 }, 0, 5, 3, { { 2, 0 } }, 0 },
	{ "shader images", 35, 0, 2, 322, 5, { 0 }, 0, 7, 5, { { 2, 0 } }, 0 },
	{ "memory barrier", 36, 0, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "launch grid", 37, 0, 8, 0, 0, { 7 }, 2, 0, 0, { { 0 } }, 0 },
	{ "no attach", 38, 0, 2, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "texture barrier", 39, 0, 1, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "atomic buffers", 40, 0, 1, 97, 3, { 0 }, 0, 4, 3, { { 1, 0 } }, 0 },
	{ "debug flags", DEBUG_FLAGS, 0, 1, 65535, 1, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "query result qbo", 42, 0, 6, 0, 0, { 2 }, 0, 0, 0, { { 0 } }, 0 },
	{ "transfer", TRANSFER3D, 0, 13, 0, 0, { 1 }, 0, 0, 0,
	  { { 2, 0 }, { 4, 0 }, { 5, 0 }, { 12, 0 }, { 13, 1 } }, 6 },
	{ "end transfers", 44, 0, 0, 65535, 1, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "copy transfer", COPY_TRANSFER3D, 0, 14, 0, 0, { 1, 12 }, 0, 0, 0,
	  { { 2, 0 }, { 4, 0 }, { 5, 0 }, { 13, 0 } }, 6 },
	{ "tweaks", 46, 0, 2, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "clear texture", 47, 0, 12, 0, 0, { 1 }, 0, 0, 0, { { 0 } }, 0 },
	{ "set type", 49, 0, 10, 16, 2, { 1 }, 0, 0, 0, { { 0 } }, 0 },
	{ "marker", 51, 0, 2, 65535, 1, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "link shader", 52, 0, 6, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
	{ "clear surface", 62, 0, 10, 0, 0, { 0 }, 0, 0, 0, { { 0 } }, 0 },
};

#define NR_PROTOS	(sizeof(protos) / sizeof(protos[0]))

static bool one_in(u32 n)
{
	return !below(n);
}

static bool has_length(const struct proto *p, u32 len)
{
	if (len == p->min || !p->step)
		return len == p->min;
	return len >= p->min && len <= p->max && !((len - p->min) % p->step);
}

static bool same(const struct proto *a, const struct proto *b)
{
	return a->op == b->op && a->obj == b->obj;
}

/* The entry for a command as it is, by header and length. */
static const struct proto *proto_of(u32 op, u32 obj, u32 len)
{
	size_t i;

	for (i = 0; i < NR_PROTOS; i++)
		if (protos[i].op == op && has_length(&protos[i], len) &&
		    (op > 3 || !op || protos[i].obj == obj))
			return &protos[i];
	return NULL;
}

/* Return whether word @w of a command of this length names a resource. */
static bool is_handle(const struct proto *p, u32 w, u32 len)
{
	if (!w || w > len)
		return false;
	return w == p->res[0] || w == p->res[1] ||
	       (p->every && w >= p->list && !((w - p->list) % p->every));
}

/* A good command of @len words after the header; handles are 10, 11, ... */
static void build(const struct proto *p, u32 len, u32 *w)
{
	u32 i, next = 10;

	w[0] = p->op | p->obj << 8 | len << 16;
	for (i = 1; i <= len; i++)
		w[i] = is_handle(p, i, len) ? next++ : DECOY;
	for (i = 0; p->box && i < 6 && p->box + i <= len; i++)
		w[p->box + i] = i >= 3;
	for (i = 0; i < 6 && p->set[i].word; i++)
		if (p->set[i].word <= len)
			w[p->set[i].word] = p->set[i].value;
	if (p->op == FRAMEBUFFER)
		w[1] = len - 2;
}

/* Check @len words in a block of their own, and copy the result back. */
static int check(u32 *w, size_t len, struct mgpu_virgl_info *info)
{
	__le32 *block = grab(len * 4);
	size_t i;
	int ret;

	for (i = 0; i < len; i++)
		block[i] = cpu_to_le32(w[i]);
	ret = mgpu_virgl_check(block, len * 4, &lookup, info);
	for (i = 0; i < len; i++)
		w[i] = le32_to_cpu(block[i]);
	free(block);
	TAP_EQ(!ret, info->why == MGPU_VIRGL_OK);
	return ret;
}

static int check_one(u32 *w, struct mgpu_virgl_info *info)
{
	return check(w, (w[0] >> 16) + 1, info);
}

/* Lengths worth trying of a command: some short, the last, or the only one. */
static u32 some_length(const struct proto *p, u32 i)
{
	if (!p->step)
		return p->min;
	if (i < 4)
		return p->min + i * p->step > p->max ? p->max :
						      p->min + i * p->step;
	return p->max < MAX_LEN ? p->max : MAX_LEN / p->step * p->step + p->min;
}

static void every_command(void)
{
	struct mgpu_virgl_info info;
	u32 w[2 * MAX_LEN], i, j, len;

	for (i = 0; i < NR_PROTOS; i++) {
		for (j = 0; j < 5; j++) {
			len = some_length(&protos[i], j);
			build(&protos[i], len, w);
			if (!TAP_EQ(check_one(w, &info), 0))
				tap_diag("%s of %u: %s", protos[i].name, len,
					 mgpu_virgl_why(info.why));
			TAP_EQ(info.commands, 1);
			TAP_EQ(info.opcode, protos[i].op);
		}
	}
}

static void handles_rewritten(void)
{
	struct mgpu_virgl_info info;
	u32 before[2 * MAX_LEN], w[2 * MAX_LEN], i, j, k, len;
	const struct proto *p;
	u32 seen = 0;

	for (i = 0; i < NR_PROTOS; i++) {
		p = &protos[i];
		for (j = 0; j < 5; j++) {
			len = some_length(p, j);
			build(p, len, before);
			memcpy(w, before, (len + 1) * 4);
			check_one(w, &info);
			for (k = p->op == DEBUG_FLAGS; k <= len; k++) {
				seen += is_handle(p, k, len);
				if (!TAP_EQ(w[k], is_handle(p, k, len) ?
					    host_of(before[k]) : before[k]))
					tap_diag("%s, word %u", p->name, k);
			}
		}
	}
	TAP_CHECK(seen > 200);
}

/* Calls @one for every place of a handle in a good command. */
static void each_handle(void (*one)(const struct proto *p, u32 *w, u32 at))
{
	u32 w[2 * MAX_LEN], i, j, k, len;
	const struct proto *p;

	for (i = 0; i < NR_PROTOS; i++) {
		p = &protos[i];
		for (j = 0; j < 5; j++) {
			len = some_length(p, j);
			for (k = 1; k <= len; k++) {
				if (!is_handle(p, k, len))
					continue;
				build(p, len, w);
				one(p, w, k);
			}
		}
	}
}

static void one_zero(const struct proto *p, u32 *w, u32 at)
{
	bool may = p->every || p->zero;
	struct mgpu_virgl_info info;

	w[at] = 0;
	if (!TAP_EQ(check_one(w, &info), may ? 0 : -ENOENT))
		tap_diag("%s, word %u", p->name, at);
	TAP_EQ(info.why, may ? MGPU_VIRGL_OK : MGPU_VIRGL_RESOURCE);
	TAP_EQ(w[at], 0);
}

static void zero_handles(void)
{
	each_handle(one_zero);
}

static void one_foreign(const struct proto *p, u32 *w, u32 at)
{
	static const u32 foreign[] = {
		FOREIGN, 0x7fffffff, 0xffffffff, 0x80000000u + 30, 1u << 16
	};
	struct mgpu_virgl_info info;
	u32 stream[2 * MAX_LEN + 2], i;

	for (i = 0; i < 5; i++) {
		/* A command before it, so that the place is not the start. */
		stream[0] = 1 << 16;
		stream[1] = 5;
		memcpy(stream + 2, w, ((w[0] >> 16) + 1) * 4);
		stream[2 + at] = foreign[i];
		if (!TAP_EQ(check(stream, (w[0] >> 16) + 3, &info), -ENOENT))
			tap_diag("%s, word %u", p->name, at);
		TAP_EQ(info.why, MGPU_VIRGL_RESOURCE);
		TAP_EQ(info.offset, 8);
		TAP_EQ(info.opcode, p->op);
		TAP_EQ(info.object, p->obj);
		TAP_EQ(info.value, foreign[i]);
		TAP_EQ(info.commands, 1);
	}
}

static void foreign_handles(void)
{
	each_handle(one_foreign);
}

static void lengths(void)
{
	u32 *w = grab(65536 * 4), i, j, len, step;
	struct mgpu_virgl_info info;
	bool good;
	int ret;

	for (i = 0; i < NR_PROTOS; i++) {
		for (len = 0; len <= 65535; len += step) {
			step = len < MAX_LEN ? 1 : 8135;
			good = false;
			for (j = 0; j < NR_PROTOS; j++)
				good |= same(&protos[i], &protos[j]) &&
					has_length(&protos[j], len);
			build(&protos[i], len, w);
			/* Too short for its count. */
			if (len < 2 && protos[i].op == FRAMEBUFFER)
				w[1] = 0;
			ret = check_one(w, &info);
			if (!TAP_EQ(!ret, good))
				tap_diag("%s of %u", protos[i].name, len);
			if (!good)
				TAP_EQ(ret, -EINVAL);
		}
	}
	/* A marker without a text. */
	w[0] = 51 | 1 << 16;
	w[1] = 0;
	TAP_EQ(check_one(w, &info), -EINVAL);
	TAP_EQ(info.why, MGPU_VIRGL_LENGTH);
	free(w);
}

static void truncation(void)
{
	u32 *stream = grab(20000 * 4), *copy = grab(20000 * 4);
	struct mgpu_virgl_info info;
	bool ends[20000] = { 0 };
	u32 i, at = 0, len;
	__le32 odd[4] = { 0 };

	ends[0] = true;
	for (i = 0; i < NR_PROTOS; i++) {
		len = some_length(&protos[i], 2);
		build(&protos[i], len, stream + at);
		at += len + 1;
		ends[at] = true;
	}
	for (i = 0; i <= at; i++) {
		memcpy(copy, stream, at * 4);
		if (ends[i]) {
			TAP_EQ(check(copy, i, &info), 0);
		} else {
			TAP_EQ(check(copy, i, &info), -EINVAL);
			TAP_EQ(info.why, MGPU_VIRGL_CUT);
			TAP_CHECK(info.offset < i * 4 && ends[info.offset / 4]);
		}
	}
	for (i = 1; i < 16; i++) {
		TAP_EQ(mgpu_virgl_check(odd, i, &lookup, &info),
		       i % 4 ? -EINVAL : 0);
		TAP_EQ(info.why, i % 4 ? MGPU_VIRGL_ODD : MGPU_VIRGL_OK);
	}
	free(stream);
	free(copy);
}

static void unknown_commands(void)
{
	u32 w[24], op, obj, len, i, refused = 0;
	struct mgpu_virgl_info info;
	bool known;

	for (op = 0; op < 256; op++) {
		known = false;
		for (i = 0; i < NR_PROTOS; i++)
			known |= protos[i].op == op;
		for (len = 0; !known && len < 24; len++) {
			for (i = 1; i < 24; i++)
				w[i] = DECOY;
			w[0] = op | len << 16;
			TAP_EQ(check_one(w, &info), -EOPNOTSUPP);
			TAP_EQ(info.why, MGPU_VIRGL_OPCODE);
			TAP_EQ(info.opcode, op);
		}
		refused += !known;
	}
	/* All but 0 to 47, 49, 51, 52 and 62: blobs, video and the future. */
	TAP_EQ(refused, 256 - 52);

	for (op = 1; op <= 3; op++) {
		for (obj = 0; obj < 256; obj++) {
			known = op == 3 && obj && obj < 12;
			for (i = 0; i < NR_PROTOS; i++)
				known |= protos[i].op == op &&
					 protos[i].obj == obj;
			for (len = 1; len < 24; len++) {
				w[0] = op | obj << 8 | len << 16;
				for (i = 1; i < 24; i++)
					w[i] = DECOY;
				if (known || (op != 1 && len != 1))
					continue;
				TAP_EQ(check_one(w, &info), -EOPNOTSUPP);
				TAP_EQ(info.why, MGPU_VIRGL_OBJECT);
			}
			if (!known || op == 1)
				continue;
			w[0] = op | obj << 8 | 1 << 16;
			TAP_EQ(check_one(w, &info), 0);
		}
	}
}

static void values(void)
{
	static const struct {
		u32 op, obj, len, word, good, bad;
	} t[] = {
		{ CREATE, 1, 11, 1, 1, 0 },
		{ CREATE, 8, 5, 1, 0xffffffff, 0 },
		{ CREATE, 4, 5, 2, 5, 6 },
		{ CREATE, 4, 5, 3, 32 << 20, (32 << 20) + 1 },
		{ CREATE, 4, 5, 3, 0x80000000, 0xffffffff },
		{ CREATE, 4, 11, 5, 1, 2 },
		{ CREATE, 4, 137, 5, 64, 65 },
		{ CREATE, 4, 200, 5, 64, 0xffffffff },
		{ CREATE, 5, 9, 4, 31, 32 },
		{ CREATE, 5, 9, 8, 31, 32 },
		{ 4, 0, 7, 1, 15, 16 },
		{ 4, 0, 97, 1, 0, 1 },
		{ 4, 0, 7, 1, 0, 0xffffffff },
		{ FRAMEBUFFER, 0, 4, 1, 2, 3 },
		{ FRAMEBUFFER, 0, 10, 1, 8, 9 },
		{ 10, 0, 3, 1, 5, 6 },
		{ 10, 0, 3, 2, 127, 128 },
		{ 10, 0, 130, 2, 0, 1 },
		{ 12, 0, 3, 1, 5, 6 },
		{ 15, 0, 3, 1, 15, 16 },
		{ 15, 0, 33, 1, 0, 1 },
		{ 18, 0, 3, 1, 5, 6 },
		{ 18, 0, 3, 2, 31, 32 },
		{ 18, 0, 34, 2, 0, 1 },
		{ 27, 0, 5, 1, 5, 6 },
		{ 27, 0, 5, 2, 31, 32 },
		{ 31, 0, 2, 2, 5, 6 },
		{ 34, 0, 5, 1, 5, 6 },
		{ 34, 0, 5, 2, 31, 32 },
		{ 34, 0, 5, 2, 0, 0xffffffff },
		{ 34, 0, 98, 2, 0, 1 },
		{ 35, 0, 7, 1, 5, 6 },
		{ 35, 0, 7, 2, 63, 64 },
		{ 35, 0, 322, 2, 0, 1 },
		{ 40, 0, 4, 1, 31, 32 },
		{ 40, 0, 97, 1, 0, 1 },
		{ TRANSFER3D, 0, 13, 13, 2, 3 },
		{ TRANSFER3D, 0, 13, 13, 1, 0 },
		{ 51, 0, 4, 1, 12, 13 },
		{ 51, 0, 4, 1, 0, 0xffffffff },
	};
	struct mgpu_virgl_info info;
	u32 w[2 * MAX_LEN], i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		build(proto_of(t[i].op, t[i].obj, t[i].len), t[i].len, w);
		w[t[i].word] = t[i].good;
		if (!TAP_EQ(check_one(w, &info), 0))
			tap_diag("row %u, good", i);
		build(proto_of(t[i].op, t[i].obj, t[i].len), t[i].len, w);
		w[t[i].word] = t[i].bad;
		if (!TAP_EQ(check_one(w, &info), -EINVAL))
			tap_diag("row %u, bad", i);
		if (info.why == MGPU_VIRGL_VALUE)
			TAP_EQ(info.value, t[i].bad);
		else
			TAP_EQ(info.why, MGPU_VIRGL_LENGTH);
	}
	/* Of a compute shader the word is its memory, not a count. */
	build(proto_of(CREATE, 4, 6), 6, w);
	w[2] = 5;
	w[5] = 49152;
	TAP_EQ(check_one(w, &info), 0);
}

static void accounting(void)
{
	static const u32 ops[] = {
		DRAW, DRAW, DRAW, 37, 37, 7, 16, 17, 47, 62, 29, 29, 30, 13
	};
	struct mgpu_virgl_info info;
	u32 w[MAX_LEN], at = 0, i, j;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		for (j = 0; protos[j].op != ops[i]; j++)
			;
		build(&protos[j], protos[j].min, w + at);
		at += protos[j].min + 1;
	}
	build(proto_of(CREATE, 8, 5), 5, w + at);
	at += 6;
	build(proto_of(3, 4, 1), 1, w + at);
	at += 2;
	/* 3 x 2 pixels of 4 bytes from rows of 64; 5 x 5 of them */
	build(proto_of(TRANSFER3D, 0, 13), 13, w + at);
	w[at + 9] = 3;
	w[at + 10] = 2;
	at += 14;
	build(proto_of(COPY_TRANSFER3D, 0, 14), 14, w + at);
	w[at + 4] = 20;
	w[at + 9] = 5;
	w[at + 10] = 5;
	at += 15;
	build(proto_of(INLINE_WRITE, 0, 13), 13, w + at);
	w[at + 9] = 2;
	at += 14;
	TAP_EQ(check(w, at, &info), 0);
	TAP_EQ(info.commands, 19);
	TAP_EQ(info.draws, 3);
	TAP_EQ(info.dispatches, 2);
	TAP_EQ(info.copies, 5);
	TAP_EQ(info.subs_made, 2);
	TAP_EQ(info.subs_gone, 1);
	TAP_EQ(info.objects_made, 1);
	TAP_EQ(info.objects_gone, 1);
	TAP_EQ(info.bytes, 3 * 2 * 4 + 5 * 5 * 4 + 2 * 4);
}

static void debug_flags(void)
{
	u32 w[3] = { DEBUG_FLAGS | 2 << 16, 0x6c6c61, 0 };
	struct mgpu_virgl_info info;

	TAP_EQ(check(w, 3, &info), 0);
	TAP_EQ(w[0], 2 << 16);
}

/* A buffer that stays mapped, and what it may not be instead. */
static void storage_of_blobs(void)
{
	static const u32 good[12] = {
		PIPE_CREATE | 11 << 16, 0, 64, 0x10, 8192, 1, 1, 1, 0, 0, 2 | 4, 77,
	};
	static const struct set bad[] = {
		{ 1, 2 }, { 1, 9 },			/* target */
		{ 2, 400 },				/* format */
		{ 3, 0x20000 }, { 3, 0x80000 },		/* in no GL buffer */
		{ 3, 4 },
		{ 4, 0 }, { 4, 8191 }, { 4, 8193 }, { 4, 0x80000000 }, { 4, 0xfffff000 },
		{ 5, 2 }, { 6, 2 }, { 7, 2 }, { 8, 1 }, { 9, 2 },
		{ 10, 0 }, { 10, 4 }, { 10, 2 | 8 }, { 10, 2 | 1 },
		{ 11, 0 },
	};
	struct mgpu_virgl_shape shape;
	struct mgpu_virgl_info info;
	__le32 again[12];
	u32 w[24], id, i;

	memcpy(w, good, sizeof(good));
	TAP_EQ(check_one(w, &info), -EOPNOTSUPP);
	TAP_EQ(info.blobs, 0);
	lookup.blobs = true;
	for (i = 0; i < 2; i++) {
		memcpy(w, good, sizeof(good));
		w[10] = i ? 2 : 2 | 4;
		TAP_EQ(check_one(w, &info), 0);
		TAP_EQ(info.blobs, 1);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(w, good, sizeof(good));
		w[bad[i].word] = bad[i].value;
		if (!TAP_EQ(check_one(w, &info), -EINVAL))
			tap_diag("word %u is %#x", bad[i].word, bad[i].value);
		TAP_EQ(info.why, MGPU_VIRGL_VALUE);
		TAP_EQ(info.blobs, 0);
	}
	memset(w, 0, sizeof(w));
	for (i = 10; i <= 12; i++) {
		memcpy(w, good, sizeof(good));
		w[0] = PIPE_CREATE | i << 16;
		TAP_EQ(check_one(w, &info), i == 11 ? 0 : -EINVAL);
	}
	lookup.blobs = false;

	/* Each word is where it was. */
	for (i = 1; i < 12; i++)
		w[i] = 100 + i;
	w[0] = good[0];
	for (i = 0; i < 12; i++)
		again[i] = cpu_to_le32(w[i]);
	mgpu_virgl_pipe_get(again, &shape, &id);
	TAP_EQ(shape.width, 104);
	TAP_EQ(shape.flags, 110);
	TAP_EQ(id, 111);
	memset(again, 0, sizeof(again));
	mgpu_virgl_pipe_put(again, &shape, id);
	for (i = 0; i < 12; i++)
		TAP_EQ(le32_to_cpu(again[i]), w[i]);
}

static void transfers_in_streams(void)
{
	struct mgpu_virgl_info info;
	u32 w[MAX_LEN];

	/* The last pixel, and one beyond in each direction. */
	build(proto_of(TRANSFER3D, 0, 13), 13, w);
	w[6] = 63;
	w[7] = 63;
	w[12] = 64 * 64 * 4 - 4;
	TAP_EQ(check_one(w, &info), 0);
	w[1] = 10;
	w[12]++;
	TAP_EQ(check_one(w, &info), -ERANGE);
	TAP_EQ(info.why, MGPU_VIRGL_BOX);
	w[1] = 10;
	w[12] = 0;
	w[6] = 64;
	TAP_EQ(check_one(w, &info), -ERANGE);
	w[1] = 10;
	w[6] = 0xffffffff;
	TAP_EQ(check_one(w, &info), -ERANGE);
	w[1] = 10;
	w[6] = 0;
	w[2] = 1;
	TAP_EQ(check_one(w, &info), -ERANGE);

	/* The memory of a copy is the other resource's. */
	build(proto_of(COPY_TRANSFER3D, 0, 14), 14, w);
	w[9] = 64;
	w[10] = 64;
	TAP_EQ(check_one(w, &info), 0);
	pool[11].backing = 64 * 64 * 4 - 1;
	build(proto_of(COPY_TRANSFER3D, 0, 14), 14, w);
	w[9] = 64;
	w[10] = 64;
	TAP_EQ(check_one(w, &info), -ERANGE);
	pool[10].backing = 0;
	pool[11].backing = 64 * 64 * 4;
	build(proto_of(COPY_TRANSFER3D, 0, 14), 14, w);
	w[9] = 64;
	w[10] = 64;
	TAP_EQ(check_one(w, &info), 0);
	build(proto_of(TRANSFER3D, 0, 13), 13, w);
	TAP_EQ(check_one(w, &info), -ERANGE);
	fill_pool();

	/* Layers go into a resource together, and come out one by one. */
	pool[10].shape.target = MGPU_VIRGL_2D_ARRAY;
	pool[10].shape.array_size = 2;
	pool[10].backing = 2 * 64 * 64 * 4;
	pool[11].backing = 2 * 64 * 64 * 4;
	build(proto_of(TRANSFER3D, 0, 13), 13, w);
	w[11] = 2;
	w[13] = 1;
	TAP_EQ(check_one(w, &info), 0);
	w[1] = 10;
	w[13] = 2;
	TAP_EQ(check_one(w, &info), -ERANGE);
	TAP_EQ(info.why, MGPU_VIRGL_BOX);
	w[1] = 10;
	w[11] = 1;
	TAP_EQ(check_one(w, &info), 0);
	build(proto_of(COPY_TRANSFER3D, 0, 14), 14, w);
	w[11] = 2;
	w[14] = 1;
	TAP_EQ(check_one(w, &info), 0);
	build(proto_of(COPY_TRANSFER3D, 0, 14), 14, w);
	w[11] = 2;
	w[14] = 2;
	TAP_EQ(check_one(w, &info), -ERANGE);
	fill_pool();

	/* Data of 7 words hold 7 pixels, not 8. */
	build(proto_of(INLINE_WRITE, 0, 18), 18, w);
	w[9] = 7;
	TAP_EQ(check_one(w, &info), 0);
	w[1] = 10;
	w[9] = 8;
	TAP_EQ(check_one(w, &info), -ERANGE);
}

/* An accepted stream names only objects of the host, and is otherwise unchanged. */
static bool only_translated(const u32 *before, const u32 *after, size_t len,
			    u32 commands)
{
	const struct proto *p;
	size_t at = 0;
	u32 i, n;

	while (at < len) {
		n = before[at] >> 16;
		p = proto_of(before[at] & 0xff, before[at] >> 8 & 0xff, n);
		if (!p && (before[at] & 0xff) == 3 && n == 1)
			p = proto_of(3, 1, 1);
		if (!TAP_CHECK(p && at + n < len))
			return false;
		for (i = 1; i <= n; i++) {
			if (!is_handle(p, i, n)) {
				if (after[at + i] != before[at + i])
					return false;
			} else if (before[at + i] ?
				   !is_host(after[at + i]) ||
				   after[at + i] != host_of(before[at + i]) :
				   after[at + i]) {
				return false;
			}
		}
		if (p->op != DEBUG_FLAGS && after[at] != before[at])
			return false;
		at += n + 1;
		commands--;
	}
	return !commands;
}

static u32 random_word(void)
{
	switch (below(6)) {
	case 0:
		return rnd();
	case 1:
		return 0;
	case 2:
		return 1u << below(32);
	case 3:
		return below(64) | below(12) << 8 | below(24) << 16;
	default:
		return below(NR_RES + 3);
	}
}

static void random_streams(void)
{
	u32 *w = grab(8192 * 4), *before = grab(8192 * 4);
	struct mgpu_virgl_info info;
	u32 i, n, j, k, len, at, good = 0, many = 0;
	const struct proto *p;

	for (i = 0; i < RANDOM_STREAMS; i++) {
		at = 0;
		n = below(9);
		for (j = 0; j < n; j++) {
			p = &protos[below(NR_PROTOS)];
			len = p->step ? p->min + p->step * below(8) : p->min;
			build(p, len, w + at);
			if (one_in(2))
				for (k = 1; k <= len; k++)
					if (is_handle(p, k, len))
						w[at + k] = 1 + below(NR_RES);
			if (one_in(6) && len)
				w[at + 1 + below(len)] = random_word();
			if (one_in(60))
				w[at] ^= 1u << below(32);
			at += len + 1;
		}
		if (one_in(20))
			for (j = below(20); j; j--)
				w[at++] = random_word();
		memcpy(before, w, at * 4);
		calls = 0;
		if (check(w, at, &info))
			continue;
		good++;
		many += info.commands > 3;
		TAP_CHECK(calls <= at);
		if (!TAP_CHECK(only_translated(before, w, at, info.commands)))
			break;
	}
	TAP_CHECK(good > RANDOM_STREAMS / 4);
	TAP_CHECK(many > RANDOM_STREAMS / 20);
	free(w);
	free(before);
}

/* Formats by number: a letter and the bits of each channel. */
static const char * const plain[] = {
	"1 B8G8R8A8 2 B8G8R8X8 3 A8R8G8B8 4 X8R8G8B8 5 B5G5R5A1 6 B4G4R4A4 ",
	"7 B5G6R5 8 R10G10B10A2 9 L8 10 A8 11 I8 12 L8A8 13 L16 16 Z16 ",
	"17 Z32 18 Z32 21 Z24X8 22 X8Z24 23 S8 24 R64 25 R64G64 ",
	"26 R64G64B64 27 R64G64B64A64 28 R32 29 R32G32 30 R32G32B32 ",
	"31 R32G32B32A32 32 R32 33 R32G32 34 R32G32B32 35 R32G32B32A32 ",
	"36 R32 37 R32G32 38 R32G32B32 39 R32G32B32A32 40 R32 41 R32G32 ",
	"42 R32G32B32 43 R32G32B32A32 44 R32 45 R32G32 46 R32G32B32 ",
	"47 R32G32B32A32 48 R16 49 R16G16 50 R16G16B16 51 R16G16B16A16 ",
	"52 R16 53 R16G16 54 R16G16B16 55 R16G16B16A16 56 R16 57 R16G16 ",
	"58 R16G16B16 59 R16G16B16A16 60 R16 61 R16G16 62 R16G16B16 ",
	"63 R16G16B16A16 64 R8 65 R8G8 66 R8G8B8 67 R8G8B8A8 68 X8B8G8R8 ",
	"69 R8 70 R8G8 71 R8G8B8 72 R8G8B8A8 74 R8 75 R8G8 76 R8G8B8 ",
	"77 R8G8B8A8 82 R8 83 R8G8 84 R8G8B8 85 R8G8B8A8 87 R32 88 R32G32 ",
	"89 R32G32B32 90 R32G32B32A32 91 R16 92 R16G16 93 R16G16B16 ",
	"94 R16G16B16A16 95 L8 96 L8A8 97 R8G8B8 98 A8B8G8R8 99 X8B8G8R8 ",
	"100 B8G8R8A8 101 B8G8R8X8 102 A8R8G8B8 103 X8R8G8B8 104 R8G8B8A8 ",
	"121 A8B8G8R8 122 B5G5R5X1 123 R10G10B10A2 124 R11G11B10 ",
	"125 R9G9B9E5 128 R10G10B10X2 129 R10G10B10X2 130 L4A4 ",
	"131 B10G10R10A2 134 R8G8B8X8 135 B4G4R4X4 136 X24S8 137 S8X24 ",
	"139 B2G3R3 140 L16A16 141 A16 142 I16 147 A8 148 L8 149 L8A8 ",
	"150 I8 151 A16 152 L16 153 L16A16 154 I16 155 A16 156 L16 ",
	"157 L16A16 158 I16 159 A32 160 L32 161 L32A32 162 I32 168 A4R4 ",
	"169 R4A4 170 R8A8 171 A8R8 172 R10G10B10A2 173 R10G10B10A2 ",
	"174 B10G10R10A2 175 B10G10R10A2 176 B10G10R10A2 177 R8 178 R8G8 ",
	"179 R8G8B8 180 R8G8B8A8 181 R8 182 R8G8 183 R8G8B8 184 R8G8B8A8 ",
	"185 R16 186 R16G16 187 R16G16B16 188 R16G16B16A16 189 R16 ",
	"190 R16G16 191 R16G16B16 192 R16G16B16A16 193 R32 194 R32G32 ",
	"195 R32G32B32 196 R32G32B32A32 197 R32 198 R32G32 199 R32G32B32 ",
	"200 R32G32B32A32 201 A8 202 I8 203 L8 204 L8A8 205 A8 206 I8 ",
	"207 L8 208 L8A8 209 A16 210 I16 211 L16 212 L16A16 213 A16 ",
	"214 I16 215 L16 216 L16A16 217 A32 218 I32 219 L32 220 L32A32 ",
	"221 A32 222 I32 223 L32 224 L32A32 225 B10G10R10A2 229 R8G8B8X8 ",
	"230 R8G8B8X8 231 R8G8B8X8 232 R8G8B8X8 233 B10G10R10X2 ",
	"234 R16G16B16X16 235 R16G16B16X16 236 R16G16B16X16 ",
	"237 R16G16B16X16 238 R16G16B16X16 239 R32G32B32X32 ",
	"240 R32G32B32X32 241 R32G32B32X32 242 R8A8 243 R16A16 244 R16A16 ",
	"245 R16A16 246 R32A32 247 R8A8 248 R8A8 249 R16A16 250 R16A16 ",
	"251 R32A32 252 R32A32 253 R10G10B10A2 254 B5G6R5 259 A8L8 ",
	"260 A8L8 261 A8L8 262 A1B5G5R5 263 A1R5G5B5 264 A2B10G10R10 ",
	"265 A2R10G10B10 266 A4R4G4B4 267 A8B8G8R8 268 X8B8G8R8 ",
	"308 R10G10B10X2 311 A4B4G4R4 312 R8 313 R8G8 317 B8G8R8 ",
	"318 R3G3B2 319 R4G4B4A4 320 R5G5B5A1 321 R5G6B5 ",
};

static void formats(void)
{
	static const struct {
		u32 from, to, bytes, width, height;
	} other[] = {
		{ 14, 15, 4, 2, 1 }, { 19, 20, 4, 1, 1 },
		{ 105, 106, 8, 4, 4 }, { 107, 108, 16, 4, 4 },
		{ 109, 110, 8, 4, 4 }, { 111, 112, 16, 4, 4 },
		{ 113, 114, 8, 4, 4 }, { 115, 116, 16, 4, 4 },
		{ 117, 118, 4, 2, 1 }, { 119, 119, 4, 1, 1 },
		{ 120, 120, 2, 1, 1 }, { 126, 126, 8, 1, 1 },
		{ 132, 132, 4, 1, 1 }, { 133, 133, 2, 1, 1 },
		{ 138, 138, 8, 1, 1 }, { 143, 144, 8, 4, 4 },
		{ 145, 146, 16, 4, 4 }, { 226, 226, 8, 4, 4 },
		{ 227, 228, 4, 2, 1 }, { 255, 258, 16, 4, 4 },
		{ 269, 272, 8, 4, 4 }, { 273, 274, 16, 4, 4 },
		{ 275, 276, 8, 4, 4 }, { 277, 278, 16, 4, 4 },
	};
	static const u32 astc[] = {
		4, 4, 5, 4, 5, 5, 6, 5, 6, 6, 8, 5, 8, 6, 8, 8, 10, 5, 10, 6,
		10, 8, 10, 10, 12, 10, 12, 12
	};
	struct mgpu_virgl_block want[400] = { { 0 } }, b;
	const char *s;
	u32 i, j, line;
	char *end;

	for (line = 0; line < sizeof(plain) / sizeof(plain[0]); line++) {
		for (s = plain[line]; *s; s++) {
			i = strtoul(s, &end, 10);
			s = end + 1;
			for (j = 0; *s != ' '; s = end)
				j += strtoul(s + 1, &end, 10);
			TAP_NEED(i < 400 && j % 8 == 0);
			want[i] = (struct mgpu_virgl_block){ j / 8, 1, 1 };
		}
	}
	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		for (j = other[i].from; j <= other[i].to; j++)
			want[j] = (struct mgpu_virgl_block){
				other[i].bytes, other[i].width, other[i].height
			};
	for (i = 0; i < 28; i++)
		want[279 + i] = (struct mgpu_virgl_block){
			16, astc[2 * i % 28], astc[2 * i % 28 + 1]
		};
	for (i = 0; i < 400; i++) {
		if (!TAP_EQ(mgpu_virgl_format(i, &b), !!want[i].bytes))
			tap_diag("format %u", i);
		if (want[i].bytes && mgpu_virgl_format(i, &b) &&
		    !TAP_CHECK(b.bytes == want[i].bytes &&
			       b.width == want[i].width &&
			       b.height == want[i].height))
			tap_diag("format %u", i);
	}
	TAP_CHECK(!mgpu_virgl_format(0xffffffff, &b));
}

static struct mgpu_virgl_shape shape(u32 target, u32 format, u32 width,
				     u32 height, u32 depth, u32 layers,
				     u32 last_level, u32 samples)
{
	return (struct mgpu_virgl_shape){
		.target = target, .format = format, .bind = 8, .width = width,
		.height = height, .depth = depth, .array_size = layers,
		.last_level = last_level, .nr_samples = samples,
	};
}

static void resource_sizes(void)
{
	static const struct {
		u32 target, format, w, h, d, layers, levels, samples;
		u64 bytes;		/* 0: refused */
	} t[] = {
		{ 0, 64, 1, 1, 1, 1, 0, 0, 4096 },
		{ 0, 64, 4097, 1, 1, 1, 0, 0, 8192 },
		{ 0, 0, 100, 1, 1, 1, 0, 0, 4096 },
		{ 0, 31, 4096, 1, 1, 1, 0, 0, 4096 },
		{ 0, 64, 0x7fffffff, 1, 1, 1, 0, 0, 1ULL << 31 },
		{ 0, 64, 0x80000000, 1, 1, 1, 0, 0, 0 },
		{ 0, 31, 0x07ffffff, 1, 1, 1, 0, 0, 1ULL << 27 },
		{ 0, 31, 0x08000000, 1, 1, 1, 0, 0, 0 },
		{ 0, 166, 100, 1, 1, 1, 0, 0, 0 },
		{ 0, 400, 100, 1, 1, 1, 0, 0, 0 },
		{ 0, 64, 0, 1, 1, 1, 0, 0, 0 },
		{ 0, 64, 64, 2, 1, 1, 0, 0, 0 },
		{ 0, 64, 64, 0, 1, 1, 0, 0, 0 },
		{ 0, 64, 64, 1, 2, 1, 0, 0, 0 },
		{ 0, 64, 64, 1, 1, 2, 0, 0, 0 },
		{ 0, 64, 64, 1, 1, 1, 1, 0, 0 },
		{ 0, 64, 64, 1, 1, 1, 0, 2, 0 },
		{ 1, 67, 1024, 1, 1, 1, 0, 0, 4096 },
		{ 1, 67, 1024, 2, 1, 1, 0, 0, 0 },
		{ 1, 67, 16384, 1, 1, 1, 14, 0, 131072 },
		{ 1, 67, 16385, 1, 1, 1, 0, 0, 0 },
		{ 2, 1, 1920, 1080, 1, 1, 0, 0, 8294400 },
		{ 2, 1, 1920, 1080, 1, 1, 0, 1, 8294400 },
		{ 2, 1, 1920, 1080, 1, 1, 0, 4, 4 * 8294400 },
		{ 2, 1, 1920, 1080, 1, 1, 0, 32, 32 * 8294400 },
		{ 2, 1, 1920, 1080, 1, 1, 0, 3, 0 },
		{ 2, 1, 1920, 1080, 1, 1, 0, 64, 0 },
		{ 2, 1, 1920, 1080, 1, 1, 1, 4, 0 },
		{ 2, 1, 0, 1080, 1, 1, 0, 0, 0 },
		{ 2, 1, 1920, 0, 1, 1, 0, 0, 0 },
		{ 2, 1, 1920, 1080, 0, 1, 0, 0, 0 },
		{ 2, 1, 1920, 1080, 1, 0, 0, 0, 0 },
		{ 2, 1, 1920, 1080, 2, 1, 0, 0, 0 },
		{ 2, 1, 1920, 1080, 1, 2, 0, 0, 0 },
		{ 2, 0, 1920, 1080, 1, 1, 0, 0, 0 },
		{ 2, 166, 1920, 1080, 1, 1, 0, 0, 0 },
		{ 2, 322, 1920, 1080, 1, 1, 0, 0, 0 },
		/* 4 x (4096 + 1024 + 256 + 64 + 16 + 4 + 1) */
		{ 2, 1, 64, 64, 1, 1, 6, 0, 24576 },
		{ 2, 1, 64, 64, 1, 1, 7, 0, 0 },
		{ 2, 1, 64, 1, 1, 1, 6, 0, 4096 },
		{ 2, 1, 64, 64, 1, 1, 0xffffffff, 0, 0 },
		{ 2, 1, 64, 64, 1, 1, 32, 0, 0 },
		/* 17 x 17 pixels are 5 x 5 blocks */
		{ 2, 105, 1020, 1020, 1, 1, 0, 0, 520200 + 4088 },
		{ 2, 94, 16384, 16384, 1, 1, 0, 0, 1ULL << 31 },
		{ 2, 94, 16384, 16384, 1, 1, 0, 32, 1ULL << 36 },
		{ 2, 31, 16384, 16384, 1, 1, 0, 0, 0 },
		{ 2, 31, 16383, 16384, 1, 1, 0, 0, 4294705152 },
		{ 2, 31, 16383, 16384, 1, 1, 1, 0, 0 },
		{ 2, 31, 16385, 16384, 1, 1, 0, 0, 0 },
		{ 2, 31, 16384, 16385, 1, 1, 0, 0, 0 },
		{ 3, 67, 64, 64, 64, 1, 0, 0, 1 << 20 },
		/* 4 x (8 + 1), 4 x (512 + 64 + 8 + 1) */
		{ 3, 67, 2, 2, 2, 1, 1, 0, 4096 },
		{ 3, 67, 8, 8, 64, 1, 6, 0, 20480 },
		{ 3, 67, 8, 8, 64, 1, 7, 0, 0 },
		{ 3, 67, 8, 8, 64, 2, 0, 0, 0 },
		{ 4, 67, 32, 32, 1, 6, 0, 0, 24576 },
		{ 4, 67, 32, 16, 1, 6, 0, 0, 0 },
		{ 4, 67, 32, 32, 1, 5, 0, 0, 0 },
		{ 4, 67, 32, 32, 1, 12, 0, 0, 0 },
		{ 5, 67, 32, 32, 1, 1, 0, 0, 4096 },
		{ 5, 67, 32, 32, 1, 1, 1, 0, 0 },
		{ 5, 67, 32, 32, 1, 1, 0, 2, 0 },
		{ 6, 67, 1024, 1, 1, 3, 0, 0, 12288 },
		{ 6, 67, 1024, 2, 1, 3, 0, 0, 0 },
		{ 7, 67, 32, 32, 1, 3, 0, 0, 12288 },
		{ 7, 67, 32, 32, 1, 3, 0, 2, 24576 },
		{ 7, 67, 32, 32, 2, 3, 0, 0, 0 },
		{ 7, 67, 32, 32, 1, 16385, 0, 0, 0 },
		{ 7, 27, 16384, 16384, 1, 16384, 0, 32, 0 },
		{ 8, 67, 32, 32, 1, 12, 0, 0, 49152 },
		{ 8, 67, 32, 32, 1, 13, 0, 0, 0 },
		{ 8, 67, 32, 16, 1, 12, 0, 0, 0 },
		{ 9, 67, 32, 32, 1, 1, 0, 0, 0 },
		{ 0xffffffff, 67, 32, 32, 1, 1, 0, 0, 0 },
	};
	struct mgpu_virgl_shape s;
	u64 bytes;
	u32 i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		s = shape(t[i].target, t[i].format, t[i].w, t[i].h, t[i].d,
			  t[i].layers, t[i].levels, t[i].samples);
		bytes = 0;
		if (!TAP_EQ(mgpu_virgl_resource_bytes(&s, &bytes),
			    t[i].bytes ? 0 : -EINVAL) ||
		    !TAP_EQ(bytes, t[i].bytes))
			tap_diag("row %u", i);
	}
	s = shape(2, 67, 32, 32, 1, 1, 0, 0);
	for (i = 0; i < 32; i++) {
		s.flags = 1u << i;
		TAP_EQ(mgpu_virgl_resource_bytes(&s, &bytes),
		       i < 3 ? 0 : -EINVAL);
	}
	s.flags = 0;
	for (i = 0; i < 32; i++) {
		s.bind = 1u << i;
		TAP_EQ(mgpu_virgl_resource_bytes(&s, &bytes),
		       i == 2 || i == 9 || i == 10 || i == 12 || i == 13 ||
		       i == 23 ? -EINVAL : 0);
	}
	s = shape(3, 67, 32, 32, 4, 1, 0, 0);
	s.flags = MGPU_VIRGL_Y_0_TOP;
	TAP_EQ(mgpu_virgl_resource_bytes(&s, &bytes), -EINVAL);
}

/*
 * The same by marking every byte.  Returns false when the box leaves the level
 * or two of its bytes are one in memory; @end: after the last byte, @moved: how
 * many there are.
 */
static bool mark(const struct mgpu_virgl_shape *s,
		 const struct mgpu_virgl_transfer *t,
		 const struct mgpu_virgl_block *b, u64 *end, u64 *moved)
{
	static u8 map[1 << 16];
	u32 lw = s->width >> t->level, lh = s->height >> t->level;
	u32 ld = s->target == 3 ? s->depth >> t->level : s->array_size;
	u64 stride, layer, at;
	u32 x, y, z, i;
	bool ok = true;

	lw += !lw;
	lh += !lh;
	ld += !ld;
	if (t->level > s->last_level || (u64)t->box.x + t->box.width > lw ||
	    (u64)t->box.y + t->box.height > lh ||
	    (u64)t->box.z + t->box.depth > ld)
		return false;
	stride = t->stride ? t->stride : (lw + b->width - 1) / b->width * b->bytes;
	layer = t->layer_stride ? t->layer_stride :
		stride * ((lh + b->height - 1) / b->height);
	memset(map, 0, sizeof(map));
	*end = 0;
	*moved = 0;
	for (z = 0; z < t->box.depth; z++)
		for (y = 0; y < t->box.height; y += b->height)
			for (x = 0; x < t->box.width; x += b->width)
				for (i = 0; i < b->bytes; i++) {
					at = z * layer + y / b->height * stride +
					     x / b->width * b->bytes + i;
					if (at >= sizeof(map))
						abort();
					ok &= !map[at];
					map[at] = 1;
					++*moved;
					if (at + 1 > *end)
						*end = at + 1;
				}
	return ok;
}

static void transfer_bounds(void)
{
	static const u32 some[] = { 64, 67, 66, 14, 105, 108, 280, 291 };
	u32 i, good = 0, tight = 0, lapped = 0;
	struct mgpu_virgl_transfer t;
	struct mgpu_virgl_block b;
	struct mgpu_virgl_shape s;
	u64 end, moved, bytes, backing;
	bool ok, fits;

	for (i = 0; i < RANDOM_BOXES; i++) {
		s = shape(1 + below(8), some[below(8)], 1 + below(20),
			  1 + below(20), 1, 1, 0, 0);
		if (s.target == 4 || s.target == 8) {
			s.height = s.width;
			s.array_size = 6;
		} else if (s.target == 3) {
			s.depth = 1 + below(5);
		} else if (s.target > 5) {
			s.array_size = 1 + below(5);
		}
		if (s.target == 1 || s.target == 6)
			s.height = 1;
		if (s.target != 5)
			while (s.last_level < 4 && one_in(2) &&
			       s.width >> (s.last_level + 1))
				s.last_level++;
		TAP_NEED(!mgpu_virgl_resource_bytes(&s, &bytes));
		mgpu_virgl_format(s.format, &b);

		memset(&t, 0, sizeof(t));
		t.level = below(s.last_level + 1 + one_in(20));
		t.box.width = below((s.width >> t.level) + 2);
		t.box.height = below((s.height >> t.level) + 2);
		t.box.depth = below(s.depth > 1 ? s.depth + 1 :
						  s.array_size + 2);
		t.box.x = one_in(2) ? 0 : below(8);
		t.box.y = one_in(2) ? 0 : below(4);
		t.box.z = one_in(2) ? 0 : below(3);
		t.stride = one_in(2) ? 0 : below(200);
		t.layer_stride = one_in(2) ? 0 : below(3000);
		t.offset = one_in(2) ? 0 : below(5000);

		end = 0;
		moved = 0;
		ok = mark(&s, &t, &b, &end, &moved);
		backing = t.offset + end;
		fits = mgpu_virgl_transfer_ok(&s, backing, &t, &bytes);
		if (fits) {
			good++;
			TAP_CHECK(ok);
			TAP_EQ(bytes, moved);
			/* A byte less, and it does not fit. */
			if (backing) {
				tight++;
				TAP_CHECK(!mgpu_virgl_transfer_ok(&s,
								  backing - 1,
								  &t, &bytes));
			}
		} else if (ok) {
			/* Slices between the rows of others. */
			lapped++;
			TAP_CHECK(t.layer_stride || t.stride);
			TAP_CHECK(t.box.depth > 1);
			TAP_CHECK(!t.layer_stride ||
				  t.layer_stride * (t.box.depth - 1) < end);
		}
		if (tap.bad > 10)
			break;
	}
	TAP_CHECK(good > RANDOM_BOXES / 20);
	TAP_CHECK(tight > RANDOM_BOXES / 40);
	TAP_CHECK(lapped < RANDOM_BOXES / 20);
}

/*
 * The transfers that fill a resource: they are in bounds, of a layer each where hosts take
 * no more, and move as many bytes as all levels have.
 */
static void whole_levels(void)
{
	static const struct {
		u32 target, format, w, h, d, layers, levels;
		bool by_layer;
		u64 bytes;
	} t[] = {
		{ 0, 64, 5000, 1, 1, 1, 0, false, 5000 },
		{ 0, 31, 5000, 1, 1, 1, 0, false, 5000 },
		{ 1, 67, 16, 1, 1, 1, 4, false, (16 + 8 + 4 + 2 + 1) * 4 },
		{ 2, 67, 20, 10, 1, 1, 2, false, (200 + 50 + 10) * 4 },
		{ 3, 67, 8, 8, 6, 1, 2, false, (64 * 6 + 16 * 3 + 4) * 4 },
		{ 4, 67, 4, 4, 1, 6, 1, true, (16 + 4) * 6 * 4 },
		{ 5, 67, 7, 5, 1, 1, 0, false, 35 * 4 },
		{ 6, 67, 8, 1, 1, 9, 1, true, (8 + 4) * 9 * 4 },
		{ 7, 67, 8, 4, 1, 9, 1, false, (32 + 8) * 9 * 4 },
		{ 8, 67, 4, 4, 1, 12, 0, false, 16 * 12 * 4 },
		{ 2, 105, 10, 10, 1, 1, 1, true, (9 + 4) * 8 },
		{ 7, 108, 8, 8, 1, 3, 1, true, (4 + 1) * 16 * 3 },
	};
	struct mgpu_virgl_transfer move;
	struct mgpu_virgl_shape s;
	u64 bytes, moved, sum;
	u32 i, level;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		s = shape(t[i].target, t[i].format, t[i].w, t[i].h, t[i].d,
			  t[i].layers, t[i].levels, 0);
		TAP_NEED(!mgpu_virgl_resource_bytes(&s, &bytes));
		TAP_EQ(mgpu_virgl_by_layer(&s), t[i].by_layer);
		for (level = 0, sum = 0; level <= s.last_level; level++) {
			memset(&move, 0, sizeof(move));
			move.level = level;
			bytes = mgpu_virgl_level(&s, level, &move.box);
			TAP_CHECK(mgpu_virgl_transfer_ok(&s, bytes, &move, &moved));
			TAP_EQ(moved, bytes);
			/* It is all of the level. */
			move.box.width++;
			TAP_CHECK(!mgpu_virgl_transfer_ok(&s, U64_MAX, &move, &moved));
			move.box.width--;
			move.box.height++;
			TAP_CHECK(!mgpu_virgl_transfer_ok(&s, U64_MAX, &move, &moved));
			move.box.height--;
			move.box.depth++;
			TAP_CHECK(!mgpu_virgl_transfer_ok(&s, U64_MAX, &move, &moved));
			sum += bytes;
		}
		if (!TAP_EQ(sum, t[i].bytes))
			tap_diag("row %u", i);
	}

	/* Buffers that are the guest's memory, or that the host zeroes. */
	s = shape(0, 64, 100, 1, 1, 1, 0, 0);
	TAP_CHECK(mgpu_virgl_has_storage(&s));
	s.bind = 1 << 17;
	TAP_CHECK(!mgpu_virgl_has_storage(&s));
	s.bind = 1 << 19;
	TAP_CHECK(!mgpu_virgl_has_storage(&s));
	s.bind = 1 << 17 | 8;
	TAP_CHECK(mgpu_virgl_has_storage(&s));
	s = shape(2, 67, 10, 10, 1, 1, 0, 0);
	s.bind = 1 << 17;
	TAP_CHECK(mgpu_virgl_has_storage(&s));

	for (i = 0; i <= MGPU_VIRGL_MAX_FORMAT; i++)
		TAP_EQ(mgpu_virgl_is_depth(i),
		       (i >= 16 && i <= 23) || i == 126 || (i >= 136 && i <= 138));
}

static void transfer_extremes(void)
{
	struct mgpu_virgl_shape s = shape(0, 64, 0x7fffffff, 1, 1, 1, 0, 0);
	struct mgpu_virgl_transfer t = { .box = { 0, 0, 0, 1, 1, 1 } };
	u64 bytes;

	/* A buffer is bytes, whatever its format. */
	t.box.width = 0x7fffffff;
	TAP_CHECK(mgpu_virgl_transfer_ok(&s, 0x7fffffff, &t, &bytes));
	TAP_EQ(bytes, 0x7fffffff);
	TAP_CHECK(!mgpu_virgl_transfer_ok(&s, 0x7ffffffe, &t, &bytes));
	t.box.x = 1;
	TAP_CHECK(!mgpu_virgl_transfer_ok(&s, U64_MAX, &t, &bytes));
	t.box.x = 0xffffffff;
	t.box.width = 1;
	TAP_CHECK(!mgpu_virgl_transfer_ok(&s, U64_MAX, &t, &bytes));
	t.box.x = 0x7ffffffe;
	t.offset = U64_MAX;
	TAP_CHECK(!mgpu_virgl_transfer_ok(&s, 0, &t, &bytes));
	TAP_CHECK(!mgpu_virgl_transfer_ok(&s, U64_MAX, &t, &bytes));
	t.offset = U64_MAX - 1;
	TAP_CHECK(mgpu_virgl_transfer_ok(&s, U64_MAX, &t, &bytes));
	s = shape(0, 31, 100, 1, 1, 1, 0, 0);
	t = (struct mgpu_virgl_transfer){ .box = { 0, 0, 0, 100, 1, 1 } };
	TAP_CHECK(mgpu_virgl_transfer_ok(&s, 100, &t, &bytes));
	TAP_EQ(bytes, 100);

	/* Strides as large as they go. */
	s = shape(7, 64, 1, 16384, 1, 16384, 0, 0);
	t = (struct mgpu_virgl_transfer){
		.box = { 0, 0, 0, 1, 16384, 16384 },
		.stride = 0xffffffff, .layer_stride = 0,
	};
	TAP_CHECK(mgpu_virgl_transfer_ok(&s, U64_MAX, &t, &bytes));
	TAP_EQ(bytes, 1ULL << 28);
	TAP_CHECK(!mgpu_virgl_transfer_ok(&s, 1ULL << 59, &t, &bytes));
	t.layer_stride = 0xffffffff;
	TAP_CHECK(!mgpu_virgl_transfer_ok(&s, U64_MAX, &t, &bytes));
	/* Nothing is moved: only the offset counts. */
	t.box.height = 0;
	t.offset = 7;
	TAP_CHECK(mgpu_virgl_transfer_ok(&s, 7, &t, &bytes));
	TAP_EQ(bytes, 0);
	TAP_CHECK(!mgpu_virgl_transfer_ok(&s, 6, &t, &bytes));
}

static bool copy(const struct mgpu_virgl_shape *dst, u32 dst_level, u32 x,
		 u32 y, u32 z, const struct mgpu_virgl_shape *src,
		 u32 src_level, struct mgpu_virgl_box box)
{
	struct mgpu_virgl_box at = { x, y, z, ~0u, ~0u, ~0u };

	return mgpu_virgl_copy_ok(dst, dst_level, &at, src, src_level, &box);
}

static void copies(void)
{
	struct mgpu_virgl_shape a = shape(2, 67, 20, 10, 1, 1, 2, 0);
	struct mgpu_virgl_shape b = shape(7, 67, 16, 16, 1, 5, 0, 0);
	struct mgpu_virgl_shape dxt = shape(2, 105, 10, 10, 1, 1, 1, 0);
	struct mgpu_virgl_shape words = shape(2, 29, 3, 3, 1, 1, 0, 0);
	struct mgpu_virgl_shape buf = shape(0, 64, 1000, 1, 1, 1, 0, 0);
	struct mgpu_virgl_shape volume = shape(3, 67, 16, 16, 8, 1, 3, 0);
	struct mgpu_virgl_box all = { 0, 0, 0, 16, 10, 1 };

	TAP_CHECK(copy(&b, 0, 0, 6, 4, &a, 0, all));
	TAP_CHECK(!copy(&b, 0, 1, 6, 4, &a, 0, all));
	TAP_CHECK(!copy(&b, 0, 0, 7, 4, &a, 0, all));
	TAP_CHECK(!copy(&b, 0, 0, 6, 5, &a, 0, all));
	TAP_CHECK(!copy(&b, 1, 0, 0, 0, &a, 0, all));
	TAP_CHECK(!copy(&b, 0, ~0u, 0, 0, &a, 0, all));
	TAP_CHECK(!copy(&b, 0, 0, 0, 0, &a, 1, all));
	TAP_CHECK(copy(&b, 0, 0, 0, 0, &a, 1,
		       (struct mgpu_virgl_box){ 0, 0, 0, 10, 5, 1 }));
	TAP_CHECK(!copy(&b, 0, 0, 0, 0, &a, 3,
			(struct mgpu_virgl_box){ 0, 0, 0, 1, 1, 1 }));
	TAP_CHECK(!copy(&a, 0, 0, 0, 0, &a, 0,
			(struct mgpu_virgl_box){ 5, 0, 0, 16, 1, 1 }));
	TAP_CHECK(!copy(&a, 0, 0, 0, 0, &a, 0,
			(struct mgpu_virgl_box){ 0, 1, 0, 1, 10, 1 }));
	TAP_CHECK(!copy(&a, 0, 0, 0, 0, &b, 0,
			(struct mgpu_virgl_box){ 0, 0, 0, 1, 1, 2 }));
	TAP_CHECK(!copy(&a, 0, 0, 0, 0, &a, 0,
			(struct mgpu_virgl_box){ 0, 0, 0, 0x80000001, 1, 1 }));

	/* A level of 5 pixels has two blocks of 4, an image of 10 has three. */
	TAP_CHECK(copy(&words, 0, 1, 1, 0, &dxt, 1,
		       (struct mgpu_virgl_box){ 0, 0, 0, 8, 8, 1 }));
	TAP_CHECK(!copy(&words, 0, 0, 0, 0, &dxt, 1,
			(struct mgpu_virgl_box){ 0, 0, 0, 9, 8, 1 }));
	TAP_CHECK(!copy(&words, 0, 2, 0, 0, &dxt, 1,
			(struct mgpu_virgl_box){ 0, 0, 0, 5, 5, 1 }));
	TAP_CHECK(!copy(&words, 0, 0, 2, 0, &dxt, 1,
			(struct mgpu_virgl_box){ 0, 0, 0, 5, 5, 1 }));
	TAP_CHECK(copy(&dxt, 0, 0, 0, 0, &words, 0,
		       (struct mgpu_virgl_box){ 0, 0, 0, 3, 3, 1 }));
	TAP_CHECK(!copy(&dxt, 0, 4, 0, 0, &words, 0,
			(struct mgpu_virgl_box){ 0, 0, 0, 3, 3, 1 }));

	TAP_CHECK(copy(&buf, 0, 900, 0, 0, &buf, 0,
		       (struct mgpu_virgl_box){ 0, 0, 0, 100, 1, 1 }));
	TAP_CHECK(!copy(&buf, 0, 901, 0, 0, &buf, 0,
			(struct mgpu_virgl_box){ 0, 0, 0, 100, 1, 1 }));
	TAP_CHECK(!copy(&buf, 0, 0, 0, 0, &a, 0,
			(struct mgpu_virgl_box){ 0, 0, 0, 1, 1, 1 }));
	TAP_CHECK(!copy(&a, 0, 0, 0, 0, &buf, 0,
			(struct mgpu_virgl_box){ 0, 0, 0, 1, 1, 1 }));

	TAP_CHECK(mgpu_virgl_layers_ok(&volume, 0, 7, 1));
	TAP_CHECK(!mgpu_virgl_layers_ok(&volume, 0, 7, 2));
	TAP_CHECK(mgpu_virgl_layers_ok(&volume, 1, 0, 4));
	TAP_CHECK(!mgpu_virgl_layers_ok(&volume, 1, 0, 5));
	TAP_CHECK(!mgpu_virgl_layers_ok(&volume, 4, 0, 1));
	TAP_CHECK(!mgpu_virgl_layers_ok(&b, 0, ~0u, 2));
}

static void copies_in_streams(void)
{
	/* Words that must be 0, or 1 for a size, with what is too much. */
	static const struct {
		u32 op, len, word, good, bad;
	} t[] = {
		{ 17, 13, 2, 0, 1 }, { 17, 13, 3, 63, 64 },
		{ 17, 13, 4, 63, 64 }, { 17, 13, 5, 0, 1 },
		{ 17, 13, 7, 0, 1 }, { 17, 13, 8, 63, 64 },
		{ 17, 13, 9, 63, 64 }, { 17, 13, 10, 0, 1 },
		{ 17, 13, 11, 61, 62 }, { 17, 13, 12, 61, 62 },
		{ 17, 13, 13, 1, 2 }, { 16, 21, 5, 0, 1 },
		{ 16, 21, 9, 0, 1 }, { 16, 21, 12, 1, 2 },
		{ 16, 21, 14, 0, 1 }, { 16, 21, 18, 0, 1 },
		{ 16, 21, 21, 1, 2 }, { 16, 21, 10, 1, 0 },
		{ TRANSFER3D, 13, 2, 0, 1 }, { TRANSFER3D, 13, 6, 63, 64 },
		{ TRANSFER3D, 13, 7, 63, 64 }, { TRANSFER3D, 13, 8, 0, 1 },
		{ TRANSFER3D, 13, 9, 64, 65 }, { TRANSFER3D, 13, 10, 64, 65 },
		{ TRANSFER3D, 13, 11, 1, 2 },
	};
	struct mgpu_virgl_info info;
	u32 w[MAX_LEN], i;
	int want;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		build(proto_of(t[i].op, 0, t[i].len), t[i].len, w);
		w[t[i].word] = t[i].good;
		if (!TAP_EQ(check_one(w, &info), 0))
			tap_diag("row %u, good", i);
		build(proto_of(t[i].op, 0, t[i].len), t[i].len, w);
		w[t[i].word] = t[i].bad;
		/* A blit may be of any width, also of none. */
		want = t[i].op == 16 && t[i].word == 10 ? 0 : -ERANGE;
		if (!TAP_EQ(check_one(w, &info), want))
			tap_diag("row %u, bad", i);
	}
}

static u32 caps_word(const u8 *caps, size_t at)
{
	__le32 v;

	memcpy(&v, caps + at, 4);
	return le32_to_cpu(v);
}

static void capsets(void)
{
	u8 caps[2000];
	size_t i, len, got;

	/* All bits set: the rest of set 2. */
	memset(caps, 0xff, sizeof(caps));
	TAP_EQ(mgpu_virgl_mask_capset(2, caps, sizeof(caps), false), 1384);
	for (i = 0; i < 1384; i += 4) {
		if (i == 392)	/* capability_bits: no log, no storage */
			TAP_EQ(caps_word(caps, i), 0x7fffbfff);
		else if (i == 688)	/* no untyped resources, sizes, unknown */
			TAP_EQ(caps_word(caps, i), 0x3fff1);
		else if (i >= 856 && i < 1372)	/* video */
			TAP_EQ(caps_word(caps, i), 0);
		else
			TAP_EQ(caps_word(caps, i), 0xffffffff);
	}
	for (i = 1384; i < sizeof(caps); i++)
		TAP_EQ(caps[i], 0);

	/* With blobs, storage. */
	memset(caps, 0xff, sizeof(caps));
	TAP_EQ(mgpu_virgl_mask_capset(2, caps, sizeof(caps), true), 1384);
	TAP_EQ(caps_word(caps, 392), 0xffffbfff);
	TAP_EQ(caps_word(caps, 688), 0x3fff1);

	memset(caps, 0xff, sizeof(caps));
	TAP_EQ(mgpu_virgl_mask_capset(1, caps, sizeof(caps), true), 308);
	for (i = 0; i < sizeof(caps); i++)
		TAP_EQ(caps[i], i < 308 ? 0xff : 0);

	memset(caps, 0xff, sizeof(caps));
	TAP_EQ(mgpu_virgl_mask_capset(4, caps, 100, false), 0);
	for (i = 0; i < sizeof(caps); i++)
		TAP_EQ(caps[i], i < 100 ? 0 : 0xff);

	/* Of older hosts it is shorter; nothing beyond it is touched. */
	for (len = 0; len < 1400; len++) {
		u8 *block = grab(len);

		memset(block, 0xff, len);
		got = mgpu_virgl_mask_capset(2, block, len, false);
		TAP_EQ(got, len < 1384 ? len / 4 * 4 : 1384);
		if (got >= 396)
			TAP_EQ(caps_word(block, 392), 0x7fffbfff);
		if (got >= 860)
			TAP_EQ(caps_word(block, 856), 0);
		free(block);
	}
}

static void reasons(void)
{
	u32 i, j;

	for (i = MGPU_VIRGL_OK; i <= MGPU_VIRGL_BOX; i++)
		for (j = MGPU_VIRGL_OK; j < i; j++)
			TAP_CHECK(strcmp(mgpu_virgl_why(i), mgpu_virgl_why(j)));
}

int main(void)
{
	fill_pool();
	tap_run(every_command, "every command is accepted");
	tap_run(handles_rewritten, "every handle is rewritten, and nothing else");
	tap_run(zero_handles, "handle 0 passes only where it means none");
	tap_run(foreign_handles, "a foreign handle is refused in every place");
	tap_run(lengths, "a command has the protocol's lengths and no other");
	tap_run(truncation, "a stream cut at any word is refused");
	tap_run(unknown_commands, "unknown, video and blob commands are refused");
	tap_run(values, "counts, slots and types out of range are refused");
	tap_run(accounting, "draws, copies, objects and bytes are counted");
	tap_run(debug_flags, "a guest does not set the host's debug flags");
	tap_run(storage_of_blobs, "storage of blobs is a mapped buffer of whole pages");
	tap_run(transfers_in_streams, "transfers in streams stay in bounds");
	tap_run(random_streams, "whatever is accepted names the host's ids only");
	tap_run(formats, "formats have the blocks that their names say");
	tap_run(resource_sizes, "resources have the size of all their levels");
	tap_run(transfer_bounds, "transfers touch the named bytes and no other");
	tap_run(whole_levels, "all of a resource is in the transfers that clear it");
	tap_run(transfer_extremes, "no size or stride makes a transfer wrap");
	tap_run(copies, "copies stay within both resources, block by block");
	tap_run(copies_in_streams, "each word of a box counts");
	tap_run(capsets, "a capability set keeps the entries that guests can use");
	tap_run(reasons, "every refusal has words of its own");
	return tap_done();
}
