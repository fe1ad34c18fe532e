// SPDX-License-Identifier: GPL-2.0-only
/*
 * The screen of gpuctl top: reads samples and keys, and draws what top_model.c holds.
 *
 * A refresh takes the dumps of sample_read(), whatever the number of vGPUs, and a request for
 * each row that is on the screen, several in a datagram: dumps have no frame times.
 */
#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <json-c/json.h>
#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpuctl.h"
#include "top_model.h"
#include "top_sample.h"
#include "top_screen.h"

#define ESCAPE_MS	25	/* until an escape character is a key of its own */
#define DEVS_MAX	8	/* devices that have a line */
#define PANE_LINES	7
#define PANE_FROM	20	/* lines of a terminal that has the pane */

enum { PAIR_BAD = 1, PAIR_STALE, PAIR_GOOD, PAIR_TITLE };

/**
 * struct screen - the screen
 * @mgpu: the module
 * @model: what is shown
 * @now: the last sample
 * @names: names of its vGPUs
 * @seen: vGPUs that were on the screen at the last refresh, with their frame times so far
 * @nr_seen: number of those
 * @devs: history of the first devices, by the engine time of their vGPUs
 * @utf8: the terminal shows UTF-8
 */
struct screen {
	struct mgpu *mgpu;
	struct top_model model;
	struct sample now;
	struct names_cache names;
	struct mgpu_vgpu_info *seen;
	size_t nr_seen;
	struct top_history devs[DEVS_MAX];
	bool utf8;
};

/* ---- reading ---- */

static double dev_share(const struct screen *s, const struct mgpu_dev_info *dev)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < s->model.nr; i++)
		if (!strcmp(s->model.rows[i].dev, dev->name) && isfinite(s->model.rows[i].gpu))
			sum += s->model.rows[i].gpu;
	return sum;
}

static void record_devs(struct screen *s)
{
	size_t i;

	for (i = 0; i < s->now.nr_devs && i < DEVS_MAX; i++) {
		const struct mgpu_dev_info *dev = &s->now.devs[i];
		struct top_history *h = &s->devs[i];

		if (h->id != dev->id || strcmp(h->uuid, "dev") != 0)
			*h = (struct top_history){ .id = dev->id, .uuid = "dev" };
		top_history_add(h, NAN, dev_share(s, dev));
	}
}

static void fill_row(struct top_row *row, const struct screen *s, const struct sample *before,
		     size_t i)
{
	const struct mgpu_vgpu_info *vgpu = &s->now.vgpus[i];
	bool stale = control_is_stale(&s->now.control, vgpu), target;
	struct rates r;

	get_rates(&r, &s->now, before, i);
	*row = (struct top_row){
		.id = vgpu->id, .open = vgpu->open, .quarantine = vgpu->quarantine,
		.weight = vgpu->weight, .fps = r.fps, .target = r.target, .floor = r.floor,
		.granted = r.granted, .gpu = r.gpu, .cpu = r.cpu, .held = r.held,
		.p50 = NAN, .p99 = NAN, .mem = vgpu->mem_used,
		.mem_limit = vgpu->mem_limit,
	};
	strcpy(row->uuid, vgpu->uuid);
	strcpy(row->dev, vgpu->dev_name);
	strcpy(row->type, vgpu->type);
	strcpy(row->name, names_shown(&s->names.entries[i].names));
	/* without mgpud the module has what is in force */
	if (!r.told && vgpu->fps_target)
		row->target = vgpu->fps_target / 1e3;
	target = out_target_holds(vgpu->fps_limit, vgpu->fps_target);
	row->fps_limit = target ? vgpu->fps_target : vgpu->fps_limit;
	row->fps_stale = target && stale;
	target = out_target_holds(vgpu->gpu_limit, vgpu->gpu_target);
	row->gpu_limit = target ? vgpu->gpu_target : vgpu->gpu_limit;
	row->gpu_stale = target && stale;
}

static const struct mgpu_vgpu_info *find_seen(const struct screen *s,
					      const struct mgpu_vgpu_info *vgpu)
{
	size_t i;

	for (i = 0; i < s->nr_seen; i++)
		if (s->seen[i].id == vgpu->id && !strcmp(s->seen[i].uuid, vgpu->uuid))
			return &s->seen[i];
	return NULL;
}

/* Percentiles of the frames since the last refresh; unknown if a counter fell. */
static void fill_percentiles(struct top_row *row, const struct mgpu_vgpu_info *before,
			     const struct mgpu_vgpu_info *vgpu)
{
	uint64_t hist[MGPU_HIST_BUCKETS];
	size_t i;

	if (!before || !mgpu_has(before, MGPU_A_VGPU_FRAME_INTERVAL_HIST) ||
	    !mgpu_has(vgpu, MGPU_A_VGPU_FRAME_INTERVAL_HIST))
		return;
	for (i = 0; i < MGPU_HIST_BUCKETS; i++) {
		if (vgpu->frame_interval_hist[i] < before->frame_interval_hist[i])
			return;
		hist[i] = vgpu->frame_interval_hist[i] - before->frame_interval_hist[i];
	}
	row->p50 = mgpu_hist_quantile(hist, 0.5);
	row->p99 = mgpu_hist_quantile(hist, 0.99);
}

/* Read the frame times of the vGPUs that are on the screen. A vGPU that is gone has none. */
static int read_frames(struct screen *s, struct top_row *rows, struct mgpu_error *err)
{
	const struct top_model *m = &s->model;
	struct mgpu_vgpu_info *seen = calloc(m->page, sizeof(*seen));
	const struct mgpu_vgpu_info *vgpu;
	size_t i, nr = 0;
	int ret;

	if (!seen)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	for (i = m->first; i < m->nr_view && i < m->first + m->page; i++) {
		vgpu = sample_vgpu(&s->now, m->rows[m->view[i]].id);
		if (vgpu)
			seen[nr++] = *vgpu;
	}
	ret = mgpu_vgpu_hists(s->mgpu, seen, nr, err);
	for (i = 0; !ret && i < nr; i++) {
		vgpu = sample_vgpu(&s->now, seen[i].id);
		fill_percentiles(&rows[vgpu - s->now.vgpus], find_seen(s, &seen[i]), &seen[i]);
	}
	free(s->seen);
	s->seen = seen;
	s->nr_seen = nr;
	return ret;
}

static int refresh_rows(struct screen *s, struct mgpu_error *err)
{
	struct sample before = s->now;
	struct top_row *rows;
	size_t i;
	int ret;

	ret = sample_read(&s->now, s->mgpu, err);
	if (!ret)
		ret = names_cache_update(&s->names, s->now.vgpus, s->now.nr, err);
	rows = ret ? NULL : calloc(s->now.nr + 1, sizeof(*rows));
	if (!ret && !rows)
		ret = mgpu_fail(err, -ENOMEM, "out of memory");
	for (i = 0; !ret && i < s->now.nr; i++)
		fill_row(&rows[i], s, &before, i);
	if (!ret)
		ret = read_frames(s, rows, err);
	sample_free(&before);
	if (ret) {
		free(rows);
		return ret;
	}
	if (top_model_update(&s->model, rows, s->now.nr))
		return mgpu_fail(err, -ENOMEM, "out of memory");
	record_devs(s);
	return 0;
}

/* ---- drawing ---- */

__attribute__((format(printf, 3, 4)))
static void print_line(int y, attr_t attributes, const char *fmt, ...)
{
	char text[TOP_LINE], fitted[4 * TOP_LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (y < 0 || y >= LINES)
		return;
	attrset(attributes);
	mvaddstr(y, 0, top_fit(text, (size_t)COLS, false, MB_CUR_MAX > 1, fitted,
			       sizeof(fitted)));
	attrset(A_NORMAL);
}

static attr_t pair(int number)
{
	return has_colors() && out_colours() ? (attr_t)COLOR_PAIR(number) : 0;
}

static void draw_summary(const struct screen *s)
{
	const struct top_model *m = &s->model;
	struct json_object *allocator;
	char time[OUT_CELL], why[OUT_CELL], mgpud[OUT_CELL + 80];
	size_t open = 0, i;

	for (i = 0; i < m->nr; i++)
		open += m->rows[i].open;
	if (s->now.control.state && json_object_object_get_ex(s->now.control.state, "allocator",
							      &allocator))
		snprintf(mgpud, sizeof(mgpud), "allocator %.64s",
			 json_object_get_string(allocator));
	else
		control_why(&s->now.control, mgpud, sizeof(mgpud));
	if (s->now.control.state && s->now.control.late)
		snprintf(mgpud, sizeof(mgpud), "%.*s: targets are stale", (int)sizeof(why) - 1,
			 control_why(&s->now.control, why, sizeof(why)));
	out_time(time, sizeof(time));
	print_line(0, A_BOLD, "%.8s  %zu vGPUs, %zu open  %s  by %s%s%s%s%s", time + 11, m->nr,
		   open, mgpud, top_sort_name(m->sort), m->reverse ? " reversed" : "",
		   *m->filter ? "  filter: " : "", m->filter, m->paused ? "  PAUSED" : "");
}

/* Lines of devices from @y on; returns the line below them. */
static int draw_devs(const struct screen *s, int y)
{
	char graph[3 * TOP_HISTORY + 1];
	size_t i;

	for (i = 0; i < s->now.nr_devs && i < DEVS_MAX; i++) {
		const struct mgpu_dev_info *dev = &s->now.devs[i];
		const struct top_history *h = &s->devs[i];
		size_t width = COLS < 100 ? 16 : 40;

		print_line(y++, 0, "%-14s GPU %5.1f%% |%s| %s, %u of %u wait for %u engine%s",
			   dev->name, 100 * dev_share(s, dev),
			   top_graph(h->gpu, h->nr, 1, width, 0, 1, s->utf8, graph),
			   dev->policy, dev->waiting, dev->vgpus, dev->engines,
			   dev->engines == 1 ? "" : "s");
	}
	if (i < s->now.nr_devs)
		print_line(y++, 0, "and %zu more devices", s->now.nr_devs - i);
	return y;
}

/* Trouble is shown in colour, or bold without colours. */
static attr_t row_attributes(const struct top_row *row, bool selected)
{
	attr_t attributes = selected ? A_REVERSE : 0;

	if (row->quarantine || row->granted < row->floor)
		attributes |= pair(PAIR_BAD) | A_BOLD;
	else if (row->fps_stale || row->gpu_stale)
		attributes |= pair(PAIR_STALE);
	else if (!row->open)
		attributes |= A_DIM;
	return attributes;
}

static void draw_rows(struct screen *s, int y, int end)
{
	struct top_model *m = &s->model;
	size_t widths[TOP_COLUMNS], i;
	char text[TOP_LINE];

	top_columns((size_t)COLS, widths);
	print_line(y++, A_REVERSE | pair(PAIR_TITLE), "%s", top_titles(m, widths, text));
	top_model_fit(m, end > y ? (size_t)(end - y) : 1);
	for (i = m->first; i < m->nr_view && i < m->first + m->page; i++) {
		size_t at = m->view[i];

		print_line(y++, row_attributes(&m->rows[at], i == m->at), "%s",
			   top_line(&m->rows[at], top_model_history(m, at), widths, s->utf8,
				    text));
	}
	if (!m->nr)
		print_line(y, 0, "There are no vGPUs: 'gpuctl vgpu create' creates some.");
	else if (!m->nr_view)
		print_line(y, 0, "No vGPU has '%s' in its name, UUID, device, type or state: Esc shows all.",
			   m->filter);
}

/* Two graphs side by side, frames per second and engine time. */
static void draw_graphs(const struct screen *s, const struct top_row *row, int y, int lines)
{
	const struct top_history *h =
		top_model_history(&s->model, (size_t)(row - s->model.rows));
	char fps[3 * TOP_HISTORY + 1], gpu[3 * TOP_HISTORY + 1];
	size_t width = COLS > 36 ? (size_t)(COLS - 18) / 2 : 9;
	double max = top_graph_max(h->fps, h->nr);
	int i;

	if (width > TOP_HISTORY)
		width = TOP_HISTORY;
	for (i = 0; i < lines; i++) {
		size_t line = (size_t)(lines - 1 - i);

		top_graph(h->fps, h->nr, max, width, line, (size_t)lines, s->utf8, fps);
		top_graph(h->gpu, h->nr, 1, width, line, (size_t)lines, s->utf8, gpu);
		if (!i)
			print_line(y + i, 0, "%5g |%s|  100%% |%s|", max, fps, gpu);
		else
			print_line(y + i, 0, "%5s |%s|  %4s |%s|", i == lines - 1 ? "fps" : "",
				   fps, i == lines - 1 ? "GPU" : "", gpu);
	}
}

static void draw_contexts(const struct screen *s, const struct top_row *row, int y, int lines)
{
	char slots[OUT_CELL], done[OUT_CELL], clean[VM_NAME_LEN];
	int drawn = 0;
	size_t i;

	for (i = 0; i < s->now.nr_ctxs && drawn < lines - 1; i++) {
		const struct mgpu_ctx *ctx = &s->now.ctxs[i];
		double part = out_progress(ctx);

		if (ctx->vgpu_id != row->id)
			continue;
		if (!drawn)
			print_line(y, A_UNDERLINE, "%10s  %-9s  %-12s  %5s  %5s  %6s  %s", "CTX",
				   "STATE", "OP", "SLOTS", "DONE%", "QUEUED", "NAME");
		if (isfinite(part))
			snprintf(done, sizeof(done), "%.1f", part * 100);
		else
			strcpy(done, "-");
		vm_name_clean(ctx->name, strlen(ctx->name), clean);
		print_line(y + ++drawn, 0, "%10u  %-9s  %-12s  %5s  %5s  %6u  %s", ctx->id,
			   out_state(ctx), *ctx->op ? ctx->op : "-",
			   out_slots(slots, sizeof(slots), ctx), done, ctx->queued, clean);
	}
	if (!drawn)
		print_line(y, 0, "This vGPU has no compute contexts.");
}

static void draw_pane(const struct screen *s, int y)
{
	const struct top_row *row = top_model_selected(&s->model);
	char used[OUT_CELL], most[OUT_CELL], share[OUT_CELL], fps[OUT_CELL];

	if (!row)
		return;
	print_line(y, A_BOLD, "%s  %s  %s on %s  weight %u  fps at most %s  GPU at most %s  memory %s of %s",
		   row->name, row->uuid, row->type, row->dev, row->weight,
		   row->fps_limit ? out_fps(fps, sizeof(fps), row->fps_limit) : "any",
		   row->gpu_limit ? out_share(share, sizeof(share), row->gpu_limit) : "any",
		   out_bytes(used, sizeof(used), row->mem),
		   row->mem_limit ? out_bytes(most, sizeof(most), row->mem_limit) : "any");
	if (s->model.pane == TOP_GRAPHS)
		draw_graphs(s, row, y + 1, PANE_LINES - 2);
	else
		draw_contexts(s, row, y + 1, PANE_LINES - 2);
}

/* Print a line that is typed; the cursor stays behind it. */
static void print_prompt(const char *what, const char *of, const char *input)
{
	char text[TOP_LINE];

	snprintf(text, sizeof(text), "%s%s: %s", what, of, input);
	attrset(A_BOLD);
	mvaddstr(LINES - 1, 0, text);
	attrset(A_NORMAL);
	clrtoeol();
}

/* The last line: what is typed, what a command said, or the keys. */
static void draw_footer(const struct screen *s)
{
	const struct top_model *m = &s->model;
	const struct top_row *row = top_model_selected(m);

	curs_set(m->mode == TOP_EDIT || m->mode == TOP_FILTER);
	if (m->mode == TOP_EDIT && row) {
		print_prompt("set ", strcmp(row->name, "-") ? row->name : row->uuid, m->input);
	} else if (m->mode == TOP_FILTER) {
		print_prompt("filter", "", m->input);
	} else if (*m->said) {
		print_line(LINES - 1, m->bad ? pair(PAIR_BAD) | A_BOLD : pair(PAIR_GOOD), "%s",
			   m->said);
	} else {
		print_line(LINES - 1, A_DIM,
			   "q quit  ? help  s sort  r reverse  / filter  space pause  f w g e set  c contexts");
	}
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"gpuctl top",
		"",
		"  q             quit",
		"  up down j k   select a vGPU; also page up, page down, home, end",
		"  s S           sort by the next or the previous column",
		"  r             sort the other way round",
		"  /             filter by name, UUID, device, type or state; Esc shows all",
		"  space         pause, and go on",
		"  f w g         set the fps limit, the weight or the GPU limit of the vGPU",
		"  e enter       set anything: words as those of 'gpuctl vgpu set'",
		"  c             graphs, contexts or nothing below the list",
		"",
		"FPS frames shown per second; TARGET what the controller allocated; LIMIT what",
		"is in force, with ! if no controller updates it; P50 and P99 time between two",
		"frames of the last interval, ms; GPU% part of the engines; CPU% part of the",
		"CPUs for VMs; HELD% part of the time in which a frame was held back.",
		"",
		"Any key goes back.",
	};
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		print_line((int)i, i ? 0 : A_BOLD, "%s", lines[i]);
}

static void draw(struct screen *s)
{
	int y, lines = LINES, end = lines - 1;

	erase();
	if (s->model.mode == TOP_HELP) {
		curs_set(0);
		draw_help();
		refresh();
		return;
	}
	draw_summary(s);
	y = draw_devs(s, 1);
	if (lines >= PANE_FROM && s->model.pane != TOP_NO_PANE) {
		end -= PANE_LINES - 1;
		draw_pane(s, end);
	}
	draw_rows(s, y, end);
	draw_footer(s);
	refresh();
}

/* ---- keys ---- */

static uint32_t translate(wint_t key, bool function)
{
	static const struct {
		wint_t theirs;
		uint32_t ours;
	} keys[] = {
		{ KEY_UP, TOP_KEY_UP }, { KEY_DOWN, TOP_KEY_DOWN },
		{ KEY_PPAGE, TOP_KEY_PAGE_UP }, { KEY_NPAGE, TOP_KEY_PAGE_DOWN },
		{ KEY_HOME, TOP_KEY_HOME }, { KEY_END, TOP_KEY_END },
		{ KEY_ENTER, TOP_KEY_ENTER }, { KEY_BACKSPACE, TOP_KEY_BACKSPACE },
	};
	size_t i;

	if (!function)
		return key == '\n' || key == '\r' ? TOP_KEY_ENTER :
		       key == '\033' ? TOP_KEY_ESCAPE :
		       key == 0x7f || key == '\b' ? TOP_KEY_BACKSPACE : (uint32_t)key;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].theirs == key)
			return keys[i].ours;
	return 0;
}

static void apply(struct screen *s)
{
	const struct top_row *row = top_model_selected(&s->model);
	struct mgpu_error err;

	if (!row)
		return;
	top_model_said(&s->model, vgpu_set_text(s->mgpu, row->uuid, row->name, s->model.input,
						&err) ? err.text : NULL);
}

/* Take the keys that were pressed; false: to quit. */
static bool take_keys(struct screen *s)
{
	enum top_action action;
	wint_t key;
	int kind;

	while ((kind = get_wch(&key)) != ERR) {
		/* not a key: the terminal has another size, for which the caller draws */
		if (kind == KEY_CODE_YES && key == KEY_RESIZE)
			continue;
		action = top_model_key(&s->model, translate(key, kind == KEY_CODE_YES));
		if (action == TOP_APPLY)
			apply(s);
		if (action == TOP_QUIT)
			return false;
	}
	return true;
}

/* ---- running ---- */

bool top_can_draw(void)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
	       strcmp(term, "dumb") != 0;
}

static void colours(void)
{
	if (!out_colours() || start_color() == ERR)
		return;
	use_default_colors();
	init_pair(PAIR_BAD, COLOR_RED, -1);
	init_pair(PAIR_STALE, COLOR_YELLOW, -1);
	init_pair(PAIR_GOOD, COLOR_GREEN, -1);
	init_pair(PAIR_TITLE, COLOR_CYAN, -1);
}

static double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Wait for a key, or until a time; a paused screen waits for keys only. */
static int wait_for_key(const struct screen *s, double until, struct mgpu_error *err)
{
	double rest = fmax(until - seconds_now(), 0);
	struct timespec timeout = {
		.tv_sec = (time_t)rest,
		.tv_nsec = (long)((rest - floor(rest)) * 1e9),
	};

	return wait_or_stop(STDIN_FILENO, s->model.paused ? NULL : &timeout, err);
}

static int show(const struct gpuctl *ctl, struct screen *s, struct mgpu_error *err)
{
	uint32_t shown = 0;
	double next;
	int ret;

	/* rates need two samples: the first screen has none */
	ret = refresh_rows(s, err);
	next = seconds_now() + ctl->seconds;
	while (!ret && !gpuctl_stop) {
		draw(s);
		if (ctl->count && shown >= ctl->count)
			break;
		ret = wait_for_key(s, next, err);
		/* a terminal that hung up is always ready, and has no keys */
		if (ret || gpuctl_stop || !isatty(STDIN_FILENO) || !take_keys(s))
			break;
		if (s->model.paused || seconds_now() < next)
			continue;
		ret = refresh_rows(s, err);
		next = seconds_now() + ctl->seconds;
		shown++;
	}
	return ret;
}

int top_draw(const struct gpuctl *ctl, struct mgpu *mgpu, struct mgpu_error *err)
{
	struct screen s = { .mgpu = mgpu, .utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8") };
	SCREEN *terminal = newterm(NULL, stdout, stdin);
	int ret;

	if (!terminal)
		return mgpu_fail(err, -ENOTTY, "the terminal %s cannot be used: try 'gpuctl top --batch'",
				 getenv("TERM"));
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	colours();
	top_model_init(&s.model);
	ret = show(ctl, &s, err);
	endwin();
	delscreen(terminal);
	sample_free(&s.now);
	names_cache_free(&s.names);
	free(s.seen);
	top_model_free(&s.model);
	return ret;
}
