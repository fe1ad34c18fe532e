/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The order of requests that wait: weighted fair among projects, first come first served inside
 * a project.  Pure.
 *
 * A project's virtual time is the GPU time charged to it, divided by its weight (100: 1).  A
 * holding is charged its share of a GPU times the longer of QUEUE_QUANTUM and the time held.  The
 * project with the least virtual time is next.  A project that comes back to the queue starts at
 * the virtual time of the queue (start-time fair queueing): it saves up nothing while away.
 *
 * Requests that the same GPUs could do are of a class.  A class is blocked while no GPU has room
 * for it, so a pass tries each class once, not each request.  Requests of a project and a class
 * form a line.
 */
#ifndef POOL_QUEUE_H
#define POOL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define QUEUE_QUANTUM	600	/* s: charge of a new holding of a GPU */
#define QUEUE_CREDIT	86400	/* s: GPU time that a project may lag behind at most */
#define QUEUE_OVERTAKES	16	/* placements past a request before a GPU is kept for it */

/**
 * struct queue_holding - a part of a GPU that a project holds
 * @share: of the GPU, above 0, to 1
 * @start: since when, s
 */
struct queue_holding {
	TAILQ_ENTRY(queue_holding) link;
	struct queue_flow *flow;
	double share;
	int64_t start;
};

struct queue_line;

/**
 * struct queue_item - a request that waits
 * @id: its number, and so its order in the project
 * @place: from 1; queue_number() sets it
 * @tag: virtual time at which it begins if all before it are served
 */
struct queue_item {
	TAILQ_ENTRY(queue_item) in_flow;
	TAILQ_ENTRY(queue_item) in_line;
	struct queue_line *line;
	uint64_t id;
	unsigned int place;
	double tag;
};

TAILQ_HEAD(queue_items, queue_item);
TAILQ_HEAD(queue_holdings, queue_holding);

/**
 * struct queue_class - requests that the same GPUs could do
 * @blocked: no GPU has room for it; its owner clears this
 * @lines: its lines
 */
struct queue_class {
	bool blocked;
	LIST_HEAD(, queue_line) lines;
};

/**
 * struct queue_flow - a project
 * @weight: 100: 1
 * @limit: holdings that it may have, 0: no limit
 * @held: holdings that it has
 * @base: virtual time of what is over, s
 * @now: virtual time at the last queue_begin()
 */
struct queue_flow {
	LIST_ENTRY(queue_flow) link;
	LIST_HEAD(, queue_line) lines;
	struct queue_items items;
	struct queue_holdings holdings;
	size_t nr;
	uint32_t weight;
	uint32_t limit;
	uint32_t held;
	double base;
	double now;
};

/**
 * struct queue_line - the requests of a project and a class
 * @overtaken: placements past its first request on GPUs that could do it
 */
struct queue_line {
	LIST_ENTRY(queue_line) in_flow;
	LIST_ENTRY(queue_line) in_class;
	struct queue_flow *flow;
	struct queue_class *class;
	struct queue_items items;
	unsigned int overtaken;
};

/**
 * struct queue - what waits
 * @flows: projects with items
 * @nr: items
 * @now: virtual time: that of the last project that was served
 * @numbered: the places are right
 */
struct queue {
	LIST_HEAD(, queue_flow) flows;
	size_t nr;
	double now;
	bool numbered;
};

void queue_init(struct queue *q);
void queue_flow_init(struct queue_flow *flow, uint32_t weight, uint32_t limit);
void queue_class_init(struct queue_class *class);

/* Add a request at its place by @item->id. Return 0 or -ENOMEM. */
int queue_add(struct queue *q, struct queue_item *item, struct queue_flow *flow,
	      struct queue_class *class, int64_t now);
/* Take a request out; of one that is not in, nothing. */
void queue_remove(struct queue *q, struct queue_item *item);

/* Move a request that is in to another class. Return 0 or -ENOMEM. */
int queue_move(struct queue *q, struct queue_item *item, struct queue_class *class);

/* A project holds (a part of) a GPU since @holding->start; and no longer. */
void queue_hold(struct queue *q, struct queue_flow *flow, struct queue_holding *holding);
void queue_drop(struct queue *q, struct queue_holding *holding, int64_t now);

/* Begin a pass: bring virtual times up to date. */
void queue_begin(struct queue *q, int64_t now);
/* Return the next request whose class is not blocked and whose project may hold more, or NULL. */
struct queue_item *queue_next(const struct queue *q);
/* A request is served: call it with the item still in the queue, after queue_hold(). */
void queue_serve(struct queue *q, struct queue_item *item);

bool queue_at_limit(const struct queue_flow *flow);
/* Whether @a is before @b in the order of this pass. */
bool queue_before(const struct queue_item *a, const struct queue_item *b);

/* Set the places of all requests, by the virtual times of the last pass. -ENOMEM. */
int queue_number(struct queue *q);

#endif /* POOL_QUEUE_H */
