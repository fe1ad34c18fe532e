/* SPDX-License-Identifier: GPL-2.0-only */
/* A library of OpenCL that the tests of the server play; ./play writes its functions. */
#ifndef TESTS_REMOTE_PLAY_H
#define TESTS_REMOTE_PLAY_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "opencl_back.h"

/* Objects that are not released. */
extern atomic_int played_objects;

/* The test says what a function returns, and whether commands have ended. */
int32_t played_status(const char *function);
int32_t played_done(void);

void played_library(struct opencl_calls *calls);

struct played {
	atomic_int refs;
	uint32_t unit;
};

static inline void *played_new(uint64_t unit)
{
	struct played *o = malloc(sizeof(*o));

	if (!o)
		abort();
	atomic_init(&o->refs, 1);
	o->unit = (uint32_t)unit;
	played_objects++;
	return o;
}

static inline uint32_t played_unit(const void *object)
{
	return ((const struct played *)object)->unit;
}

/* The object of this kind that the library has. */
void *played_root(unsigned int kind);

/* Read all bytes: a sanitizer sees those that are not there. */
static inline void played_read(const void *p, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		(void)((const volatile uint8_t *)p)[i];
}

static inline void played_look(const void *object)
{
	if (object)
		played_read(object, sizeof(struct played));
}

static inline void played_keep(void *object)
{
	atomic_fetch_add(&((struct played *)object)->refs, 1);
}

static inline void played_free(void *object)
{
	struct played *o = object;

	if (atomic_fetch_sub(&o->refs, 1) == 1) {
		played_objects--;
		free(o);
	}
}

static inline void played_answer(const void *object, cl_uint name, size_t size, void *value,
				 size_t *ret)
{
	const void *root = played_root(1);
	cl_int done = played_done() ? CL_COMPLETE : CL_QUEUED;
	size_t unit = name == CL_IMAGE_ELEMENT_SIZE ? played_unit(object) : 4, len = 40;
	cl_uint nr = 1;
	const void *p = "the answer to a question, as a text here";

	switch (name) {
	case CL_EVENT_COMMAND_EXECUTION_STATUS:
		p = &done;
		len = sizeof(done);
		break;
	case CL_DEVICE_PLATFORM:
		root = played_root(0);
		p = &root;
		len = sizeof(root);
		break;
	case CL_CONTEXT_DEVICES:
	case CL_QUEUE_DEVICE:
	case CL_QUEUE_CONTEXT:
		p = &root;
		len = sizeof(root);
		break;
	case CL_IMAGE_ELEMENT_SIZE:
	case CL_PROGRAM_BINARY_SIZES:
		p = &unit;
		len = sizeof(unit);
		break;
	case CL_PROGRAM_NUM_DEVICES:
		p = &nr;
		len = sizeof(nr);
		break;
	case CL_PROGRAM_BINARIES:
		if (value && size == sizeof(void *) && *(void **)value)
			memset(*(void **)value, 1, unit);
		return;
	}
	if (value && size >= len)
		memcpy(value, p, len);
	if (ret)
		*ret = len;
}

#endif /* TESTS_REMOTE_PLAY_H */
