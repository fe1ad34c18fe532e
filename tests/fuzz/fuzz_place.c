// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz mgpu-place's readers.  The first byte of the input selects one: w weights, s a state,
 * n nodes, t nodes and tasks with a byte 0xff between them.  A cluster that a reader
 * takes is in its ranges, and requests can be placed on it.
 */
#include <errno.h>

#include "fuzz.h"
#include "state.h"
#include "weights.h"

#define TRIED	64	/* requests that are placed */

static void check_nodes(const struct place_trace *t)
{
	FUZZ_ASSERT(t->nr_nodes && t->nr_nodes <= PLACE_MAX_NODES);
	FUZZ_ASSERT(t->nr_models && t->nr_models <= PLACE_MAX_MODELS);
	for (size_t i = 0; i < t->nr_nodes; i++) {
		const struct place_node *n = &t->nodes[i];

		FUZZ_ASSERT(n->cpu_free >= 0 && n->cpu_free <= n->cpu_milli);
		FUZZ_ASSERT(n->memory_free >= 0 && n->memory_free <= n->memory_mib);
		FUZZ_ASSERT(n->nr_gpus <= PLACE_MAX_GPUS && n->model < t->nr_models);
		for (unsigned int g = 0; g < n->nr_gpus; g++)
			FUZZ_ASSERT(n->gpu_free[g] <= PLACE_WHOLE && n->gpu_memory_free[g] >= 0);
	}
}

/* Place tasks with each policy that needs no weights, and see that no node is overfull. */
static void place(const struct place_trace *t)
{
	struct place_cluster c = { .nr = t->nr_nodes };
	size_t nr;
	struct place_class *classes = trace_classes(t, &nr);

	c.nodes = malloc(t->nr_nodes * sizeof(*c.nodes));
	FUZZ_ASSERT(c.nodes && classes);
	c.nodes = memcpy(c.nodes, t->nodes, t->nr_nodes * sizeof(*c.nodes));
	c.potential = potential_new(&c, classes, nr, NULL);
	FUZZ_ASSERT(c.potential);
	place_cluster_init(&c);
	for (size_t i = 0; i < nr && i < TRIED; i++) {
		struct place_choice choice;
		const struct place_node *n;

		c.policy = place_policies[i % 7];
		FUZZ_ASSERT(!c.policy->learned);
		if (place_decide(&c, &classes[i].r, &choice))
			continue;
		place_commit(&c, &classes[i].r, &choice);
		n = &c.nodes[choice.node];
		FUZZ_ASSERT(n->cpu_free >= 0 && n->memory_free >= 0);
		FUZZ_ASSERT(__builtin_popcount(choice.gpus) == classes[i].r.nr_gpus);
		for (unsigned int g = 0; g < n->nr_gpus; g++)
			FUZZ_ASSERT(n->gpu_free[g] <= PLACE_WHOLE);
		FUZZ_ASSERT(potential_fragmentation(c.potential, n) >= 0);
	}
	potential_free(c.potential);
	free(c.nodes);
	free(classes);
}

static FILE *part(const uint8_t *data, size_t size)
{
	FILE *f = size ? fmemopen((void *)data, size, "r") : fopen("/dev/null", "r");

	FUZZ_ASSERT(f);
	return f;
}

static void check_error(int ret, const char *why, const char *file)
{
	FUZZ_ASSERT(!ret == !why[0]);
	if (ret)
		FUZZ_ASSERT(ret == -EINVAL && !strncmp(why, file, strlen(file)));
}

static void fuzz_weights(const uint8_t *data, size_t size)
{
	struct place_weights w;
	char why[256];
	FILE *f = part(data, size);
	int ret = weights_read(&w, f, "file", why, sizeof(why));

	check_error(ret, why, "file:");
	for (unsigned int i = 0; !ret && i < PLACE_FEATURES; i++)
		FUZZ_ASSERT(w.value[i] >= -PLACE_MAX_WEIGHT && w.value[i] <= PLACE_MAX_WEIGHT);
	fclose(f);
}

static void fuzz_state(const uint8_t *data, size_t size)
{
	static struct place_state s;
	char why[256];
	FILE *f = part(data, size);
	int ret;

	s = (struct place_state){ 0 };
	ret = state_read(&s, f, "file", why, sizeof(why));
	check_error(ret, why, "file:");
	if (!ret)
		check_nodes(&s.trace);
	place_trace_free(&s.trace);
	fclose(f);
}

static void fuzz_trace(const uint8_t *data, size_t size)
{
	const uint8_t *second = memchr(data, 0xff, size);
	size_t first = second ? (size_t)(second - data) : size;
	struct place_trace t = { 0 };
	char why[256];
	FILE *f = part(data, first);
	int ret = trace_read_nodes(&t, f, "file", why, sizeof(why));

	check_error(ret, why, "file:");
	fclose(f);
	if (!ret)
		check_nodes(&t);
	if (!ret && second) {
		f = part(second + 1, size - first - 1);
		ret = trace_read_tasks(&t, f, "file", why, sizeof(why));
		check_error(ret, why, "file:");
		fclose(f);
		if (!ret)
			place(&t);
	}
	place_trace_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0]) {
	case 'w':
		fuzz_weights(data + 1, size - 1);
		break;
	case 's':
		fuzz_state(data + 1, size - 1);
		break;
	case 'n':
	case 't':
		fuzz_trace(data + 1, size - 1);
		break;
	}
	return 0;
}

#define NODES	"sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,2,P100\nb,96000,393216,8,G2\n"

static void seeds(const char *dir)
{
	static const char *const inputs[] = {
		"n" NODES,
		"t" NODES "\xff\ncpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
		"1000,1024,1,500,\n64000,1024,1,1000,G2|P100\n1,1,0,0,\n8,8,8,1000,G2\n",
		"t" NODES "\xff\ngpu_milli,num_gpu,memory_mib,cpu_milli,creation_time,deletion_time\r\n"
		"1000,2,1,1,0,9\r\n250,1,1,1,5,\r\n",
		"s{\"types\":[{\"name\":\"x\",\"gpu_milli\":125,\"gpu_memory_mib\":1}],\n"
		"\"nodes\":[{\"name\":\"a\",\"model\":\"A\",\"cpu_milli\":9,\"memory_mib\":9,\n"
		"\"cpu_free_milli\":1,\"memory_free_mib\":1,\"gpu_memory_mib\":8,\n"
		"\"gpus\":[{},{\"free_milli\":5,\"memory_free_mib\":2,\"compute\":1,\"memory\":1}],\n"
		"\"tasks\":[1,2],\"types\":[\"x\"],\"capabilities\":[\"gl\"]}]}",
		"wmgpu-place-weights 1\nsize-to-250 1\nsize-to-500 -5\n",
	};
	struct place_weights w = { .value = { 1, 2, 3 } };
	char name[16], *content;
	size_t len;
	FILE *f;

	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		fuzz_seed(dir, name, inputs[i], strlen(inputs[i]));
	}
	f = open_memstream(&content, &len);
	FUZZ_ASSERT(f);
	putc('w', f);
	FUZZ_ASSERT(!weights_write(&w, f));
	fclose(f);
	fuzz_seed(dir, "weights", content, len);
	free(content);
}

FUZZ_SEEDS(seeds)
