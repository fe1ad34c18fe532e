// SPDX-License-Identifier: GPL-2.0-only
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opencl_back.h"

static const struct opencl_calls *calls(struct server *s)
{
	return s->native;
}

void *opencl_open(void *library)
{
	static struct opencl_calls c;
	static const struct {
		const char *name;
		size_t at;
	} list[] = { OPENCL_CALLS };

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		void *p = dlsym(library, list[i].name);

		memcpy((uint8_t *)&c + list[i].at, &p, sizeof(p));
	}
	return &c;
}

/* ---- events ---- */

void *opencl_failed(struct server *s, uint32_t kind, struct served *target, int32_t error)
{
	const struct opencl_calls *cl = calls(s);
	cl_context context = NULL;
	cl_event event;

	/* An event that has failed says so to all that wait for it. */
	if (kind != KIND_CL_EVENT || !target || !target->native)
		return NULL;
	if (target->kind == KIND_CL_CONTEXT)
		context = target->native;
	else if (target->kind != KIND_CL_COMMAND_QUEUE ||
		 cl->clGetCommandQueueInfo(target->native, CL_QUEUE_CONTEXT, sizeof(context),
					   &context, NULL))
		return NULL;
	event = cl->clCreateUserEvent(context, NULL);
	if (event)
		cl->clSetUserEventStatus(event, error < 0 ? error : CL_OUT_OF_RESOURCES);
	return event;
}

int32_t opencl_finished(struct server *s, void *event)
{
	cl_int status, ret;

	ret = calls(s)->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				       &status, NULL);
	if (ret)
		return ret;
	return status < 0 ? status : status == CL_COMPLETE;
}

void opencl_forget(struct server *s, void *event)
{
	calls(s)->clReleaseEvent(event);
}

/* ---- transfers ---- */

/**
 * struct transfer - command that moves bytes between an object and memory without gaps
 * @queue: its queue
 * @mem: buffer or image
 * @origin: of the rectangle, or bytes
 * @region: of it
 * @row_pitch: of a buffer
 * @slice_pitch: of a buffer
 * @nr: events to wait for
 * @wait: the events
 * @enqueue: enqueue it
 */
struct transfer {
	cl_command_queue queue;
	cl_mem mem;
	const size_t *origin;
	const size_t *region;
	size_t row_pitch;
	size_t slice_pitch;
	cl_uint nr;
	const cl_event *wait;
	cl_int (*enqueue)(const struct opencl_calls *cl, const struct transfer *t,
			  cl_bool blocking, void *p, cl_event *event);
};

/* Wait for one event, as a job. */
static int32_t wait_for_event(struct job *j)
{
	const struct opencl_calls *cl = calls(j->s);
	cl_event event = j->native;
	int32_t status = cl->clWaitForEvents(1, &event), done = opencl_finished(j->s, event);

	cl->clReleaseEvent(event);
	return done < 0 ? done : status;
}

/* Read in a thread that waits. */
static int32_t read_aside(struct server *s, struct request *q, const struct transfer *t,
			  uint64_t len, cl_event *event)
{
	const struct opencl_calls *cl = calls(s);
	struct job j = { .wait = wait_for_event, .len = 8 + padded(len) };
	cl_event own = NULL;
	int32_t status;

	j.data = len <= s->limits.pending ? calloc(1, j.len) : NULL;
	if (!j.data)
		return CL_OUT_OF_HOST_MEMORY;
	memcpy(j.data, &len, 8);
	status = t->enqueue(cl, t, CL_FALSE, (uint8_t *)j.data + 8, &own);
	if (status) {
		free(j.data);
		return status;
	}
	cl->clFlush(t->queue);
	if (event) {
		cl->clRetainEvent(own);
		*event = own;
	}
	j.native = own;
	status = server_start(s, q, &j);
	if (status) {
		/* The command uses the memory. */
		wait_for_event(&(struct job){ .s = s, .native = own });
		free(j.data);
		if (event)
			cl->clReleaseEvent(own);
	}
	return status;
}

#define PATIENCE	10000	/* ms that transfers may take too much memory */

/* Wait for memory for a transfer: others may have to end first. */
static bool may_pend(struct server *s, cl_command_queue queue, uint64_t len)
{
	if (server_may_pend(s, len))
		return true;
	if (len > s->limits.pending)
		return false;
	calls(s)->clFlush(queue);
	for (int i = 0; i < PATIENCE; i++) {
		usleep(1000);
		if (server_may_pend(s, len))
			return true;
	}
	return false;
}

/* Keep memory until a command has ended that nothing waits for. */
static void pend(struct server *s, struct request *q, void *data, uint64_t len, bool is_read,
		 cl_event own, cl_event *event)
{
	if (event) {
		calls(s)->clRetainEvent(own);
		*event = own;
	}
	server_pend(s, &(struct pending){
		.event = own, .data = data, .len = len, .seq = q->seq, .read = is_read,
	});
}

/* Have the command use the memory that the application shares. */
static int32_t move_shared(struct server *s, struct request *q, const struct transfer *t,
			   cl_bool blocking, cl_event *event)
{
	cl_event own = NULL;
	int32_t status = t->enqueue(calls(s), t, blocking, q->shared, &own);

	if (status)
		return status;
	/* The memory is to be free again without a further call. */
	if (!blocking)
		calls(s)->clFlush(t->queue);
	if (event) {
		calls(s)->clRetainEvent(own);
		*event = own;
	}
	q->shared = NULL;
	server_pend(s, &(struct pending){ .event = own, .seq = q->seq, .shared = true });
	return 0;
}

static int32_t read_mem(struct server *s, struct request *q, const struct transfer *t,
			cl_bool blocking, uint64_t len, cl_event *event)
{
	const struct opencl_calls *cl = calls(s);
	cl_event own = NULL;
	int32_t status;
	void *p;

	if (q->shared)
		return move_shared(s, q, t, blocking, event);
	if (blocking && q->flags & REMOTE_ASIDE)
		return read_aside(s, q, t, len, event);
	if (blocking) {
		p = server_out_data(s, q, len);
		return p ? t->enqueue(cl, t, CL_TRUE, p, event) : q->status;
	}
	p = may_pend(s, t->queue, len) ? calloc(1, padded(len) + 8) : NULL;
	if (!p)
		return CL_OUT_OF_HOST_MEMORY;
	status = t->enqueue(cl, t, CL_FALSE, p, &own);
	if (status) {
		free(p);
		return status;
	}
	pend(s, q, p, len, true, own, event);
	return 0;
}

static int32_t write_mem(struct server *s, struct request *q, const struct transfer *t,
			 const void *from, uint64_t len, cl_event *event)
{
	void *data = NULL, *p = (void *)(uintptr_t)from;
	cl_event own = NULL;
	int32_t status;

	/* The front end has the program's bytes already: nothing waits. */
	if (q->shared)
		return move_shared(s, q, t, CL_FALSE, event);
	if (!may_pend(s, t->queue, len))
		return CL_OUT_OF_HOST_MEMORY;
	if (q->owned) {
		data = *q->owned;
	} else {
		data = p = malloc(len ? len : 1);
		if (!p)
			return CL_OUT_OF_HOST_MEMORY;
		memcpy(p, from, len);
	}
	status = t->enqueue(calls(s), t, CL_FALSE, p, &own);
	if (!status) {
		if (q->owned)
			*q->owned = NULL;
		pend(s, q, data, len, false, own, event);
	} else if (!q->owned) {
		free(data);
	}
	return status;
}

static cl_int read_buffer(const struct opencl_calls *cl, const struct transfer *t, cl_bool blocking,
			  void *p, cl_event *event)
{
	return cl->clEnqueueReadBuffer(t->queue, t->mem, blocking, t->origin[0], t->region[0], p,
				       t->nr, t->wait, event);
}

static cl_int write_buffer(const struct opencl_calls *cl, const struct transfer *t,
			   cl_bool blocking, void *p, cl_event *event)
{
	return cl->clEnqueueWriteBuffer(t->queue, t->mem, blocking, t->origin[0], t->region[0], p,
					t->nr, t->wait, event);
}

static const size_t zero[3];

static cl_int read_rect(const struct opencl_calls *cl, const struct transfer *t, cl_bool blocking,
			void *p, cl_event *event)
{
	return cl->clEnqueueReadBufferRect(t->queue, t->mem, blocking, t->origin, zero, t->region,
					   t->row_pitch, t->slice_pitch, 0, 0, p, t->nr, t->wait,
					   event);
}

static cl_int write_rect(const struct opencl_calls *cl, const struct transfer *t, cl_bool blocking,
			 void *p, cl_event *event)
{
	return cl->clEnqueueWriteBufferRect(t->queue, t->mem, blocking, t->origin, zero, t->region,
					    t->row_pitch, t->slice_pitch, 0, 0, p, t->nr, t->wait,
					    event);
}

static cl_int read_image(const struct opencl_calls *cl, const struct transfer *t, cl_bool blocking,
			 void *p, cl_event *event)
{
	return cl->clEnqueueReadImage(t->queue, t->mem, blocking, t->origin, t->region, 0, 0, p,
				      t->nr, t->wait, event);
}

static cl_int write_image(const struct opencl_calls *cl, const struct transfer *t,
			  cl_bool blocking, void *p, cl_event *event)
{
	return cl->clEnqueueWriteImage(t->queue, t->mem, blocking, t->origin, t->region, 0, 0, p,
				       t->nr, t->wait, event);
}

int32_t back_clEnqueueReadBuffer(struct server *s, struct request *q, cl_command_queue queue,
				 cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				 uint64_t len, cl_uint nr, const cl_event *wait, cl_event *event)
{
	const struct transfer t = {
		.queue = queue, .mem = buffer, .origin = &offset, .region = &size,
		.nr = nr, .wait = wait, .enqueue = read_buffer,
	};

	return read_mem(s, q, &t, blocking, len, event);
}

int32_t back_clEnqueueReadBufferRect(struct server *s, struct request *q, cl_command_queue queue,
				     cl_mem buffer, cl_bool blocking, const size_t *origin,
				     const size_t *host_origin, const size_t *region,
				     size_t row_pitch, size_t slice_pitch, size_t host_row_pitch,
				     size_t host_slice_pitch, uint64_t len, cl_uint nr,
				     const cl_event *wait, cl_event *event)
{
	const struct transfer t = {
		.queue = queue, .mem = buffer, .origin = origin, .region = region,
		.row_pitch = row_pitch, .slice_pitch = slice_pitch,
		.nr = nr, .wait = wait, .enqueue = read_rect,
	};

	(void)host_origin;
	(void)host_row_pitch;
	(void)host_slice_pitch;
	return read_mem(s, q, &t, blocking, len, event);
}

int32_t back_clEnqueueReadImage(struct server *s, struct request *q, cl_command_queue queue,
				cl_mem image, cl_bool blocking, const size_t *origin,
				const size_t *region, size_t row_pitch, size_t slice_pitch,
				uint64_t len, cl_uint nr, const cl_event *wait, cl_event *event)
{
	const struct transfer t = {
		.queue = queue, .mem = image, .origin = origin, .region = region,
		.nr = nr, .wait = wait, .enqueue = read_image,
	};

	(void)row_pitch;
	(void)slice_pitch;
	return read_mem(s, q, &t, blocking, len, event);
}

int32_t back_clEnqueueWriteBuffer(struct server *s, struct request *q, cl_command_queue queue,
				  cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				  const void *p, cl_uint nr, const cl_event *wait, cl_event *event)
{
	const struct transfer t = {
		.queue = queue, .mem = buffer, .origin = &offset, .region = &size,
		.nr = nr, .wait = wait, .enqueue = write_buffer,
	};

	/* The front end has the program's bytes already. */
	(void)blocking;
	return write_mem(s, q, &t, p, size, event);
}

int32_t back_clEnqueueWriteBufferRect(struct server *s, struct request *q, cl_command_queue queue,
				      cl_mem buffer, cl_bool blocking, const size_t *origin,
				      const size_t *host_origin, const size_t *region,
				      size_t row_pitch, size_t slice_pitch, size_t host_row_pitch,
				      size_t host_slice_pitch, const void *p, cl_uint nr,
				      const cl_event *wait, cl_event *event)
{
	const struct transfer t = {
		.queue = queue, .mem = buffer, .origin = origin, .region = region,
		.row_pitch = row_pitch, .slice_pitch = slice_pitch,
		.nr = nr, .wait = wait, .enqueue = write_rect,
	};

	(void)blocking;
	(void)host_origin;
	(void)host_row_pitch;
	(void)host_slice_pitch;
	return write_mem(s, q, &t, p, opencl_volume(region), event);
}

int32_t back_clEnqueueWriteImage(struct server *s, struct request *q, cl_command_queue queue,
				 cl_mem image, cl_bool blocking, const size_t *origin,
				 const size_t *region, size_t row_pitch, size_t slice_pitch,
				 const void *p, cl_uint nr, const cl_event *wait, cl_event *event)
{
	const struct transfer t = {
		.queue = queue, .mem = image, .origin = origin, .region = region,
		.nr = nr, .wait = wait, .enqueue = write_image,
	};
	size_t unit = 0;
	cl_int status;

	(void)blocking;
	(void)row_pitch;
	(void)slice_pitch;
	status = calls(s)->clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof(unit), &unit, NULL);
	if (status)
		return status;
	return write_mem(s, q, &t, p, sat_mul(unit, opencl_volume(region)), event);
}

/* ---- waiting ---- */

int32_t back_clFinish(struct server *s, struct request *q, cl_command_queue queue)
{
	const struct opencl_calls *cl = calls(s);
	struct job j = { .wait = wait_for_event };
	cl_event event = NULL;
	int32_t status;

	if (!(q->flags & REMOTE_ASIDE))
		return cl->clFinish(queue);
	/* Commands that are enqueued from now on are not waited for. */
	status = cl->clEnqueueMarkerWithWaitList(queue, 0, NULL, &event);
	if (status)
		return status;
	cl->clFlush(queue);
	j.native = event;
	status = server_start(s, q, &j);
	if (status)
		cl->clReleaseEvent(event);
	return status;
}

static int32_t wait_for_events(struct job *j)
{
	const struct opencl_calls *cl = calls(j->s);
	cl_event *events = j->native;
	cl_uint nr = 0;
	int32_t status;

	while (events[nr])
		nr++;
	status = cl->clWaitForEvents(nr, events);
	for (cl_uint i = 0; i < nr; i++)
		cl->clReleaseEvent(events[i]);
	free(events);
	return status;
}

int32_t back_clWaitForEvents(struct server *s, struct request *q, cl_uint nr,
			     const cl_event *events)
{
	const struct opencl_calls *cl = calls(s);
	struct job j = { .wait = wait_for_events };
	cl_event *own;
	int32_t status;

	if (!(q->flags & REMOTE_ASIDE) || !nr || !events)
		return cl->clWaitForEvents(nr, events);
	own = calloc((size_t)nr + 1, sizeof(*own));
	if (!own)
		return CL_OUT_OF_HOST_MEMORY;
	for (cl_uint i = 0; i < nr; i++) {
		cl->clRetainEvent(events[i]);
		own[i] = events[i];
	}
	j.native = own;
	status = server_start(s, q, &j);
	if (status) {
		for (cl_uint i = 0; i < nr; i++)
			cl->clReleaseEvent(own[i]);
		free(own);
	}
	return status;
}

/* ---- kernels and programs ---- */

/* Return whether an argument is known to be an object, so that bytes are no value for it. */
static bool is_object(const struct opencl_calls *cl, cl_kernel kernel, cl_uint index)
{
	cl_kernel_arg_address_qualifier where = CL_KERNEL_ARG_ADDRESS_PRIVATE;
	char type[64] = "";

	cl->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(where),
			       &where, NULL);
	if (where == CL_KERNEL_ARG_ADDRESS_GLOBAL || where == CL_KERNEL_ARG_ADDRESS_CONSTANT)
		return true;
	cl->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof(type), type, NULL);
	return !strcmp(type, "sampler_t") || (!strncmp(type, "image", 5) && strstr(type, "_t"));
}

int32_t back_clSetKernelArg(struct server *s, struct request *q, cl_kernel kernel, cl_uint index,
			    size_t size, const void *value)
{
	const struct opencl_calls *cl = calls(s);
	const void *null = NULL;

	(void)q;
	/* An application must not make up the address of an object. */
	if (value && size == sizeof(null) && memcmp(value, &null, size) &&
	    is_object(cl, kernel, index))
		return CL_INVALID_ARG_VALUE;
	return cl->clSetKernelArg(kernel, index, size, value);
}

int32_t back_remoteSetKernelArgMem(struct server *s, struct request *q, cl_kernel kernel,
				   cl_uint index, cl_bool image, cl_mem mem)
{
	(void)q;
	(void)image;
	return calls(s)->clSetKernelArg(kernel, index, sizeof(mem), &mem);
}

int32_t back_remoteSetKernelArgSampler(struct server *s, struct request *q, cl_kernel kernel,
				       cl_uint index, cl_sampler sampler)
{
	(void)q;
	return calls(s)->clSetKernelArg(kernel, index, sizeof(sampler), &sampler);
}

int32_t back_remoteGetProgramBinary(struct server *s, struct request *q, cl_program program,
				    cl_uint index, size_t size, uint64_t len)
{
	const struct opencl_calls *cl = calls(s);
	unsigned char **binaries;
	cl_uint nr = 0;
	size_t *sizes;
	int32_t status;

	status = cl->clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof(nr), &nr, NULL);
	if (status)
		return status;
	sizes = server_arena(s, q, sizeof(*sizes) * nr);
	binaries = server_arena(s, q, sizeof(*binaries) * nr);
	if (!sizes || !binaries)
		return q->status;
	memset(binaries, 0, sizeof(*binaries) * nr);
	status = cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(*sizes) * nr, sizes,
				      NULL);
	if (status)
		return status;
	if (index >= nr || sizes[index] != size)
		return CL_INVALID_VALUE;
	binaries[index] = server_out(s, q, len);
	if (!binaries[index])
		return q->status;
	return cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(*binaries) * nr, binaries,
				    NULL);
}
