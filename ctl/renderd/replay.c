// SPDX-License-Identifier: GPL-2.0-only
/* Replay of recordings: time per command and per job, and whether the pictures are equal. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <linux/virtio_gpu.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "cmdline.h"
#include "complain.h"
#include "mgpud_client.h"
#include "recording.h"
#include "replay.h"
#include "sandbox.h"
#include "virgl.h"

#define STATUS_USAGE	2

#define NS_PER_S	1000000000u
#define MAX_REPEAT	100000u

/* A command that takes longer will not end. */
#define COMMAND_S	60u

/* Capability set 2 has GL_RENDERER. */
#define CAPSET		2u
#define NAME_AT		696u
#define NAME_LEN	64u
/* The name, and the size of the GPU's memory before it, differ between equal sets. */
#define ASIDE		692u

static const char usage_text[] =
	"usage: mgpu-renderd replay [OPTION]... FILE...\n"
	"\n"
	"Replays recordings of 'mgpu-renderd --record' on a GPU of this machine, without the\n"
	"module, and prints the time that commands and jobs take. A job is the commands up to\n"
	"one with a fence.\n"
	"\n"
	"  -n, --node PATH  render node, such as /dev/dri/renderD128; without it,\n"
	"                   render without a GPU\n"
	"  -j, --json FILE  write the times of all jobs to FILE, too\n"
	"  -N, --repeat N   replay each recording N times\n"
	"  -p, --pace       wait with each command until its time in the recording\n"
	"  -c, --check      end with status 1 if a transfer from the host differs\n"
	"      --no-sandbox have the renderer keep all rights of the user\n"
	"  -h, --help       print this help\n"
	"  -V, --version    print the version\n";

static const struct {
	uint32_t type;
	const char *name;
} kinds[] = {
	{ VIRTIO_GPU_CMD_CTX_CREATE, "ctx-create" },
	{ VIRTIO_GPU_CMD_CTX_DESTROY, "ctx-destroy" },
	{ VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, "ctx-attach-resource" },
	{ VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE, "ctx-detach-resource" },
	{ VIRTIO_GPU_CMD_RESOURCE_CREATE_2D, "resource-create-2d" },
	{ VIRTIO_GPU_CMD_RESOURCE_CREATE_3D, "resource-create-3d" },
	{ VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, "resource-create-blob" },
	{ VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB, "resource-map-blob" },
	{ VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB, "resource-unmap-blob" },
	{ VIRTIO_GPU_CMD_RESOURCE_UNREF, "resource-unref" },
	{ VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING, "attach-backing" },
	{ VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING, "detach-backing" },
	{ VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D, "transfer-to-host-2d" },
	{ VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D, "transfer-to-host-3d" },
	{ VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D, "transfer-from-host-3d" },
	{ VIRTIO_GPU_CMD_SUBMIT_3D, "submit-3d" },
	{ 0, "other" },
};

#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

struct options {
	const char *node;
	const char *json;
	unsigned int repeat;
	bool pace;
	bool check;
	bool sandbox;
};

/**
 * struct sample - time of a command
 * @ns: nanoseconds until it was complete
 * @kind: index of kinds[]
 * @ends_job: the command has a fence
 */
struct sample {
	uint64_t ns;
	uint32_t kind;
	bool ends_job;
};

/**
 * struct tally - differences from a recording
 * @refused: commands that were answered with an error
 * @transfers: transfers from the host that were compared
 * @differ: those that differ
 * @bytes: bytes of them that differ
 * @most: largest difference of a byte
 */
struct tally {
	uint64_t refused, transfers, differ, bytes;
	uint32_t most;
};

/**
 * struct run - what the process that replays tells the one that waits for it
 * @at: offset of the record that is executed
 * @since: time at which its execution began, nanoseconds; 0 between commands
 * @nr: number of samples
 * @tally: differences
 * @other_caps: the capability sets are not the recording's
 * @renderer: GL_RENDERER, or ""
 * @recorded: that of the recording, or ""
 * @why: error
 * @samples: times
 */
struct run {
	uint64_t at;
	uint64_t since;
	uint64_t nr;
	struct tally tally;
	bool other_caps;
	char renderer[NAME_LEN + 1];
	char recorded[NAME_LEN + 1];
	char why[200];
	struct sample samples[];
};

/* ---- the process that replays ---- */

/**
 * struct replayer - replay of a file
 * @o: options
 * @run: result
 * @room: samples that @run has room for
 * @v: renderer
 * @r: recording
 * @answer: answer of the last command
 * @first: time of the first command in the recording, nanoseconds
 * @start: time at which it was replayed; 0 before
 */
struct replayer {
	const struct options *o;
	struct run *run;
	uint64_t room;
	struct virgl *v;
	struct recording r;
	uint32_t answer;
	uint64_t first, start;
};

static void *map(void *arg, uint64_t offset, uint64_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)arg;
	(void)offset;
	return p == MAP_FAILED ? NULL : p;
}

/* A replay has no guest; the recording has what it wrote. */
static int show(void *arg, uint32_t seq, void *p, size_t len, uint32_t cache)
{
	(void)arg;
	(void)seq;
	(void)p;
	(void)len;
	(void)cache;
	return 0;
}

static void done(void *arg, uint32_t seq, uint32_t type)
{
	struct replayer *p = arg;

	(void)seq;
	p->answer = type;
}

static const struct virgl_ops ops = { .map = map, .show = show, .done = done };

/* Copy a name of a capability set. */
static void copy_name(char *name, const uint8_t *caps, size_t len)
{
	size_t i;

	for (i = 0; i < NAME_LEN && NAME_AT + i < len && caps[NAME_AT + i]; i++)
		name[i] = (char)caps[NAME_AT + i];
	name[i] = '\0';
}

static void compare_caps(struct replayer *p)
{
	static uint8_t own[MGPU_USER_MAX_CAPSET];
	const uint8_t *caps = p->r.body + p->r.len - p->r.bytes;
	uint32_t version;
	size_t len = virgl_capset(p->r.capset, &version, own, sizeof(own));

	if (p->r.capset == CAPSET)
		copy_name(p->run->recorded, caps, p->r.bytes);
	p->run->other_caps |= len != p->r.bytes ||
		memcmp(own, caps, len < ASIDE ? len : ASIDE) ||
		(len > NAME_AT + NAME_LEN &&
		 memcmp(own + NAME_AT + NAME_LEN, caps + NAME_AT + NAME_LEN,
			len - NAME_AT - NAME_LEN));
}

static void keep_pace(struct replayer *p)
{
	uint64_t due;

	if (!p->start) {
		p->start = now_ns();
		p->first = p->r.ns;
	}
	due = p->start + (p->r.ns - p->first);
	while (p->o->pace && due > now_ns() &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){
				       .tv_sec = (time_t)(due / NS_PER_S),
				       .tv_nsec = (long)(due % NS_PER_S) }, NULL) == EINTR)
		;
}

/* Execute a command, and wait until it is complete. */
static void execute(struct replayer *p)
{
	struct pollfd fd = { .fd = virgl_fd(p->v), .events = POLLIN };
	const struct virtio_gpu_ctrl_hdr *hdr = p->r.buf;
	struct mgpu_user_cmd cmd = p->r.cmd;
	struct sample *s = &p->run->samples[p->run->nr];
	uint64_t start;

	keep_pace(p);
	p->run->at = p->r.at;
	cmd.flags = MGPU_USER_CMD_FENCED;
	start = now_ns();
	__atomic_store_n(&p->run->since, start, __ATOMIC_RELAXED);
	p->answer = virgl_execute(p->v, &cmd, hdr);
	while (virgl_busy(p->v)) {
		/* Look without a pause where there is no file to wait for. */
		poll(&fd, 1, fd.fd < 0 ? 0 : -1);
		virgl_poll(p->v);
	}
	s->ns = now_ns() - start;
	__atomic_store_n(&p->run->since, 0, __ATOMIC_RELAXED);
	while (s->kind < KINDS - 1 && kinds[s->kind].type != le32toh(hdr->type))
		s->kind++;
	s->ends_job = p->r.cmd.flags & MGPU_USER_CMD_FENCED;
	p->run->nr++;
	p->run->tally.refused += p->answer >= VIRTIO_GPU_RESP_ERR_UNSPEC;
}

static void compare_bytes(struct tally *t, const uint8_t *a, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint32_t d = (uint32_t)abs(a[i] - b[i]);

		t->bytes += !!d;
		t->most = d > t->most ? d : t->most;
	}
}

/*
 * Compare a resource's memory with the recording, as far as the renderer uses it, and make
 * all of it equal: entries may share a page of the guest, and do not share one here.
 */
static void compare(struct replayer *p)
{
	const struct recording_mem *m = p->r.mem;
	struct tally *t = &p->run->tally;
	uint64_t bytes = t->bytes;
	uint8_t *own;
	size_t len;

	t->transfers++;
	own = virgl_memory(p->v, m->id, &len);
	if (!own || len != m->len) {
		t->differ++;
		return;
	}
	if (!memcmp(own, m->bytes, len))
		return;
	for (uint32_t i = 0; i < m->nr; i++)
		compare_bytes(t, own + le64toh(m->entry[i].addr),
			      m->bytes + le64toh(m->entry[i].addr),
			      le32toh(m->entry[i].length));
	t->differ += t->bytes > bytes;
	memcpy(own, m->bytes, len);
}

static void set_memory(struct replayer *p)
{
	const struct recording_mem *m = p->r.mem;
	uint8_t *own;
	size_t len;

	/* Without memory, what attaches it was refused. */
	own = virgl_memory(p->v, m->id, &len);
	if (own && len == m->len)
		memcpy(own + p->r.offset, m->bytes + p->r.offset, p->r.bytes);
}

static int replay_records(struct replayer *p)
{
	int ret;

	while ((ret = recording_next(&p->r)) > 0) {
		switch (p->r.type) {
		case RECORD_CAPSET:
			compare_caps(p);
			break;
		case RECORD_MEMORY:
			set_memory(p);
			break;
		case RECORD_CHECK:
			compare(p);
			break;
		case RECORD_COMMAND:
			if (p->run->nr == p->room) {
				snprintf(p->r.why, sizeof(p->r.why), "the file is growing");
				return -EBUSY;
			}
			execute(p);
			break;
		default:
			break;
		}
	}
	return ret;
}

/*
 * Start the renderer in a worker's sandbox. A user who is not root gets of it what needs no
 * privileges: the list of system calls, and the bound of memory.
 */
static int start(struct replayer *p, uint64_t memory)
{
	bool root = p->o->sandbox && !geteuid();
	struct sandbox s;
	int drm, ret;

	ret = virgl_open_node(p->o->node, &drm);
	if (!ret && root)
		ret = sandbox_prepare(&s, p->o->node, NULL, false);
	if (!ret && root)
		ret = sandbox_enter(&s);
	/* The kernel has dropped the request for this signal with the change of the user. */
	if (!ret && root)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!ret)
		ret = virgl_new(&p->v, drm, &ops, p);
	if (!ret && p->o->sandbox)
		ret = sandbox_seal(memory, false);
	return ret;
}

/*
 * Replay a file in this process, of which the renderer may make an end. The process leaves
 * it as it is.
 */
static int replay(const struct options *o, int fd, struct run *run, uint64_t room, uint64_t memory)
{
	static struct replayer p;
	static uint8_t caps[MGPU_USER_MAX_CAPSET];
	uint32_t version;
	int ret;

	p.o = o;
	p.run = run;
	p.room = room;
	if (start(&p, memory)) {
		snprintf(run->why, sizeof(run->why), "not replayed");
		return 1;
	}
	copy_name(run->renderer, caps, virgl_capset(CAPSET, &version, caps, sizeof(caps)));
	ret = recording_open(&p.r, fd);
	if (!ret)
		ret = replay_records(&p);
	if (ret)
		snprintf(run->why, sizeof(run->why), "%s", p.r.why);
	return ret ? 1 : 0;
}

/* ---- files ---- */

/**
 * struct file - a recording and its replays
 * @path: its path
 * @fd: file
 * @vgpu: ID of the vGPU
 * @memory: most memory of resources that is recorded at a time, bytes
 * @nr: number of commands
 * @run: replays
 * @nr_runs: their number
 */
struct file {
	const char *path;
	int fd;
	uint32_t vgpu;
	uint64_t memory;
	uint64_t nr;
	struct run **run;
	unsigned int nr_runs;
};

static size_t run_size(const struct file *f)
{
	return sizeof(struct run) + f->nr * sizeof(struct sample);
}

/* Read all of a file, and count its commands. */
static int look_through(struct file *f)
{
	static struct recording r;
	int ret, fd;

	f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0) {
		complain("%s: %s", f->path, strerror(errno));
		return -errno;
	}
	fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);
	ret = recording_open(&r, fd);
	while (!ret) {
		ret = recording_next(&r);
		if (ret <= 0)
			break;
		f->nr += r.type == RECORD_COMMAND;
		f->memory = r.mems.len > f->memory ? r.mems.len : f->memory;
		ret = 0;
	}
	f->vgpu = r.vgpu;
	if (ret)
		complain("%s: %s", f->path, r.why);
	recording_close(&r);
	return ret;
}

/* Say how the process of a run ended, which was not well. */
static void explain(const struct file *f, const struct run *run, int status, bool late)
{
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (WIFEXITED(status) && WEXITSTATUS(status) > SANDBOX_ABORTED)
		sig = WEXITSTATUS(status) - SANDBOX_ABORTED;
	if (late)
		complain("%s: the command at byte %" PRIu64 " is not complete after %u s",
			 f->path, run->at, COMMAND_S);
	else if (sig)
		complain("%s: the command at byte %" PRIu64 " ended the renderer by signal %d (%s)",
			 f->path, run->at, sig, strsignal(sig));
	else if (run->why[0])
		complain("%s: %s", f->path, run->why);
	else
		complain("%s: the command at byte %" PRIu64 " ended the renderer", f->path,
			 run->at);
}

static void make_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

/*
 * Take a result from a process that has ended. It may have executed a guest's code, so that any
 * value may be in it; and the process of the next run must not change it.
 */
static int take_result(const struct file *f, struct run *run)
{
	if (madvise(run, run_size(f), MADV_DONTFORK)) {
		complain("%s: %s", f->path, strerror(errno));
		return -errno;
	}
	run->nr = run->nr < f->nr ? run->nr : f->nr;
	make_printable(run->renderer, sizeof(run->renderer));
	make_printable(run->recorded, sizeof(run->recorded));
	make_printable(run->why, sizeof(run->why));
	return 0;
}

/* Wait for the end of a run's process, and bring it about if a command takes too long. */
static int wait_for(pid_t pid, const struct run *run, bool *late)
{
	struct pollfd fd = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	uint64_t since;
	int status;

	while (fd.fd >= 0 && !poll(&fd, 1, 1000) && !*late) {
		since = __atomic_load_n(&run->since, __ATOMIC_RELAXED);
		*late = since && now_ns() > since + (uint64_t)COMMAND_S * NS_PER_S;
	}
	if (*late || fd.fd < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	close(fd.fd);
	return status;
}

static int replay_once(const struct options *o, struct file *f)
{
	struct run *run = mmap(NULL, run_size(f), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid, parent = getpid();
	bool late = false;
	int status, ret = 0;

	if (run == MAP_FAILED) {
		complain("%s: %s", f->path, strerror(errno));
		return -errno;
	}
	f->run[f->nr_runs++] = run;
	if (o->sandbox && !geteuid())
		ret = sandbox_pids();
	if (ret) {
		complain("cannot make the sandbox: %s: replay as another user, or with --no-sandbox",
			 strerror(-ret));
		return ret;
	}
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		complain("%s: %s", f->path, strerror(errno));
		return -errno;
	}
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/*
		 * A namespace's first process has no parent. Libraries' messages are not part of
		 * the output.
		 */
		if ((getpid() != 1 && getppid() != parent) ||
		    dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
			_exit(1);
		/* The renderer gets twice the memory: the recording's, and its own. */
		_exit(replay(o, f->fd, run, f->nr, 2 * f->memory + RECORDING_MAX_MEMS));
	}
	status = wait_for(pid, run, &late);
	ret = take_result(f, run);
	if (ret)
		return ret;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	explain(f, run, status, late);
	return -EIO;
}

static void free_file(struct file *f)
{
	for (unsigned int i = 0; i < f->nr_runs; i++)
		munmap(f->run[i], run_size(f));
	free(f->run);
	if (f->fd >= 0)
		close(f->fd);
}

static struct tally sum(const struct file *f)
{
	struct tally all = { 0 };

	for (unsigned int i = 0; i < f->nr_runs; i++) {
		const struct tally *t = &f->run[i]->tally;

		all.refused += t->refused;
		all.transfers += t->transfers;
		all.differ += t->differ;
		all.bytes += t->bytes;
		all.most = t->most > all.most ? t->most : all.most;
	}
	return all;
}

/* ---- output ---- */

/**
 * struct times - times of commands of a kind, or of jobs, of all runs of a file
 * @ns: nanoseconds
 * @nr: their number
 */
struct times {
	uint64_t *ns;
	size_t nr;
};

static int smaller_first(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t median(const struct times *t)
{
	uint64_t low = t->ns[(t->nr - 1) / 2], high = t->ns[t->nr / 2];

	return low + (high - low) / 2;
}

static uint64_t p99(const struct times *t)
{
	return t->ns[(t->nr * 99 + 99) / 100 - 1];
}

static uint64_t total(const struct times *t)
{
	uint64_t all = 0;

	for (size_t i = 0; i < t->nr; i++)
		all += t->ns[i];
	return all;
}

/* Times of the commands of a kind, sorted. There is room for all of the file's commands. */
static void times_of_kind(const struct file *f, uint32_t kind, struct times *t)
{
	t->nr = 0;
	for (unsigned int i = 0; i < f->nr_runs; i++)
		for (uint64_t j = 0; j < f->run[i]->nr; j++)
			if (f->run[i]->samples[j].kind == kind)
				t->ns[t->nr++] = f->run[i]->samples[j].ns;
	qsort(t->ns, t->nr, sizeof(*t->ns), smaller_first);
}

/* Add the times of a run's jobs. Commands behind the last fence are a job, too. */
static void add_jobs(const struct run *run, struct times *t)
{
	bool open = false;

	for (uint64_t i = 0; i < run->nr; i++) {
		const struct sample *s = &run->samples[i];

		if (!open)
			t->ns[t->nr++] = 0;
		t->ns[t->nr - 1] += s->ns;
		open = !s->ends_job;
	}
}

static void times_of_jobs(const struct file *f, struct times *t)
{
	t->nr = 0;
	for (unsigned int i = 0; i < f->nr_runs; i++)
		add_jobs(f->run[i], t);
	qsort(t->ns, t->nr, sizeof(*t->ns), smaller_first);
}

static void print_times(const char *name, const struct times *t)
{
	if (t->nr)
		printf("%-22s %9zu %11.3f %11.3f %12.3f\n", name, t->nr,
		       (double)median(t) / 1e6, (double)p99(t) / 1e6, (double)total(t) / 1e6);
}

static const char *renderer(const struct options *o, const struct run *run)
{
	if (run->renderer[0])
		return run->renderer;
	return o->node ? o->node : "without a GPU (llvmpipe)";
}

static void print_file(const struct options *o, const struct file *f, struct times *t)
{
	const struct tally all = sum(f);

	printf("%s: vGPU %u, %" PRIu64 " commands, replayed %u time%s\n", f->path, f->vgpu,
	       f->nr, f->nr_runs, f->nr_runs == 1 ? "" : "s");
	printf("renderer: %s\n", renderer(o, f->run[0]));
	if (f->run[0]->recorded[0])
		printf("recorded on: %s\n", f->run[0]->recorded);
	printf("%-22s %9s %11s %11s %12s\n", "", "count", "median ms", "p99 ms", "total ms");
	times_of_jobs(f, t);
	print_times("job", t);
	for (uint32_t k = 0; k < KINDS; k++) {
		times_of_kind(f, k, t);
		print_times(kinds[k].name, t);
	}
	printf("refused: %" PRIu64 " commands\n", all.refused);
	printf("transfers from the host: %" PRIu64 ", of which %" PRIu64 " differ", all.transfers,
	       all.differ);
	if (all.bytes)
		printf(", in %" PRIu64 " bytes by at most %u", all.bytes, all.most);
	putchar('\n');
	if (f->run[0]->other_caps)
		puts("The capability sets are not the recording's: commands may be refused.");
}

static struct json_object *seconds(uint64_t ns)
{
	char text[40];

	snprintf(text, sizeof(text), "%" PRIu64 ".%09" PRIu64, ns / NS_PER_S, ns % NS_PER_S);
	return json_object_new_double_s(strtod(text, NULL), text);
}

static struct json_object *times_json(const struct times *t)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "count", json_object_new_uint64(t->nr));
	json_object_object_add(o, "median_s", seconds(median(t)));
	json_object_object_add(o, "p99_s", seconds(p99(t)));
	json_object_object_add(o, "total_s", seconds(total(t)));
	return o;
}

static struct json_object *name_json(const char *name)
{
	return name[0] ? json_object_new_string(name) : NULL;
}

static struct json_object *file_json(const struct options *o, const struct file *f,
				     struct times *t)
{
	struct json_object *file = json_object_new_object(), *runs = json_object_new_array();
	struct json_object *by_kind = json_object_new_array(), *one;
	const struct tally all = sum(f);

	json_object_object_add(file, "file", json_object_new_string(f->path));
	json_object_object_add(file, "id", json_object_new_uint64(f->vgpu));
	json_object_object_add(file, "renderer",
			       json_object_new_string(renderer(o, f->run[0])));
	json_object_object_add(file, "recorded_on", name_json(f->run[0]->recorded));
	times_of_jobs(f, t);
	json_object_object_add(file, "jobs", times_json(t));
	for (uint32_t k = 0; k < KINDS; k++) {
		times_of_kind(f, k, t);
		if (!t->nr)
			continue;
		one = times_json(t);
		json_object_object_add(one, "kind", json_object_new_string(kinds[k].name));
		json_object_array_add(by_kind, one);
	}
	json_object_object_add(file, "commands", by_kind);
	json_object_object_add(file, "refused", json_object_new_uint64(all.refused));
	json_object_object_add(file, "transfers", json_object_new_uint64(all.transfers));
	json_object_object_add(file, "differ", json_object_new_uint64(all.differ));
	json_object_object_add(file, "differ_bytes", json_object_new_uint64(all.bytes));
	json_object_object_add(file, "differ_most", json_object_new_uint64(all.most));
	for (unsigned int i = 0; i < f->nr_runs; i++) {
		t->nr = 0;
		add_jobs(f->run[i], t);
		one = json_object_new_array();
		for (size_t j = 0; j < t->nr; j++)
			json_object_array_add(one, seconds(t->ns[j]));
		json_object_array_add(runs, one);
	}
	json_object_object_add(file, "runs_job_s", runs);
	return file;
}

static int write_json(const char *path, struct json_object *files)
{
	struct json_object *all = json_object_new_object();
	FILE *file = fopen(path, "we");
	bool good;

	json_object_object_add(all, "version", json_object_new_int(MGPU_JSON_VERSION));
	json_object_object_add(all, "replays", json_object_get(files));
	good = file && fprintf(file, "%s\n",
			       json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN |
						JSON_C_TO_STRING_NOSLASHESCAPE)) > 0;
	if (file && fclose(file))
		good = false;
	if (!good)
		complain("cannot write %s: %s", path, strerror(errno));
	json_object_put(all);
	return good ? 0 : -EIO;
}

/* Replay a file, and add it to @files. */
static int replay_file(const struct options *o, const char *path, struct json_object *files)
{
	struct file f = { .path = path, .fd = -1 };
	struct times t = { 0 };
	int ret = look_through(&f);

	if (!ret && !f.nr) {
		printf("%s: vGPU %u, no commands\n", path, f.vgpu);
		free_file(&f);
		return 0;
	}
	if (!ret) {
		f.run = calloc(o->repeat, sizeof(struct run *));
		t.ns = calloc(f.nr * o->repeat, sizeof(*t.ns));
		if (!f.run || !t.ns) {
			complain("%s: %s", path, strerror(ENOMEM));
			ret = -ENOMEM;
		}
	}
	for (unsigned int i = 0; !ret && i < o->repeat; i++)
		ret = replay_once(o, &f);
	if (!ret) {
		print_file(o, &f, &t);
		json_object_array_add(files, file_json(o, &f, &t));
		ret = o->check && sum(&f).differ ? -EBADMSG : 0;
	}
	free(t.ns);
	free_file(&f);
	return ret;
}

/* ---- the command line ---- */

static int parse_repeat(const char *s, unsigned int *n)
{
	char *end;
	unsigned long v = strtoul(s, &end, 10);

	if (*s >= '0' && *s <= '9' && !*end && v >= 1 && v <= MAX_REPEAT) {
		*n = (unsigned int)v;
		return 0;
	}
	complain("--repeat '%s': must be a number from 1 to %u", s, MAX_REPEAT);
	return -EINVAL;
}

int replay_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "node", required_argument, NULL, 'n' },
		{ "json", required_argument, NULL, 'j' },
		{ "repeat", required_argument, NULL, 'N' },
		{ "pace", no_argument, NULL, 'p' },
		{ "check", no_argument, NULL, 'c' },
		{ "no-sandbox", no_argument, NULL, 'S' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	struct options o = { .repeat = 1, .sandbox = true };
	struct json_object *files;
	char text[256];
	int c, ret = 0;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":n:j:N:pchV", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			o.node = optarg;
			break;
		case 'j':
			o.json = optarg;
			break;
		case 'N':
			if (parse_repeat(optarg, &o.repeat))
				return STATUS_USAGE;
			break;
		case 'p':
			o.pace = true;
			break;
		case 'c':
			o.check = true;
			break;
		case 'S':
			o.sandbox = false;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'V':
			puts("mgpu-renderd " MGPU_VERSION);
			return 0;
		default:
			getopt_problem(text, sizeof(text), "mgpu-renderd", c, argv, options, NULL);
			complain("%s", text);
			return STATUS_USAGE;
		}
	}
	if (optind == argc) {
		complain("replay needs a recording; 'mgpu-renderd --record DIR' makes them");
		return STATUS_USAGE;
	}
	files = json_object_new_array();
	for (; optind < argc; optind++)
		if (replay_file(&o, argv[optind], files))
			ret = 1;
	if (o.json && write_json(o.json, files))
		ret = 1;
	json_object_put(files);
	return ret;
}
