// SPDX-License-Identifier: GPL-2.0-only
/* CPU time that work for others may take. Pure. */
#include "server/budget.h"

void budget_init(struct budget *b, unsigned int part, int64_t burst_ns, int64_t quantum_ns,
		 uint64_t now_ns)
{
	*b = (struct budget){
		.part = part,
		.burst_ns = burst_ns,
		.quantum_ns = quantum_ns,
		.level_ns = burst_ns,
		.at_ns = now_ns,
	};
}

bool budget_allows(struct budget *b, uint64_t now_ns)
{
	uint64_t more = now_ns > b->at_ns ? (now_ns - b->at_ns) / b->part : 0;
	int64_t room = b->burst_ns - b->level_ns;

	/* keep what is less than a nanosecond of CPU time for the next refill */
	b->at_ns += more * b->part;
	b->level_ns = room > 0 && more < (uint64_t)room ? b->level_ns + (int64_t)more :
		b->burst_ns;
	if (b->level_ns <= 0)
		b->rests = true;
	else if (b->level_ns >= b->quantum_ns)
		b->rests = false;
	return !b->rests;
}

void budget_charge(struct budget *b, uint64_t took_ns)
{
	uint64_t room = (uint64_t)(b->level_ns + b->burst_ns);

	b->level_ns = took_ns < room ? b->level_ns - (int64_t)took_ns : -b->burst_ns;
	if (b->level_ns <= 0)
		b->rests = true;
}

uint64_t budget_rest_ns(const struct budget *b, uint64_t now_ns)
{
	uint64_t until;

	if (!b->rests)
		return 0;
	until = b->at_ns + (uint64_t)(b->quantum_ns - b->level_ns) * b->part;
	return until > now_ns ? until - now_ns : 0;
}
