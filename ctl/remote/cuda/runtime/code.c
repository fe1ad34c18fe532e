// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fat binaries, and their kernels and variables, each with an address of the host that stands for
 * it.  The program's host code registers them as the program starts.  A fat binary becomes a module
 * of a context when something of it is first used there.
 */
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

/**
 * struct module - a fat binary in a context
 * @context: the context
 * @module: the driver's module
 * @next: of the same fat binary
 */
struct module {
	CUcontext context;
	CUmodule module;
	struct module *next;
};

/**
 * struct instance - a kernel or a variable in a context
 * @context: the context
 * @function: a kernel's function
 * @at: a variable's address
 * @size: a variable's bytes
 * @next: of the same kernel or variable
 */
struct instance {
	CUcontext context;
	CUfunction function;
	CUdeviceptr at;
	size_t size;
	struct instance *next;
};

/**
 * struct address - an address by which the program names a symbol; the tree's element
 * @key: the address
 * @symbol: the symbol
 */
struct address {
	const void *key;
	struct symbol *symbol;
};

/**
 * struct symbol - a kernel or a variable
 * @by_host: its address, the host's function or variable
 * @by_handle: a kernel's handle, which is the address of this structure
 * @kernel: it is a kernel
 * @name: its name on the device, which is the program's
 * @fat: the fat binary that has it
 * @instances: in contexts
 * @next: of the same fat binary
 */
struct symbol {
	struct address by_host;
	struct address by_handle;
	bool kernel;
	const char *name;
	struct fat *fat;
	struct instance *instances;
	struct symbol *next;
};

/**
 * struct fat - a fat binary
 * @image: its code, without nvcc's wrapper; the first member, to which the program's handle points
 * @managed: it has managed variables, which the library does not
 * @modules: in contexts
 * @symbols: that the program has registered
 * @next: of all
 */
struct fat {
	const void *image;
	bool managed;
	struct module *modules;
	struct symbol *symbols;
	struct fat *next;
};

/*
 * Covers all of the above.  It is held while a module is loaded, so that two threads do not load
 * the same one.
 */
static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fat *fats;
static void *tree;		/* of struct address, by tsearch(3) */

static int compare(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct address *)a)->key;
	uintptr_t y = (uintptr_t)((const struct address *)b)->key;

	return (x > y) - (x < y);
}

/* ---- registering ---- */

void **__cudaRegisterFatBinary(void *wrapper)
{
	struct fat *fat = calloc(1, sizeof(*fat));

	if (!fat)
		return NULL;
	fat->image = wrapper ? cuda_image_unwrap(wrapper) : NULL;
	pthread_mutex_lock(&code_lock);
	fat->next = fats;
	fats = fat;
	pthread_mutex_unlock(&code_lock);
	return (void **)fat;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	/* Nothing is loaded before it is used. */
	(void)handle;
}

/* Return the fat binary that a handle is for, or NULL. */
static struct fat *fat_of(void **handle)
{
	struct fat *fat = fats;

	while (fat && fat != (struct fat *)handle)
		fat = fat->next;
	return fat;
}

static void add(void **handle, const void *host, const char *name, bool kernel)
{
	struct symbol *s = calloc(1, sizeof(*s));
	struct fat *fat;

	pthread_mutex_lock(&code_lock);
	fat = fat_of(handle);
	if (s && fat && host && name) {
		*s = (struct symbol){
			.by_host = { host, s }, .by_handle = { s, s }, .kernel = kernel,
			.name = name, .fat = fat, .next = fat->symbols,
		};
		/*
		 * A template of which several files have an instance is registered by each of
		 * them, with one address.  The first one stays.
		 */
		tsearch(&s->by_host, &tree, compare);
		if (kernel)
			tsearch(&s->by_handle, &tree, compare);
		fat->symbols = s;
		s = NULL;
	}
	pthread_mutex_unlock(&code_lock);
	free(s);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
			    int *warp)
{
	(void)device;
	(void)thread_limit;
	(void)tid;
	(void)bid;
	(void)block;
	(void)grid;
	(void)warp;
	add(handle, host, name, true);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
		       size_t size, int constant, int global)
{
	(void)device;
	(void)ext;
	(void)size;
	(void)constant;
	(void)global;
	add(handle, host, name, false);
}

/*
 * The program's host code reads a managed variable by a pointer.  It gets memory of the host, so
 * that it does not read at 0, and the kernels that would use the variable do not run.
 */
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
			      size_t size, int constant, int global)
{
	static atomic_bool said;
	struct fat *fat;

	(void)device;
	(void)name;
	(void)ext;
	(void)constant;
	(void)global;
	rt_outside(&said, "a __managed__ variable");
	pthread_mutex_lock(&code_lock);
	fat = fat_of(handle);
	if (fat)
		fat->managed = true;
	if (host && !*host)
		*host = calloc(1, size ? size : 1);
	pthread_mutex_unlock(&code_lock);
}

char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

/* Forget a symbol's instances in a context; those in all if it is NULL. */
static void drop_instances(struct symbol *s, CUcontext context)
{
	struct instance **at = &s->instances, *i;

	while ((i = *at)) {
		if (context && i->context != context) {
			at = &i->next;
			continue;
		}
		*at = i->next;
		free(i);
	}
}

/* Unload a fat binary from a context, or from all if it is NULL. */
static void unload(struct fat *fat, CUcontext context)
{
	struct module **at = &fat->modules, *m;

	while ((m = *at)) {
		if (context && m->context != context) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		/* The context can have ended before, or the driver at the program's end. */
		if (!cu.cuCtxPushCurrent_v2(m->context)) {
			cu.cuModuleUnload(m->module);
			cu.cuCtxPopCurrent_v2(NULL);
		}
		free(m);
	}
	for (struct symbol *s = fat->symbols; s; s = s->next)
		drop_instances(s, context);
}

void rt_forget_code(CUcontext context)
{
	pthread_mutex_lock(&code_lock);
	for (struct fat *fat = fats; fat; fat = fat->next)
		unload(fat, context);
	pthread_mutex_unlock(&code_lock);
}

static void drop_address(struct address *e)
{
	struct address *const *found = tfind(e, &tree, compare);

	if (found && *found == e)
		tdelete(e, &tree, compare);
}

void __cudaUnregisterFatBinary(void **handle)
{
	struct fat **at = &fats, *fat;
	struct symbol *s;

	pthread_mutex_lock(&code_lock);
	while (*at && *at != (struct fat *)handle)
		at = &(*at)->next;
	fat = *at;
	if (fat) {
		*at = fat->next;
		unload(fat, NULL);
		while ((s = fat->symbols)) {
			fat->symbols = s->next;
			drop_address(&s->by_host);
			drop_address(&s->by_handle);
			free(s);
		}
	}
	pthread_mutex_unlock(&code_lock);
	free(fat);
}

/* ---- use ---- */

/* Load a fat binary into the current context. */
static cudaError_t load(struct fat *fat, CUcontext context, struct module **loaded)
{
	struct module *m = fat->modules;
	CUresult status;

	while (m && m->context != context)
		m = m->next;
	*loaded = m;
	if (m)
		return 0;
	if (fat->managed)
		return cudaErrorNotSupported;
	if (!fat->image)
		return cudaErrorInvalidKernelImage;
	m = calloc(1, sizeof(*m));
	if (!m)
		return cudaErrorMemoryAllocation;
	status = cu.cuModuleLoadData(&m->module, fat->image);
	if (status) {
		free(m);
		return rt_error(status);
	}
	m->context = context;
	m->next = fat->modules;
	fat->modules = m;
	*loaded = m;
	return 0;
}

static cudaError_t make_instance(struct symbol *s, CUcontext context, struct instance **made)
{
	struct instance *i;
	struct module *m;
	cudaError_t error = load(s->fat, context, &m);
	CUresult status;

	if (error)
		return error;
	i = calloc(1, sizeof(*i));
	if (!i)
		return cudaErrorMemoryAllocation;
	if (s->kernel)
		status = cu.cuModuleGetFunction(&i->function, m->module, s->name);
	else
		status = cu.cuModuleGetGlobal_v2(&i->at, &i->size, m->module, s->name);
	if (status) {
		free(i);
		if (status == CUDA_ERROR_NOT_FOUND)
			return s->kernel ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidSymbol;
		return rt_error(status);
	}
	i->context = context;
	i->next = s->instances;
	s->instances = i;
	*made = i;
	return 0;
}

/* Find a symbol; NULL if there is none of that kind. */
static struct symbol *find(const void *key, bool kernel)
{
	struct address wanted = { .key = key };
	struct address *const *found = tfind(&wanted, &tree, compare);

	return found && (*found)->symbol->kernel == kernel ? (*found)->symbol : NULL;
}

static cudaError_t use(const void *key, bool kernel, struct instance *copy)
{
	CUcontext context = rt_context();
	struct instance *i = NULL;
	cudaError_t error = 0;
	struct symbol *s;

	pthread_mutex_lock(&code_lock);
	s = find(key, kernel);
	if (s) {
		i = s->instances;
		while (i && i->context != context)
			i = i->next;
		if (!i)
			error = make_instance(s, context, &i);
	} else {
		error = kernel ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidSymbol;
	}
	if (!error)
		*copy = *i;
	pthread_mutex_unlock(&code_lock);
	return error;
}

cudaError_t rt_kernel(const void *func, CUfunction *found)
{
	struct instance i;
	cudaError_t error = use(func, true, &i);

	if (!error)
		*found = i.function;
	return error;
}

cudaError_t rt_variable(const void *symbol, CUdeviceptr *at, size_t *size)
{
	struct instance i;
	cudaError_t error = use(symbol, false, &i);

	if (!error) {
		*at = i.at;
		*size = i.size;
	}
	return error;
}

/* ---- handles ---- */

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
	struct symbol *s;

	if (!kernel)
		return rt_end(cudaErrorInvalidValue);
	pthread_mutex_lock(&code_lock);
	s = find(func, true);
	pthread_mutex_unlock(&code_lock);
	*kernel = (cudaKernel_t)s;
	return rt_end(s ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
	return __cudaGetKernel(kernel, func);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
	if (!function)
		return rt_end(cudaErrorInvalidValue);
	return rt_begin() ? cudaPeekAtLastError() : rt_end(rt_kernel(symbol, function));
}

cudaError_t cudaFuncGetName(const char **name, const void *func)
{
	struct symbol *s;

	if (!name)
		return rt_end(cudaErrorInvalidValue);
	pthread_mutex_lock(&code_lock);
	s = find(func, true);
	*name = s ? s->name : NULL;
	pthread_mutex_unlock(&code_lock);
	return rt_end(s ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

/* ---- variables ---- */

cudaError_t cudaGetSymbolAddress(void **p, const void *symbol)
{
	CUdeviceptr at;
	cudaError_t error;
	size_t size;

	if (!p)
		return rt_end(cudaErrorInvalidValue);
	if (rt_begin())
		return cudaPeekAtLastError();
	error = rt_variable(symbol, &at, &size);
	if (!error)
		*p = (void *)(uintptr_t)at;
	return rt_end(error);
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
	CUdeviceptr at;

	if (!size)
		return rt_end(cudaErrorInvalidValue);
	return rt_begin() ? cudaPeekAtLastError() : rt_end(rt_variable(symbol, &at, size));
}
