// SPDX-License-Identifier: GPL-2.0-only
/* Test gpuctl's output of vGPUs, devices and contexts, as text and as JSON. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "gpuctl.h"
#include "tap.h"

#define PRESENT(attr)	MGPU_HAS(attr)

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
		.mode_width = 1280,
		.mode_height = 720,
		.quarantine = 1,
		.stats = {
			.present = UINT64_MAX,
			.jobs = 1000,
			.engine_ns = 2500000000,
			.queue_ns = 400000000,
			.throttled_ns = 1000000,
			.limited_ns = 2000000,
			.limited = 5,
			.preempted = 7,
			.timeouts = 1,
			.hangs = 2,
		},
		.frame_interval_hist = { [13] = 1, [14] = 98, [16] = 1 },
	};

	return vgpu;
}

static const struct mgpu_field *text_fields;

static void print_fields(const void *info)
{
	const struct gpuctl text = { .json = false };

	out_info(&text, text_fields, info);
}

static const char *event_vm = "-";

static void print_event(const void *event)
{
	out_event(event, event_vm);
}

/* Return what @print prints of @info; the caller frees it. */
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
	check_line(text, "gpu-limit:           30.5%, in force");
	check_line(text, "gpu-period:          100ms");
	check_line(text, "gpu-burst:           500us");
	check_line(text, "mode-width:          1280");
	check_line(text, "mode-height:         720");
	check_line(text, "tgid:                -");
	check_line(text, "  engine-time:       2.500000 s (2.5 ms per job)");
	check_line(text, "  queue-time:        0.400000 s (400 us per job)");
	check_line(text, "  throttled-time:    0.001000 s");
	check_line(text, "  limited-time:      0.002000 s");
	check_line(text, "  limited:           5");
	check_line(text, "  preempted:         7");
	check_line(text, "  timeouts:          1");
	check_line(text, "  hangs:             2");
	check_line(text, "quarantine:          on");
	free(text);

	vgpu.gpu_target = 305000;
	text = as_text(mgpu_vgpu_fields, &vgpu);
	check_line(text, "gpu-limit:           30.5%, in force");
	check_line(text, "gpu-target:          30.5%");
	free(text);
	vgpu.gpu_target = 200000;
	text = as_text(mgpu_vgpu_fields, &vgpu);
	check_line(text, "gpu-limit:           30.5%");
	check_line(text, "gpu-target:          20%, in force");
	free(text);

	vgpu.gpu_limit = 0;
	vgpu.gpu_target = 0;
	vgpu.quarantine = 0;
	vgpu.stats.jobs = 0;
	text = as_text(mgpu_vgpu_fields, &vgpu);
	check_line(text, "gpu-limit:           none");
	check_line(text, "quarantine:          off");
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
		.present = UINT64_MAX,
		.name = "mgpu_soft.0",
		.policy = "weighted",
		.builtin_policy = "weighted",
		.job_timeout = 2500,
		.hang_limit = 3,
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
	check_line(text, "hang-limit:          3");
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

static struct mgpu_ctx full_ctx(void)
{
	struct timespec ts;
	struct mgpu_ctx ctx = {
		.present = UINT64_MAX,
		.vgpu_id = 3,
		.id = 12,
		.name = "a b",
		.state = MGPU_CTX_STATE_RUNNING,
		.op = "matmul",
		.slots = 2,
		.slots_allowed = 3,
		.slots_wanted = 4,
		.queued = 5,
		.idempotent = 1,
		.job_inst = 1000,
		.job_inst_done = 375,
		.job_bytes = 3 << 20,
		.live_bytes = 65536,
		.engine_ns = 2500000000,
		.switch_ns = 1000,
	};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ctx.arrived_ns = (uint64_t)(ts.tv_sec - 1) * 1000000000 +
			 (uint64_t)ts.tv_nsec;
	return ctx;
}

static void ctx_text(void)
{
	struct mgpu_ctx ctx = full_ctx();
	char *text = as_text(mgpu_ctx_fields, &ctx);
	const char *label = "\narrived-time:        ";
	const char *at = strstr(text, label);
	double ago;
	char *end;

	check_line(text, "vgpu-id:             3");
	check_line(text, "name:                a b");
	check_line(text, "state:               running");
	check_line(text, "op:                  matmul");
	check_line(text, "slots-wanted:        4");
	check_line(text, "idempotent:          yes");
	check_line(text, "job-bytes:           3145728 (3.0 MiB)");
	check_line(text, "live-bytes:          65536 (64.0 KiB)");
	check_line(text, "engine-time:         2.500000 s");
	check_line(text, "switch-time:         0.000001 s");
	TAP_NEED(at);
	ago = strtod(at + strlen(label), &end);
	TAP_CHECK(ago >= 1 && ago < 60);
	TAP_CHECK(!strncmp(end, " s ago\n", 7));
	free(text);

	/* without a job, and of a module that is newer than gpuctl */
	ctx.present &= ~PRESENT(MGPU_A_CTX_OP);
	ctx.arrived_ns = 0;
	ctx.state = 77;
	text = as_text(mgpu_ctx_fields, &ctx);
	check_line(text, "state:               77");
	check_line(text, "op:                  -");
	check_line(text, "arrived-time:        -");
	free(text);

	/* of the future: no negative time */
	ctx.arrived_ns = UINT64_MAX;
	text = as_text(mgpu_ctx_fields, &ctx);
	check_line(text, "arrived-time:        0.000000 s ago");
	free(text);
}

static void ctx_values(void)
{
	struct mgpu_ctx ctx = full_ctx();
	char buf[OUT_CELL];

	TAP_STR(out_state(&ctx), "running");
	TAP_STR(out_slots(buf, sizeof(buf), &ctx), "2/4");
	TAP_NEAR(out_progress(&ctx), 0.375, 1e-12);
	/* flushed jobs may have been counted twice */
	ctx.job_inst_done = 2000;
	TAP_NEAR(out_progress(&ctx), 1, 0);
	ctx.job_inst = 0;
	TAP_CHECK(isnan(out_progress(&ctx)));
	ctx.job_inst = 1000;
	ctx.present &= ~PRESENT(MGPU_A_CTX_OP);
	TAP_CHECK(isnan(out_progress(&ctx)));
	TAP_STR(out_slots(buf, sizeof(buf), &ctx), "-");
	ctx.state = UINT32_MAX;
	TAP_STR(out_state(&ctx), "?");
	ctx.state = 0;
	TAP_STR(out_state(&ctx), "idle");
	ctx.present = 0;
	TAP_STR(out_state(&ctx), "?");
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
			.present = UINT64_MAX,
			.id = 3,
			.uuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001",
			.dev_name = "mgpu_soft.0",
			.type = "small",
			.tgid = 4711,
		},
	};

	check_event(&event,
		    "hung    vgpu 3 83b8f4f2-509f-382f-3c1e-e6bfe0fa1001 dev mgpu_soft.0 type small pid 4711\n");
	event_vm = "web-1";
	check_event(&event,
		    "hung    vgpu 3 83b8f4f2-509f-382f-3c1e-e6bfe0fa1001 dev mgpu_soft.0 type small pid 4711 vm web-1\n");
	event_vm = "-";
	event.cmd = MGPU_CMD_VGPU_QUARANTINE_NTF;
	event.vgpu.quarantine = 1;
	check_event(&event,
		    "quarantine vgpu 3 83b8f4f2-509f-382f-3c1e-e6bfe0fa1001 dev mgpu_soft.0 type small pid 4711 on\n");
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
	event.dev.policy_exit.present = UINT64_MAX;
	event.dev.policy_exit.vgpu_id = 12;
	event.dev.policy_exit.kind = 99;
	check_event(&event,
		    "policy-exit dev 0 mgpu_soft.0 policy weighted ended edf kind 99 code -110 vgpu 12: nobody was picked for 1 s\n");
}

static void ctx_events_text(void)
{
	struct mgpu_event event = {
		.cmd = MGPU_CMD_CTX_NTF,
		.ctx = full_ctx(),
	};

	check_event(&event,
		    "ctx     vgpu 3 ctx 12 running op matmul slots 2/4 queued 5 name a b\n");
	event.ctx.present &= ~PRESENT(MGPU_A_CTX_OP);
	event.ctx.state = MGPU_CTX_STATE_IDLE;
	event.ctx.queued = 0;
	event.ctx.name[0] = '\0';
	check_event(&event, "ctx     vgpu 3 ctx 12 idle queued 0\n");
}

static struct json_object *get(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(object, key, &value))
		tap_diag("no key '%s'", key);
	return value;
}

/* Each attribute is there under its key, and nothing else. */
static void check_keys(struct json_object *object,
		       const struct mgpu_field *fields)
{
	char key[MGPU_KEY_LEN];
	int nr = 0;

	for (; fields->attr; fields++, nr++)
		TAP_CHECK(json_object_object_get_ex(object, mgpu_field_key(fields, key),
						    NULL));
	TAP_EQ(json_object_object_length(object), nr);
}

static void is(struct json_object *object, const char *key, const char *want)
{
	TAP_STR(json_object_to_json_string_ext(get(object, key), JSON_C_TO_STRING_PLAIN), want);
}

static void vgpu_json(void)
{
	struct mgpu_vgpu_info vgpu = full_vgpu();
	struct json_object *object = out_object(mgpu_vgpu_fields, &vgpu);
	struct json_object *hist;

	check_keys(object, mgpu_vgpu_fields);
	check_keys(get(object, "stats"), mgpu_stats_fields);
	is(object, "gpu_limit_share", "0.305");
	is(object, "gpu_period_s", "0.1");
	is(object, "gpu_burst_s", "0.0005");
	is(object, "mode_width_px", "1280");
	is(object, "mode_height_px", "720");
	is(object, "mem_used_bytes", "0");
	is(object, "quarantine", "true");
	is(get(object, "stats"), "engine_s", "2.5");
	is(get(object, "stats"), "queue_s", "0.4");
	is(get(object, "stats"), "limited", "5");
	is(get(object, "stats"), "bytes", "0");
	/* no limit is null */
	TAP_CHECK(!get(object, "limit_fps"));
	TAP_CHECK(!get(object, "tgid"));
	hist = get(object, "frame_interval_hist");
	TAP_NEED(json_object_is_type(hist, json_type_array));
	TAP_EQ(json_object_array_length(hist), MGPU_HIST_BUCKETS);
	TAP_EQ(json_object_get_int64(json_object_array_get_idx(hist, 14)), 98);
	TAP_EQ(json_object_get_int64(json_object_array_get_idx(hist, 15)), 0);
	json_object_put(object);

	/* unknown is not empty */
	vgpu.present &= ~PRESENT(MGPU_A_VGPU_LATENCY_HIST);
	object = out_object(mgpu_vgpu_fields, &vgpu);
	TAP_CHECK(!get(object, "latency_hist"));
	json_object_put(object);

	vgpu.fps_limit = 29970;
	vgpu.gpu_limit = 0;
	vgpu.stats.engine_ns = UINT64_MAX;
	object = out_object(mgpu_vgpu_fields, &vgpu);
	is(object, "limit_fps", "29.97");
	TAP_CHECK(!get(object, "gpu_limit_share"));
	/* each nanosecond */
	is(get(object, "stats"), "engine_s", "18446744073.709551615");
	json_object_put(object);

	/* of a module that does not tell the limit: null would say that there is none */
	vgpu.present &= ~PRESENT(MGPU_A_VGPU_FPS_LIMIT);
	object = out_object(mgpu_vgpu_fields, &vgpu);
	TAP_CHECK(!json_object_object_get_ex(object, "limit_fps", NULL));
	json_object_put(object);
}

static void dev_json(void)
{
	struct mgpu_dev_info dev = full_dev();
	struct json_object *object = out_object(mgpu_dev_fields, &dev);
	struct json_object *why;

	check_keys(object, mgpu_dev_fields);
	is(object, "job_timeout_s", "2.5");
	is(object, "hang_limit", "3");
	is(object, "engine_on_cpu", "false");
	why = get(object, "policy_exit");
	check_keys(why, mgpu_policy_exit_fields);
	TAP_STR(json_object_get_string(get(why, "kind")), "stalled");
	TAP_EQ(json_object_get_int(get(why, "code")), -ETIMEDOUT);
	TAP_CHECK(!get(why, "vgpu_id"));
	json_object_put(object);

	dev.present &= ~PRESENT(MGPU_A_DEV_POLICY_EXIT);
	object = out_object(mgpu_dev_fields, &dev);
	TAP_CHECK(!get(object, "policy_exit"));
	json_object_put(object);
}

static void ctx_json(void)
{
	struct mgpu_ctx ctx = full_ctx();
	struct json_object *object = out_object(mgpu_ctx_fields, &ctx);

	check_keys(object, mgpu_ctx_fields);
	/* attributes of requests are not in answers */
	TAP_CHECK(!json_object_object_get_ex(object, "method", NULL));
	TAP_STR(json_object_get_string(get(object, "state")), "running");
	TAP_CHECK(json_object_get_boolean(get(object, "idempotent")));
	is(object, "job_inst", "1000");
	is(object, "live_bytes", "65536");
	is(object, "switch_s", "0.000001");
	json_object_put(object);

	ctx.present &= ~PRESENT(MGPU_A_CTX_OP);
	object = out_object(mgpu_ctx_fields, &ctx);
	TAP_CHECK(!get(object, "op"));
	json_object_put(object);
}

static void rates(void)
{
	static const struct {
		double rate;
		const char *want;
	} t[] = {
		{ 0, "0.00" }, { 9.99, "9.99" }, { 9.996, "10.0" },
		{ 99.94, "99.9" }, { 99.96, "100" }, { 999.4, "999" },
		{ 999.6, "1.00k" }, { 1234567, "1.23M" }, { 25.5e9, "25.5G" },
		{ 999.7e9, "1.00T" }, { 123e15, "123P" }, { 1e19, "10000P" },
	};
	char buf[OUT_CELL];
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		TAP_STR(out_rate(buf, sizeof(buf), t[i].rate), t[i].want);
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

/* ---- tables ---- */

static const char *const table_columns[] = {
	">ID", "~UUID", "~VM", "-DEV", "->MEM", ">FPS", NULL
};

static void print_table(const void *vm)
{
	struct table table = { .columns = table_columns };

	table_cell(&table, "7");
	table_cell(&table, "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001");
	table_cell(&table, "%s", (const char *)vm);
	table_cell(&table, "mgpu_soft.0");
	table_cell(&table, "32 MiB");
	table_cell(&table, "30");
	table_colour(&table, OUT_BAD);
	table_print(&table);
}

static void no_terminal(void)
{
	struct table empty = { .columns = table_columns };
	char *text;

	/* whatever is wanted, and however long */
	setenv("COLUMNS", "20", 1);
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	text = printed(print_table, "web");
	TAP_STR(text, "ID  UUID                                  VM   DEV             MEM  FPS\n"
		      " 7  83b8f4f2-509f-382f-3c1e-e6bfe0fa1001  web  mgpu_soft.0  32 MiB   30\n");
	free(text);
	text = printed(print_table, "a\033[2Jb");
	TAP_CHECK(!strchr(text, '\033'));
	free(text);
	table_print(&empty);
	fflush(stdout);
}

/* Print a table on a terminal of so many columns. */
static void on_terminal(char text[1024], unsigned short columns, const char *vm)
{
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	int master, slave, old = dup(STDOUT_FILENO);
	size_t len = 0;
	ssize_t n;

	TAP_NEED(!openpty(&master, &slave, NULL, NULL, &size));
	fflush(stdout);
	if (dup2(slave, STDOUT_FILENO) < 0)
		abort();
	print_table(vm);
	fflush(stdout);
	if (dup2(old, STDOUT_FILENO) < 0)
		abort();
	close(old);
	close(slave);
	/* to the end, which is an error of a terminal */
	while (len < 1023 && (n = read(master, text + len, 1023 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(master);
}

static void terminal(void)
{
	char text[1024], line[64];

	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", "1", 1);
	on_terminal(text, 80, "web");
	TAP_CHECK(strstr(text, "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001  web  mgpu_soft.0"));
	TAP_CHECK(strstr(text, "mgpu_soft.0  32 MiB   30"));
	TAP_CHECK(!strchr(text, '\033'));
	/* the UUID and the name are cut, to what names a vGPU */
	on_terminal(text, 50, "a rather long name of a VM");
	TAP_CHECK(strstr(text, "mgpu_soft.0  32 MiB   30"));
	TAP_CHECK(strstr(text, " 7  83b8f4f2"));
	TAP_CHECK(strcspn(text, "\r\n") <= 50);
	/* other columns are dropped, from the right */
	on_terminal(text, 40, "a rather long name of a VM");
	TAP_CHECK(!strstr(text, "MEM") && strstr(text, "DEV"));
	on_terminal(text, 30, "a rather long name of a VM");
	TAP_CHECK(!strstr(text, "MEM") && !strstr(text, "DEV"));
	snprintf(line, sizeof(line), "%.*s", 12, strstr(text, " 7"));
	TAP_STR(line, " 7  83b8f4f2");
	/* it cannot be as narrow as that */
	on_terminal(text, 5, "web");
	TAP_CHECK(strstr(text, "83b"));

	unsetenv("NO_COLOR");
	on_terminal(text, 80, "web");
	TAP_CHECK(strstr(text, "\033[31m"));
	setenv("NO_COLOR", "", 1);
	on_terminal(text, 80, "web");
	TAP_CHECK(strchr(text, '\033') != NULL);
	setenv("TERM", "dumb", 1);
	on_terminal(text, 80, "web");
	TAP_CHECK(!strchr(text, '\033'));
}

int main(void)
{
	tap_run(values, "values are written as they are read, without loss");
	tap_run(rates, "rates have three digits and a unit");
	tap_run(vgpu_text, "a vGPU's settings and counters have units");
	tap_run(hist_text, "histograms are bars with quantiles");
	tap_run(dev_text, "a device tells its policy and how the last one ended");
	tap_run(events_text, "events say which VM hung and how a policy ended");
	tap_run(ctx_text, "a context's job and counters have units");
	tap_run(ctx_values, "a context's state is a word and a fraction");
	tap_run(ctx_events_text, "events of contexts are lines");
	tap_run(vgpu_json, "a vGPU in JSON has a key with its unit for each attribute");
	tap_run(dev_json, "a device in JSON has a key with its unit for each attribute");
	tap_run(ctx_json, "a context in JSON has a key with its unit for each attribute");
	tap_run(no_terminal, "a table is whole, and plain, where there is no terminal");
	tap_run(terminal, "a table fits its terminal, whose colours NO_COLOR turns off");
	return tap_done();
}
