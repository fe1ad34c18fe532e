// SPDX-License-Identifier: GPL-2.0-only
/* mgpud's configuration file, and where its log lines go. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>

#include "config/config.h"
#include "config/table.h"
#include "tap.h"

#define NR(a)	(sizeof(a) / sizeof((a)[0]))
#define A	"01234567-89ab-cdef-0123-456789abcdef"
#define B	"89abcdef-0123-4567-89ab-cdef01234567"

static char folder[64], path[96], why[512];

static void put(const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	if (!f || fwrite(text, 1, len, f) != len || fclose(f))
		abort();
}

static int load(struct config *c, const char *text)
{
	struct config_source source = { .path = path, .must = true };

	put(text, strlen(text));
	why[0] = '\0';
	return config_load(c, &source, why, sizeof(why));
}

static void everything(void)
{
	static const char text[] =
		"# a comment\r\n"
		"[sla]\r\n"
		"ceiling = 90\n"
		"\n"
		"[vgpu " A "]\n"
		"floor = 30\n"
		"; another comment\n"
		"[mgpud]\n"
		"allocator=drf\n"
		"period_ms : 500\n"
		"\titerations = 20\n"
		"headroom = 1.5 ; behind a key\n"
		"beta = 3\nlambda = -1\n"
		"socket = /run/x/y.sock\n"
		"log = quiet\n"
		"json_log = /var/log/mgpud.json\n"
		"state_file = none\n"
		"state_period_s = 10\n"
		"[preemption]\n"
		"policy = flush\n"
		"cost = 0.125,2\n"
		"decay_compute = 0.875\n"
		"decay_memory = 0.625\r\n"
		"class_threshold = 0.75\n"
		"starve_ms = 1.5\n"
		"min_gain = 0.5\n"
		"[model]\n"
		"use = /var/lib/mgpu/network.weights\n"
		"mode = act\n"
		"max_age_days = 30\n"
		"[vgpu 89ABCDEF-0123-4567-89ab-CDEF01234567]\n"
		"ceiling = none\n"
		"[vgpu ffffffff-0123-4567-89ab-cdef01234567]\n"
		"description = game at 1920x1080 ; a comment\n"
		"[vgpu " A "]\n"
		"ceiling = 60";
	struct config c = { 0 };
	struct sla sla;

	if (!TAP_EQ(load(&c, text), 0))
		tap_diag("%s", why);
	TAP_STR(c.set.allocator->name, "drf");
	TAP_EQ(c.set.period_ms, 500);
	TAP_EQ(c.set.iterations, 20);
	TAP_NEAR(c.set.headroom, 1.5, 0);
	TAP_NEAR(c.set.param.beta, 3, 0);
	TAP_NEAR(c.set.param.lambda, -1, 0);
	TAP_STR(c.socket, "/run/x/y.sock");
	TAP_STR(c.json_log, "/var/log/mgpud.json");
	TAP_STR(c.state_file, "");
	TAP_EQ(c.state_period_s, 10);
	TAP_EQ(c.log, LOG_QUIET);
	TAP_CHECK(c.found);
	TAP_STR(c.preempt.ops->name, "flush");
	TAP_CHECK(!c.preempt.fit);
	TAP_NEAR(c.preempt.param.cost.a, 0.125, 0);
	TAP_NEAR(c.preempt.param.cost.b, 2, 0);
	TAP_NEAR(c.preempt.param.decay_compute, 0.875, 0);
	TAP_NEAR(c.preempt.param.decay_memory, 0.625, 0);
	TAP_NEAR(c.preempt.param.class_threshold, 0.75, 0);
	TAP_EQ(c.preempt.param.starve_ns, 1500000);
	TAP_NEAR(c.preempt.param.min_gain, 0.5, 0);
	TAP_STR(c.model.use, "/var/lib/mgpu/network.weights");
	TAP_EQ(c.model.mode, CONFIG_MODEL_ACT);
	TAP_EQ(c.model.max_age_days, 30);
	/* a description is no agreement */
	TAP_EQ(c.set.nr_vgpus, 2);
	TAP_EQ(c.set.nr_descriptions, 1);
	TAP_STR(settings_description(&c.set, "ffffffff-0123-4567-89ab-cdef01234567"),
		"game at 1920x1080");
	TAP_CHECK(!settings_description(&c.set, A));
	sla = *settings_sla(&c.set, A);
	TAP_NEAR(sla.floor, 30, 0);
	TAP_NEAR(sla.ceiling, 60, 0);
	sla = *settings_sla(&c.set, B);
	TAP_NEAR(sla.floor, 0, 0);
	TAP_CHECK(isinf(sla.ceiling));
	sla = *settings_sla(&c.set, "ffffffff-ffff-ffff-ffff-ffffffffffff");
	TAP_NEAR(sla.ceiling, 90, 0);
	config_free(&c);
}

static void wrong(void)
{
	static const struct {
		const char *text;
		unsigned int line;
		const char *says;
	} bad[] = {
		{ "[mgpud]\nallocator = drv\n", 2,
		  "exact, fea, drf, maxmin, static, vgasa or none" },
		{ "[mgpud]\n\nperiod_ms = 99\n", 3, "100 to 60000" },
		{ "[mgpud]\nperiod_ms = 1s\n", 2, "number" },
		{ "[mgpud]\nperiod_ms =\n", 2, "number" },
		{ "[mgpud]\nperiod_ms = 500# half\n", 2, "number" },
		{ "[mgpud]\nperiod_ms = 500; half\n", 2, "number" },
		{ "[mgpud]\nperiod_ms = # 500\n", 2, "number" },
		{ "[mgpud]\nperiod_ms = ; 500\n", 2, "number" },
		{ "[mgpud]\niterations = 0\n", 2, "1 to 10000" },
		{ "[mgpud]\nheadroom = 1\n", 2, "1.05 to 4" },
		{ "[mgpud]\nheadroom = 4.1\n", 2, "1.05 to 4" },
		{ "[mgpud]\nheadroom = nan\n", 2, "headroom" },
		{ "[mgpud]\nbeta = 1\n", 2, "beta" },
		{ "[mgpud]\n# x\nbeta = 0.5\nallocator = fea\n", 3, "lambda" },
		{ "[mgpud]\nlambda = 0\n", 2, "lambda" },
		{ "[mgpud]\nlog = verbose\n", 2, "auto, periods, changes or quiet" },
		{ "[mgpud]\nsocket =\n", 2, "path" },
		{ "[mgpud]\nsocket = /12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890\n",
		  2, "at most 107 bytes" },
		{ "[mgpud]\nstate_period_s = 0\n", 2, "1 to 3600" },
		{ "[mgpud]\nstate_period_s = 1.5\n", 2, "whole number" },
		{ "[mgpud]\nspeed = 3\n", 2, "period_ms" },
		{ "[mgpud]\nallocator = fea\nallocator = drf\n", 3, "line 2" },
		{ "[mgpud]\nallocator\n", 2, "key = value" },
		{ "[mgpud]\npolicy = fea\n", 2,
		  ": policy is called allocator now: use allocator = fea" },
		{ "[mgpud\nallocator = fea\n", 1, "]" },
		{ "allocator = fea\n", 1, "[mgpud]" },
		{ "[mgpud]\n[mpgud]\n", 2, "[sla]" },
		{ "[preempt]\n", 1, "[preemption]" },
		{ "[preemption]\npolicy = exact\n", 2, "policy must be " },
		{ "[preemption]\npolicy = exact\n", 2, "none, always, drain, flush or mgpu" },
		{ "[preemption]\npolicy =\n", 2, "none, always, drain, flush or mgpu" },
		{ "[preemption]\npreempt = mgpu\n", 2, "the keys are policy, cost, decay_compute" },
		{ "[mgpud]\npreempt = mgpu\n", 2, "unknown key \"preempt\"" },
		{ "[preemption]\n# x\ncost = 0.1\n", 3, "fit, or two coefficients" },
		{ "[preemption]\ncost = 0.1, 0.2 each\n", 2, "fit, or two coefficients" },
		{ "[preemption]\ncost = -0.1,0.2\n", 2, "0 to 1000 cycles per byte" },
		{ "[preemption]\ncost = 0,0\n", 2, "above 0" },
		{ "[preemption]\ncost = inf,0\n", 2, "0 to 1000" },
		{ "[preemption]\ndecay_compute = 0.4\n", 2,
		  "decay_compute must be a number from 0.5 to 1" },
		{ "[preemption]\ndecay_memory = 1.1\n", 2,
		  "decay_memory must be a number from 0.5 to 1" },
		{ "[preemption]\ndecay_memory = some\n", 2, "number" },
		{ "[preemption]\nclass_threshold = 1\n", 2, "0.05 to 0.95" },
		{ "[preemption]\nclass_threshold = nan\n", 2, "0.05 to 0.95" },
		{ "[preemption]\nstarve_ms = 0\n", 2, "1 to 3600000 milliseconds" },
		{ "[preemption]\nstarve_ms = 1e30\n", 2, "1 to 3600000 milliseconds" },
		{ "[preemption]\nstarve_ms = nan\n", 2, "1 to 3600000 milliseconds" },
		{ "[preemption]\nstarve_ms = 1s\n", 2, "number" },
		{ "[preemption]\nmin_gain = 1.5\n", 2, "0 to 1" },
		{ "[preemption]\nmin_gain =\n", 2, "number" },
		{ "[preemption]\ncost = fit\n[mgpud]\n[preemption]\ncost = 1,1\n", 5, "line 2" },
		{ "[vgpu]\nfloor = 3\n", 1, "[vgpu 0" },
		{ "[vgpu 3]\nfloor = 3\n", 1, "UUID" },
		{ "[vgpu " A "0]\nfloor = 3\n", 1, "UUID" },
		{ "[vgpux " A "]\nfloor = 3\n", 1, "UUID" },
		{ "[sla]\nfloor = 0\n", 2, "1 to 10000" },
		{ "[sla]\nfloor = 10001\n", 2, "1 to 10000" },
		{ "[sla]\nceiling = 0.5\n", 2, "1 to 10000" },
		{ "[sla]\nceiling = inf\n", 2, "1 to 10000" },
		{ "[sla]\nfloor = many\n", 2, "none" },
		{ "[sla]\nfloor = nan\n", 2, "none" },
		{ "[sla]\nfloor = 31\nceiling = 30\n", 3, "above ceiling" },
		{ "[vgpu " A "]\nfloor = 31\n[sla]\nceiling = 30\n", 2, A },
		{ "[vgpu " A "]\nfloor = 31\n[vgpu " A "]\nfloor = 30\n", 4, "line 2" },
		{ "[vgpu " A "]\nweight = 3\n", 2, "floor and ceiling" },
		{ "[sla]\npolicy = fea\n", 2, "floor and ceiling" },
		{ "[sla]\ndescription = game\n", 2, "floor and ceiling" },
		{ "[vgpu " A "]\ndescription = a\tb\n", 2, "control characters" },
		{ "[vgpu " A "]\ndescription = a\n[vgpu " A "]\ndescription = b\n", 4, "line 2" },
		{ "[model]\nuse = network\n", 2, "a path that begins with /" },
		{ "[model]\nuse = ./network\n", 2, "a path that begins with /" },
		{ "[model]\nuse = /a\x7f\n", 2, "control characters" },
		{ "[model]\nmode = on\n", 2, "auto, shadow or act" },
		{ "[model]\nmax_age_days = -1\n", 2, "0 to 36500" },
		{ "[models]\n", 1, "[model]" },
		/* the first mistake counts, whichever parser finds it */
		{ "[mgpud]\nnonsense\nlog = x\n", 2, "key = value" },
		{ "[mgpud]\nlog = x\nnonsense\n", 2, "log" },
	};
	struct config c = { 0 };
	char place[128];

	TAP_EQ(load(&c, "[mgpud]\nallocator = maxmin\n[vgpu " A "]\nfloor = 7\n"
		    "[preemption]\npolicy = drain\nmin_gain = 0.25\n"), 0);
	for (size_t k = 0; k < NR(bad); k++) {
		TAP_CHECK(load(&c, bad[k].text) < 0);
		snprintf(place, sizeof(place), "%s:%u: ", path, bad[k].line);
		if (!TAP_CHECK(!strncmp(why, place, strlen(place))) ||
		    !TAP_CHECK(strstr(why, bad[k].says)))
			tap_diag("to \"%s\": \"%s\"", bad[k].text, why);
		/* all or nothing */
		TAP_STR(c.set.allocator->name, "maxmin");
		TAP_EQ(c.set.nr_vgpus, 1);
		TAP_STR(c.preempt.ops->name, "drain");
		TAP_NEAR(c.preempt.param.min_gain, 0.25, 0);
	}
	config_free(&c);
}

/* Both forms of a comment work in the same places. */
static void comments(void)
{
	static const char *const forms[] = { "#", ";" };
	struct config c = { 0 };
	char text[512], line[400];

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	for (size_t k = 0; k < NR(forms); k++) {
		const char *f = forms[k];

		snprintf(text, sizeof(text),
			 "%s whole line\n [preemption] %s x\npolicy = drain %s drain, not flush\n"
			 "starve_ms = 20\t%s\n%s policy = flush\n", f, f, f, f, f);
		if (!TAP_EQ(load(&c, text), 0))
			tap_diag("%s", why);
		TAP_STR(c.preempt.ops->name, "drain");
		TAP_EQ(c.preempt.param.starve_ns, 20000000);
		/* without a space before it, it is part of the value */
		snprintf(text, sizeof(text), "[mgpud]\nsocket = /a%sb\n", f);
		TAP_EQ(load(&c, text), 0);
		TAP_CHECK(!strncmp(c.socket, "/a", 2) && c.socket[2] == *f);
	}
	for (size_t k = 0; k < NR(forms); k++) {
		/* however long it is */
		snprintf(text, sizeof(text), "[preemption]\npolicy = flush %s %s\n", forms[k],
			 line);
		if (!TAP_EQ(load(&c, text), 0))
			tap_diag("%s", why);
		TAP_STR(c.preempt.ops->name, "flush");
	}
	config_free(&c);
}

static void no_text(void)
{
	struct config_source source = { .path = path, .must = true };
	char zeros[] = "[mgpud]\nallocator = fea\0x\n", *large;
	char line[400] = "[mgpud]\nsocket = /";
	struct config c = { 0 };

	put(zeros, sizeof(zeros) - 1);
	TAP_EQ(config_load(&c, &source, why, sizeof(why)), -EINVAL);
	TAP_CHECK(strstr(why, path) && strstr(why, "0"));
	memset(line + strlen(line), 'x', 300);
	line[399] = '\0';
	TAP_EQ(load(&c, line), -EINVAL);
	if (!TAP_CHECK(strstr(why, ":2: ") && strstr(why, "longer")))
		tap_diag("%s", why);
	/* a comment may be as long as it likes */
	line[8] = '#';
	if (!TAP_EQ(load(&c, line), 0))
		tap_diag("%s", why);
	config_free(&c);
	large = calloc(1, CONFIG_SIZE_MAX + 2);
	memset(large, '\n', CONFIG_SIZE_MAX + 1);
	put(large, CONFIG_SIZE_MAX + 1);
	TAP_EQ(config_load(&c, &source, why, sizeof(why)), -EFBIG);
	free(large);
	source.path = folder;
	TAP_CHECK(config_load(&c, &source, why, sizeof(why)) < 0);
	TAP_CHECK(strstr(why, folder) && strstr(why, "--config"));
	source.path = "/dev/zero";
	TAP_CHECK(config_load(&c, &source, why, sizeof(why)) < 0);
}

static void missing(void)
{
	struct config_source source = { .path = "/nonexistent/mgpud.conf" };
	struct config c = { 0 };

	TAP_EQ(config_load(&c, &source, why, sizeof(why)), 0);
	TAP_CHECK(!c.found);
	TAP_STR(c.set.allocator->name, "exact");
	config_free(&c);
	source.must = true;
	TAP_EQ(config_load(&c, &source, why, sizeof(why)), -ENOENT);
	TAP_CHECK(strstr(why, source.path) && strstr(why, "--config"));
}

static void overrides(void)
{
	static const char text[] = "[mgpud]\nallocator = fea\nperiod_ms = 500\nbeta = 0.5\n"
		"[preemption]\npolicy = drain\nstarve_ms = 20\n";
	struct config_source source = { .path = path, .must = true };
	struct config c = { 0 };

	put(text, strlen(text));
	source.override[0].setting = table_name("allocator");
	source.override[0].value = "none";
	source.override[1].setting = table_name("lambda");
	source.override[1].value = "1";
	source.override[2].setting = table_name("preempt");
	source.override[2].value = "always";
	source.nr = 3;
	if (!TAP_EQ(config_load(&c, &source, why, sizeof(why)), 0))
		tap_diag("%s", why);
	TAP_STR(c.set.allocator->name, "none");
	TAP_EQ(c.set.period_ms, 500);
	TAP_NEAR(c.set.param.lambda, 1, 0);
	TAP_STR(c.preempt.ops->name, "always");
	TAP_EQ(c.preempt.param.starve_ns, 20000000);
	source.override[2].value = "exact";
	TAP_EQ(config_load(&c, &source, why, sizeof(why)), -EINVAL);
	/* by the option's name */
	TAP_STR(why, "preempt must be none, always, drain, flush or mgpu, not \"exact\"");
	TAP_STR(c.preempt.ops->name, "always");
	config_free(&c);
}

/* Values that the example comments out are the defaults. */
static void example(void)
{
	struct config c = { 0 }, defaults;
	char text[16384], line[256];
	size_t len = 0, keys = 0, nr = 0;
	FILE *f = fopen(EXAMPLE, "r");

	TAP_NEED(f);
	while (fgets(line, sizeof(line), f)) {
		char *from = line;

		if (*from == '#' && from[1] >= 'a' && from[1] <= 'z') {
			from++;
			keys++;
			/* where it stands, its value is said */
			TAP_CHECK(strstr(from, " = "));
		}
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", from);
	}
	fclose(f);
	if (!TAP_EQ(load(&c, text), 0))
		tap_diag("%s", why);
	config_default(&defaults);
	TAP_STR(c.set.allocator->name, defaults.set.allocator->name);
	TAP_EQ(c.set.period_ms, defaults.set.period_ms);
	TAP_EQ(c.set.iterations, defaults.set.iterations);
	TAP_NEAR(c.set.headroom, defaults.set.headroom, 0);
	TAP_NEAR(c.set.param.beta, defaults.set.param.beta, 0);
	TAP_NEAR(c.set.param.lambda, defaults.set.param.lambda, 0);
	TAP_STR(c.socket, defaults.socket);
	TAP_STR(c.json_log, defaults.json_log);
	TAP_STR(c.state_file, defaults.state_file);
	TAP_EQ(c.state_period_s, defaults.state_period_s);
	TAP_EQ(c.log, defaults.log);
	TAP_STR(c.preempt.ops->name, defaults.preempt.ops->name);
	TAP_EQ(c.preempt.fit, defaults.preempt.fit);
	TAP_MEM(&c.preempt.param, &defaults.preempt.param, sizeof(defaults.preempt.param));
	TAP_NEAR(c.set.sla.floor, 0, 0);
	TAP_CHECK(isinf(c.set.sla.ceiling));
	TAP_EQ(c.set.nr_vgpus, 0);
	/* and no key is left out */
	for (const struct mgpud_setting *t = mgpud_settings; t->key; t++) {
		nr++;
		snprintf(line, sizeof(line), "\n%s = %s\n", t->key, t->initial);
		if (!TAP_CHECK(strstr(text, line)))
			tap_diag("no %s", t->key);
		if (!mgpud_setting_is_number(t))
			continue;
		snprintf(line, sizeof(line), "%.10g to %.10g", t->min, t->max);
		if (!TAP_CHECK(strstr(text, line)))
			tap_diag("%s: no %s", t->key, line);
	}
	TAP_EQ(keys, nr + 2);	/* floor and ceiling of [sla] */
	config_free(&c);
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);
	const char *at = words;

	while ((at = strstr(at, word))) {
		if ((at == words || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
		at += len;
	}
	return false;
}

/* Names to choose from are all that there are, in their order. */
static void names(void)
{
	static const struct learn_model_ops *const controls[] = {
		&learn_static, &learn_proportional, &learn_persistence, &learn_smoothing,
	};
	const struct mgpud_setting *s;
	char list[MGPUD_RANGE] = "";

	for (const struct alloc_ops *const *p = alloc_all; *p; p++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			 *list ? " " : "", (*p)->name);
	s = table_member(offsetof(struct config, set.allocator));
	TAP_STR(s->values, list);
	list[0] = '\0';
	for (const struct preempt_ops *const *p = preempt_all; *p; p++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			 *list ? " " : "", (*p)->name);
	s = table_member(offsetof(struct config, preempt.ops));
	TAP_STR(s->values, list);
	/* of the models, those that need no file */
	strcpy(list, "none");
	for (size_t k = 0; k < sizeof(controls) / sizeof(controls[0]); k++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), " %s",
			 controls[k]->name);
	s = table_member(offsetof(struct config, model.use));
	TAP_STR(s->values, list);
	s = table_member(offsetof(struct config, log));
	for (int mode = LOG_AUTO; mode <= LOG_QUIET; mode++)
		TAP_CHECK(has_word(s->values, log_mode_name((enum log_mode)mode)));
}

/* Defaults, lowest and highest values are taken, and are what is told afterwards. */
static void table(void)
{
	const struct preempter_config preempt = PREEMPTER_CONFIG_DEFAULT;
	struct config c, defaults;
	struct settings_error err;
	char text[TABLE_TEXT], want[TABLE_TEXT];

	config_default(&defaults);
	TAP_EQ(settings_check(&defaults.set, &err), 0);
	TAP_NEAR(defaults.set.headroom, ESTIMATE_HEADROOM, 0);
	TAP_NEAR(defaults.set.param.beta, FDS_BETA_DEFAULT, 0);
	TAP_NEAR(defaults.set.param.lambda, FDS_LAMBDA_DEFAULT, 0);
	TAP_MEM(&defaults.preempt.param, &preempt.param, sizeof(preempt.param));
	TAP_CHECK(defaults.preempt.fit && defaults.preempt.ops == preempt.ops);
	c = defaults;
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++) {
		double of[] = { s->min, s->max };

		TAP_CHECK(s->help && s->arg && s->initial);
		TAP_CHECK(table_key(s->section, s->key) == s);
		TAP_CHECK(!s->name || table_name(s->name) == s);
		TAP_EQ(table_parse(&c, s, s->key, s->initial, &err), 0);
		table_text(&c, s, text);
		TAP_STR(text, s->initial);
		for (size_t k = 0; mgpud_setting_is_number(s) && k < 2; k++) {
			snprintf(want, sizeof(want), "%.10g", of[k]);
			TAP_EQ(table_parse(&c, s, s->key, want, &err), 0);
			table_text(&c, s, text);
			TAP_STR(text, want);
			TAP_CHECK(!preempt_param_check(&c.preempt.param));
			snprintf(want, sizeof(want), "%.10g", of[k] + (k ? 0.001 : -0.001));
			TAP_EQ(table_parse(&c, s, s->key, want, &err), -EINVAL);
			TAP_STR(err.key, s->key);
		}
		table_parse(&c, s, s->key, s->initial, &err);
	}
	TAP_MEM(&c, &defaults, sizeof(c));
}

/* mgpud.conf(5) has each setting with its range and its default. */
static void manual(void)
{
	char text[65536], line[512], range[MGPUD_RANGE];
	size_t len = 0;
	FILE *f = fopen(MANUAL, "r");
	int c;

	TAP_NEED(f);
	while ((c = fgetc(f)) != EOF && len < sizeof(text) - 1)
		if (c != '\\')
			text[len++] = (char)c;
	text[len] = '\0';
	fclose(f);
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++) {
		mgpud_setting_range(s, range);
		snprintf(line, sizeof(line), "\n.TP\n.BR %s \" (%s; default %s)\"\n", s->key,
			 range, s->initial);
		if (!TAP_CHECK(strstr(text, line)))
			tap_diag("mgpud.conf(5) lacks: %s", line);
	}
}

/* Any bytes: refused with a place, or taken; never worse. */
static void garbage(void)
{
	static const char *const words[] = {
		"[", "]", "mgpud", "sla", "vgpu ", A, "\n", "=", " ", "\t", "#", ";",
		"floor", "ceiling", "none", "30", "-1", "1e999", "policy", "allocator", "exact", "\r",
		"preemption", "cost", "fit", "0.1,0.2", "starve_ms", "mgpu",
		"beta", "\xff", "\xef\xbb\xbf", ":", "period_ms", "socket", "/x", "nan",
	};
	struct config_source source = { .path = path, .must = true };
	unsigned int seed = 1;
	char text[2048];

	for (unsigned int k = 0; k < 3000; k++) {
		struct config c = { 0 };
		size_t len = 0;

		while (len < sizeof(text) - 64 && rand_r(&seed) % 60) {
			if (rand_r(&seed) % 30) {
				const char *w = words[(size_t)rand_r(&seed) % NR(words)];

				memcpy(text + len, w, strlen(w));
				len += strlen(w);
			} else {
				text[len++] = (char)rand_r(&seed);
			}
		}
		put(text, len);
		why[0] = '\0';
		if (config_load(&c, &source, why, sizeof(why)))
			TAP_CHECK(!strncmp(why, path, strlen(path)));
		else
			TAP_CHECK(c.set.allocator && !sla_check(&c.set.sla) &&
				  c.preempt.ops && !preempt_param_check(&c.preempt.param));
		config_free(&c);
	}
}

static void many_agreements(void)
{
	struct settings set = { .sla = SLA_NONE }, copy;
	struct settings_error err;
	struct sla sla = { .floor = 1, .ceiling = 2 };
	char uuid[SAMPLE_UUID_LEN];

	for (unsigned int k = 0; k < SETTINGS_VGPUS_MAX; k++) {
		/* in no order */
		snprintf(uuid, sizeof(uuid), "%08x-0000-0000-0000-000000000000",
			 k * 2654435761u);
		TAP_EQ(settings_sla_set(&set, uuid, &sla, &err), 0);
	}
	TAP_EQ(set.nr_vgpus, SETTINGS_VGPUS_MAX);
	TAP_EQ(settings_sla_set(&set, A, &sla, &err), -EINVAL);
	for (size_t k = 1; k < set.nr_vgpus; k++)
		TAP_CHECK(strcmp(set.vgpus[k - 1].uuid, set.vgpus[k].uuid) < 0);
	TAP_EQ(settings_copy(&copy, &set), 0);
	TAP_EQ(settings_sla_set(&set, uuid, NULL, &err), 0);
	TAP_EQ(set.nr_vgpus, SETTINGS_VGPUS_MAX - 1);
	TAP_NEAR(settings_sla(&set, uuid)->floor, 0, 0);
	TAP_NEAR(settings_sla(&copy, uuid)->floor, 1, 0);
	TAP_EQ(settings_sla_set(&set, A, &sla, &err), 0);
	settings_free(&set);
	settings_free(&copy);
}

/* Floors that gpuctl vgpu set VGPU floor, or the attribute in sysfs, sets. */
static void floors_of_vgpus(void)
{
	struct sample_vgpu a = { .uuid = A }, b = { .uuid = B };
	struct settings_error err;
	struct config c = { 0 };

	TAP_EQ(load(&c, "[sla]\nfloor = 5\nceiling = 40\n[vgpu " A "]\nfloor = 7\n"), 0);
	TAP_NEAR(settings_sla_of(&c.set, &b).floor, 5, 0);
	a.fps_floor = 20000;
	b.fps_floor = 20500;
	/* an agreement of its own counts more */
	TAP_NEAR(settings_sla_of(&c.set, &a).floor, 7, 0);
	TAP_NEAR(settings_sla_of(&c.set, &b).floor, 20.5, 0);
	TAP_NEAR(settings_sla_of(&c.set, &b).ceiling, 40, 0);
	b.fps_floor = 41000;
	TAP_NEAR(settings_sla_of(&c.set, &b).floor, 40, 0);
	TAP_EQ(settings_sla_set(&c.set, A, NULL, &err), 0);
	TAP_NEAR(settings_sla_of(&c.set, &a).floor, 20, 0);
	TAP_EQ(settings_sla_set(&c.set, NULL, NULL, &err), 0);
	TAP_NEAR(settings_sla_of(&c.set, &b).floor, 41, 0);
	config_free(&c);
}

/* A ceiling of one vGPU must reach the plan by its UUID, and no other vGPU. */
static void agreements_decide(void)
{
	struct estimate_vgpu vgpus[2] = {
		{ .last = { .id = 1, .uuid = B, .open = true }, },
		{ .last = { .id = 2, .uuid = A, .open = true }, },
	};
	struct estimate_dev dev = { .id = 0, .engines = 1 };
	struct estimate e = {
		.cpu_capacity = 4, .cpu_capacity_smooth = 4, .seconds = 1,
		.vgpus = vgpus, .nr_vgpus = 2, .devs = &dev, .nr_devs = 1,
	};
	const struct sla sla = { .floor = 0, .ceiling = 20 };
	struct control control = { 0 };
	struct settings_error err;
	struct config c;
	struct plan plan;

	for (size_t j = 0; j < 2; j++) {
		vgpus[j].state = VGPU_ACTIVE;
		vgpus[j].fps = 30;
		vgpus[j].gpu_cost = vgpus[j].gpu_cost_smooth = 0.01;
		vgpus[j].demand = INFINITY;
	}
	config_default(&c);
	TAP_EQ(settings_sla_set(&c.set, A, &sla, &err), 0);
	TAP_EQ(settings_decide(&c.set, &e, NULL, &control, &plan), 0);
	TAP_CHECK(plan.targets[0].fps > 20);
	TAP_NEAR(plan.targets[1].fps, 20, 1e-9);
	plan_free(&plan);
	config_free(&c);
}

/* An expectation limits a vGPU as long as it is not active. */
static void expectations_decide(void)
{
	struct estimate_vgpu vgpus[4] = {
		{ .last = { .id = 1, .uuid = B, .open = true } },
		{ .last = { .id = 2, .uuid = A, .open = true }, .idle_ns = DECIDE_RELEASE_NS },
		{ .last = { .id = 3, .uuid = A } },
		{ .last = { .id = 4, .uuid = A, .open = true } },
	};
	struct estimate_dev dev = { .id = 0, .engines = 1 };
	struct estimate e = {
		.cpu_capacity = 4, .cpu_capacity_smooth = 4, .seconds = 1,
		.vgpus = vgpus, .nr_vgpus = 4, .devs = &dev, .nr_devs = 1,
	};
	const struct expect expect[4] = {
		{ .cpu = 0.1, .gpu = 0.1, .fps = 3 },
		{ .cpu = 0.25, .gpu = 0.5, .fps = 12.5, .starting = true },
		EXPECT_NONE,
		{ .cpu = 0.1, .gpu = 0.1, .fps = INFINITY },
	};
	struct control control = { .rest = { .in_force = true, .wait = REST_TRIAL_MIN } };
	struct config c;
	struct plan plan;

	vgpus[0].state = VGPU_ACTIVE;
	vgpus[0].fps = 30;
	vgpus[0].gpu_cost = vgpus[0].gpu_cost_smooth = 0.01;
	vgpus[0].demand = INFINITY;
	vgpus[1].state = VGPU_IDLE;
	vgpus[3].state = VGPU_IDLE;
	vgpus[3].kept.frames = 10;
	config_default(&c);
	TAP_EQ(settings_decide(&c.set, &e, expect, &control, &plan), 0);
	TAP_CHECK(plan.targets[0].limit > 20);
	TAP_NEAR(plan.targets[1].limit, 12.5 * DECIDE_LEAD_MAX, 1e-9);
	TAP_NEAR(plan.targets[1].gpu, 0.5, 1e-9);
	TAP_CHECK(isinf(plan.targets[2].limit) && isinf(plan.targets[2].gpu));
	/* the limits of one that paused stay as they are */
	TAP_CHECK(plan.targets[3].keep);
	plan_free(&plan);
	c.set.allocator = &alloc_none;
	TAP_EQ(settings_decide(&c.set, &e, expect, &control, &plan), 0);
	TAP_CHECK(isinf(plan.targets[1].limit) && isinf(plan.targets[1].gpu));
	plan_free(&plan);
	config_free(&c);
}

static void descriptions(void)
{
	static const char *const good[] = {
		"x", "game at 1920x1080", "Blender \xc3\xbc\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xae",
	};
	static const char *const bad[] = {
		"", "a\tb", "a\nb", "\x7f", "\x1b[31m", "\xc2\x80", "\xc2\x9f", "\xc3", "\xc3(",
		"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf8\x88\x80\x80\x80",
		"\xf4\x90\x80\x80", "\xff",
	};
	struct settings set = { .sla = SLA_NONE }, copied;
	char longest[LEARN_TEXT + 1], uuid[SAMPLE_UUID_LEN];
	struct settings_error err;

	for (size_t k = 0; k < sizeof(good) / sizeof(good[0]); k++) {
		TAP_EQ(settings_describe(&set, "01234567-89AB-cdef-0123-456789abcdef", good[k],
					 &err), 0);
		TAP_STR(settings_description(&set, A), good[k]);
	}
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		if (!TAP_EQ(settings_describe(&set, A, bad[k], &err), -EINVAL))
			tap_diag("%zu", k);
		TAP_STR(err.key, "description");
		TAP_STR(settings_description(&set, A), good[2]);
	}
	memset(longest, 'x', sizeof(longest));
	longest[LEARN_TEXT] = '\0';
	TAP_EQ(settings_describe(&set, A, longest, &err), -EINVAL);
	longest[LEARN_TEXT - 1] = '\0';
	TAP_EQ(settings_describe(&set, A, longest, &err), 0);
	TAP_EQ(settings_describe(&set, "me", "x", &err), -EINVAL);
	/* a description is no agreement */
	TAP_EQ(set.nr_vgpus, 0);
	for (unsigned int k = 1; k < SETTINGS_VGPUS_MAX; k++) {
		snprintf(uuid, sizeof(uuid), "%08x-0000-0000-0000-000000000000", k * 7919);
		TAP_EQ(settings_describe(&set, uuid, "y", &err), 0);
	}
	TAP_EQ(settings_describe(&set, B, "x", &err), -EINVAL);
	TAP_CHECK(strstr(err.text, "at most"));
	TAP_STR(settings_description(&set, A), longest);
	TAP_EQ(settings_copy(&copied, &set), 0);
	TAP_EQ(settings_describe(&set, A, NULL, &err), 0);
	TAP_EQ(settings_describe(&set, A, NULL, &err), 0);
	TAP_CHECK(!settings_description(&set, A));
	TAP_STR(settings_description(&copied, A), longest);
	TAP_EQ(settings_describe(&set, B, "x", &err), 0);
	settings_free(&set);
	settings_free(&copied);
}

/* ---- the log ---- */

static char *said(enum log_level level, bool text)
{
	static char buf[512];
	int pipes[2], keep = dup(level <= LEVEL_WARNING ? 2 : 1);
	ssize_t n;

	if (pipe(pipes))
		abort();
	fflush(stdout);
	dup2(pipes[1], level <= LEVEL_WARNING ? 2 : 1);
	log_start();
	if (text)
		log_text(level, "what", "two\nlines \"%s\"", "x");
	else
		log_event(level, "what a=%d\nb=2", 1);
	fflush(stdout);
	dup2(keep, level <= LEVEL_WARNING ? 2 : 1);
	close(keep);
	close(pipes[1]);
	n = read(pipes[0], buf, sizeof(buf) - 1);
	buf[n > 0 ? n : 0] = '\0';
	close(pipes[0]);
	return buf;
}

static void log_lines(void)
{
	struct stat st;
	char stream[64];
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	log_set_mode(LOG_AUTO);
	TAP_STR(said(LEVEL_INFO, false), "what a=1 b=2\n");
	TAP_STR(said(LEVEL_ERROR, true), "mgpud: two lines \"x\"\n");
	TAP_CHECK(log_periods());
	log_set_mode(LOG_CHANGES);
	TAP_CHECK(!log_periods());
	TAP_STR(said(LEVEL_INFO, false), "what a=1 b=2\n");
	log_set_mode(LOG_QUIET);
	TAP_STR(said(LEVEL_INFO, false), "");
	TAP_STR(said(LEVEL_WARNING, false), "what a=1 b=2\n");

	TAP_NEED(fd >= 0 && !fstat(fd, &st));
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	TAP_CHECK(log_is_stream(stream, fd));
	TAP_CHECK(!log_is_stream(stream, 0));
	TAP_CHECK(!log_is_stream("", fd));
	TAP_CHECK(!log_is_stream(NULL, fd));
	TAP_CHECK(!log_is_stream("1:2:3", fd));
	strcat(stream, "x");
	TAP_CHECK(!log_is_stream(stream, fd));
	close(fd);
}

/* Standard error is the journal: priorities, and text that is one value. */
static void journal_lines(void)
{
	struct stat st;
	char stream[64];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), keep = dup(2);
	char buf[512];
	ssize_t n;

	TAP_NEED(fd >= 0 && !fstat(fd, &st));
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	dup2(fd, 2);
	log_start();
	log_set_mode(LOG_AUTO);
	log_event(LEVEL_WARNING, "sla-shortfall vgpu=%d", 3);
	log_text(LEVEL_ERROR, "trouble", "no \"such\"\nthing");
	dup2(keep, 2);
	close(keep);
	unsetenv("JOURNAL_STREAM");
	n = pread(fd, buf, sizeof(buf) - 1, 0);
	buf[n > 0 ? n : 0] = '\0';
	TAP_STR(buf, "<4>sla-shortfall vgpu=3\n<3>trouble text=\"no 'such' thing\"\n");
	/* standard output goes elsewhere, and stays for people */
	TAP_STR(log_prefix(LEVEL_INFO, stdout), "");
	log_start();
	close(fd);
}

int main(void)
{
	strcpy(folder, "/tmp/test-config-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/mgpud.conf", folder);

	tap_run(everything, "every key is read");
	tap_run(wrong, "a mistake is named with file, line and key and changes nothing");
	tap_run(comments, "both forms of a comment are read alike");
	tap_run(no_text, "a file that is no text is refused");
	tap_run(missing, "the default file may be missing, one that was named may not");
	tap_run(overrides, "the command line counts more than the file");
	tap_run(example, "the example's commented values are the defaults, of all keys");
	tap_run(table, "each setting takes its default and the ends of its range");
	tap_run(names, "names to choose from are all that there are");
	tap_run(manual, "the manual page has each setting, with its range and default");
	tap_run(garbage, "garbage is refused with its place");
	tap_run(many_agreements, "thousands of agreements, in order, and no more than that");
	tap_run(floors_of_vgpus, "a floor of the vGPU counts where it has no agreement of its own");
	tap_run(agreements_decide, "a vGPU's agreement limits that vGPU in a plan");
	tap_run(expectations_decide, "what is expected of a vGPU limits it until it is active");
	tap_run(descriptions, "a description is a short text without control characters");
	tap_run(log_lines, "one event is one line, and quiet is quiet");
	tap_run(journal_lines, "to the journal lines begin with their priority");

	snprintf(why, sizeof(why), "rm -rf %s", folder);
	if (system(why))
		return 1;
	return tap_done();
}
