/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls of a GPU API, as ctl/api/NAME.yaml describes them.
 */
#ifndef MGPU_DEFER_API_H
#define MGPU_DEFER_API_H

#include <stdbool.h>
#include <stdint.h>

#define API_MAX_ARGS	16
#define API_NO_ARG	-1

/**
 * enum api_arg_type - what an argument is to the call
 * @API_SCALAR: number
 * @API_HANDLE: object of the API, such as a queue or a buffer
 * @API_IN: memory that the call reads before it returns
 * @API_OUT: memory that the call, or what it starts, writes
 * @API_STRING: text that ends with a NUL
 * @API_PARAMS: array of pointers to the values of a kernel's parameters
 * @API_POINTER: address that the call keeps, such as host memory of a buffer
 * @API_CALLBACK: function that the API calls
 * @API_BYTES: half of a structure that lies in two registers
 */
enum api_arg_type {
	API_SCALAR,
	API_HANDLE,
	API_IN,
	API_OUT,
	API_STRING,
	API_PARAMS,
	API_POINTER,
	API_CALLBACK,
	API_BYTES,
};

/**
 * enum api_result - what a call gives back, in a return value or in memory
 * @API_NOTHING: no return value
 * @API_STATUS: 0, or an error
 * @API_OBJECT: handle
 * @API_DATA: anything else
 */
enum api_result {
	API_NOTHING,
	API_STATUS,
	API_OBJECT,
	API_DATA,
};

/**
 * enum api_place - where a call is executed
 * @API_REMOTE: by the GPU's driver: it may be put off
 * @API_LOCAL: by the program's own library: the answer is there also while others are put off
 * @API_LOCAL_ONCE: likewise, and the answer is the same each time
 * @API_PUSHES: likewise: the call keeps its arguments for the next one that pops them
 * @API_POPS: likewise: the call gives back what was pushed last
 */
enum api_place {
	API_REMOTE,
	API_LOCAL,
	API_LOCAL_ONCE,
	API_PUSHES,
	API_POPS,
};

struct api_case;

/**
 * struct api_arg - argument of a call
 * @name: name in the API's specification
 * @type: what it is to the call
 * @holds: what memory of type API_OUT receives
 * @length_arg: number of the argument that the length is in, or API_NO_ARG
 * @length_unit: bytes; the length, or the length of each of @length_arg elements; 0 if the
 *	description does not know it
 */
struct api_arg {
	const char *name;
	enum api_arg_type type;
	enum api_result holds;
	int length_arg;
	unsigned int length_unit;
};

/**
 * struct api_function - call of an API
 * @name: its symbol
 * @api: name of the API
 * @returns: what it returns
 * @answers: the program calls it for its answer, or to wait: it cannot be put off
 * @blocking_arg: number of the argument that makes it wait for its data unless it is 0, or
 *	API_NO_ARG
 * @blocks: it waits for its data whatever its arguments are
 * @place: where it is executed
 * @case_arg: number of the argument that decides what the others are, or API_NO_ARG
 * @nr_cases: number of its values that are known
 * @cases: the call for each of these values; for others it is this one
 * @nr_args: number of arguments
 * @args: the arguments, in their order
 */
struct api_function {
	const char *name;
	const char *api;
	enum api_result returns;
	bool answers;
	bool blocks;
	int blocking_arg;
	enum api_place place;
	int case_arg;
	unsigned int nr_cases;
	const struct api_case *cases;
	unsigned int nr_args;
	struct api_arg args[API_MAX_ARGS];
};

/**
 * struct api_case - what a call is where an argument has some value
 * @value: the value
 * @fn: the call
 */
struct api_case {
	int64_t value;
	struct api_function fn;
};

/* Sorted by name. */
extern const struct api_function api_functions[];
extern const unsigned int api_nr_functions;

/* Return the call of this symbol, or NULL. */
const struct api_function *api_find(const char *symbol);

/* Return what a call is where the argument that decides has a value. */
const struct api_function *api_case(const struct api_function *fn, int64_t value);

#endif /* MGPU_DEFER_API_H */
