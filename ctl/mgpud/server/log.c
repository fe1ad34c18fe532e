// SPDX-License-Identifier: GPL-2.0-only
/* mgpud's log: one line per event. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "server/log.h"

static enum log_mode mode;
static bool journal_out, journal_err;

static const char *const names[] = {
	[LOG_AUTO] = "auto",
	[LOG_PERIODS] = "periods",
	[LOG_CHANGES] = "changes",
	[LOG_QUIET] = "quiet",
};

const char *log_mode_name(enum log_mode m)
{
	return names[m];
}

bool log_mode_parse(const char *name, enum log_mode *m)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name))
			continue;
		*m = (enum log_mode)i;
		return true;
	}
	return false;
}

bool log_is_stream(const char *stream, int fd)
{
	unsigned long long dev, inode;
	struct stat st;
	char more;

	return stream && sscanf(stream, "%llu:%llu%c", &dev, &inode, &more) == 2 &&
		!fstat(fd, &st) && st.st_dev == dev && st.st_ino == inode;
}

void log_start(void)
{
	const char *stream = getenv("JOURNAL_STREAM");

	journal_out = log_is_stream(stream, STDOUT_FILENO);
	journal_err = log_is_stream(stream, STDERR_FILENO);
	/* write whole lines, in the order of events */
	setvbuf(stdout, NULL, _IOLBF, 0);
}

void log_set_mode(enum log_mode m)
{
	mode = m;
}

bool log_periods(void)
{
	return mode == LOG_PERIODS || (mode == LOG_AUTO && !journal_out);
}

const char *log_prefix(enum log_level level, FILE *to)
{
	if (!(to == stderr ? journal_err : journal_out))
		return "";
	switch (level) {
	case LEVEL_ERROR:
		return "<3>";
	case LEVEL_WARNING:
		return "<4>";
	default:
		return "<6>";
	}
}

/* Replace control characters, so that an event is one line. */
static void flatten(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = ' ';
}

static FILE *stream(enum log_level level)
{
	return level <= LEVEL_WARNING ? stderr : stdout;
}

void log_event(enum log_level level, const char *fmt, ...)
{
	FILE *to = stream(level);
	char text[1024];
	va_list ap;

	if (level == LEVEL_INFO && mode == LOG_QUIET)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	flatten(text);
	fprintf(to, "%s%s\n", log_prefix(level, to), text);
	fflush(to);
}

void log_text(enum log_level level, const char *event, const char *fmt, ...)
{
	FILE *to = stream(level);
	char text[2048];
	va_list ap;

	if (level == LEVEL_INFO && mode == LOG_QUIET)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	flatten(text);
	if (!*log_prefix(level, to)) {
		fprintf(to, "mgpud: %s\n", text);
	} else {
		for (char *c = text; *c; c++)
			if (*c == '"')
				*c = '\'';
		fprintf(to, "%s%s text=\"%s\"\n", log_prefix(level, to), event, text);
	}
	fflush(to);
}
