// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the whole device: several vGPUs, each a process with programs of its own, beside a
 * neighbour that draws, and checks what it sees.  Where the kernel has KCOV and the
 * modules are instrumented, programs that cover something new are kept, and changed
 * further.
 *
 * Environment:
 *
 *   FUZZ_SECONDS	time for new programs (4)
 *   FUZZ_SEED		seed (random)
 *   FUZZ_VGPUS		number of vGPUs (3)
 *   FUZZ_BLOCKS	number of blocks of code in the modules, for the report
 *   FUZZ_REPLAY	a file of programs, executed in their order, once, by one vGPU; or
 *			a directory with the records of a run, vgpu-N.log, executed by as many
 *   FUZZ_MERGE		a file of programs: write the stored ones, and those of it that
 *			cover a block that no other does, to $OUT/fuzz/merged.hex
 *
 * Each vGPU's programs go to $OUT/fuzz/vgpu-N.log before they are executed, and programs
 * that covered something new to $OUT/fuzz/found.hex; the addresses that were covered to
 * $OUT/fuzz/blocks, behind those of the modules.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec.h"
#include "fuzz.h"

#define MAX_VGPUS	8
#define MAX_CORPUS	16384
#define LOG_MAX		(24 << 20)	/* bytes of a record; the older half is dropped */
#define WELL_EVERY	16		/* programs from one check of the vGPU to the next */
#define REOPEN_EVERY	64
#define KILL_MS		4000		/* from one kill of a VMM to the next, at most */
#define HANG_MS		(3 * VMM_TIMEOUT)

/* Memory that the processes share. */
struct shared {
	bool stop;
	bool failed;
	char why[1024];
	pthread_mutex_t lock;	/* corpus, dictionary, found.hex */
	struct cover_sets sets;
	struct dictionary dict;
	uint32_t nr_corpus;
	uint32_t nr_stored;
	struct prog corpus[MAX_CORPUS];
	uint32_t next_stored;	/* stored programs that were begun */
	uint32_t sequence;	/* of programs, over all vGPUs */
	uint64_t frames;	/* the neighbour's */
	uint64_t slowest_ms;	/* its longest frame */
	struct progress progress[MAX_VGPUS];
	struct progress neighbour;
};

/* A vGPU's process. */
struct child {
	pid_t pid;
	char uuid[VMM_UUID_LEN + 1];
	uint64_t beat;
	uint64_t beat_ms;	/* when it changed */
	unsigned int kills;
};

struct fuzz {
	struct shared *s;
	struct child child[MAX_VGPUS];
	struct child neighbour;
	unsigned int nr;
	unsigned int seconds;
	uint64_t seed;
	bool cover;
	bool gpu;
	const char *type;
	const char *replay;	/* a file or directory, or NULL */
	bool records;		/* it is a directory */
	char out[256];
	unsigned int results;
	bool bad;
};

static void fail(struct shared *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The first reason stands. */
static void fail(struct shared *s, const char *fmt, ...)
{
	bool before = false;
	va_list ap;

	if (!__atomic_compare_exchange_n(&s->failed, &before, true, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	s->stop = true;
}

static void result(struct fuzz *f, bool good, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void result(struct fuzz *f, bool good, const char *fmt, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	f->results++;
	f->bad |= !good;
	printf("%sok %u %s\n", good ? "" : "not ", f->results, what);
	fflush(stdout);
}

/* A process that was killed with the lock held left its entry whole, or unused. */
static void lock(struct shared *s)
{
	if (pthread_mutex_lock(&s->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&s->lock);
}

static void unlock(struct shared *s)
{
	pthread_mutex_unlock(&s->lock);
}

static bool stopped(struct shared *s)
{
	return __atomic_load_n(&s->stop, __ATOMIC_RELAXED);
}

/* ---- a vGPU's process ---- */

struct run {
	struct fuzz *f;
	struct shared *s;
	struct exec x;
	unsigned int index;
	int log;
	off_t logged;
	struct dice dice;
	struct prog prog;
};

static void log_name(const struct fuzz *f, unsigned int index, char *name, size_t len)
{
	snprintf(name, len, "%s/vgpu-%u.log", f->out, index);
}

/* A record that is too long goes on in a new file; the older one stays. */
static void log_rotate(struct run *r)
{
	char name[512], old[520];

	if (r->logged < LOG_MAX / 2)
		return;
	log_name(r->f, r->index, name, sizeof(name));
	snprintf(old, sizeof(old), "%s.old", name);
	rename(name, old);
	close(r->log);
	r->log = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	r->logged = 0;
}

/* Before it is executed: it is then there whatever becomes of this kernel. */
static void log_program(struct run *r)
{
	char text[64 + PROG_TEXT];
	size_t n;

	log_rotate(r);
	n = (size_t)snprintf(text, 64, "# %u %lu\n",
			     __atomic_fetch_add(&r->s->sequence, 1, __ATOMIC_RELAXED),
			     (unsigned long)now_ms());
	n += prog_text(&r->prog, text + n);
	if (pwrite(r->log, text, n, r->logged) != (ssize_t)n)
		fail(r->s, "cannot write the record of vGPU %u", r->index);
	r->logged += (off_t)n;
}

static void keep(struct run *r)
{
	struct shared *s = r->s;
	char text[PROG_TEXT], name[512];
	int fd;

	lock(s);
	if (s->nr_corpus < MAX_CORPUS) {
		s->corpus[s->nr_corpus] = r->prog;
		__atomic_store_n(&s->nr_corpus, s->nr_corpus + 1, __ATOMIC_RELEASE);
	}
	snprintf(name, sizeof(name), "%s/found.hex", r->f->out);
	fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0) {
		size_t n = prog_text(&r->prog, text);

		if (write(fd, text, n) != (ssize_t)n)
			remark("%s is not whole", name);
		close(fd);
	}
	unlock(s);
}

static void learn_constants(struct run *r)
{
	struct dictionary *dict = calloc(1, sizeof(*dict));

	if (!dict || r->s->dict.nr == ARRAY_LEN(dict->word) || cover_compare(&r->x.cover)) {
		free(dict);
		return;
	}
	exec_run(&r->x, &r->prog);
	lock(r->s);
	*dict = r->s->dict;
	cover_constants(&r->x.cover, dict);
	memcpy(r->s->dict.word, dict->word, sizeof(dict->word));
	__atomic_store_n(&r->s->dict.nr, dict->nr, __ATOMIC_RELEASE);
	unlock(r->s);
	free(dict);
}

/* Execute the program; return the number of new edges. */
static unsigned int once(struct run *r)
{
	struct exec *x = &r->x;
	unsigned int new;

	log_program(r);
	if (exec_run(x, &r->prog)) {
		fail(r->s, "vGPU %u cannot be opened again", r->index);
		return 0;
	}
	new = cover_collect(&x->cover, &r->s->sets);
	new += cover_collect(&x->second.cover, &r->s->sets);
	new += cover_collect(&x->opener.cover, &r->s->sets);
	return new;
}

/* Closed, a vGPU has nothing of anyone's. */
static void check_closed(struct shared *s, struct nl *nl, const char *uuid,
			 const char *who)
{
	struct nl_vgpu v;

	if (nl_vgpu_get(nl, uuid, &v)) {
		fail(s, "%s is gone", who);
		return;
	}
	if (v.open || v.pinned || v.mem_used)
		fail(s, "%s is closed and has: open %d, %lu pages, %lu bytes", who, v.open,
		     (unsigned long)v.pinned, (unsigned long)v.mem_used);
}

static void check(struct run *r)
{
	uint64_t n = r->x.progress->programs;
	const char *why;
	char who[32];

	if (n % WELL_EVERY && !stopped(r->s))
		return;
	why = exec_well(&r->x);
	if (why)
		fail(r->s, "vGPU %u after %lu programs: %s", r->index, (unsigned long)n, why);
	if (n % REOPEN_EVERY)
		return;
	snprintf(who, sizeof(who), "vGPU %u", r->index);
	vm_close(&r->x.vm);
	check_closed(r->s, &r->x.nl, r->x.vm.uuid, who);
	if (exec_reopen(&r->x))
		fail(r->s, "%s cannot be opened after a close", who);
}

/* The stored programs come first, each once, by whichever vGPU is free. */
static bool next_program(struct run *r)
{
	struct shared *s = r->s;
	uint32_t i, n;

	i = __atomic_fetch_add(&s->next_stored, 1, __ATOMIC_RELAXED);
	if (i < s->nr_stored) {
		r->prog = s->corpus[i];
		return true;
	}
	n = __atomic_load_n(&s->nr_corpus, __ATOMIC_ACQUIRE);
	if (!n || !dice(&r->dice, 8)) {
		prog_random(&r->prog, &r->dice, &s->dict);
		return true;
	}
	/* Now and then the newest, where there is more to find. */
	i = dice(&r->dice, 3) ? dice(&r->dice, n) : n - 1 - dice(&r->dice, n < 32 ? n : 32);
	r->prog = s->corpus[i];
	prog_mutate(&r->prog, &r->dice, &s->dict, &s->corpus[dice(&r->dice, n)]);
	return true;
}

static void explore(struct run *r)
{
	bool stored;

	while (!stopped(r->s)) {
		stored = r->s->next_stored < r->s->nr_stored;
		next_program(r);
		if (once(r) && !stored)
			keep(r);
		/* Of the stored programs once; not of modules that nothing is known of. */
		if (r->s->sets.nr_blocks && (stored || !dice(&r->dice, 64)))
			learn_constants(r);
		check(r);
	}
}

/* The next program of a run's records waits for those that were begun before it. */
static void await_turn(struct run *r, const char *comment)
{
	uint64_t end = now_ms() + 100;
	unsigned int turn;

	if (sscanf(comment, "# %u", &turn) != 1)
		return;
	while (__atomic_load_n(&r->s->sequence, __ATOMIC_RELAXED) + 1 < turn &&
	       now_ms() < end)
		usleep(100);
}

static void replay(struct run *r)
{
	char name[512], comment[128] = "";
	FILE *in;

	snprintf(name, sizeof(name), "%s", r->f->replay);
	if (r->f->records)
		snprintf(name, sizeof(name), "%s/vgpu-%u.log", r->f->replay, r->index);
	in = fopen(name, "r");
	if (!in) {
		fail(r->s, "%s: %s", name, strerror(errno));
		return;
	}
	while (!stopped(r->s) && prog_read(in, &r->prog, comment, sizeof(comment))) {
		if (r->f->records)
			await_turn(r, comment);
		once(r);
		check(r);
	}
	fclose(in);
}

static int vgpu_process(struct fuzz *f, unsigned int index)
{
	struct child *c = &f->child[index];
	struct run *r = calloc(1, sizeof(*r));
	char name[512];
	int ret;

	if (!r)
		return 1;
	r->f = f;
	r->s = f->s;
	r->index = index;
	r->x.index = index;
	r->x.gpu = f->gpu;
	r->x.progress = &f->s->progress[index];
	r->x.all = f->s->progress;
	r->x.nr_all = f->nr;
	/* After a kill, other programs than before. */
	dice_seed(&r->dice, f->seed * 1000003 + index * 8191 + c->kills);
	log_name(f, index, name, sizeof(name));
	r->log = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	r->logged = r->log < 0 ? 0 : lseek(r->log, 0, SEEK_END);
	ret = r->log < 0 ? -errno : exec_init(&r->x, c->uuid, f->cover);
	if (ret) {
		fail(f->s, "vGPU %u: %s", index, strerror(-ret));
		return 1;
	}
	if (f->replay)
		replay(r);
	else
		explore(r);
	if (!f->s->failed)
		check(r);
	exec_exit(&r->x);
	free(r);
	return 0;
}

/* ---- the neighbour ---- */

static int neighbour_process(struct fuzz *f)
{
	struct vfio_device_gfx_plane_info plane;
	struct shared *s = f->s;
	struct gpu_screen screen;
	uint64_t began, ms;
	uint32_t argb = 0;
	struct vm vm;
	size_t len, i;

	if (vm_open(&vm, f->neighbour.uuid, VMM_RAM) || vm_start(&vm) ||
	    gpu_screen_2d(&vm, &screen, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, 64, 64) ||
	    gpu_show(&vm, &screen) || !display_map(&vm, &len)) {
		fail(s, "the neighbour does not start");
		return 1;
	}
	while (!stopped(s)) {
		argb = (argb + 0x010305) & 0xffffff;
		for (i = 0; i < 64 * 64; i++)
			screen.pixels[i] = argb;
		began = now_ms();
		if (gpu_show(&vm, &screen)) {
			fail(s, "the neighbour is not served");
			break;
		}
		ms = now_ms() - began;
		if (ms > s->slowest_ms)
			s->slowest_ms = ms;
		if (display_plane(&vm, &plane)) {
			fail(s, "the neighbour has no screen");
			break;
		}
		for (i = 0; i < 64 * 64; i++)
			if ((vm.display[i] & 0xffffff) != argb)
				break;
		if (i < 64 * 64) {
			fail(s, "the neighbour sees %06x for %06x at pixel %zu",
			     vm.display[i] & 0xffffff, argb, i);
			break;
		}
		s->frames++;
		__atomic_add_fetch(&s->neighbour.beat, 1, __ATOMIC_RELAXED);
		sleep_ms(10);
	}
	vm_close(&vm);
	return 0;
}

/* ---- all of them ---- */

static int spawn(struct fuzz *f, unsigned int index)
{
	struct child *c = index == MAX_VGPUS ? &f->neighbour : &f->child[index];
	int status;

	fflush(stdout);
	c->pid = fork();
	if (!c->pid) {
		status = index == MAX_VGPUS ? neighbour_process(f) : vgpu_process(f, index);
		_exit(status);
	}
	c->beat_ms = now_ms();
	return c->pid < 0 ? -errno : 0;
}

/* Print where a process's threads wait, in the kernel. */
static void tell_threads(pid_t pid)
{
	char name[300], line[128];
	struct dirent *e;
	FILE *stack;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	d = opendir(name);
	while (d && (e = readdir(d))) {
		snprintf(name, sizeof(name), "/proc/%d/task/%.64s/stack", pid, e->d_name);
		stack = e->d_name[0] == '.' ? NULL : fopen(name, "r");
		if (!stack)
			continue;
		printf("# thread %s:\n", e->d_name);
		while (fgets(line, sizeof(line), stack))
			printf("#   %s", line);
		fclose(stack);
	}
	if (d)
		closedir(d);
}

static void watch(struct fuzz *f, struct child *c, const struct progress *p,
		  const char *who)
{
	uint64_t seen = __atomic_load_n(&p->beat, __ATOMIC_RELAXED), now = now_ms();

	if (seen != c->beat || c->pid <= 0) {
		c->beat = seen;
		c->beat_ms = now;
		return;
	}
	if (now - c->beat_ms < (uint64_t)HANG_MS || f->s->failed)
		return;
	fail(f->s, "%s hangs: its threads are in %s and %s", who,
	     p->op[0] ? op_name(p->op[0] - 1) : "none",
	     p->op[1] ? op_name(p->op[1] - 1) : "none");
	tell_threads(c->pid);
}

/* Take note of a process that ended; return whether it did. */
static bool reap(struct fuzz *f, struct child *c, const char *who, bool killed)
{
	int status;

	if (c->pid <= 0 || waitpid(c->pid, &status, WNOHANG) != c->pid)
		return false;
	c->pid = 0;
	if (WIFSIGNALED(status) && !(killed && WTERMSIG(status) == SIGKILL))
		fail(f->s, "%s died of signal %d", who, WTERMSIG(status));
	return true;
}

static unsigned int alive(const struct fuzz *f)
{
	unsigned int i, n = 0;

	for (i = 0; i < f->nr; i++)
		n += f->child[i].pid > 0;
	return n;
}

/* A VMM that is killed in the midst of its calls; another one takes over. */
static void kill_one(struct fuzz *f, struct dice *d)
{
	unsigned int i = dice(d, f->nr);
	uint64_t end = now_ms() + (uint64_t)HANG_MS;
	struct child *c = &f->child[i];

	if (c->pid <= 0)
		return;
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, NULL, WNOHANG) != c->pid) {
		if (now_ms() > end) {
			fail(f->s, "vGPU %u: the VMM was killed and does not end", i);
			tell_threads(c->pid);
			return;
		}
		sleep_ms(10);
	}
	c->pid = 0;
	c->kills++;
	if (!stopped(f->s))
		spawn(f, i);
}

static void supervise(struct fuzz *f)
{
	uint64_t end = now_ms() + f->seconds * 1000ull, kill_at;
	struct shared *s = f->s;
	struct dice d;
	char who[32];
	unsigned int i;

	dice_seed(&d, f->seed + 77);
	kill_at = now_ms() + 500 + dice(&d, KILL_MS * (uint32_t)vmm_slow());
	while (alive(f)) {
		sleep_ms(50);
		for (i = 0; i < f->nr; i++) {
			snprintf(who, sizeof(who), "vGPU %u", i);
			reap(f, &f->child[i], who, false);
			watch(f, &f->child[i], &s->progress[i], who);
		}
		reap(f, &f->neighbour, "the neighbour", false);
		watch(f, &f->neighbour, &s->neighbour, "the neighbour");
		/* The stored programs take the time that they take. */
		if (!f->replay && s->next_stored < s->nr_stored) {
			end = now_ms() + f->seconds * 1000ull;
			continue;
		}
		if (!f->replay && now_ms() >= end)
			s->stop = true;
		if (!f->replay && !s->stop && now_ms() >= kill_at) {
			kill_one(f, &d);
			kill_at = now_ms() + 500 + dice(&d, KILL_MS * (uint32_t)vmm_slow());
		}
		/* Hanging processes are left to the end of the test host. */
		if (s->failed && now_ms() > end + 2ull * (uint64_t)HANG_MS)
			break;
	}
	s->stop = true;
	for (i = 0; i < 100u * (unsigned int)vmm_slow() && f->neighbour.pid > 0; i++) {
		reap(f, &f->neighbour, "the neighbour", false);
		sleep_ms(100);
	}
	if (f->neighbour.pid > 0)
		fail(s, "the neighbour does not end");
}

/* ---- merging ---- */

static int by_length(const void *a, const void *b)
{
	const struct prog *x = a, *y = b;

	return x->len != y->len ? x->len - y->len : memcmp(x->data, y->data, x->len);
}

static void load(struct fuzz *f, const char *path)
{
	struct shared *s = f->s;
	FILE *in = fopen(path, "r");

	if (!in) {
		remark("%s: %s", path, strerror(errno));
		return;
	}
	while (s->nr_corpus < MAX_CORPUS &&
	       prog_read(in, &s->corpus[s->nr_corpus], NULL, 0))
		s->nr_corpus++;
	fclose(in);
}

/* The shortest first: a longer one stays only for what it adds. */
static void merge(struct run *r)
{
	struct shared *s = r->s;
	uint32_t before, i, kept = 0;
	char name[512], text[PROG_TEXT];
	FILE *out;

	snprintf(name, sizeof(name), "%s/merged.hex", r->f->out);
	out = fopen(name, "w");
	if (!out) {
		fail(s, "%s: %s", name, strerror(errno));
		return;
	}
	for (i = 0; i < s->nr_corpus && !stopped(s); i++) {
		before = s->sets.nr_blocks;
		r->prog = s->corpus[i];
		once(r);
		check(r);
		if (s->sets.nr_blocks == before)
			continue;
		kept++;
		prog_text(&r->prog, text);
		fputs(text, out);
	}
	fclose(out);
	remark("%u of %u programs stay: %u blocks", kept, s->nr_corpus, s->sets.nr_blocks);
}

static int merge_process(struct fuzz *f)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		return 1;
	qsort(f->s->corpus, f->s->nr_corpus, sizeof(f->s->corpus[0]), by_length);
	r->f = f;
	r->s = f->s;
	r->x.progress = &f->s->progress[0];
	r->x.all = f->s->progress;
	r->x.nr_all = 1;
	r->log = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (exec_init(&r->x, f->child[0].uuid, f->cover)) {
		fail(f->s, "the vGPU cannot be opened");
		return 1;
	}
	merge(r);
	exec_exit(&r->x);
	free(r);
	return 0;
}

/* ---- the program ---- */

/* A variable that is set, but empty, is none. */
static const char *text_of(const char *name)
{
	const char *env = getenv(name);

	return env && *env ? env : NULL;
}

static unsigned int number_of(const char *name, unsigned int otherwise)
{
	const char *env = text_of(name);

	return env ? (unsigned int)strtoul(env, NULL, 0) : otherwise;
}

static unsigned int count(const char *path, const char *prefix)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned int n = 0;

	while (d && (e = readdir(d)))
		n += !strncmp(e->d_name, prefix, strlen(prefix));
	if (d)
		closedir(d);
	return n;
}

/* Kernel threads of vGPUs. */
static unsigned int workers(void)
{
	unsigned int n = 0;
	struct dirent *e;
	char path[300], name[32];
	DIR *d = opendir("/proc");

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%.64s/comm", e->d_name);
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9' &&
		    sysfs_read(path, name, sizeof(name)) > 0)
			n += !strncmp(name, "mgpu-", 5);
	}
	if (d)
		closedir(d);
	return n;
}

static int prepare(struct fuzz *f)
{
	const char *out = getenv("OUT");
	pthread_mutexattr_t attr;
	struct stat st;
	unsigned int i;
	int ret;

	f->s = mmap(NULL, sizeof(*f->s), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f->s == MAP_FAILED)
		return -errno;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&f->s->lock, &attr);

	snprintf(f->out, sizeof(f->out), "%s/fuzz", out ? out : "/tmp");
	if (mkdir(f->out, 0755) && errno != EEXIST)
		return -errno;
	f->seconds = number_of("FUZZ_SECONDS", vmm_long() ? 600 : 4);
	f->seed = number_of("FUZZ_SEED", (unsigned int)now_ns());
	f->nr = number_of("FUZZ_VGPUS", 3);
	f->replay = text_of("FUZZ_REPLAY");
	f->records = f->replay && !stat(f->replay, &st) && S_ISDIR(st.st_mode);
	if (f->records)
		f->nr = count(f->replay, "vgpu-");
	else if (f->replay || text_of("FUZZ_MERGE"))
		f->nr = 1;
	if (!f->nr || f->nr > MAX_VGPUS)
		return -EINVAL;
	f->cover = cover_available();

	if (!f->replay) {
		load(f, f->gpu ? "../fuzz/corpus/fuzz_device_virtio.hex" :
				 "../fuzz/corpus/fuzz_device.hex");
		for (i = 0; prog_seed(i, &f->s->corpus[f->s->nr_corpus]); i++)
			f->s->nr_corpus++;
	}
	f->s->nr_stored = f->s->nr_corpus;

	for (i = 0; i <= f->nr; i++) {
		struct child *c = i < f->nr ? &f->child[i] : &f->neighbour;

		mdev_uuid_new(c->uuid);
		/* The neighbour draws on a vGPU without contexts. */
		ret = mdev_create(i < f->nr ? f->type : "small", c->uuid);
		if (ret)
			return ret;
	}
	return 0;
}

static void remove_all(struct fuzz *f)
{
	unsigned int i;

	for (i = 0; i < f->nr; i++)
		mdev_remove(f->child[i].uuid);
	mdev_remove(f->neighbour.uuid);
}

/* The addresses of what was covered, for addr2line. */
static void write_blocks(const struct fuzz *f)
{
	static const char *const modules[] = { "mgpu", "mgpu_soft", "mgpu_virtio" };
	const struct cover_sets *sets = &f->s->sets;
	char name[512], text[64];
	unsigned int i;
	FILE *out;

	snprintf(name, sizeof(name), "%s/blocks", f->out);
	out = fopen(name, "w");
	if (!out)
		return;
	for (i = 0; i < ARRAY_LEN(modules); i++) {
		snprintf(name, sizeof(name), "/sys/module/%s/sections/.text", modules[i]);
		if (sysfs_read(name, text, sizeof(text)) > 0)
			fprintf(out, "%s %s\n", modules[i], text);
	}
	for (i = 0; i < SET_BLOCKS; i++)
		if (sets->blocks[i])
			fprintf(out, "ffffffff%08x\n", sets->blocks[i]);
	fclose(out);
}

static void sum_up(struct fuzz *f)
{
	struct shared *s = f->s;
	uint64_t programs = 0, ops = 0;
	unsigned int i, kills = 0;

	for (i = 0; i < f->nr; i++) {
		programs += s->progress[i].programs;
		ops += s->progress[i].ops;
		kills += f->child[i].kills;
	}
	printf("# %lu programs, %lu operations, %u killed VMMs, %u of %u stored programs\n",
	       (unsigned long)programs, (unsigned long)ops, kills,
	       s->next_stored < s->nr_stored ? s->next_stored : s->nr_stored, s->nr_stored);
	if (s->sets.nr_blocks)
		write_blocks(f);
	if (s->sets.nr_blocks)
		printf("# covered: %u of %u blocks, %u edges; found: %u programs, %u constants\n",
		       s->sets.nr_blocks, number_of("FUZZ_BLOCKS", 0), s->sets.nr_edges,
		       s->nr_corpus - s->nr_stored, s->dict.nr);
	printf("# the neighbour: %lu frames, the slowest %lu ms\n", (unsigned long)s->frames,
	       (unsigned long)s->slowest_ms);
	result(f, !s->failed && programs >= s->nr_stored, "programs of vGPUs");
	if (s->failed)
		printf("# %s\n# the records are in %s; again: make fuzz REPLAY=DIR\n", s->why,
		       f->out);
	result(f, f->replay || s->frames > 3, "the neighbour is served");
}

static void check_left(struct fuzz *f, unsigned int fds, unsigned int threads)
{
	bool hangs = alive(f) || f->neighbour.pid > 0;
	struct nl nl;
	unsigned int i;
	bool was = f->s->failed;

	if (hangs || nl_open(&nl)) {
		result(f, false, "nothing is left");
		return;
	}
	f->s->failed = false;
	for (i = 0; i < f->nr; i++)
		check_closed(f->s, &nl, f->child[i].uuid, "a vGPU");
	check_closed(f->s, &nl, f->neighbour.uuid, "the neighbour's vGPU");
	nl_dev_set(&nl, vmm_parent(), "weighted", MGPU_JOB_TIMEOUT_DEFAULT);
	nl_close(&nl);
	remove_all(f);
	if (workers() != threads)
		fail(f->s, "%u threads are left", workers() - threads);
	if (count("/proc/self/fd", "") != fds)
		fail(f->s, "descriptors are left");
	result(f, !f->s->failed, "nothing is left");
	if (f->s->failed)
		printf("# %s\n", f->s->why);
	f->s->failed |= was;
}

int fuzz_main(const char *type, bool gpu)
{
	static struct fuzz f;
	unsigned int fds, threads, i;
	const char *merge_with = text_of("FUZZ_MERGE");
	int ret;

	f.type = type;
	f.gpu = gpu;
	printf("TAP version 13\n1..%d\n", merge_with ? 1 : 3);
	fds = count("/proc/self/fd", "");
	threads = workers();
	ret = prepare(&f);
	if (ret) {
		printf("Bail out! cannot prepare: %s\n", strerror(-ret));
		remove_all(&f);
		return 1;
	}
	printf("# seed %lu, %u vGPUs, %u s, %s\n", (unsigned long)f.seed, f.nr, f.seconds,
	       f.cover ? "with KCOV" : "without KCOV");
	fflush(stdout);
	if (merge_with) {
		load(&f, merge_with);
		f.child[0].pid = fork();
		if (!f.child[0].pid)
			_exit(merge_process(&f));
		waitpid(f.child[0].pid, &ret, 0);
		remove_all(&f);
		result(&f, !ret && !f.s->failed, "merged");
		return f.bad;
	}
	ret = spawn(&f, MAX_VGPUS);
	for (i = 0; i < f.nr && !ret; i++)
		ret = spawn(&f, i);
	if (ret)
		fail(f.s, "no process: %s", strerror(-ret));
	supervise(&f);
	sum_up(&f);
	check_left(&f, fds, threads);
	return f.bad;
}
