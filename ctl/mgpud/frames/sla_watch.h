/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of agreements: a vGPU begins to be granted less than its floor, or is granted
 * its floor again. There is an event at each end, not in each period. Pure.
 */
#ifndef MGPUD_SLA_WATCH_H
#define MGPUD_SLA_WATCH_H

#include "decide.h"

/* A shortfall ends when no plan had it for this time. */
#define SLA_WATCH_CALM_NS	3000000000ULL

/**
 * struct sla_event - begin or end of a shortfall
 * @shortfall: the shortfall begins; else it ends
 * @gone: it ends because the vGPU was closed or removed
 * @id: ID of the vGPU
 * @uuid: UUID of the vGPU
 * @floor: floor of its agreement, frames per second
 * @granted: part of the floor that it is granted, frames per second
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
 * struct sla_watch - vGPUs that are granted less than their floor
 * @list: these vGPUs, sorted by UUID
 * @nr: number of entries of @list
 */
struct sla_watch {
	struct sla_short *list;
	size_t nr;
};

/*
 * Compare a new plan with the shortfalls so far. *@events, which the caller must free,
 * gets the @nr events. Returns 0, or -ENOMEM with @w unchanged.
 */
int sla_watch_update(struct sla_watch *w, const struct estimate *e,
		     const struct plan *plan, struct sla_event **events, size_t *nr);
bool sla_watch_has(const struct sla_watch *w, const char *uuid);
void sla_watch_free(struct sla_watch *w);

#endif /* MGPUD_SLA_WATCH_H */
