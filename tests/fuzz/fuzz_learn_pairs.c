// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz what mgpu-learn reads of pairs.  The first byte of the input selects: c a CSV file of
 * measured pairs, w a payload of weights.  A table that is taken is in its ranges, and
 * weights that are taken predict speeds in theirs.
 */
#include <errno.h>
#include <math.h>

#include "fuzz.h"
#include "pairs_csv.h"
#include "pairs.h"

static void check_job(const struct pairs_job *j)
{
	FUZZ_ASSERT(j->model[0] && strlen(j->model) < PAIRS_NAME && !strchr(j->model, ' '));
	FUZZ_ASSERT(j->dataset[0] && strlen(j->dataset) < PAIRS_NAME);
	FUZZ_ASSERT(j->gpus >= 1 && j->gpus <= PAIRS_NUMBER_MAX);
	FUZZ_ASSERT(j->batch >= 1 && j->batch <= PAIRS_NUMBER_MAX);
	FUZZ_ASSERT(isnan(j->gpu_use) || (j->gpu_use >= 0 && j->gpu_use <= 1));
	FUZZ_ASSERT(isnan(j->memory_use) || (j->memory_use >= 0 && j->memory_use <= 1));
}

static void fuzz_csv(const uint8_t *data, size_t size)
{
	FILE *f = size ? fmemopen((void *)data, size, "r") : fopen("/dev/null", "r");
	struct pairs_table t;
	char why[256];
	int ret;

	FUZZ_ASSERT(f);
	ret = pairs_read(&t, f, "file", why, sizeof(why));
	fclose(f);
	FUZZ_ASSERT(!ret == !why[0]);
	if (ret)
		FUZZ_ASSERT(ret == -EINVAL && !strncmp(why, "file:", 5));
	else
		FUZZ_ASSERT(t.rows && t.jobs && t.rows <= PAIRS_ROWS_MAX);
	for (size_t i = 0; i < t.jobs; i++)
		check_job(&t.job[i]);
	for (size_t i = 0; i < t.rows; i++) {
		for (int k = 0; k < 2; k++) {
			FUZZ_ASSERT(t.row[i].job[k] < t.jobs);
			FUZZ_ASSERT(t.row[i].speed[k] >= PAIRS_SPEED_MIN &&
				    t.row[i].speed[k] <= PAIRS_SPEED_MAX);
		}
	}
	pairs_table_free(&t);
}

static void ask(const struct learn_pairs *p, const struct pairs_job *a, const struct pairs_job *b)
{
	for (enum pairs_predictor k = 0; k < PAIRS_PREDICTORS; k++) {
		double bound = learn_pairs_bound(p, a);
		struct pairs_guess g;
		int ret = learn_pairs_predict(p, a, b, k, &g);

		FUZZ_ASSERT(isnan(bound) || (bound >= 0 && bound <= 1));
		FUZZ_ASSERT(!ret || (ret == -ENODATA && p->use));
		if (!ret)
			FUZZ_ASSERT(g.speed >= PAIRS_SPEED_MIN && g.speed <= PAIRS_SPEED_MAX &&
				    g.low <= g.speed && g.speed <= g.high);
	}
}

static void fuzz_weights(const uint8_t *data, size_t size)
{
	static const struct pairs_job some = {
		.model = "ResNet18", .dataset = "CIFAR-10", .gpus = 1, .batch = 64, .amp = true,
		.gpu_use = 0.5, .memory_use = 0.3,
	};
	char why[256] = "", *payload = malloc(size + 1);
	struct pairs_job other = some;
	struct learn_pairs *p;
	int ret;

	FUZZ_ASSERT(payload);
	memcpy(payload, data, size);
	payload[size] = '\0';
	ret = learn_pairs_load(&p, payload, size, why, sizeof(why));
	FUZZ_ASSERT(!ret == !why[0] && !ret == !!p);
	if (ret) {
		FUZZ_ASSERT(ret == -EINVAL);
	} else {
		other.gpu_use = NAN;
		ask(p, &some, &p->job[0]);
		ask(p, &p->job[p->jobs - 1], &other);
		ask(p, &some, &some);
	}
	learn_pairs_free(p);
	free(payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == 'c')
		fuzz_csv(data + 1, size - 1);
	else if (size && data[0] == 'w')
		fuzz_weights(data + 1, size - 1);
	return 0;
}

/* A model with a job and a word. */
static void seed_weights(const char *dir)
{
	struct pairs_job job = { .model = "ResNet18", .dataset = "X", .gpus = 1, .batch = 32,
				 .gpu_use = 0.5, .memory_use = NAN };
	struct pairs_seen seen = { 0, 0, -0.1 };
	double additive[3] = { -0.1, 0.2, 1e-3 }, ridge[256] = { 0.5 };
	struct learn_pairs p = {
		.words = 1, .word = { "res" }, .jobs = 1, .job = &job, .constant = -0.2,
		.additive = additive, .ridge = ridge, .reach = 0.4, .seen = &seen, .nr_seen = 1,
		.slow = { { 0.1, 0.2 }, { 0.3, 0.4 } }, .weight = { { 4, 4 }, { 4, 0 } },
	};
	char *text;
	size_t size;
	FILE *f;

	p.forest.features = (unsigned int)pairs_tree_columns(&p);
	for (int use = 0; use < 2; use++) {
		f = open_memstream(&text, &size);
		FUZZ_ASSERT(f && pairs_ridge_columns(&p) < 256);
		putc('w', f);
		p.use = use;
		job.memory_use = use ? 0.25 : NAN;
		learn_pairs_write(&p, f);
		fclose(f);
		fuzz_seed(dir, use ? "use" : "plain", text, size);
		free(text);
	}
}

#define HEAD	"model1,dataset1,batchsize1,speed1,model2,dataset2,batchsize2,speed2"

static void seeds(const char *dir)
{
	static const char *const inputs[] = {
		"c" HEAD "\nA,B,1,1,C,D,1,0.5\n",
		"c" HEAD ",gpu_num1,amp2,gpu_util,gmem_util,gpu_alone1,gmem_alone1\r\n"
		"\"A,\"\"a\"\"\",B b,32,1.1,C,D,64,.5,2,1,50,30.5,20,1e1\r\n",
		"c" HEAD "\nA,B,1,1,C,\"D",
		"wpairs 1 0 0 1 0\njob a b 1 1 0 ? ?\n",
	};
	char name[16];

	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		fuzz_seed(dir, name, inputs[i], strlen(inputs[i]));
	}
	seed_weights(dir);
}

FUZZ_SEEDS(seeds)
