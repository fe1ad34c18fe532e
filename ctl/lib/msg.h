/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Netlink messages: build and parse them, and explain errors, without a socket.
 */
#ifndef LIBMGPU_MSG_H
#define LIBMGPU_MSG_H

#include <linux/netlink.h>

#include "mgpu.h"

struct nl_msg;

/* Build a request, or a @dump request, with room for @payload bytes of attributes. */
struct nl_msg *mgpu_msg_new(uint16_t family, uint8_t cmd, bool dump,
			    size_t payload);

/* Build the message of a batch; NULL if it is too large. */
struct nl_msg *mgpu_msg_set(uint16_t family,
			    const struct mgpu_vgpu_setting *set, size_t nr);

/* Build the message that changes a device; NULL when out of memory. */
struct nl_msg *mgpu_msg_dev_set(uint16_t family,
				const struct mgpu_dev_setting *set);

/* Build the messages that preempt and resume a context; NULL when out of memory. */
struct nl_msg *mgpu_msg_ctx_preempt(uint16_t family, uint32_t vgpu_id,
				    uint32_t ctx_id, uint32_t keep,
				    uint32_t method, bool hold);
struct nl_msg *mgpu_msg_ctx_resume(uint16_t family, uint32_t vgpu_id,
				   uint32_t ctx_id, bool first);

/* Fill @info from a message of the family; -EBADMSG if it is malformed. */
int mgpu_msg_parse(const struct nlmsghdr *nlh, const struct mgpu_field *fields,
		   void *info);

/**
 * struct mgpu_reply - answer to a request
 * @seq: sequence number of the request
 * @port: port of the socket
 * @request: the request, into which errors point
 * @message: called for each message of the family; returns 0, or -errno to stop
 * @arg: argument of @message
 * @err: sentence about an error, may be NULL
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

/* Process a datagram from the kernel. */
void mgpu_reply_feed(struct mgpu_reply *reply, const void *buf, size_t len);

#endif /* LIBMGPU_MSG_H */
