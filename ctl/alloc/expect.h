/* SPDX-License-Identifier: GPL-2.0-only */
/* Expectations of vGPUs that have no counters yet. */
#ifndef MGPU_EXPECT_H
#define MGPU_EXPECT_H

#include <math.h>
#include <stdbool.h>

/**
 * struct expect - what is expected of a vGPU that is not active
 * @cpu: part of the CPUs that will be due to it, 0 to 1; NAN: nothing is expected
 * @gpu: part of its device's engines that will be due to it, 0 to 1; NAN with @cpu
 * @fps: the rate that both allow, frames per second; INFINITY while a frame's costs are
 *	not known
 * @starting: it has begun to show frames, and is not measured yet
 *
 * decide() limits the vGPU to this until it is measured, so that it takes no more from the
 * others in its first periods. While it is @starting, the others are given what is left.
 */
struct expect {
	double cpu;
	double gpu;
	double fps;
	bool starting;
};

#define EXPECT_NONE ((struct expect){ .cpu = NAN, .gpu = NAN, .fps = INFINITY })

#endif /* MGPU_EXPECT_H */
