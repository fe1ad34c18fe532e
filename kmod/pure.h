/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Definitions with which the pure parts of the module (decoder, ring, throttle, run
 * queue) build in the kernel and, unchanged, in user space for tests and fuzzing.
 */
#ifndef MGPU_PURE_H
#define MGPU_PURE_H

#ifdef __KERNEL__

#include <asm/byteorder.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/barrier.h>

#else

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * The run queue needs lists and trees, which a kernel source has for user space in
 * tools/include.  If that is on the path, <linux/types.h> above is from there too.
 * Include its definitions first, so that the order of includes elsewhere does not
 * matter.  <linux/rbtree.h> identifies tools/include: the C library's kernel headers
 * have a <linux/kernel.h> too, but no trees.
 */
#if __has_include("linux/rbtree.h")
#include <linux/kernel.h>
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#ifndef __force
#define __force
#endif

#ifndef le16_to_cpu
#define le16_to_cpu(x)	le16toh((u16)(x))
#define le32_to_cpu(x)	le32toh((u32)(x))
#define le64_to_cpu(x)	le64toh((u64)(x))
#define cpu_to_le16(x)	htole16((u16)(x))
#define cpu_to_le32(x)	htole32((u32)(x))
#define cpu_to_le64(x)	htole64((u64)(x))
#endif

#ifndef READ_ONCE
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#endif

#ifndef U32_MAX
#define U32_MAX		UINT32_MAX
#endif
#ifndef U64_MAX
#define U64_MAX		UINT64_MAX
#define S64_MAX		INT64_MAX
#endif

#define smp_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define smp_rmb()	__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_mb()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define check_add_overflow(a, b, d)	__builtin_add_overflow(a, b, d)
#define check_mul_overflow(a, b, d)	__builtin_mul_overflow(a, b, d)

static inline u64 div_u64(u64 a, u32 b)
{
	return a / b;
}

static inline u64 div_u64_rem(u64 a, u32 b, u32 *rem)
{
	*rem = a % b;
	return a / b;
}

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

#endif /* __KERNEL__ */

#endif /* MGPU_PURE_H */
