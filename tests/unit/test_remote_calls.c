// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of OpenCL through both sides of the wire, to a library that the test plays: what arrives,
 * what waits for an answer and what does not, and errors that come late.
 */
#include <sys/socket.h>
#include <time.h>

#include "marks.h"
#include "opencl_back.h"
#include "opencl_front.h"
#include "play.h"
#include "tap.h"

#define RESULT	(-5)	/* of a call that is to fail: CL_OUT_OF_RESOURCES */

atomic_int played_objects;

static char failing[64];	/* the call that fails */
static int fails_in;		/* after so many good ones */
static atomic_int done = 1;	/* commands have ended */

static char last[64];		/* the last call but for questions and releases */
static atomic_uint nr_calls;	/* calls of the library */

int32_t played_status(const char *function)
{
	nr_calls++;
	if (!strstr(function, "Get") && !strstr(function, "Release") && !strstr(function, "Retain"))
		snprintf(last, sizeof(last), "%s", function);
	return !strcmp(function, failing) && fails_in-- <= 0 ? RESULT : 0;
}

int32_t played_done(void)
{
	return done;
}

/* ---- a server in a thread ---- */

static struct opencl_calls library;
static struct server *server;
static pthread_t thread;
static uint64_t pending = 1u << 16;	/* the limit */
static int served;	/* what server_serve() returned */

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem buffer;

static void *serve(void *arg)
{
	(void)arg;
	served = server_serve(server);
	server_free(server);
	return NULL;
}

/* Have a server, and the other end of its socket. */
static int begin(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		abort();
	played_library(&library);
	server = calloc(1, sizeof(*server));
	server->api = &opencl_server;
	server->native = &library;
	server->fd = fds[1];
	server->limits = (struct limits){
		.memory = 1u << 20, .objects = 100, .message = 1u << 20, .pending = pending,
	};
	pthread_create(&thread, NULL, serve, NULL);
	return fds[0];
}

static void end(void)
{
	pthread_join(thread, NULL);
	close(server->fd);
	free(server);
	TAP_EQ(played_objects, 0);
}

static void open_all(enum remote_mode mode)
{
	cl_int err = 1;
	cl_program program;

	TAP_NEED(!remote_open(&opencl_front, begin(), mode));
	TAP_NEED(!remote_clGetPlatformIDs(1, &platform, NULL));
	TAP_NEED(!remote_clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = remote_clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	TAP_NEED(context && !err);
	queue = remote_clCreateCommandQueue(context, device, 0, &err);
	TAP_NEED(queue && !err);
	program = remote_clCreateProgramWithSource(context, 1, &(const char *){ "source" }, NULL,
						   &err);
	TAP_NEED(program && !err);
	kernel = remote_clCreateKernel(program, "kernel", &err);
	TAP_NEED(kernel && !err);
	remote_clReleaseProgram(program);
	buffer = front_clCreateBuffer(context, 0, 64, NULL, &err);
	TAP_NEED(buffer && !err);
}

static void close_all(void)
{
	remote_close();
	end();
	TAP_EQ(served, 0);
}

/* How many calls the library sees until an answer has come. */
static unsigned int calls_until_answer(void)
{
	cl_uint nr;

	remote_clGetPlatformIDs(0, NULL, &nr);
	return nr_calls;
}

static cl_int launch(size_t n, cl_event *event)
{
	return remote_clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &n, NULL, 0, NULL, event);
}

/* ---- what arrives ---- */

static size_t got_global[2], got_local[2];
static bool got_offset;
static cl_uint got_dim, got_waits;

static cl_int on_launch(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset,
			const size_t *global, const size_t *local, cl_uint nr, const cl_event *wait,
			cl_event *event)
{
	(void)q;
	(void)k;
	(void)wait;
	got_dim = dim;
	got_offset = offset;
	memcpy(got_global, global, dim * sizeof(*global));
	memcpy(got_local, local, dim * sizeof(*local));
	got_waits = nr;
	if (event)
		*event = played_new(1);
	return 0;
}

static char got_source[64];
static size_t got_lengths[2];

static cl_program on_source(cl_context c, cl_uint nr, const char **texts, const size_t *lengths,
			    cl_int *err)
{
	(void)c;
	snprintf(got_source, sizeof(got_source), "%s|%s", texts[0], nr > 1 ? texts[1] : "");
	memcpy(got_lengths, lengths, nr * sizeof(*lengths));
	*err = 0;
	return played_new(1);
}

static cl_context_properties got_properties[3];

static cl_context on_context(const cl_context_properties *properties, cl_device_type type,
			     void (*notify)(const char *, const void *, size_t, void *), void *data,
			     cl_int *err)
{
	(void)type;
	(void)notify;
	(void)data;
	memcpy(got_properties, properties, sizeof(got_properties));
	*err = 0;
	return played_new(1);
}

static void arguments_arrive(void)
{
	const size_t global[2] = { 1024, 3 }, local[2] = { 16, 1 };
	const char *texts[2] = { "kernel void", " f() {} not this" };
	const size_t lengths[2] = { 0, 7 };
	cl_context_properties properties[3] = { CL_CONTEXT_PLATFORM, 0, 0 }, there[3];
	cl_context other;
	cl_event event;
	cl_int err;
	size_t len;

	open_all(REMOTE_BATCHED);
	library.clEnqueueNDRangeKernel = on_launch;
	library.clCreateProgramWithSource = on_source;
	library.clCreateContextFromType = on_context;
	TAP_EQ(remote_clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, local, 0, NULL,
					     &event), 0);
	TAP_EQ(remote_clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, local, 1, &event,
					     NULL), 0);
	calls_until_answer();
	TAP_EQ(got_dim, 2);
	TAP_CHECK(!got_offset && !memcmp(got_global, global, sizeof(global)) &&
		  !memcmp(got_local, local, sizeof(local)));
	TAP_EQ(got_waits, 1);
	remote_clCreateProgramWithSource(context, 2, texts, lengths, &err);
	TAP_EQ(err, 0);
	TAP_CHECK(!strcmp(got_source, "kernel void| f() {}"));
	TAP_CHECK(got_lengths[0] == 11 && got_lengths[1] == 7);

	/* Handles in properties are those of the library there, and the program's here. */
	properties[1] = (cl_context_properties)platform;
	other = remote_clCreateContextFromType(properties, CL_DEVICE_TYPE_ALL, NULL, NULL, &err);
	TAP_EQ(err, 0);
	TAP_CHECK(got_properties[0] == CL_CONTEXT_PLATFORM && !got_properties[2] &&
		  got_properties[1] == (cl_context_properties)played_root(0));
	TAP_EQ(remote_clGetContextInfo(other, CL_CONTEXT_PROPERTIES, sizeof(there), there,
				       &len), 0);
	TAP_CHECK(len == sizeof(there) && !memcmp(there, properties, len));
	properties[0] = 12345;
	remote_clCreateContextFromType(properties, CL_DEVICE_TYPE_ALL, NULL, NULL, &err);
	TAP_EQ(err, CL_INVALID_PROPERTY);
	close_all();
}

static void questions_are_answered(void)
{
	cl_platform_id p = NULL;
	cl_device_id d = NULL, again;
	cl_context c = NULL;
	cl_program program;
	unsigned int before;
	cl_uint refs = 0;
	char text[64];
	size_t len;

	open_all(REMOTE_BATCHED);
	remote_clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &again, NULL);
	TAP_CHECK(again == device);
	remote_clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(p), &p, NULL);
	TAP_CHECK(p == platform);
	remote_clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(d), &d, NULL);
	TAP_CHECK(d == device);
	before = nr_calls;
	remote_clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(c), &c, NULL);
	TAP_CHECK(c == context);
	remote_clRetainCommandQueue(queue);
	remote_clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(refs), &refs, NULL);
	TAP_EQ(refs, 2);
	/* The kernel keeps the program, which is released, and that the context. */
	TAP_EQ(remote_clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(program), &program,
				      NULL), 0);
	TAP_CHECK(object_is(program, KIND_CL_PROGRAM));
	TAP_EQ(nr_calls, before);
	TAP_EQ(remote_clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(text), text, &len), 0);
	TAP_EQ(len, 40);
	TAP_CHECK(!strncmp(text, "the answer", 10));
	TAP_EQ(remote_clGetDeviceInfo(device, CL_DEVICE_NAME, 39, text, NULL), CL_INVALID_VALUE);
	TAP_EQ(remote_clGetDeviceInfo(device, 0x4000, sizeof(text), text, NULL), CL_INVALID_VALUE);
	close_all();
}

/* ---- what waits ---- */

static void like_calls_are_put_off(void)
{
	unsigned int before;
	cl_int err;

	open_all(REMOTE_BATCHED);
	before = nr_calls;
	launch(64, NULL);
	TAP_CHECK(nr_calls > before);		/* it waited */
	before = nr_calls;
	for (int i = 0; i < 5; i++)
		TAP_EQ(launch(64, NULL), 0);
	TAP_EQ(nr_calls, before);		/* they do not */
	TAP_EQ(calls_until_answer(), before + 6);
	/* Another size may be wrong. */
	before = nr_calls;
	launch(65, NULL);
	TAP_EQ(nr_calls, before + 1);
	/* So may all that failed. */
	strcpy(failing, "clEnqueueNDRangeKernel");
	TAP_EQ(launch(66, NULL), RESULT);
	TAP_EQ(launch(66, NULL), RESULT);
	failing[0] = '\0';
	before = nr_calls;
	front_clSetKernelArg(kernel, 0, 4, &err);
	TAP_EQ(nr_calls, before + 1);
	front_clSetKernelArg(kernel, 0, 4, &err);
	TAP_EQ(nr_calls, before + 1);
	front_clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
	TAP_EQ(nr_calls, before + 3);
	close_all();

	open_all(REMOTE_ONE);
	for (int i = 0; i < 3; i++) {
		before = nr_calls;
		launch(64, NULL);
		TAP_EQ(nr_calls, before + 1);
	}
	close_all();
}

static void late_errors_reach_the_queue(void)
{
	cl_event event = NULL;

	open_all(REMOTE_BATCHED);
	launch(64, NULL);
	strcpy(failing, "clEnqueueNDRangeKernel");
	TAP_EQ(launch(64, &event), 0);
	TAP_CHECK(object_is(event, KIND_CL_EVENT));
	calls_until_answer();
	/* Until the error is reported, nothing runs that may depend on the call. */
	failing[0] = '\0';
	TAP_EQ(launch(64, NULL), 0);
	TAP_EQ(remote_clFinish(queue), RESULT);
	TAP_CHECK(!strcmp(last, "clSetUserEventStatus"));
	TAP_EQ(remote_clFinish(queue), 0);
	TAP_EQ(launch(64, NULL), 0);
	TAP_EQ(remote_clFinish(queue), 0);
	TAP_EQ(remote_clReleaseEvent(event), 0);
	close_all();
}

static void late_errors_of_arguments_reach_the_queue(void)
{
	int value = 1;

	open_all(REMOTE_BATCHED);
	front_clSetKernelArg(kernel, 1, sizeof(value), &value);
	launch(64, NULL);
	strcpy(failing, "clSetKernelArg");
	TAP_EQ(front_clSetKernelArg(kernel, 1, sizeof(value), &value), 0);
	calls_until_answer();
	failing[0] = '\0';
	TAP_EQ(launch(64, NULL), 0);
	TAP_EQ(remote_clFinish(queue), RESULT);
	/* It is reported once. */
	TAP_EQ(front_clSetKernelArg(kernel, 1, sizeof(value), &value), 0);
	TAP_EQ(launch(64, NULL), 0);
	TAP_EQ(remote_clFinish(queue), 0);
	close_all();
}

static void late_errors_of_creation_stay(void)
{
	cl_mem m;
	cl_int err = 1;
	char byte = 0;

	open_all(REMOTE_BATCHED);
	strcpy(failing, "clCreateBuffer");
	/* One of this size was made. */
	m = front_clCreateBuffer(context, 0, 64, NULL, &err);
	calls_until_answer();
	failing[0] = '\0';
	TAP_CHECK(m && !err);
	for (int i = 0; i < 2; i++)
		TAP_EQ(remote_clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		       RESULT);
	TAP_EQ(remote_clFinish(queue), 0);
	TAP_EQ(remote_clReleaseMemObject(m), 0);
	/* Another size waits for the answer. */
	strcpy(failing, "clCreateBuffer");
	TAP_CHECK(!front_clCreateBuffer(context, 0, 65, NULL, &err));
	TAP_EQ(err, RESULT);
	close_all();
}

/* ---- loops ---- */

static struct mark_loop loop;

/*
 * The millisecond after which the client takes a silent loop for left passes only when a test
 * says so: a test that is not scheduled for so long is silent, too.
 */
#define REST_NS	1000000

static atomic_bool rest_passes;

int __real_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);

int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
	while (pause->tv_nsec == REST_NS && !atomic_load(&rest_passes))
		usleep(1000);
	return __real_nanosleep(pause, left);
}

/* Have a mark at the addresses from 1 to @places. */
static void mark(uintptr_t places)
{
	for (uintptr_t i = 1; i <= places; i++)
		TAP_NEED(marks_add_place((void *)i, &loop));
	loop.short_stays = 0;
}

/* The program calls from this place next. */
static void from(uintptr_t place)
{
	remote_place = (struct remote_place){ (void *)place, true };
}

static uint64_t grouped(void)
{
	struct remote_counts counts;

	remote_count(&counts);
	return counts.grouped;
}

static char order[4096];	/* what arrives: a letter for each call of interest */

static cl_int order_launch(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset,
			   const size_t *global, const size_t *local, cl_uint nr,
			   const cl_event *wait, cl_event *event)
{
	(void)q;
	(void)k;
	(void)dim;
	(void)offset;
	(void)global;
	(void)local;
	(void)nr;
	(void)wait;
	(void)event;
	strcat(order, "L");
	return played_status("clEnqueueNDRangeKernel");
}

static int32_t values[1024];
static unsigned int nr_values;

static cl_int order_arg(cl_kernel k, cl_uint index, size_t size, const void *value)
{
	(void)k;
	(void)index;
	if (size == sizeof(*values) && value && nr_values < 1024)
		memcpy(&values[nr_values++], value, size);
	strcat(order, "A");
	return 0;
}

static void open_loops(void)
{
	nr_values = 0;
	order[0] = '\0';
	open_all(REMOTE_DEFERRED);
	library.clEnqueueNDRangeKernel = order_launch;
	library.clSetKernelArg = order_arg;
	mark(2);
}

static void iterate(int from_i, int to_i)
{
	for (int i = from_i; i < to_i; i++) {
		const int32_t value = 3 * i;

		from(1);
		TAP_EQ(front_clSetKernelArg(kernel, 0, sizeof(value), &value), 0);
		from(2);
		TAP_EQ(launch(64, NULL), 0);
	}
}

static bool in_order(int iterations)
{
	calls_until_answer();
	for (int i = 0; i < iterations; i++)
		if (values[i] != 3 * i || strncmp(order + 2 * i, "AL", 2))
			return false;
	return (int)nr_values == iterations && (int)strlen(order) == 2 * iterations;
}

static void loops_are_sent_as_groups(void)
{
	open_loops();
	iterate(0, 300);
	from(0);
	TAP_CHECK(in_order(300));
	/* The first iteration is waited for, two more are looked at. */
	TAP_EQ(grouped(), 2 * 297);
	close_all();

	open_all(REMOTE_BATCHED);
	iterate(0, 300);
	TAP_EQ(grouped(), 0);
	close_all();
}

static void what_is_left_comes_after_a_group(void)
{
	const int32_t value = 3 * 20;

	open_loops();
	iterate(0, 20);
	from(1);
	front_clSetKernelArg(kernel, 0, sizeof(value), &value);
	/* Another place, which is not in the loop, ends it within the iteration. */
	from(77);
	TAP_EQ(launch(64, NULL), 0);
	from(0);
	TAP_CHECK(in_order(21));
	TAP_EQ(grouped(), 2 * 17);
	close_all();
}

static void mismatches_are_sent_as_they_are(void)
{
	open_loops();
	iterate(0, 20);
	from(0);
	calls_until_answer();
	/* The kernel's argument jumps. */
	nr_values = 0;
	order[0] = '\0';
	for (int again = 0; again < 4; again++) {
		iterate(0, 20);
		from(0);
		TAP_CHECK(in_order(20));
		nr_values = 0;
		order[0] = '\0';
	}
	/* A loop that is never as predicted is given up, and one that is, is not. */
	TAP_EQ(loop.short_stays, 0);
	for (int i = 0; i < 40; i++)
		iterate(i * i, i * i + 1);
	TAP_EQ(loop.short_stays, MARK_SHORT);
	TAP_CHECK(!marks_find((void *)1));
	close_all();
}

static void a_loop_that_is_left_is_sent(void)
{
	open_loops();
	iterate(0, 20);
	/* Without another call, as after longjmp(). */
	atomic_store(&rest_passes, true);
	while (strlen(order) < 40)
		usleep(1000);
	TAP_EQ(strlen(order), 40);
	TAP_CHECK(in_order(20));
	close_all();
	atomic_store(&rest_passes, false);
}

static void *other_thread(void *arg)
{
	const int32_t value = 12345;

	(void)arg;
	/* Of the same loop. */
	from(1);
	front_clSetKernelArg(kernel, 0, sizeof(value), &value);
	return NULL;
}

static void another_thread_comes_between(void)
{
	pthread_t other;

	open_loops();
	iterate(0, 20);
	pthread_create(&other, NULL, other_thread, NULL);
	pthread_join(other, NULL);
	iterate(20, 40);
	from(0);
	calls_until_answer();
	TAP_EQ(nr_values, 41);
	TAP_EQ(values[19], 3 * 19);
	TAP_EQ(values[20], 12345);
	TAP_EQ(values[21], 3 * 20);
	TAP_EQ(values[40], 3 * 39);
	close_all();
}

static void a_child_sends_nothing(void)
{
	int status = 1;
	pid_t pid;

	open_loops();
	iterate(0, 20);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		from(2);
		_exit(launch(64, NULL) == CL_DEVICE_NOT_AVAILABLE ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	TAP_EQ(status, 0);
	iterate(20, 40);
	from(0);
	TAP_CHECK(in_order(40));
	close_all();
}

static void objects_of_a_loop_are_made(void)
{
	cl_int err;

	open_all(REMOTE_DEFERRED);
	mark(3);
	for (int i = 0; i < 200; i++) {
		cl_mem m;

		from(1);
		m = front_clCreateBuffer(context, 0, 64, NULL, &err);
		TAP_NEED(m && !err);
		from(2);
		front_clSetKernelArg(kernel, 0, sizeof(m), &m);
		from(3);
		remote_clReleaseMemObject(m);
	}
	from(0);
	TAP_EQ(remote_clFinish(queue), 0);
	TAP_CHECK(grouped() > 3 * 190);
	close_all();
}

static void data_of_a_loop_come(void)
{
	static uint8_t bytes[50][64];
	int wrong = 0;

	open_all(REMOTE_DEFERRED);
	mark(1);
	for (int i = 0; i < 50; i++) {
		from(1);
		TAP_EQ(remote_clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, 64, bytes[i], 0, NULL,
						  NULL), 0);
	}
	from(0);
	TAP_EQ(remote_clFinish(queue), 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		wrong += bytes[i / 64][i % 64] != 1;
	TAP_EQ(wrong, 0);
	TAP_CHECK(grouped() >= 40);
	close_all();
}

static void errors_in_a_loop_are_late(void)
{
	open_loops();
	iterate(0, 5);
	from(0);
	calls_until_answer();
	strcpy(failing, "clEnqueueNDRangeKernel");
	fails_in = 10;
	iterate(5, 50);
	from(0);
	/* The launch of iteration 15 failed, and none after it was executed. */
	TAP_EQ(remote_clFinish(queue), RESULT);
	TAP_EQ(nr_values, 50);
	TAP_EQ(strlen(order), 50 + 16);
	failing[0] = '\0';
	TAP_EQ(remote_clFinish(queue), 0);
	close_all();
}

/* ---- data ---- */

static void data_come_before_the_answer(void)
{
	uint8_t bytes[64], picture[8 * 16];
	const size_t origin[3] = { 0 }, at[3] = { 4, 2, 0 }, region[3] = { 8, 4, 1 };
	cl_event event;
	int wrong = 0;

	open_all(REMOTE_BATCHED);
	memset(bytes, 9, sizeof(bytes));
	memset(picture, 9, sizeof(picture));
	done = 0;
	TAP_EQ(remote_clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, 64, bytes, 0, NULL,
					  &event), 0);
	TAP_EQ(remote_clEnqueueReadBufferRect(queue, buffer, CL_FALSE, origin, at, region, 8, 0,
					      16, 0, picture, 0, NULL, NULL), 0);
	calls_until_answer();
	/* The command has not ended. */
	TAP_EQ(bytes[0], 9);
	done = 1;
	TAP_EQ(remote_clFinish(queue), 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		wrong += bytes[i] != 1;
	for (size_t i = 0; i < sizeof(picture); i++) {
		bool inside = i % 16 >= 4 && i % 16 < 12 && i / 16 >= 2 && i / 16 < 6;

		wrong += picture[i] != (inside ? 1 : 9);
	}
	TAP_EQ(wrong, 0);
	/* A transfer that fails has none. */
	strcpy(failing, "clEnqueueReadBuffer");
	TAP_EQ(remote_clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, 64, bytes, 0, NULL, NULL), 0);
	TAP_EQ(remote_clFinish(queue), RESULT);
	TAP_EQ(remote_clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 64, bytes, 0, NULL, NULL),
	       RESULT);
	TAP_EQ(remote_clFinish(queue), 0);
	close_all();
}

static void ranges_are_checked(void)
{
	static uint8_t bytes[128];
	const size_t origin[3] = { 0, 7, 0 }, region[3] = { 8, 2, 1 }, zero[3] = { 0 };
	unsigned int before;

	open_all(REMOTE_BATCHED);
	before = nr_calls;
	TAP_EQ(remote_clEnqueueReadBuffer(queue, buffer, CL_TRUE, 60, 5, bytes, 0, NULL, NULL),
	       CL_INVALID_VALUE);
	TAP_EQ(remote_clEnqueueWriteBuffer(queue, buffer, CL_TRUE, SIZE_MAX, 5, bytes, 0, NULL,
					   NULL), CL_INVALID_VALUE);
	TAP_EQ(remote_clEnqueueCopyBuffer(queue, buffer, buffer, 0, 33, 32, 0, NULL, NULL),
	       CL_INVALID_VALUE);
	TAP_EQ(remote_clEnqueueReadBufferRect(queue, buffer, CL_TRUE, origin, zero, region, 8, 0,
					      0, 0, bytes, 0, NULL, NULL), CL_INVALID_VALUE);
	TAP_EQ(nr_calls, before);
	/* The server does not rely on the front end. */
	object_of(buffer)->size = SIZE_MAX;
	TAP_EQ(remote_clEnqueueReadBuffer(queue, buffer, CL_TRUE, 60, 5, bytes, 0, NULL, NULL),
	       CL_INVALID_VALUE);
	TAP_EQ(remote_clEnqueueCopyBuffer(queue, buffer, buffer, 0, 33, 32, 0, NULL, NULL),
	       CL_INVALID_VALUE);
	TAP_EQ(nr_calls, before);
	close_all();
}

static void limits_hold(void)
{
	cl_event events[128];
	cl_int err = 0;
	int n;

	open_all(REMOTE_BATCHED);
	TAP_CHECK(!front_clCreateBuffer(context, 0, 1u << 20, NULL, &err));
	TAP_EQ(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	/* Objects that could not be created take no memory. */
	strcpy(failing, "clCreateBuffer");
	fails_in = 0;
	for (n = 0; n < 3; n++)
		TAP_CHECK(!front_clCreateBuffer(context, 0, 600u << 10, NULL, &err));
	*failing = '\0';
	TAP_EQ(err, RESULT);
	remote_clReleaseMemObject(front_clCreateBuffer(context, 0, 600u << 10, NULL, &err));
	TAP_EQ(err, 0);
	for (n = 0; n < 128; n++)
		if (launch(64, &events[n]))
			break;
	/* The first launch waited; that there are too many objects comes late. */
	TAP_EQ(n, 128);
	TAP_EQ(remote_clFinish(queue), CL_OUT_OF_HOST_MEMORY);
	for (n = 0; n < 128; n++)
		remote_clReleaseEvent(events[n]);
	TAP_EQ(launch(64, &events[0]), 0);
	TAP_EQ(remote_clFinish(queue), 0);
	close_all();
}

/* ---- shared memory ---- */

#define BULK	(400u << 10)	/* two are a MiB, which is all there is, at most */

static uint8_t bulk[2][BULK];
static uint8_t device_memory[BULK];
static __typeof__(((struct opencl_calls *)0)->clEnqueueWriteBuffer) played_write;
static __typeof__(((struct opencl_calls *)0)->clEnqueueReadBuffer) played_read_buffer;

static cl_int keep_data(cl_command_queue q, cl_mem m, cl_bool blocking, size_t offset, size_t size,
			const void *p, cl_uint nr, const cl_event *wait, cl_event *event)
{
	memcpy(device_memory + offset, p, size);
	return played_write(q, m, blocking, offset, size, p, nr, wait, event);
}

static cl_int give_data(cl_command_queue q, cl_mem m, cl_bool blocking, size_t offset, size_t size,
			void *p, cl_uint nr, const cl_event *wait, cl_event *event)
{
	cl_int status = played_read_buffer(q, m, blocking, offset, size, p, nr, wait, event);

	memcpy(p, device_memory + offset, size);
	return status;
}

static cl_int write_bulk(unsigned int which)
{
	return remote_clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, BULK, bulk[which], 0, NULL,
					   NULL);
}

static cl_int read_bulk(cl_bool blocking)
{
	memset(bulk[1], 0, BULK);
	return remote_clEnqueueReadBuffer(queue, buffer, blocking, 0, BULK, bulk[1], 0, NULL, NULL);
}

/* Return how many large transfers went another way since the last look. */
static unsigned int sent_otherwise(void)
{
	static uint64_t before;
	struct remote_counts counts;
	uint64_t bytes;

	remote_count(&counts);
	bytes = counts.bytes > before ? counts.bytes - before : counts.bytes;
	before = counts.bytes;
	return (unsigned int)(bytes / BULK);
}

static void open_shared(void)
{
	cl_int err;

	setenv("MGPU_REMOTE_SHARED", "1", 1);
	pending = 1u << 21;
	open_all(REMOTE_BATCHED);
	remote_clReleaseMemObject(buffer);
	buffer = front_clCreateBuffer(context, 0, BULK, NULL, &err);
	TAP_NEED(buffer);
	played_write = library.clEnqueueWriteBuffer;
	played_read_buffer = library.clEnqueueReadBuffer;
	library.clEnqueueWriteBuffer = keep_data;
	library.clEnqueueReadBuffer = give_data;
	for (size_t i = 0; i < BULK; i++)
		bulk[0][i] = (uint8_t)(i * 31 + i / 256);
	sent_otherwise();
}

static void large_data_are_shared(void)
{
	open_shared();
	for (int i = 0; i < 10; i++) {
		bulk[0][i] = (uint8_t)~i;
		TAP_EQ(write_bulk(0), 0);
		TAP_EQ(read_bulk(i % 2), 0);
		TAP_EQ(remote_clFinish(queue), 0);
		TAP_CHECK(!memcmp(bulk[0], bulk[1], BULK));
	}
	TAP_EQ(sent_otherwise(), 0);
	close_all();
	unsetenv("MGPU_REMOTE_SHARED");
}

static void shared_memory_is_free_after_the_command(void)
{
	open_shared();
	TAP_EQ(write_bulk(0), 0);
	TAP_EQ(remote_clFinish(queue), 0);
	/* These are still reading: what comes must not change what they read. */
	done = 0;
	TAP_EQ(write_bulk(0), 0);
	TAP_EQ(write_bulk(0), 0);
	TAP_EQ(sent_otherwise(), 0);
	TAP_EQ(write_bulk(0), 0);
	TAP_EQ(remote_clFinish(queue), 0);
	TAP_EQ(sent_otherwise(), 1);
	done = 1;
	TAP_EQ(remote_clFinish(queue), 0);
	TAP_EQ(write_bulk(0), 0);
	TAP_EQ(write_bulk(0), 0);
	TAP_EQ(sent_otherwise(), 0);
	close_all();
}

static void failed_transfers_give_memory_back(void)
{
	open_shared();
	TAP_EQ(write_bulk(0), 0);
	TAP_EQ(read_bulk(CL_FALSE), 0);
	TAP_EQ(remote_clFinish(queue), 0);
	for (int i = 0; i < 10; i++) {
		/* The write is not waited for; the read is. */
		strcpy(failing, i % 2 ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer");
		fails_in = 0;
		TAP_EQ(i % 2 ? write_bulk(0) : read_bulk(CL_FALSE), 0);
		TAP_EQ(remote_clFinish(queue), RESULT);
		TAP_EQ(i % 2 ? 0 : bulk[1][5], 0);
		strcpy(failing, "clEnqueueReadBuffer");
		fails_in = 0;
		TAP_EQ(read_bulk(CL_TRUE), RESULT);
		*failing = '\0';
		TAP_EQ(write_bulk(0), 0);
		TAP_EQ(read_bulk(CL_TRUE), 0);
		TAP_CHECK(!memcmp(bulk[0], bulk[1], BULK));
	}
	TAP_EQ(sent_otherwise(), 0);
	close_all();
}

/* ---- messages that no front end sends ---- */

static void send_to(int fd, const void *p, size_t len)
{
	if (send(fd, p, len, MSG_NOSIGNAL) != (ssize_t)len)
		abort();
}

static void say(const struct remote_request *h, const uint64_t *args, size_t nr)
{
	const struct remote_hello hello = {
		.magic = REMOTE_MAGIC, .version = REMOTE_VERSION,
		.api = OPENCL_NUMBER, .digest = OPENCL_DIGEST,
	};
	int fd = begin();

	send_to(fd, &hello, sizeof(hello));
	send_to(fd, h, sizeof(*h));
	send_to(fd, args, nr * sizeof(*args));
	shutdown(fd, SHUT_WR);
	end();
	close(fd);
}

static void malformed_requests_end_the_server(void)
{
	const uint64_t args[4] = { 1, 1, 1, 1 }, text[4] = { 0, 8, 0x6262626262626262, 1 };
	const uint64_t root[3] = { 0, 0, REMOTE_ROOT | 5 };
	uint64_t group[10] = {
		2, 24, 1, 24, 8, (uint64_t)CALL_remoteGroup << 32, 1, 16, 2, 1,
	};

	say(&(struct remote_request){ .len = 24, .function = CALL_clGetPlatformIDs }, args, 3);
	TAP_EQ(served, 0);
	say(&(struct remote_request){ .len = 32, .function = CALL_clGetPlatformIDs }, args, 4);
	TAP_EQ(served, -EPROTO);
	say(&(struct remote_request){ .len = 16, .function = CALL_clGetPlatformIDs }, args, 2);
	TAP_EQ(served, -EPROTO);
	say(&(struct remote_request){ .len = 24, .function = CALL_clRetainContext }, args, 3);
	TAP_EQ(served, -EPROTO);
	say(&(struct remote_request){ .len = 24, .function = UINT16_MAX }, args, 3);
	TAP_EQ(served, -EPROTO);
	say(&(struct remote_request){ .len = 24, .function = CALL_clFinish, .flags = 8 }, args, 3);
	TAP_EQ(served, -EPROTO);
	/* A text without its end, and an id that is the server's. */
	say(&(struct remote_request){ .len = 32, .function = CALL_clCreateKernel }, text, 4);
	TAP_EQ(served, -EPROTO);
	say(&(struct remote_request){ .len = 16, .function = CALL_clCreateUserEvent }, root + 1, 2);
	TAP_EQ(served, -EPROTO);
	/* A group in a group, and one that waits for a reply. */
	say(&(struct remote_request){ .len = 80, .function = CALL_remoteGroup }, group, 10);
	TAP_EQ(served, -EPROTO);
	group[4 + 1] = CALL_clFinish;
	say(&(struct remote_request){ .len = 80, .function = CALL_remoteGroup, .flags = 1 }, group,
	    10);
	TAP_EQ(served, -EPROTO);
	/* Shared memory, of which there is none. */
	say(&(struct remote_request){ .len = 72, .function = CALL_clEnqueueWriteBuffer },
	    (const uint64_t[]){ 2, 5, 0, 0, 8, 0, REMOTE_SHARED, REMOTE_NULL, 0 }, 9);
	TAP_EQ(served, -EPROTO);
	say(&(struct remote_request){ .len = 72, .function = CALL_clEnqueueReadBuffer },
	    (const uint64_t[]){ 2, 5, 0, 0, 8, 0, REMOTE_SHARED | 1, REMOTE_NULL, 0 }, 9);
	TAP_EQ(served, -EPROTO);
	say(&(struct remote_request){ .len = 8, .function = REMOTE_ROOM, .flags = 1 }, args, 1);
	TAP_EQ(served, -EPROTO);
	/* The request is cut off. */
	say(&(struct remote_request){ .len = 24, .function = CALL_clGetPlatformIDs }, args, 1);
	TAP_EQ(served, -EPROTO);
}

int main(void)
{
	tap_run(arguments_arrive, "arguments arrive as they are given");
	tap_run(questions_are_answered, "questions are answered with the program's handles");
	tap_run(like_calls_are_put_off, "a call is put off if one like it succeeded");
	tap_run(late_errors_reach_the_queue, "a late error is reported once, by the next call that waits");
	tap_run(late_errors_of_arguments_reach_the_queue, "so is one of a kernel's argument");
	tap_run(late_errors_of_creation_stay, "an object that was not made fails in each use");
	tap_run(loops_are_sent_as_groups, "a loop's calls arrive as they are, in groups");
	tap_run(what_is_left_comes_after_a_group, "what is left of an iteration comes after its group");
	tap_run(mismatches_are_sent_as_they_are, "calls that are not as predicted arrive as they are");
	tap_run(a_loop_that_is_left_is_sent, "what a loop did arrives without a further call");
	tap_run(another_thread_comes_between, "a call of another thread keeps its place");
	tap_run(a_child_sends_nothing, "a child process in a loop gets errors, and sends nothing");
	tap_run(objects_of_a_loop_are_made, "objects that a loop makes are made");
	tap_run(data_of_a_loop_come, "data that a loop reads come");
	tap_run(errors_in_a_loop_are_late, "an error in a loop is the queue's");
	tap_run(data_come_before_the_answer, "data come before the answer that says so");
	tap_run(ranges_are_checked, "ranges are checked on both sides");
	tap_run(limits_hold, "limits of memory and of objects hold");
	tap_run(large_data_are_shared, "large data go through shared memory");
	tap_run(shared_memory_is_free_after_the_command,
		"shared memory is the front end's again after the command");
	tap_run(failed_transfers_give_memory_back, "so it is after a command that failed");
	tap_run(malformed_requests_end_the_server, "a malformed request ends the server");
	return tap_done();
}
