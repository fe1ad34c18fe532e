// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpud as a whole, but for the kernel: the test plays the module, the counters and the
 * contexts. Settings last, failures of one loop do not disturb the other one, and the
 * module may come later. tests/kselftest/test_mgpud.sh has the module itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <json-c/json.h>

#include "daemon.h"
#include "file.h"
#include "tap.h"

#define A	"01234567-89ab-cdef-0123-456789abcdef"

/**
 * struct world - what the test plays for mgpud, in memory that both share
 * @module: the module is loaded
 * @devices: number of devices
 * @fail_open: so many preempter_open() fail
 * @fail_run: so many preempter_run() fail
 * @fail_learn: so many preempter_learn() fail
 * @observers: number of observer_open()
 * @samples: number of samples
 * @preempters: number of preempter_open() that succeeded
 * @released: number of apply_release()
 * @slow: the disk does not write
 * @writes: number of writes that began
 * @busy: a sample takes until this is false, and no thread writes
 * @floor: setting fps-floor of the vGPU, millihertz
 */
struct world {
	bool module;
	unsigned int devices;
	unsigned int fail_open, fail_run, fail_learn;
	unsigned int observers, samples, preempters, released;
	bool slow, busy;
	unsigned int writes;
	unsigned int floor;
};

static struct world *world;
static char folder[64], path[128], conf[128], state_file[128], out[128];
static pid_t mgpud;
static int events;	/* readable: preempter_run() must be called */
static int manager;	/* socket of the service manager */

/* ---- the kernel ---- */

static unsigned int get(unsigned int *n)
{
	return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

static bool take(unsigned int *n)
{
	if (!get(n))
		return false;
	__atomic_sub_fetch(n, 1, __ATOMIC_SEQ_CST);
	return true;
}

static void count(unsigned int *n)
{
	__atomic_add_fetch(n, 1, __ATOMIC_SEQ_CST);
}

static bool loaded(void)
{
	return __atomic_load_n(&world->module, __ATOMIC_SEQ_CST);
}

int mgpu_fail(struct mgpu_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

int mgpu_open(struct mgpu **mgpu, struct mgpu_error *err)
{
	*mgpu = NULL;
	if (!loaded())
		return mgpu_fail(err, -ENOENT, "the module is not loaded: modprobe mgpu");
	*mgpu = (struct mgpu *)world;
	return 0;
}

void mgpu_close(struct mgpu *mgpu)
{
	(void)mgpu;
}

int observer_open(struct observer **observer, struct mgpu *mgpu, char *why, size_t len,
		  struct mgpu_error *err)
{
	(void)mgpu;
	(void)err;
	snprintf(why, len, "%s", "");
	count(&world->observers);
	*observer = (struct observer *)world;
	return 0;
}

void observer_close(struct observer *o)
{
	(void)o;
}

bool observer_bpf(const struct observer *o)
{
	return o;
}

bool observer_charge(const struct observer *o)
{
	return o;
}

uint64_t observer_missed(const struct observer *o)
{
	return o ? 0 : 1;
}

/* mgpud has a second thread while it writes: a folder has two links, and one for each in it. */
static bool writes(void)
{
	struct stat st;

	return !stat("/proc/self/task", &st) && st.st_nlink > 3;
}

int observer_sample(struct observer *o, const struct sample **sample,
		    struct mgpu_error *err)
{
	static struct sample_vgpu vgpu = { .id = 1, .uuid = A, .open = true, .tgid = 7 };
	static struct sample_vmm vmm = { .tgid = 7 };
	static struct sample_dev devs[64];
	static struct sample s;
	struct timespec ts;

	(void)o;
	if (!loaded())
		return mgpu_fail(err, -ENOENT, "the module was unloaded");
	clock_gettime(CLOCK_MONOTONIC, &ts);
	vgpu.frames += 6;
	vgpu.fps_floor = get(&world->floor);
	vgpu.engine_ns += 1000000;
	vmm.cpu_ns += 2000000;
	for (uint32_t i = 0; i < world->devices; i++)
		devs[i] = (struct sample_dev){ .id = i, .engines = 1 };
	s = (struct sample){
		.now_ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec,
		.cpus = 2, .vgpus = &vgpu, .nr_vgpus = 1, .vmms = &vmm, .nr_vmms = 1,
		.devs = devs, .nr_devs = world->devices,
	};
	*sample = &s;
	count(&world->samples);
	if (__atomic_load_n(&world->busy, __ATOMIC_SEQ_CST)) {
		while (__atomic_load_n(&world->busy, __ATOMIC_SEQ_CST) || writes())
			usleep(1000);
	}
	return 0;
}

int apply(struct mgpu *mgpu, const struct estimate *e, const struct plan *plan,
	  struct applied *result, struct mgpu_error *err)
{
	(void)mgpu;
	(void)e;
	(void)plan;
	(void)result;
	(void)err;
	return 0;
}

int apply_release(struct mgpu *mgpu, size_t *nr, struct mgpu_error *err)
{
	(void)mgpu;
	(void)err;
	count(&world->released);
	*nr = 1;
	return 0;
}

int preempter_open(struct preempter **p, const struct preempter_config *config, bool act,
		   char *why, size_t len, struct mgpu_error *err)
{
	(void)config;
	(void)act;
	snprintf(why, len, "%s", "");
	*p = NULL;
	if (take(&world->fail_open))
		return mgpu_fail(err, -EIO, "contexts cannot be listed");
	count(&world->preempters);
	*p = (struct preempter *)world;
	return 0;
}

void preempter_close(struct preempter *p)
{
	(void)p;
}

void preempter_configure(struct preempter *p, const struct preempter_config *config)
{
	(void)p;
	(void)config;
}

int preempter_fd(const struct preempter *p)
{
	(void)p;
	return events;
}

uint64_t preempter_wake_ns(const struct preempter *p)
{
	(void)p;
	return UINT64_MAX;
}

int preempter_run(struct preempter *p, struct mgpu_error *err)
{
	eventfd_t value;

	(void)p;
	eventfd_read(events, &value);
	return take(&world->fail_run) ? mgpu_fail(err, -EIO, "a context cannot be preempted") : 0;
}

int preempter_learn(struct preempter *p, struct mgpu_error *err)
{
	(void)p;
	return take(&world->fail_learn) ? mgpu_fail(err, -EIO, "counters cannot be read") : 0;
}

struct analyse *preempter_analyse(struct preempter *p)
{
	static struct analyse analyse;

	(void)p;
	return &analyse;
}

const struct preempter_stats *preempter_stats(struct preempter *p)
{
	static const struct preempter_stats stats;

	(void)p;
	return &stats;
}

/* The disk: a write lasts until it is slow no more. */
int fsync(int fd)
{
	(void)fd;
	count(&world->writes);
	while (__atomic_load_n(&world->slow, __ATOMIC_SEQ_CST))
		usleep(1000);
	return 0;
}

/* ---- models ---- */

/* A model whose weights are a number that is added to each answer of the control. */
static int stub_load(void **data, const char *payload, size_t size, char *why, size_t len)
{
	double *add = malloc(sizeof(*add));

	if (!add)
		return -ENOMEM;
	if (sscanf(payload, "%lf", add) == 1 && size) {
		*data = add;
		return 0;
	}
	free(add);
	snprintf(why, len, "the weights are no number");
	return -EINVAL;
}

static void stub_share(void *data, const struct learn_input *in, double share[LEARN_RESOURCES])
{
	learn_static.share(NULL, in, share);
	for (int g = 0; g < LEARN_RESOURCES; g++)
		share[g] += *(double *)data;
}

static const struct learn_model_ops stub = {
	.name = "stub", .learned = true, .load = stub_load, .free = free, .share = stub_share,
};

const struct learn_model_ops *learn_model_find(const char *name)
{
	return !strcmp(name, "stub") ? &stub : !strcmp(name, "static") ? &learn_static : NULL;
}

/* Write a file of weights that were made so many days ago. */
static void write_weights(const char *name, const char *model, const char *payload, int days)
{
	struct learn_file file = {
		.made_s = (uint64_t)time(NULL) - (uint64_t)days * 86400, .data = "0",
		.evaluation = "error 0.01", .payload = (char *)payload,
		.size = strlen(payload),
	};
	FILE *f = fopen(name, "w");

	if (!f)
		abort();
	strcpy(file.model, model);
	TAP_EQ(learn_file_write(&file, f), 0);
	fclose(f);
}

/* ---- mgpud ---- */

static void configure(const char *more)
{
	FILE *f = fopen(conf, "w");

	if (!f)
		abort();
	fprintf(f, "[mgpud]\nsocket = %s\nstate_file = %s\nperiod_ms = 100\nlog = changes\n%s\n",
		path, state_file, more);
	fclose(f);
}

static void start(bool dry_run)
{
	fflush(stdout);
	mgpud = fork();
	if (!mgpud) {
		struct options o = {
			.source = { .path = conf, .must = true }, .dry_run = dry_run,
		};
		char why[512];

		if (!freopen(out, "a", stdout) || !freopen(out, "a", stderr))
			_exit(9);
		log_start();
		if (config_load(&o.config, &o.source, why, sizeof(why)))
			_exit(END_CONFIG);
		exit(daemon_run(&o));
	}
}

static void stop(int signal)
{
	int status;

	kill(mgpud, signal);
	if (!TAP_EQ(waitpid(mgpud, &status, 0), mgpud))
		return;
	if (signal == SIGKILL)
		TAP_EQ(WTERMSIG(status), SIGKILL);
	else if (!TAP_CHECK(WIFEXITED(status)) || !TAP_EQ(WEXITSTATUS(status), END_OK))
		tap_diag("status %#x", (unsigned int)status);
	mgpud = 0;
}

/* Ask; the caller must put the answer. */
static struct json_object *ask(const char *request)
{
	static char text[1 << 20];
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct json_object *answer = NULL;
	size_t len = 0;
	int fd = -1;

	strcpy(addr.sun_path, path);
	/* mgpud may be starting */
	for (;;) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
			break;
		close(fd);
		if (waitpid(mgpud, NULL, WNOHANG))
			return NULL;
		usleep(5000);
	}
	dprintf(fd, "%s\n", request);
	while (len < sizeof(text) - 1) {
		ssize_t n = recv(fd, text + len, sizeof(text) - 1 - len, 0);

		if (n <= 0)
			break;
		len += (size_t)n;
		if (text[len - 1] == '\n')
			break;
	}
	close(fd);
	text[len] = '\0';
	answer = json_tokener_parse(text);
	if (!answer)
		tap_diag("answer: %.200s", text);
	return answer;
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	json_object_object_get_ex(o, key, &v);
	return v;
}

/* Is @key of the state, or of its object @in, this JSON text? */
static bool state_is(const char *in, const char *key, const char *want)
{
	struct json_object *answer = ask("{\"request\":\"get\"}");
	struct json_object *o = member(answer, "state");
	const char *got;
	bool same;

	if (in)
		o = member(o, in);
	got = json_object_to_json_string_ext(member(o, key), JSON_C_TO_STRING_PLAIN);
	same = !strcmp(got, want);
	if (!same)
		tap_diag("%s: %s", key, got);
	json_object_put(answer);
	return same;
}

/* Does the state have a trouble that contains @text? NULL: it has none. */
static bool in_trouble(const char *text)
{
	struct json_object *answer = ask("{\"request\":\"get\"}");
	struct json_object *list = member(member(answer, "state"), "trouble");
	bool found = !text && list && !json_object_array_length(list);

	for (size_t i = 0; text && list && i < json_object_array_length(list); i++)
		found |= !!strstr(json_object_get_string(json_object_array_get_idx(list, i)),
				  text);
	json_object_put(answer);
	return found;
}

/* Wait as long as the test may take. */
#define await(condition)	do { while (!(condition)) usleep(5000); } while (0)

/* Set or reset, and return the warning: "" for none, NULL if it was refused. */
static const char *change(const char *request)
{
	static char warning[512];
	struct json_object *answer = ask(request), *v;

	if (!json_object_get_boolean(member(answer, "ok"))) {
		tap_diag("refused: %s", json_object_to_json_string(answer));
		json_object_put(answer);
		return NULL;
	}
	v = member(answer, "warning");
	snprintf(warning, sizeof(warning), "%s", v ? json_object_get_string(v) : "");
	json_object_put(answer);
	return warning;
}

/* Return how often a file has a text. */
static unsigned int times(const char *file, const char *text)
{
	static char all[1 << 16];
	FILE *f = fopen(file, "r");
	const char *at = all;
	unsigned int n = 0;

	memset(all, 0, sizeof(all));
	if (f && !fread(all, 1, sizeof(all) - 1, f))
		all[0] = '\0';
	if (f)
		fclose(f);
	while ((at = strstr(at, text))) {
		at++;
		n++;
	}
	return n;
}

static bool contains(const char *file, const char *text)
{
	return times(file, text) > 0;
}

static bool logged(const char *text)
{
	return contains(out, text);
}

/* Wait for a datagram to the service manager that contains @text. */
static void hear(const char *text)
{
	char got[1024];

	do {
		ssize_t n = recv(manager, got, sizeof(got) - 1, 0);

		got[n > 0 ? n : 0] = '\0';
	} while (!strstr(got, text));
}

static void begin(const char *more)
{
	char heard[1024];

	/* a queue that is full would take nothing of the next mgpud */
	while (recv(manager, heard, sizeof(heard), MSG_DONTWAIT) >= 0)
		;
	memset(world, 0, sizeof(*world));
	world->module = true;
	world->devices = 1;
	unlink(state_file);
	unlink(out);
	configure(more);
}

/* ---- tests ---- */

#define SET(settings)	"{\"request\":\"set\",\"settings\":" settings "}"
#define OF(uuid, source)	"\"uuid\":\"" uuid "\",\"source\":\"" source "\""
#define RESET(keys)	"{\"request\":\"reset\",\"keys\":" keys "}"

/* A floor that is a setting of the vGPU is among the agreements, up to one of the vGPU's own. */
static void floor_of_vgpu(void)
{
	begin("");
	__atomic_store_n(&world->floor, 20000, __ATOMIC_SEQ_CST);
	start(false);
	await(get(&world->samples));
	await(state_is(NULL, "agreements",
		       "[{\"floor_fps\":20,\"ceiling_fps\":null," OF(A, "vgpu") "}]"));
	TAP_STR(change(SET("{\"sla\":{\"" A "\":{\"ceiling\":50}}}")), "");
	TAP_CHECK(state_is(NULL, "agreements",
			   "[{\"floor_fps\":20,\"ceiling_fps\":50," OF(A, "run-time") "}]"));
	TAP_STR(change(RESET("[\"" A "\"]")), "");
	TAP_CHECK(state_is(NULL, "agreements",
			   "[{\"floor_fps\":20,\"ceiling_fps\":null," OF(A, "vgpu") "}]"));
	__atomic_store_n(&world->floor, 0, __ATOMIC_SEQ_CST);
	await(state_is(NULL, "agreements", "[]"));
	stop(SIGTERM);
}

/* Through crash, reload and reboot; until it is reset. */
static void lasts(void)
{
	static const char agreement[] =
		"[{\"floor_fps\":30,\"ceiling_fps\":null," OF(A, "run-time") "}]";
	char command[512];

	begin("iterations = 20");
	start(false);
	TAP_STR(change(SET("{\"allocator\":\"drf\",\"iterations\":30}")), "");
	TAP_STR(change(SET("{\"sla\":{\"" A "\":{\"floor\":30}}}")), "");
	/* it was written before the answer came */
	stop(SIGKILL);
	start(false);
	TAP_CHECK(state_is(NULL, "allocator", "\"drf\""));
	TAP_CHECK(state_is(NULL, "iterations", "30"));
	TAP_CHECK(state_is("sources", "iterations", "\"run-time\""));
	TAP_CHECK(state_is("sources", "period_ms", "\"file\""));
	TAP_CHECK(state_is("sources", "beta", "\"default\""));
	TAP_CHECK(state_is(NULL, "agreements", agreement));
	/* a reload takes the file's new values only where nothing was set */
	configure("iterations = 40\nheadroom = 3");
	kill(mgpud, SIGHUP);
	await(state_is(NULL, "reloads", "1"));
	TAP_CHECK(state_is(NULL, "headroom", "3"));
	TAP_CHECK(state_is(NULL, "iterations", "30"));
	TAP_CHECK(logged("set at run time, which counts more: iterations (file)"));
	stop(SIGTERM);
	/* the machine starts again */
	snprintf(command, sizeof(command),
		 "sed -i 's/\"boot_id\":\"[^\"]*\"/\"boot_id\":\"another\"/' %s", state_file);
	TAP_EQ(system(command), 0);
	start(false);
	TAP_CHECK(state_is(NULL, "iterations", "30"));
	TAP_CHECK(state_is(NULL, "allocator", "\"drf\""));
	TAP_STR(change(RESET("[\"iterations\"]")), "");
	TAP_CHECK(state_is(NULL, "iterations", "40"));
	TAP_CHECK(state_is("sources", "iterations", "\"file\""));
	stop(SIGKILL);
	start(false);
	TAP_CHECK(state_is(NULL, "iterations", "40"));
	TAP_CHECK(state_is(NULL, "allocator", "\"drf\""));
	TAP_STR(change("{\"request\":\"reset\"}"), "");
	TAP_CHECK(state_is(NULL, "run_time", "{}"));
	stop(SIGKILL);
	start(false);
	TAP_CHECK(state_is(NULL, "allocator", "\"exact\""));
	TAP_CHECK(state_is(NULL, "agreements", "[]"));
	snprintf(command, sizeof(command), " uid=%u pid=%d", geteuid(), getpid());
	TAP_CHECK(logged(command));
	stop(SIGTERM);
}

/* This mgpud logs once which settings of another one it refuses; the rest is in force. */
static void refused(void)
{
	FILE *f;

	begin("");
	f = fopen(state_file, "w");
	TAP_NEED(f);
	fputs("{\"version\":1,\"boot_id\":\"x\",\"settings\":{", f);
	fputs("\"allocator\":\"lottery\",\"iterations\":30}}\n", f);
	fclose(f);
	start(false);
	TAP_CHECK(state_is(NULL, "iterations", "30"));
	TAP_CHECK(state_is(NULL, "allocator", "\"exact\""));
	await(logged("allocator must be exact"));
	/* it is dropped from the file, without any change */
	await(!contains(state_file, "lottery"));
	stop(SIGKILL);
	unlink(out);
	start(false);
	TAP_CHECK(state_is(NULL, "iterations", "30"));
	TAP_CHECK(!logged("lottery"));
	/* a file that does not go with it is refused as a whole */
	TAP_STR(change(SET("{\"beta\":3,\"lambda\":-1}")), "");
	TAP_STR(change(RESET("[\"beta\"]")), "");
	path[strlen(path) - 1] = 'x';
	configure("beta = 0.5\nlambda = 1\nheadroom = 3");
	path[strlen(path) - 1] = 'k';
	kill(mgpud, SIGHUP);
	await(logged("with what was set at run time"));
	TAP_CHECK(!logged("all other settings are in force"));
	TAP_CHECK(state_is(NULL, "headroom", "2"));
	stop(SIGTERM);
}

/* A client is told when what it sets does not last. */
static void does_not_last(void)
{
	char text[256], *warning;

	begin("");
	snprintf(text, sizeof(text), "rm -rf %s/no", folder);
	TAP_EQ(system(text), 0);
	snprintf(state_file, sizeof(state_file), "%s/no/such/mgpud.state", folder);
	configure("state_period_s = 1");
	start(false);
	warning = (char *)change(SET("{\"iterations\":30}"));
	TAP_CHECK(warning && strstr(warning, "only until mgpud ends") &&
		  strstr(warning, state_file) && strstr(warning, "No such file"));
	TAP_CHECK(state_is(NULL, "iterations", "30"));
	TAP_CHECK(in_trouble("cannot write state file"));
	/* a write that succeeds later ends this */
	snprintf(text, sizeof(text), "%s/no", folder);
	TAP_EQ(mkdir(text, 0755), 0);
	await(in_trouble(NULL));
	TAP_CHECK(logged("the state file is written again"));
	TAP_STR(change(SET("{\"iterations\":31}")), "");
	stop(SIGKILL);
	start(false);
	TAP_CHECK(state_is(NULL, "iterations", "31"));
	stop(SIGTERM);

	strcpy(state_file, "none");
	configure("");
	start(false);
	warning = (char *)change(SET("{\"iterations\":30}"));
	TAP_CHECK(warning && strstr(warning, "it has no state file"));
	stop(SIGTERM);
	snprintf(state_file, sizeof(state_file), "%s/mgpud.state", folder);
	configure("");
	start(true);
	warning = (char *)change(SET("{\"iterations\":30}"));
	TAP_CHECK(warning && strstr(warning, "--dry-run"));
	stop(SIGTERM);
	TAP_EQ(access(state_file, F_OK), -1);
}

/*
 * While the disk is slow a client waits for 3 s, and control goes on. A state file that
 * moves meanwhile has what was set, too.
 */
static void slow_disk(void)
{
	char moved[128], *warning;
	unsigned int samples;

	begin("");
	start(false);
	await(get(&world->samples) > 3);
	__atomic_store_n(&world->slow, true, __ATOMIC_SEQ_CST);
	samples = get(&world->samples);
	warning = (char *)change(SET("{\"iterations\":30}"));
	TAP_CHECK(warning && strstr(warning, "the disk is slow") && strstr(warning, state_file));
	TAP_CHECK(get(&world->samples) > samples + 3);
	TAP_CHECK(!contains(state_file, "\"iterations\":30"));
	snprintf(moved, sizeof(moved), "%s/moved.state", folder);
	snprintf(state_file, sizeof(state_file), "%s", moved);
	configure("");
	kill(mgpud, SIGHUP);
	await(state_is(NULL, "reloads", "1"));
	__atomic_store_n(&world->slow, false, __ATOMIC_SEQ_CST);
	await(contains(moved, "\"iterations\":30"));
	stop(SIGKILL);
	unlink(moved);
	snprintf(state_file, sizeof(state_file), "%s/mgpud.state", folder);
}

/* A disk that wrote in time is not slow, even if mgpud looks after its patience is over. */
static void busy_meanwhile(void)
{
	unsigned int samples;
	pid_t disk;

	begin("");
	start(false);
	await(get(&world->samples) > 3);
	__atomic_store_n(&world->slow, true, __ATOMIC_SEQ_CST);
	disk = fork();
	if (!disk) {
		await(get(&world->writes));
		samples = get(&world->samples);
		__atomic_store_n(&world->busy, true, __ATOMIC_SEQ_CST);
		await(get(&world->samples) > samples);
		__atomic_store_n(&world->slow, false, __ATOMIC_SEQ_CST);
		sleep(4);
		__atomic_store_n(&world->busy, false, __ATOMIC_SEQ_CST);
		_exit(0);
	}
	TAP_STR(change(SET("{\"iterations\":30}")), "");
	TAP_CHECK(contains(state_file, "\"iterations\":30"));
	TAP_EQ(waitpid(disk, NULL, 0), disk);
	stop(SIGTERM);
}

/* SIGUSR1 opens the log again, SIGHUP does not. */
static void rotated(void)
{
	char log[128], old[128], more[192];
	struct stat st;

	snprintf(log, sizeof(log), "%s/json", folder);
	snprintf(old, sizeof(old), "%s/json.1", folder);
	snprintf(more, sizeof(more), "json_log = %s", log);
	begin(more);
	start(false);
	TAP_STR(change(SET("{\"iterations\":30}")), "");
	await(!stat(log, &st) && st.st_size > 0);
	TAP_EQ(rename(log, old), 0);
	kill(mgpud, SIGHUP);
	await(state_is(NULL, "reloads", "1"));
	TAP_EQ(access(log, F_OK), -1);
	kill(mgpud, SIGUSR1);
	await(!stat(log, &st) && st.st_size > 0);
	TAP_CHECK(state_is(NULL, "iterations", "30"));
	/* a log that cannot be opened again: the old one goes on */
	TAP_EQ(unlink(log), 0);
	TAP_EQ(mkdir(log, 0755), 0);
	kill(mgpud, SIGUSR1);
	await(in_trouble("send SIGUSR1 again"));
	TAP_EQ(rmdir(log), 0);
	kill(mgpud, SIGUSR1);
	await(in_trouble(NULL));
	stop(SIGTERM);
}

/* Errors of the preemption loop: the rate loop goes on with the same counters. */
static void apart(void)
{
	unsigned int samples;

	begin("");
	start(false);
	await(get(&world->samples) > 3);
	TAP_EQ(get(&world->preempters), 1);
	/* of an order, of learning, and of beginning anew */
	__atomic_store_n(&world->fail_open, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&world->fail_run, 1, __ATOMIC_SEQ_CST);
	eventfd_write(events, 1);
	/* trouble that ends by itself is sought in the log, where it stays */
	await(logged("a context cannot be preempted"));
	samples = get(&world->samples);
	await(get(&world->samples) > samples + 3);
	await(logged("contexts cannot be listed"));
	await(get(&world->preempters) == 2);
	await(in_trouble(NULL));
	TAP_CHECK(logged("preemption works again"));
	__atomic_store_n(&world->fail_learn, 1, __ATOMIC_SEQ_CST);
	await(logged("counters cannot be read"));
	await(get(&world->preempters) == 3);
	await(in_trouble(NULL));
	TAP_EQ(get(&world->observers), 1);
	TAP_CHECK(!logged("control works again"));
	stop(SIGTERM);
}

/* The module comes later, goes, and comes again. */
static void waits(void)
{
	struct json_object *answer, *age;

	begin("");
	world->module = false;
	start(false);
	hear("READY=1\nSTATUS=the module is not loaded: modprobe mgpu");
	TAP_CHECK(in_trouble("modprobe mgpu"));
	answer = ask("{\"request\":\"get\"}");
	TAP_CHECK(json_object_object_get_ex(member(answer, "state"), "sample_age_s", &age) && !age);
	json_object_put(answer);
	/* settings can be changed meanwhile */
	TAP_STR(change(SET("{\"iterations\":30}")), "");
	TAP_CHECK(!logged("ready "));
	__atomic_store_n(&world->module, true, __ATOMIC_SEQ_CST);
	hear("STATUS=dividing");
	TAP_CHECK(logged("ready allocator=exact"));
	TAP_CHECK(in_trouble(NULL));
	TAP_CHECK(state_is(NULL, "iterations", "30"));
	__atomic_store_n(&world->module, false, __ATOMIC_SEQ_CST);
	await(in_trouble("modprobe mgpu"));
	/* the last sample becomes older with each look, also within a period */
	for (double last = 0, now = 0; now < 0.5; last = now) {
		answer = ask("{\"request\":\"get\"}");
		now = json_object_get_double(member(member(answer, "state"), "sample_age_s"));
		json_object_put(answer);
		TAP_CHECK(now >= last);
		usleep(20000);
	}
	__atomic_store_n(&world->module, true, __ATOMIC_SEQ_CST);
	await(in_trouble(NULL));
	stop(SIGTERM);
}

static void ends(void)
{
	begin("");
	start(false);
	await(get(&world->samples) > 3);
	stop(SIGTERM);
	TAP_EQ(world->released, 1);
	TAP_CHECK(logged("released vgpus=1"));
	begin("");
	start(false);
	await(get(&world->samples) > 3);
	stop(SIGKILL);
	start(false);
	TAP_CHECK(state_is(NULL, "allocator", "\"exact\""));
	TAP_EQ(world->released, 0);
	stop(SIGINT);
	TAP_EQ(world->released, 1);
	begin("on_exit = keep");
	start(false);
	await(get(&world->samples) > 3);
	stop(SIGTERM);
	TAP_EQ(world->released, 0);
	/* an allocator without targets may follow one whose targets are still in force */
	begin("");
	start(false);
	await(get(&world->samples) > 3);
	TAP_STR(change(SET("{\"period_ms\":60000,\"allocator\":\"none\"}")), "");
	stop(SIGTERM);
	TAP_EQ(world->released, 1);
}

static void reload(const char *reloads)
{
	kill(mgpud, SIGHUP);
	await(state_is(NULL, "reloads", reloads));
}

/* A model in shadow, one that acts, fails, is replaced, damaged, and too old. */
static void models(void)
{
	char weights[128], other[128], text[512];

	snprintf(weights, sizeof(weights), "%s/weights", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	write_weights(weights, "stub", "0", 3);
	/* a control acts unless it is told otherwise */
	begin("");
	start(false);
	await(get(&world->samples) > 3);
	TAP_CHECK(state_is("model", "state", "\"acts\""));
	TAP_STR(change(SET("{\"model_mode\":\"shadow\"}")), "");
	TAP_CHECK(state_is("model", "state", "\"shadow\""));
	await(!state_is("model", "checked", "0"));
	TAP_CHECK(state_is("model", "use", "\"static\""));
	TAP_CHECK(state_is("model", "age_s", "null"));
	TAP_CHECK(!state_is("model", "error", "null"));
	TAP_CHECK(!state_is("model", "checked", "0"));
	TAP_STR(change(SET("{\"model_mode\":\"act\"}")), "");
	TAP_CHECK(state_is("model", "state", "\"acts\""));
	TAP_CHECK(state_is("sources", "model_mode", "\"run-time\""));
	/* weights do not */
	TAP_STR(change(SET("{\"model_mode\":\"auto\"}")), "");
	snprintf(text, sizeof(text), SET("{\"model\":\"%s\"}"), weights);
	TAP_STR(change(text), "");
	TAP_CHECK(state_is("model", "state", "\"shadow\""));
	TAP_STR(change(SET("{\"model_mode\":\"act\"}")), "");
	TAP_CHECK(state_is("model", "name", "\"stub\""));
	TAP_CHECK(state_is("model", "evaluation", "\"error 0.01\""));
	TAP_CHECK(!state_is("model", "age_s", "null"));
	TAP_CHECK(logged("stub is the model, and acts"));
	/* other weights come by a reload, and their answers are none */
	write_weights(other, "stub", "3", 1);
	TAP_EQ(rename(other, weights), 0);
	reload("1");
	await(state_is("model", "state", "\"failed\""));
	TAP_CHECK(in_trouble("the model has failed, and nothing is expected: stub expects 4"));
	await(logged("stub expects 4 of the CPUs"));
	/* the same ones are not tried again */
	reload("2");
	usleep(300000);
	TAP_CHECK(state_is("model", "state", "\"failed\""));
	TAP_EQ(times(out, "stub is the model, and acts"), 2);
	write_weights(other, "stub", "0", 1);
	TAP_EQ(rename(other, weights), 0);
	reload("3");
	TAP_CHECK(state_is("model", "state", "\"acts\""));
	TAP_CHECK(in_trouble(NULL));
	/* the same weights go on, with their errors */
	await(!state_is("model", "checked", "0") && !state_is("model", "checked", "1"));
	reload("4");
	TAP_CHECK(!state_is("model", "checked", "0"));
	/* too old by now */
	TAP_STR(change(SET("{\"model_max_age_days\":2}")), "");
	usleep(300000);
	TAP_CHECK(state_is("model", "state", "\"acts\""));
	write_weights(other, "stub", "0", 3);
	TAP_EQ(rename(other, weights), 0);
	reload("5");
	await(in_trouble("older than 2 days"));
	TAP_STR(change(SET("{\"model_max_age_days\":0}")), "");
	TAP_CHECK(in_trouble(NULL));
	/* damaged, of another kind, no weights, no file */
	snprintf(text, sizeof(text), "echo >>%s", weights);
	TAP_EQ(system(text), 0);
	reload("6");
	TAP_CHECK(in_trouble("something follows the checksum"));
	TAP_CHECK(in_trouble("nothing is expected until this is corrected"));
	TAP_CHECK(state_is("model", "state", "\"off\"") && state_is("model", "name", "null"));
	write_weights(weights, "oracle", "0", 1);
	reload("7");
	TAP_CHECK(in_trouble("this mgpud has no model \"oracle\""));
	write_weights(weights, "stub", "x", 1);
	reload("8");
	TAP_CHECK(in_trouble("the weights are no number"));
	TAP_EQ(unlink(weights), 0);
	reload("9");
	TAP_CHECK(in_trouble("No such file"));
	TAP_EQ(mkfifo(weights, 0600), 0);
	reload("10");
	TAP_CHECK(in_trouble("not a regular file"));
	TAP_EQ(unlink(weights), 0);
	/* control goes on without a model */
	TAP_STR(change(SET("{\"model\":\"none\"}")), "");
	TAP_CHECK(in_trouble(NULL));
	TAP_CHECK(state_is("model", "state", "\"off\""));
	TAP_CHECK(!logged("control works again"));
	stop(SIGTERM);
}

/* A watcher is told of models. */
static void model_events(void)
{
	static const char *const want[] = { "model-loaded", "model-acts", "model-failed" };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char weights[128], text[512], line[65536];
	size_t next = 0;
	FILE *f;
	int fd;

	snprintf(weights, sizeof(weights), "%s/weights", folder);
	write_weights(weights, "stub", "3", 1);
	begin("[model]\nuse = none\n");
	start(false);
	TAP_CHECK(state_is("model", "state", "\"off\""));
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	TAP_EQ(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	dprintf(fd, "{\"request\":\"watch\"}\n");
	f = fdopen(fd, "r");
	TAP_NEED(f);
	TAP_CHECK(fgets(line, sizeof(line), f));
	snprintf(text, sizeof(text), SET("{\"model\":\"%s\",\"model_mode\":\"act\"}"), weights);
	TAP_STR(change(text), "");
	while (next < sizeof(want) / sizeof(want[0]) && fgets(line, sizeof(line), f)) {
		struct json_object *o = json_tokener_parse(line), *event = member(o, "event");

		if (event) {
			TAP_STR(json_object_get_string(event), want[next++]);
			TAP_STR(json_object_get_string(member(o, "model")), "stub");
			TAP_STR(json_object_get_string(member(o, "file")), weights);
			TAP_CHECK(!member(o, "why") == (next < 3));
		}
		json_object_put(o);
	}
	TAP_EQ(next, 3);
	fclose(f);
	stop(SIGTERM);
	unlink(weights);
}

/* Descriptions of VMs, and what is known of them, last. */
static void vms_last(void)
{
	static const char file[] =
		"[{\"uuid\":\"" A "\",\"description\":\"of the file\",\"source\":\"file\"}]";
	static const char set[] =
		"[{\"uuid\":\"" A "\",\"description\":\"a game\",\"source\":\"run-time\"}]";
	unsigned int samples;

	begin("[vgpu " A "]\ndescription = of the file");
	start(false);
	TAP_CHECK(state_is(NULL, "descriptions", file));
	TAP_CHECK(state_is(NULL, "agreements", "[]"));
	TAP_STR(change(SET("{\"descriptions\":{\"" A "\":\"a game\"}}")), "");
	await(get(&world->samples) > 3);
	stop(SIGKILL);
	samples = get(&world->samples);
	start(false);
	TAP_CHECK(state_is(NULL, "descriptions", set));
	await(get(&world->samples) > samples + 3);
	stop(SIGTERM);
	TAP_CHECK(contains(state_file, "\"known\":[{\"uuid\":\"" A "\""));
	start(false);
	TAP_STR(change(RESET("[\"" A "\"]")), "");
	TAP_CHECK(state_is(NULL, "descriptions", file));
	stop(SIGTERM);
}

static void many_devices(void)
{
	begin("");
	world->devices = MGPU_MAX_RES - 1;
	start(false);
	await(get(&world->samples) > 3);
	TAP_CHECK(in_trouble(NULL));
	__atomic_store_n(&world->devices, MGPU_MAX_RES, __ATOMIC_SEQ_CST);
	await(in_trouble("controls at most 15"));
	TAP_CHECK(logged("there are 16 devices"));
	stop(SIGTERM);
}

int main(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char command[128];

	signal(SIGPIPE, SIG_IGN);
	strcpy(folder, "/tmp/test-daemon-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/sock", folder);
	snprintf(conf, sizeof(conf), "%s/conf", folder);
	snprintf(out, sizeof(out), "%s/out", folder);
	snprintf(state_file, sizeof(state_file), "%s/mgpud.state", folder);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/notify", folder);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(manager, (struct sockaddr *)&addr, sizeof(addr)))
		return 1;
	setenv("NOTIFY_SOCKET", addr.sun_path, 1);
	events = eventfd(0, EFD_NONBLOCK);
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (world == MAP_FAILED || events < 0)
		return 1;

	tap_run(floor_of_vgpu, "a floor that is a setting of the vGPU is among the agreements");
	tap_run(lasts, "what is set lasts until it is reset");
	tap_run(refused, "of what was set, values that are refused are dropped, once");
	tap_run(does_not_last, "a client is told when what it sets does not last");
	tap_run(slow_disk, "a slow disk delays no control, and loses nothing that moves");
	tap_run(busy_meanwhile, "a disk that wrote while mgpud was busy is not slow");
	tap_run(rotated, "SIGUSR1 opens the log again, SIGHUP does not");
	tap_run(apart, "failures of preemption do not disturb the rate loop");
	tap_run(waits, "it waits for the module, and says so");
	tap_run(ends, "targets are released on a signal, unless they are to stay");
	tap_run(models, "a model is loaded, acts, fails and is replaced while control goes on");
	tap_run(model_events, "watchers are told of models");
	tap_run(vms_last, "descriptions of VMs, and what is known of them, last");
	tap_run(many_devices, "devices that are not controlled are told");

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command))
		return 1;
	return tap_done();
}
