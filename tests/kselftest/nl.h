/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's generic netlink family, spoken by hand: tests send what a
 * well-behaved library would not.
 */
#ifndef KSELFTEST_NL_H
#define KSELFTEST_NL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../include/uapi/linux/mgpu.h"

struct nl {
	int fd;
	uint16_t family;
	uint32_t events;	/* multicast group */
	uint32_t seq;
	char text[256];		/* the last refusal's sentence, or "" */
	uint32_t text_off;	/* of the attribute that it is about, or 0 */
};

struct nl_msg {
	uint8_t *buf;
	size_t len;
	size_t cap;
};

struct nl_vgpu {
	uint32_t id;
	char uuid[40];
	char type[32];
	char dev_name[32];
	uint32_t dev_id;
	bool open;
	uint32_t tgid;
	uint32_t weight;
	uint32_t fps_limit;
	uint64_t mem_used;
	uint64_t mem_limit;
	uint64_t pinned;
	uint32_t width;
	uint32_t height;
	uint32_t charge_source;	/* ~0 when absent */
	uint64_t stats[MGPU_A_STATS_MAX + 1];
};

int nl_open(struct nl *nl);
void nl_close(struct nl *nl);
int nl_subscribe(struct nl *nl);

void nl_begin(struct nl *nl, struct nl_msg *m, uint8_t cmd, uint16_t flags);
void nl_put(struct nl_msg *m, uint16_t type, const void *data, size_t len);
void nl_put_u32(struct nl_msg *m, uint16_t type, uint32_t val);
void nl_put_str(struct nl_msg *m, uint16_t type, const char *s);
size_t nl_nest(struct nl_msg *m, uint16_t type);
void nl_nest_end(struct nl_msg *m, size_t at);
int nl_talk(struct nl *nl, struct nl_msg *m);	/* sends, frees, waits */

int nl_vgpu_get(struct nl *nl, const char *uuid, struct nl_vgpu *v);
int nl_vgpu_dump(struct nl *nl, struct nl_vgpu *v, unsigned int max);
int nl_vgpu_set(struct nl *nl, const char *uuid, int64_t weight,
		int64_t fps_limit);	/* -1: leave as it is */
/* Command of the next event, 0 when none comes in time. */
int nl_event(struct nl *nl, struct nl_vgpu *v, int timeout_ms);

/* One counter; all ones when the vGPU cannot be asked. */
uint64_t nl_stat(struct nl *nl, const char *uuid, unsigned int attr);

#endif /* KSELFTEST_NL_H */
