/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The settings of mgpud, each in one row. mgpud's configuration file, command line
 * and socket, and gpuctl's "ctl set" with its help and completion, are made from these
 * rows; a unit test compares mgpud(8) and mgpud.conf with them.
 */
#ifndef LIBMGPU_MGPUD_SETTINGS_H
#define LIBMGPU_MGPUD_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

/**
 * enum mgpud_setting_kind - values of a setting
 * @MGPUD_WHOLE: a whole number, unsigned int
 * @MGPUD_NUMBER: a number, double
 * @MGPUD_MILLISECONDS: a number of milliseconds, kept as uint64_t nanoseconds
 * @MGPUD_ALLOCATOR: name of an allocator
 * @MGPUD_PREEMPTION: name of a preemption policy
 * @MGPUD_COST: fit, or two coefficients A,B
 * @MGPUD_LOG: kinds of events that are logged
 * @MGPUD_SOCKET: path of a socket
 * @MGPUD_FILE: path of a file, or none
 * @MGPUD_CHOICE: one of the setting's names, kept as its index, unsigned int
 * @MGPUD_GROUP: name of a group of users, or auto
 * @MGPUD_MODEL: one of the setting's names, or the path of a file
 */
enum mgpud_setting_kind {
	MGPUD_WHOLE,
	MGPUD_NUMBER,
	MGPUD_MILLISECONDS,
	MGPUD_ALLOCATOR,
	MGPUD_PREEMPTION,
	MGPUD_COST,
	MGPUD_LOG,
	MGPUD_SOCKET,
	MGPUD_FILE,
	MGPUD_CHOICE,
	MGPUD_GROUP,
	MGPUD_MODEL,
};

/**
 * struct mgpud_setting - a setting of mgpud
 * @section: section of the configuration file, without brackets
 * @key: key in that section
 * @name: name on the socket; NULL if only the file and the command line set it
 * @option: long option of mgpud, without --; NULL for none
 * @was: key, name and option that the setting had before, which is refused with a
 *	hint; NULL for none
 * @arg: placeholder of its value in help texts
 * @kind: values
 * @min: lowest number
 * @max: highest number
 * @unit: unit of numbers, NULL for none
 * @values: names to choose from, with a space between two; NULL for none
 * @initial: default, as text
 * @help: effect, in one line
 */
struct mgpud_setting {
	const char *section;
	const char *key;
	const char *name;
	const char *option;
	const char *was;
	const char *arg;
	enum mgpud_setting_kind kind;
	double min, max;
	const char *unit;
	const char *values;
	const char *initial;
	const char *help;
};

/* All settings, and one without a key at the end. */
extern const struct mgpud_setting mgpud_settings[];

/* Sections of the configuration file. */
#define MGPUD_RATES	"mgpud"
#define MGPUD_CONTEXTS	"preemption"
#define MGPUD_EXPECT	"model"

#define MGPUD_RANGE	96

/* True if the value is a number in JSON, too. */
static inline bool mgpud_setting_is_number(const struct mgpud_setting *s)
{
	return s->kind <= MGPUD_MILLISECONDS;
}

/**
 * mgpud_setting_range() - write which values a setting has
 * @s: the setting
 * @text: result, such as "100 to 60000 milliseconds" or "auto, periods or quiet"
 */
void mgpud_setting_range(const struct mgpud_setting *s, char text[MGPUD_RANGE]);

#endif /* LIBMGPU_MGPUD_SETTINGS_H */

/* MGPUD_SETTING(member of mgpud's struct config, initializers of struct mgpud_setting) */
#ifdef MGPUD_SETTING

MGPUD_SETTING(set.allocator, .section = MGPUD_RATES, .key = "allocator", .name = "allocator",
	      .option = "allocator", .was = "policy", .arg = "NAME",
	      .kind = MGPUD_ALLOCATOR,
	      .values = "exact fea drf maxmin static vgasa none", .initial = "exact",
	      .help = "allocator, which divides capacity among virtual machines"),
MGPUD_SETTING(set.period_ms, .section = MGPUD_RATES, .key = "period_ms", .name = "period_ms",
	      .option = "period", .arg = "MS", .kind = MGPUD_WHOLE, .min = 100, .max = 60000,
	      .unit = "milliseconds", .initial = "1000",
	      .help = "length of a period"),
MGPUD_SETTING(set.iterations, .section = MGPUD_RATES, .key = "iterations", .name = "iterations",
	      .option = "iterations", .arg = "N", .kind = MGPUD_WHOLE, .min = 1, .max = 10000,
	      .initial = "10",
	      .help = "iterations of fea per period"),
MGPUD_SETTING(set.headroom, .section = MGPUD_RATES, .key = "headroom", .name = "headroom",
	      .option = "headroom", .arg = "H", .kind = MGPUD_NUMBER, .min = 1.05, .max = 4,
	      .unit = "times the rate measured", .initial = "2",
	      .help = "demand of a vGPU that no limit holds back"),
MGPUD_SETTING(set.param.beta, .section = MGPUD_RATES, .key = "beta", .name = "beta",
	      .option = "beta", .arg = "B", .kind = MGPUD_NUMBER, .min = 0.05, .max = 50,
	      .initial = "2",
	      .help = "fairness parameter, not 1"),
MGPUD_SETTING(set.param.lambda, .section = MGPUD_RATES, .key = "lambda", .name = "lambda",
	      .option = "lambda", .arg = "L", .kind = MGPUD_NUMBER, .min = -100, .max = 100,
	      .initial = "-0.5",
	      .help = "efficiency weight, with the sign of 1 - beta"),
MGPUD_SETTING(socket, .section = MGPUD_RATES, .key = "socket",
	      .option = "socket", .arg = "PATH", .kind = MGPUD_SOCKET,
	      .initial = MGPUD_SOCKET_DEFAULT,
	      .help = "local socket; $MGPUD_SOCKET counts more than the file"),
MGPUD_SETTING(socket_group, .section = MGPUD_RATES, .key = "socket_group",
	      .arg = "GROUP", .kind = MGPUD_GROUP, .initial = "auto",
	      .help = "group whose members may use the socket; auto: mgpu if it exists, else root"),
MGPUD_SETTING(socket_read, .section = MGPUD_RATES, .key = "socket_read",
	      .arg = "WHO", .kind = MGPUD_CHOICE, .values = "group everyone",
	      .initial = "group",
	      .help = "users that may read the state; only root and the group may change settings"),
MGPUD_SETTING(on_exit, .section = MGPUD_RATES, .key = "on_exit",
	      .option = "on-exit", .arg = "WHAT", .kind = MGPUD_CHOICE,
	      .values = "release keep", .initial = "release",
	      .help = "targets when SIGTERM or SIGINT ends mgpud"),
MGPUD_SETTING(log, .section = MGPUD_RATES, .key = "log",
	      .option = "log", .arg = "WHAT", .kind = MGPUD_LOG,
	      .values = "auto periods changes quiet", .initial = "auto",
	      .help = "messages; auto: changes to the journal, else periods"),
MGPUD_SETTING(json_log, .section = MGPUD_RATES, .key = "json_log",
	      .option = "json-log", .arg = "FILE", .kind = MGPUD_FILE, .initial = "none",
	      .help = "log that gets one JSON object per period"),
MGPUD_SETTING(state_file, .section = MGPUD_RATES, .key = "state_file",
	      .option = "state-file", .arg = "FILE", .kind = MGPUD_FILE,
	      .initial = "/var/lib/mgpu/mgpud.state",
	      .help = "state that the next mgpud starts from"),
MGPUD_SETTING(state_period_s, .section = MGPUD_RATES, .key = "state_period_s",
	      .arg = "S", .kind = MGPUD_WHOLE, .min = 1, .max = 3600, .unit = "seconds",
	      .initial = "60",
	      .help = "time between two writes of the state file"),
MGPUD_SETTING(preempt.ops, .section = MGPUD_CONTEXTS, .key = "policy", .name = "preempt",
	      .option = "preempt", .arg = "NAME", .kind = MGPUD_PREEMPTION,
	      .values = "none always drain flush mgpu", .initial = "mgpu",
	      .help = "preemption policy, which decides about slots of engines"),
MGPUD_SETTING(preempt.param.cost, .section = MGPUD_CONTEXTS, .key = "cost",
	      .name = "preempt_cost", .arg = "A,B|fit", .kind = MGPUD_COST,
	      .values = "fit", .initial = "fit",
	      .help = "cost of a switch: A * miss rate + B cycles per byte, or as measured"),
MGPUD_SETTING(preempt.param.decay_compute, .section = MGPUD_CONTEXTS, .key = "decay_compute",
	      .name = "preempt_decay_compute", .arg = "D", .kind = MGPUD_NUMBER,
	      .min = 0.5, .max = 1, .initial = "1",
	      .help = "speed that a compute-intensive context keeps during a switch beside it"),
MGPUD_SETTING(preempt.param.decay_memory, .section = MGPUD_CONTEXTS, .key = "decay_memory",
	      .name = "preempt_decay_memory", .arg = "D", .kind = MGPUD_NUMBER,
	      .min = 0.5, .max = 1, .initial = "0.9",
	      .help = "speed that a memory-intensive context keeps during a switch beside it"),
MGPUD_SETTING(preempt.param.class_threshold, .section = MGPUD_CONTEXTS,
	      .key = "class_threshold", .name = "preempt_class_threshold", .arg = "T",
	      .kind = MGPUD_NUMBER, .min = 0.05, .max = 0.95, .initial = "0.5",
	      .help = "part of its time that a memory-intensive context waits for memory"),
MGPUD_SETTING(preempt.param.starve_ns, .section = MGPUD_CONTEXTS, .key = "starve_ms",
	      .name = "preempt_starve_ms", .arg = "MS", .kind = MGPUD_MILLISECONDS,
	      .min = 1, .max = 3600000, .unit = "milliseconds", .initial = "500",
	      .help = "time after which a waiting context goes first"),
MGPUD_SETTING(preempt.param.min_gain, .section = MGPUD_CONTEXTS, .key = "min_gain",
	      .name = "preempt_min_gain", .arg = "G", .kind = MGPUD_NUMBER,
	      .min = 0, .max = 1, .initial = "0.02",
	      .help = "gain that a preemption needs, as a part of the work done without it"),
MGPUD_SETTING(pairs, .section = MGPUD_CONTEXTS, .key = "pairs",
	      .arg = "FILE", .kind = MGPUD_FILE, .initial = "none",
	      .help = "speeds of pairs of jobs that are expected before any was observed"),
MGPUD_SETTING(model.use, .section = MGPUD_EXPECT, .key = "use", .name = "model",
	      .option = "model", .arg = "MODEL", .kind = MGPUD_MODEL,
	      .values = "none static proportional persistence smoothing", .initial = "static",
	      .help = "model of what is due to a virtual machine that was not measured yet"),
MGPUD_SETTING(model.mode, .section = MGPUD_EXPECT, .key = "mode", .name = "model_mode",
	      .option = "model-mode", .arg = "MODE", .kind = MGPUD_CHOICE,
	      .values = "auto shadow act", .initial = "auto",
	      .help = "whether the model limits such a machine, or its errors are only measured"),
MGPUD_SETTING(model.max_age_days, .section = MGPUD_EXPECT, .key = "max_age_days",
	      .name = "model_max_age_days", .arg = "DAYS", .kind = MGPUD_WHOLE, .min = 0,
	      .max = 36500, .unit = "days", .initial = "0",
	      .help = "age beyond which a file of weights is not used, 0 for any age"),

#endif
