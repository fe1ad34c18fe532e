/* SPDX-License-Identifier: GPL-2.0-only */
/* The screen of gpuctl top. */
#ifndef GPUCTL_TOP_SCREEN_H
#define GPUCTL_TOP_SCREEN_H

#include <stdbool.h>

#include "gpuctl.h"

/* Whether standard input and output are a terminal on which a screen can be drawn. */
bool top_can_draw(void);

/*
 * Draw until a key, a signal or the count of refreshes ends it. Returns 0, or -errno with a
 * sentence; the terminal is then as it was.
 */
int top_draw(const struct gpuctl *ctl, struct mgpu *mgpu, struct mgpu_error *err);

#endif /* GPUCTL_TOP_SCREEN_H */
