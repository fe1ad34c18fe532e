// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-exporter: the text that it writes, and how it reads the module.
 *
 * With words on the command line it is mgpu-exporter on the module of metrics_kernel.h, for other
 * tests; METRICS_VGPUS is the number of vGPUs.
 */
#include <json-c/json.h>
#include <stdlib.h>

#include "gather.h"
#include "metrics_kernel.h"
#include "snapshot.h"
#include "tap.h"

#define UUID	"00000002-509f-382f-3c1e-e6bfe0fa1001"
#define VGPU_2	"{parent=\"mgpu_soft.0\",uuid=\"" UUID "\"}"

/* The text as a string, which the caller frees. */
static char *string(struct text *t)
{
	text_add(t, "", 1);
	return t->bytes;
}

static bool has(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++)
		if ((at == text || at[-1] == '\n') && at[len] == '\n')
			return true;
	tap_diag("no line: %s", line);
	return false;
}

#define HAS(text, line)	TAP_CHECK(has(text, line))

static unsigned int count(const char *text, const char *part)
{
	const char *at = text, *end = text + strlen(text);
	size_t len = strlen(part);
	unsigned int n = 0;

	for (; (at = memmem(at, (size_t)(end - at), part, len)); at++)
		n++;
	return n;
}

/* ---- text ---- */

static void numbers(void)
{
	static const struct {
		uint64_t value;
		unsigned int decimals;
		const char *text;
	} cases[] = {
		{ 0, 0, "0" }, { 0, 9, "0" }, { 1500, 3, "1.5" }, { 1000, 3, "1" },
		{ 1, 9, "0.000000001" }, { 29970, 3, "29.97" }, { 100, 0, "100" },
		{ UINT64_MAX, 0, "18446744073709551615" },
		{ UINT64_MAX, 9, "18446744073.709551615" }, { 1050, 3, "1.05" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct text t = { 0 };

		text_number(&t, cases[i].value, cases[i].decimals);
		TAP_STR(string(&t), cases[i].text);
		text_free(&t);
	}
}

static void hostile_labels(void)
{
	static const struct {
		const char *value, *text;
	} cases[] = {
		{ "plain", "a=\"plain\"" },
		{ "q\"\\\n}", "a=\"q\\\"\\\\\\n}\"" },
		{ "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		  "a=\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"" },
		{ "\x01\r\x7f", "a=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		/* a byte alone, a character cut off, overlong, a surrogate, beyond the last one */
		{ "\xff", "a=\"\xef\xbf\xbd\"" },
		{ "\xe2\x82", "a=\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xc0\xaf", "a=\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xe0\x80\xaf", "a=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", "a=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xf4\x90\x80\x80", "a=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct text t = { 0 };

		text_label(&t, "a", cases[i].value);
		TAP_STR(string(&t), cases[i].text);
		text_free(&t);
	}
}

static void long_labels(void)
{
	char value[4 * EXPOSE_VALUE_MAX] = "";
	struct text t = { 0 };

	/* characters of two bytes: no half of one at the end */
	for (size_t i = 0; i < EXPOSE_VALUE_MAX; i++)
		strcat(value, "\xc3\xa9");
	text_label(&t, "a", value);
	TAP_EQ(t.len, strlen("a=\"\"") + EXPOSE_VALUE_MAX);
	TAP_EQ(count(string(&t), "\xc3\xa9"), EXPOSE_VALUE_MAX / 2);
	text_free(&t);
}

static void limited_text(void)
{
	struct text t = { .limit = 10000 };

	for (int i = 0; i < 9999; i++)
		text_str(&t, "x");
	TAP_CHECK(!t.failed);
	text_str(&t, "xx");
	TAP_CHECK(t.failed);
	text_str(&t, "x");
	TAP_EQ(t.len, 9999);
	text_free(&t);
}

/* ---- histograms ---- */

static const struct expose_family hist = {
	"x_seconds", "seconds", "Times.", EXPOSE_HISTOGRAM
};

static char *histogram(const uint64_t *counts, unsigned int first, enum expose_format format)
{
	struct text t = { 0 };
	struct expose e = { .text = &t, .format = format };

	expose_family(&e, &hist);
	expose_histogram(&e, "a=\"b\"", 5, counts, first);
	expose_end(&e);
	return string(&t);
}

static void cumulative(void)
{
	uint64_t counts[MGPU_HIST_BUCKETS], total = 0, before = 0, value;
	char *text, *at;
	unsigned int n = 0;

	for (unsigned int i = 0; i < MGPU_HIST_BUCKETS; i++) {
		counts[i] = i * 7 % 5;
		total += counts[i];
	}
	text = histogram(counts, 3, EXPOSE_TEXT);
	for (at = text; (at = strstr(at, "x_seconds_bucket{a=\"b\",le=")); at++) {
		value = strtoull(strchr(at, '}') + 1, NULL, 10);
		TAP_CHECK(value >= before);
		before = value;
		n++;
	}
	TAP_EQ(n, MGPU_HIST_BUCKETS - 3);
	TAP_EQ(before, total);
	HAS(text, "x_seconds_bucket{a=\"b\",le=\"0.000016\"} 7");
	HAS(text, "x_seconds_bucket{a=\"b\",le=\"8.388608\"} 46");
	HAS(text, "x_seconds_bucket{a=\"b\",le=\"+Inf\"} 47");
	HAS(text, "x_seconds_count{a=\"b\"} 47");
	/* the sum is not known */
	HAS(text, "x_seconds_sum{a=\"b\"} NaN");
	free(text);
	/* OpenMetrics has a count only with a sum */
	text = histogram(counts, 3, EXPOSE_OPENMETRICS);
	HAS(text, "# UNIT x_seconds seconds");
	TAP_CHECK(!strstr(text, "_count") && !strstr(text, "_sum"));
	HAS(text, "# EOF");
	free(text);
}

static void full_histogram(void)
{
	uint64_t counts[MGPU_HIST_BUCKETS];
	char *text;

	for (unsigned int i = 0; i < MGPU_HIST_BUCKETS; i++)
		counts[i] = UINT64_MAX / 4;
	text = histogram(counts, 0, EXPOSE_TEXT);
	HAS(text, "x_seconds_bucket{a=\"b\",le=\"+Inf\"} 18446744073709551615");
	HAS(text, "x_seconds_count{a=\"b\"} 18446744073709551615");
	free(text);
}

/* ---- metrics ---- */

static char *write_snapshot(struct snapshot *s, enum expose_format format)
{
	struct text t = { 0 };

	metrics_write(&t, s, format);
	TAP_CHECK(!t.failed);
	snapshot_free(s);
	return string(&t);
}

static char *of_module(enum expose_format format)
{
	struct gather g = { .root = "/nonexistent", .hists = true };
	struct snapshot s;

	gather(&g, &s);
	gather_close(&g);
	return write_snapshot(&s, format);
}

static void module_metrics(void)
{
	char *text = of_module(EXPOSE_OPENMETRICS), line[256];

	HAS(text, "mgpu_source_up{source=\"module\"} 1");
	HAS(text, "# TYPE mgpu_gpu info");
	HAS(text, "mgpu_gpu_info{parent=\"mgpu_soft.0\",backend=\"soft\",policy=\"fair\"} 1");
	HAS(text, "mgpu_gpu_job_timeout_seconds{parent=\"mgpu_soft.0\"} 4.5");
	HAS(text, "# TYPE mgpu_vgpu_engine_seconds counter");
	HAS(text, "# UNIT mgpu_vgpu_engine_seconds seconds");
	/* attribute 6 of vGPU 2: 12000000084 ns */
	snprintf(line, sizeof(line), "mgpu_vgpu_engine_seconds_total" VGPU_2 " %g.000000%03d",
		 2.0 * MGPU_A_STATS_ENGINE_NS, 14 * MGPU_A_STATS_ENGINE_NS);
	HAS(text, line);
	HAS(text, "mgpu_vgpu_frame_rate_limit_hertz" VGPU_2 " 29.97");
	HAS(text, "mgpu_vgpu_engine_limit_ratio" VGPU_2 " 0.305");
	HAS(text, "mgpu_vgpu_engine_target_ratio" VGPU_2 " +Inf");
	HAS(text, "mgpu_vgpu_quarantined" VGPU_2 " 0");
	HAS(text, "mgpu_vgpu_info{parent=\"mgpu_soft.0\",uuid=\"" UUID
			    "\",type=\"medium-render\"} 1");
	TAP_EQ(count(text, "\nmgpu_vgpu_frames_total{"), 3);
	TAP_EQ(count(text, "\nmgpu_vgpu_vmm_cpu_seconds_total{"), 2);
	TAP_EQ(count(text, "\n# EOF\n"), 1);
	free(text);
	text = of_module(EXPOSE_TEXT);
	HAS(text, "# TYPE mgpu_vgpu_engine_seconds_total counter");
	HAS(text, "# TYPE mgpu_gpu_info gauge");
	TAP_CHECK(!strstr(text, "# UNIT") && !strstr(text, "# EOF"));
	free(text);
}

/* A value that is not known has no line: neither of an older module nor of one without power. */
static void absent(void)
{
	char *text;

	text = of_module(EXPOSE_TEXT);
	/* a vGPU that was never open has no histograms, and shows nothing */
	TAP_EQ(count(text, "mgpu_vgpu_latency_seconds_count{"), 2);
	TAP_CHECK(!strstr(text, "mgpu_vgpu_scanout"));
	/* nor does mgpud run, or mgpu-remoted */
	TAP_CHECK(!strstr(text, "mgpu_controller") && !strstr(text, "mgpu_remote") &&
		  !strstr(text, "mgpu_vgpu_floor") && !strstr(text, "mgpu_model"));
	HAS(text, "mgpu_source_up{source=\"mgpud\"} 0");
	free(text);

	metrics_kernel.old = true;
	text = of_module(EXPOSE_TEXT);
	TAP_CHECK(!strstr(text, "mgpu_vgpu_hangs") && !strstr(text, "_bucket"));
	TAP_EQ(count(text, "\nmgpu_vgpu_frames_total{"), 3);
	free(text);

	metrics_kernel.unloaded = true;
	text = of_module(EXPOSE_TEXT);
	HAS(text, "mgpu_source_up{source=\"module\"} 0");
	TAP_CHECK(!strstr(text, "mgpu_vgpu") && !strstr(text, "mgpu_gpu"));
	free(text);
}

static void many_vgpus(void)
{
	struct gather g = { .root = "/nonexistent", .hists = true };
	struct snapshot s;
	char *text;

	metrics_kernel.vgpus = 5000;	/* more than a module has */
	metrics_kernel.gone = 17;
	gather(&g, &s);
	TAP_EQ(s.nr_vgpus, SNAPSHOT_VGPUS);
	TAP_EQ(s.left_out, 5000 - SNAPSHOT_VGPUS);
	/* two lists, and a request for each; in some ten packets a list, and two calls for 16 */
	TAP_EQ(metrics_kernel.requests, 5002);
	TAP_CHECK(metrics_kernel.calls < 900);
	for (size_t i = 0; i < s.nr_vgpus; i++) {
		const struct mgpu_vgpu_info *v = &s.vgpus[i].info;

		TAP_EQ(mgpu_has(v, MGPU_A_VGPU_LATENCY_HIST), v->id != 1 && v->id != 17);
		if (mgpu_has(v, MGPU_A_VGPU_LATENCY_HIST))
			TAP_EQ(v->latency_hist[4], 4 * v->id);
	}
	gather_close(&g);
	text = write_snapshot(&s, EXPOSE_TEXT);
	HAS(text, "mgpu_exporter_left_out 904");
	TAP_EQ(count(text, "\nmgpu_vgpu_frames_total{"), SNAPSHOT_VGPUS);
	free(text);
}

/* A module that is reloaded has the socket opened anew. */
static void module_returns(void)
{
	struct gather g = { .root = "/nonexistent", .hists = true };
	struct snapshot s;

	metrics_kernel.unloaded = true;
	gather(&g, &s);
	TAP_EQ(s.reads[SOURCE_MODULE].up, 0);
	snapshot_free(&s);
	metrics_kernel.unloaded = false;
	gather(&g, &s);
	TAP_EQ(s.reads[SOURCE_MODULE].up, 1);
	TAP_EQ(s.nr_vgpus, 3);
	snapshot_free(&s);
	gather_close(&g);
}

/* ---- mgpud and mgpu-remoted ---- */

static void add(struct snapshot *s, int (*take)(struct snapshot *s, struct json_object *state),
		const char *json)
{
	struct json_object *state = json_tokener_parse(json);

	TAP_CHECK(state);
	TAP_EQ(take(s, state), 0);
	json_object_put(state);
}

/* A snapshot of the vGPUs 1 and 2, and of this state of mgpud. */
static char *with_mgpud(const char *json)
{
	struct mgpu_vgpu_info list[2] = { 0 };
	struct snapshot s;

	snapshot_init(&s);
	for (uint32_t i = 0; i < 2; i++) {
		metrics_kernel_uuid(list[i].uuid, i + 1);
		strcpy(list[i].dev_name, "mgpu_soft.0");
		list[i].weight = 100;
		list[i].present = MGPU_HAS(MGPU_A_VGPU_WEIGHT);
	}
	TAP_EQ(snapshot_add_vgpus(&s, list, 2), 0);
	add(&s, snapshot_add_mgpud, json);
	s.reads[SOURCE_MGPUD].up = 1;
	return write_snapshot(&s, EXPOSE_TEXT);
}

static void controller(void)
{
	static const char json[] =
		"{\"release\":\"1\",\"allocator\":\"fea\",\"charge_source\":\"bpf\",\"bpf\":true,\n"
		"\"period_s\":0.5,\"sample_age_s\":null,\"periods\":12,\"trouble\":[\"a\",\"b\"],\n"
		"\"preempt\":{\"policy\":\"mgpu\",\"decisions\":{\"launch\":3,\"resume\":0}},\n"
		"\"model\":{\"state\":\"acts\",\"name\":null,\"error\":null},\"vgpus\":[\n"
		"{\"uuid\":\"" UUID "\",\"fps\":59.5,\"floor_fps\":30,\"ceiling_fps\":null,\n"
		"\"granted_fps\":21.5,\"shortfall\":true,\"state\":\"active\",\n"
		"\"description\":\"game \\\"A\\\"\"},\n"
		"{\"uuid\":\"ffffffff-509f-382f-3c1e-e6bfe0fa1001\",\"fps\":1,\"floor_fps\":null,\n"
		"\"shortfall\":false,\"state\":\"idle\"}]}";
	char *text = with_mgpud(json);

	HAS(text, "mgpu_controller_info{version=\"1\",allocator=\"fea\",charge_source=\"bpf\",preemption=\"mgpu\"} 1");
	HAS(text, "mgpu_controller_period_seconds 0.5");
	HAS(text, "mgpu_controller_troubles 2");
	HAS(text, "mgpu_controller_bpf_attached 1");
	/* null, and a key that is missing */
	TAP_CHECK(!strstr(text, "mgpu_controller_sample_age") &&
		  !strstr(text, "mgpu_controller_uptime") && !strstr(text, "mgpu_model_error"));
	HAS(text, "mgpu_controller_preemption_decisions_total{decision=\"launch\"} 3");
	HAS(text, "mgpu_controller_preemption_decisions_total{decision=\"resume\"} 0");
	TAP_CHECK(!strstr(text, "decision=\"preempt\""));
	HAS(text, "mgpu_model_state{state=\"acts\"} 1");
	HAS(text, "mgpu_model_state{state=\"off\"} 0");
	TAP_EQ(count(text, "# TYPE mgpu_model_state "), 1);
	HAS(text, "mgpu_vgpu_floor_hertz" VGPU_2 " 30");
	HAS(text, "mgpu_vgpu_floor_kept" VGPU_2 " 0");
	HAS(text, "mgpu_vgpu_ceiling_hertz" VGPU_2 " +Inf");
	HAS(text, "mgpu_vgpu_info{parent=\"mgpu_soft.0\",uuid=\"" UUID
			    "\",name=\"game \\\"A\\\"\"} 1");
	/* one that only mgpud knows has what mgpud said, and no floor */
	HAS(text, "mgpu_vgpu_frame_rate_hertz{uuid=\"ffffffff-509f-382f-3c1e-e6bfe0fa1001\"} 1");
	TAP_EQ(count(text, "mgpu_vgpu_floor_kept{"), 1);
	TAP_EQ(count(text, "mgpu_vgpu_weight{"), 2);
	TAP_EQ(count(text, "mgpu_vgpu_active{"), 2);
	free(text);
}

static void hostile_states(void)
{
	static const char json[] =
		"{\"periods\":-1,\"reloads\":1e999,\"allocator\":[1],\"model\":5,\"preempt\":\"x\",\n"
		"\"vgpus\":[7,null,[],{},{\"uuid\":\"a\\nb\",\"fps\":3},{\"uuid\":\"\"},\n"
		"{\"uuid\":\"" UUID "\",\"fps\":1},\n"
		"{\"uuid\":\"" UUID "\",\"fps\":2,\"ceiling_fps\":\"60\"}]}";
	char *text = with_mgpud(json);

	TAP_CHECK(!strstr(text, "mgpu_controller_periods"));
	TAP_CHECK(!strstr(text, "mgpu_controller_reloads"));
	TAP_CHECK(!strstr(text, "mgpu_model"));
	/* a ceiling of another type is not known, which is not the same as none */
	TAP_CHECK(!strstr(text, "mgpu_vgpu_ceiling"));
	/* one line for each vGPU */
	TAP_EQ(count(text, "mgpu_vgpu_frame_rate_hertz{"), 1);
	TAP_EQ(count(text, "mgpu_vgpu_weight{"), 2);
	free(text);
}

static void remoted(void)
{
	struct snapshot s;
	char *text;

	snapshot_init(&s);
	add(&s, snapshot_add_remoted,
	    "{\"applications\":[{\"process\":7,\"pid\":null,\"uid\":0,\"command\":\"x\\\"} 1\\n#\",\n"
	    "\"calls\":5,\"received_bytes\":123456789012345,\n"
	    "\"busy_s\":1.25,\"busy_source\":\"cpu\"},{\"process\":7,\"calls\":6},{}],\n"
	    "\"accounts\":[{\"account\":\"vm:3\",\"weight\":300,\"gpu_limit_share\":null,\n"
	    "\"waits\":false}]}");
	text = write_snapshot(&s, EXPOSE_TEXT);
	HAS(text, "mgpu_remote_program_info{process=\"7\",uid=\"0\",command=\"x\\\"} 1\\n#\",busy_source=\"cpu\"} 1");
	HAS(text, "mgpu_remote_calls_total{process=\"7\"} 5");
	TAP_EQ(count(text, "mgpu_remote_calls_total{"), 1);
	/* a counter that is large still grows by ones */
	HAS(text, "mgpu_remote_received_bytes_total{process=\"7\"} 123456789012345");
	HAS(text, "mgpu_remote_busy_seconds_total{process=\"7\"} 1.25");
	HAS(text, "mgpu_remote_account_engine_limit_ratio{account=\"vm:3\"} +Inf");
	HAS(text, "mgpu_remote_account_waiting{account=\"vm:3\"} 0");
	TAP_CHECK(!strstr(text, "mgpu_remote_account_programs"));
	free(text);
}

#undef main
int main(int argc, char **argv)
{
	const char *vgpus = getenv("METRICS_VGPUS");

	if (vgpus)
		metrics_kernel.vgpus = (uint32_t)strtoul(vgpus, NULL, 10);
	if (argc > 1)
		return exporter_main(argc, argv);
	setenv("MGPUD_SOCKET", "/nonexistent", 1);
	setenv("MGPU_REMOTE_CONTROL", "/nonexistent", 1);
	tap_run(numbers, "numbers have their decimals, and no zeros behind them");
	tap_run(hostile_labels, "any bytes become a valid label");
	tap_run(long_labels, "a long label is cut between two characters");
	tap_run(limited_text, "a text does not exceed its limit");
	tap_run(cumulative, "buckets are cumulative, and the last one is the count");
	tap_run(full_histogram, "a histogram that is full stays so");
	tap_run(module_metrics, "what the module says becomes metrics, in base units");
	tap_run(absent, "a value that is not known is absent");
	tap_run(many_vgpus, "vGPUs beyond the limit are counted, and several are read at once");
	tap_run(module_returns, "the module may come later");
	tap_run(controller, "what mgpud says becomes metrics, null none");
	tap_run(hostile_states, "a state of the wrong form does no harm");
	tap_run(remoted, "what mgpu-remoted says becomes metrics");
	return tap_done();
}
