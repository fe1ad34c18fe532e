// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "auth.h"

#define PREFIX	"mgpu-"		/* lets secret scanners find a token */
#define RANDOM	32

/* ---- tokens ---- */

void auth_hex(const unsigned char *bytes, size_t size, char *text)
{
	for (size_t i = 0; i < size; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	text[2 * size] = '\0';
}

void auth_hash(const char *token, char hash[65])
{
	unsigned char sum[32];

	hash[0] = '\0';
	if (!gnutls_hash_fast(GNUTLS_DIG_SHA256, token, strlen(token), sum))
		auth_hex(sum, sizeof(sum), hash);
}

int auth_random(unsigned char *bytes, size_t size)
{
	return gnutls_rnd(GNUTLS_RND_KEY, bytes, size) ? -EIO : 0;
}

int auth_new_token(char token[AUTH_TOKEN_SIZE], char hash[65])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char random[RANDOM + 1] = { 0 };
	char *at = stpcpy(token, PREFIX);

	if (auth_random(random, RANDOM))
		return -EIO;
	for (size_t bit = 0; bit < RANDOM * 8; bit += 6) {
		unsigned int two = (unsigned int)random[bit / 8] << 8 | random[bit / 8 + 1];

		*at++ = digits[two >> (10 - bit % 8) & 63];
	}
	*at = '\0';
	gnutls_memset(random, 0, sizeof(random));
	auth_hash(token, hash);
	return *hash ? 0 : -EIO;
}

int auth_token(struct store *store, const char *token, int64_t now, struct api_actor *actor)
{
	struct store_token found = { 0 };
	char hash[65];
	int ret;

	auth_hash(token, hash);
	if (!*hash)
		return -EIO;
	/*
	 * The database compares hashes, whose digits nobody can choose; this comparison takes as
	 * long whichever digit differs.
	 */
	ret = store_find_token(store, hash, &found);
	if (ret && ret != -ENOENT)
		return -EIO;
	if (ret || gnutls_memcmp(found.hash, hash, sizeof(hash)) ||
	    (found.expires && found.expires <= now))
		return -EACCES;
	*actor = (struct api_actor){ .role = found.role, .expires = found.expires };
	strcpy(actor->name, found.name);
	strcpy(actor->project, found.project);
	return 0;
}

/* ---- certificates ---- */

bool auth_named(const char *name, const struct auth_client *client, size_t nr,
		struct api_actor *actor)
{
	for (size_t i = 0; i < nr; i++) {
		if (strcmp(client[i].name, name))
			continue;
		*actor = (struct api_actor){ .role = client[i].role };
		strcpy(actor->name, client[i].name);
		strcpy(actor->project, client[i].project);
		return true;
	}
	return false;
}

/* Try the alternative names, then the CN. A name with a NUL is cut by no comparison: refused. */
static bool named(gnutls_x509_crt_t cert, const struct auth_client *client, size_t nr,
		  struct api_actor *actor)
{
	char name[256];
	size_t size;
	int type;

	for (unsigned int i = 0; ; i++) {
		size = sizeof(name) - 1;
		type = gnutls_x509_crt_get_subject_alt_name(cert, i, name, &size, NULL);
		if (type == GNUTLS_E_SHORT_MEMORY_BUFFER)
			continue;
		if (type < 0)
			break;
		if (type != GNUTLS_SAN_DNSNAME && type != GNUTLS_SAN_RFC822NAME &&
		    type != GNUTLS_SAN_URI)
			continue;
		name[size] = '\0';
		if (strlen(name) == size && auth_named(name, client, nr, actor))
			return true;
	}
	size = sizeof(name) - 1;
	if (gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &size))
		return false;
	name[size] = '\0';
	return strlen(name) == size && auth_named(name, client, nr, actor);
}

int auth_certificate(void *session, const struct auth_client *client, size_t nr,
		     struct api_actor *actor, char *why)
{
	const gnutls_datum_t *chain;
	gnutls_x509_crt_t cert;
	unsigned int size = 0, status = 0;
	time_t expires;
	int ret = -EACCES;

	chain = gnutls_certificate_get_peers(session, &size);
	if (!chain || !size)
		return -ENOENT;
	if (gnutls_certificate_verify_peers2(session, &status) || status) {
		snprintf(why, POOL_TEXT_MAX, "the certificate is not valid; use one of the authority that client_ca names, within its time");
		return -EACCES;
	}
	if (gnutls_x509_crt_init(&cert))
		return -EACCES;
	if (gnutls_x509_crt_import(cert, chain, GNUTLS_X509_FMT_DER))
		snprintf(why, POOL_TEXT_MAX, "the certificate cannot be read; make a new one");
	else if (!named(cert, client, nr, actor))
		snprintf(why, POOL_TEXT_MAX, "the certificate's names have no role; add a section [client NAME] to pool.conf");
	else
		ret = 0;
	expires = gnutls_x509_crt_get_expiration_time(cert);
	actor->expires = expires > 0 ? expires : 0;
	gnutls_x509_crt_deinit(cert);
	return ret;
}

/* ---- the Unix socket ---- */

bool auth_unix_role(uid_t uid, const gid_t *groups, size_t nr, const struct auth_unix *rules,
		    enum store_role *role)
{
	bool admin = !uid;

	for (size_t i = 0; i < nr && !admin; i++)
		admin = rules->group && groups[i] == rules->group;
	*role = admin ? STORE_ADMIN : STORE_VIEWER;
	return admin || rules->others;
}

int auth_peer(int fd, const struct auth_unix *rules, struct api_actor *actor)
{
	struct ucred peer;
	gid_t groups[1 + 256];
	socklen_t size = sizeof(peer), room = sizeof(groups) - sizeof(gid_t);
	struct passwd *user;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return -EACCES;
	groups[0] = peer.gid;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &room))
		room = 0;
	*actor = (struct api_actor){ 0 };
	if (!auth_unix_role(peer.uid, groups, 1 + room / sizeof(gid_t), rules, &actor->role))
		return -EACCES;
	user = getpwuid(peer.uid);
	if (user && pool_name_ok(user->pw_name))
		snprintf(actor->name, sizeof(actor->name), "%s", user->pw_name);
	else
		snprintf(actor->name, sizeof(actor->name), "uid-%u", peer.uid);
	return 0;
}
