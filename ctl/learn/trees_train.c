// SPDX-License-Identifier: GPL-2.0-only
/* Training of trees. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature.h"
#include "trees.h"

/* Features of samples, for free(); NULL without memory. */
static float *rows_of(const struct learn_sample *samples, size_t n)
{
	float *x = calloc(n + 1, LEARN_FEATURES * sizeof(*x));

	for (size_t i = 0; x && i < n; i++)
		learn_features(&samples[i].in, x + i * LEARN_FEATURES);
	return x;
}

/* Logarithms of shares over the part by weight, which is what is due to VMs that want much. */
static void labels_of(const struct learn_sample *samples, size_t n, int g, float *y)
{
	double share[LEARN_RESOURCES];

	for (size_t i = 0; i < n; i++) {
		float part;

		learn_static.share(NULL, &samples[i].in, share);
		part = (float)(share[g] / samples[i].in.now[g]);
		y[i] = logf(fmaxf(samples[i].label[g][0], TREES_LEAST) / part);
	}
}

static int write_payload(char **payload, size_t *size, const struct forest *forest)
{
	FILE *f = open_memstream(payload, size);
	int ret;

	if (!f)
		return -ENOMEM;
	fprintf(f, "trees %d\n", TREES_VERSION);
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		fprintf(f, "%s\n", trees_resource[g]);
		forest_write(&forest[g], f);
	}
	ret = ferror(f) ? -ENOMEM : 0;
	if (fclose(f))
		ret = -ENOMEM;
	if (ret) {
		free(*payload);
		*payload = NULL;
	}
	return ret;
}

int trees_train(char **payload, size_t *size, const struct learn_sample *samples, size_t n,
		const struct learn_sample *check, size_t nr_check,
		const struct boost_options *o, double error[LEARN_RESOURCES],
		char *why, size_t len)
{
	struct forest forest[LEARN_RESOURCES] = { 0 };
	float *x = rows_of(samples, n), *cx = rows_of(check, nr_check);
	float *y = calloc(n + 1, sizeof(*y)), *cy = calloc(nr_check + 1, sizeof(*cy));
	const struct boost_rows rows = { n, LEARN_FEATURES, x, y };
	const struct boost_rows checks = { nr_check, LEARN_FEATURES, cx, cy };
	int ret = x && cx && y && cy ? 0 : -ENOMEM;

	why[0] = '\0';
	for (int g = 0; !ret && g < LEARN_RESOURCES; g++) {
		labels_of(samples, n, g, y);
		labels_of(check, nr_check, g, cy);
		ret = boost_train(&forest[g], &rows, &checks, o, &error[g], why, len);
	}
	if (!ret)
		ret = write_payload(payload, size, forest);
	if (ret == -ENOMEM && !why[0])
		snprintf(why, len, "%s", strerror(ENOMEM));
	for (int g = 0; g < LEARN_RESOURCES; g++)
		forest_free(&forest[g]);
	free(x);
	free(cx);
	free(y);
	free(cy);
	return ret;
}
