// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl monitor */
#include <errno.h>
#include <json-c/json.h>

#include "gpuctl.h"

static void print_event(const struct gpuctl *ctl, const char *name,
			const struct mgpu_event *event)
{
	struct json_object *object;
	char time[OUT_CELL];

	out_time(time, sizeof(time));
	if (!ctl->json) {
		printf("%s ", time);
		if (event)
			out_event(event);
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
	else if (event)
		json_object_object_add(object, "vgpu",
				       out_object(mgpu_vgpu_fields,
						  &event->vgpu));
	out_json(ctl, object);
}

int monitor(const struct gpuctl *ctl, int argc, char **argv)
{
	struct mgpu_event event;
	struct mgpu_error err;
	struct mgpu *mgpu;
	uint32_t seen = 0;
	int ret;

	if (argc)
		return usage_error("monitor takes no '%s'", argv[0]);
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	stop_on_signals();
	setvbuf(stdout, NULL, _IOLBF, 0);

	ret = mgpu_subscribe(mgpu, &err);
	while (!ret && !gpuctl_stop && (!ctl->count || seen < ctl->count)) {
		ret = mgpu_event_next(mgpu, &event, &err);
		if (!ret) {
			print_event(ctl, mgpu_event_name(event.cmd), &event);
			seen++;
		} else if (ret == -ENOBUFS) {
			print_event(ctl, "lost", NULL);
			ret = 0;
		} else if (ret == -EINTR) {
			ret = 0;
		}
	}
	mgpu_close(mgpu);
	return ret ? failed(&err) : EXIT_OK;
}
