// SPDX-License-Identifier: GPL-2.0-only
/* Test the socket's answers about preemption. */
#include <stdlib.h>
#include <json-c/json.h>

#include "compute/compute.h"
#include "contexts/kind.h"
#include "contexts/preempt_state.h"
#include "tap.h"

static struct json_object *at(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(o, key, &v))
		tap_check(false, __FILE__, __LINE__, key);
	return v;
}

/* As text, so that what is null or of another type is seen. */
static void is(struct json_object *o, const char *key, const char *want)
{
	const char *got = json_object_to_json_string_ext(at(o, key), JSON_C_TO_STRING_PLAIN);

	if (!TAP_STR(got, want))
		tap_diag("%s", key);
}

static void fresh(void)
{
	struct config c = { .preempt = PREEMPTER_CONFIG_DEFAULT };
	struct json_object *o, *v;
	struct analyse a;

	analyse_init(&a);
	o = preempt_state(&c, NULL, &a, 0);
	TAP_NEED(o);
	is(o, "watched", "false");
	is(o, "bpf", "false");
	is(o, "policy", "\"mgpu\"");
	is(o, "policies", "[\"none\",\"always\",\"drain\",\"flush\",\"mgpu\"]");
	is(o, "cost", "{\"a\":0.09526,\"b\":0.01633,\"source\":\"default\",\"samples\":0,\"median_error\":null,\"r2\":null,\"no_fit\":null}");
	is(o, "decay_compute", "1");
	is(o, "decay_memory", "0.9");
	is(o, "class_threshold", "0.5");
	is(o, "starve_s", "0.5");
	is(o, "min_gain", "0.02");
	is(o, "looks", "0");
	is(o, "decisions", "{\"launch\":0,\"resume\":0,\"preempt\":0}");
	is(o, "by", "{\"switch\":0,\"drain\":0,\"flush\":0}");
	is(o, "left", "0");
	is(o, "learned", "[]");
	is(o, "restored", "0");
	v = at(o, "norm");
	TAP_EQ(json_object_array_length(v), 4);
	is(json_object_array_get_idx(v, 0), "class", "\"compute\"");
	is(json_object_array_get_idx(v, 0), "beside", "\"compute\"");
	is(json_object_array_get_idx(v, 0), "norm_ipc", "0.8");
	is(json_object_array_get_idx(v, 1), "beside", "\"memory\"");
	is(json_object_array_get_idx(v, 1), "norm_ipc", "0.92");
	is(json_object_array_get_idx(v, 2), "class", "\"memory\"");
	is(json_object_array_get_idx(v, 2), "norm_ipc", "0.85");
	is(json_object_array_get_idx(v, 3), "norm_ipc", "0.6");
	is(json_object_array_get_idx(v, 3), "count", "0");
	is(o, "put_off", "0");
	is(o, "cpu_s", "0");
	is(at(o, "guard"), "switch", "{\"open\":true,\"trials\":0,\"expected\":null,\"got\":null,\"extra_cycles\":0,\"closings\":0,\"since_s\":null,\"probe_s\":null}");
	json_object_put(o);
}

static void guarded(void)
{
	struct config c = { .preempt = PREEMPTER_CONFIG_DEFAULT };
	struct preempter_stats s = { .looks = 7, .put_off = 6, .cpu_ns = 1500000 };
	struct json_object *o;
	struct analyse a;

	analyse_init(&a);
	a.guard.method[PREEMPT_FLUSH] = (struct guard_method){
		.trials = 32, .expected = 0.125, .got = -0.25, .extra = 1000, .closed = true,
		.wait_ns = GUARD_WAIT_NS, .since_ns = 2500000000, .probe_ns = 3500000000,
		.measured = 40, .closings = 2,
	};
	o = preempt_state(&c, &s, &a, 0);
	TAP_NEED(o);
	is(o, "put_off", "6");
	is(o, "cpu_s", "0.0015");
	is(at(o, "guard"), "flush", "{\"open\":false,\"trials\":40,\"expected\":0.125,\"got\":-0.25,\"extra_cycles\":1000,\"closings\":2,\"since_s\":2.5,\"probe_s\":3.5}");
	is(at(at(o, "guard"), "drain"), "open", "true");
	json_object_put(o);
}

/* Where the coefficients in force come from, in all cases. */
static void sources(void)
{
	struct config c = { .preempt = PREEMPTER_CONFIG_DEFAULT };
	struct preempter_stats s = {
		.cost = PREEMPT_COST_PUBLISHED, .no_fit = "too few", .bpf = true,
		.looks = 7, .decisions = { 1, 2, 3 }, .by = { 4, 5, 6 }, .left = 8,
		.contexts = 9, .waiting = 10,
	};
	struct analyse a;
	struct json_object *o;

	analyse_init(&a);
	o = preempt_state(&c, &s, &a, 11);
	TAP_NEED(o);
	is(o, "watched", "true");
	is(o, "bpf", "true");
	is(o, "looks", "7");
	is(o, "decisions", "{\"launch\":1,\"resume\":2,\"preempt\":3}");
	is(o, "by", "{\"switch\":4,\"drain\":5,\"flush\":6}");
	is(o, "left", "8");
	is(o, "contexts", "9");
	is(o, "waiting", "10");
	is(o, "restored", "11");
	is(at(o, "cost"), "source", "\"default\"");
	is(at(o, "cost"), "no_fit", "\"too few\"");
	json_object_put(o);

	s.fit = (struct cost_fit){
		.cost = { 0.25, 0.125 }, .r2 = 0.75, .median_error = 0.0625, .samples = 40,
	};
	s.cost = s.fit.cost;
	s.no_fit = "";
	o = preempt_state(&c, &s, &a, 0);
	TAP_NEED(o);
	is(o, "cost", "{\"a\":0.25,\"b\":0.125,\"source\":\"fit\",\"samples\":40,\"median_error\":0.0625,\"r2\":0.75,\"no_fit\":null}");
	json_object_put(o);

	/* the last switches allow none: the fit before them stays in force */
	s.no_fit = "all the same";
	o = preempt_state(&c, &s, &a, 0);
	TAP_NEED(o);
	is(at(o, "cost"), "source", "\"fit\"");
	is(at(o, "cost"), "no_fit", "\"all the same\"");
	json_object_put(o);

	/* or it was none that could be used */
	s.cost = PREEMPT_COST_PUBLISHED;
	o = preempt_state(&c, &s, &a, 0);
	TAP_NEED(o);
	is(at(o, "cost"), "source", "\"default\"");
	is(at(o, "cost"), "samples", "40");
	json_object_put(o);
	s.no_fit = NULL;

	/* what was set counts, whatever was measured; and that is still told */
	c.preempt.fit = false;
	c.preempt.param.cost = (struct preempt_cost){ 3, 4 };
	s.cost = c.preempt.param.cost;
	o = preempt_state(&c, &s, &a, 0);
	TAP_NEED(o);
	is(o, "cost", "{\"a\":3,\"b\":4,\"source\":\"set\",\"samples\":40,\"median_error\":0.0625,\"r2\":0.75,\"no_fit\":null}");
	json_object_put(o);
	o = preempt_state(&c, NULL, &a, 0);
	TAP_NEED(o);
	is(o, "cost", "{\"a\":3,\"b\":4,\"source\":\"set\",\"samples\":0,\"median_error\":null,\"r2\":null,\"no_fit\":null}");
	json_object_put(o);
}

static void learned(void)
{
	struct config c = { .preempt = PREEMPTER_CONFIG_DEFAULT };
	struct json_object *o, *k;
	struct analyse a;
	double number;

	analyse_init(&a);
	for (unsigned int j = 1; j <= 20; j++)
		analyse_done(&a, kind_of("matmul"), 1000, 64000);
	analyse_alone(&a, kind_of("matmul"), 1.5);
	analyse_memory(&a, kind_of("matmul"), 0.25, 0.125);
	analyse_memory(&a, kind_of("gather"), 0.75, 0.5);
	analyse_done(&a, 0xdeadbeef, 1, 1);
	o = preempt_state(&c, NULL, &a, 0);
	TAP_NEED(o);
	TAP_EQ(json_object_array_length(at(o, "learned")), 3);
	k = json_object_array_get_idx(at(o, "learned"), 0);
	is(k, "op", "\"matmul\"");
	is(k, "jobs", "20");
	number = json_object_get_double(at(k, "inst_per_size"));
	TAP_NEAR(number, 64, 1e-3);
	number = json_object_get_double(at(k, "size"));
	TAP_NEAR(number, 1000, 1e-2);
	is(k, "ipc", "1.5");
	is(k, "alone", "true");
	is(k, "bound", "0.25");
	is(k, "miss", "0.125");
	is(k, "class", "\"compute\"");
	/* null is what is not known */
	k = json_object_array_get_idx(at(o, "learned"), 1);
	is(k, "op", "\"gather\"");
	is(k, "jobs", "0");
	is(k, "size", "null");
	is(k, "inst_per_size", "null");
	is(k, "ipc", "null");
	is(k, "alone", "false");
	is(k, "class", "\"memory\"");
	k = json_object_array_get_idx(at(o, "learned"), 2);
	is(k, "kind", "\"0xdeadbeef\"");
	is(k, "op", "null");
	is(k, "bound", "null");
	is(k, "miss", "null");
	is(k, "class", "\"unknown\"");
	json_object_put(o);
	/* a class is by the threshold that is set */
	c.preempt.param.class_threshold = 0.2;
	o = preempt_state(&c, NULL, &a, 0);
	TAP_NEED(o);
	is(json_object_array_get_idx(at(o, "learned"), 0), "class", "\"memory\"");
	/* as many as there may be, and still one line of the socket's client */
	for (uint32_t kind = 1; kind < 200; kind++)
		analyse_done(&a, kind, 1e18, 1e18);
	json_object_put(o);
	o = preempt_state(&c, NULL, &a, 0);
	TAP_NEED(o);
	TAP_EQ(json_object_array_length(at(o, "learned")), ANALYSE_KINDS_MAX);
	TAP_CHECK(strlen(json_object_to_json_string(o)) < 32768);
	json_object_put(o);
}

/* JSON can express every number that the state file may hold. */
static void extremes(void)
{
	struct config c = { .preempt = PREEMPTER_CONFIG_DEFAULT };
	struct json_object *o;
	struct analyse a;

	analyse_init(&a);
	a.n = 1;
	a.kind[0] = (struct analyse_kind){ .jobs = 64, .x = 0, .y = 1000, .seen = 64 };
	o = preempt_state(&c, NULL, &a, 0);
	TAP_NEED(o);
	is(json_object_array_get_idx(at(o, "learned"), 0), "inst_per_size", "null");
	is(json_object_array_get_idx(at(o, "learned"), 0), "kind", "\"0x00000000\"");
	json_object_put(o);
}

/* The kernel module's names, all of them. */
static void names(void)
{
	/* the hash is FNV-1a */
	TAP_EQ(kind_of(""), 0x811c9dc5);
	TAP_EQ(kind_of("a"), 0xe40c292c);
	TAP_EQ(kind_of("foobar"), 0xbf9cf968);
	for (uint32_t op = 1; op < MGPU_COMPUTE_NR_OPS; op++) {
		TAP_STR(mgpu_ctx_op_name(op), mgpu_compute_op_name(op));
		TAP_STR(preempt_state_op(kind_of(mgpu_compute_op_name(op))),
			mgpu_compute_op_name(op));
	}
	TAP_CHECK(!mgpu_ctx_op_name(0));
	TAP_CHECK(!mgpu_ctx_op_name(MGPU_COMPUTE_NR_OPS));
	TAP_CHECK(!preempt_state_op(0));
	TAP_CHECK(!preempt_state_op(kind_of("")));
}

int main(void)
{
	tap_run(fresh, "settings are shown before the first decision");
	tap_run(guarded, "what preemptions gained is told by method");
	tap_run(sources, "the source of a switch's cost and the number of decisions are shown");
	tap_run(learned, "learned values of kinds of work are shown, and missing ones named");
	tap_run(extremes, "a value that is no number becomes null");
	tap_run(names, "kinds of work have the kernel module's names");
	return tap_done();
}
