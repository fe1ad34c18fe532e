// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl vgpu */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "gpuctl.h"

const char *const vgpu_list_keys[] = { "dev", NULL };

#define SETTINGS_WORDS								\
	"weight", "fps", "target", "floor", "gpu-limit", "gpu-target", "period", "burst",	\
	"mode", "quarantine"

const char *const vgpu_set_keys[] = { SETTINGS_WORDS, NULL };
const char *const vgpu_create_keys[] = { "uuid", "name", SETTINGS_WORDS, NULL };

static const char *const columns[] = {
	">ID", "~UUID", "~VM", "-DEV", "-TYPE", "->PID", "->WEIGHT", ">FPS-LIMIT",
	">TARGET", ">GPU-LIMIT", "->MEM", "-SCREEN", "HANGS", NULL
};

/* @millihertz: 0 for none */
static void add_fps(struct table *table, uint32_t millihertz, const char *remark)
{
	char buf[OUT_CELL];

	table_cell(table, "%s%s", millihertz ?
		   out_fps(buf, sizeof(buf), millihertz) : "none", remark);
}

static void add_row(struct table *table, const void *info, const void *arg)
{
	const struct mgpu_vgpu_info *vgpu = info;
	bool stale = control_is_stale(arg, vgpu);
	char buf[OUT_CELL], name[VM_NAME_LEN];

	table_cell(table, "%u", vgpu->id);
	table_cell(table, "%s", vgpu->uuid);
	table_cell(table, "%s", vgpu_name(vgpu, name));
	table_cell(table, "%s", vgpu->dev_name);
	table_cell(table, "%s", vgpu->type);
	if (mgpu_has(vgpu, MGPU_A_VGPU_TGID))
		table_cell(table, "%u", vgpu->tgid);
	else
		table_cell(table, "-");
	table_cell(table, "%u", vgpu->weight);
	add_fps(table, vgpu->fps_limit, "");
	add_fps(table, vgpu->fps_target, stale ? " stale" : "");
	if (stale)
		table_colour(table, OUT_STALE);
	table_cell(table, "%s", vgpu->gpu_limit ?
		   out_share(buf, sizeof(buf), vgpu->gpu_limit) : "none");
	table_cell(table, "%s", out_bytes(buf, sizeof(buf), vgpu->mem_used));
	if (mgpu_has(vgpu, MGPU_A_VGPU_SCANOUT_WIDTH))
		table_cell(table, "%ux%u", vgpu->scanout_width,
			   vgpu->scanout_height);
	else
		table_cell(table, "-");
	table_cell(table, "%" PRIu64 "%s", vgpu->stats.hangs,
		   vgpu->quarantine ? ", quarantine" : "");
	if (vgpu->quarantine)
		table_colour(table, OUT_BAD);
}

static void add_json(struct json_object *object, const void *info, const void *arg)
{
	struct vgpu_names names;

	out_stale(object, control_is_stale(arg, info));
	names_read(&names, info);
	out_names(object, &names);
}

/* Only targets may be stale: mgpud is asked if there is one. */
static void control_for(struct control *control, const struct mgpu_vgpu_info *vgpus, size_t nr)
{
	size_t i;

	memset(control, 0, sizeof(*control));
	for (i = 0; i < nr; i++) {
		if (control_sets(&vgpus[i])) {
			control_read(control);
			return;
		}
	}
}

int vgpu_list(const struct gpuctl *ctl, int argc, char **argv)
{
	struct control control;
	const struct listing listing = {
		.columns = columns, .key = "vgpus", .fields = mgpu_vgpu_fields,
		.add_row = add_row, .add_json = add_json, .arg = &control,
		.size = sizeof(struct mgpu_vgpu_info),
	};
	struct mgpu_vgpu_info *vgpus;
	struct mgpu_dev_info dev;
	struct mgpu_error err;
	struct mgpu *mgpu;
	size_t nr;
	int ret = 0;

	if (argc && (argc != 2 || strcmp(argv[0], "dev"))) {
		const char *like = suggest(argv[0], vgpu_list_keys);

		return usage_error("vgpu list takes nothing or 'dev DEV', not '%s'%s%s%s",
				   argv[0], like ? "; did you mean '" : "",
				   like ? like : "", like ? " DEV'?" : "");
	}
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	if (argc)
		ret = mgpu_dev_find(mgpu, argv[1], &dev, &err);
	if (!ret)
		ret = mgpu_vgpu_list(mgpu, argc ? &dev.id : NULL, &vgpus, &nr,
				     &err);
	mgpu_close(mgpu);
	if (ret)
		return failed(&err);

	control_for(&control, vgpus, nr);
	out_list(ctl, &listing, vgpus, nr);
	control_free(&control);
	free(vgpus);
	return EXIT_OK;
}

int vgpu_show(const struct gpuctl *ctl, int argc, char **argv)
{
	struct json_object *object;
	struct mgpu_vgpu_info vgpu;
	struct vgpu_names names;
	struct control control;
	struct mgpu_error err;
	char why[OUT_CELL];
	struct mgpu *mgpu;
	bool stale;
	int ret;

	if (argc != 1)
		return usage_error("vgpu show takes one vGPU: its id, its UUID or the beginning of its UUID");
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	ret = mgpu_vgpu_find(mgpu, argv[0], &vgpu, &err);
	mgpu_close(mgpu);
	if (ret)
		return failed(&err);

	control_for(&control, &vgpu, 1);
	stale = control_is_stale(&control, &vgpu);
	names_read(&names, &vgpu);
	if (ctl->json) {
		object = out_object(mgpu_vgpu_fields, &vgpu);
		out_stale(object, stale);
		out_names(object, &names);
		out_json(ctl, object);
	} else {
		out_info(ctl, mgpu_vgpu_fields, &vgpu);
		printf("vm:                  %s\n", *names.vm ? names.vm : "-");
		printf("name:                %s\n", *names.given ? names.given : "-");
		if (stale)
			printf("target-stale:        yes: %s\n",
			       control_why(&control, why, sizeof(why)));
	}
	control_free(&control);
	return EXIT_OK;
}

/* ---- set ---- */

/* Target of settings for all vGPUs. */
#define ALL	"all"

/**
 * struct batch - settings of several vGPUs
 * @targets: words that name the vGPUs of each entry
 * @settings: settings of each entry; resolve() fills in the vGPUs
 * @nr: number of entries
 * @room: number of entries allocated
 */
struct batch {
	char **targets;
	struct mgpu_vgpu_setting *settings;
	size_t nr;
	size_t room;
};

static void batch_free(struct batch *batch)
{
	size_t i;

	for (i = 0; i < batch->nr; i++)
		free(batch->targets[i]);
	free(batch->targets);
	free(batch->settings);
}

static struct mgpu_vgpu_setting *batch_add(struct batch *batch,
					   const char *target)
{
	if (batch->nr == batch->room) {
		batch->room = batch->room ? batch->room * 2 : 16;
		batch->targets = reallocarray(batch->targets, batch->room,
					      sizeof(*batch->targets));
		batch->settings = reallocarray(batch->settings, batch->room,
					       sizeof(*batch->settings));
		if (!batch->targets || !batch->settings)
			goto fail;
	}
	batch->targets[batch->nr] = strdup(target);
	if (!batch->targets[batch->nr])
		goto fail;
	memset(&batch->settings[batch->nr], 0, sizeof(*batch->settings));
	return &batch->settings[batch->nr++];
fail:
	fputs("gpuctl: out of memory\n", stderr);
	exit(EXIT_FAILED);
}

static int parse_weight(const char *text, uint32_t *weight)
{
	return parse_u32(text, MGPU_WEIGHT_MIN, MGPU_WEIGHT_MAX, weight);
}

static int parse_period(const char *text, uint32_t *us)
{
	return parse_time(text, 1, MGPU_GPU_PERIOD_MIN, MGPU_GPU_PERIOD_MAX,
			  us);
}

static int parse_on_off(const char *text, uint32_t *on)
{
	*on = !strcmp(text, "on");
	return *on || !strcmp(text, "off") ? 0 : -EINVAL;
}

static int parse_burst(const char *text, uint32_t *us)
{
	return parse_time(text, 1, 0, MGPU_GPU_BURST_MAX, us);
}

#define SETTING(BIT, member, read, values)				\
	{								\
		.bit = MGPU_SETTING_##BIT,				\
		.offset = offsetof(struct mgpu_vgpu_setting, member),	\
		.parse = read,						\
		.give = values,						\
	}

/**
 * struct setting - setting of a word of vgpu_set_keys
 * @bit: MGPU_SETTING_*
 * @offset: offset of its value, or of the first of two
 * @parse: parse the value; returns 0 or -errno
 * @give: valid values, for error texts
 */
static const struct setting {
	uint32_t bit;
	size_t offset;
	int (*parse)(const char *text, uint32_t *value);
	const char *give;
} settings[] = {
	SETTING(WEIGHT, weight, parse_weight,
		"a whole number from 1 to 10000"),
	SETTING(FPS_LIMIT, fps_limit, parse_fps,
		"a number from 1 to 10000 with at most three decimals, or 'none'"),
	SETTING(FPS_TARGET, fps_target, parse_fps,
		"a number from 1 to 10000 with at most three decimals, or 'none'"),
	SETTING(FPS_FLOOR, fps_floor, parse_fps,
		"a number from 1 to 10000 with at most three decimals, or 'none'"),
	SETTING(GPU_LIMIT, gpu_limit, parse_share,
		"a part of the engine time from 0.1% to 100%, as in 30.5% or 305000ppm, or 'none'"),
	SETTING(GPU_TARGET, gpu_target, parse_share,
		"a part of the engine time from 0.1% to 100%, as in 30.5% or 305000ppm, or 'none'"),
	SETTING(GPU_PERIOD, gpu_period, parse_period,
		"a time from 1ms to 1s, in whole microseconds, with its unit, as in 10ms or 500us"),
	SETTING(GPU_BURST, gpu_burst, parse_burst,
		"a time from 0 to 1s, in whole microseconds, with its unit, as in 10ms or 500us"),
	SETTING(MODE, mode_width, parse_mode,
		"width and height, from 64x64 to its type's largest, as in 1280x720, or 'max'"),
	SETTING(QUARANTINE, quarantine, parse_on_off, "'on' or 'off'"),
};

_Static_assert(sizeof(vgpu_set_keys) / sizeof(vgpu_set_keys[0]) - 1 ==
	       sizeof(settings) / sizeof(settings[0]),
	       "in the order of the keys");
_Static_assert(MGPU_WEIGHT_MIN == 1 && MGPU_WEIGHT_MAX == 10000 &&
	       MGPU_FPS_LIMIT_MIN == 1000 && MGPU_FPS_LIMIT_MAX == 10000000 &&
	       MGPU_GPU_LIMIT_MIN == 1000 && MGPU_GPU_LIMIT_MAX == 1000000 &&
	       MGPU_GPU_PERIOD_MIN == 1000 && MGPU_GPU_PERIOD_MAX == 1000000 &&
	       MGPU_GPU_BURST_MAX == 1000000 && MGPU_MODE_MIN == 64,
	       "the limits said above");
_Static_assert(offsetof(struct mgpu_vgpu_setting, mode_height) ==
	       offsetof(struct mgpu_vgpu_setting, mode_width) +
	       sizeof(uint32_t), "as parse_mode() fills them");

/* @where: prefix of an error, "" or "FILE:LINE: " */
static int parse_setting(struct mgpu_vgpu_setting *set, const char *target, const char *key,
			 const char *value, const char *where, struct mgpu_error *err)
{
	const struct setting *setting = settings;
	size_t i;

	for (i = 0; strcmp(vgpu_set_keys[i], key); i++)
		setting++;
	if (!value)
		return mgpu_fail(err, -EINVAL, "%svGPU %s: %s wants a value: give %s",
				 where, target, key, setting->give);
	if (set->mask & setting->bit)
		return mgpu_fail(err, -EINVAL, "%svGPU %s: duplicate %s; give it once", where,
				 target, key);
	set->mask |= setting->bit;
	if (setting->parse(value, (uint32_t *)(void *)((char *)set + setting->offset)))
		return mgpu_fail(err, -EINVAL, "%svGPU %s: %s %s: give %s", where, target,
				 key, value, setting->give);
	return 0;
}

int vgpu_parse_settings(struct mgpu_vgpu_setting *set, const char *target, int argc,
			char *const *argv, const char *where, struct mgpu_error *err)
{
	int i, ret;

	for (i = 0; i < argc && is_word(argv[i], vgpu_set_keys); i += 2) {
		ret = parse_setting(set, target, argv[i], i + 1 < argc ? argv[i + 1] : NULL,
				    where, err);
		if (ret)
			return ret;
	}
	return i;
}

int vgpu_no_setting(const char *target, const char *word, const char *where,
		    struct mgpu_error *err)
{
	const char *like = word ? suggest(word, vgpu_set_keys) : NULL;

	if (like)
		return mgpu_fail(err, -EINVAL,
				 "%svGPU %s: unknown setting '%s'; did you mean '%s'?",
				 where, target, word, like);
	return mgpu_fail(err, -EINVAL,
			 "%svGPU %s: say what to set: weight N, fps F, target F, floor F, gpu-limit P%%, gpu-target P%%, period TIME, burst TIME, mode WxH or quarantine on|off",
			 where, target);
}

int vgpu_set_text(struct mgpu *mgpu, const char *uuid, const char *name, const char *text,
		  struct mgpu_error *err)
{
	struct mgpu_vgpu_setting set = { 0 };
	char *line = strdup(text), *words[64] = { NULL }, *word, *save;
	int nr = 0, used;

	if (!line)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	for (word = strtok_r(line, " \t", &save); word && nr < 64;
	     word = strtok_r(NULL, " \t", &save))
		words[nr++] = word;
	used = vgpu_parse_settings(&set, name, nr, words, "", err);
	if (used >= 0 && (used < nr || !nr))
		used = vgpu_no_setting(name, used < nr ? words[used] : NULL, "", err);
	free(line);
	if (used < 0)
		return used;
	strcpy(set.uuid, uuid);
	return mgpu_vgpu_set(mgpu, &set, 1, err);
}

static int parse_words(struct batch *batch, int argc, char **argv, const char *where)
{
	struct mgpu_error err;
	const char *target;
	const char *like;
	int i = 0;
	int used;

	while (i < argc) {
		target = argv[i++];
		if (is_word(target, vgpu_set_keys))
			return usage_error("%s%s needs a vGPU: name it first",
					   where, target);
		if (i == argc || !is_word(argv[i], vgpu_set_keys)) {
			/* The mistyped word may be either. */
			like = suggest(target, vgpu_set_keys);
			if (i > 1 && like)
				return usage_error("%s'%s' is neither a setting nor a vGPU with settings; did you mean '%s'?",
						   where, target, like);
			vgpu_no_setting(target, i < argc ? argv[i] : NULL, where, &err);
			return usage_error("%s", err.text);
		}
		used = vgpu_parse_settings(batch_add(batch, target), target, argc - i, argv + i,
					   where, &err);
		if (used < 0)
			return usage_error("%s", err.text);
		i += used;
	}
	return 0;
}

/* A line has the words of "vgpu set"; '#' begins a comment. */
static int parse_line(struct batch *batch, char *line, const char *where)
{
	char *words[64];
	char *save;
	char *word;
	int nr = 0;

	line[strcspn(line, "#\n")] = '\0';
	for (word = strtok_r(line, " \t\r", &save); word;
	     word = strtok_r(NULL, " \t\r", &save)) {
		if (nr == sizeof(words) / sizeof(words[0]))
			return usage_error("%sthe line is too long: write one vGPU per line",
					   where);
		words[nr++] = word;
	}
	return parse_words(batch, nr, words, where);
}

static int parse_file(struct batch *batch, const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *file = is_stdin ? stdin : fopen(path, "re");
	unsigned int number = 0;
	char *line = NULL;
	size_t room = 0;
	char where[256];
	int ret = 0;

	if (!file) {
		fprintf(stderr, "gpuctl: %s: %s\n", path, strerror(errno));
		return EXIT_FAILED;
	}
	errno = 0;
	while (!ret && getline(&line, &room, file) >= 0) {
		snprintf(where, sizeof(where), "%s:%u: ",
			 is_stdin ? "stdin" : path, ++number);
		ret = parse_line(batch, line, where);
	}
	if (ferror(file)) {
		fprintf(stderr, "gpuctl: %s: %s\n", path, strerror(errno));
		ret = EXIT_FAILED;
	}
	free(line);
	if (!is_stdin)
		fclose(file);
	return ret;
}

/**
 * struct resolved - settings of vGPUs, for one request
 * @sets: settings of each
 * @nr: number of entries
 * @room: number of entries allocated
 * @vgpus: all vGPUs, once they were needed
 * @nr_vgpus: number of vGPUs
 * @listed: @vgpus is valid
 * @all: a target is all
 */
struct resolved {
	struct mgpu_vgpu_setting *sets;
	size_t nr;
	size_t room;
	struct mgpu_vgpu_info *vgpus;
	size_t nr_vgpus;
	bool listed;
	bool all;
};

static void resolved_free(struct resolved *r)
{
	free(r->sets);
	free(r->vgpus);
	memset(r, 0, sizeof(*r));
}

static int list_vgpus(struct mgpu *mgpu, struct resolved *r, struct mgpu_error *err)
{
	int ret;

	if (r->listed)
		return 0;
	ret = mgpu_vgpu_list(mgpu, NULL, &r->vgpus, &r->nr_vgpus, err);
	r->listed = !ret;
	return ret;
}

/* Add @set for the vGPU with this UUID; NULL: with its ID. */
static int add_set(struct resolved *r, const struct mgpu_vgpu_setting *set, const char *uuid,
		   struct mgpu_error *err)
{
	struct mgpu_vgpu_setting *more;

	if (r->nr == r->room) {
		r->room = r->room ? r->room * 2 : 16;
		more = reallocarray(r->sets, r->room, sizeof(*more));
		if (!more)
			return mgpu_fail(err, -ENOMEM, "out of memory");
		r->sets = more;
	}
	r->sets[r->nr] = *set;
	if (uuid)
		strcpy(r->sets[r->nr].uuid, uuid);
	r->nr++;
	return 0;
}

static int add_all(struct mgpu *mgpu, struct resolved *r, const struct mgpu_vgpu_setting *set,
		   struct mgpu_error *err)
{
	int ret = list_vgpus(mgpu, r, err);
	size_t i;

	r->all = true;
	if (!ret && !r->nr_vgpus)
		return mgpu_fail(err, -ENODEV, "there are no vGPUs to set");
	for (i = 0; i < r->nr_vgpus && !ret; i++)
		ret = add_set(r, set, r->vgpus[i].uuid, err);
	return ret;
}

/* The kernel resolves IDs and whole UUIDs; beginnings of UUIDs are resolved here. */
static int add_one(struct mgpu *mgpu, struct resolved *r, const struct mgpu_vgpu_setting *set,
		   const char *word, struct mgpu_error *err)
{
	struct mgpu_vgpu_setting one = *set;
	const struct mgpu_vgpu_info *found;
	int ret;

	if (!parse_u32(word, 0, UINT32_MAX, &one.id))
		return add_set(r, &one, NULL, err);
	if (strlen(word) == MGPU_UUID_STRLEN)
		return add_set(r, &one, word, err);
	ret = list_vgpus(mgpu, r, err);
	if (!ret)
		ret = mgpu_vgpu_match(r->vgpus, r->nr_vgpus, word, &found, err);
	return ret ? ret : add_set(r, &one, found->uuid, err);
}

/* A target is all, or vGPUs with a comma between two. */
static int resolve(struct mgpu *mgpu, const struct batch *batch, struct resolved *r,
		   struct mgpu_error *err)
{
	char *words, *word, *rest;
	size_t i;
	int ret = 0;

	for (i = 0; i < batch->nr && !ret; i++) {
		const struct mgpu_vgpu_setting *set = &batch->settings[i];

		if (!strcmp(batch->targets[i], ALL)) {
			ret = add_all(mgpu, r, set, err);
			continue;
		}
		words = strdup(batch->targets[i]);
		if (!words)
			return mgpu_fail(err, -ENOMEM, "out of memory");
		rest = words;
		while (!ret && (word = strsep(&rest, ",")))
			ret = add_one(mgpu, r, set, word, err);
		free(words);
	}
	return ret;
}

/* Tries for all vGPUs, some of which may be removed between the list and the request. */
#define SET_TRIES	4

/* A single request for all vGPUs, which the kernel carries out as a whole or not at all. */
static int set_batch(struct mgpu *mgpu, const struct batch *batch, struct mgpu_error *err)
{
	struct resolved r = { 0 };
	int try, ret;
	bool again;

	for (try = 1; try <= SET_TRIES; try++) {
		ret = resolve(mgpu, batch, &r, err);
		again = !ret;
		if (!ret)
			ret = mgpu_vgpu_set(mgpu, r.sets, r.nr, err);
		again &= ret == -ENODEV && r.all;
		resolved_free(&r);
		if (!again)
			break;
	}
	return ret;
}

int vgpu_set(const struct gpuctl *ctl, int argc, char **argv)
{
	struct batch batch = { 0 };
	struct mgpu_error err;
	struct mgpu *mgpu;
	int ret;

	if (ctl->batch && argc) {
		ret = usage_error("vgpu set takes either words or a file, not both: put '%s' and so on into %s",
				  argv[0], ctl->batch);
		goto out;
	}
	if (ctl->batch)
		ret = parse_file(&batch, ctl->batch);
	else
		ret = parse_words(&batch, argc, argv, "");
	if (ret)
		goto out;
	if (!batch.nr) {
		ret = usage_error("vgpu set: name a vGPU and what to set, as in 'gpuctl vgpu set 1 fps 30'");
		goto out;
	}

	if (mgpu_open(&mgpu, &err)) {
		ret = failed(&err);
		goto out;
	}
	ret = set_batch(mgpu, &batch, &err);
	if (ret)
		ret = failed(&err);
	mgpu_close(mgpu);
out:
	batch_free(&batch);
	return ret;
}
