// SPDX-License-Identifier: GPL-2.0-only
/* Measured speeds of pairs of jobs. */
#include <errno.h>
#include <string.h>

#include "config/fail.h"
#include "config/weights.h"
#include "contexts/pair_speeds.h"
#include "pairs.h"
#include "preempt.h"

#define MODEL	"pairs"

static void use_cold(struct preempt_norm *norm)
{
	struct preempt_norm cold;

	preempt_norm_cold(&cold);
	for (int a = 0; a < PREEMPT_CLASSES; a++)
		for (int b = 0; b < PREEMPT_CLASSES; b++)
			preempt_norm_prior(norm, (enum preempt_class)a, (enum preempt_class)b,
					   cold.slow[a][b], cold.prior[a][b]);
}

/* Returns false with a sentence in @why. */
static bool use_file(struct preempt_norm *norm, const char *path, char *why, size_t size)
{
	struct learn_pairs *p = NULL;
	struct learn_file file;
	char wrong[256] = "";

	if (!weights_read(&file, path, why, size))
		return false;
	if (strcmp(file.model, MODEL))
		fail(why, size, 0, "%s: the weights are of the model \"%s\"; 'mgpu-learn pairs train' writes some of \"%s\"",
		     path, file.model, MODEL);
	else if (learn_pairs_load(&p, file.payload, file.size, wrong, sizeof(wrong)))
		fail(why, size, 0, "%s: %s", path, wrong);
	else
		learn_pairs_prior(p, norm);
	learn_file_free(&file);
	if (!p)
		return false;
	learn_pairs_free(p);
	return true;
}

int pairs_use(struct preempt_norm *norm, const char *path, char *why, size_t size)
{
	use_cold(norm);
	if (!*path || use_file(norm, path, why, size))
		return 0;
	weights_make_plain(why);
	return -EINVAL;
}
