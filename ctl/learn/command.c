// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-learn evaluate and inspect, and what commands share. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <json-c/json.h>

#include "command.h"
#include "complain.h"
#include "files.h"
#include "output.h"

/* The examples that a history is turned into. */
struct making {
	const struct example_options *which;
	struct examples *x;
};

static int history_from(void *data, FILE *f, const char *file, char *why, size_t size)
{
	const struct making *m = data;

	return examples_add(m->x, f, file, m->which, why, size);
}

int read_histories(const struct learn_options *o, const struct example_options *which,
		   struct examples *x)
{
	struct making m = { which, x };

	for (int i = 0; i < o->nr_words; i++)
		if (read_file(o->words[i], &m, history_from))
			return -1;
	if (x->nr)
		return 0;
	complain("no VM comes and stays in these histories; record longer ones");
	return -1;
}

static int weights_from(void *data, FILE *f, const char *file, char *why, size_t size)
{
	return learn_file_read(data, f, file, why, size);
}

int read_weights(struct learn_file *file, const char *path)
{
	return read_file(path, file, weights_from);
}

static int weights_to(const void *data, FILE *f)
{
	return learn_file_write(data, f);
}

int write_weights(struct learn_file *file, const char *path)
{
	const char *epoch = getenv("SOURCE_DATE_EPOCH");

	file->made_s = epoch ? strtoull(epoch, NULL, 10) : (uint64_t)time(NULL);
	return replace_file(path, file, weights_to);
}

/* Make a model from a file of weights; complains. Return 0 or -1. */
static int read_model(struct learner_model *m, const char *path)
{
	struct learn_file file;
	char why[256];
	int ret = 0;

	if (read_weights(&file, path))
		return -1;
	*m = (struct learner_model){ .ops = learn_model_find(file.model) };
	if (!m->ops || !m->ops->learned) {
		complain("%s: \"%s\" predicts no shares", path, file.model);
		ret = -1;
	} else if (m->ops->load(&m->data, file.payload, file.size, why, sizeof(why))) {
		complain("%s: %s", path, why);
		ret = -1;
	}
	learn_file_free(&file);
	return ret;
}

/* ---- evaluate ---- */

struct score score_of(const struct learner_model *m, const struct examples *x,
		      enum example_kind kind, unsigned int every)
{
	struct score s = { 0 };

	for (size_t i = 0; i < x->nr; i++) {
		const struct learn_sample *sample = &x->sample[i];
		double share[LEARN_RESOURCES];

		if ((kind != EXAMPLE_KINDS && x->kind[i] != kind) || x->run[i] % every)
			continue;
		m->ops->share(m->data, &sample->in, share);
		for (int g = 0; g < LEARN_RESOURCES; g++)
			s.error[g] += fabs(share[g] - (double)sample->label[g][0]);
		s.n++;
	}
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		s.error[g] = s.n ? s.error[g] / (double)s.n : NAN;
		s.both += s.error[g] / LEARN_RESOURCES;
	}
	return s;
}

#define MODELS_MAX	(OPTIONS_MAX + 8)

/**
 * struct contest - models that are compared
 * @model: models
 * @nr: number of them
 * @json: array that results go to, NULL: they are printed
 */
struct contest {
	struct learner_model model[MODELS_MAX];
	size_t nr;
	struct json_object *json;
};

static int begin_contest(struct contest *c, const struct learn_options *o)
{
	for (size_t i = 0; learn_models[i] && c->nr < MODELS_MAX; i++)
		if (!learn_models[i]->learned)
			c->model[c->nr++].ops = learn_models[i];
	for (size_t i = 0; i < o->nr_weights && c->nr < MODELS_MAX; i++)
		if (read_model(&c->model[c->nr++], o->weights[i]))
			return -1;
	return 0;
}

static void end_contest(struct contest *c)
{
	for (size_t i = 0; i < c->nr; i++)
		if (c->model[i].data)
			c->model[i].ops->free(c->model[i].data);
}

static void show(struct contest *c, unsigned int horizon, enum example_kind kind, size_t model,
		 const struct score *s)
{
	const char *name = c->model[model].ops->name;
	json_object *o;

	if (!c->json) {
		printf("%7u  %-6s  %7zu  %-12s  %7.4f  %7.4f  %7.4f\n", horizon,
		       example_kind_name[kind], s->n, name, s->both, s->error[LEARN_CPU],
		       s->error[LEARN_ENGINE]);
		return;
	}
	o = json_object_new_object();
	json_object_object_add(o, "horizon", json_object_new_int64(horizon));
	json_object_object_add(o, "vms", json_object_new_string(example_kind_name[kind]));
	json_object_object_add(o, "model", json_object_new_string(name));
	json_object_object_add(o, "answers", json_object_new_int64((int64_t)s->n));
	json_object_object_add(o, "mae", rounded(s->both, 5));
	json_object_object_add(o, "mae_cpu", rounded(s->error[LEARN_CPU], 5));
	json_object_object_add(o, "mae_engine", rounded(s->error[LEARN_ENGINE], 5));
	json_object_array_add(c->json, o);
}

static int evaluate_horizon(struct contest *c, const struct learn_options *o,
			    unsigned int horizon)
{
	const struct example_options which = {
		.horizon = horizon, .kinds = (1u << EXAMPLE_KINDS) - 1, .part = o->part,
		.seed = o->seed, .fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
	struct examples x = { 0 };
	int ret = read_histories(o, &which, &x);

	for (unsigned int kind = 0; !ret && kind < EXAMPLE_KINDS; kind++)
		for (size_t i = 0; i < c->nr; i++) {
			struct score s = score_of(&c->model[i], &x, (enum example_kind)kind, 1);

			if (s.n)
				show(c, horizon, (enum example_kind)kind, i, &s);
		}
	examples_free(&x);
	return ret;
}

int command_evaluate(const struct learn_options *o)
{
	struct contest c = { .json = o->json ? json_object_new_array() : NULL };
	int ret = begin_contest(&c, o);

	if (!ret && !c.json)
		puts("mean absolute error, parts of a resource\n"
		     "periods  VMs     answers  model            both      CPU   engine");
	for (size_t i = 0; !ret && i < o->nr_horizons; i++)
		ret = evaluate_horizon(&c, o, o->horizons[i]);
	end_contest(&c);
	if (!ret && c.json) {
		json_object *all = json_object_new_object();

		json_object_object_add(all, "demand", c.json);
		return print_json(all);
	}
	json_object_put(c.json);
	return ret ? 1 : end_output();
}

/* ---- inspect ---- */

int command_inspect(const struct learn_options *o)
{
	struct learn_file file;
	json_object *json;

	if (read_weights(&file, o->words[0]))
		return 1;
	if (!o->json) {
		printf("model       %s\nmade        %" PRIu64 "\ndata        %s\nevaluation  %s\n"
		       "size        %zu bytes\n", file.model, file.made_s, file.data,
		       file.evaluation, file.size);
		learn_file_free(&file);
		return end_output();
	}
	json = json_object_new_object();
	json_object_object_add(json, "model", json_object_new_string(file.model));
	json_object_object_add(json, "made_s", json_object_new_uint64(file.made_s));
	json_object_object_add(json, "data", json_object_new_string(file.data));
	json_object_object_add(json, "evaluation", json_object_new_string(file.evaluation));
	json_object_object_add(json, "bytes", json_object_new_uint64(file.size));
	learn_file_free(&file);
	return print_json(json);
}
