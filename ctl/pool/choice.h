/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The choice of a GPU: a hard filter, then a score from the history of the kind of work, and best
 * fit of ctl/place where the history is thin.  Pure.
 *
 * A GPU's types are names of vGPU types, the smallest first; NAME:SLOTS takes SLOTS of its slots,
 * NAME takes 1.  NAME:SLOTS:CAPABILITIES does "3d", "compute", "3d,compute" or "none" of what the
 * GPU does, the others do all of it.
 */
#ifndef POOL_CHOICE_H
#define POOL_CHOICE_H

#include "pool.h"

#define CHOICE_ROWS	32	/* rows of a kind on a model that count, the latest */
#define CHOICE_KINDS	1024	/* kinds that are known; the one not learned for longest goes */

/**
 * enum choice_reason - the first check of the hard filter that a GPU fails
 * @CHOICE_FITS: none
 */
enum choice_reason {
	CHOICE_FITS,
	CHOICE_TARGET,
	CHOICE_CAPABILITY,
	CHOICE_TYPE,
	CHOICE_MEMORY,
	CHOICE_OFFLINE,
	CHOICE_ABSENT,
	CHOICE_FOREIGN,
	CHOICE_GROUP,
	CHOICE_FULL,
	CHOICE_KEPT,
	CHOICE_REASONS,
};

/* The fault of @nr GPUs in the eyes of a request that wants @wanted, such as "are in use". */
const char *choice_reason_text(enum choice_reason reason, enum pool_target wanted, unsigned int nr);

/**
 * choice_fit() - check whether a GPU could do a request if all of it were free
 * @type: out: vGPU type, "" for a whole GPU; may be NULL
 * @slots: out: slots that it takes
 *
 * Return: CHOICE_FITS to CHOICE_MEMORY.
 */
enum choice_reason choice_fit(const struct pool_gpu *gpu, const struct pool_request *r,
			      char type[POOL_TYPE_MAX], uint32_t *slots);

/* Slots of a type, 0: the GPU does not offer it. */
uint32_t choice_type_slots(const struct pool_gpu *gpu, const char *type);

/**
 * struct choice_candidate - a GPU that passed the hard filter
 * @need: slots that the request takes
 * @free: slots that are free, at least @need
 * @failed: the last attachment of it failed
 */
struct choice_candidate {
	const struct pool_gpu *gpu;
	uint32_t need;
	uint32_t free;
	bool failed;
};

struct choice;

struct choice *choice_new(void);
void choice_free(struct choice *c);
/* Add a row of the history; one that is not done counts for nothing. Return 0 or -ENOMEM. */
int choice_learn(struct choice *c, const struct pool_outcome *outcome);

/**
 * choice_pick() - choose among the candidates
 * @nr: candidates, at least 1
 * @why: out: why it was chosen, with the numbers
 *
 * Return: index of the candidate.
 */
size_t choice_pick(struct choice *c, const struct pool_settings *settings,
		   const struct pool_request *r, const struct choice_candidate *candidates,
		   size_t nr, char why[POOL_TEXT_MAX]);

/**
 * struct choice_estimate - what a kind of work takes on a model of GPU
 * @runs: rows behind it; 0: all of it comes from other models and kinds
 * @seconds: expected time
 * @energy_mj: median energy, scaled to the size, 0: unknown
 * @memory_mib: memory that 9 of 10 runs kept within, 0: unknown
 * @model_effect: how the model does for all kinds: natural logarithm of its time to the mean
 */
struct choice_estimate {
	unsigned int runs;
	double seconds;
	double energy_mj;
	uint32_t memory_mib;
	double model_effect;
};

/* Return false if the kind is unknown. */
bool choice_expect(struct choice *c, const struct pool_request *r, const struct pool_gpu *gpu,
		   struct choice_estimate *estimate);

#endif /* POOL_CHOICE_H */
