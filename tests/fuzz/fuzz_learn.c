// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the readers of learned weights.  The first byte of the input selects one: f a file,
 * p a payload without the file around it, q a question to a valid network.  A payload
 * is written over the weights of a valid network, from an offset on that two bytes give,
 * so that short inputs reach all blocks.
 *
 * A model that loads must answer a question within its range.
 */
#include <errno.h>

#include "file.h"
#include "fuzz.h"
#include "network_train.h"

static void check_error(int ret, const char *why)
{
	FUZZ_ASSERT(!ret == !why[0]);
	FUZZ_ASSERT(!ret || ret == -EINVAL);
}

static void ask(void *model, const struct learn_input *in)
{
	double share[LEARN_CLIENTS][LEARN_RESOURCES], one[LEARN_RESOURCES];

	learn_network_serve(model, in, share);
	learn_network.share(model, in, one);
	FUZZ_ASSERT(!memcmp(share[0], one, sizeof(one)));
	for (size_t j = 0; j < in->n; j++)
		for (int r = 0; r < LEARN_RESOURCES; r++)
			FUZZ_ASSERT(share[j][r] >= 0 && share[j][r] <= in->now[r]);
}

/* A question that takes its figures from the input. */
static void make_question(struct learn_input *in, const uint8_t *data, size_t size)
{
	size_t at = 0;

#define NEXT	(at < size ? data[at++] : (uint8_t)at)
	memset(in, 0, sizeof(*in));
	in->n = 1 + NEXT % LEARN_CLIENTS;
	for (size_t j = 0; j < in->n; j++) {
		struct learn_task *t = &in->task[j];

		t->weight = 1 + NEXT * 39;
		t->periods = NEXT & 3;
		t->fps = NEXT & 1 ? NEXT : 0;
		for (int r = 0; t->periods > 0 && r < LEARN_RESOURCES; r++) {
			t->cost[r] = NEXT;
			t->cost[r] = ldexp(t->cost[r], -(int)(NEXT % 32));
		}
		for (size_t i = 0, end = NEXT; i < end && i < LEARN_TEXT - 1; i++)
			t->text[i] = (char)NEXT;
		for (size_t k = 0; k < j; k++) {
			in->distance[j][k] = 1 + (NEXT & 1);
			in->distance[k][j] = in->distance[j][k];
		}
	}
	for (int r = 0; r < LEARN_RESOURCES; r++) {
		in->now[r] = NEXT / 255.0;
		for (size_t i = 0; i < LEARN_PAST; i++)
			in->idle[r][i] = NEXT / 255.0;
	}
#undef NEXT
}

static void load(const char *payload, size_t size)
{
	struct learn_input in;
	char why[300] = "";
	void *model = NULL;
	int ret = learn_network.load(&model, payload, size, why, sizeof(why));

	check_error(ret, why);
	FUZZ_ASSERT(!ret == !!model);
	if (ret)
		return;
	make_question(&in, (const uint8_t *)payload, size < 200 ? size : 200);
	ask(model, &in);
	learn_network.free(model);
}

static void fuzz_file(const uint8_t *data, size_t size)
{
	FILE *f = size ? fmemopen((void *)data, size, "r") : fopen("/dev/null", "r");
	struct learn_file file;
	char why[300];
	int ret;

	FUZZ_ASSERT(f);
	ret = learn_file_read(&file, f, "file", why, sizeof(why));
	fclose(f);
	check_error(ret, why);
	if (ret) {
		FUZZ_ASSERT(!file.payload && !strncmp(why, "file:", 5));
		return;
	}
	FUZZ_ASSERT(file.payload && !file.payload[file.size]);
	load(file.payload, file.size);
	learn_file_free(&file);
}

static char *valid_payload(size_t *size)
{
	static struct network_weights w;
	char *payload;

	network_init(&w, NETWORK_FORM_B, 1);
	payload = learn_network_write(&w, size);
	FUZZ_ASSERT(payload);
	return payload;
}

/*
 * Write the input over the payload of a valid network, from an offset that its first two
 * bytes are; or take it alone if they are the largest.
 */
static void fuzz_payload(const uint8_t *data, size_t size)
{
	size_t valid, at, len;
	char *payload, *text;

	if (size < 2)
		return;
	at = (size_t)data[0] << 8 | data[1];
	data += 2;
	size -= 2;
	payload = at == 0xffff ? calloc(1, valid = 1) : valid_payload(&valid);
	FUZZ_ASSERT(payload);
	at = at == 0xffff ? 0 : at * 2 % (valid + 1);
	len = at + size > valid ? at + size : valid;
	text = calloc(1, len + 1);
	FUZZ_ASSERT(text);
	memcpy(text, payload, valid);
	memcpy(text + at, data, size);
	load(text, len);
	free(text);
	free(payload);
}

static void fuzz_question(const uint8_t *data, size_t size)
{
	struct learn_input in;
	char why[300], *payload;
	void *model;
	size_t len;

	payload = valid_payload(&len);
	FUZZ_ASSERT(!learn_network.load(&model, payload, len, why, sizeof(why)));
	make_question(&in, data, size);
	ask(model, &in);
	learn_network.free(model);
	free(payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0]) {
	case 'f':
		fuzz_file(data + 1, size - 1);
		break;
	case 'p':
		fuzz_payload(data + 1, size - 1);
		break;
	case 'q':
		fuzz_question(data + 1, size - 1);
		break;
	}
	return 0;
}

static void seeds(const char *dir)
{
	static const struct {
		const char *data;
		size_t size;
	} inputs[] = {
#define SEED(text)	{ text, sizeof(text) - 1 }
		SEED("p\0\0network 1\nform A\n"),
		SEED("p\0\0network 1\nform C\n"),
		SEED("p\0\x09 -1000 1000 1e3 "),
		SEED("p\x40\0 nan"),
		SEED("p\xff\xffnetwork 1\nform B\nembedding 512 8 1"),
		SEED("q\x0f"),
		SEED("q\x03\x05\x01\x01\x40\x10\x0a\x20\x0bGame 1920x1080\x01\x02\x03"),
	};
	struct learn_file file = {
		.model = "network", .made_s = 1, .data = "d", .evaluation = "e", .payload = "x",
		.size = 1,
	};
	char name[16], *content;
	size_t len;
	FILE *f;

	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		fuzz_seed(dir, name, inputs[i].data, inputs[i].size);
	}
	f = open_memstream(&content, &len);
	FUZZ_ASSERT(f);
	putc('f', f);
	FUZZ_ASSERT(!learn_file_write(&file, f));
	fclose(f);
	fuzz_seed(dir, "file", content, len);
	free(content);
}

FUZZ_SEEDS(seeds)
