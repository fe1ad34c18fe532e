// SPDX-License-Identifier: GPL-2.0-only
/* The service's time of day. */
#include "clock.h"
#include "steady.h"

#define SLEW	10	/* of a time, this part makes up for a clock that was set */

void steady_start(struct steady *s, int64_t real_ns, int64_t boot_ns)
{
	*s = (struct steady){ .offset_ns = real_ns - boot_ns, .boot_ns = boot_ns };
}

void steady_raise(struct steady *s, int64_t time)
{
	int64_t least;

	if (time > INT64_MAX / (int64_t)NSEC)
		return;
	least = time * (int64_t)NSEC - s->boot_ns;
	if (s->offset_ns < least)
		s->offset_ns = least;
}

int64_t steady_read(struct steady *s, int64_t real_ns, int64_t boot_ns)
{
	int64_t off = real_ns - boot_ns - s->offset_ns, most = (boot_ns - s->boot_ns) / SLEW;

	s->offset_ns += off > most ? most : off < -most ? -most : off;
	s->boot_ns = boot_ns;
	return (s->boot_ns + s->offset_ns) / (int64_t)NSEC;
}

int64_t steady_behind(const struct steady *s, int64_t real_ns)
{
	return (real_ns - s->boot_ns - s->offset_ns) / (int64_t)NSEC;
}
