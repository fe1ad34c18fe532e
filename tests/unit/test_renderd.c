// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finding render nodes, and the records of mgpu-renderds, on a machine made of files; the
 * pauses between the workers of a vGPU.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backoff.h"
#include "renderd.h"
#include "tap.h"

#define AMD	"0000:03:00.0"
#define TYPES	"/sys/class/mdev_bus/mgpu_user.3/mdev_supported_types"
#define VIRTIO	"0000:00:10.0"
#define SPARE	"0000:04:00.0"	/* without a driver */
#define PASSED	"0001:05:1f.7"	/* given to a VM */

static char root[64];

static const char *at(const char *path)
{
	static char buf[4][256];
	static unsigned int next;
	char *to = buf[next++ % 4];

	snprintf(to, sizeof(buf[0]), "%s%s", root, path);
	return to;
}

static void make_dir(const char *path)
{
	char full[256], *slash;

	snprintf(full, sizeof(full), "%s%s/", root, path);
	for (slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
}

static void link_to(const char *target, const char *path)
{
	TAP_EQ(symlink(target, at(path)), 0);
}

static int rm(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void unplug(void)
{
	nftw(root, rm, 16, FTW_DEPTH | FTW_PHYS);
}

static bool plug(void)
{
	strcpy(root, "/tmp/test_renderd.XXXXXX");
	if (!TAP_CHECK(mkdtemp(root)))
		return false;
	make_dir("/sys/class/mdev_bus");
	make_dir("/run");
	make_dir("/sys/class/drm");
	make_dir("/sys/bus/pci/devices/" AMD);
	make_dir("/sys/bus/pci/devices/" VIRTIO);
	make_dir("/sys/bus/pci/devices/" SPARE);
	make_dir("/sys/bus/pci/devices/" PASSED);
	link_to("../../../../bus/pci/drivers/amdgpu", "/sys/bus/pci/devices/" AMD "/driver");
	link_to("../../../../bus/pci/drivers/vfio-pci", "/sys/bus/pci/devices/" PASSED "/driver");
	return true;
}

static void add_nodes(void)
{
	link_to("../../devices/pci0000:00/0000:00:01.1/" AMD "/drm/card0", "/sys/class/drm/card0");
	link_to("../../devices/pci0000:00/0000:00:01.1/" AMD "/drm/renderD128",
		"/sys/class/drm/renderD128");
	link_to("../../devices/pci0000:00/" VIRTIO "/virtio3/drm/renderD129",
		"/sys/class/drm/renderD129");
	/* of a platform device */
	link_to("../../devices/platform/gpu.0/drm/renderD130", "/sys/class/drm/renderD130");
}

static void says(const struct mgpu_error *err, const char *pattern)
{
	if (!TAP_CHECK(strstr(err->text, pattern)))
		tap_diag("says '%s', nothing like '%s'", err->text, pattern);
	TAP_CHECK(!strchr(err->text, '\n'));
	/* it was not cut */
	TAP_CHECK(strlen(err->text) < sizeof(err->text) - 1);
}

static void finds_nodes(void)
{
	char address[PCI_ADDRESS_LEN], node[PCI_ADDRESS_LEN];
	struct mgpu_error err = { 0 };

	if (!plug())
		return;
	add_nodes();
	TAP_EQ(pci_render_node(root, "3:0.0", address, node, &err), 0);
	TAP_STR(address, AMD);
	TAP_STR(node, "/dev/dri/renderD128");
	TAP_EQ(pci_render_node(root, VIRTIO, address, node, &err), 0);
	TAP_STR(node, "/dev/dri/renderD129");
	TAP_CHECK(pci_of_render_node(root, "/dev/dri/renderD129", address));
	TAP_STR(address, VIRTIO);
	TAP_CHECK(!pci_of_render_node(root, "/dev/dri/renderD130", address));
	TAP_CHECK(!pci_of_render_node(root, "/dev/dri/renderD131", address));
	TAP_CHECK(!pci_of_render_node(root, "/dev/null", address));
	unplug();
}

static void says_why_there_is_no_node(void)
{
	char address[PCI_ADDRESS_LEN], node[PCI_ADDRESS_LEN];
	struct mgpu_error err = { 0 };

	if (!plug())
		return;
	TAP_EQ(pci_render_node(root, AMD, address, node, &err), -ENODEV);
	says(&err, "; no GPU of this host has a render node");
	add_nodes();
	TAP_EQ(pci_render_node(root, "06:00.0", address, node, &err), -ENODEV);
	says(&err, "there is no PCI device 0000:06:00.0; GPUs with a render node: ");
	says(&err, AMD " (renderD128)");
	says(&err, VIRTIO " (renderD129)");
	TAP_CHECK(!strstr(err.text, "renderD130"));
	TAP_EQ(pci_render_node(root, SPARE, address, node, &err), -ENODEV);
	says(&err, SPARE " has no driver: load");
	TAP_EQ(pci_render_node(root, PASSED, address, node, &err), -ENODEV);
	says(&err, "the driver of " PASSED ", vfio-pci, makes no render node: ");
	TAP_EQ(pci_render_node(root, "renderD128", address, node, &err), -EINVAL);
	says(&err, "'renderD128' is no PCI address");
	unplug();
}

/* Run @body in a process of its own, which holds its record until it is killed. */
static pid_t hold(const char *gpu, void (*body)(struct renderd *r))
{
	struct mgpu_error err;
	struct renderd r;
	int fds[2];
	char c = 0;
	pid_t pid;

	if (!TAP_EQ(pipe(fds), 0))
		return -1;
	pid = fork();
	if (!pid) {
		if (renderd_claim(root, gpu, &r, &err))
			_exit(1);
		body(&r);
		if (write(fds[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(fds[1]);
	TAP_EQ(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void starts(struct renderd *r)
{
	(void)r;
}

static void serves(struct renderd *r)
{
	struct mgpu_error err;

	strcpy(r->device, "mgpu_user.3");
	r->id = 3;
	strcpy(r->node, "/dev/dri/renderD128");
	if (renderd_publish(root, r, &err))
		_exit(1);
}

static void stops(struct renderd *r)
{
	serves(r);
	renderd_stopping(r);
}

static void check_state(pid_t pid, enum renderd_state state, const char *device)
{
	struct renderd r;

	if (!TAP_CHECK(renderd_read(root, AMD, &r)))
		return;
	TAP_EQ(r.pid, pid);
	TAP_EQ(r.state, state);
	TAP_STR(r.gpu, AMD);
	TAP_STR(r.device, device);
}

static void states_are_told(void)
{
	struct renderd r;
	pid_t pid;

	if (!plug())
		return;
	TAP_CHECK(!renderd_read(root, AMD, &r));
	make_dir(TYPES);
	pid = hold(AMD, starts);
	check_state(pid, RENDERD_STARTING, "");
	end(pid);
	pid = hold(AMD, serves);
	check_state(pid, RENDERD_SERVING, "mgpu_user.3");
	TAP_CHECK(renderd_read(root, AMD, &r));
	TAP_STR(r.node, "/dev/dri/renderD128");
	end(pid);
	check_state(pid, RENDERD_DEAD, "mgpu_user.3");
	/* the next one is not the one that wrote the file */
	pid = hold(AMD, starts);
	check_state(pid, RENDERD_STARTING, "mgpu_user.3");
	end(pid);
	pid = hold(AMD, stops);
	check_state(pid, RENDERD_STOPPING, "mgpu_user.3");
	/* The module removes it from there before the VMMs have let go. */
	rmdir(at(TYPES));
	check_state(pid, RENDERD_STOPPING, "mgpu_user.3");
	end(pid);
	check_state(pid, RENDERD_DEAD, "");
	unplug();
}

static void only_one_of_a_gpu(void)
{
	struct mgpu_error err = { 0 };
	struct renderd r, other;
	char pid_text[64];
	pid_t pid;

	if (!plug())
		return;
	pid = hold(AMD, serves);
	TAP_EQ(renderd_claim(root, AMD, &r, &err), -EBUSY);
	snprintf(pid_text, sizeof(pid_text), "(process %d) renders on " AMD, pid);
	says(&err, pid_text);
	says(&err, "'gpuctl render stop " AMD "'");
	if (TAP_EQ(renderd_claim(root, RENDERD_NONE, &other, &err), 0)) {
		renderd_remove(&other);
		TAP_CHECK(!renderd_read(root, RENDERD_NONE, &other));
	}
	end(pid);
	if (TAP_EQ(renderd_claim(root, AMD, &r, &err), 0))
		renderd_remove(&r);
	unplug();
}

static void device_is_taken_over(void)
{
	struct mgpu_error err = { 0 };
	struct renderd r;

	if (!plug())
		return;
	make_dir(TYPES);
	end(hold(AMD, serves));
	if (TAP_EQ(renderd_claim(root, AMD, &r, &err), 0)) {
		TAP_STR(r.device, "mgpu_user.3");
		TAP_EQ(r.id, 3);
		TAP_STR(r.node, "");
		close(r.fd);
	}
	/* other types of a device of this name: the module was loaded once more */
	TAP_EQ(rename(at(TYPES), at("/sys/class/mdev_bus/old")), 0);
	make_dir(TYPES);
	if (TAP_EQ(renderd_claim(root, AMD, &r, &err), 0)) {
		TAP_STR(r.device, "");
		renderd_remove(&r);
	}
	unplug();
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(at(path), "w");

	if (TAP_CHECK(file)) {
		fputs(text, file);
		fclose(file);
	}
}

static void records_are_listed(void)
{
	struct mgpu_error err = { 0 };
	struct renderd *list;
	pid_t pid;
	size_t nr;

	if (!plug())
		return;
	TAP_EQ(renderd_list(root, &list, &nr, &err), 0);
	TAP_EQ(nr, 0);
	make_dir(TYPES);
	pid = hold("none", serves);
	/* files of others, and damaged ones */
	put("/run/mgpu/mgpud.sock.lock", "1\n");
	put("/run/mgpu/renderd-.pid", "1\n");
	put("/run/mgpu/renderd-none.log", "mgpu-renderd: serves mgpu_user.3\n");
	put("/run/mgpu/renderd-" AMD ".pid", "");
	put("/run/mgpu/renderd-" VIRTIO ".pid", "17\nnode\ndevice\ninode x\n\nbanana 3\ndevice mgpu");
	if (TAP_EQ(renderd_list(root, &list, &nr, &err), 0) && TAP_EQ(nr, 3)) {
		TAP_STR(list[0].gpu, VIRTIO);
		TAP_EQ(list[0].state, RENDERD_DEAD);
		TAP_EQ(list[0].pid, 17);
		TAP_STR(list[0].device, "");
		TAP_STR(list[1].gpu, AMD);
		TAP_EQ(list[1].state, RENDERD_DEAD);
		TAP_STR(list[2].gpu, "none");
		TAP_EQ(list[2].state, RENDERD_SERVING);
		TAP_EQ(list[2].pid, pid);
	}
	free(list);
	end(pid);
	unplug();
}

/* A worker starts as soon as it may, and ends after @life_ms. Return the pause after it. */
static uint64_t live(struct backoff *b, uint64_t *now, uint64_t life_ms)
{
	uint64_t left;

	if (*now < b->again_ms)
		*now = b->again_ms;
	backoff_started(b, *now);
	*now += life_ms;
	left = backoff_ended(b, *now);
	TAP_EQ(left, b->again_ms > *now ? b->again_ms - *now : 0);
	return left;
}

static void pauses_double(void)
{
	struct backoff b = { 0 };
	uint64_t now = 5000000, want;
	unsigned int i;

	for (want = BACKOFF_MIN_MS; want < BACKOFF_MAX_MS; want *= 2)
		TAP_EQ(live(&b, &now, 0), want);
	for (i = 0; i < 1000; i++)
		TAP_EQ(live(&b, &now, 0), BACKOFF_MAX_MS);
	/* The pause is from start to start. */
	TAP_EQ(live(&b, &now, BACKOFF_LIVED_MS - 1), BACKOFF_MAX_MS - BACKOFF_LIVED_MS + 1);
	TAP_EQ(b.short_lives, 1007);
}

static void a_life_ends_pauses(void)
{
	struct backoff b = { 0 };
	uint64_t now = 0;

	/* The first worker has to be replaced soon. */
	TAP_EQ(live(&b, &now, BACKOFF_MIN_MS), 0);
	TAP_EQ(live(&b, &now, 0), 2 * BACKOFF_MIN_MS);
	TAP_EQ(live(&b, &now, 0), 4 * BACKOFF_MIN_MS);
	TAP_EQ(live(&b, &now, BACKOFF_LIVED_MS), 0);
	TAP_EQ(b.short_lives, 0);
	TAP_EQ(live(&b, &now, 0), BACKOFF_MIN_MS);
	/* A pause is no life. */
	now += 10 * BACKOFF_MAX_MS;
	TAP_EQ(live(&b, &now, 0), 2 * BACKOFF_MIN_MS);
}

int main(void)
{
	tap_run(finds_nodes, "the render node of a GPU is found, and the GPU of a node");
	tap_run(says_why_there_is_no_node, "an error says why a GPU has no render node");
	tap_run(states_are_told, "a record tells the state of its process");
	tap_run(only_one_of_a_gpu, "a GPU has one mgpu-renderd at a time");
	tap_run(device_is_taken_over, "the next mgpu-renderd gets the device that is left");
	tap_run(records_are_listed, "records are listed, without other files");
	tap_run(pauses_double, "pauses between workers that end soon double, up to a bound");
	tap_run(a_life_ends_pauses, "a worker that has lived for some time is replaced at once");
	return tap_done();
}
