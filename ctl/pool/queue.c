// SPDX-License-Identifier: GPL-2.0-only
/* The order of requests that wait. Pure. */
#include <errno.h>
#include <stdlib.h>

#include "queue.h"

#define WEIGHT_ONE	100

void queue_init(struct queue *q)
{
	*q = (struct queue){ 0 };
	LIST_INIT(&q->flows);
}

void queue_flow_init(struct queue_flow *flow, uint32_t weight, uint32_t limit)
{
	*flow = (struct queue_flow){ .weight = weight, .limit = limit };
	LIST_INIT(&flow->lines);
	TAILQ_INIT(&flow->items);
	TAILQ_INIT(&flow->holdings);
}

void queue_class_init(struct queue_class *class)
{
	*class = (struct queue_class){ 0 };
	LIST_INIT(&class->lines);
}

/* Virtual time of a GPU time in seconds. */
static double virtual(const struct queue_flow *flow, double seconds)
{
	return seconds * WEIGHT_ONE / flow->weight;
}

static double charge(const struct queue_holding *h, int64_t now)
{
	double held = (double)(now - h->start);

	return h->share * (held > QUEUE_QUANTUM ? held : QUEUE_QUANTUM);
}

static void update(struct queue_flow *flow, int64_t now)
{
	struct queue_holding *h;
	double seconds = 0;

	TAILQ_FOREACH(h, &flow->holdings, link)
		seconds += charge(h, now);
	flow->now = flow->base + virtual(flow, seconds);
}

/* Raise a project's virtual time to @least. */
static void raise_to(struct queue_flow *flow, double least)
{
	if (flow->now >= least)
		return;
	flow->base += least - flow->now;
	flow->now = least;
}

static struct queue_line *line_of(struct queue_flow *flow, struct queue_class *class)
{
	struct queue_line *line;

	LIST_FOREACH(line, &flow->lines, in_flow)
		if (line->class == class)
			return line;
	line = calloc(1, sizeof(*line));
	if (!line)
		return NULL;
	line->flow = flow;
	line->class = class;
	TAILQ_INIT(&line->items);
	LIST_INSERT_HEAD(&flow->lines, line, in_flow);
	LIST_INSERT_HEAD(&class->lines, line, in_class);
	return line;
}

/* Insert by number: most are the last, and those that come back are among the first. */
#define INSERT(items, item, link) do {						\
	struct queue_item *next_ = TAILQ_LAST(items, queue_items);		\
										\
	if (!next_ || next_->id < (item)->id) {					\
		TAILQ_INSERT_TAIL(items, item, link);				\
		break;								\
	}									\
	TAILQ_FOREACH(next_, items, link)					\
		if (next_->id > (item)->id)					\
			break;							\
	TAILQ_INSERT_BEFORE(next_, item, link);					\
} while (0)

int queue_add(struct queue *q, struct queue_item *item, struct queue_flow *flow,
	      struct queue_class *class, int64_t now)
{
	struct queue_line *line = line_of(flow, class);

	if (!line)
		return -ENOMEM;
	if (!flow->nr) {
		LIST_INSERT_HEAD(&q->flows, flow, link);
		update(flow, now);
		raise_to(flow, q->now);
	}
	item->line = line;
	INSERT(&flow->items, item, in_flow);
	INSERT(&line->items, item, in_line);
	if (TAILQ_FIRST(&line->items) == item)
		line->overtaken = 0;
	flow->nr++;
	q->nr++;
	q->numbered = false;
	return 0;
}

/* Take a request out of its line, and free a line that is empty. */
static void leave_line(struct queue_item *item)
{
	struct queue_line *line = item->line;

	if (TAILQ_FIRST(&line->items) == item)
		line->overtaken = 0;
	TAILQ_REMOVE(&line->items, item, in_line);
	item->line = NULL;
	if (TAILQ_EMPTY(&line->items)) {
		LIST_REMOVE(line, in_flow);
		LIST_REMOVE(line, in_class);
		free(line);
	}
}

int queue_move(struct queue *q, struct queue_item *item, struct queue_class *class)
{
	struct queue_line *line = line_of(item->line->flow, class);
	unsigned int overtaken = 0;

	if (!line)
		return -ENOMEM;
	if (TAILQ_FIRST(&item->line->items) == item)
		overtaken = item->line->overtaken;
	leave_line(item);
	item->line = line;
	INSERT(&line->items, item, in_line);
	if (TAILQ_FIRST(&line->items) == item)
		line->overtaken = overtaken;
	q->numbered = false;
	return 0;
}

void queue_remove(struct queue *q, struct queue_item *item)
{
	struct queue_flow *flow;

	if (!item->line)
		return;
	flow = item->line->flow;
	leave_line(item);
	TAILQ_REMOVE(&flow->items, item, in_flow);
	item->place = 0;
	if (!--flow->nr)
		LIST_REMOVE(flow, link);
	q->nr--;
	q->numbered = false;
}

void queue_hold(struct queue *q, struct queue_flow *flow, struct queue_holding *holding)
{
	holding->flow = flow;
	TAILQ_INSERT_TAIL(&flow->holdings, holding, link);
	flow->held++;
	q->numbered = false;
}

void queue_drop(struct queue *q, struct queue_holding *holding, int64_t now)
{
	struct queue_flow *flow = holding->flow;

	if (!flow)
		return;
	TAILQ_REMOVE(&flow->holdings, holding, link);
	flow->held--;
	/* The quantum was an estimate: what is over is charged as long as it was. */
	flow->base += virtual(flow, holding->share * (double)(now > holding->start ?
							      now - holding->start : 0));
	holding->flow = NULL;
	q->numbered = false;
}

void queue_begin(struct queue *q, int64_t now)
{
	struct queue_flow *flow;

	LIST_FOREACH(flow, &q->flows, link) {
		update(flow, now);
		raise_to(flow, q->now - virtual(flow, QUEUE_CREDIT));
	}
}

bool queue_at_limit(const struct queue_flow *flow)
{
	return flow->limit && flow->held >= flow->limit;
}

bool queue_before(const struct queue_item *a, const struct queue_item *b)
{
	const struct queue_flow *x = a->line->flow, *y = b->line->flow;

	if (x != y && (x->now < y->now || x->now > y->now))
		return x->now < y->now;
	return a->id < b->id;
}

/* The first request of a project that can be tried. */
static struct queue_item *first_of(const struct queue_flow *flow)
{
	struct queue_item *first = NULL, *item;
	struct queue_line *line;

	if (queue_at_limit(flow))
		return NULL;
	LIST_FOREACH(line, &flow->lines, in_flow) {
		item = TAILQ_FIRST(&line->items);
		if (!line->class->blocked && (!first || item->id < first->id))
			first = item;
	}
	return first;
}

struct queue_item *queue_next(const struct queue *q)
{
	struct queue_item *next = NULL, *item;
	struct queue_flow *flow;

	LIST_FOREACH(flow, &q->flows, link) {
		item = first_of(flow);
		if (item && (!next || queue_before(item, next)))
			next = item;
	}
	return next;
}

void queue_serve(struct queue *q, struct queue_item *item)
{
	struct queue_flow *flow = item->line->flow;
	const struct queue_holding *h = TAILQ_LAST(&flow->holdings, queue_holdings);

	if (flow->now > q->now)
		q->now = flow->now;
	if (h)
		flow->now += virtual(flow, h->share * QUEUE_QUANTUM);
}

static int by_tag(const void *a, const void *b)
{
	const struct queue_item *x = *(struct queue_item *const *)a;
	const struct queue_item *y = *(struct queue_item *const *)b;

	if (x->tag < y->tag || x->tag > y->tag)
		return x->tag < y->tag ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int queue_number(struct queue *q)
{
	struct queue_item **all, *item;
	struct queue_flow *flow;
	size_t nr = 0;

	if (q->numbered)
		return 0;
	all = calloc(q->nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	LIST_FOREACH(flow, &q->flows, link) {
		double tag = flow->now;

		TAILQ_FOREACH(item, &flow->items, in_flow) {
			item->tag = tag;
			tag += virtual(flow, QUEUE_QUANTUM);
			all[nr++] = item;
		}
	}
	qsort(all, nr, sizeof(*all), by_tag);
	for (size_t i = 0; i < nr; i++)
		all[i]->place = (unsigned int)i + 1;
	free(all);
	q->numbered = true;
	return 0;
}
