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
#define CONFIG_GROUP		64
#define CONFIG_SETTINGS_MAX	32
#define CONFIG_SIZE_MAX		(1u << 20)

/* Choices of socket_read and on_exit, in the order of mgpud_settings.h. */
enum config_read {
	CONFIG_READ_GROUP,
	CONFIG_READ_EVERYONE,
};

enum config_exit {
	CONFIG_EXIT_RELEASE,
	CONFIG_EXIT_KEEP,
};

/* Choices of model.mode, likewise. */
enum config_model_mode {
	CONFIG_MODEL_AUTO,	/* a control acts, weights are in shadow */
	CONFIG_MODEL_SHADOW,
	CONFIG_MODEL_ACT,
};

/**
 * struct config_model - settings of the model
 * @use: name of a control, or path of a file of weights, which begins with /; "" for none
 * @mode: enum config_model_mode
 * @max_age_days: age beyond which a file is not used, days; 0 for any
 */
struct config_model {
	char use[CONFIG_PATH];
	unsigned int mode;
	unsigned int max_age_days;
};

/* Return whether the model is a file of weights. */
static inline bool config_model_is_file(const struct config_model *c)
{
	return *c->use == '/';
}

/* Return whether the model limits vGPUs, unless it fails. */
static inline bool config_model_acts(const struct config_model *c)
{
	return c->mode == CONFIG_MODEL_ACT ||
		(c->mode == CONFIG_MODEL_AUTO && !config_model_is_file(c));
}

/* Where a value comes from. Each origin counts more than those before it. */
enum config_origin {
	ORIGIN_DEFAULT,
	ORIGIN_FILE,
	ORIGIN_ENVIRONMENT,
	ORIGIN_OPTION,
	ORIGIN_RUN_TIME,	/* overlay.h */
};

/**
 * struct config - all settings; mgpud_settings.h describes each
 * @set: settings of the rate loop, and agreements
 * @preempt: settings of the preemption loop
 * @model: settings of the model
 * @pairs: path of a file of weights of pairs of jobs, "" for none
 * @socket: path of the socket
 * @socket_group: group whose members may use the socket, or ACCESS_AUTO
 * @socket_read: enum config_read, which users may read the state
 * @on_exit: enum config_exit, what a signal that ends mgpud does to targets
 * @json_log: path of a file that gets one JSON object per period, "" for none
 * @state_file: path of the state file, "" for none
 * @state_period_s: time between two writes of the state file, seconds
 * @log: which messages are logged
 * @found: the configuration file exists
 * @origin: enum config_origin of each setting, in the order of mgpud_settings[]
 * @sla_origin: the same of the agreement for all others
 */
struct config {
	struct settings set;
	struct preempter_config preempt;
	struct config_model model;
	char pairs[CONFIG_PATH];
	char socket[CONFIG_PATH];
	char socket_group[CONFIG_GROUP];
	unsigned int socket_read;
	unsigned int on_exit;
	char json_log[CONFIG_PATH];
	char state_file[CONFIG_PATH];
	unsigned int state_period_s;
	enum log_mode log;
	bool found;
	unsigned char origin[CONFIG_SETTINGS_MAX];
	unsigned char sla_origin;
};

void config_default(struct config *c);

/* Copy a configuration. Returns 0 or -ENOMEM. */
static inline int config_copy(struct config *to, const struct config *from)
{
	*to = *from;
	return settings_copy(&to->set, &from->set);
}

void config_free(struct config *c);

/**
 * struct config_source - origin of a configuration, at start and at each reload
 * @path: configuration file
 * @must: the file must exist
 * @override: settings whose value counts more than the file's, and whether the command
 *	line or the environment has it
 * @nr: number of overrides
 */
struct config_source {
	const char *path;
	bool must;
	struct {
		const struct mgpud_setting *setting;
		const char *value;
		enum config_origin origin;
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
