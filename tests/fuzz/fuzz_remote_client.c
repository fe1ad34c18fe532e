// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the front end of remoted OpenCL with replies.  The input is a sequence of messages: status,
 * type, number of words, then the payload.  Messages of type 0 answer the call that waits; the
 * front end must survive all others, and write no memory but what a program handed it.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "opencl_front.h"

static const uint8_t *in;	/* what is still to come */
static size_t left;
static uint8_t message[1u << 17];
static size_t message_at, message_len;
static uint32_t seq;		/* of the call that waits */

/* Socket calls of the front end. */
ssize_t __wrap_recv(int fd, void *p, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t len, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

/* Remember the last request; the front end sends whole ones, but for large data. */
ssize_t __wrap_send(int fd, const void *p, size_t len, int flags)
{
	const uint8_t *at = p;
	struct remote_request h;

	(void)fd;
	(void)flags;
	for (size_t i = 0; i + sizeof(h) <= len; i += sizeof(h) + h.len) {
		memcpy(&h, at + i, sizeof(h));
		if (h.len > len - i - sizeof(h))
			break;
		if (h.function != REMOTE_REPORT)
			seq = h.seq;
	}
	return (ssize_t)len;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return __wrap_send(fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len, flags);
}

static void next_message(void)
{
	struct remote_reply h = { .seq = seq, .type = REMOTE_REPLY };

	message_at = message_len = 0;
	if (left < 4)
		return;
	h.status = in[0] & 1 ? -(in[0] >> 1) : 0;
	h.len = h.status ? 0 : 8ull * (in[2] | in[3] << 8);
	if (in[1] & 1) {
		h.type = in[1] & 2 ? REMOTE_DATA : in[1];
		h.seq -= in[1] >> 4;
	}
	in += 4;
	left -= 4;
	if (h.len > left)
		h.len = left & ~7ull;
	memcpy(message, &h, sizeof(h));
	memcpy(message + sizeof(h), in, h.len);
	message_len = sizeof(h) + h.len;
	in += h.len;
	left -= h.len;
}

ssize_t __wrap_recv(int fd, void *p, size_t len, int flags)
{
	(void)fd;
	(void)flags;
	if (message_at == message_len)
		next_message();
	len = len < message_len - message_at ? len : message_len - message_at;
	memcpy(p, message + message_at, len);
	message_at += len;
	return (ssize_t)len;
}

/* Make all objects that questions can be asked of, as far as the server lets it. */
static void ask(cl_platform_id platform, cl_device_id device)
{
	cl_context_properties list[3] = { CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0 };
	const char *source = "source";
	char text[64];
	cl_uint devices = 0;
	cl_context context;
	cl_program program;
	cl_kernel kernels[2];
	cl_int err;
	size_t size;

	remote_clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text, &size);
	remote_clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, &size);
	remote_clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof(text), text,
			       &size);
	remote_clGetDeviceInfo(device, CL_DEVICE_PARTITION_PROPERTIES, sizeof(text), text, &size);
	remote_clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(text), text, &size);
	context = remote_clCreateContext(list, 1, &device, NULL, NULL, &err);
	if (!context)
		return;
	remote_clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(text), text, &size);
	remote_clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof(devices), &devices, NULL);
	program = remote_clCreateProgramWithSource(context, 1, &source, NULL, &err);
	if (program) {
		unsigned char binary[16], *binaries[8] = { binary, NULL };

		front_clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binaries), binaries,
				       &size);
		if (!front_clCreateKernelsInProgram(program, 2, kernels, &devices))
			for (cl_uint i = 0; i < devices; i++)
				remote_clReleaseKernel(kernels[i]);
		remote_clReleaseProgram(program);
	}
	remote_clReleaseContext(context);
}

static void transfer(cl_device_id device)
{
	const size_t zero[3] = { 0 }, region[3] = { 4, 4, 1 };
	static uint8_t large[256u << 10];
	uint8_t bytes[64], more[8 * 4];
	cl_command_queue queue;
	cl_context context;
	cl_event event = NULL;
	cl_int err;
	cl_mem m;
	void *p;

	context = remote_clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	if (!context)
		return;
	queue = remote_clCreateCommandQueue(context, device, 0, &err);
	m = front_clCreateBuffer(context, 0, sizeof(bytes), NULL, &err);
	if (queue && m) {
		remote_clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL,
					   NULL);
		remote_clEnqueueReadBuffer(queue, m, CL_FALSE, 0, sizeof(bytes), bytes, 0, NULL,
					   &event);
		remote_clEnqueueReadBufferRect(queue, m, CL_FALSE, zero, zero, region, 4, 0, 8, 0,
					       more, 0, NULL, NULL);
		/* Through shared memory, if the server takes it. */
		object_of(m)->size = sizeof(large);
		remote_clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, sizeof(large), large, 0, NULL,
					    NULL);
		remote_clEnqueueReadBuffer(queue, m, CL_FALSE, 0, sizeof(large), large, 0, NULL,
					   NULL);
		remote_clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(large), large, 0, NULL,
					   NULL);
		object_of(m)->size = sizeof(bytes);
		p = front_clEnqueueMapBuffer(queue, m, CL_FALSE, CL_MAP_WRITE, 8, 16, 0, NULL, NULL,
					     &err);
		if (p)
			front_clEnqueueUnmapMemObject(queue, m, p, 0, NULL, NULL);
		remote_clFinish(queue);
		if (event)
			remote_clReleaseEvent(event);
	}
	if (m)
		remote_clReleaseMemObject(m);
	if (queue)
		remote_clReleaseCommandQueue(queue);
	remote_clReleaseContext(context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct remote_welcome welcome = {
		.magic = REMOTE_MAGIC, .version = REMOTE_VERSION, .max_message = 1u << 16,
		.shared = size % 2,
	};
	static FILE *quiet;
	FILE *loud = stderr;
	cl_platform_id platforms[2] = { 0 };
	cl_device_id devices[2] = { 0 };
	cl_uint nr = 0;

	if (!quiet)
		quiet = fopen("/dev/null", "w");
	FUZZ_ASSERT(quiet && !setenv("MGPU_REMOTE_SHARED", "1", 1));
	/* That the connection is lost is said in each run. */
	stderr = quiet;
	memcpy(message, &welcome, sizeof(welcome));
	message_at = 0;
	message_len = sizeof(welcome);
	in = data;
	left = size;
	if (!remote_open(&opencl_front, dup(0), REMOTE_BATCHED)) {
		remote_clGetPlatformIDs(2, platforms, &nr);
		if (platforms[0])
			remote_clGetDeviceIDs(platforms[0], CL_DEVICE_TYPE_ALL, 2, devices, &nr);
		if (devices[0]) {
			ask(platforms[0], devices[0]);
			transfer(devices[0]);
		}
	}
	remote_close();
	stderr = loud;
	return 0;
}

/* ---- seeds: what a server answers ---- */

static uint8_t seed[1u << 16];
static size_t seed_len;

static void reply(uint8_t status, uint8_t type, const uint64_t *words, size_t nr)
{
	const uint8_t head[4] = { status, type, (uint8_t)nr, (uint8_t)(nr >> 8) };

	memcpy(seed + seed_len, head, sizeof(head));
	if (nr)
		memcpy(seed + seed_len + sizeof(head), words, 8 * nr);
	seed_len += sizeof(head) + 8 * nr;
}

#define REPLY(...)								\
	reply(0, 0, (const uint64_t[]){ __VA_ARGS__ },				\
	      sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8)
#define DONE()	reply(0, 0, NULL, 0)
#define FAIL()	reply(11, 0, NULL, 0)

#define WORD	0x72685f6c635f5f20ull

static void seeds(const char *dir)
{
	const uint64_t data[9] = { 64 };

	REPLY(16, REMOTE_ROOT, 0, 4, 1);
	REPLY(16, REMOTE_ROOT | 1, 0, 4, 1);
	fuzz_seed(dir, "device", seed, seed_len);
	REPLY(11, 0x5f72686b5f6c6320, 0x646369);
	REPLY(16, WORD, 0x20203436706600);
	REPLY(72, 1, 0x6b5f6c63, 0, 0, 0, 0, 0, 0, 0);
	REPLY(16, 1, 2);
	REPLY(8, REMOTE_ROOT);
	DONE();
	REPLY(8, REMOTE_ROOT | 1);
	REPLY(4, 1);
	DONE();
	REPLY(8, 4);
	REPLY(8, 4);
	REPLY(4, 1);
	REPLY(4, 0x623b61);
	REPLY(4, 0x623b61);
	DONE();
	DONE();
	fuzz_seed(dir, "questions", seed, seed_len);
	DONE();
	DONE();
	DONE();
	reply(0, 0, data, 9);
	DONE();
	DONE();
	DONE();
	FAIL();
	DONE();
	fuzz_seed(dir, "transfers", seed, seed_len);
	seed_len -= 4;
	reply(0, 3 | 1 << 4, data, 9);
	reply(0, 3 | 2 << 4, data, 9);
	reply(0, 3 | 3 << 4, data, 9);
	DONE();
	fuzz_seed(dir, "data", seed, seed_len);
}

FUZZ_SEEDS(seeds)
