// SPDX-License-Identifier: GPL-2.0-only
/* Files of learned weights. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "file.h"

#define HEAD	"mgpu-learn"

/**
 * struct reader - a file that is being read
 * @f: the file
 * @name: its name
 * @text: the line last read, without its end
 * @sum: checksum of all that was read before that line
 * @why: for an error
 * @len: size of @why
 */
struct reader {
	FILE *f;
	const char *name;
	char text[LEARN_FILE_LINE + 32];
	uint64_t sum;
	char *why;
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static int refuse(const struct reader *r, const char *fmt, ...)
{
	va_list args;
	int n;

	n = snprintf(r->why, r->len, "%s: ", r->name);
	va_start(args, fmt);
	if (n >= 0 && (size_t)n < r->len)
		vsnprintf(r->why + n, r->len - (size_t)n, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Read a line, which must end. */
static int next_line(struct reader *r)
{
	size_t n = 0;
	int c;

	while ((c = getc(r->f)) != EOF && c != '\n') {
		if (n == sizeof(r->text) - 1 || !c)
			return refuse(r, "not a file of learned weights; 'mgpu-learn train' writes one");
		r->text[n++] = (char)c;
	}
	r->text[n] = '\0';
	if (c == EOF)
		return refuse(r, "the file ends too early; train again, or get a whole copy");
	return 0;
}

/* Read a line that begins with a word; return what follows, NULL after a complaint. */
static const char *value_of(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	if (next_line(r))
		return NULL;
	if (strncmp(r->text, word, n) || r->text[n] != ' ') {
		refuse(r, "\"%.32s\" instead of a line that begins with \"%s\"; train again, or get a whole copy",
		       r->text, word);
		return NULL;
	}
	r->sum = checksum_add(checksum_add(r->sum, r->text, strlen(r->text)), "\n", 1);
	return r->text + n + 1;
}

static int read_text(struct reader *r, const char *word, char *text, size_t size)
{
	const char *value = value_of(r, word);

	if (!value)
		return -EINVAL;
	if (strlen(value) >= size)
		return refuse(r, "the line \"%s\" is longer than %zu bytes", word, size - 1);
	strcpy(text, value);
	return 0;
}

static int read_number(struct reader *r, const char *word, uint64_t most, uint64_t *number)
{
	const char *value = value_of(r, word);
	char *end;

	if (!value)
		return -EINVAL;
	errno = 0;
	*number = strtoull(value, &end, 10);
	if (errno || *end || *value < '0' || *value > '9' || *number > most)
		return refuse(r, "\"%s %.32s\" must be a whole number of at most %" PRIu64, word,
			      value, most);
	return 0;
}

static int read_head(struct reader *r, struct learn_file *file)
{
	uint64_t version, size;
	int ret = read_number(r, HEAD, UINT32_MAX, &version);

	if (ret)
		return refuse(r, "not a file of learned weights; 'mgpu-learn train' writes one");
	if (version != LEARN_FILE_VERSION)
		return refuse(r, "version %" PRIu64 "; this program reads version %d: train again",
			      version, LEARN_FILE_VERSION);
	ret = read_text(r, "model", file->model, sizeof(file->model));
	if (!ret)
		ret = read_number(r, "made", INT64_MAX, &file->made_s);
	if (!ret)
		ret = read_text(r, "data", file->data, sizeof(file->data));
	if (!ret)
		ret = read_text(r, "evaluation", file->evaluation, sizeof(file->evaluation));
	if (!ret)
		ret = read_number(r, "size", LEARN_FILE_SIZE_MAX, &size);
	file->size = ret ? 0 : (size_t)size;
	return ret;
}

int learn_file_read(struct learn_file *file, FILE *f, const char *name, char *why, size_t len)
{
	struct reader r = { .f = f, .name = name, .sum = CHECKSUM_START, .why = why, .len = len };
	char sum[40];
	int ret;

	memset(file, 0, sizeof(*file));
	why[0] = '\0';
	ret = read_head(&r, file);
	if (ret)
		return ret;
	file->payload = malloc(file->size + 1);
	if (!file->payload) {
		refuse(&r, "out of memory");
		return -ENOMEM;
	}
	file->payload[file->size] = '\0';
	if (fread(file->payload, 1, file->size, f) != file->size) {
		ret = refuse(&r, "the file ends too early; train again, or get a whole copy");
		goto err;
	}
	r.sum = checksum_add(r.sum, file->payload, file->size);
	snprintf(sum, sizeof(sum), "checksum %016" PRIx64, r.sum);
	ret = next_line(&r);
	if (!ret && strcmp(r.text, sum))
		ret = refuse(&r, "the checksum is wrong: the file was changed; train again, or get a whole copy");
	if (!ret && getc(f) != EOF)
		ret = refuse(&r, "something follows the checksum; get a whole copy");
	if (!ret)
		return 0;
err:
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
	fprintf(f, "checksum %016" PRIx64 "\n", sum);
	return fflush(f) || ferror(f) ? -EIO : 0;
}

void learn_file_free(struct learn_file *file)
{
	free(file->payload);
	memset(file, 0, sizeof(*file));
}
