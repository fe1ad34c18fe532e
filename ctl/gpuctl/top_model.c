// SPDX-License-Identifier: GPL-2.0-only
/* The contents of the screen of gpuctl top, and the effects of keys. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "gpuctl.h"
#include "top_model.h"

/* ---- columns ---- */

/**
 * struct column - a column of the screen
 * @title: its title
 * @width: columns of the terminal
 * @right: aligned to the right
 * @rank: columns of a high rank are dropped first
 * @sort: rows can be sorted by it; name of that
 * @up: sorted from the least value on
 */
static const struct column {
	const char *title;
	size_t width;
	bool right;
	int rank;
	const char *sort;
	bool up;
} columns[TOP_COLUMNS] = {
	[TOP_ID] = { "ID", 4, true, 3, "id", true },
	[TOP_NAME] = { "VM", 10, false, 0, "name", true },
	[TOP_UUID] = { "UUID", 8, false, 6, NULL, false },
	[TOP_STATE] = { "STATE", 6, false, 9, NULL, false },
	[TOP_FPS] = { "FPS", 6, true, 0, "fps", false },
	[TOP_TARGET] = { "TARGET", 6, true, 1, NULL, false },
	[TOP_FLOOR] = { "FLOOR", 6, true, 8, NULL, false },
	[TOP_LIMIT] = { "LIMIT", 6, true, 4, NULL, false },
	[TOP_P50] = { "P50-MS", 6, true, 8, NULL, false },
	[TOP_P99] = { "P99-MS", 6, true, 5, "p99", false },
	[TOP_GPU] = { "GPU%", 5, true, 0, "gpu", false },
	[TOP_GPU_LIMIT] = { "GPU-LIM", 7, true, 8, NULL, false },
	[TOP_CPU] = { "CPU%", 5, true, 2, "cpu", false },
	[TOP_HELD] = { "HELD%", 5, true, 3, "held", false },
	[TOP_MEM] = { "MEM", 9, true, 4, "mem", false },
	[TOP_WEIGHT] = { "WEIGHT", 6, true, 10, NULL, false },
	[TOP_GRAPH] = { "FPS HISTORY", 12, false, 7, NULL, false },
};

#define GAP		2	/* columns of the terminal between two columns */
#define NAME_MAX_WIDTH	32
#define GRAPH_MAX_WIDTH	40
#define NO_RANK		11

static size_t all_widths(const size_t widths[TOP_COLUMNS])
{
	size_t sum = 0, i;

	for (i = 0; i < TOP_COLUMNS; i++)
		sum += widths[i] ? widths[i] + (sum ? GAP : 0) : 0;
	return sum;
}

/* Widen a column by what is left of the terminal, up to @most. */
static void widen(size_t widths[TOP_COLUMNS], enum top_column column, size_t width, size_t most)
{
	size_t used = all_widths(widths);

	if (!widths[column] || used >= width)
		return;
	widths[column] += width - used;
	if (widths[column] > most)
		widths[column] = most;
}

void top_columns(size_t width, size_t widths[TOP_COLUMNS])
{
	int rank;
	size_t i;

	for (rank = NO_RANK; rank > 0; rank--) {
		for (i = 0; i < TOP_COLUMNS; i++)
			widths[i] = columns[i].rank < rank ? columns[i].width : 0;
		if (all_widths(widths) <= width)
			break;
	}
	widen(widths, TOP_GRAPH, width, GRAPH_MAX_WIDTH);
	widen(widths, TOP_NAME, width, NAME_MAX_WIDTH);
}

const char *top_sort_name(enum top_column column)
{
	return columns[column].sort;
}

/* ---- text ---- */

char *top_fit(const char *text, size_t width, bool right, bool utf8, char *out, size_t size)
{
	size_t used = 0, n, len = 0, rest = strlen(text), pad;
	mbstate_t state = { 0 };
	wchar_t c;
	int w;

	*out = '\0';
	for (; rest; text += n, rest -= n) {
		n = utf8 ? mbrtowc(&c, text, rest, &state) : 1;
		w = n && n <= rest ? (utf8 ? wcwidth(c) : 1) : -1;
		if (w < 0 || (!utf8 && (*text < ' ' || *text > '~'))) {
			memset(&state, 0, sizeof(state));
			n = n && n <= rest ? n : 1;
			w = 1;
			c = L'?';
		} else if (!utf8) {
			c = (wchar_t)*text;
		}
		if (used + (size_t)w > width || len + n + 1 > size)
			break;
		if (c == L'?')
			out[len++] = '?';
		else
			memcpy(out + len, text, n), len += n;
		used += (size_t)w;
	}
	pad = width - used < size - len ? width - used : size - len - 1;
	if (right) {
		memmove(out + pad, out, len);
		memset(out, ' ', pad);
	} else {
		memset(out + len, ' ', pad);
	}
	out[len + pad] = '\0';
	return out;
}

/* Append a cell and the gap before it. */
static void add_cell(char text[TOP_LINE], const char *cell, size_t width, bool right, bool utf8)
{
	char fitted[4 * 64];
	size_t len = strlen(text);

	top_fit(cell, width < 63 ? width : 63, right, utf8, fitted, sizeof(fitted));
	snprintf(text + len, TOP_LINE - len, "%*s%s", len ? GAP : 0, "", fitted);
}

char *top_titles(const struct top_model *m, const size_t widths[TOP_COLUMNS], char text[TOP_LINE])
{
	size_t i;

	*text = '\0';
	for (i = 0; i < TOP_COLUMNS; i++) {
		char title[TOP_CELL];
		bool sorted = i == m->sort;

		/* the sorted one has a mark, if it fits */
		snprintf(title, sizeof(title), "%s%s", columns[i].title,
			 sorted && strlen(columns[i].title) < widths[i] ?
			 columns[i].up != m->reverse ? "^" : "v" : "");
		if (widths[i])
			add_cell(text, title, widths[i], columns[i].right, false);
	}
	return text;
}

static const char *number(char buf[TOP_CELL], double value, double factor)
{
	value *= factor;
	if (!isfinite(value))
		return "-";
	snprintf(buf, TOP_CELL, "%.*f", value < 9999.5 ? 1 : 0, value);
	return buf;
}

static const char *state_of(const struct top_row *row)
{
	return row->quarantine ? "hung" : row->open ? "open" : "closed";
}

/*
 * A limit in force, with "!" behind a stale target: rounded, so that the column has room for it.
 * The line above the graphs has the exact limit.
 */
static const char *limit(char buf[TOP_CELL], double value, int digits, const char *unit, bool stale)
{
	const char *mark = stale ? "!" : "";

	if (!value)
		return "none";
	if (value < 1000)
		snprintf(buf, TOP_CELL, "%.*g%s%s", digits, value, unit, mark);
	else
		snprintf(buf, TOP_CELL, "%.0f%s%s", value, unit, mark);
	return buf;
}

/* Text of a cell, but for the graph. */
static const char *cell(const struct top_row *row, enum top_column column, char buf[TOP_CELL])
{
	switch (column) {
	case TOP_ID:
		snprintf(buf, TOP_CELL, "%u", row->id);
		return buf;
	case TOP_NAME:
		return row->name;
	case TOP_UUID:
		return row->uuid;
	case TOP_STATE:
		return state_of(row);
	case TOP_FPS:
		return number(buf, row->fps, 1);
	case TOP_TARGET:
		return number(buf, row->target, 1);
	case TOP_FLOOR:
		return number(buf, row->floor, 1);
	case TOP_LIMIT:
		return limit(buf, row->fps_limit / 1e3, 4, "", row->fps_stale);
	case TOP_P50:
		return number(buf, row->p50, 1e-3);
	case TOP_P99:
		return number(buf, row->p99, 1e-3);
	case TOP_GPU:
		return number(buf, row->gpu, 100);
	case TOP_GPU_LIMIT:
		return limit(buf, row->gpu_limit / 1e4, 3, "%", row->gpu_stale);
	case TOP_CPU:
		return number(buf, row->cpu, 100);
	case TOP_HELD:
		return number(buf, row->held, 100);
	case TOP_MEM:
		return out_bytes(buf, TOP_CELL, row->mem);
	case TOP_WEIGHT:
		snprintf(buf, TOP_CELL, "%u", row->weight);
		return buf;
	case TOP_GRAPH:
	case TOP_COLUMNS:
		break;
	}
	return "";
}

char *top_line(const struct top_row *row, const struct top_history *history,
	       const size_t widths[TOP_COLUMNS], bool utf8, char text[TOP_LINE])
{
	char buf[TOP_CELL], graph[3 * GRAPH_MAX_WIDTH + 1];
	size_t i;

	*text = '\0';
	for (i = 0; i < TOP_COLUMNS; i++) {
		if (!widths[i])
			continue;
		if (i == TOP_GRAPH)
			top_graph(history->fps, history->nr,
				  top_graph_max(history->fps, history->nr), widths[i], 0, 1,
				  utf8, graph);
		add_cell(text, i == TOP_GRAPH ? graph : cell(row, i, buf), widths[i],
			 columns[i].right, utf8);
	}
	return text;
}

/* ---- graphs ---- */

double top_graph_max(const float *values, size_t nr)
{
	static const double steps[] = { 1, 2, 5 };
	double most = 0, ten = 1;
	size_t i;

	for (i = 0; i < nr; i++)
		if (isfinite(values[i]) && values[i] > most)
			most = values[i];
	for (;; ten *= 10)
		for (i = 0; i < 3; i++)
			if (steps[i] * ten >= most)
				return steps[i] * ten;
}

char *top_graph(const float *values, size_t nr, double max, size_t width, size_t line,
		size_t lines, bool utf8, char *out)
{
	static const char *const blocks[] = {
		" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█",
	};
	static const char *const ascii[] = { " ", ".", ":", "#" };
	const char *const *levels = utf8 ? blocks : ascii;
	size_t most = utf8 ? 8 : 3, i;

	*out = '\0';
	for (i = 0; i < width; i++) {
		size_t behind = width - i;	/* 1 for the last value */
		double value = behind <= nr ? values[nr - behind] : NAN;
		double level;

		if (!(value > 0)) {	/* nor NAN */
			strcat(out, " ");
			continue;
		}
		level = ceil((value > max ? max : value) / max * (double)(lines * most)) -
			(double)(line * most);
		strcat(out, levels[level < 0 ? 0 : level > (double)most ? most : (size_t)level]);
	}
	return out;
}

/* ---- view ---- */

void top_model_init(struct top_model *m)
{
	memset(m, 0, sizeof(*m));
	m->page = 1;
}

void top_model_free(struct top_model *m)
{
	free(m->rows);
	free(m->history);
	free(m->view);
	top_model_init(m);
}

static bool passes(const struct top_model *m, const struct top_row *row)
{
	return strcasestr(row->name, m->filter) || strcasestr(row->uuid, m->filter) ||
	       strcasestr(row->dev, m->filter) || strcasestr(row->type, m->filter) ||
	       strcasestr(state_of(row), m->filter);
}

static double sort_value(const struct top_row *row, enum top_column column)
{
	switch (column) {
	case TOP_FPS:
		return row->fps;
	case TOP_P99:
		return row->p99;
	case TOP_GPU:
		return row->gpu;
	case TOP_CPU:
		return row->cpu;
	case TOP_HELD:
		return row->held;
	case TOP_MEM:
		return (double)row->mem;
	default:
		return row->id;
	}
}

/* Unknown values are at the end in either order; equal ones are in the order of IDs. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct top_model *m = arg;
	const struct top_row *x = &m->rows[*(const size_t *)a], *y = &m->rows[*(const size_t *)b];
	double p = sort_value(x, m->sort), q = sort_value(y, m->sort);
	int order = (p > q) - (p < q);

	if (m->sort == TOP_NAME) {
		order = strcasecmp(x->name, y->name);
		/* without a name */
		if (order && (!strcmp(x->name, "-") || !strcmp(y->name, "-")))
			return strcmp(x->name, "-") ? -1 : 1;
	} else if (isnan(p) != isnan(q)) {
		return isnan(p) ? 1 : -1;
	}
	if (!order)
		return (x->id > y->id) - (x->id < y->id);
	return columns[m->sort].up == m->reverse ? -order : order;
}

/* Move the window so that the selected row is in it. */
static void scroll(struct top_model *m)
{
	if (m->at < m->first)
		m->first = m->at;
	if (m->at >= m->first + m->page)
		m->first = m->at - m->page + 1;
	/* no empty lines while there are rows above */
	if (m->first + m->page > m->nr_view)
		m->first = m->nr_view > m->page ? m->nr_view - m->page : 0;
}

static void select_at(struct top_model *m, size_t at)
{
	m->at = !m->nr_view ? 0 : at < m->nr_view ? at : m->nr_view - 1;
	if (m->nr_view)
		strcpy(m->selected, m->rows[m->view[m->at]].uuid);
	else
		*m->selected = '\0';
	scroll(m);
}

/*
 * Filter and sort; the selected vGPU stays selected, or else its place. Settings that are typed
 * are for the vGPU that was selected, and not for another one in its place.
 */
static void look(struct top_model *m)
{
	size_t i;

	m->nr_view = 0;
	for (i = 0; i < m->nr; i++)
		if (passes(m, &m->rows[i]))
			m->view[m->nr_view++] = i;
	if (m->nr_view)
		qsort_r(m->view, m->nr_view, sizeof(*m->view), compare, m);
	for (i = 0; i < m->nr_view; i++)
		if (!strcmp(m->rows[m->view[i]].uuid, m->selected))
			break;
	if (i == m->nr_view && m->mode == TOP_EDIT) {
		m->mode = TOP_LIST;
		top_model_said(m, "the vGPU is not listed any more: nothing was set");
	}
	select_at(m, i < m->nr_view ? i : m->at);
}

void top_history_add(struct top_history *h, double fps, double gpu)
{
	if (h->nr == TOP_HISTORY) {
		memmove(h->fps, h->fps + 1, sizeof(h->fps) - sizeof(h->fps[0]));
		memmove(h->gpu, h->gpu + 1, sizeof(h->gpu) - sizeof(h->gpu[0]));
		h->nr--;
	}
	h->fps[h->nr] = (float)fps;
	h->gpu[h->nr++] = (float)gpu;
}

int top_model_update(struct top_model *m, struct top_row *rows, size_t nr)
{
	struct top_history *history = calloc(nr + 1, sizeof(*history));
	size_t *view = calloc(nr + 1, sizeof(*view));
	size_t i, old = 0, nr_old = m->nr;

	free(m->rows);
	m->rows = rows;
	m->nr = nr;
	if (!history || !view) {
		free(history);
		free(view);
		free(m->history);
		m->history = NULL;
		m->nr = 0;
		m->nr_view = 0;
		return -ENOMEM;
	}
	for (i = 0; i < nr; i++) {
		while (old < nr_old && m->history[old].id < rows[i].id)
			old++;
		if (old < nr_old && m->history[old].id == rows[i].id &&
		    !strcmp(m->history[old].uuid, rows[i].uuid))
			history[i] = m->history[old];
		history[i].id = rows[i].id;
		strcpy(history[i].uuid, rows[i].uuid);
		top_history_add(&history[i], rows[i].fps, rows[i].gpu);
	}
	free(m->history);
	free(m->view);
	m->history = history;
	m->view = view;
	look(m);
	return 0;
}

void top_model_fit(struct top_model *m, size_t page)
{
	m->page = page ? page : 1;
	scroll(m);
}

const struct top_row *top_model_selected(const struct top_model *m)
{
	return m->nr_view ? &m->rows[m->view[m->at]] : NULL;
}

const struct top_history *top_model_history(const struct top_model *m, size_t row)
{
	return &m->history[row];
}

void top_model_said(struct top_model *m, const char *error)
{
	m->bad = error;
	if (error)
		snprintf(m->said, sizeof(m->said), "%s", error);
	else
		snprintf(m->said, sizeof(m->said), "set: %s", m->input);
}

/* ---- keys ---- */

static void sort_by_next(struct top_model *m, bool back)
{
	do
		m->sort = (m->sort + (back ? TOP_COLUMNS - 1 : 1)) % TOP_COLUMNS;
	while (!columns[m->sort].sort);
	m->reverse = false;
	look(m);
}

/* Append a character to the line, as UTF-8, if it fits. */
static void type(struct top_model *m, uint32_t c)
{
	size_t len = strlen(m->input);
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	if (c < ' ' || c == 0x7f || c > 0x10ffff || len + n >= sizeof(m->input))
		return;
	m->input[len + n] = '\0';
	for (size_t i = n; i-- > 1; c >>= 6)
		m->input[len + i] = (char)(0x80 | (c & 0x3f));
	m->input[len] = (char)(leads[n] | c);
}

static void erase(struct top_model *m)
{
	size_t len = strlen(m->input);

	while (len && (m->input[len - 1] & 0xc0) == 0x80)
		len--;
	m->input[len ? len - 1 : 0] = '\0';
}

static enum top_action input_key(struct top_model *m, uint32_t key)
{
	bool filter = m->mode == TOP_FILTER;

	switch (key) {
	case TOP_KEY_ENTER:
		m->mode = TOP_LIST;
		return filter || !*m->input ? TOP_REDRAW : TOP_APPLY;
	case TOP_KEY_ESCAPE:
		m->mode = TOP_LIST;
		*m->input = '\0';
		break;
	case TOP_KEY_BACKSPACE:
		erase(m);
		break;
	default:
		type(m, key);
	}
	if (filter) {
		strcpy(m->filter, m->input);
		look(m);
	}
	return TOP_REDRAW;
}

/* Begin a line with some text. Without a vGPU there is nothing to set. */
static void begin(struct top_model *m, enum top_mode mode, const char *text)
{
	*m->said = '\0';
	if (mode == TOP_EDIT && !m->nr_view)
		return;
	m->mode = mode;
	snprintf(m->input, sizeof(m->input), "%s", text);
}

static void move(struct top_model *m, uint32_t key)
{
	size_t at = m->at;

	if (key == TOP_KEY_UP || key == 'k')
		at = at ? at - 1 : 0;
	else if (key == TOP_KEY_DOWN || key == 'j')
		at++;
	else if (key == TOP_KEY_PAGE_UP)
		at = at > m->page ? at - m->page : 0;
	else if (key == TOP_KEY_PAGE_DOWN)
		at += m->page;
	else
		at = key == TOP_KEY_HOME ? 0 : SIZE_MAX;
	select_at(m, at);
}

static enum top_action list_key(struct top_model *m, uint32_t key)
{
	switch (key) {
	case 'q':
		return TOP_QUIT;
	case '?':
	case 'h':
		m->mode = TOP_HELP;
		break;
	case TOP_KEY_UP:
	case TOP_KEY_DOWN:
	case TOP_KEY_PAGE_UP:
	case TOP_KEY_PAGE_DOWN:
	case TOP_KEY_HOME:
	case TOP_KEY_END:
	case 'j':
	case 'k':
		move(m, key);
		break;
	case 's':
	case 'S':
		sort_by_next(m, key == 'S');
		break;
	case 'r':
		m->reverse = !m->reverse;
		look(m);
		break;
	case ' ':
		m->paused = !m->paused;
		break;
	case 'c':
		m->pane = (m->pane + 1) % (TOP_NO_PANE + 1);
		break;
	case '/':
		begin(m, TOP_FILTER, m->filter);
		break;
	case 'e':
	case TOP_KEY_ENTER:
		begin(m, TOP_EDIT, "");
		break;
	case 'f':
		begin(m, TOP_EDIT, "fps ");
		break;
	case 'g':
		begin(m, TOP_EDIT, "gpu-limit ");
		break;
	case 'w':
		begin(m, TOP_EDIT, "weight ");
		break;
	case TOP_KEY_ESCAPE:
		*m->filter = '\0';
		*m->said = '\0';
		look(m);
		break;
	default:
		return TOP_NOTHING;
	}
	return TOP_REDRAW;
}

enum top_action top_model_key(struct top_model *m, uint32_t key)
{
	switch (m->mode) {
	case TOP_FILTER:
	case TOP_EDIT:
		return input_key(m, key);
	case TOP_HELP:
		m->mode = TOP_LIST;
		return key == 'q' ? TOP_QUIT : TOP_REDRAW;
	case TOP_LIST:
		break;
	}
	return list_key(m, key);
}
