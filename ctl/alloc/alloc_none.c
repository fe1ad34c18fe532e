// SPDX-License-Identifier: GPL-2.0-only
/*
 * No scheduling: everything is measured and sent, but no targets are set. The
 * control that other allocators are compared with.
 */
#include "alloc.h"

const struct alloc_ops alloc_none = {
	.name = "none",
	.summary = "measures only, sets no limits",
};
