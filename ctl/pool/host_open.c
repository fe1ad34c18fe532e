// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opening a connection to libvirt within a time limit.  Libvirt has none until its keepalive runs,
 * which begins when the connection is open: a host that takes a connection and never answers would
 * block the caller for ever.  So a thread of its own opens the connection.  An attempt that takes
 * too long is broken, by the end of its ssh or of its socket, and nobody else waits for it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libxml/uri.h>

#include "host_private.h"
#include "thread.h"

#define PORT_TLS	16514

/* ---- URIs ---- */

/* "tls" of qemu+tls://; "" for none. */
static const char *way_of(const xmlURI *uri)
{
	const char *plus = uri && uri->scheme ? strchr(uri->scheme, '+') : NULL;

	return plus ? plus + 1 : "";
}

int host_batch_uri(const char *uri, char *batch, size_t size)
{
	xmlURIPtr parsed = xmlParseURI(uri);
	const char *more = "";
	int len;

	if (!strcmp(way_of(parsed), "ssh") && !strstr(uri, "no_tty="))
		more = parsed->query_raw ? "&no_tty=1" : "?no_tty=1";
	len = snprintf(batch, size, "%s%s", uri, more);
	xmlFreeURI(parsed);
	return len < 0 || (size_t)len >= size ? -1 : 0;
}

/* Addresses of the TLS server of a URI; NULL for other ways. */
static struct addrinfo *server_of(const char *uri)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	xmlURIPtr parsed = xmlParseURI(uri);
	struct addrinfo *found = NULL;
	char name[256], port[16];
	const char *server = parsed ? parsed->server : NULL;

	if (server && !strcmp(way_of(parsed), "tls")) {
		snprintf(port, sizeof(port), "%d", parsed->port > 0 ? parsed->port : PORT_TLS);
		snprintf(name, sizeof(name), "%s", server + (*server == '['));
		name[strcspn(name, "]")] = '\0';
		if (getaddrinfo(name, port, &hints, &found))
			found = NULL;
	}
	xmlFreeURI(parsed);
	return found;
}

/* ---- breaking an attempt ---- */

/* End the ssh that a thread began. */
static void end_children(pid_t thread)
{
	char path[64];
	FILE *f;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)thread);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fscanf(f, "%d", &pid) == 1)
		if (pid > 1)
			kill(pid, SIGTERM);
	fclose(f);
}

static bool is_peer(int fd, const struct addrinfo *peers)
{
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address);

	if (getpeername(fd, (struct sockaddr *)&address, &size))
		return false;
	for (; peers; peers = peers->ai_next)
		if (size == peers->ai_addrlen && !memcmp(&address, peers->ai_addr, size))
			return true;
	return false;
}

/* The copy of a descriptor is the same socket, even if the number is another one's by now. */
static void end_socket(int fd, const struct addrinfo *peers)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return;
	if (is_peer(copy, peers))
		shutdown(copy, SHUT_RDWR);
	close(copy);
}

/*
 * End this process's connections to the server: there is none but that of the attempt, unless two
 * hosts of the configuration are one.  An attempt without an answer to SYN ends by itself.
 */
static void end_sockets(const char *uri)
{
	struct addrinfo *peers = server_of(uri);
	DIR *dir = peers ? opendir("/proc/self/fd") : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (*entry->d_name != '.' && atoi(entry->d_name) != dirfd(dir))
			end_socket(atoi(entry->d_name), peers);
	if (dir)
		closedir(dir);
	if (peers)
		freeaddrinfo(peers);
}

/* ---- the attempt ---- */

/* Without callbacks: the service has nobody to ask for a password. */
static virConnectPtr open_now(struct host *host, char *text)
{
	virConnectAuth auth = { NULL, 0, NULL, NULL };
	char uri[sizeof(host->config.uri) + 16];
	virConnectPtr conn;

	if (host_batch_uri(host->config.uri, uri, sizeof(uri)))
		return NULL;
	conn = virConnectOpenAuth(uri, &auth, 0);
	if (!conn)
		host_error(host, text, "no connection to libvirt");
	return conn;
}

static void *attempt(void *arg)
{
	struct host *host = arg;
	char text[POOL_TEXT_MAX] = "";
	virConnectPtr conn;

	pthread_mutex_lock(&host->lock);
	host->opener = gettid();
	pthread_mutex_unlock(&host->lock);
	conn = open_now(host, text);
	pthread_mutex_lock(&host->lock);
	host->opening = false;
	host->opened = conn;
	strcpy(host->open_text, text);
	pthread_cond_broadcast(&host->changed);
	pthread_mutex_unlock(&host->lock);
	host_put(host);
	return NULL;
}

/* With the lock held. */
static int begin(struct host *host)
{
	int ret;

	host->opening = true;
	host->opener = 0;
	host->references++;
	ret = thread_begin(attempt, host);
	if (ret) {
		host->opening = false;
		host->references--;
	}
	return ret;
}

static void break_attempt(struct host *host)
{
	pid_t opener;

	pthread_mutex_lock(&host->lock);
	opener = host->opening ? host->opener : 0;
	pthread_mutex_unlock(&host->lock);
	if (!opener)
		return;
	end_children(opener);
	end_sockets(host->config.uri);
}

enum host_result host_open(struct host *host, virConnectPtr *conn, char *text)
{
	int64_t until = host_ns() + HOST_OPEN_SECONDS * INT64_C(1000000000);
	enum host_result result = HOST_RETRY;
	bool silent;

	pthread_mutex_lock(&host->lock);
	*conn = NULL;
	if (!host->opening && !host->opened && begin(host))
		host_says(HOST_RETRY, host->open_text, "%s: no thread to connect with",
			  host->config.name);
	while (host->opening && !host->stopped && host_ns() < until)
		host_wait(host, until);
	silent = host->opening && !host->stopped;
	if (host->opening) {
		host_says(HOST_RETRY, text, "%s: no connection to libvirt: no answer within %d s; see whether the host runs, its firewall, and its libvirtd",
			  host->config.name, HOST_OPEN_SECONDS);
	} else {
		*conn = host->opened;
		host->opened = NULL;
		strcpy(text, host->open_text);
		result = *conn ? HOST_OK : HOST_RETRY;
	}
	pthread_mutex_unlock(&host->lock);
	if (silent)
		break_attempt(host);
	return result;
}
