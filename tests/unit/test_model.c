// SPDX-License-Identifier: GPL-2.0-only
/* The model of a GPU: its description, and what work costs. */
#include "soft/model.h"
#include "tap.h"

static struct mgpu_model model;

/* Parse a valid description. */
static void describe(const char *text)
{
	const char *bad = mgpu_model_parse(text, &model);

	if (!TAP_CHECK(!bad))
		tap_diag("%s: %s", text, bad);
}

static void presets(void)
{
	static const char *const names[] = { "uhd630", "gt1030", "t4" };
	u32 fill = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		describe(names[i]);
		/* from the slowest to the fastest */
		TAP_CHECK(model.fill > fill);
		TAP_EQ(model.slowdown, 1);
		fill = model.fill;
	}
}

static void changes(void)
{
	struct mgpu_model t4;

	describe("t4");
	t4 = model;
	describe("t4,fill=2000,slowdown=50");
	TAP_EQ(model.fill, 2000);
	TAP_EQ(model.slowdown, 50);
	TAP_EQ(model.memory, t4.memory);
	describe("command=0");
	TAP_EQ(model.command, 0);
	/* the last one counts */
	describe("fill=5,t4");
	TAP_EQ(model.fill, t4.fill);
	describe("fill=1,fill=1000000000");
	TAP_EQ(model.fill, 1000000000);
}

static void refused(void)
{
	static const struct {
		const char *text;
		size_t at;
	} t[] = {
		{ "", 0 }, { "t", 0 }, { "t44", 0 }, { "T4", 0 }, { "t4,", 3 },
		{ ",t4", 0 }, { "t4,,fill=1", 3 }, { "t4 ", 0 }, { "fill", 0 },
		{ "fill=", 0 }, { "fill=0", 0 }, { "fill=-1", 0 }, { "fill=+1", 0 },
		{ "fill= 1", 0 }, { "fill=1x", 0 }, { "fill=1.5", 0 },
		{ "fill=1000000001", 0 }, { "fill=18446744073709551617", 0 },
		{ "fil=1", 0 }, { "fille=1", 0 }, { "=1", 0 }, { "fill==1", 0 },
		{ "t4,slowdown=0", 3 }, { "slowdown=100001", 0 },
		{ "t4,fill=5,inst=0", 10 }, { "t4=1", 0 },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (!TAP_CHECK(mgpu_model_parse(t[i].text, &model) ==
			       t[i].text + t[i].at))
			tap_diag("'%s'", t[i].text);
}

static void printed(void)
{
	struct mgpu_model before;
	char text[128];

	describe("gt1030,command=7,slowdown=100000,fill=1000000000");
	before = model;
	TAP_CHECK(mgpu_model_print(&model, text, sizeof(text)) < (int)sizeof(text));
	describe(text);
	TAP_MEM(&model, &before, sizeof(model));
}

static u64 cost(struct mgpu_gpu_work w, u32 engines)
{
	u32 use;

	return mgpu_model_cost(&model, &w, engines, model.memory, &use);
}

/* Each part of the GPU by itself; a part of a nanosecond counts as a whole one. */
static void parts(void)
{
	describe("fill=1000,upload=2000,command=3000,inst=4000,memory=8000");
	TAP_EQ(cost((struct mgpu_gpu_work){ 0 }, 1), 0);
	TAP_EQ(cost((struct mgpu_gpu_work){ .commands = 2 }, 1), 6000);
	TAP_EQ(cost((struct mgpu_gpu_work){ .pixels = 1000000 }, 1), 1000001);
	TAP_EQ(cost((struct mgpu_gpu_work){ .upload = 1000000 }, 1), 500001);
	TAP_EQ(cost((struct mgpu_gpu_work){ .inst = 1000000 }, 1), 250001);
	TAP_EQ(cost((struct mgpu_gpu_work){ .inst = 1000000 }, 4), 1000001);
	TAP_EQ(cost((struct mgpu_gpu_work){ .traffic = 1000000 }, 4), 125001);
	/* the slowest part counts, and the command in addition */
	TAP_EQ(cost((struct mgpu_gpu_work){ 1, 1000000, 1000000, 1000000, 1000000 }, 1),
	       1003001);
	describe("fill=1000,command=3000,slowdown=50");
	TAP_EQ(cost((struct mgpu_gpu_work){ .commands = 1, .pixels = 1000000 }, 1),
	       50150001);
}

/* Return what @w takes beside a user of @other, and set what @w uses. */
static u64 beside(struct mgpu_gpu_work w, u32 other, u32 *use)
{
	return mgpu_model_cost(&model, &w, 2, mgpu_model_share(&model, &other, 1), use);
}

static void memory_is_shared(void)
{
	const struct mgpu_gpu_work copies = { .traffic = 10000000 };
	const struct mgpu_gpu_work computes = { .inst = 1000000, .traffic = 1000 };
	const struct mgpu_gpu_work both = { .inst = 1000000, .traffic = 400000 };
	u32 use, little;

	describe("inst=2000,memory=1000");
	TAP_EQ(beside(copies, 0, &use), 10000001);
	TAP_EQ(use, 1000);
	/* two that copy have half of it each */
	TAP_EQ(beside(copies, 1000, &use), 20000001);
	TAP_EQ(use, 1000);
	/* one that computes is not slowed down, however long the other's tiles are */
	TAP_EQ(beside(computes, 1000, &little), 1000001);
	TAP_EQ(little, 2);
	TAP_EQ(beside(both, 1000, &use), 1000001);
	TAP_EQ(use, 401);
	/* and leaves to the one that copies what it does not use */
	TAP_EQ(beside(copies, little, &use), cost(copies, 2) * 1000 / 998);
	describe("inst=2000,memory=1000,slowdown=7");
	TAP_EQ(beside(both, 1000, &use), 7000001);
	TAP_EQ(use, 401);
	TAP_EQ(beside(copies, 1000, &use), 140000001);
}

static void shares_are_fair(void)
{
	u32 use[MGPU_MODEL_USERS];

	describe("memory=1000");
	TAP_EQ(mgpu_model_share(&model, use, 0), 1000);
	use[0] = 1000;
	use[1] = 100;
	use[2] = 250;
	TAP_EQ(mgpu_model_share(&model, use, 3), 325);
	/* the order does not matter, and an equal part is not little */
	use[0] = 250;
	use[2] = 1000;
	TAP_EQ(mgpu_model_share(&model, use, 3), 325);
	use[0] = 300;
	use[2] = 300;
	TAP_EQ(mgpu_model_share(&model, use, 3), 300);
	for (size_t i = 0; i < MGPU_MODEL_USERS; i++)
		use[i] = 1000;
	TAP_EQ(mgpu_model_share(&model, use, MGPU_MODEL_USERS), 1000 / 64);
	for (size_t i = 0; i < MGPU_MODEL_USERS; i++)
		use[i] = 1;
	TAP_EQ(mgpu_model_share(&model, use, MGPU_MODEL_USERS), 1000 - 63);
	/* no engine is without any, for good */
	describe("memory=1");
	TAP_EQ(mgpu_model_share(&model, use, MGPU_MODEL_USERS), 1);
}

/* The largest work that a hostile guest may ask for does not wrap around. */
static void saturates(void)
{
	const struct mgpu_gpu_work all = { U64_MAX, U64_MAX, U64_MAX, U64_MAX, U64_MAX };
	const u64 hour = 3600000000000ull;
	u32 use;

	describe("fill=1,upload=1,command=1000000000,inst=1,memory=1,slowdown=100000");
	TAP_EQ(mgpu_model_cost(&model, &all, 64, 1, &use), 2 * hour);
	TAP_EQ(use, 1);
	describe("memory=1000000000");
	TAP_EQ(mgpu_model_cost(&model, &all, 64, 1, &use), hour + hour);
	TAP_CHECK(use <= model.memory);
}

int main(void)
{
	tap_run(presets, "presets are GPUs from slow to fast");
	tap_run(changes, "keys change a preset");
	tap_run(refused, "an invalid description is refused with its place");
	tap_run(printed, "a description is printed as it is read");
	tap_run(parts, "a tile takes the time of its slowest part");
	tap_run(memory_is_shared, "engines share the memory");
	tap_run(shares_are_fair, "shares of the memory are fair");
	tap_run(saturates, "large work does not wrap around");
	return tap_done();
}
