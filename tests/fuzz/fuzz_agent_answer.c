// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz what mgpu-agent reads.  First byte of the input: what the rest is.  0: a frame of a
 * service that knows the VM's key and lies; its texts end up on a terminal and in the journal,
 * without control characters.  1: a job's file.  2: a line of a pipe.  3: a key's file.
 */
#include <stdbool.h>

#include "fuzz.h"
#include "hold.h"
#include "jobs.h"
#include "lines.h"

static struct hold hold;
static struct link link_;

static void check_text(const char *text, size_t size)
{
	FUZZ_ASSERT(strnlen(text, size) < size);
	for (; *text; text++)
		FUZZ_ASSERT((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_answer(const uint8_t *data, size_t size)
{
	struct wire_text again;
	struct wire_header h;

	if (size < WIRE_HEADER || wire_header(data, &h) || size - WIRE_HEADER < h.length)
		return;
	if (wire_parse(data + WIRE_HEADER, h.length, &link_.answer))
		return;
	hold.link = &link_;
	if (!hold_take(&hold)) {
		FUZZ_ASSERT(hold.kept.id && hold.place <= UINT32_MAX);
		check_text(hold.state, sizeof(hold.state));
		check_text(hold.reason, sizeof(hold.reason));
		check_text(hold.why, sizeof(hold.why));
		check_text(hold.gpu, sizeof(hold.gpu));
	}
	if (!link_ok(&link_))
		check_text(link_.why, sizeof(link_.why));
	link_code(&link_);
	/* Values that were read can be written, unless its codes make it longer than a frame. */
	wire_begin(&again, link_.answer.verb);
	for (unsigned int i = 0; i < link_.answer.nr; i++)
		wire_add(&again, link_.answer.fields[i].name, link_.answer.fields[i].value);
	if (!again.failed) {
		static struct wire_message m;

		FUZZ_ASSERT(!wire_parse(again.frame + WIRE_HEADER, again.length, &m));
		FUZZ_ASSERT(m.nr == link_.answer.nr && !strcmp(m.verb, link_.answer.verb));
		for (unsigned int i = 0; i < m.nr; i++)
			FUZZ_ASSERT(!strcmp(m.fields[i].value, link_.answer.fields[i].value));
	}
}

/* A wish that was read fits in a request. */
static void check_job(char *text)
{
	static struct wire_text t;
	static struct job job;
	char why[256] = "";

	if (job_parse(text, &job, why)) {
		FUZZ_ASSERT(strnlen(why, sizeof(why)) < sizeof(why));
		return;
	}
	FUZZ_ASSERT(*job.command && *job.wish.kind);
	wire_begin(&t, "request");
	wish_write(&job.wish, &t);
}

static void check_line(const char *line)
{
	char text[4096];

	if (job_of_line(line, text, sizeof(text)))
		check_job(text);
}

static void check_key(const char *text)
{
	unsigned char key[WIRE_KEY];
	char vm[64];

	if (!wire_read_key(text, vm, key))
		FUZZ_ASSERT(strnlen(vm, sizeof(vm)) < sizeof(vm));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size || size > WIRE_FRAME_MAX + 1)
		return 0;
	if (data[0] == 0) {
		/* A copy of exactly this size, for the sanitizer to see the end. */
		uint8_t *frame = malloc(size);

		FUZZ_ASSERT(frame);
		memcpy(frame, data + 1, size - 1);
		check_answer(frame, size - 1);
		free(frame);
		return 0;
	}
	text = malloc(size);
	FUZZ_ASSERT(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] == 1)
		check_job(text);
	else if (data[0] == 2)
		check_line(text);
	else
		check_key(text);
	free(text);
	return 0;
}

static void seed_answer(const char *dir)
{
	static const unsigned char sign[WIRE_KEY];
	static uint8_t input[1 + WIRE_FRAME_MAX];
	struct wire_text t;
	size_t size;

	wire_begin(&t, "ok");
	wire_add_number(&t, "id", 7);
	wire_add(&t, "state", "queued");
	wire_add_number(&t, "place", 3);
	wire_add(&t, "reason", "50% of \xc3\xa9 are \"used\"");
	wire_add_number(&t, "version", 1);
	size = wire_end(&t, sign, 9, NULL);
	memcpy(input + 1, t.frame, size);
	fuzz_seed(dir, "answer", input, size + 1);
	wire_begin(&t, "error");
	wire_add(&t, "code", "busy");
	wire_add(&t, "text", "the queue is full: ask later");
	size = wire_end(&t, sign, 9, NULL);
	memcpy(input + 1, t.frame, size);
	fuzz_seed(dir, "error", input, size + 1);
}

static void seeds(const char *dir)
{
	static const char job[] = "\1# a job\nkind=training\nsize=4G\nmemory = 2T\nfloor=59.94\n"
				  "lease=2h\nweight=7\ntarget=whole\ncommand=echo a=b | cat\n";
	static const char line[] = "\2kind=training size=1G  command=echo one two";
	static const char key[] =
		"\3vm-1:00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF\n";

	seed_answer(dir);
	fuzz_seed(dir, "job", job, sizeof(job) - 1);
	fuzz_seed(dir, "line", line, sizeof(line) - 1);
	fuzz_seed(dir, "key", key, sizeof(key) - 1);
}

FUZZ_SEEDS(seeds)
