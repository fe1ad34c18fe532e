/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Callers of the API: tokens, certificates, and users of the Unix socket.  No function stores or
 * logs a token.
 */
#ifndef POOL_AUTH_H
#define POOL_AUTH_H

#include <sys/types.h>

#include "api.h"

#define AUTH_TOKEN_SIZE	64	/* bytes of a token and its NUL */
#define AUTH_CLIENTS	256	/* certificates that the configuration names */

/**
 * struct auth_client - a role of a certificate
 * @name: its CN, or a DNS name, mail address or URI among its alternative names
 * @role: role
 * @project: project, "": all
 */
struct auth_client {
	char name[POOL_NAME_MAX];
	enum store_role role;
	char project[POOL_NAME_MAX];
};

/**
 * struct auth_unix - rights at the Unix socket; root is always an admin
 * @group: group whose members are admins
 * @others: any other user is a viewer of all projects; else it is refused
 */
struct auth_unix {
	gid_t group;
	bool others;
};

/* Hash of a token, as the database has it; "" when the library fails. */
void auth_hash(const char *token, char hash[65]);

/**
 * auth_new_token() - make a token
 * @token: 32 random bytes as text
 * @hash: its hash for the database
 *
 * Return: 0 or -EIO.
 */
int auth_new_token(char token[AUTH_TOKEN_SIZE], char hash[65]);

/* Random bytes as hexadecimal digits. Return 0 or -EIO. */
int auth_random(unsigned char *bytes, size_t size);
void auth_hex(const unsigned char *bytes, size_t size, char *text);

/* Fill an actor from a token. Return 0, -EACCES if it is unknown or expired, -EIO. */
int auth_token(struct store *store, const char *token, int64_t now, struct api_actor *actor);

/**
 * auth_certificate() - fill an actor from the certificate of a TLS session
 * @session: gnutls_session_t
 * @client: roles of certificates, of @nr
 * @why: why not, of POOL_TEXT_MAX bytes
 *
 * Return: 0, -ENOENT without a certificate, -EACCES if it is not valid or has no role.
 */
int auth_certificate(void *session, const struct auth_client *client, size_t nr,
		     struct api_actor *actor, char *why);

/* Whether a certificate's name is one of the configuration; fills the actor. */
bool auth_named(const char *name, const struct auth_client *client, size_t nr,
		struct api_actor *actor);

/* Fill an actor from the peer of a Unix socket. Return 0 or -EACCES. */
int auth_peer(int fd, const struct auth_unix *rules, struct api_actor *actor);

/* The rule of auth_peer(). */
bool auth_unix_role(uid_t uid, const gid_t *groups, size_t nr, const struct auth_unix *rules,
		    enum store_role *role);

#endif /* POOL_AUTH_H */
