// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl monitor */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>

#include "gpuctl.h"

const char *const monitor_keys[] = { "contexts", NULL };

static void print_event(const struct gpuctl *ctl, const char *name,
			const struct mgpu_event *event)
{
	bool is_vgpu = event && !mgpu_event_is_dev(event->cmd) && !mgpu_event_is_ctx(event->cmd);
	struct json_object *object, *vgpu;
	struct vgpu_names names = { 0 };
	char time[OUT_CELL];

	if (is_vgpu)
		names_read(&names, &event->vgpu);
	out_time(time, sizeof(time));
	if (!ctl->json) {
		printf("%s ", time);
		if (event)
			out_event(event, names_shown(&names));
		else
			puts(name);
		return;
	}
	object = json_object_new_object();
	json_object_object_add(object, "time", json_object_new_string(time));
	json_object_object_add(object, "event", json_object_new_string(name));
	if (event && mgpu_event_is_dev(event->cmd))
		json_object_object_add(object, "dev",
				       out_object(mgpu_dev_fields,
						  &event->dev));
	else if (event && mgpu_event_is_ctx(event->cmd))
		json_object_object_add(object, "ctx",
				       out_object(mgpu_ctx_fields,
						  &event->ctx));
	if (is_vgpu) {
		vgpu = out_object(mgpu_vgpu_fields, &event->vgpu);
		out_names(vgpu, &names);
		json_object_object_add(object, "vgpu", vgpu);
	}
	out_json(ctl, object);
}

int monitor(const struct gpuctl *ctl, int argc, char **argv)
{
	struct mgpu_event event;
	struct mgpu_error err;
	struct mgpu *mgpu;
	uint32_t seen = 0;
	int ret;

	if (argc && !is_word(argv[0], monitor_keys))
		return usage_error("monitor takes nothing or 'contexts', not '%s'",
				   argv[0]);
	if (argc > 1)
		return usage_error("monitor contexts takes no '%s'", argv[1]);
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	stop_on_signals();
	setvbuf(stdout, NULL, _IOLBF, 0);

	ret = mgpu_subscribe(mgpu, &err);
	if (!ret && argc)
		ret = mgpu_subscribe_ctx(mgpu, &err);
	if (!ret && fcntl(mgpu_fd(mgpu), F_SETFL, O_NONBLOCK))
		ret = mgpu_fail(&err, -errno, "waiting for events: %s", strerror(errno));
	while (!ret && !gpuctl_stop && (!ctl->count || seen < ctl->count)) {
		ret = mgpu_event_next(mgpu, &event, &err);
		if (!ret) {
			print_event(ctl, mgpu_event_name(event.cmd), &event);
			seen++;
		} else if (ret == -ENOBUFS) {
			print_event(ctl, "lost", NULL);
			ret = 0;
		} else if (ret == -EAGAIN) {
			ret = wait_or_stop(mgpu_fd(mgpu), NULL, &err);
		}
	}
	mgpu_close(mgpu);
	return ret ? failed(&err) : EXIT_OK;
}
