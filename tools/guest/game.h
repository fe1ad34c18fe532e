/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mgpu-game: a game-like DRM client.  display.c talks KMS, world.c is the game
 * itself, team.c its threads, draw.c paints it, present.c shows frames while the next
 * ones are made, texture.c gives the GPU more to do, stats.c counts frames, game.c is the
 * main loop.
 *
 * mgpu-flip: the barest client, for measurements.  flip.c is the main loop,
 * latency.c reads the kernel's trace, display.c and clock.c are shared.
 */
#ifndef MGPU_GAME_H
#define MGPU_GAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xf86drmMode.h>

#include "clock.h"
#include "cmdline.h"

#define MAX_BUFFERS	4

struct rect {
	int x, y, w, h;
};

/* ---- display.c ---- */

/**
 * struct buffer - one dumb buffer and its framebuffer, XRGB8888
 * @px: its pixels
 * @stride: pixels from one row to the next
 */
struct buffer {
	uint32_t handle;
	uint32_t fb;
	uint64_t size;
	uint32_t *px;
	int stride;
};

struct display {
	int fd;
	uint32_t connector;
	uint32_t crtc;
	drmModeModeInfo mode;
	int nr_buffers;
	struct buffer buf[MAX_BUFFERS];
	bool flipped;		/* the event of the last flip has come */
};

int display_open(struct display *d, const char *card, const char *mode,
		 int nr_buffers);
void display_close(struct display *d);
int display_show(struct display *d, int buffer);
int display_flip(struct display *d, int buffer);
int display_list_modes(const char *card);

/* ---- texture.c ---- */

#define TEXTURE_W	2048
#define TEXTURE_MAX_H	8192

struct texture {
	int fd;
	uint32_t handle;
	uint32_t height;	/* rows of TEXTURE_W pixels */
	uint32_t *px;
};

int texture_open(struct texture *t, int fd, uint32_t height);
int texture_upload(struct texture *t, uint32_t n, uint64_t frame);
void texture_close(struct texture *t);

/* ---- team.c ---- */

struct team;

int team_open(struct team **team, int n);
void team_run(struct team *t, void (*fn)(void *arg, int part, int parts),
	      void *arg);
void team_close(struct team *t);

#define MAX_THREADS	16

/* ---- world.c: a game of bricks that plays itself ---- */

#define FP		256	/* positions are pixels times FP */
#define MAX_BALLS	32
#define BRICK_COLS	16
#define BRICK_ROWS	6
#define MAX_DAMAGE	(4 * MAX_BALLS)

struct ball {
	int32_t x, y;		/* centre */
	int32_t vx, vy;		/* per frame */
};

/* Changes since a buffer was painted last. */
struct damage {
	struct rect r[MAX_DAMAGE];
	int nr;
	bool all;
};

struct world {
	int w, h;
	int nr_balls;
	int radius;
	struct ball ball[MAX_BALLS];
	bool brick[BRICK_ROWS][BRICK_COLS];
	int bricks_left;
	int32_t paddle_x;	/* centre */
	int paddle_w, paddle_h, paddle_y;
	uint32_t score, level, missed;
	uint64_t frame;
	uint32_t random;
	uint32_t work;		/* thousands of look-ahead steps per frame */
	struct team *team;	/* the threads that do them */
	int nr_buffers;
	struct damage damage[MAX_BUFFERS];
};

void world_init(struct world *g, int w, int h, int balls, uint32_t work,
		int nr_buffers, uint32_t seed);
void world_step(struct world *g);
void world_damage(struct world *g, struct rect r);
struct rect world_brick(const struct world *g, int row, int col);
struct rect world_paddle(const struct world *g);
struct rect world_ball(const struct world *g, int i);

/* ---- draw.c ---- */

struct hud {
	const char *title;
	double fps;
};

struct canvas {
	uint32_t *background;	/* w * h, never changes */
	int theme;
	int scale;		/* of the font */
};

int draw_theme(const char *name);
int draw_init(struct canvas *c, const struct world *g, int theme);
void draw_free(struct canvas *c);
void draw_hud_damage(const struct canvas *c, struct world *g);
void draw_frame(const struct canvas *c, const struct world *g,
		const struct hud *hud, const struct buffer *b,
		struct damage *damage);

/* ---- stats.c ---- */

#define STATS_MAX	65536

/* Frame intervals in nanoseconds, since the last report and since the start. */
struct stats {
	uint64_t start, since, last;
	uint64_t cpu_since, cpu_start;
	uint64_t frames;
	uint32_t nr;
	uint32_t interval[STATS_MAX];
	double fps;
};

void stats_start(struct stats *s);
void stats_frame(struct stats *s, uint64_t now);
void stats_report(struct stats *s, const char *name, uint64_t now);
void stats_summary(const struct stats *s, const char *name, uint64_t now);

/* ---- present.c ---- */

struct present;

int present_open(struct present **present, struct display *d);
void present_frame(struct present *p, int buffer);
int present_wait(struct present *p, unsigned int ahead, struct stats *s);
void present_close(struct present *p);

/* ---- latency.c ---- */

/**
 * struct latency - times from the doorbell to the interrupt
 * @pairs: doorbells that were followed by an interrupt before the next doorbell
 * @alone: doorbells without an interrupt; they count nowhere
 * @interrupts: interrupts of that queue
 * @p50_ns: median, nanoseconds; 0 without a pair
 * @p99_ns: 99th percentile
 */
struct latency {
	uint32_t pairs;
	uint32_t alone;
	uint32_t interrupts;
	uint64_t p50_ns;
	uint64_t p99_ns;
};

int latency_start(void);
int latency_stop(struct latency *l);

#endif /* MGPU_GAME_H */
