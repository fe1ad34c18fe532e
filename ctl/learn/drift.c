// SPDX-License-Identifier: GPL-2.0-only
/* Errors of a model and of a control. Pure. */
#include <math.h>

#include "drift.h"

bool drift_add(struct drift *d, double error, double control)
{
	double part;

	d->n++;
	part = 1 / fmin((double)d->n, DRIFT_KEEP);
	d->error += (error - d->error) * part;
	d->control += (control - d->control) * part;
	d->sum += error - control - DRIFT_SLACK;
	d->least = fmin(d->least, d->sum);
	return d->sum - d->least > DRIFT_LIMIT;
}
