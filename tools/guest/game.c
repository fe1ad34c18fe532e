// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-game: a game-like DRM client whose frames cost a constant amount of
 * CPU and GPU work.  It makes a frame, shows it with a page flip, and goes on as
 * fast as it may: when the driver says that the frame is shown, or earlier, with
 * some frames ahead of the screen, as most games are.
 */
#include <stdio.h>
#include <string.h>

#include "game.h"

const char *const program_name = "mgpu-game";

struct options {
	const char *card;
	const char *mode;
	const char *name;
	uint32_t buffers;
	uint32_t balls;
	int theme;
	uint32_t work;
	uint32_t threads;
	uint32_t textures;
	uint32_t texture_kib;
	uint32_t ahead;
	uint32_t seed;
	bool redraw_all;
	bool list;
	double fps_cap;
	uint64_t frames;
	double seconds;
};

static const char usage[] =
"usage: mgpu-game [options]\n"
"\n"
"Play a game of bricks without a player on the screen of a DRM card, and print\n"
"the frame rate each second.\n"
"\n"
"  --card PATH      card to use (the first one of virtio_gpu)\n"
"  --mode WxH       mode to set (the screen's preferred one)\n"
"  --list-modes     print the modes of the screen, and exit\n"
"  --name NAME      title on the screen and name in the output (game)\n"
"  --theme THEME    night, forest or desert (night)\n"
"  --buffers N      2 to 4 buffers (2, or as many as --ahead needs)\n"
"  --ahead N        0 to 2 frames that may wait to be shown while the next one\n"
"                   is made (0)\n"
"  --balls N        1 to 32 balls (3)\n"
"  --work N         CPU work per frame: thousands of look-ahead steps (0)\n"
"  --threads N      1 to 16 threads that share the CPU work (1)\n"
"  --textures N     GPU work per frame: uploads of a texture (0)\n"
"  --texture-kib N  size of the texture: 8 to 65536 KiB, rounded down to 8 (8192)\n"
"  --redraw WHAT    changed: paint changes only; all: paint everything (changed)\n"
"  --fps-cap F      sleep so as not to exceed F frames/s (none)\n"
"  --frames N       stop after N frames (never)\n"
"  --seconds S      stop after S seconds (never)\n"
"  --seed N         seed of the game's random numbers (1)\n"
"\n"
"Each second, and as a summary at the end, a line of key=value: frames since\n"
"the start, fps, p50_ms, p99_ms and max_ms of the time between two frames,\n"
"cpu_ms of CPU time per frame.\n";

static int choose_theme(const char *value, void *to)
{
	int theme = draw_theme(value);

	if (theme >= 0)
		*(int *)to = theme;
	return theme < 0;
}

static int choose_redraw(const char *value, void *to)
{
	*(bool *)to = !strcmp(value, "all");
	return strcmp(value, "all") && strcmp(value, "changed");
}

static int parse(struct options *o, int argc, char **argv)
{
	const struct cmdline_option options[] = {
		TEXT("card", &o->card),
		TEXT("mode", &o->mode),
		FLAG("list-modes", &o->list),
		WORD("name", &o->name),
		CHOICE("theme", &o->theme, choose_theme,
		       "night, forest or desert"),
		U32("buffers", &o->buffers, 2, MAX_BUFFERS),
		U32("balls", &o->balls, 1, MAX_BALLS),
		U32("work", &o->work, 0, 1000000),
		U32("threads", &o->threads, 1, MAX_THREADS),
		U32("textures", &o->textures, 0, 1000),
		U32("texture-kib", &o->texture_kib, 8, 8 * TEXTURE_MAX_H),
		U32("ahead", &o->ahead, 0, MAX_BUFFERS - 2),
		CHOICE("redraw", &o->redraw_all, choose_redraw,
		       "changed or all"),
		NUMBER("fps-cap", &o->fps_cap, 0.1, 10000,
		       "a rate from 0.1 to 10000 frames/s"),
		U64("frames", &o->frames, 1, 1e15, "a number from 1"),
		NUMBER("seconds", &o->seconds, 0.01, 1e9,
		       "a time in seconds, above 0"),
		U32("seed", &o->seed, 1, UINT32_MAX),
		{ 0 },
	};

	return cmdline_parse(options, usage, argc, argv);
}

/* Show a frame, when those before it are shown; return when at most @ahead wait. */
static int show(struct present *p, unsigned int ahead, struct display *d, int buffer,
		struct stats *s)
{
	int ret;

	if (p) {
		present_frame(p, buffer);
		return present_wait(p, ahead, s);
	}
	ret = display_flip(d, buffer);
	if (!ret)
		stats_frame(s, now_ns());
	return ret;
}

static int play(const struct options *o, struct display *d, struct present *p,
		struct world *g, struct canvas *c, struct texture *t, struct stats *s)
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
			ret = show(p, o->ahead, d, buffer, s);
		if (ret)
			break;

		now = now_ns();
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
	struct options o = {
		.name = "game",
		.buffers = 2,
		.balls = 3,
		.threads = 1,
		.texture_kib = 8192,
		.seed = 1,
	};
	static struct display display;
	static struct world world;
	static struct stats stats;
	struct texture texture = { 0 };
	struct canvas canvas = { 0 };
	struct present *present = NULL;
	int ret;

	ret = parse(&o, argc, argv);
	if (ret)
		return ret < 0 ? 2 : 0;

	if (o.list)
		return display_list_modes(o.card) ? 1 : 0;

	stop_on_signals();

	/* One is shown, and one is made. */
	if (o.buffers < o.ahead + 2)
		o.buffers = o.ahead + 2;
	ret = display_open(&display, o.card, o.mode, (int)o.buffers);
	if (ret)
		return 1;

	world_init(&world, display.mode.hdisplay, display.mode.vdisplay,
		   (int)o.balls, o.work, (int)o.buffers, o.seed);
	ret = draw_init(&canvas, &world, o.theme);
	if (ret)
		explain("no memory for the background\n");
	if (!ret) {
		ret = team_open(&world.team, (int)o.threads);
		if (ret)
			explain("cannot start threads: %s\n", strerror(-ret));
	}
	if (!ret && o.textures)
		ret = texture_open(&texture, display.fd, o.texture_kib / 8);
	if (!ret && o.ahead) {
		ret = present_open(&present, &display);
		if (ret)
			explain("cannot start a thread: %s\n", strerror(-ret));
	}
	if (!ret)
		ret = play(&o, &display, present, &world, &canvas, &texture, &stats);

	present_close(present);
	team_close(world.team);
	texture_close(&texture);
	draw_free(&canvas);
	display_close(&display);
	return ret ? 1 : 0;
}
