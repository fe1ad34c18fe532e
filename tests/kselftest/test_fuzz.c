// SPDX-License-Identifier: GPL-2.0-only
/* Random programs on vGPUs of mgpu_soft; see fuzz/fuzz.c. */
#include "fuzz/fuzz.h"

int main(void)
{
	return fuzz_main("small-render", false);
}
