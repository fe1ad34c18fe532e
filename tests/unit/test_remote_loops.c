// SPDX-License-Identifier: GPL-2.0-only
/* Loops of remoted programs: the prediction of their requests, groups, and places in the code. */
#include <json-c/json.h>

#include "marks.h"
#include "predict.h"
#include "tap.h"
#include "wire.h"

#define ITSELF	99	/* number of the function that executes groups */

static struct predict p;

/* Put a request of @nr words; return its bytes. */
static size_t put(uint8_t *to, uint32_t seq, uint16_t function, const uint64_t *words, size_t nr)
{
	const struct remote_request h = { .len = 8 * nr, .seq = seq, .function = function };

	memcpy(to, &h, sizeof(h));
	memcpy(to + sizeof(h), words, 8 * nr);
	return sizeof(h) + 8 * nr;
}

/* A loop of three calls; @wrong is the number of the request that has one word more by 1. */
static enum predicted call(unsigned int nr, unsigned int wrong)
{
	unsigned int k = nr / 3;
	const uint64_t words[3][4] = {
		{ 7, 64 + 8ull * k, 0, 0 }, { 9, (uint64_t)-16 * k, 1, 2 }, { 5, 5, 5, 5 },
	};
	const size_t lens[3] = { 2, 4, 3 };
	uint64_t own[4];
	uint8_t request[64];
	size_t len;

	memcpy(own, words[nr % 3], sizeof(own));
	own[1] += nr == wrong;
	len = put(request, 100 + nr, (uint16_t)(nr % 3 + 1), own, lens[nr % 3]);
	return predict_request(&p, request, len, nr % 3 == 0);
}

#define NEVER	1000

static void iterations_are_predicted(void)
{
	struct request_group g;
	unsigned int nr;

	predict_reset(&p);
	for (nr = 0; nr < 6; nr++) {
		TAP_EQ(call(nr, NEVER), PREDICTED_KEPT);
		TAP_CHECK(!predict_holds(&p));
	}
	for (; nr < 6 + 3 * 10 + 2; nr++)
		TAP_EQ(call(nr, NEVER), PREDICTED_AS_IS);
	TAP_CHECK(predict_holds(&p));
	TAP_EQ(p.count, 10);
	TAP_EQ(p.call, 2);
	predict_group(&p, &g);
	TAP_EQ(group_check(&g, ITSELF), 3);
	/* The group is that of the third iteration and nine more. */
	TAP_EQ(g.count, 10);
	TAP_EQ(((struct remote_request *)(void *)g.requests)->seq, 106);
	predict_sent(&p);
	TAP_EQ(p.count, 0);
	TAP_EQ(call(nr, NEVER), PREDICTED_AS_IS);
	TAP_EQ(p.count, 1);
}

static void each_wrong_request_is_noticed(void)
{
	for (unsigned int wrong = 3; wrong < 18; wrong++) {
		unsigned int nr, first = NEVER;

		predict_reset(&p);
		for (nr = 0; nr < 21 && first == NEVER; nr++)
			if (call(nr, wrong) == PREDICTED_WRONG)
				first = nr;
		/* In the second iteration a wrong word is one that changes; the third differs. */
		TAP_EQ(first, wrong < 6 ? wrong + 3 : wrong);
	}
}

static void other_shapes_are_wrong(void)
{
	const uint64_t words[4] = { 0 };
	uint8_t request[64];
	size_t len;

	/* Another function, another length, one request less. */
	for (int k = 0; k < 3; k++) {
		predict_reset(&p);
		for (unsigned int nr = 0; nr < 3 + (k == 2); nr++)
			call(nr, NEVER);
		len = put(request, 103, k ? 1 : 2, words, k == 1 ? 3 : 2);
		TAP_EQ(predict_request(&p, request, len, true), PREDICTED_WRONG);
	}
	/* Too many calls, and too many bytes. */
	predict_reset(&p);
	for (unsigned int i = 0; i < PREDICT_CALLS; i++)
		TAP_EQ(predict_request(&p, request, len, false), PREDICTED_KEPT);
	TAP_EQ(predict_request(&p, request, len, false), PREDICTED_WRONG);
	predict_reset(&p);
	TAP_EQ(predict_request(&p, request, len, false), PREDICTED_KEPT);
	TAP_EQ(predict_request(&p, p.requests, GROUP_BYTES, false), PREDICTED_WRONG);
}

/* ---- groups ---- */

static uint8_t requests[GROUP_BYTES] __attribute__((aligned(8)));
static struct group_step steps[8];
static struct request_group g;

/* Two requests of two words each: 8 words. */
static void good_group(void)
{
	const uint64_t words[2] = { 1, 2 };
	size_t len = put(requests, 10, 1, words, 2);

	len += put(requests + len, 11, 2, words, 2);
	steps[0] = (struct group_step){ 1, 2 };
	steps[1] = (struct group_step){ 3, (uint64_t)-1 };
	steps[2] = (struct group_step){ 5, 2 };
	g = (struct request_group){
		.count = 100, .requests = requests, .size = len, .steps = steps, .nr_steps = 3,
	};
}

static void set_header(uint64_t len, uint32_t seq, uint16_t function, uint16_t flags)
{
	const struct remote_request h = {
		.len = len, .seq = seq, .function = function, .flags = flags,
	};

	memcpy(requests + 32, &h, sizeof(h));
}

#define REFUSED(change)								\
	do {									\
		good_group();							\
		TAP_EQ(group_check(&g, ITSELF), 2);				\
		change;								\
		TAP_EQ(group_check(&g, ITSELF), 0);				\
	} while (0)

static void bad_groups_are_refused(void)
{
	REFUSED(g.count = 0);
	REFUSED(g.count = GROUP_CALLS / 2 + 1);
	REFUSED(g.count = UINT64_MAX);
	REFUSED(g.size = 0);
	REFUSED(g.size = 56);
	REFUSED(g.size -= 4);
	REFUSED(g.size = GROUP_BYTES + 8);
	REFUSED(g.nr_steps = 9);
	REFUSED(steps[2].word = 8);
	REFUSED(steps[2].word = 3);
	REFUSED(steps[2].word = 2);
	/* The headers are the same in all iterations. */
	REFUSED(steps[2].word = 4);
	REFUSED(steps[0].word = 0);
	REFUSED(steps[2].step = 1ull << 32);
	REFUSED(steps[2].step = UINT32_MAX);
	REFUSED(set_header(16, UINT32_MAX - 197, 2, 0));
	REFUSED(set_header(24, 11, 2, 0));
	REFUSED(set_header(8, 11, 2, 0));
	REFUSED(set_header(12, 11, 2, 0));
	REFUSED(set_header(UINT64_MAX - 7, 11, 2, 0));
	REFUSED(set_header(16, 11, ITSELF, 0));
	REFUSED(set_header(16, 11, 2, REMOTE_WAITS));
	REFUSED(set_header(16, 11, 2, REMOTE_ASIDE));
	good_group();
	set_header(16, UINT32_MAX - 198, 2, 0);
	TAP_EQ(group_check(&g, ITSELF), 2);
}

static void requests_move(void)
{
	uint64_t word;

	good_group();
	group_move(requests, steps, 3, 5);
	memcpy(&word, requests + 24, 8);
	TAP_EQ(word, (uint64_t)2 - 5);
	group_move(requests, steps, 3, -5);
	memcpy(&word, requests + 24, 8);
	TAP_EQ(word, 2);
}

/* ---- places ---- */

static void calls_have_lengths(void)
{
	static const struct {
		uint8_t bytes[8];
		unsigned int len;
	} calls[] = {
		{ { 0xe8, 1, 2, 3, 4 }, 5 },			/* call symbol */
		{ { 0x67, 0xe8, 1, 2, 3, 4 }, 6 },
		{ { 0xff, 0x15, 1, 2, 3, 4 }, 6 },		/* call *slot(%rip) */
		{ { 0x3e, 0xff, 0x15, 1, 2, 3, 4 }, 7 },
		{ { 0xff, 0xd0 }, 2 },				/* call *%rax */
		{ { 0x41, 0xff, 0xd4 }, 3 },			/* call *%r12 */
		{ { 0xff, 0x10 }, 2 },				/* call *(%rax) */
		{ { 0xff, 0x50, 8 }, 3 },
		{ { 0xff, 0x90, 1, 2, 3, 4 }, 6 },
		{ { 0xff, 0x14, 0x24 }, 3 },			/* call *(%rsp) */
		{ { 0xff, 0x54, 0x24, 8 }, 4 },
		{ { 0xff, 0x14, 0x25, 1, 2, 3, 4 }, 7 },
		{ { 0xff, 0xe0 }, 0 },				/* jmp *%rax */
		{ { 0xe9, 1, 2, 3, 4 }, 0 },
		{ { 0xc3 }, 0 },
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		TAP_EQ(marks_call_len(calls[i].bytes, sizeof(calls[i].bytes)), calls[i].len);
		for (unsigned int len = 0; len < calls[i].len; len++)
			TAP_EQ(marks_call_len(calls[i].bytes, len), 0);
	}
}

static void reports_have_places(void)
{
	static const uint8_t code[32] = { [4] = 0xe8, [16] = 0xff, [17] = 0xd0 };
	static const char text[] =
		"{ \"loops\": [ 1, null, {}, { \"class\": 2, \"calls\": 7 },\n"
		"{ \"class\": 2, \"calls\": [ 1, null, {} ] },\n"
		"{ \"class\": 1, \"depth\": 2, \"calls\": [ { \"address\": \"0x1004\" } ] },\n"
		"{ \"class\": null, \"depth\": 1, \"calls\": [ { \"address\": \"0x1010\" } ] },\n"
		"{ \"class\": 3, \"depth\": 1, \"calls\": [ { \"address\": \"0x1004\" },\n"
		"  { \"address\": \"0x1008\" }, { \"address\": \"0x1fff\" }, {} ] } ] }";
	struct json_object *report = json_tokener_parse(text);
	struct mark_loop *outer, *inner;

	TAP_NEED(report);
	/* An address that is no call's, or not in the code, is no place. */
	TAP_EQ(marks_add(report, (uintptr_t)code - 0x1000, code, code + sizeof(code)), 2);
	json_object_put(report);
	TAP_CHECK(!marks_find(NULL) && !marks_find(code + 4) && !marks_find(code + 18));
	outer = marks_find(code + 9);
	TAP_NEED(outer);
	outer->short_stays = MARK_SHORT - 1;
	TAP_CHECK(marks_find(code + 9) == outer);
	outer->short_stays++;
	inner = marks_find(code + 9);
	TAP_CHECK(inner && inner != outer);
	inner->short_stays = MARK_SHORT;
	TAP_CHECK(!marks_find(code + 9));
	/* There is room for many. */
	for (uintptr_t i = 1; i <= 1000; i++)
		TAP_NEED(marks_add_place((void *)i, outer));
	outer->short_stays = 0;
	for (uintptr_t i = 1; i <= 1000; i++)
		TAP_NEED(marks_find((void *)i) == outer);
	marks_free();
	TAP_CHECK(!marks_find((void *)1));
}

int main(void)
{
	tap_run(iterations_are_predicted, "from the third iteration on requests are predicted");
	tap_run(each_wrong_request_is_noticed, "a request that is not as predicted is noticed");
	tap_run(other_shapes_are_wrong, "so are other calls, other lengths, and too many");
	tap_run(bad_groups_are_refused, "groups that no front end sends are refused");
	tap_run(requests_move, "requests move between iterations");
	tap_run(calls_have_lengths, "lengths of call instructions are known");
	tap_run(reports_have_places, "places of a report are found, of the outermost loop first");
	return tap_done();
}
