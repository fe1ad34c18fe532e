/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPU on which this mgpu-renderd renders. */
#ifndef RENDERD_NODE_H
#define RENDERD_NODE_H

#include "renderd.h"

/**
 * node_claim() - find the render node, and be the only mgpu-renderd of its GPU
 * @gpu: PCI address, or "none"; may be NULL
 * @node: path of the render node, NULL for none; set to the node of @gpu
 * @record: record of this process, as renderd_claim() gives it, with the node
 * @err: sentence about an error
 *
 * Return: 0; -EBUSY, another mgpu-renderd has the GPU; or another negative errno.
 */
int node_claim(const char *gpu, const char **node, struct renderd *record,
	       struct mgpu_error *err);

#endif /* RENDERD_NODE_H */
