// SPDX-License-Identifier: GPL-2.0-only
/* Attributes of sysfs and procfs. */
#include <stdio.h>
#include <string.h>

#include "sysfs.h"

bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool good = file && fgets(line, (int)size, file);

	if (file)
		fclose(file);
	if (!good)
		*line = '\0';
	line[strcspn(line, "\n")] = '\0';
	return good;
}
