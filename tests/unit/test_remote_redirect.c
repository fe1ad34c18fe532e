// SPDX-License-Identifier: GPL-2.0-only
/* Jumps over the beginnings of functions, and reading what mgpu-defer says of these. */
#include <sys/mman.h>
#include <unistd.h>

#include "functions.h"
#include "tap.h"

#define BASE	0x10000u

/* Two functions, with 16 bytes each: they return 1 and 2. */
static const uint8_t both[] = {
	0xb8, 1, 0, 0, 0, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	0xb8, 2, 0, 0, 0, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
};

#define CODE1	"b801000000c390909090909090909090"
#define CODE2	"b802000000c390909090909090909090"

static int result_is_7(void)
{
	return 7;
}

static int read_text(struct functions *f, const char *text)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int ret = in ? functions_read(f, in, BASE) : -2;

	if (in)
		fclose(in);
	return ret;
}

static void a_list_is_read(void)
{
	struct functions f;

	TAP_EQ(read_text(&f, "cudart 13010\n0x10 16 " CODE1 " cudaOne\n0x20 5 " CODE2
			 " __cudaTwo\nend\n"), 0);
	TAP_EQ(f.version, 13010);
	TAP_NEED(f.nr == 2);
	TAP_EQ((uintptr_t)f.list[0].at, BASE + 0x10);
	TAP_EQ(f.list[0].room, 16);
	TAP_CHECK(!strcmp(f.list[0].name, "cudaOne") && !strcmp(f.list[1].name, "__cudaTwo"));
	TAP_CHECK(!memcmp(f.list[0].code, both, 16) && !memcmp(f.list[1].code, both + 16, 16));
	TAP_CHECK(!f.list[0].to && !f.list[1].to);
	functions_free(&f);
	TAP_EQ(read_text(&f, "cudart 0\nend\n"), 0);
	TAP_EQ(f.nr, 0);
	functions_free(&f);
}

static void a_damaged_list_is_refused(void)
{
	static const char *const texts[] = {
		"", "cudart 13000\n", "cudart 13000\n0x10 16 " CODE1 " cudaOne\n",
		"cudart 13000\n0x10 16 " CODE1 "\nend\n",
		"cudart 13000\n0x10 16 b801 cudaOne\nend\n",
		"cudart 13000\n0x10 16 " CODE1 "00 cudaOne\nend\n", "end of it\n",
		"cudart 13000\n0x10 -1x " CODE1 " cudaOne\nend\n",
		"cudart 13000\n16 16 " CODE1 " cudaOne\nend\n",
		/* Not sorted. */
		"cudart 13000\n0x20 16 " CODE1 " cudaOne\n0x10 16 " CODE2 " cudaTwo\nend\n",
	};
	struct functions f;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		TAP_EQ(read_text(&f, texts[i]), -1);
		functions_free(&f);
	}
}

/* Have both functions in memory, at the beginning of two pages. */
static bool load(struct functions *f, struct code *code)
{
	size_t size = 2 * (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char one[] = "cudaOne", two[] = "cudaTwo";

	if (p == MAP_FAILED)
		return false;
	memcpy(p, both, sizeof(both));
	*code = (struct code){ .start = p, .end = p + size, .rights = PROT_READ | PROT_EXEC };
	f->list = calloc(2, sizeof(*f->list));
	f->nr = 2;
	for (unsigned int i = 0; i < 2; i++) {
		f->list[i].at = p + (size_t)16 * i;
		f->list[i].room = 16;
		f->list[i].name = i ? two : one;
		memcpy(f->list[i].code, both + (size_t)16 * i, 16);
	}
	return !mprotect(p, size, code->rights);
}

static int call(const void *at)
{
	return ((int (*)(void))(uintptr_t)at)();
}

static void a_jump_goes_elsewhere(void)
{
	struct functions f = { 0 };
	struct code code;
	char why[128];

	TAP_NEED(load(&f, &code));
	f.list[0].to = (const void *)(uintptr_t)result_is_7;
	TAP_CHECK(functions_check(&f, &code, 1, why, sizeof(why)));
	TAP_EQ(call(f.list[0].at), 1);
	TAP_EQ(functions_redirect(&f, &code, 1), 0);
	TAP_EQ(call(f.list[0].at), 7);
	/* The other one has no function to go to. */
	TAP_EQ(call(f.list[1].at), 2);
	TAP_CHECK(!memcmp(f.list[0].at + FUNCTION_JUMP, both + FUNCTION_JUMP,
			  sizeof(both) - FUNCTION_JUMP));
	free(f.list);
	munmap(code.start, (size_t)(code.end - code.start));
}

static void rights_are_as_before(void)
{
	struct functions f = { 0 };
	struct code code;
	int pipe_ends[2];

	TAP_NEED(load(&f, &code) && !pipe(pipe_ends));
	f.list[0].to = (const void *)(uintptr_t)result_is_7;
	TAP_EQ(functions_redirect(&f, &code, 1), 0);
	TAP_EQ(write(pipe_ends[1], "x", 1), 1);
	/* The kernel may not write there. */
	TAP_EQ(read(pipe_ends[0], f.list[1].at, 1), -1);
	TAP_EQ(errno, EFAULT);
	free(f.list);
	munmap(code.start, (size_t)(code.end - code.start));
}

int main(void);

static void what_cannot_be_overwritten_is_refused(void)
{
	struct functions f = { 0 };
	struct code code, part;
	char why[128];

	TAP_NEED(load(&f, &code));
	f.list[1].to = (const void *)(uintptr_t)result_is_7;
	f.list[1].room = FUNCTION_JUMP - 1;
	TAP_CHECK(!functions_check(&f, &code, 1, why, sizeof(why)));
	TAP_CHECK(strstr(why, "cudaTwo has room for 13 bytes"));
	f.list[1].room = FUNCTION_JUMP;
	TAP_CHECK(functions_check(&f, &code, 1, why, sizeof(why)));
	/* The first one stays as it is. */
	f.list[0].room = 0;
	TAP_CHECK(functions_check(&f, &code, 1, why, sizeof(why)));
	f.list[1].code[3]++;
	TAP_CHECK(!functions_check(&f, &code, 1, why, sizeof(why)));
	TAP_CHECK(strstr(why, "cudaTwo in memory is not as in the file"));
	f.list[1].code[3]--;
	/* One place cannot have two jumps, unless they are the same. */
	f.list[0] = f.list[1];
	f.list[0].to = (const void *)(uintptr_t)main;
	TAP_CHECK(!functions_check(&f, &code, 1, why, sizeof(why)));
	TAP_CHECK(strstr(why, "cudaTwo and cudaTwo lie at the same place"));
	f.list[0].to = f.list[1].to;
	TAP_CHECK(functions_check(&f, &code, 1, why, sizeof(why)));
	f.list[0].to = NULL;
	part = code;
	part.end = f.list[1].at + FUNCTION_JUMP - 1;
	TAP_CHECK(!functions_check(&f, &part, 1, why, sizeof(why)));
	part.start = f.list[1].at + 1;
	part.end = code.end;
	TAP_CHECK(!functions_check(&f, &part, 1, why, sizeof(why)));
	free(f.list);
	munmap(code.start, (size_t)(code.end - code.start));
}

int main(void)
{
	tap_run(a_list_is_read, "a list of functions is read");
	tap_run(a_damaged_list_is_refused, "a damaged list is refused");
	tap_run(a_jump_goes_elsewhere, "a function with a jump is another one, and no other is");
	tap_run(rights_are_as_before, "code cannot be written to afterwards");
	tap_run(what_cannot_be_overwritten_is_refused, "functions without room are refused");
	return tap_done();
}
