/* SPDX-License-Identifier: GPL-2.0-only */
/* Settings of the agent, and the VM's key. */
#ifndef AGENT_CONF_H
#define AGENT_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

#define CONF_FILE	"/etc/mgpu/agent.conf"
#define CONF_KEY_FILE	"/etc/mgpu/agent.key"
#define CONF_KEY_FW_CFG	"/sys/firmware/qemu_fw_cfg/by_name/opt/org.mgpu/agent-key/raw"
#define CONF_STATE	"/var/lib/mgpu-agent"
#define CONF_QUEUE	"/var/spool/mgpu-agent"
#define CONF_PATH_MAX	512
#define CONF_SERVICES	4

/**
 * struct conf - settings
 * @vm: name of the VM, as libvirt has it
 * @key: the VM's key
 * @services: where the service is, tried in order: vsock, vsock:CID:PORT, or HOST:PORT
 * @nr_services: their number
 * @key_file: file with the key, "": CONF_KEY_FILE, then CONF_KEY_FW_CFG
 * @state: folder of what the agent keeps
 * @queue: folder or pipe with jobs, for watch
 * @notice: command that is run on a warning, "": none
 * @bind: seconds until a GPU must be there and bound by a driver
 * @report: seconds between two reports of use
 * @root: prefix of /sys and /proc, "" for the machine
 * @nvml: NVIDIA's library
 */
struct conf {
	char vm[64];
	unsigned char key[WIRE_KEY];
	char services[CONF_SERVICES][128];
	unsigned int nr_services;
	char key_file[CONF_PATH_MAX];
	char state[CONF_PATH_MAX];
	char queue[CONF_PATH_MAX];
	char notice[CONF_PATH_MAX];
	uint32_t bind;
	uint32_t report;
	char root[CONF_PATH_MAX];
	char nvml[CONF_PATH_MAX];
};

/**
 * conf_read() - read settings and key; complains; from then on the process leaves no core
 * @conf: result
 * @file: file with settings; NULL: CONF_FILE, which need not be there
 * @service: where the service is, instead of the file's; NULL: the file's
 *
 * Return: 0 or -1.
 */
int conf_read(struct conf *conf, const char *file, const char *service);
/* Overwrite the key. */
void conf_forget(struct conf *conf);

#endif /* AGENT_CONF_H */
