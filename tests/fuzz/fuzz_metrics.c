// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the states of mgpud and mgpu-remoted that mgpu-exporter reads.  First byte of the input:
 * the daemon (bit 0) and the format (bit 1); the rest: JSON, its state.  Whatever it says, the
 * exposition is valid: each line is one that Prometheus takes, no two samples are of one series,
 * and a metric's samples follow each other.
 */
#include <ctype.h>
#include <json-c/json.h>
#include <math.h>
#include <stdbool.h>

#include "fuzz.h"
#include "snapshot.h"

#define LINES	65536

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_name(const char *at)
{
	FUZZ_ASSERT(is_name(*at) && !isdigit((unsigned char)*at));
	while (is_name(*at))
		at++;
	return at;
}

/* Skip {a="b",...} */
static const char *skip_labels(const char *at)
{
	do {
		at = skip_name(at + 1);
		FUZZ_ASSERT(at[0] == '=' && at[1] == '"');
		for (at += 2; *at != '"'; at++) {
			FUZZ_ASSERT((unsigned char)*at >= ' ' && *at != 0x7f);
			if (*at != '\\')
				continue;
			at++;
			FUZZ_ASSERT(*at == '\\' || *at == '"' || *at == 'n');
		}
		at++;
	} while (*at == ',');
	FUZZ_ASSERT(*at == '}');
	return at + 1;
}

/* Check a sample; cut it off behind its labels. */
static void check_sample(char *line, bool counter)
{
	const char *at = skip_name(line);
	char *end, *value;
	double v;

	if (*at == '{')
		at = skip_labels(at);
	value = line + (at - line);
	FUZZ_ASSERT(*value == ' ');
	*value++ = '\0';
	v = strtod(value, &end);
	FUZZ_ASSERT(end != value && !*end);
	if (counter)
		FUZZ_ASSERT(v >= 0 && isfinite(v));
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check(char *text, enum expose_format format)
{
	static char *samples[LINES], *types[LINES];
	size_t nr = 0, nr_types = 0;
	bool counter = false, ended = false;
	char *line, *next;

	for (line = text; (next = strchr(line, '\n')); line = next + 1) {
		*next = '\0';
		FUZZ_ASSERT(!ended && nr < LINES && nr_types < LINES);
		ended = format == EXPOSE_OPENMETRICS && !strcmp(line, "# EOF");
		if (!strncmp(line, "# TYPE ", 7)) {
			counter = strstr(line, " counter");
			types[nr_types++] = line;
		} else if (*line != '#') {
			check_sample(line, counter);
			samples[nr++] = line;
		}
	}
	FUZZ_ASSERT(!*line && ended == (format == EXPOSE_OPENMETRICS));
	qsort(samples, nr, sizeof(*samples), by_text);
	for (size_t i = 1; i < nr; i++)
		FUZZ_ASSERT(strcmp(samples[i - 1], samples[i]));
	qsort(types, nr_types, sizeof(*types), by_text);
	for (size_t i = 1; i < nr_types; i++)
		FUZZ_ASSERT(strcmp(types[i - 1], types[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum expose_format format;
	struct text text = { 0 };
	struct json_tokener *tok;
	struct json_object *state;
	struct snapshot s;

	if (!size || size > 100000)
		return 0;
	format = data[0] & 2 ? EXPOSE_TEXT : EXPOSE_OPENMETRICS;
	tok = json_tokener_new();
	state = json_tokener_parse_ex(tok, (const char *)data + 1, (int)size - 1);
	json_tokener_free(tok);
	if (!state)
		return 0;
	snapshot_init(&s);
	if (data[0] & 1)
		FUZZ_ASSERT(!snapshot_add_remoted(&s, state));
	else
		FUZZ_ASSERT(!snapshot_add_mgpud(&s, state));
	s.reads[data[0] & 1 ? SOURCE_REMOTED : SOURCE_MGPUD].up = 1;
	json_object_put(state);
	metrics_write(&text, &s, format);
	text_add(&text, "", 1);
	FUZZ_ASSERT(!text.failed && strlen(text.bytes) == text.len - 1);
	check(text.bytes, format);
	text_free(&text);
	snapshot_free(&s);
	return 0;
}

static void seeds(const char *dir)
{
	static const char mgpud[] =
		"\0{\"release\":\"1\",\"allocator\":\"fea\",\"period_s\":0.5,\"sample_age_s\":null,\n"
		"\"periods\":7,\"bpf\":true,\"trouble\":[\"a\"],\"capacity\":{\"cpu_cores\":4},\n"
		"\"preempt\":{\"policy\":\"mgpu\",\"decisions\":{\"launch\":1},\"by\":{\"drain\":2}},\n"
		"\"model\":{\"state\":\"acts\",\"name\":\"n\",\"error\":0.1},\"vgpus\":[{\"uuid\":\"a-b\",\n"
		"\"fps\":59.5,\"floor_fps\":30,\"ceiling_fps\":null,\"granted_fps\":21,\n"
		"\"shortfall\":true,\"state\":\"active\",\"description\":\"\\\"\\n\\\\\\u00e9\"}]}";
	static const char remoted[] =
		"\3{\"applications\":[{\"process\":7,\"pid\":null,\"command\":\"x\\\"\",\"calls\":5,\n"
		"\"busy_s\":1.25,\"mode\":\"one\"}],\"accounts\":[{\"account\":\"vm:3\",\"weight\":300,\n"
		"\"gpu_limit_share\":null,\"waits\":false}]}";

	fuzz_seed(dir, "mgpud", mgpud, sizeof(mgpud) - 1);
	fuzz_seed(dir, "remoted", remoted, sizeof(remoted) - 1);
}

FUZZ_SEEDS(seeds)
