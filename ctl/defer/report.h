/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The analysis' findings, as JSON, as text and as a picture.  The text is made from the JSON,
 * which is what the cache keeps.
 */
#ifndef MGPU_DEFER_REPORT_H
#define MGPU_DEFER_REPORT_H

#include <json-c/json.h>
#include <stdio.h>

#include "classify.h"

/* The number changes with what is said, and with what is found. */
#define REPORT_VERSION	2

/* Return the report as JSON, which the caller releases; NULL: out of memory. */
json_object *report_json(const struct report *r, const struct image *img,
			 const struct classify_options *o);

/* Print a report of report_json(). */
void report_print(json_object *report, const char *program, FILE *out);

/* A picture in the language of Graphviz, of all functions; an argument of report_picture(). */
struct picture {
	FILE *out;
	unsigned int nr;		/* functions so far */
};

void picture_begin(struct picture *p, FILE *out);
/* For struct classify_options. */
void picture_function(const struct cfg *g, const struct loop_report *loops, unsigned int nr_loops,
		      void *picture);
void picture_end(struct picture *p);

#endif /* MGPU_DEFER_REPORT_H */
