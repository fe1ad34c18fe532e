// SPDX-License-Identifier: GPL-2.0-only
/* Files of learned weights: what is written is read, and nothing else. */
#include "file.h"
#include "tap.h"

static char payload[] = "w 1 2\n\0\n\xff 3";
static const struct learn_file original = {
	.model = "network", .made_s = 1700000000, .data = "0123abcd",
	.evaluation = "0.31 nats on 100 samples", .payload = payload, .size = sizeof(payload),
};

static char *written(const struct learn_file *file, size_t *len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, len);

	if (!f || learn_file_write(file, f) || fclose(f))
		abort();
	return text;
}

static int read_text(const char *text, size_t len, struct learn_file *file, char why[300])
{
	FILE *f = len ? fmemopen((void *)text, len, "r") : fopen("/dev/null", "r");
	int ret;

	if (!f)
		abort();
	ret = learn_file_read(file, f, "some.file", why, 300);
	fclose(f);
	return ret;
}

/* Expect a refusal that names the file and a line, and has @part. */
static void refused(const char *text, size_t len, const char *part)
{
	struct learn_file file;
	unsigned int line;
	char why[300];
	int at = 0;

	TAP_EQ(read_text(text, len, &file, why), -EINVAL);
	if (!TAP_CHECK(sscanf(why, "some.file:%u: %n", &line, &at) == 1 && at && line >= 1 &&
		       line <= 10 && strstr(why + at, part)))
		tap_diag("%s", why);
	TAP_CHECK(!file.payload);
}

static void round_trip(void)
{
	struct learn_file file;
	char why[300], *text;
	size_t len;

	text = written(&original, &len);
	TAP_NEED(!read_text(text, len, &file, why));
	TAP_STR(file.model, original.model);
	TAP_EQ(file.made_s, original.made_s);
	TAP_STR(file.data, original.data);
	TAP_STR(file.evaluation, original.evaluation);
	TAP_EQ(file.size, sizeof(payload));
	TAP_MEM(file.payload, payload, sizeof(payload));
	TAP_EQ(file.payload[file.size], 0);
	TAP_STR(why, "");
	learn_file_free(&file);
	TAP_CHECK(!file.payload);
	free(text);
}

static void empty_payload(void)
{
	struct learn_file file, none = original;
	char why[300], *text;
	size_t len;

	none.size = 0;
	text = written(&none, &len);
	TAP_EQ(read_text(text, len, &file, why), 0);
	TAP_EQ(file.size, 0);
	learn_file_free(&file);
	free(text);
}

static void truncations(void)
{
	size_t len;
	char *text = written(&original, &len);

	for (size_t n = 0; n < len; n++)
		refused(text, n, "");
	free(text);
}

static void flipped_bits(void)
{
	size_t len;
	char *text = written(&original, &len);

	for (size_t i = 0; i < len; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			text[i] = (char)(text[i] ^ 1 << bit);
			refused(text, len, "");
			text[i] = (char)(text[i] ^ 1 << bit);
		}
	free(text);
}

static void refuse_text(const char *text, const char *part)
{
	refused(text, strlen(text), part);
}

static void versions(void)
{
	refuse_text("mgpu-learn 2\nmodel x\n",
		    "version 2; this program reads version 1: train again");
	refuse_text("mgpu-learn 0\n", "version 0");
	refuse_text("mgpu-learn 99999999999\n", "not a file of learned weights");
	refuse_text("mgpu-learn -1\n", "not a file of learned weights");
	refuse_text("mgpu-place-weights 1\n", "not a file of learned weights; 'mgpu-learn train'");
}

#define HEAD	"mgpu-learn 1\nmodel m\nmade 1\ndata d\nevaluation e\n"

static void heads(void)
{
	char text[600];

	refuse_text("mgpu-learn 1\nmade 1\n", "instead of a line that begins with \"model\"");
	refuse_text("mgpu-learn 1\nmodel 0123456789012345678901234567890123\n",
		    "longer than 31 bytes");
	refuse_text("mgpu-learn 1\nmodel m\nmade x\n", "\"made x\" must be a whole number");
	refuse_text("mgpu-learn 1\nmodel m\nmade  1\n", "must be a whole number");
	refuse_text(HEAD "size 8388609\n", "at most 8388608");
	refuse_text(HEAD "size 99999999999999999999\n", "must be a whole number");
	refuse_text(HEAD "size 4\nab", "ends too early");
	refuse_text(HEAD "size 1\na", "ends too early");
	snprintf(text, sizeof(text),
		 "mgpu-learn 1\nmodel m\nmade 1\ndata d\nevaluation %0400d\n", 1);
	refuse_text(text, "not a line of a file of weights");
}

static void behind_the_checksum(void)
{
	size_t len;
	char *text = written(&original, &len), *more = malloc(len + 1);

	TAP_NEED(more);
	memcpy(more, text, len);
	more[len] = '\n';
	refused(more, len + 1, "something follows the checksum");
	text[len - 2] = (char)(text[len - 2] ^ 1);
	refused(text, len, "the checksum is wrong");
	free(more);
	free(text);
}

static void short_errors(void)
{
	struct learn_file file;
	FILE *f = fmemopen((void *)"x\n", 2, "r");
	char why[8] = "1234567";

	TAP_NEED(f);
	TAP_EQ(learn_file_read(&file, f, "a long name", why, 5), -EINVAL);
	TAP_STR(why, "a lo");
	TAP_EQ(why[5], '6');
	fclose(f);
}

static void full_disk(void)
{
	FILE *f = fopen("/dev/full", "w");

	TAP_NEED(f);
	TAP_EQ(learn_file_write(&original, f), -EIO);
	fclose(f);
}

int main(void)
{
	tap_run(round_trip, "a file that was written is read");
	tap_run(empty_payload, "there may be no payload");
	tap_run(truncations, "a file that was cut off anywhere is refused, by name");
	tap_run(flipped_bits, "a file with any bit flipped is refused, by name");
	tap_run(versions, "other versions and other files are refused");
	tap_run(heads, "lines of the head are checked");
	tap_run(behind_the_checksum, "nothing may follow the checksum");
	tap_run(short_errors, "an error fits where it is to be written");
	tap_run(full_disk, "a full disk is an error");
	return tap_done();
}
