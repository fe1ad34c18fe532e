/* SPDX-License-Identifier: GPL-2.0-only */
/* The model of what is due to vGPUs that were not measured yet: its file, and its use. */
#ifndef MGPUD_MODEL_H
#define MGPUD_MODEL_H

#include "config/config.h"
#include "learner.h"

/**
 * struct model - the model in use
 * @learner: what is known of vGPUs, and the watch over the model
 * @config: the settings that it was made from
 * @ops: its kind, NULL for none
 * @data: what @ops->load() made
 * @made_s: when it was trained, seconds since 1970; valid if @ops->learned
 * @sum: checksum of its file
 * @evaluation: its error on data that it was not trained on, as its file says; "" for a
 *	control
 * @told: the failure was logged
 * @text: descriptions of the vGPUs of the last period
 * @expect: what is expected of them
 * @room: vGPUs for which @text and @expect have memory
 */
struct model {
	struct learner *learner;
	struct config_model config;
	const struct learn_model_ops *ops;
	void *data;
	uint64_t made_s;
	uint64_t sum;
	char evaluation[256];
	bool told;
	const char **text;
	struct expect *expect;
	size_t room;
};

/* Results of model_configure(). */
enum model_change {
	MODEL_SAME,		/* the model in use is used further */
	MODEL_NEW,		/* another one, or with other settings; perhaps none */
	MODEL_REFUSED,		/* none, because of an error */
};

/* Begin without a model. Returns 0 or -ENOMEM. */
int model_init(struct model *m);
void model_free(struct model *m);

/**
 * model_configure() - use the model that the settings name
 * @m: the model in use; there is none after an error
 * @c: the settings
 * @reread: read the file again; the same weights are used further, as they are
 * @why: the error, a sentence
 * @size: size of @why, bytes
 *
 * Return: see enum model_change.
 */
enum model_change model_configure(struct model *m, const struct config_model *c, bool reread,
				  char *why, size_t size);

/* Age of the weights, seconds; NAN without weights. @now_s: seconds since 1970. */
double model_age_s(const struct model *m, uint64_t now_s);

/**
 * model_expect() - learn from a period
 * @m: the model
 * @set: agreements and descriptions
 * @e: the estimate of the period
 * @now_s: seconds since 1970
 *
 * Return: what is expected of each vGPU, in the order of @e, until the next call; NULL for
 * nothing.
 */
const struct expect *model_expect(struct model *m, const struct settings *set,
				  const struct estimate *e, uint64_t now_s);

/* Return true, once, if the model has failed; the learner's report says why. */
bool model_failed(struct model *m);

#endif /* MGPUD_MODEL_H */
