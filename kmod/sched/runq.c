// SPDX-License-Identifier: GPL-2.0-only
/*
 * The run queue: keeps ready entities with the policy and delayed ones in the delayed
 * queue, and asks the policy for the entity to serve.  Pure: builds in user space too.
 */
#include "sched/runq.h"
#include "sched/sched_policy.h"

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

/* Return @now, monotonic, and low enough that adding the longest wait cannot overflow. */
static u64 time_of(struct mgpu_runq *rq, u64 now)
{
	if (now >= U64_MAX - MGPU_BUCKET_MAX_WAIT_NS)
		now = U64_MAX - MGPU_BUCKET_MAX_WAIT_NS - 1;
	if (now > rq->now)
		rq->now = now;
	return rq->now;
}

/* Return how long @e has to wait before it is eligible, nanoseconds. */
static u64 wait_of(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now)
{
	u64 limit = mgpu_bucket_wait(&e->limit, now), share = 0;

	if (rq->policy->wait)
		share = rq->policy->wait(rq, e, now);
	return limit > share ? limit : share;
}

/* Put an entity that is in no queue into the delayed queue or with the policy. */
static void runq_place(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now)
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
	/* An entity that was ready and is only moved keeps the start of its wait. */
	if (was != MGPU_ENTITY_READY)
		e->ready_ns = now;
	e->state = MGPU_ENTITY_READY;
	rq->nr_ready++;
	rq->policy->enqueue(rq, e, now);
}

/* Remove an entity from its queue; its state stays. */
static void runq_displace(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
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

/* Move an entity to the queue it belongs in after its allowance has changed. */
static void place_again(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u64 now)
{
	if (e->state == MGPU_ENTITY_IDLE ||
	    (e->state == MGPU_ENTITY_READY && !wait_of(rq, e, now)))
		return;
	runq_displace(rq, e);
	runq_place(rq, e, now);
}

/*
 * Make the delayed entities eligible whose time has come.  An entity whose share has
 * become smaller meanwhile is delayed again, until after @now, so the loop ends.
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
 * @engines: number of jobs that the device runs at once, at least 1
 * @policy: scheduling policy
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
 * mgpu_runq_attach - add an entity to the run queue
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
 * mgpu_runq_detach - remove an entity from the run queue
 * @rq: run queue
 * @e: entity, in any state
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
 * mgpu_runq_wake - queue an idle entity that has a waiting job
 * @rq: run queue
 * @e: entity with @head_ns, @head_seq and @head_frame set
 * @now: current time, nanoseconds
 *
 * The caller calls this when an idle entity gets a job, and after mgpu_runq_pick()
 * if the picked entity has another job.  No effect unless the entity is idle.
 */
void mgpu_runq_wake(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now)
{
	now = time_of(rq, now);
	if (e->state == MGPU_ENTITY_IDLE)
		runq_place(rq, e, now);
}

/**
 * mgpu_runq_move - update an entity whose oldest waiting job has changed
 * @rq: run queue
 * @e: entity with @head_ns, @head_seq and @head_frame set
 * @now: current time, nanoseconds
 *
 * Unlike mgpu_runq_sleep() and mgpu_runq_wake(), this keeps the entity's credit.  No
 * effect on an idle entity.
 */
void mgpu_runq_move(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now)
{
	now = time_of(rq, now);
	if (e->state == MGPU_ENTITY_IDLE)
		return;
	runq_displace(rq, e);
	/* mgpu_runq_was_away() must not take the entity for one that was away. */
	if (e->state == MGPU_ENTITY_READY)
		e->left_ns = now;
	runq_place(rq, e, now);
}

/**
 * mgpu_runq_sleep - make an entity without waiting jobs idle
 * @rq: run queue
 * @e: entity, in any state
 */
void mgpu_runq_sleep(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
	runq_displace(rq, e);
	if (e->state == MGPU_ENTITY_DELAYED) {
		e->limited_ns += rq->now - e->delayed_ns;
		e->delayed_ns = 0;
	}
	e->state = MGPU_ENTITY_IDLE;
}

/**
 * mgpu_runq_pick - pick the entity to serve next
 * @rq: run queue
 * @now: current time, nanoseconds
 *
 * Return: the entity, now idle, that runs its oldest job; NULL if no entity may run.
 * mgpu_runq_due() returns when to call again.
 */
struct mgpu_sched_entity *mgpu_runq_pick(struct mgpu_runq *rq, u64 now)
{
	struct mgpu_sched_entity *e;

	now = time_of(rq, now);
	place_due(rq, now);
	if (!rq->nr_ready)
		return NULL;
	e = rq->policy->pick(rq, now);
	/* A policy that picks an entity that is not ready picks none. */
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
 * mgpu_runq_charge - charge a job that has left the engine
 * @rq: run queue
 * @e: entity, in any state
 * @ns: engine nanoseconds that it used, any number
 * @now: current time, nanoseconds
 *
 * The caller calls this once for each mgpu_runq_pick(), and before it requeues a
 * preempted job.
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
 * mgpu_runq_should_yield - test whether to preempt a running job
 * @rq: run queue
 * @e: entity that the job belongs to
 * @ran: engine nanoseconds that the job has used and that are not charged yet
 * @now: current time, nanoseconds
 *
 * Return: true if the caller should charge and requeue the job: the entity has spent
 * its limit, or the policy prefers another one.
 */
bool mgpu_runq_should_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			    u64 ran, u64 now)
{
	u64 all;

	now = time_of(rq, now);
	place_due(rq, now);
	/* The entity's other jobs in flight have used about as much. */
	if (check_mul_overflow(ran, (u64)(e->running ? e->running : 1), &all))
		all = U64_MAX;
	if (mgpu_bucket_spent(&e->limit, all, now))
		return true;
	return rq->policy->yield && rq->policy->yield(rq, e, ran, now);
}

/**
 * mgpu_runq_advance - make delayed entities eligible whose time has come
 * @rq: run queue
 * @now: current time, nanoseconds
 *
 * mgpu_runq_pick() and mgpu_runq_should_yield() do that too.
 */
void mgpu_runq_advance(struct mgpu_runq *rq, u64 now)
{
	place_due(rq, time_of(rq, now));
}

/**
 * mgpu_runq_due - get the time at which the next delayed entity becomes eligible
 * @rq: run queue
 *
 * Return: time, nanoseconds; U64_MAX if no entity is delayed.
 */
u64 mgpu_runq_due(const struct mgpu_runq *rq)
{
	struct rb_node *node = rb_first_cached(&rq->delayed);

	return node ? entity_of(node)->due_ns : U64_MAX;
}

/**
 * mgpu_runq_set_policy - put another policy in force
 * @rq: run queue
 * @policy: the new policy
 * @data: private data of the new policy, for rq->policy_data
 * @now: current time, nanoseconds
 *
 * All waiting entities move to the new policy.  No effect if @policy is in force
 * already and neither @data nor rq->policy_data is set.
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
		runq_displace(rq, e);
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
			runq_place(rq, e, now);
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
	runq_displace(rq, e);
	rq->weights -= e->weight;
	e->weight = weight;
	rq->weights += weight;
	if (e->state != MGPU_ENTITY_IDLE)
		runq_place(rq, e, now);
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
 * @e: ready entity
 * @queue: number of the queue, below MGPU_RUNQ_QUEUES
 * @key: position in the queue: behind equal and smaller keys
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
 * mgpu_runq_erase - remove an entity from its queue, if it is in one
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
 * mgpu_runq_first - get the head of a queue
 * @rq: run queue
 * @queue: number of the queue, below MGPU_RUNQ_QUEUES
 *
 * Return: the entity with the smallest key, or NULL if the queue is empty.
 */
struct mgpu_sched_entity *mgpu_runq_first(const struct mgpu_runq *rq,
					  u32 queue)
{
	struct rb_node *node = rb_first_cached(&rq->queues[queue]);

	return node ? entity_of(node) : NULL;
}
