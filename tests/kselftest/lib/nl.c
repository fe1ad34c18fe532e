// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "nl.h"
#include "vmm.h"

#define RX_SIZE		65536

/* ---- messages ---- */

static void room(struct nl_msg *m, size_t more)
{
	if (m->len + more <= m->cap)
		return;
	m->cap = (m->len + more) * 2;
	m->buf = realloc(m->buf, m->cap);
	if (!m->buf)
		abort();
}

static void begin(struct nl *nl, struct nl_msg *m, uint16_t family,
		  uint8_t cmd, uint16_t flags)
{
	struct genlmsghdr g = { .cmd = cmd, .version = 1 };
	struct nlmsghdr h = {
		.nlmsg_type = family,
		.nlmsg_flags = NLM_F_REQUEST | flags,
		.nlmsg_seq = ++nl->seq,
	};

	memset(m, 0, sizeof(*m));
	room(m, sizeof(h) + sizeof(g));
	memcpy(m->buf, &h, sizeof(h));
	memcpy(m->buf + sizeof(h), &g, sizeof(g));
	m->len = sizeof(h) + sizeof(g);
}

void nl_begin(struct nl *nl, struct nl_msg *m, uint8_t cmd, uint16_t flags)
{
	begin(nl, m, nl->family, cmd, flags);
}

void nl_put(struct nl_msg *m, uint16_t type, const void *data, size_t len)
{
	struct nlattr a = {
		.nla_len = (uint16_t)(sizeof(a) + len), .nla_type = type,
	};
	size_t padded = NLA_ALIGN(sizeof(a) + len);

	room(m, padded);
	memset(m->buf + m->len, 0, padded);
	memcpy(m->buf + m->len, &a, sizeof(a));
	if (len)
		memcpy(m->buf + m->len + sizeof(a), data, len);
	m->len += padded;
}

void nl_put_u32(struct nl_msg *m, uint16_t type, uint32_t val)
{
	nl_put(m, type, &val, sizeof(val));
}

void nl_put_str(struct nl_msg *m, uint16_t type, const char *s)
{
	nl_put(m, type, s, strlen(s) + 1);
}

size_t nl_nest(struct nl_msg *m, uint16_t type)
{
	size_t at = m->len;

	nl_put(m, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void nl_nest_end(struct nl_msg *m, size_t at)
{
	uint16_t len = (uint16_t)(m->len - at);

	memcpy(m->buf + at, &len, sizeof(len));
}

/* ---- parsing ---- */

/* Calls @fn for each attribute; stops at what is cut short. */
static void attrs(const uint8_t *p, size_t len,
		  void (*fn)(void *ctx, uint16_t type, const uint8_t *data,
			     size_t len),
		  void *ctx)
{
	struct nlattr a;

	while (len >= sizeof(a)) {
		memcpy(&a, p, sizeof(a));
		if (a.nla_len < sizeof(a) || a.nla_len > len)
			return;
		fn(ctx, a.nla_type & NLA_TYPE_MASK, p + sizeof(a),
		   a.nla_len - sizeof(a));
		if ((size_t)NLA_ALIGN(a.nla_len) >= len)
			return;
		p += NLA_ALIGN(a.nla_len);
		len -= NLA_ALIGN(a.nla_len);
	}
}

static uint64_t number(const uint8_t *data, size_t len)
{
	uint64_t v = 0;

	memcpy(&v, data, len > sizeof(v) ? sizeof(v) : len);
	return v;
}

static void text(char *to, size_t room_for, const uint8_t *data, size_t len)
{
	snprintf(to, room_for, "%.*s", (int)len, (const char *)data);
}

static bool hist(uint64_t *to, const uint8_t *data, size_t len)
{
	if (len != MGPU_HIST_BUCKETS * sizeof(*to))
		return false;
	memcpy(to, data, len);
	return true;
}

static void stats_attr(void *ctx, uint16_t type, const uint8_t *data,
		       size_t len)
{
	struct nl_vgpu *v = ctx;

	if (type <= MGPU_A_STATS_MAX && len == 8)
		v->stats[type] = number(data, len);
}

static void vgpu_attr(void *ctx, uint16_t type, const uint8_t *data,
		      size_t len)
{
	struct nl_vgpu *v = ctx;
	uint64_t n = number(data, len);

	switch (type) {
	case MGPU_A_VGPU_ID:
		v->id = n;
		break;
	case MGPU_A_VGPU_UUID:
		text(v->uuid, sizeof(v->uuid), data, len);
		break;
	case MGPU_A_VGPU_TYPE:
		text(v->type, sizeof(v->type), data, len);
		break;
	case MGPU_A_VGPU_DEV_NAME:
		text(v->dev_name, sizeof(v->dev_name), data, len);
		break;
	case MGPU_A_VGPU_DEV_ID:
		v->dev_id = n;
		break;
	case MGPU_A_VGPU_OPEN:
		v->open = n;
		break;
	case MGPU_A_VGPU_TGID:
		v->tgid = n;
		break;
	case MGPU_A_VGPU_WEIGHT:
		v->weight = n;
		break;
	case MGPU_A_VGPU_FPS_LIMIT:
		v->fps_limit = n;
		break;
	case MGPU_A_VGPU_FPS_TARGET:
		v->fps_target = n;
		break;
	case MGPU_A_VGPU_FPS_FLOOR:
		v->fps_floor = n;
		break;
	case MGPU_A_VGPU_FPS_LIMIT_BY:
		text(v->fps_limit_by, sizeof(v->fps_limit_by), data, len);
		break;
	case MGPU_A_VGPU_FPS_TARGET_BY:
		text(v->fps_target_by, sizeof(v->fps_target_by), data, len);
		break;
	case MGPU_A_VGPU_GPU_LIMIT:
		v->gpu_limit = n;
		break;
	case MGPU_A_VGPU_GPU_TARGET:
		v->gpu_target = n;
		break;
	case MGPU_A_VGPU_GPU_LIMIT_BY:
		text(v->gpu_limit_by, sizeof(v->gpu_limit_by), data, len);
		break;
	case MGPU_A_VGPU_GPU_TARGET_BY:
		text(v->gpu_target_by, sizeof(v->gpu_target_by), data, len);
		break;
	case MGPU_A_VGPU_GPU_PERIOD:
		v->gpu_period = n;
		break;
	case MGPU_A_VGPU_GPU_BURST:
		v->gpu_burst = n;
		break;
	case MGPU_A_VGPU_MODE_WIDTH:
		v->mode_width = n;
		break;
	case MGPU_A_VGPU_MODE_HEIGHT:
		v->mode_height = n;
		break;
	case MGPU_A_VGPU_QUARANTINE:
		v->quarantine = n;
		break;
	case MGPU_A_VGPU_FRAME_INTERVAL_HIST:
		v->has_interval = hist(v->interval, data, len);
		break;
	case MGPU_A_VGPU_LATENCY_HIST:
		v->has_latency = hist(v->latency, data, len);
		break;
	case MGPU_A_VGPU_MEM_USED:
		v->mem_used = n;
		break;
	case MGPU_A_VGPU_MEM_LIMIT:
		v->mem_limit = n;
		break;
	case MGPU_A_VGPU_PINNED_PAGES:
		v->pinned = n;
		break;
	case MGPU_A_VGPU_SCANOUT_WIDTH:
		v->width = n;
		break;
	case MGPU_A_VGPU_SCANOUT_HEIGHT:
		v->height = n;
		break;
	case MGPU_A_VGPU_CHARGE_SOURCE:
		v->charge_source = n;
		break;
	case MGPU_A_VGPU_STATS:
		attrs(data, len, stats_attr, v);
		break;
	}
}

static void vgpu_parse(const struct nlmsghdr *h, struct nl_vgpu *v)
{
	memset(v, 0, sizeof(*v));
	v->charge_source = ~0u;
	attrs((const uint8_t *)h + NLMSG_HDRLEN + GENL_HDRLEN,
	      h->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN, vgpu_attr, v);
}

static void exit_attr(void *ctx, uint16_t type, const uint8_t *data,
		      size_t len)
{
	struct nl_dev *d = ctx;
	uint64_t n = number(data, len);

	switch (type) {
	case MGPU_A_POLICY_EXIT_KIND:
		d->exit_kind = n;
		break;
	case MGPU_A_POLICY_EXIT_CODE:
		d->exit_code = (int32_t)n;
		break;
	case MGPU_A_POLICY_EXIT_POLICY:
		text(d->exit_policy, sizeof(d->exit_policy), data, len);
		break;
	case MGPU_A_POLICY_EXIT_VGPU_ID:
		d->exit_vgpu = n;
		break;
	case MGPU_A_POLICY_EXIT_MESSAGE:
		text(d->exit_message, sizeof(d->exit_message), data, len);
		break;
	}
}

static void dev_attr(void *ctx, uint16_t type, const uint8_t *data, size_t len)
{
	struct nl_dev *d = ctx;
	uint64_t n = number(data, len);

	switch (type) {
	case MGPU_A_DEV_ID:
		d->id = n;
		break;
	case MGPU_A_DEV_NAME:
		text(d->name, sizeof(d->name), data, len);
		break;
	case MGPU_A_DEV_BACKEND:
		text(d->backend, sizeof(d->backend), data, len);
		break;
	case MGPU_A_DEV_ENGINE_ON_CPU:
		d->engine_on_cpu = n;
		break;
	case MGPU_A_DEV_ENGINES:
		d->engines = n;
		break;
	case MGPU_A_DEV_VGPUS:
		d->vgpus = n;
		break;
	case MGPU_A_DEV_MAX_VGPUS:
		d->max_vgpus = n;
		break;
	case MGPU_A_DEV_POLICY:
		text(d->policy, sizeof(d->policy), data, len);
		break;
	case MGPU_A_DEV_BUILTIN_POLICY:
		text(d->builtin, sizeof(d->builtin), data, len);
		break;
	case MGPU_A_DEV_JOB_TIMEOUT:
		d->job_timeout = n;
		break;
	case MGPU_A_DEV_HANG_LIMIT:
		d->hang_limit = n;
		break;
	case MGPU_A_DEV_WAITING:
		d->waiting = n;
		break;
	case MGPU_A_DEV_ENGINE_NS:
		d->engine_ns = n;
		break;
	case MGPU_A_DEV_CHARGED_BPF_NS:
		d->charged_bpf_ns = n;
		break;
	case MGPU_A_DEV_CHARGED_SELF_NS:
		d->charged_self_ns = n;
		break;
	case MGPU_A_DEV_POLICY_SHARES:
		d->policy_shares = n;
		break;
	case MGPU_A_DEV_POLICY_EXIT:
		d->has_exit = true;
		attrs(data, len, exit_attr, d);
		break;
	}
}

static void dev_parse(const struct nlmsghdr *h, struct nl_dev *d)
{
	memset(d, 0, sizeof(*d));
	attrs((const uint8_t *)h + NLMSG_HDRLEN + GENL_HDRLEN,
	      h->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN, dev_attr, d);
}

static void ack_attr(void *ctx, uint16_t type, const uint8_t *data, size_t len)
{
	struct nl *nl = ctx;

	if (type == NLMSGERR_ATTR_MSG)
		text(nl->text, sizeof(nl->text), data, len);
	else if (type == NLMSGERR_ATTR_OFFS)
		nl->text_off = number(data, len);
}

/* The errno of an acknowledgement; keeps its sentence. */
static int ack(struct nl *nl, const struct nlmsghdr *h)
{
	struct nlmsgerr e;
	size_t off;

	memcpy(&e, (const uint8_t *)h + NLMSG_HDRLEN, sizeof(e));
	if (!(h->nlmsg_flags & NLM_F_ACK_TLVS))
		return e.error;
	off = NLMSG_HDRLEN + sizeof(e);
	if (!(h->nlmsg_flags & NLM_F_CAPPED))
		off += NLMSG_ALIGN(e.msg.nlmsg_len) - NLMSG_HDRLEN;
	if (off < h->nlmsg_len)
		attrs((const uint8_t *)h + off, h->nlmsg_len - off, ack_attr,
		      nl);
	return e.error;
}

/* ---- exchange ---- */

typedef void (*reply_fn)(struct nl *nl, const struct nlmsghdr *h, void *ctx);

static int exchange(struct nl *nl, struct nl_msg *m, reply_fn reply, void *ctx)
{
	/* Enough for any message of a dump. */
	static uint8_t rx[RX_SIZE] __attribute__((aligned(8)));
	struct nlmsghdr h, *p;
	uint32_t seq = nl->seq;
	ssize_t n;
	int ret;

	nl->text[0] = 0;
	nl->text_off = 0;
	memcpy(&h, m->buf, sizeof(h));
	h.nlmsg_len = (uint32_t)m->len;
	memcpy(m->buf, &h, sizeof(h));
	n = send(nl->fd, m->buf, m->len, 0);
	ret = n < 0 ? -errno : 0;
	free(m->buf);
	m->buf = NULL;
	if (ret)
		return ret;

	for (;;) {
		n = recv(nl->fd, rx, sizeof(rx), 0);
		if (n < 0)
			return -errno;
		for (p = (void *)rx; NLMSG_OK(p, (uint32_t)n);
		     p = NLMSG_NEXT(p, n)) {
			if (p->nlmsg_seq != seq)
				continue;
			if (p->nlmsg_type == NLMSG_ERROR)
				return ack(nl, p);
			if (p->nlmsg_type == NLMSG_DONE) {
				memcpy(&ret, NLMSG_DATA(p), sizeof(ret));
				return ret;
			}
			if (reply)
				reply(nl, p, ctx);
		}
	}
}

int nl_talk(struct nl *nl, struct nl_msg *m)
{
	struct nlmsghdr h;

	memcpy(&h, m->buf, sizeof(h));
	h.nlmsg_flags |= NLM_F_ACK;
	memcpy(m->buf, &h, sizeof(h));
	return exchange(nl, m, NULL, NULL);
}

/* ---- the family ---- */

struct group {
	char name[32];
	uint32_t id;
};

static void group_attr(void *ctx, uint16_t type, const uint8_t *data,
		       size_t len)
{
	struct group *g = ctx;

	if (type == CTRL_ATTR_MCAST_GRP_NAME)
		text(g->name, sizeof(g->name), data, len);
	else if (type == CTRL_ATTR_MCAST_GRP_ID)
		g->id = number(data, len);
}

static void groups_attr(void *ctx, uint16_t type, const uint8_t *data,
			size_t len)
{
	struct nl *nl = ctx;
	struct group g = { "", 0 };

	(void)type;
	attrs(data, len, group_attr, &g);
	if (!strcmp(g.name, MGPU_MCGRP_EVENTS))
		nl->events = g.id;
	else if (!strcmp(g.name, MGPU_MCGRP_CONTEXTS))
		nl->contexts = g.id;
}

static void family_attr(void *ctx, uint16_t type, const uint8_t *data,
			size_t len)
{
	struct nl *nl = ctx;

	if (type == CTRL_ATTR_FAMILY_ID)
		nl->family = number(data, len);
	else if (type == CTRL_ATTR_MCAST_GROUPS)
		attrs(data, len, groups_attr, nl);
}

static void family_reply(struct nl *nl, const struct nlmsghdr *h, void *ctx)
{
	(void)ctx;
	attrs((const uint8_t *)h + NLMSG_HDRLEN + GENL_HDRLEN,
	      h->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN, family_attr, nl);
}

int nl_open(struct nl *nl)
{
	struct sockaddr_nl sa = { .nl_family = AF_NETLINK };
	struct timeval tv = { .tv_sec = 10 };
	int one = 1, size = 1 << 20, ret;
	struct nl_msg m;

	memset(nl, 0, sizeof(*nl));
	nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (nl->fd < 0)
		return -errno;
	/* Room for a request with 1,024 vGPUs. */
	setsockopt(nl->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(nl->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(nl->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(nl->fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	if (bind(nl->fd, (struct sockaddr *)&sa, sizeof(sa))) {
		ret = -errno;
		nl_close(nl);
		return ret;
	}

	begin(nl, &m, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	nl_put_str(&m, CTRL_ATTR_FAMILY_NAME, MGPU_FAMILY_NAME);
	ret = exchange(nl, &m, family_reply, NULL);
	if (!ret && !nl->family)
		ret = -ENOENT;
	if (ret)
		nl_close(nl);
	return ret;
}

void nl_close(struct nl *nl)
{
	if (nl->fd >= 0)
		close(nl->fd);
	nl->fd = -1;
}

static int join(struct nl *nl, uint32_t group)
{
	return setsockopt(nl->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group,
			  sizeof(group)) ? -errno : 0;
}

int nl_subscribe(struct nl *nl)
{
	return join(nl, nl->events);
}

int nl_subscribe_contexts(struct nl *nl)
{
	return join(nl, nl->contexts);
}

struct list {
	struct nl_vgpu *v;
	unsigned int max;
	unsigned int n;
};

static void vgpu_reply(struct nl *nl, const struct nlmsghdr *h, void *ctx)
{
	struct list *l = ctx;

	(void)nl;
	if (l->n < l->max)
		vgpu_parse(h, &l->v[l->n]);
	l->n++;
}

int nl_vgpu_get(struct nl *nl, const char *uuid, struct nl_vgpu *v)
{
	struct list l = { v, 1, 0 };
	struct nl_msg m;
	int ret;

	nl_begin(nl, &m, MGPU_CMD_VGPU_GET, NLM_F_ACK);
	nl_put_str(&m, MGPU_A_VGPU_UUID, uuid);
	ret = exchange(nl, &m, vgpu_reply, &l);
	return ret ? ret : l.n == 1 ? 0 : -ENOENT;
}

int nl_vgpu_get_closed(struct nl *nl, const char *uuid, struct nl_vgpu *v)
{
	uint64_t end = now_ms() + (uint64_t)VMM_TIMEOUT;
	int ret;

	for (;;) {
		ret = nl_vgpu_get(nl, uuid, v);
		if (ret || !v->open)
			return ret;
		if (now_ms() >= end)
			return -EBUSY;
		sleep_ms(1);
	}
}

int nl_vgpu_dump(struct nl *nl, struct nl_vgpu *v, unsigned int max)
{
	struct list l = { v, max, 0 };
	struct nl_msg m;
	int ret;

	nl_begin(nl, &m, MGPU_CMD_VGPU_GET, NLM_F_DUMP);
	ret = exchange(nl, &m, vgpu_reply, &l);
	return ret ? ret : (int)l.n;
}

static void ctx_attr(void *ctx, uint16_t type, const uint8_t *data, size_t len)
{
	struct nl_ctx *c = ctx;
	const struct {
		uint16_t type;
		uint64_t *to;
	} numbers[] = {
		{ MGPU_A_CTX_VGPU_ID, &c->vgpu_id },
		{ MGPU_A_CTX_ID, &c->id },
		{ MGPU_A_CTX_STATE, &c->state },
		{ MGPU_A_CTX_SLOTS, &c->slots },
		{ MGPU_A_CTX_SLOTS_ALLOWED, &c->slots_allowed },
		{ MGPU_A_CTX_SLOTS_WANTED, &c->slots_wanted },
		{ MGPU_A_CTX_QUEUED, &c->queued },
		{ MGPU_A_CTX_JOB_INST, &c->job_inst },
		{ MGPU_A_CTX_JOB_INST_DONE, &c->job_inst_done },
		{ MGPU_A_CTX_JOBS, &c->jobs },
		{ MGPU_A_CTX_JOB_ERRORS, &c->job_errors },
		{ MGPU_A_CTX_INST, &c->inst },
		{ MGPU_A_CTX_BYTES, &c->bytes },
		{ MGPU_A_CTX_ENGINE_NS, &c->engine_ns },
		{ MGPU_A_CTX_PREEMPTIONS, &c->preemptions },
		{ MGPU_A_CTX_RESUMES, &c->resumes },
		{ MGPU_A_CTX_FLUSHES, &c->flushes },
		{ MGPU_A_CTX_SWITCH_NS, &c->switch_ns },
		{ MGPU_A_CTX_COPIES, &c->copies },
	};
	size_t i;

	if (type == MGPU_A_CTX_NAME)
		text(c->name, sizeof(c->name), data, len);
	else if (type == MGPU_A_CTX_OP)
		text(c->op, sizeof(c->op), data, len);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i].type == type)
			*numbers[i].to = number(data, len);
	}
}

struct ctx_list {
	struct nl_ctx *c;
	unsigned int max;
	unsigned int n;
};

static void ctx_reply(struct nl *nl, const struct nlmsghdr *h, void *ctx)
{
	struct ctx_list *l = ctx;

	(void)nl;
	if (l->n < l->max) {
		memset(&l->c[l->n], 0, sizeof(*l->c));
		attrs((const uint8_t *)h + NLMSG_HDRLEN + GENL_HDRLEN,
		      h->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN, ctx_attr,
		      &l->c[l->n]);
	}
	l->n++;
}

int nl_ctx_get(struct nl *nl, uint32_t vgpu, uint32_t id, struct nl_ctx *c)
{
	struct ctx_list l = { c, 1, 0 };
	struct nl_msg m;
	int ret;

	nl_begin(nl, &m, MGPU_CMD_CTX_GET, NLM_F_ACK);
	nl_put_u32(&m, MGPU_A_CTX_VGPU_ID, vgpu);
	nl_put_u32(&m, MGPU_A_CTX_ID, id);
	ret = exchange(nl, &m, ctx_reply, &l);
	return ret ? ret : l.n == 1 ? 0 : -ENOENT;
}

int nl_ctx_dump(struct nl *nl, uint32_t vgpu, struct nl_ctx *c,
		unsigned int max)
{
	struct ctx_list l = { c, max, 0 };
	struct nl_msg m;
	int ret;

	nl_begin(nl, &m, MGPU_CMD_CTX_GET, NLM_F_DUMP);
	if (vgpu)
		nl_put_u32(&m, MGPU_A_CTX_VGPU_ID, vgpu);
	ret = exchange(nl, &m, ctx_reply, &l);
	return ret ? ret : (int)l.n;
}

void nl_put_setting(struct nl_msg *m, const char *uuid, int64_t weight,
		    int64_t fps_limit, int64_t gpu_limit, int64_t gpu_period,
		    int64_t gpu_burst)
{
	const struct {
		uint16_t attr;
		int64_t val;
	} set[] = {
		{ MGPU_A_VGPU_WEIGHT, weight },
		{ MGPU_A_VGPU_FPS_LIMIT, fps_limit },
		{ MGPU_A_VGPU_GPU_LIMIT, gpu_limit },
		{ MGPU_A_VGPU_GPU_PERIOD, gpu_period },
		{ MGPU_A_VGPU_GPU_BURST, gpu_burst },
	};
	size_t at = nl_nest(m, MGPU_A_BATCH_VGPU);
	size_t i;

	nl_put_str(m, MGPU_A_VGPU_UUID, uuid);
	for (i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		if (set[i].val >= 0)
			nl_put_u32(m, set[i].attr, (uint32_t)set[i].val);
	nl_nest_end(m, at);
}

int nl_vgpu_set_full(struct nl *nl, const char *uuid, int64_t weight,
		     int64_t fps_limit, int64_t gpu_limit, int64_t gpu_period,
		     int64_t gpu_burst)
{
	struct nl_msg m;

	nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
	nl_put_setting(&m, uuid, weight, fps_limit, gpu_limit, gpu_period,
		       gpu_burst);
	return nl_talk(nl, &m);
}

void nl_put_mode(struct nl_msg *m, const char *uuid, int64_t width,
		 int64_t height)
{
	size_t at = nl_nest(m, MGPU_A_BATCH_VGPU);

	nl_put_str(m, MGPU_A_VGPU_UUID, uuid);
	if (width >= 0)
		nl_put_u32(m, MGPU_A_VGPU_MODE_WIDTH, (uint32_t)width);
	if (height >= 0)
		nl_put_u32(m, MGPU_A_VGPU_MODE_HEIGHT, (uint32_t)height);
	nl_nest_end(m, at);
}

int nl_vgpu_set_mode(struct nl *nl, const char *uuid, int64_t width,
		     int64_t height)
{
	struct nl_msg m;

	nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
	nl_put_mode(&m, uuid, width, height);
	return nl_talk(nl, &m);
}

int nl_vgpu_set_one(struct nl *nl, const char *uuid, uint16_t attr, uint32_t value)
{
	struct nl_msg m;
	size_t at;

	nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
	at = nl_nest(&m, MGPU_A_BATCH_VGPU);
	nl_put_str(&m, MGPU_A_VGPU_UUID, uuid);
	nl_put_u32(&m, attr, value);
	nl_nest_end(&m, at);
	return nl_talk(nl, &m);
}

int nl_vgpu_set_quarantine(struct nl *nl, const char *uuid, uint32_t on)
{
	return nl_vgpu_set_one(nl, uuid, MGPU_A_VGPU_QUARANTINE, on);
}

int nl_vgpu_set_target(struct nl *nl, const char *uuid, uint32_t fps_target)
{
	return nl_vgpu_set_one(nl, uuid, MGPU_A_VGPU_FPS_TARGET, fps_target);
}

int nl_vgpu_set_gpu_target(struct nl *nl, const char *uuid, uint32_t ppm)
{
	return nl_vgpu_set_one(nl, uuid, MGPU_A_VGPU_GPU_TARGET, ppm);
}

int nl_vgpu_set(struct nl *nl, const char *uuid, int64_t weight,
		int64_t fps_limit)
{
	return nl_vgpu_set_full(nl, uuid, weight, fps_limit, NL_KEEP, NL_KEEP,
				NL_KEEP);
}

int64_t nl_vgpu_hist(struct nl *nl, const char *uuid, uint16_t attr,
		     uint64_t hist_to[MGPU_HIST_BUCKETS])
{
	bool interval = attr == MGPU_A_VGPU_FRAME_INTERVAL_HIST;
	const uint64_t *from;
	struct nl_vgpu v;
	int64_t sum = 0;
	unsigned int i;
	int ret;

	ret = nl_vgpu_get(nl, uuid, &v);
	if (ret)
		return ret;
	if (interval ? !v.has_interval : !v.has_latency)
		return -ENODATA;
	from = interval ? v.interval : v.latency;
	for (i = 0; i < MGPU_HIST_BUCKETS; i++) {
		sum += (int64_t)from[i];
		if (hist_to)
			hist_to[i] = from[i];
	}
	return sum;
}

/* ---- devices ---- */

struct wanted {
	const char *name;	/* NULL for any */
	struct nl_dev *d;
	bool found;
};

static void dev_reply(struct nl *nl, const struct nlmsghdr *h, void *ctx)
{
	struct wanted *w = ctx;
	struct nl_dev d;

	(void)nl;
	dev_parse(h, &d);
	if (w->found || (w->name && strcmp(w->name, d.name)))
		return;
	*w->d = d;
	w->found = true;
}

int nl_dev_get(struct nl *nl, const char *name, struct nl_dev *d)
{
	struct wanted w = { name, d, false };
	struct nl_msg m;
	int ret;

	nl_begin(nl, &m, MGPU_CMD_DEV_GET, NLM_F_DUMP);
	ret = exchange(nl, &m, dev_reply, &w);
	return ret ? ret : w.found ? 0 : -ENODEV;
}

int nl_dev_get_id(struct nl *nl, uint32_t id, struct nl_dev *d)
{
	struct wanted w = { NULL, d, false };
	struct nl_msg m;
	int ret;

	nl_begin(nl, &m, MGPU_CMD_DEV_GET, NLM_F_ACK);
	nl_put_u32(&m, MGPU_A_DEV_ID, id);
	ret = exchange(nl, &m, dev_reply, &w);
	return ret ? ret : w.found ? 0 : -ENODEV;
}

/* Begin to set properties of the GPU @name. */
static int begin_dev_set(struct nl *nl, struct nl_msg *m, const char *name)
{
	struct nl_dev d;
	int ret = nl_dev_get(nl, name, &d);

	if (ret)
		return ret;
	nl_begin(nl, m, MGPU_CMD_DEV_SET, 0);
	nl_put_u32(m, MGPU_A_DEV_ID, d.id);
	return 0;
}

int nl_dev_set(struct nl *nl, const char *name, const char *policy,
	       int64_t job_timeout_ms)
{
	struct nl_msg m;
	int ret = begin_dev_set(nl, &m, name);

	if (ret)
		return ret;
	if (policy)
		nl_put_str(&m, MGPU_A_DEV_POLICY, policy);
	if (job_timeout_ms >= 0)
		nl_put_u32(&m, MGPU_A_DEV_JOB_TIMEOUT,
			   (uint32_t)job_timeout_ms);
	return nl_talk(nl, &m);
}

int nl_dev_set_slots(struct nl *nl, uint32_t id, uint32_t slots)
{
	struct nl_msg m;

	nl_begin(nl, &m, MGPU_CMD_DEV_SET, NLM_F_ACK);
	nl_put_u32(&m, MGPU_A_DEV_ID, id);
	nl_put_u32(&m, MGPU_A_DEV_SLOTS, slots);
	return nl_talk(nl, &m);
}

int nl_dev_set_hang_limit(struct nl *nl, const char *name, uint32_t limit)
{
	struct nl_msg m;
	int ret = begin_dev_set(nl, &m, name);

	if (ret)
		return ret;
	nl_put_u32(&m, MGPU_A_DEV_HANG_LIMIT, limit);
	return nl_talk(nl, &m);
}

int nl_dev_set_policy(struct nl *nl, const char *name, const char *policy)
{
	return nl_dev_set(nl, name, policy, NL_KEEP);
}

/* ---- events ---- */

static bool is_dev_event(uint8_t cmd)
{
	return cmd == MGPU_CMD_DEV_POLICY_NTF ||
	       cmd == MGPU_CMD_DEV_POLICY_EXIT_NTF;
}

int nl_event_next(struct nl *nl, struct nl_event *e, int timeout_ms)
{
	static uint8_t rx[RX_SIZE] __attribute__((aligned(8)));
	struct pollfd p = { .fd = nl->fd, .events = POLLIN };
	struct nlmsghdr *h = (void *)rx;
	struct ctx_list l = { &e->ctx, 1, 0 };
	ssize_t n;

	memset(e, 0, sizeof(*e));
	if (poll(&p, 1, timeout_ms) <= 0)
		return 0;
	n = recv(nl->fd, rx, sizeof(rx), 0);
	if (n < 0 || !NLMSG_OK(h, (uint32_t)n) || h->nlmsg_type != nl->family)
		return 0;
	e->cmd = ((struct genlmsghdr *)NLMSG_DATA(h))->cmd;
	if (is_dev_event(e->cmd))
		dev_parse(h, &e->dev);
	else if (e->cmd == MGPU_CMD_CTX_NTF)
		ctx_reply(nl, h, &l);
	else
		vgpu_parse(h, &e->vgpu);
	return e->cmd;
}

int nl_event(struct nl *nl, struct nl_vgpu *v, int timeout_ms)
{
	struct nl_event e;
	int cmd = nl_event_next(nl, &e, timeout_ms);

	if (cmd)
		*v = e.vgpu;
	return cmd;
}

static uint64_t clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

bool nl_event_wait(struct nl *nl, uint8_t cmd, const char *uuid,
		   struct nl_event *e, int timeout_ms)
{
	uint64_t end = clock_ms() + (uint64_t)timeout_ms;
	struct nl_event one;
	uint64_t now;

	while ((now = clock_ms()) < end) {
		if (nl_event_next(nl, &one, (int)(end - now)) != cmd ||
		    (uuid && strcmp(uuid, one.vgpu.uuid)))
			continue;
		if (e)
			*e = one;
		return true;
	}
	return false;
}

uint64_t nl_stat(struct nl *nl, const char *uuid, unsigned int attr)
{
	struct nl_vgpu v;

	return nl_vgpu_get(nl, uuid, &v) ? ~0ull : v.stats[attr];
}
