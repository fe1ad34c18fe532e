// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl ctx */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl.h"

const char *const ctx_list_keys[] = { "dev", "vgpu", NULL };
const char *const ctx_preempt_keys[] = { "method", "keep", "hold", NULL };
const char *const ctx_resume_keys[] = { "first", NULL };

static const char *const columns[] = {
	">VGPU", ">CTX", "STATE", "OP", ">SLOTS", ">DONE%", ">QUEUED", "->JOBS",
	"->PREEMPTED", "~NAME", NULL
};

#define RENDER	"-render"

static void add_row(struct table *table, const void *info, const void *arg)
{
	const struct mgpu_ctx *ctx = info;
	double done = out_progress(ctx);
	char buf[OUT_CELL];

	(void)arg;
	table_cell(table, "%u", ctx->vgpu_id);
	table_cell(table, "%u", ctx->id);
	table_cell(table, "%s", out_state(ctx));
	table_cell(table, "%s", *ctx->op ? ctx->op : "-");
	table_cell(table, "%s", out_slots(buf, sizeof(buf), ctx));
	if (isfinite(done))
		table_cell(table, "%.1f", done * 100);
	else
		table_cell(table, "-");
	table_cell(table, "%u", ctx->queued);
	table_cell(table, "%" PRIu64, ctx->jobs);
	table_cell(table, "%" PRIu64, ctx->preemptions);
	table_cell(table, "%s", *ctx->name ? ctx->name : "-");
}

static const struct listing listing = {
	.columns = columns, .key = "contexts", .fields = mgpu_ctx_fields, .add_row = add_row,
	.size = sizeof(struct mgpu_ctx),
};

/* Only guests of types whose name ends so can create contexts. */
static bool has_contexts(const struct mgpu_vgpu_info *vgpu)
{
	size_t len = strlen(vgpu->type);

	return len > strlen(RENDER) &&
	       !strcmp(vgpu->type + len - strlen(RENDER), RENDER);
}

static int no_contexts(const struct mgpu_vgpu_info *vgpu,
		       struct mgpu_error *err)
{
	return mgpu_fail(err, -ENOENT,
			 "vGPU %u has no contexts, since its type, %s, has none: create one of a type whose name ends in %s, such as %s%s",
			 vgpu->id, vgpu->type, RENDER, vgpu->type, RENDER);
}

static int dump(struct mgpu *mgpu, const char *key, const char *name,
		struct mgpu_ctx **ctxs, size_t *nr, struct mgpu_error *err)
{
	struct mgpu_vgpu_info vgpu;
	struct mgpu_dev_info dev;
	size_t kept = 0;
	size_t i;
	int ret;

	if (!key)
		return mgpu_ctx_dump(mgpu, NULL, ctxs, nr, err);
	if (!strcmp(key, "vgpu")) {
		ret = mgpu_vgpu_find(mgpu, name, &vgpu, err);
		if (ret)
			return ret;
		ret = mgpu_ctx_dump(mgpu, &vgpu.id, ctxs, nr, err);
		if (!ret && !*nr && !has_contexts(&vgpu))
			ret = no_contexts(&vgpu, err);
		return ret;
	}

	ret = mgpu_dev_find(mgpu, name, &dev, err);
	if (!ret)
		ret = mgpu_ctx_dump(mgpu, NULL, ctxs, nr, err);
	if (ret)
		return ret;
	for (i = 0; i < *nr; i++)
		if ((*ctxs)[i].dev_id == dev.id)
			(*ctxs)[kept++] = (*ctxs)[i];
	*nr = kept;
	return 0;
}

int ctx_list(const struct gpuctl *ctl, int argc, char **argv)
{
	struct mgpu_ctx *ctxs = NULL;
	struct mgpu_error err;
	struct mgpu *mgpu;
	size_t nr = 0;
	int ret;

	if (argc && (argc != 2 || !is_word(argv[0], ctx_list_keys))) {
		const char *like = argc == 2 ?
				   suggest(argv[0], ctx_list_keys) : NULL;

		return usage_error("ctx list takes nothing, 'dev DEV' or 'vgpu VGPU', not '%s'%s%s%s",
				   argv[0], like ? "; did you mean '" : "",
				   like ? like : "", like ? "'?" : "");
	}
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	ret = dump(mgpu, argc ? argv[0] : NULL, argc ? argv[1] : NULL, &ctxs,
		   &nr, &err);
	mgpu_close(mgpu);
	if (ret) {
		free(ctxs);
		return failed(&err);
	}

	out_list(ctl, &listing, ctxs, nr);
	free(ctxs);
	return EXIT_OK;
}

/* ---- one of them ---- */

/**
 * struct order - request about a context
 * @verb: command, for error texts
 * @vgpu: word that names the vGPU
 * @id: ID of the context
 * @method: method of a preemption
 * @keep: slots that it may keep
 * @hold: keep it preempted until it is resumed
 * @first: put it ahead of the vGPU's other contexts
 * @run: make the request; returns 0 or -errno
 */
struct order {
	const char *verb;
	const char *vgpu;
	uint32_t id;
	uint32_t method;
	uint32_t keep;
	bool hold;
	bool first;
	int (*run)(struct mgpu *mgpu, uint32_t vgpu_id,
		   const struct order *order, struct mgpu_error *err);
};

static int parse_names(struct order *order, int argc, char **argv)
{
	if (argc < 2)
		return usage_error("ctx %s takes a vGPU and the id of one of its contexts, as in 'gpuctl ctx %s 1 2'; 'gpuctl ctx list' lists them",
				   order->verb, order->verb);
	order->vgpu = argv[0];
	if (parse_u32(argv[1], 1, UINT32_MAX, &order->id))
		return usage_error("vGPU %s: context %s: give its id, a whole number from 1 on; 'gpuctl ctx list' lists them",
				   argv[0], argv[1]);
	return 0;
}

/* "switch, drain or flush" */
static const char *list_methods(char *buf, size_t size)
{
	size_t len = 0;
	size_t i;

	buf[0] = '\0';
	for (i = 0; mgpu_preempt_methods[i] && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s",
					!i ? "" : mgpu_preempt_methods[i + 1] ?
					", " : " or ", mgpu_preempt_methods[i]);
	return buf;
}

static int parse_method(struct order *order, const char *value)
{
	const char *like;
	char buf[OUT_CELL];

	list_methods(buf, sizeof(buf));
	if (!value)
		return usage_error("context %u: method wants a value: give %s",
				   order->id, buf);
	for (order->method = 0; mgpu_preempt_methods[order->method];
	     order->method++)
		if (!strcmp(mgpu_preempt_methods[order->method], value))
			return 0;
	like = suggest(value, mgpu_preempt_methods);
	return usage_error("context %u: method %s: give %s%s%s%s", order->id,
			   value, buf, like ? "; did you mean '" : "",
			   like ? like : "", like ? "'?" : "");
}

static int unknown_word(const struct order *order, const char *word,
			const char *const *keys)
{
	const char *like = suggest(word, keys);
	const char *method = is_word("method", keys) ?
			     suggest(word, mgpu_preempt_methods) : NULL;

	if (method && !like)
		return usage_error("context %u: unknown word '%s'; did you mean 'method %s'?",
				   order->id, word, method);
	if (like)
		return usage_error("context %u: unknown word '%s'; did you mean '%s'?",
				   order->id, word, like);
	return usage_error("context %u: ctx %s takes no '%s', but %s",
			   order->id, order->verb, word,
			   is_word("method", keys) ?
			   "method, keep and hold" : "first");
}

static int parse_preempt(struct order *order, int argc, char **argv)
{
	const char *seen[4] = { NULL };
	size_t nr = 0;
	int ret;
	int i;

	for (i = 0; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!is_word(argv[i], ctx_preempt_keys))
			return unknown_word(order, argv[i], ctx_preempt_keys);
		if (is_word(argv[i], seen))
			return usage_error("context %u: duplicate %s; give it once",
					   order->id, argv[i]);
		seen[nr++] = argv[i];
		if (!strcmp(argv[i], "hold")) {
			order->hold = true;
			continue;
		}
		if (!strcmp(argv[i], "method")) {
			ret = parse_method(order, value);
			if (ret)
				return ret;
		} else if (!value) {
			return usage_error("context %u: keep wants a value: give the number of slots that it may keep",
					   order->id);
		} else if (parse_u32(value, 0, UINT32_MAX, &order->keep)) {
			return usage_error("context %u: keep %s: give the number of slots that it may keep, a whole number from 0 on",
					   order->id, value);
		}
		i++;
	}
	if (order->method == MGPU_PREEMPT_METHOD_FLUSH && order->keep)
		return usage_error("context %u: a flush takes all slots: leave out keep, or use the method switch or drain",
				   order->id);
	return 0;
}

static int parse_resume(struct order *order, int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		if (!is_word(argv[i], ctx_resume_keys))
			return unknown_word(order, argv[i], ctx_resume_keys);
		if (order->first)
			return usage_error("context %u: duplicate first; give it once",
					   order->id);
		order->first = true;
	}
	return 0;
}

/* @ctx: the context afterwards, may be NULL. */
static int carry_out(const struct order *order, struct mgpu_ctx *ctx,
		     struct mgpu_error *err)
{
	struct mgpu_vgpu_info vgpu = { 0 };
	struct mgpu *mgpu;
	int ret;

	ret = mgpu_open(&mgpu, err);
	if (ret)
		return ret;
	ret = mgpu_vgpu_find(mgpu, order->vgpu, &vgpu, err);
	if (ret)
		goto out;
	if (order->run)
		ret = order->run(mgpu, vgpu.id, order, err);
	if (!ret && ctx) {
		ret = mgpu_ctx_get(mgpu, vgpu.id, order->id, ctx, err);
		/* The request succeeded even if the context is gone by now. */
		if (ret == -ENOENT && order->run) {
			ctx->vgpu_id = vgpu.id;
			ctx->id = order->id;
			ctx->present = MGPU_HAS(MGPU_A_CTX_VGPU_ID) | MGPU_HAS(MGPU_A_CTX_ID);
			ret = 0;
		}
	}
	if (ret == -ENOENT && !has_contexts(&vgpu))
		no_contexts(&vgpu, err);
out:
	mgpu_close(mgpu);
	return ret;
}

int ctx_show(const struct gpuctl *ctl, int argc, char **argv)
{
	struct order order = { .verb = "show" };
	struct mgpu_error err;
	struct mgpu_ctx ctx;
	int ret;

	ret = parse_names(&order, argc, argv);
	if (ret)
		return ret;
	if (argc > 2)
		return usage_error("ctx show takes one context, not '%s' too",
				   argv[2]);
	if (carry_out(&order, &ctx, &err))
		return failed(&err);

	return out_info(ctl, mgpu_ctx_fields, &ctx);
}

static int change(const struct gpuctl *ctl, const struct order *order)
{
	struct mgpu_error err;
	struct mgpu_ctx ctx;

	if (carry_out(order, ctl->json ? &ctx : NULL, &err))
		return failed(&err);
	return ctl->json ? out_json(ctl, out_object(mgpu_ctx_fields, &ctx)) :
			   EXIT_OK;
}

static int run_preempt(struct mgpu *mgpu, uint32_t vgpu_id,
		       const struct order *order, struct mgpu_error *err)
{
	return mgpu_ctx_preempt(mgpu, vgpu_id, order->id, order->keep,
				(enum mgpu_preempt_method)order->method,
				order->hold, err);
}

int ctx_preempt(const struct gpuctl *ctl, int argc, char **argv)
{
	struct order order = {
		.verb = "preempt",
		.method = MGPU_PREEMPT_METHOD_SWITCH,
		.run = run_preempt,
	};
	int ret;

	ret = parse_names(&order, argc, argv);
	if (!ret)
		ret = parse_preempt(&order, argc - 2, argv + 2);
	return ret ? ret : change(ctl, &order);
}

static int run_resume(struct mgpu *mgpu, uint32_t vgpu_id,
		      const struct order *order, struct mgpu_error *err)
{
	return mgpu_ctx_resume(mgpu, vgpu_id, order->id, order->first, err);
}

int ctx_resume(const struct gpuctl *ctl, int argc, char **argv)
{
	struct order order = { .verb = "resume", .run = run_resume };
	int ret;

	ret = parse_names(&order, argc, argv);
	if (!ret)
		ret = parse_resume(&order, argc - 2, argv + 2);
	return ret ? ret : change(ctl, &order);
}
