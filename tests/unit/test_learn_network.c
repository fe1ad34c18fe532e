// SPDX-License-Identifier: GPL-2.0-only
/* The response network: words, order, masks, the answer, files and training. */
#include "allocations.h"
#include "learn_question.h"
#include "network_pass.h"
#include "network_train.h"
#include "tap.h"

/* ---- words ---- */

static struct learn_word words[LEARN_WORDS];

static const struct learn_word *words_of(const char *text)
{
	struct learn_task t = { .weight = 100 };

	memcpy(t.text, text, strnlen(text, sizeof(t.text)));
	learn_words(&t, 100, words);
	return words + LEARN_WORDS_FIGURES;
}

static size_t count(const struct learn_word *w)
{
	size_t n = 0;

	while (n < LEARN_WORDS_TEXT && w[n].id)
		n++;
	for (size_t l = n; l < LEARN_WORDS_TEXT; l++)
		TAP_CHECK(!w[l].id && !w[l].next);
	return n;
}

static bool same_text(const char *a, const char *b)
{
	struct learn_word first[LEARN_WORDS_TEXT];

	memcpy(first, words_of(a), sizeof(first));
	return !memcmp(first, words_of(b), sizeof(first));
}

static void segmentation(void)
{
	struct learn_word w[LEARN_WORDS_TEXT];
	char text[LEARN_TEXT + 1];

	TAP_EQ(count(words_of("")), 0);
	TAP_EQ(count(words_of(" -- / ")), 0);
	TAP_EQ(count(words_of("game")), 1);
	TAP_EQ(count(words_of("1920x1080")), 3);
	TAP_EQ(count(words_of("Game, at 60fps")), 4);
	TAP_CHECK(same_text("Game at 60 FPS", "game AT: 60fps"));
	TAP_CHECK(same_text("1920x1080", " 1920 x 1080 "));
	TAP_CHECK(!same_text("game", "office"));
	/* letters beyond ASCII make a word */
	TAP_EQ(count(words_of("Büro-Rechner \xff\xfe")), 3);
	TAP_CHECK(!same_text("Büro", "Bro"));
	/* the first eight count */
	TAP_EQ(count(words_of("a b c d e f g h i j")), LEARN_WORDS_TEXT);
	TAP_CHECK(same_text("a b c d e f g h", "a b c d e f g h i"));
	/* without a NUL at its end, and of one word */
	memset(text, 'x', sizeof(text));
	text[LEARN_TEXT] = '\0';
	TAP_EQ(count(words_of(text)), 1);
	memset(text, '9', LEARN_TEXT);
	memcpy(w, words_of(text), sizeof(w));
	TAP_EQ(count(w), 1);
	TAP_EQ(w[0].id, w[0].next);
	for (size_t l = 0; l < LEARN_WORDS; l++)
		TAP_CHECK(words[l].id < LEARN_VOCABULARY && words[l].next < LEARN_VOCABULARY);
}

/* The place on its scale that a word stands for. */
static double place(const struct learn_word *w)
{
	return w->id + (double)w->part;
}

static void numbers(void)
{
	double at[4];
	static const char *const text[] = { "0", "1", "1279", "1300" };

	for (size_t i = 0; i < 4; i++)
		at[i] = place(words_of(text[i]));
	/* two words for each power of 2 of the number and 1 */
	TAP_NEAR(at[1] - at[0], 2, 1e-6);
	TAP_NEAR(at[2] - at[0], 2 * log2(1280), 1e-5);
	TAP_NEAR(at[3] - at[0], 2 * log2(1301), 1e-5);
	TAP_EQ(words_of("1279")->next, words_of("1279")->id + 1);
}

static void figures(void)
{
	struct learn_task t = {
		.weight = 100, .periods = 1, .cost = { 1.0 / 256, 1.5 / 64 }, .fps = 60,
	};
	struct learn_word a[LEARN_WORDS], b[LEARN_WORDS];

	learn_words(&t, 100, a);
	TAP_NEAR(a[0].part, log2(1.5), 1e-6);
	TAP_NEAR(a[1].part, 0, 0);
	t.cost[LEARN_ENGINE] *= 2;
	t.cost[LEARN_CPU] *= 4;
	t.weight *= 2;
	t.fps *= 2;
	learn_words(&t, 100, b);
	TAP_NEAR(place(&b[0]) - place(&a[0]), 1, 1e-6);
	TAP_NEAR(place(&b[1]) - place(&a[1]), 2, 1e-6);
	TAP_NEAR(place(&b[2]) - place(&a[2]), 1, 1e-6);
	TAP_NEAR(place(&b[3]) - place(&a[3]), 1, 1e-6);
	/* what is not known, and what is not active, are words of their own */
	t.fps = 0;
	t.periods = 0;
	learn_words(&t, 100, a);
	TAP_CHECK(a[0].id && a[1].id && a[2].id && a[0].id != a[1].id && a[1].id != a[2].id);
	TAP_CHECK(a[0].id == a[0].next && a[2].id == a[2].next);
	/* values out of any range stay on their scales */
	t = (struct learn_task){
		.weight = 1e300, .periods = 1, .cost = { NAN, -1 }, .fps = INFINITY,
	};
	learn_words(&t, 0, a);
	for (size_t l = 0; l < LEARN_WORDS; l++)
		TAP_CHECK(a[l].id < LEARN_VOCABULARY && a[l].next < LEARN_VOCABULARY &&
			  a[l].part >= 0 && a[l].part <= 1);
}

/* ---- models ---- */

static struct network_weights w;

static void random_weights(enum network_form form, double extent)
{
	network_init(&w, form, 7);
	for (size_t i = 0; i < NETWORK_PARAMETERS; i++)
		((real *)&w.p)[i] += (real)((2 * unit() - 1) * extent);
}

static void *model_of(const struct network_weights *weights)
{
	char why[200] = "", *payload;
	void *model = NULL;
	size_t size;

	payload = learn_network_write(weights, &size);
	if (!payload)
		abort();
	if (!TAP_EQ(learn_network.load(&model, payload, size, why, sizeof(why)), 0))
		tap_diag("%s", why);
	free(payload);
	return model;
}

static bool equal_shares(const double *a, const double *b)
{
	return !memcmp(a, b, LEARN_RESOURCES * sizeof(*a));
}

static void shares(void)
{
	double share[LEARN_RESOURCES], half[LEARN_RESOURCES];
	struct learn_input in;
	void *model;

	rng = 1;
	random_weights(NETWORK_FORM_B, 0.1);
	model = model_of(&w);
	TAP_NEED(model);
	for (size_t n = 1; n <= LEARN_CLIENTS; n++) {
		random_question(&in, n);
		learn_network.share(model, &in, share);
		for (int r = 0; r < LEARN_RESOURCES; r++)
			TAP_CHECK(share[r] >= 0 && share[r] <= in.now[r]);
		if (n == 1)
			TAP_CHECK(equal_shares(share, in.now));
		/* half of what there is, half the share */
		in.now[0] /= 2;
		in.now[1] = 0;
		learn_network.share(model, &in, half);
		TAP_CHECK(half[0] == share[0] / 2 && half[1] == 0);
	}
	learn_network.free(model);
}

static void order(void)
{
	double share[LEARN_RESOURCES], again[LEARN_RESOURCES];
	struct learn_input in;
	void *model;

	rng = 2;
	random_weights(NETWORK_FORM_B, 0.1);
	model = model_of(&w);
	TAP_NEED(model);
	for (unsigned int i = 0; i < tap_some(60, 2000); i++) {
		size_t n = 2 + below(LEARN_CLIENTS - 1);

		random_question(&in, n);
		/* some VMs are alike */
		for (size_t j = 0; j < n / 2; j++)
			in.task[below(n)] = in.task[below(n)];
		learn_network.share(model, &in, share);
		for (unsigned int k = 0; k < 8; k++)
			swap_clients(&in, 1 + below(n - 1), 1 + below(n - 1));
		learn_network.share(model, &in, again);
		TAP_CHECK(equal_shares(share, again));
	}
	learn_network.free(model);
}

static void serve(void)
{
	double all[LEARN_CLIENTS][LEARN_RESOURCES], one[LEARN_RESOURCES];
	struct learn_input in, first;
	bool differ = false;
	void *model;

	rng = 3;
	random_weights(NETWORK_FORM_B, 0.1);
	model = model_of(&w);
	TAP_NEED(model);
	for (size_t n = 1; n <= LEARN_CLIENTS; n++) {
		random_question(&in, n);
		learn_network_serve(model, &in, all);
		for (size_t j = 0; j < n; j++) {
			first = in;
			swap_clients(&first, 0, j);
			learn_network.share(model, &first, one);
			TAP_CHECK(equal_shares(all[j], one));
			differ |= j && !equal_shares(all[j], all[0]);
		}
	}
	TAP_CHECK(differ);
	learn_network.free(model);
}

static void padding(void)
{
	double share[LEARN_RESOURCES], again[LEARN_RESOURCES];
	struct learn_input in, larger;
	void *used, *fresh;

	rng = 4;
	random_weights(NETWORK_FORM_B, 0.1);
	used = model_of(&w);
	fresh = model_of(&w);
	TAP_NEED(used && fresh);
	for (size_t n = 1; n < LEARN_CLIENTS; n++) {
		random_question(&larger, LEARN_CLIENTS);
		random_question(&in, n);
		learn_network.share(fresh, &in, share);
		/* rows behind the last may have anything, and a larger question came before */
		for (size_t j = n; j < LEARN_CLIENTS; j++) {
			random_task(&in.task[j]);
			for (size_t k = 0; k < LEARN_CLIENTS; k++) {
				in.distance[j][k] = NAN;
				in.distance[k][j] = 1e9;
			}
		}
		learn_network.share(used, &larger, again);
		learn_network.share(used, &in, again);
		TAP_CHECK(equal_shares(share, again));
	}
	learn_network.free(used);
	learn_network.free(fresh);
}

static void no_memory(void)
{
	double share[LEARN_CLIENTS][LEARN_RESOURCES];
	struct learn_input in;
	size_t before;
	void *model;

	rng = 5;
	random_weights(NETWORK_FORM_B, 0.1);
	before = allocations;
	model = model_of(&w);
	TAP_NEED(model);
	TAP_CHECK(allocations > before);
	random_question(&in, LEARN_CLIENTS);
	before = allocations;
	learn_network.share(model, &in, share[0]);
	learn_network_serve(model, &in, share);
	TAP_EQ(allocations, before);
	learn_network.free(model);
}

/* ---- the answer ---- */

static struct network_pass pass;
static struct network_question question;

static void ask(size_t n)
{
	uint8_t places[LEARN_CLIENTS];
	struct learn_input in;

	random_question(&in, n);
	network_ask(&in, &question, places);
	TAP_EQ(places[0], 0);
	network_forward(&w, &question, false, &pass);
}

static double expected(enum network_form form, double a, double b)
{
	double beta = (a + b) * (a + b) * (a + b + 1) / (a * b);

	if (form == NETWORK_FORM_C)
		return 1 / a + 1 / b;
	return form == NETWORK_FORM_A ? exp((double)w.p.factor[0]) / beta : beta;
}

static void responses(void)
{
	rng = 6;
	for (unsigned int form = 0; form < NETWORK_FORMS; form++) {
		random_weights(form, 0.1);
		ask(9);
		for (int r = 0; r < LEARN_RESOURCES; r++) {
			const struct network_positive *need = &pass.a.needed[r];
			double sum = 0, available = 0, needed = 0, x[9];

			for (size_t i = 0; i < 9; i++) {
				double a = (double)pass.a.available[r].value[i];

				TAP_CHECK(a > 0 && need->value[i] > 0);
				x[i] = expected(form, a, (double)need->value[i]);
				TAP_NEAR(pass.a.response[r][i], x[i], 1e-5 * x[i]);
				available += a / 9;
				needed += (double)need->value[i] / 9;
				x[i] -= (double)question.prior[i];
				sum += exp(-x[i]);
			}
			TAP_NEAR(available, 1, 1e-5);
			TAP_NEAR(needed, 1, 1e-5);
			/* small responses and large weights make large shares */
			for (size_t i = 0; i < 9; i++)
				TAP_NEAR(exp((double)pass.a.log_p[r][i]), exp(-x[i]) / sum, 1e-4);
		}
	}
}

/* (Mt + 1) M1 q, by a product of matrices. */
static double need_by_formula(int r, size_t i)
{
	const real *query = pass.wide.in + network_row(0, NETWORK_WIDTH);
	double sum = 0;

	for (size_t d = 0; d < NETWORK_WIDTH; d++) {
		double m2 = (double)pass.wide.out[network_row(i, NETWORK_WIDTH) + d];

		for (size_t k = 0; k < LEARN_CLIENTS; k++)
			m2 += (double)pass.square.out[network_row(i, LEARN_CLIENTS) + k] *
				(double)pass.wide.out[network_row(k, NETWORK_WIDTH) + d];
		sum += m2 * (double)query[d] * (double)w.p.gain[r][d];
	}
	return sum / sqrt(NETWORK_WIDTH);
}

static void need_of_query(void)
{
	rng = 7;
	random_weights(NETWORK_FORM_B, 0.1);
	ask(LEARN_CLIENTS);
	for (int r = 0; r < LEARN_RESOURCES; r++)
		for (size_t i = 0; i < LEARN_CLIENTS; i++) {
			double want = need_by_formula(r, i);

			TAP_NEAR(pass.a.needed[r].raw[i], want, 1e-4 * (1 + fabs(want)));
		}
}

/* With equal responses a VM has its part by weight. */
static void begins_with_weights(void)
{
	double share[LEARN_RESOURCES], part[LEARN_RESOURCES];
	struct learn_input in;
	void *model;

	rng = 8;
	memset(&w, 0, sizeof(w));
	model = model_of(&w);
	TAP_NEED(model);
	random_question(&in, 7);
	learn_network.share(model, &in, share);
	learn_static.share(NULL, &in, part);
	for (int r = 0; r < LEARN_RESOURCES; r++)
		TAP_NEAR(share[r], part[r], 1e-5);
	learn_network.free(model);
}

static double cell(const real *cells, size_t width, size_t rows, size_t columns, long r, long c)
{
	return r < 0 || c < 0 || r >= (long)rows || c >= (long)columns ? 0 :
		(double)cells[network_row((size_t)r, width) + (size_t)c];
}

/* A convolutional network by its definition, whose input and result are given. */
static void compare_cnn(const struct network_cnn *cnn, const real *in, const real *out,
			size_t width, size_t rows, size_t columns)
{
	static double pooled[NETWORK_POOLED][LEARN_CLIENTS][NETWORK_WIDTH];

	for (size_t p = 0; p < NETWORK_POOLED; p++)
		for (size_t r = 0; r < rows; r++)
			for (size_t c = 0; c < columns; c++) {
				pooled[p][r][c] = 0;
				for (size_t k = 2 * p; k < 2 * p + 2; k++) {
					double sum = (double)cnn->wide_bias[k];

					for (int t = 0; t < NETWORK_TAPS; t++) {
						long y = (long)r + t / 3 - 1;
						long x = (long)c + t % 3 - 1;

						sum += (double)cnn->wide[k][t] *
							cell(in, width, rows, columns, y, x);
					}
					pooled[p][r][c] = fmax(pooled[p][r][c], sum);
				}
			}
	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < columns; c++) {
			double sum = (double)cnn->narrow_bias[0];

			for (size_t p = 0; p < NETWORK_POOLED; p++)
				for (int t = 0; t < NETWORK_TAPS; t++) {
					long y = (long)r + t / 3 - 1, x = (long)c + t % 3 - 1;

					if (y >= 0 && x >= 0 && y < (long)rows && x < (long)columns)
						sum += (double)cnn->narrow[p][t] * pooled[p][y][x];
				}
			TAP_NEAR(out[network_row(r, width) + c], sum, 1e-4);
		}
}

static void convolutions(void)
{
	rng = 8;
	random_weights(NETWORK_FORM_B, 0.1);
	for (size_t n = 1; n <= LEARN_CLIENTS; n += 5) {
		ask(n);
		compare_cnn(&w.p.clients, pass.wide.in, pass.wide.out, NETWORK_WIDTH, n,
			    NETWORK_WIDTH);
		compare_cnn(&w.p.distances, pass.square.in, pass.square.out, LEARN_CLIENTS, n, n);
	}
}

static void past(void)
{
	rng = 9;
	random_weights(NETWORK_FORM_B, 0.1);
	ask(LEARN_CLIENTS);
	for (int r = 0; r < LEARN_RESOURCES; r++)
		for (size_t i = 0; i < LEARN_CLIENTS; i++) {
			double sum = (double)w.p.filter_bias[0];

			for (size_t a = 0; a < NETWORK_KERNEL; a++) {
				size_t at = i + NETWORK_KERNEL - 1 - a;
				double g = (double)w.p.times_bias[at];

				for (size_t t = 0; t < LEARN_PAST; t++)
					g += (double)w.p.times[at][t] * (double)question.idle[r][t];
				sum += (double)w.p.filter[a] * g;
			}
			TAP_NEAR(pass.a.available[r].raw[i], sum, 1e-4);
		}
}

/* The largest weights that a file may have, of either sign. */
static void extreme_weights(void)
{
	double share[LEARN_RESOURCES];
	struct learn_input in;
	void *model;

	rng = 10;
	for (unsigned int i = 0; i < 40; i++) {
		memset(&w, 0, sizeof(w));
		w.form = i % NETWORK_FORMS;
		for (size_t k = 0; k < NETWORK_PARAMETERS; k++)
			((real *)&w.p)[k] = below(2) || i < 3 ? NETWORK_MAX_WEIGHT :
				-NETWORK_MAX_WEIGHT;
		w.p.factor[0] = i & 1 ? NETWORK_MAX_FACTOR : -NETWORK_MAX_FACTOR;
		model = model_of(&w);
		TAP_NEED(model);
		random_question(&in, 1 + below(LEARN_CLIENTS));
		learn_network.share(model, &in, share);
		for (int r = 0; r < LEARN_RESOURCES; r++)
			TAP_CHECK(share[r] >= 0 && share[r] <= in.now[r]);
		learn_network.free(model);
	}
}

/* ---- files ---- */

static void blocks(void)
{
	size_t next = 0;

	for (size_t i = 0; i < network_nr_blocks; i++) {
		TAP_EQ(network_blocks[i].offset, next);
		next += network_blocks[i].rows * network_blocks[i].columns;
	}
	TAP_EQ(next, NETWORK_PARAMETERS);
	TAP_CHECK(learn_model_find("network") == &learn_network);
	TAP_CHECK(!learn_model_find("networks"));
	for (size_t i = 0; learn_models[i]; i++)
		TAP_CHECK(learn_model_find(learn_models[i]->name) == learn_models[i]);
}

static void write_and_load(void)
{
	char *payload, *again;
	size_t size, size_again;
	void *model;

	rng = 11;
	for (unsigned int form = 0; form < NETWORK_FORMS; form++) {
		random_weights(form, 1);
		payload = learn_network_write(&w, &size);
		TAP_NEED(payload);
		TAP_EQ(strlen(payload), size);
		model = model_of(&w);
		TAP_NEED(model);
		/* a model begins with its weights */
		again = learn_network_write(model, &size_again);
		TAP_NEED(again);
		TAP_STR(again, payload);
		learn_network.free(model);
		free(payload);
		free(again);
	}
}

/* Replace a text in the payload of valid weights, and expect a refusal with @part. */
static void refused(const char *from, const char *to, const char *part)
{
	char why[200] = "", *payload, *changed, *at;
	size_t size, head;
	void *model = &w;

	payload = learn_network_write(&w, &size);
	TAP_NEED(payload);
	at = strstr(payload, from);
	TAP_NEED(at);
	head = (size_t)(at - payload);
	changed = calloc(1, size + strlen(to) + 1);
	TAP_NEED(changed);
	memcpy(changed, payload, head);
	strcpy(changed + head, to);
	strcat(changed, at + strlen(from));
	TAP_EQ(learn_network.load(&model, changed, strlen(changed), why, sizeof(why)), -EINVAL);
	TAP_CHECK(!model && strstr(why, part) && strstr(why, "train again"));
	if (!strstr(why, part))
		tap_diag("%s", why);
	free(changed);
	free(payload);
}

static void refusals(void)
{
	network_init(&w, NETWORK_FORM_B, 1);
	w.p.factor[0] = 2;
	refused("network 1\n", "network 2\n", "version is \"2\"; it must be a number from 1 to 1");
	refused("network 1\n", "", "line 1 of the weights: \"form\" instead of \"network\"");
	refused("form B", "form D", "form is \"D\"; it must be A, B or C");
	refused("form B", "form BB", "form is \"BB\"; it must be A, B or C");
	refused("form B", "form B C", "something follows \"B\"");
	refused("\nposition 12 8", "\nposition 11 8",
		"number of rows is \"11\"; it must be a number from 12 to 12");
	refused("\nposition 12 8", "\nposition 12 9",
		"number of columns is \"9\"; it must be a number from 8 to 8");
	refused("\nkey 8 8", "\nquery_bias 1 8", "\"query_bias\" instead of \"key\"");
	refused("\nfactor 1 1 2\n", "\nfactor 1 1\n", "no weight");
	refused("\nfactor 1 1 2\n", "\nfactor 1 1 nan\n", "weight is \"nan\"; it must be a number");
	refused("\nfactor 1 1 2\n", "\nfactor 1 1 -nan\n", "weight is \"-nan\"; it must be a number");
	refused("\nfactor 1 1 2\n", "\nfactor 1 1 -inf\n", "weight is \"-inf\"; it must be a number");
	refused("\nfactor 1 1 2\n", "\nfactor 1 1 21\n", "from -20 to 20");
	refused("\nfactor 1 1 2\n", "\nfactor 1 1 2 3\n", "something follows \"2\"");
	refused("\nfactor 1 1 2\n", "\nfactor 1 1 2\nmore\n", "something follows the last line");
	refused("\nfactor 1 1 2\n", "\n", "the text ends too early");
	refused("\nfactor 1 1 2\n", "\nfactor 1 1 +2\n", "weight is \"+2\"");
	refused("\nnorm1 1 8 1", "\nnorm1 1 8 1000.5", "from -1000 to 1000");
	refused("\nnorm1 1 8 1", "\nnorm1 1 8 1e999", "from -1000 to 1000");
}

static void cut_off(void)
{
	char why[200], *payload, *cut;
	void *model;
	size_t size;

	network_init(&w, NETWORK_FORM_B, 1);
	payload = learn_network_write(&w, &size);
	TAP_NEED(payload);
	for (size_t n = 0; n < size; n += n < 300 || n + 300 > size ? 1 : 997) {
		cut = grab(n + 1);
		memcpy(cut, payload, n);
		cut[n] = '\0';
		TAP_EQ(learn_network.load(&model, cut, n, why, sizeof(why)), -EINVAL);
		TAP_CHECK(!model);
		free(cut);
	}
	/* a NUL among the weights ends nothing */
	payload[size / 2] = '\0';
	TAP_EQ(learn_network.load(&model, payload, size, why, sizeof(why)), -EINVAL);
	free(payload);
}

/* ---- training ---- */

#define SAMPLES	250
#define OTHERS	60

static struct learn_sample samples[SAMPLES], others[OTHERS], held_out[OTHERS];

/* Shares go with what a frame costs, which the words tell if it was measured. */
static void make_sample(struct learn_sample *s)
{
	static const char *const kinds[] = { "game", "Office", "video", "render" };
	double sum[LEARN_RESOURCES] = { 0 };
	size_t n = 2 + below(5);

	memset(s, 0, sizeof(*s));
	random_question(&s->in, n);
	for (size_t j = 0; j < n; j++) {
		size_t kind = 0;

		while (strncmp(s->in.task[j].text, kinds[kind], 4))
			kind++;
		s->label[LEARN_CPU][j] = (float)(4 - kind);
		s->label[LEARN_ENGINE][j] = (float)(1 + kind * kind);
		for (int r = 0; r < LEARN_RESOURCES; r++)
			sum[r] += (double)s->label[r][j];
	}
	for (int r = 0; r < LEARN_RESOURCES; r++)
		for (size_t j = 0; j < n; j++)
			s->label[r][j] /= (float)sum[r];
}

static void make_samples(void)
{
	rng = 12;
	for (size_t i = 0; i < SAMPLES; i++)
		make_sample(&samples[i]);
	for (size_t i = 0; i < OTHERS; i++) {
		make_sample(&others[i]);
		make_sample(&held_out[i]);
	}
}

/* Mean divergence of what the control "static" shares by weight. */
static double loss_of_static(void)
{
	double loss = 0;

	for (size_t i = 0; i < OTHERS; i++) {
		const struct learn_sample *s = &held_out[i];
		struct learn_input in = s->in;

		for (size_t j = 0; j < in.n; j++) {
			double share[LEARN_RESOURCES];

			swap_clients(&in, 0, j);
			learn_static.share(NULL, &in, share);
			swap_clients(&in, 0, j);
			for (int r = 0; r < LEARN_RESOURCES; r++)
				loss += (double)s->label[r][j] / LEARN_RESOURCES *
					log((double)s->label[r][j] / (share[r] / in.now[r]));
		}
	}
	return loss / OTHERS;
}

static unsigned int calls;

static bool count_epochs(void *arg, const struct network_progress *p)
{
	struct network_progress *last = arg;

	TAP_EQ(p->epoch, ++calls);
	*last = *p;
	return false;
}

static bool stop_at_two(void *arg, const struct network_progress *p)
{
	(void)arg;
	calls = p->epoch;
	return p->epoch == 2;
}

static void training(void)
{
	struct network_progress last = { 0 };
	struct network_training t;
	double before, after, validation, by_weight = loss_of_static();

	network_training_defaults(&t);
	t.epochs = 8;
	t.batch = 4;
	t.rate = 0.01;
	t.progress = count_epochs;
	t.arg = &last;
	network_init(&w, t.form, t.seed);
	TAP_NEED(!network_loss(&w, held_out, OTHERS, &before));
	TAP_NEED(!network_train(&w, samples, SAMPLES, others, OTHERS, &t));
	TAP_NEED(!network_loss(&w, held_out, OTHERS, &after));
	TAP_NEED(!network_loss(&w, others, OTHERS, &validation));
	tap_diag("held out: %.3f before, %.3f after, %.3f by weight", before, after, by_weight);
	TAP_CHECK(after < before);
	TAP_CHECK(after < 0.8 * by_weight);
	TAP_EQ(last.epochs, 8);
	TAP_EQ(last.epoch, calls);
	TAP_CHECK(last.best && last.best <= last.epoch && validation <= last.validation);
}

static void repeatable(void)
{
	static struct network_weights again;
	struct network_training t;

	network_training_defaults(&t);
	t.epochs = 2;
	TAP_NEED(!network_train(&w, samples, 60, NULL, 0, &t));
	TAP_NEED(!network_train(&again, samples, 60, NULL, 0, &t));
	TAP_MEM(&again, &w, sizeof(w));
	t.seed++;
	TAP_NEED(!network_train(&again, samples, 60, NULL, 0, &t));
	TAP_CHECK(memcmp(&again, &w, sizeof(w)));
}

static void stops(void)
{
	struct network_training t;
	struct network_progress last;

	network_training_defaults(&t);
	t.progress = stop_at_two;
	TAP_EQ(network_train(&w, samples, 20, NULL, 0, &t), 0);
	TAP_EQ(calls, 2);
	/* labels of the validation that nothing in the samples predicts */
	for (size_t i = 0; i < 10; i++)
		for (int r = 0; r < LEARN_RESOURCES; r++) {
			memset(others[i].label[r], 0, sizeof(others[i].label[r]));
			others[i].label[r][i % others[i].in.n] = 1;
		}
	calls = 0;
	t.progress = count_epochs;
	t.arg = &last;
	t.patience = 2;
	t.rate = 0.03;
	t.epochs = 40;
	TAP_EQ(network_train(&w, samples, 40, others, 10, &t), 0);
	TAP_CHECK(last.epoch < 40);
	TAP_EQ(last.epoch, last.best + 2);
}

static void arguments(void)
{
	struct network_training t;

	network_training_defaults(&t);
	TAP_EQ(network_train(&w, samples, 0, NULL, 0, &t), -EINVAL);
	t.batch = 0;
	TAP_EQ(network_train(&w, samples, 1, NULL, 0, &t), -EINVAL);
	network_training_defaults(&t);
	t.rate = NAN;
	TAP_EQ(network_train(&w, samples, 1, NULL, 0, &t), -EINVAL);
	/* weights that leave their range */
	t.rate = 1e6;
	TAP_EQ(network_train(&w, samples, 20, NULL, 0, &t), -ERANGE);
	network_training_defaults(&t);
	samples[0].in.n = LEARN_CLIENTS + 1;
	TAP_EQ(network_train(&w, samples, 1, NULL, 0, &t), -EINVAL);
}

int main(void)
{
	make_samples();
	tap_run(segmentation, "a description is cut into words and numbers");
	tap_run(numbers, "a number lies between two words");
	tap_run(figures, "figures lie between two words, and what is not known is a word");
	tap_run(shares, "a share is a part of what there is, and a single VM gets all");
	tap_run(order, "the order of the other VMs does not matter");
	tap_run(serve, "VMs that are served at once get what each alone gets");
	tap_run(padding, "what is behind the last VM changes nothing");
	tap_run(no_memory, "an answer allocates nothing");
	tap_run(responses, "responses and shares follow the formulas of the three forms");
	tap_run(need_of_query, "need is the product of Mt + 1, M1 and the query");
	tap_run(begins_with_weights, "equal responses give parts by weight");
	tap_run(convolutions, "convolutional networks follow their definition");
	tap_run(past, "availability follows its definition");
	tap_run(extreme_weights, "no weights overflow");
	tap_run(blocks, "the blocks of a file are all parameters");
	tap_run(write_and_load, "weights that were written are loaded");
	tap_run(refusals, "other weights are refused with the reason");
	tap_run(cut_off, "weights that were cut off are refused");
	tap_run_within(training, "training makes the network better than shares by weight", 180);
	tap_run_within(repeatable, "the same seed gives the same weights", 180);
	tap_run(stops, "training stops if it is told to, or gets no better");
	tap_run(arguments, "arguments out of their range are refused");
	return tap_done();
}
