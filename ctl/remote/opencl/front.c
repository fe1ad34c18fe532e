// SPDX-License-Identifier: GPL-2.0-only
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opencl_front.h"

/**
 * struct notify - function to call when a memory object goes
 * @call: the function
 * @user_data: for it
 * @next: the one before
 */
struct notify {
	void (*call)(cl_mem m, void *user_data);
	void *user_data;
	struct notify *next;
};

/**
 * struct map - a part of a memory object that the program sees
 * @p: where
 * @own: @p is to be freed
 * @write: the program may have written to it
 * @origin: of the part; of a buffer in bytes
 * @region: of the part
 * @next: another one
 */
struct map {
	void *p;
	bool own;
	bool write;
	size_t origin[3];
	size_t region[3];
	struct map *next;
};

/**
 * struct mem - what the front end knows of a memory object
 * @flags: that the program gave
 * @host_ptr: memory of the program that the object is in, or NULL
 * @row_pitch: of @host_ptr, if it is an image
 * @slice_pitch: the same
 * @maps: parts that are mapped
 * @notifies: whom to tell, the last one first
 */
struct mem {
	cl_mem_flags flags;
	uint8_t *host_ptr;
	size_t row_pitch;
	size_t slice_pitch;
	struct map *maps;
	struct notify *notifies;
};

/* Covers lists of memory objects. */
static pthread_mutex_t mem_lock = PTHREAD_MUTEX_INITIALIZER;

/* User events whose status is not set. */
static atomic_uint open_events;

/* The thread waits for what the program is not to be held up by. */
static _Thread_local bool beside;

/* ---- for what is generated ---- */

unsigned int aside(void)
{
	return beside || atomic_load(&open_events) ? CALL_ASIDE : 0;
}

size_t list_len(const void *list)
{
	const cl_ulong *at = list;

	if (!at)
		return 0;
	for (size_t nr = 0; nr < 64; nr += 2)
		if (!at[nr])
			return nr + 1;
	return SIZE_MAX;
}

uint64_t text_len(const void *text, size_t len)
{
	return len ? len : strlen(text);
}

int32_t info_bytes(const void *data, uint64_t len, size_t size, void *value, size_t *ret)
{
	if (value && size < len)
		return CL_INVALID_VALUE;
	if (value && len)
		memcpy(value, data, len);
	if (ret)
		*ret = len;
	return 0;
}

int32_t info_number(cl_uint number, size_t size, void *value, size_t *ret)
{
	return info_bytes(&number, sizeof(number), size, value, ret);
}

int32_t info_handle(const void *handle, size_t size, void *value, size_t *ret)
{
	return info_bytes(&handle, sizeof(handle), size, value, ret);
}

void roots_in_place(void *data, uint64_t len, uint32_t kind)
{
	uint8_t *at = data;

	for (; len >= 8; at += 8, len -= 8) {
		struct object *o = NULL;
		uint64_t id;

		memcpy(&id, at, 8);
		if (id)
			o = object_root(kind, id);
		memcpy(at, &o, 8);
	}
}

/* Rows of @row bytes with these pitches, 0 for none between them. */
static bool shape_of(struct shape *shape, uint64_t row, const size_t *region, size_t row_pitch,
		     size_t slice_pitch)
{
	uint64_t rows = sat_mul(row_pitch ? row_pitch : row, region[1]);

	*shape = (struct shape){
		.row = row, .rows = region[1], .slices = region[2],
		.row_pitch = row_pitch ? row_pitch : row,
		.slice_pitch = slice_pitch ? slice_pitch : rows,
	};
	/* A call whose region is empty fails in the server. */
	return shape->row_pitch >= row && (shape->slice_pitch >= rows || region[2] <= 1) &&
		sat_mul(row, sat_mul(region[1], region[2])) != UINT64_MAX;
}

bool opencl_host_rect(const size_t *origin, const size_t *region, size_t row_pitch,
		      size_t slice_pitch, struct shape *shape)
{
	if (!shape_of(shape, region[0], region, row_pitch, slice_pitch))
		return false;
	shape->offset = origin[0] + origin[1] * shape->row_pitch + origin[2] * shape->slice_pitch;
	return true;
}

bool opencl_host_image(uint32_t unit, const size_t *region, size_t row_pitch, size_t slice_pitch,
		       struct shape *shape)
{
	/* Of 1D arrays the slices have one row each, in the second dimension. */
	if (slice_pitch && !row_pitch && region[1] > 1 && region[2] == 1)
		row_pitch = slice_pitch;
	return shape_of(shape, sat_mul(unit, region[0]), region, row_pitch, slice_pitch);
}

/* Extensions that work here: those of the language, and the loader's own. */
static const char *const extensions[] = {
	"cl_khr_icd", "cl_khr_byte_addressable_store", "cl_khr_global_int32_base_atomics",
	"cl_khr_global_int32_extended_atomics", "cl_khr_local_int32_base_atomics",
	"cl_khr_local_int32_extended_atomics", "cl_khr_int64_base_atomics",
	"cl_khr_int64_extended_atomics", "cl_khr_fp16", "cl_khr_fp64", "cl_khr_3d_image_writes",
	"cl_khr_depth_images", "cl_khr_extended_bit_ops", "cl_khr_expect_assume",
	"cl_khr_integer_dot_product", "cl_khr_select_fprounding_mode", "cl_khr_subgroups",
	"cl_khr_subgroup_ballot", "cl_khr_subgroup_shuffle", "cl_khr_subgroup_shuffle_relative",
	"cl_khr_subgroup_non_uniform_arithmetic", "cl_khr_subgroup_clustered_reduce",
};

static bool is_extension(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(extensions) / sizeof(*extensions); i++)
		if (strlen(extensions[i]) == len && !memcmp(extensions[i], name, len))
			return true;
	return false;
}

static uint64_t keep_extensions(char *text, uint64_t len)
{
	char *to = text, *at = text, *end = text + len;

	if (!len)
		return 0;
	end[-1] = '\0';
	while (*at) {
		size_t word = strcspn(at, " ");

		if (is_extension(at, word)) {
			if (to != text)
				*to++ = ' ';
			memmove(to, at, word);
			to += word;
		}
		at += word;
		at += strspn(at, " ");
	}
	*to++ = '\0';
	return (uint64_t)(to - text);
}

static uint64_t keep_versions(cl_name_version *list, uint64_t len)
{
	uint64_t nr = 0;

	for (uint64_t i = 0; i < len / sizeof(*list); i++)
		if (is_extension(list[i].name, strnlen(list[i].name, sizeof(list[i].name))))
			list[nr++] = list[i];
	return nr * sizeof(*list);
}

uint64_t opencl_look(struct object *o, cl_uint name, void *data, uint64_t len)
{
	cl_ulong exec;

	switch (name) {
	case CL_PLATFORM_EXTENSIONS:
	case CL_DEVICE_EXTENSIONS:
		return keep_extensions(data, len);
	case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
	case CL_DEVICE_EXTENSIONS_WITH_VERSION:
		return keep_versions(data, len);
	case CL_DEVICE_SVM_CAPABILITIES:
	case CL_DEVICE_PIPE_SUPPORT:
	case CL_DEVICE_PARTITION_MAX_SUB_DEVICES:
	case CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES:
	case CL_DEVICE_PARTITION_PROPERTIES:
		memset(data, 0, len);
		return len > 8 ? 8 : len;
	case CL_DEVICE_PARTITION_TYPE:
		return 0;
	case CL_DEVICE_EXECUTION_CAPABILITIES:
		if (len == sizeof(exec)) {
			memcpy(&exec, data, len);
			exec &= CL_EXEC_KERNEL;
			memcpy(data, &exec, len);
		}
		return len;
	case CL_EVENT_COMMAND_TYPE:
		/* Maps are transfers to the server. */
		if (o->unit && len == sizeof(o->unit))
			memcpy(data, &o->unit, len);
		return len;
	}
	return len;
}

int32_t opencl_local(struct object *o, cl_uint name, size_t size, void *value, size_t *ret)
{
	struct mem *m = o->own;
	cl_uint nr = 0;

	switch (name) {
	case CL_PLATFORM_ICD_SUFFIX_KHR:
		return info_bytes("MGPU", 5, size, value, ret);
	case CL_MEM_FLAGS:
		return info_bytes(&m->flags, sizeof(m->flags), size, value, ret);
	case CL_MEM_HOST_PTR:
		return info_handle(m->host_ptr, size, value, ret);
	case CL_MEM_MAP_COUNT:
		pthread_mutex_lock(&mem_lock);
		for (const struct map *map = m->maps; map; map = map->next)
			nr++;
		pthread_mutex_unlock(&mem_lock);
		return info_number(nr, size, value, ret);
	case CL_MEM_USES_SVM_POINTER:
		return info_number(CL_FALSE, size, value, ret);
	}
	return CL_INVALID_VALUE;
}

void opencl_gone(struct object *o)
{
	struct mem *m = o->own;

	if (o->kind == KIND_CL_EVENT && o->size)
		atomic_fetch_sub(&open_events, 1);
	if (o->kind != KIND_CL_MEM || !m)
		return;
	while (m->notifies) {
		struct notify *n = m->notifies;

		m->notifies = n->next;
		n->call((cl_mem)o, n->user_data);
		free(n);
	}
	while (m->maps) {
		struct map *map = m->maps;

		m->maps = map->next;
		if (map->own)
			free(map->p);
		free(map);
	}
}

/* ---- memory objects ---- */

#define HOST_FLAGS	(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR)
#define KERNEL_FLAGS	(CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)

static cl_mem fail(cl_int status, cl_int *errcode_ret)
{
	if (errcode_ret)
		*errcode_ret = status;
	return NULL;
}

static cl_int check_host_ptr(cl_mem_flags flags, const void *host_ptr)
{
	if (flags & CL_MEM_USE_HOST_PTR && flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR))
		return CL_INVALID_VALUE;
	if (!host_ptr != !(flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)))
		return CL_INVALID_HOST_PTR;
	return 0;
}

/* The server makes a copy of the program's memory. */
static cl_mem_flags server_flags(cl_mem_flags flags)
{
	return flags & CL_MEM_USE_HOST_PTR ?
		(flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR) | CL_MEM_COPY_HOST_PTR : flags;
}

/* Give a memory object what the front end knows of it, or take it back. */
static cl_mem keep(cl_mem mem, const struct mem *m, cl_int *errcode_ret)
{
	struct object *o = object_of(mem);

	if (!mem)
		return NULL;
	o->own = malloc(sizeof(*m));
	if (!o->own) {
		object_release(o);
		return fail(CL_OUT_OF_HOST_MEMORY, errcode_ret);
	}
	memcpy(o->own, m, sizeof(*m));
	return mem;
}

cl_mem front_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host_ptr,
			    cl_int *errcode_ret)
{
	const struct mem m = {
		.flags = flags & KERNEL_FLAGS ? flags : flags | CL_MEM_READ_WRITE,
		.host_ptr = flags & CL_MEM_USE_HOST_PTR ? host_ptr : NULL,
	};
	cl_int status = check_host_ptr(flags, host_ptr);

	if (!object_is(context, KIND_CL_CONTEXT))
		status = CL_INVALID_CONTEXT;
	if (status)
		return fail(status, errcode_ret);
	return keep(remote_clCreateBuffer(context, server_flags(flags), size, host_ptr,
					  errcode_ret), &m, errcode_ret);
}

cl_mem front_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
			       const void *info, cl_int *errcode_ret)
{
	const cl_buffer_region *region = info;
	struct mem m = { .flags = flags };
	const struct mem *whole;

	if (!object_is(buffer, KIND_CL_MEM))
		return fail(CL_INVALID_MEM_OBJECT, errcode_ret);
	if (type != CL_BUFFER_CREATE_TYPE_REGION || !region)
		return fail(CL_INVALID_VALUE, errcode_ret);
	whole = object_of(buffer)->own;
	if (!(flags & KERNEL_FLAGS))
		m.flags |= whole->flags & KERNEL_FLAGS;
	m.flags |= whole->flags & HOST_FLAGS;
	if (whole->host_ptr)
		m.host_ptr = whole->host_ptr + region->origin;
	return keep(remote_clCreateSubBuffer(buffer, flags, type, info, errcode_ret), &m,
		    errcode_ret);
}

/* Copy an image's pixels, without the gaps. */
static void *gather(const void *from, const struct shape *s)
{
	uint64_t row = s->row;
	uint8_t *p = malloc(row * s->rows * s->slices), *to = p;

	for (uint64_t k = 0; p && k < s->slices; k++)
		for (uint64_t j = 0; j < s->rows; j++, to += row)
			memcpy(to, (const uint8_t *)from + k * s->slice_pitch + j * s->row_pitch,
			       row);
	return p;
}

cl_mem front_clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format *format,
			   const cl_image_desc *desc, void *host_ptr, cl_int *errcode_ret)
{
	struct mem m = { .flags = flags & KERNEL_FLAGS ? flags : flags | CL_MEM_READ_WRITE };
	cl_int status = check_host_ptr(flags, host_ptr);
	void *pixels = NULL;
	cl_image_desc plain;
	struct shape shape;
	size_t region[3];
	cl_mem image;

	if (!object_is(context, KIND_CL_CONTEXT))
		return fail(CL_INVALID_CONTEXT, errcode_ret);
	if (!format || !opencl_pixel_bytes(format))
		return fail(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, errcode_ret);
	if (!desc)
		return fail(CL_INVALID_IMAGE_DESCRIPTOR, errcode_ret);
	plain = *desc;
	plain.image_row_pitch = plain.image_slice_pitch = 0;
	if (!opencl_image_is_plain(&plain) || !opencl_image_region(&plain, region) ||
	    (!host_ptr && (desc->image_row_pitch || desc->image_slice_pitch)))
		return fail(CL_INVALID_IMAGE_DESCRIPTOR, errcode_ret);
	if (!status && !opencl_host_image((uint32_t)opencl_pixel_bytes(format), region,
					  desc->image_row_pitch, desc->image_slice_pitch, &shape))
		status = CL_INVALID_IMAGE_DESCRIPTOR;
	if (status)
		return fail(status, errcode_ret);
	if (host_ptr) {
		pixels = gather(host_ptr, &shape);
		if (!pixels)
			return fail(CL_OUT_OF_HOST_MEMORY, errcode_ret);
	}
	if (flags & CL_MEM_USE_HOST_PTR) {
		m.host_ptr = host_ptr;
		m.row_pitch = shape.row_pitch;
		m.slice_pitch = shape.slice_pitch;
	}
	image = remote_clCreateImage(context, server_flags(flags), format, &plain, pixels,
				     errcode_ret);
	free(pixels);
	return keep(image, &m, errcode_ret);
}

cl_mem front_clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format *format,
			     size_t width, size_t height, size_t row_pitch, void *host_ptr,
			     cl_int *errcode_ret)
{
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = width,
		.image_height = height, .image_row_pitch = row_pitch,
	};

	return front_clCreateImage(context, flags, format, &desc, host_ptr, errcode_ret);
}

cl_mem front_clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format *format,
			     size_t width, size_t height, size_t depth, size_t row_pitch,
			     size_t slice_pitch, void *host_ptr, cl_int *errcode_ret)
{
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE3D, .image_width = width,
		.image_height = height, .image_depth = depth, .image_row_pitch = row_pitch,
		.image_slice_pitch = slice_pitch,
	};

	return front_clCreateImage(context, flags, format, &desc, host_ptr, errcode_ret);
}

cl_int
front_clSetMemObjectDestructorCallback(cl_mem memobj, void (*notify)(cl_mem, void *),
				       void *user_data)
{
	struct notify *n;
	struct mem *m;

	if (!object_is(memobj, KIND_CL_MEM))
		return CL_INVALID_MEM_OBJECT;
	if (!notify)
		return CL_INVALID_VALUE;
	n = malloc(sizeof(*n));
	if (!n)
		return CL_OUT_OF_HOST_MEMORY;
	m = object_of(memobj)->own;
	pthread_mutex_lock(&mem_lock);
	*n = (struct notify){ .call = notify, .user_data = user_data, .next = m->notifies };
	m->notifies = n;
	pthread_mutex_unlock(&mem_lock);
	return 0;
}

/* ---- maps ---- */

#define WRITE_FLAGS	(CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)

static void add_map(struct mem *m, struct map *map)
{
	pthread_mutex_lock(&mem_lock);
	map->next = m->maps;
	m->maps = map;
	pthread_mutex_unlock(&mem_lock);
}

/* Take a map from the list, the latest at this address; NULL if there is none. */
static struct map *take_map(struct mem *m, const void *p)
{
	struct map *found = NULL;

	pthread_mutex_lock(&mem_lock);
	for (struct map **at = &m->maps; *at; at = &(*at)->next) {
		if ((*at)->p == p) {
			found = *at;
			*at = found->next;
			break;
		}
	}
	pthread_mutex_unlock(&mem_lock);
	return found;
}

static cl_int check_map(cl_command_queue queue, cl_mem mem, cl_map_flags flags)
{
	if (!object_is(queue, KIND_CL_COMMAND_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	if (!object_is(mem, KIND_CL_MEM))
		return CL_INVALID_MEM_OBJECT;
	if (flags & ~(cl_map_flags)(CL_MAP_READ | WRITE_FLAGS) ||
	    (flags & CL_MAP_WRITE_INVALIDATE_REGION && flags & (CL_MAP_READ | CL_MAP_WRITE)))
		return CL_INVALID_VALUE;
	return 0;
}

/* Make a map of @len bytes, which the program finds at @at, or if that is NULL in new memory. */
static struct map *new_map(uint8_t *at, uint64_t len, cl_map_flags flags)
{
	struct map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->own = !at;
	map->p = at ? at : aligned_alloc(128, (len + 127) & ~127ull);
	map->write = flags & WRITE_FLAGS;
	if (map->p)
		return map;
	free(map);
	return NULL;
}

static void *map_done(struct mem *m, struct map *map, cl_int status, cl_uint command,
		      cl_event *event, cl_int *errcode_ret)
{
	if (errcode_ret)
		*errcode_ret = status;
	if (status) {
		if (map && map->own)
			free(map->p);
		free(map);
		return NULL;
	}
	if (event)
		object_of(*event)->unit = command;
	add_map(m, map);
	return map->p;
}

void *front_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
			       cl_map_flags flags, size_t offset, size_t size, cl_uint nr,
			       const cl_event *wait, cl_event *event, cl_int *errcode_ret)
{
	cl_int status = check_map(queue, buffer, flags);
	struct map *map = NULL;
	struct mem *m = NULL;

	if (status)
		goto out;
	m = object_of(buffer)->own;
	if (!size || sat_add(offset, size) > object_of(buffer)->size) {
		status = CL_INVALID_VALUE;
		goto out;
	}
	map = new_map(m->host_ptr ? m->host_ptr + offset : NULL, size, flags);
	if (!map) {
		status = CL_OUT_OF_HOST_MEMORY;
		goto out;
	}
	map->origin[0] = offset;
	map->region[0] = size;
	/* The unmapping writes back the whole part, with bytes that the program did not write. */
	if (flags & CL_MAP_WRITE_INVALIDATE_REGION)
		status = remote_clEnqueueMarkerWithWaitList(queue, nr, wait, event);
	else
		status = remote_clEnqueueReadBuffer(queue, buffer, blocking, offset, size, map->p,
						    nr, wait, event);
out:
	return map_done(m, map, status, CL_COMMAND_MAP_BUFFER, event, errcode_ret);
}

void *front_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
			      cl_map_flags flags, const size_t *origin, const size_t *region,
			      size_t *row_pitch, size_t *slice_pitch, cl_uint nr,
			      const cl_event *wait, cl_event *event, cl_int *errcode_ret)
{
	cl_int status = check_map(queue, image, flags);
	struct map *map = NULL;
	struct mem *m = NULL;
	size_t row, slice;
	uint64_t len;
	uint32_t unit;

	if (status)
		goto out;
	m = object_of(image)->own;
	unit = object_of(image)->unit;
	if (!unit || !origin || !region || !row_pitch) {
		status = unit ? CL_INVALID_VALUE : CL_INVALID_MEM_OBJECT;
		goto out;
	}
	row = m->host_ptr ? m->row_pitch : sat_mul(unit, region[0]);
	slice = m->host_ptr ? m->slice_pitch : sat_mul(row, region[1]);
	len = sat_mul(unit, opencl_volume(region));
	if (!len || len > object_of(image)->size) {
		status = CL_INVALID_VALUE;
		goto out;
	}
	map = new_map(m->host_ptr ? m->host_ptr + origin[0] * unit + origin[1] * row +
		      origin[2] * slice : NULL, len, flags);
	if (!map) {
		status = CL_OUT_OF_HOST_MEMORY;
		goto out;
	}
	memcpy(map->origin, origin, sizeof(map->origin));
	memcpy(map->region, region, sizeof(map->region));
	if (flags & CL_MAP_WRITE_INVALIDATE_REGION)
		status = remote_clEnqueueMarkerWithWaitList(queue, nr, wait, event);
	else
		status = remote_clEnqueueReadImage(queue, image, blocking, origin, region, row,
						   region[2] > 1 ? slice : 0, map->p, nr, wait,
						   event);
	*row_pitch = row;
	if (slice_pitch)
		*slice_pitch = region[2] > 1 ? slice : 0;
out:
	return map_done(m, map, status, CL_COMMAND_MAP_IMAGE, event, errcode_ret);
}

cl_int front_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memobj, void *mapped,
				     cl_uint nr, const cl_event *wait, cl_event *event)
{
	cl_int status = check_map(queue, memobj, 0);
	struct map *map;
	struct mem *m;

	if (status)
		return status;
	m = object_of(memobj)->own;
	map = take_map(m, mapped);
	if (!map)
		return CL_INVALID_VALUE;
	/* A program that has not waited for its map has not written to it either. */
	if (remote_forget(map->p) || !map->write)
		status = remote_clEnqueueMarkerWithWaitList(queue, nr, wait, event);
	else if (object_of(memobj)->unit)
		status = remote_clEnqueueWriteImage(queue, memobj, CL_FALSE, map->origin,
						    map->region, m->host_ptr ? m->row_pitch : 0,
						    m->host_ptr && map->region[2] > 1 ?
						    m->slice_pitch : 0, map->p, nr, wait, event);
	else
		status = remote_clEnqueueWriteBuffer(queue, memobj, CL_FALSE, map->origin[0],
						     map->region[0], map->p, nr, wait, event);
	if (status) {
		add_map(m, map);
		return status;
	}
	if (event)
		object_of(*event)->unit = CL_COMMAND_UNMAP_MEM_OBJECT;
	if (map->own)
		free(map->p);
	free(map);
	return 0;
}

/* ---- programs and kernels ---- */

cl_int front_clGetProgramInfo(cl_program program, cl_program_info name, size_t size, void *value,
			      size_t *ret)
{
	unsigned char **binaries = value;
	size_t *sizes, len, nr;
	cl_int status;

	if (name != CL_PROGRAM_BINARIES)
		return remote_clGetProgramInfo(program, name, size, value, ret);
	status = remote_clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, 0, NULL, &len);
	if (status)
		return status;
	if (value && size < len)
		return CL_INVALID_VALUE;
	if (ret)
		*ret = len;
	if (!value)
		return 0;
	sizes = malloc(len + 1);
	if (!sizes)
		return CL_OUT_OF_HOST_MEMORY;
	status = remote_clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, len, sizes, &len);
	nr = len / sizeof(*sizes);
	for (size_t i = 0; i < nr && !status; i++)
		if (binaries[i] && sizes[i])
			status = remote_remoteGetProgramBinary(program, (cl_uint)i, sizes[i],
							       binaries[i]);
	free(sizes);
	return status;
}

cl_int front_clCreateKernelsInProgram(cl_program program, cl_uint nr, cl_kernel *kernels,
				      cl_uint *nr_ret)
{
	char *names = NULL, *name, *rest;
	cl_uint there = 0, made = 0;
	size_t len = 0;
	cl_int status;

	status = remote_clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &len);
	if (status)
		return status;
	names = malloc(len + 1);
	if (!names)
		return CL_OUT_OF_HOST_MEMORY;
	status = remote_clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, len, names, NULL);
	if (status)
		goto out;
	names[len] = '\0';
	for (const char *at = names; *at; at += strspn(at, ";")) {
		there += *at != ';';
		at += strcspn(at, ";");
	}
	if (kernels && nr < there) {
		status = CL_INVALID_VALUE;
		goto out;
	}
	for (name = strtok_r(names, ";", &rest); name && kernels && !status;
	     name = strtok_r(NULL, ";", &rest)) {
		kernels[made] = remote_clCreateKernel(program, name, &status);
		if (!status)
			made++;
	}
	while (status && made)
		object_release(object_of(kernels[--made]));
	if (!status && nr_ret)
		*nr_ret = there;
out:
	free(names);
	return status;
}

cl_int front_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
	const struct object *o = NULL;
	const void *address;

	/* The address of an object is no value that a program computes with. */
	if (value && size == sizeof(address)) {
		memcpy(&address, value, size);
		o = address ? object_find(address) : NULL;
	}
	if (o && o->kind == KIND_CL_MEM)
		return remote_remoteSetKernelArgMem(kernel, index, o->unit != 0,
						    (cl_mem)(uintptr_t)address);
	if (o && o->kind == KIND_CL_SAMPLER)
		return remote_remoteSetKernelArgSampler(kernel, index,
							(cl_sampler)(uintptr_t)address);
	return remote_clSetKernelArg(kernel, index, size, value);
}

/* ---- events ---- */

cl_event front_clCreateUserEvent(cl_context context, cl_int *errcode_ret)
{
	cl_event event = remote_clCreateUserEvent(context, errcode_ret);

	if (event) {
		object_of(event)->size = 1;
		atomic_fetch_add(&open_events, 1);
	}
	return event;
}

cl_int front_clSetUserEventStatus(cl_event event, cl_int status)
{
	cl_int ret = remote_clSetUserEventStatus(event, status);

	if (!ret && object_of(event)->size) {
		object_of(event)->size = 0;
		atomic_fetch_sub(&open_events, 1);
	}
	return ret;
}

/**
 * struct watch - event whose status the program wants to be told of
 * @event: the event, with a reference
 * @type: the status
 * @notify: whom to tell
 * @user_data: for it
 * @next: the one after
 */
struct watch {
	cl_event event;
	cl_int type;
	void (*notify)(cl_event event, cl_int status, void *user_data);
	void *user_data;
	struct watch *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct watch *first;
	bool running;
} watches = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

/* Return whether the program is to be told now, and of what. */
static bool reached(const struct watch *w, cl_int *status)
{
	cl_int ret = remote_clGetEventInfo(w->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
					   sizeof(*status), status, NULL);

	if (ret)
		*status = ret;
	if (*status > w->type)
		return false;
	if (*status >= 0)
		*status = w->type;
	return true;
}

/* Look at all events, less and less often while nothing happens. */
static void *watch_events(void *arg)
{
	struct timespec pause = { 0 };
	struct watch *w, **at;
	cl_int status;
	bool told;

	(void)arg;
	beside = true;
	for (;;) {
		pthread_mutex_lock(&watches.lock);
		while (!watches.first) {
			pthread_cond_wait(&watches.more, &watches.lock);
			pause.tv_nsec = 0;
		}
		at = &watches.first;
		pthread_mutex_unlock(&watches.lock);
		told = false;
		/* Only this thread takes from the list, and others add at its end. */
		while ((w = __atomic_load_n(at, __ATOMIC_ACQUIRE))) {
			if (!reached(w, &status)) {
				at = &w->next;
				continue;
			}
			pthread_mutex_lock(&watches.lock);
			*at = w->next;
			pthread_mutex_unlock(&watches.lock);
			w->notify(w->event, status, w->user_data);
			object_release(object_of(w->event));
			free(w);
			told = true;
		}
		pause.tv_nsec = told ? 0 : pause.tv_nsec * 2 + 50000;
		if (pause.tv_nsec > 2000000)
			pause.tv_nsec = 2000000;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

cl_int front_clSetEventCallback(cl_event event, cl_int type,
				void (*notify)(cl_event, cl_int, void *), void *user_data)
{
	struct watch *w, **at;
	cl_int status = 0;

	if (!object_is(event, KIND_CL_EVENT))
		return CL_INVALID_EVENT;
	if (!notify || (type != CL_SUBMITTED && type != CL_RUNNING && type != CL_COMPLETE))
		return CL_INVALID_VALUE;
	status = remote_status();
	if (status)
		return status;
	w = malloc(sizeof(*w));
	if (!w)
		return CL_OUT_OF_HOST_MEMORY;
	*w = (struct watch){ .event = event, .type = type, .notify = notify,
			     .user_data = user_data };
	pthread_mutex_lock(&watches.lock);
	if (!watches.running) {
		if (!remote_thread(watch_events)) {
			status = CL_OUT_OF_RESOURCES;
			free(w);
			goto out;
		}
		watches.running = true;
	}
	object_retain(object_of(event));
	for (at = &watches.first; *at; at = &(*at)->next)
		;
	__atomic_store_n(at, w, __ATOMIC_RELEASE);
	pthread_cond_signal(&watches.more);
out:
	pthread_mutex_unlock(&watches.lock);
	return status;
}
