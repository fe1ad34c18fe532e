/* SPDX-License-Identifier: GPL-2.0-only */
/* A report as a page. Pure but for writing. */
#ifndef GPUCTL_REPORT_HTML_H
#define GPUCTL_REPORT_HTML_H

#include <stdio.h>

/*
 * Write a page of HTML that needs no other file and no script. Names of VMs and decisions are
 * not trusted: they are cleaned and escaped. @report: struct report; for replace_file(). Returns
 * 0 or -1, with errno.
 */
int report_html(const void *report, FILE *to);

#endif /* GPUCTL_REPORT_HTML_H */
