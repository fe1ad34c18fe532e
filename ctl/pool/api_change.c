// SPDX-License-Identifier: GPL-2.0-only
/* Routes that change something. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gnutls/crypto.h>

#include "api_private.h"
#include "auth.h"

#define MIB_MAX		(16 * 1024 * 1024)	/* of a GPU */
#define YEAR		31536000

/* A member of a body that goes to a member of a structure; see struct field. */
#define FIELD(name, kind, type, member, min, max, needed, null)			\
	{ name, kind, offsetof(type, member), sizeof(((type *)NULL)->member), min, max,	\
	  needed, null }

/* ---- requests ---- */

static const struct field wishes[] = {
	FIELD("key", FIELD_KEY, struct pool_request, key, 0, 0, true, false),
	FIELD("vm", FIELD_NAME, struct pool_request, vm, 0, 0, true, false),
	FIELD("kind", FIELD_KIND, struct pool_request, kind, 0, 0, true, false),
	FIELD("project", FIELD_NAME, struct pool_request, project, 0, 0, false, false),
	FIELD("target", FIELD_TARGET, struct pool_request, target, 0, 0, false, false),
	FIELD("size_mib", FIELD_U64, struct pool_request, size_mib,
	      0, UINT64_C(1) << 40, false, false),
	FIELD("memory_mib", FIELD_U32, struct pool_request, memory_mib, 0, MIB_MAX, false, false),
	FIELD("precision", FIELD_PRECISION, struct pool_request, precision, 0, 0, false, false),
	FIELD("capabilities", FIELD_CAPABILITIES, struct pool_request, capabilities,
	      0, 0, false, false),
	FIELD("type", FIELD_TEXT, struct pool_request, type, 0, 0, false, false),
	FIELD("weight", FIELD_U32, struct pool_request, weight, 1, 10000, false, false),
	FIELD("floor_fps", FIELD_MILLI, struct pool_request, floor_mhz, 0, 1000, false, false),
	FIELD("lease_s", FIELD_U32, struct pool_request, lease, 0, YEAR, false, false),
	{ 0 },
};

/* Answer an error of the pool. */
static void fail_pool(struct context *c, int ret, const char *text)
{
	static const struct {
		int error, status;
		const char *code;
	} codes[] = {
		{ -EINVAL, 400, "invalid" }, { -ENOENT, 404, "not_found" },
		{ -EEXIST, 409, "conflict" }, { -EPERM, 403, "forbidden" },
		{ -ENOSPC, 422, "impossible" }, { -EDQUOT, 422, "quota" },
		{ -EBUSY, 503, "busy" }, { -ENOMEM, 503, "busy" },
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].error == ret) {
			c->answer->retry = codes[i].status == 503 ? 5 : 0;
			fail(c, codes[i].status, codes[i].code, "%s",
			     *text ? text : strerror(-ret));
			return;
		}
	fail_store(c);
}

/* The VM of a request, and its project. */
static bool check_vm(struct context *c, struct pool_request *r)
{
	const struct pool_vm *vm = pool_vm(c->api->pool, r->vm);

	if (!vm || !sees_vm(&c->call->actor, vm)) {
		fail(c, 404, "not_found", "no VM '%s'; see /v1/vms", r->vm);
		return false;
	}
	if (!*vm->project) {
		fail(c, 409, "conflict", "VM '%s' has no project; an admin sets it with PUT /v1/vms/%s",
		     r->vm, r->vm);
		return false;
	}
	if (!*r->project)
		strcpy(r->project, vm->project);
	if (!strcmp(r->project, vm->project))
		return true;
	fail(c, 403, "forbidden", "VM '%s' is of another project than '%s'; leave the project out",
	     r->vm, r->project);
	return false;
}

void post_request(struct context *c)
{
	struct pool_request r = { 0 };
	char text[POOL_TEXT_MAX] = "";
	int ret;

	if (!read_body(c, wishes, &r, NULL, false) || !check_vm(c, &r))
		return;
	ret = pool_ask(c->api->pool, &r, c->call->now, c->actor, text);
	if (ret < 0)
		fail_pool(c, ret, text);
	else
		answer_json(c, ret ? 201 : 200, request_json(c->api, &r));
}

static void answer_request(struct context *c, int ret, const char *text)
{
	struct pool_request r;

	if (ret < 0)
		fail_pool(c, ret, text);
	else if (get_request(c, &r))
		answer_json(c, 200, request_json(c->api, &r));
}

void post_release(struct context *c)
{
	static const struct field fields[] = {
		{ "done", FIELD_FLAG, 0, sizeof(bool), 0, 0, false, false }, { 0 },
	};
	struct pool_request r;
	char text[POOL_TEXT_MAX] = "";
	bool done = false;
	int ret = 0;

	if (!read_body(c, fields, &done, NULL, true) || !get_request(c, &r))
		return;
	/* A request that is over, and no more in memory, stays as it is. */
	if (!pool_over(r.state))
		ret = pool_release(c->api->pool, c->id, done, c->call->now, c->actor, text);
	answer_request(c, ret, text);
}

void post_extend(struct context *c)
{
	static const struct field fields[] = {
		{ "seconds", FIELD_U32, 0, sizeof(uint32_t), 0, YEAR, true, false }, { 0 },
	};
	struct pool_request r;
	char text[POOL_TEXT_MAX] = "";
	uint32_t seconds = 0;
	int ret;

	if (!read_body(c, fields, &seconds, NULL, false) || !get_request(c, &r))
		return;
	if (pool_over(r.state)) {
		fail(c, 409, "conflict", "request %llu is over; ask again with another key",
		     (unsigned long long)c->id);
		return;
	}
	ret = pool_extend(c->api->pool, c->id, seconds, c->call->now, c->actor, text);
	answer_request(c, ret, text);
}

/* ---- projects and VMs ---- */

/* A name in the path that will be stored. */
static bool check_name(struct context *c)
{
	if (pool_name_ok(c->part[0]))
		return true;
	fail(c, 400, "invalid", "'%s' is no name: use 1 to 63 of A-Z a-z 0-9 . _ -, and begin with none of . -",
	     c->part[0]);
	return false;
}

void put_project(struct context *c)
{
	static const struct field fields[] = {
		{ "weight", FIELD_U32, offsetof(struct pool_project, weight), 0, 1, 10000, false,
		  false },
		{ "max_gpus", FIELD_U32, offsetof(struct pool_project, max_gpus), 0, 1, 1000000,
		  false, true },
		{ 0 },
	};
	const struct pool_project *old = pool_project(c->api->pool, c->part[0]);
	struct pool_project p = { .weight = POOL_WEIGHT_DEFAULT };
	int ret;

	if (old)
		p = *old;
	if (!check_name(c) || !read_body(c, fields, &p, NULL, false))
		return;
	strcpy(p.name, c->part[0]);
	if (store_put_project(c->api->store, &p)) {
		c->api->effects->failed = true;
		fail_store(c);
		return;
	}
	ret = pool_put_project(c->api->pool, &p);
	if (ret) {
		fail_pool(c, ret, "");
		return;
	}
	log_change(c, "project", p.name, "weight %u, max_gpus %u", p.weight, p.max_gpus);
	answer_json(c, 200, project_json(c->api, pool_project(c->api->pool, p.name)));
}

static void tell(struct context *c, enum api_change what, const char *name)
{
	if (c->api->changed)
		c->api->changed(c->api->arg, what, name);
}

/* Answer the removal of the object in the path: first from memory, which knows what needs it. */
static void dropped(struct context *c, int ret, int (*drop)(struct store *, const char *),
		    const char *what)
{
	const char *name = c->part[0];

	if (ret == -ENOENT) {
		fail(c, 404, "not_found", "no %s '%s'; see /v1/%ss", what, name, what);
	} else if (ret) {
		fail(c, 409, "conflict", "%s '%s' is in use; release its requests%s first", what,
		     name, *what == 'p' ? " and move its VMs" : "");
	} else if (drop(c->api->store, name)) {
		c->api->effects->failed = true;
		fail_store(c);
	} else {
		c->answer->status = 204;
		log_change(c, *what == 'p' ? "project-gone" : "vm-gone", name, "removed");
	}
}

void delete_project(struct context *c)
{
	const struct pool_vm *vm;
	int ret = 0;

	for (size_t i = 0; (vm = pool_vm_at(c->api->pool, i)) && !ret; i++)
		if (!strcmp(vm->project, c->part[0]))
			ret = -EBUSY;
	if (!ret)
		ret = pool_drop_project(c->api->pool, c->part[0]);
	dropped(c, ret, store_drop_project, "project");
	if (c->answer->status == 204)
		tell(c, API_TOKEN, c->part[0]);
}

static bool get_vm(struct context *c, struct pool_vm *vm)
{
	const struct pool_vm *old = pool_vm(c->api->pool, c->part[0]);

	if (!old) {
		fail(c, 404, "not_found", "no VM '%s'; see /v1/vms", c->part[0]);
		return false;
	}
	*vm = *old;
	return true;
}

void put_vm(struct context *c)
{
	static const struct field fields[] = {
		{ "project", FIELD_NAME, offsetof(struct pool_vm, project), POOL_NAME_MAX, 0, 0,
		  false, true },
		{ "pinned", FIELD_FLAG, offsetof(struct pool_vm, pinned), 0, 0, 0, false, false },
		{ 0 },
	};
	struct pool_vm vm, old;
	int ret;

	if (!get_vm(c, &old))
		return;
	vm = old;
	if (!read_body(c, fields, &vm, NULL, false))
		return;
	if (*vm.project && !pool_project(c->api->pool, vm.project)) {
		fail(c, 404, "not_found", "no project '%s'; see /v1/projects", vm.project);
		return;
	}
	if (strcmp(vm.project, old.project) && pool_request_of_vm(c->api->pool, vm.name, NULL)) {
		fail(c, 409, "conflict", "VM '%s' has open requests; release them first", vm.name);
		return;
	}
	if (store_put_vm(c->api->store, &vm)) {
		c->api->effects->failed = true;
		fail_store(c);
		return;
	}
	ret = pool_put_vm(c->api->pool, &vm);
	if (ret) {
		fail_pool(c, ret, "");
		return;
	}
	log_change(c, "vm", vm.name, "project %s, %s", *vm.project ? vm.project : "none",
		   vm.pinned ? "pinned" : "not pinned");
	answer_json(c, 200, vm_json(c, pool_vm(c->api->pool, vm.name)));
}

void delete_vm(struct context *c)
{
	dropped(c, pool_drop_vm(c->api->pool, c->part[0]), store_drop_vm, "vm");
	if (c->answer->status == 204)
		tell(c, API_VM_KEY, c->part[0]);
}

void post_vm_key(struct context *c)
{
	struct json_object *o;
	unsigned char key[32];
	char text[65];
	struct pool_vm vm;

	if (!get_vm(c, &vm))
		return;
	if (auth_random(key, sizeof(key)) || store_put_vm_key(c->api->store, vm.name, key)) {
		gnutls_memset(key, 0, sizeof(key));
		c->api->effects->failed = true;
		fail_store(c);
		return;
	}
	auth_hex(key, sizeof(key), text);
	log_change(c, "vm-key", vm.name, "a new key for its agent");
	o = json_object_new_object();
	add_text(o, "vm", vm.name);
	add_text(o, "key", text);
	answer_json(c, 201, o);
	gnutls_memset(key, 0, sizeof(key));
	gnutls_memset(text, 0, sizeof(text));
	tell(c, API_VM_KEY, vm.name);
}

/* ---- hosts ---- */

void delete_host(struct context *c)
{
	const char *name = c->part[0];
	int ret;

	for (size_t i = 0; i < c->api->nr_hosts; i++)
		if (!strcmp(c->api->hosts[i].name, name)) {
			fail(c, 409, "conflict", "host '%s' is in the configuration; take it out of the file, and reload mgpu-poold first",
			     name);
			return;
		}
	ret = pool_forget_host(c->api->pool, name, c->call->now, c->actor);
	if (ret == -ENOENT) {
		fail(c, 404, "not_found", "no request is open of a host '%s'; see /v1/hosts", name);
	} else if (ret) {
		fail_pool(c, ret, "");
	} else {
		c->answer->status = 204;
		log_change(c, "host-gone", name, "its requests have ended");
	}
}

/* ---- GPUs ---- */

#define GIVEN_OFFLINE	1	/* members of put_gpu() */
#define GIVEN_WHY	2

/* The reason of a GPU that is back is none; that of an admin is marked, for hosts_merge_gpu(). */
static void set_why(struct context *c, struct pool_gpu *gpu, bool offline, bool why)
{
	char text[256];

	if (!gpu->offline) {
		gpu->why[0] = '\0';
	} else if (offline || why) {
		snprintf(text, sizeof(text), "%.255s", why ? gpu->why : c->call->actor.name);
		snprintf(gpu->why, sizeof(gpu->why), API_OFFLINE "%s", text);
	}
}

void put_gpu(struct context *c)
{
	static const struct field fields[] = {
		FIELD("offline", FIELD_FLAG, struct pool_gpu, offline, 0, 0, false, false),
		{ "why", FIELD_TEXT, offsetof(struct pool_gpu, why), 201, 0, 0, false, false },
		FIELD("memory_mib", FIELD_U32, struct pool_gpu, memory_mib,
		      0, MIB_MAX, false, false),
		FIELD("capabilities", FIELD_CAPABILITIES, struct pool_gpu, capabilities,
		      0, 0, false, false),
		FIELD("precisions", FIELD_PRECISIONS, struct pool_gpu, precisions,
		      0, 0, false, false),
		FIELD("model", FIELD_TEXT, struct pool_gpu, model, 0, 0, false, false),
		{ 0 },
	};
	const struct pool_gpu *old;
	char name[2 * POOL_NAME_MAX];
	struct pool_gpu gpu;
	uint32_t given;
	int ret;

	snprintf(name, sizeof(name), "%s/%s", c->part[0], c->part[1]);
	old = pool_gpu(c->api->pool, name);
	if (!old) {
		fail(c, 404, "not_found", "no GPU '%s'; see /v1/gpus", name);
		return;
	}
	gpu = *old;
	if (!read_body(c, fields, &gpu, &given, false))
		return;
	set_why(c, &gpu, given & GIVEN_OFFLINE, given & GIVEN_WHY);
	if (store_put_gpu(c->api->store, &gpu)) {
		c->api->effects->failed = true;
		fail_store(c);
		return;
	}
	ret = pool_put_gpu(c->api->pool, &gpu);
	if (ret) {
		fail_pool(c, ret, "");
		return;
	}
	log_change(c, "gpu", name, "%s%s%s", gpu.offline ? "offline" : "online",
		   *gpu.why ? ": " : "", gpu.why);
	answer_json(c, 200, gpu_json(c, pool_gpu(c->api->pool, name)));
}

/* ---- tokens ---- */

static bool check_token(struct context *c, const struct store_token *token)
{
	const char *wrong = NULL;

	if (token->role == STORE_PROJECT && !*token->project)
		wrong = "the role project needs a project; add it";
	else if (token->role == STORE_ADMIN && *token->project)
		wrong = "the role admin has no project; leave it out";
	else if (*token->project && !pool_project(c->api->pool, token->project))
		wrong = "there is no such project; see /v1/projects";
	else if (token->expires && token->expires <= c->call->now)
		wrong = "expires is over; give a time to come, in seconds since 1970, or null";
	if (wrong)
		fail(c, 400, "invalid", "%s", wrong);
	return !wrong;
}

void put_token(struct context *c)
{
	static const struct field fields[] = {
		FIELD("role", FIELD_ROLE, struct store_token, role, 0, 0, true, false),
		FIELD("project", FIELD_NAME, struct store_token, project, 0, 0, false, true),
		FIELD("expires", FIELD_U64, struct store_token, expires, 0, INT64_MAX, false, true),
		{ 0 },
	};
	struct store_token token = { 0 };
	char text[AUTH_TOKEN_SIZE];
	struct json_object *o;

	if (!check_name(c) || !read_body(c, fields, &token, NULL, false) || !check_token(c, &token))
		return;
	strcpy(token.name, c->part[0]);
	if (auth_new_token(text, token.hash) || store_put_token(c->api->store, &token)) {
		c->api->effects->failed = true;
		fail_store(c);
		return;
	}
	log_change(c, "token", token.name, "role %s, project %s", store_role_name(token.role),
		   *token.project ? token.project : "all");
	o = token_json(&token);
	add_text(o, "token", text);
	answer_json(c, 201, o);
	gnutls_memset(text, 0, sizeof(text));
	tell(c, API_TOKEN, token.name);
}

void delete_token(struct context *c)
{
	int ret = store_drop_token(c->api->store, c->part[0]);

	if (ret == -ENOENT) {
		fail(c, 404, "not_found", "no token '%s'; see /v1/tokens", c->part[0]);
	} else if (ret) {
		c->api->effects->failed = true;
		fail_store(c);
	} else {
		c->answer->status = 204;
		log_change(c, "token-gone", c->part[0], "revoked");
		tell(c, API_TOKEN, c->part[0]);
	}
}
