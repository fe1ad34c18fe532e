// SPDX-License-Identifier: GPL-2.0-only
/*
 * The run queue: keeps entities where they belong and asks the policy who is
 * next.  Pure: builds in user space too.
 */
#include "runq.h"
#include "sched_policy.h"

const struct mgpu_policy_ops * const mgpu_policies[] = {
	&mgpu_policy_weighted,
	&mgpu_policy_equal,
	&mgpu_policy_best_effort,
	&mgpu_policy_fixed,
	NULL
};

static struct mgpu_sched_entity *entity_of(const struct rb_node *node)
{
	return rb_entry(node, struct mgpu_sched_entity, node);
}

/* Keys wrap; their difference does not. */
static bool key_less(struct rb_node *a, const struct rb_node *b)
{
	return (s64)(entity_of(a)->key - entity_of(b)->key) < 0;
}

static bool due_less(struct rb_node *a, const struct rb_node *b)
{
	return entity_of(a)->due_ns < entity_of(b)->due_ns;
}

/* Leaves room for the longest wait at the end of time. */
static u64 time_of(struct mgpu_runq *rq, u64 now)
{
	if (now >= U64_MAX - MGPU_BUCKET_MAX_WAIT_NS)
		now = U64_MAX - MGPU_BUCKET_MAX_WAIT_NS - 1;
	if (now > rq->now)
		rq->now = now;
	return rq->now;
}

/* How long @e has to wait before the policy gets it, nanoseconds. */
static u64 wait_of(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now)
{
	u64 limit = mgpu_bucket_wait(&e->limit, now), share = 0;

	if (rq->policy->wait)
		share = rq->policy->wait(rq, e, now);
	return limit > share ? limit : share;
}

/* From nowhere to where it belongs. */
static void place(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now)
{
	enum mgpu_entity_state was = e->state;
	u64 wait = wait_of(rq, e, now);

	if (was == MGPU_ENTITY_DELAYED && !wait) {
		e->limited_ns += now - e->delayed_ns;
		e->delayed_ns = 0;
	}
	if (wait) {
		if (was != MGPU_ENTITY_DELAYED) {
			e->delayed_ns = now;
			e->limited++;
		}
		e->state = MGPU_ENTITY_DELAYED;
		e->due_ns = now + wait;
		rb_add_cached(&e->node, &rq->delayed, due_less);
		return;
	}
	/* One that only moves has been waiting for the engine all along. */
	if (was != MGPU_ENTITY_READY)
		e->ready_ns = now;
	e->state = MGPU_ENTITY_READY;
	rq->nr_ready++;
	rq->policy->enqueue(rq, e, now);
}

/* From where it is to nowhere; its state stays. */
static void displace(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
	switch (e->state) {
	case MGPU_ENTITY_IDLE:
		break;
	case MGPU_ENTITY_READY:
		if (rq->policy->dequeue)
			rq->policy->dequeue(rq, e);
		mgpu_runq_erase(rq, e);
		rq->nr_ready--;
		break;
	case MGPU_ENTITY_DELAYED:
		rb_erase_cached(&e->node, &rq->delayed);
		break;
	}
}

/* What it may use has changed. */
static void place_again(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u64 now)
{
	if (e->state == MGPU_ENTITY_IDLE ||
	    (e->state == MGPU_ENTITY_READY && !wait_of(rq, e, now)))
		return;
	displace(rq, e);
	place(rq, e, now);
}

/*
 * Those whose time has come.  Somebody's share may have become smaller since:
 * it waits on, until after now, so this ends.
 */
static void place_due(struct mgpu_runq *rq, u64 now)
{
	struct rb_node *node;

	while ((node = rb_first_cached(&rq->delayed)) &&
	       entity_of(node)->due_ns <= now)
		place_again(rq, entity_of(node), now);
}

/**
 * mgpu_runq_init - make an empty run queue
 * @rq: run queue
 * @dev: id of the device
 * @engines: jobs that it runs at once, at least 1
 * @policy: who orders
 */
void mgpu_runq_init(struct mgpu_runq *rq, u32 dev, u32 engines,
		    const struct mgpu_policy_ops *policy)
{
	int i;

	memset(rq, 0, sizeof(*rq));
	rq->dev = dev;
	rq->engines = engines;
	rq->policy = policy;
	INIT_LIST_HEAD(&rq->entities);
	for (i = 0; i < MGPU_RUNQ_QUEUES; i++)
		rq->queues[i] = RB_ROOT_CACHED;
	rq->delayed = RB_ROOT_CACHED;
}

/**
 * mgpu_runq_attach - an entity comes into being
 * @rq: run queue
 * @e: entity with @id and @weight set and all else 0; idle afterwards
 * @now: current time, nanoseconds
 */
void mgpu_runq_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 now)
{
	now = time_of(rq, now);
	e->state = MGPU_ENTITY_IDLE;
	e->vtime = rq->vtime;
	e->vweight = e->weight;
	RB_CLEAR_NODE(&e->node);
	list_add_tail(&e->list, &rq->entities);
	rq->weights += e->weight;
	if (rq->policy->attach)
		rq->policy->attach(rq, e, now);
}

/**
 * mgpu_runq_detach - an entity goes
 * @rq: run queue
 * @e: entity; what waits of it is not served any more
 */
void mgpu_runq_detach(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
	mgpu_runq_sleep(rq, e);
	if (rq->policy->detach)
		rq->policy->detach(rq, e);
	list_del_init(&e->list);
	rq->weights -= e->weight;
}

/**
 * mgpu_runq_wake - a job of an entity waits
 * @rq: run queue
 * @e: entity with @head_ns, @head_seq and @head_frame set
 * @now: current time, nanoseconds
 *
 * To be called when an idle entity gets a job, and after mgpu_runq_pick() when
 * the entity picked has another.  No effect unless the entity is idle.
 */
void mgpu_runq_wake(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now)
{
	now = time_of(rq, now);
	if (e->state == MGPU_ENTITY_IDLE)
		place(rq, e, now);
}

/**
 * mgpu_runq_move - the oldest waiting job of an entity is another
 * @rq: run queue
 * @e: entity with @head_ns, @head_seq and @head_frame set
 * @now: current time, nanoseconds
 *
 * It has been waiting all along: what it is owed stays.  No effect on an idle one.
 */
void mgpu_runq_move(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now)
{
	now = time_of(rq, now);
	if (e->state == MGPU_ENTITY_IDLE)
		return;
	displace(rq, e);
	/* Not as one that comes back from elsewhere. */
	if (e->state == MGPU_ENTITY_READY)
		e->left_ns = now;
	place(rq, e, now);
}

/**
 * mgpu_runq_sleep - no job of an entity waits any more
 * @rq: run queue
 * @e: entity; idle afterwards
 */
void mgpu_runq_sleep(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
	displace(rq, e);
	if (e->state == MGPU_ENTITY_DELAYED) {
		e->limited_ns += rq->now - e->delayed_ns;
		e->delayed_ns = 0;
	}
	e->state = MGPU_ENTITY_IDLE;
}

/**
 * mgpu_runq_pick - choose who is served
 * @rq: run queue
 * @now: current time, nanoseconds
 *
 * Return: the entity whose oldest job is to run now, idle afterwards; NULL when
 * none may run.  mgpu_runq_due() says when to ask again.
 */
struct mgpu_sched_entity *mgpu_runq_pick(struct mgpu_runq *rq, u64 now)
{
	struct mgpu_sched_entity *e;

	now = time_of(rq, now);
	place_due(rq, now);
	if (!rq->nr_ready)
		return NULL;
	e = rq->policy->pick(rq, now);
	/* To name one that does not wait is to name nobody. */
	if (!e || e->state != MGPU_ENTITY_READY)
		return NULL;
	mgpu_runq_erase(rq, e);
	rq->nr_ready--;
	e->state = MGPU_ENTITY_IDLE;
	if (!e->running++)
		mgpu_bucket_begin(&e->limit, now);
	return e;
}

/**
 * mgpu_runq_charge - a job has left the engine
 * @rq: run queue
 * @e: entity, in any state
 * @ns: engine nanoseconds that it used, any number
 * @now: current time, nanoseconds
 *
 * To be called once for each mgpu_runq_pick(), before the job waits again if it
 * was set aside.
 */
void mgpu_runq_charge(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 ns, u64 now)
{
	now = time_of(rq, now);
	e->left_ns = now;
	if (e->running)
		e->running--;
	mgpu_bucket_charge(&e->limit, ns, now);
	if (rq->policy->charge)
		rq->policy->charge(rq, e, ns, now);

	place_again(rq, e, now);
}

/**
 * mgpu_runq_should_yield - whether a job that runs should be set aside
 * @rq: run queue
 * @e: whose job it is
 * @ran: engine nanoseconds that it has used and that are not charged yet
 * @now: current time, nanoseconds
 *
 * Return: true when the job should be charged and queued again so that another
 * entity's can go first.
 */
bool mgpu_runq_should_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			    u64 ran, u64 now)
{
	if (!rq->policy->yield)
		return false;
	now = time_of(rq, now);
	place_due(rq, now);
	return rq->policy->yield(rq, e, ran, now);
}

/**
 * mgpu_runq_advance - let time pass
 * @rq: run queue
 * @now: current time, nanoseconds
 *
 * Delayed entities whose time has come become eligible.  mgpu_runq_pick() and
 * mgpu_runq_should_yield() do that too.
 */
void mgpu_runq_advance(struct mgpu_runq *rq, u64 now)
{
	place_due(rq, time_of(rq, now));
}

/**
 * mgpu_runq_due - when a delayed entity may go on
 * @rq: run queue
 *
 * Return: time, nanoseconds, of the first one; U64_MAX when none is delayed.
 */
u64 mgpu_runq_due(const struct mgpu_runq *rq)
{
	struct rb_node *node = rb_first_cached(&rq->delayed);

	return node ? entity_of(node)->due_ns : U64_MAX;
}

/**
 * mgpu_runq_set_policy - let another policy order
 * @rq: run queue
 * @policy: the new policy
 * @data: its own data, for rq->policy_data
 * @now: current time, nanoseconds
 *
 * Everything that waits goes to the new policy.  Nothing happens when @policy
 * is in force already and has no data.
 */
void mgpu_runq_set_policy(struct mgpu_runq *rq,
			  const struct mgpu_policy_ops *policy, void *data,
			  u64 now)
{
	struct mgpu_sched_entity *e;

	now = time_of(rq, now);
	if (policy == rq->policy && !data && !rq->policy_data)
		return;

	list_for_each_entry(e, &rq->entities, list) {
		displace(rq, e);
		if (rq->policy->detach)
			rq->policy->detach(rq, e);
	}
	rq->policy = policy;
	rq->policy_data = data;
	list_for_each_entry(e, &rq->entities, list)
		if (policy->attach)
			policy->attach(rq, e, now);
	list_for_each_entry(e, &rq->entities, list)
		if (e->state != MGPU_ENTITY_IDLE)
			place(rq, e, now);
}

/**
 * mgpu_runq_set_weight - change an entity's weight
 * @rq: run queue
 * @e: entity, in any state
 * @weight: MGPU_WEIGHT_MIN to MGPU_WEIGHT_MAX
 * @now: current time, nanoseconds
 */
void mgpu_runq_set_weight(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			  u32 weight, u64 now)
{
	now = time_of(rq, now);
	if (weight == e->weight)
		return;
	displace(rq, e);
	rq->weights -= e->weight;
	e->weight = weight;
	rq->weights += weight;
	if (e->state != MGPU_ENTITY_IDLE)
		place(rq, e, now);
}

/**
 * mgpu_runq_set_limit - bound an entity's use of the engines
 * @rq: run queue
 * @e: entity, in any state
 * @ppm: parts per million of the time of all engines; 0 for no limit
 * @period_us: time over which the limit holds, microseconds
 * @burst_us: engine time that may be saved up beyond that, microseconds
 * @now: current time, nanoseconds
 */
void mgpu_runq_set_limit(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u32 ppm, u32 period_us, u32 burst_us, u64 now)
{
	u64 engines = (u64)ppm * rq->engines;

	now = time_of(rq, now);
	mgpu_bucket_set(&e->limit, engines * 1000,
			div_u64(engines * period_us, 1000) +
			(u64)burst_us * 1000, now);
	place_again(rq, e, now);
}

/**
 * mgpu_runq_insert - put an entity into one of the queues, or move it there
 * @rq: run queue
 * @e: entity that the policy was given
 * @queue: which, below MGPU_RUNQ_QUEUES
 * @key: its place there: after all with the same key or smaller ones
 */
void mgpu_runq_insert(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u32 queue, u64 key)
{
	mgpu_runq_erase(rq, e);
	e->queue = queue;
	e->key = key;
	e->queued = true;
	rb_add_cached(&e->node, &rq->queues[queue], key_less);
}

/**
 * mgpu_runq_erase - take an entity out of its queue, if it is in one
 * @rq: run queue
 * @e: entity
 */
void mgpu_runq_erase(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
	if (!e->queued)
		return;
	rb_erase_cached(&e->node, &rq->queues[e->queue]);
	e->queued = false;
}

/**
 * mgpu_runq_first - look at the head of a queue
 * @rq: run queue
 * @queue: which, below MGPU_RUNQ_QUEUES
 *
 * Return: the entity with the smallest key, NULL when there is none.
 */
struct mgpu_sched_entity *mgpu_runq_first(const struct mgpu_runq *rq,
					  u32 queue)
{
	struct rb_node *node = rb_first_cached(&rq->queues[queue]);

	return node ? entity_of(node) : NULL;
}
