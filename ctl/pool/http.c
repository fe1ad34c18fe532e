// SPDX-License-Identifier: GPL-2.0-only
/* The HTTP server: sockets, connections, and calls that last. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gnutls/gnutls.h>

#include "agent.h"
#include "auth.h"
#include "clock.h"
#include "complain.h"
#include "http_private.h"

#define PRIORITIES	"SECURE128:-VERS-ALL:+VERS-TLS1.3:%SERVER_PRECEDENCE"
#define USER_PART	8	/* a user that is no admin has this part of the connections */

/**
 * struct files - the files of TLS
 * @certificate: certificate chain
 * @key: private key
 * @ca: authorities of clients' certificates, without data for none
 */
struct files {
	gnutls_datum_t certificate;
	gnutls_datum_t key;
	gnutls_datum_t ca;
};

/* ---- connections ---- */

static void set_address(struct client *client, const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;

		client->address_size = sizeof(v4->sin_addr);
		memcpy(client->address, &v4->sin_addr, client->address_size);
	} else if (addr->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;

		/* A client has a network of its own. */
		client->address_size = 8;
		memcpy(client->address, &v6->sin6_addr, client->address_size);
	}
}

/* Before a handshake, which costs much. */
static enum MHD_Result on_accept(void *arg, const struct sockaddr *addr, socklen_t len)
{
	struct http *http = arg;
	struct client client = { 0 };

	(void)len;
	set_address(&client, addr);
	return limit_take(&http->opens, client.address, client.address_size, http->now_ms) ?
	       MHD_NO : MHD_YES;
}

/* The user of the Unix socket. One that is no admin has a part of the connections only. */
static void set_user(struct http *http, struct client *client)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(peer);
	unsigned int nr = 0;

	getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	client->address_size = sizeof(peer.uid);
	memcpy(client->address, &peer.uid, sizeof(peer.uid));
	client->known = !auth_peer(client->fd, &http->unix_rules, &client->actor);
	if (client->known && client->actor.role == STORE_ADMIN)
		return;
	for (const struct client *other = http->clients; other; other = other->next)
		nr += !other->tls && !memcmp(other->address, client->address, sizeof(peer.uid));
	if (nr > http->config.connections / USER_PART)
		shutdown(client->fd, SHUT_RDWR);
}

static void add_client(struct http *http, struct MHD_Connection *c, void **state)
{
	struct client *client = calloc(1, sizeof(*client));
	const union MHD_ConnectionInfo *info;
	const struct sockaddr *addr = NULL;
	int fd = -1;

	/* libmicrohttpd 1.0 keeps one answer for a connection, true until the next question. */
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info)
		fd = info->connect_fd;
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	if (info)
		addr = info->client_addr;
	if (!client || fd < 0 || !addr) {
		free(client);
		return;
	}
	client->fd = fd;
	client->since_ms = http->now_ms;
	client->next = http->clients;
	client->prev = &http->clients;
	if (client->next)
		client->next->prev = &client->next;
	http->clients = client;
	client->tls = addr->sa_family != AF_UNIX;
	if (client->tls)
		set_address(client, addr);
	else
		set_user(http, client);
	*state = client;
}

static void on_connection(void *arg, struct MHD_Connection *c, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	struct client *client = *state;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		add_client(arg, c, state);
	} else if (client) {
		*client->prev = client->next;
		if (client->next)
			client->next->prev = client->prev;
		free(client);
	}
}

/* A client that sends or reads a little now and then is not idle, but it is late. */
static void end_late(struct http *http)
{
	uint64_t max = http->config.request_s * 1000ull;

	for (struct client *c = http->clients; c; c = c->next)
		if (http->now_ms - c->since_ms >= (c->slow ? 20 * max : max))
			shutdown(c->fd, SHUT_RDWR);
}

/* ---- calls that last ---- */

static void look_at_calls(struct http *http)
{
	bool events = http->stream_ms && http->now_ms >= http->stream_ms;
	struct call *next;

	if (events)
		http->stream_ms = 0;
	for (struct call *call = http->calls; call; call = next) {
		next = call->next;
		if (call->actor.expires && call->actor.expires <= http->now)
			call->over = true;
		if (!call->suspended)
			continue;
		call->client->since_ms = http->now_ms;
		if (http->now_ms >= call->until_ms || call->over ||
		    (call->state == CALL_STREAM ? events :
		     http->changed && api_version(http->api, call->request) != call->seen))
			call_wake(call);
	}
	http->changed = false;
}

void http_changed(struct http *http)
{
	http->changed = true;
}

void http_event(struct http *http)
{
	if (!http->stream_ms)
		http->stream_ms = http->now_ms + HTTP_STREAM_MS;
}

void http_end_streams(struct http *http)
{
	for (struct call *call = http->calls; call; call = call->next)
		call->over = true;
}

/* ---- libmicrohttpd's servers ---- */

#define NR_OPTIONS	8

static void fill_options(struct http *http, struct MHD_OptionItem options[NR_OPTIONS])
{
	const struct config *c = &http->config;
	const struct MHD_OptionItem all[NR_OPTIONS] = {
		{ MHD_OPTION_CONNECTION_LIMIT, (intptr_t)c->connections, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)c->request_s, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTP_MEMORY, NULL },
		{ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, http },
		{ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)call_end, http },
		{ MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)call_begin, http },
		{ MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
		{ MHD_OPTION_END, 0, NULL },
	};

	memcpy(options, all, sizeof(all));
}

#define FLAGS	(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME)

static struct MHD_Daemon *start_plain(struct http *http)
{
	struct MHD_OptionItem options[NR_OPTIONS];
	int fd = dup(http->plain_fd);
	struct MHD_Daemon *d;

	fill_options(http, options);
	d = fd < 0 ? NULL : MHD_start_daemon(FLAGS, 0, NULL, NULL, call_run, http,
					     MHD_OPTION_LISTEN_SOCKET, fd,
					     MHD_OPTION_ARRAY, options, MHD_OPTION_END);
	if (!d && fd >= 0)
		close(fd);
	return d;
}

static void free_files(struct files *f)
{
	gnutls_datum_t *all[] = { &f->certificate, &f->key, &f->ca };

	for (size_t i = 0; i < 3; i++) {
		if (all[i]->data)
			gnutls_memset(all[i]->data, 0, all[i]->size);
		gnutls_free(all[i]->data);
		all[i]->data = NULL;
	}
}

/* libmicrohttpd does not say which file it cannot use. */
static bool check_files(const struct config *c, const struct files *f, char *why)
{
	gnutls_certificate_credentials_t cred;
	const char *name = c->certificate;
	int ret = gnutls_certificate_allocate_credentials(&cred);

	if (ret) {
		snprintf(why, POOL_TEXT_MAX, "TLS: %s", gnutls_strerror(ret));
		return false;
	}
	ret = gnutls_certificate_set_x509_key_mem(cred, &f->certificate, &f->key,
						  GNUTLS_X509_FMT_PEM);
	if (ret >= 0 && f->ca.data) {
		name = c->client_ca;
		ret = gnutls_certificate_set_x509_trust_mem(cred, &f->ca, GNUTLS_X509_FMT_PEM);
		ret = ret ? ret : GNUTLS_E_NO_CERTIFICATE_FOUND;
	}
	gnutls_certificate_free_credentials(cred);
	if (ret < 0)
		snprintf(why, POOL_TEXT_MAX, "%s: %s; give a certificate and its key as PEM", name,
			 gnutls_strerror(ret));
	return ret >= 0;
}

static bool load(const char *name, gnutls_datum_t *data, char *why)
{
	int ret = gnutls_load_file(name, data);

	if (ret)
		snprintf(why, POOL_TEXT_MAX, "%s: %s; see [listen]", name,
			 errno ? strerror(errno) : gnutls_strerror(ret));
	return !ret;
}

static void warn_exposed(const char *key)
{
	struct stat st;

	if (!stat(key, &st) && st.st_mode & 0004)
		complain("%s: every user can read the private key: chmod o-r %s", key, key);
}

static bool load_files(const struct config *c, struct files *f, char *why)
{
	*f = (struct files){ 0 };
	errno = 0;
	if (load(c->certificate, &f->certificate, why) && load(c->key, &f->key, why) &&
	    (!*c->client_ca || load(c->client_ca, &f->ca, why)) && check_files(c, f, why)) {
		warn_exposed(c->key);
		return true;
	}
	free_files(f);
	return false;
}

static struct MHD_Daemon *start_tls(struct http *http, char *why)
{
	struct MHD_OptionItem options[NR_OPTIONS];
	struct MHD_Daemon *d = NULL;
	struct files f;
	int fd;

	if (!load_files(&http->config, &f, why))
		return NULL;
	fill_options(http, options);
	fd = dup(http->tls_fd);
	if (fd >= 0)
		d = MHD_start_daemon(FLAGS | MHD_USE_TLS, 0, on_accept, http, call_run, http,
				     MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_ARRAY, options,
				     MHD_OPTION_PER_IP_CONNECTION_LIMIT,
				     http->config.connections_address,
				     MHD_OPTION_HTTPS_MEM_CERT, f.certificate.data,
				     MHD_OPTION_HTTPS_MEM_KEY, f.key.data,
				     MHD_OPTION_HTTPS_PRIORITIES, PRIORITIES,
				     f.ca.data ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END,
				     f.ca.data, MHD_OPTION_END);
	if (!d && fd >= 0)
		close(fd);
	if (!d)
		snprintf(why, POOL_TEXT_MAX, "libmicrohttpd does not start with TLS");
	free_files(&f);
	return d;
}

/* End a server: libmicrohttpd needs all its connections to go on first. */
static void stop(struct http *http, struct MHD_Daemon *d)
{
	struct call *next;

	if (!d)
		return;
	http->closing = true;
	for (struct call *call = http->calls; call; call = next) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(call->c, MHD_CONNECTION_INFO_DAEMON);

		next = call->next;
		if (info->daemon != d)
			continue;
		call->over = true;
		call_wake(call);
	}
	MHD_run(d);
	MHD_stop_daemon(d);
	http->closing = false;
}

/* ---- the server ---- */

static bool set_group(struct http *http, char *why)
{
	const struct group *group;

	http->unix_rules.others = http->config.others;
	if (!*http->config.admin_group)
		return true;
	group = getgrnam(http->config.admin_group);
	if (group) {
		http->unix_rules.group = group->gr_gid;
		return true;
	}
	snprintf(why, POOL_TEXT_MAX, "no group '%s'; make it, or set admin_group in [listen]",
		 http->config.admin_group);
	return false;
}

static void set_limits(struct http *http)
{
	const struct config *c = &http->config;

	limit_init(&http->calls_limit, c->rate, c->burst);
	limit_init(&http->opens, c->opens, c->opens_burst);
	limit_init(&http->failures, 1, HTTP_FAILURES);
}

static bool start(struct http *http, char *why)
{
	const struct config *c = &http->config;

	if (*c->socket) {
		if (!set_group(http, why))
			return false;
		http->plain_fd = listen_unix(c->socket, &http->unix_rules, &http->lock_fd, why);
		if (http->plain_fd < 0)
			return false;
		http->plain = start_plain(http);
		snprintf(why, POOL_TEXT_MAX, "libmicrohttpd does not start");
		if (!http->plain)
			return false;
	}
	if (*c->address) {
		http->tls_fd = agent_listen(c->address, why);
		if (http->tls_fd < 0)
			return false;
		http->tls = start_tls(http, why);
		if (!http->tls)
			return false;
	}
	return true;
}

struct http *http_new(const struct config *config, struct api *api, char *why)
{
	struct http *http = calloc(1, sizeof(*http));

	if (!http) {
		snprintf(why, POOL_TEXT_MAX, "out of memory");
		return NULL;
	}
	http->api = api;
	http->config = *config;
	http->plain_fd = http->tls_fd = http->lock_fd = -1;
	http->now_ms = now_ns() / 1000000;
	set_limits(http);
	if (start(http, why))
		return http;
	http_free(http);
	return NULL;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	stop(http, http->plain);
	stop(http, http->tls);
	if (http->plain_fd >= 0) {
		unlink(http->config.socket);
		close(http->plain_fd);
		close(http->lock_fd);
	}
	if (http->tls_fd >= 0)
		close(http->tls_fd);
	free(http);
}

int http_reload(struct http *http, const struct config *config, char *why)
{
	struct config old = http->config;
	struct MHD_Daemon *tls = NULL;

	if (strcmp(old.socket, config->socket) || strcmp(old.address, config->address) ||
	    strcmp(old.admin_group, config->admin_group) || old.others != config->others) {
		snprintf(why, POOL_TEXT_MAX, "socket, admin_group, others and address change at a restart only; restart the service");
		return -EINVAL;
	}
	http->config = *config;
	if (http->tls) {
		tls = start_tls(http, why);
		if (!tls) {
			http->config = old;
			return -EINVAL;
		}
		stop(http, http->tls);
		http->tls = tls;
	}
	set_limits(http);
	http_end_streams(http);
	return 0;
}

size_t http_fds(const struct http *http, int fds[HTTP_FDS])
{
	struct MHD_Daemon *all[] = { http->plain, http->tls };
	size_t n = 0;

	for (size_t i = 0; i < HTTP_FDS; i++) {
		const union MHD_DaemonInfo *info = all[i] ?
			MHD_get_daemon_info(all[i], MHD_DAEMON_INFO_EPOLL_FD) : NULL;

		if (info)
			fds[n++] = info->epoll_fd;
	}
	return n;
}

int http_patience(struct http *http)
{
	struct MHD_Daemon *all[] = { http->plain, http->tls };
	uint64_t best = HTTP_TICK_MS, now_ms = now_ns() / 1000000;
	MHD_UNSIGNED_LONG_LONG ms;

	if (!http->clients)
		best = 60000;
	for (size_t i = 0; i < HTTP_FDS; i++)
		if (all[i] && MHD_get_timeout(all[i], &ms) == MHD_YES && ms < best)
			best = ms;
	if (http->changed)
		return 0;
	if (http->stream_ms && (http->stream_ms <= now_ms || http->stream_ms - now_ms < best))
		best = http->stream_ms > now_ms ? http->stream_ms - now_ms : 0;
	return (int)best;
}

void http_run(struct http *http, int64_t now)
{
	http->now = now;
	http->now_ms = now_ns() / 1000000;
	look_at_calls(http);
	end_late(http);
	if (http->plain)
		MHD_run(http->plain);
	if (http->tls)
		MHD_run(http->tls);
}

unsigned int http_port(const struct http *http)
{
	struct sockaddr_in6 addr;
	socklen_t len = sizeof(addr);

	/* The port is at the same place for both families. */
	if (http->tls_fd < 0 || getsockname(http->tls_fd, (struct sockaddr *)&addr, &len))
		return 0;
	return ntohs(addr.sin6_port);
}
