// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random programs on vGPUs of a physical GPU; see fuzz/fuzz.c.
 *
 * needs: gpu
 */
#include "fuzz/fuzz.h"
#include "virgl.h"

int main(void)
{
	gl_need_gpu();
	return fuzz_main("small-render", true);
}
