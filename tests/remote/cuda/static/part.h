/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TESTS_REMOTE_CUDA_STATIC_PART_H
#define TESTS_REMOTE_CUDA_STATIC_PART_H

#define CU(call)	good(call, #call)

void good(cudaError_t error, const char *what);
void scale(float *p, int n, float by, cudaStream_t stream);

#endif /* TESTS_REMOTE_CUDA_STATIC_PART_H */
