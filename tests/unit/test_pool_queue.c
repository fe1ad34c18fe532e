// SPDX-License-Identifier: GPL-2.0-only
/* The order of requests that wait. */
#include "tap.h"
#include "queue.h"
#include "random.h"

static struct queue q;
static struct queue_flow flows[4];
static struct queue_class classes[4];
static struct queue_item items[20000];
static struct queue_holding holdings[20000];
static size_t nr_holdings;

static void begin(void)
{
	queue_init(&q);
	for (int i = 0; i < 4; i++) {
		queue_flow_init(&flows[i], 100, 0);
		queue_class_init(&classes[i]);
	}
	memset(items, 0, sizeof(items));
	for (uint64_t i = 0; i < 20000; i++)
		items[i].id = i;
	nr_holdings = 0;
}

static void add(uint64_t id, int flow, int class, int64_t now)
{
	TAP_EQ(queue_add(&q, &items[id], &flows[flow], &classes[class], now), 0);
}

/* Serve an item, as a pass does. */
static struct queue_holding *serve(struct queue_item *item, double share, int64_t now)
{
	struct queue_holding *h = &holdings[nr_holdings++];

	*h = (struct queue_holding){ .share = share, .start = now };
	queue_hold(&q, item->line->flow, h);
	queue_serve(&q, item);
	queue_remove(&q, item);
	return h;
}

/* Serve the next and return its number, 0: none. */
static uint64_t next(double share, int64_t now)
{
	struct queue_item *item = queue_next(&q);

	if (!item)
		return 0;
	serve(item, share, now);
	return item->id;
}

static void drain(void)
{
	for (size_t i = 0; i < 20000; i++)
		queue_remove(&q, &items[i]);
}

static void fifo(void)
{
	begin();
	for (uint64_t i = 1; i <= 5; i++)
		add(i, 0, (int)(i % 2), 0);
	TAP_EQ(q.nr, 5);
	queue_begin(&q, 0);
	for (uint64_t i = 1; i <= 5; i++)
		TAP_EQ(next(1, 0), i);
	TAP_EQ(next(1, 0), 0);
	TAP_EQ(q.nr, 0);
}

static void comes_back_in_place(void)
{
	begin();
	add(2, 0, 0, 0);
	add(4, 0, 0, 0);
	add(1, 0, 0, 0);
	add(3, 0, 0, 0);
	queue_begin(&q, 0);
	for (uint64_t i = 1; i <= 4; i++)
		TAP_EQ(next(1, 0), i);
}

static void weights(void)
{
	int served[3] = { 0 };
	static const uint32_t weight[] = { 100, 200, 400 };

	begin();
	for (int i = 0; i < 3; i++)
		flows[i].weight = weight[i];
	for (uint64_t i = 1; i < 1000; i++)
		add(i, (int)(i % 3), 0, 0);
	queue_begin(&q, 0);
	for (int i = 0; i < 70; i++)
		served[next(1, 0) % 3]++;
	TAP_CHECK(abs(served[0] - 10) <= 1);
	TAP_CHECK(abs(served[1] - 20) <= 1);
	TAP_CHECK(abs(served[2] - 40) <= 1);
	drain();
}

/* Projects that hold GPUs longer get fewer of them: GPU time is what is shared. */
static void gpu_time(void)
{
	double time[2] = { 0 };
	struct queue_holding *held = NULL;
	int64_t now = 0, hold[2] = { 4000, 1000 };

	begin();
	for (uint64_t i = 1; i < 4000; i++)
		add(i, (int)(i % 2), 0, 0);
	for (int i = 0; i < 1000; i++) {
		struct queue_item *item;
		int flow;

		queue_begin(&q, now);
		item = queue_next(&q);
		flow = (int)(item->id % 2);
		held = serve(item, 1, now);
		now += hold[flow];
		time[flow] += (double)hold[flow];
		queue_drop(&q, held, now);
	}
	TAP_CHECK(time[0] / time[1] > 0.98 && time[0] / time[1] < 1.02);
	drain();
}

/* A GPU that is held long is charged while it is held. */
static void long_holdings(void)
{
	int served = 0;

	begin();
	add(2, 0, 0, 0);
	queue_begin(&q, 0);
	TAP_EQ(next(1, 0), 2);
	add(4, 0, 0, 5000);
	for (uint64_t i = 5; i < 100; i += 2)
		add(i, 1, 0, 5000);
	queue_begin(&q, 5000);
	while (next(1, 5000) % 2)
		served++;
	TAP_EQ(served, 9);
	drain();
}

/* A share of a GPU is charged as a share. */
static void shares(void)
{
	int served[2] = { 0 };

	begin();
	for (uint64_t i = 1; i < 1000; i++)
		add(i, (int)(i % 2), 0, 0);
	queue_begin(&q, 0);
	for (int i = 0; i < 100; i++) {
		struct queue_item *item = queue_next(&q);
		int flow = (int)(item->id % 2);

		serve(item, flow ? 0.25 : 1, 0);
		served[flow]++;
	}
	TAP_CHECK(abs(served[1] - 80) <= 4);
	drain();
}

static void no_credit_for_absence(void)
{
	int served[2] = { 0 };

	begin();
	/* Project 0 is served for a long time before 1 comes. */
	for (uint64_t i = 2; i <= 400; i += 2)
		add(i, 0, 0, 0);
	queue_begin(&q, 0);
	for (int i = 0; i < 100; i++)
		next(1, 0);
	for (uint64_t i = 1001; i < 1400; i += 2)
		add(i, 1, 0, 0);
	queue_begin(&q, 0);
	for (int i = 0; i < 100; i++)
		served[next(1, 0) % 2]++;
	TAP_CHECK(served[0] >= 48 && served[1] >= 48);
	drain();
}

static void bounded_credit(void)
{
	int served = 0;

	begin();
	/* Project 1 waits for what is not there while 0 is served: 100 days of a GPU. */
	add(1, 1, 1, 0);
	classes[1].blocked = true;
	for (uint64_t i = 2; i < 16000; i += 2)
		add(i, 0, 0, 0);
	for (int i = 0; i < 100 * 144; i++) {
		queue_begin(&q, 0);
		if (i < 7000)
			next(1, 0);
	}
	for (uint64_t i = 3; i < 2000; i += 2)
		add(i, 1, 0, 0);
	queue_begin(&q, 0);
	while (next(1, 0) % 2)
		served++;
	/* A day is 144 quanta. */
	TAP_CHECK(served >= 140 && served <= 146);
	drain();
}

static void blocked_classes(void)
{
	begin();
	add(1, 0, 0, 0);
	add(2, 0, 1, 0);
	add(3, 1, 0, 0);
	classes[0].blocked = true;
	queue_begin(&q, 0);
	TAP_EQ(next(1, 0), 2);
	TAP_EQ(next(1, 0), 0);
	classes[0].blocked = false;
	TAP_EQ(next(1, 0), 3);
	TAP_EQ(next(1, 0), 1);
}

static void limits(void)
{
	begin();
	flows[0].limit = 1;
	add(1, 0, 0, 0);
	add(2, 0, 0, 0);
	queue_begin(&q, 0);
	TAP_EQ(next(1, 0), 1);
	TAP_EQ(next(1, 0), 0);
	TAP_CHECK(queue_at_limit(&flows[0]));
	queue_drop(&q, &holdings[0], 5);
	queue_drop(&q, &holdings[0], 5);
	TAP_EQ(flows[0].held, 0);
	TAP_EQ(next(1, 5), 2);
}

/* The places that are shown are the order of service. */
static void places(void)
{
	begin();
	flows[1].weight = 300;
	rng = 7;
	for (uint64_t i = 1; i <= 400; i++)
		add(i, (int)below(3), 0, 0);
	queue_begin(&q, 0);
	TAP_EQ(queue_number(&q), 0);
	for (unsigned int i = 1; i <= 400; i++) {
		struct queue_item *item = queue_next(&q);
		unsigned int place = item->place;

		if (!TAP_EQ(place, i))
			break;
		serve(item, 1, 0);
	}
	drain();
	TAP_EQ(items[1].place, 0);
}

static void moves(void)
{
	begin();
	for (uint64_t i = 1; i <= 4; i++)
		add(i, 0, 0, 0);
	items[1].line->overtaken = 5;
	for (uint64_t i = 1; i <= 4; i++)
		TAP_EQ(queue_move(&q, &items[i], &classes[1]), 0);
	TAP_CHECK(LIST_EMPTY(&classes[0].lines));
	TAP_EQ(items[1].line->overtaken, 5);
	queue_remove(&q, &items[1]);
	TAP_EQ(items[2].line->overtaken, 0);
	classes[0].blocked = true;
	queue_begin(&q, 0);
	for (uint64_t i = 2; i <= 4; i++)
		TAP_EQ(next(1, 0), i);
}

/* Random operations against the plain rule: least virtual time, then least number. */
static void random_order(void)
{
	begin();
	rng = 99;
	for (int i = 0; i < 4; i++)
		flows[i].weight = (uint32_t)(1 + below(1000));
	for (uint64_t i = 1; i < 3000; i++)
		add(i, (int)below(4), (int)below(4), 0);
	for (int64_t now = 0; q.nr; now += 10) {
		struct queue_item *item, *other;

		for (int k = 0; k < 4; k++)
			classes[k].blocked = below(3) == 0;
		queue_begin(&q, now);
		item = queue_next(&q);
		if (!item)
			continue;
		for (size_t k = 1; k < 3000; k++) {
			other = &items[k];
			if (!other->line || other->line->class->blocked || other == item)
				continue;
			if (other->line->flow == item->line->flow ? other->id < item->id :
			    other->line->flow->now < item->line->flow->now) {
				TAP_CHECK(other == item);
				break;
			}
		}
		TAP_CHECK(!item->line->class->blocked);
		serve(item, 1, now);
		if (nr_holdings > 10)
			queue_drop(&q, &holdings[nr_holdings - 10], now);
	}
}

int main(void)
{
	tap_run(fifo, "a project's requests are served as they came");
	tap_run(comes_back_in_place, "a request that comes back has its place by its number");
	tap_run(weights, "projects are served by their weights");
	tap_run(gpu_time, "GPU time is shared, not the number of requests");
	tap_run(long_holdings, "GPU time is charged while it passes");
	tap_run(shares, "a part of a GPU is charged as a part");
	tap_run(no_credit_for_absence, "a project saves nothing up while it is away");
	tap_run(bounded_credit, "a project that waits long is ahead by a day of a GPU at most");
	tap_run(blocked_classes, "a blocked class is passed over");
	tap_run(limits, "a project at its limit is passed over");
	tap_run(places, "the places are the order of service");
	tap_run(moves, "a request that moves to another class keeps its order");
	tap_run(random_order, "the next is always that of the least virtual time");
	return tap_done();
}
