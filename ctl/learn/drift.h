/* SPDX-License-Identifier: GPL-2.0-only */
/* Errors of a model and of a control, and a test whether the model is the worse one. Pure. */
#ifndef MGPU_LEARN_DRIFT_H
#define MGPU_LEARN_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Page-Hinkley test on the model's error minus the control's: their differences, less
 * DRIFT_SLACK each, are added up. The model has drifted once the sum is DRIFT_LIMIT above its
 * least value. The test compares with the control, not with the model's own past, so that it
 * also finds a model that was bad from the start.
 */
#define DRIFT_KEEP	256	/* errors that averages are made of */
#define DRIFT_SLACK	0.02	/* worse by this is no drift, parts of a resource */
#define DRIFT_LIMIT	3.0	/* errors that are too large, added up */

/**
 * struct drift - errors so far; all zero at first
 * @n: number of errors
 * @error: mean absolute error of the model, parts of a resource; 0 unless @n
 * @control: the same of the control
 * @sum: sum of the test
 * @least: least value of @sum
 */
struct drift {
	uint64_t n;
	double error, control;
	double sum, least;
};

/* Add the errors of an answer, which are finite. Return whether the model has drifted. */
bool drift_add(struct drift *d, double error, double control);

#endif /* MGPU_LEARN_DRIFT_H */
