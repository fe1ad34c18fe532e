// SPDX-License-Identifier: GPL-2.0-only
/* Writes the page of a report: tables, and plots as SVG. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report_data.h"
#include "report_html.h"
#include "vm_name.h"

#define COLOURS		8
#define SHOWN		COLOURS	/* vGPUs in plots, at most */
#define SLOTS_SHOWN	32
#define MARKS		16	/* decisions with a mark in plots, at most */
#define ROWS		200	/* of the table of decisions, at most */
#define POINTS_ROWS	40	/* of a plot's table of numbers, at most */

/* Places of a plot, in units of its viewBox. */
#define WIDTH		960.0
#define LEFT		58.0
#define RIGHT		14.0
#define TOP		14.0
#define BOTTOM		34.0

/**
 * struct page - a page that is being written
 * @f: where to
 * @r: its figures
 * @shown: indexes of the vGPUs in plots, those with the most engine time and frames
 * @nr_shown: number of them
 * @height: of the plot that is being written
 * @top: value at the upper edge of that plot
 */
struct page {
	FILE *f;
	const struct report *r;
	size_t shown[SHOWN];
	size_t nr_shown;
	double height;
	double top;
};

static void __attribute__((format(printf, 2, 3))) put(struct page *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(p->f, fmt, ap);
	va_end(ap);
}

/* Put a text that is not trusted. */
static void put_text(struct page *p, const struct trace_text *text)
{
	char clean[TRACE_TEXT + 1];

	text_clean(text->len ? text->at : "", text->len, clean, sizeof(clean));
	for (const char *c = clean; *c; c++)
		switch (*c) {
		case '&':
			fputs("&amp;", p->f);
			break;
		case '<':
			fputs("&lt;", p->f);
			break;
		case '>':
			fputs("&gt;", p->f);
			break;
		case '"':
			fputs("&quot;", p->f);
			break;
		case '\'':
			fputs("&#39;", p->f);
			break;
		default:
			fputc(*c, p->f);
		}
}

static void put_name(struct page *p, size_t vgpu)
{
	put_text(p, &p->r->vgpus[vgpu].name);
}

/* ---- the head ---- */

static const char style[] =
	":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--soft:#57606a;--grid:#d8dee4;\n"
	"--bad:#a40e26;--band:#8c959f55;--c0:#0066b3;--c1:#c2500a;--c2:#00805d;--c3:#a83279;\n"
	"--c4:#8a6500;--c5:#3f8fc9;--c6:#6639ba;--c7:#6e7781}\n"
	"@media(prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e6edf3;--soft:#a2abb5;\n"
	"--grid:#363c44;--bad:#ff8a8a;--band:#9aa4af44;--c0:#58b0f5;--c1:#ff9a57;--c2:#3ddbb0;\n"
	"--c3:#f093cb;--c4:#e8c04a;--c5:#a5d7ff;--c6:#bfa3ff;--c7:#b4bcc4}}\n"
	"body{background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;\n"
	"max-width:66rem;margin:1.5rem auto;padding:0 1rem}\n"
	"h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:0}\n"
	"p{margin:.3rem 0}.soft{color:var(--soft)}.bad{color:var(--bad);font-weight:600}\n"
	"figure,section{margin:2rem 0 0}\n"
	"svg{display:block;width:100%;height:auto;font:13px system-ui,sans-serif}\n"
	"svg text{fill:var(--soft)}\n"
	".wide{overflow-x:auto}table{border-collapse:collapse;margin:.8rem 0;font-size:.9rem}\n"
	"th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--grid);\n"
	"white-space:nowrap;font-variant-numeric:tabular-nums}\n"
	"th{color:var(--soft);font-weight:600;vertical-align:bottom}\n"
	"th:first-child,td:first-child,th.l,td.l{text-align:left}\n"
	"ul.key{list-style:none;padding:0;margin:.3rem 0;display:flex;flex-wrap:wrap;\n"
	"gap:.2rem 1.2rem;font-size:.9rem}\n"
	".key i{display:inline-block;width:1.4rem;height:.7rem;margin-right:.4rem;\n"
	"border-radius:2px}\n"
	".g{stroke:var(--grid)}.band{fill:var(--band)}\n"
	".mark{stroke:var(--fg);stroke-dasharray:1 3}\n"
	"svg text.m{fill:var(--fg);font-weight:600;paint-order:stroke;stroke:var(--bg);\n"
	"stroke-width:4px;stroke-linejoin:round}\n"
	".row{fill:var(--grid);fill-opacity:.45}summary{color:var(--soft);cursor:pointer}\n";

/* Colours of lines (l), areas (f) and keys (k). */
static void put_style(struct page *p)
{
	put(p, "<style>%s", style);
	for (int i = 0; i < COLOURS; i++)
		put(p, ".l%d{stroke:var(--c%d);fill:none;stroke-width:2}.d%d{stroke:var(--c%d);fill:none;stroke-width:1.5;stroke-dasharray:6 4}.f%d{fill:var(--c%d)}.k%d{background:var(--c%d)}\n",
		    i, i, i, i, i, i, i, i);
	put(p, ".other{fill:var(--soft)}.kother{background:var(--soft)}</style>\n");
}

static void put_date(struct page *p)
{
	time_t seconds = (time_t)(p->r->realtime_ns / 1000000000);
	char text[64] = "";
	struct tm tm;

	if (p->r->realtime_ns && gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	put(p, "<p>%s%s%.1f s, end: ", text, *text ? ", " : "", p->r->seconds);
	put_text(p, &p->r->ended);
	put(p, ". %zu vGPU%s. Times are by CLOCK_MONOTONIC, in seconds from the begin.</p>\n",
	    p->r->nr_vgpus, p->r->nr_vgpus == 1 ? "" : "s");
}

static void put_losses(struct page *p)
{
	if (!p->r->lost && !p->r->missed) {
		put(p, "<p class=\"soft\">No events were lost.</p>\n");
		return;
	}
	put(p, "<p class=\"bad\">%llu events were lost", (unsigned long long)p->r->lost);
	if (p->r->nr_gaps)
		put(p, ", in %zu gap%s, which plots show as grey bands", p->r->nr_gaps,
		    p->r->nr_gaps == 1 ? "" : "s");
	if (p->r->missed)
		put(p, "; the kernel missed %llu more, at times that are unknown",
		    (unsigned long long)p->r->missed);
	put(p, ". Figures of these times are too low.</p>\n");
}

static void put_head(struct page *p)
{
	put(p, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width\">\n"
	    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	    "<title>mgpu: report of a recording</title>\n");
	put_style(p);
	put(p, "</head>\n<body>\n<h1>How the VMs shared the GPU</h1>\n");
	put_date(p);
	put_losses(p);
}

/* ---- the table of vGPUs ---- */

static void put_number(struct page *p, double value, double factor, int digits)
{
	if (isfinite(value))
		put(p, "<td>%.*f</td>", digits, value * factor);
	else
		put(p, "<td>&ndash;</td>");
}

static void put_vgpu(struct page *p, const struct report_vgpu *v)
{
	put(p, "<tr><td>");
	put_text(p, &v->name);
	put(p, "</td>");
	put_number(p, (double)v->frames / p->r->seconds, 1, 1);
	put_number(p, report_frame_time(v, 0.50), 1e3, 1);
	put_number(p, report_frame_time(v, 0.95), 1e3, 1);
	put_number(p, report_frame_time(v, 0.99), 1e3, 1);
	put_number(p, report_frame_time(v, 1), 1e3, 1);
	put_number(p, v->share, 100, 1);
	put_number(p, v->throttled, 100, 1);
	put_number(p, v->waiting, 100, 1);
	put(p, "<td>%llu</td></tr>\n", (unsigned long long)v->preempted);
}

static void put_vgpus(struct page *p)
{
	put(p, "<div class=\"wide\"><table>\n<tr><th>vGPU</th><th>frames/s</th>\n"
	    "<th>frame time<br>median, ms</th><th>95 %%</th><th>99 %%</th><th>longest</th>\n"
	    "<th>GPU<br>share, %%</th><th>throttled,<br>%% of time</th>\n"
	    "<th>waiting,<br>%% of time</th><th>jobs<br>preempted</th></tr>\n");
	for (size_t i = 0; i < p->r->nr_vgpus; i++)
		put_vgpu(p, &p->r->vgpus[i]);
	put(p, "</table></div>\n");
}

/* ---- plots ---- */

static double x_of(const struct page *p, double seconds)
{
	return LEFT + seconds / p->r->seconds * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct page *p, double value)
{
	double part = value / p->top;

	return p->height - BOTTOM - fmin(fmax(part, 0), 1) * (p->height - TOP - BOTTOM);
}

static double bin_at(const struct page *p, double bin)
{
	return bin * p->r->seconds / (double)p->r->bins;
}

/* Return a step of an axis, 1, 2 or 5 times a power of ten, so that there are about @nr. */
static double step_of(double top, int nr)
{
	double step = pow(10, floor(log10(top / nr)));

	for (int i = 0; i < 2 && top / step > nr; i++)
		step *= i ? 2.5 : 2;
	return top / step > nr ? 2 * step : step;
}

static void put_key(struct page *p)
{
	put(p, "<ul class=\"key\">");
	for (size_t i = 0; i < p->nr_shown; i++) {
		put(p, "<li><i class=\"k%zu\"></i>", i);
		put_name(p, p->shown[i]);
		put(p, "</li>");
	}
	put(p, "</ul>\n");
}

static void begin_plot(struct page *p, const char *id, const char *title, const char *text,
		       double height)
{
	p->height = height;
	put(p, "<figure id=\"%s\"><figcaption><h2>%s</h2><p class=\"soft\">%s</p></figcaption>\n",
	    id, title, text);
	put_key(p);
	put(p, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-labelledby=\"%s-t %s-d\"><title id=\"%s-t\">%s</title><desc id=\"%s-d\">%s The table above, or that below the plot, has the numbers.</desc>\n",
	    WIDTH, height, id, id, id, title, id, text);
}

static void put_time_axis(struct page *p)
{
	double step = step_of(p->r->seconds, 10), y = p->height - BOTTOM;

	for (int i = 0; i * step <= p->r->seconds * 1.0001; i++)
		put(p, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.6g s</text>\n",
		    x_of(p, i * step), x_of(p, i * step), y, y + 5, x_of(p, i * step), y + 20,
		    i * step);
}

/* Draw the axes of a plot whose values go up to @top; labels are @factor times that. */
static void put_axes(struct page *p, double top, double factor, const char *unit)
{
	double step;

	top = top > 0 ? top : 1;
	step = step_of(top, 5);
	p->top = step * ceil(top / step * 0.9999);
	for (int i = 0; i * step <= p->top * 1.0001; i++)
		put(p, "<line class=\"g\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%.4g%s</text>\n",
		    LEFT, WIDTH - RIGHT, y_of(p, i * step), y_of(p, i * step), LEFT - 6,
		    y_of(p, i * step) + 4, i * step * factor, unit);
	put_time_axis(p);
}

/* Draw bands that are 1 wide or wider, for the gaps in each: a recording may have any number. */
static void put_gaps(struct page *p)
{
	double drawn = LEFT;

	for (size_t i = 0; i < p->r->nr_gaps; i++) {
		double x = x_of(p, p->r->gaps[i].from);
		double end = fmax(x_of(p, p->r->gaps[i].to), x + 1);

		x = fmax(x, drawn);
		if (end < x + 1)
			continue;
		put(p, "<rect class=\"band\" x=\"%.1f\" width=\"%.1f\" y=\"%.0f\" height=\"%.1f\"/>\n",
		    x, end - x, TOP, p->height - TOP - BOTTOM);
		drawn = end;
	}
}

/* Decisions that occur in every period have no marks. */
static bool has_mark(const struct report_decision *d)
{
	return !trace_text_is(&d->text, "launch") && !trace_text_is(&d->text, "resume");
}

static void put_marks(struct page *p)
{
	int nr = 0;

	for (size_t i = 0; i < p->r->nr_decisions && nr < MARKS; i++) {
		double x = x_of(p, p->r->decisions[i].at);

		if (!has_mark(&p->r->decisions[i]))
			continue;
		put(p, "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.1f\"/><text class=\"m\" x=\"%.1f\" y=\"%.0f\">%d</text>\n",
		    x, x, TOP, p->height - BOTTOM, x + 3, TOP + 10, ++nr);
	}
}

static void end_svg(struct page *p)
{
	put_gaps(p);
	put(p, "</svg>\n");
}

static double highest(const struct page *p, const enum report_series *series, size_t nr)
{
	double top = 0;

	for (size_t i = 0; i < p->nr_shown; i++)
		for (size_t j = 0; j < nr; j++)
			for (size_t bin = 0; bin < p->r->bins; bin++)
				top = fmax(top, p->r->vgpus[p->shown[i]].series[series[j]][bin]);
	return top;
}

/* A line through the middles of the points of time. */
static void put_line(struct page *p, size_t i, enum report_series series)
{
	const double *values = p->r->vgpus[p->shown[i]].series[series];

	put(p, "<path class=\"l%zu\" d=\"", i);
	for (size_t bin = 0; bin < p->r->bins; bin++)
		put(p, "%s%.1f %.1f", bin ? "L" : "M", x_of(p, bin_at(p, (double)bin + 0.5)),
		    y_of(p, values[bin]));
	put(p, "\"/>\n");
}

/* A dashed line of steps, where there is a value. */
static void put_steps(struct page *p, size_t i, enum report_series series)
{
	const double *values = p->r->vgpus[p->shown[i]].series[series];
	bool drawn = false;

	for (size_t bin = 0; bin < p->r->bins; bin++) {
		if (isnan(values[bin])) {
			if (drawn)
				put(p, "\"/>\n");
			drawn = false;
			continue;
		}
		if (!drawn)
			put(p, "<path class=\"d%zu\" d=\"M%.1f %.1f", i,
			    x_of(p, bin_at(p, (double)bin)), y_of(p, values[bin]));
		else
			put(p, "V%.1f", y_of(p, values[bin]));
		put(p, "H%.1f", x_of(p, bin_at(p, (double)bin + 1)));
		drawn = true;
	}
	if (drawn)
		put(p, "\"/>\n");
}

/* Put a table of a plot's numbers, for readers that cannot see the plot. */
static void put_points(struct page *p, enum report_series series, double factor, int digits)
{
	size_t step = (p->r->bins + POINTS_ROWS - 1) / POINTS_ROWS;

	put(p, "<details><summary>Numbers</summary><div class=\"wide\"><table><tr><th>from, s</th>");
	for (size_t i = 0; i < p->nr_shown; i++) {
		put(p, "<th>");
		put_name(p, p->shown[i]);
		put(p, "</th>");
	}
	put(p, "</tr>\n");
	for (size_t bin = 0; bin < p->r->bins; bin += step) {
		put(p, "<tr><td>%.2f</td>", bin_at(p, (double)bin));
		for (size_t i = 0; i < p->nr_shown; i++) {
			double sum = 0;
			size_t nr = 0;

			for (; nr < step && bin + nr < p->r->bins; nr++)
				sum += p->r->vgpus[p->shown[i]].series[series][bin + nr];
			put_number(p, sum / (double)nr, factor, digits);
		}
		put(p, "</tr>\n");
	}
	put(p, "</table></div></details>\n");
}

static void plot_fps(struct page *p)
{
	static const enum report_series both[] = { SERIES_FPS, SERIES_TARGET };
	static const enum report_series one[] = { SERIES_FPS };
	double top = highest(p, both, 2), fps = highest(p, one, 1);

	begin_plot(p, "fps", "Frame rate",
		   p->r->mgpud ? "Frames per second. Dashed: mgpud's target." : "Frames per second.",
		   280);
	/* a target far above the frame rates would flatten their lines */
	put_axes(p, fmin(top, 1.5 * fps), 1, "");
	for (size_t i = 0; i < p->nr_shown; i++) {
		put_steps(p, i, SERIES_TARGET);
		put_line(p, i, SERIES_FPS);
	}
	end_svg(p);
	put_points(p, SERIES_FPS, 1, 1);
	put(p, "</figure>\n");
}

static void plot_frame_times(struct page *p)
{
	double low = INFINITY, high = 0, from, decades, row = 30;
	size_t i;

	for (i = 0; i < p->nr_shown; i++) {
		const struct report_vgpu *v = &p->r->vgpus[p->shown[i]];

		low = fmin(low, report_frame_time(v, 0.50));
		high = fmax(high, report_frame_time(v, 1));
	}
	if (!(high > 0))
		return;
	from = floor(log10(fmax(low, 1e-6)) - 0.2);
	decades = fmax(ceil(log10(1.1 * high)), from + 1) - from;
	begin_plot(p, "times", "Frame times",
		   "From one frame to the next, ms, logarithmic. Bar: median to 99 %; line in it: 95 %; ring: the longest.",
		   TOP + BOTTOM + row * (double)p->nr_shown);
#define X_OF(seconds) (LEFT + (log10(seconds) - from) / decades * (WIDTH - LEFT - RIGHT))
	for (int d = 0; d <= (int)decades; d++)
		for (int n = 1; n < 10 && (d < (int)decades || n == 1); n++) {
			double at = n * pow(10, from + d);

			put(p, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\"/>",
			    X_OF(at), X_OF(at), TOP, p->height - BOTTOM);
			if (n == 1 || n == 2 || n == 5)
				/* The last one ends at the edge: it may exceed the margin. */
				put(p, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"%s\">%.6g</text>\n",
				    X_OF(at), p->height - BOTTOM + 18,
				    d == (int)decades ? "end" : "middle", at * 1e3);
		}
	for (i = 0; i < p->nr_shown; i++) {
		const struct report_vgpu *v = &p->r->vgpus[p->shown[i]];
		double y = TOP + row * ((double)i + 0.5), q50, q95, q99;

		if (!v->nr_times)
			continue;
		q50 = X_OF(report_frame_time(v, 0.50));
		q95 = X_OF(report_frame_time(v, 0.95));
		q99 = X_OF(report_frame_time(v, 0.99));
		put(p, "<rect class=\"f%zu\" x=\"%.1f\" width=\"%.1f\" y=\"%.1f\" height=\"12\" rx=\"2\"/>",
		    i, q50 - 1.5, q99 - q50 + 3, y - 6);
		put(p, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" style=\"stroke:var(--bg);stroke-width:2\"/>",
		    q95, q95, y - 6, y + 6);
		put(p, "<circle class=\"l%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n", i,
		    X_OF(report_frame_time(v, 1)), y);
	}
#undef X_OF
	put(p, "</svg></figure>\n");
}

static void put_area(struct page *p, size_t i, double *below)
{
	const double *values = p->r->vgpus[p->shown[i]].series[SERIES_SHARE];
	size_t bin;

	put(p, "<path class=\"f%zu\" fill-opacity=\".8\" d=\"M%.1f %.1f", i, x_of(p, 0),
	    y_of(p, 0));
	for (bin = 0; bin < p->r->bins; bin++)
		put(p, "V%.1fH%.1f", y_of(p, below[bin] + values[bin]),
		    x_of(p, bin_at(p, (double)bin + 1)));
	for (bin = p->r->bins; bin-- > 0;) {
		put(p, "V%.1fH%.1f", y_of(p, below[bin]), x_of(p, bin_at(p, (double)bin)));
		below[bin] += values[bin];
	}
	put(p, "Z\"/>\n");
}

static void plot_share(struct page *p)
{
	double below[REPORT_BINS] = { 0 };

	begin_plot(p, "share", "GPU share",
		   "Engine time of each vGPU, on top of each other, as a part of the engines' time. Dotted: decisions of mgpud, by their numbers in the table.",
		   300);
	put_axes(p, 1, 100, " %");
	for (size_t i = 0; i < p->nr_shown; i++)
		put_area(p, i, below);
	put_marks(p);
	end_svg(p);
	put_points(p, SERIES_SHARE, 100, 1);
	put(p, "</figure>\n");
}

/* The shares that mgpud limits, each by itself: dashed lines on top of each other say nothing. */
static void plot_targets(struct page *p)
{
	static const enum report_series both[] = { SERIES_SHARE, SERIES_SHARE_TARGET };

	if (!(highest(p, both + 1, 1) > 0))
		return;
	begin_plot(p, "targets", "Targets of the GPU share",
		   "Engine time of each vGPU, as a part of the engines' time. Dashed: mgpud's target.",
		   240);
	put_axes(p, highest(p, both, 2), 100, " %");
	for (size_t i = 0; i < p->nr_shown; i++) {
		put_steps(p, i, SERIES_SHARE_TARGET);
		put_line(p, i, SERIES_SHARE);
	}
	end_svg(p);
	put_points(p, SERIES_SHARE_TARGET, 100, 1);
	put(p, "</figure>\n");
}

static void plot_part(struct page *p, const char *id, const char *title, const char *text,
		      enum report_series series)
{
	begin_plot(p, id, title, text, 200);
	put_axes(p, highest(p, &series, 1), 100, " %");
	for (size_t i = 0; i < p->nr_shown; i++)
		put_line(p, i, series);
	end_svg(p);
	put_points(p, series, 100, 1);
	put(p, "</figure>\n");
}

static size_t colour_of(const struct page *p, size_t vgpu)
{
	for (size_t i = 0; i < p->nr_shown; i++)
		if (p->shown[i] == vgpu)
			return i;
	return SIZE_MAX;
}

static void put_slot(struct page *p, const struct report_slot *slot, double y, double height)
{
	put(p, "<rect class=\"row\" x=\"%.0f\" width=\"%.0f\" y=\"%.1f\" height=\"%.1f\"/>", LEFT,
	    WIDTH - LEFT - RIGHT, y, height);
	put(p, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 6, y + height - 5);
	put_text(p, &slot->name);
	put(p, "</text>\n");
	for (size_t bin = 0; bin < p->r->bins; bin++) {
		double part = fmin(slot->bins[bin], 1), x = x_of(p, bin_at(p, (double)bin));
		size_t colour = colour_of(p, slot->vgpu[bin]);

		if (part < 0.005)
			continue;
		if (colour == SIZE_MAX)
			put(p, "<rect class=\"other\"");
		else
			put(p, "<rect class=\"f%zu\"", colour);
		put(p, " x=\"%.1f\" width=\"%.1f\" y=\"%.1f\" height=\"%.1f\"/>", x,
		    x_of(p, bin_at(p, (double)bin + 1)) - x, y + height * (1 - part),
		    height * part);
	}
	put(p, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\" class=\"m\">%.0f %%</text>\n",
	    WIDTH - RIGHT - 4, y + height - 5, slot->used * 100);
}

static bool same_dev(const struct report_slot *a, const struct report_slot *b)
{
	return a->dev.len == b->dev.len &&
	       (!a->dev.len || !memcmp(a->dev.at, b->dev.at, a->dev.len));
}

/* Put the name of a device above its slots. */
static void put_dev(struct page *p, const struct report_slot *slot, double y)
{
	put(p, "<text x=\"%.0f\" y=\"%.1f\" class=\"m\">", LEFT, y);
	put_text(p, &slot->dev);
	put(p, "</text>\n");
}

static void plot_slots(struct page *p)
{
	size_t nr = p->r->nr_slots < SLOTS_SHOWN ? p->r->nr_slots : SLOTS_SHOWN, devs = 0, i;
	const struct report_slot *slots = p->r->slots;
	double row = 26, y = TOP;

	if (!nr)
		return;
	for (i = 0; i < nr; i++)
		devs += !i || !same_dev(&slots[i], &slots[i - 1]);
	begin_plot(p, "slots", "Slots",
		   "Height: the part of the time that a job was in the slot; colour: the vGPU whose jobs were in it longest. At the right: the whole recording.",
		   TOP + BOTTOM + row * (double)(nr + devs));
	for (i = 0; i < nr; i++) {
		if (!i || !same_dev(&slots[i], &slots[i - 1])) {
			y += row;
			put_dev(p, &slots[i], y - 8);
		}
		put_slot(p, &slots[i], y, row - 4);
		y += row;
	}
	put_time_axis(p);
	end_svg(p);
	if (nr < p->r->nr_slots)
		put(p, "<p class=\"soft\">%zu more slots are not shown.</p>\n",
		    p->r->nr_slots - nr);
	put(p, "<details><summary>Numbers</summary><table><tr><th>device</th><th class=\"l\">slot</th><th>used, %% of time</th></tr>\n");
	for (i = 0; i < nr; i++) {
		put(p, "<tr><td>");
		put_text(p, &slots[i].dev);
		put(p, "</td><td class=\"l\">");
		put_text(p, &slots[i].name);
		put(p, "</td>");
		put_number(p, slots[i].used, 100, 1);
		put(p, "</tr>\n");
	}
	put(p, "</table></details></figure>\n");
}

static void plot_preemptions(struct page *p)
{
	double below[REPORT_BINS] = { 0 }, top = 0, y;
	uint64_t preempted = 0;
	size_t i, bin;

	for (bin = 0; bin < p->r->bins; bin++) {
		double sum = 0;

		for (i = 0; i < p->nr_shown; i++)
			sum += p->r->vgpus[p->shown[i]].series[SERIES_PREEMPTED][bin];
		top = fmax(top, sum);
	}
	if (!(top > 0)) {
		for (i = 0; i < p->r->nr_vgpus; i++)
			preempted += p->r->vgpus[i].preempted;
		put(p, "<section><h2>Preemptions</h2><p class=\"soft\">No job%s was preempted.</p></section>\n",
		    preempted ? " of a vGPU in the plots" : "");
		return;
	}
	begin_plot(p, "preempted", "Preemptions",
		   "Jobs that were preempted, on top of each other.", 180);
	put_axes(p, top, 1, "");
	for (i = 0; i < p->nr_shown; i++)
		for (bin = 0; bin < p->r->bins; bin++) {
			double n = p->r->vgpus[p->shown[i]].series[SERIES_PREEMPTED][bin];
			double x = x_of(p, bin_at(p, (double)bin));

			if (!(n > 0))
				continue;
			y = y_of(p, below[bin] + n);
			put(p, "<rect class=\"f%zu\" x=\"%.1f\" width=\"%.1f\" y=\"%.1f\" height=\"%.1f\"/>\n",
			    i, x + 0.5, x_of(p, bin_at(p, (double)bin + 1)) - x - 1, y,
			    y_of(p, below[bin]) - y);
			below[bin] += n;
		}
	end_svg(p);
	put(p, "</figure>\n");
}

/* ---- tables ---- */

static void put_decisions(struct page *p)
{
	size_t rows = p->r->nr_decisions < ROWS ? p->r->nr_decisions : ROWS;
	int nr = 0;

	put(p, "<section id=\"decisions\"><h2>Decisions of mgpud</h2>\n");
	if (!p->r->nr_decisions) {
		put(p, "<p class=\"soft\">There are none in the recording.</p></section>\n");
		return;
	}
	put(p, "<div class=\"wide\"><table><tr><th>at, s</th><th>mark</th><th class=\"l\">decision</th><th>count</th></tr>\n");
	for (size_t i = 0; i < rows; i++) {
		const struct report_decision *d = &p->r->decisions[i];

		put(p, "<tr><td>%.2f</td><td>", d->at);
		if (has_mark(d) && nr < MARKS)
			put(p, "%d", ++nr);
		put(p, "</td><td class=\"l\">");
		put_text(p, &d->text);
		put(p, "</td><td>");
		if (d->count)
			put(p, "%llu", (unsigned long long)d->count);
		put(p, "</td></tr>\n");
	}
	put(p, "</table></div>\n");
	if (rows < p->r->nr_decisions)
		put(p, "<p class=\"soft\">%zu more are in the recording.</p>\n",
		    p->r->nr_decisions - rows);
	put(p, "</section>\n");
}

static void put_gap_table(struct page *p)
{
	size_t rows = p->r->nr_gaps < ROWS ? p->r->nr_gaps : ROWS;

	if (!rows)
		return;
	put(p, "<section id=\"lost\"><h2>Lost events</h2>\n<table><tr><th>from, s</th><th>to, s</th><th>events</th></tr>\n");
	for (size_t i = 0; i < rows; i++)
		put(p, "<tr><td>%.3f</td><td>%.3f</td><td>%llu</td></tr>\n", p->r->gaps[i].from,
		    p->r->gaps[i].to, (unsigned long long)p->r->gaps[i].lost);
	put(p, "</table></section>\n");
}

/* ---- the page ---- */

static bool goes_before(const struct report_vgpu *a, const struct report_vgpu *b)
{
	return a->engine_s != b->engine_s ? a->engine_s > b->engine_s : a->frames > b->frames;
}

/* Choose the vGPUs of the plots, and put them in the order of their ids. */
static void choose(struct page *p)
{
	size_t nr = p->r->nr_vgpus, i, j, last;

	for (i = 0; i < nr; i++) {
		if (p->nr_shown < SHOWN) {
			p->shown[p->nr_shown++] = i;
			continue;
		}
		for (last = 0, j = 1; j < SHOWN; j++)
			if (goes_before(&p->r->vgpus[p->shown[last]], &p->r->vgpus[p->shown[j]]))
				last = j;
		if (!goes_before(&p->r->vgpus[i], &p->r->vgpus[p->shown[last]]))
			continue;
		memmove(p->shown + last, p->shown + last + 1,
			(SHOWN - last - 1) * sizeof(*p->shown));
		p->shown[SHOWN - 1] = i;
	}
}

int report_html(const void *report, FILE *to)
{
	struct page p = { .f = to, .r = report };

	choose(&p);
	put_head(&p);
	put_vgpus(&p);
	if (p.nr_shown < p.r->nr_vgpus)
		put(&p, "<p class=\"soft\">Plots have the %d vGPUs with the most engine time.</p>\n",
		    SHOWN);
	plot_fps(&p);
	plot_frame_times(&p);
	plot_share(&p);
	plot_targets(&p);
	plot_part(&p, "throttled", "Throttled",
		  "The part of the time that a frame was held back, for a limit or a target of the frame rate.",
		  SERIES_THROTTLED);
	plot_part(&p, "waiting", "Waiting", "The part of the time that a job waited for a slot.",
		  SERIES_WAITING);
	plot_slots(&p);
	plot_preemptions(&p);
	put_decisions(&p);
	put_gap_table(&p);
	put(&p, "</body>\n</html>\n");
	return ferror(to) ? -1 : 0;
}
