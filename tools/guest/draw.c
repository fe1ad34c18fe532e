// SPDX-License-Identifier: GPL-2.0-only
/*
 * Paints the world into a buffer: either all of it or only what changed since
 * that buffer was painted last.
 *
 * Four squares in the bottom left corner, red, green, blue and white, never
 * change: they show whether the colours of a picture of the screen are right.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "font.h"
#include "game.h"

#define HUD_LINES	2
#define HUD_CHARS	44
#define CARD		16	/* side of a colour square */

struct theme {
	const char *name;
	uint32_t sky, ground, grid, paddle, ball;
	uint32_t brick[BRICK_ROWS];
};

static const struct theme themes[] = {
	{ "night", 0x0b1030, 0x3a2a6a, 0x25306a, 0xf2c14e, 0xffffff,
	  { 0xe4572e, 0xf2884e, 0xf2c14e, 0x76b041, 0x17bebb, 0x6d72c3 } },
	{ "forest", 0x06281f, 0x2f6b3a, 0x145040, 0xf4f1bb, 0xffd166,
	  { 0x9bc53d, 0x5bc0be, 0xfde74c, 0xc3423f, 0xe07a5f, 0xf2cc8f } },
	{ "desert", 0x40170f, 0xb5651d, 0x6a3020, 0x9be7ff, 0xfff3b0,
	  { 0xffb703, 0xfb8500, 0xe63946, 0xa8dadc, 0x457b9d, 0xf1faee } },
};

static const uint32_t card[4] = { 0xff0000, 0x00ff00, 0x0000ff, 0xffffff };

int draw_theme(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(themes) / sizeof(themes[0]); i++)
		if (!strcmp(name, themes[i].name))
			return (int)i;
	return -EINVAL;
}

static uint32_t mix(uint32_t a, uint32_t b, int n, int of)
{
	uint32_t c = 0;
	int shift;

	for (shift = 0; shift < 24; shift += 8) {
		int x = (a >> shift) & 0xff, y = (b >> shift) & 0xff;

		c |= (uint32_t)(x + (y - x) * n / of) << shift;
	}
	return c;
}

static bool overlap(struct rect a, struct rect b, struct rect *r)
{
	int x2 = a.x + a.w < b.x + b.w ? a.x + a.w : b.x + b.w;
	int y2 = a.y + a.h < b.y + b.h ? a.y + a.h : b.y + b.h;

	r->x = a.x > b.x ? a.x : b.x;
	r->y = a.y > b.y ? a.y : b.y;
	r->w = x2 - r->x;
	r->h = y2 - r->y;
	return r->w > 0 && r->h > 0;
}

static void fill(const struct buffer *b, struct rect clip, struct rect r,
		 uint32_t colour)
{
	struct rect o;
	int x, y;

	if (!overlap(clip, r, &o))
		return;
	for (y = o.y; y < o.y + o.h; y++) {
		uint32_t *p = b->px + (size_t)y * b->stride;

		for (x = o.x; x < o.x + o.w; x++)
			p[x] = colour;
	}
}

static void disc(const struct buffer *b, struct rect clip, struct rect r,
		 uint32_t colour)
{
	int radius = r.w / 2, cx = r.x + radius, cy = r.y + radius;
	struct rect o;
	int x, y, dx, dy;

	if (!overlap(clip, r, &o))
		return;
	for (y = o.y; y < o.y + o.h; y++) {
		uint32_t *p = b->px + (size_t)y * b->stride;

		dy = y - cy;
		for (x = o.x; x < o.x + o.w; x++) {
			dx = x - cx;
			if (dx * dx + dy * dy > radius * radius)
				continue;
			/* lit from the top left */
			p[x] = mix(colour, 0x202020,
				   dx + dy + 2 * radius, 5 * radius);
		}
	}
}

static const struct glyph *glyph(char c)
{
	size_t i;

	for (i = 0; i < sizeof(font) / sizeof(font[0]); i++)
		if (font[i].c == c)
			return &font[i];
	return NULL;
}

static void text(const struct buffer *b, struct rect clip, int x, int y,
		 int scale, uint32_t colour, const char *s)
{
	const struct glyph *g;
	int row, col;

	for (; *s; s++, x += (FONT_W + 1) * scale) {
		char c = *s;

		if (c >= 'a' && c <= 'z')
			c = (char)(c - 'a' + 'A');
		g = glyph(c);
		if (!g)
			continue;
		for (row = 0; row < FONT_H; row++)
			for (col = 0; col < FONT_W; col++)
				if (g->row[row] & (1 << (FONT_W - 1 - col)))
					fill(b, clip, (struct rect){
						x + col * scale,
						y + row * scale,
						scale, scale }, colour);
	}
}

static int line_y(const struct canvas *c, int line)
{
	return (3 + line * (FONT_H + 3)) * c->scale;
}

static struct rect hud_rect(const struct canvas *c, int line)
{
	return (struct rect){
		.x = 4 * c->scale,
		.y = line_y(c, line),
		.w = HUD_CHARS * (FONT_W + 1) * c->scale,
		.h = FONT_H * c->scale,
	};
}

int draw_init(struct canvas *c, const struct world *g, int theme)
{
	const struct theme *t = &themes[theme];
	int x, y, cell = g->h / 18, hill;

	c->theme = theme;
	c->scale = g->h / 300 > 1 ? g->h / 300 : 1;
	c->background = malloc((size_t)g->w * g->h * 4);
	if (!c->background)
		return -ENOMEM;

	for (y = 0; y < g->h; y++)
		for (x = 0; x < g->w; x++) {
			uint32_t colour = mix(t->sky, t->ground, y, g->h);

			/* two ranges of hills, each a row of parabolas */
			hill = x % (g->w / 3) - g->w / 6;
			if (y > g->h * 3 / 5 + hill * hill / (g->h / 2))
				colour = mix(colour, t->grid, 1, 2);
			hill = (x + g->w / 5) % (g->w / 4) - g->w / 8;
			if (y > g->h * 3 / 4 + hill * hill / (g->h / 3))
				colour = mix(colour, t->sky, 1, 2);
			if (y < g->h * 3 / 5 && (x % cell == 0 || y % cell == 0))
				colour = mix(colour, t->grid, 1, 3);
			c->background[(size_t)y * g->w + x] = colour;
		}
	return 0;
}

void draw_free(struct canvas *c)
{
	free(c->background);
	c->background = NULL;
}

/* The score board shows the frame's number: it changes with every frame. */
void draw_hud_damage(const struct canvas *c, struct world *g)
{
	int line;

	for (line = 0; line < HUD_LINES; line++)
		world_damage(g, hud_rect(c, line));
}

static void paint(const struct canvas *c, const struct world *g,
		  char lines[HUD_LINES][HUD_CHARS + 1],
		  const struct buffer *b, struct rect want)
{
	const struct theme *t = &themes[c->theme];
	struct rect r, brick;
	int i, y, row, col;

	if (!overlap(want, (struct rect){ 0, 0, g->w, g->h }, &r))
		return;

	for (y = r.y; y < r.y + r.h; y++)
		memcpy(b->px + (size_t)y * b->stride + r.x,
		       c->background + (size_t)y * g->w + r.x,
		       (size_t)r.w * 4);

	for (row = 0; row < BRICK_ROWS; row++)
		for (col = 0; col < BRICK_COLS; col++) {
			if (!g->brick[row][col])
				continue;
			brick = world_brick(g, row, col);
			fill(b, r, brick, t->brick[row]);
			brick.y += brick.h * 3 / 4;
			brick.h -= brick.h * 3 / 4;
			fill(b, r, brick, mix(t->brick[row], 0, 1, 3));
		}
	fill(b, r, world_paddle(g), t->paddle);
	for (i = 0; i < g->nr_balls; i++)
		disc(b, r, world_ball(g, i), t->ball);
	for (i = 0; i < 4; i++)
		fill(b, r, (struct rect){ i * CARD, g->h - CARD, CARD, CARD },
		     card[i]);
	for (i = 0; i < HUD_LINES; i++)
		if (overlap(r, hud_rect(c, i), &brick))
			text(b, brick, hud_rect(c, i).x, line_y(c, i), c->scale,
			     i ? 0xd0d0d0 : 0xffffff, lines[i]);
}

void draw_frame(const struct canvas *c, const struct world *g,
		const struct hud *hud, const struct buffer *b,
		struct damage *damage)
{
	char lines[HUD_LINES][HUD_CHARS + 1];
	int i;

	snprintf(lines[0], sizeof(lines[0]), "%.12s  SCORE %06u  LEVEL %u",
		 hud->title, g->score, g->level);
	snprintf(lines[1], sizeof(lines[1]), "%dx%d  FRAME %07llu  %.1f FPS",
		 g->w, g->h, (unsigned long long)g->frame, hud->fps);

	if (damage->all)
		paint(c, g, lines, b, (struct rect){ 0, 0, g->w, g->h });
	else
		for (i = 0; i < damage->nr; i++)
			paint(c, g, lines, b, damage->r[i]);
	damage->nr = 0;
	damage->all = false;
}
