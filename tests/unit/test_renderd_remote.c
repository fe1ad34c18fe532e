// SPDX-License-Identifier: GPL-2.0-only
/* A worker's contexts of remoted OpenCL, between a guest and a process, which this program is. */
#include <fcntl.h>
#include <linux/virtio_gpu.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../ctl/remote/vgpu.h"
#include "clock.h"
#include "remote.h"
#include "tap.h"

#define RES	5u
#define CTX	9u
#define IN	4096u
#define OUT	(REMOTE_VGPU_PAGE + IN)		/* where bytes for the process are */
#define SIZE	(OUT + (2u << 20))
#define SLICE	((uint64_t)REMOTE_VGPU_SLICE_NS)

static uint8_t memory[SIZE] __attribute__((aligned(4096)));
static struct remote_vgpu_page *page = (void *)memory;
static size_t memory_len = SIZE;
static struct remote *remote;
static int process, rests, answered;
static uint32_t last_type;

/* Time stands still: what a test does within a slice takes none of it. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){ .tv_sec = 1000 };
	return 0;
}

static void *memory_of(void *arg, uint32_t resource, size_t *len)
{
	(void)arg;
	*len = memory_len;
	return resource == RES ? memory : NULL;
}

static void done(void *arg, uint32_t seq, uint32_t type)
{
	(void)arg;
	TAP_EQ(seq, (uint32_t)answered + 1);
	answered++;
	last_type = type;
}

static const struct remote_ops ops = { .memory = memory_of, .done = done };

/* The process that starts others answers before it is asked. */
static void give_files(int control)
{
	int sockets[2], pipes[2], fds[2];
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(fds))];
	} room = { 0 };
	struct iovec iov = { "", 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &room, .msg_controllen = sizeof(room),
	};

	TAP_NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) && !pipe2(pipes, O_NONBLOCK));
	TAP_NEED(!fcntl(sockets[0], F_SETFL, O_NONBLOCK));
	fds[0] = sockets[0];
	fds[1] = pipes[0];
	room.header.cmsg_level = SOL_SOCKET;
	room.header.cmsg_type = SCM_RIGHTS;
	room.header.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&room.header), fds, sizeof(fds));
	TAP_NEED(sendmsg(control, &msg, 0) == 1);
	close(sockets[0]);
	close(pipes[0]);
	process = sockets[1];
	rests = pipes[1];
	fcntl(process, F_SETFL, O_NONBLOCK);
}

static uint32_t context(uint32_t command)
{
	const struct virtio_gpu_ctx_create c = {
		.hdr = { .type = command, .ctx_id = CTX }, .context_init = REMOTE_VGPU_CAPSET,
	};
	uint32_t type = 0;

	TAP_CHECK(remote_execute(remote, 0, &c.hdr, &type));
	return type;
}

/* A stream of up to some operations. */
static struct {
	struct virtio_gpu_cmd_submit cmd;
	uint8_t bytes[4096];
} stream;
static uint32_t seq;

static void put(uint32_t op, const void *p, uint32_t len)
{
	const struct remote_vgpu_op header = { .op = op, .len = len };

	memcpy(stream.bytes + stream.cmd.size, &header, sizeof(header));
	if (len)
		memcpy(stream.bytes + stream.cmd.size + sizeof(header), p, len);
	stream.cmd.size += (uint32_t)(sizeof(header) + ((len + 7) & ~7u));
}

/* Submit it. Return the answer, or 0. */
static uint32_t submit(void)
{
	uint32_t type = 0;

	stream.cmd.hdr = (struct virtio_gpu_ctrl_hdr){
		.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = CTX,
		.flags = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX,
	};
	TAP_CHECK(remote_execute(remote, ++seq, &stream.cmd.hdr, &type));
	stream.cmd.size = 0;
	return type;
}

static uint32_t operate(uint32_t op, const void *p, uint32_t len)
{
	put(op, p, len);
	return submit();
}

static uint32_t begin(uint32_t resource, uint32_t in_len)
{
	const struct remote_vgpu_open open = { .resource = resource, .in_len = in_len };

	return operate(REMOTE_VGPU_OPEN, &open, sizeof(open));
}

static void say_rests(uint64_t bytes)
{
	TAP_CHECK(write(rests, &bytes, sizeof(bytes)) == sizeof(bytes));
}

static void up(void)
{
	int control[2];

	signal(SIGPIPE, SIG_IGN);
	TAP_NEED(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control));
	give_files(control[1]);
	remote = remote_new(control[0], &ops, NULL);
	TAP_NEED(remote);
	TAP_EQ(context(VIRTIO_GPU_CMD_CTX_CREATE), VIRTIO_GPU_RESP_OK_NODATA);
	close(control[1]);
}

static void up_and_open(void)
{
	up();
	TAP_EQ(begin(RES, IN), 0);
	remote_poll(remote, now_ns());
	TAP_CHECK(answered == 1 && page->streams == 1);
}

static void down(void)
{
	remote_free(remote);
	close(process);
	close(rests);
}

/* Return whether the context's process has lost its connection, after what it was sent. */
static bool lost(void)
{
	uint8_t bytes[4096];
	ssize_t n;

	while ((n = read(process, bytes, sizeof(bytes))) > 0)
		;
	return !n;
}

/* ---- tests ---- */

static void bytes_pass(void)
{
	uint8_t bytes[64];
	const struct remote_vgpu_data data = { .offset = OUT, .len = 6 };

	up_and_open();
	memcpy(memory + OUT, "memory", 6);
	put(REMOTE_VGPU_SEND, "stream ", 7);
	put(REMOTE_VGPU_DATA, &data, sizeof(data));
	TAP_EQ(submit(), 0);
	TAP_EQ(read(process, bytes, sizeof(bytes)), 13);
	TAP_CHECK(!memcmp(bytes, "stream memory", 13));
	TAP_EQ(page->sent, 13);
	remote_poll(remote, now_ns());
	TAP_CHECK(answered == 1 && remote_works(remote) && remote_busy(remote));
	TAP_EQ(write(process, "reply", 5), 5);
	remote_poll(remote, now_ns());
	TAP_CHECK(answered == 2 && page->streams == 2 && page->put == 5 && !page->ended);
	TAP_CHECK(!memcmp(memory + REMOTE_VGPU_PAGE, "reply", 5));
	say_rests(13);
	remote_poll(remote, now_ns());
	TAP_CHECK(!remote_works(remote));
	down();
}

static void a_stream_ends_when_the_process_rests(void)
{
	up_and_open();
	TAP_EQ(operate(REMOTE_VGPU_SEND, "abc", 3), 0);
	say_rests(2);
	remote_poll(remote, now_ns());
	TAP_EQ(answered, 1);
	say_rests(3);
	remote_poll(remote, now_ns());
	TAP_EQ(answered, 2);
	TAP_EQ(operate(REMOTE_VGPU_WAIT, NULL, 0), 0);
	remote_poll(remote, now_ns());
	TAP_EQ(answered, 3);
	down();
}

/* Two at once take two slices. */
static void a_stream_has_a_length(void)
{
	uint64_t now, left;

	up_and_open();
	TAP_EQ(operate(REMOTE_VGPU_SEND, "abc", 3), 0);
	TAP_EQ(operate(REMOTE_VGPU_WAIT, NULL, 0), 0);
	now = now_ns();
	left = remote_poll(remote, now);
	TAP_CHECK(left <= SLICE && answered == 1);
	remote_poll(remote, now + SLICE);
	TAP_EQ(answered, 2);
	left = remote_poll(remote, now + SLICE + SLICE / 2);
	TAP_CHECK(left <= SLICE / 2 && answered == 2);
	TAP_EQ(remote_poll(remote, now + 2 * SLICE), UINT64_MAX);
	TAP_EQ(answered, 3);
	down();
}

static void a_ring_that_is_full(void)
{
	static uint8_t bytes[3 * IN];

	up_and_open();
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 >> 3);
	TAP_EQ(write(process, bytes, sizeof(bytes)), sizeof(bytes));
	for (unsigned int i = 0; i < 3; i++) {
		TAP_EQ(operate(REMOTE_VGPU_WAIT, NULL, 0), 0);
		remote_poll(remote, now_ns());
		TAP_EQ(page->put, (i + 1) * IN);
		TAP_CHECK(!memcmp(memory + REMOTE_VGPU_PAGE, bytes + i * IN, IN));
		page->taken = page->put;
	}
	TAP_EQ(answered, 4);
	down();
}

/* A process that does not read, and a front end that sends as much as it may, and no more. */
static void a_queue_that_is_full(void)
{
	const struct remote_vgpu_data data = { .offset = OUT, .len = REMOTE_VGPU_WINDOW };
	static uint8_t got[REMOTE_VGPU_WINDOW];
	size_t len = 0;
	ssize_t n;

	up_and_open();
	for (size_t i = 0; i < REMOTE_VGPU_WINDOW; i++)
		memory[OUT + i] = (uint8_t)(i * 5 >> 2);
	TAP_EQ(operate(REMOTE_VGPU_DATA, &data, sizeof(data)), 0);
	TAP_CHECK(page->sent && page->sent < REMOTE_VGPU_WINDOW);
	/* It was taken: the memory is the guest's again. */
	memset(memory + OUT, 0, REMOTE_VGPU_WINDOW);
	while (len < sizeof(got)) {
		n = read(process, got + len, sizeof(got) - len);
		if (n > 0)
			len += (size_t)n;
		else
			remote_poll(remote, now_ns());
	}
	remote_poll(remote, now_ns());
	TAP_EQ(page->sent, REMOTE_VGPU_WINDOW);
	for (size_t i = 0; i < sizeof(got); i++)
		if (got[i] != (uint8_t)(i * 5 >> 2))
			TAP_NEED(got[i] == (uint8_t)(i * 5 >> 2));
	for (unsigned int i = 0; i < 3; i++)
		operate(REMOTE_VGPU_DATA, &data, sizeof(data));
	TAP_CHECK(page->ended && lost());
	down();
}

static void a_process_that_ends(void)
{
	up_and_open();
	TAP_EQ(operate(REMOTE_VGPU_SEND, "abc", 3), 0);
	TAP_EQ(write(process, "last", 4), 4);
	close(process);
	remote_poll(remote, now_ns());
	TAP_CHECK(answered == 2 && page->ended && page->put == 4);
	/* The guest's kernel need not hear of that. */
	TAP_EQ(operate(REMOTE_VGPU_SEND, "abc", 3), 0);
	remote_poll(remote, now_ns());
	TAP_CHECK(answered == 3 && last_type == VIRTIO_GPU_RESP_OK_NODATA);
	TAP_CHECK(!remote_works(remote));
	remote_free(remote);
	close(rests);
}

static void a_context_that_goes(void)
{
	up_and_open();
	TAP_EQ(operate(REMOTE_VGPU_SEND, "abc", 3), 0);
	TAP_CHECK(remote_used(remote));
	TAP_EQ(context(VIRTIO_GPU_CMD_CTX_DESTROY), VIRTIO_GPU_RESP_OK_NODATA);
	TAP_CHECK(answered == 2 && lost() && !remote_used(remote));
	down();
}

static void other_contexts_are_not_its(void)
{
	struct virtio_gpu_ctx_create c = {
		.hdr = { .type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = CTX + 1 }, .context_init = 2,
	};
	uint32_t type = 0;

	up();
	TAP_CHECK(!remote_execute(remote, 0, &c.hdr, &type));
	c.hdr.type = VIRTIO_GPU_CMD_SUBMIT_3D;
	TAP_CHECK(!remote_execute(remote, 0, &c.hdr, &type));
	c.hdr = (struct virtio_gpu_ctrl_hdr){
		.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = CTX,
	};
	TAP_CHECK(!remote_execute(remote, 0, &c.hdr, &type));
	TAP_CHECK(!remote_execute(NULL, 0, &c.hdr, &type));
	down();
}

static void no_process(void)
{
	int control[2];

	TAP_NEED(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control));
	TAP_EQ(write(control[1], "", 1), 1);
	remote = remote_new(control[0], &ops, NULL);
	TAP_EQ(context(VIRTIO_GPU_CMD_CTX_CREATE), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	TAP_CHECK(!remote_used(remote));
	remote_free(remote);
	close(control[1]);
}

/* ---- what no front end sends ---- */

static void refused(void)
{
	remote_poll(remote, now_ns());
	TAP_CHECK(lost());
	down();
}

#define REFUSED(name, opened, ...)							\
	static void name(void)								\
	{										\
		if (opened)								\
			up_and_open();							\
		else									\
			up();								\
		TAP_EQ(__VA_ARGS__, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);		\
		refused();								\
	}

REFUSED(no_resource, false, begin(RES + 1, IN))
REFUSED(resource_zero, false, begin(0, IN))
REFUSED(odd_ring, false, begin(RES, IN + 8))
REFUSED(small_ring, false, begin(RES, IN / 2))
REFUSED(large_ring, false, begin(RES, 1u << 31))
REFUSED(ring_outside, false, begin(RES, 4u << 20))
REFUSED(twice, true, begin(RES, IN))
REFUSED(not_begun, false, operate(REMOTE_VGPU_SEND, "abc", 3))
REFUSED(waits_before, false, operate(REMOTE_VGPU_WAIT, NULL, 0))
REFUSED(unknown, true, operate(77, "abc", 3))
REFUSED(short_data, true, operate(REMOTE_VGPU_DATA, "abc", 3))
REFUSED(long_wait, true, operate(REMOTE_VGPU_WAIT, "abc", 3))

static void data_outside(void)
{
	const struct remote_vgpu_data data[] = {
		{ SIZE + 1, 0 }, { SIZE - 8, 16 }, { UINT32_MAX, UINT32_MAX },
		{ 16, REMOTE_VGPU_WINDOW + 1 },
	};

	for (unsigned int i = 0; i < sizeof(data) / sizeof(*data); i++) {
		answered = 0;
		seq = 0;
		memset(page, 0, sizeof(*page));
		up_and_open();
		TAP_EQ(operate(REMOTE_VGPU_DATA, &data[i], sizeof(data[i])),
		       VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
		refused();
	}
}

static void cut_off(void)
{
	const struct remote_vgpu_op op = { .op = REMOTE_VGPU_SEND, .len = UINT32_MAX };

	up_and_open();
	memcpy(stream.bytes, &op, sizeof(op));
	stream.cmd.size = sizeof(op);
	TAP_EQ(submit(), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	refused();
}

static void half_an_operation(void)
{
	up_and_open();
	put(REMOTE_VGPU_WAIT, NULL, 0);
	stream.cmd.size += 4;
	TAP_EQ(submit(), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	refused();
}

static void without_a_ring(void)
{
	uint32_t type = 0;

	up_and_open();
	put(REMOTE_VGPU_WAIT, NULL, 0);
	stream.cmd.hdr = (struct virtio_gpu_ctrl_hdr){
		.type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = CTX, .flags = VIRTIO_GPU_FLAG_FENCE,
	};
	TAP_CHECK(remote_execute(remote, 2, &stream.cmd.hdr, &type));
	TAP_EQ(type, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	refused();
}

static void too_many_streams(void)
{
	uint32_t type = 0;

	up_and_open();
	operate(REMOTE_VGPU_SEND, "abc", 3);
	for (unsigned int i = 0; i < 16 && !type; i++)
		type = operate(REMOTE_VGPU_WAIT, NULL, 0);
	TAP_EQ(type, VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	refused();
}

/* The guest's memory changes at any time, and goes. */
static void taken_is_wrong(void)
{
	up_and_open();
	page->taken = 1;
	operate(REMOTE_VGPU_WAIT, NULL, 0);
	refused();
}

static void memory_goes(void)
{
	up_and_open();
	memory_len = REMOTE_VGPU_PAGE;
	operate(REMOTE_VGPU_WAIT, NULL, 0);
	refused();
}

int main(void)
{
	tap_run(bytes_pass, "bytes of streams, of memory and of the process pass");
	tap_run(a_stream_ends_when_the_process_rests, "a stream ends when the process rests");
	tap_run(a_stream_has_a_length, "a stream has a length");
	tap_run(a_ring_that_is_full, "a full ring is filled again when the guest has taken bytes");
	tap_run(a_queue_that_is_full, "a full queue is sent on, and has a bound");
	tap_run(a_process_that_ends, "a process that ends leaves its last bytes");
	tap_run(a_context_that_goes, "a context that goes ends its process");
	tap_run(other_contexts_are_not_its, "other contexts are another renderer's");
	tap_run(no_process, "without a process there is no context");
	tap_run(no_resource, "a resource that is not there is refused");
	tap_run(resource_zero, "no resource is refused");
	tap_run(odd_ring, "a ring of another size than a power of two is refused");
	tap_run(small_ring, "a ring that is too small is refused");
	tap_run(large_ring, "a ring that is too large is refused");
	tap_run(ring_outside, "a ring that is not within the resource is refused");
	tap_run(twice, "a second beginning is refused");
	tap_run(not_begun, "bytes before the beginning are refused");
	tap_run(waits_before, "a wait before the beginning is refused");
	tap_run(unknown, "an unknown operation is refused");
	tap_run(short_data, "a range that is too short is refused");
	tap_run(long_wait, "a wait with bytes is refused");
	tap_run(data_outside, "a range outside of the resource is refused");
	tap_run(cut_off, "an operation that is longer than its stream is refused");
	tap_run(half_an_operation, "half a header is refused");
	tap_run(without_a_ring, "a stream without a ring is refused");
	tap_run(too_many_streams, "too many streams are refused");
	tap_run(taken_is_wrong, "a guest that has taken more than there is loses its process");
	tap_run(memory_goes, "a guest whose memory goes loses its process");
	return tap_done();
}
