// SPDX-License-Identifier: GPL-2.0-only
/* When a server may work. */
#include "turns.h"

static unsigned int set_stopped(struct turns *t, bool stop)
{
	if (t->stopped == stop)
		return 0;
	t->stopped = stop;
	return stop ? TURNS_STOP : TURNS_RUN;
}

static unsigned int ask(struct turns *t, uint64_t used_ns)
{
	t->state = TURNS_WAIT;
	t->from_used_ns = used_ns;
	return TURNS_ASK;
}

bool turns_seems_to_rest(const struct turns *t, uint64_t now_ns, uint64_t used_ns)
{
	return t->state == TURNS_HAS && now_ns - t->looked_ns >= TURNS_LOOK_NS &&
		(used_ns - t->looked_used_ns) * 10 < now_ns - t->looked_ns;
}

/* A turn ends after its time, or when there is nothing to do; one behind it may be needed. */
static unsigned int end(struct turns *t, uint64_t now_ns, uint64_t used_ns, bool ready)
{
	bool over = now_ns - t->from_ns >= TURNS_TURN_NS;
	bool rest = !ready && turns_seems_to_rest(t, now_ns, used_ns);

	if (!over && !rest)
		return 0;
	if (!rest)
		return TURNS_END | ask(t, used_ns);
	t->state = TURNS_IDLE;
	t->from_used_ns = used_ns;
	return TURNS_END;
}

unsigned int turns_look(struct turns *t, uint64_t now_ns, uint64_t used_ns, bool owed, bool ready)
{
	unsigned int what = 0;
	bool much;

	much = used_ns - t->from_used_ns >= TURNS_FREE_NS;
	switch (t->state) {
	case TURNS_IDLE:
		if (much)
			what = ask(t, used_ns);
		break;
	case TURNS_WAIT:
		/* A reset of the guest has the module forget a turn. */
		what = TURNS_ASK;
		if (owed)
			what |= set_stopped(t, false);
		else if (much)
			what |= set_stopped(t, true);
		break;
	case TURNS_HAS:
		what = end(t, now_ns, used_ns, ready);
		break;
	}
	t->looked_ns = now_ns;
	t->looked_used_ns = used_ns;
	return what;
}

unsigned int turns_given(struct turns *t, uint64_t now_ns, uint64_t used_ns)
{
	t->state = TURNS_HAS;
	t->from_ns = now_ns;
	t->looked_ns = now_ns;
	t->from_used_ns = used_ns;
	t->looked_used_ns = used_ns;
	return set_stopped(t, false);
}

unsigned int turns_hold(struct turns *t, uint64_t used_ns)
{
	unsigned int what = t->state == TURNS_IDLE ? ask(t, used_ns) : 0;

	return t->state == TURNS_HAS ? 0 : what | set_stopped(t, true);
}

unsigned int turns_run(struct turns *t)
{
	return set_stopped(t, false);
}

uint64_t turns_next(const struct turns *t)
{
	return t->state == TURNS_IDLE || t->stopped ? TURNS_IDLE_NS : TURNS_LOOK_NS;
}
