/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The API without its transport: a call goes in, an answer comes out.  http.c, the unit tests
 * and the fuzz target call it.  ctl/pool/openapi.yaml describes it; tests compare.
 */
#ifndef POOL_API_H
#define POOL_API_H

#include "pool.h"
#include "store.h"

#define API_BODY_MAX	(64 * 1024)

/* Who calls, as the transport found out. */
struct api_actor {
	enum store_role role;
	char name[POOL_NAME_MAX];	/* of a token, certificate or user */
	char project[POOL_NAME_MAX];	/* "": all (admins, and viewers of all) */
	char vm[POOL_NAME_MAX];		/* an agent: only this VM */
};

struct api_call {
	const char *method;
	const char *path;
	const char *query;	/* "" for none, still encoded */
	const char *body;
	size_t body_size;
	struct api_actor actor;
	int64_t now;
};

/**
 * struct api_answer - an answer
 * @type: media type, a constant
 * @body: free() by the caller; NULL: none
 */
struct api_answer {
	int status;
	const char *type;
	char *body;
	size_t size;
};

struct api {
	struct pool *pool;
	struct store *store;
	int64_t started;
};

void api_handle(struct api *api, const struct api_call *call, struct api_answer *answer);

#endif /* POOL_API_H */
