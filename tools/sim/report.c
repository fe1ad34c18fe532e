// SPDX-License-Identifier: GPL-2.0-only
/* Results as a table, JSON, CSV and a plot. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
#include <json-c/json.h>

#include "sim.h"

/* ---- statistics ---- */

struct sim_stat sim_stat(const double *first, size_t stride, size_t n)
{
	struct sim_stat s = { NAN, NAN, 0 };
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		if (isnan(first[i * stride]))
			continue;
		sum += first[i * stride];
		s.n++;
	}
	if (s.n)
		s.mean = sum / (double)s.n;
	for (size_t i = 0; i < n; i++) {
		double d = first[i * stride] - s.mean;

		if (!isnan(d))
			squares += d * d;
	}
	if (s.n > 1)
		s.std = sqrt(squares / (double)(s.n - 1));
	return s;
}

#define PERIOD_STRIDE	(sizeof(struct sim_period) / sizeof(double))
_Static_assert(sizeof(struct sim_period) % sizeof(double) == 0, "a stride of doubles");

static struct sim_stat stat_of(const struct sim_run *run, const double *field)
{
	return sim_stat(field, PERIOD_STRIDE, run->nr);
}

struct sim_stat sim_stat_fds(const struct sim_run *run)
{
	return stat_of(run, &run->periods[0].fds);
}

/* Mean and standard deviation of f in periods that end so long after a VM came. */
static struct sim_stat stat_since(const struct sim_run *run, double from_s, double to_s)
{
	struct sim_stat s = { NAN, NAN, 0 };
	double *f = calloc(run->nr, sizeof(*f));

	for (size_t i = 0; f && i < run->nr; i++) {
		const struct sim_period *p = &run->periods[i];

		f[i] = p->since_s > from_s && p->since_s <= to_s ? p->fds : NAN;
	}
	if (f)
		s = sim_stat(f, 1, run->nr);
	free(f);
	return s;
}

struct sim_stat sim_stat_first(const struct sim_run *run)
{
	return stat_since(run, 0, SIM_FIRST_S);
}

double sim_average(const struct sim_run *run, size_t at)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = at + 1; i-- > 0 && n < SIM_WINDOW;) {
		if (isnan(run->periods[i].fds))
			continue;
		sum += run->periods[i].fds;
		n++;
	}
	return n == SIM_WINDOW && !isnan(run->periods[at].fds) ? sum / SIM_WINDOW : NAN;
}

static struct sim_stat stat_average(const struct sim_run *run)
{
	struct sim_stat s = { NAN, NAN, 0 };
	double *a = calloc(run->nr, sizeof(*a));

	if (!a)
		return s;
	for (size_t i = 0; i < run->nr; i++)
		a[i] = sim_average(run, i);
	s = sim_stat(a, 1, run->nr);
	free(a);
	return s;
}

static const struct sim_run *clairvoyant(const struct sim_run *runs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(runs[i].allocator, SIM_CLAIRVOYANT))
			return &runs[i];
	return NULL;
}

/* By how much its f is below another's in the same periods, relative to that. */
static double distance(const struct sim_run *run, const struct sim_run *to)
{
	double mine = 0, other = 0;

	for (size_t i = 0; i < run->nr; i++) {
		double f = to ? to->periods[i].fds : run->periods[i].bound;

		if (isnan(run->periods[i].fds) || isnan(f))
			continue;
		mine += run->periods[i].fds;
		other += f;
	}
	return (other - mine) / fabs(other);
}

struct vm_result {
	struct sim_stat fps;
	double cpu_share, gpu_share;
	size_t present, below;
};

static struct vm_result vm_result(const struct sim *s, const struct sim_run *run, size_t j)
{
	struct vm_result r = { .fps = { NAN, NAN, 0 } };
	double *fps = calloc(run->nr, sizeof(*fps));

	if (!fps)
		return r;
	for (size_t i = 0; i < run->nr; i++) {
		const struct sim_point *p = &run->points[i * s->nr_vms + j];

		fps[i] = p->present ? p->fps : NAN;
		if (!p->present)
			continue;
		r.present++;
		r.below += p->below;
		r.cpu_share += p->cpu_share;
		r.gpu_share += p->gpu_share;
	}
	r.fps = sim_stat(fps, 1, run->nr);
	if (r.present) {
		r.cpu_share /= (double)r.present;
		r.gpu_share /= (double)r.present;
	}
	free(fps);
	return r;
}

static size_t periods_short(const struct sim_run *run)
{
	size_t n = 0;

	for (size_t i = 0; i < run->nr; i++)
		n += run->periods[i].nr_short > 0;
	return n;
}

static double total(const struct sim_run *runs, size_t nr, bool cpu)
{
	double sum = 0;

	for (size_t i = 0; i < nr; i++)
		sum += cpu ? runs[i].cpu_s : runs[i].simulated_s;
	return sum;
}

/* ---- text ---- */

static void percent(char *text, size_t len, double x)
{
	if (isfinite(x))
		snprintf(text, len, "%.2f %%", x * 100);
	else
		snprintf(text, len, "-");
}

static void fixed(char *text, size_t len, double x)
{
	if (isfinite(x))
		snprintf(text, len, "%.3f", x);
	else
		snprintf(text, len, "-");
}

static void print_machine(const struct sim *s)
{
	struct machine_frame first = { 0 }, mean, std;

	printf("%s: %s\n", s->name, s->summary);
	printf("%u CPUs", s->machine.cpus);
	if (s->machine.host > 0)
		printf(" (%.2f for the host)", s->machine.host);
	printf(", %u engine%s (%s%s), %.0f s in periods of %u ms, seed %llu\n",
	       s->machine.engines, s->machine.engines > 1 ? "s" : "",
	       s->machine.order ? s->machine.order : "weighted",
	       s->machine.engines_on_cpus ? ", on the CPUs" : "", s->seconds,
	       s->period_ms, (unsigned long long)s->seed);
	printf("beta %g, lambda %g, %u iterations\n\n", s->param.fds.beta,
	       s->param.fds.lambda, s->param.iterations);
	puts("VM            CPU ms/frame      engine ms/frame   as a ratio to the first");
	puts("              mean      sd      mean      sd      CPU      engine");
	for (size_t j = 0; j < s->nr_vms; j++) {
		costs_describe(s->costs, j, &mean, &std);
		if (!j)
			first = mean;
		printf("%-10.10s %7.3f %7.3f   %7.3f %7.3f   %6.2f      %6.2f   %s\n",
		       s->vms[j].name, mean.cpu_ns * 1e-6, std.cpu_ns * 1e-6,
		       mean.engine_ns * 1e-6, std.engine_ns * 1e-6,
		       mean.cpu_ns / first.cpu_ns, mean.engine_ns / first.engine_ns,
		       s->vms[j].what);
	}
	putchar('\n');
}

static void print_vms(const struct sim *s, const struct sim_run *run)
{
	for (size_t j = 0; j < s->nr_vms; j++) {
		struct vm_result r = vm_result(s, run, j);

		printf("%-13s %-10.10s %8.2f %7.2f   %6.1f %%  %6.1f %%", j ? "" : run->allocator,
		       s->vms[j].name, r.fps.mean, r.fps.std, r.cpu_share * 100,
		       r.gpu_share * 100);
		if (s->vms[j].sla.floor > 0)
			printf("   below %g in %zu of %zu", s->vms[j].sla.floor, r.below,
			       r.present);
		putchar('\n');
	}
}

void sim_print(const struct sim *s, const struct sim_run *runs, size_t nr)
{
	const struct sim_run *best = clairvoyant(runs, nr);
	double cpu = total(runs, nr, true), simulated = total(runs, nr, false);
	char a[32], b[32], c[32], d[32];

	print_machine(s);
	puts("allocator     VM         frames/s           CPU       GPU share");
	puts("                             mean      sd");
	for (size_t i = 0; i < nr; i++)
		print_vms(s, &runs[i]);
	puts("\nallocator     f: mean      sd  of the mean of 30  below clairvoyant  below bound    best f  first 5 s  without f");
	for (size_t i = 0; i < nr; i++) {
		struct sim_stat f = sim_stat_fds(&runs[i]);

		fixed(a, sizeof(a), f.mean);
		fixed(b, sizeof(b), f.std);
		fixed(d, sizeof(d), stat_average(&runs[i]).std);
		percent(c, sizeof(c), best ? distance(&runs[i], best) : NAN);
		printf("%-13s %8s %7s %12s %18s", runs[i].allocator, a, b, d, c);
		percent(c, sizeof(c), distance(&runs[i], NULL));
		fixed(a, sizeof(a), stat_of(&runs[i], &runs[i].periods[0].best).mean);
		fixed(b, sizeof(b), sim_stat_first(&runs[i]).mean);
		printf(" %12s %9s %10s %10zu", c, a, b, runs[i].nr - f.n);
		if (periods_short(&runs[i]))
			printf("   promises not granted in %zu", periods_short(&runs[i]));
		putchar('\n');
	}
	fixed(a, sizeof(a), nr ? stat_of(&runs[0], &runs[0].periods[0].bound).mean : NAN);
	fixed(b, sizeof(b), nr ? stat_of(&runs[0], &runs[0].periods[0].bound).std : NAN);
	printf("%-13s %8s %7s\n", "(bound)", a, b);
	printf("\n%.0f s simulated in %.3f s of CPU time: %.0f times real time\n",
	       simulated, cpu, simulated / fmax(cpu, 1e-9));
}

/* ---- JSON ---- */

static void put(struct json_object *o, const char *key, double v)
{
	json_object_object_add(o, key, isfinite(v) ? json_object_new_double(v) : NULL);
}

static void put_int(struct json_object *o, const char *key, size_t v)
{
	json_object_object_add(o, key, json_object_new_int64((int64_t)v));
}

static void put_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static struct json_object *vms_json(const struct sim *s)
{
	struct json_object *list = json_object_new_array();
	struct machine_frame mean, std;

	for (size_t j = 0; j < s->nr_vms; j++) {
		const struct sim_vm *v = &s->vms[j];
		struct json_object *o = json_object_new_object();

		costs_describe(s->costs, j, &mean, &std);
		put_text(o, "name", v->name);
		put_text(o, "what", v->what);
		put_int(o, "threads", v->machine.threads);
		put_int(o, "depth", v->machine.depth);
		put(o, "rate", v->machine.rate);
		put_int(o, "weight", v->machine.weight);
		put(o, "floor", v->sla.floor);
		put(o, "ceiling", v->sla.ceiling);
		put(o, "cpu_s_per_frame", mean.cpu_ns * 1e-9);
		put(o, "cpu_s_per_frame_std", std.cpu_ns * 1e-9);
		put(o, "gpu_s_per_frame", mean.engine_ns * 1e-9);
		put(o, "gpu_s_per_frame_std", std.engine_ns * 1e-9);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *run_json(const struct sim *s, const struct sim_run *run,
				    const struct sim_run *best)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();
	struct sim_stat f = sim_stat_fds(run), average = stat_average(run);

	put_text(o, "policy", run->allocator);
	put(o, "mean", f.mean);
	put(o, "std", f.std);
	put(o, "average_mean", average.mean);
	put(o, "average_std", average.std);
	put(o, "best_mean", stat_of(run, &run->periods[0].best).mean);
	put(o, "first_mean", sim_stat_first(run).mean);
	put(o, "bound_mean", stat_of(run, &run->periods[0].bound).mean);
	put(o, "below_clairvoyant", best ? distance(run, best) : NAN);
	put(o, "below_bound", distance(run, NULL));
	put_int(o, "periods", run->nr);
	put_int(o, "periods_without_fds", run->nr - f.n);
	put_int(o, "periods_not_granted", periods_short(run));
	put(o, "cpu_use", (run->use.cpu_ns + run->use.engine_cpu_ns) * 1e-9 /
	    (run->simulated_s * s->machine.cpus));
	put(o, "engine_use", run->use.engine_ns * 1e-9 /
	    (run->simulated_s * s->machine.engines));
	put(o, "cpu_s", run->cpu_s);
	for (size_t j = 0; j < s->nr_vms; j++) {
		struct json_object *vm = json_object_new_object();
		struct vm_result r = vm_result(s, run, j);

		put_text(vm, "name", s->vms[j].name);
		put(vm, "fps", r.fps.mean);
		put(vm, "fps_std", r.fps.std);
		put(vm, "cpu_share", r.cpu_share);
		put(vm, "gpu_share", r.gpu_share);
		put_int(vm, "periods_present", r.present);
		put_int(vm, "periods_below_floor", r.below);
		json_object_array_add(list, vm);
	}
	json_object_object_add(o, "vms", list);
	return o;
}

int sim_write_json(const struct sim *s, const struct sim_run *runs, size_t nr,
		   const char *path)
{
	const struct sim_run *best = clairvoyant(runs, nr);
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();
	struct json_object *brief = json_object_new_array();
	double cpu = total(runs, nr, true), simulated = total(runs, nr, false);
	FILE *f = fopen(path, "we");
	int ret = 0;

	put_text(o, "scenario", s->name);
	put(o, "seconds", s->seconds);
	put_int(o, "period_ms", s->period_ms);
	put_int(o, "iterations", s->param.iterations);
	put(o, "beta", s->param.fds.beta);
	put(o, "lambda", s->param.fds.lambda);
	json_object_object_add(o, "seed", json_object_new_uint64(s->seed));
	put_int(o, "cpus", s->machine.cpus);
	put(o, "host_cpus", s->machine.host);
	put_int(o, "engines", s->machine.engines);
	put_text(o, "order", s->machine.order ? s->machine.order : "weighted");
	json_object_object_add(o, "engines_on_cpus",
			       json_object_new_boolean(s->machine.engines_on_cpus));
	json_object_object_add(o, "vms", vms_json(s));
	for (size_t i = 0; i < nr; i++) {
		struct json_object *b = json_object_new_object();

		json_object_array_add(list, run_json(s, &runs[i], best));
		put_text(b, "policy", runs[i].allocator);
		put(b, "mean", sim_stat_fds(&runs[i]).mean);
		put(b, "std", sim_stat_fds(&runs[i]).std);
		json_object_array_add(brief, b);
	}
	json_object_object_add(o, "runs", list);
	/* the same in brief, under the scenario's name */
	json_object_object_add(o, s->name, brief);
	put(o, "simulated_s", simulated);
	put(o, "cpu_s", cpu);
	put(o, "times_real_time", simulated / fmax(cpu, 1e-9));
	if (!f || fprintf(f, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
						JSON_C_TO_STRING_NOSLASHESCAPE)) < 0)
		ret = -errno;
	if (f && fclose(f) && !ret)
		ret = -errno;
	json_object_put(o);
	return ret;
}

/* ---- CSV ---- */

static void put_csv(FILE *f, double v)
{
	if (isfinite(v))
		fprintf(f, ",%.6g", v);
	else
		fputc(',', f);
}

int sim_write_csv(const struct sim *s, const struct sim_run *runs, size_t nr,
		  const char *path)
{
	FILE *f = fopen(path, "we");
	bool failed;

	if (!f)
		return -errno;
	fputs("policy,end_s,f,average,best,bound,not_granted", f);
	for (size_t j = 0; j < s->nr_vms; j++)
		fprintf(f, ",%s_fps,%s_cpu_share,%s_gpu_share,%s_limit", s->vms[j].name,
			s->vms[j].name, s->vms[j].name, s->vms[j].name);
	fputc('\n', f);
	for (size_t r = 0; r < nr; r++) {
		for (size_t i = 0; i < runs[r].nr; i++) {
			const struct sim_period *p = &runs[r].periods[i];

			fprintf(f, "%s,%.3f", runs[r].allocator, p->end_s);
			put_csv(f, p->fds);
			put_csv(f, sim_average(&runs[r], i));
			put_csv(f, p->best);
			put_csv(f, p->bound);
			fprintf(f, ",%zu", p->nr_short);
			for (size_t j = 0; j < s->nr_vms; j++) {
				const struct sim_point *v = &runs[r].points[i * s->nr_vms + j];

				put_csv(f, v->fps);
				put_csv(f, v->cpu_share);
				put_csv(f, v->gpu_share);
				put_csv(f, v->limit);
			}
			fputc('\n', f);
		}
	}
	failed = ferror(f);
	return fclose(f) || failed ? -EIO : 0;
}

/* ---- plot ---- */

static const char *const colours[] = {
	"#c0392b", "#2471a3", "#1e8449", "#7d3c98", "#b9770e", "#117a65", "#5d6d7e",
};

#define NR_COLOURS	(sizeof(colours) / sizeof(colours[0]))
#define PLOT_VMS	8	/* curves that one can still tell apart */
#define PLOT_RATES	220	/* height of the rates under an allocator, pixels */
#define PLOT_FAIRNESS	420	/* of the fairness over time */
#define PLOT_SINCE	320	/* of that since a VM came */
#define PLOT_SINCE_S	10	/* how long */

/* The mean f under each allocator in each of the first seconds after a VM came. */
static void plot_since(const struct sim_run *runs, size_t nr, double height, FILE *f)
{
	for (size_t r = 0; r < nr; r++) {
		fprintf(f, "$s%zu << EOD\n", r);
		for (int s = 1; s <= PLOT_SINCE_S; s++)
			fprintf(f, "%d,%g\n", s, stat_since(&runs[r], s - 1, s).mean);
		fputs("EOD\n", f);
	}
	fprintf(f, "set size 1,%g\nset origin 0,0\n"
		"set title 'Fairness in the first seconds after a VM has come (mean)'\n"
		"set xlabel 'seconds since a VM came'\nset xrange [1:%d]\nset xtics 1\n"
		"set yrange [*:*]\nplot ", height, PLOT_SINCE_S);
	for (size_t r = 0; r < nr; r++)
		fprintf(f, "%s$s%zu using 1:2 with linespoints pointtype 7 pointsize 0.8 linewidth 2.5 linecolor rgb '%s' title '%s'",
			r ? ", " : "", r, colours[r % NR_COLOURS], runs[r].allocator);
	fputc('\n', f);
}

/* The rates under each allocator, and below them f; where VMs come, f since then, too. */
static void gnuplot(const struct sim *s, const struct sim_run *runs, size_t nr,
		    const char *path, FILE *f)
{
	size_t vms = s->nr_vms < PLOT_VMS ? s->nr_vms : PLOT_VMS;
	bool come = nr && sim_stat_first(&runs[0]).n;
	double since = come ? PLOT_SINCE : 0;
	double all = PLOT_RATES * (double)nr + PLOT_FAIRNESS + since;

	fprintf(f, "set terminal pngcairo size 1280,%.0f font 'DejaVu Sans,11' background '#ffffff'\n",
		all);
	fprintf(f, "set output '");
	for (const char *c = path; *c; c++)
		fprintf(f, "%s%c", *c == '\'' ? "'" : "", *c);
	fprintf(f, "'\nset encoding utf8\nset datafile separator comma\n");
	/* the data in the script, so that nothing else is written */
	for (size_t r = 0; r < nr; r++) {
		fprintf(f, "$p%zu << EOD\n", r);
		for (size_t i = 0; i < runs[r].nr; i++) {
			const struct sim_period *p = &runs[r].periods[i];

			fprintf(f, "%.3f,%g,%g,%g", p->end_s, p->fds,
				sim_average(&runs[r], i), p->bound);
			for (size_t j = 0; j < vms; j++)
				fprintf(f, ",%g", runs[r].points[i * s->nr_vms + j].fps);
			fputc('\n', f);
		}
		fputs("EOD\n", f);
	}
	fprintf(f, "set multiplot\nset lmargin 10\nset rmargin 24\n"
		"set grid ytics back linetype 1 linewidth 1 linecolor rgb '#dddddd'\n"
		"set key outside right top Left reverse samplen 2 noenhanced\n"
		"set tics nomirror\nset border 3\nset title noenhanced offset 0,-0.5\n"
		"set ylabel 'frames/s'\nset yrange [0:*]\n");
	for (size_t r = 0; r < nr; r++) {
		double height = PLOT_RATES / all;

		fprintf(f, "set size 1,%g\nset origin 0,%g\nset title '%s: frame rates'\nplot ",
			height, 1 - height * (double)(r + 1), runs[r].allocator);
		for (size_t j = 0; j < vms; j++)
			fprintf(f, "%s$p%zu using 1:%zu with lines linewidth 1.5 linecolor rgb '%s' title '%s'",
				j ? ", " : "", r, 5 + j, colours[j % NR_COLOURS],
				s->vms[j].name);
		fputc('\n', f);
	}
	fprintf(f, "set size 1,%g\nset origin 0,%g\n"
		"set title 'Fairness of each period (points) and the mean of the last %d (lines)'\n"
		"set ylabel 'fairness f on dominant shares'\nset xlabel 'time in seconds'\n"
		"set yrange [*:*]\nset offsets graph 0, 0, graph 0.05, graph 0.05\nplot ",
		PLOT_FAIRNESS / all, since / all, SIM_WINDOW);
	for (size_t r = 0; r < nr; r++)
		fprintf(f, "%s$p%zu using 1:2 with points pointtype 7 pointsize 0.25 linecolor rgb '%s' notitle, $p%zu using 1:3 with lines linewidth 2.5 linecolor rgb '%s' title '%s'",
			r ? ", " : "", r, colours[r % NR_COLOURS], r,
			colours[r % NR_COLOURS], runs[r].allocator);
	fprintf(f, ", $p0 using 1:4 with lines linewidth 1 dashtype 2 linecolor rgb '#888888' title 'bound'\n");
	if (come)
		plot_since(runs, nr, since / all, f);
	fputs("unset multiplot\n", f);
}

int sim_plot(const struct sim *s, const struct sim_run *runs, size_t nr,
	     const char *path, char *why, size_t len)
{
	char script[] = "/tmp/mgpu-sim-XXXXXX";
	char command[128];
	int fd = mkstemp(script);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	int status;
	size_t got;

	if (!f) {
		snprintf(why, len, "%s: %s", script, strerror(errno));
		return -EIO;
	}
	gnuplot(s, runs, nr, path, f);
	if (fclose(f)) {
		snprintf(why, len, "%s: cannot be written", script);
		unlink(script);
		return -EIO;
	}
	snprintf(command, sizeof(command), "gnuplot %s 2>&1", script);
	f = popen(command, "re");
	got = f ? fread(why, 1, len - 1, f) : 0;
	why[got] = '\0';
	status = f ? pclose(f) : -1;
	unlink(script);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		snprintf(why, len, "gnuplot is missing; run: make deps");
	return status ? -EIO : 0;
}
