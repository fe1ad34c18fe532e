// SPDX-License-Identifier: GPL-2.0-only
/* Files that end with a checksum. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "checked.h"
#include "checksum.h"

#define FORMAT	"checksum %016" PRIx64

void checked_init(struct checked *c, FILE *f, const char *name, char *why, size_t size)
{
	*c = (struct checked){
		.f = f, .name = name, .sum = CHECKSUM_START, .why = why, .size = size,
	};
	why[0] = '\0';
}

int checked_refuse(const struct checked *c, const char *fmt, ...)
{
	va_list args;
	int len;

	len = snprintf(c->why, c->size, "%s:%u: ", c->name, c->line);
	va_start(args, fmt);
	if (len >= 0 && (size_t)len < c->size)
		vsnprintf(c->why + len, c->size - (size_t)len, fmt, args);
	va_end(args);
	return -EINVAL;
}

static int ends_early(const struct checked *c)
{
	return checked_refuse(c, "the file ends too early; train again, or get a whole copy");
}

/* Read a line, which must end. */
static int read_line(struct checked *c)
{
	size_t len = 0;
	int byte;

	c->line++;
	while ((byte = getc(c->f)) != EOF && byte != '\n') {
		if (len == sizeof(c->text) - 1 || !byte)
			return checked_refuse(c, "not a line of a file of weights; get a whole copy");
		c->text[len++] = (char)byte;
	}
	c->text[len] = '\0';
	return byte == EOF ? ends_early(c) : 0;
}

int checked_line(struct checked *c)
{
	if (read_line(c))
		return -EINVAL;
	c->sum = checksum_add(checksum_add(c->sum, c->text, strlen(c->text)), "\n", 1);
	return 0;
}

int checked_bytes(struct checked *c, char *data, size_t size)
{
	if (fread(data, 1, size, c->f) != size)
		return ends_early(c);
	c->sum = checksum_add(c->sum, data, size);
	for (size_t i = 0; i < size; i++)
		c->line += data[i] == '\n';
	return 0;
}

int checked_end(struct checked *c)
{
	char sum[40];

	snprintf(sum, sizeof(sum), FORMAT, c->sum);
	if (read_line(c))
		return -EINVAL;
	if (strcmp(c->text, sum))
		return checked_refuse(c, "the checksum is wrong: the file was changed; train again, or get a whole copy");
	c->line++;
	if (getc(c->f) != EOF)
		return checked_refuse(c, "something follows the checksum; get a whole copy");
	return 0;
}

int checked_finish(uint64_t sum, FILE *f)
{
	fprintf(f, FORMAT "\n", sum);
	return fflush(f) || ferror(f) ? -EIO : 0;
}
