// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gradients of the response network, which is compiled with double here, against finite
 * differences of the loss.
 */
#include "learn_question.h"
#include "network_train.h"
#include "tap.h"

#define STEP	1e-6
#define LARGE	1e-6	/* 100 times what finite differences may miss */
#define TRIED	10	/* parameters of a block, but of more than WORDS eight times as many */
#define WORDS	1000
#define SECONDS	180	/* for a test on a busy machine */

static struct network_weights w;
static struct network_parameters gradient, unused;
static struct learn_sample sample;

static void random_sample(size_t n)
{
	random_question(&sample.in, n);
	memset(sample.label, 0, sizeof(sample.label));
	for (int r = 0; r < LEARN_RESOURCES; r++)
		for (size_t j = 0; j < n; j++)
			sample.label[r][j] = (float)unit();
}

static double loss_with(double *p, double value, struct network_scratch *s)
{
	double was = *p, loss;

	*p = value;
	loss = network_gradient(&w, &sample, s, &unused);
	*p = was;
	return loss;
}

/* Compare a block; return how many of its gradients are large enough to tell. */
static size_t compare_block(const struct network_block *b, struct network_scratch *s)
{
	double *p = (double *)&w.p + b->offset, *d = (double *)&gradient + b->offset;
	size_t size = b->rows * b->columns, moved = 0;
	/* a sample has only some of the words */
	size_t tries = size > WORDS ? 8 * TRIED : size < TRIED ? size : TRIED;

	for (size_t k = 0; k < tries; k++) {
		size_t i = size > TRIED ? below(size) : k;
		double measured = (loss_with(&p[i], p[i] + STEP, s) -
				   loss_with(&p[i], p[i] - STEP, s)) / (2 * STEP);

		if (!TAP_NEAR(d[i], measured, 1e-8 + 1e-5 * fabs(measured)))
			tap_diag("%s, %zu of %zu", b->name, i, size);
		moved += fabs(d[i]) > LARGE;
	}
	return moved;
}

static void compare_all(enum network_form form, size_t n)
{
	struct network_scratch *s = network_scratch_new();

	TAP_NEED(s);
	network_init(&w, form, 3);
	for (size_t i = 0; i < NETWORK_PARAMETERS; i++)
		((double *)&w.p)[i] += 0.1 * (unit() - 0.5);
	random_sample(n);
	memset(&gradient, 0, sizeof(gradient));
	network_gradient(&w, &sample, s, &gradient);
	for (size_t b = 0; b < network_nr_blocks; b++) {
		size_t moved = compare_block(&network_blocks[b], s);
		bool factor = !strcmp(network_blocks[b].name, "factor");

		if (!TAP_CHECK(moved || n == 1 || (factor && form != NETWORK_FORM_A)))
			tap_diag("%s has no gradient", network_blocks[b].name);
		TAP_CHECK(!moved || n > 1);
	}
	free(s);
}

static void form_b(void)
{
	rng = 1;
	compare_all(NETWORK_FORM_B, LEARN_CLIENTS);
}

static void few_clients(void)
{
	rng = 6;
	compare_all(NETWORK_FORM_B, 5);
	compare_all(NETWORK_FORM_B, 1);
}

static void form_a(void)
{
	rng = 2;
	compare_all(NETWORK_FORM_A, 7);
}

static void form_c(void)
{
	rng = 3;
	compare_all(NETWORK_FORM_C, 7);
}

static void after_another_size(void)
{
	struct network_scratch *used = network_scratch_new(), *fresh = network_scratch_new();
	static struct network_parameters other;

	TAP_NEED(used && fresh);
	rng = 4;
	network_init(&w, NETWORK_FORM_B, 3);
	random_sample(LEARN_CLIENTS);
	network_gradient(&w, &sample, used, &unused);
	random_sample(3);
	memset(&gradient, 0, sizeof(gradient));
	TAP_CHECK(network_gradient(&w, &sample, used, &gradient) ==
		  network_gradient(&w, &sample, fresh, &other));
	TAP_MEM(&gradient, &other, sizeof(other));
	free(used);
	free(fresh);
}

static void rows_without_label(void)
{
	struct network_scratch *s = network_scratch_new();
	double one;

	TAP_NEED(s);
	rng = 5;
	network_init(&w, NETWORK_FORM_B, 3);
	random_sample(6);
	memset(sample.label[0], 0, sizeof(sample.label[0]));
	one = network_gradient(&w, &sample, s, &unused);
	TAP_CHECK(one > 0);
	memset(sample.label[1], 0, sizeof(sample.label[1]));
	memset(&gradient, 0, sizeof(gradient));
	TAP_NEAR(network_gradient(&w, &sample, s, &gradient), 0, 0);
	for (size_t i = 0; i < NETWORK_PARAMETERS; i++)
		if (!TAP_NEAR(((double *)&gradient)[i], 0, 0))
			break;
	free(s);
}

int main(void)
{
	tap_run_within(form_b, "the gradient of each block is that of the loss, with form B",
		       SECONDS);
	tap_run_within(few_clients, "and with few clients", SECONDS);
	tap_run_within(form_a, "and with form A", SECONDS);
	tap_run_within(form_c, "and with form C", SECONDS);
	tap_run(after_another_size, "a sample of another size before leaves no trace");
	tap_run(rows_without_label, "a resource without labels does not count");
	return tap_done();
}
