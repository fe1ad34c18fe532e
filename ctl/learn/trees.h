/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gradient-boosted trees as a model of shares: the control that the response network must be
 * better than. A forest for each resource predicts the logarithm of the VM's share over its part by
 * weight (learn_static): most VMs of a GPU that is short get about that.
 * The payload is the line "trees VERSION", a line with the name of each resource, and its forest.
 *
 * The model, learn_trees of learn.h, is pure and needs no library. Training does.
 */
#ifndef MGPU_LEARN_TREES_H
#define MGPU_LEARN_TREES_H

#include "boost.h"
#include "training.h"

#define TREES_VERSION	1
#define TREES_LEAST	1e-4f	/* lower shares count as this in training */

/* Names of resources in a payload. */
extern const char *const trees_resource[LEARN_RESOURCES];

/**
 * trees_train() - train a payload
 * @payload: result, for free(); a NUL follows it
 * @size: result: its size without that NUL
 * @samples: samples to train on
 * @n: number of samples, at least 1
 * @check: samples for validation; training stops when their error does not fall
 * @nr_check: number of samples for validation, 0: all rounds are done
 * @o: options
 * @error: result: root of the mean squared error on @check, or else on @samples, by resource
 * @why: the error as a sentence
 * @len: size of @why, bytes
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int trees_train(char **payload, size_t *size, const struct learn_sample *samples, size_t n,
		const struct learn_sample *check, size_t nr_check,
		const struct boost_options *o, double error[LEARN_RESOURCES],
		char *why, size_t len);

#endif /* MGPU_LEARN_TREES_H */
