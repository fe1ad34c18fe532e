// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU time of the response network, in user space, without a device. Its weights are random:
 * the time does not depend on them.
 *
 *   bench-learn-time [--quick] [--json FILE]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/bench.h"
#include "../common/stats.h"
#include "learn_question.h"
#include "network_train.h"

#define GROUPS		63u		/* of LEARN_CLIENTS: 1,000 clients and more */
#define BATCH_NS	(200 * US)	/* that one reading of the clock is spread over */

struct bench {
	FILE *json;
	bool quick;
	void *model;
	struct learn_input group[GROUPS];
};

/**
 * struct scene - questions whose answers are timed together
 * @clients: number of clients in all groups
 * @all: each client is served, else the first one
 * @limit_us: most CPU time of the answers, microseconds; 0 for no limit
 */
struct scene {
	unsigned int clients;
	bool all;
	double limit_us;
};

static const struct scene scenes[] = {
	{ 1, true, 0 },
	{ LEARN_CLIENTS, false, 0 },
	{ LEARN_CLIENTS, true, 1000 },
	{ 1000, true, 10000 },
};

static void make_groups(struct bench *b, unsigned int clients)
{
	rng = clients;
	for (unsigned int g = 0, left = clients; left; g++) {
		size_t n = left < LEARN_CLIENTS ? left : LEARN_CLIENTS;

		random_question(&b->group[g], n);
		/* a group is a device */
		for (size_t j = 0; j < n; j++)
			for (size_t k = 0; k < n; k++)
				b->group[g].distance[j][k] = j != k;
		left -= (unsigned int)n;
	}
}

/* Return a sum over the answers, so that the compiler cannot omit them. */
static double serve(struct bench *b, const struct scene *s)
{
	double share[LEARN_CLIENTS][LEARN_RESOURCES], sum = 0;

	for (unsigned int g = 0; g * LEARN_CLIENTS < s->clients; g++) {
		if (s->all)
			learn_network_serve(b->model, &b->group[g], share);
		else
			learn_network.share(b->model, &b->group[g], share[0]);
		sum += share[0][0];
	}
	return sum;
}

static int measure(struct bench *b, const struct scene *s, int fd)
{
	unsigned int rounds = b->quick ? 5 : 101, batch = 1, answers = s->all ? s->clients : 1;
	double *us = calloc(rounds, sizeof(*us)), sum, instructions = 0, median;
	char text[32] = "null", limit[64] = "null, \"kept\": null";
	uint64_t t, from;

	if (!us)
		return -ENOMEM;
	make_groups(b, s->clients);
	sum = serve(b, s);
	t = self_cpu_ns();
	sum += serve(b, s);
	t = self_cpu_ns() - t;
	if (t < BATCH_NS)
		batch = (unsigned int)(BATCH_NS / (t + 1)) + 1;
	for (unsigned int i = 0; i < rounds; i++) {
		from = instructions_read(fd);
		t = self_cpu_ns();
		for (unsigned int k = 0; k < batch; k++)
			sum += serve(b, s);
		us[i] = (double)(self_cpu_ns() - t) / 1e3 / batch;
		instructions += (double)(instructions_read(fd) - from) / batch / rounds;
	}
	median = stats_median(us, rounds);
	if (fd >= 0)
		snprintf(text, sizeof(text), "%.0f", instructions);
	if (s->limit_us > 0)
		snprintf(limit, sizeof(limit), "%.0f, \"kept\": %s", s->limit_us,
			 median <= s->limit_us ? "true" : "false");
	result_to(b->json, "time",
		  "\"clients\": %u, \"questions\": %u, \"us\": %.1f, \"p10_us\": %.1f, \"p90_us\": %.1f, \"us_per_question\": %.2f, \"instructions\": %s, \"limit_us\": %s, \"samples\": %u, \"finite\": %s",
		  s->clients, answers, median, stats_percentile(us, rounds, 0.1),
		  stats_percentile(us, rounds, 0.9), median / answers, text, limit, rounds,
		  isfinite(sum) ? "true" : "false");
	free(us);
	return 0;
}

static int part_time(struct bench *b)
{
	int ret = 0, fd = instructions_open();

	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]) && !ret; i++)
		ret = measure(b, &scenes[i], fd);
	if (fd >= 0)
		close(fd);
	return ret;
}

static int load(struct bench *b)
{
	static struct network_weights w;
	char why[256] = "out of memory", *payload;
	size_t size;
	int ret = -ENOMEM;

	network_init(&w, NETWORK_FORM_B, 1);
	payload = learn_network_write(&w, &size);
	if (payload)
		ret = learn_network.load(&b->model, payload, size, why, sizeof(why));
	if (ret)
		complain("%s", why);
	free(payload);
	return ret;
}

static const char *processor(void)
{
	if (__builtin_cpu_supports("x86-64-v4"))
		return "x86-64-v4";
	return __builtin_cpu_supports("x86-64-v3") ? "x86-64-v3" : "x86-64";
}

int main(int argc, char **argv)
{
	static const struct bench_part parts[] = {
		{ .name = "time", .run = part_time, .no_device = true },
	};
	static struct bench b;
	struct bench_options o = {
		.usage = "usage: bench-learn-time [--quick] [--json FILE] [time]\n",
		.parts = parts, .nr_parts = 1, .json = stdout,
	};
	int ret = bench_options(&o, argc, argv);

	if (ret >= 0)
		return ret;
	b.json = o.json;
	b.quick = o.quick;
	conditions_to(b.json, b.quick, "\"vectors\": \"%s\"", processor());
	ret = load(&b);
	if (!ret)
		ret = parts[0].run(&b);
	if (!ret)
		ret = results_end(b.json);
	learn_network.free(b.model);
	return ret != 0;
}
