// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "complain.h"
#include "gather.h"
#include "mgpud_client.h"
#include "process_clock.h"
#include "renderd.h"

#define ANSWER_MS	1000		/* of mgpud and of mgpu-remoted */
#define TEXT_MAX	(256u << 20)	/* 4,096 vGPUs take 55 MiB */

/* ---- the module ---- */

static void read_cpu_times(struct snapshot *s)
{
	struct process_clock clock;

	for (size_t i = 0; i < s->nr_vgpus; i++) {
		struct snapshot_vgpu *v = &s->vgpus[i];

		if (!mgpu_has(&v->info, MGPU_A_VGPU_TGID) ||
		    !process_clock_start(&clock, (pid_t)v->info.tgid))
			continue;
		v->cpu_ns = process_clock_cpu_ns(&clock);
		v->has_cpu = v->cpu_ns;	/* a process has used some */
	}
}

static int read_lists(struct gather *g, struct snapshot *s, struct mgpu_error *err)
{
	struct mgpu_vgpu_info *vgpus = NULL;
	size_t nr = 0;
	int ret = 0;

	if (!g->mgpu)
		ret = mgpu_open(&g->mgpu, err);
	if (!ret)
		ret = mgpu_dev_list(g->mgpu, &s->devs, &s->nr_devs, err);
	if (!ret)
		ret = mgpu_vgpu_list(g->mgpu, NULL, &vgpus, &nr, err);
	if (!ret && g->hists)
		ret = mgpu_vgpu_hists(g->mgpu, vgpus, nr, err);
	if (!ret && snapshot_add_vgpus(s, vgpus, nr))
		ret = mgpu_fail(err, -ENOMEM, "out of memory");
	free(vgpus);
	return ret;
}

static int read_module(struct gather *g, struct snapshot *s, struct mgpu_error *err)
{
	int ret = read_lists(g, s, err);

	if (!ret) {
		read_cpu_times(s);
		return 0;
	}
	/* The next reading begins anew: an answer that is late must not be taken for another. */
	mgpu_close(g->mgpu);
	g->mgpu = NULL;
	free(s->devs);
	s->devs = NULL;
	s->nr_devs = 0;
	return ret;
}

/* ---- services ---- */

/* Get the state of a service, and take it over. @service: NULL for mgpud */
static int read_service(struct snapshot *s, const struct mgpud_service *service,
			int (*add)(struct snapshot *s, struct json_object *state),
			struct mgpu_error *err)
{
	struct json_object *state = NULL;
	struct mgpud *client;
	int ret = service ? mgpud_connect_to(&client, service, NULL, err) :
			    mgpud_connect(&client, NULL, err);

	if (ret)
		return ret;
	ret = mgpud_get_within(client, &state, ANSWER_MS, err);
	mgpud_close(client);
	if (!ret && add(s, state))
		ret = mgpu_fail(err, -ENOMEM, "out of memory");
	json_object_put(state);
	return ret;
}

static int read_mgpud(struct gather *g, struct snapshot *s, struct mgpu_error *err)
{
	(void)g;
	return read_service(s, NULL, snapshot_add_mgpud, err);
}

static int read_remoted(struct gather *g, struct snapshot *s, struct mgpu_error *err)
{
	(void)g;
	return read_service(s, &remoted_service, snapshot_add_remoted, err);
}

static int read_renderd(struct gather *g, struct snapshot *s, struct mgpu_error *err)
{
	return renderd_list(g->root, &s->renderds, &s->nr_renderds, err);
}

/* ---- all of them ---- */

/* Complain about an error once, not at each reading. A service need not run on each host. */
static void tell(struct gather *g, size_t source, const struct mgpu_error *err, int ret)
{
	if (g->verbose && ret && ret != g->told[source] &&
	    !(source != SOURCE_MODULE && (ret == -ENOENT || ret == -ECONNREFUSED)))
		complain("%s", err->text);
	g->told[source] = ret;
}

void gather(struct gather *g, struct snapshot *s)
{
	static int (*const reads[])(struct gather *g, struct snapshot *s,
				    struct mgpu_error *err) = {
		[SOURCE_MODULE] = read_module, [SOURCE_MGPUD] = read_mgpud,
		[SOURCE_REMOTED] = read_remoted, [SOURCE_RENDERD] = read_renderd,
	};

	snapshot_init(s);
	for (size_t i = 0; i < NR_SOURCES; i++) {
		uint64_t begin = now_ns();
		struct mgpu_error err;
		int ret = reads[i](g, s, &err);

		s->reads[i].up = !ret;
		s->reads[i].seconds = (double)(now_ns() - begin) / 1e9;
		tell(g, i, &err, ret);
	}
}

void gather_close(struct gather *g)
{
	mgpu_close(g->mgpu);
	g->mgpu = NULL;
}

void gather_text(struct gather *g, struct text *text, enum expose_format format)
{
	struct snapshot s;

	text->limit = TEXT_MAX;
	gather(g, &s);
	metrics_write(text, &s, format);
	snapshot_free(&s);
}
