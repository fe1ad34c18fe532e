// SPDX-License-Identifier: GPL-2.0-only
/* Events of agreements. Pure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frames/sla_watch.h"

/**
 * struct sla_short - vGPU that is granted less than its floor
 * @id: ID of the vGPU
 * @uuid: UUID of the vGPU
 * @floor: floor in the last plan with the shortfall, frames per second
 * @granted: part of @floor that this plan granted, frames per second
 * @seen_ns: end of the last period with the shortfall, ns
 */
struct sla_short {
	uint32_t id;
	char uuid[SAMPLE_UUID_LEN];
	double floor;
	double granted;
	uint64_t seen_ns;
};

static struct sla_short *find(const struct sla_watch *w, const char *uuid)
{
	for (size_t i = 0; i < w->nr; i++)
		if (!strcmp(w->list[i].uuid, uuid))
			return &w->list[i];
	return NULL;
}

bool sla_watch_has(const struct sla_watch *w, const char *uuid)
{
	return find(w, uuid);
}

static void add_event(struct sla_event *events, size_t *nr, const struct sla_short *s,
		      bool shortfall, bool gone)
{
	struct sla_event *event = &events[(*nr)++];

	event->shortfall = shortfall;
	event->gone = gone;
	event->id = s->id;
	memcpy(event->uuid, s->uuid, sizeof(event->uuid));
	event->floor = s->floor;
	event->granted = s->granted;
}

/* Index of the vGPU in the estimate; e->nr_vgpus if it is not open. */
static size_t place(const struct estimate *e, const char *uuid)
{
	size_t j;

	for (j = 0; j < e->nr_vgpus; j++)
		if (!strcmp(e->vgpus[j].last.uuid, uuid) &&
		    e->vgpus[j].state != VGPU_CLOSED)
			break;
	return j;
}

int sla_watch_update(struct sla_watch *w, const struct estimate *e,
		     const struct plan *plan, struct sla_event **events, size_t *nr)
{
	struct sla_short *list;
	size_t short_now = 0, kept = 0;

	*nr = 0;
	*events = NULL;
	for (size_t j = 0; j < plan->nr; j++)
		short_now += plan->targets[j].granted < plan->targets[j].floor;
	if (!short_now && !w->nr)
		return 0;
	list = calloc(w->nr + short_now, sizeof(*list));
	*events = calloc(w->nr + short_now, sizeof(**events));
	if (!list || !*events) {
		free(list);
		free(*events);
		*events = NULL;
		return -ENOMEM;
	}

	/* known shortfalls: still there, over, or gone */
	for (size_t i = 0; i < w->nr; i++) {
		struct sla_short *s = &w->list[i];
		size_t j = place(e, s->uuid);

		if (j >= plan->nr) {
			add_event(*events, nr, s, false, true);
			continue;
		}
		s->id = e->vgpus[j].last.id;
		s->floor = plan->targets[j].floor;
		s->granted = plan->targets[j].granted;
		if (s->granted < s->floor)
			s->seen_ns = e->now_ns;
		/* without a floor the shortfall ends at once */
		if (!(s->floor > 0) || e->now_ns - s->seen_ns >= SLA_WATCH_CALM_NS)
			add_event(*events, nr, s, false, false);
		else
			list[kept++] = *s;
	}
	for (size_t j = 0; j < plan->nr; j++) {
		const struct target *t = &plan->targets[j];
		struct sla_short *s = &list[kept];

		if (!(t->granted < t->floor) || find(w, e->vgpus[j].last.uuid))
			continue;
		s->id = e->vgpus[j].last.id;
		memcpy(s->uuid, e->vgpus[j].last.uuid, sizeof(s->uuid));
		s->floor = t->floor;
		s->granted = t->granted;
		s->seen_ns = e->now_ns;
		add_event(*events, nr, s, true, false);
		kept++;
	}
	free(w->list);
	w->list = list;
	w->nr = kept;
	return 0;
}

void sla_watch_free(struct sla_watch *w)
{
	free(w->list);
	w->list = NULL;
	w->nr = 0;
}
