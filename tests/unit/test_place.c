// SPDX-License-Identifier: GPL-2.0-only
/* Placement: the hard filter, the policies, fragmentation, vGPU types and the account. */
#include <errno.h>

#include "allocations.h"
#include "place.h"
#include "potential.h"
#include "random.h"
#include "tap.h"

/* ---- clusters and requests ---- */

static struct place_node make_node(unsigned int gpus, int cpus, int gib, unsigned int model)
{
	struct place_node n = {
		.cpu_milli = cpus * 1000, .cpu_free = cpus * 1000,
		.memory_mib = gib * 1024, .memory_free = gib * 1024,
		.nr_gpus = (uint8_t)gpus, .model = (uint8_t)model,
	};

	for (unsigned int g = 0; g < gpus; g++)
		n.gpu_free[g] = PLACE_WHOLE;
	place_node_sum(&n);
	return n;
}

static struct place_request want(unsigned int gpus, unsigned int milli, int cpus, int gib)
{
	return (struct place_request){
		.nr_gpus = (uint8_t)gpus, .gpu_milli = (uint16_t)milli, .cpu_milli = cpus * 1000,
		.memory_mib = gib * 1024, .models = PLACE_ANY_MODEL,
	};
}

static struct place_cluster make_cluster(struct place_node *nodes, size_t nr, const char *policy)
{
	struct place_cluster c = {
		.nodes = nodes, .nr = nr, .policy = place_policy_find(policy), .random = 1,
	};

	place_cluster_init(&c);
	return c;
}

/* Return the node that a policy chooses, -1 for none. */
static int chosen(struct place_cluster *c, struct place_request r)
{
	struct place_choice choice;

	return place_decide(c, &r, &choice) ? -1 : (int)choice.node;
}

/* ---- the filter ---- */

static enum place_reason reason(const struct place_node *n, struct place_request r)
{
	struct place_cluster c = { .nodes = (struct place_node *)n, .nr = 1 };

	return place_filter(&c, 0, &r);
}

static void filter(void)
{
	struct place_node n = make_node(4, 16, 64, 2);
	struct place_request r = want(1, 500, 4, 8);

	TAP_EQ(reason(&n, r), PLACE_FITS);
	TAP_EQ(reason(&n, want(1, 1000, 16, 64)), PLACE_FITS);
	TAP_EQ(reason(&n, want(1, 1000, 17, 64)), PLACE_NO_CPU);
	TAP_EQ(reason(&n, want(1, 1000, 16, 65)), PLACE_NO_MEMORY);
	TAP_EQ(reason(&n, want(4, 1000, 1, 1)), PLACE_FITS);
	TAP_EQ(reason(&n, want(5, 1000, 1, 1)), PLACE_NO_GPUS);
	TAP_EQ(reason(&n, want(0, 0, 16, 64)), PLACE_FITS);
	r.models = 1 << 2;
	TAP_EQ(reason(&n, r), PLACE_FITS);
	r.models = 1 << 1;
	TAP_EQ(reason(&n, r), PLACE_NO_MODEL);
	/* without GPUs the model does not count */
	r = want(0, 0, 1, 1);
	r.models = 1 << 1;
	TAP_EQ(reason(&n, r), PLACE_FITS);
	r.capabilities = 5;
	n.capabilities = 4;
	TAP_EQ(reason(&n, r), PLACE_NO_CAPABILITY);
	n.capabilities = 7;
	TAP_EQ(reason(&n, r), PLACE_FITS);
}

static void filter_shares(void)
{
	struct place_node n = make_node(3, 16, 64, 0);
	struct place_request r;

	n.gpu_free[0] = 300;
	n.gpu_free[1] = 500;
	place_node_sum(&n);
	TAP_EQ(n.gpu_total, 1800);
	TAP_EQ(n.max_free, 1000);
	TAP_EQ(n.nr_full, 1);
	TAP_EQ(reason(&n, want(2, 1000, 1, 1)), PLACE_NO_GPU);
	TAP_EQ(reason(&n, want(2, 500, 1, 1)), PLACE_FITS);
	TAP_EQ(reason(&n, want(3, 301, 1, 1)), PLACE_NO_GPU);
	n.gpu_memory_mib = 8192;
	n.gpu_memory_free[0] = 8192;
	n.gpu_memory_free[1] = 8192;
	n.gpu_memory_free[2] = 1024;
	r = want(1, 600, 1, 1);
	r.gpu_memory_mib = 1024;
	TAP_EQ(reason(&n, r), PLACE_FITS);
	r.gpu_memory_mib = 1025;
	TAP_EQ(reason(&n, r), PLACE_NO_GPU_MEMORY);
	r.gpu_milli = 500;
	TAP_EQ(reason(&n, r), PLACE_FITS);
	/* a full node */
	memset(n.gpu_free, 0, sizeof(n.gpu_free));
	place_node_sum(&n);
	TAP_EQ(reason(&n, want(1, 1, 1, 1)), PLACE_NO_GPU);
	TAP_EQ(reason(&n, want(0, 0, 1, 1)), PLACE_FITS);
	for (unsigned int k = 0; k < PLACE_REASONS; k++)
		TAP_CHECK(strcmp(place_reason_text(k), "unknown"));
}

/* ---- policies ---- */

static void first_fit(void)
{
	struct place_node nodes[] = { make_node(1, 2, 8, 0), make_node(2, 8, 8, 0),
				      make_node(2, 8, 8, 0) };
	struct place_cluster c = make_cluster(nodes, 3, "first-fit");

	TAP_EQ(chosen(&c, want(1, 500, 1, 1)), 0);
	TAP_EQ(chosen(&c, want(1, 500, 4, 1)), 1);
	TAP_EQ(chosen(&c, want(3, 1000, 1, 1)), -1);
}

/* The nodes have 8, 4 and 6 of 8 CPUs and 2, 2 and 1 of 2 GPUs free. */
static void best_fit(void)
{
	struct place_node nodes[] = { make_node(2, 8, 8, 0), make_node(2, 8, 8, 0),
				      make_node(2, 8, 8, 0) };
	struct place_cluster c;

	nodes[1].cpu_free = 4000;
	nodes[2].cpu_free = 6000;
	nodes[2].gpu_free[1] = 0;
	c = make_cluster(nodes, 3, "best-fit");
	/* rests: 6/8 + 1/2, 2/8 + 1/2, 4/8 + 0 */
	TAP_EQ(chosen(&c, want(1, 1000, 2, 1)), 2);
	/* 4/8 + 1, 0 + 1, 2/8 + 1/2 */
	TAP_EQ(chosen(&c, want(0, 0, 4, 1)), 2);
	TAP_EQ(chosen(&c, want(2, 1000, 4, 1)), 1);
}

static void dot_product(void)
{
	struct place_node nodes[] = { make_node(2, 8, 8, 0), make_node(2, 8, 8, 0) };
	struct place_cluster c;

	/* free: 8/8 CPU, 1/2 GPU; 2/8 CPU, 2/2 GPU */
	nodes[0].gpu_free[0] = 0;
	nodes[1].cpu_free = 2000;
	c = make_cluster(nodes, 2, "dot-product");
	/* 1 * 1/8 + 1/2 * 1/2 = 0.375; 1/4 * 1/8 + 1 * 1/2 = 0.531 */
	TAP_EQ(chosen(&c, want(1, 1000, 1, 1)), 0);
	/* 1 * 2/8 + 1/2 * 1/20 = 0.275; 1/4 * 2/8 + 1 * 1/20 = 0.1125 */
	TAP_EQ(chosen(&c, want(1, 100, 2, 1)), 1);
}

static void gpu_packing(void)
{
	struct place_node nodes[] = { make_node(2, 8, 8, 0), make_node(2, 8, 8, 0),
				      make_node(2, 8, 8, 0), make_node(2, 8, 8, 0) };
	struct place_choice choice;
	struct place_request r = want(1, 300, 1, 1);
	struct place_cluster c;

	/* node 0 is free, node 1 has a GPU of which all is taken, 2 and 3 GPUs in use */
	nodes[1].gpu_free[0] = 0;
	nodes[2].gpu_free[1] = 700;
	nodes[3].gpu_free[1] = 400;
	c = make_cluster(nodes, 4, "gpu-packing");
	TAP_EQ(place_decide(&c, &r, &choice), 0);
	TAP_EQ(choice.node, 3);
	TAP_EQ(choice.gpus, 2);
	/* what is free of GPUs in use is too little: a free GPU of a node in use */
	TAP_EQ(chosen(&c, want(1, 900, 1, 1)), 1);
	TAP_EQ(chosen(&c, want(2, 1000, 1, 1)), 0);
}

static void gpu_clustering(void)
{
	struct place_node nodes[] = { make_node(4, 8, 8, 0), make_node(4, 8, 8, 0),
				      make_node(4, 8, 8, 0), make_node(4, 8, 8, 0) };
	struct place_cluster c;

	/* node 0: parts and whole GPUs; 1: free; 2: parts only; 3: whole GPUs only */
	nodes[0].tasks[0] = 1;
	nodes[0].tasks[1] = 1;
	nodes[2].tasks[0] = 2;
	nodes[3].tasks[1] = 1;
	c = make_cluster(nodes, 4, "gpu-clustering");
	TAP_EQ(chosen(&c, want(1, 300, 1, 1)), 2);
	TAP_EQ(chosen(&c, want(1, 1000, 1, 1)), 3);
	/* no node has tasks of two GPUs: the free one */
	TAP_EQ(chosen(&c, want(2, 1000, 1, 1)), 1);
	nodes[2].tasks[0] = 0;
	nodes[2].tasks[2] = 1;
	TAP_EQ(chosen(&c, want(1, 300, 1, 1)), 0);
}

static void random_policy(void)
{
	struct place_node nodes[] = { make_node(1, 8, 8, 0), make_node(1, 8, 8, 0),
				      make_node(0, 8, 8, 0), make_node(1, 8, 8, 0) };
	struct place_cluster a = make_cluster(nodes, 4, "random");
	struct place_cluster b = a;
	unsigned int hits[4] = { 0 };

	for (int k = 0; k < 300; k++) {
		int node = chosen(&a, want(1, 100, 1, 1));

		TAP_EQ(chosen(&b, want(1, 100, 1, 1)), node);
		TAP_NEED(node >= 0 && node < 4);
		hits[node]++;
	}
	TAP_EQ(hits[2], 0);
	TAP_CHECK(hits[0] > 60 && hits[1] > 60 && hits[3] > 60);
}

/* ---- fragmentation ---- */

/*
 * The definition, task by task: a task that the node cannot run, or that wants no GPU, leaves
 * all that is free; else GPUs with less than it wants of one are what it cannot use.
 */
static int64_t lost(const struct place_node *n, const struct place_request *r)
{
	unsigned int fitting = 0;
	int64_t sum = 0;

	for (unsigned int g = 0; g < n->nr_gpus; g++)
		fitting += n->gpu_free[g] >= r->gpu_milli;
	if (!r->nr_gpus || n->cpu_free < r->cpu_milli || n->memory_free < r->memory_mib ||
	    !(r->models >> n->model & 1) || fitting < r->nr_gpus)
		return n->gpu_total;
	for (unsigned int g = 0; g < n->nr_gpus; g++)
		sum += n->gpu_free[g] < r->gpu_milli ? n->gpu_free[g] : 0;
	return sum;
}

/* The counts of the classes must add up to a power of two. */
static int64_t defined(const struct place_node *n, const struct place_class *classes, size_t nr)
{
	int64_t sum = 0, all = 0;

	for (size_t i = 0; i < nr; i++)
		all += classes[i].count;
	for (size_t i = 0; i < nr; i++)
		sum += lost(n, &classes[i].r) * classes[i].count * (POTENTIAL_ONE / all);
	return sum;
}

#define CLASSES	64

static void draw_classes(struct place_class *classes)
{
	static const unsigned int shares[] = { 100, 250, 330, 500, 501, 900, 1000 };

	for (size_t i = 0; i < CLASSES; i++) {
		unsigned int gpus = below(8) < 5 ? 1 : below(9);

		classes[i] = (struct place_class){
			.r = want(gpus, gpus == 1 ? shares[below(7)] : gpus ? 1000 : 0,
				  (int)below(40), (int)below(60)),
			.count = 1,
		};
		if (!below(4))
			classes[i].r.models = (uint32_t)below(8);
	}
}

static void draw_node(struct place_node *n)
{
	*n = make_node(below(9), 64, 64, below(3));
	n->cpu_free = (int32_t)below(65000);
	n->memory_free = (int32_t)below(65000);
	for (unsigned int g = 0; g < n->nr_gpus; g++)
		n->gpu_free[g] = below(3) ? 1000 : (uint16_t)below(1001);
	place_node_sum(n);
}

static void fragmentation(void)
{
	struct place_class classes[CLASSES];
	struct place_node nodes[3] = { make_node(8, 1, 1, 0), make_node(8, 1, 1, 1),
				       make_node(8, 1, 1, 2) };
	struct place_cluster c = make_cluster(nodes, 3, "fgd");

	rng = 7;
	for (int round = 0; round < 20; round++) {
		struct place_potential *p;

		draw_classes(classes);
		p = potential_new(&c, classes, CLASSES, NULL);
		TAP_NEED(p);
		TAP_CHECK(!potential_learned(p));
		for (int k = 0; k < 200; k++) {
			struct place_node n;

			draw_node(&n);
			TAP_EQ(potential_fragmentation(p, &n), defined(&n, classes, CLASSES));
		}
		potential_free(p);
	}
}

/* With more steps than the table has, needs are rounded up: it is never too small. */
static void many_steps(void)
{
	enum { NR = 512 };
	static struct place_class classes[NR];
	struct place_node nodes[1] = { make_node(8, 1, 1, 0) };
	struct place_cluster c = make_cluster(nodes, 1, "fgd");
	struct place_potential *p;
	int64_t exact = 0, rough = 0;

	rng = 8;
	for (size_t i = 0; i < NR; i++)
		classes[i] = (struct place_class){
			{ .nr_gpus = 1, .gpu_milli = 500, .cpu_milli = (int32_t)i * 100,
			  .models = 1 }, 1,
		};
	p = potential_new(&c, classes, NR, NULL);
	TAP_NEED(p);
	for (int k = 0; k < 1000; k++) {
		struct place_node n;

		draw_node(&n);
		n.model = 0;
		TAP_CHECK(potential_fragmentation(p, &n) >= defined(&n, classes, NR));
		exact += defined(&n, classes, NR);
		rough += potential_fragmentation(p, &n);
	}
	TAP_NEAR((double)rough / (double)exact, 1, 0.03);
	potential_free(p);
}

/* The least growth of fragmentation over all GPUs of a node. */
static int64_t least_growth(const struct place_node *n, const struct place_request *r,
			    const struct place_class *classes, size_t nr)
{
	int64_t least = INT64_MAX;

	for (unsigned int g = 0; g < n->nr_gpus; g++) {
		struct place_node after = *n;
		int64_t growth;

		if (n->gpu_free[g] < r->gpu_milli)
			continue;
		after.cpu_free -= r->cpu_milli;
		after.memory_free -= r->memory_mib;
		after.gpu_free[g] -= r->gpu_milli;
		place_node_sum(&after);
		growth = defined(&after, classes, nr) - defined(n, classes, nr);
		if (growth < least)
			least = growth;
	}
	return least;
}

/* Fragmentation is what is free less what can be used, so that its growth is known. */
static void descent(void)
{
	struct place_class classes[CLASSES];
	struct place_node nodes[30];
	struct place_cluster c = { .nodes = nodes, .nr = 30, .policy = place_policy_find("fgd") };
	unsigned int decided = 0;

	rng = 9;
	for (int round = 0; round < 50; round++) {
		struct place_request r = want(1, (unsigned int)below(1000) + 1, (int)below(20),
					      (int)below(20));
		int64_t least = INT64_MAX, step = (int64_t)POTENTIAL_ONE * PLACE_WHOLE / 100;
		struct place_choice choice;

		draw_classes(classes);
		for (size_t i = 0; i < 30; i++)
			draw_node(&nodes[i]);
		c.potential = potential_new(&c, classes, CLASSES, NULL);
		TAP_NEED(c.potential);
		place_cluster_init(&c);
		for (size_t i = 0; i < 30; i++) {
			int64_t growth;

			if (place_filter(&c, i, &r) != PLACE_FITS)
				continue;
			growth = least_growth(&nodes[i], &r, classes, CLASSES);
			TAP_EQ(potential_score(c.potential, i, &nodes[i], &r, &choice),
			       growth + (int64_t)r.gpu_milli * POTENTIAL_ONE);
			if (growth < least)
				least = growth;
		}
		if (!place_decide(&c, &r, &choice)) {
			TAP_CHECK(least_growth(&nodes[choice.node], &r, classes, CLASSES) <
				  least + step);
			decided++;
		} else {
			TAP_CHECK(least == INT64_MAX);
		}
		potential_free(c.potential);
	}
	TAP_CHECK(decided > 30);
}

/*
 * By hand: the workload is half tasks of a half GPU, half tasks of one. A task of a half on the
 * free GPU makes that useless to the second kind (0.5 * 500 more, less 0), beside another it
 * completes the GPU.
 */
static void descent_by_hand(void)
{
	struct place_class classes[] = { { want(1, 500, 1, 1), 1 }, { want(1, 1000, 1, 1), 1 } };
	struct place_node nodes[] = { make_node(1, 8, 8, 0), make_node(1, 8, 8, 0) };
	struct place_cluster c = { .nodes = nodes, .nr = 2, .policy = place_policy_find("fgd") };

	nodes[1].gpu_free[0] = 500;
	c.potential = potential_new(&c, classes, 2, NULL);
	TAP_NEED(c.potential);
	place_cluster_init(&c);
	TAP_EQ(potential_fragmentation(c.potential, &nodes[0]), 0);
	TAP_EQ(potential_fragmentation(c.potential, &nodes[1]), 250 * (int64_t)POTENTIAL_ONE);
	TAP_EQ(chosen(&c, want(1, 500, 1, 1)), 1);
	/* what leaves too little CPU for either task costs the GPU */
	TAP_EQ(chosen(&c, want(0, 0, 8, 1)), 1);
	potential_free(c.potential);
}

/* ---- vGPUs ---- */

static const struct place_type types[] = { { 125, 1024 }, { 250, 2048 }, { 500, 8192 } };

static void vgpu_types(void)
{
	struct place_node nodes[] = { make_node(1, 8, 8, 0), make_node(1, 8, 8, 0) };
	struct place_cluster c = make_cluster(nodes, 2, "best-fit");
	struct place_request r = want(1, 100, 1, 1);
	struct place_choice choice;

	for (int i = 0; i < 2; i++) {
		nodes[i].gpu_memory_mib = 16384;
		nodes[i].gpu_memory_free[0] = 16384;
	}
	c.types = types;
	c.nr_types = 3;
	r.vgpu = true;
	TAP_EQ(place_decide(&c, &r, &choice), -ENOSPC);
	TAP_EQ(place_filter(&c, 0, &r), PLACE_NO_TYPE);
	nodes[1].types = 4;
	TAP_EQ(place_decide(&c, &r, &choice), 0);
	TAP_EQ(choice.node, 1);
	TAP_EQ(choice.type, 2);
	TAP_EQ(choice.gpu_milli, 500);
	TAP_EQ(choice.gpu_memory_mib, 8192);
	/* the smallest type that is large enough in both */
	nodes[1].types = 7;
	r.gpu_memory_mib = 1500;
	TAP_EQ(place_decide(&c, &r, &choice), 0);
	TAP_EQ(choice.type, 1);
	place_commit(&c, &r, &choice);
	TAP_EQ(nodes[1].gpu_free[0], 750);
	TAP_EQ(nodes[1].gpu_memory_free[0], 14336);
	place_release(&c, &r, &choice);
	TAP_EQ(nodes[1].gpu_free[0], 1000);
	TAP_EQ(nodes[1].gpu_memory_free[0], 16384);
	r.gpu_memory_mib = 8193;
	TAP_EQ(place_filter(&c, 1, &r), PLACE_NO_TYPE);
	r.models = 2;
	TAP_EQ(place_filter(&c, 1, &r), PLACE_NO_MODEL);
}

static void neighbours(void)
{
	struct place_node nodes[] = { make_node(2, 8, 8, 0), make_node(2, 8, 8, 0) };
	struct place_cluster c = make_cluster(nodes, 2, "best-fit");
	struct place_request r = want(1, 250, 0, 0);
	struct place_choice choice;

	for (int i = 0; i < 2; i++)
		nodes[i].gpu_free[0] = nodes[i].gpu_free[1] = 500;
	nodes[0].tenants[0][PLACE_KIND_COMPUTE] = 2;
	nodes[0].tenants[1][PLACE_KIND_COMPUTE] = 1;
	nodes[1].tenants[0][PLACE_KIND_COMPUTE] = 1;
	place_cluster_init(&c);
	r.kind = PLACE_KIND_COMPUTE;
	TAP_EQ(place_decide(&c, &r, &choice), 0);
	TAP_EQ(choice.node, 1);
	TAP_EQ(choice.gpus, 2);
	TAP_EQ(choice.same, 0);
	place_commit(&c, &r, &choice);
	TAP_EQ(nodes[1].tenants[1][PLACE_KIND_COMPUTE], 1);
	/* another kind, or none, does not mind them */
	place_release(&c, &r, &choice);
	r.kind = PLACE_KIND_MEMORY;
	TAP_EQ(place_decide(&c, &r, &choice), 0);
	TAP_EQ(choice.node, 0);
	TAP_EQ(choice.gpus, 1);
}

/* ---- the account ---- */

#define NODES	40

/* Place and release at random; what is kept must be what a fresh cluster would have. */
static void account(const char *policy, const struct place_weights *weights)
{
	static struct place_node nodes[NODES], fresh[NODES];
	static struct place_request placed[2000];
	static struct place_choice choices[2000];
	struct place_class classes[CLASSES];
	struct place_cluster c = { .nodes = nodes, .nr = NODES,
				   .policy = place_policy_find(policy), .random = 3 };
	struct place_cluster again;
	struct place_choice other;
	size_t nr = 0, before;

	rng = 11;
	draw_classes(classes);
	for (size_t i = 0; i < NODES; i++)
		nodes[i] = make_node(below(9), 64, 128, below(3));
	memcpy(fresh, nodes, sizeof(nodes));
	c.potential = potential_new(&c, classes, CLASSES, weights);
	TAP_NEED(c.potential);
	place_cluster_init(&c);
	before = allocations;
	for (int k = 0; k < 3000; k++) {
		struct place_request r = classes[below(CLASSES)].r;

		if (nr && below(3) == 0) {
			size_t gone = below(nr--);

			place_release(&c, &placed[gone], &choices[gone]);
			placed[gone] = placed[nr];
			choices[gone] = choices[nr];
			continue;
		}
		r.kind = (uint8_t)below(PLACE_KINDS);
		if (nr < 2000 && !place_decide(&c, &r, &choices[nr])) {
			placed[nr] = r;
			place_commit(&c, &r, &choices[nr++]);
		}
	}
	TAP_EQ(allocations, before);
	TAP_CHECK(nr > 50);
	/* a cluster whose values are computed anew decides the same */
	again = c;
	again.potential = potential_new(&again, classes, CLASSES, weights);
	TAP_NEED(again.potential);
	place_cluster_init(&again);
	for (size_t i = 0; i < CLASSES; i++) {
		int ret = place_decide(&again, &classes[i].r, &other);

		TAP_EQ(place_decide(&c, &classes[i].r, &choices[nr]), ret);
		if (ret)
			continue;
		TAP_EQ(choices[nr].node, other.node);
		TAP_EQ(choices[nr].score, other.score);
		TAP_EQ(choices[nr].gpus, other.gpus);
	}
	potential_free(again.potential);
	while (nr--)
		place_release(&c, &placed[nr], &choices[nr]);
	for (size_t i = 0; i < NODES; i++)
		TAP_MEM(&nodes[i], &fresh[i], sizeof(nodes[i]));
	potential_free(c.potential);
}

static void accounts(void)
{
	struct place_weights weights;

	rng = 12;
	for (unsigned int i = 0; i < PLACE_FEATURES; i++)
		weights.value[i] = (int32_t)below(1000) - 500;
	for (size_t i = 0; place_policies[i]; i++)
		account(place_policies[i]->name, place_policies[i]->learned ? &weights : NULL);
}

/* ---- weights ---- */

static void zero_weights(void)
{
	static const struct place_weights zero;
	struct place_class classes[CLASSES];
	struct place_node nodes[20];
	struct place_cluster fgd = { .nodes = nodes, .nr = 20, .policy = place_policy_find("fgd") };
	struct place_cluster learned = fgd;

	rng = 13;
	learned.policy = place_policy_find("learned");
	draw_classes(classes);
	for (size_t i = 0; i < 20; i++)
		draw_node(&nodes[i]);
	fgd.potential = potential_new(&fgd, classes, CLASSES, NULL);
	learned.potential = potential_new(&fgd, classes, CLASSES, &zero);
	TAP_NEED(fgd.potential && learned.potential);
	TAP_CHECK(potential_learned(learned.potential));
	place_cluster_init(&fgd);
	place_cluster_init(&learned);
	for (size_t i = 0; i < CLASSES; i++) {
		struct place_choice a, b;
		int ret = place_decide(&fgd, &classes[i].r, &a);

		TAP_EQ(place_decide(&learned, &classes[i].r, &b), ret);
		if (!ret) {
			TAP_EQ(a.node, b.node);
			TAP_EQ(a.gpus, b.gpus);
		}
	}
	potential_free(fgd.potential);
	potential_free(learned.potential);
}

/* Each part of the potential, by hand: two nodes that differ in one thing. */
static int prefers(struct place_node a, struct place_node b, unsigned int feature, int32_t weight,
		   struct place_request r)
{
	/* a workload that uses nothing of either */
	struct place_class classes[] = { { want(1, 1000, 4, 4), 1 }, { want(1, 1000, 4, 4), 1 } };
	struct place_node nodes[] = { a, b };
	struct place_cluster c = { .nodes = nodes, .nr = 2,
				   .policy = place_policy_find("learned") };
	struct place_weights weights = { 0 };
	int node;

	classes[0].r.models = 1 << 5;
	classes[1].r.models = 1 << 1;
	classes[1].r.memory_mib = PLACE_MAX_AMOUNT;
	weights.value[feature] = weight;
	c.potential = potential_new(&c, classes, 2, &weights);
	if (!c.potential)
		return -1;
	place_cluster_init(&c);
	node = chosen(&c, r);
	potential_free(c.potential);
	return node;
}

static void parts_of_the_potential(void)
{
	struct place_request r = want(1, 500, 0, 0);
	struct place_node half = make_node(1, 4, 8, 0), whole = half, two = make_node(2, 4, 8, 0);
	struct place_node rich = make_node(1, 400, 8, 0), scarce = make_node(1, 4, 8, 1);

	half.gpu_free[0] = 500;
	/* best fit would take the half; a half that is left is worth something */
	TAP_EQ(prefers(whole, half, FEATURE_RESIDUAL + 3, 0, r), 1);
	TAP_EQ(prefers(whole, half, FEATURE_RESIDUAL + 3, 500, r), 0);
	TAP_EQ(prefers(whole, half, FEATURE_RESIDUAL + 7, -500, r), 0);
	/* two free GPUs are worth something together */
	TAP_EQ(prefers(two, whole, FEATURE_FULL + 1, 500, r), 1);
	TAP_EQ(prefers(two, whole, FEATURE_FULL + 1, -500, r), 0);
	/* GPU beside much CPU, in nodes of one size, of a model that tasks ask for */
	TAP_EQ(prefers(rich, whole, FEATURE_CPU + 8, 500, r), 1);
	TAP_EQ(prefers(rich, whole, FEATURE_CPU + 8, -500, r), 0);
	TAP_EQ(prefers(two, whole, FEATURE_NODE, 500, r), 0);
	TAP_EQ(prefers(two, whole, FEATURE_NODE + 1, 500, r), 1);
	TAP_EQ(prefers(scarce, whole, FEATURE_SCARCITY, 500, r), 1);
	TAP_EQ(prefers(scarce, whole, FEATURE_SCARCITY, -500, r), 0);
}

static void names(void)
{
	char name[32], other[32];

	TAP_CHECK(!place_policy_find("banana"));
	TAP_STR(place_policy_find("fgd")->name, "fgd");
	for (unsigned int i = 0; i < PLACE_FEATURES; i++) {
		place_feature_name(i, name, sizeof(name));
		for (unsigned int k = 0; k < i; k++) {
			place_feature_name(k, other, sizeof(other));
			TAP_CHECK(strcmp(name, other));
		}
	}
}

int main(void)
{
	tap_run(filter, "the filter tells the first thing that a node lacks");
	tap_run(filter_shares, "parts of GPUs and their memory are filtered GPU by GPU");
	tap_run(first_fit, "first-fit takes the first node that fits");
	tap_run(best_fit, "best-fit takes the node with the least left");
	tap_run(dot_product, "dot-product takes the node with the least product");
	tap_run(gpu_packing, "gpu-packing takes GPUs in use, then nodes in use, then free nodes");
	tap_run(gpu_clustering, "gpu-clustering takes nodes with tasks of the same size");
	tap_run(random_policy, "random takes any node that fits, the same ones for a seed");
	tap_run(fragmentation, "the fragmentation is that of the definition");
	tap_run(many_steps, "with very many classes it is rounded up a little");
	tap_run(descent, "fgd takes the node where the fragmentation grows least");
	tap_run(descent_by_hand, "fgd decides small cases as computed by hand");
	tap_run(vgpu_types, "a vGPU gets the smallest type that is large enough");
	tap_run(neighbours, "of equal nodes and GPUs those with other neighbours are taken");
	tap_run(accounts, "decisions allocate nothing, and the account is right after thousands");
	tap_run(zero_weights, "learned with weights of 0 is fgd");
	tap_run(parts_of_the_potential, "each kind of weight does what it is for");
	tap_run(names, "names are found, and differ");
	return tap_done();
}
