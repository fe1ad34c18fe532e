/* SPDX-License-Identifier: GPL-2.0-only */
/* Included before all else: the exporter's main() is a function that a test calls. */
#ifndef TEST_METRICS_H
#define TEST_METRICS_H

#define main exporter_main

int exporter_main(int argc, char **argv);

#endif /* TEST_METRICS_H */
