// SPDX-License-Identifier: GPL-2.0-only
/* Test the trees that predict shares: their features, training, text and evaluation. */
#include <xgboost/c_api.h>

#include "allocations.h"
#include "feature.h"
#include "tap.h"
#include "trees.h"

static uint64_t seed = 7;

static double uniform(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / (double)(1ULL << 53);
}

/* ---- memory, and what XGBoost itself predicts ---- */

int __real_XGBoosterFree(BoosterHandle booster);
int __wrap_XGBoosterFree(BoosterHandle booster);

#define ROWS	600
#define COLUMNS	6

static const float *asked;
static float predicted[ROWS];

#define ITERATIONS "\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":false"

/* Before the booster is freed, have it predict the rows of @asked. */
int __wrap_XGBoosterFree(BoosterHandle booster)
{
	static const char how[] = "{\"type\":0,\"training\":false," ITERATIONS "}";
	const bst_ulong *shape;
	const float *result;
	DMatrixHandle m;
	bst_ulong dim;

	if (asked && !XGDMatrixCreateFromMat(asked, ROWS, COLUMNS, NAN, &m)) {
		if (!XGBoosterPredictFromDMatrix(booster, m, how, &shape, &dim, &result))
			memcpy(predicted, result, sizeof(predicted));
		XGDMatrixFree(m);
	}
	return __real_XGBoosterFree(booster);
}

/* ---- forests ---- */

static float x[ROWS * COLUMNS], y[ROWS], other[ROWS * COLUMNS];

/* Steps and products, with a tenth of the values missing. */
static void make_rows(void)
{
	for (size_t i = 0; i < ROWS; i++) {
		float *row = x + i * COLUMNS;

		for (int k = 0; k < COLUMNS; k++)
			row[k] = uniform() < 0.1 ? NAN : (float)uniform();
		y[i] = (isnan(row[0]) ? 0.3f : row[0] < 0.5f ? 0 : 1) +
			(isnan(row[1]) || isnan(row[2]) ? 0 : row[1] * row[2]);
		/* values that are thresholds, too */
		memcpy(other + i * COLUMNS, row, COLUMNS * sizeof(*row));
		other[i * COLUMNS + i % COLUMNS] = i % 3 ? (float)uniform() : NAN;
	}
}

static const struct boost_options few = {
	.seed = 1, .rounds = 40, .depth = 4, .rate = 0.2, .rows_part = 1, .columns_part = 1,
	.least_weight = 1,
};

static int train(struct forest *f, const struct boost_options *o, double *error)
{
	const struct boost_rows rows = { ROWS, COLUMNS, x, y };
	char why[256] = "";
	int ret = boost_train(f, &rows, NULL, o, error, why, sizeof(why));

	if (ret)
		tap_diag("%s", why);
	return ret;
}

/* The text that a forest has. */
static char *text_of(const struct forest *f, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (out) {
		forest_write(f, out);
		fclose(out);
	}
	return text;
}

static int read_text(struct forest *f, const char *text, size_t size, char *why, size_t len)
{
	struct lines l;
	int ret;

	lines_init(&l, text, size, why, len);
	ret = forest_read(f, &l, COLUMNS);
	return ret ? ret : lines_end(&l);
}

static void as_xgboost(void)
{
	struct forest f, again;
	double error, worst = 0;
	size_t size, lines = 0;
	char why[256], *text;

	make_rows();
	asked = other;
	TAP_NEED(!train(&f, &few, &error));
	asked = NULL;
	TAP_EQ(f.trees, few.rounds);
	text = text_of(&f, &size);
	TAP_NEED(text != NULL);
	TAP_CHECK(!read_text(&again, text, size, why, sizeof(why)));
	for (size_t i = 0; i < ROWS; i++) {
		float mine = forest_value(&again, other + i * COLUMNS);

		worst = fmax(worst, fabs((double)mine - (double)predicted[i]));
	}
	tap_diag("error %.4f, %zu nodes, at most %.2g from XGBoost", error, f.nodes, worst);
	TAP_NEAR(worst, 0, 2e-6);
	TAP_CHECK(error < 0.1);
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	TAP_EQ(lines, 1 + f.trees + f.nodes);
	free(text);
	forest_free(&f);
	forest_free(&again);
}

static void repeats(void)
{
	struct boost_options o = few;
	struct forest a, b;
	size_t sa, sb;
	char *ta, *tb;
	double error;

	make_rows();
	o.rows_part = 0.5;
	TAP_NEED(!train(&a, &o, &error) && !train(&b, &o, &error));
	ta = text_of(&a, &sa);
	tb = text_of(&b, &sb);
	TAP_CHECK(sa == sb && !memcmp(ta, tb, sa));
	forest_free(&b);
	free(tb);
	o.seed = 2;
	TAP_NEED(!train(&b, &o, &error));
	tb = text_of(&b, &sb);
	TAP_CHECK(sa != sb || memcmp(ta, tb, sa));
	free(ta);
	free(tb);
	forest_free(&a);
	forest_free(&b);
}

/* Noise that cannot be learned: what is validated on other rows stops early. */
static void stops(void)
{
	struct boost_options o = few;
	struct boost_rows rows = { ROWS / 2, COLUMNS, x, y };
	struct boost_rows check = { ROWS / 2, COLUMNS, x + ROWS / 2 * COLUMNS, y + ROWS / 2 };
	char why[256] = "";
	double error, square = 0;
	struct forest f;

	make_rows();
	for (size_t i = 0; i < ROWS; i++)
		y[i] = (float)uniform();
	o.rounds = 300;
	o.patience = 10;
	TAP_NEED(!boost_train(&f, &rows, &check, &o, &error, why, sizeof(why)));
	tap_diag("noise: %zu trees", f.trees);
	TAP_CHECK(f.trees >= 1 && f.trees < 30);
	/* no tree beyond the best round is in it */
	for (size_t i = 0; i < check.n; i++)
		square += pow((double)(forest_value(&f, check.x + i * COLUMNS) - check.y[i]), 2);
	TAP_NEAR(error, sqrt(square / (double)check.n), 1e-5);
	forest_free(&f);
	y[3] = NAN;
	TAP_CHECK(boost_train(&f, &rows, &check, &o, &error, why, sizeof(why)) && why[0]);
	y[3] = 0;
	x[3] = INFINITY;
	TAP_CHECK(boost_train(&f, &rows, &check, &o, &error, why, sizeof(why)));
	x[3] = 0;
	rows.n = 0;
	TAP_CHECK(boost_train(&f, &rows, &check, &o, &error, why, sizeof(why)));
	rows.n = 9;
	o.depth = 40;
	TAP_CHECK(boost_train(&f, &rows, &check, &o, &error, why, sizeof(why)));
}

#define TREE	"forest 6 0.5 1\ntree 3\n"

static void refuses_forests(void)
{
	static const char *const bad[] = {
		"", "forest 6 0.5 1\n", "forest 5 0.5 0\n", "forest 6 nan 0\n", "forest 6 1e99 0\n",
		"forest 6 0.5 -1\n", "forest 6 0.5 0.5\n", "forest 6 0.5 0 0\n",
		"forest 6 0.5 999999999\n", "forest 6 0.5 1\ntree 0\n", "forest 6 0.5 1\ntree 9e9\n",
		"forest 6 0.5 0\nleaf 1\n", "forest 6  0.5 0\n", "forest 6 0.5 0",
		/* a way that does not end */
		TREE "split 0 0.5 0 1 1\nleaf 1\nleaf 2\n",
		TREE "split 0 0.5 1 1 0\nleaf 1\nleaf 2\n",
		TREE "split 0 0.5 1 3 1\nleaf 1\nleaf 2\n",
		TREE "leaf 1\nsplit 0 0.5 2 2 2\nleaf 2\n",
		TREE "split 6 0.5 1 2 1\nleaf 1\nleaf 2\n",
		TREE "split -1 0.5 1 2 1\nleaf 1\nleaf 2\n",
		TREE "split 0 inf 1 2 1\nleaf 1\nleaf 2\n",
		TREE "split 0 0.5 1 2 3\nleaf 1\nleaf 2\n",
		TREE "split 0 0.5 1 2 1 1\nleaf 1\nleaf 2\n",
		TREE "split 0 0.5 1 2\nleaf 1\nleaf 2\n",
		TREE "split 0 0.5 1 2 1\nleaf 1\nleaf 1e39\n",
		TREE "split 0 0.5 1 2 1\nleaf 1\nlead 2\n",
	};
	static const char good[] = TREE "split 2 0.5 1 2 1\nleaf 1\nleaf 2\n";
	float row[COLUMNS] = { 0 };
	struct forest f;
	char why[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why[0] = '\0';
		if (!TAP_CHECK(read_text(&f, bad[i], strlen(bad[i]), why, sizeof(why)) == -EINVAL))
			tap_diag("%s", bad[i]);
		TAP_CHECK(!strncmp(why, "line ", 5));
		forest_free(&f);
	}
	for (size_t cut = 0; cut + 1 < sizeof(good); cut++) {
		TAP_CHECK(read_text(&f, good, cut, why, sizeof(why)) == -EINVAL);
		forest_free(&f);
	}
	TAP_NEED(!read_text(&f, good, strlen(good), why, sizeof(why)));
	row[2] = 0.5f;
	TAP_NEAR(forest_value(&f, row), 2.5, 1e-7);
	row[2] = 0.49f;
	TAP_NEAR(forest_value(&f, row), 1.5, 1e-7);
	row[2] = NAN;
	TAP_NEAR(forest_value(&f, row), 1.5, 1e-7);
	forest_free(&f);
}

/* ---- features ---- */

static void words(void)
{
	struct feature_words a, b;
	unsigned int n = 0;

	feature_words("encode 1920x1080, 29.97 fps", &a);
	TAP_EQ(a.numbers, 3);
	TAP_NEAR(a.magnitude, log(1921) + log(1081) + log(30.97), 1e-12);
	TAP_NEAR(a.largest, log(1921), 1e-12);
	for (int i = 0; i < FEATURES_WORDS; i++)
		n += a.bin[i];
	TAP_EQ(n, 3);		/* encode, x, fps */
	feature_words("ENCODE x-FPS", &b);
	TAP_MEM(a.bin, b.bin, sizeof(a.bin));
	TAP_EQ(b.numbers, 0);
	feature_words("", &b);
	TAP_NEAR(b.magnitude + b.largest, 0, 0);
	feature_words("7. .5 \xff\xc3\xa4", &b);
	TAP_EQ(b.numbers, 2);
	TAP_NEAR(b.magnitude, log(8) + log(6), 1e-12);
}

static struct learn_input question(size_t n)
{
	struct learn_input in = { .n = n, .now = { 0.8, 1 } };

	for (size_t j = 0; j < n; j++) {
		struct learn_task *t = &in.task[j];

		t->weight = 100 * (double)(j + 1);
		snprintf(t->text, sizeof(t->text), "job of size %zu", j);
		t->periods = 4;
		t->fps = j == 2 ? 0 : 30;
		for (int g = 0; g < LEARN_RESOURCES; g++) {
			t->cost[g] = 1e-3 * (double)(j + 1);
			t->use[g] = 0.1 * (double)j;
			t->smooth[g] = 0.05 * (double)(j + 1);
		}
	}
	for (int p = 0; p < LEARN_PAST; p++)
		in.idle[LEARN_CPU][p] = 0.01 * p;
	return in;
}

static void known_features(void)
{
	struct learn_input in = question(4);
	float f[LEARN_FEATURES];
	const float *cpu = f + FEATURE_OF(LEARN_CPU, 0);

	learn_features(&in, f);
	TAP_NEAR(f[FEATURE_WEIGHT], 100 / 250.0, 1e-6);
	TAP_NEAR(f[FEATURE_VMS], 4, 0);
	TAP_NEAR(f[FEATURE_PERIODS], 4, 0);
	TAP_NEAR(f[FEATURE_OTHERS_ACTIVE], 2 / 3.0, 1e-6);
	TAP_NEAR(f[FEATURE_MAGNITUDE], 0, 0);
	TAP_NEAR(f[FEATURE_OTHERS_LARGEST], log(4), 1e-6);
	TAP_NEAR(f[FEATURE_OTHERS_MAGNITUDE], (log(2) + log(3) + log(4)) / 3, 1e-6);
	TAP_NEAR(cpu[FEATURE_COST], log(1e-3), 1e-6);
	TAP_NEAR(cpu[FEATURE_SUM_COST], log(9e-3), 1e-6);
	TAP_NEAR(cpu[FEATURE_MAX_COST], log(4e-3), 1e-6);
	TAP_NEAR(cpu[FEATURE_MEAN_COST], log(24e-9) / 3, 1e-5);
	/* the third VM is not active: its last use is not known */
	TAP_NEAR(cpu[FEATURE_SUM_USE], 0.4, 1e-6);
	TAP_NEAR(cpu[FEATURE_MEAN_USE], 0.2, 1e-6);
	TAP_NEAR(cpu[FEATURE_MAX_USE], 0.3, 1e-6);
	TAP_NEAR(cpu[FEATURE_SUM_SMOOTH], 0.45, 1e-6);
	TAP_NEAR(cpu[FEATURE_PART], 0.1, 1e-6);
	TAP_NEAR(cpu[FEATURE_NOW], 0.8, 1e-6);
	TAP_NEAR(cpu[FEATURE_IDLE], 0.31, 1e-6);
	TAP_NEAR(cpu[FEATURE_PAST_MEAN], 0.155, 1e-6);
	TAP_NEAR(cpu[FEATURE_PAST_SLOPE], 0.01, 1e-6);
}

static void order_does_not_matter(void)
{
	struct learn_input in = question(4), turned = in;
	float f[LEARN_FEATURES], g[LEARN_FEATURES];
	int differ = 0;

	turned.task[1] = in.task[3];
	turned.task[3] = in.task[1];
	learn_features(&in, f);
	learn_features(&turned, g);
	for (int i = 0; i < LEARN_FEATURES; i++)
		differ += isnan(f[i]) ? !isnan(g[i]) : !(fabsf(f[i] - g[i]) <= 1e-6f);
	TAP_EQ(differ, 0);
}

static void unknown_features(void)
{
	struct learn_input in = question(1);
	float f[LEARN_FEATURES];
	const float *engine = f + FEATURE_OF(LEARN_ENGINE, 0);

	in.task[0] = (struct learn_task){ .weight = 5 };
	learn_features(&in, f);
	TAP_NEAR(f[FEATURE_WEIGHT], 1, 0);
	TAP_CHECK(isnan(f[FEATURE_OTHERS_ACTIVE]) && isnan(f[FEATURE_OTHERS_MAGNITUDE]));
	for (int i = FEATURE_COST; i <= FEATURE_MAX_SMOOTH; i++)
		TAP_CHECK(isnan(engine[i]));
	TAP_NEAR(engine[FEATURE_NOW], 1, 0);
}

/* ---- the model ---- */

#define SAMPLES	400

static struct learn_sample samples[SAMPLES];

/* VMs whose share is their part of size times weight; half of them were never measured. */
static void make_samples(void)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		struct learn_sample *s = &samples[i];
		double want[LEARN_CLIENTS], sum = 0;

		*s = (struct learn_sample){ .in = { .n = 2 + i % 3, .now = { 1, 0.5 } } };
		for (size_t j = 0; j < s->in.n; j++) {
			struct learn_task *t = &s->in.task[j];
			double size = 10 + 990 * uniform();

			t->weight = 1000;
			snprintf(t->text, sizeof(t->text), "size %.0f", size);
			want[j] = size;
			sum += want[j];
			t->periods = i % 2;
			t->cost[LEARN_CPU] = i % 2 ? size * 1e-5 : 0;
			t->cost[LEARN_ENGINE] = i % 2 ? size * 2e-5 : 0;
		}
		for (size_t j = 0; j < s->in.n; j++)
			for (int g = 0; g < LEARN_RESOURCES; g++)
				s->label[g][j] = (float)(want[j] / sum);
	}
}

static int make_payload(char **payload, size_t *size, double error[LEARN_RESOURCES])
{
	struct boost_options o = BOOST_DEFAULT;
	char why[256] = "";
	int ret;

	make_samples();
	o.rounds = 150;
	ret = trees_train(payload, size, samples, SAMPLES * 3 / 4, samples + SAMPLES * 3 / 4,
			  SAMPLES / 4, &o, error, why, sizeof(why));
	if (ret)
		tap_diag("%s", why);
	return ret;
}

static void learns_shares(void)
{
	double error[LEARN_RESOURCES], share[LEARN_RESOURCES], off = 0, even = 0;
	size_t size, n = SAMPLES / 4;
	char *payload, why[256];
	void *data;

	TAP_NEED(!make_payload(&payload, &size, error));
	TAP_EQ(strlen(payload), size);
	TAP_NEED(!learn_trees.load(&data, payload, size, why, sizeof(why)));
	allocations = 0;
	for (size_t i = SAMPLES - n; i < SAMPLES; i++) {
		const struct learn_input *in = &samples[i].in;

		learn_trees.share(data, in, share);
		for (int g = 0; g < LEARN_RESOURCES; g++) {
			double want = (double)samples[i].label[g][0];

			TAP_CHECK(share[g] >= 0 && share[g] <= in->now[g]);
			off += fabs(share[g] / in->now[g] - want);
			even += fabs(1 / (double)in->n - want);
		}
	}
	TAP_EQ(allocations, 0);
	tap_diag("rms error %.4f, %.4f; mean error %.4f, of equal shares %.4f", error[0],
		 error[1], off / (double)(n * 2), even / (double)(n * 2));
	TAP_CHECK(off < 0.4 * even);
	TAP_CHECK(error[0] > 0 && error[0] < 0.12);
	learn_trees.free(data);
	learn_trees.free(NULL);
	free(payload);
}

static void refuses_payloads(void)
{
	double error[LEARN_RESOURCES], share[LEARN_RESOURCES];
	size_t size, accepted = 0;
	char *payload, *bad, why[256];
	struct learn_input in = question(3);
	void *data;

	TAP_NEED(!make_payload(&payload, &size, error));
	bad = malloc(size + 2);
	for (size_t i = 0; i < 40; i++) {
		memcpy(bad, payload, size);
		TAP_CHECK(learn_trees.load(&data, bad, size * i / 40, why, sizeof(why)) &&
			  !data && why[0]);
	}
	strcpy(bad, payload);
	strcat(bad, "\n");
	TAP_CHECK(learn_trees.load(&data, bad, size + 1, why, sizeof(why)));
	memcpy(bad, "trees 2", 7);
	TAP_CHECK(learn_trees.load(&data, bad, size, why, sizeof(why)));
	/* what is taken nevertheless must be harmless */
	for (int i = 0; i < 300; i++) {
		memcpy(bad, payload, size);
		bad[(size_t)(uniform() * (double)size)] ^= (char)(1 << i % 8);
		if (learn_trees.load(&data, bad, size, why, sizeof(why)))
			continue;
		accepted++;
		learn_trees.share(data, &in, share);
		for (int g = 0; g < LEARN_RESOURCES; g++)
			TAP_CHECK(share[g] >= 0 && share[g] <= in.now[g]);
		learn_trees.free(data);
	}
	tap_diag("%zu of 300 with a changed bit could be read", accepted);
	free(bad);
	free(payload);
}

int main(void)
{
	tap_run(as_xgboost, "a forest predicts what XGBoost predicts");
	tap_run(repeats, "the same rows and seed give the same forest");
	tap_run(stops, "training stops when other rows gain nothing, and refuses bad rows");
	tap_run(refuses_forests, "forests that are damaged or endless are refused");
	tap_run(words, "words and numbers of a description are counted apart");
	tap_run(known_features, "features are as documented");
	tap_run(order_does_not_matter, "the order of other VMs does not matter");
	tap_run(unknown_features, "features that are not known are missing");
	tap_run(learns_shares, "shares of unseen questions are predicted, without allocation");
	tap_run(refuses_payloads, "damaged payloads are refused, or harmless");
	return tap_done();
}
