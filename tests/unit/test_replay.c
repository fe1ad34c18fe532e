// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recordings of mgpu-renderd: a worker's commands are recorded while virglrenderer executes
 * them on Mesa's llvmpipe, and are replayed there.  The renderer runs in processes of its
 * own.
 */
#include <endian.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <linux/virtio_gpu.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>

#include "random.h"
#include "tap.h"

#include "record.h"
#include "recording.h"
#include "replay.h"
#include "stream.h"
#include "virgl.h"

#define VGPU		7u
#define WIDTH		48u
#define HEIGHT		32u
#define PIXELS		(WIDTH * HEIGHT)
#define PICTURE		(PIXELS * 4)
#define MEM_LEN		8192u		/* a picture's memory: two pages */
#define SHARED		4u		/* a resource whose entries share a page */
#define BLOB		8192u
#define OK		VIRTIO_GPU_RESP_OK_NODATA
#define RUN_S		120u		/* a replay, at most */

static char dir[32];

/* The file, as it was recorded, and where its records begin. */
static uint8_t *file;
static size_t file_len;
static uint64_t begins[100];
static unsigned int nr_begins;
static const char *why_not;	/* no file */
static bool no_sandbox;		/* a container's root, for example */

/* ---- a worker that records ---- */

struct worker {
	struct virgl *v;
	struct recorder *rec;
	uint8_t *mem;		/* guest memory: MEM_LEN for each resource */
	int fd;			/* of it */
	uint32_t seq;
	uint32_t answer;
	void *shown;		/* memory of the blob that was mapped last */
};

static void *map(void *arg, uint64_t offset, uint64_t len)
{
	struct worker *w = arg;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, (off_t)offset);

	/* As mgpu_user does: the guest's page is mapped for each entry. */
	if (p != MAP_FAILED && offset == SHARED * MEM_LEN)
		mmap((char *)p + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		     w->fd, (off_t)offset);
	return p == MAP_FAILED ? NULL : p;
}

static void done(void *arg, uint32_t seq, uint32_t type)
{
	struct worker *w = arg;

	(void)seq;
	w->answer = type;
}

static int show(void *arg, uint32_t seq, void *p, size_t len, uint32_t cache)
{
	struct worker *w = arg;

	TAP_EQ(seq, w->seq - 1);
	TAP_EQ(len, BLOB);
	TAP_EQ(cache, VIRTIO_GPU_MAP_CACHE_CACHED);
	w->shown = p;
	return 0;
}

static const struct virgl_ops ops = { .map = map, .show = show, .done = done };

static uint32_t run_mem(struct worker *w, const void *buf, size_t len, uint64_t mem)
{
	const struct mgpu_user_cmd cmd = {
		.seq = w->seq++, .flags = mem ? 0 : MGPU_USER_CMD_FENCED,
		.len = (uint32_t)len, .mem = mem, .mem_len = mem ? MEM_LEN : 0,
	};
	uint32_t type;

	w->answer = 0;
	recorder_before(w->rec, &cmd, buf);
	type = virgl_execute(w->v, &cmd, buf);
	recorder_after(w->rec, buf);
	while (virgl_busy(w->v)) {
		struct pollfd fd = { .fd = virgl_fd(w->v), .events = POLLIN };

		poll(&fd, 1, 1);
		virgl_poll(w->v);
	}
	return type ? type : w->answer;
}

static uint32_t run(struct worker *w, const void *buf, size_t len)
{
	return run_mem(w, buf, len, 0);
}

static uint8_t *memory(const struct worker *w, uint32_t id)
{
	return w->mem + id * MEM_LEN;
}

static void attach(struct worker *w, uint32_t id, struct virtio_gpu_mem_entry first,
		   struct virtio_gpu_mem_entry second)
{
	struct {
		struct virtio_gpu_resource_attach_backing c;
		struct virtio_gpu_mem_entry e[2];
	} c = {
		.c.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
		.c.resource_id = id, .c.nr_entries = 2,
		.e = { first, second },
	};

	TAP_EQ(run_mem(w, &c, sizeof(c), id * MEM_LEN), OK);
}

static uint32_t resource(struct worker *w, uint32_t type, uint32_t id)
{
	const struct virtio_gpu_ctx_resource c = {
		.hdr = { .type = type, .ctx_id = 1 }, .resource_id = id,
	};

	return run(w, &c, sizeof(c));
}

static void create_3d(struct worker *w, uint32_t id, uint32_t target, uint32_t format,
		      uint32_t bind, uint32_t width, uint32_t height)
{
	const struct virtio_gpu_resource_create_3d c = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_3D, .resource_id = id,
		.target = target, .format = format, .bind = bind, .width = width,
		.height = height, .depth = 1, .array_size = 1,
		.flags = target == GL_2D ? GL_Y_0_TOP : 0,
	};

	TAP_EQ(run(w, &c, sizeof(c)), OK);
}

static void create_2d(struct worker *w, uint32_t id)
{
	const struct virtio_gpu_resource_create_2d c = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D, .resource_id = id,
		.format = VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM, .width = WIDTH, .height = HEIGHT,
	};

	TAP_EQ(run(w, &c, sizeof(c)), OK);
}

static uint32_t transfer(struct worker *w, uint32_t type, uint32_t id, uint32_t height)
{
	const struct virtio_gpu_transfer_host_3d c = {
		.hdr = { .type = type, .ctx_id = 1 }, .resource_id = id,
		.box = { .w = WIDTH, .h = height, .d = 1 },
	};

	return run(w, &c, sizeof(c));
}

static void submit(struct worker *w, const struct gl_stream *s)
{
	struct {
		struct virtio_gpu_cmd_submit c;
		uint32_t w[1024];
	} c = {
		.c.hdr = { .type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 1 },
		.c.size = s->n * 4,
	};

	memcpy(c.w, s->w, s->n * 4);
	TAP_EQ(run(w, &c, sizeof(c.c) + s->n * 4), OK);
}

/* Put a picture into memory whose pages are in the other order, and random. */
static void scatter(struct worker *w, uint32_t id, uint8_t *picture)
{
	for (size_t i = 0; i < PICTURE; i++)
		picture[i] = (uint8_t)rnd();
	memcpy(memory(w, id) + 4096, picture, 4096);
	memcpy(memory(w, id), picture + 4096, PICTURE - 4096);
}

/* Transfer resource 1 from the host, and compare it. */
static void expect(struct worker *w, const uint8_t *picture)
{
	memset(memory(w, 1), 0x5a, MEM_LEN);
	TAP_EQ(transfer(w, VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D, 1, HEIGHT), OK);
	TAP_MEM(memory(w, 1) + 4096, picture, 4096);
	TAP_MEM(memory(w, 1), picture + 4096, PICTURE - 4096);
}

static void expect_colour(struct worker *w, uint32_t argb)
{
	uint32_t picture[PIXELS];

	for (size_t i = 0; i < PIXELS; i++)
		picture[i] = argb;
	expect(w, (uint8_t *)picture);
}

static void draw(struct worker *w)
{
	static const char *const text =
		"FRAG\n"
		"PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1\n"
		"DCL OUT[0], COLOR\n"
		"IMM[0] FLT32 {1.0, 0.0, 1.0, 1.0}\n"
		"0: MOV OUT[0], IMM[0]\n"
		"1: END\n";
	struct gl_stream s;

	create_3d(w, 3, GL_BUFFER, GL_R8, GL_VERTICES, sizeof(gl_corners), 1);
	TAP_EQ(resource(w, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, 3), OK);
	gl_begin(&s);
	gl_surface(&s, 10, 1);
	gl_draw_to(&s, 10);
	gl_pipeline(&s, 3, WIDTH, HEIGHT);
	gl_shader(&s, 11, GL_FRAGMENT, text);
	gl_clear(&s, 0, 1, 0, 0);
	gl_triangle(&s);
	submit(w, &s);
	expect_colour(w, 0xffffffff);
}

/* Each half of a line of pixels has an entry, and both entries are in one page. */
static void share_a_page(struct worker *w)
{
	const uint32_t half = WIDTH * 2;
	uint32_t *line = (uint32_t *)memory(w, SHARED);
	struct gl_stream s;

	create_3d(w, SHARED, GL_2D, GL_B8G8R8A8, GL_TARGET | GL_SAMPLED, WIDTH, 1);
	attach(w, SHARED, (struct virtio_gpu_mem_entry){ .addr = 0, .length = half },
	       (struct virtio_gpu_mem_entry){ .addr = 4096 + half, .length = half });
	TAP_EQ(resource(w, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, SHARED), OK);
	gl_begin(&s);
	gl_put_fill(&s, SHARED, 0xff102030);
	submit(w, &s);
	TAP_EQ(transfer(w, VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D, SHARED, 1), OK);
	for (uint32_t i = 0; i < WIDTH; i++)
		TAP_EQ(line[i], 0xff102030);
}

/* A transfer to the host within a stream. */
static void upload_by_stream(struct worker *w)
{
	const uint32_t words[13] = {
		[0] = 1, [8] = WIDTH, [9] = HEIGHT, [10] = 1, [12] = 1,
	};
	uint8_t picture[PICTURE];
	struct gl_stream s;

	scatter(w, 1, picture);
	gl_begin(&s);
	gl_head(&s, 43, 0, 13);
	for (size_t i = 0; i < 13; i++)
		gl_word(&s, words[i]);
	submit(w, &s);
	expect(w, picture);
}

static uint32_t create_blob(struct worker *w, uint32_t id, uint64_t blob_id)
{
	const struct virtio_gpu_resource_create_blob c = {
		.hdr = { .type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = 1 },
		.resource_id = id, .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
		.blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE, .blob_id = blob_id,
		.size = BLOB,
	};

	return run(w, &c, sizeof(c));
}

static uint32_t map_blob(struct worker *w, uint32_t id)
{
	const struct virtio_gpu_resource_map_blob c = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB, .resource_id = id,
	};

	return run(w, &c, sizeof(c));
}

/* Draw the triangle of draw() with the vertices of the blob, after a clear to green. */
static void draw_with(struct worker *w, uint32_t id)
{
	struct gl_stream s;

	gl_begin(&s);
	gl_draw_to(&s, 10);
	gl_clear(&s, 0, 1, 0, 0);
	gl_vertices_from(&s, id);
	gl_triangle(&s);
	submit(w, &s);
}

/* A blob that the guest writes to, while it is mapped and before it is unmapped. */
static void draw_from_a_blob(struct worker *w)
{
	const uint32_t id = SHARED + 1;
	uint8_t zeros[BLOB] = { 0 };
	struct gl_stream s;
	uint8_t *p;
	size_t len;

	gl_begin(&s);
	gl_storage(&s, 70, BLOB);
	gl_storage(&s, 71, BLOB / 2);
	submit(w, &s);
	TAP_EQ(create_blob(w, id, 72), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	/* It is another size than the guest says. */
	TAP_EQ(create_blob(w, id, 71), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	TAP_EQ(map_blob(w, id), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	TAP_EQ(create_blob(w, id, 70), OK);
	TAP_EQ(create_blob(w, id, 70), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	TAP_EQ(resource(w, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, id), OK);
	TAP_EQ(map_blob(w, 1), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	TAP_EQ(map_blob(w, id), OK);
	p = virgl_memory(w->v, id, &len);
	TAP_NEED(p);
	TAP_EQ(p == w->shown, true);
	TAP_EQ((uintptr_t)p % 4096, 0);
	TAP_EQ(len, BLOB);
	TAP_MEM(p, zeros, BLOB);
	memcpy(p, gl_corners, sizeof(gl_corners));
	draw_with(w, id);
	expect_colour(w, 0xffffffff);
	memset(p, 0, sizeof(gl_corners));
	TAP_EQ(resource(w, VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB, id), OK);
	draw_with(w, id);
	expect_colour(w, 0x0000ff00);
	TAP_EQ(resource(w, VIRTIO_GPU_CMD_RESOURCE_UNREF, id), OK);
	TAP_EQ(resource(w, VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB, id),
	       VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
}

static void work(struct worker *w)
{
	const struct virtio_gpu_ctx_create ctx = {
		.hdr = { .type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = 1 }, .nlen = 4,
		.debug_name = "test",
	};
	const struct virtio_gpu_transfer_to_host_2d up = {
		.hdr.type = VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D, .resource_id = 2,
		.r = { .width = WIDTH, .height = HEIGHT },
	};
	uint8_t picture[PICTURE];
	struct gl_stream s;

	TAP_EQ(run(w, &ctx, sizeof(ctx)), OK);
	create_3d(w, 1, GL_2D, GL_B8G8R8A8, GL_TARGET | GL_SAMPLED, WIDTH, HEIGHT);
	create_2d(w, 2);
	for (uint32_t id = 1; id <= 2; id++) {
		/* The memory's pages in the other order. */
		attach(w, id, (struct virtio_gpu_mem_entry){ .addr = 4096, .length = 4096 },
		       (struct virtio_gpu_mem_entry){ .addr = 0, .length = 4096 });
		TAP_EQ(resource(w, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, id), OK);
	}
	gl_begin(&s);
	gl_put_fill(&s, 1, 0xff2040c0);
	submit(w, &s);
	expect_colour(w, 0xff2040c0);

	scatter(w, 1, picture);
	TAP_EQ(transfer(w, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D, 1, HEIGHT), OK);
	expect(w, picture);

	scatter(w, 2, picture);
	TAP_EQ(run(w, &up, sizeof(up)), OK);
	gl_begin(&s);
	gl_copy(&s, 1, 2, WIDTH, HEIGHT);
	submit(w, &s);
	expect(w, picture);

	upload_by_stream(w);
	draw(w);
	share_a_page(w);
	draw_from_a_blob(w);
	/* Nothing has this number. */
	TAP_CHECK(transfer(w, VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D, 99, HEIGHT) != OK);
	TAP_EQ(resource(w, VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING, 1), OK);
	for (uint32_t id = 1; id <= SHARED; id++)
		TAP_EQ(resource(w, VIRTIO_GPU_CMD_RESOURCE_UNREF, id), OK);
	TAP_EQ(resource(w, VIRTIO_GPU_CMD_CTX_DESTROY, 0), OK);
}

/* In a process of its own: 0; 1 if a check failed; 2 without a renderer. */
static int record(void)
{
	struct worker w = { .fd = memfd_create("guest", MFD_CLOEXEC) };
	int fd = recorder_create(dir, VGPU);

	if (fd < 0 || w.fd < 0 || ftruncate(w.fd, (SHARED + 1) * MEM_LEN))
		return 1;
	w.mem = mmap(NULL, (SHARED + 1) * MEM_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd, 0);
	if (w.mem == MAP_FAILED)
		return 1;
	if (virgl_new(&w.v, -1, &ops, &w))
		return 2;
	rng = 20;
	w.rec = recorder_new(fd, VGPU, w.v);
	work(&w);
	recorder_free(w.rec);
	virgl_free(w.v);
	return tap.bad ? 1 : 0;
}

static char output[1 << 16], errors[1 << 16];

static void slurp(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
}

/* Run record() in a process of its own, whose output is kept. */
static int record_apart(void)
{
	int status, out = memfd_create("out", 0);
	pid_t pid = fork();

	if (!pid) {
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
		status = record();
		fflush(stdout);
		_exit(status);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	slurp(out, output, sizeof(output));
	close(out);
	return WEXITSTATUS(status);
}

/* ---- replays ---- */

/* Its outputs, and its process. */
static struct {
	int out, err;
	pid_t pid;
} replaying;

/* Start `replay OPTION... FILE`, FILE with these bytes. */
static void replay_start(const char *const *options, const void *data, size_t len)
{
	char path[64], *argv[10] = { (char *)"replay" };
	int fd, argc = 1, status;

	replaying.out = memfd_create("out", 0);
	replaying.err = memfd_create("err", 0);
	snprintf(path, sizeof(path), "%s/replayed", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len || close(fd))
		abort();
	while (options && *options)
		argv[argc++] = (char *)*options++;
	if (no_sandbox)
		argv[argc++] = (char *)"--no-sandbox";
	argv[argc++] = path;
	fflush(stdout);
	replaying.pid = fork();
	if (replaying.pid < 0)
		abort();
	if (!replaying.pid) {
		dup2(replaying.out, STDOUT_FILENO);
		dup2(replaying.err, STDERR_FILENO);
		status = replay_main(argc, argv);
		fflush(stdout);
		_exit(status);
	}
}

/* Return the exit status, or -signal. */
static int replay_wait(void)
{
	int status = SIGALRM;

	if (!tap_wait(replaying.pid, tap_limit(RUN_S), &status))
		status = SIGALRM;
	slurp(replaying.out, output, sizeof(output));
	slurp(replaying.err, errors, sizeof(errors));
	close(replaying.out);
	close(replaying.err);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int replay(const char *const *options, const void *data, size_t len)
{
	replay_start(options, data, len);
	return replay_wait();
}

static bool replay_ends(int got, int want)
{
	if (TAP_EQ(got, want))
		return true;
	tap_diag("%s\n%s", output, errors);
	return false;
}

static bool says(const char *text, const char *what)
{
	if (TAP_CHECK(strstr(text, what)))
		return true;
	tap_diag("not there: %s\nin: %s", what, text);
	return false;
}

#define NEED_FILE()					\
	do {						\
		if (why_not)				\
			TAP_SKIP(why_not);		\
		TAP_NEED(file);				\
	} while (0)

/* ---- the reader ---- */

static struct recording reader;

static int open_bytes(const void *data, size_t len)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	return recording_open(&reader, fd);
}

/* Return 0, or the error. */
static int read_bytes(const void *data, size_t len)
{
	int ret = open_bytes(data, len);

	while (!ret) {
		ret = recording_next(&reader);
		if (ret <= 0)
			break;
		ret = 0;
	}
	recording_close(&reader);
	return ret;
}

/* Offset of the body of the @nth record of a type, or 0. */
static uint64_t find_record(uint32_t type, uint32_t command, unsigned int nth)
{
	const struct virtio_gpu_ctrl_hdr *hdr;
	uint64_t at = 0;

	if (open_bytes(file, file_len))
		abort();
	while (!at && recording_next(&reader) > 0) {
		hdr = reader.buf;
		if (reader.type == type && (!command || hdr->type == command) && !nth--)
			at = reader.at + sizeof(struct record_header);
	}
	recording_close(&reader);
	return at;
}

/* ---- tests ---- */

static void recorded(void)
{
	NEED_FILE();
	TAP_EQ(read_bytes(file, file_len), 0);
	TAP_EQ(reader.vgpu, VGPU);
	TAP_CHECK(find_record(RECORD_CAPSET, 0, 1));
	/* Three uploads, 0x5a before seven of the transfers back, and twice the blob. */
	TAP_CHECK(find_record(RECORD_MEMORY, 0, 11));
	TAP_EQ(find_record(RECORD_MEMORY, 0, 12), 0);
	TAP_CHECK(find_record(RECORD_CHECK, 0, 7));
	TAP_EQ(find_record(RECORD_CHECK, 0, 8), 0);
}

static void names(void)
{
	char name[64];
	struct stat st;
	int fd;

	for (unsigned int n = 1; n <= 3; n++) {
		fd = recorder_create(dir, 1000);
		TAP_NEED(fd >= 0);
		snprintf(name, sizeof(name), "%s/vgpu-1000-%u.mgpurec", dir, n);
		TAP_EQ(stat(name, &st), 0);
		TAP_EQ(st.st_mode & 0777, 0600);
		TAP_EQ(write(fd, "x", 1), 1);
		close(fd);
	}
	TAP_EQ(recorder_create("/nonexistent", 1), -ENOENT);
}

static void equal(void)
{
	NEED_FILE();
	replay_ends(replay((const char *[]){ "--check", NULL }, file, file_len), 0);
	says(output, "transfers from the host: 8, of which 0 differ\n");
	says(output, "refused: 7 commands\n");
	says(output, "resource-map-blob");
	says(output, "renderer: LLVMPIPE");
	says(output, "recorded on: LLVMPIPE");
	says(output, "submit-3d");
	TAP_CHECK(!strstr(output, "capability sets"));
}

static void as_json(void)
{
	char path[64], text[256];
	const char *const options[] = { "-N", "3", "--json", path, NULL };
	struct json_object *all, *one, *o, *runs, *jobs;
	size_t nr;

	NEED_FILE();
	snprintf(path, sizeof(path), "%s/json", dir);
	replay_ends(replay(options, file, file_len), 0);
	snprintf(text, sizeof(text), "python3 %s/tests/lib/json_schema.py replay %s", TOP, path);
	TAP_EQ(system(text), 0);

	all = json_object_from_file(path);
	TAP_NEED(all);
	json_object_object_get_ex(all, "replays", &o);
	TAP_EQ(json_object_array_length(o), 1);
	one = json_object_array_get_idx(o, 0);
	json_object_object_get_ex(one, "transfers", &o);
	TAP_EQ(json_object_get_int(o), 3 * 8);
	json_object_object_get_ex(one, "differ", &o);
	TAP_EQ(json_object_get_int(o), 0);
	json_object_object_get_ex(one, "jobs", &jobs);
	json_object_object_get_ex(jobs, "count", &o);
	nr = (size_t)json_object_get_int(o);
	TAP_CHECK(nr > 3 * 20);
	json_object_object_get_ex(one, "runs_job_s", &runs);
	TAP_EQ(json_object_array_length(runs), 3);
	for (size_t i = 0; i < 3; i++)
		TAP_EQ(json_object_array_length(json_object_array_get_idx(runs, i)), nr / 3);
	json_object_put(all);
}

/* A change of any kind of input is seen in the pictures. */
static void differences(void)
{
	static const struct {
		uint32_t type, command;
		unsigned int nth;
		uint32_t at;		/* in the body */
		const char *differ;
	} change[] = {
		{ RECORD_RESULT, 0, 0, 16 + 9, "1 differ, in 1 bytes by at most 128\n" },
		/* Red that is cleared to, in the stream: below 0 it is none. */
		{ RECORD_COMMAND, VIRTIO_GPU_CMD_SUBMIT_3D, 0, 24 + 32 + 4 * 12 + 3,
		  "1 differ, in 1536 bytes by at most 32\n" },
		/* 0: memory before the first transfer back; then the first upload. */
		{ RECORD_MEMORY, 0, 1, 16 + 77, "1 differ, in 1 bytes by at most 128\n" },
	};
	uint8_t *copy = grab(file_len);

	NEED_FILE();
	for (size_t i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
		uint64_t at = find_record(change[i].type, change[i].command, change[i].nth);

		TAP_NEED(at);
		memcpy(copy, file, file_len);
		copy[at + change[i].at] ^= 0x80;
		replay_ends(replay((const char *[]){ "--check", NULL }, copy, file_len), 1);
		says(output, change[i].differ);
		/* Without --check, a difference is no error. */
		if (!i)
			replay_ends(replay(NULL, copy, file_len), 0);
	}
	free(copy);
}

/* Return a copy of the file whose last command begins so much later. */
static uint8_t *delayed(uint64_t seconds)
{
	uint64_t last = 0, at, ns;
	uint8_t *copy = grab(file_len);

	memcpy(copy, file, file_len);
	for (unsigned int n = 0; (at = find_record(RECORD_COMMAND, 0, n)); n++)
		last = at - sizeof(struct record_header);
	memcpy(&ns, copy + last + offsetof(struct record_header, ns), sizeof(ns));
	ns = htole64(le64toh(ns) + seconds * 1000000000u);
	memcpy(copy + last + offsetof(struct record_header, ns), &ns, sizeof(ns));
	return copy;
}

static void pace(void)
{
	struct timespec from, to;
	uint8_t *copy;

	NEED_FILE();
	copy = delayed(1);
	clock_gettime(CLOCK_MONOTONIC, &from);
	replay_ends(replay((const char *[]){ "--pace", NULL }, copy, file_len), 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	TAP_CHECK(to.tv_sec - from.tv_sec + (double)(to.tv_nsec - from.tv_nsec) / 1e9 >= 1);
	free(copy);
}

/* The process of a process that is not over, or 0. */
static pid_t child_of(pid_t pid)
{
	char path[64], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	slurp(fd, text, sizeof(text));
	close(fd);
	return (pid_t)atoi(text);
}

/* Start a replay that waits for the last command for an hour; the renderer's process, or 0. */
static pid_t replay_waits(void)
{
	uint8_t *copy = delayed(3600);
	pid_t pid;

	replay_start((const char *[]){ "--pace", NULL }, copy, file_len);
	while (!(pid = child_of(replaying.pid)) && child_of(getpid()))
		usleep(1000);
	free(copy);
	return pid;
}

static void renderer_dies(void)
{
	pid_t pid;

	NEED_FILE();
	pid = replay_waits();
	TAP_CHECK(pid && !kill(pid, SIGKILL));
	replay_ends(replay_wait(), 1);
	says(errors, "ended the renderer by signal 9");
}

static bool has_status(pid_t pid, const char *line)
{
	char path[64], text[4096] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	slurp(fd, text, sizeof(text));
	close(fd);
	return strstr(text, line);
}

static bool sees(pid_t pid, const char *file_of_host)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/root%s", pid, file_of_host);
	return !access(path, F_OK);
}

/* That of a worker, which kselftest/test_sandbox tries from within. */
static void sandboxed(void)
{
	pid_t pid;

	NEED_FILE();
	if (no_sandbox)
		TAP_SKIP("this root may not make namespaces");
	pid = replay_waits();
	while (pid && child_of(replaying.pid) == pid &&
	       !(has_status(pid, "\nSeccomp:\t2\n") && has_status(pid, "\nNoNewPrivs:\t1\n")))
		usleep(1000);
	TAP_CHECK(has_status(pid, "\nSeccomp:\t2\n"));
	TAP_CHECK(has_status(pid, "\nNoNewPrivs:\t1\n"));
	if (!geteuid()) {
		TAP_CHECK(!has_status(pid, "\nUid:\t0\t"));
		TAP_CHECK(has_status(pid, "\nCapEff:\t0000000000000000\n"));
		TAP_CHECK(sees(pid, "/usr/lib") && sees(pid, "/dev/null"));
		TAP_CHECK(!sees(pid, "/etc/passwd") && !sees(pid, dir));
	}
	TAP_CHECK(pid && !kill(pid, SIGKILL));
	replay_ends(replay_wait(), 1);
}

/* Number of mappings that a process shares with others by fork(), or 0 if it is over. */
static unsigned int shared_mappings(pid_t pid)
{
	char path[64], line[512];
	unsigned int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		n += !!strstr(line, "/dev/zero (deleted)");
	if (f)
		fclose(f);
	return n;
}

/* A renderer that a recording has taken over could change what others before it have told. */
static void runs_apart(void)
{
	uint8_t *copy;
	pid_t pid, first = 0;
	unsigned int n = 0;

	NEED_FILE();
	copy = delayed(2);
	replay_start((const char *[]){ "--pace", "--repeat", "2", NULL }, copy, file_len);
	while (child_of(getpid()) && !n) {
		pid = child_of(replaying.pid);
		if (!first)
			first = pid;
		if (pid && pid != first)
			n = shared_mappings(pid);
		usleep(1000);
	}
	TAP_EQ(n, 1);
	replay_ends(replay_wait(), 0);
	free(copy);
}

static bool may_sandbox(void)
{
	int status = 1;
	pid_t pid;

	if (geteuid())
		return true;
	pid = fork();
	if (!pid)
		_exit(!!unshare(CLONE_NEWPID | CLONE_NEWNS));
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

/* Values that cannot be are refused, each with its reason and the offset of the record. */
static void refusals(void)
{
	enum { BODY, HEAD, FILE_AT };
	static const struct {
		int of;
		uint32_t type, command;
		uint32_t at, value;
		const char *why;
	} wrong[] = {
		{ FILE_AT, 0, 0, 0, 0, "not a recording" },
		{ FILE_AT, 0, 0, 8, 3,
		  "version 3 of the format; this mgpu-renderd reads versions up to 2" },
		{ FILE_AT, 0, 0, 8, 0, "version 0 of the format" },
		{ HEAD, RECORD_COMMAND, 0, 0, 77, "unknown type 77" },
		{ HEAD, RECORD_COMMAND, 0, 4, ~0u, "a record of 4294967295 bytes" },
		{ HEAD, RECORD_COMMAND, 0, 4, 40, "a command of 40 bytes" },
		{ HEAD, RECORD_CAPSET, 0, 12, 1u << 31, "the time decreases" },
		{ HEAD, RECORD_CAPSET, 0, 4, 4, "a capability set of 4 bytes" },
		{ BODY, RECORD_COMMAND, 0, 4, 4, "unknown flags 0x4" },
		{ BODY, RECORD_COMMAND, VIRTIO_GPU_CMD_CTX_DESTROY, 24,
		  VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D, "command 0x205 has 32 bytes" },
		{ BODY, RECORD_COMMAND, VIRTIO_GPU_CMD_SUBMIT_3D, 48, ~0u,
		  "a stream of 4294967295" },
		{ BODY, RECORD_COMMAND, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING, 24 + 28, 3,
		  "3 entries of memory" },
		{ BODY, RECORD_COMMAND, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING, 24 + 32 + 8, 4097,
		  "entry 0 is not in the memory" },
		{ BODY, RECORD_COMMAND, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING, 24 + 32 + 16 + 8,
		  8192, "entries of 12288 bytes" },
		{ BODY, RECORD_COMMAND, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING, 20, 1,
		  "more memory than there may be" },
		{ BODY, RECORD_COMMAND, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, 24 + 36, 1,
		  "a blob of the host's memory has 1 entries" },
		{ BODY, RECORD_COMMAND, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, 24 + 52, 1,
		  "a blob of 4294975488 bytes" },
		{ BODY, RECORD_MEMORY, 0, 0, 55, "resource 55, which has none" },
		{ BODY, RECORD_MEMORY, 0, 4, 1, "a reserved field" },
		{ BODY, RECORD_MEMORY, 0, 8, 4097, "4097 of resource 1" },
		{ BODY, RECORD_MEMORY, 0, 12, 1, "of resource 1, whose memory has 8192" },
		{ BODY, RECORD_RESULT, 0, 0, 2, "does not follow a transfer" },
		{ BODY, RECORD_CHECK, 0, 0, 2, "does not follow a transfer" },
		{ BODY, RECORD_CHECK, 0, 0, 9, "which has no memory" },
	};
	uint8_t *copy = grab(file_len);

	NEED_FILE();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint64_t at = wrong[i].of == FILE_AT ? 0 :
			find_record(wrong[i].type, wrong[i].command, 0);
		char where[32];

		TAP_NEED(at || wrong[i].of == FILE_AT);
		snprintf(where, sizeof(where), "at byte %" PRIu64 ": ",
			 wrong[i].of == FILE_AT ? 0 : at - sizeof(struct record_header));
		if (wrong[i].of == HEAD)
			at -= sizeof(struct record_header);
		memcpy(copy, file, file_len);
		put32(copy + at + wrong[i].at, wrong[i].value);
		TAP_EQ(read_bytes(copy, file_len), -EBADMSG);
		says(reader.why, wrong[i].why);
		/* The time before the one that decreases is wrong. */
		if (!strstr(wrong[i].why, "decreases"))
			says(reader.why, where);
	}
	free(copy);
}

static void cut(void)
{
	uint8_t *ends = calloc(1, file_len + 1);
	unsigned int whole = 0;

	NEED_FILE();
	ends[sizeof(struct recording_header)] = 1;
	if (open_bytes(file, file_len))
		abort();
	while (recording_next(&reader) > 0)
		ends[reader.next] = 1;
	recording_close(&reader);
	for (size_t len = 0; len <= file_len; len++) {
		TAP_EQ(read_bytes(file, len), ends[len] ? 0 : -EBADMSG);
		whole += ends[len];
		if (!ends[len] && len > sizeof(struct recording_header)) {
			char how[64];

			snprintf(how, sizeof(how), "'truncate -s %" PRIu64 "'", reader.at);
			TAP_CHECK(ends[reader.at] && reader.at < len);
			TAP_CHECK(strstr(reader.why, "cut off") && strstr(reader.why, how));
		}
	}
	TAP_CHECK(whole > 40);
	free(ends);
}

/* A part that is whole is replayed: some lengths, and one that is not whole. */
static void cut_replayed(void)
{
	uint64_t at;

	NEED_FILE();
	for (unsigned int n = 3; n < 25; n += 7) {
		at = find_record(RECORD_COMMAND, 0, n);
		TAP_NEED(at);
		at -= sizeof(struct record_header);
		replay_ends(replay((const char *[]){ "-c", NULL }, file, at), 0);
		replay_ends(replay(NULL, file, at + 5), 1);
		says(errors, "cut off");
	}
	replay_ends(replay(NULL, file, sizeof(struct recording_header)), 0);
	says(output, "vGPU 7, no commands\n");
	replay_ends(replay(NULL, file, 0), 1);
	says(errors, "not a recording");
}

/* Damage some bytes, most of them at the beginnings of records. */
static void flip(uint8_t *copy)
{
	memcpy(copy, file, file_len);
	for (uint64_t n = 1 + below(3); n; n--) {
		size_t at = below(8) ? begins[below(nr_begins)] + below(200) : below(file_len);

		at %= file_len;
		copy[at] = (uint8_t)(below(2) ? copy[at] ^ 1u << below(8) : rnd());
	}
}

static void flips_read(void)
{
	uint8_t *copy = grab(file_len);
	unsigned int good = 0;
	int ret;

	NEED_FILE();
	rng = 1;
	for (unsigned int i = 0; i < 3000; i++) {
		flip(copy);
		ret = read_bytes(copy, file_len);
		TAP_CHECK(!ret || ret == -EBADMSG);
		TAP_CHECK(!ret == !reader.why[0]);
		good += !ret;
	}
	if (!TAP_CHECK(good > 300 && good < 2700))
		tap_diag("%u are good", good);
	free(copy);
}

static void flips_replayed(void)
{
	unsigned int n = tap_some(25, 300), lost = 0, refused = 0;
	uint8_t *copy = grab(file_len);
	int status;

	NEED_FILE();
	rng = 2;
	for (unsigned int i = 0; i < n; ) {
		flip(copy);
		/* The reader's test has the others. */
		if (read_bytes(copy, file_len))
			continue;
		i++;
		status = replay(NULL, copy, file_len);
		if (!TAP_CHECK(status == 0 || status == 1))
			tap_diag("file %u: status %d\n%s", i, status, errors);
		if (strstr(errors, "the renderer"))
			lost++;
		else if (status)
			refused++;
		/* Of faults within libraries the sanitizers have signals only. */
		if (!TAP_CHECK(!strstr(errors, "runtime error:") &&
			       (!strstr(errors, "AddressSanitizer: ") ||
				strstr(errors, "AddressSanitizer: SEGV") ||
				strstr(errors, "AddressSanitizer: ABRT"))))
			tap_diag("file %u: %s", i, errors);
	}
	tap_diag("%u files; %u ended the renderer, %u were refused", n, lost, refused);
	free(copy);
}

static void wrong_calls(void)
{
	static const struct {
		const char *options[3];
		int status;
		const char *why;
	} call[] = {
		{ { "--repeat", "0" }, 2, "must be a number from 1 to" },
		{ { "--repeat", "x" }, 2, "must be a number from 1 to" },
		{ { "--rpeat=3" }, 2, "did you mean --repeat?" },
		{ { "--node", "/nonexistent" }, 1, "cannot open the render node /nonexistent" },
		{ { "--json", "/nonexistent/x" }, 1, "cannot write /nonexistent/x" },
		{ { "/nonexistent" }, 1, "/nonexistent: No such file" },
	};

	NEED_FILE();
	for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
		replay_ends(replay(call[i].options, file, file_len), call[i].status);
		says(errors, call[i].why);
	}
}

static void load_file(void)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/vgpu-%u-1.mgpurec", dir, VGPU);
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		return;
	file_len = (size_t)st.st_size;
	file = grab(file_len);
	if (read(fd, file, file_len) != st.st_size || open_bytes(file, file_len))
		abort();
	close(fd);
	while (nr_begins < 100 && recording_next(&reader) > 0)
		begins[nr_begins++] = reader.at;
	recording_close(&reader);
}

static int status_of_record;

static void recording_works(void)
{
	if (why_not)
		TAP_SKIP(why_not);
	if (!TAP_EQ(status_of_record, 0))
		tap_diag("%s", output);
}

static void clean(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command))
		perror(dir);
}

int main(void)
{
	strcpy(dir, "/tmp/test_replay.XXXXXX");
	if (!mkdtemp(dir))
		abort();
	no_sandbox = !may_sandbox();
	status_of_record = record_apart();
	if (status_of_record == 2)
		why_not = "no GL by software here";
	else
		load_file();
	tap_run(recording_works, "what a worker draws and transfers is as expected");
	tap_run(recorded, "its recording has the memory that transfers read");
	tap_run(names, "each worker gets a file of its own, and none is overwritten");
	tap_run_within(equal, "a replay has the same pictures", 2 * RUN_S);
	tap_run_within(as_json, "times of jobs are written as JSON", 2 * RUN_S);
	tap_run_within(differences, "other input, or another result, is a difference", 4 * RUN_S);
	tap_run_within(pace, "a replay keeps the pace of the recording", 2 * RUN_S);
	tap_run_within(renderer_dies, "a renderer that dies is an error", 2 * RUN_S);
	tap_run_within(runs_apart, "a renderer cannot change what another one has told",
		       2 * RUN_S);
	tap_run_within(sandboxed, "a renderer has a worker's sandbox", 2 * RUN_S);
	tap_run(refusals, "a value that cannot be is refused with the reason and its place");
	tap_run(cut, "a file that is cut off within a record is refused, at every length");
	tap_run_within(cut_replayed, "a file that ends behind a record is replayed", 4 * RUN_S);
	tap_run(flips_read, "the reader survives damaged files");
	tap_run_within(flips_replayed, "a replay of a damaged file ends, with success or an error",
		       30 * RUN_S);
	tap_run_within(wrong_calls, "a wrong call is refused with the reason", 2 * RUN_S);
	clean();
	free(file);
	return tap_done();
}
