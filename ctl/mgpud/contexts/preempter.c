// SPDX-License-Identifier: GPL-2.0-only
/* The preemption loop: input and output. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <bpf/bpf.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "contexts.skel.h"
#pragma GCC diagnostic pop

#include "bpf_why.h"
#include "clock.h"
#include "contexts/ctx_view.h"
#include "contexts/preempter.h"
#include "pace.h"

#define FIT_EVERY	16		/* switches */
#define SETTLE_NS	5000000ULL	/* delay of the next look while slots are being taken */
#define EVENTS_MAX	1024		/* events read before a look */

/*
 * Room for the whole map, so that no bucket is too large, and the same again for entries
 * that replace others during the read.
 */
#define ROOM		(2 * MGPU_BPF_RUNS)

/* Entry of the BPF program's map. */
struct run {
	struct mgpu_run_key key;
	struct mgpu_run run;
};

/**
 * struct counted - readings of the BPF program's map
 * @key: keys as the kernel returns them
 * @run: values as the kernel returns them
 * @list: last reading and the one in progress, sorted by key
 * @last: index of the last reading in @list
 * @nr: number of entries of the last reading
 *
 * Room that is not used is never touched, so that it takes no memory.
 */
struct counted {
	struct mgpu_run_key key[ROOM];
	struct mgpu_run run[ROOM];
	struct run list[2][ROOM];
	bool last;
	size_t nr;
};

struct preempter {
	struct preempter_config config;
	bool act;
	struct mgpu *mgpu;		/* for requests */
	struct mgpu *events;		/* NULL while no event changes anything */
	struct contexts_bpf *bpf;
	struct counted *counted;
	struct mgpu_dev_info *devs;
	size_t nr_devs;
	struct ctx_view view;
	struct preempt_plan plan;
	struct pace pace;
	uint64_t wake_ns;		/* time of the next look without an event, ns */
	bool resting;			/* leave events unread until there is credit again */
	uint64_t fitted;		/* number of samples at the last fit */
	double scratch[CTX_SAMPLES];
	struct preempter_stats stats;
};

/* ---- processor time ---- */

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static unsigned int all_slots(const struct preempter *p)
{
	uint64_t slots = 0;

	for (size_t i = 0; i < p->nr_devs; i++)
		slots += p->devs[i].slots;
	return slots > 1 ? (unsigned int)slots : 1;
}

/* Account for what was spent since @from, of cpu_ns(). */
static void spend(struct preempter *p, uint64_t from)
{
	uint64_t spent = cpu_ns() - from;

	p->stats.cpu_ns += spent;
	pace_spend(&p->pace, now_ns(), spent, all_slots(p));
	p->resting = p->pace.credit < 0;
}

/* ---- what the BPF program counts ---- */

static int compare_key(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct mgpu_run_key));
}

static struct mgpu_run since(const struct mgpu_run *now, const struct mgpu_run *then)
{
	/* a counter fell: another entry replaced this one */
	if (!then || now->samples < then->samples || now->inst < then->inst ||
	    now->bytes < then->bytes || now->engine_ns < then->engine_ns ||
	    now->engine_cycles < then->engine_cycles)
		return *now;
	return (struct mgpu_run){
		.inst = now->inst - then->inst,
		.bytes = now->bytes - then->bytes,
		.engine_ns = now->engine_ns - then->engine_ns,
		.engine_cycles = now->engine_cycles - then->engine_cycles,
		.samples = now->samples - then->samples,
	};
}

/*
 * Read all entries of the map, sorted by key, into the list that is not the last one. The
 * kernel walks its buckets once, so that no entry is read twice even if others come or
 * go.
 */
static int read_runs(struct counted *c, int fd, size_t *n)
{
	struct run *list = c->list[!c->last];
	uint32_t at, nr, got = 0;
	bool begun = false;
	int ret;

	do {
		nr = ROOM - got;
		ret = bpf_map_lookup_batch(fd, begun ? &at : NULL, &at, c->key + got,
					   c->run + got, &nr, NULL);
		/* -ENOENT: end of the map; -ENOSPC: no room for the next bucket */
		if (ret && ret != -ENOENT)
			return ret;
		got += nr;
		begun = true;
	} while (!ret && got < ROOM);
	/* a partial list would count the rest again next time: use none */
	if (!ret)
		return -ENOSPC;

	for (uint32_t i = 0; i < got; i++)
		list[i] = (struct run){ .key = c->key[i], .run = c->run[i] };
	qsort(list, got, sizeof(*list), compare_key);
	*n = got;
	return 0;
}

static int learn_speeds(struct preempter *p, struct mgpu_error *err)
{
	struct counted *c = p->counted;
	const struct run *runs = c->list[!c->last], *last = c->list[c->last];
	size_t n;
	int ret = read_runs(c, bpf_map__fd(p->bpf->maps.runs), &n);

	if (ret)
		return mgpu_fail(err, ret, "cannot read the BPF program's counters of contexts: %s",
				 strerror(-ret));
	for (size_t i = 0; i < n; i++) {
		const struct run *then = bsearch(&runs[i].key, last, c->nr, sizeof(*last),
						 compare_key);
		struct mgpu_run more = since(&runs[i].run, then ? &then->run : NULL);

		if (more.samples)
			ctx_view_ran(&p->view, &runs[i].key, &more);
	}
	c->last = !c->last;
	c->nr = n;
	return 0;
}

static void fit_cost(struct preempter *p)
{
	size_t n = p->view.nr_samples < CTX_SAMPLES ? p->view.nr_samples : CTX_SAMPLES;
	struct preempt_param param = p->config.param;
	struct cost_fit fit;

	if (p->view.nr_samples < p->fitted + FIT_EVERY)
		return;
	p->fitted = p->view.nr_samples;
	p->stats.no_fit = cost_fit(p->view.sample, n, p->scratch, &fit);
	if (p->stats.no_fit)
		return;
	param.cost = fit.cost;
	p->stats.no_fit = preempt_param_check(&param);
	if (p->stats.no_fit)
		return;
	p->stats.fit = fit;
	if (p->config.fit)
		p->view.param.cost = fit.cost;
}

static int refresh(struct preempter *p, struct mgpu_error *err)
{
	struct mgpu_dev_info *devs;
	size_t nr;
	int ret = mgpu_dev_list(p->mgpu, &devs, &nr, err);

	if (ret)
		return ret;
	free(p->devs);
	p->devs = devs;
	p->nr_devs = nr;
	return 0;
}

static int learn(struct preempter *p, struct mgpu_error *err)
{
	struct mgpu_vgpu_info *vgpus;
	size_t nr;
	int ret = 0;

	/* events tell only of waiting contexts: look at the others, too */
	p->wake_ns = 0;
	fit_cost(p);
	if (p->bpf)
		ret = learn_speeds(p, err);
	if (!ret)
		ret = refresh(p, err);
	/* without contexts shares are not needed */
	if (ret || !p->stats.contexts)
		return ret;
	ret = mgpu_vgpu_list(p->mgpu, NULL, &vgpus, &nr, err);
	if (ret)
		return ret;
	ret = ctx_view_shares(&p->view, vgpus, nr, p->devs, p->nr_devs, now_ns());
	free(vgpus);
	return ret ? mgpu_fail(err, ret, "out of memory") : 0;
}

int preempter_learn(struct preempter *p, struct mgpu_error *err)
{
	uint64_t from = cpu_ns();
	int ret = learn(p, err);

	spend(p, from);
	return ret;
}

/* ---- carrying out ---- */

static int ask(struct preempter *p, const struct ctx_order *o, struct mgpu_error *err)
{
	static const enum mgpu_preempt_method method[PREEMPT_METHODS] = {
		[PREEMPT_SWITCH] = MGPU_PREEMPT_METHOD_SWITCH,
		[PREEMPT_DRAIN] = MGPU_PREEMPT_METHOD_DRAIN,
		[PREEMPT_FLUSH] = MGPU_PREEMPT_METHOD_FLUSH,
	};
	int ret;

	if (o->preempt)
		ret = mgpu_ctx_preempt(p->mgpu, o->vgpu, o->id, o->keep, method[o->method],
				       false, err);
	else
		ret = mgpu_ctx_resume(p->mgpu, o->vgpu, o->id, o->first, err);
	switch (ret) {
	case -EINVAL:
	case -ENOENT:
	case -ENODEV:
	case -EOPNOTSUPP:
		/* the job or its guest has ended meanwhile */
		p->stats.left++;
		return 0;
	default:
		return ret;
	}
}

static void count(struct preempter *p)
{
	for (size_t k = 0; k < p->plan.n; k++) {
		const struct preempt_decision *d = &p->plan.decision[k];

		p->stats.decisions[d->action]++;
		if (d->action == PREEMPT_DO_PREEMPT)
			p->stats.by[d->method]++;
	}
}

static void wake_at(struct preempter *p, uint64_t ns)
{
	if (ns < p->wake_ns)
		p->wake_ns = ns;
}

static int run_device(struct preempter *p, const struct mgpu_dev_info *dev,
		      const struct mgpu_ctx *list, size_t n, uint64_t now,
		      struct mgpu_error *err)
{
	struct preempt_snapshot s;
	struct ctx_order *order;
	uint64_t wake;
	size_t nr;
	int ret;

	ret = ctx_view_snapshot(&p->view, list, n, dev, now, &s);
	if (ret == -EAGAIN) {
		/* look soon, since no event may come before the next period */
		wake_at(p, now + SETTLE_NS);
		return 0;
	}
	if (ret)
		return mgpu_fail(err, ret, "out of memory");
	if (!s.n)
		return 0;
	ret = preempt_decide(p->config.ops, &s, &p->view.param, &p->plan);
	if (ret) {
		const char *wrong = preempt_snapshot_check(&s);

		return mgpu_fail(err, ret, "no decision about device %s: %s", dev->name,
				 wrong ? wrong : preempt_param_check(&p->view.param));
	}
	wake = preempt_wake_ns(&s, &p->view.param);
	count(p);
	/* without requests the kernel's own order is in force */
	if (!p->act || p->config.ops == &preempt_none)
		return 0;

	order = calloc(2 * s.n, sizeof(*order));
	if (!order)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	p->stats.left += ctx_view_orders(&p->view, p->config.ops, &s,
					 ctx_view_promises(dev), &p->plan, order, &nr);
	for (size_t i = 0; !ret && i < nr; i++)
		ret = ask(p, &order[i], err);
	free(order);
	if (ctx_view_unsettled(&p->view, &s))
		wake_at(p, now + SETTLE_NS);
	wake_at(p, ctx_view_trial_ns(&p->view, dev->id));
	wake_at(p, wake);
	return ret;
}

/* ---- events ---- */

/*
 * poll() also reports other messages, such as of another module that was loaded: reading
 * must not block.
 */
static int open_events(struct preempter *p, struct mgpu_error *err)
{
	int ret = mgpu_open(&p->events, err);

	if (!ret)
		ret = mgpu_subscribe_ctx(p->events, err);
	if (!ret && fcntl(mgpu_fd(p->events), F_SETFL, O_NONBLOCK))
		ret = mgpu_fail(err, -errno, "cannot make the socket of events non-blocking: %s",
				strerror(errno));
	return ret;
}

/*
 * With none the module's own order is in force: events change nothing, and without a
 * subscriber the module makes none.
 */
static int want_events(struct preempter *p, struct mgpu_error *err)
{
	bool wanted = p->config.ops != &preempt_none;

	if (wanted && !p->events)
		return open_events(p, err);
	if (!wanted) {
		mgpu_close(p->events);
		p->events = NULL;
	}
	return 0;
}

/*
 * Skip events without a look at them: the list that follows tells the rest, so that lost
 * events do not matter, and its request fails if the module was unloaded. Returns whether
 * there was one.
 */
static bool skip_events(struct preempter *p)
{
	bool any = false;
	char none;

	/* leave events that come faster than they are read for the next call */
	for (int n = 0; p->events && n < EVENTS_MAX; n++) {
		if (recv(mgpu_fd(p->events), &none, sizeof(none), MSG_DONTWAIT) < 0 &&
		    errno != ENOBUFS && errno != EINTR)
			return any;
		any = true;
	}
	return any;
}

/* ---- looking ---- */

static int run(struct preempter *p, struct mgpu_error *err)
{
	uint64_t now;
	struct mgpu_ctx *list;
	size_t n;
	int ret;

	ret = want_events(p, err);
	if (ret)
		return ret;
	if (!skip_events(p) && now_ns() < p->wake_ns)
		return 0;	/* nothing came while events were left unread */
	p->wake_ns = UINT64_MAX;
	ret = mgpu_ctx_dump(p->mgpu, NULL, &list, &n, err);
	if (ret)
		return ret;
	now = now_ns();
	p->stats.looks++;
	p->stats.contexts = n;
	p->stats.waiting = 0;
	for (size_t i = 0; i < n; i++)
		p->stats.waiting += list[i].arrived_ns && !list[i].slots;
	ret = ctx_view_look(&p->view, list, n, now);
	if (ret)
		mgpu_fail(err, ret, "out of memory");
	for (size_t i = 0; !ret && i < p->nr_devs; i++)
		ret = run_device(p, &p->devs[i], list, n, now, err);
	free(list);
	return ret;
}

int preempter_run(struct preempter *p, struct mgpu_error *err)
{
	uint64_t from;
	int ret;

	/* leave events unread meanwhile: they cost less together */
	p->resting = now_ns() < pace_ready_ns(&p->pace, all_slots(p));
	if (p->resting)
		return 0;
	from = cpu_ns();
	ret = run(p, err);
	spend(p, from);
	p->stats.put_off += p->resting;
	return ret;
}

/* ---- opening ---- */

static void load(struct preempter *p, char *why, size_t len)
{
	int ret;

	bpf_why_init();
	p->bpf = contexts_bpf__open();
	ret = p->bpf ? contexts_bpf__load(p->bpf) : -errno;
	if (!ret)
		ret = contexts_bpf__attach(p->bpf);
	p->stats.bpf = !ret;
	if (!ret)
		return;
	contexts_bpf__destroy(p->bpf);
	p->bpf = NULL;
	bpf_why(why, len, "context", ret);
}

int preempter_open(struct preempter **preempter, const struct preempter_config *config,
		   bool act, char *why, size_t len, struct mgpu_error *err)
{
	struct preempter *p = calloc(1, sizeof(*p));
	int ret;

	why[0] = '\0';
	*preempter = NULL;
	if (!p)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	p->act = act;
	p->wake_ns = 0;
	ctx_view_init(&p->view, &config->param);
	preempter_configure(p, config);
	p->stats.no_fit = "no switch has been measured yet";
	ret = mgpu_open(&p->mgpu, err);
	/* with any policy: it fails if the module is too old to have contexts */
	if (!ret)
		ret = open_events(p, err);
	if (!ret)
		ret = refresh(p, err);
	if (!ret) {
		p->counted = calloc(1, sizeof(*p->counted));
		ret = p->counted ? 0 : mgpu_fail(err, -ENOMEM, "out of memory");
	}
	if (ret) {
		preempter_close(p);
		return ret;
	}
	load(p, why, len);
	*preempter = p;
	return 0;
}

void preempter_close(struct preempter *p)
{
	if (!p)
		return;
	if (p->bpf)
		contexts_bpf__destroy(p->bpf);
	mgpu_close(p->events);
	mgpu_close(p->mgpu);
	ctx_view_free(&p->view);
	free(p->counted);
	free(p->devs);
	free(p);
}

void preempter_configure(struct preempter *p, const struct preempter_config *config)
{
	p->config = *config;
	p->view.param = config->param;
	/* keep a fit when other settings change */
	if (config->fit && p->stats.fit.samples)
		p->view.param.cost = p->stats.fit.cost;
	p->wake_ns = 0;
}

int preempter_fd(const struct preempter *p)
{
	return p->events && !p->resting ? mgpu_fd(p->events) : -1;
}

uint64_t preempter_wake_ns(const struct preempter *p)
{
	uint64_t ready = pace_ready_ns(&p->pace, all_slots(p));

	return p->resting ? ready : p->wake_ns;
}

struct analyse *preempter_analyse(struct preempter *p)
{
	return &p->view.analyse;
}

const struct preempter_stats *preempter_stats(struct preempter *p)
{
	p->stats.cost = p->view.param.cost;
	return &p->stats;
}
