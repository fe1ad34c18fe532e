// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz mgpud's configuration file.  The input is the file.  Settings of a file that is
 * taken are in their ranges, and a second reading gives the same.  A file that is refused
 * changes nothing, and the refusal names the file.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_settings.h"

static char path[64];

/* The settings as text, for comparisons. */
static char *text_of(const struct config *c)
{
	struct json_object *o = json_object_new_object();
	char *text;

	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		json_object_object_add(o, s->key, table_value(c, s));
	text = strdup(json_object_to_json_string(o));
	json_object_put(o);
	return text;
}

static int load(struct config *c, char *why, size_t size)
{
	const struct config_source source = { .path = path, .must = true };

	why[0] = '\0';
	return config_load(c, &source, why, size);
}

/* Lines of a file that is refused are named from 1 on. */
static void check_why(const char *why, const uint8_t *data, size_t size)
{
	unsigned long line, lines = 1;

	FUZZ_ASSERT(!strncmp(why, path, strlen(path)) && why[strlen(path)] == ':');
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	if (sscanf(why + strlen(path), ":%lu:", &line) == 1)
		FUZZ_ASSERT(line >= 1 && line <= lines);
	FUZZ_ASSERT(strlen(why) > strlen(path) + 10);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct config c, again, before;
	char why[512], *text, *text2;
	int ret;

	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	config_default(&c);
	before = c;
	ret = load(&c, why, sizeof(why));
	if (ret) {
		FUZZ_ASSERT(ret == -EINVAL);
		FUZZ_ASSERT(!memcmp(&c, &before, sizeof(c)));
		check_why(why, data, size);
		config_free(&c);
		return 0;
	}
	FUZZ_ASSERT(!why[0] && c.found);
	check_settings(&c);
	text = text_of(&c);

	config_default(&again);
	FUZZ_ASSERT(!load(&again, why, sizeof(why)));
	text2 = text_of(&again);
	FUZZ_ASSERT(text && text2 && !strcmp(text, text2));
	FUZZ_ASSERT(again.set.nr_vgpus == c.set.nr_vgpus);
	free(text);
	free(text2);
	config_free(&again);
	config_free(&c);
	return 0;
}

#define UUID	"01234567-89ab-cdef-0123-456789abcdef"

static void seeds(const char *dir)
{
	static const char *const files[] = {
		"",
		"# a comment\n[mgpud]\nallocator = fea\nperiod_ms = 500\n",
		"[mgpud]\nallocator=drf\nperiod_ms : 500\n\titerations = 20\nheadroom = 1.5 ; x\n"
		"beta = 3\nlambda = -1\nsocket = /run/x/y.sock\nlog = quiet\n",
		"[mgpud]\r\njson_log = /var/log/mgpud.json\r\nstate_file = none\r\nstate_period_s = 10\r\n",
		"[sla]\nceiling = 90\n\n[vgpu " UUID "]\nfloor = 30\n; end",
		"[vgpu " UUID "]\nfloor = 30\nceiling = none\n[vgpu  01234567-89AB-cdef-0123-456789abcdef]\nceiling=40\n",
		"[preemption]\npolicy = flush\ncost = 0.125,2\ndecay_compute = 0.875\n",
		"[preemption]\ncost = fit\ndecay_memory = 0.8\n",
		"[mgpud]\nheadroom = 1e9\n", "[preemption]\nmin_gain = -5\n",
		"[mgpud]\nallocator\n", "key = 1\n", "[vgpu x]\n", "[unknown]\n", "[mgpud\n",
	};
	char name[16];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		fuzz_seed(dir, name, files[i], strlen(files[i]));
	}
}

FUZZ_SEEDS(seeds)
