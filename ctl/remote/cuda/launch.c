// SPDX-License-Identifier: GPL-2.0-only
/*
 * Modules, libraries, functions and launches.  The program has the values of a kernel's parameters
 * in places of their own; the front end has to know where the kernel expects them, and how many
 * bytes they have.  The server's library tells, or else the image does.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_front.h"

/**
 * struct function - what the front end knows of a function
 * @o: the object
 * @context: that a kernel's function is for; NULL: it is a module's
 * @known: the parameters are known
 * @nr: parameters
 * @bytes: of all
 * @params: the parameters
 * @next: of the same module or kernel
 * @name: its name
 */
struct function {
	struct object *o;
	struct object *context;
	bool known;
	unsigned int nr;
	size_t bytes;
	struct cuda_param *params;
	struct function *next;
	char name[];
};

/**
 * struct code - what the front end knows of a module, a library or a kernel
 * @functions: those that the program asked for
 * @kernels: those of the image; NULL if it was not understood
 */
struct code {
	struct function *functions;
	struct function *kernels;
};

/* Covers all of struct code, and parameters of functions. */
static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;

static struct function *new_function(const char *name, struct function **list)
{
	struct function *f = calloc(1, sizeof(*f) + strlen(name) + 1);

	if (!f)
		return NULL;
	strcpy(f->name, name);
	f->next = *list;
	*list = f;
	return f;
}

static struct function *find(struct function *list, const char *name,
			     const struct object *context)
{
	while (list && (strcmp(list->name, name) || list->context != context))
		list = list->next;
	return list;
}

static void free_functions(struct function *f)
{
	while (f) {
		struct function *next = f->next;

		/* An object that has a list of its own: a kernel. */
		if (f->o && f->o->kind == KIND_CUKERNEL) {
			free_functions(((struct code *)f->o->own)->functions);
			object_drop(f->o);
		} else if (f->o) {
			f->o->own = NULL;
			object_drop(f->o);
		}
		free(f->params);
		free(f);
		f = next;
	}
}

void cuda_gone(struct object *o)
{
	struct code *code = o->own;

	if (o->kind == KIND_CUCONTEXT || o->kind == KIND_CUMODULE || o->kind == KIND_CULIBRARY)
		cuda_forget_memory(o);
	if (!code || (o->kind != KIND_CUMODULE && o->kind != KIND_CULIBRARY))
		return;
	free_functions(code->functions);
	free_functions(code->kernels);
}

/* ---- images ---- */

static bool keep_params(struct function *f, const struct cuda_param *params, unsigned int nr)
{
	f->params = malloc((nr + 1) * sizeof(*params));
	if (!f->params)
		return false;
	memcpy(f->params, params, nr * sizeof(*params));
	f->nr = nr;
	for (unsigned int i = 0; i < nr; i++) {
		if (sat_add(params[i].offset, params[i].size) > CUDA_PARAM_BYTES)
			return false;
		if (params[i].offset + params[i].size > f->bytes)
			f->bytes = params[i].offset + params[i].size;
	}
	f->known = true;
	return true;
}

static bool keep_kernel(void *arg, const char *name, const struct cuda_param *params,
			unsigned int nr)
{
	struct code *code = arg;
	struct function *f = new_function(name, &code->kernels);

	return f && keep_params(f, params, nr);
}

/* Find the image, and take the options that are buffers out. Return 0 or an error. */
static CUresult look(const void **image, uint64_t *len, unsigned int *nr, CUjit_option *options,
		     void **values, CUjit_option *plain, size_t *plain_values)
{
	unsigned int left = 0;

	if (!*image)
		return CUDA_ERROR_INVALID_VALUE;
	*image = cuda_image_unwrap(*image);
	*len = cuda_image_len(*image, UINT64_MAX);
	if (!*len)
		return CUDA_ERROR_INVALID_IMAGE;
	if (*nr && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < *nr; i++) {
		switch (options[i]) {
		case CU_JIT_INFO_LOG_BUFFER:
		case CU_JIT_ERROR_LOG_BUFFER:
			if (values[i])
				*(char *)values[i] = '\0';
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			values[i] = NULL;
			break;
		default:
			if (left == 32 || !cuda_options_plain(1, &options[i]))
				return CUDA_ERROR_NOT_SUPPORTED;
			plain[left] = options[i];
			plain_values[left++] = (size_t)values[i];
		}
	}
	*nr = left;
	return 0;
}

/* Give a module or a library what is known of it. */
static CUresult keep_code(struct object *o, const void *image, uint64_t len)
{
	o->own = calloc(1, sizeof(struct code));
	if (!o->own)
		return CUDA_ERROR_OUT_OF_MEMORY;
	cuda_image_kernels(image, len, keep_kernel, o->own);
	return 0;
}

CUresult front_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int nr,
				  CUjit_option *options, void **values)
{
	CUjit_option plain[32];
	size_t plain_values[32];
	uint64_t len;
	CUresult status;

	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	status = look(&image, &len, &nr, options, values, plain, plain_values);
	if (!status)
		status = remote_remoteModuleLoad(module, len, image, nr, plain, plain_values);
	return status ? status : keep_code(object_of(*module), image, len);
}

CUresult front_cuModuleLoadData(CUmodule *module, const void *image)
{
	return front_cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult front_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return front_cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult front_cuModuleLoad(CUmodule *module, const char *name)
{
	CUresult status = CUDA_ERROR_FILE_NOT_FOUND;
	FILE *file = name ? fopen(name, "re") : NULL;
	long len = -1;
	char *image = NULL;

	if (!name || !module)
		status = CUDA_ERROR_INVALID_VALUE;
	if (file && !fseek(file, 0, SEEK_END))
		len = ftell(file);
	if (len >= 0 && !fseek(file, 0, SEEK_SET)) {
		/* A text in a file has no NUL; what an image says of its length is looked at. */
		image = calloc(1, (size_t)len + 1);
		status = image ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_OUT_OF_MEMORY;
		if (image && fread(image, 1, (size_t)len, file) == (size_t)len)
			status = cuda_image_len(image, (uint64_t)len + 1) > (uint64_t)len + 1 ?
				CUDA_ERROR_INVALID_IMAGE : front_cuModuleLoadData(module, image);
	}
	free(image);
	if (file)
		fclose(file);
	return status;
}

CUresult front_cuModuleUnload(CUmodule module)
{
	return remote_cuModuleUnload(module);
}

CUresult front_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
				 void **values, unsigned int nr, CUlibraryOption *own_options,
				 void **own_values, unsigned int nr_own)
{
	CUjit_option plain[32];
	size_t plain_values[32];
	uint64_t len;
	CUresult status;

	(void)own_options;
	(void)own_values;
	if (!library)
		return CUDA_ERROR_INVALID_VALUE;
	/* They say that the program keeps the code, and give entries of the host's table. */
	if (nr_own)
		return CUDA_ERROR_NOT_SUPPORTED;
	status = look(&code, &len, &nr, options, values, plain, plain_values);
	if (!status)
		status = remote_remoteLibraryLoad(library, len, code, nr, plain, plain_values);
	return status ? status : keep_code(object_of(*library), code, len);
}

CUresult front_cuLibraryUnload(CUlibrary library)
{
	return remote_cuLibraryUnload(library);
}

static CUresult keep_global(CUresult status, CUdeviceptr start, size_t len, struct object *owner,
			    CUdeviceptr *dptr, size_t *bytes)
{
	if (!status && len)
		status = cuda_keep_memory(start, len, owner, true);
	if (!status && dptr)
		*dptr = start;
	if (!status && bytes)
		*bytes = len;
	return status;
}

CUresult front_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule module,
				    const char *name)
{
	CUdeviceptr start = 0;
	size_t len = 0;
	CUresult status = remote_cuModuleGetGlobal_v2(&start, &len, module, name);

	return keep_global(status, start, len, object_of(module), dptr, bytes);
}

CUresult front_cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
				  const char *name)
{
	CUdeviceptr start = 0;
	size_t len = 0;
	CUresult status = remote_cuLibraryGetGlobal(&start, &len, library, name);

	return keep_global(status, start, len, object_of(library), dptr, bytes);
}

/* ---- functions ---- */

/* Return the object that the program has of a function already, or NULL. */
static struct object *known(const struct code *code, const char *name, const struct object *context)
{
	struct function *f;

	pthread_mutex_lock(&code_lock);
	f = code ? find(code->functions, name, context) : NULL;
	pthread_mutex_unlock(&code_lock);
	return f ? f->o : NULL;
}

/* Have an object in a list of functions, with parameters that the image told. */
static CUresult keep_function(struct code *code, const struct code *image, const char *name,
			      struct object *context, struct object *o)
{
	struct function *f, *kernel;
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	pthread_mutex_lock(&code_lock);
	f = code ? new_function(name, &code->functions) : NULL;
	if (f) {
		f->o = o;
		f->context = context;
		if (o->kind == KIND_CUFUNCTION)
			o->own = f;
		kernel = image ? find(image->kernels, name, NULL) : NULL;
		if (!kernel || !kernel->known || keep_params(f, kernel->params, kernel->nr))
			status = 0;
		/* The server's library is asked first. */
		f->known = false;
	}
	pthread_mutex_unlock(&code_lock);
	return status;
}

CUresult front_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	struct code *code;
	struct object *o;
	CUresult status;

	if (!function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_is(module, KIND_CUMODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	code = object_of(module)->own;
	o = known(code, name, NULL);
	if (o) {
		*function = (CUfunction)o;
		return 0;
	}
	status = remote_cuModuleGetFunction(function, module, name);
	return status ? status : keep_function(code, code, name, NULL, object_of(*function));
}

CUresult front_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	struct code *code, *own;
	struct object *o;
	CUresult status;

	if (!kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_is(library, KIND_CULIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	code = object_of(library)->own;
	o = known(code, name, NULL);
	if (o) {
		*kernel = (CUkernel)o;
		return 0;
	}
	status = remote_cuLibraryGetKernel(kernel, library, name);
	if (status)
		return status;
	o = object_of(*kernel);
	own = calloc(1, sizeof(*own));
	o->own = own;
	return own ? keep_function(code, NULL, name, NULL, o) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult front_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	struct object *context = cuda_current(), *o;
	struct code *code;
	CUresult status;

	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_is(kernel, KIND_CUKERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	code = object_of(kernel)->own;
	o = known(code, "", context);
	if (o) {
		*function = (CUfunction)o;
		return 0;
	}
	status = remote_cuKernelGetFunction(function, kernel);
	return status ? status : keep_function(code, NULL, "", context, object_of(*function));
}

static CUresult learn_params(struct function *f)
{
	struct cuda_param params[CUDA_PARAMS];
	unsigned int nr = 0;
	CUresult status;

	_Static_assert(sizeof(params) == 8192, "the description has their length");
	status = remote_remoteFuncParams((CUfunction)f->o, &nr, params);
	pthread_mutex_lock(&code_lock);
	if (status == CUDA_ERROR_NOT_SUPPORTED && f->params) {
		f->known = true;
		status = 0;
	} else if (!status && !f->known) {
		free(f->params);
		f->bytes = 0;
		if (nr > CUDA_PARAMS || !keep_params(f, params, nr))
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&code_lock);
	return status;
}

static struct function *function_of(CUfunction handle, CUresult *status)
{
	struct function *f;

	*status = 0;
	if (object_is(handle, KIND_CUKERNEL))
		*status = front_cuKernelGetFunction(&handle, (CUkernel)handle);
	else if (!object_is(handle, KIND_CUFUNCTION))
		*status = CUDA_ERROR_INVALID_HANDLE;
	if (*status)
		return NULL;
	f = object_of(handle)->own;
	if (!f->known)
		*status = learn_params(f);
	return *status ? NULL : f;
}

/* ---- launches ---- */

/* Find the parameters of a launch that has them in one piece. */
static CUresult take_extra(void *const *extra, const void **params, size_t *size)
{
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*params = extra[1];
		else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
			*size = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	return *params && *size <= CUDA_PARAM_BYTES ? 0 : CUDA_ERROR_INVALID_VALUE;
}

static CUresult launch(const CUlaunchConfig *c, CUfunction handle, unsigned int cooperative,
		       void *const *values, void *const *extra)
{
	uint8_t own[CUDA_PARAM_BYTES];
	const void *params = own;
	struct function *f;
	CUresult status;
	size_t size;

	if (!cuda_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	f = function_of(handle, &status);
	if (!f)
		return status;
	size = f->bytes;
	if ((values && extra) || (!values && !extra && f->nr))
		return CUDA_ERROR_INVALID_VALUE;
	if (extra) {
		params = NULL;
		size = 0;
		status = take_extra(extra, &params, &size);
		if (status)
			return status;
	} else {
		memset(own, 0, size);
		for (unsigned int i = 0; i < f->nr; i++) {
			if (!values[i])
				return CUDA_ERROR_INVALID_VALUE;
			memcpy(own + f->params[i].offset, values[i], f->params[i].size);
		}
	}
	return remote_remoteLaunch((CUfunction)f->o, c->gridDimX, c->gridDimY, c->gridDimZ,
				   c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes,
				   c->hStream, cooperative, size, params);
}

CUresult front_cuLaunchKernel(CUfunction f, unsigned int grid_x, unsigned int grid_y,
			      unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			      unsigned int block_z, unsigned int shared, CUstream stream,
			      void **values, void **extra)
{
	const CUlaunchConfig c = {
		grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0
	};

	return launch(&c, f, 0, values, extra);
}

CUresult front_cuLaunchCooperativeKernel(CUfunction f, unsigned int grid_x, unsigned int grid_y,
					 unsigned int grid_z, unsigned int block_x,
					 unsigned int block_y, unsigned int block_z,
					 unsigned int shared, CUstream stream, void **values)
{
	const CUlaunchConfig c = {
		grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0
	};

	return launch(&c, f, 1, values, NULL);
}

CUresult front_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **values,
				void **extra)
{
	static atomic_bool said;
	unsigned int cooperative = 0;
	CUlaunchConfig c;

	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	c = *config;
	c.hStream = cuda_named(c.hStream);
	for (unsigned int i = 0; i < c.numAttrs; i++) {
		if (c.attrs[i].id != CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
			remote_outside("cuLaunchKernelEx with attributes", &said);
			return CUDA_ERROR_NOT_SUPPORTED;
		}
		cooperative = c.attrs[i].value.cooperative != 0;
	}
	return launch(&c, f, cooperative, values, extra);
}
