// SPDX-License-Identifier: GPL-2.0-only
/* Test what the screen of gpuctl top shows, and what its keys do, without a screen. */
#include <locale.h>
#include <stdlib.h>

#include "gpuctl.h"
#include "random.h"
#include "tap.h"
#include "top_model.h"

/* @id: a UUID that has it at its end */
static struct top_row row(uint32_t id, const char *name, double fps, double gpu)
{
	struct top_row r = {
		.id = id, .open = true, .weight = 100, .fps = fps, .target = NAN, .floor = NAN,
		.granted = NAN, .p50 = NAN, .p99 = NAN, .gpu = gpu, .cpu = NAN, .held = 0,
		.mem = 1048576 * id, .type = "mgpu_soft-small", .dev = "mgpu_soft.0",
	};

	snprintf(r.name, sizeof(r.name), "%s", name);
	snprintf(r.uuid, sizeof(r.uuid), "83b8f4f2-509f-382f-3c1e-%012u", id);
	return r;
}

static void update(struct top_model *m, const struct top_row *rows, size_t nr)
{
	struct top_row *copy = grab((nr + 1) * sizeof(*rows));

	memcpy(copy, rows, nr * sizeof(*rows));
	TAP_NEED(!top_model_update(m, copy, nr));
}

/* The names in the order of the view: "a b c". */
static const char *order(const struct top_model *m)
{
	static char text[512];

	*text = '\0';
	for (size_t i = 0; i < m->nr_view; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 m->rows[m->view[i]].name);
	return text;
}

static void keys(struct top_model *m, const char *text)
{
	for (; *text; text++)
		top_model_key(m, (unsigned char)*text);
}

static struct top_model three(void)
{
	const struct top_row rows[] = {
		row(1, "web", 30, 0.5), row(2, "Db", NAN, 0.1), row(5, "-", 60, 0.3),
	};
	struct top_model m;

	top_model_init(&m);
	update(&m, rows, 3);
	top_model_fit(&m, 10);
	return m;
}

static void sorts(void)
{
	struct top_model m = three();

	TAP_STR(order(&m), "web Db -");
	TAP_STR(top_sort_name(m.sort), "id");
	keys(&m, "r");
	TAP_STR(order(&m), "- Db web");
	keys(&m, "s");
	/* a new column has its own order, and no name comes last */
	TAP_STR(top_sort_name(m.sort), "name");
	TAP_STR(order(&m), "Db web -");
	keys(&m, "s");
	TAP_STR(top_sort_name(m.sort), "fps");
	TAP_STR(order(&m), "- web Db");
	keys(&m, "r");
	/* what is unknown is last in both orders */
	TAP_STR(order(&m), "web - Db");
	keys(&m, "ss");
	TAP_STR(top_sort_name(m.sort), "gpu");
	TAP_STR(order(&m), "web - Db");
	keys(&m, "S");
	TAP_STR(top_sort_name(m.sort), "p99");
	TAP_STR(order(&m), "web Db -");
	keys(&m, "SSSS");
	TAP_STR(top_sort_name(m.sort), "mem");
	TAP_STR(order(&m), "- Db web");
	top_model_free(&m);
}

static void filters(void)
{
	struct top_model m = three();

	keys(&m, "/dB");
	TAP_EQ(m.mode, TOP_FILTER);
	/* while it is typed */
	TAP_STR(order(&m), "Db");
	top_model_key(&m, TOP_KEY_BACKSPACE);
	top_model_key(&m, TOP_KEY_BACKSPACE);
	TAP_STR(order(&m), "web Db -");
	keys(&m, "00005");
	TAP_EQ(top_model_key(&m, TOP_KEY_ENTER), TOP_REDRAW);
	TAP_EQ(m.mode, TOP_LIST);
	TAP_STR(order(&m), "-");
	TAP_STR(m.selected, m.rows[2].uuid);
	keys(&m, "/");
	TAP_STR(m.input, "00005");
	keys(&m, "x");
	TAP_STR(order(&m), "");
	TAP_CHECK(!top_model_selected(&m));
	TAP_STR(m.selected, "");
	/* nothing to set */
	top_model_key(&m, TOP_KEY_ENTER);
	keys(&m, "e");
	TAP_EQ(m.mode, TOP_LIST);
	top_model_key(&m, TOP_KEY_ESCAPE);
	TAP_STR(order(&m), "web Db -");
	TAP_STR(m.filter, "");
	keys(&m, "/closed");
	TAP_STR(order(&m), "");
	top_model_key(&m, TOP_KEY_ESCAPE);
	TAP_STR(order(&m), "web Db -");
	top_model_free(&m);
}

/* The selection is a vGPU, not a place. */
static void keeps_selection(void)
{
	const struct top_row fewer[] = { row(1, "web", 1, 1), row(5, "-", 2, 1) };
	struct top_model m = three();

	TAP_STR(m.selected, m.rows[0].uuid);
	keys(&m, "r");
	TAP_STR(top_model_selected(&m)->name, "web");
	TAP_EQ(m.at, 2);
	keys(&m, "r");
	top_model_key(&m, TOP_KEY_DOWN);
	TAP_STR(top_model_selected(&m)->name, "Db");
	keys(&m, "r");
	TAP_STR(top_model_selected(&m)->name, "Db");
	keys(&m, "rj");
	TAP_STR(top_model_selected(&m)->name, "-");
	keys(&m, "jj");
	TAP_STR(top_model_selected(&m)->name, "-");
	keys(&m, "k");
	/* it goes: its place is selected */
	update(&m, fewer, 2);
	TAP_STR(top_model_selected(&m)->name, "-");
	update(&m, fewer, 0);
	TAP_CHECK(!top_model_selected(&m));
	keys(&m, "jk");
	update(&m, fewer, 1);
	TAP_STR(top_model_selected(&m)->name, "web");
	top_model_free(&m);
}

static void scrolls(void)
{
	struct top_row rows[100];
	struct top_model m;

	for (uint32_t i = 0; i < 100; i++)
		rows[i] = row(i + 1, "x", i, 0);
	top_model_init(&m);
	update(&m, rows, 100);
	top_model_fit(&m, 10);
	TAP_EQ(m.first, 0);
	top_model_key(&m, TOP_KEY_PAGE_DOWN);
	TAP_EQ(m.at, 10);
	TAP_EQ(m.first, 1);
	top_model_key(&m, TOP_KEY_END);
	TAP_EQ(m.at, 99);
	TAP_EQ(m.first, 90);
	top_model_key(&m, TOP_KEY_DOWN);
	TAP_EQ(m.at, 99);
	/* a smaller screen, and a larger one */
	top_model_fit(&m, 3);
	TAP_EQ(m.first, 97);
	top_model_fit(&m, 60);
	TAP_EQ(m.first, 40);
	top_model_fit(&m, 0);
	TAP_EQ(m.page, 1);
	TAP_EQ(m.first, 99);
	top_model_key(&m, TOP_KEY_HOME);
	TAP_EQ(m.first, 0);
	update(&m, rows, 5);
	top_model_fit(&m, 10);
	TAP_EQ(m.first, 0);
	top_model_free(&m);
}

static void remembers(void)
{
	struct top_row rows[] = { row(1, "a", 0, 0), row(7, "b", 0, 0.25) };
	struct top_model m;
	size_t i;

	top_model_init(&m);
	for (i = 0; i < TOP_HISTORY + 5; i++) {
		rows[0].fps = (double)i;
		update(&m, rows, 2);
	}
	TAP_EQ(m.history[0].nr, TOP_HISTORY);
	TAP_NEAR(m.history[0].fps[0], 5, 0);
	TAP_NEAR(m.history[0].fps[TOP_HISTORY - 1], TOP_HISTORY + 4, 0);
	TAP_NEAR(m.history[1].gpu[3], 0.25, 0);

	/* another vGPU with an ID begins anew; one that stays goes on */
	rows[0] = row(3, "c", 1, 0);
	update(&m, rows, 2);
	TAP_EQ(m.history[0].nr, 1);
	TAP_EQ(m.history[1].nr, TOP_HISTORY);
	rows[0].uuid[0] = '9';
	update(&m, rows, 2);
	TAP_EQ(m.history[0].nr, 1);
	top_model_free(&m);
}

static void edits(void)
{
	struct top_model m = three();
	char line[TOP_INPUT];

	keys(&m, "jf30");
	TAP_EQ(m.mode, TOP_EDIT);
	TAP_STR(m.input, "fps 30");
	/* keys are text now */
	keys(&m, " q");
	TAP_STR(m.input, "fps 30 q");
	top_model_key(&m, TOP_KEY_BACKSPACE);
	TAP_EQ(top_model_key(&m, TOP_KEY_ENTER), TOP_APPLY);
	TAP_STR(m.input, "fps 30 ");
	TAP_STR(top_model_selected(&m)->name, "Db");
	top_model_said(&m, NULL);
	TAP_STR(m.said, "set: fps 30 ");
	TAP_CHECK(!m.bad);
	keys(&m, "w");
	TAP_STR(m.input, "weight ");
	TAP_STR(m.said, "");
	TAP_EQ(top_model_key(&m, TOP_KEY_ESCAPE), TOP_REDRAW);
	TAP_EQ(m.mode, TOP_LIST);
	keys(&m, "g");
	TAP_STR(m.input, "gpu-limit ");
	top_model_said(&m, "no");
	TAP_CHECK(m.bad);
	top_model_key(&m, TOP_KEY_ESCAPE);
	/* an empty line sets nothing */
	keys(&m, "e");
	TAP_EQ(top_model_key(&m, TOP_KEY_ENTER), TOP_REDRAW);

	/* characters of several bytes come and go as one; a line has an end */
	keys(&m, "/");
	top_model_key(&m, 0xe9);
	top_model_key(&m, 0x6771);
	top_model_key(&m, 0x1f600);
	TAP_STR(m.input, "é東😀");
	top_model_key(&m, TOP_KEY_BACKSPACE);
	TAP_STR(m.input, "é東");
	top_model_key(&m, '\a');
	top_model_key(&m, TOP_KEY_UP);
	top_model_key(&m, UINT32_MAX);
	TAP_STR(m.input, "é東");
	for (int i = 0; i < 200; i++)
		top_model_key(&m, 0x6771);
	TAP_CHECK(strlen(m.input) < TOP_INPUT && strlen(m.input) > TOP_INPUT - 4);
	for (int i = 0; i < 200; i++)
		top_model_key(&m, TOP_KEY_BACKSPACE);
	TAP_STR(m.input, "");
	strcpy(line, "");
	TAP_STR(m.filter, line);
	top_model_free(&m);
}

/* A vGPU that is removed, or filtered out, while its settings are typed. */
static void edits_no_other(void)
{
	struct top_row rows[] = { row(1, "web", 1, 1), row(2, "Db", 1, 1), row(5, "-", 2, 1) };
	struct top_model m = three();

	/* another vGPU goes, and the line stays */
	keys(&m, "jf3");
	update(&m, rows + 1, 2);
	TAP_EQ(m.mode, TOP_EDIT);
	keys(&m, "0");
	TAP_EQ(top_model_key(&m, TOP_KEY_ENTER), TOP_APPLY);
	TAP_STR(top_model_selected(&m)->name, "Db");

	keys(&m, "f30");
	update(&m, rows + 2, 1);
	TAP_STR(top_model_selected(&m)->name, "-");
	TAP_EQ(m.mode, TOP_LIST);
	TAP_CHECK(m.bad && *m.said);
	TAP_CHECK(top_model_key(&m, TOP_KEY_ENTER) != TOP_APPLY);
	top_model_key(&m, TOP_KEY_ESCAPE);

	update(&m, rows, 3);
	keys(&m, "/open");
	top_model_key(&m, TOP_KEY_ENTER);
	top_model_key(&m, TOP_KEY_END);
	keys(&m, "w7");
	rows[2].open = false;
	update(&m, rows, 3);
	TAP_EQ(m.mode, TOP_LIST);
	TAP_STR(top_model_selected(&m)->name, "Db");
	top_model_free(&m);
}

static void pauses_and_helps(void)
{
	struct top_model m = three();

	TAP_EQ(top_model_key(&m, ' '), TOP_REDRAW);
	TAP_CHECK(m.paused);
	top_model_key(&m, ' ');
	TAP_CHECK(!m.paused);
	top_model_key(&m, '?');
	TAP_EQ(m.mode, TOP_HELP);
	top_model_key(&m, 'j');
	TAP_EQ(m.mode, TOP_LIST);
	TAP_EQ(m.at, 0);
	keys(&m, "c");
	TAP_EQ(m.pane, TOP_CONTEXTS);
	keys(&m, "cc");
	TAP_EQ(m.pane, TOP_GRAPHS);
	TAP_EQ(top_model_key(&m, 'Z'), TOP_NOTHING);
	TAP_EQ(top_model_key(&m, 'q'), TOP_QUIT);
	top_model_free(&m);
}

static void any_keys(void)
{
	struct top_row rows[20];
	struct top_model m = three();

	rng = 5;
	for (int i = 0; i < 50000; i++) {
		uint32_t key = below(4) ? (uint32_t)below(128) :
			       below(2) ? TOP_KEY_UP + (uint32_t)below(9) : (uint32_t)rnd();
		size_t nr = below(20);

		top_model_key(&m, key);
		if (below(10) == 0) {
			for (size_t j = 0; j < nr; j++)
				rows[j] = row((uint32_t)(2 * j + below(2) + 1), "vm",
					      below(5) ? (double)below(60) : NAN, 0);
			update(&m, rows, nr);
			top_model_fit(&m, below(8));
		}
		TAP_NEED(m.nr_view <= m.nr && (m.at < m.nr_view || !m.at));
		TAP_NEED(!m.nr_view || (m.first <= m.at && m.at < m.first + m.page));
		TAP_NEED(strlen(m.input) < TOP_INPUT);
	}
	top_model_free(&m);
}

static void graph(const float *values, size_t nr, double max, size_t line, size_t lines,
		  bool utf8, const char *want)
{
	char out[3 * 6 + 1];

	TAP_STR(top_graph(values, nr, max, 6, line, lines, utf8, out), want);
}

static void graphs(void)
{
	static const float values[] = { 100, 0, 1, 30, NAN, 60, 61 };

	graph(values, 7, 60, 0, 1, true, " ▁▄ ██");
	graph(values, 7, 60, 0, 1, false, " .: ##");
	/* two lines: the upper one is for what is above the half */
	graph(values, 7, 60, 1, 2, true, "    ██");
	graph(values, 7, 60, 0, 2, true, " ▁█ ██");
	graph(values, 2, 100, 0, 1, true, "    █ ");
	graph(values, 0, 1, 0, 1, true, "      ");
	TAP_NEAR(top_graph_max(values, 7), 100, 0);
	TAP_NEAR(top_graph_max(values + 1, 3), 50, 0);
	TAP_NEAR(top_graph_max(values + 1, 2), 1, 0);
	TAP_NEAR(top_graph_max(NULL, 0), 1, 0);
}

static void fits(const char *text, size_t width, bool right, bool utf8, const char *want)
{
	char out[4 * 16 + 1];

	TAP_STR(top_fit(text, width, right, utf8, out, sizeof(out)), want);
}

static void fitted(void)
{
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		TAP_SKIP("no locale C.UTF-8");
	fits("abc", 5, false, true, "abc  ");
	fits("abc", 5, true, true, "  abc");
	fits("abcdef", 5, false, true, "abcde");
	/* two columns each: half of one does not fit */
	fits("東京都", 5, false, true, "東京 ");
	fits("東京都", 5, true, true, " 東京");
	fits("é", 3, true, true, "  é");
	fits("é", 3, false, false, "?? ");
	fits("\033[2J", 4, false, true, "?[2J");
	fits("a\xff\xfe", 4, false, true, "a?? ");
	fits("a\xe6", 4, false, true, "a?  ");
	fits("", 0, false, true, "");
	fits("abc", 0, true, true, "");
}

static size_t sum(const size_t widths[TOP_COLUMNS])
{
	size_t all = 0, i;

	for (i = 0; i < TOP_COLUMNS; i++)
		all += widths[i] ? widths[i] + (all ? 2 : 0) : 0;
	return all;
}

static void columns_fit(void)
{
	size_t widths[TOP_COLUMNS], before = 0, shown, width, i;

	for (width = 1; width < 300; width++) {
		top_columns(width, widths);
		for (shown = 0, i = 0; i < TOP_COLUMNS; i++)
			shown += widths[i] != 0;
		/* the least is name, frame rate and share */
		if (width >= 25 && !TAP_CHECK(sum(widths) <= width))
			tap_diag("%zu of %zu", sum(widths), width);
		if (!TAP_CHECK(shown >= before))
			tap_diag("%zu columns of %zu", shown, width);
		before = shown;
	}
	TAP_EQ(before, TOP_COLUMNS);
	top_columns(80, widths);
	TAP_CHECK(widths[TOP_NAME] && widths[TOP_FPS] && widths[TOP_TARGET] && widths[TOP_GPU] &&
		  widths[TOP_CPU] && widths[TOP_HELD] && widths[TOP_MEM] && widths[TOP_P99]);
}

static void lines(void)
{
	struct top_model m = three();
	size_t widths[TOP_COLUMNS] = {
		[TOP_ID] = 4, [TOP_NAME] = 6, [TOP_FPS] = 6, [TOP_TARGET] = 6, [TOP_LIMIT] = 6,
		[TOP_P99] = 6, [TOP_GPU] = 5, [TOP_HELD] = 5,
	};
	struct top_row *r = &m.rows[0];
	char text[TOP_LINE];

	keys(&m, "sss");
	TAP_STR(top_titles(&m, widths, text),
		"  ID  VM         FPS  TARGET   LIMIT  P99-MS   GPU%  HELD%");
	keys(&m, "SS");
	TAP_STR(top_titles(&m, widths, text),
		"  ID  VM^        FPS  TARGET   LIMIT  P99-MS   GPU%  HELD%");
	r->target = 29.97;
	r->fps_limit = 25000;
	r->fps_stale = true;
	r->p99 = 33400;
	r->held = 0.125;
	TAP_STR(top_line(r, &m.history[0], widths, true, text),
		"   1  web       30.0    30.0     25!    33.4   50.0   12.5");
	r->target = NAN;
	r->fps_limit = 0;
	r->fps = 123456;
	r->p99 = NAN;
	strcpy(r->name, "a\033[31mbcdef");
	TAP_STR(top_line(r, &m.history[0], widths, false, text),
		"   1  a?[31m  123456       -    none       -   50.0   12.5");

	/* the mark of a stale target has room behind any limit */
	top_columns(200, widths);
	for (size_t i = 0; i < TOP_COLUMNS; i++)
		if (i != TOP_LIMIT && i != TOP_GPU_LIMIT)
			widths[i] = 0;
	r->fps_limit = 29973;
	r->gpu_limit = 333333;
	r->gpu_stale = true;
	TAP_STR(top_line(r, &m.history[0], widths, true, text), "29.97!   33.3%!");
	r->fps_limit = 10000000;
	r->gpu_limit = 1234;
	TAP_STR(top_line(r, &m.history[0], widths, true, text), "10000!  0.123%!");
	r->fps_stale = false;
	r->gpu_stale = false;
	r->gpu_limit = 1000000;
	TAP_STR(top_line(r, &m.history[0], widths, true, text), " 10000     100%");
	top_model_free(&m);
}

static void thousands(void)
{
	static struct top_row rows[4000];
	struct top_model m;

	for (uint32_t i = 0; i < 4000; i++)
		rows[i] = row(i + 1, "vm", (double)(i * 7919 % 4000), 0);
	top_model_init(&m);
	for (int i = 0; i < 20; i++)
		update(&m, rows, 4000);
	keys(&m, "ss");
	TAP_NEAR(m.rows[m.view[0]].fps, 3999, 0);
	TAP_NEAR(m.rows[m.view[3999]].fps, 0, 0);
	TAP_EQ(m.history[1234].nr, 20);
	top_model_free(&m);
}

int main(void)
{
	tap_run(sorts, "rows are sorted by each column, either way");
	tap_run(filters, "rows are filtered while the filter is typed");
	tap_run(keeps_selection, "the selected vGPU stays selected");
	tap_run(scrolls, "the selected row is on the screen, of any size");
	tap_run(remembers, "a vGPU has its history, and no other's");
	tap_run(edits, "settings are typed, applied or dropped");
	tap_run(edits_no_other, "settings that are typed for a vGPU are not set on another one");
	tap_run(pauses_and_helps, "keys pause, explain, change the pane and quit");
	tap_run(any_keys, "any keys leave a view that is whole");
	tap_run(graphs, "graphs show values, in blocks and in ASCII");
	tap_run(fitted, "text is cut and filled up to a width");
	tap_run(columns_fit, "columns fit any width, the important ones first");
	tap_run(lines, "a line has the values of its row");
	tap_run(thousands, "four thousand vGPUs are shown");
	return tap_done();
}
