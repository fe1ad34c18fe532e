/* SPDX-License-Identifier: GPL-2.0-only */
/* Included before all else: gpuctl's main() is a function that a test calls. */
#ifndef TEST_GPUCTL_CTX_H
#define TEST_GPUCTL_CTX_H

#define main gpuctl_main

int gpuctl_main(int argc, char **argv);

#endif /* TEST_GPUCTL_CTX_H */
