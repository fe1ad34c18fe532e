/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Metrics as text: OpenMetrics 1.0, or the text format 0.0.4 that node_exporter and promtool
 * read.  Pure: no clock, no input or output.
 *
 * An unknown value is written by no function here: the caller does not call.
 */
#ifndef METRICS_EXPOSE_H
#define METRICS_EXPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a label's value at most, before they are escaped; more are cut off. */
#define EXPOSE_VALUE_MAX	160

/**
 * struct text - text that grows
 * @bytes: the text, which is not terminated
 * @len: its length, bytes
 * @room: size of @bytes
 * @limit: length that it must not exceed, bytes; 0 for none
 * @failed: memory or @limit did not suffice: the text is not complete
 */
struct text {
	char *bytes;
	size_t len;
	size_t room;
	size_t limit;
	bool failed;
};

void text_add(struct text *t, const char *bytes, size_t len);
void text_str(struct text *t, const char *s);
void text_free(struct text *t);

/* Add a number that has @decimals decimals, without zeros at its end: 1500 with 3 is 1.5. */
void text_number(struct text *t, uint64_t value, unsigned int decimals);

/* Add a finite or infinite number. */
void text_double(struct text *t, double value);

/**
 * text_label() - add a label, with a comma before it if the text is not empty
 * @t: text that has labels only
 * @name: its name
 * @value: its value, any bytes: what is not UTF-8, and control characters, become U+FFFD
 *
 * Prometheus refuses a whole exposition for a value that is not UTF-8.
 */
void text_label(struct text *t, const char *name, const char *value);

enum expose_format {
	EXPOSE_OPENMETRICS,
	EXPOSE_TEXT,
};

enum expose_type {
	EXPOSE_GAUGE,
	EXPOSE_COUNTER,
	EXPOSE_INFO,
	EXPOSE_HISTOGRAM,
};

/**
 * struct expose_family - a metric
 * @name: its name, with the unit as last word, without _total or _info
 * @unit: base unit, "" for a number of things
 * @help: what it is, a sentence
 * @type: its type
 */
struct expose_family {
	const char *name;
	const char *unit;
	const char *help;
	enum expose_type type;
};

/* Name of a type, and what the name of a sample has behind that of its metric. */
const char *expose_type_name(enum expose_type type);
const char *expose_suffix(enum expose_type type);

/**
 * struct expose - an exposition that is written
 * @text: what was written
 * @format: its format
 * @family: the metric whose samples follow
 * @begun: the lines about @family are written
 */
struct expose {
	struct text *text;
	enum expose_format format;
	const struct expose_family *family;
	bool begun;
};

/*
 * Begin with a metric.  Its samples follow, all before those of the next one.  A metric
 * without samples is not mentioned.
 */
void expose_family(struct expose *e, const struct expose_family *family);

/* @labels: text of text_label(), may be empty; @len: its length */
void expose_number(struct expose *e, const char *labels, size_t len, uint64_t value,
		   unsigned int decimals);
void expose_double(struct expose *e, const char *labels, size_t len, double value);

/**
 * expose_histogram() - write a histogram of times
 * @e: exposition
 * @labels: labels
 * @len: their length
 * @counts: MGPU_HIST_BUCKETS counts, as in mgpu.h
 * @first: bucket whose end is the first bound; the counts below are added to it
 *
 * The sum of the times is not known.  OpenMetrics then has neither a sum nor a count; the text
 * format must have a sum, which is NaN.
 */
void expose_histogram(struct expose *e, const char *labels, size_t len, const uint64_t *counts,
		      unsigned int first);

/* End the exposition. */
void expose_end(struct expose *e);

#endif /* METRICS_EXPOSE_H */
