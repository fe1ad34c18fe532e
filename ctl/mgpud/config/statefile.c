// SPDX-License-Identifier: GPL-2.0-only
/* The state file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <json-c/json.h>

#include "config/fail.h"
#include "config/json_get.h"
#include "config/learned.h"
#include "config/settings.h"
#include "config/statefile.h"

/* Upper limits of valid values: seconds per frame, frames, cores, prices. */
#define COST_MAX	1e4
#define FRAMES_MAX	1e9
#define CORES_MAX	1e5
#define PRICE_MAX	1e30
#define STREAK_MAX	1000
#define PERIODS_MAX	1e12

/* ---- writing ---- */

static struct json_object *vgpu_object(const struct estimate_vgpu *v)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_object_object_add(o, "id", json_object_new_int64(v->last.id));
	json_object_object_add(o, "uuid", json_object_new_string(v->last.uuid));
	json_object_object_add(o, "tgid", json_object_new_int64(v->last.tgid));
	json_object_object_add(o, "frames", json_object_new_double(v->kept.frames));
	json_object_object_add(o, "cpu", json_object_new_double(v->kept.cpu));
	json_object_object_add(o, "gpu", json_object_new_double(v->kept.gpu));
	json_object_object_add(o, "idle_ns", json_object_new_uint64(v->idle_ns));
	json_object_object_add(o, "lead", json_object_new_double(v->planned.lead));
	json_object_object_add(o, "margin", json_object_new_double(v->planned.margin));
	return o;
}

static struct json_object *control_object(const struct control *c)
{
	struct json_object *o = json_object_new_object();
	struct json_object *price = json_object_new_array();

	if (!o || !price) {
		json_object_put(o);
		json_object_put(price);
		return NULL;
	}
	for (size_t i = 0; i < MGPU_MAX_RES; i++) {
		double p = c->alloc.price[i];

		/* 0 is "unknown": prices are only a start value */
		json_object_array_add(price, json_object_new_double(p <= PRICE_MAX ? p : 0));
	}
	json_object_object_add(o, "step", json_object_new_double(c->alloc.step));
	json_object_object_add(o, "streak", json_object_new_int64(c->alloc.streak));
	json_object_object_add(o, "price", price);
	return o;
}

/* Keys of what is known of each resource. */
static const char *const cost_key[LEARN_RESOURCES] = { "cpu", "gpu" };
static const char *const use_key[LEARN_RESOURCES] = { "cpu_share", "gpu_share" };

/* Return the list of vGPUs that were active once, with what is known of them. */
static struct json_object *known_list(const struct learner *known)
{
	struct json_object *list = json_object_new_array();
	const struct learner_known *k;

	for (size_t j = 0; list && (k = learner_known(known, j)); j++) {
		bool fits = json_object_array_length(list) < STATEFILE_VGPUS_MAX;
		struct json_object *o = fits && k->periods > 0 ? json_object_new_object() : NULL;

		if (!o)
			continue;
		json_object_object_add(o, "uuid", json_object_new_string(k->uuid));
		json_object_object_add(o, "periods", json_object_new_double(k->periods));
		for (int g = 0; g < LEARN_RESOURCES; g++) {
			json_object_object_add(o, cost_key[g],
					       json_object_new_double(k->cost[g]));
			json_object_object_add(o, use_key[g],
					       json_object_new_double(k->smooth[g]));
		}
		json_object_array_add(list, o);
	}
	return list;
}

char *statefile_make(const struct estimate *e, const struct control *c,
		     const struct analyse *learned, const struct learner *known,
		     struct json_object *settings, const char *boot)
{
	struct json_object *o = json_object_new_object();
	struct json_object *vgpus = json_object_new_array();
	struct json_object *control = control_object(c);
	struct json_object *kinds = learned_to_json(learned);
	const char *text;
	char *copy = NULL;
	size_t len;

	if (!o || !vgpus || !control || !kinds) {
		json_object_put(vgpus);
		json_object_put(control);
		json_object_put(kinds);
		goto out;
	}
	for (size_t j = 0; j < e->nr_vgpus; j++)
		if (e->vgpus[j].state != VGPU_CLOSED)
			json_object_array_add(vgpus, vgpu_object(&e->vgpus[j]));
	json_object_object_add(o, "version", json_object_new_int(STATEFILE_VERSION));
	json_object_object_add(o, "boot_id", json_object_new_string(boot));
	json_object_object_add(o, "cpu_capacity",
			       json_object_new_double(e->cpu_capacity_smooth));
	json_object_object_add(o, "control", control);
	json_object_object_add(o, "vgpus", vgpus);
	json_object_object_add(o, "learned", kinds);
	json_object_object_add(o, "known", known_list(known));
	if (settings)
		json_object_object_add(o, "settings", json_object_get(settings));
	text = json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN, &len);
	copy = text ? malloc(len + 2) : NULL;
	if (copy) {
		memcpy(copy, text, len);
		memcpy(copy + len, "\n", 2);
	}
out:
	json_object_put(o);
	return copy;
}

/* ---- reading ---- */

static bool parse_control(struct json_object *o, struct control *c)
{
	struct json_object *price = json_get_array(o, "price", MGPU_MAX_RES), *v;
	uint64_t streak;

	memset(c, 0, sizeof(*c));
	if (!price || !json_get_number(o, "step", 0, 1, &c->alloc.step) ||
	    !json_get_whole(o, "streak", STREAK_MAX, &streak))
		return false;
	c->alloc.streak = (unsigned int)streak;
	for (size_t i = 0; i < json_object_array_length(price); i++) {
		v = json_object_array_get_idx(price, i);
		if (!json_object_is_type(v, json_type_double) &&
		    !json_object_is_type(v, json_type_int))
			return false;
		c->alloc.price[i] = json_object_get_double(v);
		if (!(c->alloc.price[i] >= 0 && c->alloc.price[i] <= PRICE_MAX))
			return false;
	}
	return true;
}

/* Get a number up to @max that files of earlier versions lack: they have 0. */
static bool get_planned(struct json_object *o, const char *key, double max, double *value)
{
	*value = 0;
	return !json_object_object_get_ex(o, key, NULL) ||
		json_get_number(o, key, 0, max, value);
}

static bool get_uuid(struct json_object *o, char uuid[SAMPLE_UUID_LEN])
{
	struct json_object *v;

	return json_object_object_get_ex(o, "uuid", &v) &&
		json_object_is_type(v, json_type_string) &&
		settings_uuid(json_object_get_string(v), uuid);
}

static bool parse_vgpu(struct json_object *o, struct estimate_vgpu *v)
{
	uint64_t id, tgid;

	if (!json_object_is_type(o, json_type_object) ||
	    !json_get_whole(o, "id", UINT32_MAX, &id) ||
	    !json_get_whole(o, "tgid", INT_MAX, &tgid) || !tgid ||
	    !get_uuid(o, v->last.uuid) ||
	    !json_get_number(o, "frames", 0, FRAMES_MAX, &v->kept.frames) ||
	    !json_get_number(o, "cpu", 0, COST_MAX, &v->kept.cpu) ||
	    !json_get_number(o, "gpu", 0, COST_MAX, &v->kept.gpu) ||
	    !json_get_whole(o, "idle_ns", INT64_MAX, &v->idle_ns) ||
	    !get_planned(o, "lead", DECIDE_LEAD_MAX, &v->planned.lead) ||
	    !get_planned(o, "margin", SLA_MARGIN_MAX, &v->planned.margin))
		return false;
	v->last.id = (uint32_t)id;
	v->last.tgid = (uint32_t)tgid;
	v->last.open = true;
	v->state = VGPU_IDLE;
	return true;
}

static int compare_id(const void *a, const void *b)
{
	const struct estimate_vgpu *x = a, *y = b;

	return x->last.id < y->last.id ? -1 : x->last.id > y->last.id;
}

static int parse_vgpus(struct json_object *list, struct estimate *e)
{
	size_t n = json_object_array_length(list);

	e->vgpus = calloc(n ? n : 1, sizeof(*e->vgpus));
	if (!e->vgpus)
		return -ENOMEM;
	for (size_t j = 0; j < n; j++)
		if (!parse_vgpu(json_object_array_get_idx(list, j), &e->vgpus[j]))
			return -EBADMSG;
	e->nr_vgpus = n;
	qsort(e->vgpus, n, sizeof(*e->vgpus), compare_id);
	for (size_t j = 1; j < n; j++)
		if (e->vgpus[j].last.id == e->vgpus[j - 1].last.id)
			return -EBADMSG;
	return 0;
}

static struct json_object *parse_text(const char *text, size_t len)
{
	struct json_tokener *t;
	struct json_object *o;

	while (len && text[len - 1] == '\n')
		len--;
	if (!len || len > STATEFILE_SIZE_MAX || memchr(text, '\0', len))
		return NULL;
	t = json_tokener_new_ex(8);
	if (!t)
		return NULL;
	json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(t, text, (int)len);
	if (o && json_tokener_get_parse_end(t) < len) {
		json_object_put(o);
		o = NULL;
	}
	json_tokener_free(t);
	if (!json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		o = NULL;
	}
	return o;
}

/* Fill @learned; if it is invalid, @why says why. A file may lack it. */
static void parse_learned(struct json_object *o, struct analyse *learned, char *why,
			  size_t size)
{
	struct json_object *v;
	char wrong[128];

	if (json_object_object_get_ex(o, "learned", &v) &&
	    learned_from_json(v, learned, wrong, sizeof(wrong)))
		fail(why, size, 0, "what was learned of work is not used: %s", wrong);
}

static bool get_known(struct json_object *o, struct learner_known *k)
{
	bool valid = json_object_is_type(o, json_type_object) && get_uuid(o, k->uuid) &&
		json_get_number(o, "periods", 0, PERIODS_MAX, &k->periods);

	for (int g = 0; valid && g < LEARN_RESOURCES; g++)
		valid = json_get_number(o, cost_key[g], 0, COST_MAX, &k->cost[g]) &&
			json_get_number(o, use_key[g], 0, CORES_MAX, &k->smooth[g]);
	return valid;
}

/* Fill @known; if that is invalid, @why says so, behind what is there. A file may lack it. */
static void parse_known(struct json_object *o, struct learner *known, char *why, size_t size)
{
	struct json_object *list;
	struct learner_known *k;
	size_t n, len = strlen(why);
	bool valid;

	if (!json_object_object_get_ex(o, "known", NULL))
		return;
	list = json_get_array(o, "known", STATEFILE_VGPUS_MAX);
	n = list ? json_object_array_length(list) : 0;
	k = calloc(n ? n : 1, sizeof(*k));
	valid = list && k;
	for (size_t j = 0; valid && j < n; j++)
		valid = get_known(json_object_array_get_idx(list, j), &k[j]);
	if (!valid || learner_know(known, k, n))
		fail(why + len, size - len, 0, "%swhat was learned of vGPUs is not used: a value is missing or out of range",
		     len ? "; " : "");
	free(k);
}

int statefile_parse(const char *text, size_t len, const char *boot,
		    struct estimate *e, struct control *c, struct analyse *learned,
		    struct learner *known, struct json_object **settings, char *why,
		    size_t size)
{
	struct json_object *o = parse_text(text, len), *list, *v;
	struct estimate new = { 0 };
	struct control control;
	char doubts[256] = "";
	uint64_t version;
	int ret;

	*settings = NULL;
	if (!o)
		return fail(why, size, -EBADMSG, "it is not a state file, or a truncated one");
	/* of any version and boot, since each of its values is checked by itself */
	if (json_object_object_get_ex(o, "settings", &v))
		*settings = json_object_get(v);
	if (!json_get_whole(o, "version", INT_MAX, &version)) {
		ret = fail(why, size, -EBADMSG, "it has no version");
		goto out;
	}
	if (version != STATEFILE_VERSION) {
		ret = fail(why, size, -EPROTO, "it has version %llu, but this mgpud reads version %d",
			   (unsigned long long)version, STATEFILE_VERSION);
		goto out;
	}
	if (!json_object_object_get_ex(o, "boot_id", &v) ||
	    !json_object_is_type(v, json_type_string) || !*boot ||
	    strcmp(json_object_get_string(v), boot)) {
		parse_learned(o, learned, doubts, sizeof(doubts));
		parse_known(o, known, doubts, sizeof(doubts));
		ret = fail(why, size, -ESTALE, "it was written before the last boot%s%s",
			   doubts[0] ? "; " : "", doubts);
		goto out;
	}
	list = json_get_array(o, "vgpus", STATEFILE_VGPUS_MAX);
	if (!json_object_object_get_ex(o, "control", &v) ||
	    !json_object_is_type(v, json_type_object) || !parse_control(v, &control) ||
	    !json_get_number(o, "cpu_capacity", 0, CORES_MAX, &new.cpu_capacity_smooth) ||
	    !list) {
		ret = fail(why, size, -EBADMSG, "values are missing or out of range");
		goto out;
	}
	ret = parse_vgpus(list, &new);
	if (ret) {
		estimate_free(&new);
		fail(why, size, ret, ret == -ENOMEM ? "out of memory" :
		     "a vGPU's values are missing or out of range");
		goto out;
	}
	parse_learned(o, learned, doubts, sizeof(doubts));
	parse_known(o, known, doubts, sizeof(doubts));
	fail(why, size, 0, "%s", doubts);
	estimate_free(e);
	*e = new;
	*c = control;
out:
	json_object_put(o);
	return ret;
}

/* ---- files ---- */

void statefile_boot(char boot[64])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	boot[0] = '\0';
	if (!f)
		return;
	if (!fgets(boot, 64, f))
		boot[0] = '\0';
	fclose(f);
	boot[strcspn(boot, "\n")] = '\0';
}

int statefile_read(const char *path, const char *boot, struct estimate *e,
		   struct control *c, struct analyse *learned, struct learner *known,
		   struct json_object **settings, char *why, size_t size)
{
	size_t len = 0, room = STATEFILE_SIZE_MAX + 1;
	char *text = NULL;
	struct stat st;
	int fd, ret;

	*settings = NULL;
	/* do not block on a pipe without a writer */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return fail(why, size, -errno, "%s", strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		ret = fail(why, size, -EBADMSG, "it is not a regular file");
		goto out;
	}
	if (st.st_size > STATEFILE_SIZE_MAX) {
		ret = fail(why, size, -EBADMSG, "it is larger than %u bytes",
			   STATEFILE_SIZE_MAX);
		goto out;
	}
	text = malloc(room);
	if (!text) {
		ret = fail(why, size, -ENOMEM, "out of memory");
		goto out;
	}
	while (len < room) {
		ssize_t n = read(fd, text + len, room - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			ret = fail(why, size, -errno, "%s", strerror(errno));
			goto out;
		}
		if (!n)
			break;
		len += (size_t)n;
	}
	ret = statefile_parse(text, len, boot, e, c, learned, known, settings, why, size);
out:
	free(text);
	close(fd);
	return ret;
}

/* Open the folder of a file; returns a file descriptor or -errno. */
static int open_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder;
	int fd;

	folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) :
		strdup(".");
	if (!folder)
		return -ENOMEM;
	/* only the last folder of the path, as /var/lib/mgpu */
	if (mkdir(folder, 0755) && errno != EEXIST) {
		fd = -errno;
	} else {
		fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	free(folder);
	return fd;
}

static int write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		left -= (size_t)n;
	}
	return fsync(fd) ? -errno : 0;
}

int statefile_write(const char *path, const char *text)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char temporary[NAME_MAX + 1];
	int folder, fd, ret;

	if (snprintf(temporary, sizeof(temporary), "%s.new", name) >=
	    (int)sizeof(temporary))
		return -ENAMETOOLONG;
	folder = open_folder(path);
	if (folder < 0)
		return folder;
	unlinkat(folder, temporary, 0);	/* left by an mgpud that was killed */
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		ret = -errno;
		goto out;
	}
	ret = write_all(fd, text);
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret && renameat(folder, temporary, folder, name))
		ret = -errno;
	if (ret)
		unlinkat(folder, temporary, 0);
	else if (fsync(folder))
		ret = -errno;
out:
	close(folder);
	return ret;
}

/* ---- in the background ---- */

/**
 * struct statefile_writer - writes a file in a thread
 * @thread: the thread
 * @running: @thread must be joined
 * @ended: eventfd, readable when @thread has ended
 * @result: result of the write
 * @path: path of the file
 * @text: its text
 */
struct statefile_writer {
	pthread_t thread;
	bool running;
	int ended;
	int result;
	char *path;
	char *text;
};

struct statefile_writer *statefile_writer_new(void)
{
	struct statefile_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->ended >= 0)
		return w;
	free(w);
	return NULL;
}

static void *write_in_thread(void *arg)
{
	struct statefile_writer *w = arg;

	w->result = statefile_write(w->path, w->text);
	eventfd_write(w->ended, 1);
	return NULL;
}

static void join(struct statefile_writer *w)
{
	pthread_join(w->thread, NULL);
	free(w->path);
	free(w->text);
	w->running = false;
}

int statefile_writer_start(struct statefile_writer *w, const char *path, char *text)
{
	int ret;

	if (w->running) {
		free(text);
		return -EBUSY;
	}
	w->path = strdup(path);
	w->text = text;
	ret = w->path ? -pthread_create(&w->thread, NULL, write_in_thread, w) : -ENOMEM;
	if (ret) {
		free(w->path);
		free(text);
		return ret;
	}
	w->running = true;
	return 0;
}

int statefile_writer_fd(const struct statefile_writer *w)
{
	return w->ended;
}

bool statefile_writer_ended(struct statefile_writer *w, int *result)
{
	eventfd_t value;

	if (!w->running || eventfd_read(w->ended, &value))
		return false;
	join(w);
	*result = w->result;
	return true;
}

void statefile_writer_free(struct statefile_writer *w)
{
	if (!w)
		return;
	if (w->running)
		join(w);
	close(w->ended);
	free(w);
}
