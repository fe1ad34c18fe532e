/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Live registers: those that are read before they are set.
 */
#ifndef MGPU_DEFER_LIVE_H
#define MGPU_DEFER_LIVE_H

#include "cfg.h"

#define LIVE_ALL	0xffffU

/**
 * find_live() - find the registers that are live at the start of each block
 * @capstone: handle for x86-64 with CS_OPT_DETAIL
 * @g: graph of a function
 * @live: result: for each block a bit for each general register, by its number
 *
 * A function on which there is a way that puts nothing into rax returns nothing.
 *
 * Return: 0, or -ENOMEM
 */
int find_live(csh capstone, const struct cfg *g, uint16_t *live);

#endif /* MGPU_DEFER_LIVE_H */
