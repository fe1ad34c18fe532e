// SPDX-License-Identifier: GPL-2.0-only
/* mgpud as gpuctl finds it. */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "control.h"
#include "mgpud_client.h"

/* mgpud answers between two periods' work, which takes some milliseconds. */
#define ANSWER_MS	1000

double control_period(struct json_object *state)
{
	double seconds = json_number(state, "period_s");

	/* of an mgpud that is older than gpuctl */
	return isnan(seconds) ? json_number(state, "period_ms") / 1e3 : seconds;
}

void control_read(struct control *control)
{
	struct mgpud *mgpud;

	memset(control, 0, sizeof(*control));
	if (!mgpud_connect(&mgpud, NULL, &control->why)) {
		mgpud_get_within(mgpud, &control->state, ANSWER_MS, &control->why);
		mgpud_close(mgpud);
	}
	/* an mgpud that is older than gpuctl does not tell it */
	control->age = json_number(control->state, "sample_age_s");
	if (control->state)
		control->late = control->age > CONTROL_PERIODS *
				control_period(control->state) + CONTROL_SLACK_S;
	else
		/* a user who may not ask does not know */
		control->late = control->why.code != -EACCES;
}

void control_free(struct control *control)
{
	json_object_put(control->state);
	control->state = NULL;
}

bool control_sets(const struct mgpu_vgpu_info *vgpu)
{
	return vgpu->fps_target || vgpu->gpu_target;
}

bool control_is_stale(const struct control *control, const struct mgpu_vgpu_info *vgpu)
{
	return control->late && control_sets(vgpu);
}

const char *control_why(const struct control *control, char *text, size_t size)
{
	if (control->state)
		snprintf(text, size, "mgpud's last sample is %.1f s old", control->age);
	else if (control->why.code == -ENOENT || control->why.code == -ECONNREFUSED)
		snprintf(text, size, "mgpud does not run");
	else
		snprintf(text, size, "mgpud does not answer");
	return text;
}
