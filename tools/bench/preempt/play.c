// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recorded streams on the real device, under each policy, with mgpud's own
 * preempter.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../../ctl/mgpud/contexts/preempter.h"
#include "play.h"

#define STRETCH		2.5	/* at most */
#define LONGEST_MS	40.0	/* alone on one slot, in the streams */
#define QUICK_LINES	24u

#define BUDGET_NS	(330 * SEC)	/* no further round if it would end later */
#define ROUNDS		5u
#define IN_FLIGHT	28u	/* of a guest: its ring has room for so many */

#define LEARN_NS	SEC

static const struct preempt_ops *const policies[] = {
	&preempt_none, &preempt_always, &preempt_drain, &preempt_flush, &preempt_mgpu,
	&play_clairvoyant,
};

static const char *const names[] = { "tuned", "untuned" };

/* ---- policies ---- */

struct decider {
	pthread_t thread;
	struct preempter *p;
	int stop;
	int ret;
	uint64_t cpu_ns;
	struct mgpu_error err;
};

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * SEC + (uint64_t)ts.tv_nsec;
}

static void *decider(void *arg)
{
	struct decider *d = arg;
	struct pollfd fds[2] = {
		{ .events = POLLIN },
		{ .fd = d->stop, .events = POLLIN },
	};
	uint64_t learn = now_ns() + LEARN_NS, wake, now;
	struct timespec ts;

	while (!d->ret) {
		wake = preempter_wake_ns(d->p);
		wake = wake < learn ? wake : learn;
		now = now_ns();
		wake = wake > now ? wake - now : 0;
		ts = (struct timespec){ (time_t)(wake / SEC), (long)(wake % SEC) };
		fds[0].fd = preempter_fd(d->p);
		fds[0].revents = 0;
		if (ppoll(fds, 2, &ts, NULL) < 0 && errno != EINTR)
			d->ret = -errno;
		if (fds[1].revents)
			break;
		now = now_ns();
		if (!d->ret && now >= learn) {
			d->ret = preempter_learn(d->p, &d->err);
			learn = now + LEARN_NS;
		}
		if (!d->ret && (fds[0].revents || now >= preempter_wake_ns(d->p)))
			d->ret = preempter_run(d->p, &d->err);
	}
	d->cpu_ns = thread_cpu_ns();
	return NULL;
}

static int decider_start(struct decider *d, const struct preempt_ops *ops,
			 const struct preempt_param *param)
{
	struct preempter_config config = PREEMPTER_CONFIG_DEFAULT;
	char why[512];
	int ret;

	memset(d, 0, sizeof(*d));
	config.ops = ops;
	config.param = *param;
	d->stop = eventfd(0, EFD_CLOEXEC);
	if (d->stop < 0)
		return -errno;
	ret = preempter_open(&d->p, &config, true, why, sizeof(why), &d->err);
	if (ret) {
		complain("%s", d->err.text);
		close(d->stop);
		return ret;
	}
	if (why[0])
		complain("%s", why);
	ret = -pthread_create(&d->thread, NULL, decider, d);
	if (ret) {
		preempter_close(d->p);
		close(d->stop);
	}
	return ret;
}

static int decider_stop(struct decider *d, struct preempter_stats *stats)
{
	uint64_t one = 1;

	if (write(d->stop, &one, sizeof(one)) != sizeof(one))
		return -errno;
	pthread_join(d->thread, NULL);
	*stats = *preempter_stats(d->p);
	preempter_close(d->p);
	close(d->stop);
	if (d->ret)
		complain("the preempter stopped: %s", d->err.text);
	return d->ret;
}

/* ---- a stream ---- */

/* The longest that any line may be stretched to. */
static double stretch_for(const struct speeds *s)
{
	double stretch = STRETCH;

	for (uint32_t k = 1; k < PLAY_KINDS; k++) {
		struct job_shape shape = *play_kind(k);
		struct job j;

		for (;; stretch *= 0.95) {
			shape.units = LONGEST_MS * 1.05 * 1e6 * stretch / s->ns_unit[k];
			if (!job_make(&j, &shape, 0, PLAY_IN, PLAY_OUT))
				break;
		}
	}
	return stretch;
}

static int prepare(struct bench *b, struct play *p, const char *name, struct guest *guests,
		   const struct speeds *s)
{
	struct psim_stream *in = calloc(1, sizeof(*in));
	char path[512], why[256];
	int ret;

	if (!in)
		return -ENOMEM;
	p->name = name;
	p->stretch = stretch_for(s);
	snprintf(path, sizeof(path), "%s/%s.csv", b->streams, name);
	ret = psim_read(in, path, why, sizeof(why));
	if (ret)
		complain("%s", why);
	p->n = in->n < PLAY_LINES ? in->n : PLAY_LINES;
	if (b->quick)
		p->n = QUICK_LINES;
	for (size_t i = 0; i < p->n && !ret; i++) {
		const struct psim_job *j = &in->job[i];
		const struct job_shape *kind = play_kind(j->kind);
		struct job_shape shape;

		if (!kind) {
			complain("%s: kind %u is unknown", path, j->kind);
			ret = -EINVAL;
			break;
		}
		shape = *kind;
		shape.slots = j->width;
		shape.units = j->inst / j->ipc / PSIM_HZ * 1e9 * p->stretch /
			s->ns_unit[j->kind];
		ret = job_make(&p->line[i].job, &shape, 0, PLAY_IN, PLAY_OUT);
		if (ret)
			complain("%s: line %zu does not fit", path, i);
		p->line[i].guest = &guests[j->vgpu % PLAY_GUESTS];
		p->line[i].width = j->width < p->line[i].job.tiles ? j->width :
			p->line[i].job.tiles;
		p->line[i].at_ns = (uint64_t)(j->arrival / PSIM_HZ * 1e9);
		p->line[i].line_ns = j->inst / j->ipc / PSIM_HZ * 1e9;
	}
	free(in);
	return ret;
}

/*
 * Every job once, with nothing beside it. They take longer or shorter than was meant:
 * arrivals keep step with them, so that the load is the stream's.
 */
static int alone(struct bench *b, struct play *p)
{
	double measured = 0, meant = 0;
	struct mgpu_ctx c;
	int ret = 0;

	for (size_t i = 0; i < p->n && !ret; i++) {
		struct line *l = &p->line[i];
		uint32_t ctx = (uint32_t)i + 1;

		ret = guest_context(l->guest, ctx);
		if (!ret)
			ret = guest_run(l->guest, ctx, &l->job);
		if (!ret)
			ret = bench_ctx(b, l->guest, ctx, &c);
		if (!ret)
			ret = guest_context_end(l->guest, ctx);
		if (ret)
			break;
		l->alone_ns = (double)c.engine_ns / l->width;
		measured += (double)c.engine_ns;
		meant += l->line_ns;
	}
	if (ret)
		return ret;
	p->stretch = measured / meant;
	for (size_t i = 0; i < p->n; i++)
		p->line[i].at_ns = (uint64_t)((double)p->line[i].at_ns * p->stretch);
	return 0;
}

struct played {
	uint64_t at[PLAY_LINES], end[PLAY_LINES];
	int head[PLAY_LINES];
	double turnaround_ms[PLAY_LINES];
	unsigned int in_flight[PLAY_GUESTS];
	uint64_t late_ns, taken, flushed;
};

static int end_job(struct bench *b, const struct play *p, struct played *y, size_t i)
{
	uint32_t ctx = (uint32_t)i + 1;
	struct mgpu_ctx c;
	int ret;

	ret = bench_ctx(b, p->line[i].guest, ctx, &c);
	if (ret)
		return ret;
	y->taken += c.preemptions;
	y->flushed += c.flushes;
	return guest_context_end(p->line[i].guest, ctx);
}

static int serve(struct bench *b, const struct play *p, struct played *y,
		 struct guest *guests, uint64_t start)
{
	uint64_t end = start + p->line[p->n - 1].at_ns + 2 * BENCH_TIMEOUT_MS * MS, now;
	size_t next = 0, first = 0, left = p->n, i;
	struct pollfd fds[PLAY_GUESTS];
	int ret, answer;
	bool busy, full;

	for (i = 0; i < PLAY_GUESTS; i++)
		fds[i] = (struct pollfd){
			.fd = guests[i].vm.irq[VMM_CONTROL + 1], .events = POLLIN,
		};
	ret = guest_context(p->line[0].guest, 1);
	while (!ret && left) {
		busy = false;
		now = now_ns();
		if (now > end) {
			complain("%s: %zu jobs did not end", p->name, left);
			return -ETIMEDOUT;
		}
		full = next < p->n &&
			y->in_flight[p->line[next].guest - guests] == IN_FLIGHT;
		if (!full && next < p->n && now >= start + p->line[next].at_ns) {
			const struct line *l = &p->line[next];

			y->at[next] = start + l->at_ns;
			if (now - y->at[next] > y->late_ns)
				y->late_ns = now - y->at[next];
			y->in_flight[l->guest - guests]++;
			y->head[next] = guest_submit(l->guest, (uint32_t)next + 1, &l->job);
			ret = y->head[next] < 0 ? y->head[next] : 0;
			next++;
			/* a program has its context before it has work for it */
			if (!ret && next < p->n)
				ret = guest_context(p->line[next].guest, (uint32_t)next + 1);
			busy = true;
		}
		for (i = first; i < next && !ret; i++) {
			if (y->end[i] || !guest_done(p->line[i].guest, y->head[i], &answer))
				continue;
			y->end[i] = now_ns();
			y->in_flight[p->line[i].guest - guests]--;
			left--;
			ret = answer ? answer : end_job(b, p, y, i);
			busy = true;
		}
		while (first < next && y->end[first])
			first++;
		if (busy || ret)
			continue;
		now = now_ns();
		i = 20;
		if (next < p->n && !full) {
			uint64_t at = start + p->line[next].at_ns;

			i = at > now ? (at - now) / MS : 0;
		}
		if (!i) {
			sleep_until(next < p->n ? start + p->line[next].at_ns : now);
			continue;
		}
		poll(fds, PLAY_GUESTS, i < 20 ? (int)i : 20);
		for (i = 0; i < PLAY_GUESTS; i++)
			irq_wait(fds[i].fd, 0);
	}
	return ret;
}

/* Time in which there was work: jobs are in the order in which they came. */
static double busy_ns(const struct play *p, const struct played *y)
{
	uint64_t until = 0;
	double sum = 0;

	for (size_t i = 0; i < p->n; i++) {
		uint64_t from = y->at[i] > until ? y->at[i] : until;

		if (y->end[i] <= from)
			continue;
		sum += (double)(y->end[i] - from);
		until = y->end[i];
	}
	return sum;
}

/* The bound is stretched like all times, but not beyond the kernel's. */
static struct preempt_param param_for(const struct play *p)
{
	struct preempt_param param = PREEMPT_PARAM_DEFAULT;

	param.starve_ns = (uint64_t)fmin((double)PREEMPT_STARVE_NS * p->stretch,
					 MGPU_PREEMPT_MAX_MS * 1e6);
	return param;
}

/* Read what modelled engines counted, "cpu" or "late", nanoseconds; 0 for other engines. */
static double emulation(const char *what)
{
	char path[128];
	double ns = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/platform/" VMM_PARENT "/emulation_%s_ns",
		 what);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%lf", &ns) != 1)
		complain("%s: not a number", path);
	fclose(f);
	return ns;
}

static int play(struct bench *b, const struct play *p, struct guest *guests,
		const struct speeds *s, const struct preempt_ops *ops, unsigned int round)
{
	const struct preempt_param param = param_for(p);
	struct played *y = calloc(1, sizeof(*y));
	bool oracle = ops == &play_clairvoyant;
	struct preempter_stats stats = { 0 };
	unsigned long decisions = 0;
	double work = 0, mean = 0, busy, decide_ms = 0;
	double cpu_ns = emulation("cpu"), late_ns = emulation("late");
	uint64_t start;
	struct decider d;
	int ret, stopped;

	if (!y)
		return -ENOMEM;
	ret = oracle ? play_oracle_open(p, s, &param, b->dev.engines) : 0;
	if (ret)
		goto out;
	play_oracle_start(0);
	ret = decider_start(&d, ops, &param);
	if (!ret) {
		start = now_ns() + 100 * MS;
		play_oracle_start(start);
		ret = serve(b, p, y, guests, start);
		stopped = decider_stop(&d, &stats);
		ret = ret ? ret : stopped;
	}
	if (oracle)
		decide_ms = play_oracle_close(&decisions);
	if (ret)
		goto out;
	for (size_t i = 0; i < p->n; i++) {
		work += p->line[i].alone_ns;
		y->turnaround_ms[i] = (double)(y->end[i] - y->at[i]) / 1e6;
		mean += y->turnaround_ms[i] / (double)p->n;
	}
	busy = busy_ns(p, y);
	stream_result(b, "run",
		      "\"stream\": \"%s\", \"policy\": \"%s\", \"round\": %u, \"norm_ipc\": %.4f, \"turnaround_mean\": %.1f, \"turnaround_p99\": %.1f, \"busy_s\": %.3f, \"takes\": %llu, \"begun_anew\": %llu, \"preemptions\": %llu, \"looks\": %llu, \"left\": %llu, \"late_max_ms\": %.1f, \"decider_cpu\": %.4f, \"cost_fitted\": %s, \"decide_ms\": %.2f, \"emulation_cpu\": %.3f, \"emulation_late\": %.3f",
		      p->name, ops->name, round, work / busy, mean,
		      stats_percentile(y->turnaround_ms, p->n, 0.99), busy / 1e9,
		      (unsigned long long)y->taken, (unsigned long long)y->flushed,
		      (unsigned long long)stats.decisions[PREEMPT_DO_PREEMPT],
		      (unsigned long long)stats.looks, (unsigned long long)stats.left,
		      (double)y->late_ns / 1e6, (double)d.cpu_ns / busy,
		      stats.fit.samples ? "true" : "false", decide_ms,
		      (emulation("cpu") - cpu_ns) / busy,
		      (emulation("late") - late_ns) / busy);
out:
	free(y);
	return ret;
}

static int run_all(struct bench *b, struct play *plays, struct guest *guests,
		   const struct speeds *s, uint64_t begun)
{
	unsigned int rounds = b->quick ? 1 : ROUNDS;
	uint64_t from, longest = 0;
	int ret = 0;

	for (unsigned int r = 0; r < rounds && !ret; r++) {
		from = now_ns();
		if (from + longest > begun + BUDGET_NS)
			break;
		/* the first policy of a round is the last of the next */
		for (size_t k = 0; k < ARRAY_LEN(policies) && !ret; k++)
			for (size_t i = 0; i < ARRAY_LEN(names) && !ret; i++)
				ret = play(b, &plays[i], guests, s,
					   policies[r & 1 ? ARRAY_LEN(policies) - 1 - k : k],
					   r);
		if (now_ns() - from > longest)
			longest = now_ns() - from;
	}
	return ret;
}

static int describe(struct bench *b, const struct play *p, const struct speeds *s)
{
	const struct preempt_param param = param_for(p);
	double sum = 0, ipc;
	int ret = 0;

	for (size_t i = 0; i < p->n; i++)
		sum += p->line[i].alone_ns;
	stream_result(b, "set",
		      "\"stream\": \"%s\", \"lines\": %zu, \"stretch\": %.2f, \"alone_s\": %.2f, \"vgpus\": %u, \"horizon_ms\": %.0f, \"copy_cycles_per_byte\": %.3f",
		      p->name, p->n, p->stretch, sum / 1e9, PLAY_GUESTS,
		      play_oracle_horizon_ms() * p->stretch, s->cost);
	for (size_t k = 0; k < ARRAY_LEN(policies) && !ret; k++) {
		ret = play_simulated(p, s, policies[k], &param, b->dev.engines, &ipc);
		if (ret)
			complain("%s: the simulator failed: %s", p->name, strerror(-ret));
		else
			stream_result(b, "simulated",
				      "\"stream\": \"%s\", \"policy\": \"%s\", \"norm_ipc\": %.4f",
				      p->name, policies[k]->name, ipc);
	}
	return ret;
}

int part_streams(struct bench *b)
{
	struct play *plays = calloc(ARRAY_LEN(names), sizeof(*plays));
	struct guest guests[PLAY_GUESTS] = { { .id = 0 } };
	uint64_t begun = now_ns();
	struct speeds s = { 0 };
	int ret = 0;

	if (!plays)
		return -ENOMEM;
	for (size_t i = 0; i < PLAY_GUESTS && !ret; i++)
		ret = guest_open(b, &guests[i], PLAY_IN, PLAY_OUT);
	if (!ret)
		ret = speeds_measure(b, &guests[0], &s);
	for (size_t i = 0; i < ARRAY_LEN(names) && !ret; i++) {
		ret = prepare(b, &plays[i], names[i], guests, &s);
		if (!ret)
			ret = alone(b, &plays[i]);
		if (!ret)
			ret = describe(b, &plays[i], &s);
	}
	if (!ret)
		ret = run_all(b, plays, guests, &s, begun);
	for (size_t i = 0; i < PLAY_GUESTS; i++)
		guest_close(&guests[i]);
	free(plays);
	return ret;
}
