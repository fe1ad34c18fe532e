// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watch a policy: the devices on which it is in force, and how it ended there. Events
 * only tell when to look; the reports come from the devices' state, so that lost events
 * do not matter.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "complain.h"
#include "policy.h"

struct watched {
	uint32_t id;
	char name[MGPU_NAME_LEN];
};

struct watch {
	struct mgpu *events;
	struct mgpu *mgpu;
	int signals;
	char policy[MGPU_NAME_LEN];
	char dev[MGPU_NAME_LEN];	/* "" for every device */
	struct watched *in_force;
	size_t nr;
	char where[1024];
	int status;			/* 0 while it has ended on no device */
};

int watch_begin(struct watch **watch, const char *dev_name,
		const char *policy)
{
	struct mgpu_error err = { 0 };
	struct watch *w = calloc(1, sizeof(*w));
	sigset_t set;
	int ret;

	if (!w)
		return -ENOMEM;
	w->signals = -1;
	snprintf(w->policy, sizeof(w->policy), "%s", policy);
	snprintf(w->dev, sizeof(w->dev), "%s", dev_name ? dev_name : "");
	ret = mgpu_open(&w->mgpu, &err);
	if (!ret)
		ret = mgpu_open(&w->events, &err);
	if (!ret)
		ret = mgpu_subscribe(w->events, &err);
	if (ret) {
		complain("%s", err.text);
		goto fail;
	}
	fcntl(mgpu_fd(w->events), F_SETFL, O_NONBLOCK);

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	w->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (w->signals < 0) {
		ret = -errno;
		complain("no signals: %s", strerror(-ret));
		goto fail;
	}
	*watch = w;
	return 0;
fail:
	watch_end(w);
	return ret;
}

void watch_end(struct watch *w)
{
	if (!w)
		return;
	mgpu_close(w->mgpu);
	mgpu_close(w->events);
	if (w->signals >= 0)
		close(w->signals);
	free(w->in_force);
	free(w);
}

static bool is_ours(const struct watch *w, const struct mgpu_dev_info *dev)
{
	return !*w->dev || !strcmp(w->dev, dev->name);
}

static bool was_in_force(const struct watch *w, uint32_t id)
{
	for (size_t i = 0; i < w->nr; i++)
		if (w->in_force[i].id == id)
			return true;
	return false;
}

static void forget(struct watch *w, uint32_t id)
{
	for (size_t i = 0; i < w->nr; i++) {
		if (w->in_force[i].id == id) {
			w->in_force[i] = w->in_force[--w->nr];
			return;
		}
	}
}

static void print_end(struct watch *w, const struct mgpu_dev_info *dev)
{
	const struct mgpu_policy_exit_info *why = &dev->policy_exit;
	const char *kind;

	kind = mgpu_field_str(mgpu_field_find(mgpu_policy_exit_fields, "kind"),
			      why);
	printf("%s: policy %s ended: %s", dev->name, why->policy,
	       kind ? kind : "?");
	if (why->code)
		printf(" (error %d)", -why->code);
	if (mgpu_has(why, MGPU_A_POLICY_EXIT_VGPU_ID))
		printf(", vGPU %u", why->vgpu_id);
	printf(": %s; %s is in force\n", why->message, dev->policy);
	switch (why->kind) {
	case MGPU_POLICY_EXIT_KIND_STARVED:
	case MGPU_POLICY_EXIT_KIND_STALLED:
	case MGPU_POLICY_EXIT_KIND_ERROR:
		w->status = STATUS_EVICTED;
		break;
	default:
		if (w->status != STATUS_EVICTED)
			w->status = STATUS_ENDED;
	}
}

/* The exit report of a device, if it is about the policy. */
static void take_report(struct watch *w, const struct mgpu_dev_info *dev)
{
	const struct mgpu_policy_exit_info *why = &dev->policy_exit;

	if (!is_ours(w, dev) || !mgpu_has(dev, MGPU_A_DEV_POLICY_EXIT) ||
	    strcmp(why->policy, w->policy) || !was_in_force(w, dev->id))
		return;
	if (why->kind != MGPU_POLICY_EXIT_KIND_REPLACED) {
		print_end(w, dev);
		forget(w, dev->id);
		return;
	}
	/* Another policy has replaced it under the same link: watch that one. */
	printf("policy %s was replaced by %s\n", w->policy, dev->policy);
	snprintf(w->policy, sizeof(w->policy), "%s", dev->policy);
}

/* Update the devices on which it is in force, and report those on which it ended. */
static int look(struct watch *w)
{
	struct mgpu_dev_info *devs;
	struct watched *now;
	struct mgpu_error err;
	size_t nr_devs, nr = 0;
	int ret;

	ret = mgpu_dev_list(w->mgpu, &devs, &nr_devs, &err);
	if (ret) {
		complain("%s", err.text);
		return ret;
	}
	now = calloc(nr_devs + 1, sizeof(*now));
	if (!now) {
		free(devs);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr_devs; i++) {
		const struct mgpu_dev_info *dev = &devs[i];

		if (strcmp(dev->policy, w->policy))
			take_report(w, dev);
		if (!is_ours(w, dev) || strcmp(dev->policy, w->policy))
			continue;
		now[nr].id = dev->id;
		memcpy(now[nr++].name, dev->name, sizeof(dev->name));
		forget(w, dev->id);
	}
	/* The remaining devices have neither the policy nor a report. */
	for (size_t i = 0; i < w->nr; i++) {
		const struct watched *left = &w->in_force[i];
		bool gone = true;

		for (size_t j = 0; j < nr_devs; j++)
			gone &= devs[j].id != left->id;
		printf("%s: %s\n", left->name,
		       gone ? "the device is gone" : "the policy ended");
		if ((!gone || *w->dev) && w->status != STATUS_EVICTED)
			w->status = STATUS_ENDED;
	}
	fflush(stdout);
	free(devs);
	free(w->in_force);
	w->in_force = now;
	w->nr = nr;
	return 0;
}

/*
 * Record the devices on which it came into force. It may have ended on one by now; the
 * next look then reports that.
 */
const char *watch_where(struct watch *w)
{
	struct mgpu_dev_info *devs;
	struct mgpu_error err;
	size_t nr;

	if (mgpu_dev_list(w->mgpu, &devs, &nr, &err))
		return "";
	free(w->in_force);
	w->in_force = calloc(nr + 1, sizeof(*w->in_force));
	w->nr = 0;
	w->where[0] = '\0';
	for (size_t i = 0; w->in_force && i < nr; i++) {
		size_t len = strlen(w->where);

		if (!is_ours(w, &devs[i]))
			continue;
		w->in_force[w->nr].id = devs[i].id;
		memcpy(w->in_force[w->nr++].name, devs[i].name,
		       sizeof(devs[i].name));
		snprintf(w->where + len, sizeof(w->where) - len, "%s%s",
			 len ? ", " : "", devs[i].name);
	}
	free(devs);
	return w->where;
}

/* Read all pending events. -ENODEV: the module was unloaded. */
static int drain(struct watch *w)
{
	struct mgpu_event event;
	struct mgpu_error err;
	int ret;

	for (;;) {
		ret = mgpu_event_next(w->events, &event, &err);
		if (!ret && event.cmd == MGPU_CMD_DEV_POLICY_EXIT_NTF)
			take_report(w, &event.dev);
		if (ret == -EAGAIN)
			return 0;
		if (ret && ret != -ENOBUFS && ret != -EINTR)
			break;
	}
	complain("%s", err.text);
	return ret;
}

int watch_run(struct watch *w, int link_fd)
{
	struct pollfd fds[] = {
		{ .fd = w->signals, .events = POLLIN },
		{ .fd = mgpu_fd(w->events), .events = POLLIN },
		/* poll() reports EPOLLHUP when the policy has ended, from Linux 6.11 on. */
		{ .fd = link_fd },
	};

	for (;;) {
		if (drain(w) || look(w))
			return STATUS_FAILED;
		/* A policy for every device waits for devices. */
		if (fds[2].revents || (!w->nr && (w->status || *w->dev)))
			return w->status ? w->status : STATUS_ENDED;
		if (poll(fds, 3, -1) < 0) {
			if (errno == EINTR)
				continue;
			complain("waiting: %s", strerror(errno));
			return STATUS_FAILED;
		}
		if (fds[0].revents)
			return STATUS_OK;
	}
}
