// SPDX-License-Identifier: GPL-2.0-only
/*
 * Count frames and print reports, each a line of key=value.
 */
#include <stdio.h>

#include "game.h"

void stats_start(struct stats *s)
{
	s->start = now_ns();
	s->since = s->start;
	s->last = s->start;
	s->cpu_start = cpu_ns();
	s->cpu_since = s->cpu_start;
	s->frames = 0;
	s->nr = 0;
	s->fps = 0;
}

void stats_frame(struct stats *s, uint64_t now)
{
	uint64_t ns = now - s->last;

	s->frames++;
	if (s->nr < STATS_MAX)
		s->interval[s->nr++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
	s->last = now;
}

static double quantile_ms(const struct stats *s, unsigned int percent)
{
	return s->interval[(s->nr - 1) * percent / 100] / 1e6;
}

/* The time since the last report. */
void stats_report(struct stats *s, const char *name, uint64_t now)
{
	uint64_t cpu = cpu_ns();

	s->fps = s->nr * 1e9 / (double)(now - s->since);
	printf("game name=%s t=%.3f frames=%llu fps=%.2f", name,
	       (double)(now - s->start) / 1e9, (unsigned long long)s->frames,
	       s->fps);
	if (s->nr) {
		sort_ns(s->interval, s->nr);
		printf(" p50_ms=%.2f p99_ms=%.2f max_ms=%.2f cpu_ms=%.2f",
		       quantile_ms(s, 50), quantile_ms(s, 99),
		       quantile_ms(s, 100),
		       (double)(cpu - s->cpu_since) / 1e6 / s->nr);
	}
	printf("\n");
	fflush(stdout);
	s->nr = 0;
	s->since = now;
	s->cpu_since = cpu;
}

void stats_summary(const struct stats *s, const char *name, uint64_t now)
{
	double seconds = (double)(now - s->start) / 1e9;
	uint64_t cpu = cpu_ns() - s->cpu_start;

	printf("summary name=%s seconds=%.3f frames=%llu fps=%.3f cpu_ms=%.2f\n",
	       name, seconds, (unsigned long long)s->frames,
	       seconds > 0 ? (double)s->frames / seconds : 0,
	       s->frames ? (double)cpu / 1e6 / (double)s->frames : 0);
	fflush(stdout);
}
