// SPDX-License-Identifier: GPL-2.0-only
/*
 * virgl command streams: checked, and resource handles rewritten in place.
 * Pure: no kernel calls, builds in user space too.
 *
 * Guests count their resources from 1 each, and a stream names them by these
 * numbers.  A number that reached the host as it is would name what belongs to
 * another guest, so every place where a command has one is in the table below,
 * and what is not in the table does not pass.  Documentation/virgl.rst has the
 * same table for people.
 */
#include "virgl.h"

#define SHADER_TYPES	6
#define COMPUTE		5

/* Most of a kind that Mesa or virglrenderer can bind. */
#define MAX_COLOR_BUFS	8
#define MAX_VIEWPORTS	16
#define MAX_ATTRIBS	32
#define MAX_VIEWS	128
#define MAX_SAMPLERS	32
#define MAX_UNIFORMS	32
#define MAX_BUFFERS	32
#define MAX_IMAGES	64
#define MAX_ATOMICS	32
#define MAX_SO_TARGETS	4
#define MAX_SO_OUTPUTS	64
#define MAX_PLANES	4

#define LONGEST		0xffff

/*
 * What a command looks like.  Words are counted as in the protocol: 0 is the
 * header.  After it come @min words and up to @most times @step more.  Without
 * either there is no such command.
 */
struct rule {
	u16 min;
	u16 most;
	u8 step;
	u8 res[2];		/* words that are handles, 0 for none */
	u8 null;		/* bit i: res[i] may be 0, which is none */
	u8 first;		/* word that is the first of a list's handles, */
	u8 every;		/* then every so many words; each may be 0 */
};

#define FIXED(n)	.min = (n)
#define LIST(a, n, s)	.min = (a), .most = (n), .step = (s)
#define ANY(a)		.min = (a), .most = LONGEST, .step = 1

static const struct rule cmds[MGPU_VIRGL_NR_CMDS] = {
	[MGPU_VIRGL_NOP] = { ANY(0) },
	/* CREATE_OBJECT: see objects[] */
	[MGPU_VIRGL_BIND_OBJECT] = { FIXED(1) },
	[MGPU_VIRGL_DESTROY_OBJECT] = { FIXED(1) },
	[MGPU_VIRGL_SET_VIEWPORT_STATE] = { LIST(1, MAX_VIEWPORTS, 6) },
	[MGPU_VIRGL_SET_FRAMEBUFFER_STATE] = { LIST(2, MAX_COLOR_BUFS, 1) },
	[MGPU_VIRGL_SET_VERTEX_BUFFERS] = {
		LIST(0, MAX_ATTRIBS, 3), .first = 3, .every = 3
	},
	[MGPU_VIRGL_CLEAR] = { FIXED(8) },
	/* 12, 14 with tessellation, 20 indirect; see draw() */
	[MGPU_VIRGL_DRAW_VBO] = {
		LIST(12, 4, 2), .res = { 15, 20 }, .null = 3
	},
	[MGPU_VIRGL_RESOURCE_INLINE_WRITE] = { ANY(12), .res = { 1 } },
	[MGPU_VIRGL_SET_SAMPLER_VIEWS] = { LIST(2, MAX_VIEWS, 1) },
	[MGPU_VIRGL_SET_INDEX_BUFFER] = {
		LIST(1, 1, 2), .res = { 1 }, .null = 1
	},
	[MGPU_VIRGL_SET_CONSTANT_BUFFER] = { ANY(2) },
	[MGPU_VIRGL_SET_STENCIL_REF] = { FIXED(1) },
	[MGPU_VIRGL_SET_BLEND_COLOR] = { FIXED(4) },
	[MGPU_VIRGL_SET_SCISSOR_STATE] = { LIST(1, MAX_VIEWPORTS, 2) },
	[MGPU_VIRGL_BLIT] = { FIXED(21), .res = { 4, 13 } },
	[MGPU_VIRGL_RESOURCE_COPY_REGION] = { FIXED(13), .res = { 1, 6 } },
	[MGPU_VIRGL_BIND_SAMPLER_STATES] = { LIST(2, MAX_SAMPLERS, 1) },
	[MGPU_VIRGL_BEGIN_QUERY] = { FIXED(1) },
	[MGPU_VIRGL_END_QUERY] = { FIXED(1) },
	[MGPU_VIRGL_GET_QUERY_RESULT] = { FIXED(2) },
	[MGPU_VIRGL_SET_POLYGON_STIPPLE] = { FIXED(32) },
	[MGPU_VIRGL_SET_CLIP_STATE] = { FIXED(32) },
	[MGPU_VIRGL_SET_SAMPLE_MASK] = { FIXED(1) },
	[MGPU_VIRGL_SET_STREAMOUT_TARGETS] = { LIST(1, MAX_SO_TARGETS, 1) },
	[MGPU_VIRGL_SET_RENDER_CONDITION] = { FIXED(3) },
	[MGPU_VIRGL_SET_UNIFORM_BUFFER] = {
		FIXED(5), .res = { 5 }, .null = 1
	},
	[MGPU_VIRGL_SET_SUB_CTX] = { FIXED(1) },
	[MGPU_VIRGL_CREATE_SUB_CTX] = { FIXED(1) },
	[MGPU_VIRGL_DESTROY_SUB_CTX] = { FIXED(1) },
	[MGPU_VIRGL_BIND_SHADER] = { FIXED(2) },
	[MGPU_VIRGL_SET_TESS_STATE] = { FIXED(6) },
	[MGPU_VIRGL_SET_MIN_SAMPLES] = { FIXED(1) },
	[MGPU_VIRGL_SET_SHADER_BUFFERS] = {
		LIST(2, MAX_BUFFERS, 3), .first = 5, .every = 3
	},
	[MGPU_VIRGL_SET_SHADER_IMAGES] = {
		LIST(2, MAX_IMAGES, 5), .first = 7, .every = 5
	},
	[MGPU_VIRGL_MEMORY_BARRIER] = { FIXED(1) },
	[MGPU_VIRGL_LAUNCH_GRID] = { FIXED(8), .res = { 7 }, .null = 1 },
	[MGPU_VIRGL_SET_FRAMEBUFFER_STATE_NO_ATTACH] = { FIXED(2) },
	[MGPU_VIRGL_TEXTURE_BARRIER] = { FIXED(1) },
	[MGPU_VIRGL_SET_ATOMIC_BUFFERS] = {
		LIST(1, MAX_ATOMICS, 3), .first = 4, .every = 3
	},
	[MGPU_VIRGL_SET_DEBUG_FLAGS] = { ANY(1) },
	[MGPU_VIRGL_GET_QUERY_RESULT_QBO] = { FIXED(6), .res = { 2 } },
	[MGPU_VIRGL_TRANSFER3D] = { FIXED(13), .res = { 1 } },
	[MGPU_VIRGL_END_TRANSFERS] = { ANY(0) },
	[MGPU_VIRGL_COPY_TRANSFER3D] = { FIXED(14), .res = { 1, 12 } },
	[MGPU_VIRGL_SET_TWEAKS] = { FIXED(2) },
	[MGPU_VIRGL_CLEAR_TEXTURE] = { FIXED(12), .res = { 1 } },
	/* PIPE_RESOURCE_CREATE: blobs of the host's */
	[MGPU_VIRGL_PIPE_RESOURCE_SET_TYPE] = {
		LIST(10, MAX_PLANES - 1, 2), .res = { 1 }
	},
	/* GET_MEMORY_INFO: of all guests together */
	[MGPU_VIRGL_EMIT_STRING_MARKER] = { ANY(2) },
	[MGPU_VIRGL_LINK_SHADER] = { FIXED(6) },
	/* video */
	[MGPU_VIRGL_CLEAR_SURFACE] = { FIXED(10) },
};

/* CREATE_OBJECT.  Word 1 is the object's own handle, which the guest chooses. */
static const struct rule objects[MGPU_VIRGL_NR_OBJECTS] = {
	[MGPU_VIRGL_BLEND] = { FIXED(11) },
	[MGPU_VIRGL_RASTERIZER] = { FIXED(9) },
	[MGPU_VIRGL_DSA] = { FIXED(5) },
	[MGPU_VIRGL_SHADER] = { ANY(5) },
	[MGPU_VIRGL_VERTEX_ELEMENTS] = { LIST(1, MAX_ATTRIBS, 4) },
	[MGPU_VIRGL_SAMPLER_VIEW] = { FIXED(6), .res = { 2 } },
	[MGPU_VIRGL_SAMPLER_STATE] = { FIXED(9) },
	[MGPU_VIRGL_SURFACE] = { FIXED(5), .res = { 2 } },
	[MGPU_VIRGL_QUERY] = { FIXED(4), .res = { 4 } },
	[MGPU_VIRGL_STREAMOUT_TARGET] = { FIXED(4), .res = { 2 } },
	[MGPU_VIRGL_MSAA_SURFACE] = { FIXED(6), .res = { 2 } },
};

/* A command that is being looked at. */
struct state {
	__le32 *cmd;
	u32 len;
	const struct mgpu_virgl_lookup *lookup;
	struct mgpu_virgl_info *info;
	const struct mgpu_virgl_res *res[2];
};

static u32 word(const struct state *s, u32 i)
{
	return le32_to_cpu(s->cmd[i]);
}

static int refuse(struct mgpu_virgl_info *info, enum mgpu_virgl_why why,
		  u32 value)
{
	info->why = why;
	info->value = value;

	switch (why) {
	case MGPU_VIRGL_OPCODE:
	case MGPU_VIRGL_OBJECT:
		return -EOPNOTSUPP;
	case MGPU_VIRGL_RESOURCE:
		return -ENOENT;
	case MGPU_VIRGL_BOX:
		return -ERANGE;
	default:
		return -EINVAL;
	}
}

/* Word @i of the command must be less than @limit. */
static int below(const struct state *s, u32 i, u32 limit)
{
	u32 v = word(s, i);

	return v < limit ? 0 : refuse(s->info, MGPU_VIRGL_VALUE, v);
}

/* So many slots from the one that word @i says must be there. */
static int slots(const struct state *s, u32 i, u32 nr, u32 limit)
{
	u32 v = word(s, i);

	if (nr <= limit && v <= limit - nr)
		return 0;
	return refuse(s->info, MGPU_VIRGL_VALUE, v);
}

/* Puts the host's handle into word @i. */
static int translate(const struct state *s, u32 i, bool null,
		     const struct mgpu_virgl_res **found)
{
	const struct mgpu_virgl_res *res;
	u32 id = word(s, i);

	*found = NULL;
	if (!id && null)
		return 0;
	res = id ? s->lookup->find(s->lookup->data, id) : NULL;
	if (!res || !res->host_id)
		return refuse(s->info, MGPU_VIRGL_RESOURCE, id);
	s->cmd[i] = cpu_to_le32(res->host_id);
	*found = res;
	return 0;
}

static int handles(struct state *s, const struct rule *rule)
{
	const struct mgpu_virgl_res *found;
	int ret;
	u32 i;

	for (i = 0; i < 2; i++) {
		s->res[i] = NULL;
		/* DRAW_VBO has them only in its long form. */
		if (!rule->res[i] || rule->res[i] > s->len)
			continue;
		ret = translate(s, rule->res[i], rule->null & 1U << i,
				&s->res[i]);
		if (ret)
			return ret;
	}
	if (!rule->every)
		return 0;
	for (i = rule->first; i <= s->len; i += rule->every) {
		ret = translate(s, i, true, &found);
		if (ret)
			return ret;
	}
	return 0;
}

static void add_bytes(struct mgpu_virgl_info *info, u64 bytes)
{
	if (check_add_overflow(info->bytes, bytes, &info->bytes))
		info->bytes = U64_MAX;
}

static void read_box(const struct state *s, u32 i, struct mgpu_virgl_box *box)
{
	box->x = word(s, i);
	box->y = word(s, i + 1);
	box->z = word(s, i + 2);
	box->width = word(s, i + 3);
	box->height = word(s, i + 4);
	box->depth = word(s, i + 5);
}

/*
 * INLINE_WRITE and both transfers begin with the same eleven words.  @from: out of
 * the resource, a layer at a time: virglrenderer 0.10 reads the first of them and
 * hands out what its own memory happens to hold for the others.
 */
static int transfer(const struct state *s, u64 offset, u64 backing, bool from)
{
	struct mgpu_virgl_transfer t;
	u64 bytes;

	t.level = word(s, 2);
	t.stride = word(s, 4);
	t.layer_stride = word(s, 5);
	read_box(s, 6, &t.box);
	t.offset = offset;
	if (!mgpu_virgl_transfer_ok(&s->res[0]->shape, backing, &t, &bytes) ||
	    (from && t.box.depth > 1))
		return refuse(s->info, MGPU_VIRGL_BOX, t.level);
	add_bytes(s->info, bytes);
	return 0;
}

static int copy_region(const struct state *s)
{
	struct mgpu_virgl_box at = {
		.x = word(s, 3), .y = word(s, 4), .z = word(s, 5),
	};
	struct mgpu_virgl_box box;

	read_box(s, 8, &box);
	if (!mgpu_virgl_copy_ok(&s->res[0]->shape, word(s, 2), &at,
				&s->res[1]->shape, word(s, 7), &box))
		return refuse(s->info, MGPU_VIRGL_BOX, word(s, 7));
	s->info->copies++;
	return 0;
}

/* Hosts go from layer to layer; columns and rows may be mirrored. */
static int blit(const struct state *s)
{
	if (!mgpu_virgl_layers_ok(&s->res[0]->shape, word(s, 5), word(s, 9),
				  word(s, 12)))
		return refuse(s->info, MGPU_VIRGL_BOX, word(s, 9));
	if (!mgpu_virgl_layers_ok(&s->res[1]->shape, word(s, 14), word(s, 18),
				  word(s, 21)))
		return refuse(s->info, MGPU_VIRGL_BOX, word(s, 18));
	s->info->copies++;
	return 0;
}

static int draw(const struct state *s)
{
	if (s->len != 12 && s->len != 14 && s->len != 20)
		return refuse(s->info, MGPU_VIRGL_LENGTH, s->len);
	s->info->draws++;
	return 0;
}

static int shader(const struct state *s)
{
	u32 type = word(s, 2), outputs = word(s, 5);

	if (type >= SHADER_TYPES)
		return refuse(s->info, MGPU_VIRGL_VALUE, type);
	/* The host takes that much memory before the text is there. */
	if ((word(s, 3) & ~(1U << 31)) > MGPU_VIRGL_MAX_SHADER)
		return refuse(s->info, MGPU_VIRGL_VALUE, word(s, 3));
	/* Of a compute shader the word is something else. */
	if (type == COMPUTE || !outputs)
		return 0;
	if (outputs > MAX_SO_OUTPUTS)
		return refuse(s->info, MGPU_VIRGL_VALUE, outputs);
	if (s->len < 5 + 4 + 2 * outputs)
		return refuse(s->info, MGPU_VIRGL_LENGTH, s->len);
	return 0;
}

static int create(const struct state *s, u32 object)
{
	int ret = 0;
	u32 i;

	if (!word(s, 1))
		return refuse(s->info, MGPU_VIRGL_VALUE, 0);
	if (object == MGPU_VIRGL_SHADER)
		ret = shader(s);
	if (object == MGPU_VIRGL_VERTEX_ELEMENTS)
		for (i = 4; !ret && i <= s->len; i += 4)
			ret = below(s, i, MAX_ATTRIBS);
	s->info->objects_made += !ret;
	return ret;
}

static int bind(const struct state *s, u32 object)
{
	switch (object) {
	case MGPU_VIRGL_BLEND:
	case MGPU_VIRGL_RASTERIZER:
	case MGPU_VIRGL_DSA:
	case MGPU_VIRGL_VERTEX_ELEMENTS:
		return 0;
	default:
		return refuse(s->info, MGPU_VIRGL_OBJECT, object);
	}
}

static int destroy(const struct state *s, u32 object)
{
	if (!object || object >= MGPU_VIRGL_NR_OBJECTS)
		return refuse(s->info, MGPU_VIRGL_OBJECT, object);
	s->info->objects_gone++;
	return 0;
}

/* A shader type, then slots. */
static int shader_slots(const struct state *s, u32 nr, u32 limit)
{
	int ret = below(s, 1, SHADER_TYPES);

	return ret ? ret : slots(s, 2, nr, limit);
}

/* What is not in the tables.  Handles are the host's by now. */
static int more(struct state *s, u32 opcode, u32 object)
{
	struct mgpu_virgl_info *info = s->info;
	int ret;

	switch (opcode) {
	case MGPU_VIRGL_CREATE_OBJECT:
		return create(s, object);
	case MGPU_VIRGL_BIND_OBJECT:
		return bind(s, object);
	case MGPU_VIRGL_DESTROY_OBJECT:
		return destroy(s, object);
	case MGPU_VIRGL_SET_VIEWPORT_STATE:
		return slots(s, 1, (s->len - 1) / 6, MAX_VIEWPORTS);
	case MGPU_VIRGL_SET_SCISSOR_STATE:
		return slots(s, 1, (s->len - 1) / 2, MAX_VIEWPORTS);
	case MGPU_VIRGL_SET_FRAMEBUFFER_STATE:
		if (word(s, 1) != s->len - 2)
			return refuse(info, MGPU_VIRGL_VALUE, word(s, 1));
		return 0;
	case MGPU_VIRGL_DRAW_VBO:
		return draw(s);
	case MGPU_VIRGL_LAUNCH_GRID:
		info->dispatches++;
		return 0;
	case MGPU_VIRGL_CLEAR:
	case MGPU_VIRGL_CLEAR_SURFACE:
	case MGPU_VIRGL_CLEAR_TEXTURE:
		info->copies++;
		return 0;
	case MGPU_VIRGL_BLIT:
		return blit(s);
	case MGPU_VIRGL_RESOURCE_COPY_REGION:
		return copy_region(s);
	case MGPU_VIRGL_SET_SAMPLER_VIEWS:
		return shader_slots(s, s->len - 2, MAX_VIEWS);
	case MGPU_VIRGL_BIND_SAMPLER_STATES:
		return shader_slots(s, s->len - 2, MAX_SAMPLERS);
	case MGPU_VIRGL_SET_SHADER_BUFFERS:
		return shader_slots(s, (s->len - 2) / 3, MAX_BUFFERS);
	case MGPU_VIRGL_SET_SHADER_IMAGES:
		return shader_slots(s, (s->len - 2) / 5, MAX_IMAGES);
	case MGPU_VIRGL_SET_ATOMIC_BUFFERS:
		return slots(s, 1, (s->len - 1) / 3, MAX_ATOMICS);
	case MGPU_VIRGL_SET_CONSTANT_BUFFER:
		return below(s, 1, SHADER_TYPES);
	case MGPU_VIRGL_SET_UNIFORM_BUFFER:
		ret = below(s, 1, SHADER_TYPES);
		return ret ? ret : below(s, 2, MAX_UNIFORMS);
	case MGPU_VIRGL_BIND_SHADER:
		return below(s, 2, SHADER_TYPES);
	case MGPU_VIRGL_CREATE_SUB_CTX:
		info->subs_made++;
		return 0;
	case MGPU_VIRGL_DESTROY_SUB_CTX:
		info->subs_gone++;
		return 0;
	case MGPU_VIRGL_EMIT_STRING_MARKER:
		if (word(s, 1) > (s->len - 1) * 4)
			return refuse(info, MGPU_VIRGL_VALUE, word(s, 1));
		return 0;
	case MGPU_VIRGL_SET_DEBUG_FLAGS:
		/*
		 * What the host writes into its log, or to its disk, is no
		 * guest's to say.  It is not an error of the guest's, either.
		 */
		s->cmd[0] = cpu_to_le32(s->len << 16 | MGPU_VIRGL_NOP);
		return 0;
	case MGPU_VIRGL_RESOURCE_INLINE_WRITE:
		return transfer(s, 0, (s->len - 11) * 4, false);
	case MGPU_VIRGL_TRANSFER3D:
		/* 1 is to the host, 2 from it. */
		if (word(s, 13) != 1 && word(s, 13) != 2)
			return refuse(info, MGPU_VIRGL_VALUE, word(s, 13));
		return transfer(s, word(s, 12), s->res[0]->backing,
				word(s, 13) == 2);
	case MGPU_VIRGL_COPY_TRANSFER3D:
		/*
		 * The second resource is nothing but its memory here.  Bit 1:
		 * from the host.
		 */
		return transfer(s, word(s, 13), s->res[1]->backing,
				word(s, 14) & 2);
	default:
		return 0;
	}
}

static bool known(const struct rule *rule)
{
	return rule->min || rule->most;
}

static bool length_ok(const struct rule *rule, u32 len)
{
	u32 rest = len - rule->min;

	if (len <= rule->min)
		return len == rule->min;
	return rule->most && rest % rule->step == 0 &&
	       rest / rule->step <= rule->most;
}

static int command(struct state *s, u32 opcode, u32 object)
{
	const struct rule *rule;
	int ret;

	if (opcode == MGPU_VIRGL_CREATE_OBJECT) {
		if (object >= MGPU_VIRGL_NR_OBJECTS || !known(&objects[object]))
			return refuse(s->info, MGPU_VIRGL_OBJECT, object);
		rule = &objects[object];
	} else {
		if (opcode >= MGPU_VIRGL_NR_CMDS || !known(&cmds[opcode]))
			return refuse(s->info, MGPU_VIRGL_OPCODE, opcode);
		rule = &cmds[opcode];
	}
	if (!length_ok(rule, s->len))
		return refuse(s->info, MGPU_VIRGL_LENGTH, s->len);

	ret = handles(s, rule);
	return ret ? ret : more(s, opcode, object);
}

/**
 * mgpu_virgl_check - check a command stream and put the host's handles into it
 * @stream: a private copy of the stream, aligned to 4 bytes; changed. After a
 *	refusal it is of no use to anybody.
 * @bytes: its length; 0 is a stream without commands
 * @lookup: which resources it may name
 * @info: what it is made of, and where and why it is refused
 *
 * One pass without memory of its own; it calls @lookup->find() at most once for
 * every second word. Any context that @lookup allows.
 *
 * Return: 0, or a negative error: -EINVAL when the stream is malformed,
 * -EOPNOTSUPP when it has a command or an object that guests may not use,
 * -ENOENT when it names a resource that the context has not attached, -ERANGE
 * when a transfer or a copy leaves a resource or its memory.
 */
int mgpu_virgl_check(__le32 *stream, size_t bytes,
		     const struct mgpu_virgl_lookup *lookup,
		     struct mgpu_virgl_info *info)
{
	struct state s = { .lookup = lookup, .info = info };
	size_t at = 0, words = bytes / 4;
	u32 head;
	int ret;

	memset(info, 0, sizeof(*info));
	if (bytes % 4)
		return refuse(info, MGPU_VIRGL_ODD, bytes % 4);

	while (at < words) {
		s.cmd = stream + at;
		head = le32_to_cpu(*s.cmd);
		s.len = head >> 16;
		info->offset = at * 4;
		info->opcode = head & 0xff;
		info->object = head >> 8 & 0xff;
		if (s.len >= words - at)
			return refuse(info, MGPU_VIRGL_CUT, head);
		ret = command(&s, info->opcode, info->object);
		if (ret)
			return ret;
		info->commands++;
		at += s.len + 1;
	}
	return 0;
}

/**
 * mgpu_virgl_why - a reason as text
 * @why: of struct mgpu_virgl_info
 *
 * Return: what is wrong with a stream, for a message to people.
 */
const char *mgpu_virgl_why(enum mgpu_virgl_why why)
{
	switch (why) {
	case MGPU_VIRGL_OK:
		return "nothing is wrong";
	case MGPU_VIRGL_ODD:
		return "the stream is not made of whole words";
	case MGPU_VIRGL_CUT:
		return "the stream ends inside a command";
	case MGPU_VIRGL_OPCODE:
		return "the command is unknown or not for guests";
	case MGPU_VIRGL_OBJECT:
		return "the object type is unknown or not for this command";
	case MGPU_VIRGL_LENGTH:
		return "the command cannot have this length";
	case MGPU_VIRGL_RESOURCE:
		return "the resource is not attached to the context";
	case MGPU_VIRGL_VALUE:
		return "a count, slot or type is out of range";
	case MGPU_VIRGL_BOX:
		return "the transfer or copy leaves a resource or its memory";
	}
	return "unknown";
}
