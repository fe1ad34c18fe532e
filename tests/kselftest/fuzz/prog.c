// SPDX-License-Identifier: GPL-2.0-only
/* Programs: encoding, random programs, mutation.  See prog.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "prog.h"

#define HEAD	2	/* bytes of a record before the arguments */
#define RAW	0xf0	/* of a number: four bytes follow */
#define FIRST_SPECIAL 0xa0

/* ---- records ---- */

bool prog_next(const struct prog *p, unsigned int *at, struct record *r)
{
	unsigned int left;

	if (*at + HEAD > p->len)
		return false;
	r->at = &p->data[*at];
	r->op = (r->at[0] & ~PROG_ASYNC) % NR_OPS;
	r->async = r->at[0] & PROG_ASYNC;
	r->args = r->at + HEAD;
	left = p->len - *at - HEAD;
	r->len = r->at[1] < left ? r->at[1] : left;
	*at += HEAD + r->len;
	return true;
}

bool prog_add(struct prog *p, uint8_t op, const uint8_t *args, unsigned int len)
{
	if (len > 255 || p->len + HEAD + len > PROG_MAX)
		return false;
	p->data[p->len] = op;
	p->data[p->len + 1] = (uint8_t)len;
	memcpy(&p->data[p->len + HEAD], args, len);
	p->len += HEAD + len;
	return true;
}

/* ---- dice ---- */

void dice_seed(struct dice *d, uint64_t seed)
{
	d->state = seed * 0x9e3779b97f4a7c15ull + 1;
}

/* splitmix64 */
uint32_t dice(struct dice *d, uint32_t n)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ z >> 31) >> 16) % n;
}

/* ---- arguments ---- */

uint8_t arg(struct args *a)
{
	if (!a->left)
		return 0;
	a->left--;
	return *a->p++;
}

static const uint32_t special[] = {
	160, 255, 256, 257, 511, 512, 640, 768, 1000, 1023, 1024, 1025, 1920, 2048,
	2160, 3840, 4095, 4096, 4097, 8191, 8192, 16383, 16384, 16385, 32767, 32768,
	65535, 65536, 65537, 1u << 17, 1u << 18, 1u << 19, 0xfffff, 1u << 20,
	(1u << 20) + 1, 1u << 21, 1u << 22, 1u << 24, 1u << 26, 1u << 28, 1u << 30,
	0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xc0000000, 0xfffff000,
	0xfffffff0, 0xfffffff8, 0xfffffffc, 0xfffffffe, 0xffffffff, 0x3f800000,
	0xbf800000, 0x7f800000, 0x4350474d, 0x00ff00ff, 0x01010101,
};

#define NR_SPECIAL	(sizeof(special) / sizeof(special[0]))

static uint32_t raw(struct args *a)
{
	uint32_t v = arg(a);

	v |= (uint32_t)arg(a) << 8;
	v |= (uint32_t)arg(a) << 16;
	return v | (uint32_t)arg(a) << 24;
}

uint32_t arg_num(struct args *a)
{
	uint8_t b = arg(a);

	if (b < FIRST_SPECIAL)
		return b;
	return b < RAW ? special[(b - FIRST_SPECIAL) % NR_SPECIAL] : raw(a);
}

uint64_t arg_size(struct args *a)
{
	uint8_t b = arg(a);
	uint64_t low;

	if (b < 0x40)
		return b * 8u;
	if (b < 0x80)
		return (b - 0x3fu) * 4096;
	if (b < 0xc0)
		return 1ull << (b - 0x80);
	if (b < RAW)
		return special[(b - 0xc0) % NR_SPECIAL];
	low = raw(a);
	return b & 1 ? low : low | (uint64_t)raw(a) << 32;
}

/* ---- random programs ---- */

/* Bytes of arguments that an operation has use for, and how often it is chosen. */
static const struct {
	uint8_t args;
	uint8_t weight;
} shape[NR_OPS] = {
	[OP_START] = { 4, 4 }, [OP_STATUS] = { 1, 3 }, [OP_VFIO_RESET] = { 0, 2 },
	[OP_CONFIG] = { 4, 3 }, [OP_BAR] = { 6, 3 }, [OP_COMMON] = { 3, 6 },
	[OP_IRQS] = { 8, 6 }, [OP_INFO] = { 3, 2 }, [OP_BAD_POINTER] = { 3, 1 },
	[OP_KICK] = { 2, 4 }, [OP_DESC] = { 8, 6 }, [OP_AVAIL] = { 4, 6 },
	[OP_FLIP] = { 4, 4 }, [OP_WAIT] = { 1, 5 }, [OP_MAP] = { 2, 4 },
	[OP_UNMAP] = { 2, 5 }, [OP_REOPEN] = { 1, 1 }, [OP_DISPLAY] = { 3, 5 },
	[OP_SET_VGPU] = { 8, 4 }, [OP_SET_DEV] = { 4, 3 }, [OP_PREEMPT] = { 4, 4 },
	[OP_RESUME] = { 2, 3 }, [OP_ASK] = { 3, 2 }, [OP_NETLINK] = { 16, 2 },
	[OP_COMPUTE] = { 24, 10 }, [OP_GL] = { 48, 8 }, [OP_RAW] = { 24, 3 },
	[OP_CREATE_2D] = { 6, 6 }, [OP_UNREF] = { 3, 5 }, [OP_SET_SCANOUT] = { 6, 6 },
	[OP_FLUSH] = { 6, 10 }, [OP_TRANSFER_2D] = { 7, 6 }, [OP_ATTACH] = { 8, 6 },
	[OP_DETACH] = { 3, 4 }, [OP_DISPLAY_INFO] = { 2, 1 },
	[OP_CAPSET_INFO] = { 3, 1 }, [OP_CAPSET] = { 4, 2 }, [OP_EDID] = { 3, 1 },
	[OP_ASSIGN_UUID] = { 3, 1 }, [OP_CREATE_BLOB] = { 10, 8 },
	[OP_SET_SCANOUT_BLOB] = { 14, 5 }, [OP_CTX_CREATE] = { 6, 6 },
	[OP_CTX_DESTROY] = { 2, 4 }, [OP_CTX_ATTACH] = { 3, 6 },
	[OP_CTX_DETACH] = { 3, 3 }, [OP_CREATE_3D] = { 13, 6 },
	[OP_TO_HOST_3D] = { 13, 5 }, [OP_FROM_HOST_3D] = { 13, 5 },
	[OP_MAP_BLOB] = { 4, 1 }, [OP_UNMAP_BLOB] = { 3, 1 }, [OP_CURSOR] = { 9, 4 },
	[OP_MOVE_CURSOR] = { 9, 4 },
};

static uint8_t random_op(struct dice *d)
{
	uint32_t sum = 0, at;
	unsigned int op;

	for (op = 0; op < NR_OPS; op++)
		sum += shape[op].weight;
	at = dice(d, sum);
	for (op = 0; at >= shape[op].weight; op++)
		at -= shape[op].weight;
	return (uint8_t)(op | (dice(d, 6) ? 0 : PROG_ASYNC));
}

static uint8_t random_byte(struct dice *d)
{
	switch (dice(d, 8)) {
	case 0:
	case 1:
		return (uint8_t)dice(d, 256);
	case 2:
	case 3:
		return (uint8_t)dice(d, 32);
	default:
		return (uint8_t)dice(d, 4);
	}
}

/* Put a constant that the module compares with over arguments. */
static void put_word(uint8_t *to, unsigned int room, struct dice *d,
		     const struct dictionary *dict)
{
	unsigned int at;
	uint32_t word;

	if (room < 5 || !dict->nr)
		return;
	word = dict->word[dice(d, dict->nr)];
	at = dice(d, room - 4);
	to[at] = RAW | 1;
	memcpy(to + at + 1, &word, sizeof(word));
}

static void random_record(struct prog *p, struct dice *d, const struct dictionary *dict)
{
	uint8_t args[64], op = random_op(d);
	unsigned int n = shape[op & ~PROG_ASYNC].args, i;

	if (!dice(d, 4))
		n = dice(d, sizeof(args) + 1);
	for (i = 0; i < n; i++)
		args[i] = random_byte(d);
	if (!dice(d, 8))
		put_word(args, n, d, dict);
	prog_add(p, op, args, n);
}

void prog_random(struct prog *p, struct dice *d, const struct dictionary *dict)
{
	const uint8_t features = (uint8_t)dice(d, 3);
	unsigned int n = 2 + dice(d, 24);

	p->len = 0;
	if (dice(d, 8))
		prog_add(p, OP_START, &features, 1);
	while (n--)
		random_record(p, d, dict);
}

/* ---- mutation ---- */

#define RECORDS_MAX	(PROG_MAX / HEAD)

static unsigned int split(const struct prog *p, struct record *r)
{
	unsigned int at = 0, n = 0;

	while (n < RECORDS_MAX && prog_next(p, &at, &r[n]))
		n++;
	return n;
}

static void add(struct prog *to, const struct record *r)
{
	prog_add(to, r->at[0], r->args, r->len);
}

static void change(struct prog *p, struct dice *d, const struct dictionary *dict,
		   const struct record *r)
{
	uint8_t *args = p->data + (r->args - p->data);
	unsigned int i;

	if (!r->len || !dice(d, 8)) {
		p->data[r->at - p->data] ^= PROG_ASYNC;
		return;
	}
	if (!dice(d, 6)) {
		put_word(args, r->len, d, dict);
		return;
	}
	i = dice(d, r->len);
	switch (dice(d, 4)) {
	case 0:
		args[i] ^= (uint8_t)(1u << dice(d, 8));
		break;
	case 1:
		args[i] += (uint8_t)(dice(d, 2) ? 1 : -1);
		break;
	default:
		args[i] = random_byte(d);
		break;
	}
}

/* Mutate @p once.  A mutation that moves records makes @p anew from them. */
static void mutate(struct prog *p, struct dice *d, const struct dictionary *dict,
		   const struct prog *other)
{
	struct record r[RECORDS_MAX], o[RECORDS_MAX];
	unsigned int n = split(p, r), m, i, from, to;
	struct prog out = { 0 };

	if (!n) {
		prog_random(p, d, dict);
		return;
	}
	from = dice(d, n);
	switch (dice(d, 8)) {
	case 0:
	case 1:
	case 2:
		change(p, d, dict, &r[from]);
		return;
	case 3:		/* insert */
		for (i = 0; i < n; i++) {
			if (i == from)
				random_record(&out, d, dict);
			add(&out, &r[i]);
		}
		break;
	case 4:		/* remove */
		for (i = 0; i < n; i++)
			if (i != from || n == 1)
				add(&out, &r[i]);
		break;
	case 5:		/* swap */
		to = dice(d, n);
		for (i = 0; i < n; i++)
			add(&out, &r[i == from ? to : i == to ? from : i]);
		break;
	case 6:		/* splice */
		m = split(other, o);
		to = m ? dice(d, m) : 0;
		for (i = 0; i <= from; i++)
			add(&out, &r[i]);
		for (i = to; i < m; i++)
			add(&out, &o[i]);
		break;
	default:	/* repeat */
		for (i = 0; i < n; i++) {
			add(&out, &r[i]);
			if (i == from)
				add(&out, &r[i]);
		}
		break;
	}
	*p = out;
}

void prog_mutate(struct prog *p, struct dice *d, const struct dictionary *dict,
		 const struct prog *other)
{
	unsigned int n = 1 + dice(d, 4);

	while (n--)
		mutate(p, d, dict, other);
}

/* ---- text ---- */

static int digit(int c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

bool prog_read(FILE *f, struct prog *p, char *comment, size_t room)
{
	char line[PROG_TEXT + 2];
	size_t i;

	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#') {
			if (comment)
				snprintf(comment, room, "%s", line);
			continue;
		}
		for (i = 0; i < PROG_MAX; i++) {
			if (digit(line[2 * i]) < 0 || digit(line[2 * i + 1]) < 0)
				break;
			p->data[i] = (uint8_t)(digit(line[2 * i]) << 4 |
					       digit(line[2 * i + 1]));
		}
		p->len = (uint16_t)i;
		if (i)
			return true;
	}
	return false;
}

size_t prog_text(const struct prog *p, char *to)
{
	unsigned int i;

	for (i = 0; i < p->len; i++)
		snprintf(to + 2 * i, 3, "%02x", p->data[i]);
	to[2 * i] = '\n';
	to[2 * i + 1] = 0;
	return 2 * i + 1;
}

/* ---- seeds ---- */

static const char *const names[NR_OPS] = {
	"START", "STATUS", "VFIO_RESET", "CONFIG", "BAR", "COMMON", "IRQS", "INFO",
	"BAD_POINTER", "KICK", "DESC", "AVAIL", "FLIP", "WAIT", "MAP", "UNMAP", "REOPEN",
	"DISPLAY", "SET_VGPU", "SET_DEV", "PREEMPT", "RESUME", "ASK", "NETLINK", "COMPUTE",
	"GL", "RAW", "CREATE_2D", "UNREF", "SET_SCANOUT", "FLUSH", "TRANSFER_2D", "ATTACH",
	"DETACH", "DISPLAY_INFO", "CAPSET_INFO", "CAPSET", "EDID", "ASSIGN_UUID",
	"CREATE_BLOB", "SET_SCANOUT_BLOB", "CTX_CREATE", "CTX_DESTROY", "CTX_ATTACH",
	"CTX_DETACH", "CREATE_3D", "TO_HOST_3D", "FROM_HOST_3D", "MAP_BLOB", "UNMAP_BLOB",
	"CURSOR", "MOVE_CURSOR",
};

const char *op_name(unsigned int op)
{
	return op < NR_OPS ? names[op] : "none";
}

/*
 * Programs as text: operations are separated by ';', and '@' marks those of the second
 * thread.  The first argument of a command is how it is sent (1: with a fence), the second
 * one its context.
 */
#define COMPUTE_SETUP							\
	"START 1; CTX_CREATE 0 1 4 10 0; CREATE_BLOB 0 0 1 1 1 1 0 0x4f 4 3; " \
	"CREATE_BLOB 0 0 2 1 1 1 0 0x4f 8 3; CREATE_BLOB 0 0 3 1 1 1 0 0x4f 12 3; "	\
	"CTX_ATTACH 0 1 1; CTX_ATTACH 0 1 2; CTX_ATTACH 0 1 3; "
#define GL_SETUP							\
	"START 2; CTX_CREATE 0 1 4 0; CREATE_3D 0 1 1 2 1 10 0 0 0 0 0 0 0; "	\
	"ATTACH 0 0 1 1 0 0; CTX_ATTACH 0 1 1; CREATE_3D 0 1 2 2 1 10 0 0 0 0 0 0 0; "	\
	"CTX_ATTACH 0 1 2; "

static const char *const seeds[] = {
	"START 0; CREATE_2D 0 0 1 0 0 0; ATTACH 0 0 1 1 0 0; "
	"SET_SCANOUT 0 0 0 0 1; TRANSFER_2D 0 0 0 0 1; FLUSH 1 0 0 1; WAIT 10; "
	"DISPLAY 0 1; DETACH 0 0 1; UNREF 0 0 1; WAIT 10; ",
	"START 0; CREATE_BLOB 0 0 1 1 1 1 0 0x4f 4 3; "
	"SET_SCANOUT_BLOB 0 0 0 0 1 0 0 0 0; FLUSH 1 0 0 1; @DISPLAY 2 3; "
	"FLUSH 1 0 0 1; WAIT 10; DISPLAY 1 9; @UNMAP 1; FLUSH 0 0 0 1; MAP 1; "
	"WAIT 10; ",
	"START 0; CREATE_2D 0 0 2 0 0 0; ATTACH 0 0 2 1 0 0; "
	"CURSOR 0 0 0 5 6 2 1 1; MOVE_CURSOR 0 0 0 7 8 2; WAIT 10; DISPLAY 0 3; "
	"MOVE_CURSOR 0 0 0 1 0xd3 2; ",
	"START 0; DISPLAY_INFO 0; EDID 0 0 0; CAPSET_INFO 0 0 0; CAPSET 0 0 10 1; "
	"CAPSET 0 0 2 1; ASSIGN_UUID 0 0 1; WAIT 10; ",
	/* all compute operations; numbers are those of struct mgpu_compute_cmd */
	COMPUTE_SETUP "COMPUTE 3 1 1 0 1 1 0 0 0 0x40 7; WAIT 20; ",
	COMPUTE_SETUP "COMPUTE 3 1 2 0 2 1 2 0 0 0 0x40; WAIT 20; ",
	COMPUTE_SETUP "COMPUTE 3 1 3 2 2 1 2 0 0 3 3 0xa2 0 2 2 0xa2; WAIT 20; ",
	COMPUTE_SETUP "COMPUTE 3 1 4 0 3 1 2 3 0 0 0 16 0; WAIT 20; ",
	COMPUTE_SETUP
	"COMPUTE 3 1 5 0 1 1 0 0 0 0x40 3 3 9 0 0 0x94 0x94; WAIT 20; ",
	COMPUTE_SETUP "COMPUTE 3 1 6 0 2 1 2 0 0 0x40 0 0x40 0x08; WAIT 20; ",
	COMPUTE_SETUP "COMPUTE 3 1 7 0 2 1 2 0 0 0x40 0 3 6 8 8 0; WAIT 20; ",
	COMPUTE_SETUP
	"COMPUTE 3 1 8 0 2 1 2 0 0 0 0x40; WAIT 20; CTX_DETACH 0 1 2; UNREF 0 0 2; "
	"CTX_DESTROY 0 1; ",
	/* a job that takes long is preempted, goes on, and is dropped */
	COMPUTE_SETUP
	"COMPUTE 3 1 5 0 1 1 0 0 0 0x43 0 0 0xb0 0 0 0x84 0x84; WAIT 2; "
	"PREEMPT 1 0 1 0; ASK 2 1; RESUME 1 1; @PREEMPT 1 2 0 0; SET_DEV 1 1 0; "
	"WAIT 5; CTX_DESTROY 0 1; ",
	/* GL: clear, blit, copy, a transfer each way */
	GL_SETUP "GL 3 1 0x80 1 0x81 1 0x82; WAIT 20; GL 3 1 0x83 2 1 0x84 2 1; "
	"FROM_HOST_3D 3 1 0 0 1; TO_HOST_3D 3 1 0 0 1; "
	"WAIT 20; ",
	GL_SETUP
	"SET_SCANOUT 0 0 0 0 1; GL 3 1 0x80 1 0x81 1 0x82; FLUSH 1 0 0 1; WAIT 20; "
	"DISPLAY 0 3; CTX_DETACH 0 1 1; UNREF 0 0 1; CTX_DESTROY 0 1; WAIT 20; ",
	GL_SETUP "GL 3 1 0x85 1 1 0x85 1 0 0x86 1 0 0x87 1; GL 3 1 29 0 1 1; WAIT 20; ",
	/* interrupts: of each kind, masked, by hand */
	"IRQS 2 8 0 3 0 1 2; START 0; DISPLAY_INFO 0; WAIT 5; IRQS 0 8 0 1 0; "
	"IRQS 0 0 0 1 0; IRQS 0 1 0 1 0; IRQS 0 2 0 1 0; IRQS 4 8 0 1 3; "
	"IRQS 3 8 0 1 3; IRQS 2 2 0 0; ",
	"START 3; IRQS 0 8 0 1 0; BAR 1 0 0 1 0; CONFIG 1 5 2 4; DISPLAY_INFO 0; "
	"WAIT 2; IRQS 0 7 0 1 1; BAR 0 1 0 2; CONFIG 1 5 2 0; ",
	/* settings */
	"START 0; SET_VGPU 0 1 50; SET_VGPU 0 2 0xb6; SET_VGPU 0 4 0xa8; "
	"SET_VGPU 0 32 128 100; ASK 0; ASK 1; SET_DEV 0 1; SET_DEV 2 1; "
	"NETLINK 3 1 4; ",
	/* rings by hand: a loop, an indirect table, a wrong head */
	"START 0; DESC 0 0 0 24 1 0; AVAIL 0 0 1; KICK 0 1; STATUS 0; START 0; "
	"DESC 0 3 8 32 4 0; DESC 2 0 0 24 1 1; DESC 2 1 64 64 2 0; AVAIL 0 3 1; "
	"KICK 0 1; AVAIL 0 0xf1 99 0 0 0 1; KICK 0 1; ",
	/* a command that changes while it is read */
	"START 0; @FLIP 0 8 200; CREATE_BLOB 0 0 1 1 1 1 0 0x4f 4 3; "
	"CREATE_BLOB 0 0 2 1 1 1 0 0x4f 8 3; "
	"CREATE_BLOB 0 0 3 1 1 1 0 0x4f 12 3; @FLIP 1 8 200; FLUSH 0 0 0 1; "
	"CREATE_2D 0 0 1; ",
	/* registers, the window, the other ways to reset */
	"CONFIG 1 0x9c 0 0; CONFIG 1 0xf1 0xa0 0 0 0 2 0x14; "
	"CONFIG 1 0xf1 0xa4 0 0 0 2 1; CONFIG 0 0xf1 0xa8 0 0 0 2; INFO 0 9; "
	"INFO 1 2; INFO 2; BAD_POINTER 0; VFIO_RESET 0; REOPEN 1; START 0; "
	"CONFIG 1 0xf1 0xb4 0 0 0 0 1; ",
};

static int op_number(const char *name, size_t len)
{
	int op;

	for (op = 0; op < NR_OPS; op++)
		if (strlen(names[op]) == len && !memcmp(names[op], name, len))
			return op;
	return -1;
}

/* Add the operation at @text, which ends before @end; false when it is none. */
static bool parse_op(struct prog *p, const char *text, const char *end)
{
	bool async = *text == '@';
	const char *name = text + async;
	size_t len = strcspn(name, " ;");
	uint8_t args[64];
	unsigned int n = 0;
	int op = op_number(name, len);
	char *next;

	for (text = name + len; text < end && n < sizeof(args); text = next) {
		args[n] = (uint8_t)strtoul(text, &next, 0);
		if (next == text || next > end)
			break;
		n++;
	}
	return op >= 0 && prog_add(p, (uint8_t)(op | (async ? PROG_ASYNC : 0)), args, n);
}

bool prog_seed(unsigned int i, struct prog *p)
{
	const char *at, *end;

	p->len = 0;
	if (i >= sizeof(seeds) / sizeof(seeds[0]))
		return false;
	for (at = seeds[i]; *at; at = end + strspn(end, "; ")) {
		end = at + strcspn(at, ";");
		if (!parse_op(p, at, end))
			abort();
	}
	return true;
}
