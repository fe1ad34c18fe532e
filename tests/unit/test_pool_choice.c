// SPDX-License-Identifier: GPL-2.0-only
/* The choice of a GPU: filter, history, best fit. */
#include "tap.h"
#include "choice.h"
#include "random.h"

static struct choice *c;
static struct pool_settings settings = { .history_min = 5, .policy = "history" };
static char why[POOL_TEXT_MAX];

static struct pool_gpu gpu(const char *model, uint32_t memory_mib)
{
	struct pool_gpu g = { .target = POOL_WHOLE, .slots = 1, .memory_mib = memory_mib,
			      .capabilities = POOL_3D | POOL_COMPUTE };

	snprintf(g.model, sizeof(g.model), "%s", model);
	snprintf(g.name, sizeof(g.name), "h/%s", model);
	return g;
}

static struct pool_gpu parent(uint32_t slots, uint32_t memory_mib)
{
	struct pool_gpu g = gpu("soft", memory_mib);

	g.target = POOL_VGPU;
	g.slots = slots;
	snprintf(g.types, sizeof(g.types), "small  medium:2 large:4");
	return g;
}

static struct pool_request wish(const char *kind)
{
	struct pool_request r = { .id = 1 };

	snprintf(r.kind, sizeof(r.kind), "%s", kind);
	return r;
}

/* Runs of a kind on a model. */
static void learn(const char *kind, const char *model, int runs, uint64_t size_mib, double seconds,
		  uint64_t energy_mj)
{
	struct pool_outcome o = { .target = POOL_WHOLE, .size_mib = size_mib, .seconds = seconds,
				  .energy_mj = energy_mj, .done = true };

	snprintf(o.kind, sizeof(o.kind), "%s", kind);
	snprintf(o.model, sizeof(o.model), "%s", model);
	for (int i = 0; i < runs; i++)
		TAP_EQ(choice_learn(c, &o), 0);
}

static size_t pick_of(const struct pool_request *r, const struct pool_gpu *gpus, size_t nr)
{
	struct choice_candidate candidates[16];

	for (size_t i = 0; i < nr; i++)
		candidates[i] = (struct choice_candidate){ .gpu = &gpus[i], .need = 1,
							   .free = gpus[i].slots - gpus[i].used };
	return choice_pick(c, &settings, r, candidates, nr, why);
}

static void filter(void)
{
	struct pool_gpu g = gpu("T4", 16000), v = parent(8, 800);
	struct pool_request r = wish("x");
	char type[POOL_TYPE_MAX];
	uint32_t slots;

	TAP_EQ(choice_fit(&g, &r, type, &slots), CHOICE_FITS);
	TAP_EQ(slots, 1);
	TAP_CHECK(!type[0]);
	r.target = POOL_VGPU;
	TAP_EQ(choice_fit(&g, &r, type, &slots), CHOICE_TARGET);
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_FITS);
	TAP_CHECK(!strcmp(type, "small"));
	r.target = POOL_WHOLE;
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_TARGET);
	r.target = POOL_ANY;
	/* 100 MiB a slot */
	r.memory_mib = 100;
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_FITS);
	TAP_EQ(slots, 1);
	r.memory_mib = 101;
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_FITS);
	TAP_EQ(slots, 2);
	TAP_CHECK(!strcmp(type, "medium"));
	r.memory_mib = 401;
	TAP_EQ(choice_fit(&v, &r, NULL, &slots), CHOICE_MEMORY);
	r.memory_mib = 16001;
	TAP_EQ(choice_fit(&g, &r, NULL, &slots), CHOICE_MEMORY);
	r.memory_mib = 16000;
	TAP_EQ(choice_fit(&g, &r, NULL, &slots), CHOICE_FITS);
	g.memory_mib = 0;
	TAP_EQ(choice_fit(&g, &r, NULL, &slots), CHOICE_FITS);
	r.memory_mib = 0;
	strcpy(r.type, "large");
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_FITS);
	TAP_EQ(slots, 4);
	TAP_EQ(choice_fit(&g, &r, type, &slots), CHOICE_TARGET);
	strcpy(r.type, "lar");
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_TYPE);
	strcpy(r.type, "large");
	v.slots = 3;
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_TYPE);
	r = wish("x");
	g.capabilities = POOL_COMPUTE;
	r.capabilities = POOL_3D;
	TAP_EQ(choice_fit(&g, &r, type, &slots), CHOICE_CAPABILITY);
	v = parent(8, 800);
	strcpy(v.types, "small:1:none medium:2:compute large:4");
	v.capabilities = POOL_3D | POOL_COMPUTE;
	r.capabilities = POOL_COMPUTE;
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_FITS);
	TAP_STR(type, "medium");
	TAP_EQ(slots, 2);
	r.capabilities = POOL_3D;
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_FITS);
	TAP_STR(type, "large");
	strcpy(r.type, "small");
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_CAPABILITY);
	r.capabilities = 0;
	TAP_EQ(choice_fit(&v, &r, type, &slots), CHOICE_FITS);
	TAP_STR(type, "small");
	TAP_EQ(slots, 1);
	TAP_EQ(choice_type_slots(&v, "medium"), 2);
	TAP_EQ(choice_type_slots(&v, "medium:2"), 0);
	TAP_EQ(choice_type_slots(&v, ""), 0);
	for (int i = 0; i < CHOICE_REASONS; i++) {
		TAP_CHECK(strlen(choice_reason_text((enum choice_reason)i, POOL_WHOLE, 1)) > 3);
		TAP_CHECK(strlen(choice_reason_text((enum choice_reason)i, POOL_VGPU, 2)) > 3);
	}
	TAP_STR(choice_reason_text(CHOICE_TARGET, POOL_WHOLE, 1), "gives vGPUs only");
	TAP_STR(choice_reason_text(CHOICE_TARGET, POOL_VGPU, 2), "give no vGPUs");
	TAP_STR(choice_reason_text(CHOICE_MEMORY, POOL_ANY, 1), "has too little memory");
	TAP_STR(choice_reason_text(CHOICE_MEMORY, POOL_ANY, 2), "have too little memory");
}

static void thin_history(void)
{
	const struct pool_gpu gpus[] = { gpu("A100", 80000), gpu("T4", 16000), gpu("A10", 24000) };
	struct pool_request r = wish("training");

	c = choice_new();
	/* The smallest that will do. */
	TAP_EQ(pick_of(&r, gpus, 3), 1);
	TAP_CHECK(strstr(why, "thin (0 of 5 runs)") != NULL);
	TAP_CHECK(strstr(why, "best-fit") != NULL);
	learn("training", "A100", 4, 0, 10, 0);
	TAP_EQ(pick_of(&r, gpus, 3), 1);
	TAP_CHECK(strstr(why, "thin (4 of 5 runs)") != NULL);
	learn("training", "A100", 1, 0, 10, 0);
	learn("training", "T4", 5, 0, 100, 0);
	TAP_EQ(pick_of(&r, gpus, 3), 0);
	TAP_CHECK(strstr(why, "history: training takes") != NULL);
	TAP_CHECK(strstr(why, "on A100 (5 runs)") != NULL);
	TAP_CHECK(strstr(why, "on A10 (0 runs)") != NULL);
	/* Another kind knows nothing. */
	r = wish("other");
	TAP_EQ(pick_of(&r, gpus, 3), 1);
	choice_free(c);
}

static void policies(void)
{
	const struct pool_gpu gpus[] = { gpu("A100", 80000), gpu("T4", 16000) };
	const struct pool_request r = wish("training");

	c = choice_new();
	learn("training", "A100", 20, 0, 10, 0);
	learn("training", "T4", 20, 0, 100, 0);
	strcpy(settings.policy, "best-fit");
	TAP_EQ(pick_of(&r, gpus, 2), 1);
	TAP_CHECK(!strncmp(why, "best-fit", 8));
	strcpy(settings.policy, "first-fit");
	TAP_EQ(pick_of(&r, gpus, 2), 0);
	TAP_CHECK(!strncmp(why, "first-fit", 9));
	strcpy(settings.policy, "history");
	choice_free(c);
}

static void packs_vgpus(void)
{
	struct pool_gpu gpus[] = { parent(8, 800), parent(8, 800), parent(8, 800) };
	const struct pool_request r = wish("x");

	c = choice_new();
	gpus[0].used = 2;
	gpus[1].used = 6;
	TAP_EQ(pick_of(&r, gpus, 3), 1);
	choice_free(c);
}

/* Rows of different sizes say the same of the speed. */
static void sizes(void)
{
	const struct pool_gpu gpus[] = { gpu("A", 1), gpu("B", 1) };
	struct pool_request r = wish("k");
	struct choice_estimate e;

	c = choice_new();
	for (uint64_t size = 10; size <= 10000; size *= 10) {
		learn("k", "A", 2, size, (double)size / 10, 0);
		learn("k", "B", 2, size / 10, (double)size / 50, 0);
	}
	r.size_mib = 5000;
	TAP_CHECK(choice_expect(c, &r, &gpus[0], &e));
	TAP_EQ(e.runs, 8);
	TAP_CHECK(e.seconds > 450 && e.seconds < 700);
	TAP_CHECK(choice_expect(c, &r, &gpus[1], &e));
	TAP_CHECK(e.seconds > 800 && e.seconds < 1001);
	TAP_EQ(pick_of(&r, gpus, 2), 0);
	TAP_CHECK(strstr(why, "MiB/s") != NULL);
	choice_free(c);
}

static void outliers(void)
{
	const struct pool_gpu gpus[] = { gpu("A", 1), gpu("B", 1) };
	const struct pool_request r = wish("k");

	c = choice_new();
	learn("k", "A", 10, 0, 100, 0);
	learn("k", "A", 4, 0, 1e6, 0);
	learn("k", "B", 14, 0, 200, 0);
	TAP_EQ(pick_of(&r, gpus, 2), 0);
	choice_free(c);
}

static void latest_rows_count(void)
{
	const struct pool_gpu g = gpu("A", 1);
	const struct pool_request r = wish("k");
	struct choice_estimate e;

	c = choice_new();
	learn("k", "A", 1000, 0, 1000, 0);
	learn("k", "A", CHOICE_ROWS, 0, 10, 0);
	choice_expect(c, &r, &g, &e);
	TAP_EQ(e.runs, CHOICE_ROWS);
	TAP_CHECK(e.seconds > 9.9 && e.seconds < 10.1);
	choice_free(c);
}

static void what_does_not_count(void)
{
	struct pool_outcome o = { .kind = "k", .model = "A", .target = POOL_WHOLE, .seconds = 5 };
	const struct pool_gpu g = gpu("A", 1);
	const struct pool_request r = wish("k");
	struct choice_estimate e;

	c = choice_new();
	choice_learn(c, &o);
	o.done = true;
	o.seconds = 0;
	choice_learn(c, &o);
	o.seconds = -1;
	choice_learn(c, &o);
	o.seconds = (double)NAN;
	choice_learn(c, &o);
	o.seconds = (double)INFINITY;
	choice_learn(c, &o);
	TAP_CHECK(!choice_expect(c, &r, &g, &e));
	/* A vGPU's rows are not those of the whole. */
	o.seconds = 5;
	o.target = POOL_VGPU;
	choice_learn(c, &o);
	TAP_CHECK(choice_expect(c, &r, &g, &e));
	TAP_EQ(e.runs, 0);
	choice_free(c);
}

/* A model that never ran the kind is judged by what it does for other kinds. */
static void other_kinds(void)
{
	const struct pool_gpu gpus[] = { gpu("slow", 1), gpu("fast", 1) };
	const struct pool_request r = wish("new");
	struct choice_estimate slow, fast;

	c = choice_new();
	for (int i = 0; i < 5; i++) {
		char kind[16];

		snprintf(kind, sizeof(kind), "k%d", i);
		learn(kind, "slow", 5, 0, 400 + i, 0);
		learn(kind, "fast", 5, 0, 100 + i, 0);
	}
	learn("new", "slow", 8, 0, 4000, 0);
	choice_expect(c, &r, &gpus[0], &slow);
	choice_expect(c, &r, &gpus[1], &fast);
	TAP_CHECK(slow.model_effect > 0.6 && fast.model_effect < -0.6);
	TAP_EQ(fast.runs, 0);
	TAP_CHECK(fast.seconds > 900 && fast.seconds < 1100);
	TAP_EQ(pick_of(&r, gpus, 2), 1);
	choice_free(c);
}

/* Work that gains nothing from the fast GPU leaves it to the others. */
static void gain_of_others(void)
{
	const struct pool_gpu gpus[] = { gpu("fast", 1), gpu("slow", 1) };
	struct pool_request r = wish("flat");

	c = choice_new();
	for (int i = 0; i < 5; i++) {
		char kind[16];

		snprintf(kind, sizeof(kind), "k%d", i);
		learn(kind, "slow", 9, 0, 400, 0);
		learn(kind, "fast", 9, 0, 100, 0);
	}
	learn("flat", "fast", 9, 0, 100, 0);
	learn("flat", "slow", 9, 0, 105, 0);
	TAP_EQ(pick_of(&r, gpus, 2), 1);
	r = wish("k0");
	TAP_EQ(pick_of(&r, gpus, 2), 0);
	choice_free(c);
}

static void energy(void)
{
	const struct pool_gpu gpus[] = { gpu("A", 1), gpu("B", 1) };
	const struct pool_request r = wish("k");

	c = choice_new();
	learn("k", "A", 9, 0, 100, 90000);
	learn("k", "B", 9, 0, 105, 30000);
	TAP_EQ(pick_of(&r, gpus, 2), 1);
	TAP_CHECK(strstr(why, "30 J") != NULL);
	/* Unknown energy of one is no energy of all. */
	learn("k", "B", CHOICE_ROWS, 0, 130, 0);
	TAP_EQ(pick_of(&r, gpus, 2), 0);
	choice_free(c);
}

static void precision(void)
{
	struct pool_gpu gpus[] = { gpu("A", 1), gpu("B", 1) };
	struct pool_outcome o = { .kind = "k", .model = "A", .target = POOL_WHOLE, .seconds = 100,
				  .precision = POOL_FP64, .done = true };
	struct pool_request r = wish("k");

	c = choice_new();
	r.precision = POOL_FP64;
	gpus[0].precisions = 1 << POOL_FP32;
	gpus[1].precisions = 1 << POOL_FP32 | 1 << POOL_FP64;
	TAP_EQ(pick_of(&r, gpus, 2), 1);
	r.precision = POOL_FP32;
	TAP_EQ(pick_of(&r, gpus, 2), 0);
	learn("k", "A", 9, 0, 100, 0);
	learn("k", "B", 9, 0, 130, 0);
	TAP_EQ(pick_of(&r, gpus, 2), 0);
	r.precision = POOL_FP64;
	TAP_EQ(pick_of(&r, gpus, 2), 1);
	/* Runs show that it is fast enough. */
	choice_learn(c, &o);
	TAP_EQ(pick_of(&r, gpus, 2), 0);
	choice_free(c);
}

static void memory_of_the_kind(void)
{
	const struct pool_gpu gpus[] = { gpu("A", 10000), gpu("B", 40000) };
	struct pool_outcome o = { .kind = "k", .model = "B", .target = POOL_WHOLE, .seconds = 100,
				  .memory_mib = 20000, .done = true };
	struct pool_request r = wish("k");
	struct choice_estimate e;

	c = choice_new();
	for (int i = 0; i < 9; i++)
		choice_learn(c, &o);
	choice_expect(c, &r, &gpus[0], &e);
	TAP_EQ(e.memory_mib, 20000);
	TAP_EQ(pick_of(&r, gpus, 2), 1);
	/* A request that says what it needs is believed. */
	r.memory_mib = 5000;
	TAP_EQ(pick_of(&r, gpus, 2), 0);
	choice_free(c);
}

static void failed_gpu(void)
{
	const struct pool_gpu gpus[] = { gpu("A", 1), gpu("A", 1) };
	struct choice_candidate candidates[] = {
		{ .gpu = &gpus[0], .need = 1, .free = 1, .failed = true },
		{ .gpu = &gpus[1], .need = 1, .free = 1 },
	};
	const struct pool_request r = wish("k");

	c = choice_new();
	TAP_EQ(choice_pick(c, &settings, &r, candidates, 2, why), 1);
	TAP_EQ(choice_pick(c, &settings, &r, candidates, 1, why), 0);
	learn("k", "A", 9, 0, 100, 0);
	TAP_EQ(choice_pick(c, &settings, &r, candidates, 2, why), 1);
	choice_free(c);
}

static void many_kinds(void)
{
	const struct pool_gpu g = gpu("A", 1);
	struct pool_request r = wish("k0");
	struct choice_estimate e;
	char kind[16];

	c = choice_new();
	learn("k0", "A", 1, 0, 1, 0);
	learn("k1", "A", 1, 0, 1, 0);
	for (int i = 2; i <= CHOICE_KINDS; i++) {
		snprintf(kind, sizeof(kind), "k%d", i);
		learn("k0", "A", 1, 0, 1, 0);
		learn(kind, "A", 1, 0, 1, 0);
	}
	TAP_CHECK(choice_expect(c, &r, &g, &e));
	r = wish("k1");
	TAP_CHECK(!choice_expect(c, &r, &g, &e));
	choice_free(c);
}

/* Whatever was learned, the choice is among the candidates, and its text fits. */
static void random_histories(void)
{
	rng = 5;
	c = choice_new();
	for (int i = 0; i < 3000; i++) {
		struct pool_gpu gpus[16];
		struct pool_request r = wish("");
		char name[16];
		size_t nr = 1 + below(16);

		snprintf(r.kind, sizeof(r.kind), "k%u", (unsigned int)below(4));
		snprintf(name, sizeof(name), "m%u", (unsigned int)below(5));
		learn(r.kind, name, 1, below(3) * below(100000), (double)below(1000000),
		      below(2) * below(1000000));
		for (size_t k = 0; k < nr; k++) {
			snprintf(name, sizeof(name), "m%u", (unsigned int)below(6));
			gpus[k] = below(2) ? gpu(name, (uint32_t)below(100000)) :
				parent(1 + (uint32_t)below(2000), (uint32_t)below(100000));
		}
		r.size_mib = below(2) * below(100000);
		r.precision = (enum pool_precision)below(POOL_PRECISIONS);
		TAP_CHECK(pick_of(&r, gpus, nr) < nr);
		TAP_CHECK(strlen(why) > 10);
	}
	choice_free(c);
}

int main(void)
{
	tap_run(filter, "the hard filter names what is wrong");
	tap_run(thin_history, "best fit decides while the history is thin");
	tap_run(policies, "the policies decide as they are called");
	tap_run(packs_vgpus, "vGPUs are packed");
	tap_run(sizes, "times are normalised by the amount of data");
	tap_run(outliers, "odd runs change little");
	tap_run(latest_rows_count, "the latest runs count");
	tap_run(what_does_not_count, "runs that did not end well do not count");
	tap_run(other_kinds, "a new model is judged by other kinds");
	tap_run(gain_of_others, "a fast GPU is left to work that gains by it");
	tap_run(energy, "less energy decides among equals");
	tap_run(precision, "a GPU that is fast at the precision is better");
	tap_run(memory_of_the_kind, "the kind's memory is known from its runs");
	tap_run(failed_gpu, "a GPU that failed comes last");
	tap_run(many_kinds, "the kind not learned for longest is forgotten");
	tap_run(random_histories, "any history gives a choice");
	return tap_done();
}
