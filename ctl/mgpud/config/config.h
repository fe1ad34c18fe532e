/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The configuration: a file, and the options and the environment that count more.
 */
#ifndef MGPUD_CONFIG_H
#define MGPUD_CONFIG_H

#include "server/log.h"
#include "contexts/preempter.h"
#include "config/settings.h"

struct mgpud_setting;

#define CONFIG_DEFAULT		"/etc/mgpu/mgpud.conf"
#define CONFIG_PATH		256
#define CONFIG_SETTINGS_MAX	32
#define CONFIG_SIZE_MAX		(1u << 20)

/**
 * struct config - all settings; mgpud_settings.h describes each
 * @set: settings of the rate loop, and agreements
 * @preempt: settings of the preemption loop
 * @socket: path of the socket
 * @json_log: path of a file that gets one JSON object per period, "" for none
 * @state_file: path of the state file, "" for none
 * @state_period_s: time between two writes of the state file, seconds
 * @log: which messages are logged
 * @found: the configuration file exists
 */
struct config {
	struct settings set;
	struct preempter_config preempt;
	char socket[CONFIG_PATH];
	char json_log[CONFIG_PATH];
	char state_file[CONFIG_PATH];
	unsigned int state_period_s;
	enum log_mode log;
	bool found;
};

void config_default(struct config *c);
void config_free(struct config *c);

/**
 * struct config_source - origin of a configuration, at start and at each reload
 * @path: configuration file
 * @must: the file must exist
 * @override: settings whose value counts more than the file's
 * @nr: number of overrides
 */
struct config_source {
	const char *path;
	bool must;
	struct {
		const struct mgpud_setting *setting;
		const char *value;
	} override[CONFIG_SETTINGS_MAX];
	size_t nr;
};

/*
 * Load defaults, then the file, then the overrides. Returns 0, or -errno with @c
 * unchanged and a sentence in @why that names file, line and key.
 */
int config_load(struct config *c, const struct config_source *source, char *why,
		size_t size);

#endif /* MGPUD_CONFIG_H */
