// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpuctl on contexts and vGPUs, all of it but the kernel and mgpud: what it asks, what it
 * prints of the answers, and how it says what to do about a refusal.  The kernel is made
 * of the wrapped functions below; it refuses what the module refuses, in its words.  mgpud
 * is a thread with a state of the test's.
 *
 * With words on the command line it is gpuctl on that kernel, for other tests.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <json-c/json.h>
#include <linux/genetlink.h>
#include <netlink/attr.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "gpuctl.h"
#include "mgpud_client.h"
#include "sysfs.h"
#include "tap.h"
#include "top_sample.h"

#define FAMILY	31
#define UUID_A	"83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"
#define UUID_B	"12345678-509f-382f-3c1e-e6bfe0fa1002"
#define UUID_C	"93b8f4f2-509f-382f-3c1e-e6bfe0fa1003"

/* ---- the kernel ---- */

enum { GRP_NOTIFY = 1, GRP_EVENTS, GRP_CONTEXTS };

struct datagram {
	struct datagram *next;
	size_t len;
	char bytes[];
};

static struct {
	bool unloaded;
	bool no_vgpus;
	bool mgpud_is_real;	/* as a program: it is waited for */
	bool forbidden;		/* gpuctl has no CAP_NET_ADMIN */
	bool before_contexts;	/* an older module */
	unsigned int groups;	/* joined */
	struct datagram *queue;
	struct datagram **tail;
	uint32_t port;
	uint32_t seq;
	struct timespec now;
	bool stops;		/* SIGTERM comes when gpuctl is about to wait */

	uint32_t slots;
	unsigned int requests;
	unsigned int dev_sets;	/* requests of a kind */
	unsigned int vgpu_sets;
	unsigned int removals;	/* a vGPU goes before as many of these requests */
	uint32_t weight[3];
	uint32_t fps_limit[3];	/* of each vGPU, as the following */
	uint32_t fps_target[3];
	uint8_t open[3];
	uint32_t tgid[3];
	uint32_t quarantine[3];
	uint64_t frames[3];
	uint64_t frames_per_second[3];
	uint64_t gpu_ns[3];
	uint64_t gpu_ns_per_second[3];
	uint64_t held_ns[3];
	uint64_t held_ns_per_second[3];
	uint64_t hist[3][MGPU_HIST_BUCKETS];
	bool in_real_time;	/* as a program with a screen: waiting takes time */
	struct mgpu_ctx ctxs[8];
	size_t nr_ctxs;
	uint64_t inst_per_second[8];
	uint64_t engine_ns_per_second[8];
	struct mgpu_ctx_order order;	/* the last one */
	uint8_t order_cmd;
} kernel;

static const struct vgpu {
	uint32_t id;
	uint32_t dev_id;
	const char *uuid;
	const char *type;
} vgpus[] = {
	{ 1, 0, UUID_A, "medium-render" },
	{ 2, 0, UUID_B, "small" },
	{ 3, 1, UUID_C, "large-render" },
};

#define NR_VGPUS	(sizeof(vgpus) / sizeof(vgpus[0]))
#define ENGINES		4

static void queue(const void *bytes, size_t len)
{
	struct datagram *datagram = malloc(sizeof(*datagram) + len);

	if (!datagram)
		abort();
	datagram->next = NULL;
	datagram->len = len;
	memcpy(datagram->bytes, bytes, len);
	*kernel.tail = datagram;
	kernel.tail = &datagram->next;
}

static void queue_msg(struct nl_msg *msg)
{
	queue(nlmsg_hdr(msg), nlmsg_hdr(msg)->nlmsg_len);
	nlmsg_free(msg);
}

static struct nl_msg *answer(uint8_t cmd, int flags)
{
	struct nl_msg *msg = nlmsg_alloc();

	if (!msg || !genlmsg_put(msg, kernel.port, kernel.seq, FAMILY, 0, flags,
				 cmd, MGPU_FAMILY_VERSION))
		abort();
	return msg;
}

static void put_ctx(struct nl_msg *msg, const struct mgpu_ctx *c)
{
	nla_put_u32(msg, MGPU_A_CTX_VGPU_ID, c->vgpu_id);
	nla_put_u32(msg, MGPU_A_CTX_ID, c->id);
	nla_put_u32(msg, MGPU_A_CTX_DEV_ID, c->dev_id);
	nla_put_string(msg, MGPU_A_CTX_NAME, c->name);
	nla_put_u32(msg, MGPU_A_CTX_STATE, c->state);
	if (*c->op)
		nla_put_string(msg, MGPU_A_CTX_OP, c->op);
	nla_put_u32(msg, MGPU_A_CTX_SLOTS, c->slots);
	nla_put_u32(msg, MGPU_A_CTX_SLOTS_ALLOWED, c->slots_allowed);
	nla_put_u32(msg, MGPU_A_CTX_SLOTS_WANTED, c->slots_wanted);
	nla_put_u32(msg, MGPU_A_CTX_QUEUED, c->queued);
	nla_put_u8(msg, MGPU_A_CTX_IDEMPOTENT, c->idempotent);
	nla_put_u64(msg, MGPU_A_CTX_JOB_INST, c->job_inst);
	nla_put_u64(msg, MGPU_A_CTX_JOB_INST_DONE, c->job_inst_done);
	nla_put_u64(msg, MGPU_A_CTX_JOBS, c->jobs);
	nla_put_u64(msg, MGPU_A_CTX_INST, c->inst);
	nla_put_u64(msg, MGPU_A_CTX_ENGINE_NS, c->engine_ns);
	nla_put_u64(msg, MGPU_A_CTX_PREEMPTIONS, c->preemptions);
}

static void put_vgpu(struct nl_msg *msg, const struct vgpu *v)
{
	struct nlattr *stats;

	nla_put_u32(msg, MGPU_A_VGPU_ID, v->id);
	nla_put_string(msg, MGPU_A_VGPU_UUID, v->uuid);
	nla_put_u32(msg, MGPU_A_VGPU_DEV_ID, v->dev_id);
	nla_put_string(msg, MGPU_A_VGPU_DEV_NAME, v->dev_id ? "mgpu_soft.1" : "mgpu_soft.0");
	nla_put_string(msg, MGPU_A_VGPU_TYPE, v->type);
	nla_put_u8(msg, MGPU_A_VGPU_OPEN, kernel.open[v - vgpus]);
	if (kernel.open[v - vgpus])
		nla_put_u32(msg, MGPU_A_VGPU_TGID, kernel.tgid[v - vgpus]);
	nla_put_u32(msg, MGPU_A_VGPU_FPS_LIMIT, kernel.fps_limit[v - vgpus]);
	nla_put_u32(msg, MGPU_A_VGPU_FPS_TARGET, kernel.fps_target[v - vgpus]);
	nla_put_u32(msg, MGPU_A_VGPU_QUARANTINE, kernel.quarantine[v - vgpus]);
	stats = nla_nest_start(msg, MGPU_A_VGPU_STATS);
	nla_put_u64(msg, MGPU_A_STATS_FRAMES, kernel.frames[v - vgpus]);
	nla_put_u64(msg, MGPU_A_STATS_ENGINE_NS, kernel.gpu_ns[v - vgpus]);
	nla_put_u64(msg, MGPU_A_STATS_THROTTLED_NS, kernel.held_ns[v - vgpus]);
	nla_nest_end(msg, stats);
}

static void put_dev(struct nl_msg *msg, uint32_t id)
{
	nla_put_u32(msg, MGPU_A_DEV_ID, id);
	nla_put_string(msg, MGPU_A_DEV_NAME, id ? "mgpu_soft.1" :
		       "mgpu_soft.0");
	nla_put_u32(msg, MGPU_A_DEV_ENGINES, id ? 1 : ENGINES);
	nla_put_string(msg, MGPU_A_DEV_POLICY, "weighted");
	if (!kernel.before_contexts)
		nla_put_u32(msg, MGPU_A_DEV_SLOTS, id ? 1 : kernel.slots);
}

/* An acknowledgment, or a refusal that is about an attribute of the request. */
static void finish(const struct nlmsghdr *request, int code, const char *text,
		   const struct nlattr *attr)
{
	bool dump = request->nlmsg_flags & NLM_F_DUMP;
	struct nlmsgerr e = { .error = code, .msg = *request };
	struct nl_msg *msg;

	/* an answer without an error needs no acknowledgement that was not asked for */
	if (!dump && !code && !(request->nlmsg_flags & NLM_F_ACK))
		return;
	msg = nlmsg_alloc();
	if (!msg || !nlmsg_put(msg, kernel.port, kernel.seq,
			       dump ? NLMSG_DONE : NLMSG_ERROR, 0,
			       NLM_F_CAPPED | (text ? NLM_F_ACK_TLVS : 0)))
		abort();
	if (nlmsg_append(msg, &e, dump ? sizeof(e.error) : sizeof(e),
			 NLMSG_ALIGNTO))
		abort();
	if (text)
		nla_put_string(msg, NLMSGERR_ATTR_MSG, text);
	if (attr)
		nla_put_u32(msg, NLMSGERR_ATTR_OFFS,
			    (uint32_t)((const char *)attr -
				       (const char *)request));
	queue_msg(msg);
}

static const struct vgpu *find_vgpu(const struct nlattr *id,
				    const struct nlattr *uuid)
{
	size_t i;

	for (i = 0; i < NR_VGPUS; i++)
		if (id ? nla_get_u32(id) == vgpus[i].id :
		    !strcasecmp(nla_get_string(uuid), vgpus[i].uuid))
			return &vgpus[i];
	return NULL;
}

static struct mgpu_ctx *find_ctx(uint32_t vgpu_id, uint32_t id)
{
	size_t i;

	for (i = 0; i < kernel.nr_ctxs; i++)
		if (kernel.ctxs[i].vgpu_id == vgpu_id &&
		    kernel.ctxs[i].id == id)
			return &kernel.ctxs[i];
	return NULL;
}

static void serve_dev(const struct nlmsghdr *request, struct nlattr **tb)
{
	struct nl_msg *msg;
	uint32_t id;

	if (tb[MGPU_A_DEV_ID] && nla_get_u32(tb[MGPU_A_DEV_ID]) > 1) {
		finish(request, -ENODEV, "no device has it", NULL);
		return;
	}
	for (id = 0; id < 2; id++) {
		if (tb[MGPU_A_DEV_ID] && nla_get_u32(tb[MGPU_A_DEV_ID]) != id)
			continue;
		msg = answer(MGPU_CMD_DEV_GET, NLM_F_MULTI);
		put_dev(msg, id);
		queue_msg(msg);
	}
	finish(request, 0, NULL, NULL);
}

static void serve_vgpu(const struct nlmsghdr *request, struct nlattr **tb)
{
	bool dump = request->nlmsg_flags & NLM_F_DUMP;
	const struct vgpu *only = NULL;
	struct nl_msg *msg;
	size_t i;

	if (!dump) {
		only = find_vgpu(tb[MGPU_A_VGPU_ID], tb[MGPU_A_VGPU_UUID]);
		if (!only) {
			finish(request, -ENODEV, "no vGPU has it", NULL);
			return;
		}
	}
	for (i = 0; i < NR_VGPUS; i++) {
		if (kernel.no_vgpus || (only && only != &vgpus[i]))
			continue;
		msg = answer(MGPU_CMD_VGPU_GET, NLM_F_MULTI);
		put_vgpu(msg, &vgpus[i]);
		if (!dump && kernel.hist[i][0] != UINT64_MAX)
			nla_put(msg, MGPU_A_VGPU_FRAME_INTERVAL_HIST, sizeof(kernel.hist[i]),
				kernel.hist[i]);
		queue_msg(msg);
	}
	finish(request, 0, NULL, NULL);
}

/* All entries are known, or none is carried out. */
static void serve_vgpu_set(const struct nlmsghdr *request)
{
	struct nlattr *first = nlmsg_attrdata(request, GENL_HDRLEN), *nla;
	int len = nlmsg_attrlen(request, GENL_HDRLEN), rem, step;

	kernel.vgpu_sets++;
	if (kernel.removals) {
		kernel.removals--;
		finish(request, -ENODEV, "no vGPU has this uuid: list them", first);
		return;
	}
	for (step = 0; step < 2; step++) {
		nla_for_each_attr(nla, first, len, rem) {
			struct nlattr *tb[MGPU_A_VGPU_MAX + 1];
			const struct vgpu *v;

			TAP_EQ(nla_type(nla), MGPU_A_BATCH_VGPU);
			if (nla_parse_nested(tb, MGPU_A_VGPU_MAX, nla, NULL) < 0)
				abort();
			v = find_vgpu(tb[MGPU_A_VGPU_ID], tb[MGPU_A_VGPU_UUID]);
			if (!v) {
				finish(request, -ENODEV, "no vGPU has it: list them", nla);
				return;
			}
			if (step && tb[MGPU_A_VGPU_WEIGHT])
				kernel.weight[v - vgpus] = nla_get_u32(tb[MGPU_A_VGPU_WEIGHT]);
			if (step && tb[MGPU_A_VGPU_FPS_LIMIT])
				kernel.fps_limit[v - vgpus] =
					nla_get_u32(tb[MGPU_A_VGPU_FPS_LIMIT]);
		}
	}
	finish(request, 0, NULL, NULL);
}

static void serve_ctx_get(const struct nlmsghdr *request, struct nlattr **tb)
{
	struct nlattr *vgpu = tb[MGPU_A_CTX_VGPU_ID];
	struct nlattr *id = tb[MGPU_A_CTX_ID];
	struct nl_msg *msg;
	size_t found = 0;
	size_t i;

	for (i = 0; i < kernel.nr_ctxs; i++) {
		const struct mgpu_ctx *c = &kernel.ctxs[i];

		if ((vgpu && nla_get_u32(vgpu) != c->vgpu_id) ||
		    (id && nla_get_u32(id) != c->id))
			continue;
		msg = answer(MGPU_CMD_CTX_GET, NLM_F_MULTI);
		put_ctx(msg, c);
		queue_msg(msg);
		found++;
	}
	if (id && !found)
		finish(request, -ENOENT, "no context has it: list them", id);
	else
		finish(request, 0, NULL, NULL);
}

static void serve_order(const struct nlmsghdr *request, uint8_t cmd,
			struct nlattr **tb)
{
	struct mgpu_ctx_order *order = &kernel.order;
	struct mgpu_ctx *c;

	memset(order, 0, sizeof(*order));
	order->vgpu_id = nla_get_u32(tb[MGPU_A_CTX_VGPU_ID]);
	order->id = nla_get_u32(tb[MGPU_A_CTX_ID]);
	kernel.order_cmd = cmd;
	c = find_ctx(order->vgpu_id, order->id);
	if (!c) {
		finish(request, -ENOENT, "no context has it: list them",
		       tb[MGPU_A_CTX_ID]);
		return;
	}
	if (cmd == MGPU_CMD_CTX_RESUME) {
		order->first = nla_get_u8(tb[MGPU_A_CTX_FIRST]);
		c->state = MGPU_CTX_STATE_RUNNING;
		c->slots = c->slots_wanted;
		finish(request, 0, NULL, NULL);
		return;
	}
	order->slots = nla_get_u32(tb[MGPU_A_CTX_SLOTS]);
	order->method = nla_get_u32(tb[MGPU_A_CTX_METHOD]);
	order->hold = nla_get_u8(tb[MGPU_A_CTX_HOLD]);
	if (order->method == MGPU_PREEMPT_METHOD_FLUSH && !c->idempotent) {
		finish(request, -EOPNOTSUPP, "its job cannot begin anew",
		       tb[MGPU_A_CTX_ID]);
		return;
	}
	c->state = order->hold ? MGPU_CTX_STATE_HELD :
				 MGPU_CTX_STATE_PREEMPTED;
	c->slots = order->slots;
	finish(request, 0, NULL, NULL);
}

static void serve(const struct nlmsghdr *request)
{
	const struct genlmsghdr *genl = NLMSG_DATA(request);
	struct nlattr *tb[MGPU_A_CTX_MAX + 1];

	kernel.requests++;
	kernel.seq = request->nlmsg_seq;
	kernel.port = request->nlmsg_pid;
	if (kernel.unloaded) {
		finish(request, -ENOENT, NULL, NULL);
		return;
	}
	if (kernel.forbidden) {
		finish(request, -EPERM, NULL, NULL);
		return;
	}
	if (genl->cmd == MGPU_CMD_VGPU_SET) {
		serve_vgpu_set(request);
		return;
	}
	if (nlmsg_parse((struct nlmsghdr *)(uintptr_t)request, GENL_HDRLEN, tb,
			MGPU_A_CTX_MAX, NULL) < 0)
		abort();
	switch (genl->cmd) {
	case MGPU_CMD_DEV_GET:
		serve_dev(request, tb);
		return;
	case MGPU_CMD_VGPU_GET:
		serve_vgpu(request, tb);
		return;
	case MGPU_CMD_DEV_SET:
		kernel.dev_sets++;
		if (tb[MGPU_A_DEV_SLOTS]) {
			if (nla_get_u32(tb[MGPU_A_DEV_SLOTS]) > ENGINES) {
				finish(request, -ERANGE,
				       "slots is 1 to the device's number of engines",
				       NULL);
				return;
			}
			kernel.slots = nla_get_u32(tb[MGPU_A_DEV_SLOTS]);
		}
		finish(request, 0, NULL, NULL);
		return;
	}
	if (kernel.before_contexts) {
		finish(request, -EOPNOTSUPP, NULL, NULL);
		return;
	}
	if (genl->cmd == MGPU_CMD_CTX_GET)
		serve_ctx_get(request, tb);
	else if (genl->cmd == MGPU_CMD_CTX_PREEMPT ||
		 genl->cmd == MGPU_CMD_CTX_RESUME)
		serve_order(request, genl->cmd, tb);
	else
		abort();
}

/* Replacements that the linker uses for the functions without __wrap_. */
int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name);
int __wrap_genl_ctrl_resolve_grp(struct nl_sock *sock, const char *family,
				 const char *group);
int __wrap_nl_socket_add_membership(struct nl_sock *sock, int group);
ssize_t __wrap_sendto(int fd, const void *buf, size_t len, int flags,
		      const struct sockaddr *to, socklen_t to_len);
ssize_t __wrap_recvmsg(int fd, struct msghdr *hdr, int flags);
int __wrap_recvmmsg(int fd, struct mmsghdr *hdrs, unsigned int nr, int flags,
		    struct timespec *timeout);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		 const sigset_t *mask);
int __real_ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		 const sigset_t *mask);

int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name)
{
	(void)sock;
	TAP_STR(name, MGPU_FAMILY_NAME);
	return FAMILY;
}

int __wrap_genl_ctrl_resolve_grp(struct nl_sock *sock, const char *family,
				 const char *group)
{
	(void)sock;
	if (!strcmp(family, "nlctrl") && !strcmp(group, "notify"))
		return GRP_NOTIFY;
	TAP_STR(family, MGPU_FAMILY_NAME);
	if (!strcmp(group, "events"))
		return GRP_EVENTS;
	if (!strcmp(group, "contexts") && !kernel.before_contexts)
		return GRP_CONTEXTS;
	return -NLE_OBJ_NOTFOUND;
}

int __wrap_nl_socket_add_membership(struct nl_sock *sock, int group)
{
	(void)sock;
	kernel.groups |= 1u << group;
	return 0;
}

ssize_t __wrap_sendto(int fd, const void *buf, size_t len, int flags,
		      const struct sockaddr *to, socklen_t to_len)
{
	const struct nlmsghdr *nlh = buf;
	int left = (int)len;

	(void)fd;
	(void)flags;
	(void)to;
	(void)to_len;
	for (; NLMSG_OK(nlh, left); nlh = NLMSG_NEXT(nlh, left))
		serve(nlh);
	return (ssize_t)len;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *hdr, int flags)
{
	struct datagram *datagram = kernel.queue;
	size_t len;

	if (!datagram) {
		if (fcntl(fd, F_GETFL) & O_NONBLOCK || flags & MSG_DONTWAIT) {
			errno = EAGAIN;
			return -1;
		}
		tap_diag("gpuctl waits for what nobody sends");
		abort();
	}
	kernel.queue = datagram->next;
	if (!kernel.queue)
		kernel.tail = &kernel.queue;
	len = datagram->len;
	if (len > hdr->msg_iov->iov_len)
		abort();
	memcpy(hdr->msg_iov->iov_base, datagram->bytes, len);
	free(datagram);
	hdr->msg_flags = 0;
	return (ssize_t)len;
}

int __wrap_recvmmsg(int fd, struct mmsghdr *hdrs, unsigned int nr, int flags,
		    struct timespec *timeout)
{
	unsigned int i = 0;

	(void)timeout;
	do
		hdrs[i].msg_len = (unsigned int)__wrap_recvmsg(fd, &hdrs[i].msg_hdr, flags);
	while (++i < nr && kernel.queue);
	return (int)i;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = kernel.now;
	return 0;
}

/* Time is what is waited; contexts work meanwhile. */
int __wrap_ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		 const sigset_t *mask)
{
	size_t i;

	if (kernel.mgpud_is_real && !timeout)
		return __real_ppoll(fds, nr, timeout, mask);
	if (kernel.stops) {
		raise(SIGTERM);
		return __real_ppoll(fds, nr, timeout, mask);
	}
	if (!timeout) {
		tap_diag("gpuctl waits for what nobody sends");
		abort();
	}
	if (kernel.in_real_time) {
		/* a second takes a tenth of one; keys take no time */
		uint64_t ns = ((uint64_t)timeout->tv_sec * 1000000000 +
			       (uint64_t)timeout->tv_nsec) / 10;
		struct timespec tenth = {
			.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000),
		};
		int ret = __real_ppoll(fds, nr, &tenth, mask);

		if (ret)
			return ret;
	}
	kernel.now.tv_sec += timeout->tv_sec;
	kernel.now.tv_nsec += timeout->tv_nsec;
	if (kernel.now.tv_nsec >= 1000000000) {
		kernel.now.tv_nsec -= 1000000000;
		kernel.now.tv_sec++;
	}
	for (i = 0; i < NR_VGPUS; i++) {
		uint64_t seconds = (uint64_t)timeout->tv_sec;

		kernel.frames[i] += kernel.frames_per_second[i] * seconds;
		kernel.gpu_ns[i] += kernel.gpu_ns_per_second[i] * seconds;
		kernel.held_ns[i] += kernel.held_ns_per_second[i] * seconds;
		kernel.hist[i][14] += kernel.frames_per_second[i] * seconds;
		kernel.hist[i][16] += kernel.frames_per_second[i] * seconds / 50;
	}
	for (i = 0; i < kernel.nr_ctxs; i++) {
		kernel.ctxs[i].inst += kernel.inst_per_second[i] *
				       (uint64_t)timeout->tv_sec;
		kernel.ctxs[i].engine_ns += kernel.engine_ns_per_second[i] *
					    (uint64_t)timeout->tv_sec;
	}
	return 0;
}

static void start(void)
{
	static const struct mgpu_ctx ctxs[] = {
		{ .vgpu_id = 1, .id = 1, .name = "training", .op = "matmul",
		  .state = MGPU_CTX_STATE_RUNNING, .slots = 2,
		  .slots_allowed = 4, .slots_wanted = 4, .queued = 3,
		  .job_inst = 1000, .job_inst_done = 375, .jobs = 17,
		  .preemptions = 5, .inst = 1000000 },
		{ .vgpu_id = 1, .id = 4000000000u,
		  .name = "a name as long as a screen is wide, nearly",
		  .op = "mandelbrot", .state = MGPU_CTX_STATE_PREEMPTED,
		  .slots_wanted = 1, .queued = 1, .idempotent = 1,
		  .job_inst = 3, .job_inst_done = 1 },
		{ .vgpu_id = 3, .id = 1, .dev_id = 1, .name = "" },
	};

	while (kernel.queue) {
		struct datagram *next = kernel.queue->next;

		free(kernel.queue);
		kernel.queue = next;
	}
	memset(&kernel, 0, sizeof(kernel));
	kernel.tail = &kernel.queue;
	kernel.slots = ENGINES;
	kernel.now.tv_sec = 1000;
	memcpy(kernel.ctxs, ctxs, sizeof(ctxs));
	kernel.nr_ctxs = sizeof(ctxs) / sizeof(ctxs[0]);
}

/* ---- gpuctl ---- */

static char out[65536];
static char complaint[65536];

static void capture(int fd, FILE **file, int *old)
{
	*file = tmpfile();
	*old = dup(fd);
	if (!*file || *old < 0 || dup2(fileno(*file), fd) < 0)
		abort();
}

static void release(int fd, FILE *file, int old, char *text, size_t size)
{
	size_t len;

	if (dup2(old, fd) < 0)
		abort();
	close(old);
	rewind(file);
	len = fread(text, 1, size - 1, file);
	text[len] = '\0';
	fclose(file);
}

/* Run gpuctl with words up to NULL; its output is in out and complaint. */
static int gpuctl(const char *word, ...)
{
	char *argv[16] = { NULL };
	FILE *files[2];
	int olds[2];
	int argc = 0;
	va_list ap;
	int status;
	int i;

	/* copies, since it takes options apart in place */
	argv[argc++] = strdup("gpuctl");
	va_start(ap, word);
	for (; word && argc < 15; word = va_arg(ap, const char *))
		argv[argc++] = strdup(word);
	va_end(ap);

	fflush(stdout);
	capture(STDOUT_FILENO, &files[0], &olds[0]);
	capture(STDERR_FILENO, &files[1], &olds[1]);
	/* it moves the words when it takes the options out */
	{
		char *words[16];

		memcpy(words, argv, sizeof(words));
		status = gpuctl_main(argc, words);
	}
	fflush(stdout);
	release(STDOUT_FILENO, files[0], olds[0], out, sizeof(out));
	release(STDERR_FILENO, files[1], olds[1], complaint,
		sizeof(complaint));
	for (i = 0; i < argc; i++)
		free(argv[i]);
	return status;
}

static void refused(int status, int want_status, const char *want)
{
	TAP_EQ(status, want_status);
	TAP_STR(out, "");
	if (!TAP_CHECK(strstr(complaint, want)))
		tap_diag("says '%s', nothing like '%s'", complaint, want);
}

static void says(const char *text)
{
	if (!TAP_CHECK(strstr(out, text)))
		tap_diag("prints '%s', nothing like '%s'", out, text);
}

/* Return the printed JSON; the caller puts it. */
static struct json_object *parsed(void)
{
	struct json_object *object = json_tokener_parse(out);

	if (!object) {
		tap_diag("no JSON: '%s'", out);
		abort();
	}
	return object;
}

static struct json_object *get(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (!TAP_CHECK(json_object_object_get_ex(object, key, &value)))
		tap_diag("no key '%s'", key);
	return value;
}

/* The same for a list under @key, of the format's version. */
static struct json_object *parsed_list(const char *key)
{
	struct json_object *object = parsed();
	struct json_object *list = json_object_get(get(object, key));

	TAP_EQ(json_object_get_int(get(object, "version")), MGPU_JSON_VERSION);
	json_object_put(object);
	return list;
}

static void lists(void)
{
	struct json_object *list;

	start();
	TAP_EQ(gpuctl("ctx", "list", NULL), 0);
	TAP_STR(out,
		"VGPU         CTX  STATE      OP          SLOTS  DONE%  QUEUED  JOBS  PREEMPTED  NAME\n"
		"   1           1  running    matmul        2/4   37.5       3    17          5  training\n"
		"   1  4000000000  preempted  mandelbrot    0/1   33.3       1     0          0  a name as long as a screen is wide, nearly\n"
		"   3           1  idle       -               -      -       0     0          0  -\n");
	TAP_STR(complaint, "");

	TAP_EQ(gpuctl("-j", "ctx", "list", NULL), 0);
	list = parsed_list("contexts");
	TAP_EQ(json_object_array_length(list), 3);
	TAP_STR(json_object_get_string(get(json_object_array_get_idx(list, 1),
					   "state")), "preempted");
	json_object_put(list);
}

static void lists_some(void)
{
	struct json_object *list;

	start();
	TAP_EQ(gpuctl("-j", "ctx", "list", "vgpu", "83b8f4f2", NULL), 0);
	list = parsed_list("contexts");
	TAP_EQ(json_object_array_length(list), 2);
	json_object_put(list);
	TAP_EQ(gpuctl("-j", "ctx", "list", "dev", "mgpu_soft.1", NULL), 0);
	list = parsed_list("contexts");
	TAP_NEED(json_object_array_length(list) == 1);
	TAP_EQ(json_object_get_int(get(json_object_array_get_idx(list, 0),
				       "vgpu_id")), 3);
	json_object_put(list);

	/* none of a vGPU that could have some */
	kernel.nr_ctxs = 2;
	TAP_EQ(gpuctl("-j", "ctx", "list", "vgpu", "3", NULL), 0);
	TAP_STR(out, "{\"version\":1,\"contexts\":[]}\n");
	TAP_EQ(gpuctl("ctx", "list", "dev", "1", NULL), 0);
	says("VGPU  CTX  STATE");

	refused(gpuctl("ctx", "list", "vgpu", "9", NULL), 1, "no vGPU has it");
	refused(gpuctl("ctx", "list", "dev", "hard", NULL), 1,
		"no device is named 'hard'");
}

static void tells_type(int status)
{
	refused(status, 1,
		"gpuctl: vGPU 2 has no contexts, since its type, small, has none: create one of a type whose name ends in -render, such as small-render\n");
}

static void tells_types(void)
{
	start();
	tells_type(gpuctl("ctx", "list", "vgpu", "2", NULL));
	tells_type(gpuctl("ctx", "show", "2", "1", NULL));
	tells_type(gpuctl("ctx", "preempt", UUID_B, "1", NULL));
	tells_type(gpuctl("ctx", "resume", "12345678-", "1", NULL));
	/* of a type with contexts it is the module's word */
	refused(gpuctl("ctx", "show", "1", "2", NULL), 1,
		"gpuctl: id 2: no context has it: list them\n");
	refused(gpuctl("ctx", "resume", "3", "9", NULL), 1,
		"gpuctl: id 9: no context has it: list them\n");
}

static void shows(void)
{
	struct json_object *ctx;

	start();
	TAP_EQ(gpuctl("ctx", "show", "1", "4000000000", NULL), 0);
	says("\nid:                  4000000000\n");
	says("\nname:                a name as long as a screen is wide, nearly\n");
	says("\nidempotent:          yes\n");
	TAP_EQ(gpuctl("-j", "ctx", "show", UUID_A, "1", NULL), 0);
	ctx = parsed();
	TAP_STR(json_object_get_string(get(ctx, "op")), "matmul");
	TAP_EQ(json_object_get_int(get(ctx, "job_inst_done")), 375);
	TAP_CHECK(!get(ctx, "switch_s"));
	json_object_put(ctx);
}

static void preempts(void)
{
	const struct mgpu_ctx_order *order = &kernel.order;
	struct json_object *ctx;

	start();
	TAP_EQ(gpuctl("ctx", "preempt", "83b8f4f2", "1", NULL), 0);
	TAP_STR(out, "");
	TAP_EQ(kernel.order_cmd, MGPU_CMD_CTX_PREEMPT);
	TAP_EQ(order->vgpu_id, 1);
	TAP_EQ(order->id, 1);
	TAP_EQ(order->slots, 0);
	TAP_EQ(order->method, MGPU_PREEMPT_METHOD_SWITCH);
	TAP_EQ(order->hold, 0);

	TAP_EQ(gpuctl("-j", "ctx", "preempt", "1", "1", "hold", "keep", "1",
		      "method", "drain", NULL), 0);
	TAP_EQ(order->slots, 1);
	TAP_EQ(order->method, MGPU_PREEMPT_METHOD_DRAIN);
	TAP_EQ(order->hold, 1);
	/* in JSON, what became of it */
	ctx = parsed();
	TAP_STR(json_object_get_string(get(ctx, "state")), "held");
	TAP_EQ(json_object_get_int(get(ctx, "slots")), 1);
	json_object_put(ctx);

	TAP_EQ(gpuctl("ctx", "preempt", "1", "4000000000", "method", "flush",
		      "keep", "0", NULL), 0);
	TAP_EQ(order->method, MGPU_PREEMPT_METHOD_FLUSH);
	TAP_EQ(order->id, 4000000000u);
	refused(gpuctl("ctx", "preempt", "1", "1", "method", "flush", NULL), 1,
		"gpuctl: id 1: its job cannot begin anew\n");

	TAP_EQ(gpuctl("ctx", "resume", "1", "1", "first", NULL), 0);
	TAP_EQ(kernel.order_cmd, MGPU_CMD_CTX_RESUME);
	TAP_EQ(order->first, 1);
	TAP_EQ(gpuctl("ctx", "resume", "1", "4000000000", NULL), 0);
	TAP_EQ(order->first, 0);
	TAP_EQ(order->id, 4000000000u);
}

static void sets_slots(void)
{
	start();
	TAP_EQ(gpuctl("dev", "set", "mgpu_soft.0", "slots", "3", NULL), 0);
	TAP_EQ(kernel.slots, 3);
	TAP_EQ(gpuctl("dev", "show", "0", NULL), 0);
	says("\nslots:               3\n");
	TAP_EQ(gpuctl("dev", "list", NULL), 0);
	says("ID  NAME         BACKEND  ENGINES  SLOTS  ON-CPU  POLICY");
	says(" 0  mgpu_soft.0                 4      3  no      weighted");
	TAP_EQ(kernel.dev_sets, 1);
	/* none is set if none is found */
	refused(gpuctl("dev", "set", "9", "slots", "2", NULL), 1, "no device has it");
	refused(gpuctl("dev", "set", "hard", "slots", "2", NULL), 1,
		"no device is named 'hard'");
	TAP_EQ(kernel.dev_sets, 1);
	/* how many it takes, only the kernel knows */
	refused(gpuctl("dev", "set", "0", "slots", "5", NULL), 1,
		"slots is 1 to the device's number of engines");
	TAP_EQ(kernel.slots, 3);
	/* of a module that does not say them */
	kernel.before_contexts = true;
	TAP_EQ(gpuctl("dev", "list", NULL), 0);
	says(" 0  mgpu_soft.0                 4      -  no      weighted");
}

static void shows_top(void)
{
	const char *at;

	start();
	kernel.inst_per_second[0] = 12345678;
	kernel.slots = 2;
	/* as large as a guest's driver counts */
	kernel.ctxs[1].id = 65535;
	TAP_EQ(gpuctl("top", "-n", "1", "-d", "10", NULL), 0);
	says("mgpu_soft.0: policy weighted, 0 of 0 vGPUs wait for 4 engines, jobs at once: 2\n");
	says("mgpu_soft.1: policy weighted, 0 of 0 vGPUs wait for 1 engine\n");
	says("\n\n"
	     "VGPU    CTX  STATE      OP          SLOTS  DONE%  WORK/S  QUEUED  NAME\n"
	     "   1      1  running    matmul        2/4   37.5   12.3M       3  training\n"
	     "   1  65535  preempted  mandelbrot    0/1   33.3    0.00       1  a name as lo\n"
	     "   3      1  idle       -               -      -    0.00       0  -\n");
	for (at = strstr(out, "\nVGPU  "); at && at[1]; at = strchr(at + 1, '\n'))
		TAP_CHECK(strcspn(at + 1, "\n") <= 80);

	/* without contexts it is as it was */
	kernel.nr_ctxs = 0;
	TAP_EQ(gpuctl("top", "-n", "1", NULL), 0);
	TAP_CHECK(!strstr(out, "WORK/S"));
	kernel.before_contexts = true;
	TAP_EQ(gpuctl("top", "-n", "1", NULL), 0);
	says("CHARGED-BY");
	TAP_CHECK(!strstr(out, "WORK/S"));
	TAP_CHECK(!strstr(out, "jobs at once"));
}

static void shows_top_json(void)
{
	struct json_object *object;
	struct json_object *list;
	struct json_object *ctx;

	start();
	kernel.inst_per_second[0] = 12345678;
	kernel.engine_ns_per_second[0] = 2000000000;
	TAP_EQ(gpuctl("-j", "top", "-n", "1", "-d", "2", NULL), 0);
	object = parsed();
	list = get(object, "contexts");
	TAP_NEED(json_object_array_length(list) == 3);
	ctx = json_object_array_get_idx(list, 0);
	TAP_NEAR(json_object_get_double(get(ctx, "inst_per_s")), 12345700, 1);
	/* two of four engines */
	TAP_NEAR(json_object_get_double(get(ctx, "gpu_share")), 0.5, 1e-9);
	TAP_NEAR(json_object_get_double(get(ctx, "progress")), 0.375, 1e-9);
	TAP_STR(json_object_get_string(get(ctx, "state")), "running");
	TAP_CHECK(!get(json_object_array_get_idx(list, 2), "progress"));
	TAP_EQ(json_object_get_int(get(json_object_array_get_idx(get(object,
								     "devs"),
								 0),
				       "slots")), ENGINES);
	json_object_put(object);
}

/* A context that counts less than before is another one. */
static void tells_contexts_apart(void)
{
	struct json_object *object;

	start();
	kernel.inst_per_second[0] = UINT64_MAX;	/* one less each second */
	TAP_EQ(gpuctl("-j", "top", "-n", "1", NULL), 0);
	object = parsed();
	TAP_CHECK(!get(json_object_array_get_idx(get(object, "contexts"), 0),
		       "inst_per_s"));
	json_object_put(object);
}

#define MANY	1000

static size_t entries_read;	/* of arrays of JSON */

struct json_object *__real_json_object_array_get_idx(const struct json_object *array, size_t i);
struct json_object *__wrap_json_object_array_get_idx(const struct json_object *array, size_t i);

struct json_object *__wrap_json_object_array_get_idx(const struct json_object *array, size_t i)
{
	entries_read++;
	return __real_json_object_array_get_idx(array, i);
}

/* The list of mgpud is that of another moment: one vGPU more, so that no index is the same. */
static void finds_states(void)
{
	static struct mgpu_vgpu_info many[MANY];
	struct sample now = { .vgpus = many, .nr = MANY }, before = { 0 };
	struct json_object *list = json_object_new_array();
	struct rates rates;
	size_t i;

	now.control.state = json_object_new_object();
	json_object_object_add(now.control.state, "vgpus", list);
	for (i = 0; i <= MANY; i++) {
		struct json_object *entry = json_object_new_object();
		char uuid[MGPU_UUID_LEN];

		/* not in the order of UUIDs */
		snprintf(uuid, sizeof(uuid), "%08zx-0000-4000-8000-000000000000", i * 7919 % MANY);
		if (i)
			strcpy(many[i - 1].uuid, uuid);
		json_object_object_add(entry, "uuid", json_object_new_string(i ? uuid : "gone"));
		json_object_object_add(entry, "cpu_share", json_object_new_double((double)i));
		json_object_array_add(list, entry);
	}
	entries_read = 0;
	TAP_EQ(sample_sort_states(&now, NULL), 0);
	for (i = 0; i < MANY; i++) {
		get_rates(&rates, &now, &before, i);
		TAP_CHECK(rates.told);
		TAP_EQ((size_t)rates.cpu, i + 1);
	}
	TAP_CHECK(entries_read <= MANY + 1);
	strcpy(many[0].uuid, "none");
	get_rates(&rates, &now, &before, 0);
	TAP_CHECK(!rates.told);
	json_object_put(now.control.state);
	free(now.states);
}

/* A vGPU that counts less than before was created anew, with its UUID. */
static void tells_vgpus_apart(void)
{
	struct json_object *object;
	struct json_object *list;

	start();
	kernel.frames[0] = 1000;
	kernel.frames_per_second[0] = UINT64_MAX;	/* one less each second */
	kernel.frames_per_second[1] = 60;
	TAP_EQ(gpuctl("-j", "top", "-n", "1", NULL), 0);
	object = parsed();
	list = get(object, "vgpus");
	TAP_NEED(json_object_array_length(list) == NR_VGPUS);
	TAP_CHECK(!get(json_object_array_get_idx(list, 0), "fps"));
	TAP_NEAR(json_object_get_double(get(json_object_array_get_idx(list, 1), "fps")), 60,
		 1e-9);
	json_object_put(object);
}

static void queue_events(void)
{
	struct nl_msg *msg;

	kernel.seq = 0;
	kernel.port = 0;
	msg = answer(MGPU_CMD_VGPU_ADDED_NTF, 0);
	put_vgpu(msg, &vgpus[0]);
	queue_msg(msg);
	msg = answer(MGPU_CMD_CTX_NTF, 0);
	put_ctx(msg, &kernel.ctxs[0]);
	queue_msg(msg);
}

static void monitors(void)
{
	struct json_object *object;

	start();
	queue_events();
	TAP_EQ(gpuctl("monitor", "contexts", "-n", "2", NULL), 0);
	TAP_EQ(kernel.groups, 1u << GRP_NOTIFY | 1u << GRP_EVENTS |
	       1u << GRP_CONTEXTS);
	says(" added   vgpu 1 " UUID_A);
	says(" ctx     vgpu 1 ctx 1 running op matmul slots 2/4 queued 3 name training\n");

	start();
	queue_events();
	TAP_EQ(gpuctl("-j", "monitor", "contexts", "-n", "2", NULL), 0);
	TAP_NEED(strchr(out, '\n'));
	memmove(out, strchr(out, '\n') + 1, strlen(strchr(out, '\n')));
	object = parsed();
	TAP_STR(json_object_get_string(get(object, "event")), "ctx-ntf");
	TAP_EQ(json_object_get_int(get(get(object, "ctx"), "queued")), 3);
	TAP_CHECK(!json_object_object_get_ex(object, "vgpu", NULL));
	json_object_put(object);

	/* only when asked for */
	start();
	queue_events();
	TAP_EQ(gpuctl("monitor", "-n", "1", NULL), 0);
	TAP_EQ(kernel.groups, 1u << GRP_NOTIFY | 1u << GRP_EVENTS);
}

/* ---- mgpud ---- */

static struct {
	int listener;
	char path[64];
	const char *state;	/* NULL: it does not answer */
	unsigned int clients;	/* so far */
	pthread_t thread;
} mgpud;

/* Answer each request of each client with the state. */
static void *serve_states(void *arg)
{
	char request[4096], *line;
	int fd;

	(void)arg;
	while ((fd = accept(mgpud.listener, NULL, NULL)) >= 0) {
		ssize_t n;

		mgpud.clients++;
		while ((n = read(fd, request, sizeof(request))) > 0) {
			if (!mgpud.state || request[n - 1] != '\n')
				continue;
			if (asprintf(&line, "{\"ok\":true,\"state\":%s}\n", mgpud.state) < 0 ||
			    write(fd, line, strlen(line)) < 0)
				abort();
			free(line);
		}
		close(fd);
	}
	return NULL;
}

static void mgpud_begin(const char *state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	mgpud.state = state;
	mgpud.clients = 0;
	snprintf(mgpud.path, sizeof(mgpud.path), "/tmp/test_gpuctl_ctx.%d", getpid());
	strcpy(addr.sun_path, mgpud.path);
	mgpud.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	TAP_NEED(!bind(mgpud.listener, (struct sockaddr *)&addr, sizeof(addr)));
	TAP_NEED(!listen(mgpud.listener, 4));
	setenv("MGPUD_SOCKET", mgpud.path, 1);
	TAP_NEED(!pthread_create(&mgpud.thread, NULL, serve_states, NULL));
}

static void mgpud_end(void)
{
	shutdown(mgpud.listener, SHUT_RDWR);
	pthread_join(mgpud.thread, NULL);
	close(mgpud.listener);
	unlink(mgpud.path);
	setenv("MGPUD_SOCKET", "/nonexistent/mgpud.sock", 1);
}

#define STATE(age, more)							\
	"{\"version\":1,\"release\":\"0.1.0\",\"pid\":812,\"allocator\":\"exact\","	\
	"\"period_s\":1,\"dry_run\":false,\"charge_source\":\"bpf\","		\
	"\"sample_age_s\":" age "," more						\
	"\"preempt\":{\"policy\":\"mgpu\",\"watched\":true,\"bpf\":true,"		\
	"\"contexts\":3,\"waiting\":1},"						\
	"\"vgpus\":[{\"uuid\":\"" UUID_A "\",\"target_fps\":29.5},"			\
	"{\"uuid\":\"" UUID_B "\",\"target_fps\":null}]}"

/* ---- what is stale ---- */

static void check_stale(bool a, bool b)
{
	const bool want[] = { a, b, false };
	struct json_object *list;
	char text[64];
	size_t i;

	TAP_EQ(gpuctl("-j", "vgpu", "list", NULL), 0);
	list = parsed_list("vgpus");
	for (i = 0; i < 3; i++)
		TAP_EQ(json_object_get_boolean(get(json_object_array_get_idx(list, i),
						   "target_stale")), want[i]);
	json_object_put(list);
	TAP_EQ(gpuctl("-j", "top", "-n", "1", NULL), 0);
	list = parsed_list("vgpus");
	for (i = 0; i < 3; i++)
		TAP_EQ(json_object_get_boolean(get(json_object_array_get_idx(list, i),
						   "target_stale")), want[i]);
	json_object_put(list);
	for (i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "%zu", i + 1);
		TAP_EQ(gpuctl("vgpu", "show", text, NULL), 0);
		TAP_EQ(!!strstr(out, "\ntarget-stale:        yes: mgpud"), want[i]);
	}
	TAP_EQ(gpuctl("vgpu", "list", NULL), 0);
	TAP_EQ(!!strstr(out, "30 stale"), a);
	TAP_EQ(!!strstr(out, "60 stale"), b);
	TAP_EQ(gpuctl("top", "-n", "1", NULL), 0);
	TAP_EQ(!!strstr(out, "30 stale"), a);
	TAP_EQ(!!strstr(out, "60 stale"), b);
}

static void is(struct json_object *object, const char *key, const char *want)
{
	TAP_STR(json_object_to_json_string_ext(get(object, key), JSON_C_TO_STRING_PLAIN), want);
}

static void shows_stale(void)
{
	struct json_object *list;

	start();
	kernel.fps_target[0] = 30000;
	kernel.fps_target[1] = 60000;

	mgpud_begin(STATE("0.4", ""));
	check_stale(false, false);
	mgpud_end();
	mgpud_begin(STATE("4.5", ""));
	check_stale(true, true);
	TAP_EQ(gpuctl("-j", "top", "-n", "1", NULL), 0);
	list = parsed_list("vgpus");
	is(json_object_array_get_idx(list, 0), "target_fps", "29.5");
	is(json_object_array_get_idx(list, 1), "target_fps", "null");
	TAP_CHECK(!json_object_object_get_ex(json_object_array_get_idx(list, 2), "target_fps",
					     NULL));
	json_object_put(list);
	TAP_EQ(gpuctl("top", "-n", "1", NULL), 0);
	says("mgpud: allocator exact, last sample 4.5 s ago: targets are stale\n");
	mgpud_end();
	/* an older mgpud does not tell the age */
	mgpud_begin("{\"allocator\":\"exact\",\"period_ms\":1000}");
	check_stale(false, false);
	mgpud_end();
	/* none */
	check_stale(true, true);
	says("; mgpud does not run\n");
	/* top has the limit in force, and an operator's is never stale */
	kernel.fps_limit[0] = 15000;
	kernel.fps_limit[1] = 60000;
	kernel.fps_limit[2] = 20000;
	kernel.fps_target[2] = 10000;
	TAP_EQ(gpuctl("top", "-n", "1", NULL), 0);
	says(" 15  ");
	says(" 60  ");
	says(" 10 stale  ");
	TAP_CHECK(!strstr(out, "15 stale"));
	TAP_CHECK(!strstr(out, "60 stale"));
}

static void shows_stale_unanswered(void)
{
	start();
	/* without a target it is not asked */
	mgpud_begin(NULL);
	TAP_EQ(gpuctl("vgpu", "list", NULL), 0);
	mgpud_end();
	TAP_EQ(mgpud.clients, 0);
	kernel.fps_target[0] = 30000;
	mgpud_begin(NULL);
	TAP_EQ(gpuctl("vgpu", "show", "1", NULL), 0);
	says("\ntarget-stale:        yes: mgpud does not answer\n");
	TAP_EQ(gpuctl("top", "-n", "1", NULL), 0);
	says("; mgpud does not answer\n");
	says("  30 stale  ");
	mgpud_end();
}

/* ---- settings of several vGPUs ---- */

static void check_weights(uint32_t a, uint32_t b, uint32_t c)
{
	TAP_EQ(kernel.weight[0], a);
	TAP_EQ(kernel.weight[1], b);
	TAP_EQ(kernel.weight[2], c);
}

static void sets_all(void)
{
	start();
	TAP_EQ(gpuctl("vgpu", "set", "all", "weight", "5", "fps", "30", NULL), 0);
	check_weights(5, 5, 5);
	TAP_EQ(kernel.fps_limit[2], 30000);
	TAP_EQ(kernel.vgpu_sets, 1);
	/* lists, and further entries, are in the same request */
	TAP_EQ(gpuctl("vgpu", "set", "1,12345678-", "weight", "6", UUID_C, "weight", "7", NULL),
	       0);
	check_weights(6, 6, 7);
	TAP_EQ(kernel.vgpu_sets, 2);
	refused(gpuctl("vgpu", "set", "1,9", "weight", "8", NULL), 1, "no vGPU has it");
	refused(gpuctl("vgpu", "set", "1,abc", "weight", "8", NULL), 1,
		"no vGPU has a UUID that begins with 'abc'");
	refused(gpuctl("vgpu", "set", "1,,2", "weight", "8", NULL), 1, "'' names no vGPU");
	check_weights(6, 6, 7);
}

/* A vGPU that is removed meanwhile is not one of all; a vGPU that is named is missed. */
static void sets_all_that_stay(void)
{
	start();
	kernel.removals = 2;
	TAP_EQ(gpuctl("vgpu", "set", "all", "weight", "5", NULL), 0);
	check_weights(5, 5, 5);
	TAP_EQ(kernel.vgpu_sets, 3);
	kernel.removals = 1;
	refused(gpuctl("vgpu", "set", "1,2", "weight", "6", NULL), 1, "no vGPU has this uuid");
	check_weights(5, 5, 5);
	kernel.removals = UINT32_MAX;
	refused(gpuctl("vgpu", "set", "all", "weight", "6", NULL), 1, "no vGPU has this uuid");
}

static void sets_all_of_none(void)
{
	start();
	kernel.no_vgpus = true;
	refused(gpuctl("vgpu", "set", "all", "weight", "5", NULL), 1, "there are no vGPUs to set");
	TAP_EQ(kernel.vgpu_sets, 0);
}

/* ---- status ---- */

/* A folder in place of /. */
static char root[64];

/* The path of a file below the root, until the next call. */
static const char *below_root(const char *path)
{
	static char text[256];

	snprintf(text, sizeof(text), "%s/%s", root, path);
	return text;
}

static void put_bytes(const char *path, const char *bytes, size_t len)
{
	char name[256], *slash;
	FILE *file;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	for (slash = name + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(name, 0700);
		*slash = '/';
	}
	file = fopen(name, "w");
	TAP_NEED(file);
	TAP_EQ(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

/* A file under /sys. */
static void put_file(const char *path, const char *text)
{
	char name[256];

	snprintf(name, sizeof(name), "sys/%s", path);
	put_bytes(name, text, strlen(text));
}

/* The first line of a file, "" if there is none. */
static const char *file_text(const char *path)
{
	static char text[128];
	char name[256];

	snprintf(name, sizeof(name), "%s/%s", root, path);
	read_line(name, text, sizeof(text));
	return text;
}

static int remove_file(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void root_end(void)
{
	nftw(root, remove_file, 8, FTW_DEPTH | FTW_PHYS);
	gpuctl_root = "";
}

static void root_begin(void)
{
	strcpy(root, "/tmp/test_gpuctl_ctx.XXXXXX");
	TAP_NEED(mkdtemp(root));
	gpuctl_root = root;
	put_file("module/mgpu/version", "1.2\n");
	put_file("module/mgpu/holders/mgpu_virtio", "");
	put_file("module/mgpu/holders/mgpu_soft", "");
	put_file("kernel/btf/vmlinux", "");
	put_file("kernel/btf/mgpu", "");
	put_file("kernel/btf/mgpu_soft", "");
	put_file("kernel/btf/mgpu_virtio", "");
}

static void tells_all_is_well(void)
{
	struct json_object *object;

	start();
	root_begin();
	kernel.open[1] = 1;
	kernel.fps_target[0] = 30000;
	mgpud_begin(STATE("0.4", "\"bpf\":true,\"trouble\":[],"));
	TAP_EQ(gpuctl("status", NULL), 0);
	TAP_STR(out,
		"module      ok      mgpu 1.2 with mgpu_soft, mgpu_virtio; mgpu_soft.0 (4 engines, policy weighted), mgpu_soft.1 (1 engine, policy weighted)\n"
		"btf         ok      of the kernel, and of mgpu, mgpu_soft, mgpu_virtio\n"
		"ebpf        ok      the accounting programs are attached; engine time is charged by eBPF\n"
		"mgpud       ok      allocator exact, period 1 s\n"
		"sample      ok      0.4 s old\n"
		"vgpus       ok      3, of which 1 open\n"
		"preemption  ok      policy mgpu: 3 contexts, 1 waiting\n");
	TAP_STR(complaint, "");
	TAP_EQ(gpuctl("-j", "status", NULL), 0);
	object = parsed();
	TAP_CHECK(json_object_get_boolean(get(object, "ok")));
	TAP_EQ(json_object_get_int(get(get(object, "mgpud"), "pid")), 812);
	TAP_EQ(json_object_get_int(get(get(object, "vgpus"), "open")), 1);
	TAP_STR(json_object_get_string(get(get(object, "module"), "release")), "1.2");
	json_object_put(object);
	mgpud_end();

	/* an mgpud that is older than gpuctl is no fault */
	mgpud_begin("{\"version\":\"0.1.0\",\"bpf\":true,\"allocator\":\"none\",\"period_ms\":500}");
	TAP_EQ(gpuctl("status", NULL), 0);
	says("\nmgpud       ok      allocator none, period 0.5 s\n");
	says("\nsample      ok      mgpud does not tell its age, as it is older than this program\n");
	mgpud_end();
	mgpud_begin(STATE("null", "\"bpf\":true,"));
	TAP_EQ(gpuctl("status", NULL), 0);
	says("\nsample      ok      mgpud has not measured yet\n");
	mgpud_end();
	root_end();
}

#define TROUBLE "\"trouble\":[\"The disk is full: make room.\",\"mgpu.ko has no BTF.\"],"

static void tells_what_to_do(void)
{
	struct json_object *object;

	start();
	root_begin();
	kernel.quarantine[1] = 1;
	kernel.fps_target[0] = 30000;
	kernel.fps_target[2] = 30000;
	mgpud_begin(STATE("4.5", "\"bpf\":false," TROUBLE));
	TAP_EQ(gpuctl("status", NULL), EXIT_NOT_OK);
	says("\nebpf        not ok  the accounting programs are not attached, and the module charges engine time itself: mgpu.ko has no BTF.\n");
	says("\nmgpud       not ok  allocator exact, period 1 s; The disk is full: make room.; mgpu.ko has no BTF.\n");
	says("\nsample      not ok  4.5 s old, more than 3 periods: mgpud does not measure; see its log, and restart it; 2 vGPUs keep a target that is not updated: ");
	says("\nvgpus       not ok  3, of which 0 open, 1 in quarantine: find out why the guest of vGPU 2 hangs the GPU, then run 'gpuctl vgpu set 2 quarantine off'\n");
	TAP_EQ(gpuctl("status", "-j", NULL), EXIT_NOT_OK);
	object = parsed();
	TAP_CHECK(!json_object_get_boolean(get(object, "ok")));
	TAP_EQ(json_object_array_length(get(get(object, "mgpud"), "trouble")), 2);
	TAP_CHECK(json_object_get_boolean(get(get(object, "module"), "ok")));
	json_object_put(object);
	mgpud_end();

	/* without mgpud */
	TAP_EQ(gpuctl("status", NULL), EXIT_NOT_OK);
	says("\nmgpud       not ok  mgpud does not run ");
	says(" 2 vGPUs keep a target that is not updated: start mgpud, or take it away with 'gpuctl vgpu set all target none'\n");
	says("\npreemption  not ok  contexts are preempted by hand only");
	/* a policy without contexts to look at */
	mgpud_begin("{\"bpf\":true,\"preempt\":{\"policy\":\"drain\",\"watched\":false}}");
	TAP_EQ(gpuctl("status", NULL), EXIT_NOT_OK);
	says("\npreemption  not ok  policy drain is not in force, since mgpud watches no contexts: ");
	mgpud_end();
	mgpud_begin(NULL);
	TAP_EQ(gpuctl("status", NULL), EXIT_NOT_OK);
	says("\nmgpud       not ok  mgpud does not answer: see its log, and restart it\n");
	mgpud_end();
	root_end();
}

static void tells_missing_parts(void)
{
	start();
	root_begin();
	mgpud_begin(STATE("0.4", "\"bpf\":true,"));
	unlink(below_root("sys/kernel/btf/mgpu_soft"));
	TAP_EQ(gpuctl("status", NULL), EXIT_NOT_OK);
	says("\nbtf         not ok  mgpu_soft has no BTF, which eBPF accounting needs: build it with pahole");
	unlink(below_root("sys/kernel/btf/vmlinux"));
	TAP_EQ(gpuctl("status", NULL), EXIT_NOT_OK);
	says("\nbtf         not ok  the kernel has no BTF, which eBPF accounting needs: boot one with CONFIG_DEBUG_INFO_BTF\n");
	start();
	kernel.unloaded = true;
	TAP_EQ(gpuctl("status", NULL), EXIT_NOT_OK);
	says("module      not ok  mgpu is not loaded: run 'modprobe mgpu_soft', or ");
	mgpud_end();
	root_end();

	/* an error of gpuctl is another status */
	refused(gpuctl("status", "now", NULL), EXIT_USAGE, "status takes no 'now'");
	start();
	kernel.forbidden = true;
	refused(gpuctl("status", NULL), EXIT_FAILED, "not permitted");
}

#define STOP_SECONDS	10

/* A signal between the last look at it and the wait is not slept through. */
static void ends_monitor(void)
{
	start();
	kernel.stops = true;
	TAP_EQ(gpuctl("monitor", NULL), 0);
	TAP_STR(out, "");
}

static void ends_top(void)
{
	start();
	kernel.stops = true;
	TAP_EQ(gpuctl("top", "-d", "3600", NULL), 0);
	TAP_STR(out, "");
}

/* mgpud, before the end of a period: it says nothing. */
static void *serve_watch(void *arg)
{
	const int *listener = arg;
	int fd = accept(*listener, NULL, NULL);
	char request[256];

	while (read(fd, request, sizeof(request)) > 0)
		;
	close(fd);
	return NULL;
}

static void ends_watch(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	pthread_t thread;
	int listener;

	start();
	kernel.stops = true;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/test_gpuctl_ctx.%d", getpid());
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	TAP_NEED(!bind(listener, (struct sockaddr *)&addr, sizeof(addr)));
	setenv("MGPUD_SOCKET", addr.sun_path, 1);
	TAP_NEED(!listen(listener, 1));
	TAP_NEED(!pthread_create(&thread, NULL, serve_watch, &listener));
	TAP_EQ(gpuctl("ctl", "watch", NULL), 0);
	pthread_join(thread, NULL);
	close(listener);
	unlink(addr.sun_path);
}

#define PUT_BYTES(path, text)	put_bytes(path, text, sizeof(text))
#define TYPES	"class/mdev_bus/mgpu_soft.0/mdev_supported_types/"
#define MEDIUM	TYPES "mgpu_soft-medium/create"
#define REMOVE(uuid)	"bus/mdev/devices/" uuid "/remove"

static void devices_begin(void)
{
	start();
	root_begin();
	put_file(TYPES "mgpu_soft-small/create", "");
	put_file(TYPES "mgpu_soft-small-render/create", "");
	put_file(MEDIUM, "");
	put_file(TYPES "mgpu_soft-medium-render/create", "");
	put_file(REMOVE(UUID_A), "");
	put_file(REMOVE(UUID_B), "");
	put_file(REMOVE(UUID_C), "");
	PUT_BYTES("run/x", "");
}

static void creates(void)
{
	struct json_object *object;

	devices_begin();
	TAP_EQ(gpuctl("vgpu", "create", "mgpu_soft.0", "medium", "uuid", UUID_A, NULL), 0);
	TAP_STR(out, UUID_A "\n");
	TAP_STR(file_text("sys/" MEDIUM), UUID_A);
	TAP_EQ(kernel.vgpu_sets, 0);
	TAP_STR(file_text("run/mgpu/names/" UUID_A), "");

	/* by whole name and ID, with a name and settings */
	TAP_EQ(gpuctl("-j", "vgpu", "create", "0", "mgpu_soft-medium", "weight", "7", "uuid",
		      UUID_A, "fps", "30", "name", "desk 1", NULL), 0);
	object = parsed();
	TAP_STR(json_object_get_string(get(object, "name")), "desk 1");
	TAP_STR(json_object_get_string(get(object, "uuid")), UUID_A);
	TAP_EQ(json_object_get_int(get(object, "limit_fps")), 30);
	json_object_put(object);
	TAP_EQ(kernel.weight[0], 7);
	TAP_EQ(kernel.fps_limit[0], 30000);
	TAP_STR(file_text("run/mgpu/names/" UUID_A), "desk 1");
	TAP_STR(file_text("sys/" REMOVE(UUID_A)), "");
	/* the kernel has a UUID in lower case, and so have the files named after it */
	TAP_EQ(gpuctl("vgpu", "create", "0", "medium", "uuid",
		      "83B8F4F2-509F-382F-3C1E-E6BFE0FA1001", "name", "desk 2", NULL), 0);
	TAP_STR(file_text("sys/" MEDIUM), UUID_A);
	TAP_STR(file_text("run/mgpu/names/" UUID_A), "desk 2");
	/* a name is not the next vGPU's */
	TAP_EQ(gpuctl("vgpu", "create", "0", "medium", "uuid", UUID_A, NULL), 0);
	TAP_STR(file_text("run/mgpu/names/" UUID_A), "");
	root_end();
}

/* A pipe in place of sysfs, full until the name is there: only then is the UUID written. */
static void *drain_when_named(void *arg)
{
	const int *pipe = arg;
	char bytes[4096], name[64] = "";

	for (int i = 0; i < 200 && strcmp(name, "desk 1"); i++) {
		usleep(10000);
		vgpu_name_read(root, UUID_A, name);
	}
	TAP_STR(name, "desk 1");
	while (read(*pipe, bytes, sizeof(bytes)) > 0)
		;
	return NULL;
}

static void creates_named(void)
{
	pthread_t thread;
	int pipe;

	devices_begin();
	TAP_EQ(unlink(below_root("sys/" MEDIUM)), 0);
	TAP_EQ(mkfifo(below_root("sys/" MEDIUM), 0600), 0);
	pipe = open(below_root("sys/" MEDIUM), O_RDWR | O_NONBLOCK | O_CLOEXEC);
	TAP_NEED(pipe >= 0);
	while (write(pipe, "", 1) == 1)
		;
	TAP_NEED(!pthread_create(&thread, NULL, drain_when_named, &pipe));
	TAP_EQ(gpuctl("vgpu", "create", "0", "medium", "uuid", UUID_A, "name", "desk 1", NULL), 0);
	pthread_join(thread, NULL);
	close(pipe);
	root_end();
}

static void creates_or_not(void)
{
	devices_begin();
	refused(gpuctl("vgpu", "create", "mgpu_hard.0", "medium", NULL), 1,
		"no device is named 'mgpu_hard.0'");
	refused(gpuctl("vgpu", "create", "0", "meduim", NULL), 1, "has no type 'meduim'");
	refused(gpuctl("vgpu", "create", "0", "mgpu_soft-smal", NULL), 1,
		"did you mean 'mgpu_soft-small'?");
	/* two types end so */
	refused(gpuctl("vgpu", "create", "0", "render", NULL), 1, "has no type 'render'");
	refused(gpuctl("vgpu", "create", "0", "../medium", NULL), 1, "has no type");
	refused(gpuctl("vgpu", "create", "0", NULL), 2, "name a device and a type");
	refused(gpuctl("vgpu", "create", "0", "weight", "7", NULL), 2, "name a device and a type");
	refused(gpuctl("vgpu", "create", "0", "small", "uuid", "1", NULL), 2, "give a UUID");
	refused(gpuctl("vgpu", "create", "0", "small", "uuid",
		       "83b8f4f2-509f-382f-3c1e_e6bfe0fa1001", NULL), 2, "give a UUID");
	refused(gpuctl("vgpu", "create", "0", "small", "name", "a\033b", NULL), 2, "printable");
	refused(gpuctl("vgpu", "create", "0", "small", "fps", "0", NULL), 2, "fps 0: give");
	refused(gpuctl("vgpu", "create", "0", "small", "fsp", "3", NULL), 2, "did you mean 'fps'");
	refused(gpuctl("vgpu", "create", "0", "small", "name", "a", "name", "b", NULL), 2,
		"duplicate name");
	TAP_STR(file_text("sys/" TYPES "mgpu_soft-small/create"), "");

	/* a vGPU that cannot be set does not stay */
	kernel.removals = 1;
	refused(gpuctl("vgpu", "create", "0", "small", "uuid", UUID_B, "name", "b", "fps", "30",
		       NULL), 1, "no vGPU has this uuid");
	TAP_STR(file_text("sys/" TYPES "mgpu_soft-small/create"), UUID_B);
	TAP_STR(file_text("sys/" REMOVE(UUID_B)), "1");
	TAP_STR(file_text("run/mgpu/names/" UUID_B), "");

	/* the name of a vGPU that is there, and that no other can be created for, stays */
	PUT_BYTES("run/mgpu/names/" UUID_A, "desk 1\n");
	TAP_EQ(unlink(below_root("sys/" MEDIUM)), 0);
	refused(gpuctl("vgpu", "create", "0", "medium", "uuid", UUID_A, "name", "other", NULL), 1,
		"cannot create a mgpu_soft-medium");
	TAP_STR(file_text("run/mgpu/names/" UUID_A), "desk 1");
	root_end();
}

/* A UUID that is made: version 4, and another each time. */
static void makes_uuids(void)
{
	char first[64];

	devices_begin();
	/* the kernel's list has no such vGPU, so that it is removed again */
	TAP_EQ(gpuctl("vgpu", "create", "0", "medium", NULL), 1);
	strcpy(first, file_text("sys/" MEDIUM));
	TAP_EQ(strlen(first), 36);
	TAP_EQ(first[14], '4');
	TAP_CHECK(strchr("89ab", first[19]));
	TAP_EQ(gpuctl("vgpu", "create", "0", "medium", NULL), 1);
	TAP_CHECK(strcmp(first, file_text("sys/" MEDIUM)) != 0);
	root_end();
}

static void removes(void)
{
	devices_begin();
	PUT_BYTES("run/mgpu/names/" UUID_A, "desk 1\n");
	kernel.open[1] = 1;
	kernel.tgid[1] = 812;
	PUT_BYTES("proc/812/cmdline", "qemu\0-name\0guest=web\0");
	refused(gpuctl("vgpu", "remove", "all", NULL), 1,
		"vGPU " UUID_B " is open, by process 812 (VM web): shut the VM down first, or say 'force'");
	refused(gpuctl("vgpu", "remove", "1,9", NULL), 1, "no vGPU has");
	refused(gpuctl("vgpu", "remove", "1,83b8f4f2", NULL), 1, "duplicate vGPU");
	refused(gpuctl("vgpu", "remove", "dev", "7", NULL), 1, "has no vGPUs");
	refused(gpuctl("vgpu", "remove", NULL), 2, "name vGPUs");
	refused(gpuctl("vgpu", "remove", "force", NULL), 2, "name vGPUs");
	refused(gpuctl("vgpu", "remove", "1", "froce", NULL), 2, "did you mean 'force'");
	refused(gpuctl("vgpu", "remove", "1", "2", NULL), 2, "with commas");
	TAP_STR(file_text("sys/" REMOVE(UUID_A)), "");

	TAP_EQ(gpuctl("vgpu", "remove", "83b8f4f2", "--yes", NULL), 0);
	TAP_STR(out, "");
	TAP_STR(file_text("sys/" REMOVE(UUID_A)), "1");
	TAP_STR(file_text("sys/" REMOVE(UUID_C)), "");
	TAP_STR(file_text("run/mgpu/names/" UUID_A), "");
	TAP_EQ(gpuctl("vgpu", "remove", "dev", "mgpu_soft.1", "-y", NULL), 0);
	TAP_STR(file_text("sys/" REMOVE(UUID_C)), "1");
	TAP_STR(file_text("sys/" REMOVE(UUID_B)), "");
	TAP_EQ(gpuctl("vgpu", "remove", "3,2", "force", "-y", NULL), 0);
	TAP_STR(file_text("sys/" REMOVE(UUID_B)), "1");
	root_end();
}

static void names_vms(void)
{
	struct json_object *list, *vgpu;

	devices_begin();
	kernel.open[0] = 1;
	kernel.tgid[0] = 4711;
	PUT_BYTES("proc/4711/cmdline", "qemu\0-name\0guest=we\033b,x=y\0");
	PUT_BYTES("run/mgpu/names/" UUID_A, "desk 1\n");
	PUT_BYTES("run/mgpu/names/" UUID_B, "desk\n2\n");
	TAP_EQ(gpuctl("vgpu", "list", NULL), 0);
	says(" " UUID_A "  we\\u001bb  ");
	says(" " UUID_B "  desk  ");
	says(" " UUID_C "  -     ");
	TAP_EQ(gpuctl("-j", "vgpu", "list", NULL), 0);
	list = parsed_list("vgpus");
	vgpu = json_object_array_get_idx(list, 0);
	TAP_STR(json_object_get_string(get(vgpu, "vm")), "we\\u001bb");
	TAP_STR(json_object_get_string(get(vgpu, "name")), "desk 1");
	vgpu = json_object_array_get_idx(list, 2);
	TAP_CHECK(!get(vgpu, "vm"));
	TAP_CHECK(!get(vgpu, "name"));
	json_object_put(list);
	TAP_EQ(gpuctl("vgpu", "show", "1", NULL), 0);
	says("\nvm:                  we\\u001bb\nname:                desk 1\n");
	root_end();
}

static void tells_old_modules(void)
{
	start();
	kernel.before_contexts = true;
	refused(gpuctl("ctx", "list", NULL), 1, "older than this program");
	refused(gpuctl("ctx", "show", "1", "1", NULL), 1,
		"older than this program");
	refused(gpuctl("ctx", "preempt", "1", "1", NULL), 1,
		"older than this program");
	refused(gpuctl("monitor", "contexts", NULL), 1,
		"older than this program");
	/* the id of a family is void, which is no missing context */
	start();
	kernel.unloaded = true;
	refused(gpuctl("ctx", "list", NULL), 1, "modprobe mgpu_soft");
	refused(gpuctl("ctx", "show", "1", "1", NULL), 1, "modprobe mgpu_soft");
}

/* Something to see, for test_top.sh: vGPUs that work, and one in quarantine. */
static void draw_on_screen(void)
{
	kernel.in_real_time = true;
	kernel.open[0] = 1;
	kernel.open[1] = 1;
	kernel.tgid[0] = 1001;
	kernel.tgid[1] = 1002;
	kernel.frames_per_second[0] = 60;
	kernel.frames_per_second[1] = 25;
	kernel.gpu_ns_per_second[0] = 1800000000;
	kernel.gpu_ns_per_second[1] = 200000000;
	kernel.held_ns_per_second[1] = 300000000;
	kernel.fps_limit[1] = 25000;
	kernel.quarantine[2] = 1;
}

#undef main

int main(int argc, char **argv)
{
	if (argc > 1) {
		start();
		kernel.mgpud_is_real = true;
		if (getenv("GPUCTL_ROOT"))
			gpuctl_root = getenv("GPUCTL_ROOT");
		if (is_word("top", (const char *const *)argv))
			draw_on_screen();
		if (is_word("monitor", (const char *const *)argv))
			queue_events();
		argc = gpuctl_main(argc, argv);
		if (getenv("GPUCTL_ROOT"))
			fprintf(stderr, "requests %u\n", kernel.requests);
		return argc;
	}
	/* none: top does without mgpud */
	setenv("MGPUD_SOCKET", "/nonexistent/mgpud.sock", 1);
	tap_run(lists, "contexts are listed");
	tap_run(lists_some, "contexts of a vGPU or a device are listed");
	tap_run(tells_types, "a vGPU whose type has no contexts says which has");
	tap_run(shows, "a context is shown");
	tap_run(preempts, "slots are taken and given back as the words say");
	tap_run(sets_slots, "slots of a device are set and shown");
	tap_run(shows_top, "top has the contexts in 80 columns");
	tap_run(shows_top_json, "top has the contexts' rates in JSON");
	tap_run(tells_contexts_apart, "top has no rate of a context made anew");
	tap_run(finds_states, "top looks through mgpud's list once for 1,000 vGPUs");
	tap_run(tells_vgpus_apart, "top has no rate of a vGPU created anew with its UUID");
	tap_run(monitors, "monitor has events of contexts when asked");
	tap_run_within(ends_monitor, "monitor ends at a signal that comes just before it waits",
		       STOP_SECONDS);
	tap_run_within(ends_top, "top ends at such a signal", STOP_SECONDS);
	tap_run_within(ends_watch, "ctl watch ends at such a signal", STOP_SECONDS);
	tap_run(shows_stale, "targets that are not updated are shown as stale");
	tap_run(shows_stale_unanswered, "so are those of an mgpud that does not answer");
	tap_run(sets_all, "all vGPUs and lists of them are set in one request");
	tap_run(sets_all_that_stay, "a vGPU that goes meanwhile is not one of all");
	tap_run(sets_all_of_none, "without a vGPU all is an error");
	tap_run(tells_all_is_well, "status is ok when all parts work");
	tap_run(tells_what_to_do, "status says what to do about each part that does not");
	tap_run(tells_missing_parts, "status tells missing modules and BTF, and its own failure");
	tap_run(creates, "a vGPU is created, named and set in a command");
	tap_run(creates_named, "a vGPU has its name when it comes into being");
	tap_run(creates_or_not, "a vGPU that cannot be created as told is not there");
	tap_run(makes_uuids, "a vGPU without a UUID gets a random one");
	tap_run(removes, "vGPUs are removed, those in use only by force");
	tap_run(names_vms, "VMs and vGPUs have names in tables and JSON");
	tap_run(tells_old_modules, "an older module and none are told from a missing context");
	return tap_done();
}
