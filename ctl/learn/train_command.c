// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-learn train. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "complain.h"
#include "network_train.h"
#include "output.h"
#include "trees.h"

/*
 * Of the runs each so many-th is for validation. No VM is in both parts, unless its host made two
 * logs of it.
 */
#define VALIDATE_EVERY	5

/**
 * struct parts - samples in two parts
 * @learn: samples to learn from
 * @nr: number of them
 * @check: samples for validation
 * @nr_check: number of them
 */
struct parts {
	struct learn_sample *learn;
	size_t nr;
	struct learn_sample *check;
	size_t nr_check;
};

static int split(const struct examples *x, struct parts *p)
{
	p->learn = calloc(x->nr, sizeof(*p->learn));
	p->check = calloc(x->nr, sizeof(*p->check));
	if (!p->learn || !p->check) {
		complain("out of memory");
		return -1;
	}
	for (size_t i = 0; i < x->nr; i++)
		if (x->run[i] % VALIDATE_EVERY)
			p->learn[p->nr++] = x->sample[i];
		else
			p->check[p->nr_check++] = x->sample[i];
	if (p->nr && p->nr_check)
		return 0;
	complain("%" PRIu32 " runs are too few: every %dth run is for validation, so give at least two",
		 x->runs, VALIDATE_EVERY);
	return -1;
}

static void parts_free(struct parts *p)
{
	free(p->learn);
	free(p->check);
}

/* ---- the network ---- */

/* Print a line for an epoch, on a terminal over the one before. */
static bool show_epoch(void *arg, const struct network_progress *p)
{
	uint64_t began = *(uint64_t *)arg;
	double left = (double)(now_ns() - began) * 1e-9 / p->epoch * (p->epochs - p->epoch);
	bool over = isatty(STDERR_FILENO);

	fprintf(stderr, "%sepoch %u of %u: loss %.4f, of validation %.4f, least in epoch %u; at most %.0f s left%s",
		over ? "\r\033[K" : "", p->epoch, p->epochs, p->loss, p->validation, p->best,
		left, over && p->epoch < p->epochs ? "" : "\n");
	return false;
}

static int train_network(const struct learn_options *o, const struct parts *p,
			 struct learn_file *file)
{
	struct network_weights *w = calloc(1, sizeof(*w));
	struct network_training t;
	uint64_t began = now_ns();
	int ret = -ENOMEM;

	network_training_defaults(&t);
	t.seed = o->seed;
	if (o->form)
		t.form = *o->form == 'A' ? NETWORK_FORM_A : *o->form == 'C' ? NETWORK_FORM_C :
			NETWORK_FORM_B;
	if (o->epochs)
		t.epochs = o->epochs;
	if (!o->quiet) {
		t.progress = show_epoch;
		t.arg = &began;
	}
	if (w)
		ret = network_train(w, p->learn, p->nr, p->check, p->nr_check, &t);
	if (!ret)
		file->payload = learn_network_write(w, &file->size);
	free(w);
	if (!ret && file->payload)
		return 0;
	complain("%s", ret == -ERANGE ? "weights went out of their range; train with another seed" :
		 strerror(ret ? -ret : ENOMEM));
	return -1;
}

/* ---- trees ---- */

static int train_trees(const struct learn_options *o, const struct parts *p,
		       struct learn_file *file)
{
	struct boost_options b = BOOST_DEFAULT;
	double error[LEARN_RESOURCES];
	char why[256];

	b.seed = o->seed;
	if (o->epochs)
		b.rounds = o->epochs;
	if (trees_train(&file->payload, &file->size, p->learn, p->nr, p->check, p->nr_check, &b,
			error, why, sizeof(why))) {
		complain("%s", why);
		return -1;
	}
	return 0;
}

/* ---- the file ---- */

static const struct {
	const struct learn_model_ops *ops;
	int (*train)(const struct learn_options *o, const struct parts *p,
		     struct learn_file *file);
} trainers[] = {
	{ &learn_network, train_network },
	{ &learn_trees, train_trees },
};

/* Write the validation errors of the model and of the control. */
static int write_evaluation(const struct examples *x, struct learn_file *file)
{
	struct learner_model m = { .ops = learn_model_find(file->model) };
	const struct learner_model control = { .ops = &learn_static };
	struct score new, wakes, new_control, wakes_control;
	char why[256];

	if (m.ops->load(&m.data, file->payload, file->size, why, sizeof(why))) {
		complain("what was trained cannot be used: %s", why);
		return -1;
	}
	new = score_of(&m, x, EXAMPLE_NEW, VALIDATE_EVERY);
	wakes = score_of(&m, x, EXAMPLE_WAKES, VALIDATE_EVERY);
	new_control = score_of(&control, x, EXAMPLE_NEW, VALIDATE_EVERY);
	wakes_control = score_of(&control, x, EXAMPLE_WAKES, VALIDATE_EVERY);
	snprintf(file->evaluation, sizeof(file->evaluation),
		 "mean absolute error of new VMs %.4f (%s %.4f), of VMs that wake %.4f (%s %.4f), %zu samples",
		 new.both, control.ops->name, new_control.both, wakes.both, control.ops->name,
		 wakes_control.both, new.n + wakes.n);
	m.ops->free(m.data);
	return 0;
}

int command_train(const struct learn_options *o)
{
	const struct example_options which = {
		.horizon = 1, .kinds = 1u << EXAMPLE_NEW | 1u << EXAMPLE_WAKES, .part = o->part,
		.seed = o->seed, .fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
	struct learn_file file = { 0 };
	struct parts parts = { 0 };
	struct examples x = { 0 };
	size_t i = 0;
	int ret;

	while (i < sizeof(trainers) / sizeof(trainers[0]) &&
	       strcmp(trainers[i].ops->name, o->model))
		i++;
	if (i == sizeof(trainers) / sizeof(trainers[0])) {
		complain("--model '%.32s': it must be network or trees", o->model);
		return STATUS_USAGE;
	}
	strcpy(file.model, trainers[i].ops->name);
	ret = read_histories(o, &which, &x);
	if (!ret)
		ret = split(&x, &parts);
	snprintf(file.data, sizeof(file.data), "%016" PRIx64 " %zu samples of %" PRIu32 " runs",
		 x.digest, x.nr, x.runs);
	if (!ret && !o->quiet)
		fprintf(stderr, "%zu samples to learn from, %zu for validation\n", parts.nr,
			parts.nr_check);
	if (!ret)
		ret = trainers[i].train(o, &parts, &file);
	if (!ret)
		ret = write_evaluation(&x, &file);
	if (!ret)
		ret = write_weights(&file, o->output);
	if (!ret)
		printf("%s: %s\n", o->output, file.evaluation);
	learn_file_free(&file);
	parts_free(&parts);
	examples_free(&x);
	return ret ? 1 : end_output();
}
