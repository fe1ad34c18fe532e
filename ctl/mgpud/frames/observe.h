/* SPDX-License-Identifier: GPL-2.0-only */
/* Samples of the counters of the kernel module and the BPF programs. */
#ifndef MGPUD_OBSERVE_H
#define MGPUD_OBSERVE_H

#include "mgpu.h"
#include "sample.h"

struct observer;

/*
 * @why: which BPF programs are missing and what to do, "" if none is. The module's own
 * counters replace those of a missing program.
 */
int observer_open(struct observer **observer, struct mgpu *mgpu, char *why,
		  size_t len, struct mgpu_error *err);
void observer_close(struct observer *o);

/* The sample belongs to the observer and is valid until the next call. */
int observer_sample(struct observer *o, const struct sample **sample,
		    struct mgpu_error *err);

bool observer_bpf(const struct observer *o);	/* all BPF programs are attached */
bool observer_charge(const struct observer *o);	/* a BPF program charges */
uint64_t observer_missed(const struct observer *o); /* as counters_missed() */

#endif /* MGPUD_OBSERVE_H */
