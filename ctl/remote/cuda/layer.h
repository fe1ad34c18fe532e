/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The runtime library tells the front end where the program called it, since loops are known by the
 * places of the program's calls.  Another driver has no such function, and is told nothing.
 */
#ifndef REMOTE_CUDA_LAYER_H
#define REMOTE_CUDA_LAYER_H

#include <stdbool.h>

/* The program has called the library; @site is the address that the call returns to. */
typedef void mgpu_called(const void *site);

/* Name of the front end's function that has the type of mgpu_layer(). */
#define MGPU_LAYER	"mgpu_layer"

/**
 * mgpu_layer() - have the calls of a library count as calls of the program
 * @start: first byte of the library's code
 * @end: behind its last byte
 * @within: the program is not linked with the library, and calls it all the same
 *
 * Calls from there leave the place as it is.  There is one such library in a process.
 *
 * Return: the function that the library calls when the program has called it.
 */
mgpu_called *mgpu_layer(const void *start, const void *end, bool within);

#endif /* REMOTE_CUDA_LAYER_H */
