/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The configuration file of mgpu-poold.  Each setting has one row in config_settings[]; the
 * manual page is compared with it.
 */
#ifndef POOL_CONFIG_H
#define POOL_CONFIG_H

#include "auth.h"
#include "pool.h"

#define CONFIG_DEFAULT		"/etc/mgpu/pool.conf"
#define CONFIG_SIZE_MAX		(1 << 20)
#define CONFIG_TEXT_MAX		256
#define CONFIG_LISTENERS	8
#define CONFIG_HOSTS		64
#define CONFIG_PROJECTS		1024

/**
 * struct config - what an administrator sets
 * @database: URL for store_open()
 * @default_project: project of VMs that have none, "" for none
 * @retention_days: days after which what is over is deleted, 0: never
 * @socket: path of the Unix socket, "" for none
 * @admin_group: group whose members are admins at the Unix socket, "" for none
 * @others: users outside the group are viewers there
 * @address: ADDRESS:PORT or [IPv6]:PORT for TLS, "" for none
 * @certificate: file of the service's certificate chain, PEM
 * @key: file of its private key, PEM
 * @client_ca: file of the authorities of clients' certificates, PEM; "" for none
 * @agents: addresses for agent_listen()
 * @nr_agents: their number
 * @rate: calls a second of a client, see limit.h
 * @burst: calls at once of a client
 * @opens: new TLS connections a second of an address
 * @opens_burst: new TLS connections at once of an address
 * @connections: connections of the Unix socket, and of TLS
 * @connections_address: TLS connections of an address
 * @streams: streams and long polls at a time
 * @request_s: time for a whole request, and for the answer, seconds
 * @exposed: @database has a password, and every user can read the file
 * @pool: settings of the pool
 * @hosts: hosts with libvirt
 * @projects: projects that are set at each start and reload
 * @clients: roles of certificates
 */
struct config {
	char database[CONFIG_TEXT_MAX];
	char default_project[POOL_NAME_MAX];
	uint32_t retention_days;
	char socket[108];
	char admin_group[POOL_NAME_MAX];
	bool others;
	char address[CONFIG_TEXT_MAX];
	char certificate[CONFIG_TEXT_MAX];
	char key[CONFIG_TEXT_MAX];
	char client_ca[CONFIG_TEXT_MAX];
	char agents[CONFIG_LISTENERS][CONFIG_TEXT_MAX];
	size_t nr_agents;
	uint32_t rate;
	uint32_t burst;
	uint32_t opens;
	uint32_t opens_burst;
	uint32_t connections;
	uint32_t connections_address;
	uint32_t streams;
	uint32_t request_s;
	bool exposed;
	struct pool_settings pool;
	struct pool_host *hosts;
	size_t nr_hosts;
	struct pool_project *projects;
	size_t nr_projects;
	struct auth_client *clients;
	size_t nr_clients;
};

enum config_kind {
	CONFIG_WHOLE, CONFIG_TEXT, CONFIG_FLAG, CONFIG_CHOICE, CONFIG_NAME, CONFIG_LIST,
};

/**
 * struct config_setting - a setting
 * @section: section of the file
 * @key: its key there
 * @kind: its values
 * @offset: of the member of struct config
 * @size: of the member, bytes
 * @min: lowest number
 * @max: highest number
 * @unit: unit of a number, "" for none
 * @values: words for CONFIG_CHOICE and CONFIG_FLAG (no yes), separated by spaces
 * @initial: default, as text
 */
struct config_setting {
	const char *section;
	const char *key;
	enum config_kind kind;
	size_t offset;
	size_t size;
	uint32_t min;
	uint32_t max;
	const char *unit;
	const char *values;
	const char *initial;
};

/* All settings, and one without a key at the end. */
extern const struct config_setting config_settings[];

/**
 * config_parse() - read a configuration from text
 * @config: result; on an error it is empty
 * @name: name of the file, for errors
 * @text: the text, of @len bytes
 * @why: the error with name and line, and how to mend it
 * @size: size of @why, bytes
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int config_parse(struct config *config, const char *name, const char *text, size_t len, char *why,
		 size_t size);

/**
 * config_load() - read the configuration file
 * @must: a missing file is an error; else it is an empty one
 *
 * Return: 0 or -errno, with @why as for config_parse().
 */
int config_load(struct config *config, const char *path, bool must, char *why, size_t size);

void config_free(struct config *config);

#endif /* POOL_CONFIG_H */
