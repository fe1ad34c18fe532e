// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-game: a game-like DRM client whose frames cost a constant amount of
 * CPU and GPU work.  It makes a frame, shows it with a page flip, waits until
 * the driver says that it is shown, and goes on as fast as it may.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "game.h"

const char *const program_name = "mgpu-game";

struct options {
	const char *card;
	const char *mode;
	const char *name;
	int buffers;
	int balls;
	int theme;
	uint32_t work;
	int threads;
	uint32_t textures;
	uint32_t seed;
	bool redraw_all;
	bool list;
	double fps_cap;
	uint64_t frames;
	double seconds;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static const char usage[] =
"usage: mgpu-game [options]\n"
"\n"
"Play a game of bricks by itself on the screen of a DRM card, and print the\n"
"frame rate each second.\n"
"\n"
"  --card PATH      card to use (the first one of virtio_gpu)\n"
"  --mode WxH       mode to set (the screen's preferred one)\n"
"  --list-modes     print the modes that the screen has, and exit\n"
"  --name NAME      title on the screen and name in the output (game)\n"
"  --theme THEME    night, forest or desert (night)\n"
"  --buffers N      2 to 4 buffers (2)\n"
"  --balls N        1 to 32 balls (3)\n"
"  --work N         CPU work per frame: thousands of look-ahead steps (0)\n"
"  --threads N      1 to 16 threads that share the CPU work (1)\n"
"  --textures N     GPU work per frame: uploads of a texture of 8 MiB (0)\n"
"  --redraw WHAT    changed: paint what changed; all: paint everything (changed)\n"
"  --fps-cap F      sleep so as not to exceed F frames/s (none)\n"
"  --frames N       stop after N frames (never)\n"
"  --seconds S      stop after S seconds (never)\n"
"  --seed N         of the game's random numbers (1)\n"
"\n"
"Each second, and as a summary at the end, a line of key=value: frames since\n"
"the start, fps, p50_ms, p99_ms and max_ms of the time between two frames,\n"
"cpu_ms of CPU time per frame.\n";

enum {
	OPT_CARD = 1, OPT_MODE, OPT_LIST, OPT_NAME, OPT_THEME, OPT_BUFFERS,
	OPT_BALLS, OPT_WORK, OPT_THREADS, OPT_TEXTURES, OPT_REDRAW,
	OPT_FPS_CAP, OPT_FRAMES, OPT_SECONDS, OPT_SEED, OPT_HELP,
};

static const struct option options[] = {
	{ "card", required_argument, NULL, OPT_CARD },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "list-modes", no_argument, NULL, OPT_LIST },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "theme", required_argument, NULL, OPT_THEME },
	{ "buffers", required_argument, NULL, OPT_BUFFERS },
	{ "balls", required_argument, NULL, OPT_BALLS },
	{ "work", required_argument, NULL, OPT_WORK },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "textures", required_argument, NULL, OPT_TEXTURES },
	{ "redraw", required_argument, NULL, OPT_REDRAW },
	{ "fps-cap", required_argument, NULL, OPT_FPS_CAP },
	{ "frames", required_argument, NULL, OPT_FRAMES },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

/* Returns 0, 1 when there is nothing left to do, or -EINVAL. */
static int parse(struct options *o, int argc, char **argv)
{
	const char *opt;
	uint32_t n = 0;
	double v = 0;
	int c, index, ret = 0;

	while (!ret && (c = getopt_long(argc, argv, "", options, &index)) != -1) {
		opt = c == '?' ? "" : options[index].name;
		switch (c) {
		case OPT_CARD:
			o->card = optarg;
			break;
		case OPT_MODE:
			o->mode = optarg;
			break;
		case OPT_LIST:
			o->list = true;
			break;
		case OPT_NAME:
			if (!*optarg || strpbrk(optarg, " \t\n="))
				ret = option_bad(opt, optarg, "one word without =");
			o->name = optarg;
			break;
		case OPT_THEME:
			o->theme = draw_theme(optarg);
			if (o->theme < 0)
				ret = option_bad(opt, optarg, "night, forest or desert");
			break;
		case OPT_BUFFERS:
			ret = option_u32(opt, optarg, 2, MAX_BUFFERS, &n);
			o->buffers = (int)n;
			break;
		case OPT_BALLS:
			ret = option_u32(opt, optarg, 1, MAX_BALLS, &n);
			o->balls = (int)n;
			break;
		case OPT_WORK:
			ret = option_u32(opt, optarg, 0, 1000000, &o->work);
			break;
		case OPT_THREADS:
			ret = option_u32(opt, optarg, 1, MAX_THREADS, &n);
			o->threads = (int)n;
			break;
		case OPT_TEXTURES:
			ret = option_u32(opt, optarg, 0, 1000, &o->textures);
			break;
		case OPT_REDRAW:
			o->redraw_all = !strcmp(optarg, "all");
			if (!o->redraw_all && strcmp(optarg, "changed"))
				ret = option_bad(opt, optarg, "changed or all");
			break;
		case OPT_FPS_CAP:
			ret = option_number(opt, optarg, 0.1, 10000,
					    "a rate from 0.1 to 10000 frames/s",
					    &o->fps_cap);
			break;
		case OPT_FRAMES:
			ret = option_number(opt, optarg, 1, 1e15,
					    "a number from 1", &v);
			o->frames = (uint64_t)v;
			break;
		case OPT_SECONDS:
			ret = option_number(opt, optarg, 0.01, 1e9,
					    "a time in seconds, above 0",
					    &o->seconds);
			break;
		case OPT_SEED:
			ret = option_u32(opt, optarg, 1, UINT32_MAX, &o->seed);
			break;
		case OPT_HELP:
			fputs(usage, stdout);
			return 1;
		default:
			explain("try --help\n");
			return -EINVAL;
		}
	}
	if (!ret && optind < argc) {
		explain("'%s' is no option; try --help\n",
			argv[optind]);
		ret = -EINVAL;
	}
	return ret;
}

/* Sleep until the next frame is due; a late one is not made up for. */
static void pace(uint64_t *due, double fps)
{
	uint64_t now = now_ns(), period = (uint64_t)(1e9 / fps);
	struct timespec ts;

	*due += period;
	if (*due < now) {
		*due = now;
		return;
	}
	ts.tv_sec = (time_t)(*due / 1000000000);
	ts.tv_nsec = (long)(*due % 1000000000);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static int play(const struct options *o, struct display *d, struct world *g,
		struct canvas *c, struct texture *t, struct stats *s)
{
	struct hud hud = { .title = o->name };
	uint64_t now, due;
	int ret, buffer = 0;

	draw_frame(c, g, &hud, &d->buf[0], &g->damage[0]);
	ret = display_show(d, 0);
	if (ret)
		return ret;

	stats_start(s);
	due = s->start;
	while (!stop) {
		buffer = (buffer + 1) % d->nr_buffers;
		world_step(g);
		draw_hud_damage(c, g);
		if (o->redraw_all)
			g->damage[buffer].all = true;
		hud.fps = s->fps;
		draw_frame(c, g, &hud, &d->buf[buffer], &g->damage[buffer]);
		if (o->textures)
			ret = texture_upload(t, o->textures, g->frame);
		if (!ret)
			ret = display_flip(d, buffer);
		if (ret)
			break;

		now = now_ns();
		stats_frame(s, now);
		if (now - s->since >= 1000000000)
			stats_report(s, o->name, now);
		if (o->frames && s->frames >= o->frames)
			break;
		if (o->seconds > 0 &&
		    (double)(now - s->start) >= o->seconds * 1e9)
			break;
		if (o->fps_cap > 0)
			pace(&due, o->fps_cap);
	}
	stats_summary(s, o->name, now_ns());
	return ret;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct options o = {
		.name = "game",
		.buffers = 2,
		.balls = 3,
		.threads = 1,
		.seed = 1,
	};
	static struct display display;
	static struct world world;
	static struct stats stats;
	struct texture texture = { 0 };
	struct canvas canvas = { 0 };
	int ret;

	ret = parse(&o, argc, argv);
	if (ret)
		return ret < 0 ? 2 : 0;

	if (o.list)
		return display_list_modes(o.card) ? 1 : 0;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);

	ret = display_open(&display, o.card, o.mode, o.buffers);
	if (ret)
		return 1;

	world_init(&world, display.mode.hdisplay, display.mode.vdisplay,
		   o.balls, o.work, o.buffers, o.seed);
	ret = draw_init(&canvas, &world, o.theme);
	if (ret)
		explain("no memory for the background\n");
	if (!ret) {
		ret = team_open(&world.team, o.threads);
		if (ret)
			explain("no threads: %s\n",
				strerror(-ret));
	}
	if (!ret && o.textures)
		ret = texture_open(&texture, display.fd);
	if (!ret)
		ret = play(&o, &display, &world, &canvas, &texture, &stats);

	team_close(world.team);
	texture_close(&texture);
	draw_free(&canvas);
	display_close(&display);
	return ret ? 1 : 0;
}
