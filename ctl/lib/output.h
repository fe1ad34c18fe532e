/* SPDX-License-Identifier: GPL-2.0-only */
/* Ends of programs that print results. */
#ifndef LIBMGPU_OUTPUT_H
#define LIBMGPU_OUTPUT_H

struct json_object;

/* Print JSON and free it. Return the exit status. */
int print_json(struct json_object *json);

/* Return a number with @digits decimal places; NULL (null in JSON) if it is not finite. */
struct json_object *rounded(double value, int digits);

/* Flush standard output; complains. Return the exit status. */
int end_output(void);

#endif /* LIBMGPU_OUTPUT_H */
