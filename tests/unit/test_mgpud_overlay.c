// SPDX-License-Identifier: GPL-2.0-only
/* Settings of run time over those of the configuration file. */
#include <errno.h>
#include <json-c/json.h>

#include "config/overlay.h"
#include "config/table.h"
#include "tap.h"

#define A	"01234567-89ab-cdef-0123-456789abcdef"
#define A_MIXED	"01234567-89AB-cdef-0123-456789abcdef"	/* the same */
#define B	"89abcdef-0123-4567-89ab-cdef01234567"

static struct config base, now;
static struct json_object *overlay;
static struct settings_error err;
static char why[1024];

/* The file has an agreement of A, and period_ms. */
static void begin(void)
{
	struct sla sla = { .floor = 10, .ceiling = 20 };

	config_default(&base);
	base.set.period_ms = 500;
	base.origin[table_name("period_ms") - mgpud_settings] = ORIGIN_FILE;
	TAP_EQ(settings_sla_set(&base.set, A, &sla, &err), 0);
	TAP_EQ(overlay_apply(&base, NULL, &now, &err), 0);
}

static void end(void)
{
	config_free(&base);
	config_free(&now);
	json_object_put(overlay);
	overlay = NULL;
}

static struct json_object *json(const char *text)
{
	struct json_object *o = json_tokener_parse(text);

	if (!o)
		tap_diag("no JSON: %s", text);
	return o;
}

/* As a client sets settings. */
static int set(const char *text)
{
	struct json_object *settings = json(text), *new;
	int ret = table_json(&now, NULL, settings, &err);

	if (!ret) {
		new = overlay_set(overlay, &base, &now, settings);
		TAP_CHECK(new);
		json_object_put(overlay);
		overlay = new;
		/* it makes what is in force */
		TAP_EQ(overlay_apply(&base, overlay, &now, &err), 0);
	}
	json_object_put(settings);
	return ret;
}

static int reset(const char *text)
{
	struct json_object *keys = text ? json(text) : NULL, *new;
	int ret = overlay_reset(overlay, keys, &new, &err);

	json_object_put(keys);
	if (ret)
		return ret;
	ret = overlay_apply(&base, new, &now, &err);
	if (ret) {
		json_object_put(new);
		return ret;
	}
	json_object_put(overlay);
	overlay = new;
	return 0;
}

static bool is(const char *text)
{
	struct json_object *o = json(text);
	bool same = json_object_equal(o, overlay);

	if (!same)
		tap_diag("it is %s", json_object_to_json_string(overlay));
	json_object_put(o);
	return same;
}

static enum config_origin origin(const char *name)
{
	return (enum config_origin)now.origin[table_name(name) - mgpud_settings];
}

static void values(void)
{
	begin();
	TAP_EQ(origin("period_ms"), ORIGIN_FILE);
	TAP_EQ(origin("beta"), ORIGIN_DEFAULT);
	TAP_EQ(set("{\"allocator\":\"drf\",\"period_ms\":700}"), 0);
	TAP_EQ(set("{\"preempt_cost\":\"0.125,2\",\"period_ms\":800}"), 0);
	TAP_CHECK(is("{\"allocator\":\"drf\",\"period_ms\":800,\"preempt_cost\":\"0.125,2\"}"));
	TAP_EQ(overlay_count(overlay), 3);
	TAP_STR(now.set.allocator->name, "drf");
	TAP_EQ(now.set.period_ms, 800);
	TAP_NEAR(now.preempt.param.cost.b, 2, 0);
	TAP_EQ(origin("period_ms"), ORIGIN_RUN_TIME);
	TAP_EQ(origin("preempt_cost"), ORIGIN_RUN_TIME);
	TAP_EQ(origin("preempt"), ORIGIN_DEFAULT);
	/* what is refused is not in it */
	TAP_EQ(set("{\"allocator\":\"fea\",\"period_ms\":1}"), -EINVAL);
	TAP_EQ(overlay_count(overlay), 3);
	/* a changed file counts where nothing was set */
	base.set.period_ms = 900;
	base.set.iterations = 77;
	TAP_EQ(overlay_apply(&base, overlay, &now, &err), 0);
	TAP_EQ(now.set.period_ms, 800);
	TAP_EQ(now.set.iterations, 77);
	TAP_EQ(reset("[\"period_ms\",\"iterations\"]"), 0);
	TAP_EQ(now.set.period_ms, 900);
	TAP_EQ(origin("period_ms"), ORIGIN_FILE);
	TAP_CHECK(is("{\"allocator\":\"drf\",\"preempt_cost\":\"0.125,2\"}"));
	TAP_EQ(reset(NULL), 0);
	TAP_CHECK(is("{}"));
	TAP_EQ(overlay_count(overlay), 0);
	TAP_STR(now.set.allocator->name, "exact");
	TAP_CHECK(now.preempt.fit);
	end();
}

/* Both values of an agreement last, also if one of them was set. */
static void agreements(void)
{
	const struct sla *sla;
	char text[256];

	begin();
	TAP_EQ(set("{\"sla\":{\"01234567-89AB-cdef-0123-456789abcdef\":{\"floor\":15}}}"), 0);
	TAP_CHECK(is("{\"sla\":{\"" A "\":{\"floor\":15.0,\"ceiling\":20.0}}}"));
	TAP_EQ(set("{\"sla\":{\"default\":{\"ceiling\":60},\"" B "\":{\"floor\":5}}}"), 0);
	snprintf(text, sizeof(text),
		 "{\"sla\":{\"%s\":{\"floor\":15.0,\"ceiling\":20.0},\"default\":{\"floor\":null,\"ceiling\":60.0},\"%s\":{\"floor\":5.0,\"ceiling\":60.0}}}",
		 A, B);
	TAP_CHECK(is(text));
	TAP_EQ(overlay_count(overlay), 3);
	TAP_EQ(now.sla_origin, ORIGIN_RUN_TIME);
	/* the file changes its mind */
	TAP_EQ(settings_sla_set(&base.set, A, &(struct sla){ 1, 2 }, &err), 0);
	base.set.sla = (struct sla){ 3, 4 };
	TAP_EQ(overlay_apply(&base, overlay, &now, &err), 0);
	sla = settings_sla(&now.set, A);
	TAP_CHECK(sla->floor == 15 && sla->ceiling == 20);
	sla = settings_sla(&now.set, B);
	TAP_CHECK(sla->floor == 5 && sla->ceiling == 60);
	TAP_CHECK(isinf(now.set.sla.ceiling) == 0 && now.set.sla.floor == 0);
	/* removed: one that the file has, and one that it lacks */
	TAP_EQ(set("{\"sla\":{\"" A "\":null,\"" B "\":null,\"default\":null}}"), 0);
	TAP_CHECK(is("{\"sla\":{\"" A "\":null,\"default\":{\"floor\":null,\"ceiling\":null}}}"));
	TAP_EQ(now.set.nr_vgpus, 0);
	TAP_CHECK(isinf(now.set.sla.ceiling));
	/* back to the file, one by one */
	TAP_EQ(reset("[\"default\"]"), 0);
	TAP_NEAR(now.set.sla.ceiling, 4, 0);
	TAP_EQ(now.sla_origin, ORIGIN_DEFAULT);
	TAP_CHECK(is("{\"sla\":{\"" A "\":null}}"));
	TAP_EQ(reset("[\"01234567-89AB-cdef-0123-456789abcdef\"]"), 0);
	TAP_CHECK(is("{}"));
	TAP_NEAR(settings_sla(&now.set, A)->floor, 1, 0);
	TAP_EQ(set("{\"beta\":3,\"lambda\":-1,\"sla\":{\"" B "\":{\"floor\":3}}}"), 0);
	TAP_EQ(reset("[\"sla\"]"), 0);
	TAP_CHECK(is("{\"beta\":3,\"lambda\":-1}"));
	end();
}

static void descriptions(void)
{
	begin();
	TAP_EQ(settings_describe(&base.set, A, "the file's", &err), 0);
	TAP_EQ(overlay_apply(&base, NULL, &now, &err), 0);
	TAP_EQ(set("{\"descriptions\":{\"" A_MIXED "\":\"a game\",\"" B "\":\"b\"}}"), 0);
	TAP_CHECK(is("{\"descriptions\":{\"" A "\":\"a game\",\"" B "\":\"b\"}}"));
	TAP_EQ(overlay_count(overlay), 2);
	TAP_STR(settings_description(&now.set, A), "a game");
	/* it is no agreement */
	TAP_EQ(now.set.nr_vgpus, 1);
	/* removed: one that the file has, and one that it lacks */
	TAP_EQ(set("{\"descriptions\":{\"" A "\":null,\"" B "\":null}}"), 0);
	TAP_CHECK(is("{\"descriptions\":{\"" A "\":null}}"));
	TAP_CHECK(!settings_description(&now.set, A) && !settings_description(&now.set, B));
	/* a UUID is both, its agreement and its description */
	TAP_EQ(set("{\"sla\":{\"" A "\":{\"floor\":15}}}"), 0);
	TAP_EQ(overlay_count(overlay), 2);
	TAP_EQ(reset("[\"" A "\"]"), 0);
	TAP_CHECK(is("{}"));
	TAP_STR(settings_description(&now.set, A), "the file's");
	TAP_EQ(set("{\"beta\":3,\"lambda\":-1,\"descriptions\":{\"" B "\":\"b\"}}"), 0);
	TAP_EQ(reset("[\"descriptions\"]"), 0);
	TAP_CHECK(is("{\"beta\":3,\"lambda\":-1}"));
	TAP_EQ(set("{\"descriptions\":3}"), -EINVAL);
	TAP_EQ(set("{\"descriptions\":{\"" B "\":3}}"), -EINVAL);
	TAP_EQ(set("{\"descriptions\":{\"" B "\":\"a\\u0000b\"}}"), -EINVAL);
	TAP_EQ(set("{\"descriptions\":{\"me\":\"b\"}}"), -EINVAL);
	TAP_CHECK(is("{\"beta\":3,\"lambda\":-1}"));
	end();
}

static void refused(void)
{
	static const char *const bad[] = {
		"{}", "3", "\"beta\"", "[3]", "[null]", "[\"beta\",\"gamma\"]", "[\"me\"]",
		"[\"beta\",[]]", "[\"socket\"]",
	};

	begin();
	TAP_EQ(set("{\"beta\":0.5,\"lambda\":1,\"iterations\":5}"), 0);
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		TAP_EQ(reset(bad[k]), -EINVAL);
		TAP_STR(err.key, "keys");
		TAP_CHECK(strlen(err.text) > 10);
		TAP_EQ(overlay_count(overlay), 3);
	}
	/* what belongs together goes together */
	TAP_EQ(reset("[\"lambda\"]"), -EINVAL);
	TAP_NEAR(now.set.param.lambda, 1, 0);
	TAP_EQ(reset("[\"lambda\",\"beta\"]"), 0);
	TAP_NEAR(now.set.param.beta, 2, 0);
	/* nothing was set at run time: that is no mistake */
	TAP_EQ(reset("[\"lambda\",\"sla\",\"" A "\"]"), 0);
	TAP_EQ(reset("[]"), 0);
	TAP_CHECK(is("{\"iterations\":5}"));
	end();
}

/* From a file: a value that cannot be is dropped and said, the others stay. */
static void kept(const char *text, const char *want, const char *says)
{
	struct json_object *from = json_tokener_parse(text), *to = NULL;
	struct config c = { 0 };

	TAP_EQ(overlay_keep_valid(from, &base, &to, why, sizeof(why)), 0);
	json_object_put(from);
	json_object_put(overlay);
	overlay = to;
	if (!TAP_CHECK(is(want)) || !TAP_CHECK(says ? !!strstr(why, says) : !why[0]))
		tap_diag("of %s: %s", text, why);
	/* and these can be in force */
	TAP_EQ(overlay_apply(&base, overlay, &c, &err), 0);
	config_free(&c);
}

static void from_file(void)
{
	static char many[SETTINGS_VGPUS_MAX * 64 + 64];
	struct json_object *from, *to;
	char text[256];
	size_t len;

	begin();
	snprintf(text, sizeof(text),
		 "{\"beta\":3,\"lambda\":-1,\"sla\":{\"%s\":null,\"%s\":{\"floor\":5,\"ceiling\":null}}}",
		 A, B);
	kept(text, text, NULL);
	/* of another version of mgpud */
	kept("{\"allocator\":\"lottery\",\"period_ms\":700}", "{\"period_ms\":700}", "allocator must be");
	kept("{\"period_ms\":700,\"colour\":3,\"iterations\":0}", "{\"period_ms\":700}",
	     "unknown setting \"colour\"");
	TAP_CHECK(strstr(why, "iterations must be"));
	kept("{\"sla\":{\"01234567-89ab-cdef-0123-456789abcdef\":{\"floor\":30,\"ceiling\":20},\"89abcdef-0123-4567-89ab-cdef01234567\":{\"floor\":5},\"me\":null}}",
	     "{\"sla\":{\"" B "\":{\"floor\":5}}}", A);
	kept("{\"sla\":{\"me\":null}}", "{}", "\"me\"");
	kept("{\"sla\":3,\"iterations\":7}", "{\"iterations\":7}", "sla");
	kept("{\"sla\":null}", "{}", "sla");
	kept("{\"sla\":{\"89ABCDEF-0123-4567-89ab-CDEF01234567\":{\"floor\":5}}}",
	     "{\"sla\":{\"" B "\":{\"floor\":5}}}", NULL);
	kept("{\"descriptions\":{\"" B "\":\"b\",\"01234567-89ab-cdef-0123-456789abcdef\":\"\\n\"}}",
	     "{\"descriptions\":{\"" B "\":\"b\"}}", A);
	kept("{\"descriptions\":[],\"iterations\":7}", "{\"iterations\":7}", "descriptions");
	kept("{\"model\":\"/x\",\"model_mode\":\"act\"}", "{\"model\":\"/x\",\"model_mode\":\"act\"}",
	     NULL);
	/* a path that gpuctl prints on a terminal */
	kept("{\"model\":\"/x\\u001b[2J\",\"iterations\":7}", "{\"iterations\":7}",
	     "control characters");
	kept("{\"model\":\"/x\\u0000y\",\"iterations\":7}", "{\"iterations\":7}", "model");
	kept("{\"allocator\":\"exact\\u0000y\",\"iterations\":7}", "{\"iterations\":7}", "allocator");
	/* each is valid, and both are not */
	kept("{\"beta\":0.5,\"iterations\":7}", "{\"iterations\":7}", "beta: ");
	base.set.param = (struct fds_param){ .beta = 0.5, .lambda = 1 };
	kept("{\"lambda\":-1,\"iterations\":7}", "{\"iterations\":7}", "lambda");
	kept("3", "{}", "object");
	kept("[]", "{}", "object");
	kept("null", "{}", "object");
	kept("{}", "{}", NULL);
	/* more than there may be, and more mistakes than there is room to say */
	len = (size_t)sprintf(many, "{\"sla\":{");
	for (unsigned int k = 0; k < SETTINGS_VGPUS_MAX + 40; k++)
		len += (size_t)sprintf(many + len, "%s\"%08x-0000-0000-0000-000000000000\":{\"floor\":5}",
				       k ? "," : "", k);
	strcpy(many + len, "}}");
	from = json(many);
	TAP_EQ(overlay_keep_valid(from, &base, &to, why, sizeof(why)), 0);
	/* the file has one, too */
	TAP_EQ(overlay_count(to), SETTINGS_VGPUS_MAX - 1);
	TAP_CHECK(strlen(why) < sizeof(why) && strstr(why, "at most"));
	json_object_put(from);
	json_object_put(to);
	end();
}

int main(void)
{
	tap_run(values, "what is set at run time counts more than the file, until it is reset");
	tap_run(agreements, "agreements of run time last as a whole");
	tap_run(descriptions, "descriptions of run time are apart from agreements");
	tap_run(refused, "a reset that is refused changes nothing");
	tap_run(from_file, "of a file, values that are refused are dropped and the rest is kept");
	return tap_done();
}
