// SPDX-License-Identifier: GPL-2.0-only
/* Files of learned weights. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checked.h"
#include "checksum.h"
#include "file.h"

#define HEAD	"mgpu-learn"

/* Read a line that begins with a word; return what follows, NULL after a complaint. */
static const char *value_of(struct checked *c, const char *word)
{
	size_t n = strlen(word);

	if (checked_line(c))
		return NULL;
	if (strncmp(c->text, word, n) || c->text[n] != ' ') {
		checked_refuse(c, "\"%.32s\" instead of a line that begins with \"%s\"; train again, or get a whole copy",
			       c->text, word);
		return NULL;
	}
	return c->text + n + 1;
}

static int read_text(struct checked *c, const char *word, char *text, size_t size)
{
	const char *value = value_of(c, word);

	if (!value)
		return -EINVAL;
	if (strlen(value) >= size)
		return checked_refuse(c, "the line \"%s\" is longer than %zu bytes", word,
				      size - 1);
	strcpy(text, value);
	return 0;
}

static int read_number(struct checked *c, const char *word, uint64_t most, uint64_t *number)
{
	const char *value = value_of(c, word);
	char *end;

	if (!value)
		return -EINVAL;
	errno = 0;
	*number = strtoull(value, &end, 10);
	if (errno || *end || *value < '0' || *value > '9' || *number > most)
		return checked_refuse(c, "\"%s %.32s\" must be a whole number of at most %" PRIu64,
				      word, value, most);
	return 0;
}

static int read_head(struct checked *c, struct learn_file *file)
{
	uint64_t version, size;
	int ret = read_number(c, HEAD, UINT32_MAX, &version);

	if (ret)
		return checked_refuse(c, "not a file of learned weights; 'mgpu-learn train' writes one");
	if (version != LEARN_FILE_VERSION)
		return checked_refuse(c, "version %" PRIu64 "; this program reads version %d: train again",
				      version, LEARN_FILE_VERSION);
	ret = read_text(c, "model", file->model, sizeof(file->model));
	if (!ret)
		ret = read_number(c, "made", INT64_MAX, &file->made_s);
	if (!ret)
		ret = read_text(c, "data", file->data, sizeof(file->data));
	if (!ret)
		ret = read_text(c, "evaluation", file->evaluation, sizeof(file->evaluation));
	if (!ret)
		ret = read_number(c, "size", LEARN_FILE_SIZE_MAX, &size);
	file->size = ret ? 0 : (size_t)size;
	return ret;
}

int learn_file_read(struct learn_file *file, FILE *f, const char *name, char *why, size_t len)
{
	struct checked c;
	int ret;

	memset(file, 0, sizeof(*file));
	checked_init(&c, f, name, why, len);
	ret = read_head(&c, file);
	if (ret)
		return ret;
	file->payload = malloc(file->size + 1);
	if (!file->payload) {
		checked_refuse(&c, "out of memory");
		return -ENOMEM;
	}
	file->payload[file->size] = '\0';
	ret = checked_bytes(&c, file->payload, file->size);
	if (!ret)
		ret = checked_end(&c);
	if (ret)
		learn_file_free(file);
	return ret;
}

int learn_file_write(const struct learn_file *file, FILE *f)
{
	char head[LEARN_FILE_LINE * 3];
	uint64_t sum;
	int n;

	n = snprintf(head, sizeof(head),
		     HEAD " %d\nmodel %s\nmade %" PRIu64 "\ndata %s\nevaluation %s\nsize %zu\n",
		     LEARN_FILE_VERSION, file->model, file->made_s, file->data,
		     file->evaluation, file->size);
	sum = checksum_add(CHECKSUM_START, head, (size_t)n);
	sum = checksum_add(sum, file->payload, file->size);
	fputs(head, f);
	fwrite(file->payload, 1, file->size, f);
	return checked_finish(sum, f);
}

void learn_file_free(struct learn_file *file)
{
	free(file->payload);
	memset(file, 0, sizeof(*file));
}
