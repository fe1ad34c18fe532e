// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpuctl: the command line. Parser, help and completion use the tables below; a test
 * compares Documentation/man/gpuctl.8 with them.
 */
#include <errno.h>
#include <json-c/json.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl.h"
#include "mgpud_settings.h"
#include "trace_file.h"

#ifndef MGPU_VERSION
#error "the Makefile says MGPU_VERSION"
#endif

static int help(const struct gpuctl *ctl, int argc, char **argv);
static int version(const struct gpuctl *ctl, int argc, char **argv);

/* The first verb of an object is the one that is run if there is none. */
static const struct command commands[] = {
	{ "dev", "list", "", "", NULL,
	  "list the devices that vGPUs share", dev_list },
	{ "dev", "show", "DEV", "", NULL,
	  "show one device; DEV is its id or name", dev_show },
	{ "dev", "set", "DEV { policy NAME | job-timeout TIME | slots N | hang-limit N|none } ...", "",
	  dev_set_keys,
	  "change settings of a device; TIME is a number with us, ms or s",
	  dev_set },
	{ "dev", "bind", "ADDRESS [force]", "", dev_bind_keys,
	  "share a physical virtio-gpu, named by its PCI address, between VMs",
	  dev_bind },
	{ "dev", "unbind", "ADDRESS [leave] [force]", "", dev_unbind_keys,
	  "return a virtio-gpu to the host's own driver, or leave it without a driver",
	  dev_unbind },
	{ "type", "list", "[DEV]", "", NULL,
	  "list the types of vGPU that devices offer, with their limits and defaults",
	  type_list },
	{ "type", "show", "[DEV]", "", NULL, "the same", type_list },
	{ "render", "list", "", "", NULL,
	  "list the GPUs of the host that render for VMs, each with its mgpu-renderd",
	  render_list },
	{ "render", "start", "[ADDRESS|none]", "", render_start_keys,
	  "render for VMs on the GPU at a PCI address, or with none, the default, without a GPU",
	  render_start },
	{ "render", "stop", "[ADDRESS|none|all] [force]", "", render_stop_keys,
	  "end rendering on a GPU, or on all; force: also while vGPUs exist, which go",
	  render_stop },
	{ "remote", "list", "", "", NULL,
	  "list the programs whose GPU calls mgpu-remoted executes, with what they have done",
	  remote_list },
	{ "remote", "show", "PID", "", NULL,
	  "show all that is counted of one program; PID is its process, or that of mgpu-remoted for it",
	  remote_show },
	{ "remote", "stats", "", "nd", NULL,
	  "show the programs' calls and data per second, until interrupted", remote_stats },
	{ "remote", "accounts", "", "", NULL,
	  "list the accounts of mgpu-remoted, with what they may have of the engines' time",
	  remote_accounts },
	{ "remote", "set", "ACCOUNT { weight N | gpu-limit P%|none } ...", "", remote_set_keys,
	  "change an account's part of the engines' time; ACCOUNT is user:NAME, vm:CID, or others",
	  remote_set },
	{ "vgpu", "list", "[dev DEV]", "", vgpu_list_keys,
	  "list vGPUs", vgpu_list },
	{ "vgpu", "show", "VGPU", "", NULL,
	  "show one vGPU and its counters; VGPU is its id, its UUID or the beginning of its UUID",
	  vgpu_show },
	{ "vgpu", "create", "DEV TYPE [uuid UUID] [name NAME] [SETTING VALUE]...", "",
	  vgpu_create_keys,
	  "create a vGPU with settings as those of vgpu set, and print its UUID", vgpu_create },
	{ "vgpu", "remove", "{ VGPU[,VGPU]... | dev DEV | all } [force]", "y",
	  vgpu_remove_keys,
	  "remove vGPUs, those of a device, or all; force: also those that VMs have, which lose them",
	  vgpu_remove },
	{ "vgpu", "set",
	  "{ VGPU[,VGPU]...|all { weight N | fps F|none | target F|none | floor F|none | gpu-limit P%|none | gpu-target P%|none | period TIME | burst TIME | mode WxH|max | quarantine on|off } ... } ...",
	  "b", vgpu_set_keys,
	  "change settings of one or more vGPUs, all or nothing; TIME is a number with us, ms or s",
	  vgpu_set },
	{ "ctx", "list", "[dev DEV | vgpu VGPU]", "", ctx_list_keys,
	  "list compute contexts", ctx_list },
	{ "ctx", "show", "VGPU CTX", "", NULL,
	  "show one context and its counters; CTX is its id", ctx_show },
	{ "ctx", "preempt",
	  "VGPU CTX [method switch|drain|flush] [keep N] [hold]", "",
	  ctx_preempt_keys,
	  "preempt a context: take all but N of its slots until a slot is free; hold: until it is resumed",
	  ctx_preempt },
	{ "ctx", "resume", "VGPU CTX [first]", "", ctx_resume_keys,
	  "let a context have slots again; first: ahead of the other contexts of its vGPU",
	  ctx_resume },
	{ "status", NULL, "", "", NULL,
	  "show what works, and what to do about the rest; exit status 3 if a line is not ok",
	  status },
	{ "monitor", NULL, "[contexts]", "n", monitor_keys,
	  "print events of vGPUs and devices, and with contexts of compute contexts, as they happen",
	  monitor },
	{ "top", NULL, "", "ndB", NULL,
	  "show the activity of vGPUs and contexts, refreshed until interrupted; ? on the screen explains its keys",
	  top },
	{ "ctl", "show", "", "", NULL,
	  "show the state of mgpud, the controller", ctl_show },
	{ "ctl", "set", "{ KEY VALUE } ...", "", ctl_set_keys,
	  "change mgpud's settings, all or nothing", ctl_set },
	{ "ctl", "reset", "[KEY | sla | descriptions | default | VGPU] ...", "",
	  ctl_reset_keys,
	  "undo what ctl set, ctl sla and ctl describe set: the configuration counts again",
	  ctl_reset },
	{ "ctl", "sla",
	  "[{ VGPU | default } [floor FPS|none] [ceiling FPS|none] | VGPU default]", "",
	  ctl_sla_keys,
	  "show agreements of VMs, or change that of one VM, or of all others (default)",
	  ctl_sla },
	{ "ctl", "describe", "[VGPU [TEXT ... | none]]", "", ctl_describe_keys,
	  "show what VMs are for, or say it of one VM, for the model that mgpud uses",
	  ctl_describe },
	{ "ctl", "watch", "", "n", NULL,
	  "print a line for each period of mgpud, and for each event, such as an agreement that is not kept",
	  ctl_watch },
	{ "trace", "record", "--output FILE", "otgm", NULL,
	  "record jobs, frames, preemptions and mgpud's decisions in a file for Perfetto (ui.perfetto.dev) and gpuctl report, until interrupted",
	  trace_record },
	{ "report", NULL, "FILE", "o", NULL,
	  "show a recording of trace record as figures, or with --output as a page of plots",
	  report },
	{ "help", NULL, "[OBJECT [VERB]]", "CT", NULL,
	  "print this help, or that of one object or command", help },
	{ "version", NULL, "", "", NULL,
	  "print the version", version },
};

#define NR_COMMANDS	(sizeof(commands) / sizeof(commands[0]))

/**
 * struct option - an entry of the option table
 * @letter: short form; without @help it is only an ID
 * @name: long form
 * @arg: placeholder of its value, NULL for none
 * @help: effect; NULL hides the option
 */
static const struct option {
	char letter;
	const char *name;
	const char *arg;
	const char *help;
} options[] = {
	{ 'j', "json", NULL, "print JSON, which mgpu.schema.json describes" },
	{ 'p', "pretty", NULL, "print JSON over several lines" },
	{ 'h', "help", NULL, "print this help, or that of the command before it" },
	{ 'V', "version", NULL, "print the version" },
	{ 'b', "batch", "FILE",
	  "vgpu set: read FILE, one vGPU per line; '-' is standard input. After top, without FILE: print, also on a terminal"
	},
	{ 'B', "batch", NULL, NULL },
	{ 'n', "count", "COUNT",
	  "monitor, top, remote stats, ctl watch: end after COUNT events, refreshes or lines" },
	{ 'd', "delay", "SECONDS", "top, remote stats: time between two refreshes (default 1)" },
	{ 'y', "yes", NULL, "vgpu remove: ask nothing on a terminal" },
	{ 'o', "output", "FILE",
	  "trace record: the recording to make; report: the HTML page to make" },
	{ 't', "time", "SECONDS", "trace record: end after SECONDS" },
	{ 'g', "vgpu", "VGPU",
	  "trace record: record this vGPU, by id, UUID or name of its VM; may be given again" },
	{ 'm', "max-size", "SIZE",
	  "trace record: end before the file is larger than SIZE, a number with K, M or G (default 64M)"
	},
	{ 'C', "completion", NULL, NULL },
	{ 'T', "table", NULL, NULL },
};

#define NR_OPTIONS	(sizeof(options) / sizeof(options[0]))
#define ALL_OPTIONS	"jphV"

const char *gpuctl_root = "";
volatile sig_atomic_t gpuctl_stop;

static void stop(int signal)
{
	(void)signal;
	gpuctl_stop = 1;
}

void stop_on_signals(void)
{
	struct sigaction action = { .sa_handler = stop };

	/* without SA_RESTART, so that a signal ends waiting */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int wait_or_stop(int fd, const struct timespec *timeout, struct mgpu_error *err)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	sigset_t stops, mask;
	int ret = 0;

	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	/* from the look at gpuctl_stop until ppoll() lets them in */
	sigprocmask(SIG_BLOCK, &stops, &mask);
	if (!gpuctl_stop && ppoll(&pfd, 1, timeout, &mask) < 0 && errno != EINTR)
		ret = mgpu_fail(err, -errno, "waiting: %s", strerror(errno));
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return ret;
}

int usage_error(const char *fmt, ...)
{
	va_list ap;

	fputs("gpuctl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

int failed(const struct mgpu_error *err)
{
	fprintf(stderr, "gpuctl: %s\n", err->text);
	return EXIT_FAILED;
}

/* ---- help ---- */

/* "gpuctl vgpu list [dev DEV]" */
static void print_synopsis(FILE *file, const struct command *command)
{
	fprintf(file, "gpuctl %s", command->object);
	if (command->verb)
		fprintf(file, " %s", command->verb);
	if (*command->args)
		fprintf(file, " %s", command->args);
}

static void print_keys(FILE *file, const struct command *command)
{
	const char *const *key;

	for (key = command->keys; key && *key; key++)
		fprintf(file, "%s%s", key == command->keys ? "" : " ", *key);
}

static void print_settings(FILE *file)
{
	const char *const *key;
	char range[MGPUD_RANGE];

	fputs("        KEY is one of:\n", file);
	for (key = ctl_set_keys; *key; key++) {
		const struct mgpud_setting *setting = ctl_setting(*key);

		mgpud_setting_range(setting, range);
		fprintf(file, "          %-24s%s: %s (default %s)\n", *key,
			setting->help, range, setting->initial);
	}
}

/* Whether a command has an option, or, of -b, the form without a value. */
static bool has_option(const struct command *command, char letter)
{
	return strchr(ALL_OPTIONS, letter) || strchr(command->options, letter) ||
	       (letter == 'b' && strchr(command->options, 'B'));
}

/* Print all commands, those of an object, or the one of its verb. */
static void print_help(FILE *file, const char *object, const char *verb)
{
	const struct command *only = NULL;
	size_t i;

	fputs("usage: gpuctl [OPTION]... OBJECT [VERB] [WORD]...\n\n", file);
	for (i = 0; i < NR_COMMANDS; i++) {
		if (object && strcmp(commands[i].object, object))
			continue;
		if (verb && strcmp(commands[i].verb, verb))
			continue;
		if (verb || (object && !commands[i].verb))
			only = &commands[i];
		fputs("  ", file);
		print_synopsis(file, &commands[i]);
		fprintf(file, "\n        %s\n", commands[i].help);
		if (commands[i].run == ctl_set)
			print_settings(file);
	}
	fputc('\n', file);
	for (i = 0; i < NR_OPTIONS; i++) {
		const struct option *option = &options[i];
		char buf[64];

		if (!option->help || (only && !has_option(only, option->letter)))
			continue;
		snprintf(buf, sizeof(buf), "-%c, --%s%s%s", option->letter,
			 option->name, option->arg ? " " : "",
			 option->arg ? option->arg : "");
		fprintf(file, "  %-24s%s\n", buf, option->help);
	}
}

/* For tests: one command or option per line, fields between tabs. */
static void print_table(void)
{
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++) {
		fputs("command\t", stdout);
		print_synopsis(stdout, &commands[i]);
		putchar('\t');
		print_keys(stdout, &commands[i]);
		putchar('\n');
	}
	for (i = 0; i < NR_OPTIONS; i++)
		if (options[i].help)
			printf("option\t-%c, --%s\t%s\n", options[i].letter,
			       options[i].name,
			       options[i].arg ? options[i].arg : "");
}

static bool first_of_object(size_t i)
{
	size_t j;

	for (j = 0; j < i; j++)
		if (!strcmp(commands[i].object, commands[j].object))
			return false;
	return true;
}

static void print_completion(void)
{
	size_t i;
	size_t j;

	/* in two parts, or checkpatch takes it for this file's */
	printf("# %s-License-Identifier: GPL-2.0-only\n", "SPDX");
	puts("# bash completion for gpuctl; made by 'gpuctl help --completion'\n"
	     "\n"
	     "_gpuctl()\n"
	     "{\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	     "\tlocal words=() word list=\n"
	     "\n"
	     "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD - 1}\"; do\n"
	     "\t\t[[ $word == -* ]] || words+=(\"$word\")\n"
	     "\tdone\n"
	     "\tif [[ $prev == -[bo] || $prev == --batch || $prev == --output || ${words[0]-} == report && $cur != -* ]]; then\n"
	     "\t\tcompopt -o default\n"
	     "\t\tCOMPREPLY=()\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tcase \"${words[0]-} ${words[1]-}\" in");
	for (i = 0; i < NR_COMMANDS; i++) {
		const char *args = commands[i].args;

		if (!commands[i].verb)
			continue;
		printf("\t'%s %s')\n\t\tlist='", commands[i].object,
		       commands[i].verb);
		print_keys(stdout, &commands[i]);
		puts("'");
		if (strstr(args, "VGPU"))
			printf("\t\t%s$(gpuctl vgpu list 2>/dev/null | awk 'NR > 1 { print $1, $2 }')\"\n",
			       is_word("vgpu", commands[i].keys) ?
			       "[[ $prev == vgpu ]] && list=\"" :
			       strstr(args, "CTX") ?
			       "((${#words[@]} == 2)) && list=\"" :
			       "list+=\" ");
		if (strstr(args, "|all "))
			puts("\t\tlist+=\" all\"");
		if (strstr(args, "CTX"))
			puts("\t\t((${#words[@]} == 3)) && list=\"$(gpuctl ctx list vgpu \"${words[2]}\" 2>/dev/null | awk 'NR > 1 { print $2 }')\"");
		if (strstr(args, "DEV"))
			printf("\t\t%slist=\"$(gpuctl dev list 2>/dev/null | awk 'NR > 1 { print $1, $2 }')\"\n",
			       is_word("dev", commands[i].keys) ?
			       "[[ $prev == dev ]] && " :
			       commands[i].keys ?
			       "((${#words[@]} == 2)) && " : "");
		if (commands[i].run == vgpu_create)
			puts("\t\t((${#words[@]} == 3)) && list=\"$(gpuctl type list \"${words[2]}\" 2>/dev/null | awk 'NR > 1 { print $1 }')\"");
		if (commands[i].run == render_start)
			puts("\t\t((${#words[@]} == 2)) && list=\"none $(lspci -Dn 2>/dev/null | awk '$2 ~ /^03/ { print $1 }')\"");
		else if (commands[i].run == render_stop)
			puts("\t\t((${#words[@]} == 2)) && list+=\" $(gpuctl render list 2>/dev/null | awk 'NR > 1 { print $1 }')\"");
		else if (strstr(args, "ADDRESS"))
			puts("\t\t((${#words[@]} == 2)) && list=\"$(lspci -Dn -d 1af4:1050 2>/dev/null | awk '{ print $1 }')\"");
		if (commands[i].run == remote_show)
			puts("\t\t((${#words[@]} == 2)) && list=\"$(gpuctl remote list 2>/dev/null | awk 'NR > 1 { print $1 }')\"");
		if (commands[i].run == dev_set) {
			fputs("\t\t[[ $prev == policy ]] && list='", stdout);
			for (j = 0; dev_policies[j]; j++)
				printf("%s%s", j ? " " : "", dev_policies[j]);
			puts("'");
		}
		if (commands[i].run == ctx_preempt) {
			fputs("\t\t[[ $prev == method ]] && list='", stdout);
			for (j = 0; mgpu_preempt_methods[j]; j++)
				printf("%s%s", j ? " " : "",
				       mgpu_preempt_methods[j]);
			puts("'");
		}
		if (commands[i].run == ctl_set) {
			for (j = 0; ctl_set_keys[j]; j++) {
				const char *values = ctl_setting(ctl_set_keys[j])->values;

				if (values)
					printf("\t\t[[ $prev == %s ]] && list='%s'\n",
					       ctl_set_keys[j], values);
			}
		}
		puts("\t\t;;");
	}
	for (i = 0; i < NR_COMMANDS; i++) {
		if (!first_of_object(i) ||
		    (!commands[i].verb && !commands[i].keys))
			continue;
		printf("\t'%s '", commands[i].object);
		if (commands[i].verb)
			printf(" | 'help %s'", commands[i].object);
		fputs(") list='", stdout);
		if (!commands[i].verb)
			print_keys(stdout, &commands[i]);
		for (j = i; j < NR_COMMANDS; j++)
			if (commands[i].verb &&
			    !strcmp(commands[i].object, commands[j].object))
				printf("%s%s", j == i ? "" : " ",
				       commands[j].verb);
		puts("' ;;");
	}
	fputs("\t' ' | 'help ') list='", stdout);
	for (i = 0; i < NR_COMMANDS; i++)
		if (first_of_object(i))
			printf("%s%s", i ? " " : "", commands[i].object);
	puts("' ;;\n"
	     "\tesac");
	fputs("\t[[ $cur == -* ]] && list='", stdout);
	for (i = 0; i < NR_OPTIONS; i++)
		if (options[i].help)
			printf("%s--%s", i ? " " : "", options[i].name);
	puts("'\n"
	     "\t[[ $prev == -g || $prev == --vgpu ]] && list=\"$(gpuctl vgpu list 2>/dev/null | awk 'NR > 1 { print $1, $2 }')\"\n"
	     "\tmapfile -t COMPREPLY < <(compgen -W \"$list\" -- \"$cur\")\n"
	     "}\n"
	     "complete -F _gpuctl gpuctl");
}

static int unknown_object(const char *word)
{
	const char *objects[NR_COMMANDS + 1];
	const char *like;
	size_t nr = 0;
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++)
		if (first_of_object(i))
			objects[nr++] = commands[i].object;
	objects[nr] = NULL;
	like = suggest(word, objects);
	if (like)
		return usage_error("unknown command '%s'; did you mean '%s'?", word,
				   like);
	return usage_error("unknown command '%s'; 'gpuctl help' lists all",
			   word);
}

static int unknown_verb(const char *object, const char *word)
{
	const char *verbs[NR_COMMANDS + 1];
	const char *like;
	char list[128] = "";
	size_t nr = 0;
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++) {
		if (strcmp(commands[i].object, object))
			continue;
		snprintf(list + strlen(list), sizeof(list) - strlen(list),
			 "%s%s", nr ? ", " : "", commands[i].verb);
		verbs[nr++] = commands[i].verb;
	}
	verbs[nr] = NULL;
	like = suggest(word, verbs);
	if (like)
		return usage_error("%s has no '%s'; did you mean '%s'?", object,
				   word, like);
	return usage_error("%s has no '%s', but: %s", object, word, list);
}

/* The command that the words name; NULL: none, and *status is that of the complaint. */
static const struct command *find_command(int argc, char **argv, int *status)
{
	bool object = false;
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++) {
		if (strcmp(commands[i].object, argv[0]))
			continue;
		object = true;
		if (!commands[i].verb || argc < 2 || !strcmp(commands[i].verb, argv[1]))
			return &commands[i];
	}
	*status = object ? unknown_verb(argv[0], argv[1]) : unknown_object(argv[0]);
	return NULL;
}

/* Print the help of the command that the words begin with, or of all. */
static int help_on(int argc, char **argv)
{
	const struct command *command = NULL;
	int status;

	if (argc) {
		command = find_command(argc, argv, &status);
		if (!command)
			return status;
	}
	print_help(stdout, command ? command->object : NULL,
		   command && argc > 1 ? command->verb : NULL);
	return EXIT_OK;
}

static int help(const struct gpuctl *ctl, int argc, char **argv)
{
	if (ctl->completion) {
		print_completion();
		return EXIT_OK;
	}
	if (ctl->table) {
		print_table();
		return EXIT_OK;
	}
	if (argc > 2)
		return usage_error("help takes one object and its verb, not '%s' too",
				   argv[2]);
	return help_on(argc, argv);
}

static int version(const struct gpuctl *ctl, int argc, char **argv)
{
	if (argc)
		return usage_error("version takes no '%s'", argv[0]);
	if (ctl->json) {
		struct json_object *object = json_object_new_object();

		json_object_object_add(object, "release", json_object_new_string(MGPU_VERSION));
		return out_json(ctl, object);
	}
	puts("gpuctl " MGPU_VERSION);
	return EXIT_OK;
}

/* ---- options ---- */

static const struct option *find_option(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < NR_OPTIONS; i++)
		if (strlen(options[i].name) == len &&
		    !strncmp(options[i].name, text, len))
			return &options[i];
	return NULL;
}

static const struct option *option_by_letter(char letter)
{
	size_t i;

	for (i = 0; i < NR_OPTIONS; i++)
		if (options[i].letter == letter)
			return &options[i];
	return NULL;
}

static int no_option(const char *word)
{
	const char *names[NR_OPTIONS + 1];
	char text[OUT_CELL];
	size_t nr = 0;
	size_t i;

	for (i = 0; i < NR_OPTIONS; i++)
		if (options[i].help)
			names[nr++] = options[i].name;
	names[nr] = NULL;
	unknown_option(text, sizeof(text), "gpuctl", word, names);
	return usage_error("%s", text);
}

static int apply_option(struct gpuctl *ctl, const struct option *option,
			const char *value)
{
	switch (option->letter) {
	case 'p':
		ctl->pretty = true;
		__attribute__((fallthrough));	/* -p implies -j */
	case 'j':
		ctl->json = true;
		break;
	case 'b':
		ctl->batch = value;
		break;
	case 'n':
		if (parse_u32(value, 1, UINT32_MAX, &ctl->count))
			return usage_error("--count %s: give a whole number from 1 on",
					   value);
		break;
	case 'd':
		if (parse_double(value, &ctl->seconds) ||
		    ctl->seconds < 0.1 || ctl->seconds > 86400)
			return usage_error("--delay %s: give a number of seconds from 0.1 to 86400",
					   value);
		break;
	case 'o':
		ctl->output = value;
		break;
	case 't':
		if (parse_double(value, &ctl->duration) || ctl->duration < 0.1 ||
		    ctl->duration > 86400)
			return usage_error("--time %s: give a number of seconds from 0.1 to 86400",
					   value);
		break;
	case 'g':
		if (ctl->nr_vgpus == GPUCTL_VGPUS)
			return usage_error("--vgpu %s: no more than %d vGPUs can be named; without --vgpu all are recorded",
					   value, GPUCTL_VGPUS);
		ctl->vgpus[ctl->nr_vgpus++] = value;
		break;
	case 'm':
		if (parse_bytes(value, TRACE_SIZE_MIN, TRACE_SIZE_MAX, &ctl->max_size))
			return usage_error("--max-size %s: give a number with K, M or G from 64K to 1G",
					   value);
		break;
	case 'B':
		ctl->plain = true;
		break;
	case 'y':
		ctl->yes = true;
		break;
	case 'C':
		ctl->completion = true;
		break;
	case 'T':
		ctl->table = true;
		break;
	}
	return 0;
}

/* A negative number is a value. */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !strchr("0123456789.", word[1]);
}

/**
 * parse_options() - remove the options from the words
 * @ctl: result
 * @argc: number of words, afterwards without options
 * @argv: words, afterwards without options
 * @seen: letters of the options found; room for all options
 *
 * Options may stand anywhere before "--".
 */
static int parse_options(struct gpuctl *ctl, int *argc, char **argv, char *seen)
{
	const struct option *option;
	const char *value;
	int words = 0;
	int ret;
	int i;

	for (i = 0; i < *argc; i++) {
		char *word = argv[i];

		if (!strcmp(word, "--")) {
			while (++i < *argc)
				argv[words++] = argv[i];
			break;
		}
		if (!is_option(word)) {
			argv[words++] = word;
			continue;
		}

		do {
			value = NULL;
			if (word[1] == '-') {
				size_t len = strcspn(word + 2, "=");

				option = find_option(word + 2, len);
				if (option && word[2 + len])
					value = word + 3 + len;
			} else {
				option = option_by_letter(word[1]);
				if (option && !option->help)
					option = NULL;
				/* -n5, and -jp is -j -p */
				if (option && option->arg && word[2])
					value = word + 2;
			}
			if (!option)
				return no_option(word);
			if (option->letter == 'b' && words && !strcmp(argv[0], "top"))
				option = option_by_letter('B');
			if (value && !option->arg)
				return usage_error("--%s takes no value",
						   option->name);
			if (option->arg && !value) {
				if (i + 1 == *argc)
					return usage_error("--%s wants a value: %s",
							   option->name,
							   option->arg);
				value = argv[++i];
			}
			ret = apply_option(ctl, option, value);
			if (ret)
				return ret;
			if (!strchr(seen, option->letter))
				seen[strlen(seen)] = option->letter;

			/* next letter of the same word */
			if (word[1] == '-' || option->arg || !word[2])
				break;
			*++word = '-';
		} while (word[1]);
	}
	*argc = words;
	return 0;
}

static int check_options(const struct command *command, const char *seen)
{
	size_t i;

	for (; *seen; seen++) {
		if (strchr(ALL_OPTIONS, *seen) ||
		    strchr(command->options, *seen))
			continue;
		for (i = 0; options[i].letter != *seen; i++)
			;
		return usage_error("--%s does not apply to '%s%s%s'",
				   options[i].name, command->object,
				   command->verb ? " " : "",
				   command->verb ? command->verb : "");
	}
	return 0;
}

static int run(int argc, char **argv)
{
	struct gpuctl ctl = { .seconds = 1, .max_size = TRACE_SIZE_DEFAULT };
	const struct command *command;
	char seen[NR_OPTIONS + 1] = "";
	int ret;
	int i;

	ret = parse_options(&ctl, &argc, argv, seen);
	if (ret)
		return ret;
	if (strchr(seen, 'h'))
		return help_on(argc, argv);
	if (strchr(seen, 'V'))
		return version(&ctl, 0, NULL);
	if (!argc) {
		print_help(stderr, NULL, NULL);
		return EXIT_USAGE;
	}
	command = find_command(argc, argv, &ret);
	if (!command)
		return ret;

	ret = check_options(command, seen);
	if (ret)
		return ret;
	i = command->verb && argc > 1 ? 2 : 1;
	return command->run(&ctl, argc - i, argv + i);
}

int main(int argc, char **argv)
{
	int ret;

	/* how wide the characters of names are */
	setlocale(LC_CTYPE, "");
	ctl_init();
	ret = run(argc - 1, argv + 1);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "gpuctl: writing: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return ret;
}
