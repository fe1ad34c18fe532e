// SPDX-License-Identifier: GPL-2.0-only
/* Test what is learned of jobs that share a GPU, on pairs whose truth is known. */
#include "allocations.h"
#include "pairs_csv.h"
#include "pairs_fit.h"
#include "preempt.h"
#include "tap.h"

static uint64_t seed = 11;

static double uniform(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / (double)(1ULL << 53);
}

static double normal(void)
{
	double u = uniform(), v = uniform();

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* ---- reading ---- */

static int read_text(struct pairs_table *t, const char *text, char why[256])
{
	FILE *f = text[0] ? fmemopen((void *)text, strlen(text), "r") : fopen("/dev/null", "r");
	int ret;

	if (!f)
		return -ENOMEM;
	ret = pairs_read(t, f, "file", why, 256);
	fclose(f);
	return ret;
}

#define HEAD	"model1,dataset1,batchsize1,speed1,model2,dataset2,batchsize2,speed2"

static void reads(void)
{
	struct pairs_table t;
	char why[256];

	TAP_NEED(!read_text(&t, ",amp2,gpu_util,gmem_util," HEAD ",gpu_num1,gpu_alone2,gmem_alone2\r\n"
			    "7,1,50,25,\"Res,\"\"Net\",A B,32,0.9,VGG,C,64,1.1,2,40,10\r\n"
			    "\r\n"
			    "8,0,,,VGG,C,64,\"1\",VGG,C,64,0.5,1,,\r\n", why));
	TAP_EQ(why[0], 0);
	TAP_EQ(t.rows, 2);
	/* VGG with and without mixed precision, and the other one */
	TAP_EQ(t.jobs, 3);
	TAP_STR(t.job[0].model, "Res,\"Net");
	TAP_STR(t.job[0].dataset, "A_B");
	TAP_NEAR(t.job[0].gpus, 2, 0);
	TAP_CHECK(isnan(t.job[0].gpu_use));
	TAP_CHECK(t.job[1].amp && !t.job[2].amp);
	TAP_NEAR(t.job[1].gpu_use, 0.4, 1e-12);
	TAP_NEAR(t.job[1].memory_use, 0.1, 1e-12);
	TAP_NEAR(t.row[0].speed[1], 1.1, 1e-12);
	TAP_NEAR(t.row[0].memory_use, 0.25, 1e-12);
	TAP_CHECK(isnan(t.row[1].gpu_use));
	TAP_EQ(t.row[1].job[0], 2);
	TAP_EQ(t.row[1].job[1], 2);
	pairs_table_free(&t);
}

static void refuses_files(void)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "file:1: the file is empty" },
		{ HEAD "\n", "no pairs" },
		{ "model1\nA\n", "file:1: no column 'dataset1'" },
		{ HEAD ",speed1\n", "duplicate column 'speed1'" },
		{ HEAD "\nA,B,1,1,C,D,1\n", "file:2: 7 fields; the first line names 8" },
		{ HEAD "\nA,B,1,1,C,D,1,1\nA,B,1,fast,C,D,1,1\n", "file:3: speed1 is 'fast'" },
		{ HEAD "\nA,B,1,0,C,D,1,1\n", "speed1 is '0'" },
		{ HEAD "\nA,B,1,nan,C,D,1,1\n", "speed1 is 'nan'" },
		{ HEAD "\nA,B,1,,C,D,1,1\n", "speed1 is ''" },
		{ HEAD "\nA,B,0,1,C,D,1,1\n", "batchsize1 is '0'" },
		{ HEAD "\n,B,1,1,C,D,1,1\n", "model1 is ''" },
		{ HEAD "\nA,B,1,1,C,\"D,1,1\n", "a quote that opens" },
		{ HEAD "\nA,B,1,1,C,\"D\"x,1,1\n", "something follows a closing quote" },
	};
	struct pairs_table t;
	char why[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		TAP_CHECK(read_text(&t, bad[i].text, why) == -EINVAL);
		if (!TAP_CHECK(strstr(why, bad[i].why)))
			tap_diag("%s", why);
		pairs_table_free(&t);
	}
}

/* ---- a truth ---- */

#define MODELS	6
#define SIZES	3
#define JOBS	(MODELS * SIZES)

static double sensitivity[JOBS], pressure[JOBS], use[JOBS], bound[JOBS];

/*
 * Logarithms of speeds are sums of what both jobs contribute: a part by model, which nothing but
 * measuring tells, and a part by batch.
 */
static void make_table(struct pairs_table *t, double noise)
{
	static const char *const name[MODELS] = {
		"AlphaNet", "BetaNet", "Gamma", "DeltaLSTM", "Epsilon", "Zeta",
	};

	*t = (struct pairs_table){ .jobs = JOBS };
	t->job = calloc(JOBS, sizeof(*t->job));
	t->row = calloc(JOBS * (JOBS + 1) / 2, sizeof(*t->row));
	for (size_t i = 0; i < JOBS; i++) {
		struct pairs_job *j = &t->job[i];
		size_t model = i / SIZES, size = i % SIZES;

		strcpy(j->model, name[model]);
		strcpy(j->dataset, model % 2 ? "Ones" : "Others");
		j->gpus = 1;
		j->batch = 32 << size;
		j->gpu_use = NAN;
		j->memory_use = NAN;
		use[i] = 0.1 + 0.05 * (double)model + 0.02 * (double)size;
		bound[i] = model < MODELS / 2 ? 0.8 : 0.2;
		sensitivity[i] = -0.03 * (double)(size + 1) - 0.05 * (double)(model * 5 % MODELS);
		pressure[i] = -0.02 * (double)(size + 1) - 0.04 * (double)(model * 7 % MODELS);
	}
	for (size_t i = 0; i < JOBS; i++) {
		for (size_t k = i; k < JOBS; k++) {
			struct pairs_row *r = &t->row[t->rows++];

			r->job[0] = i;
			r->job[1] = k;
			r->speed[0] = exp(sensitivity[i] + pressure[k] + noise * normal());
			r->speed[1] = exp(sensitivity[k] + pressure[i] + noise * normal());
			r->gpu_use = use[i] + use[k];
			r->memory_use = use[i] * bound[i] + use[k] * bound[k];
		}
	}
}

static struct pairs_options quick(void)
{
	struct pairs_options o = PAIRS_DEFAULT;

	o.folds = 3;
	o.boost.rounds = 30;
	return o;
}

static struct learn_pairs *trained(struct pairs_table *t, bool with_use)
{
	struct pairs_options o = quick();
	struct learn_pairs *p;
	char why[256] = "";

	o.use = with_use;
	if (pairs_estimate_use(t) || pairs_train(&p, t, &o, why, sizeof(why))) {
		tap_diag("%s", why);
		return NULL;
	}
	return p;
}

static void show(const struct pairs_score score[PAIRS_PREDICTORS])
{
	for (int i = 0; i < PAIRS_PREDICTORS; i++)
		tap_diag("%-8s error %.4f median, %.4f p90, rank %.3f, covered %.3f, width %.3f",
			 pairs_predictor_name[i], score[i].median_err, score[i].p90_err,
			 score[i].spearman, score[i].coverage_90, score[i].width);
}

static void recovers(void)
{
	struct pairs_score score[PAIRS_PREDICTORS];
	struct pairs_options o = quick();
	struct pairs_table t;
	char why[256] = "";

	make_table(&t, 0.01);
	TAP_NEED(!pairs_evaluate(score, &t, &o, false, why, sizeof(why)));
	show(score);
	/* half of the noise is within 0.0067 */
	TAP_CHECK(score[PAIRS_ADDITIVE].median_err < 0.009);
	TAP_CHECK(score[PAIRS_ADDITIVE].spearman > 0.98);
	TAP_CHECK(score[PAIRS_BLEND].median_err < 0.012);
	TAP_CHECK(score[PAIRS_CONSTANT].median_err > 0.05);
	TAP_CHECK(isnan(score[PAIRS_CONSTANT].spearman));
	/* what is chosen for new models errs less when it is trained on more pairs */
	for (int i = 0; i < PAIRS_PREDICTORS; i++)
		TAP_CHECK(score[i].coverage_90 > 0.84);
	TAP_CHECK(score[PAIRS_BLEND].coverage_90 < 0.96);
	TAP_EQ(score[PAIRS_BLEND].n, 2 * t.rows);
	pairs_table_free(&t);
}

static void wider(void)
{
	struct pairs_job new = { .model = "Unheard", .dataset = "Of", .gpus = 1, .batch = 64,
				 .gpu_use = NAN, .memory_use = NAN };
	struct pairs_guess seen, other, job, both;
	struct pairs_score score[PAIRS_PREDICTORS];
	struct pairs_options o = quick();
	struct learn_pairs *p;
	struct pairs_table t;
	char why[256] = "";

	make_table(&t, 0.01);
	p = trained(&t, false);
	TAP_NEED(p != NULL);
	allocations = 0;
	TAP_CHECK(!learn_pairs_predict(p, &t.job[0], &t.job[5], PAIRS_BLEND, &seen));
	TAP_CHECK(!learn_pairs_predict(p, &t.job[0], &new, PAIRS_BLEND, &other));
	TAP_CHECK(!learn_pairs_predict(p, &new, &t.job[0], PAIRS_BLEND, &job));
	TAP_CHECK(!learn_pairs_predict(p, &new, &new, PAIRS_BLEND, &both));
	TAP_EQ(allocations, 0);
	tap_diag("intervals: %.3f seen, %.3f other new, %.3f job new, %.3f both",
		 seen.high - seen.low, other.high - other.low, job.high - job.low,
		 both.high - both.low);
	TAP_EQ(seen.novelty, PAIRS_SEEN);
	TAP_EQ(other.novelty, PAIRS_NEW_OTHER);
	TAP_EQ(job.novelty, PAIRS_NEW_JOB);
	TAP_EQ(both.novelty, PAIRS_NEW_BOTH);
	TAP_NEAR(seen.speed, exp(sensitivity[0] + pressure[5]), 0.02);
	TAP_CHECK(other.high - other.low > 2 * (seen.high - seen.low));
	TAP_CHECK(job.high - job.low > 2 * (seen.high - seen.low));
	TAP_CHECK(both.high - both.low > 2 * (seen.high - seen.low));
	TAP_CHECK(seen.low < seen.speed && seen.speed < seen.high);
	learn_pairs_free(p);
	TAP_NEED(!pairs_evaluate(score, &t, &o, true, why, sizeof(why)));
	show(score);
	/* six models only: each is an outlier of the others */
	TAP_CHECK(score[PAIRS_BLEND].coverage_90 > 0.75);
	TAP_CHECK(score[PAIRS_BLEND].median_err > 0.02);
	/* 2 * SIZES speeds with each job of another model, and pairs within a model */
	TAP_EQ(score[PAIRS_BLEND].n,
	       MODELS * (2 * SIZES * (JOBS - SIZES) + SIZES * (SIZES + 1)));
	pairs_table_free(&t);
}

static void utilisation(void)
{
	struct pairs_guess g;
	struct pairs_job new;
	struct learn_pairs *p;
	struct pairs_table t;

	make_table(&t, 0.01);
	t.job[3].gpu_use = 0.9;
	p = trained(&t, true);
	TAP_NEED(p != NULL);
	TAP_NEAR(t.job[3].gpu_use, 0.9, 0);	/* what was measured stays */
	for (size_t i = 4; i < JOBS; i++) {
		TAP_NEAR(t.job[i].gpu_use, use[i], 2e-3);
		TAP_NEAR(t.job[i].memory_use, use[i] * bound[i], 2e-3);
		TAP_NEAR(learn_pairs_bound(p, &t.job[i]), bound[i], 0.02);
	}
	/* a job that was seen needs no utilisation, another one does */
	new = t.job[4];
	new.gpu_use = NAN;
	new.memory_use = NAN;
	TAP_CHECK(!learn_pairs_predict(p, &new, &t.job[0], PAIRS_BLEND, &g));
	new.batch = 50;
	TAP_EQ(learn_pairs_predict(p, &new, &t.job[0], PAIRS_BLEND, &g), -ENODATA);
	TAP_EQ(learn_pairs_predict(p, &t.job[0], &new, PAIRS_BLEND, &g), -ENODATA);
	new.gpu_use = 0.2;
	new.memory_use = 0.16;
	TAP_CHECK(!learn_pairs_predict(p, &new, &t.job[0], PAIRS_BLEND, &g));
	TAP_NEAR(learn_pairs_bound(p, &new), 0.8, 1e-9);
	/* without utilisation its class is that of similar jobs */
	new.gpu_use = NAN;
	TAP_CHECK(learn_pairs_bound(p, &new) > 0.6);
	t.row[7].gpu_use = NAN;
	TAP_EQ(pairs_estimate_use(&t), -ENODATA);
	learn_pairs_free(p);
	pairs_table_free(&t);
}

/* The effect of a class on another class is learned, with a weight. */
static void prior(void)
{
	static const double one[2][3] = { { 1, 0, 0 }, { 0, 1, 0 } };
	double slow[2][2] = { 0 }, n[2][2] = { 0 };
	struct preempt_norm norm, cold;
	struct learn_pairs *p;
	struct pairs_table t;

	make_table(&t, 0.01);
	p = trained(&t, false);
	TAP_NEED(p != NULL);
	for (size_t i = 0; i < 2 * t.rows; i++) {
		const struct pairs_row *r = &t.row[i / 2];
		int a = bound[r->job[i % 2]] > 0.5, b = bound[r->job[1 - i % 2]] > 0.5;

		slow[a][b] += 1 / r->speed[i % 2] - 1;
		n[a][b]++;
	}
	preempt_norm_cold(&norm);
	cold = norm;
	preempt_norm_observe(&norm, PREEMPT_COMPUTE, one[1], 0.9);
	cold.slow[0][1] = norm.slow[0][1];
	learn_pairs_prior(p, &norm);
	TAP_CHECK(!preempt_norm_check(&norm));
	for (int a = 0; a < 2; a++) {
		for (int b = 0; b < 2; b++) {
			tap_diag("slow %.3f, weight %.1f", p->slow[a][b], p->weight[a][b]);
			TAP_NEAR(p->slow[a][b], slow[a][b] / n[a][b], 1e-6);
			TAP_CHECK(p->weight[a][b] >= 1 && p->weight[a][b] <= 64);
			TAP_NEAR(norm.prior[a][b], p->weight[a][b], 0);
			TAP_NEAR(norm.slow[a][b], !a && b ? cold.slow[a][b] : p->slow[a][b], 0);
		}
	}
	preempt_norm_cold(&norm);
	preempt_norm_cold(&cold);
	memset(p->weight, 0, sizeof(p->weight));
	learn_pairs_prior(p, &norm);
	TAP_MEM(&norm, &cold, sizeof(norm));
	learn_pairs_free(p);
	pairs_table_free(&t);
}

/* ---- payload ---- */

static char *payload_of(const struct learn_pairs *p, size_t *size)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, size);

	if (f) {
		learn_pairs_write(p, f);
		fclose(f);
	}
	return text;
}

static void round_trip(void)
{
	struct learn_pairs *p, *again;
	struct pairs_table t;
	char *text, *copy, why[256];
	size_t size, taken = 0;

	make_table(&t, 0.05);
	/* names may differ in any character */
	for (size_t i = 0; i < SIZES; i++) {
		TAP_CHECK(pairs_name(t.job[i].model, "Net (\303\240)"));
		TAP_CHECK(pairs_name(t.job[2 * SIZES + i].model, "Net (\303\241)"));
	}
	p = trained(&t, true);
	TAP_NEED(p != NULL);
	text = payload_of(p, &size);
	TAP_NEED(!learn_pairs_load(&again, text, size, why, sizeof(why)));
	TAP_CHECK(pairs_find(again, &t.job[0]) < again->jobs);
	TAP_STR(again->job[pairs_find(again, &t.job[0])].model, "Net_(\303\240)");
	for (size_t i = 0; i < JOBS; i++) {
		for (enum pairs_predictor k = 0; k < PAIRS_PREDICTORS; k++) {
			struct pairs_guess a, b;

			TAP_CHECK(!learn_pairs_predict(p, &t.job[i], &t.job[3], k, &a) &&
				  !learn_pairs_predict(again, &t.job[i], &t.job[3], k, &b));
			TAP_NEAR(a.speed, b.speed, 1e-6);
			TAP_NEAR(a.low, b.low, 1e-6);
		}
	}
	learn_pairs_free(again);
	copy = malloc(size);
	for (size_t i = 0; i < 40; i++)
		TAP_CHECK(learn_pairs_load(&again, text, size * i / 40, why, sizeof(why)) &&
			  !again && why[0]);
	for (int i = 0; i < 200; i++) {
		struct pairs_guess g;

		memcpy(copy, text, size);
		copy[(size_t)(uniform() * (double)size)] ^= (char)(1 << i % 8);
		if (learn_pairs_load(&again, copy, size, why, sizeof(why)))
			continue;
		taken++;
		if (!learn_pairs_predict(again, &t.job[2], &t.job[9], PAIRS_BLEND, &g))
			TAP_CHECK(g.speed >= PAIRS_SPEED_MIN && g.speed <= PAIRS_SPEED_MAX &&
				  g.low <= g.speed && g.speed <= g.high);
		learn_pairs_free(again);
	}
	tap_diag("%zu of 200 with a changed bit could be read", taken);
	free(copy);
	free(text);
	learn_pairs_free(p);
	pairs_table_free(&t);
}

static void too_little(void)
{
	struct pairs_options o = quick();
	struct learn_pairs *p;
	struct pairs_table t;
	char why[256] = "";

	make_table(&t, 0.01);
	t.rows = 4;
	TAP_CHECK(pairs_train(&p, &t, &o, why, sizeof(why)) == -EINVAL && !p);
	TAP_CHECK(strstr(why, "too few"));
	t.rows = 50;
	o.use = true;
	TAP_CHECK(pairs_train(&p, &t, &o, why, sizeof(why)) == -EINVAL);
	TAP_CHECK(strstr(why, "no utilisation"));
	pairs_table_free(&t);
}

#define SECONDS	300	/* of a test that trains */

int main(void)
{
	tap_run(reads, "pairs are read, quoted fields and CRLF included");
	tap_run(refuses_files, "files that are damaged are refused with line and remedy");
	tap_run_within(recovers, "a known truth is found in pairs of jobs that were seen", SECONDS);
	tap_run_within(wider, "pairs with jobs that were not seen have wider intervals", SECONDS);
	tap_run_within(utilisation, "utilisation alone is found, and needed of new jobs", SECONDS);
	tap_run_within(prior, "what classes do to each other is a prior with a weight", SECONDS);
	tap_run_within(round_trip, "a model is the same after a file, and damage is refused",
		       SECONDS);
	tap_run(too_little, "too little is refused");
	return tap_done();
}
