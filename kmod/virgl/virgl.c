// SPDX-License-Identifier: GPL-2.0-only
/*
 * virgl command streams: checked, and resource handles rewritten in place.
 * Pure: no kernel calls, builds in user space too.
 *
 * Each guest numbers its resources from 1, and a stream names them by these numbers.
 * An untranslated number would name another guest's resource.  So the tables below
 * have every word of a command that is a resource handle, and commands that are not
 * in the tables are refused.  Documentation/virgl.rst has the same tables.
 */
#include "virgl/virgl.h"

#define SHADER_TYPES	6
#define COMPUTE		5

/* The most objects of each kind that Mesa or virglrenderer can bind. */
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

/* Guests map whole pages. */
#define PAGE		4096

#define LONGEST		0xffff

/*
 * Layout of a command.  Words are numbered as in the protocol: word 0 is the header.
 * @min words and up to @most times @step words follow it.  A command with neither
 * @min nor @most is unknown.
 */
struct rule {
	u16 min;
	u16 most;
	u8 step;
	u8 res[2];		/* words that are handles, 0 for none */
	u8 null;		/* bit i: res[i] may be 0, which is no resource */
	u8 first;		/* first word of a list that is a handle, and */
	u8 every;		/* words from one handle to the next; each may be 0 */
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
	/* 12, 14 with tessellation, 20 indirect; see virgl_draw() */
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
	/* PIPE_RESOURCE_CREATE names the storage of a blob; see virgl_pipe() */
	[MGPU_VIRGL_PIPE_RESOURCE_CREATE] = { FIXED(MGPU_VIRGL_PIPE_WORDS) },
	[MGPU_VIRGL_PIPE_RESOURCE_SET_TYPE] = {
		LIST(10, MAX_PLANES - 1, 2), .res = { 1 }
	},
	/* GET_MEMORY_INFO is refused: it returns the sum over all guests */
	[MGPU_VIRGL_EMIT_STRING_MARKER] = { ANY(2) },
	[MGPU_VIRGL_LINK_SHADER] = { FIXED(6) },
	/* 53 to 61, video, are refused */
	[MGPU_VIRGL_CLEAR_SURFACE] = { FIXED(10) },
};

/* CREATE_OBJECT.  Word 1 is the object's handle, which the guest chooses. */
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

/* The command that is being checked. */
struct state {
	__le32 *cmd;
	u32 len;
	const struct mgpu_virgl_lookup *lookup;
	struct mgpu_virgl_info *info;
	const struct mgpu_virgl_res *res[2];
};

static u32 virgl_word(const struct state *s, u32 i)
{
	return le32_to_cpu(s->cmd[i]);
}

static int virgl_refuse(struct mgpu_virgl_info *info, enum mgpu_virgl_why why,
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

/* Check that word @i of the command is less than @limit. */
static int virgl_below(const struct state *s, u32 i, u32 limit)
{
	u32 v = virgl_word(s, i);

	return v < limit ? 0 : virgl_refuse(s->info, MGPU_VIRGL_VALUE, v);
}

/* Check that @nr slots from the slot in word @i are below @limit. */
static int virgl_slots(const struct state *s, u32 i, u32 nr, u32 limit)
{
	u32 v = virgl_word(s, i);

	if (nr <= limit && v <= limit - nr)
		return 0;
	return virgl_refuse(s->info, MGPU_VIRGL_VALUE, v);
}

/* Replace the guest's handle in word @i by the host's. */
static int virgl_translate(const struct state *s, u32 i, bool null,
			   const struct mgpu_virgl_res **found)
{
	const struct mgpu_virgl_res *res;
	u32 id = virgl_word(s, i);

	*found = NULL;
	if (!id && null)
		return 0;
	res = id ? s->lookup->find(s->lookup->data, id) : NULL;
	if (!res || !res->host_id)
		return virgl_refuse(s->info, MGPU_VIRGL_RESOURCE, id);
	s->cmd[i] = cpu_to_le32(res->host_id);
	*found = res;
	return 0;
}

static int virgl_handles(struct state *s, const struct rule *rule)
{
	const struct mgpu_virgl_res *found;
	int ret;
	u32 i;

	for (i = 0; i < 2; i++) {
		s->res[i] = NULL;
		/* DRAW_VBO has handles only in its longer forms. */
		if (!rule->res[i] || rule->res[i] > s->len)
			continue;
		ret = virgl_translate(s, rule->res[i], rule->null & 1U << i,
				      &s->res[i]);
		if (ret)
			return ret;
	}
	if (!rule->every)
		return 0;
	for (i = rule->first; i <= s->len; i += rule->every) {
		ret = virgl_translate(s, i, true, &found);
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
	box->x = virgl_word(s, i);
	box->y = virgl_word(s, i + 1);
	box->z = virgl_word(s, i + 2);
	box->width = virgl_word(s, i + 3);
	box->height = virgl_word(s, i + 4);
	box->depth = virgl_word(s, i + 5);
}

/*
 * Check a transfer.  INLINE_WRITE and both transfers begin with the same eleven words.
 * A transfer out of the resource (@from) is limited to one layer: virglrenderer 0.10
 * reads only the first layer, and returns uninitialized memory for the others.
 */
static int virgl_transfer(const struct state *s, u64 offset, u64 backing, bool from)
{
	struct mgpu_virgl_transfer t;
	u64 bytes;

	t.level = virgl_word(s, 2);
	t.stride = virgl_word(s, 4);
	t.layer_stride = virgl_word(s, 5);
	read_box(s, 6, &t.box);
	t.offset = offset;
	if (!mgpu_virgl_transfer_ok(&s->res[0]->shape, backing, &t, &bytes) ||
	    (from && t.box.depth > 1))
		return virgl_refuse(s->info, MGPU_VIRGL_BOX, t.level);
	add_bytes(s->info, bytes);
	return 0;
}

static int copy_region(const struct state *s)
{
	struct mgpu_virgl_box at = {
		.x = virgl_word(s, 3), .y = virgl_word(s, 4), .z = virgl_word(s, 5),
	};
	struct mgpu_virgl_box box;

	read_box(s, 8, &box);
	if (!mgpu_virgl_copy_ok(&s->res[0]->shape, virgl_word(s, 2), &at,
				&s->res[1]->shape, virgl_word(s, 7), &box))
		return virgl_refuse(s->info, MGPU_VIRGL_BOX, virgl_word(s, 7));
	s->info->copies++;
	return 0;
}

/* Check the layers of a blit.  Columns and rows may be mirrored; the host clips them. */
static int virgl_blit(const struct state *s)
{
	if (!mgpu_virgl_layers_ok(&s->res[0]->shape, virgl_word(s, 5), virgl_word(s, 9),
				  virgl_word(s, 12)))
		return virgl_refuse(s->info, MGPU_VIRGL_BOX, virgl_word(s, 9));
	if (!mgpu_virgl_layers_ok(&s->res[1]->shape, virgl_word(s, 14), virgl_word(s, 18),
				  virgl_word(s, 21)))
		return virgl_refuse(s->info, MGPU_VIRGL_BOX, virgl_word(s, 18));
	s->info->copies++;
	return 0;
}

static int virgl_draw(const struct state *s)
{
	if (s->len != 12 && s->len != 14 && s->len != 20)
		return virgl_refuse(s->info, MGPU_VIRGL_LENGTH, s->len);
	s->info->draws++;
	return 0;
}

static int virgl_shader(const struct state *s)
{
	u32 type = virgl_word(s, 2), outputs = virgl_word(s, 5);

	if (type >= SHADER_TYPES)
		return virgl_refuse(s->info, MGPU_VIRGL_VALUE, type);
	/* The host allocates this length before the text arrives. */
	if ((virgl_word(s, 3) & ~(1U << 31)) > MGPU_VIRGL_MAX_SHADER)
		return virgl_refuse(s->info, MGPU_VIRGL_VALUE, virgl_word(s, 3));
	/* In a compute shader word 5 has another meaning. */
	if (type == COMPUTE || !outputs)
		return 0;
	if (outputs > MAX_SO_OUTPUTS)
		return virgl_refuse(s->info, MGPU_VIRGL_VALUE, outputs);
	if (s->len < 5 + 4 + 2 * outputs)
		return virgl_refuse(s->info, MGPU_VIRGL_LENGTH, s->len);
	return 0;
}

static int virgl_create(const struct state *s, u32 object)
{
	int ret = 0;
	u32 i;

	if (!virgl_word(s, 1))
		return virgl_refuse(s->info, MGPU_VIRGL_VALUE, 0);
	if (object == MGPU_VIRGL_SHADER)
		ret = virgl_shader(s);
	if (object == MGPU_VIRGL_VERTEX_ELEMENTS)
		for (i = 4; !ret && i <= s->len; i += 4)
			ret = virgl_below(s, i, MAX_ATTRIBS);
	s->info->objects_made += !ret;
	return ret;
}

/**
 * mgpu_virgl_pipe_get - read a PIPE_RESOURCE_CREATE
 * @cmd: the command
 * @shape: set to the shape of the storage
 * @blob_id: set to the context's number of it
 */
void mgpu_virgl_pipe_get(const __le32 *cmd, struct mgpu_virgl_shape *shape, u32 *blob_id)
{
	*shape = (struct mgpu_virgl_shape){
		.target = le32_to_cpu(cmd[1]), .format = le32_to_cpu(cmd[2]),
		.bind = le32_to_cpu(cmd[3]), .width = le32_to_cpu(cmd[4]),
		.height = le32_to_cpu(cmd[5]), .depth = le32_to_cpu(cmd[6]),
		.array_size = le32_to_cpu(cmd[7]), .last_level = le32_to_cpu(cmd[8]),
		.nr_samples = le32_to_cpu(cmd[9]), .flags = le32_to_cpu(cmd[10]),
	};
	*blob_id = le32_to_cpu(cmd[MGPU_VIRGL_PIPE_BLOB_ID]);
}

/**
 * mgpu_virgl_pipe_put - write a PIPE_RESOURCE_CREATE
 * @cmd: room for the header and MGPU_VIRGL_PIPE_WORDS
 * @shape: shape of the storage
 * @blob_id: the context's number of it
 */
void mgpu_virgl_pipe_put(__le32 *cmd, const struct mgpu_virgl_shape *shape, u32 blob_id)
{
	cmd[0] = cpu_to_le32(MGPU_VIRGL_PIPE_WORDS << 16 | MGPU_VIRGL_PIPE_RESOURCE_CREATE);
	cmd[1] = cpu_to_le32(shape->target);
	cmd[2] = cpu_to_le32(shape->format);
	cmd[3] = cpu_to_le32(shape->bind);
	cmd[4] = cpu_to_le32(shape->width);
	cmd[5] = cpu_to_le32(shape->height);
	cmd[6] = cpu_to_le32(shape->depth);
	cmd[7] = cpu_to_le32(shape->array_size);
	cmd[8] = cpu_to_le32(shape->last_level);
	cmd[9] = cpu_to_le32(shape->nr_samples);
	cmd[10] = cpu_to_le32(shape->flags);
	cmd[MGPU_VIRGL_PIPE_BLOB_ID] = cpu_to_le32(blob_id);
}

/*
 * Check the storage of a blob: a buffer that stays mapped, of whole pages, which a guest that
 * maps them shares with nothing else.
 */
static int virgl_pipe(const struct state *s)
{
	struct mgpu_virgl_shape shape;
	u32 blob_id;
	u64 bytes;

	mgpu_virgl_pipe_get(s->cmd, &shape, &blob_id);
	if (!blob_id)
		return virgl_refuse(s->info, MGPU_VIRGL_VALUE, blob_id);
	if (shape.target != MGPU_VIRGL_BUFFER || mgpu_virgl_resource_bytes(&shape, &bytes) ||
	    !mgpu_virgl_has_storage(&shape))
		return virgl_refuse(s->info, MGPU_VIRGL_VALUE, shape.target);
	if (shape.width % PAGE)
		return virgl_refuse(s->info, MGPU_VIRGL_VALUE, shape.width);
	if (!(shape.flags & MGPU_VIRGL_MAP_PERSISTENT))
		return virgl_refuse(s->info, MGPU_VIRGL_VALUE, shape.flags);
	s->info->blobs++;
	return 0;
}

static int virgl_bind(const struct state *s, u32 object)
{
	switch (object) {
	case MGPU_VIRGL_BLEND:
	case MGPU_VIRGL_RASTERIZER:
	case MGPU_VIRGL_DSA:
	case MGPU_VIRGL_VERTEX_ELEMENTS:
		return 0;
	default:
		return virgl_refuse(s->info, MGPU_VIRGL_OBJECT, object);
	}
}

static int virgl_destroy(const struct state *s, u32 object)
{
	if (!object || object >= MGPU_VIRGL_NR_OBJECTS)
		return virgl_refuse(s->info, MGPU_VIRGL_OBJECT, object);
	s->info->objects_gone++;
	return 0;
}

/* Check a shader type in word 1 and slots from word 2 on. */
static int shader_slots(const struct state *s, u32 nr, u32 limit)
{
	int ret = virgl_below(s, 1, SHADER_TYPES);

	return ret ? ret : virgl_slots(s, 2, nr, limit);
}

/* Check rules that are not in the tables.  Handles are the host's already. */
static int virgl_more(struct state *s, u32 opcode, u32 object)
{
	struct mgpu_virgl_info *info = s->info;
	int ret;

	switch (opcode) {
	case MGPU_VIRGL_CREATE_OBJECT:
		return virgl_create(s, object);
	case MGPU_VIRGL_BIND_OBJECT:
		return virgl_bind(s, object);
	case MGPU_VIRGL_DESTROY_OBJECT:
		return virgl_destroy(s, object);
	case MGPU_VIRGL_SET_VIEWPORT_STATE:
		return virgl_slots(s, 1, (s->len - 1) / 6, MAX_VIEWPORTS);
	case MGPU_VIRGL_SET_SCISSOR_STATE:
		return virgl_slots(s, 1, (s->len - 1) / 2, MAX_VIEWPORTS);
	case MGPU_VIRGL_SET_FRAMEBUFFER_STATE:
		if (virgl_word(s, 1) != s->len - 2)
			return virgl_refuse(info, MGPU_VIRGL_VALUE, virgl_word(s, 1));
		return 0;
	case MGPU_VIRGL_DRAW_VBO:
		return virgl_draw(s);
	case MGPU_VIRGL_LAUNCH_GRID:
		info->dispatches++;
		return 0;
	case MGPU_VIRGL_CLEAR:
	case MGPU_VIRGL_CLEAR_SURFACE:
	case MGPU_VIRGL_CLEAR_TEXTURE:
		info->copies++;
		return 0;
	case MGPU_VIRGL_BLIT:
		return virgl_blit(s);
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
		return virgl_slots(s, 1, (s->len - 1) / 3, MAX_ATOMICS);
	case MGPU_VIRGL_SET_CONSTANT_BUFFER:
		return virgl_below(s, 1, SHADER_TYPES);
	case MGPU_VIRGL_SET_UNIFORM_BUFFER:
		ret = virgl_below(s, 1, SHADER_TYPES);
		return ret ? ret : virgl_below(s, 2, MAX_UNIFORMS);
	case MGPU_VIRGL_BIND_SHADER:
		return virgl_below(s, 2, SHADER_TYPES);
	case MGPU_VIRGL_CREATE_SUB_CTX:
		info->subs_made++;
		return 0;
	case MGPU_VIRGL_DESTROY_SUB_CTX:
		info->subs_gone++;
		return 0;
	case MGPU_VIRGL_EMIT_STRING_MARKER:
		if (virgl_word(s, 1) > (s->len - 1) * 4)
			return virgl_refuse(info, MGPU_VIRGL_VALUE, virgl_word(s, 1));
		return 0;
	case MGPU_VIRGL_SET_DEBUG_FLAGS:
		/*
		 * A guest must not control the host's log or files.  It is no
		 * error either, so the command becomes a NOP.
		 */
		s->cmd[0] = cpu_to_le32(s->len << 16 | MGPU_VIRGL_NOP);
		return 0;
	case MGPU_VIRGL_PIPE_RESOURCE_CREATE:
		return virgl_pipe(s);
	case MGPU_VIRGL_RESOURCE_INLINE_WRITE:
		return virgl_transfer(s, 0, (s->len - 11) * 4, false);
	case MGPU_VIRGL_TRANSFER3D:
		/* 1 is to the host, 2 from it. */
		if (virgl_word(s, 13) != 1 && virgl_word(s, 13) != 2)
			return virgl_refuse(info, MGPU_VIRGL_VALUE, virgl_word(s, 13));
		return virgl_transfer(s, virgl_word(s, 12), s->res[0]->backing,
				virgl_word(s, 13) == 2);
	case MGPU_VIRGL_COPY_TRANSFER3D:
		/*
		 * Only the memory of the second resource is used.  Bit 1 is set
		 * for a transfer from the host.
		 */
		return virgl_transfer(s, virgl_word(s, 13), s->res[1]->backing,
				virgl_word(s, 14) & 2);
	default:
		return 0;
	}
}

static bool virgl_known(const struct rule *rule)
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

static int virgl_command(struct state *s, u32 opcode, u32 object)
{
	const struct rule *rule;
	int ret;

	if (opcode == MGPU_VIRGL_CREATE_OBJECT) {
		if (object >= MGPU_VIRGL_NR_OBJECTS || !virgl_known(&objects[object]))
			return virgl_refuse(s->info, MGPU_VIRGL_OBJECT, object);
		rule = &objects[object];
	} else {
		if (opcode >= MGPU_VIRGL_NR_CMDS || !virgl_known(&cmds[opcode]) ||
		    (opcode == MGPU_VIRGL_PIPE_RESOURCE_CREATE && !s->lookup->blobs))
			return virgl_refuse(s->info, MGPU_VIRGL_OPCODE, opcode);
		rule = &cmds[opcode];
	}
	if (!length_ok(rule, s->len))
		return virgl_refuse(s->info, MGPU_VIRGL_LENGTH, s->len);

	ret = virgl_handles(s, rule);
	return ret ? ret : virgl_more(s, opcode, object);
}

/**
 * mgpu_virgl_check - check a command stream and put the host's handles into it
 * @stream: private copy of the stream, aligned to 4 bytes; changed in place, and
 *	invalid after an error
 * @bytes: length of the stream, bytes; 0 is a stream without commands
 * @lookup: finds the resources that the stream may name
 * @info: set to counts of the stream's commands, and to the place and reason of a
 *	refusal
 *
 * Checks in one pass and allocates no memory; calls @lookup->find() at most once for
 * every second word.
 *
 * Context: any that @lookup allows.
 * Return: 0 or a negative errno: -EINVAL if the stream is malformed, -EOPNOTSUPP if it
 * has a command or an object that guests may not use, -ENOENT if it names a resource
 * that the context has not attached, -ERANGE if a transfer or a copy exceeds a
 * resource or its memory.
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
		return virgl_refuse(info, MGPU_VIRGL_ODD, bytes % 4);

	while (at < words) {
		s.cmd = stream + at;
		head = le32_to_cpu(*s.cmd);
		s.len = head >> 16;
		info->offset = at * 4;
		info->opcode = head & 0xff;
		info->object = head >> 8 & 0xff;
		if (s.len >= words - at)
			return virgl_refuse(info, MGPU_VIRGL_CUT, head);
		ret = virgl_command(&s, info->opcode, info->object);
		if (ret)
			return ret;
		info->commands++;
		at += s.len + 1;
	}
	return 0;
}

/**
 * mgpu_virgl_why - get the text of a reason
 * @why: from struct mgpu_virgl_info
 *
 * Return: the reason for a refusal, for a log message.
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
