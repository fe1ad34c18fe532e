// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "functions.h"

#define FUNCTIONS	8192u	/* more than any version of the library has */

/* ---- reading ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Read "ADDRESS ROOM CODE NAME". */
static bool read_function(struct function *fn, char *line, uintptr_t base)
{
	unsigned long long address;
	char code[2 * FUNCTION_CODE + 1];
	int end = 0;

	if (sscanf(line, "0x%llx %u %32[0-9a-f]%n", &address, &fn->room, code, &end) != 3 ||
	    strlen(code) != 2 * FUNCTION_CODE || line[end] != ' ' || !line[end + 1])
		return false;
	for (unsigned int i = 0; i < FUNCTION_CODE; i++)
		fn->code[i] = (uint8_t)(hex(code[2 * i]) << 4 | hex(code[2 * i + 1]));
	fn->at = (uint8_t *)(base + (uintptr_t)address);
	fn->name = strdup(line + end + 1);
	return fn->name;
}

static bool add(struct functions *f, char *line, uintptr_t base)
{
	struct function *more, *fn;

	if (f->nr == FUNCTIONS)
		return false;
	if (!(f->nr & (f->nr - 1))) {
		more = reallocarray(f->list, f->nr ? 2 * (size_t)f->nr : 1, sizeof(*more));
		if (!more)
			return false;
		f->list = more;
	}
	fn = &f->list[f->nr];
	memset(fn, 0, sizeof(*fn));
	if (!read_function(fn, line, base))
		return false;
	return !f->nr++ || fn[-1].at <= fn->at;
}

int functions_read(struct functions *f, FILE *in, uintptr_t base)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int ret = -1;

	memset(f, 0, sizeof(*f));
	while ((len = getline(&line, &size, in)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (!strcmp(line, "end")) {
			ret = 0;
			break;
		}
		if (sscanf(line, "cudart %u", &f->version) != 1 && !add(f, line, base))
			break;
	}
	free(line);
	return ret;
}

void functions_free(struct functions *f)
{
	for (unsigned int i = 0; i < f->nr; i++)
		free(f->list[i].name);
	free(f->list);
	memset(f, 0, sizeof(*f));
}

/* ---- writing ---- */

static const struct code *part_of(const struct function *fn, const struct code *code,
				  unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		if (fn->at >= code[i].start && fn->at < code[i].end)
			return &code[i];
	return NULL;
}

bool functions_check(const struct functions *f, const struct code *code, unsigned int nr,
		     char *why, size_t size)
{
	const struct function *before = NULL;

	for (unsigned int i = 0; i < f->nr; i++) {
		const struct function *fn = &f->list[i];
		const struct code *part = part_of(fn, code, nr);
		size_t left = part ? (size_t)(part->end - fn->at) : 0;

		if (!fn->to)
			continue;
		if (fn->room < FUNCTION_JUMP || left < FUNCTION_JUMP) {
			snprintf(why, size,
				 "%s has room for %u bytes before what other code uses, and a jump needs %u",
				 fn->name, fn->room, FUNCTION_JUMP);
			return false;
		}
		if (memcmp(fn->at, fn->code, FUNCTION_JUMP)) {
			snprintf(why, size, "%s in memory is not as in the file", fn->name);
			return false;
		}
		/* A linker may merge functions with the same code. */
		if (before && fn->at - before->at < FUNCTION_JUMP && fn->to != before->to) {
			snprintf(why, size, "%s and %s lie at the same place", before->name,
				 fn->name);
			return false;
		}
		before = fn;
	}
	return true;
}

/* jmp *0(%rip), and the address behind it */
static void write_jump(const struct function *fn)
{
	static const uint8_t jump[] = { 0xff, 0x25, 0, 0, 0, 0 };

	_Static_assert(sizeof(jump) + sizeof(fn->to) == FUNCTION_JUMP, "FUNCTION_JUMP is wrong");
	memcpy(fn->at, jump, sizeof(jump));
	memcpy(fn->at + sizeof(jump), &fn->to, sizeof(fn->to));
}

/* Set the rights of the pages that functions in a part of the program are on. */
static int protect(const struct functions *f, const struct code *part, int rights)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = 0, last = 0;

	for (unsigned int i = 0; i < f->nr; i++) {
		uintptr_t at = (uintptr_t)f->list[i].at;

		if (!f->list[i].to || !part_of(&f->list[i], part, 1))
			continue;
		first = first ? first : at & -page;
		last = at + FUNCTION_JUMP;
	}
	return first ? mprotect((void *)first, last - first, rights) : 0;
}

int functions_redirect(const struct functions *f, const struct code *code, unsigned int nr)
{
	int error = 0;

	for (unsigned int i = 0; i < nr && !error; i++)
		if (protect(f, &code[i], PROT_READ | PROT_WRITE))
			error = errno;
	for (unsigned int i = 0; i < f->nr && !error; i++)
		if (f->list[i].to)
			write_jump(&f->list[i]);
	for (unsigned int i = 0; i < nr; i++)
		if (protect(f, &code[i], code[i].rights)) {
			/* Code that may not be executed: the program cannot begin. */
			perror("mgpu: the program's code cannot be made executable again");
			_exit(127);
		}
	errno = error;
	return error ? -1 : 0;
}
