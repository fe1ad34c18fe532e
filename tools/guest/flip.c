// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-flip: the barest DRM client, to measure a virtio-gpu device with.  Either
 * flips between two buffers of the screen's size, or uploads one pixel of a
 * small texture again and again: a command that costs a device next to nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <virtgpu_drm.h>
#include <xf86drm.h>

#include "game.h"

#define BAR_ROWS	16	/* rows that differ from frame to frame */
#define FRAMES_PER_PLACE 64
#define TEXTURE_DIM	64
#define FORMAT_B8G8R8X8	2	/* enum virtio_gpu_formats */
#define TARGET_2D	2
#define MAX_TIMES	1000000

const char *const program_name = "mgpu-flip";

struct options {
	const char *mode;
	bool commands;
	bool latency;
	double rate;
	double seconds;
	double warm_up;
	double pause;
};

/* Time of each flip or command in the caller, nanoseconds. */
static uint32_t times[MAX_TIMES];
static uint32_t nr_times;

static const char usage[] =
"usage: mgpu-flip [options]\n"
"\n"
"Flip pages as fast as possible and print the rate.\n"
"\n"
"  --mode WxH       mode to set (the screen's preferred one)\n"
"  --commands       instead of flips, upload a single pixel each time\n"
"  --rate F         begin a flip every 1/F s; the one before has long been shown\n"
"                   then (as fast as possible)\n"
"  --seconds S      length of the measurement (3)\n"
"  --warm-up S      length of the run before it (0.5)\n"
"  --pause S        pause after the first and the last line of output (0)\n"
"  --latency        time from the doorbell to the interrupt, from the kernel's\n"
"                   trace; needs --rate\n"
"\n"
"Prints a line when the measurement begins, and one of key=value at its end:\n"
"count, rate per second, p50_us and p99_us of the call, and with --latency\n"
"latency_p50_us, latency_p99_us, the number of pairs of doorbell and interrupt,\n"
"doorbells without an interrupt (alone), and the interrupts.\n";

static int parse(struct options *o, int argc, char **argv)
{
	const struct cmdline_option options[] = {
		TEXT("mode", &o->mode),
		FLAG("commands", &o->commands),
		NUMBER("rate", &o->rate, 0.1, 10000, NULL),
		NUMBER("seconds", &o->seconds, 0.1, 3600, NULL),
		NUMBER("warm-up", &o->warm_up, 0, 60, NULL),
		NUMBER("pause", &o->pause, 0, 60, NULL),
		FLAG("latency", &o->latency),
		{ 0 },
	};
	int ret = cmdline_parse(options, usage, argc, argv);

	if (!ret && o->latency && !(o->rate > 0)) {
		explain("--latency needs --rate: the interrupt of a doorbell is known only while nothing else is in flight\n");
		ret = -EINVAL;
	}
	return ret;
}

/*
 * Paint a bar in another grey each time, which moves on every now and then: the
 * viewer sees progress, and it is nearly no work.
 */
static void paint(const struct buffer *b, unsigned int height, uint64_t frame)
{
	unsigned int bars = height / BAR_ROWS;
	size_t y = frame / FRAMES_PER_PLACE % bars * BAR_ROWS;

	memset(b->px + y * (size_t)b->stride, (int)(frame * 37 & 0xff),
	       (size_t)b->stride * 4 * BAR_ROWS);
}

static int flip(struct display *d, uint64_t n)
{
	int buffer = (int)(n % 2);

	paint(&d->buf[buffer], d->mode.vdisplay, n);
	return display_flip(d, buffer);
}

static int texture_make(int fd, uint32_t *handle)
{
	struct drm_virtgpu_resource_create create = {
		.target = TARGET_2D,
		.format = FORMAT_B8G8R8X8,
		.width = TEXTURE_DIM,
		.height = TEXTURE_DIM,
		.depth = 1,
		.array_size = 1,
		.size = TEXTURE_DIM * TEXTURE_DIM * 4,
		.stride = TEXTURE_DIM * 4,
	};

	if (drmIoctl(fd, DRM_IOCTL_VIRTGPU_RESOURCE_CREATE, &create)) {
		explain("cannot create a texture: %s\n", strerror(errno));
		return -EIO;
	}
	*handle = create.bo_handle;
	return 0;
}

static int command(int fd, uint32_t handle)
{
	struct drm_virtgpu_3d_transfer_to_host transfer = {
		.bo_handle = handle,
		.box = { .w = 1, .h = 1, .d = 1 },
	};

	if (drmIoctl(fd, DRM_IOCTL_VIRTGPU_TRANSFER_TO_HOST, &transfer)) {
		explain("cannot upload a pixel: %s\n", strerror(errno));
		return -EIO;
	}
	return 0;
}

/*
 * Returns when the device has done all that it was told.  Not every flip or
 * upload can be waited for, but the making of a texture can, and it comes after
 * them in the queue.
 */
static int drain(int fd)
{
	struct drm_virtgpu_3d_wait wait = { 0 };
	int ret;

	ret = texture_make(fd, &wait.handle);
	if (ret)
		return ret;
	if (drmIoctl(fd, DRM_IOCTL_VIRTGPU_WAIT, &wait)) {
		explain("the device does not get done: %s\n", strerror(errno));
		ret = -EIO;
	}
	drmCloseBufferHandle(fd, wait.handle);
	return ret;
}

static double quantile_us(uint32_t percent)
{
	if (!nr_times)
		return 0;
	return times[(uint64_t)(nr_times - 1) * percent / 100] / 1e3;
}

static void rest(double seconds)
{
	wait_until(now_ns() + (uint64_t)(seconds * 1e9));
}

/* Flip or send commands for some time; returns 0 or -errno. */
static int go_on(const struct options *o, struct display *d, uint32_t handle,
		 double seconds)
{
	uint64_t before, now = now_ns(), due = now;
	uint64_t end = now + (uint64_t)(seconds * 1e9);
	int ret = 0;

	nr_times = 0;
	while (!ret && now < end && nr_times < MAX_TIMES) {
		if (o->rate > 0) {
			due += (uint64_t)(1e9 / o->rate);
			if (due < now)
				due = now;
			wait_until(due);
		}
		before = now_ns();
		if (o->commands)
			ret = command(d->fd, handle);
		else
			ret = flip(d, nr_times);
		now = now_ns();
		times[nr_times++] = (uint32_t)(now - before);
	}
	return ret ? ret : drain(d->fd);
}

static int measure(const struct options *o, struct display *d, uint32_t handle)
{
	struct latency l = { 0 };
	uint64_t start;
	double seconds;
	int ret;

	ret = go_on(o, d, handle, o->warm_up);
	if (ret)
		return ret;
	printf("mgpu-flip: begin\n");
	fflush(stdout);
	rest(o->pause);

	if (o->latency)
		ret = latency_start();
	start = now_ns();
	if (!ret)
		ret = go_on(o, d, handle, o->seconds);
	seconds = (double)(now_ns() - start) / 1e9;
	if (!ret && o->latency)
		ret = latency_stop(&l);
	if (ret)
		return ret;

	sort_ns(times, nr_times);
	printf("mgpu-flip: end seconds=%.4f count=%u rate=%.3f p50_us=%.1f p99_us=%.1f",
	       seconds, nr_times, nr_times / seconds, quantile_us(50),
	       quantile_us(99));
	if (o->latency)
		printf(" latency_p50_us=%.1f latency_p99_us=%.1f pairs=%u alone=%u interrupts=%u",
		       (double)l.p50_ns / 1e3, (double)l.p99_ns / 1e3, l.pairs,
		       l.alone, l.interrupts);
	printf("\n");
	fflush(stdout);
	rest(o->pause);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { .seconds = 3, .warm_up = 0.5 };
	static struct display display;
	uint32_t handle = 0;
	int i, ret;

	ret = parse(&o, argc, argv);
	if (ret)
		return ret < 0 ? 2 : 0;

	ret = display_open(&display, NULL, o.mode, 2);
	if (ret)
		return 1;
	for (i = 0; i < 2; i++)
		memset(display.buf[i].px, 0x20, display.buf[i].size);
	if (o.commands)
		ret = texture_make(display.fd, &handle);
	if (!ret)
		ret = display_show(&display, 0);
	if (!ret)
		ret = measure(&o, &display, handle);

	if (handle)
		drmCloseBufferHandle(display.fd, handle);
	display_close(&display);
	return ret ? 1 : 0;
}
