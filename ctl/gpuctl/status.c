// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpuctl status: what works, in one line per part, and what to do about the rest.  gather()
 * reads, the check_ functions judge, print_text() and print_json() say it.
 */
#include <dirent.h>
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "gpuctl.h"
#include "mgpud_client.h"
#include "sysfs.h"

/* Modules: mgpu and those that use it. */
#define MODULES_MAX	8

/**
 * struct facts - what was read
 * @modules: names of mgpu and of the modules that use it, sorted; "mgpu" is the first
 * @nr_modules: number of modules, 0 if mgpu is not loaded
 * @version: the module's version, or its srcversion; "" if it tells neither
 * @devs: devices
 * @nr_devs: number of devices
 * @vgpus: vGPUs
 * @nr_vgpus: number of vGPUs
 * @control: mgpud
 */
struct facts {
	char modules[MODULES_MAX][MGPU_NAME_LEN];
	size_t nr_modules;
	char version[MGPU_NAME_LEN];
	struct mgpu_dev_info *devs;
	size_t nr_devs;
	struct mgpu_vgpu_info *vgpus;
	size_t nr_vgpus;
	struct control control;
};

/**
 * struct finding - a line of the result
 * @ok: nothing is to be done
 * @text: what is found and, unless @ok, what to do
 * @json: what is found, for JSON; has @ok and @text added when it is printed
 */
struct finding {
	bool ok;
	char text[1024];
	struct json_object *json;
};

/* ---- reading ---- */

static bool sys_path(char path[PATH_MAX], const char *fmt, const char *name)
{
	char tail[PATH_MAX];
	int n;

	snprintf(tail, sizeof(tail), fmt, name);
	n = snprintf(path, PATH_MAX, "%s%s", gpuctl_root, tail);
	return n > 0 && n < PATH_MAX;
}

static bool sys_exists(const char *fmt, const char *name)
{
	char path[PATH_MAX];

	return sys_path(path, fmt, name) && !access(path, F_OK);
}

static bool sys_line(char *line, size_t size, const char *fmt, const char *name)
{
	char path[PATH_MAX];

	return sys_path(path, fmt, name) && read_line(path, line, size) && *line;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void read_modules(struct facts *facts)
{
	char path[PATH_MAX], line[MGPU_NAME_LEN];
	const struct dirent *entry;
	DIR *dir;

	if (!sys_exists("/sys/module/%s", "mgpu"))
		return;
	strcpy(facts->modules[facts->nr_modules++], "mgpu");
	if (sys_line(line, sizeof(line), "/sys/module/%s/version", "mgpu"))
		snprintf(facts->version, sizeof(facts->version), "%s", line);
	else if (sys_line(line, sizeof(line), "/sys/module/%s/srcversion", "mgpu"))
		snprintf(facts->version, sizeof(facts->version), "%.60s", line);
	dir = sys_path(path, "/sys/module/%s/holders", "mgpu") ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir)) && facts->nr_modules < MODULES_MAX)
		if (*entry->d_name != '.')
			snprintf(facts->modules[facts->nr_modules++], MGPU_NAME_LEN, "%.63s",
				 entry->d_name);
	if (dir)
		closedir(dir);
	qsort(facts->modules + 1, facts->nr_modules - 1, MGPU_NAME_LEN, compare_names);
}

/* 0, also without a module; or why gpuctl cannot tell. */
static int gather(struct facts *facts, struct mgpu_error *err)
{
	struct mgpu *mgpu;
	int ret;

	memset(facts, 0, sizeof(*facts));
	read_modules(facts);
	ret = mgpu_open(&mgpu, err);
	if (!ret)
		ret = mgpu_dev_list(mgpu, &facts->devs, &facts->nr_devs, err);
	if (!ret)
		ret = mgpu_vgpu_list(mgpu, NULL, &facts->vgpus, &facts->nr_vgpus, err);
	mgpu_close(mgpu);
	if (ret == -ENOENT) {
		/* it is not loaded, or is being unloaded */
		facts->nr_modules = 0;
		ret = 0;
	} else if (!ret && !facts->nr_modules) {
		strcpy(facts->modules[facts->nr_modules++], "mgpu");
	}
	control_read(&facts->control);
	if (!ret && facts->control.why.code == -EACCES) {
		*err = facts->control.why;
		ret = err->code;
	}
	return ret;
}

static void facts_free(struct facts *facts)
{
	free(facts->devs);
	free(facts->vgpus);
	control_free(&facts->control);
}

/* ---- judging ---- */

__attribute__((format(printf, 2, 3)))
static void say(struct finding *f, const char *fmt, ...)
{
	size_t len = strlen(f->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->text + len, sizeof(f->text) - len, fmt, ap);
	va_end(ap);
}

static void add_text(struct finding *f, const char *key, const char *text)
{
	json_object_object_add(f->json, key, text && *text ? json_object_new_string(text) :
			       NULL);
}

static void add_bool(struct finding *f, const char *key, bool value)
{
	json_object_object_add(f->json, key, json_object_new_boolean(value));
}

static void add_count(struct finding *f, const char *key, uint64_t count)
{
	json_object_object_add(f->json, key, json_object_new_uint64(count));
}

static struct json_object *member(struct json_object *object, const char *key,
				  enum json_type type)
{
	struct json_object *value;

	if (!object || !json_object_object_get_ex(object, key, &value) ||
	    !json_object_is_type(value, type))
		return NULL;
	return value;
}

static const char *text_of(struct json_object *object, const char *key)
{
	return json_object_get_string(member(object, key, json_type_string));
}

static bool true_of(struct json_object *object, const char *key)
{
	return json_object_get_boolean(member(object, key, json_type_boolean));
}

static const char *plural(size_t nr)
{
	return nr == 1 ? "" : "s";
}

static void check_module(struct finding *f, const struct facts *facts)
{
	struct json_object *backs = json_object_new_array(), *devs = json_object_new_array();
	size_t i;

	for (i = 1; i < facts->nr_modules; i++)
		json_object_array_add(backs, json_object_new_string(facts->modules[i]));
	for (i = 0; i < facts->nr_devs; i++)
		json_object_array_add(devs, json_object_new_string(facts->devs[i].name));
	add_bool(f, "loaded", facts->nr_modules);
	add_text(f, "release", facts->version);
	json_object_object_add(f->json, "modules", backs);
	json_object_object_add(f->json, "devs", devs);

	if (!facts->nr_modules) {
		say(f, "mgpu is not loaded: run 'modprobe mgpu_soft', or load another back end's module");
		return;
	}
	if (!facts->nr_devs) {
		say(f, "mgpu is loaded and has no GPU: run 'modprobe mgpu_soft', or share a virtio-gpu with 'gpuctl dev bind ADDRESS'");
		return;
	}
	f->ok = true;
	say(f, "mgpu%s%s", *facts->version ? " " : "", facts->version);
	for (i = 1; i < facts->nr_modules; i++)
		say(f, "%s %s", i == 1 ? " with" : ",", facts->modules[i]);
	for (i = 0; i < facts->nr_devs; i++) {
		const struct mgpu_dev_info *dev = &facts->devs[i];

		say(f, "%s %s (%u engine%s, policy %s)", i ? "," : ";", dev->name, dev->engines,
		    plural(dev->engines), dev->policy);
	}
}

static void check_btf(struct finding *f, const struct facts *facts)
{
	struct json_object *without = json_object_new_array();
	bool vmlinux = sys_exists("/sys/kernel/btf/%s", "vmlinux");
	size_t nr = 0;
	size_t i;

	add_bool(f, "vmlinux", vmlinux);
	json_object_object_add(f->json, "without", without);
	if (!vmlinux)
		say(f, "the kernel has no BTF, which eBPF accounting needs: boot one with CONFIG_DEBUG_INFO_BTF");
	for (i = 0; i < facts->nr_modules; i++)
		if (!sys_exists("/sys/kernel/btf/%s", facts->modules[i]))
			json_object_array_add(without,
					      json_object_new_string(facts->modules[i]));
	nr = json_object_array_length(without);
	if (!vmlinux)
		return;
	for (i = 0; i < nr; i++)
		say(f, "%s%s", i ? ", " : "",
		    json_object_get_string(json_object_array_get_idx(without, i)));
	if (nr) {
		say(f, " ha%s no BTF, which eBPF accounting needs: build %s with pahole and the kernel's vmlinux at hand",
		    nr == 1 ? "s" : "ve", nr == 1 ? "it" : "them");
		return;
	}
	f->ok = true;
	say(f, "of the kernel");
	for (i = 0; i < facts->nr_modules; i++)
		say(f, "%s %s", i ? "," : ", and of", facts->modules[i]);
}

/* The first sentence of mgpud's troubles that is about eBPF; NULL: there is none. */
static const char *bpf_trouble(struct json_object *state)
{
	struct json_object *list = member(state, "trouble", json_type_array);
	size_t i;

	for (i = 0; list && i < json_object_array_length(list); i++) {
		const char *text = json_object_get_string(json_object_array_get_idx(list, i));

		if (text && (strstr(text, "BPF") || strstr(text, "BTF")))
			return text;
	}
	return NULL;
}

static void check_ebpf(struct finding *f, const struct facts *facts)
{
	struct json_object *state = facts->control.state;
	bool attached = true_of(state, "bpf");
	const char *why = bpf_trouble(state);

	add_bool(f, "attached", attached);
	add_text(f, "charge_source", text_of(state, "charge_source"));
	if (!state) {
		say(f, "no accounting programs are attached, and the module charges engine time itself: start mgpud, which attaches them");
	} else if (!attached) {
		say(f, "the accounting programs are not attached, and the module charges engine time itself: %s",
		    why ? why : "mgpud's log has the reason ('journalctl -u mgpud'); restart mgpud when it is gone");
	} else {
		f->ok = true;
		say(f, "the accounting programs are attached; engine time is charged by %s",
		    text_of(state, "charge_source") &&
		    !strcmp(text_of(state, "charge_source"), "bpf") ? "eBPF" : "the module");
	}
}

static void check_mgpud(struct finding *f, const struct facts *facts)
{
	struct json_object *state = facts->control.state;
	struct json_object *trouble = member(state, "trouble", json_type_array);
	const char *allocator = text_of(state, "allocator");
	double period = control_period(state);
	double pid = json_number(state, "pid");
	size_t nr = trouble ? json_object_array_length(trouble) : 0;
	size_t i;

	add_bool(f, "running", state);
	json_object_object_add(f->json, "pid", isfinite(pid) ?
			       json_object_new_int64((int64_t)pid) : NULL);
	add_text(f, "release", text_of(state, "release"));
	add_text(f, "allocator", allocator);
	json_object_object_add(f->json, "period_s", isfinite(period) ?
			       json_object_new_double(period) : NULL);
	add_bool(f, "dry_run", true_of(state, "dry_run"));
	json_object_object_add(f->json, "trouble", trouble ? json_object_get(trouble) :
			       json_object_new_array());
	if (!state) {
		say(f, "%s", facts->control.why.text);
		if (facts->control.why.code == -ETIMEDOUT)
			say(f, ": see its log, and restart it");
		return;
	}
	f->ok = !nr;
	say(f, "allocator %s, period %g s%s", allocator ? allocator : "unknown",
	    isfinite(period) ? period : 0, true_of(state, "dry_run") ?
	    ", dry run: it sets no targets" : "");
	for (i = 0; i < nr; i++)
		say(f, "; %s",
		    json_object_get_string(json_object_array_get_idx(trouble, i)));
}

static void check_sample(struct finding *f, const struct facts *facts)
{
	const struct control *control = &facts->control;
	size_t stale = 0;
	size_t i;

	for (i = 0; i < facts->nr_vgpus; i++)
		stale += control_is_stale(control, &facts->vgpus[i]);
	json_object_object_add(f->json, "sample_age_s", isfinite(control->age) ?
			       json_object_new_double(control->age) : NULL);
	add_count(f, "targets_stale", stale);
	f->ok = !control->late;
	if (!control->state)
		say(f, "none: start mgpud, which measures");
	else if (isnan(control->age))
		say(f, "%s", json_object_object_get_ex(control->state, "sample_age_s", NULL) ?
		    "mgpud has not measured yet" :
		    "mgpud does not tell its age, as it is older than this program");
	else
		say(f, "%.1f s old", control->age);
	if (control->state && control->late)
		say(f, ", more than %d periods: mgpud does not measure; see its log, and restart it",
		    CONTROL_PERIODS);
	if (stale)
		say(f, "; %zu vGPU%s keep%s a target that is not updated: start mgpud, or take it away with 'gpuctl vgpu set all target none'",
		    stale, plural(stale), stale == 1 ? "s" : "");
}

static void check_vgpus(struct finding *f, const struct facts *facts)
{
	const struct mgpu_vgpu_info *first = NULL;
	size_t open = 0, bad = 0;
	size_t i;

	for (i = 0; i < facts->nr_vgpus; i++) {
		open += facts->vgpus[i].open;
		if (!facts->vgpus[i].quarantine)
			continue;
		if (!bad++)
			first = &facts->vgpus[i];
	}
	add_count(f, "count", facts->nr_vgpus);
	add_count(f, "open", open);
	add_count(f, "quarantined", bad);
	f->ok = !bad;
	say(f, "%zu, of which %zu open", facts->nr_vgpus, open);
	if (bad)
		say(f, ", %zu in quarantine: find out why the guest of vGPU %u hangs the GPU, then run 'gpuctl vgpu set %u quarantine off'",
		    bad, first->id, first->id);
}

static void check_preemption(struct finding *f, const struct facts *facts)
{
	struct json_object *preempt = member(facts->control.state, "preempt",
					     json_type_object);
	const char *policy = text_of(preempt, "policy");
	bool watched = true_of(preempt, "watched");

	add_text(f, "policy", policy);
	add_bool(f, "watched", watched);
	if (!facts->control.state) {
		say(f, "contexts are preempted by hand only ('gpuctl ctx preempt'): start mgpud, which has a policy");
	} else if (!policy) {
		f->ok = true;
		say(f, "mgpud does not tell its policy, as it is older than this program");
	} else if (!strcmp(policy, "none")) {
		f->ok = true;
		say(f, "policy none: mgpud preempts no contexts");
	} else if (!watched) {
		say(f, "policy %s is not in force, since mgpud watches no contexts: its log has the reason; restart mgpud when it is gone",
		    policy);
	} else {
		f->ok = true;
		say(f, "policy %s: %.0f contexts, %.0f waiting%s", policy,
		    json_number(preempt, "contexts"), json_number(preempt, "waiting"),
		    true_of(preempt, "bpf") ? "" : "; their speed is not learned without eBPF");
	}
}

static const struct {
	const char *name;
	void (*check)(struct finding *f, const struct facts *facts);
} checks[] = {
	{ "module", check_module },
	{ "btf", check_btf },
	{ "ebpf", check_ebpf },
	{ "mgpud", check_mgpud },
	{ "sample", check_sample },
	{ "vgpus", check_vgpus },
	{ "preemption", check_preemption },
};

#define NR_CHECKS	(sizeof(checks) / sizeof(checks[0]))

/* ---- saying ---- */

static void print_text(const struct finding *findings)
{
	bool colours = out_colours();
	size_t i;

	for (i = 0; i < NR_CHECKS; i++)
		printf("%-12s%s%-8s%s%s\n", checks[i].name,
		       !colours ? "" : findings[i].ok ? "\033[32m" : "\033[31m",
		       findings[i].ok ? "ok" : "not ok", colours ? "\033[m" : "",
		       findings[i].text);
}

static void print_json(const struct gpuctl *ctl, struct finding *findings, bool ok)
{
	struct json_object *object = json_object_new_object();
	size_t i;

	json_object_object_add(object, "ok", json_object_new_boolean(ok));
	for (i = 0; i < NR_CHECKS; i++) {
		struct finding *f = &findings[i];

		add_bool(f, "ok", f->ok);
		add_text(f, "text", f->text);
		json_object_object_add(object, checks[i].name, json_object_get(f->json));
	}
	out_json(ctl, object);
}

int status(const struct gpuctl *ctl, int argc, char **argv)
{
	struct finding findings[NR_CHECKS] = { 0 };
	struct mgpu_error err;
	struct facts facts;
	bool ok = true;
	size_t i;
	int ret;

	if (argc)
		return usage_error("status takes no '%s'", argv[0]);
	ret = gather(&facts, &err);
	if (ret) {
		facts_free(&facts);
		return failed(&err);
	}
	for (i = 0; i < NR_CHECKS; i++) {
		findings[i].json = json_object_new_object();
		checks[i].check(&findings[i], &facts);
		ok &= findings[i].ok;
	}
	if (ctl->json)
		print_json(ctl, findings, ok);
	else
		print_text(findings);
	for (i = 0; i < NR_CHECKS; i++)
		json_object_put(findings[i].json);
	facts_free(&facts);
	return ok ? EXIT_OK : EXIT_NOT_OK;
}
