/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages as bytes: built, taken apart and explained without a socket.
 */
#ifndef LIBMGPU_MSG_H
#define LIBMGPU_MSG_H

#include <linux/netlink.h>

#include "mgpu.h"

struct nl_msg;

/* A request; @dump or not, with room for @payload bytes of attributes. */
struct nl_msg *mgpu_msg_new(uint16_t family, uint8_t cmd, bool dump,
			    size_t payload);

/* The message of a batch, or NULL if it cannot be that large. */
struct nl_msg *mgpu_msg_set(uint16_t family,
			    const struct mgpu_vgpu_setting *set, size_t nr);

/* The message that changes a device, or NULL for want of memory. */
struct nl_msg *mgpu_msg_dev_set(uint16_t family,
				const struct mgpu_dev_setting *set);

/* Those that take slots from a context and give them back; NULL as above. */
struct nl_msg *mgpu_msg_ctx_preempt(uint16_t family, uint32_t vgpu_id,
				    uint32_t ctx_id, uint32_t keep,
				    uint32_t method, bool hold);
struct nl_msg *mgpu_msg_ctx_resume(uint16_t family, uint32_t vgpu_id,
				   uint32_t ctx_id, bool first);

/* Fill @info from a message of the family; -EBADMSG if it is malformed. */
int mgpu_msg_parse(const struct nlmsghdr *nlh, const struct mgpu_field *fields,
		   void *info);

/**
 * struct mgpu_reply - what came in answer to one request
 * @seq: of the request
 * @port: ours
 * @request: the request, which errors point into
 * @message: called for each message of the family; -errno stops
 * @arg: for it
 * @err: where a sentence goes, may be NULL
 * @done: the answer is complete
 * @interrupted: the list changed while it was sent
 * @explained: the kernel refused with a sentence of its own
 * @result: of the request; 0, or -errno
 */
struct mgpu_reply {
	uint32_t seq;
	uint32_t port;
	const struct nlmsghdr *request;
	int (*message)(const struct nlmsghdr *nlh, void *arg);
	void *arg;
	struct mgpu_error *err;
	bool done;
	bool interrupted;
	bool explained;
	int result;
};

/* Work through one datagram from the kernel. */
void mgpu_reply_feed(struct mgpu_reply *reply, const void *buf, size_t len);

#endif /* LIBMGPU_MSG_H */
