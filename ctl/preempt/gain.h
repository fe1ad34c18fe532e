/* SPDX-License-Identifier: GPL-2.0-only */
/* Cost and gain of a preemption, in a view. Private to ctl/preempt. */
#ifndef MGPU_PREEMPT_GAIN_H
#define MGPU_PREEMPT_GAIN_H

#include "view.h"

/* Return the time until the first running context completes, cycles. */
double gain_window(const struct view *v);

/**
 * gain_rates() - sum norm_ipc before, during and after a preemption
 * @v: the view
 * @victim: index of the user that loses slots
 * @n: context that gets them
 * @slots: how many
 * @rate: result: the sum before; the sum of the contexts that stay, with their decay,
 *	during a switch; the sum after
 * @miss: result: mean miss rate of the contexts that stay, weighted by slots; 0 if
 *	none stays
 */
void gain_rates(const struct view *v, size_t victim, const struct view_newcomer *n,
		unsigned int slots, double rate[3], double *miss);

/**
 * gain_weigh() - fill in a preemption with its cost and gain
 * @v: the view
 * @victim: index of the user that loses slots
 * @n: context that gets them
 * @slots: how many
 * @method: how they are taken
 * @w: of gain_window(), cycles
 * @rate: of gain_rates()
 * @miss: of gain_rates()
 * @d: result; its reason is left to the caller
 *
 * Whether the method is allowed and whether the preemption pays is not checked.
 */
void gain_weigh(const struct view *v, size_t victim, const struct view_newcomer *n,
		unsigned int slots, enum preempt_method method, double w,
		const double rate[3], double miss, struct preempt_decision *d);

/**
 * gain_more() - compare two preemptions
 * @a: a preemption
 * @b: another one
 *
 * A preemption that costs more than the window has no gain to compare and must not win
 * by losing nothing: it comes after those that cost less, and by its cost.
 *
 * Return: whether @a is better than @b.
 */
bool gain_more(const struct preempt_decision *a, const struct preempt_decision *b);

/**
 * gain_best_method() - find the method that gains most
 * @v: the view
 * @victim: index of the user that loses slots
 * @n: context that gets them
 * @slots: how many
 * @w: of gain_window(), cycles
 * @must: preempt even if it does not pay
 * @d: result, valid if the function returns true
 *
 * Return: whether there is such a method.
 */
bool gain_best_method(const struct view *v, size_t victim, const struct view_newcomer *n,
		      unsigned int slots, double w, bool must, struct preempt_decision *d);

#endif /* MGPU_PREEMPT_GAIN_H */
