/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hosts of the service: their jobs, and what they say about GPUs, VMs and devices.  One thread
 * uses them, the one that uses the pool.
 */
#ifndef POOL_HOSTS_H
#define POOL_HOSTS_H

#include "api.h"
#include "config.h"
#include "effects.h"

struct hosts;

/* Without a host yet; NULL if libvirt's library does not start. */
struct hosts *hosts_new(struct pool *pool, struct store *store, struct effects *effects);
void hosts_free(struct hosts *hosts);

/**
 * hosts_set() - connect to the hosts of the configuration
 *
 * A host that is not among them any more is disconnected; its requests wait until it is there
 * again.
 *
 * Return: 0 or -ENOMEM.
 */
int hosts_set(struct hosts *hosts, const struct config *config);

/* Hosts with their states, until the next hosts_set(). */
const struct api_host *hosts_list(const struct hosts *hosts, size_t *nr);

/* Readable when hosts said something. */
int hosts_fd(const struct hosts *hosts);
/* Do what they said. Return 1, 0 if there is nothing, -EIO if the database takes nothing now. */
int hosts_run(struct hosts *hosts, int64_t now);

/* Begin a job of its host. */
void hosts_add(struct hosts *hosts, const struct pool_job *job);

/* ---- hosts_merge.c: pure ---- */

/**
 * hosts_merge_gpu() - what the host says about a GPU, and what is known of it
 * @gpu: in: from the host; out: to be stored
 * @old: stored before, NULL for none
 *
 * An administrator's words stay: that it is offline, and, of the same kind of card, its model,
 * memory and abilities. While it is in use, the host's drivers that it had before are remembered.
 *
 * Return: whether another kind of card is at the address.
 */
bool hosts_merge_gpu(struct pool_gpu *gpu, const struct pool_gpu *old);

/**
 * hosts_merge_vm() - what the host says about a VM, and what is known of it
 * @vm: in: from the host; out: to be stored
 * @old: stored before, NULL for none
 * @default_project: project of a VM that is new
 *
 * Return: 0; 1 if it is another VM of the same name, whose key, consent and project go;
 * -EEXIST if another host has a VM of this name.
 */
int hosts_merge_vm(struct pool_vm *vm, const struct pool_vm *old, const char *default_project);

#endif /* POOL_HOSTS_H */
