// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the parser of mgpud's state file.  The input is the file.  A file that is
 * taken is one that mgpud could have written: each value is in its range, and it is
 * the same after it was written and read again.  A file that is refused changes
 * nothing, except what was learned under another boot.
 */
#include <errno.h>
#include <math.h>
#include <json-c/json.h>

#include "fuzz.h"
#include "config/statefile.h"

#define BOOT	"b007"

static const struct preempt_param param = PREEMPT_PARAM_DEFAULT;

static void check_vgpus(const struct estimate *e)
{
	FUZZ_ASSERT(e->nr_vgpus <= STATEFILE_VGPUS_MAX);
	FUZZ_ASSERT(isfinite(e->cpu_capacity_smooth) && e->cpu_capacity_smooth >= 0);
	for (size_t i = 0; i < e->nr_vgpus; i++) {
		const struct estimate_vgpu *v = &e->vgpus[i];

		FUZZ_ASSERT(v->last.open && v->last.tgid && v->state == VGPU_IDLE);
		FUZZ_ASSERT(strlen(v->last.uuid) == SAMPLE_UUID_LEN - 1);
		FUZZ_ASSERT(isfinite(v->kept.frames) && v->kept.frames >= 0);
		FUZZ_ASSERT(isfinite(v->kept.cpu) && v->kept.cpu >= 0);
		FUZZ_ASSERT(isfinite(v->kept.gpu) && v->kept.gpu >= 0);
		FUZZ_ASSERT(v->planned.lead >= 0 && v->planned.lead <= DECIDE_LEAD_MAX);
		FUZZ_ASSERT(v->planned.margin >= 0 && v->planned.margin <= SLA_MARGIN_MAX);
		if (i)
			FUZZ_ASSERT(v[-1].last.id < v->last.id);
	}
}

static void check_control(const struct control *c)
{
	FUZZ_ASSERT(c->alloc.step >= 0 && c->alloc.step <= 1);
	for (size_t i = 0; i < MGPU_MAX_RES; i++)
		FUZZ_ASSERT(isfinite(c->alloc.price[i]) && c->alloc.price[i] >= 0);
}

static void check_learned(const struct analyse *a)
{
	struct analyse_guess g;

	FUZZ_ASSERT(a->n <= ANALYSE_KINDS_MAX);
	FUZZ_ASSERT(!preempt_norm_check(&a->norm));
	for (size_t i = 0; i <= a->n; i++) {
		analyse_guess(a, &param, i < a->n ? a->kind[i].kind : 12345, 1e6, &g);
		FUZZ_ASSERT(g.inst >= 1 && g.inst <= ANALYSE_NUMBER_MAX);
		FUZZ_ASSERT(g.ipc > 0 && g.miss >= 0 && g.miss <= 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct analyse learned, again;
	struct learner *known = learner_new(), *known2 = learner_new();
	struct estimate e = { .cpu_capacity_smooth = 3 }, e2 = { 0 };
	struct control c = { .alloc.step = 0.5 }, c2 = { 0 };
	struct json_object *settings, *settings2;
	char why[256] = "", *text, *text2;
	int ret;

	analyse_init(&learned);
	learned.now = 77;
	ret = statefile_parse((const char *)data, size, BOOT, &e, &c, &learned,
			      known, &settings, why, sizeof(why));
	check_learned(&learned);
	if (ret) {
		FUZZ_ASSERT(ret == -EBADMSG || ret == -EPROTO || ret == -ESTALE);
		FUZZ_ASSERT(strlen(why) > 10);
		FUZZ_ASSERT(!e.vgpus && e.cpu_capacity_smooth == 3 && c.alloc.step == 0.5);
		FUZZ_ASSERT(ret == -ESTALE || learned.now == 77);
		json_object_put(settings);
		learner_free(known);
		learner_free(known2);
		return 0;
	}
	check_vgpus(&e);
	check_control(&c);

	text = statefile_make(&e, &c, &learned, known, settings, BOOT);
	FUZZ_ASSERT(text);
	analyse_init(&again);
	FUZZ_ASSERT(!statefile_parse(text, strlen(text), BOOT, &e2, &c2, &again, known2, &settings2,
				     why, sizeof(why)));
	FUZZ_ASSERT(json_object_equal(settings, settings2));
	FUZZ_ASSERT(!why[0] && e2.nr_vgpus == e.nr_vgpus && again.n == learned.n);
	text2 = statefile_make(&e2, &c2, &again, known2, settings2, BOOT);
	FUZZ_ASSERT(text2 && !strcmp(text, text2));
	json_object_put(settings);
	json_object_put(settings2);
	free(text);
	free(text2);
	estimate_free(&e);
	estimate_free(&e2);
	learner_free(known);
	learner_free(known2);
	return 0;
}

static void seeds(const char *dir)
{
	static struct analyse learned;
	static const double others[PREEMPT_CLASSES + 1] = { 1, 0.5, 0 };
	static const char *const boots[] = { BOOT, "another" };
	static const struct learner_known known = {
		.uuid = "01234567-89ab-cdef-0123-456789abcdef", .periods = 7,
		.cost = { 0.25, 0.125 }, .smooth = { 0.5, 0.25 },
	};
	struct learner *knows = learner_new();
	struct json_object *settings =
		json_tokener_parse("{\"beta\":3,\"sla\":{\"default\":{\"floor\":30}}}");
	struct estimate_vgpu v[2] = { 0 };
	struct estimate e = { .cpu_capacity_smooth = 1.75, .vgpus = v };
	struct control c = { .alloc.step = 0.07 };

	for (size_t i = 0; i < 2; i++) {
		v[i].last.id = (uint32_t)(2 + 3 * i);
		strcpy(v[i].last.uuid, "01234567-89ab-cdef-0123-456789abcdef");
		v[i].last.tgid = 100;
		v[i].last.open = true;
		v[i].state = VGPU_IDLE;
		v[i].kept.frames = 120.5;
		v[i].kept.cpu = 0.25;
		v[i].planned.lead = 1.25;
		v[i].planned.margin = 1.125;
	}
	analyse_init(&learned);
	learner_know(knows, &known, 1);
	for (uint32_t n = 0; n < 4; n++) {
		char *text, name[16];

		e.nr_vgpus = n < 2 ? n : 2;
		text = statefile_make(&e, &c, &learned, knows, n & 2 ? settings : NULL,
				      boots[n % 2]);
		if (!text)
			abort();
		snprintf(name, sizeof(name), "%u", n);
		fuzz_seed(dir, name, text, strlen(text));
		free(text);
		for (unsigned int j = 1; j <= 3; j++)
			analyse_done(&learned, n, 100.0 * j, 5e6 * j);
		analyse_memory(&learned, n, 0.2, 0.1);
		analyse_alone(&learned, n, 0.5);
		analyse_shared(&learned, &param, n, others, 0.25);
	}
	json_object_put(settings);
	learner_free(knows);
}

FUZZ_SEEDS(seeds)
