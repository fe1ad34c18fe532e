// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel mode setting with dumb buffers and page flips, which every driver offers
 * and virtio_gpu turns into TRANSFER_TO_HOST_2D, SET_SCANOUT and
 * RESOURCE_FLUSH.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <drm_fourcc.h>
#include <xf86drm.h>

#include "game.h"

#define MAX_CARDS	16
#define FLIP_TIMEOUT_MS	20000

static int card_open(const char *path, bool any, char *driver, size_t len)
{
	drmVersionPtr version;
	int fd;

	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;

	version = drmGetVersion(fd);
	if (!version) {
		close(fd);
		return -ENODEV;
	}
	snprintf(driver, len, "%s", version->name);
	drmFreeVersion(version);

	if (!any && strcmp(driver, "virtio_gpu")) {
		close(fd);
		return -ENODEV;
	}
	return fd;
}

/* Open the card that was asked for, or the first of virtio_gpu. */
static int find_card(const char *card)
{
	char path[64], driver[32] = "";
	int fd, i, other = 0;

	if (card) {
		fd = card_open(card, true, driver, sizeof(driver));
		if (fd < 0)
			explain("cannot open %s: %s\n",
				card, strerror(-fd));
		return fd;
	}

	for (i = 0; i < MAX_CARDS; i++) {
		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = card_open(path, false, driver, sizeof(driver));
		if (fd >= 0)
			return fd;
		if (fd == -EACCES || fd == -EPERM) {
			explain("cannot open %s: %s; run as root or in group video\n",
				path, strerror(-fd));
			return fd;
		}
		if (fd != -ENOENT)
			other++;
	}
	if (other)
		explain("none of %d cards in /dev/dri is virtio_gpu's (last: %s); name one with --card\n",
			other, driver[0] ? driver : "unknown");
	else
		explain("no card in /dev/dri; is virtio_gpu loaded and did it find its device (dmesg)?\n");
	return -ENODEV;
}

static drmModeConnectorPtr find_connector(int fd, drmModeResPtr res)
{
	drmModeConnectorPtr conn;
	int i;

	for (i = 0; i < res->count_connectors; i++) {
		conn = drmModeGetConnector(fd, res->connectors[i]);
		if (!conn)
			continue;
		if (conn->connection == DRM_MODE_CONNECTED &&
		    conn->count_modes > 0)
			return conn;
		drmModeFreeConnector(conn);
	}
	explain("none of %d connectors has a screen attached\n",
		res->count_connectors);
	return NULL;
}

static uint32_t find_crtc(int fd, drmModeResPtr res, drmModeConnectorPtr conn)
{
	drmModeEncoderPtr enc;
	uint32_t possible;
	int i, j;

	for (i = 0; i < conn->count_encoders; i++) {
		enc = drmModeGetEncoder(fd, conn->encoders[i]);
		if (!enc)
			continue;
		possible = enc->possible_crtcs;
		drmModeFreeEncoder(enc);
		for (j = 0; j < res->count_crtcs && j < 32; j++)
			if (possible & (1u << j))
				return res->crtcs[j];
	}
	explain("connector %u has no usable CRTC\n",
		conn->connector_id);
	return 0;
}

static void print_modes(FILE *f, drmModeConnectorPtr conn)
{
	drmModeModeInfo *m;
	int i;

	for (i = 0; i < conn->count_modes; i++) {
		m = &conn->modes[i];
		fprintf(f, "  %ux%u %u Hz%s\n", m->hdisplay, m->vdisplay,
			m->vrefresh,
			m->type & DRM_MODE_TYPE_PREFERRED ? " preferred" : "");
	}
}

static int pick_mode(drmModeConnectorPtr conn, const char *want,
		     drmModeModeInfo *mode)
{
	unsigned int w = 0, h = 0;
	char tail;
	int i;

	if (!want) {
		*mode = conn->modes[0];
		for (i = 0; i < conn->count_modes; i++) {
			if (!(conn->modes[i].type & DRM_MODE_TYPE_PREFERRED))
				continue;
			*mode = conn->modes[i];
			break;
		}
		return 0;
	}

	if (sscanf(want, "%ux%u%c", &w, &h, &tail) != 2) {
		explain("mode '%s' is not of the form 1024x768\n",
			want);
		return -EINVAL;
	}
	for (i = 0; i < conn->count_modes; i++) {
		if (conn->modes[i].hdisplay != w || conn->modes[i].vdisplay != h)
			continue;
		*mode = conn->modes[i];
		return 0;
	}
	explain("the screen has no mode %s; it has:\n", want);
	print_modes(stderr, conn);
	return -EINVAL;
}

static int buffer_create(struct display *d, struct buffer *b)
{
	uint32_t handles[4] = { 0 }, pitches[4] = { 0 }, offsets[4] = { 0 };
	uint32_t pitch;
	uint64_t offset;
	int ret;

	ret = drmModeCreateDumbBuffer(d->fd, d->mode.hdisplay, d->mode.vdisplay,
				      32, 0, &b->handle, &pitch, &b->size);
	if (ret) {
		explain("cannot create a buffer of %ux%u: %s\n",
			d->mode.hdisplay, d->mode.vdisplay, strerror(-ret));
		return ret;
	}
	b->stride = pitch / 4;

	handles[0] = b->handle;
	pitches[0] = pitch;
	ret = drmModeAddFB2(d->fd, d->mode.hdisplay, d->mode.vdisplay,
			    DRM_FORMAT_XRGB8888, handles, pitches, offsets,
			    &b->fb, 0);
	if (ret) {
		explain("cannot make a framebuffer: %s\n",
			strerror(-ret));
		return ret;
	}

	ret = drmModeMapDumbBuffer(d->fd, b->handle, &offset);
	if (!ret) {
		void *px = mmap(NULL, b->size, PROT_READ | PROT_WRITE,
				MAP_SHARED, d->fd, offset);

		if (px == MAP_FAILED)
			ret = -errno;
		else
			b->px = px;
	}
	if (ret)
		explain("cannot map a buffer: %s\n",
			strerror(-ret));
	return ret;
}

static int open_connector(const char *card, int *fd, drmModeResPtr *res,
			  drmModeConnectorPtr *conn)
{
	*fd = find_card(card);
	if (*fd < 0)
		return *fd;

	*res = drmModeGetResources(*fd);
	if (!*res) {
		explain("the card cannot set modes: %s\n",
			strerror(errno));
		close(*fd);
		return -ENODEV;
	}
	*conn = find_connector(*fd, *res);
	if (!*conn) {
		drmModeFreeResources(*res);
		close(*fd);
		return -ENODEV;
	}
	return 0;
}

int display_list_modes(const char *card)
{
	drmModeConnectorPtr conn;
	drmModeResPtr res;
	int fd, ret;

	ret = open_connector(card, &fd, &res, &conn);
	if (ret)
		return ret;
	print_modes(stdout, conn);
	drmModeFreeConnector(conn);
	drmModeFreeResources(res);
	close(fd);
	return 0;
}

int display_open(struct display *d, const char *card, const char *mode,
		 int nr_buffers)
{
	drmModeConnectorPtr conn;
	drmModeResPtr res;
	uint64_t dumb = 0;
	int i, ret;

	memset(d, 0, sizeof(*d));
	ret = open_connector(card, &d->fd, &res, &conn);
	if (ret) {
		d->fd = -1;
		return ret;
	}

	ret = -ENOTSUP;
	if (drmGetCap(d->fd, DRM_CAP_DUMB_BUFFER, &dumb) || !dumb) {
		explain("the card has no dumb buffers\n");
		goto out;
	}

	ret = -ENODEV;
	d->connector = conn->connector_id;
	d->crtc = find_crtc(d->fd, res, conn);
	if (!d->crtc)
		goto out;

	ret = pick_mode(conn, mode, &d->mode);
	if (ret)
		goto out;

	d->nr_buffers = nr_buffers;
	for (i = 0; i < nr_buffers; i++) {
		ret = buffer_create(d, &d->buf[i]);
		if (ret)
			goto out;
	}
out:
	drmModeFreeConnector(conn);
	drmModeFreeResources(res);
	if (ret)
		display_close(d);
	return ret;
}

void display_close(struct display *d)
{
	int i;

	if (d->fd < 0)
		return;
	for (i = 0; i < d->nr_buffers; i++) {
		struct buffer *b = &d->buf[i];

		if (b->px)
			munmap(b->px, b->size);
		if (b->fb)
			drmModeRmFB(d->fd, b->fb);
		if (b->handle)
			drmModeDestroyDumbBuffer(d->fd, b->handle);
	}
	close(d->fd);
	d->fd = -1;
}

/* Set the mode with a buffer on the screen. */
int display_show(struct display *d, int buffer)
{
	int ret;

	ret = drmModeSetCrtc(d->fd, d->crtc, d->buf[buffer].fb, 0, 0,
			     &d->connector, 1, &d->mode);
	if (ret) {
		ret = -errno;
		explain("cannot set mode %s: %s%s\n",
			d->mode.name, strerror(-ret),
			ret == -EACCES || ret == -EPERM ?
			"; does another program hold the screen?" : "");
	}
	return ret;
}

static void on_flip(int fd, unsigned int seq, unsigned int sec,
		    unsigned int usec, unsigned int crtc, void *data)
{
	struct display *d = data;

	(void)fd;
	(void)seq;
	(void)sec;
	(void)usec;
	(void)crtc;
	d->flipped = true;
}

/* Show a buffer and return when the driver says that it is shown. */
int display_flip(struct display *d, int buffer)
{
	drmEventContext events = {
		.version = 3,
		.page_flip_handler2 = on_flip,
	};
	struct pollfd pfd = { .fd = d->fd, .events = POLLIN };
	int ret;

	d->flipped = false;
	ret = drmModePageFlip(d->fd, d->crtc, d->buf[buffer].fb,
			      DRM_MODE_PAGE_FLIP_EVENT, d);
	if (ret) {
		explain("page flip: %s\n", strerror(-ret));
		return ret;
	}

	while (!d->flipped) {
		ret = poll(&pfd, 1, FLIP_TIMEOUT_MS);
		if (ret < 0 && errno != EINTR) {
			ret = -errno;
			explain("poll: %s\n", strerror(-ret));
			return ret;
		}
		if (ret == 0) {
			explain("no flip event for %d s; the device does not answer\n",
				FLIP_TIMEOUT_MS / 1000);
			return -ETIMEDOUT;
		}
		if (ret > 0 && drmHandleEvent(d->fd, &events)) {
			explain("cannot read the flip event\n");
			return -EIO;
		}
	}
	return 0;
}
