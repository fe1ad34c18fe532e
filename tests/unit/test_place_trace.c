// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-place's readers: traces, weights and states. */
#include <errno.h>

#include "place_trace.h"
#include "state.h"
#include "tap.h"
#include "weights.h"

static char why[256];

static FILE *text(const char *content)
{
	FILE *f = content[0] ? fmemopen((void *)content, strlen(content), "r") :
		fopen("/dev/null", "r");

	if (!f)
		abort();
	return f;
}

static int nodes(struct place_trace *t, const char *content)
{
	FILE *f = text(content);
	int ret = trace_read_nodes(t, f, "n.csv", why, sizeof(why));

	fclose(f);
	return ret;
}

static int tasks(struct place_trace *t, const char *content)
{
	FILE *f = text(content);
	int ret = trace_read_tasks(t, f, "t.csv", why, sizeof(why));

	fclose(f);
	return ret;
}

#define NODES	"sn,cpu_milli,memory_mib,gpu,model\n"
#define TASKS	"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"

static void good(void)
{
	struct place_trace t = { 0 };
	struct place_class *classes;
	size_t nr;

	TAP_EQ(nodes(&t, NODES "a,64000,262144,2,P100\r\n\nb,96000,393216,8,G2\nc,1,1,0,P100"), 0);
	TAP_STR(why, "");
	TAP_EQ(t.nr_nodes, 3);
	TAP_EQ(t.nr_models, 2);
	TAP_STR(t.names[1], "b");
	TAP_STR(t.models[1], "G2");
	TAP_EQ(t.nodes[1].model, 1);
	TAP_EQ(t.nodes[2].model, 0);
	TAP_EQ(t.nodes[1].cpu_free, 96000);
	TAP_EQ(t.nodes[1].memory_free, 393216);
	TAP_EQ(t.nodes[1].nr_full, 8);
	TAP_EQ(t.nodes[0].gpu_total, 2000);
	TAP_EQ(tasks(&t, TASKS "x,1000,2048,1,460,,5,9\ny,1000,2048,1,460,G2|P100,7,7\n"
		     "z,1000,2048,8,1000,G2|none,0,\nc,1,1,0,0,G2,1,2\n"
		     "x,1000,2048,1,460,,6,9\n"), 0);
	TAP_EQ(t.nr_tasks, 5);
	TAP_CHECK(t.timed);
	TAP_EQ(t.tasks[0].r.gpu_milli, 460);
	TAP_EQ(t.tasks[0].r.models, PLACE_ANY_MODEL);
	TAP_EQ(t.tasks[0].creation_s, 5);
	TAP_EQ(t.tasks[0].deletion_s, 9);
	TAP_EQ(t.tasks[1].r.models, 3);
	TAP_EQ(t.tasks[2].r.models, 2);
	TAP_EQ(t.tasks[2].deletion_s, TRACE_MAX_TIME);
	/* without GPUs the model does not count */
	TAP_EQ(t.tasks[3].r.models, PLACE_ANY_MODEL);
	classes = trace_classes(&t, &nr);
	TAP_NEED(classes);
	TAP_EQ(nr, 4);
	TAP_EQ(classes[0].count, 2);
	TAP_EQ(classes[0].r.gpu_milli, 460);
	free(classes);
	place_trace_free(&t);
}

/* Columns may be in any order, and others are ignored. */
static void columns(void)
{
	struct place_trace t = { 0 };

	TAP_EQ(nodes(&t, "model,gpu,colour,memory_mib,cpu_milli,gpu_memory_mib\nG2,1,red,2,3,4\n"),
	       0);
	TAP_EQ(t.nodes[0].cpu_milli, 3);
	TAP_EQ(t.nodes[0].memory_mib, 2);
	TAP_EQ(t.nodes[0].gpu_memory_free[0], 4);
	TAP_STR(t.names[0], "0");
	TAP_EQ(tasks(&t, "gpu_milli,num_gpu,memory_mib,cpu_milli\n10,1,2,3\n"), 0);
	TAP_CHECK(!t.timed);
	TAP_EQ(t.tasks[0].r.cpu_milli, 3);
	place_trace_free(&t);
}

static void refused(void)
{
	static const struct { const char *content, *error; } bad[] = {
		{ "", "n.csv:1:1: the file is empty; its first line must name its columns" },
		{ NODES, "n.csv:1:1: no nodes; each line after the first is a node" },
		{ "cpu_milli,gpu\n",
		  "n.csv:1:1: no column 'memory_mib'; a file of nodes needs the columns cpu_milli, memory_mib, gpu, model",
		},
		{ "gpu,cpu_milli,gpu\n", "n.csv:1:15: duplicate column 'gpu'" },
		{ NODES "a,64000,1,2\n",
		  "n.csv:2:11: 4 fields; the first line names 5 columns" },
		{ NODES "a,1,1,1,G\na,64000,1.5,2,P\n",
		  "n.csv:3:9: memory_mib is '1.5'; it must be a whole number from 0 to 1000000000",
		},
		{ NODES "a,1,1,17,P\n",
		  "n.csv:2:7: gpu is '17'; it must be a whole number from 0 to 16" },
		{ NODES "a,-1,1,1,P\n",
		  "n.csv:2:3: cpu_milli is '-1'; it must be a whole number from 0 to 1000000000" },
		{ NODES "a, 1,1,1,P\n",
		  "n.csv:2:3: cpu_milli is ' 1'; it must be a whole number from 0 to 1000000000" },
		{ NODES "a,99999999999999999999,1,1,P\n",
		  "n.csv:2:3: cpu_milli is '99999999999999999999'; it must be a whole number from 0 to 1000000000",
		},
		{ NODES "a,,1,1,P\n",
		  "n.csv:2:3: cpu_milli is ''; it must be a whole number from 0 to 1000000000" },
		{ NODES "a,1,1,1,P|Q\n",
		  "n.csv:2:9: the name of a model has less than 64 characters, none of them |" },
	};
	static const struct { const char *content, *error; } bad_tasks[] = {
		{ TASKS, "t.csv:1:1: no tasks; each line after the first is a task" },
		{ TASKS "a,1,1,1,0,,1,2\n",
		  "t.csv:2:9: gpu_milli is '0'; it must be a whole number from 1 to 1000" },
		{ TASKS "a,1,1,0,5,,1,2\n",
		  "t.csv:2:9: gpu_milli is '5'; it must be a whole number from 0 to 0" },
		{ TASKS "a,1,1,1,5,,7,6\n",
		  "t.csv:2:14: deletion_time is '6'; it must be a whole number from 7 to 1000000000000",
		},
	};
	struct place_trace t = { 0 };
	FILE *f;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		TAP_EQ(nodes(&t, bad[i].content), -EINVAL);
		TAP_STR(why, bad[i].error);
		place_trace_free(&t);
	}
	TAP_EQ(nodes(&t, NODES "a,1,1,1,P\n"), 0);
	for (size_t i = 0; i < sizeof(bad_tasks) / sizeof(*bad_tasks); i++) {
		TAP_EQ(tasks(&t, bad_tasks[i].content), -EINVAL);
		TAP_STR(why, bad_tasks[i].error);
	}
	place_trace_free(&t);
	f = fmemopen((void *)"sn\0x", 4, "r");
	TAP_NEED(f);
	TAP_EQ(trace_read_nodes(&t, f, "n.csv", why, sizeof(why)), -EINVAL);
	TAP_STR(why, "n.csv:1:3: a byte 0; the file must be text");
	fclose(f);
	place_trace_free(&t);
}

static void too_many(void)
{
	struct place_trace t = { 0 };
	char content[4096] = NODES;

	for (int i = 0; i <= PLACE_MAX_MODELS; i++)
		snprintf(content + strlen(content), sizeof(content) - strlen(content),
			 "n,1,1,1,model-%d\n", i);
	TAP_EQ(nodes(&t, content), -EINVAL);
	TAP_STR(why, "n.csv:34:9: more than 32 models");
	place_trace_free(&t);
}

/* ---- weights ---- */

static char *written(const struct place_weights *w)
{
	size_t len;
	char *content;
	FILE *f = open_memstream(&content, &len);

	if (!f || weights_write(w, f))
		abort();
	fclose(f);
	return content;
}

static int weights(struct place_weights *w, const char *content)
{
	FILE *f = text(content);
	int ret = weights_read(w, f, "w", why, sizeof(why));

	fclose(f);
	return ret;
}

static void weights_survive(void)
{
	struct place_weights w, again;
	char *content;

	for (unsigned int i = 0; i < PLACE_FEATURES; i++)
		w.value[i] = (int32_t)i * 100 - 2000;
	content = written(&w);
	TAP_EQ(weights(&again, content), 0);
	TAP_STR(why, "");
	TAP_MEM(&again, &w, sizeof(w));
	free(content);
}

/* Change the first @from to @to, of the same length. */
static void change(char *content, const char *from, const char *to)
{
	char *at = strstr(content, from);

	if (!at || strlen(from) != strlen(to))
		abort();
	memcpy(at, to, strlen(to));
}

static void weights_refused(void)
{
	static const struct { const char *from, *to, *error; } changes[] = {
		{ "weights 1", "weights 2",
		  "w:1: version 2; this mgpu-place reads version 1: train again",
		},
		{ "mgpu", "MGPU", "w:1: not a file of weights; 'mgpu-place train' writes one" },
		{ "size-2 ", "size-3 ",
		  "w:6: 'size-3 12345' instead of the weight of size-2: the features differ; train again",
		},
		{ "size-2 12345", "size-2 22345",
		  "w:6: the weight of size-2 is 22345; it must be from -20000 to 20000" },
		{ "size-2 12345", "size-2 1234x",
		  "w:6: 'size-2 1234x' instead of the weight of size-2: the features differ; train again",
		},
		{ "size-2 12345", "size-2 12346",
		  "w:49: the checksum is wrong: the file was changed; train again, or get a whole copy",
		},
	};
	struct place_weights w = { .value[FEATURE_SIZE + 4] = 12345 };
	char *content, *longer;

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		content = written(&w);
		change(content, changes[i].from, changes[i].to);
		TAP_EQ(weights(&w, content), -EINVAL);
		TAP_STR(why, changes[i].error);
		w.value[FEATURE_SIZE + 4] = 12345;
		free(content);
	}
	content = written(&w);
	longer = malloc(strlen(content) + 2);
	TAP_NEED(longer);
	sprintf(longer, "%s\n", content);
	TAP_EQ(weights(&w, longer), -EINVAL);
	TAP_STR(why, "w:50: something follows the checksum; get a whole copy");
	free(longer);
	/* no part of a file will do */
	for (size_t len = strlen(content) - 1; len; len--) {
		content[len] = '\0';
		TAP_EQ(weights(&w, content), -EINVAL);
	}
	TAP_EQ(weights(&w, ""), -EINVAL);
	TAP_STR(why, "w:1: the file ends too early; train again, or get a whole copy");
	free(content);
}

/* ---- states ---- */

/* @content: with ' in place of " */
static int state(struct place_state *s, const char *content)
{
	char json[1024];
	FILE *f;
	int ret;

	snprintf(json, sizeof(json), "%s", content);
	for (char *at = json; (at = strchr(at, '\''));)
		*at = '"';
	f = text(json);
	*s = (struct place_state){ 0 };
	ret = state_read(s, f, "s.json", why, sizeof(why));
	fclose(f);
	return ret;
}

static void states(void)
{
	static const char json[] =
		"{'types': [{'name': 'small', 'gpu_milli': 125},\n"
		"{'name': 'large', 'gpu_milli': 500, 'gpu_memory_mib': 4096}],\n"
		"'nodes': [{'name': 'a', 'model': 'A10', 'cpu_milli': 32000,\n"
		"'memory_mib': 65536, 'cpu_free_milli': 1000, 'gpu_memory_mib': 8192,\n"
		"'gpus': [{}, {'free_milli': 500, 'memory_free_mib': 1024, 'compute': 2}],\n"
		"'types': ['large'], 'capabilities': ['opengl', 'vulkan'], 'tasks': [2, 1]},\n"
		"{'name': 'b', 'model': 'T4', 'cpu_milli': 1, 'memory_mib': 1}]}";
	static struct place_state s;
	const struct place_node *n;

	TAP_EQ(state(&s, json), 0);
	TAP_STR(why, "");
	TAP_EQ(s.trace.nr_nodes, 2);
	TAP_EQ(s.nr_types, 2);
	TAP_EQ(s.types[1].gpu_memory_mib, 4096);
	TAP_STR(s.type_names[0], "small");
	n = &s.trace.nodes[0];
	TAP_EQ(n->cpu_free, 1000);
	TAP_EQ(n->memory_free, 65536);
	TAP_EQ(n->nr_gpus, 2);
	TAP_EQ(n->nr_full, 1);
	TAP_EQ(n->gpu_free[1], 500);
	TAP_EQ(n->gpu_memory_free[0], 8192);
	TAP_EQ(n->gpu_memory_free[1], 1024);
	TAP_EQ(n->tenants[1][PLACE_KIND_COMPUTE], 2);
	TAP_EQ(n->types, 2);
	TAP_EQ(n->capabilities, 3);
	TAP_EQ(n->tasks[0], 2);
	TAP_EQ(n->tasks[1], 1);
	TAP_EQ(s.trace.nodes[1].model, 1);
	place_trace_free(&s.trace);
}

#define TYPE(name, milli)	"{'name': '" #name "', 'gpu_milli': " #milli "}"
#define NODE	"'name': 'a', 'model': 'A', 'cpu_milli': 1, 'memory_mib': 1"

static void states_refused(void)
{
	static const struct { const char *content, *error; } bad[] = {
		{ "[]", "s.json: it must be an object" },
		{ "{'nodes': []}", "s.json: no nodes; 'nodes' must be a list of at least one" },
		{ "{'nodes': {}}", "s.json: nodes must be a list of up to 65536" },
		{ "{'nodes': [3]}", "s.json: nodes[0]: it must be an object" },
		{ "{'nodes': [{'name': 'a'}]}", "s.json: nodes[0]: no 'cpu_milli'" },
		{ "{'nodes': [{'nam': 'a'}]}",
		  "s.json: nodes[0]: unknown key 'nam'; mgpu-place(1) lists the keys" },
		{ "{'nodes': [{" NODE ", 'cpu_free_milli': 2}]}",
		  "s.json: nodes[0]: cpu_free_milli must be a whole number from 0 to 1" },
		{ "{'nodes': [{" NODE ", 'gpus': [{'free_milli': 1001}]}]}",
		  "s.json: nodes[0].gpus[0]: free_milli must be a whole number from 0 to 1000" },
		{ "{'nodes': [{" NODE ", 'types': ['x']}]}",
		  "s.json: nodes[0]: types: 'x' is not known; list it first" },
		{ "{'nodes': [{" NODE ", 'tasks': [-1]}]}",
		  "s.json: nodes[0]: tasks[0] must be a whole number from 0 to 65535" },
		{ "{'types': [" TYPE(x, 2) ", " TYPE(y, 1) "]}",
		  "s.json: types[1]: types must be in ascending order of gpu_milli" },
		{ "{'types': [" TYPE(x, 2) ", " TYPE(x, 2) "]}",
		  "s.json: types[1]: duplicate type 'x'" },
	};
	static struct place_state s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		TAP_EQ(state(&s, bad[i].content), -EINVAL);
		TAP_STR(why, bad[i].error);
		place_trace_free(&s.trace);
	}
	TAP_EQ(state(&s, "{'nodes': [}"), -EINVAL);
	TAP_CHECK(strstr(why, "s.json: not JSON at byte 11"));
	TAP_EQ(state(&s, ""), -EINVAL);
	TAP_EQ(state(&s, "{"), -EINVAL);
}

int main(void)
{
	tap_run(good, "nodes and tasks are read, and tasks that want the same are counted");
	tap_run(columns, "columns may be in any order");
	tap_run(refused, "a bad field is refused with its line and column");
	tap_run(too_many, "too many models are refused");
	tap_run(weights_survive, "weights are read as they were written");
	tap_run(weights_refused, "weights of another version, or changed ones, are refused");
	tap_run(states, "a state is read");
	tap_run(states_refused, "a bad state is refused with the place in it");
	return tap_done();
}
