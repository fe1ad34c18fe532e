// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library for LD_PRELOAD.  Before the program's constructors run it redirects CUDA's runtime
 * library, if the program was linked with it statically, to libcudart.so.13 in this library's
 * folder.  The program's file stays as it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyse.h"
#include "functions.h"

#define RUNTIME		"libcudart.so.13"
#define RUNTIME_MAJOR	13u
#define PARTS		16u

/**
 * struct program - the program that this process runs
 * @path: its file
 * @base: where it is loaded
 * @code: its parts with code
 * @nr_code: their number
 * @may_have: a text is in it that the runtime library has
 */
struct program {
	char path[PATH_MAX];
	uintptr_t base;
	struct code code[PARTS];
	unsigned int nr_code;
	bool may_have;
};

/* Functions that were redirected: calls of those that ours does not have are named. */
static struct functions functions;

static void say(const struct program *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct program *p, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fprintf(stderr, "mgpu: %s: %s\n", p->path, text);
}

/* ---- the program ---- */

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	static const char text[] = "cudaErrorInsufficientDriver";
	struct program *p = data;

	(void)size;
	p->base = info->dlpi_addr;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *h = &info->dlpi_phdr[i];
		uint8_t *start = (uint8_t *)(p->base + h->p_vaddr);

		if (h->p_type != PT_LOAD || !(h->p_flags & PF_R))
			continue;
		if (h->p_flags & PF_X && p->nr_code < PARTS)
			p->code[p->nr_code++] = (struct code){
				.start = start, .end = start + h->p_filesz,
				.rights = PROT_READ | PROT_EXEC |
					  (h->p_flags & PF_W ? PROT_WRITE : 0),
			};
		/* The library has names of errors, which are constants. */
		if (!(h->p_flags & PF_W) && !p->may_have)
			p->may_have = memmem(start, h->p_filesz, text, sizeof(text));
	}
	/* The first object is the program. */
	return 1;
}

/* ---- the tool ---- */

/* Return the environment without LD_PRELOAD, for a program that needs nothing of this. */
static char **environment(void)
{
	size_t nr = 0, n = 0;
	char **own;

	while (environ[nr])
		nr++;
	own = calloc(nr + 1, sizeof(*own));
	for (size_t i = 0; own && i < nr; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")))
			own[n++] = environ[i];
	return own;
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static FILE *start_tool(char *path, pid_t *pid)
{
	char tool[PATH_MAX], *argv[] = { tool, "runtime", path, NULL };
	posix_spawn_file_actions_t actions;
	char **env = environment();
	int fds[2], error;
	FILE *in;

	if (!env || !analyse_tool(tool) || pipe2(fds, O_CLOEXEC)) {
		free(env);
		return NULL;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	error = posix_spawn(pid, tool, &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	free(env);
	close(fds[1]);
	in = error ? NULL : fdopen(fds[0], "r");
	if (in)
		return in;
	close(fds[0]);
	if (!error)
		reap(*pid);
	return NULL;
}

/* Have the tool find the functions; return whether it has. */
static bool find(struct program *p)
{
	FILE *in;
	pid_t pid;
	int ret;

	in = start_tool(p->path, &pid);
	if (!in) {
		say(p, "mgpu-defer, which finds CUDA's runtime library in the program, is not in $PATH or does not start");
		return false;
	}
	ret = functions_read(&functions, in, p->base);
	fclose(in);
	reap(pid);
	return !ret;
}

/* ---- what is called instead ---- */

/* A piece of code that calls rt_outside(said, name) in place of a function. */
struct stub {
	uint8_t code[40];
};

static struct stub make_stub(const struct function *fn, const void *outside)
{
	/* movabs $said, %rdi; movabs $name, %rsi; movabs $outside, %rax; jmp *%rax */
	struct stub stub = { { 0x48, 0xbf, [10] = 0x48, [11] = 0xbe, [20] = 0x48, [21] = 0xb8,
			       [30] = 0xff, [31] = 0xe0 } };
	const void *said = &fn->said;

	memcpy(stub.code + 2, &said, sizeof(said));
	memcpy(stub.code + 12, &fn->name, sizeof(fn->name));
	memcpy(stub.code + 22, &outside, sizeof(outside));
	return stub;
}

/*
 * Have functions that our library does not have call rt_outside().  Functions with names like those
 * of the API that lie elsewhere than the library's are the program's own.
 */
static bool add_stubs(const void *outside, unsigned int first, unsigned int last)
{
	size_t size = (last - first + 1) * sizeof(struct stub);
	struct stub *stubs;
	unsigned int nr = 0;

	for (unsigned int i = first; i <= last; i++)
		nr += !functions.list[i].to;
	if (!nr)
		return true;
	stubs = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stubs == MAP_FAILED)
		return false;
	for (unsigned int i = first; i <= last; i++) {
		if (functions.list[i].to)
			continue;
		stubs[i - first] = make_stub(&functions.list[i], outside);
		functions.list[i].to = &stubs[i - first];
	}
	return !mprotect(stubs, size, PROT_READ | PROT_EXEC);
}

/*
 * Load our library, and find its functions and its rt_within; return whether that was possible.
 */
static bool load(const struct program *p, bool **within)
{
	unsigned int first = 0, last = 0;
	char path[PATH_MAX];
	const void *outside;
	const char *slash;
	void *library;
	Dl_info own;

	if (!dladdr((const void *)(uintptr_t)load, &own))
		return false;
	slash = strrchr(own.dli_fname, '/');
	if (snprintf(path, sizeof(path), "%.*s" RUNTIME,
		     slash ? (int)(slash + 1 - own.dli_fname) : 0, own.dli_fname) >= PATH_MAX)
		return false;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	outside = library ? dlsym(library, "rt_outside") : NULL;
	*within = library ? dlsym(library, "rt_within") : NULL;
	if (!outside || !*within) {
		say(p, "%s", dlerror());
		return false;
	}
	for (unsigned int i = 0; i < functions.nr; i++) {
		functions.list[i].to = dlsym(library, functions.list[i].name);
		if (!functions.list[i].to)
			continue;
		first = last ? first : i;
		last = i + 1;
	}
	if (!last || add_stubs(outside, first, last - 1))
		return true;
	say(p, "no memory for code: %s", strerror(errno));
	return false;
}

/* Redirect the functions that were found, or say why not. */
static void redirect(const struct program *p)
{
	unsigned int major = functions.version / 1000, minor = functions.version % 1000 / 10;
	unsigned int nr = 0;
	bool *within;
	char why[256];

	if (major != RUNTIME_MAJOR) {
		say(p, "its CUDA runtime library is of version %u.%u, and one of %u is needed; compile it with nvcc of CUDA %u",
		    major, minor, RUNTIME_MAJOR, RUNTIME_MAJOR);
		return;
	}
	if (!load(p, &within))
		return;
	if (!functions_check(&functions, p->code, p->nr_code, why, sizeof(why))) {
		say(p, "its CUDA runtime library is not redirected: %s; link it with 'nvcc -cudart shared'",
		    why);
		return;
	}
	if (functions_redirect(&functions, p->code, p->nr_code)) {
		say(p, "its CUDA runtime library is not redirected: mprotect: %s", strerror(errno));
		return;
	}
	/* The front end looks for loops of the program, which is not linked with our library. */
	*within = true;
	for (unsigned int i = 0; i < functions.nr; i++)
		nr += !!functions.list[i].to;
	if (getenv("MGPU_REMOTE_LOG"))
		say(p, "%u functions of CUDA's runtime library %u.%u are redirected", nr, major,
		    minor);
}

static void __attribute__((constructor)) begin(void)
{
	static struct program p;

	dl_iterate_phdr(look, &p);
	if (!p.may_have)
		return;
	if (!realpath("/proc/self/exe", p.path)) {
		strcpy(p.path, "/proc/self/exe");
		say(&p, "%s", strerror(errno));
	} else if (!find(&p)) {
		say(&p, "calls of a CUDA runtime library in it are not remoted");
	} else if (functions.nr) {
		redirect(&p);
	}
}
