// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's events of devices, which the agent reads. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "devices.h"
#include "tap.h"

#define ROOT	"/nonexistent"

static int ends[2];

static void send_event(const char *message)
{
	/* The text behind it is the same in more words. */
	char event[256] = { 0 };

	strcpy(event, message);
	TAP_EQ(send(ends[1], event, strlen(event) + 20, 0), (ssize_t)strlen(event) + 20);
}

static void binds(void)
{
	struct device gpu = { .addr = "0000:02:00.0", .driver = "nvidia" };
	struct device virtio = { .addr = "0000:03:00.0", .driver = "virtio-pci" };
	char bound[64] = "";

	send_event("add@/devices/pci0000:00/0000:00:02.0/0000:02:00.0");
	send_event("bind@/devices/pci0000:00/0000:00:02.0/0000:02:00.1");
	devices_drain(ends[0], bound, sizeof(bound));
	TAP_STR(bound, "0000:02:00.1");
	TAP_CHECK(!device_is_ready(ROOT, &gpu, bound));
	send_event("bind@/devices/pci0000:00/0000:00:02.0/0000:02:00.0");
	send_event("bind@/devices/pci0000:00/0000:00:03.0/0000:03:00.0");
	devices_drain(ends[0], bound, sizeof(bound));
	TAP_STR(bound, "0000:02:00.1 0000:02:00.0 0000:03:00.0");
	TAP_CHECK(device_is_ready(ROOT, &gpu, bound));
	/* It is a bus, whose device may have no driver yet. */
	TAP_CHECK(!device_is_ready(ROOT, &virtio, bound));
}

/* Events that do not fit are left out, and nothing is written behind the end. */
static void many(void)
{
	struct { char bound[20], behind[4]; } s = { "", "end" };

	for (int i = 0; i < 3; i++)
		send_event("bind@/devices/0000:02:00.0");
	send_event("bind@");
	send_event("");
	send_event("bind@/");
	devices_drain(ends[0], s.bound, sizeof(s.bound));
	TAP_CHECK(!strncmp(s.bound, "0000:02:00.0", 12) && strlen(s.bound) < sizeof(s.bound));
	TAP_STR(s.behind, "end");
}

int main(void)
{
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
		return 1;
	tap_run(binds, "the end of a probe is noticed");
	tap_run(many, "events beyond what fits are left out");
	return tap_done();
}
