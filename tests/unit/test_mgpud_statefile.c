// SPDX-License-Identifier: GPL-2.0-only
/* Test the state that an mgpud leaves for the next, and invalid state files. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>
#include <json-c/json.h>

#include "config/statefile.h"
#include "tap.h"

#define NR(a)	(sizeof(a) / sizeof((a)[0]))
#define BOOT	"b007b007-0000-4000-8000-000000000001"
#define A	"01234567-89ab-cdef-0123-456789abcdef"
#define B	"89abcdef-0123-4567-89ab-cdef01234567"

static char folder[64], path[96], why[256];
static struct analyse learned, l_back;
static struct learner *known, *k_back;
static struct json_object *s_back;	/* settings of the last text */

/* Two vGPUs that are open and one that is not. */
static void fill(struct estimate *e, struct control *c)
{
	memset(e, 0, sizeof(*e));
	memset(c, 0, sizeof(*c));
	e->now_ns = 5;
	e->cpu_capacity_smooth = 1.75;
	e->nr_vgpus = 3;
	e->vgpus = calloc(3, sizeof(*e->vgpus));
	for (unsigned int j = 0; j < 3; j++) {
		struct estimate_vgpu *v = &e->vgpus[j];

		v->last.id = 2 + 3 * j;
		strcpy(v->last.uuid, j ? B : A);
		v->last.tgid = 100 + j;
		v->last.open = j != 1;
		v->state = j == 0 ? VGPU_ACTIVE : j == 1 ? VGPU_CLOSED : VGPU_IDLE;
		v->kept.frames = 120.5;
		v->kept.cpu = 1.0 / 3 + j;
		v->kept.gpu = 1e-5;
		v->idle_ns = j * 1234567890123ULL;
		v->planned.lead = 1.25;
		v->planned.margin = j ? 1.125 : 0;
	}
	c->alloc.step = 0.07;
	c->alloc.streak = 1;
	c->alloc.price[0] = 2.5;
	c->alloc.price[1] = 1e-9;
}

/* Kinds of work of all sorts, some of them seen in part only. */
static void learn(struct analyse *a)
{
	const struct preempt_param p = PREEMPT_PARAM_DEFAULT;
	static const double others[PREEMPT_CLASSES + 1] = { 1, 0.5, 0 };

	analyse_init(a);
	for (uint32_t k = 1; k <= 5; k++) {
		for (unsigned int j = 1; j <= 10 && k < 5; j++)
			analyse_done(a, k * 0x31415927u, 1000.0 / 3 * j * k, 5e6 / 7 * j);
		analyse_memory(a, k * 0x31415927u, 0.19 * k, 0.1 / k);
		if (k != 3)
			analyse_alone(a, k * 0x31415927u, 1.0 / k);
		analyse_shared(a, &p, k * 0x31415927u, others, 0.77 / k);
	}
}

static bool same(const struct analyse *a, const struct analyse *b)
{
	/* padding and absent kinds are not compared */
	if (a->now != b->now || a->n != b->n || memcmp(&a->norm, &b->norm, sizeof(a->norm)) ||
	    a->any.jobs != b->any.jobs || a->any.ipc != b->any.ipc || a->any.y != b->any.y)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct analyse_kind *x = &a->kind[i], *y = &b->kind[i];

		if (x->kind != y->kind || x->used != y->used || x->jobs != y->jobs ||
		    x->x != y->x || x->y != y->y || x->xx != y->xx || x->xy != y->xy ||
		    x->spread != y->spread || x->ipc != y->ipc ||
		    x->ipc_seen != y->ipc_seen || x->bound != y->bound ||
		    x->miss != y->miss || x->seen != y->seen)
			return false;
	}
	return true;
}

/* Read a state of this boot, from a text or from a file. */
static int take(const char *text, struct estimate *e, struct control *c)
{
	json_object_put(s_back);
	return statefile_parse(text, strlen(text), BOOT, e, c, &l_back, k_back, &s_back, why,
			       sizeof(why));
}

static int take_file(const char *name, struct estimate *e, struct control *c)
{
	json_object_put(s_back);
	return statefile_read(name, BOOT, e, c, &l_back, k_back, &s_back, why, sizeof(why));
}

static struct sample sample(struct sample_vgpu *v, size_t n, uint64_t now)
{
	return (struct sample){
		.now_ns = now,
		.cpus = 2,
		.vgpus = v,
		.nr_vgpus = n,
	};
}

static void round_trip(void)
{
	struct estimate e, back = { 0 };
	struct control c, c_back = { 0 };
	char *text;

	fill(&e, &c);
	text = statefile_make(&e, &c, &learned, known, NULL, BOOT);
	TAP_NEED(text);
	TAP_EQ(take(text, &back, &c_back), 0);
	TAP_EQ(back.nr_vgpus, 2);
	TAP_EQ(back.now_ns, 0);
	TAP_NEAR(back.cpu_capacity_smooth, 1.75, 0);
	TAP_EQ(back.vgpus[0].last.id, 2);
	TAP_STR(back.vgpus[0].last.uuid, A);
	TAP_EQ(back.vgpus[0].last.tgid, 100);
	TAP_CHECK(back.vgpus[0].last.open);
	TAP_NEAR(back.vgpus[0].kept.frames, 120.5, 0);
	TAP_NEAR(back.vgpus[0].kept.cpu, 1.0 / 3, 0);
	TAP_NEAR(back.vgpus[1].kept.gpu, 1e-5, 0);
	TAP_EQ(back.vgpus[1].idle_ns, 2 * 1234567890123LL);
	TAP_NEAR(c_back.alloc.step, 0.07, 0);
	TAP_EQ(c_back.alloc.streak, 1);
	TAP_NEAR(c_back.alloc.price[0], 2.5, 0);
	TAP_NEAR(c_back.alloc.price[1], 1e-9, 0);
	TAP_NEAR(back.vgpus[0].planned.lead, 1.25, 0);
	TAP_NEAR(back.vgpus[1].planned.margin, 1.125, 0);
	TAP_STR(why, "");
	TAP_CHECK(same(&l_back, &learned));
	TAP_EQ(l_back.n, 5);
	free(text);
	estimate_free(&e);
	estimate_free(&back);
}

/* As an mgpud wrote it whose settings had other names: the file has none of them. */
static void older(void)
{
	struct estimate e = { 0 };
	struct control c = { 0 };

	if (!TAP_EQ(take_file(DATA "/mgpud-state-1.json", &e, &c), 0) ||
	    !TAP_STR(why, ""))
		tap_diag("%s", why);
	TAP_EQ(e.nr_vgpus, 1);
	TAP_STR(e.vgpus[0].last.uuid, A);
	TAP_NEAR(e.vgpus[0].kept.frames, 120.5, 0);
	TAP_EQ(e.vgpus[0].idle_ns, 1234567890123LL);
	TAP_NEAR(c.alloc.step, 0.07, 0);
	TAP_NEAR(c.alloc.price[0], 2.5, 0);
	TAP_NEAR(e.vgpus[0].planned.lead, 0, 0);
	TAP_EQ(l_back.n, 1);
	TAP_EQ(l_back.kind[0].kind, 826366247);
	TAP_NEAR(l_back.kind[0].ipc, 0.75, 0);
	estimate_free(&e);
}

/* Averages go on in the same VMM only, and no limit is taken away. */
static void resumes(void)
{
	struct sample_vgpu v[3] = {
		{ .id = 2, .uuid = A, .open = true, .tgid = 100, .fps_target = 30000 },
		{ .id = 5, .uuid = "ffffffff-0000-4000-8000-000000000000", .open = true,
		  .tgid = 101 },
		{ .id = 8, .uuid = B, .open = true, .tgid = 999 },
	};
	struct sample s = sample(v, 3, 1000000000);
	struct estimate e, back = { 0 };
	struct control c, c_back;
	const struct decide_param param = {
		.allocator = &alloc_exact, .iterations = 10,
		.fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
	struct plan plan;
	char *text;

	fill(&e, &c);
	text = statefile_make(&e, &c, &learned, known, NULL, BOOT);
	TAP_EQ(take(text, &back, &c_back), 0);
	free(text);
	TAP_EQ(estimate_update(&back, &s, ESTIMATE_HEADROOM), 0);
	TAP_NEAR(back.seconds, 0, 0);
	TAP_NEAR(back.cpu_capacity_smooth, 1.75, 0);
	TAP_NEAR(back.vgpus[0].kept.cpu, 1.0 / 3, 0);
	TAP_NEAR(back.vgpus[1].kept.cpu, 0, 0);		/* not known before */
	TAP_NEAR(back.vgpus[2].kept.cpu, 0, 0);		/* another VMM now */
	TAP_EQ(decide(&back, &param, NULL, NULL, &c_back, &plan), 0);
	TAP_CHECK(plan.targets[0].keep);
	plan_free(&plan);
	estimate_free(&e);
	estimate_free(&back);
}

static int parse(const char *text, const char *boot)
{
	struct estimate e = { .cpu_capacity_smooth = 3 };
	struct control c = { .alloc.step = 0.5 };
	int ret;

	learn(&l_back);
	json_object_put(s_back);
	ret = statefile_parse(text, strlen(text), boot, &e, &c, &l_back, k_back, &s_back, why,
			      sizeof(why));
	/* no error loses the values learned before */
	TAP_CHECK(same(&l_back, &learned));
	if (ret) {
		/* as it was, and a reason */
		TAP_CHECK(!e.vgpus && e.cpu_capacity_smooth == 3 && c.alloc.step == 0.5);
		TAP_CHECK(strlen(why) > 10);
	}
	estimate_free(&e);
	return ret;
}

#define CONTROL	"\"control\":{\"step\":0.1,\"streak\":0,\"price\":[]}"
#define HEAD	"{\"version\":1,\"boot_id\":\"" BOOT "\",\"cpu_capacity\":2," CONTROL ",\"vgpus\":["
#define VGPU(id, uuid, tgid, frames, cpu, idle) \
	"{\"id\":" id ",\"uuid\":\"" uuid "\",\"tgid\":" tgid ",\"frames\":" frames \
	",\"cpu\":" cpu ",\"gpu\":0,\"idle_ns\":" idle "}"
#define PLANNED(lead, margin) \
	"{\"id\":1,\"uuid\":\"" A "\",\"tgid\":5,\"frames\":60,\"cpu\":0.1,\"gpu\":0," \
	"\"idle_ns\":0,\"lead\":" lead ",\"margin\":" margin "}"
#define GOOD	VGPU("1", A, "5", "60", "0.1", "0")

static void others(void)
{
	TAP_EQ(parse(HEAD GOOD "]}", BOOT), 0);
	TAP_EQ(parse(HEAD "]}", BOOT), 0);
	TAP_EQ(parse(HEAD "]}", "another"), -ESTALE);
	TAP_EQ(parse(HEAD "]}", ""), -ESTALE);
	TAP_EQ(parse("{\"version\":2}", BOOT), -EPROTO);
	TAP_EQ(parse("{\"version\":0,\"boot_id\":\"x\"}", BOOT), -EPROTO);
}

/* With what was learned, of this boot or another. */
static int parse_learned(const char *text, const char *boot)
{
	struct estimate e = { 0 };
	struct control c = { 0 };
	int ret;

	analyse_init(&l_back);
	json_object_put(s_back);
	ret = statefile_parse(text, strlen(text), boot, &e, &c, &l_back, k_back, &s_back, why,
			      sizeof(why));
	if (ret)
		TAP_CHECK(!e.vgpus);
	else
		TAP_EQ(e.nr_vgpus, 1);
	estimate_free(&e);
	return ret;
}

/* A kind of work is the same after the machine was started again. */
static void other_boot(void)
{
	struct estimate e;
	struct control c;
	char *text;

	fill(&e, &c);
	e.vgpus[2].state = VGPU_CLOSED;
	text = statefile_make(&e, &c, &learned, known, NULL, BOOT);
	estimate_free(&e);
	TAP_NEED(text);
	TAP_EQ(parse_learned(text, BOOT), 0);
	TAP_CHECK(same(&l_back, &learned));
	TAP_EQ(parse_learned(text, "another"), -ESTALE);
	TAP_CHECK(same(&l_back, &learned));
	TAP_STR(why, "it was written before the last boot");
	/* nothing was learned yet, and that is no less true */
	free(text);
	fill(&e, &c);
	analyse_init(&l_back);
	text = statefile_make(&e, &c, &l_back, known, NULL, BOOT);
	estimate_free(&e);
	TAP_NEED(text);
	TAP_EQ(parse_learned(text, "another"), -ESTALE);
	TAP_EQ(l_back.n, 0);
	TAP_EQ(l_back.now, 0);
	free(text);
}

#define KIND(kind, used, jobs, ipc) \
	"{\"kind\":" kind ",\"used\":" used ",\"jobs\":" jobs ",\"x\":1,\"y\":2,\"xx\":1,\"xy\":1," \
	"\"spread\":0,\"ipc\":" ipc ",\"ipc_seen\":1,\"bound\":0.5,\"miss\":0.1,\"seen\":1}"
#define PAIR	"{\"slow\":0.25,\"count\":3}"
#define PAIRS	PAIR "," PAIR "," PAIR "," PAIR
#define LEARNED(now, kinds, norm) \
	"{\"now\":" now ",\"kinds\":[" kinds "],\"any\":" \
	KIND("0", "0", "3", "1") ",\"norm\":[" norm "]}"

/* Not believed as a whole, and the rest of the file is as good as without it. */
static void hostile_learned(void)
{
	static const char *const bad[] = {
		"null", "3", "[]", "{}", "\"x\"",
		LEARNED("-1", "", PAIRS), LEARNED("1.5", "", PAIRS),
		LEARNED("18446744073709551615", "", PAIRS), LEARNED("\"1\"", "", PAIRS),
		LEARNED("9", "", ""), LEARNED("9", "", PAIR "," PAIR),
		LEARNED("9", "", PAIRS "," PAIR), LEARNED("9", "", "1,2,3,4"),
		LEARNED("9", "", PAIR "," PAIR "," PAIR ",{\"slow\":0.25}"),
		LEARNED("9", "", PAIR "," PAIR "," PAIR ",{\"slow\":101,\"count\":3}"),
		LEARNED("9", "", PAIR "," PAIR "," PAIR ",{\"slow\":-0.5,\"count\":3}"),
		LEARNED("9", "", PAIR "," PAIR "," PAIR ",{\"slow\":1,\"count\":1e9}"),
		LEARNED("9", "", PAIR "," PAIR "," PAIR ",{\"slow\":NaN,\"count\":3}"),
		LEARNED("9", "3", PAIRS), LEARNED("9", "null", PAIRS), LEARNED("9", "{}", PAIRS),
		LEARNED("9", KIND("1", "3", "3", "1") "," KIND("1", "3", "3", "1"), PAIRS),
		LEARNED("9", KIND("-1", "3", "3", "1"), PAIRS),
		LEARNED("9", KIND("4294967296", "3", "3", "1"), PAIRS),
		LEARNED("9", KIND("1", "10", "3", "1"), PAIRS),		/* later than now */
		LEARNED("9", KIND("1", "3", "65", "1"), PAIRS),
		LEARNED("9", KIND("1", "3", "-1", "1"), PAIRS),
		LEARNED("9", KIND("1", "3", "3", "0"), PAIRS),
		LEARNED("9", KIND("1", "3", "3", "1e300"), PAIRS),
		LEARNED("9", KIND("1", "3", "3", "Infinity"), PAIRS),
		LEARNED("9", KIND("1", "3", "3", "null"), PAIRS),
		LEARNED("9", KIND("1", "3", "3", "\"1\""), PAIRS),
	};
	char text[16384], many[8192] = "";

	snprintf(text, sizeof(text), HEAD GOOD "],\"learned\":%s}",
		 LEARNED("9", KIND("1", "3", "3", "1"), PAIRS));
	TAP_EQ(parse_learned(text, BOOT), 0);
	TAP_STR(why, "");
	TAP_EQ(l_back.n, 1);
	for (size_t k = 0; k < NR(bad); k++) {
		snprintf(text, sizeof(text), HEAD GOOD "],\"learned\":%s}", bad[k]);
		if (!TAP_EQ(parse_learned(text, BOOT), 0) ||
		    !TAP_CHECK(!strncmp(why, "what was learned of work is not used: ", 38)) ||
		    !TAP_EQ(l_back.n, 0) || !TAP_EQ(l_back.now, 0))
			tap_diag("to: %s (%s)", bad[k], why);
		/* and of another boot nothing at all is left */
		if (!TAP_EQ(parse_learned(text, "another"), -ESTALE) ||
		    !TAP_CHECK(strstr(why, "before the last boot; what was learned")) ||
		    !TAP_EQ(l_back.n, 0))
			tap_diag("to: %s (%s)", bad[k], why);
	}
	/* the rest is damaged: then this is no better */
	snprintf(text, sizeof(text), HEAD "{}],\"learned\":%s}",
		 LEARNED("9", KIND("1", "3", "3", "1"), PAIRS));
	TAP_EQ(parse_learned(text, BOOT), -EBADMSG);
	TAP_EQ(l_back.n, 0);
	/* of another version nothing means what it did */
	snprintf(text, sizeof(text), "{\"version\":2,\"boot_id\":\"" BOOT "\",\"learned\":%s}",
		 LEARNED("9", KIND("1", "3", "3", "1"), PAIRS));
	TAP_EQ(parse_learned(text, BOOT), -EPROTO);
	TAP_EQ(l_back.n, 0);
	/* more kinds than there may be, each of them good */
	for (unsigned int k = 0; k <= ANALYSE_KINDS_MAX; k++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many),
			 "%s{\"kind\":%u,\"used\":1,\"jobs\":1,\"x\":1,\"y\":1,\"xx\":0,\"xy\":0,\"spread\":0,\"ipc\":1,\"ipc_seen\":1,\"bound\":0,\"miss\":0,\"seen\":1}",
			 k ? "," : "", k);
	snprintf(text, sizeof(text), HEAD GOOD "],\"learned\":{\"now\":9,\"kinds\":[%s],\"any\":"
		 KIND("0", "0", "3", "1") ",\"norm\":[" PAIRS "]}}", many);
	TAP_EQ(parse_learned(text, BOOT), 0);
	TAP_CHECK(strstr(why, "too many"));
	TAP_EQ(l_back.n, 0);
}

static void hostile(void)
{
	static const char *const bad[] = {
		"", "\n", "x", "{}", "[]", "null", "3", "{\"version\":\"1\"}",
		"{\"version\":-1}", "{\"version\":1.0}",
		"[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]",
		HEAD GOOD "]", HEAD GOOD "]}}", HEAD GOOD "]} x",
		HEAD GOOD "," GOOD "]}",			/* twice */
		HEAD "3]}", HEAD "null]}", HEAD "{}]}", HEAD "[]]}",
		HEAD VGPU("-1", A, "5", "60", "0.1", "0") "]}",
		HEAD VGPU("4294967296", A, "5", "60", "0.1", "0") "]}",
		HEAD VGPU("1.5", A, "5", "60", "0.1", "0") "]}",
		HEAD VGPU("\"1\"", A, "5", "60", "0.1", "0") "]}",
		HEAD VGPU("1", "x", "5", "60", "0.1", "0") "]}",
		HEAD VGPU("1", A "0", "5", "60", "0.1", "0") "]}",
		HEAD VGPU("1", A, "0", "60", "0.1", "0") "]}",
		HEAD VGPU("1", A, "-5", "60", "0.1", "0") "]}",
		HEAD VGPU("1", A, "99999999999", "60", "0.1", "0") "]}",
		HEAD VGPU("1", A, "5", "-60", "0.1", "0") "]}",
		HEAD VGPU("1", A, "5", "1e300", "0.1", "0") "]}",
		HEAD VGPU("1", A, "5", "NaN", "0.1", "0") "]}",
		HEAD VGPU("1", A, "5", "Infinity", "0.1", "0") "]}",
		HEAD VGPU("1", A, "5", "60", "1e9", "0") "]}",
		HEAD VGPU("1", A, "5", "60", "null", "0") "]}",
		HEAD VGPU("1", A, "5", "60", "0.1", "-1") "]}",
		HEAD PLANNED("2.5", "1") "]}",
		HEAD PLANNED("1", "-1") "]}",
		HEAD PLANNED("1", "2") "]}",
		HEAD PLANNED("\"1\"", "1") "]}",
		HEAD VGPU("1", A, "5", "60", "0.1", "1.5") "]}",
		HEAD VGPU("1", A, "5", "60", "0.1", "18446744073709551615") "]}",
		"{\"version\":1,\"boot_id\":\"" BOOT "\",\"cpu_capacity\":-2," CONTROL ",\"vgpus\":[]}",
		"{\"version\":1,\"boot_id\":\"" BOOT "\",\"cpu_capacity\":2,\"vgpus\":[]}",
		"{\"version\":1,\"boot_id\":\"" BOOT "\",\"cpu_capacity\":2,\"control\":[],\"vgpus\":[]}",
		"{\"version\":1,\"boot_id\":\"" BOOT "\",\"cpu_capacity\":2," CONTROL "}",
		"{\"version\":1,\"boot_id\":\"" BOOT "\",\"cpu_capacity\":2," CONTROL ",\"vgpus\":{}}",
		"{\"version\":1,\"cpu_capacity\":2,\"vgpus\":[]}x",
	};
	static const char *const controls[] = {
		"\"step\":2,\"streak\":0,\"price\":[]",
		"\"step\":0,\"streak\":-1,\"price\":[]",
		"\"step\":0,\"streak\":4000000000,\"price\":[]",
		"\"step\":0,\"streak\":0,\"price\":[-1]",
		"\"step\":0,\"streak\":0,\"price\":[1e99]",
		"\"step\":0,\"streak\":0,\"price\":[\"1\"]",
		"\"step\":0,\"streak\":0,\"price\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]",
		"\"step\":0,\"streak\":0,\"price\":{}",
		"\"step\":0,\"streak\":0",
	};
	char text[1024];

	for (size_t k = 0; k < NR(bad); k++)
		if (!TAP_EQ(parse(bad[k], BOOT), -EBADMSG))
			tap_diag("to: %s", bad[k]);
	for (size_t k = 0; k < NR(controls); k++) {
		snprintf(text, sizeof(text), "{\"version\":1,\"boot_id\":\"" BOOT "\",\"cpu_capacity\":2,\"control\":{%s},\"vgpus\":[]}",
			 controls[k]);
		if (!TAP_EQ(parse(text, BOOT), -EBADMSG))
			tap_diag("to: %s", controls[k]);
	}
}

/* Cut off anywhere, or a byte changed anywhere: taken or refused, never worse. */
static void mutations(void)
{
	const struct preempt_param param = PREEMPT_PARAM_DEFAULT;
	unsigned int seed = 7, taken = 0;
	struct estimate e;
	struct control c;
	size_t len;
	char *text;

	fill(&e, &c);
	text = statefile_make(&e, &c, &learned, known, NULL, BOOT);
	estimate_free(&e);
	TAP_NEED(text);
	len = strlen(text);
	analyse_init(&l_back);
	for (size_t cut = 0; cut + 1 < len; cut++) {
		memset(&e, 0, sizeof(e));
		/* of its own size, so that the sanitizer sees a read beyond it */
		char *part = malloc(cut ? cut : 1);

		memcpy(part, text, cut);
		json_object_put(s_back);
		TAP_EQ(statefile_parse(part, cut, BOOT, &e, &c, &l_back, k_back, &s_back, why,
				       sizeof(why)),
		       -EBADMSG);
		free(part);
	}
	TAP_EQ(l_back.now, 0);
	for (unsigned int k = 0; k < 20000; k++) {
		char *copy = malloc(len);
		int ret;

		memcpy(copy, text, len);
		for (unsigned int n = 1 + (unsigned int)rand_r(&seed) % 3; n; n--)
			copy[(size_t)rand_r(&seed) % len] = rand_r(&seed) % 2 ?
				(char)rand_r(&seed) : "0123456789{}[]\",:-e."[rand_r(&seed) % 20];
		memset(&e, 0, sizeof(e));
		json_object_put(s_back);
		ret = statefile_parse(copy, len, BOOT, &e, &c, &l_back, k_back, &s_back, why,
				      sizeof(why));
		taken += !ret;
		TAP_CHECK(l_back.n <= ANALYSE_KINDS_MAX && !preempt_norm_check(&l_back.norm));
		for (size_t j = 0; j < l_back.n; j++) {
			struct analyse_guess g;

			analyse_guess(&l_back, &param, l_back.kind[j].kind, 1e6, &g);
			TAP_CHECK(isfinite(g.inst) && g.inst >= 1 && isfinite(g.ipc) &&
				  g.ipc > 0 && g.miss >= 0 && g.miss <= 1);
		}
		for (size_t j = 0; !ret && j < e.nr_vgpus; j++) {
			const struct estimate_vgpu *v = &e.vgpus[j];

			TAP_CHECK(isfinite(v->kept.cpu) && v->kept.cpu >= 0 &&
				  v->kept.frames >= 0 && v->last.tgid &&
				  strlen(v->last.uuid) == 36 &&
				  (!j || v->last.id > v[-1].last.id));
		}
		estimate_free(&e);
		free(copy);
	}
	TAP_CHECK(taken > 0 && taken < 20000);
	free(text);
}

static void files(void)
{
	struct estimate e, back = { 0 };
	char name[192], *text, *large;
	struct control c, c_back;
	struct stat st;
	FILE *f;

	fill(&e, &c);
	text = statefile_make(&e, &c, &learned, known, NULL, BOOT);
	snprintf(name, sizeof(name), "%s/sub/mgpud.state", folder);
	TAP_EQ(take_file(name, &back, &c_back), -ENOENT);
	TAP_EQ(statefile_write(name, text), 0);		/* makes the folder */
	TAP_EQ(statefile_write(name, text), 0);
	TAP_EQ(stat(name, &st), 0);
	TAP_EQ(st.st_mode & 0777, 0600);
	TAP_EQ(take_file(name, &back, &c_back), 0);
	TAP_EQ(back.nr_vgpus, 2);
	/* half of a file, left by an mgpud that was killed, does no harm */
	strcat(name, ".new");
	f = fopen(name, "w");
	TAP_NEED(f);
	fputs("{", f);
	fclose(f);
	name[strlen(name) - 4] = '\0';
	TAP_EQ(statefile_write(name, text), 0);
	strcat(name, ".new");
	TAP_EQ(access(name, F_OK), -1);
	name[strlen(name) - 4] = '\0';
	/* a failed write leaves the old file */
	TAP_CHECK(statefile_write("/proc/mgpud.state", text) < 0);
	snprintf(name, sizeof(name), "%s/no/such/mgpud.state", folder);
	TAP_EQ(statefile_write(name, text), -ENOENT);
	/* a pipe, a folder, a link, a device, and one that is too large */
	snprintf(name, sizeof(name), "%s/pipe", folder);
	TAP_EQ(mkfifo(name, 0600), 0);
	TAP_EQ(take_file(name, &back, &c_back), -EBADMSG);
	TAP_EQ(take_file(folder, &back, &c_back), -EBADMSG);
	snprintf(name, sizeof(name), "%s/link", folder);
	TAP_EQ(symlink("/etc/passwd", name), 0);
	TAP_EQ(take_file(name, &back, &c_back), -ELOOP);
	TAP_EQ(take_file("/dev/zero", &back, &c_back), -EBADMSG);
	large = calloc(1, STATEFILE_SIZE_MAX + 2);
	memset(large, ' ', STATEFILE_SIZE_MAX + 1);
	TAP_EQ(statefile_write(path, large), 0);
	TAP_EQ(take_file(path, &back, &c_back), -EBADMSG);
	free(large);
	TAP_EQ(back.nr_vgpus, 2);
	free(text);
	estimate_free(&e);
	estimate_free(&back);
}

/* Wait for the end of a write; returns its result. */
static int ended(struct statefile_writer *w)
{
	struct pollfd p = { .fd = statefile_writer_fd(w), .events = POLLIN };
	int result = 1;

	TAP_EQ(poll(&p, 1, -1), 1);
	TAP_CHECK(statefile_writer_ended(w, &result));
	/* once */
	TAP_CHECK(!statefile_writer_ended(w, &result));
	TAP_EQ(poll(&p, 1, 0), 0);
	return result;
}

static void background(void)
{
	struct statefile_writer *w = statefile_writer_new();
	char name[192];
	int ret = 7;

	TAP_NEED(w);
	TAP_CHECK(!statefile_writer_ended(w, &ret));
	TAP_EQ(ret, 7);
	TAP_EQ(statefile_writer_start(w, path, strdup("one\n")), 0);
	/* it goes on by itself, and its end is seen, success as well as failure */
	TAP_EQ(statefile_writer_start(w, path, strdup("two\n")), -EBUSY);
	TAP_EQ(ended(w), 0);
	TAP_EQ(statefile_writer_start(w, path, strdup("two\n")), 0);
	statefile_writer_free(w);		/* waits */
	w = statefile_writer_new();
	snprintf(name, sizeof(name), "%s/no/such/file", folder);
	TAP_EQ(statefile_writer_start(w, name, strdup("x")), 0);
	TAP_EQ(ended(w), -ENOENT);
	TAP_EQ(statefile_writer_start(w, path, strdup("three\n")), 0);
	TAP_EQ(ended(w), 0);
	statefile_writer_free(w);
	statefile_writer_free(NULL);
	TAP_EQ(access(path, F_OK), 0);
}

/* Settings made at run time are there after a reboot, and whatever else is damaged. */
static void settings(void)
{
	static const char set[] =
		"{\"beta\":3,\"sla\":{\"" A "\":{\"floor\":30.5,\"ceiling\":null}}}";
	struct json_object *overlay = json_tokener_parse(set);
	struct estimate e;
	struct control c;
	char *text, damaged[256];

	fill(&e, &c);
	text = statefile_make(&e, &c, &learned, known, overlay, BOOT);
	estimate_free(&e);
	TAP_NEED(text);
	for (unsigned int k = 0; k < 2; k++) {
		memset(&e, 0, sizeof(e));
		json_object_put(s_back);
		TAP_EQ(statefile_parse(text, strlen(text), k ? "another" : BOOT, &e, &c,
				       &l_back, k_back, &s_back, why, sizeof(why)),
		       k ? -ESTALE : 0);
		TAP_CHECK(json_object_equal(s_back, overlay));
		estimate_free(&e);
	}
	memset(&e, 0, sizeof(e));
	snprintf(damaged, sizeof(damaged),
		 "{\"version\":1,\"boot_id\":\"" BOOT "\",\"vgpus\":3,\"settings\":%s}", set);
	TAP_EQ(take(damaged, &e, &c), -EBADMSG);
	TAP_CHECK(json_object_equal(s_back, overlay));
	snprintf(damaged, sizeof(damaged), "{\"version\":2,\"settings\":%s}", set);
	TAP_EQ(take(damaged, &e, &c), -EPROTO);
	TAP_CHECK(json_object_equal(s_back, overlay));
	/* a file without any, and one that is cut */
	TAP_EQ(take("{\"version\":2}", &e, &c), -EPROTO);
	TAP_CHECK(!s_back);
	text[strlen(text) / 2] = '\0';
	TAP_EQ(take(text, &e, &c), -EBADMSG);
	TAP_CHECK(!s_back);
	free(text);
	json_object_put(overlay);
}

/* Knowledge of vGPUs survives reboots, and is whole or none. */
static void known_vgpus(void)
{
	static const struct learner_known some[] = {
		{ .uuid = A, .periods = 12, .cost = { 1.0 / 3, 1.0 / 7 }, .smooth = { 0.5, 0.25 } },
		{ .uuid = B, .periods = 0 },
		{ .uuid = "ffffffff-89ab-cdef-0123-456789abcdef", .periods = 1,
		  .cost = { 0, 1e-9 }, .smooth = { 0, 1 } },
	};
	static const char *const bad[] = {
		"3", "{}", "[3]", "[{}]",
		"[{\"uuid\":\"me\",\"periods\":1,\"cpu\":0,\"gpu\":0,\"cpu_share\":0,\"gpu_share\":0}]",
		"[{\"uuid\":\"" A "\",\"periods\":-1,\"cpu\":0,\"gpu\":0,\"cpu_share\":0,\"gpu_share\":0}]",
		"[{\"uuid\":\"" A "\",\"periods\":1,\"cpu\":1e300,\"gpu\":0,\"cpu_share\":0,\"gpu_share\":0}]",
		"[{\"uuid\":\"" A "\",\"periods\":1,\"cpu\":0,\"gpu\":0,\"cpu_share\":0}]",
	};
	struct estimate e = { 0 };
	struct control c = { 0 };
	char *text, damaged[512];

	TAP_EQ(learner_know(known, some, 3), 0);
	fill(&e, &c);
	text = statefile_make(&e, &c, &learned, known, NULL, BOOT);
	estimate_free(&e);
	TAP_NEED(text);
	for (unsigned int k = 0; k < 2; k++) {
		memset(&e, 0, sizeof(e));
		json_object_put(s_back);
		TAP_EQ(learner_know(k_back, NULL, 0), 0);
		TAP_EQ(statefile_parse(text, strlen(text), k ? "another" : BOOT, &e, &c,
				       &l_back, k_back, &s_back, why, sizeof(why)),
		       k ? -ESTALE : 0);
		TAP_NEED(learner_known(k_back, 1));
		TAP_CHECK(!learner_known(k_back, 2));
		TAP_MEM(learner_known(k_back, 0), &some[0], sizeof(some[0]));
		TAP_MEM(learner_known(k_back, 1), &some[2], sizeof(some[2]));
		estimate_free(&e);
	}
	free(text);
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		memset(&e, 0, sizeof(e));
		snprintf(damaged, sizeof(damaged), HEAD GOOD "],\"known\":%s}", bad[k]);
		TAP_EQ(take(damaged, &e, &c), 0);
		TAP_EQ(e.nr_vgpus, 1);
		TAP_CHECK(strstr(why, "what was learned of vGPUs is not used"));
		TAP_MEM(learner_known(k_back, 0), &some[0], sizeof(some[0]));
		estimate_free(&e);
	}
	/* both doubts are said */
	memset(&e, 0, sizeof(e));
	TAP_EQ(take(HEAD GOOD "],\"known\":3,\"learned\":3}", &e, &c), 0);
	TAP_CHECK(strstr(why, "learned of work is not used"));
	TAP_CHECK(strstr(why, "; what was learned of vGPUs"));
	estimate_free(&e);
}

static void many(void)
{
	static struct learner_known all[STATEFILE_VGPUS_MAX];
	struct estimate e = { .cpu_capacity_smooth = 2 }, back = { 0 };
	struct control c = { 0 }, c_back;
	char *text;

	e.nr_vgpus = STATEFILE_VGPUS_MAX;
	e.vgpus = calloc(e.nr_vgpus, sizeof(*e.vgpus));
	for (size_t j = 0; j < e.nr_vgpus; j++) {
		e.vgpus[j].last.id = (uint32_t)j;
		snprintf(e.vgpus[j].last.uuid, sizeof(e.vgpus[j].last.uuid),
			 "%08x-89ab-cdef-0123-456789abcdef", (unsigned int)j);
		e.vgpus[j].last.tgid = 1 + (uint32_t)j;
		e.vgpus[j].state = VGPU_ACTIVE;
		e.vgpus[j].kept.cpu = 1.0 / 3;
		e.vgpus[j].kept.gpu = 1.0 / 7;
		e.vgpus[j].kept.frames = 1e2 / 3;
		e.vgpus[j].idle_ns = INT64_MAX;
		strcpy(all[j].uuid, e.vgpus[j].last.uuid);
		all[j].periods = 1e9 / 3;
		for (int g = 0; g < LEARN_RESOURCES; g++) {
			all[j].cost[g] = 1.0 / 3;
			all[j].smooth[g] = 1.0 / 7;
		}
	}
	TAP_EQ(learner_know(known, all, STATEFILE_VGPUS_MAX), 0);
	text = statefile_make(&e, &c, &learned, known, NULL, BOOT);
	TAP_NEED(text);
	TAP_CHECK(strlen(text) <= STATEFILE_SIZE_MAX / 2);
	TAP_EQ(take(text, &back, &c_back), 0);
	TAP_EQ(back.nr_vgpus, STATEFILE_VGPUS_MAX);
	TAP_CHECK(learner_known(k_back, STATEFILE_VGPUS_MAX - 1));
	free(text);
	estimate_free(&e);
	estimate_free(&back);
}

int main(void)
{
	char boot[64];

	strcpy(folder, "/tmp/test-state-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/mgpud.state", folder);
	learn(&learned);
	known = learner_new();
	k_back = learner_new();
	if (!known || !k_back)
		return 1;

	tap_run(round_trip, "a written state is read back to the last digit");
	tap_run(older, "a state file of the previous version is read");
	tap_run(resumes, "averages go on in the same VMM, and limits stay");
	tap_run(others, "files of another boot or version are told apart");
	tap_run(other_boot, "learned costs survive a restart of the machine");
	tap_run(hostile_learned, "impossible learned values are dropped, the rest is kept");
	tap_run(hostile, "values that cannot be are refused");
	tap_run(mutations, "cut and changed files are refused or sane");
	tap_run(files, "a file is there whole or as it was before");
	tap_run(background, "writing goes on by itself");
	tap_run(settings, "what was set at run time survives reboots and damage");
	tap_run(known_vgpus, "what is known of vGPUs survives reboots, and is whole or none");
	tap_run(many, "4,096 vGPUs fit");
	statefile_boot(boot);
	tap_diag("boot %s", boot);

	snprintf(why, sizeof(why), "rm -rf %s", folder);
	if (system(why))
		return 1;
	learner_free(known);
	learner_free(k_back);
	return tap_done();
}
