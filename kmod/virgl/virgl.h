/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_VIRGL_H
#define MGPU_VIRGL_H

#include "vfio/device.h"
#include "pure.h"

/* Commands of a stream, bits 0 to 7 of a header. */
enum mgpu_virgl_cmd {
	MGPU_VIRGL_NOP = 0,
	MGPU_VIRGL_CREATE_OBJECT = 1,
	MGPU_VIRGL_BIND_OBJECT = 2,
	MGPU_VIRGL_DESTROY_OBJECT = 3,
	MGPU_VIRGL_SET_VIEWPORT_STATE = 4,
	MGPU_VIRGL_SET_FRAMEBUFFER_STATE = 5,
	MGPU_VIRGL_SET_VERTEX_BUFFERS = 6,
	MGPU_VIRGL_CLEAR = 7,
	MGPU_VIRGL_DRAW_VBO = 8,
	MGPU_VIRGL_RESOURCE_INLINE_WRITE = 9,
	MGPU_VIRGL_SET_SAMPLER_VIEWS = 10,
	MGPU_VIRGL_SET_INDEX_BUFFER = 11,
	MGPU_VIRGL_SET_CONSTANT_BUFFER = 12,
	MGPU_VIRGL_SET_STENCIL_REF = 13,
	MGPU_VIRGL_SET_BLEND_COLOR = 14,
	MGPU_VIRGL_SET_SCISSOR_STATE = 15,
	MGPU_VIRGL_BLIT = 16,
	MGPU_VIRGL_RESOURCE_COPY_REGION = 17,
	MGPU_VIRGL_BIND_SAMPLER_STATES = 18,
	MGPU_VIRGL_BEGIN_QUERY = 19,
	MGPU_VIRGL_END_QUERY = 20,
	MGPU_VIRGL_GET_QUERY_RESULT = 21,
	MGPU_VIRGL_SET_POLYGON_STIPPLE = 22,
	MGPU_VIRGL_SET_CLIP_STATE = 23,
	MGPU_VIRGL_SET_SAMPLE_MASK = 24,
	MGPU_VIRGL_SET_STREAMOUT_TARGETS = 25,
	MGPU_VIRGL_SET_RENDER_CONDITION = 26,
	MGPU_VIRGL_SET_UNIFORM_BUFFER = 27,
	MGPU_VIRGL_SET_SUB_CTX = 28,
	MGPU_VIRGL_CREATE_SUB_CTX = 29,
	MGPU_VIRGL_DESTROY_SUB_CTX = 30,
	MGPU_VIRGL_BIND_SHADER = 31,
	MGPU_VIRGL_SET_TESS_STATE = 32,
	MGPU_VIRGL_SET_MIN_SAMPLES = 33,
	MGPU_VIRGL_SET_SHADER_BUFFERS = 34,
	MGPU_VIRGL_SET_SHADER_IMAGES = 35,
	MGPU_VIRGL_MEMORY_BARRIER = 36,
	MGPU_VIRGL_LAUNCH_GRID = 37,
	MGPU_VIRGL_SET_FRAMEBUFFER_STATE_NO_ATTACH = 38,
	MGPU_VIRGL_TEXTURE_BARRIER = 39,
	MGPU_VIRGL_SET_ATOMIC_BUFFERS = 40,
	MGPU_VIRGL_SET_DEBUG_FLAGS = 41,
	MGPU_VIRGL_GET_QUERY_RESULT_QBO = 42,
	MGPU_VIRGL_TRANSFER3D = 43,
	MGPU_VIRGL_END_TRANSFERS = 44,
	MGPU_VIRGL_COPY_TRANSFER3D = 45,
	MGPU_VIRGL_SET_TWEAKS = 46,
	MGPU_VIRGL_CLEAR_TEXTURE = 47,
	MGPU_VIRGL_PIPE_RESOURCE_CREATE = 48,
	MGPU_VIRGL_PIPE_RESOURCE_SET_TYPE = 49,
	MGPU_VIRGL_GET_MEMORY_INFO = 50,
	MGPU_VIRGL_EMIT_STRING_MARKER = 51,
	MGPU_VIRGL_LINK_SHADER = 52,
	/* 53 to 61: video */
	MGPU_VIRGL_CLEAR_SURFACE = 62,
	MGPU_VIRGL_NR_CMDS
};

/* Objects of a context, bits 8 to 15 of a header. */
enum mgpu_virgl_object {
	MGPU_VIRGL_BLEND = 1,
	MGPU_VIRGL_RASTERIZER = 2,
	MGPU_VIRGL_DSA = 3,
	MGPU_VIRGL_SHADER = 4,
	MGPU_VIRGL_VERTEX_ELEMENTS = 5,
	MGPU_VIRGL_SAMPLER_VIEW = 6,
	MGPU_VIRGL_SAMPLER_STATE = 7,
	MGPU_VIRGL_SURFACE = 8,
	MGPU_VIRGL_QUERY = 9,
	MGPU_VIRGL_STREAMOUT_TARGET = 10,
	MGPU_VIRGL_MSAA_SURFACE = 11,
	MGPU_VIRGL_NR_OBJECTS
};

/* Kinds of resources, as in struct virtio_gpu_resource_create_3d. */
enum mgpu_virgl_target {
	MGPU_VIRGL_BUFFER = 0,
	MGPU_VIRGL_1D = 1,
	MGPU_VIRGL_2D = 2,
	MGPU_VIRGL_3D = 3,
	MGPU_VIRGL_CUBE = 4,
	MGPU_VIRGL_RECT = 5,
	MGPU_VIRGL_1D_ARRAY = 6,
	MGPU_VIRGL_2D_ARRAY = 7,
	MGPU_VIRGL_CUBE_ARRAY = 8,
	MGPU_VIRGL_NR_TARGETS
};

/* Flags of a resource. */
#define MGPU_VIRGL_Y_0_TOP		1
#define MGPU_VIRGL_MAP_PERSISTENT	2
#define MGPU_VIRGL_MAP_COHERENT		4

/* Words of PIPE_RESOURCE_CREATE. */
#define MGPU_VIRGL_PIPE_WORDS		11
#define MGPU_VIRGL_PIPE_BLOB_ID		11

/* Capability sets. */
#define MGPU_VIRGL_CAPSET_1		1
#define MGPU_VIRGL_CAPSET_2		2

#define MGPU_VIRGL_MAX_FORMAT		321
#define MGPU_VIRGL_MAX_SAMPLES		32
#define MGPU_VIRGL_MAX_SHADER		(32U << 20)	/* bytes of text */

/**
 * struct mgpu_virgl_block - the unit in which a format keeps pixels
 * @bytes: size of a block, 1 to 32 bytes
 * @width: width of a block, 1 to 12 pixels
 * @height: height of a block, 1 to 12 rows
 */
struct mgpu_virgl_block {
	u32 bytes;
	u32 width;
	u32 height;
};

/**
 * struct mgpu_virgl_shape - type and size of a resource: the fields of struct
 * virtio_gpu_resource_create_3d, in the CPU's byte order
 * @target: enum mgpu_virgl_target
 * @format: number of the pixel format; ignored for a buffer
 * @bind: uses of the resource, VIRGL_BIND_*
 * @width: width in pixels; size in bytes for a buffer
 * @height: height in rows; 1 for a target with one dimension
 * @depth: number of slices; 1 for a target with one or two dimensions
 * @array_size: number of layers; 6 for a cube, 1 for a target that is no array
 * @last_level: last level of the mipmap, 0 for no mipmap
 * @nr_samples: samples per pixel; 0 is read as 1
 * @flags: MGPU_VIRGL_Y_0_TOP, MGPU_VIRGL_MAP_*
 */
struct mgpu_virgl_shape {
	u32 target;
	u32 format;
	u32 bind;
	u32 width;
	u32 height;
	u32 depth;
	u32 array_size;
	u32 last_level;
	u32 nr_samples;
	u32 flags;
};

/**
 * struct mgpu_virgl_box - a part of a resource's level
 * @x: left column; the first byte for a buffer
 * @y: top row
 * @z: first slice or layer
 * @width: width in pixels; size in bytes for a buffer
 * @height: height in rows
 * @depth: number of slices or layers
 */
struct mgpu_virgl_box {
	u32 x;
	u32 y;
	u32 z;
	u32 width;
	u32 height;
	u32 depth;
};

/**
 * struct mgpu_virgl_transfer - a transfer from or to guest memory
 * @box: the part of the resource that is transferred
 * @level: level of the mipmap
 * @stride: bytes from one row of blocks to the next in memory; 0 for the size of a
 *	row of the whole level
 * @layer_stride: bytes from one slice to the next in memory; 0 for the size of a
 *	slice of the whole level
 * @offset: offset of the first byte in the memory, bytes
 */
struct mgpu_virgl_transfer {
	struct mgpu_virgl_box box;
	u32 level;
	u32 stride;
	u32 layer_stride;
	u64 offset;
};

/**
 * struct mgpu_virgl_res - a resource that a context may name
 * @host_id: the host's number of the resource, not 0
 * @shape: shape that mgpu_virgl_resource_bytes() accepts
 * @backing: size of the attached guest memory in bytes, 0 for none
 */
struct mgpu_virgl_res {
	u32 host_id;
	struct mgpu_virgl_shape shape;
	u64 backing;
};

/**
 * struct mgpu_virgl_lookup - lookup of resources for mgpu_virgl_check()
 * @find: return the resource @id of the context that submits the stream, or NULL if
 *	it is not attached to the context.  Never called with 0.  The resource must
 *	not change until mgpu_virgl_check() returns.  A stream may name a resource in
 *	every second word, so this must not search a long list or take a lock.
 * @data: argument of @find
 * @blobs: the stream may name storage of blobs: PIPE_RESOURCE_CREATE
 */
struct mgpu_virgl_lookup {
	const struct mgpu_virgl_res *(*find)(void *data, u32 id);
	void *data;
	bool blobs;
};

/**
 * enum mgpu_virgl_why - why a stream is refused
 * @MGPU_VIRGL_OK: the stream is not refused
 * @MGPU_VIRGL_ODD: the stream's size is not a multiple of 4 bytes
 * @MGPU_VIRGL_CUT: the stream ends inside a command
 * @MGPU_VIRGL_OPCODE: the command is unknown or not for guests
 * @MGPU_VIRGL_OBJECT: the object type is unknown or invalid for the command
 * @MGPU_VIRGL_LENGTH: the length is invalid for the command
 * @MGPU_VIRGL_RESOURCE: the resource is not attached to the context
 * @MGPU_VIRGL_VALUE: a count, slot or type is out of range
 * @MGPU_VIRGL_BOX: a transfer or copy exceeds a resource or its memory
 */
enum mgpu_virgl_why {
	MGPU_VIRGL_OK,
	MGPU_VIRGL_ODD,
	MGPU_VIRGL_CUT,
	MGPU_VIRGL_OPCODE,
	MGPU_VIRGL_OBJECT,
	MGPU_VIRGL_LENGTH,
	MGPU_VIRGL_RESOURCE,
	MGPU_VIRGL_VALUE,
	MGPU_VIRGL_BOX,
};

/**
 * struct mgpu_virgl_info - result of mgpu_virgl_check()
 * @why: MGPU_VIRGL_OK, or why the stream is refused
 * @offset: offset of the last checked command, bytes; after a refusal that of the
 *	refused command
 * @opcode: that command's opcode, enum mgpu_virgl_cmd if it is known
 * @object: that command's object type, enum mgpu_virgl_object if it has one
 * @value: the refused word of the stream; valid after a refusal
 * @commands: number of accepted commands
 * @draws: number of DRAW_VBO
 * @dispatches: number of LAUNCH_GRID
 * @copies: number of clears, blits and copies between resources
 * @bytes: bytes moved between resources and the stream or guest memory
 * @objects_made: number of CREATE_OBJECT; each costs the host memory
 * @objects_gone: number of DESTROY_OBJECT, also for objects that do not exist
 * @subs_made: number of CREATE_SUB_CTX; each costs the host a GL context
 * @subs_gone: number of DESTROY_SUB_CTX, also for sub-contexts that do not exist
 * @blobs: number of PIPE_RESOURCE_CREATE, which the caller takes out of the stream
 */
struct mgpu_virgl_info {
	enum mgpu_virgl_why why;
	size_t offset;
	u32 opcode;
	u32 object;
	u32 value;
	u32 commands;
	u32 draws;
	u32 dispatches;
	u32 copies;
	u64 bytes;
	u32 objects_made;
	u32 objects_gone;
	u32 subs_made;
	u32 subs_gone;
	u32 blobs;
};

int mgpu_virgl_check(__le32 *stream, size_t bytes,
		     const struct mgpu_virgl_lookup *lookup,
		     struct mgpu_virgl_info *info);
const char *mgpu_virgl_why(enum mgpu_virgl_why why);
void mgpu_virgl_pipe_get(const __le32 *cmd, struct mgpu_virgl_shape *shape, u32 *blob_id);
void mgpu_virgl_pipe_put(__le32 *cmd, const struct mgpu_virgl_shape *shape, u32 blob_id);

bool mgpu_virgl_format(u32 format, struct mgpu_virgl_block *block);
int mgpu_virgl_resource_bytes(const struct mgpu_virgl_shape *shape, u64 *bytes);
u64 mgpu_virgl_level(const struct mgpu_virgl_shape *shape, u32 level,
		     struct mgpu_virgl_box *box);
bool mgpu_virgl_by_layer(const struct mgpu_virgl_shape *shape);
bool mgpu_virgl_has_storage(const struct mgpu_virgl_shape *shape);
bool mgpu_virgl_is_depth(u32 format);
bool mgpu_virgl_layers_ok(const struct mgpu_virgl_shape *shape, u32 level,
			  u32 first, u32 nr);
bool mgpu_virgl_copy_ok(const struct mgpu_virgl_shape *dst, u32 dst_level,
			const struct mgpu_virgl_box *at,
			const struct mgpu_virgl_shape *src, u32 src_level,
			const struct mgpu_virgl_box *box);
bool mgpu_virgl_transfer_ok(const struct mgpu_virgl_shape *shape, u64 backing,
			    const struct mgpu_virgl_transfer *transfer,
			    u64 *bytes);

size_t mgpu_virgl_mask_capset(u32 capset, void *caps, size_t len, bool blobs);

#endif /* MGPU_VIRGL_H */
