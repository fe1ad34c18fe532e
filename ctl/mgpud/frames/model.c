// SPDX-License-Identifier: GPL-2.0-only
/* The model: loading it, and its use in the rate loop. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "config/fail.h"
#include "config/weights.h"
#include "frames/model.h"

#define DAY_S	86400

int model_init(struct model *m)
{
	memset(m, 0, sizeof(*m));
	m->learner = learner_new();
	return m->learner ? 0 : -ENOMEM;
}

/* End the use of the model. */
static void drop(struct model *m)
{
	if (m->learner)
		learner_use(m->learner, &(struct learner_model){ .ops = NULL });
	if (m->ops && m->ops->free)
		m->ops->free(m->data);
	m->ops = NULL;
	m->data = NULL;
	m->made_s = 0;
	m->sum = 0;
	m->evaluation[0] = '\0';
	m->told = false;
}

void model_free(struct model *m)
{
	drop(m);
	learner_free(m->learner);
	free(m->text);
	free(m->expect);
	memset(m, 0, sizeof(*m));
}

/* ---- loading ---- */

/* Make a model from a file's payload. Returns false with a sentence in @why. */
static bool load(struct model *m, const struct learn_file *file, const char *path, char *why,
		 size_t size)
{
	const struct learn_model_ops *ops = learn_model_find(file->model);
	char wrong[256] = "";

	if (!ops || !ops->learned || !ops->load) {
		fail(why, size, 0, "%s: this mgpud has no model \"%s\"; use a file for one that it has, or a newer mgpud",
		     path, file->model);
		return false;
	}
	if (ops->load(&m->data, file->payload, file->size, wrong, sizeof(wrong))) {
		fail(why, size, 0, "%s: %s", path, wrong);
		m->data = NULL;
		return false;
	}
	m->ops = ops;
	m->made_s = file->made_s;
	snprintf(m->evaluation, sizeof(m->evaluation), "%s", file->evaluation);
	weights_make_plain(m->evaluation);
	return true;
}

/* As model_configure(), for a path. */
static enum model_change use_file(struct model *m, const char *path, bool same, char *why,
				  size_t size)
{
	struct learn_file file;
	enum model_change change = MODEL_NEW;
	uint64_t sum;

	if (!weights_read(&file, path, why, size)) {
		drop(m);
		return MODEL_REFUSED;
	}
	sum = checksum_add(CHECKSUM_START, file.payload, file.size);
	if (same && m->ops && m->made_s == file.made_s && m->sum == sum) {
		change = MODEL_SAME;
	} else {
		drop(m);
		if (load(m, &file, path, why, size))
			m->sum = sum;
		else
			change = MODEL_REFUSED;
	}
	learn_file_free(&file);
	return change;
}

static bool same_settings(const struct config_model *a, const struct config_model *b)
{
	return !strcmp(a->use, b->use) && a->mode == b->mode &&
		a->max_age_days == b->max_age_days;
}

enum model_change model_configure(struct model *m, const struct config_model *c, bool reread,
				  char *why, size_t size)
{
	bool same = same_settings(&m->config, c);
	enum model_change change = MODEL_NEW;

	why[0] = '\0';
	if (same && (!reread || !config_model_is_file(c)))
		return MODEL_SAME;
	m->config = *c;
	if (config_model_is_file(c)) {
		change = use_file(m, c->use, same, why, size);
	} else {
		drop(m);
		m->ops = *c->use ? learn_model_find(c->use) : NULL;
	}
	weights_make_plain(why);
	if (change == MODEL_NEW) {
		m->told = false;
		learner_use(m->learner, &(struct learner_model){
			.ops = m->ops, .data = m->data, .acts = config_model_acts(c),
		});
	}
	return change;
}

/* ---- the use ---- */

double model_age_s(const struct model *m, uint64_t now_s)
{
	if (!m->ops || !m->ops->learned)
		return NAN;
	return now_s > m->made_s ? (double)(now_s - m->made_s) : 0;
}

static void check_age(struct model *m, uint64_t now_s)
{
	double most = (double)m->config.max_age_days * DAY_S;
	char why[160];

	if (!(most > 0) || !(model_age_s(m, now_s) > most))
		return;
	snprintf(why, sizeof(why),
		 "the weights are older than %u days; train the model anew, or raise model_max_age_days",
		 m->config.max_age_days);
	learner_fail(m->learner, why);
}

static int make_room(struct model *m, size_t n)
{
	const char **text;
	struct expect *expect;

	if (n <= m->room)
		return 0;
	text = calloc(n, sizeof(*text));
	expect = calloc(n, sizeof(*expect));
	if (!text || !expect) {
		free(text);
		free(expect);
		return -ENOMEM;
	}
	free(m->text);
	free(m->expect);
	m->text = text;
	m->expect = expect;
	m->room = n;
	return 0;
}

const struct expect *model_expect(struct model *m, const struct settings *set,
				  const struct estimate *e, uint64_t now_s)
{
	struct sla *sla = settings_slas(set, e);
	int ret;

	ret = sla ? make_room(m, e->nr_vgpus) : -ENOMEM;
	check_age(m, now_s);
	for (size_t j = 0; !ret && j < e->nr_vgpus; j++) {
		m->text[j] = settings_description(set, e->vgpus[j].last.uuid);
		if (!set->allocator->floors)
			sla[j].floor = 0;
	}
	if (!ret)
		ret = learner_update(m->learner, e, m->text, sla, &set->param, m->expect);
	free(sla);
	return ret ? NULL : m->expect;
}

bool model_failed(struct model *m)
{
	bool failed = learner_report(m->learner)->mode == LEARNER_FAILED && !m->told;

	m->told |= failed;
	return failed;
}
