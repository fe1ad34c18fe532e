// SPDX-License-Identifier: GPL-2.0-only
/*
 * A game of bricks that plays itself.  All of it is integer arithmetic whose
 * amount per frame does not depend on the time or on what happens, so that a
 * frame costs the same whenever it is made: a step of the balls, and
 * world->work thousand steps of look-ahead that decide where the paddle goes.
 */
#include <string.h>

#include "game.h"

#define LOOK_STEPS	1000	/* one unit of work */

static uint32_t rnd(uint32_t *state)
{
	uint32_t x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

void world_damage(struct world *g, struct rect r)
{
	struct damage *d;
	int i;

	for (i = 0; i < g->nr_buffers; i++) {
		d = &g->damage[i];
		if (d->nr == MAX_DAMAGE)
			d->all = true;
		else
			d->r[d->nr++] = r;
	}
}

struct rect world_brick(const struct world *g, int row, int col)
{
	int bw = g->w / BRICK_COLS, bh = g->h / 22;
	int left = (g->w - bw * BRICK_COLS) / 2;

	return (struct rect){
		.x = left + col * bw + 2,
		.y = g->h / 8 + row * bh + 2,
		.w = bw - 4,
		.h = bh - 4,
	};
}

struct rect world_paddle(const struct world *g)
{
	return (struct rect){
		.x = g->paddle_x / FP - g->paddle_w / 2,
		.y = g->paddle_y,
		.w = g->paddle_w,
		.h = g->paddle_h,
	};
}

struct rect world_ball(const struct world *g, int i)
{
	return (struct rect){
		.x = g->ball[i].x / FP - g->radius,
		.y = g->ball[i].y / FP - g->radius,
		.w = 2 * g->radius + 1,
		.h = 2 * g->radius + 1,
	};
}

static void serve(struct world *g, struct ball *b)
{
	int32_t speed = g->h * FP / 110;

	b->x = g->paddle_x;
	b->y = (g->paddle_y - g->radius - 1) * FP;
	b->vx = (int32_t)(rnd(&g->random) % (uint32_t)(2 * speed)) - speed;
	b->vy = -speed - (int32_t)(rnd(&g->random) % (uint32_t)(speed / 2 + 1));
}

static void fill_bricks(struct world *g)
{
	int row, col;

	for (row = 0; row < BRICK_ROWS; row++)
		for (col = 0; col < BRICK_COLS; col++) {
			g->brick[row][col] = true;
			world_damage(g, world_brick(g, row, col));
		}
	g->bricks_left = BRICK_ROWS * BRICK_COLS;
	g->level++;
}

void world_init(struct world *g, int w, int h, int balls, uint32_t work,
		int nr_buffers, uint32_t seed)
{
	int i;

	memset(g, 0, sizeof(*g));
	g->w = w;
	g->h = h;
	g->nr_balls = balls;
	g->work = work;
	g->nr_buffers = nr_buffers;
	g->random = seed ? seed : 1;
	g->radius = h / 60 > 2 ? h / 60 : 2;
	g->paddle_w = w / 8;
	g->paddle_h = h / 50 > 3 ? h / 50 : 3;
	g->paddle_y = h - h / 12;
	g->paddle_x = w / 2 * FP;
	fill_bricks(g);
	for (i = 0; i < balls; i++) {
		serve(g, &g->ball[i]);
		/* not all at once */
		g->ball[i].x = (int32_t)(rnd(&g->random) % (uint32_t)w) * FP;
		g->ball[i].y -= (int32_t)(rnd(&g->random) % (uint32_t)(h / 3)) * FP;
	}
	for (i = 0; i < nr_buffers; i++)
		g->damage[i].all = true;
}

/* Walls; returns whether the ball fell below the bottom. */
static bool bounce(const struct world *g, struct ball *b)
{
	int32_t r = g->radius * FP;

	b->x += b->vx;
	b->y += b->vy;
	if (b->x < r) {
		b->x = 2 * r - b->x;
		b->vx = -b->vx;
	}
	if (b->x > g->w * FP - r) {
		b->x = 2 * (g->w * FP - r) - b->x;
		b->vx = -b->vx;
	}
	if (b->y < r) {
		b->y = 2 * r - b->y;
		b->vy = -b->vy;
	}
	return b->y > g->h * FP - r;
}

static void hit_brick(struct world *g, struct ball *b)
{
	int bw = g->w / BRICK_COLS, bh = g->h / 22;
	int left = (g->w - bw * BRICK_COLS) / 2;
	int x = b->x / FP - left, y = b->y / FP - g->h / 8;
	int row, col;

	if (x < 0 || y < 0)
		return;
	row = y / bh;
	col = x / bw;
	if (row >= BRICK_ROWS || col >= BRICK_COLS || !g->brick[row][col])
		return;

	g->brick[row][col] = false;
	world_damage(g, world_brick(g, row, col));
	b->vy = -b->vy;
	g->score += 10 * (BRICK_ROWS - row);
	if (--g->bricks_left < BRICK_ROWS * BRICK_COLS / 3)
		fill_bricks(g);
}

static void hit_paddle(struct world *g, struct ball *b)
{
	struct rect p = world_paddle(g);
	int x = b->x / FP, bottom = b->y / FP + g->radius;

	if (b->vy <= 0 || bottom < p.y || bottom > p.y + p.h + b->vy / FP)
		return;
	if (x < p.x - g->radius || x > p.x + p.w + g->radius)
		return;
	b->vy = -b->vy;
	b->vx += (x - g->paddle_x / FP) * FP / 40;
	if (b->vx > g->h * FP / 80)
		b->vx = g->h * FP / 80;
	if (b->vx < -g->h * FP / 80)
		b->vx = -g->h * FP / 80;
	g->score++;
}

/* Where look-ahead saw a ball come down, one sum for each part of the team. */
struct look {
	const struct world *g;
	int target;
	uint32_t random;
	struct {
		int64_t sum;
		uint32_t landed;
	} part[MAX_THREADS];
};

/*
 * Each unit of work follows one ball, slightly disturbed, over a fixed number
 * of steps.
 */
static void look_part(void *arg, int part, int parts)
{
	struct look *look = arg;
	const struct world *g = look->g;
	int32_t floor = (g->paddle_y - g->radius) * FP;
	uint32_t i, random, landed = 0;
	int64_t sum = 0;

	for (i = (uint32_t)part; i < g->work; i += (uint32_t)parts) {
		struct ball b = g->ball[look->target];
		int32_t landing = -1;

		random = look->random ^ (i + 1) * 2654435761u;
		b.vx += (int32_t)(rnd(&random) & 15) - 8;
		for (int step = 0; step < LOOK_STEPS; step++) {
			if (bounce(g, &b))
				b.vy = -b.vy;
			if (landing < 0 && b.vy > 0 && b.y >= floor)
				landing = b.x;
		}
		if (landing >= 0) {
			sum += landing;
			landed++;
		}
	}
	look->part[part].sum = sum;
	look->part[part].landed = landed;
}

/* Where will a ball come down?  The paddle goes for the mean of the landings. */
static int32_t look_ahead(struct world *g, int target)
{
	struct look look = {
		.g = g,
		.target = target,
		.random = rnd(&g->random),
	};
	uint32_t landed = 0;
	int64_t sum = 0;

	team_run(g->team, look_part, &look);
	for (int i = 0; i < MAX_THREADS; i++) {
		sum += look.part[i].sum;
		landed += look.part[i].landed;
	}
	return landed ? (int32_t)(sum / landed) : g->ball[target].x;
}

/* The ball that needs the paddle first. */
static int most_urgent(const struct world *g)
{
	int i, best = 0;

	for (i = 1; i < g->nr_balls; i++) {
		const struct ball *b = &g->ball[i], *o = &g->ball[best];

		if (b->vy > 0 && (o->vy <= 0 || b->y > o->y))
			best = i;
	}
	return best;
}

static void move_paddle(struct world *g)
{
	int32_t aim = look_ahead(g, most_urgent(g)) - g->paddle_x;
	int32_t max = g->w * FP / 50, half = g->paddle_w / 2 * FP;
	struct rect old = world_paddle(g), r;

	if (aim > max)
		aim = max;
	if (aim < -max)
		aim = -max;
	g->paddle_x += aim;
	if (g->paddle_x < half)
		g->paddle_x = half;
	if (g->paddle_x > g->w * FP - half)
		g->paddle_x = g->w * FP - half;
	r = world_paddle(g);
	if (r.x != old.x) {
		world_damage(g, old);
		world_damage(g, r);
	}
}

void world_step(struct world *g)
{
	struct ball *b;
	int i;

	g->frame++;
	for (i = 0; i < g->nr_balls; i++) {
		b = &g->ball[i];
		world_damage(g, world_ball(g, i));
		if (bounce(g, b)) {
			g->missed++;
			serve(g, b);
		}
		hit_brick(g, b);
		hit_paddle(g, b);
		world_damage(g, world_ball(g, i));
	}
	move_paddle(g);
}
