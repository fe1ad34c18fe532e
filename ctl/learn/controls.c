// SPDX-License-Identifier: GPL-2.0-only
/* Models that are not learned: what a learned one must be better than. */
#include "learn.h"

/* The part of the first VM by weight. */
static double part_by_weight(const struct learn_input *in)
{
	double sum = 0;

	for (size_t j = 0; j < in->n; j++)
		sum += in->task[j].weight;
	return sum > 0 ? in->task[0].weight / sum : 0;
}

static double clamp(double x, double most)
{
	return fmin(fmax(x, 0), most);
}

static void static_share(void *data, const struct learn_input *in,
			 double share[LEARN_RESOURCES])
{
	(void)data;
	for (int g = 0; g < LEARN_RESOURCES; g++)
		share[g] = in->now[g] * part_by_weight(in);
}

/* The use of a resource by a VM when it was last active, or NAN. */
static double used(const struct learn_task *t, int g)
{
	if (t->fps > 0)
		return t->use[g];
	return t->periods > 0 ? t->smooth[g] : NAN;
}

/* A VM that is not known counts as the mean of those that are. */
static void proportional_share(void *data, const struct learn_input *in,
			       double share[LEARN_RESOURCES])
{
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		double sum = 0, mine = used(&in->task[0], g), mean;
		size_t known = 0;

		for (size_t j = 0; j < in->n; j++) {
			double u = used(&in->task[j], g);

			if (isnan(u))
				continue;
			sum += u;
			known++;
		}
		if (!(sum > 0)) {
			static_share(data, in, share);
			return;
		}
		mean = sum / (double)known;
		share[g] = in->now[g] * (isnan(mine) ? mean : mine) /
			(mean * (double)in->n);
	}
}

static void persistence_share(void *data, const struct learn_input *in,
			      double share[LEARN_RESOURCES])
{
	static_share(data, in, share);
	for (int g = 0; g < LEARN_RESOURCES; g++)
		if (in->task[0].fps > 0)
			share[g] = clamp(in->task[0].use[g], in->now[g]);
}

static void smoothing_share(void *data, const struct learn_input *in,
			    double share[LEARN_RESOURCES])
{
	static_share(data, in, share);
	for (int g = 0; g < LEARN_RESOURCES; g++)
		if (in->task[0].periods > 0)
			share[g] = clamp(in->task[0].smooth[g], in->now[g]);
}

const struct learn_model_ops learn_static = {
	.name = "static",
	.summary = "the VM's part by weight, whatever it does",
	.share = static_share,
};

const struct learn_model_ops learn_proportional = {
	.name = "proportional",
	.summary = "in proportion to what each VM used last",
	.share = proportional_share,
};

const struct learn_model_ops learn_persistence = {
	.name = "persistence",
	.summary = "what the VM used in the last period",
	.share = persistence_share,
};

const struct learn_model_ops learn_smoothing = {
	.name = "smoothing",
	.summary = "what the VM used, averaged over the periods in which it was active",
	.share = smoothing_share,
};
