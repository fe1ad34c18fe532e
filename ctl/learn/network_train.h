/* SPDX-License-Identifier: GPL-2.0-only */
/* Train the response network.  Pure: the same samples, options and processor give the same. */
#ifndef MGPU_LEARN_NETWORK_TRAIN_H
#define MGPU_LEARN_NETWORK_TRAIN_H

#include "network.h"
#include "training.h"

/**
 * struct network_progress - how far a training is
 * @epoch: epochs done
 * @epochs: most that there will be
 * @loss: mean loss of the samples in this epoch
 * @validation: mean loss of the samples that are not learned from; NAN if there are none
 * @best: the epoch with the least @validation
 */
struct network_progress {
	unsigned int epoch;
	unsigned int epochs;
	double loss;
	double validation;
	unsigned int best;
};

/**
 * struct network_training - how to train
 * @seed: of the first weights and of the order of the samples
 * @form: of the response factor
 * @epochs: times that each sample is learned from, at most; at least 1
 * @batch: samples that make one step, at least 1
 * @rate: length of a step at the beginning, such as 0.003; it falls to a hundredth of this
 * @patience: stop after so many epochs without a smaller loss of the validation, 0: never
 * @progress: optional; called after each epoch. True stops the training, which then
 *	counts as complete
 * @arg: for @progress
 */
struct network_training {
	uint64_t seed;
	enum network_form form;
	unsigned int epochs;
	unsigned int batch;
	double rate;
	unsigned int patience;
	bool (*progress)(void *arg, const struct network_progress *p);
	void *arg;
};

/* Set all but the callback to what is known to work. */
void network_training_defaults(struct network_training *t);

/* Make the weights that training begins with. */
void network_init(struct network_weights *w, enum network_form form, uint64_t seed);

/**
 * network_train() - learn from samples
 * @w: result; with validation that of the best epoch
 * @samples: to learn from, at least 1
 * @n: their number
 * @validation: optional: others, by which the best epoch is chosen
 * @nr_validation: their number
 * @t: how
 *
 * The loss of a sample is the Kullback-Leibler divergence of the predicted shares from the
 * label, in nats, mean over the resources whose label adds up to more than 0.
 *
 * Return: 0, -EINVAL if an argument is out of its range, -ENOMEM, or -ERANGE if weights went
 * out of theirs: a smaller @rate mends it.
 */
int network_train(struct network_weights *w, const struct learn_sample *samples, size_t n,
		  const struct learn_sample *validation, size_t nr_validation,
		  const struct network_training *t);

/* Write the mean loss of samples. Return 0 or -ENOMEM. */
int network_loss(const struct network_weights *w, const struct learn_sample *samples, size_t n,
		 double *loss);

/*
 * Add the gradient of a sample's loss to @gradient; return the loss. @scratch is
 * network_scratch_new()'s. For the training and its tests.
 */
struct network_scratch;
struct network_scratch *network_scratch_new(void);
double network_gradient(const struct network_weights *w, const struct learn_sample *sample,
			struct network_scratch *scratch, struct network_parameters *gradient);

#endif /* MGPU_LEARN_NETWORK_TRAIN_H */
