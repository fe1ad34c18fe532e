/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From plans to events: a vGPU begins to get less than it was promised, or gets
 * it again. One event at each end, not one per period. Pure.
 */
#ifndef MGPUD_SLA_WATCH_H
#define MGPUD_SLA_WATCH_H

#include "decide.h"

/* A shortfall is over when it has not been seen for so long. */
#define SLA_WATCH_CALM_NS	3000000000ULL

/**
 * struct sla_event - a beginning or an end
 * @shortfall: it begins; else it is over
 * @gone: it is over because the vGPU was closed or removed
 * @id: of the vGPU
 * @uuid: of the vGPU
 * @floor: frames per second that it was promised
 * @granted: frames per second that it gets
 */
struct sla_event {
	bool shortfall;
	bool gone;
	uint32_t id;
	char uuid[SAMPLE_UUID_LEN];
	double floor;
	double granted;
};

struct sla_short;

/**
 * struct sla_watch - vGPUs that get less than they were promised
 * @list: these
 * @nr: number of them
 */
struct sla_watch {
	struct sla_short *list;
	size_t nr;
};

/*
 * A plan is made. Writes what begins and what ends into *@events, to be freed,
 * and their number into *@nr. Returns 0, or -ENOMEM with @w as it was.
 */
int sla_watch_update(struct sla_watch *w, const struct estimate *e,
		     const struct plan *plan, struct sla_event **events, size_t *nr);
bool sla_watch_has(const struct sla_watch *w, const char *uuid);
void sla_watch_free(struct sla_watch *w);

#endif /* MGPUD_SLA_WATCH_H */
