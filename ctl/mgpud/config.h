/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The configuration: a file, and what the command line and the environment say
 * instead.
 */
#ifndef MGPUD_CONFIG_H
#define MGPUD_CONFIG_H

#include "log.h"
#include "preempter.h"
#include "settings.h"

#define CONFIG_DEFAULT		"/etc/mgpu/mgpud.conf"
#define CONFIG_STATE_FILE	"/var/lib/mgpu/mgpud.state"
#define CONFIG_STATE_PERIOD	60	/* s */
#define CONFIG_STATE_PERIOD_MAX	3600
#define CONFIG_PATH		256
#define CONFIG_OVERRIDES	16
#define CONFIG_SIZE_MAX		(1u << 20)

/**
 * struct config - all of it
 * @set: what the socket can change, too
 * @preempt: preemption, likewise
 * @socket: path of the socket
 * @json_log: path of a file that gets one JSON object per period, "" for none
 * @state_file: path of the state file, "" for none
 * @state_period_s: between two writes of it
 * @log: how much is said
 * @found: there was a file
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

/* The keys of [mgpud], NULL at the end. */
extern const char *const config_keys[];

void config_default(struct config *c);
void config_free(struct config *c);

/* One key of [mgpud] from text. Returns 0 or -EINVAL. */
int config_set(struct config *c, const char *key, const char *value,
	       struct settings_error *err);

/* The same of one that may count instead of the file's: see struct config_source. */
int config_override(struct config *c, const char *key, const char *value,
		    struct settings_error *err);

/**
 * struct config_source - where a configuration comes from, the first time and
 * whenever it is read again
 * @path: of the file
 * @must: it must be there
 * @override: keys of [mgpud], or settings of preemption by the socket's names, and
 *	values that count instead of the file's
 * @nr: number of these
 */
struct config_source {
	const char *path;
	bool must;
	struct {
		const char *key, *value;
	} override[CONFIG_OVERRIDES];
	size_t nr;
};

/*
 * Defaults, then the file, then the overrides. Returns 0, or -errno with @c as it
 * was and a sentence in @why that names file, line and key.
 */
int config_load(struct config *c, const struct config_source *source, char *why,
		size_t size);

#endif /* MGPUD_CONFIG_H */
