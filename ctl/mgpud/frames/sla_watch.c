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

static int compare(const void *a, const void *b)
{
	const struct sla_short *x = a, *y = b;

	return strcmp(x->uuid, y->uuid);
}

static int compare_key(const void *uuid, const void *entry)
{
	const struct sla_short *s = entry;

	return strcmp(uuid, s->uuid);
}

static struct sla_short *find(const struct sla_watch *w, const char *uuid)
{
	return w->nr ? bsearch(uuid, w->list, w->nr, sizeof(*w->list), compare_key) : NULL;
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

/**
 * struct place - a vGPU that is open
 * @uuid: its UUID
 * @index: its index in estimate and plan
 */
struct place {
	const char *uuid;
	size_t index;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return strcmp(x->uuid, y->uuid);
}

/* Fill in @places, sorted by UUID; return their number. */
static size_t list_places(struct place *places, const struct estimate *e)
{
	size_t n = 0;

	for (size_t j = 0; j < e->nr_vgpus; j++)
		if (e->vgpus[j].state != VGPU_CLOSED)
			places[n++] = (struct place){ e->vgpus[j].last.uuid, j };
	qsort(places, n, sizeof(*places), compare_places);
	return n;
}

/* Index of the vGPU in the estimate; SIZE_MAX if it is not open. */
static size_t index_of(const struct place *places, size_t nr, const char *uuid)
{
	const struct place key = { .uuid = uuid }, *found;

	found = nr ? bsearch(&key, places, nr, sizeof(key), compare_places) : NULL;
	return found ? found->index : SIZE_MAX;
}

int sla_watch_update(struct sla_watch *w, const struct estimate *e,
		     const struct plan *plan, struct sla_event **events, size_t *nr)
{
	size_t short_now = 0, kept = 0, nr_places;
	struct sla_short *list;
	struct place *places;

	*nr = 0;
	*events = NULL;
	for (size_t j = 0; j < plan->nr; j++)
		short_now += plan->targets[j].granted < plan->targets[j].floor;
	if (!short_now && !w->nr)
		return 0;
	list = calloc(w->nr + short_now, sizeof(*list));
	*events = calloc(w->nr + short_now, sizeof(**events));
	places = calloc(e->nr_vgpus + 1, sizeof(*places));
	if (!list || !*events || !places) {
		free(list);
		free(*events);
		free(places);
		*events = NULL;
		return -ENOMEM;
	}

	nr_places = list_places(places, e);
	/* known shortfalls: still there, over, or gone */
	for (size_t i = 0; i < w->nr; i++) {
		struct sla_short *s = &w->list[i];
		size_t j = index_of(places, nr_places, s->uuid);

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
	qsort(list, kept, sizeof(*list), compare);
	free(places);
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
