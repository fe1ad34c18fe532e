/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of mgpud at the moment, and whether it still updates the targets in the module. */
#ifndef GPUCTL_CONTROL_H
#define GPUCTL_CONTROL_H

#include <stdbool.h>

#include "json_read.h"
#include "mgpu.h"

struct json_object;

/* mgpud is late if its last sample is older than this number of periods and seconds. */
#define CONTROL_PERIODS	3
#define CONTROL_SLACK_S	1

/**
 * struct control - mgpud as gpuctl finds it
 * @state: its state, NULL if it does not answer
 * @why: error without a state
 * @age: age of its last sample, seconds; NAN if it is unknown
 * @late: the last sample is too old, or mgpud does not answer
 */
struct control {
	struct json_object *state;
	struct mgpu_error why;
	double age;
	bool late;
};

/* Ask mgpud. Never fails: a mgpud that does not answer is a result. */
void control_read(struct control *control);
void control_free(struct control *control);

/* Return whether a controller limits a vGPU. */
bool control_sets(const struct mgpu_vgpu_info *vgpu);

/* Return whether the vGPU has a target that no controller updates any more. */
bool control_is_stale(const struct control *control, const struct mgpu_vgpu_info *vgpu);

/* Write why targets are stale: "mgpud does not run". */
const char *control_why(const struct control *control, char *text, size_t size);

/* Length of mgpud's period, seconds; NAN if it is unknown. */
double control_period(struct json_object *state);

#endif /* GPUCTL_CONTROL_H */
