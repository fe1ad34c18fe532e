// SPDX-License-Identifier: GPL-2.0-only
/* What gpuctl prints of vGPUs and devices: text for people, and JSON. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpuctl.h"
#include "tap.h"

#define PRESENT(attr)	(UINT32_C(1) << (attr))

static struct mgpu_vgpu_info full_vgpu(void)
{
	struct mgpu_vgpu_info vgpu = {
		.present = ~PRESENT(MGPU_A_VGPU_TGID),
		.id = 3,
		.uuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001",
		.weight = 100,
		.gpu_limit = 305000,
		.gpu_period = 100000,
		.gpu_burst = 500,
		.stats = {
			.present = UINT32_MAX,
			.jobs = 1000,
			.engine_ns = 2500000000,
			.queue_ns = 400000000,
			.throttled_ns = 1000000,
			.limited_ns = 2000000,
			.limited = 5,
			.preempted = 7,
			.timeouts = 1,
		},
		.frame_interval_hist = { [13] = 1, [14] = 98, [16] = 1 },
	};

	return vgpu;
}

static const struct mgpu_field *text_fields;

static void print_fields(const void *info)
{
	out_fields(text_fields, info);
}

static void print_event(const void *event)
{
	out_event(event);
}

/* What @print prints of @info; free it. */
static char *printed(void (*print)(const void *info), const void *info)
{
	FILE *file = tmpfile();
	int old = dup(STDOUT_FILENO);
	char *text = calloc(1, 65536);
	size_t len;

	if (!file || old < 0 || !text)
		abort();
	fflush(stdout);
	if (dup2(fileno(file), STDOUT_FILENO) < 0)
		abort();
	print(info);
	fflush(stdout);
	if (dup2(old, STDOUT_FILENO) < 0)
		abort();
	close(old);
	rewind(file);
	len = fread(text, 1, 65535, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

static char *as_text(const struct mgpu_field *fields, const void *info)
{
	text_fields = fields;
	return printed(print_fields, info);
}

static void check_line(const char *text, const char *line)
{
	size_t len = strlen(line);
	const char *at = text;
	bool found = false;

	while (!found && (at = strstr(at, line))) {
		found = (at == text || at[-1] == '\n') && at[len] == '\n';
		at++;
	}
	if (!TAP_CHECK(found))
		tap_diag("no line '%s'", line);
}

static void vgpu_text(void)
{
	struct mgpu_vgpu_info vgpu = full_vgpu();
	char *text = as_text(mgpu_vgpu_fields, &vgpu);

	check_line(text, "fps-limit:           none");
	check_line(text, "gpu-limit:           30.5%");
	check_line(text, "gpu-period:          100ms");
	check_line(text, "gpu-burst:           500us");
	check_line(text, "tgid:                -");
	check_line(text, "  engine-time:       2.500000 s (2.5 ms per job)");
	check_line(text, "  queue-time:        0.400000 s (400 us per job)");
	check_line(text, "  throttled-time:    0.001000 s");
	check_line(text, "  limited-time:      0.002000 s");
	check_line(text, "  limited:           5");
	check_line(text, "  preempted:         7");
	check_line(text, "  timeouts:          1");
	free(text);

	vgpu.gpu_limit = 0;
	vgpu.stats.jobs = 0;
	text = as_text(mgpu_vgpu_fields, &vgpu);
	check_line(text, "gpu-limit:           none");
	/* no mean of nothing */
	check_line(text, "  queue-time:        0.400000 s");
	free(text);
}

static void hist_text(void)
{
	struct mgpu_vgpu_info vgpu = full_vgpu();
	char *text = as_text(mgpu_vgpu_fields, &vgpu);

	check_line(text,
		   "frame-interval-hist: 100, p50 24.58 ms, p99 32.77 ms (as if spread evenly over a bucket)");
	check_line(text, "   8.192 ms to 16.38 ms           1  #");
	check_line(text,
		   "   16.38 ms to 32.77 ms          98  ########################################");
	check_line(text, "   32.77 ms to 65.54 ms           0");
	check_line(text, "   65.54 ms to 131.1 ms           1  #");
	TAP_CHECK(!strstr(text, "131.1 ms to"));
	TAP_CHECK(!strstr(text, "to 8.192 ms"));
	check_line(text, "latency-hist: none yet");
	free(text);

	memset(vgpu.latency_hist, 0, sizeof(vgpu.latency_hist));
	vgpu.latency_hist[0] = 1;
	vgpu.latency_hist[MGPU_HIST_BUCKETS - 1] = 99;
	vgpu.present &= ~PRESENT(MGPU_A_VGPU_FRAME_INTERVAL_HIST);
	text = as_text(mgpu_vgpu_fields, &vgpu);
	check_line(text, "frame-interval-hist: -");
	check_line(text,
		   "latency-hist: 100, p50 at least 8.389 s, p99 at least 8.389 s (as if spread evenly over a bucket)");
	check_line(text, "       0 us to 2 us               1  #");
	check_line(text,
		   "    8.389 s to any time          99  ########################################");
	free(text);
}

static struct mgpu_dev_info full_dev(void)
{
	struct mgpu_dev_info dev = {
		.present = UINT32_MAX,
		.name = "mgpu_soft.0",
		.policy = "weighted",
		.builtin_policy = "weighted",
		.job_timeout = 2500,
		.policy_exit = {
			.present = ~PRESENT(MGPU_A_POLICY_EXIT_VGPU_ID),
			.kind = MGPU_POLICY_EXIT_KIND_STALLED,
			.code = -ETIMEDOUT,
			.policy = "edf",
			.message = "nobody was picked for 1 s",
		},
	};

	return dev;
}

static void dev_text(void)
{
	struct mgpu_dev_info dev = full_dev();
	char *text = as_text(mgpu_dev_fields, &dev);

	check_line(text, "policy:              weighted");
	check_line(text, "builtin-policy:      weighted");
	check_line(text, "job-timeout:         2.5s");
	check_line(text, "policy-exit:");
	check_line(text, "  kind:              stalled");
	check_line(text, "  code:              -110 (Connection timed out)");
	check_line(text, "  policy:            edf");
	check_line(text, "  vgpu-id:           -");
	check_line(text, "  message:           nobody was picked for 1 s");
	free(text);

	dev.present &= ~PRESENT(MGPU_A_DEV_POLICY_EXIT);
	text = as_text(mgpu_dev_fields, &dev);
	check_line(text, "policy-exit:         -");
	free(text);

	/* of a module that is newer than gpuctl */
	dev = full_dev();
	dev.policy_exit.kind = 77;
	dev.policy_exit.code = 0;
	text = as_text(mgpu_dev_fields, &dev);
	check_line(text, "  kind:              77");
	check_line(text, "  code:              0");
	free(text);
}

static void check_event(const struct mgpu_event *event, const char *want)
{
	char *text = printed(print_event, event);

	TAP_STR(text, want);
	free(text);
}

static void events_text(void)
{
	struct mgpu_event event = {
		.cmd = MGPU_CMD_VGPU_HUNG_NTF,
		.vgpu = {
			.present = UINT32_MAX,
			.id = 3,
			.uuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001",
			.dev_name = "mgpu_soft.0",
			.type = "small",
			.tgid = 4711,
		},
	};

	check_event(&event,
		    "hung    vgpu 3 83b8f4f2-509f-382f-3c1e-e6bfe0fa1001 dev mgpu_soft.0 type small pid 4711\n");
	event.cmd = MGPU_CMD_VGPU_REMOVED_NTF;
	event.vgpu.present = ~PRESENT(MGPU_A_VGPU_TGID);
	check_event(&event,
		    "removed vgpu 3 83b8f4f2-509f-382f-3c1e-e6bfe0fa1001 dev mgpu_soft.0 type small\n");

	event.cmd = MGPU_CMD_DEV_POLICY_NTF;
	event.dev = full_dev();
	check_event(&event,
		    "policy  dev 0 mgpu_soft.0 policy weighted\n");
	event.cmd = MGPU_CMD_DEV_POLICY_EXIT_NTF;
	check_event(&event,
		    "policy-exit dev 0 mgpu_soft.0 policy weighted ended edf kind stalled code -110: nobody was picked for 1 s\n");
	event.dev.policy_exit.present = UINT32_MAX;
	event.dev.policy_exit.vgpu_id = 12;
	event.dev.policy_exit.kind = 99;
	check_event(&event,
		    "policy-exit dev 0 mgpu_soft.0 policy weighted ended edf kind 99 code -110 vgpu 12: nobody was picked for 1 s\n");
}

static struct json_object *get(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(object, key, &value))
		tap_diag("no key '%s'", key);
	return value;
}

/* Each key is a name of the specification, and nothing else is there. */
static void check_keys(struct json_object *object,
		       const struct mgpu_field *fields)
{
	int nr = 0;

	for (; fields->attr; fields++, nr++)
		TAP_CHECK(json_object_object_get_ex(object, fields->name,
						    NULL));
	TAP_EQ(json_object_object_length(object), nr);
}

static void vgpu_json(void)
{
	struct mgpu_vgpu_info vgpu = full_vgpu();
	struct json_object *object = out_object(mgpu_vgpu_fields, &vgpu);
	struct json_object *hist;

	check_keys(object, mgpu_vgpu_fields);
	check_keys(get(object, "stats"), mgpu_stats_fields);
	TAP_EQ(json_object_get_int64(get(object, "gpu-limit")), 305000);
	TAP_EQ(json_object_get_int64(get(object, "gpu-period")), 100000);
	TAP_EQ(json_object_get_int64(get(object, "gpu-burst")), 500);
	TAP_CHECK(!get(object, "tgid"));
	hist = get(object, "frame-interval-hist");
	TAP_NEED(json_object_is_type(hist, json_type_array));
	TAP_EQ(json_object_array_length(hist), MGPU_HIST_BUCKETS);
	TAP_EQ(json_object_get_int64(json_object_array_get_idx(hist, 14)), 98);
	TAP_EQ(json_object_get_int64(json_object_array_get_idx(hist, 15)), 0);
	json_object_put(object);

	/* unknown is not empty */
	vgpu.present &= ~PRESENT(MGPU_A_VGPU_LATENCY_HIST);
	object = out_object(mgpu_vgpu_fields, &vgpu);
	TAP_CHECK(!get(object, "latency-hist"));
	json_object_put(object);
}

static void dev_json(void)
{
	struct mgpu_dev_info dev = full_dev();
	struct json_object *object = out_object(mgpu_dev_fields, &dev);
	struct json_object *why;

	check_keys(object, mgpu_dev_fields);
	TAP_EQ(json_object_get_int(get(object, "job-timeout")), 2500);
	why = get(object, "policy-exit");
	check_keys(why, mgpu_policy_exit_fields);
	TAP_STR(json_object_get_string(get(why, "kind")), "stalled");
	TAP_EQ(json_object_get_int(get(why, "code")), -ETIMEDOUT);
	TAP_CHECK(!get(why, "vgpu-id"));
	json_object_put(object);

	dev.present &= ~PRESENT(MGPU_A_DEV_POLICY_EXIT);
	object = out_object(mgpu_dev_fields, &dev);
	TAP_CHECK(!get(object, "policy-exit"));
	json_object_put(object);
}

static void values(void)
{
	static const struct {
		const char *(*out)(char *buf, size_t size, uint64_t value);
		uint64_t value;
		const char *want;
	} t[] = {
		{ out_fps, 30000, "30" },
		{ out_fps, 29970, "29.97" },
		{ out_fps, 1001, "1.001" },
		{ out_fps, 0, "0" },
		{ out_share, 1000000, "100%" },
		{ out_share, 305000, "30.5%" },
		{ out_share, 333333, "33.3333%" },
		{ out_share, 1000, "0.1%" },
		{ out_share, 1001, "0.1001%" },
		{ out_us, 0, "0us" },
		{ out_us, 500, "500us" },
		{ out_us, 1000, "1ms" },
		{ out_us, 1001, "1.001ms" },
		{ out_us, 100000, "100ms" },
		{ out_us, 1000000, "1s" },
		{ out_us, 1000001, "1.000001s" },
		{ out_us, 60000000, "60s" },
	};
	char buf[OUT_CELL];
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		TAP_STR(t[i].out(buf, sizeof(buf), t[i].value), t[i].want);
}

int main(void)
{
	tap_run(values, "values are written as they are read, without loss");
	tap_run(vgpu_text, "a vGPU's settings and counters have units");
	tap_run(hist_text, "histograms are bars with quantiles");
	tap_run(dev_text, "a device tells its policy and how the last one ended");
	tap_run(events_text, "events say which VM hung and how a policy ended");
	tap_run(vgpu_json, "a vGPU in JSON has the specification's names");
	tap_run(dev_json, "a device in JSON has the specification's names");
	return tap_done();
}
