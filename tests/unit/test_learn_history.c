// SPDX-License-Identifier: GPL-2.0-only
/* Histories, and the samples that are made of them. */
#include "checksum.h"
#include "examples.h"
#include "tap.h"

#define LINE_MAX_	2048

static char text[64 * LINE_MAX_];
static size_t used;
static char why[512];

static void begin(void)
{
	used = 0;
	text[0] = '\0';
}

__attribute__((format(printf, 1, 2)))
static void add(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	used += (size_t)vsnprintf(text + used, sizeof(text) - used, fmt, args);
	va_end(args);
}

static void period(double time_s)
{
	add("%s{\"time_s\":%g,\"capacity\":{\"cpu_cores\":4,\"gpu_engines\":1},\"vgpus\":[",
	    used ? "]}\n" : "", time_s);
}

static void vgpu(const char *uuid, unsigned int weight, double fps, double cpu, double gpu)
{
	add("%s{\"uuid\":\"%s\",\"description\":\"game of %s\",\"device\":1,\"weight\":%u,",
	    text[used - 1] == '}' ? "," : "", uuid, uuid, weight);
	add("\"fps\":%g,\"reach_fps\":%s,\"cpu_share\":%g,\"gpu_share\":%g,", fps,
	    fps > 0 ? "1000" : "null", fps * cpu / 4, fps * gpu);
	add("\"cpu_s_per_frame\":%g,\"gpu_s_per_frame\":%g,\"state\":\"%s\"}", cpu, gpu,
	    fps > 0 ? "active" : "closed");
}

static int make(struct examples *x, const struct example_options *o)
{
	FILE *f;
	int ret;

	if (used && text[used - 1] != '\n')
		add("]}\n");
	f = fmemopen(text, used, "r");
	TAP_CHECK(f);
	if (!f)
		return -ENOMEM;
	ret = examples_add(x, f, "history", o, why, sizeof(why));
	fclose(f);
	return ret;
}

static const struct example_options all = {
	.horizon = 1, .kinds = (1u << EXAMPLE_KINDS) - 1, .part = 0,
	.fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
};

/* Two VMs, and a third one in the last period: all need the engine most. */
static void three_vms(double last)
{
	period(1);
	vgpu("a", 100, 50, 0.001, 0.010);
	vgpu("b", 100, 25, 0.001, 0.020);
	vgpu("c", 200, 0, 0, 0);
	period(last);
	vgpu("a", 100, 25, 0.001, 0.010);
	vgpu("b", 100, 12.5, 0.001, 0.020);
	vgpu("c", 200, 12.5, 0.001, 0.040);
}

static void newcomers(void)
{
	struct examples x = { 0 };
	const struct learn_sample *s;

	begin();
	three_vms(2);
	TAP_EQ(make(&x, &all), 0);
	TAP_EQ(x.nr, 3);
	TAP_NEED(x.nr == 3);
	TAP_EQ(x.kind[0], EXAMPLE_ACTIVE);
	TAP_EQ(x.kind[2], EXAMPLE_NEW);
	s = &x.sample[2];
	TAP_EQ(s->in.n, 3);
	TAP_CHECK(!strcmp(s->in.task[0].text, "game of c"));
	TAP_NEAR(s->in.task[0].periods, 0, 0);
	TAP_NEAR(s->in.task[0].weight, 200, 0);
	TAP_NEAR(s->in.task[1].cost[LEARN_ENGINE], 0.01, 1e-9);
	TAP_NEAR(s->in.task[1].use[LEARN_ENGINE], 0.5, 1e-9);
	/* the plan of the next period, which knows all costs: shares by weight */
	TAP_NEAR(s->label[LEARN_ENGINE][0], 0.5, 1e-3);
	TAP_NEAR(s->label[LEARN_ENGINE][1], 0.25, 1e-3);
	TAP_NEAR(s->label[LEARN_ENGINE][2], 0.25, 1e-3);
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		float sum = 0;

		for (size_t i = 0; i < LEARN_CLIENTS; i++)
			sum += s->label[g][i];
		TAP_NEAR(sum, 1, 1e-6);
	}
	examples_free(&x);
}

static void kinds(void)
{
	struct example_options o = all;
	struct examples x = { 0 };

	begin();
	three_vms(2);
	o.kinds = 1u << EXAMPLE_NEW | 1u << EXAMPLE_WAKES;
	o.part = 1;
	TAP_EQ(make(&x, &o), 0);
	/* both as if they were new, and as if they woke; and the one that is new */
	TAP_EQ(x.nr, 5);
	for (size_t i = 0; i < x.nr; i++) {
		const struct learn_task *t = &x.sample[i].in.task[0];

		TAP_NEAR(t->fps, 0, 0);
		TAP_NEAR(t->use[LEARN_ENGINE], 0, 0);
		TAP_EQ(x.kind[i] == EXAMPLE_WAKES, t->cost[LEARN_ENGINE] > 0);
	}
	examples_free(&x);
}

static void horizon(void)
{
	struct example_options o = all;
	struct examples x = { 0 };

	begin();
	three_vms(2);
	period(3);
	vgpu("a", 100, 25, 0.001, 0.010);
	o.horizon = 2;
	TAP_EQ(make(&x, &o), 0);
	/* only what is there two periods later has a share */
	TAP_EQ(x.nr, 1);
	TAP_NEAR(x.sample[0].label[LEARN_ENGINE][0], 1, 1e-6);
	examples_free(&x);
}

static void runs(void)
{
	struct examples x = { 0 };
	uint64_t digest;

	begin();
	three_vms(2);
	three_vms(2);
	/* time went back: nothing of the run before counts */
	TAP_EQ(make(&x, &all), 0);
	TAP_EQ(x.runs, 2);
	TAP_EQ(x.nr, 6);
	TAP_EQ(x.run[0], 0);
	TAP_EQ(x.run[5], 1);
	TAP_EQ(x.kind[5], EXAMPLE_NEW);
	digest = x.digest;
	TAP_CHECK(digest && digest != CHECKSUM_START);
	examples_free(&x);
	/* so it is after a break */
	begin();
	three_vms(1000);
	TAP_EQ(make(&x, &all), 0);
	TAP_EQ(x.runs, 2);
	TAP_EQ(x.nr, 0);
	TAP_CHECK(x.digest != digest);
	examples_free(&x);
}

static void refused(const char *line, const char *with)
{
	struct examples x = { 0 };

	begin();
	three_vms(2);
	add("]}\n%s\n", line);
	why[0] = '\0';
	TAP_EQ(make(&x, &all), -EINVAL);
	if (!strstr(why, "history:3: ") || !strstr(why, with))
		TAP_STR(why, with);
	TAP_EQ(x.nr, 3);
	examples_free(&x);
}

#define HEAD "{\"time_s\":3,\"capacity\":{\"cpu_cores\":4,\"gpu_engines\":1},\"vgpus\":["

static void bad_lines(void)
{
	refused("x", "not a JSON object; the line may be incomplete: remove it");
	refused("{\"time_s\":3,\"capac", "not a JSON object");
	refused("[]", "not a JSON object");
	refused("{}", "the line must be of the JSON log of mgpud");
	refused("{\"time_s\":-1,\"capacity\":{},\"vgpus\":[]}", "\"time_s\" must be a number");
	/* more nanoseconds than 64 bits hold */
	refused("{\"time_s\":1e11,\"capacity\":{\"cpu_cores\":4,\"gpu_engines\":1},\"vgpus\":[]}",
		"\"time_s\" must be a number from 0 to 1e+10");
	refused("{\"time_s\":3,\"capacity\":{\"cpu_cores\":\"4\",\"gpu_engines\":1},\"vgpus\":[]}",
		"\"cpu_cores\" must be a number");
	refused(HEAD "1]}", "\"vgpus\" must be an array of objects");
	refused(HEAD "{\"uuid\":7,\"weight\":1,\"state\":\"idle\"}]}", "\"uuid\" must be a string");
	refused(HEAD "{\"uuid\":\"a\",\"weight\":1,\"state\":\"dead\"}]}",
		"\"state\" must be closed, idle or active");
	refused(HEAD "{\"uuid\":\"a\",\"weight\":20000,\"state\":\"idle\"}]}",
		"\"weight\" must be a number from 0 to 10000");
	refused(HEAD "{\"uuid\":\"a\",\"weight\":1,\"state\":\"active\",\"fps\":-3}]}",
		"\"fps\" must be a number");
	refused(HEAD "{\"uuid\":\"a\",\"weight\":1,\"state\":\"active\",\"fps\":null}]}",
		"\"fps\" must be a number");
}

int main(void)
{
	tap_run(newcomers, "a VM that comes is asked for, and the plan by hindsight answers");
	tap_run(kinds, "VMs that are active are asked for as if they were not");
	tap_run(horizon, "plans of later periods answer");
	tap_run(runs, "a run begins when time goes back, and after a break");
	tap_run(bad_lines, "a bad line is named, and what was read before stays");
	return tap_done();
}
