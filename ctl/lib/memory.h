/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LIBMGPU_MEMORY_H
#define LIBMGPU_MEMORY_H

#include <stdint.h>

/* Bytes of private memory that this process can write to, as RLIMIT_DATA counts them. */
uint64_t data_bytes(void);

#endif /* LIBMGPU_MEMORY_H */
