/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs for a vGPU: sequences of operations in a compact encoding.
 *
 * A program is a sequence of records.  A record is the operation (bit 7: the machine's
 * second thread executes it while the first goes on), the number of bytes of its
 * arguments, and these bytes.  Any bytes are a program: an operation's number is taken
 * modulo their count, and arguments that are missing are 0.
 */
#ifndef KSELFTEST_FUZZ_PROG_H
#define KSELFTEST_FUZZ_PROG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PROG_MAX	1024	/* bytes of a program */
#define PROG_ASYNC	0x80

enum op {
	/* the driver's and the VMM's registers */
	OP_START, OP_STATUS, OP_VFIO_RESET, OP_CONFIG, OP_BAR, OP_COMMON, OP_IRQS,
	OP_INFO, OP_BAD_POINTER,
	/* rings */
	OP_KICK, OP_DESC, OP_AVAIL, OP_FLIP, OP_WAIT,
	/* the VMM */
	OP_MAP, OP_UNMAP, OP_REOPEN, OP_DISPLAY,
	/* user space's settings */
	OP_SET_VGPU, OP_SET_DEV, OP_PREEMPT, OP_RESUME, OP_ASK, OP_NETLINK,
	/* commands with a payload */
	OP_COMPUTE, OP_GL, OP_RAW,
	/* one for each command of exec.c's table */
	OP_COMMAND,
	OP_CREATE_2D = OP_COMMAND, OP_UNREF, OP_SET_SCANOUT, OP_FLUSH, OP_TRANSFER_2D,
	OP_ATTACH, OP_DETACH, OP_DISPLAY_INFO, OP_CAPSET_INFO, OP_CAPSET, OP_EDID,
	OP_ASSIGN_UUID, OP_CREATE_BLOB, OP_SET_SCANOUT_BLOB, OP_CTX_CREATE,
	OP_CTX_DESTROY, OP_CTX_ATTACH, OP_CTX_DETACH, OP_CREATE_3D, OP_TO_HOST_3D,
	OP_FROM_HOST_3D, OP_MAP_BLOB, OP_UNMAP_BLOB, OP_CURSOR, OP_MOVE_CURSOR,
	NR_OPS
};

struct prog {
	uint16_t len;
	uint8_t data[PROG_MAX];
};

/* A record of a program. */
struct record {
	const uint8_t *at;	/* its first byte */
	enum op op;
	bool async;
	const uint8_t *args;
	unsigned int len;	/* bytes of the arguments */
};

/* Get the record at *@at and move it on; false at the end. */
bool prog_next(const struct prog *p, unsigned int *at, struct record *r);
/* Add a record; false when it does not fit. */
bool prog_add(struct prog *p, uint8_t op, const uint8_t *args, unsigned int len);

/* ---- random programs ---- */

struct dice {
	uint64_t state;
};

void dice_seed(struct dice *d, uint64_t seed);
uint32_t dice(struct dice *d, uint32_t n);	/* 0 to n - 1 */

/* Constants that the module compares with, for arguments. */
struct dictionary {
	unsigned int nr;
	uint32_t word[1024];
};

void prog_random(struct prog *p, struct dice *d, const struct dictionary *dict);
void prog_mutate(struct prog *p, struct dice *d, const struct dictionary *dict,
		 const struct prog *other);

/* Programs that use the device as a driver does; false when @i is too large. */
bool prog_seed(unsigned int i, struct prog *p);

const char *op_name(unsigned int op);

/* ---- arguments ---- */

struct args {
	const uint8_t *p;
	unsigned int left;
};

uint8_t arg(struct args *a);
uint32_t arg_num(struct args *a);	/* often small or at a boundary */
uint64_t arg_size(struct args *a);	/* the same of offsets and lengths */

/* ---- text: a program a line, in hex ---- */

/* Read the next program, past comments; false at the end. */
bool prog_read(FILE *f, struct prog *p, char *comment, size_t room);
/* Write a line to @to, which has room for PROG_TEXT bytes; its length. */
#define PROG_TEXT	(2 * PROG_MAX + 2)
size_t prog_text(const struct prog *p, char *to);

#endif /* KSELFTEST_FUZZ_PROG_H */
