/* SPDX-License-Identifier: GPL-2.0-only */
/* Samples of what the kernel module and the BPF programs count. */
#ifndef MGPUD_OBSERVE_H
#define MGPUD_OBSERVE_H

#include "mgpu.h"
#include "sample.h"

struct observer;

/*
 * @why: what of eBPF does not work and how to mend it, "" when all does. Then
 * the module's own counters take the place of eBPF's.
 */
int observer_open(struct observer **observer, struct mgpu *mgpu, char *why,
		  size_t len, struct mgpu_error *err);
void observer_close(struct observer *o);

/* The sample belongs to the observer and is good until the next one. */
int observer_sample(struct observer *o, const struct sample **sample,
		    struct mgpu_error *err);

bool observer_bpf(const struct observer *o);	/* all of eBPF is at work */
bool observer_charge(const struct observer *o);	/* eBPF charges */
uint64_t observer_missed(const struct observer *o); /* events eBPF missed */

#endif /* MGPUD_OBSERVE_H */
