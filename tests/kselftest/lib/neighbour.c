// SPDX-License-Identifier: GPL-2.0-only
/* Machines that nothing is done to. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compute.h"
#include "neighbour.h"

#define SIDE		64u
#define ITERATIONS	100u
#define BUFFER		3u	/* a resource, for results */

static uint32_t pixel(uint32_t picture, uint32_t i)
{
	return (picture * 2654435761u + i * 40503u) & 0xffffff;
}

/* Return whether the screen has the picture. */
static bool shown(const struct vm *vm, const struct gpu_screen *s, uint32_t picture)
{
	uint32_t i;

	for (i = 0; i < s->width * s->height; i++) {
		if ((vm->display[i] & 0xffffff) != pixel(picture, i))
			return false;
	}
	return true;
}

static uint64_t digest(const uint8_t *p, size_t len)
{
	uint64_t h = 14695981039346656037u;

	while (len--)
		h = (h ^ *p++) * 1099511628211u;
	return h;
}

/* Return the digest of a job's result, or 0. */
static uint64_t compute(struct vm *vm, uint8_t *result)
{
	struct mgpu_compute_cmd c = job_mandelbrot(BUFFER, SIDE, SIDE, ITERATIONS);
	size_t len = job_mandelbrot_size(SIDE, SIDE, ITERATIONS);

	memset(result, 0, len);
	return ctx_result(vm, ctx_submit(vm, 1, &c)) == OK ? digest(result, len) : 0;
}

static int live(struct vm *vm, struct neighbour_counts *of, bool render)
{
	struct vfio_device_gfx_plane_info plane;
	uint8_t *result = NULL;
	struct gpu_screen s;
	uint64_t want = 0;
	uint32_t n, i;
	size_t len;
	int ret;

	ret = vm_start_with(vm, render ? RENDER_FEATURES : VMM_FEATURES);
	if (!ret)
		ret = gpu_screen_2d(vm, &s, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				    SIDE, SIDE);
	if (!ret && !display_map(vm, &len))
		ret = -errno;
	if (!ret && render) {
		result = vm_alloc(vm, 1 << 16, 4096);
		if (!result || gpu_create_blob(vm, BUFFER, result, 1 << 16) != OK ||
		    ctx_create(vm, 1, MGPU_CAPSET_COMPUTE) != OK ||
		    ctx_attach(vm, 1, BUFFER) != OK)
			return -EPROTO;
		want = compute(vm, result);
		if (!want)
			return -EPROTO;
	}
	for (n = 1; !ret; n++) {
		for (i = 0; i < SIDE * SIDE; i++)
			s.pixels[i] = pixel(n, i);
		ret = gpu_show(vm, &s);
		/* A back end may copy the picture only when the VMM asks for it. */
		if (!ret)
			ret = display_plane(vm, &plane);
		if (ret)
			break;
		if (shown(vm, &s, n))
			of->pictures++;
		else
			of->wrong++;
		if (!render)
			continue;
		if (compute(vm, result) == want)
			of->jobs++;
		else
			of->wrong++;
	}
	return ret;
}

int neighbour_begin(struct neighbour *n, const char *type)
{
	bool render = strstr(type, "render") != NULL;
	uint64_t end;
	int ret;

	memset(n, 0, sizeof(*n));
	n->of = mmap(NULL, sizeof(*n->of), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (n->of == MAP_FAILED)
		return -errno;
	mdev_uuid_new(n->uuid);
	ret = mdev_create(type, n->uuid);
	if (ret)
		return ret;
	n->pid = fork();
	if (!n->pid) {
		struct vm vm;

		/* It keeps no machine of the test open. */
		close_range(3, ~0u, 0);
		/* A test that fails does not end it. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ret = vm_open(&vm, n->uuid, VMM_RAM);
		n->of->error = ret ? ret : live(&vm, n->of, render);
		_exit(1);
	}
	if (n->pid < 0)
		return -errno;
	end = now_ms() + (uint64_t)VMM_TIMEOUT;
	while (!n->of->pictures && !n->of->error && now_ms() < end)
		sleep_ms(1);
	return n->of->error ? n->of->error : n->of->pictures ? 0 : -ETIMEDOUT;
}

bool neighbour_goes_on(struct neighbour *n)
{
	uint64_t end = now_ms() + (uint64_t)VMM_TIMEOUT;

	/* The picture after the next one was begun after this call. */
	while (n->of->pictures < n->seen + 2 && !n->of->error && now_ms() < end)
		sleep_ms(1);
	if (n->of->pictures < n->seen + 2 || n->of->wrong || n->of->error) {
		remark("neighbour: %lu pictures, %lu wrong, error %d",
		       n->of->pictures, n->of->wrong, n->of->error);
		return false;
	}
	n->seen = n->of->pictures;
	return true;
}

void neighbour_stop(struct neighbour *n)
{
	if (n->pid > 0) {
		kill(n->pid, SIGKILL);
		waitpid(n->pid, NULL, 0);
	}
	n->pid = 0;
}

bool neighbour_end(struct neighbour *n)
{
	bool good;

	if (!n->of)
		return true;
	neighbour_stop(n);
	good = n->of->pictures && !n->of->wrong && !n->of->error;
	remark("neighbour: %lu pictures and %lu jobs right, %lu wrong",
	       n->of->pictures, n->of->jobs, n->of->wrong);
	good &= !mdev_remove(n->uuid);
	munmap(n->of, sizeof(*n->of));
	n->of = NULL;
	return good;
}
