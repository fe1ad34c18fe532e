// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpuctl render: start and stop mgpu-renderd, of which each GPU has one. Where systemd runs,
 * they are its units; elsewhere they are daemons.
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/mgpu_user.h>

#include "gpuctl.h"
#include "pci_gpu.h"
#include "program.h"
#include "renderd.h"

#define MODULE		"mgpu_user"
#define CONTROL		"/dev/mgpu-user-control"
#define PROGRAM		"mgpu-renderd"
#define START_S		60	/* until a device serves, seconds */
#define NAMED		3	/* vGPUs that an error names; the others are counted */

const char *const render_start_keys[] = { "none", NULL };
const char *const render_stop_keys[] = { "all", "none", "force", NULL };

/* ---- list ---- */

static const char *const columns[] = {
	"ADDRESS", "NODE", "DEVICE", ">PID", ">VGPUS", "STATE", NULL
};

/**
 * struct vgpus - the vGPUs of all devices
 * @list: the vGPUs
 * @nr: their number
 * @known: whether the module has told them
 */
struct vgpus {
	struct mgpu_vgpu_info *list;
	size_t nr;
	bool known;
};

static int get_vgpus(struct vgpus *v, struct mgpu_error *err)
{
	int ret;

	memset(v, 0, sizeof(*v));
	ret = pci_machine.vgpus(&pci_machine, &v->list, &v->nr, err);
	v->known = !ret;
	return ret;
}

static bool is_of(const struct mgpu_vgpu_info *vgpu, const struct renderd *r)
{
	return *r->device && !strcmp(vgpu->dev_name, r->device);
}

static size_t count_vgpus(const struct vgpus *v, const struct renderd *r)
{
	size_t nr = 0, i;

	for (i = 0; i < v->nr; i++)
		nr += is_of(&v->list[i], r);
	return nr;
}

static struct json_object *text_or_null(const char *text)
{
	return *text ? json_object_new_string(text) : NULL;
}

static struct json_object *renderd_object(const struct renderd *r, const struct vgpus *v)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "address",
			       strcmp(r->gpu, RENDERD_NONE) ? json_object_new_string(r->gpu) :
							      NULL);
	json_object_object_add(object, "node", text_or_null(r->node));
	json_object_object_add(object, "device", text_or_null(r->device));
	json_object_object_add(object, "pid", r->state == RENDERD_DEAD ? NULL :
			       json_object_new_int64(r->pid));
	json_object_object_add(object, "vgpus", v->known ?
			       json_object_new_int64((int64_t)count_vgpus(v, r)) : NULL);
	json_object_object_add(object, "state",
			       json_object_new_string(renderd_states[r->state]));
	return object;
}

static void add_row(struct table *table, const struct renderd *r, const struct vgpus *v)
{
	table_cell(table, "%s", r->gpu);
	table_cell(table, "%s", *r->node ? r->node : "-");
	table_cell(table, "%s", *r->device ? r->device : "-");
	if (r->state == RENDERD_DEAD)
		table_cell(table, "-");
	else
		table_cell(table, "%d", r->pid);
	if (v->known)
		table_cell(table, "%zu", count_vgpus(v, r));
	else
		table_cell(table, "-");
	table_cell(table, "%s", renderd_states[r->state]);
}

int render_list(const struct gpuctl *ctl, int argc, char **argv)
{
	struct json_object *array, *all;
	struct table table = { .columns = columns };
	struct mgpu_error err, unknown;
	struct renderd *list;
	struct vgpus v;
	size_t nr, i;

	if (argc)
		return usage_error("render list takes no '%s': it lists all", argv[0]);
	if (renderd_list(gpuctl_root, &list, &nr, &err))
		return failed(&err);
	get_vgpus(&v, &unknown);
	if (ctl->json) {
		array = json_object_new_array();
		for (i = 0; i < nr; i++)
			json_object_array_add(array, renderd_object(&list[i], &v));
		all = json_object_new_object();
		json_object_object_add(all, "renderds", array);
		out_json(ctl, all);
	} else {
		for (i = 0; i < nr; i++)
			add_row(&table, &list[i], &v);
		table_print(&table);
	}
	free(v.list);
	free(list);
	return EXIT_OK;
}

/* ---- systemd ---- */

/* As sd_booted(3). */
static bool has_systemd(void)
{
	return !access("/run/systemd/system", F_OK);
}

static void unit_name(const char *gpu, char *unit, size_t size)
{
	snprintf(unit, size, PROGRAM "@%s.service", gpu);
}

/* Run systemctl with a verb on the unit of a GPU; return its status, or a negative errno. */
static int systemctl(const char *verb, const char *gpu, bool quiet)
{
	char name[] = "systemctl", unit[PCI_ADDRESS_LEN + 32];
	char *const argv[] = { name, strdupa(verb), unit, NULL };
	int status, ret;

	unit_name(gpu, unit, sizeof(unit));
	ret = program_run(argv, "/bin/systemctl", quiet, &status);
	return ret ? ret : WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static int start_unit(const char *gpu, struct mgpu_error *err)
{
	char unit[PCI_ADDRESS_LEN + 32];
	int ret = systemctl("start", gpu, false);

	unit_name(gpu, unit, sizeof(unit));
	if (!ret)
		return 0;
	if (ret == 5)	/* as the init scripts of LSB: not installed */
		return mgpu_fail(err, -ENOENT,
				 "systemd has no unit " PROGRAM "@.service: install it with 'make -C ctl install' and 'systemctl daemon-reload'");
	/* It would be started again and again. */
	if (ret > 0)
		systemctl("stop", gpu, true);
	return mgpu_fail(err, ret < 0 ? ret : -EIO,
			 "systemd cannot start %s: 'journalctl -n 20 -u %s' says why", unit, unit);
}

/* ---- a daemon ---- */

/* Path of mgpu-renderd: beside gpuctl, or else its name, which is looked for in PATH. */
static void find_program(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof(PROGRAM) - 1);

	path[n > 0 ? n : 0] = '\0';
	if (strrchr(path, '/')) {
		strcpy(strrchr(path, '/') + 1, PROGRAM);
		if (!access(path, X_OK))
			return;
	}
	strcpy(path, PROGRAM);
}

/* Open the socket to which the daemon sends READY=1, and name it in the environment. */
static int open_notify(struct mgpu_error *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr.sun_family);
	char name[sizeof(addr.sun_path) + 1];
	int fd, ret;

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The kernel chooses an abstract name. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len))
		goto fail;
	len = sizeof(addr);
	if (getsockname(fd, (struct sockaddr *)&addr, &len))
		goto fail;
	len -= (socklen_t)offsetof(struct sockaddr_un, sun_path);
	snprintf(name, sizeof(name), "@%.*s", (int)len - 1, addr.sun_path + 1);
	if (setenv("NOTIFY_SOCKET", name, 1))
		goto fail;
	return fd;
fail:
	ret = -errno;
	if (fd >= 0)
		close(fd);
	return mgpu_fail(err, ret, "cannot open a socket for the daemon: %s", strerror(-ret));
}

static int spawn(const char *gpu, const char *log, pid_t *pid, struct mgpu_error *err)
{
	char path[PATH_MAX], option[] = "--gpu";
	char *const argv[] = { path, option, strdupa(gpu), NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int ret;

	find_program(path);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	posix_spawn_file_actions_addchdir_np(&actions, "/");
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
	ret = posix_spawnp(pid, path, &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return ret ? mgpu_fail(err, -ret, "cannot run %s with its log %s: %s", path, log,
			       strerror(ret)) : 0;
}

/* True when the socket has a datagram with READY=1. */
static bool is_ready(int notify)
{
	char text[640];
	ssize_t n;

	while ((n = recv(notify, text, sizeof(text) - 1, 0)) >= 0) {
		text[n] = '\0';
		if (!strncmp(text, "READY=1", 7))
			return true;
	}
	return false;
}

/* Print what the log has from @start on: why a daemon ended. */
static void print_log(const char *log, off_t start)
{
	FILE *file = fopen(log, "re");
	char line[512];
	int lines;

	if (!file)
		return;
	if (!fseeko(file, start, SEEK_SET))
		for (lines = 0; lines < 20 && fgets(line, sizeof(line), file); lines++)
			fputs(line, stderr);
	fclose(file);
}

/* Wait until the daemon is ready, has ended, or has taken too long. */
static int await_ready(int notify, pid_t pid, const char *log, off_t start,
		       struct mgpu_error *err)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct timespec timeout = { .tv_sec = START_S }, end, now;
	int ends = pidfd_open(pid, 0);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	int ret, status;

	if (ends < 0 || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, notify, &event) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, ends, &event)) {
		ret = mgpu_fail(err, -errno, "cannot wait for " PROGRAM ": %s", strerror(errno));
		goto out;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += START_S;
	do {
		ret = wait_or_stop(epoll, &timeout, err);
		if (ret || is_ready(notify))
			goto out;
		if (waitpid(pid, &status, WNOHANG) == pid) {
			print_log(log, start);
			ret = mgpu_fail(err, -ECHILD,
					PROGRAM " ended with %s %d; %s has its messages",
					WIFEXITED(status) ? "status" : "signal",
					WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
					log);
			goto out;
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		timeout.tv_sec = end.tv_sec - now.tv_sec;
	} while (!gpuctl_stop && timeout.tv_sec > 0);
	kill(pid, SIGTERM);
	ret = gpuctl_stop ? mgpu_fail(err, -EINTR, "interrupted") :
		mgpu_fail(err, -ETIMEDOUT,
			  PROGRAM " served no device within %d s, and was ended; %s has its messages",
			  START_S, log);
out:
	if (ends >= 0)
		close(ends);
	if (epoll >= 0)
		close(epoll);
	return ret;
}

static int start_daemon(const char *gpu, struct mgpu_error *err)
{
	struct stat st = { .st_size = 0 };
	char log[PATH_MAX];
	int notify, ret;
	pid_t pid;

	if (mkdir(RENDERD_DIR, 0755) && errno != EEXIST)
		return mgpu_fail(err, -errno, "cannot make " RENDERD_DIR ": %s%s", strerror(errno),
				 errno == EACCES ? ": that needs root" : "");
	snprintf(log, sizeof(log), RENDERD_DIR "/renderd-%s.log", gpu);
	if (stat(log, &st))
		st.st_size = 0;
	notify = open_notify(err);
	if (notify < 0)
		return notify;
	stop_on_signals();
	ret = spawn(gpu, log, &pid, err);
	if (!ret)
		ret = await_ready(notify, pid, log, st.st_size, err);
	close(notify);
	return ret;
}

/* ---- start ---- */

static int need_module(struct mgpu_error *err)
{
	int ret;

	if (!access("/sys/module/" MODULE, F_OK))
		return 0;
	ret = pci_machine.modprobe(&pci_machine, MODULE);
	if (!ret)
		return 0;
	if (ret == -ENOENT)
		return mgpu_fail(err, ret,
				 "the module %s is not loaded, and modprobe finds none: install mgpu's modules, or load mgpu.ko and then %s.ko with insmod",
				 MODULE, MODULE);
	return mgpu_fail(err, ret,
			 "the module %s cannot be loaded: 'modprobe %s' and the kernel's log say why",
			 MODULE, MODULE);
}

/* Print the device, and how to go on. */
static int print_started(const struct gpuctl *ctl, const struct renderd *r, bool already)
{
	struct json_object *object;
	char path[PATH_MAX];
	struct mgpu_error err;
	struct vgpus v;

	snprintf(path, sizeof(path), "/sys/class/mdev_bus/%s/mdev_supported_types", r->device);
	if (ctl->json) {
		get_vgpus(&v, &err);
		object = renderd_object(r, &v);
		json_object_object_add(object, "types_path", json_object_new_string(path));
		free(v.list);
		return out_json(ctl, object);
	}
	printf("%s %sserves %s%s (process %d)\n%s\n"
	       "'gpuctl type list %s' lists its types; a UUID in TYPE/create makes a vGPU\n",
	       r->device, already ? "already " : "", *r->node ? "on " : "without a GPU", r->node,
	       r->pid, path, r->device);
	return EXIT_OK;
}

int render_start(const struct gpuctl *ctl, int argc, char **argv)
{
	char gpu[PCI_ADDRESS_LEN] = RENDERD_NONE, node[PCI_ADDRESS_LEN], gpus[200];
	struct mgpu_error err;
	struct renderd r;
	bool already;
	int ret = 0;

	if (argc > 1)
		return usage_error("render start takes one GPU, or none; '%s' is too much",
				   argv[1]);
	if (argc && strcmp(argv[0], RENDERD_NONE))
		ret = pci_render_node(gpuctl_root, argv[0], gpu, node, &err);
	if (ret || need_module(&err))
		return failed(&err);
	already = renderd_read(gpuctl_root, gpu, &r) && r.state == RENDERD_SERVING;
	if (!already)
		ret = has_systemd() ? start_unit(gpu, &err) : start_daemon(gpu, &err);
	if (ret)
		return failed(&err);
	if (!renderd_read(gpuctl_root, gpu, &r) || r.state != RENDERD_SERVING) {
		mgpu_fail(&err, -EIO, "%s started, and has no device now: see its log", PROGRAM);
		return failed(&err);
	}
	pci_list_render_nodes(gpuctl_root, gpus, sizeof(gpus));
	if (!argc && *gpus && !ctl->json)
		printf("to render on a GPU, name it: %s\n", gpus);
	return print_started(ctl, &r, already);
}

/* ---- stop ---- */

/* Return -EBUSY, with the VMs in the text, if there are vGPUs. */
static int check_vgpus(const struct renderd *r, const struct vgpus *v, struct mgpu_error *err)
{
	char names[320] = "", vm[48];
	size_t nr = 0, i;

	for (i = 0; i < v->nr; i++) {
		size_t len = strlen(names);

		if (!is_of(&v->list[i], r) || nr++ >= NAMED)
			continue;
		if (v->list[i].open)
			snprintf(vm, sizeof(vm), "VM with pid %u", v->list[i].tgid);
		else
			strcpy(vm, "no VM");
		snprintf(names + len, sizeof(names) - len, "%s%s (%s)", nr > 1 ? ", " : "",
			 v->list[i].uuid, vm);
	}
	if (!nr)
		return 0;
	if (nr > NAMED)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " and %zu more",
			 nr - NAMED);
	return mgpu_fail(err, -EBUSY,
			 "%s has vGPUs: %s: shut the VMs down and remove them first, or say 'force'",
			 r->device, names);
}

/* End the process of a record, and wait until it has ended. */
static int end_process(const struct renderd *r, struct mgpu_error *err)
{
	struct renderd now;
	int fd, ret = 0;

	fd = pidfd_open(r->pid, 0);
	if (fd < 0)
		return errno == ESRCH ? 0 : mgpu_fail(err, -errno, "cannot watch process %d: %s",
						      r->pid, strerror(errno));
	/* The ID may be that of another process by now, unless it still has the lock. */
	if (renderd_read(gpuctl_root, r->gpu, &now) && now.state != RENDERD_DEAD &&
	    now.pid == r->pid) {
		if (pidfd_send_signal(fd, SIGTERM, NULL, 0) && errno != ESRCH)
			ret = mgpu_fail(err, -errno, "cannot end process %d: %s", r->pid,
					errno == EPERM ? "that needs root" : strerror(errno));
		else
			ret = wait_or_stop(fd, NULL, err);
		if (!ret && gpuctl_stop)
			ret = mgpu_fail(err, -EINTR,
					"interrupted; process %d ends when the VMMs have closed their vGPUs",
					r->pid);
	}
	close(fd);
	return ret;
}

/* Remove the device and the record that a process left when it died. */
static int remove_left(const char *gpu, struct mgpu_error *err)
{
	struct mgpu_user_destroy destroy = { .size = sizeof(destroy) };
	struct renderd r;
	int control, ret;

	ret = renderd_claim(gpuctl_root, gpu, &r, err);
	if (ret)
		return ret;
	if (*r.device) {
		destroy.id = r.id;
		control = open(CONTROL, O_RDWR | O_CLOEXEC);
		if (control < 0 || ioctl(control, MGPU_USER_DESTROY, &destroy)) {
			ret = mgpu_fail(err, -errno, "cannot remove " MODULE ".%u: %s", r.id,
					strerror(errno));
			close(r.fd);
		}
		if (control >= 0)
			close(control);
	}
	if (!ret)
		renderd_remove(&r);
	return ret;
}

static int stop_one(const struct gpuctl *ctl, const struct renderd *r, bool force,
		    const struct vgpus *v, struct mgpu_error *err)
{
	struct renderd now;
	size_t nr;
	int ret;

	if (!force) {
		ret = check_vgpus(r, v, err);
		if (ret)
			return ret;
	}
	nr = count_vgpus(v, r);
	if (nr)
		pci_machine.waits(&pci_machine, nr);
	/* Also one that died, which systemd starts again. It fails if there is no such unit. */
	if (has_systemd())
		systemctl("stop", r->gpu, true);
	if (renderd_read(gpuctl_root, r->gpu, &now) && now.state != RENDERD_DEAD) {
		stop_on_signals();
		ret = end_process(&now, err);
		if (ret)
			return ret;
	}
	if (renderd_read(gpuctl_root, r->gpu, &now)) {
		ret = remove_left(r->gpu, err);
		if (ret)
			return ret;
	}
	if (!ctl->json && *r->device)
		printf("%s: stopped; removed " MODULE ".%u\n", r->gpu, r->id);
	else if (!ctl->json)
		printf("%s: stopped\n", r->gpu);
	return 0;
}

/* The records that the word means: all, one, or without a word the only one. */
static int choose(const char *word, struct renderd **list, size_t *nr, struct mgpu_error *err)
{
	char gpu[PCI_ADDRESS_LEN];
	const char *like;
	size_t i;
	int ret;

	ret = renderd_list(gpuctl_root, list, nr, err);
	if (ret || (word && !strcmp(word, "all")) || (!word && *nr == 1))
		return ret;
	if (!word && !*nr)
		return mgpu_fail(err, -ENOENT, "no " PROGRAM " runs");
	if (!word)
		return mgpu_fail(err, -EINVAL,
				 "%zu GPUs render: name one of them or say 'all'; 'gpuctl render list' lists them",
				 *nr);
	if (!pci_parse_address(word, gpu))
		snprintf(gpu, sizeof(gpu), "%s", word);
	for (i = 0; i < *nr; i++) {
		if (strcmp((*list)[i].gpu, gpu))
			continue;
		(*list)[0] = (*list)[i];
		*nr = 1;
		return 0;
	}
	like = is_word(word, render_stop_keys) ? NULL : suggest(word, render_stop_keys);
	return mgpu_fail(err, -ENOENT, "no " PROGRAM " renders on '%.64s'; %s%s%s", word,
			 like ? "did you mean '" : "'gpuctl render list' lists the GPUs",
			 like ? like : "", like ? "'?" : "");
}

int render_stop(const struct gpuctl *ctl, int argc, char **argv)
{
	const char *word = NULL;
	struct renderd *list = NULL;
	struct vgpus v = { 0 };
	struct mgpu_error err;
	bool force = false;
	size_t nr = 0, i;
	int ret;

	for (i = 0; i < (size_t)argc; i++) {
		bool is_force = !strcmp(argv[i], "force");

		if (is_force ? force : !!word)
			return usage_error("render stop takes one GPU, none or all, and force; '%s' is too much",
					   argv[i]);
		if (is_force)
			force = true;
		else
			word = argv[i];
	}
	ret = choose(word, &list, &nr, &err);
	if (!ret && nr && get_vgpus(&v, &err) && err.code != -ENOENT && !force)
		ret = err.code;
	for (i = 0; i < nr && !ret; i++)
		ret = stop_one(ctl, &list[i], force, &v, &err);
	free(v.list);
	free(list);
	return ret ? failed(&err) : EXIT_OK;
}
