// SPDX-License-Identifier: GPL-2.0-only
/* Shared by both kinds of database. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sql.h"

int sql_failed(struct sql *sql, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sql->error, sizeof(sql->error), fmt, ap);
	va_end(ap);
	return -EIO;
}

void sql_holder(char *text, size_t size)
{
	char host[40] = "";

	gethostname(host, sizeof(host) - 1);
	snprintf(text, size, "process %d on %s", (int)getpid(), host);
}
