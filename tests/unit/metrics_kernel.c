// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <linux/genetlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "metrics_kernel.h"
#include "mgpu.h"

#define FAMILY		31
#define DATAGRAM	32768	/* of a dump */

struct metrics_kernel metrics_kernel = { .vgpus = 3 };

int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name);
ssize_t __real_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __real_recvmsg(int fd, struct msghdr *hdr, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *hdr, int flags);
int __wrap_recvmmsg(int fd, struct mmsghdr *hdrs, unsigned int nr, int flags,
		    struct timespec *timeout);

/* ---- datagrams to the program ---- */

struct datagram {
	struct datagram *next;
	size_t len;
	char bytes[];
};

static struct datagram *first, **last = &first;
static int netlink_fd = -1;

static void queue(const void *bytes, size_t len)
{
	struct datagram *d = malloc(sizeof(*d) + len);

	if (!d)
		abort();
	d->next = NULL;
	d->len = len;
	memcpy(d->bytes, bytes, len);
	*last = d;
	last = &d->next;
}

static size_t take(struct iovec *iov)
{
	struct datagram *d = first;
	size_t len = d->len;

	if (len > iov->iov_len)
		abort();
	memcpy(iov->iov_base, d->bytes, len);
	first = d->next;
	if (!first)
		last = &first;
	free(d);
	return len;
}

/* ---- messages ---- */

static struct nl_msg *message(const struct nlmsghdr *request, uint8_t cmd, int flags)
{
	struct nl_msg *msg = nlmsg_alloc_size(8192);

	if (!msg || !genlmsg_put(msg, request->nlmsg_pid, request->nlmsg_seq, FAMILY, 0, flags, cmd,
				 MGPU_FAMILY_VERSION))
		abort();
	return msg;
}

void metrics_kernel_uuid(char uuid[37], uint32_t id)
{
	snprintf(uuid, 37, "%08x-509f-382f-3c1e-e6bfe0fa1001", id);
}

static void put_dev(struct nl_msg *msg)
{
	nla_put_u32(msg, MGPU_A_DEV_ID, 0);
	nla_put_string(msg, MGPU_A_DEV_NAME, "mgpu_soft.0");
	nla_put_string(msg, MGPU_A_DEV_BACKEND, "soft");
	nla_put_u32(msg, MGPU_A_DEV_ENGINES, 2);
	nla_put_u8(msg, MGPU_A_DEV_ENGINE_ON_CPU, 1);
	nla_put_string(msg, MGPU_A_DEV_POLICY, "fair");
	nla_put_u32(msg, MGPU_A_DEV_VGPUS, metrics_kernel.vgpus);
	nla_put_u32(msg, MGPU_A_DEV_MAX_VGPUS, 4096);
	nla_put_u32(msg, MGPU_A_DEV_JOB_TIMEOUT, 4500);
	nla_put_u32(msg, MGPU_A_DEV_WAITING, 1);
	nla_put_u32(msg, MGPU_A_DEV_SLOTS, 2);
	nla_put_u32(msg, MGPU_A_DEV_HANG_LIMIT, 0);
}

static void put_stats(struct nl_msg *msg, uint32_t id)
{
	struct nlattr *stats = nla_nest_start(msg, MGPU_A_VGPU_STATS);

	for (int attr = MGPU_A_STATS_FRAMES; attr <= MGPU_A_STATS_MAX; attr++)
		if (!metrics_kernel.old ||
		    (attr != MGPU_A_STATS_HANGS && attr != MGPU_A_STATS_LOST))
			nla_put_u64(msg, attr, (uint64_t)attr * 1000000007 * id);
	nla_nest_end(msg, stats);
}

static void put_hist(struct nl_msg *msg, int attr, uint32_t id)
{
	uint64_t counts[MGPU_HIST_BUCKETS];

	for (uint32_t i = 0; i < MGPU_HIST_BUCKETS; i++)
		counts[i] = i % 5 * id;
	nla_put(msg, attr, sizeof(counts), counts);
}

/* The first vGPU is not limited, and not open. */
static void put_vgpu(struct nl_msg *msg, uint32_t id, bool hists)
{
	char uuid[37];

	metrics_kernel_uuid(uuid, id);
	nla_put_u32(msg, MGPU_A_VGPU_ID, id);
	nla_put_string(msg, MGPU_A_VGPU_UUID, uuid);
	nla_put_u32(msg, MGPU_A_VGPU_DEV_ID, 0);
	nla_put_string(msg, MGPU_A_VGPU_DEV_NAME, "mgpu_soft.0");
	nla_put_string(msg, MGPU_A_VGPU_TYPE, "medium-render");
	nla_put_u8(msg, MGPU_A_VGPU_OPEN, id > 1);
	if (id > 1)
		nla_put_u32(msg, MGPU_A_VGPU_TGID, (uint32_t)getpid());
	nla_put_u32(msg, MGPU_A_VGPU_WEIGHT, 100);
	nla_put_u32(msg, MGPU_A_VGPU_FPS_LIMIT, id > 1 ? 29970 : 0);
	nla_put_u32(msg, MGPU_A_VGPU_FPS_TARGET, 60000);
	nla_put_u32(msg, MGPU_A_VGPU_GPU_LIMIT, id > 1 ? 305000 : 0);
	nla_put_u32(msg, MGPU_A_VGPU_GPU_TARGET, 0);
	nla_put_u32(msg, MGPU_A_VGPU_GPU_PERIOD, 100000);
	nla_put_u32(msg, MGPU_A_VGPU_GPU_BURST, 0);
	nla_put_u64(msg, MGPU_A_VGPU_MEM_USED, 4096ull * id);
	nla_put_u64(msg, MGPU_A_VGPU_MEM_LIMIT, 64 << 20);
	nla_put_u64(msg, MGPU_A_VGPU_PINNED_PAGES, id);
	nla_put_u32(msg, MGPU_A_VGPU_QUARANTINE, id == 3);
	put_stats(msg, id);
	if (!hists || metrics_kernel.old || id == 1)
		return;
	put_hist(msg, MGPU_A_VGPU_FRAME_INTERVAL_HIST, id);
	put_hist(msg, MGPU_A_VGPU_LATENCY_HIST, id);
}

/* ---- answers ---- */

/* Add a message to a datagram of a dump, which is sent when it is full. */
static void pack(char *datagram, size_t *len, struct nl_msg *msg)
{
	const struct nlmsghdr *nlh = nlmsg_hdr(msg);

	if (*len + nlh->nlmsg_len > DATAGRAM) {
		queue(datagram, *len);
		*len = 0;
	}
	memcpy(datagram + *len, nlh, nlh->nlmsg_len);
	*len += NLMSG_ALIGN(nlh->nlmsg_len);
	nlmsg_free(msg);
}

static void dump(const struct nlmsghdr *request, uint8_t cmd)
{
	static char datagram[DATAGRAM];
	struct nlmsghdr done = *request;
	struct { struct nlmsghdr nlh; int error; } end = { .error = 0 };
	size_t len = 0;

	if (cmd == MGPU_CMD_DEV_GET) {
		struct nl_msg *msg = message(request, cmd, NLM_F_MULTI);

		put_dev(msg);
		pack(datagram, &len, msg);
	}
	for (uint32_t id = 1; cmd == MGPU_CMD_VGPU_GET && id <= metrics_kernel.vgpus; id++) {
		struct nl_msg *msg = message(request, cmd, NLM_F_MULTI);

		put_vgpu(msg, id, false);
		pack(datagram, &len, msg);
	}
	if (len)
		queue(datagram, len);
	done.nlmsg_len = sizeof(end);
	done.nlmsg_type = NLMSG_DONE;
	done.nlmsg_flags = NLM_F_MULTI;
	end.nlh = done;
	queue(&end, sizeof(end));
}

static void get(const struct nlmsghdr *request)
{
	struct nlattr *tb[MGPU_A_VGPU_MAX + 1];
	struct { struct nlmsghdr nlh; struct nlmsgerr e; } refusal = {
		.nlh = { .nlmsg_len = sizeof(refusal), .nlmsg_type = NLMSG_ERROR,
			 .nlmsg_seq = request->nlmsg_seq, .nlmsg_pid = request->nlmsg_pid },
		.e = { .error = -ENODEV, .msg = *request },
	};
	struct nl_msg *msg;
	uint32_t id;

	if (genlmsg_parse((struct nlmsghdr *)request, 0, tb, MGPU_A_VGPU_MAX, NULL) ||
	    !tb[MGPU_A_VGPU_ID])
		abort();
	id = nla_get_u32(tb[MGPU_A_VGPU_ID]);
	if (!id || id > metrics_kernel.vgpus || id == metrics_kernel.gone) {
		queue(&refusal, sizeof(refusal));
		return;
	}
	msg = message(request, MGPU_CMD_VGPU_GET, 0);
	put_vgpu(msg, id, true);
	queue(nlmsg_hdr(msg), nlmsg_hdr(msg)->nlmsg_len);
	nlmsg_free(msg);
}

/* ---- the socket ---- */

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name)
{
	(void)sock;
	(void)name;
	return metrics_kernel.unloaded ? -NLE_OBJ_NOTFOUND : FAMILY;
}

ssize_t __wrap_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	uint64_t begin = cpu_ns();
	const struct nlmsghdr *nlh = buf;
	int left = (int)len;

	if (!to || to->sa_family != AF_NETLINK)
		return __real_sendto(fd, buf, len, flags, to, to_len);
	netlink_fd = fd;
	metrics_kernel.calls++;
	for (; NLMSG_OK(nlh, left); nlh = NLMSG_NEXT(nlh, left)) {
		uint8_t cmd = genlmsg_hdr((struct nlmsghdr *)nlh)->cmd;

		metrics_kernel.requests++;
		if (nlh->nlmsg_flags & NLM_F_DUMP)
			dump(nlh, cmd);
		else
			get(nlh);
	}
	metrics_kernel.ns += cpu_ns() - begin;
	return (ssize_t)len;
}

static size_t deliver(struct msghdr *hdr)
{
	const struct sockaddr_nl from = { .nl_family = AF_NETLINK };

	memcpy(hdr->msg_name, &from, sizeof(from));
	hdr->msg_flags = 0;
	return take(hdr->msg_iov);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *hdr, int flags)
{
	uint64_t begin = cpu_ns();
	size_t len;

	if (fd != netlink_fd || !first)
		return __real_recvmsg(fd, hdr, flags);
	metrics_kernel.calls++;
	len = deliver(hdr);
	metrics_kernel.ns += cpu_ns() - begin;
	return (ssize_t)len;
}

int __wrap_recvmmsg(int fd, struct mmsghdr *hdrs, unsigned int nr, int flags,
		    struct timespec *timeout)
{
	uint64_t begin = cpu_ns();
	unsigned int i;

	(void)flags;
	(void)timeout;
	if (fd != netlink_fd || !first)
		abort();
	metrics_kernel.calls++;
	for (i = 0; i < nr && first; i++)
		hdrs[i].msg_len = (unsigned int)deliver(&hdrs[i].msg_hdr);
	metrics_kernel.ns += cpu_ns() - begin;
	return (int)i;
}
