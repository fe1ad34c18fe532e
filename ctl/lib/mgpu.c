// SPDX-License-Identifier: GPL-2.0-only
/* libmgpu: the socket, and one function per request. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/genetlink.h>
#include <netlink/attr.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "msg.h"

/* The kernel fills at most 32 KiB of it for a dump. */
#define RECV_SIZE	65536

/*
 * Retries for a list that changes while it is read. The last one is good enough: the
 * kernel sends it sorted by ID, so that it has each vGPU that existed all the time once.
 */
#define DUMP_TRIES	4

struct mgpu {
	struct nl_sock *sock;
	int family;
	uint32_t seq;
	char *buf;
	bool lost;	/* events were lost after the pending ones */
};

static int no_module(struct mgpu_error *err)
{
	return mgpu_fail(err, -ENOENT,
			 "mgpu is not loaded: run 'modprobe mgpu_soft', or load another back end's module");
}

static int set_option(struct nl_sock *sock, int option)
{
	int on = 1;

	if (setsockopt(nl_socket_get_fd(sock), SOL_NETLINK, option, &on,
		       sizeof(on)))
		return -errno;
	return 0;
}

int mgpu_open(struct mgpu **mgpu, struct mgpu_error *err)
{
	struct mgpu *m;
	int ret;

	*mgpu = NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	m->buf = malloc(RECV_SIZE);
	m->sock = nl_socket_alloc();
	if (!m->buf || !m->sock) {
		ret = mgpu_fail(err, -ENOMEM, "out of memory");
		goto fail;
	}

	ret = genl_connect(m->sock);
	if (ret) {
		ret = mgpu_fail(err, -EIO, "no netlink socket: %s",
				nl_geterror(ret));
		goto fail;
	}
	/* A batch for 1,024 vGPUs is one message of up to 136 KiB. */
	ret = nl_socket_set_buffer_size(m->sock, 1 << 20, 1 << 18);
	if (ret) {
		ret = mgpu_fail(err, -EIO, "no room for netlink messages: %s",
				nl_geterror(ret));
		goto fail;
	}

	/* Before the options below, which libnl lacks. */
	m->family = genl_ctrl_resolve(m->sock, MGPU_FAMILY_NAME);
	if (m->family < 0) {
		if (m->family == -NLE_OBJ_NOTFOUND)
			ret = no_module(err);
		else
			ret = mgpu_fail(err, -EIO,
					"generic netlink does not answer: %s",
					nl_geterror(m->family));
		goto fail;
	}

	ret = set_option(m->sock, NETLINK_EXT_ACK);
	if (!ret)
		ret = set_option(m->sock, NETLINK_CAP_ACK);
	if (ret) {
		mgpu_fail(err, ret, "netlink does not explain errors here: %s",
			  strerror(-ret));
		goto fail;
	}

	*mgpu = m;
	return 0;
fail:
	mgpu_close(m);
	return ret;
}

void mgpu_close(struct mgpu *mgpu)
{
	if (!mgpu)
		return;
	nl_socket_free(mgpu->sock);
	free(mgpu->buf);
	free(mgpu);
}

int mgpu_fd(const struct mgpu *mgpu)
{
	return nl_socket_get_fd(mgpu->sock);
}

/* Read a datagram from the kernel into mgpu->buf; returns its length or -errno. */
static ssize_t receive(struct mgpu *mgpu, int flags)
{
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { .iov_base = mgpu->buf, .iov_len = RECV_SIZE };
	struct msghdr hdr = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t len;

	do {
		len = recvmsg(mgpu_fd(mgpu), &hdr, flags);
		if (len < 0)
			return -errno;
		if (hdr.msg_flags & MSG_TRUNC)
			return -EMSGSIZE;
	} while (from.nl_pid);	/* skip datagrams of other processes */
	return len;
}

static int send_request(struct mgpu *mgpu, struct nl_msg *msg,
			struct mgpu_error *err)
{
	struct nlmsghdr *nlh = nlmsg_hdr(msg);
	struct sockaddr_nl to = { .nl_family = AF_NETLINK };
	ssize_t len;

	nlh->nlmsg_seq = ++mgpu->seq;
	nlh->nlmsg_pid = nl_socket_get_local_port(mgpu->sock);
	do {
		len = sendto(mgpu_fd(mgpu), nlh, nlh->nlmsg_len, 0,
			     (struct sockaddr *)&to, sizeof(to));
	} while (len < 0 && errno == EINTR);
	if (len >= 0)
		return 0;
	if (errno == EMSGSIZE)
		return mgpu_fail(err, -EMSGSIZE,
				 "a batch of %u bytes is too large for one message: raise the sysctl net.core.wmem_max, or make it smaller",
				 nlh->nlmsg_len);
	return mgpu_fail(err, -errno, "sending to the kernel: %s",
			 strerror(errno));
}

/* Send @msg, which is freed, and process the answer. */
static int request(struct mgpu *mgpu, struct nl_msg *msg,
		   int (*message)(const struct nlmsghdr *nlh, void *arg),
		   void *arg, bool *interrupted, struct mgpu_error *err)
{
	struct mgpu_reply reply = {
		.message = message,
		.arg = arg,
		.err = err,
	};
	ssize_t len;
	int ret;

	if (!msg)
		return mgpu_fail(err, -ENOMEM, "out of memory");

	ret = send_request(mgpu, msg, err);
	if (ret)
		goto out;

	reply.request = nlmsg_hdr(msg);
	reply.seq = reply.request->nlmsg_seq;
	reply.port = reply.request->nlmsg_pid;
	while (!reply.done) {
		len = receive(mgpu, 0);
		if (len == -EINTR)
			continue;
		if (len < 0) {
			ret = mgpu_fail(err, (int)len,
					"reading the kernel's answer: %s",
					strerror((int)-len));
			goto out;
		}
		mgpu_reply_feed(&reply, mgpu->buf, (size_t)len);
	}
	ret = reply.result;
	/*
	 * The kernel gives no reason when the family's module is gone; for other missing
	 * objects the module does.
	 */
	if (ret == -ENOENT && !reply.explained)
		ret = no_module(err);
	if (interrupted)
		*interrupted = reply.interrupted;
out:
	nlmsg_free(msg);
	return ret;
}

/* ---- lists ---- */

/**
 * struct list - entries of a dump
 * @fields: fields of an entry
 * @size: size of an entry, bytes
 * @nr: number of entries
 * @room: number of entries allocated
 * @entries: the entries
 */
struct list {
	const struct mgpu_field *fields;
	size_t size;
	size_t nr;
	size_t room;
	char *entries;
};

static int list_add(const struct nlmsghdr *nlh, void *arg)
{
	struct list *list = arg;
	char *entry;

	if (list->nr == list->room) {
		size_t room = list->room ? list->room * 2 : 16;
		char *more = reallocarray(list->entries, room, list->size);

		if (!more)
			return -ENOMEM;
		list->entries = more;
		list->room = room;
	}
	entry = list->entries + list->nr * list->size;
	memset(entry, 0, list->size);
	list->nr++;
	return mgpu_msg_parse(nlh, list->fields, entry);
}

/* Dump all, or those whose attribute @attr is *@id. */
static int dump(struct mgpu *mgpu, uint8_t cmd, int attr, const uint32_t *id,
		struct list *list, struct mgpu_error *err)
{
	bool interrupted;
	int try;
	int ret;

	for (try = 0; try < DUMP_TRIES; try++) {
		struct nl_msg *msg;

		msg = mgpu_msg_new((uint16_t)mgpu->family, cmd, true,
				   (size_t)nla_total_size(sizeof(*id)));
		if (msg && id)
			nla_put_u32(msg, attr, *id);

		list->nr = 0;
		interrupted = false;
		ret = request(mgpu, msg, list_add, list, &interrupted, err);
		if (ret) {
			free(list->entries);
			list->entries = NULL;
			list->nr = 0;
			return ret;
		}
		if (!interrupted)
			break;
	}
	return 0;
}

int mgpu_dev_list(struct mgpu *mgpu, struct mgpu_dev_info **devs, size_t *nr,
		  struct mgpu_error *err)
{
	struct list list = {
		.fields = mgpu_dev_fields,
		.size = sizeof(**devs),
	};
	int ret = dump(mgpu, MGPU_CMD_DEV_GET, 0, NULL, &list, err);

	*devs = (struct mgpu_dev_info *)list.entries;
	*nr = list.nr;
	return ret;
}

int mgpu_vgpu_list(struct mgpu *mgpu, const uint32_t *dev_id,
		   struct mgpu_vgpu_info **vgpus, size_t *nr,
		   struct mgpu_error *err)
{
	struct list list = {
		.fields = mgpu_vgpu_fields,
		.size = sizeof(**vgpus),
	};
	int ret = dump(mgpu, MGPU_CMD_VGPU_GET, MGPU_A_VGPU_DEV_ID, dev_id,
		       &list, err);

	*vgpus = (struct mgpu_vgpu_info *)list.entries;
	*nr = list.nr;
	return ret;
}

int mgpu_ctx_dump(struct mgpu *mgpu, const uint32_t *vgpu_id,
		  struct mgpu_ctx **ctxs, size_t *nr, struct mgpu_error *err)
{
	struct list list = {
		.fields = mgpu_ctx_fields,
		.size = sizeof(**ctxs),
	};
	int ret = dump(mgpu, MGPU_CMD_CTX_GET, MGPU_A_CTX_VGPU_ID, vgpu_id,
		       &list, err);

	*ctxs = (struct mgpu_ctx *)list.entries;
	*nr = list.nr;
	return ret;
}

/* ---- one of them ---- */

struct one {
	const struct mgpu_field *fields;
	void *info;
};

static int one_message(const struct nlmsghdr *nlh, void *arg)
{
	struct one *one = arg;

	return mgpu_msg_parse(nlh, one->fields, one->info);
}

int mgpu_dev_get(struct mgpu *mgpu, uint32_t id, struct mgpu_dev_info *dev,
		 struct mgpu_error *err)
{
	struct one one = { .fields = mgpu_dev_fields, .info = dev };
	struct nl_msg *msg;

	memset(dev, 0, sizeof(*dev));
	msg = mgpu_msg_new((uint16_t)mgpu->family, MGPU_CMD_DEV_GET, false,
			   (size_t)nla_total_size(sizeof(id)));
	if (msg)
		nla_put_u32(msg, MGPU_A_DEV_ID, id);
	return request(mgpu, msg, one_message, &one, NULL, err);
}

static int get_vgpu(struct mgpu *mgpu, const uint32_t *id, const char *uuid,
		    struct mgpu_vgpu_info *vgpu, struct mgpu_error *err)
{
	struct one one = { .fields = mgpu_vgpu_fields, .info = vgpu };
	struct nl_msg *msg;

	memset(vgpu, 0, sizeof(*vgpu));
	msg = mgpu_msg_new((uint16_t)mgpu->family, MGPU_CMD_VGPU_GET, false,
			   (size_t)nla_total_size(MGPU_UUID_LEN));
	if (msg && id)
		nla_put_u32(msg, MGPU_A_VGPU_ID, *id);
	else if (msg)
		nla_put_string(msg, MGPU_A_VGPU_UUID, uuid);
	return request(mgpu, msg, one_message, &one, NULL, err);
}

int mgpu_vgpu_get(struct mgpu *mgpu, uint32_t id, struct mgpu_vgpu_info *vgpu,
		  struct mgpu_error *err)
{
	return get_vgpu(mgpu, &id, NULL, vgpu, err);
}

/* ---- several vGPUs at once ---- */

/* Answers that may wait in the socket: each takes at most 9 KiB of its buffer. */
#define GETS		16
#define GET_SIZE	(RECV_SIZE / GETS)

/* A request for a vGPU. */
struct get {
	struct nlmsghdr nlh;
	struct genlmsghdr genl;
	struct nlattr nla;
	uint32_t id;
};

/* Send requests for @nr vGPUs as one datagram. */
static int send_gets(struct mgpu *mgpu, const struct mgpu_vgpu_info *vgpus, size_t nr,
		     struct mgpu_error *err)
{
	struct sockaddr_nl to = { .nl_family = AF_NETLINK };
	struct get gets[GETS] = { 0 };
	ssize_t len;

	for (size_t i = 0; i < nr; i++)
		gets[i] = (struct get){
			.nlh = {
				.nlmsg_len = sizeof(*gets),
				.nlmsg_type = (uint16_t)mgpu->family,
				.nlmsg_flags = NLM_F_REQUEST,
				.nlmsg_seq = ++mgpu->seq,
				.nlmsg_pid = nl_socket_get_local_port(mgpu->sock),
			},
			.genl = { .cmd = MGPU_CMD_VGPU_GET, .version = MGPU_FAMILY_VERSION },
			.nla = { .nla_len = sizeof(struct nlattr) + sizeof(uint32_t),
				 .nla_type = MGPU_A_VGPU_ID },
			.id = vgpus[i].id,
		};
	do {
		len = sendto(mgpu_fd(mgpu), gets, nr * sizeof(*gets), 0, (struct sockaddr *)&to,
			     sizeof(to));
	} while (len < 0 && errno == EINTR);
	if (len >= 0)
		return 0;
	return mgpu_fail(err, -errno, "sending to the kernel: %s", strerror(errno));
}

/* Take over the histograms of an answer, unless the ID passed to another vGPU meanwhile. */
static int take_hists(struct mgpu_vgpu_info *vgpu, const struct nlmsghdr *nlh)
{
	const uint64_t hists = MGPU_HAS(MGPU_A_VGPU_FRAME_INTERVAL_HIST) |
			       MGPU_HAS(MGPU_A_VGPU_LATENCY_HIST);
	struct mgpu_vgpu_info one = { 0 };
	const struct nlmsgerr *e = NLMSG_DATA(nlh);
	int ret;

	if (nlh->nlmsg_type == NLMSG_ERROR && nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
		return -EBADMSG;
	if (nlh->nlmsg_type == NLMSG_ERROR)
		return e->error == -ENODEV ? 0 : e->error;
	ret = mgpu_msg_parse(nlh, mgpu_vgpu_fields, &one);
	if (ret || strcmp(one.uuid, vgpu->uuid))
		return ret;
	vgpu->present |= one.present & hists;
	memcpy(vgpu->frame_interval_hist, one.frame_interval_hist, sizeof(one.frame_interval_hist));
	memcpy(vgpu->latency_hist, one.latency_hist, sizeof(one.latency_hist));
	return 0;
}

/* Receive up to @nr datagrams of the kernel, one for each answer. */
static int receive_hists(struct mgpu *mgpu, struct mgpu_vgpu_info *vgpus, size_t nr,
			 uint32_t first, size_t *answered)
{
	struct sockaddr_nl from[GETS] = { 0 };
	struct mmsghdr hdrs[GETS] = { 0 };
	struct iovec iov[GETS];
	int n, ret = 0;

	for (size_t i = 0; i < nr; i++) {
		iov[i] = (struct iovec){ mgpu->buf + i * GET_SIZE, GET_SIZE };
		hdrs[i].msg_hdr = (struct msghdr){
			.msg_name = &from[i], .msg_namelen = sizeof(from[i]),
			.msg_iov = &iov[i], .msg_iovlen = 1,
		};
	}
	n = recvmmsg(mgpu_fd(mgpu), hdrs, (unsigned int)nr, MSG_WAITFORONE, NULL);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n && !ret; i++) {
		const struct nlmsghdr *nlh = iov[i].iov_base;

		if (from[i].nl_pid)
			continue;	/* of another process */
		if (hdrs[i].msg_hdr.msg_flags & MSG_TRUNC)
			return -EMSGSIZE;
		if (!NLMSG_OK(nlh, hdrs[i].msg_len))
			return -EBADMSG;
		if (nlh->nlmsg_seq - first >= nr)
			continue;	/* of an earlier request that failed */
		ret = take_hists(&vgpus[nlh->nlmsg_seq - first], nlh);
		++*answered;
	}
	return ret;
}

int mgpu_vgpu_hists(struct mgpu *mgpu, struct mgpu_vgpu_info *vgpus, size_t nr,
		    struct mgpu_error *err)
{
	for (size_t at = 0; at < nr; at += GETS) {
		size_t n = nr - at < GETS ? nr - at : GETS, answered = 0;
		uint32_t first = mgpu->seq + 1;
		int ret = send_gets(mgpu, vgpus + at, n, err);

		if (ret)
			return ret;
		while (answered < n && !ret)
			ret = receive_hists(mgpu, vgpus + at, n, first, &answered);
		if (ret == -ENOENT)
			return no_module(err);
		if (ret)
			return mgpu_fail(err, ret, "reading the kernel's answer: %s",
					 strerror(-ret));
	}
	return 0;
}

/* ---- contexts ---- */

int mgpu_ctx_get(struct mgpu *mgpu, uint32_t vgpu_id, uint32_t ctx_id,
		 struct mgpu_ctx *ctx, struct mgpu_error *err)
{
	struct one one = { .fields = mgpu_ctx_fields, .info = ctx };
	struct nl_msg *msg;

	memset(ctx, 0, sizeof(*ctx));
	msg = mgpu_msg_new((uint16_t)mgpu->family, MGPU_CMD_CTX_GET, false,
			   (size_t)(2 * nla_total_size(sizeof(uint32_t))));
	if (msg) {
		nla_put_u32(msg, MGPU_A_CTX_VGPU_ID, vgpu_id);
		nla_put_u32(msg, MGPU_A_CTX_ID, ctx_id);
	}
	return request(mgpu, msg, one_message, &one, NULL, err);
}

/* Parse an ID. -ERANGE: digits, but too large; -EINVAL: other characters. */
static int parse_id(const char *key, uint32_t *id)
{
	unsigned long long value;

	if (!*key || key[strspn(key, "0123456789")])
		return -EINVAL;
	errno = 0;
	value = strtoull(key, NULL, 10);
	if (errno || value > UINT32_MAX)
		return -ERANGE;
	*id = (uint32_t)value;
	return 0;
}

int mgpu_dev_find(struct mgpu *mgpu, const char *key, struct mgpu_dev_info *dev,
		  struct mgpu_error *err)
{
	struct mgpu_dev_info *devs;
	uint32_t id;
	size_t nr;
	size_t i;
	int ret;

	ret = parse_id(key, &id);
	if (!ret)
		return mgpu_dev_get(mgpu, id, dev, err);
	if (ret == -ERANGE)
		return mgpu_fail(err, -ENODEV, "no device has the id %s", key);

	ret = mgpu_dev_list(mgpu, &devs, &nr, err);
	if (ret)
		return ret;
	ret = -ENODEV;
	for (i = 0; i < nr; i++) {
		if (!strcmp(devs[i].name, key)) {
			*dev = devs[i];
			ret = 0;
			break;
		}
	}
	free(devs);
	if (ret)
		mgpu_fail(err, ret,
			  "no device is named '%s': 'gpuctl dev list' lists all",
			  key);
	return ret;
}

/* Check a key that is not an ID: 0 if it may be the begin of a UUID, else -errno. */
static int check_key(const char *key, uint32_t *id, bool *is_id,
		     struct mgpu_error *err)
{
	int ret = parse_id(key, id);

	*is_id = !ret;
	if (!ret)
		return 0;
	if (ret == -ERANGE)
		return mgpu_fail(err, -ENODEV, "no vGPU has the id %s", key);
	if (!*key || strlen(key) > MGPU_UUID_STRLEN ||
	    key[strspn(key, "0123456789abcdefABCDEF-")])
		return mgpu_fail(err, -EINVAL,
				 "'%s' names no vGPU: give its id, its UUID or the beginning of its UUID",
				 key);
	return 0;
}

int mgpu_vgpu_match(const struct mgpu_vgpu_info *vgpus, size_t nr,
		    const char *key, const struct mgpu_vgpu_info **found,
		    struct mgpu_error *err)
{
	size_t len = strlen(key);
	size_t matches = 0;
	uint32_t id = 0;
	bool is_id;
	size_t i;
	int ret;

	ret = check_key(key, &id, &is_id, err);
	if (ret)
		return ret;
	for (i = 0; i < nr; i++) {
		if (is_id ? vgpus[i].id != id :
		    strncasecmp(vgpus[i].uuid, key, len))
			continue;
		if (!matches++)
			*found = &vgpus[i];
	}
	if (!matches)
		return mgpu_fail(err, -ENODEV,
				 "no vGPU has %s '%s': 'gpuctl vgpu list' lists all",
				 is_id ? "the id" :
				 len < MGPU_UUID_STRLEN ?
				 "a UUID that begins with" : "the UUID", key);
	if (matches > 1)
		return mgpu_fail(err, -EINVAL,
				 "'%s' is the beginning of the UUIDs of %zu vGPUs: give more of it",
				 key, matches);
	return 0;
}

int mgpu_vgpu_find(struct mgpu *mgpu, const char *key,
		   struct mgpu_vgpu_info *vgpu, struct mgpu_error *err)
{
	const struct mgpu_vgpu_info *found;
	struct mgpu_vgpu_info *vgpus;
	uint32_t id = 0;
	bool is_id;
	size_t nr;
	int ret;

	ret = check_key(key, &id, &is_id, err);
	if (ret)
		return ret;
	if (is_id)
		return get_vgpu(mgpu, &id, NULL, vgpu, err);
	if (strlen(key) == MGPU_UUID_STRLEN)
		return get_vgpu(mgpu, NULL, key, vgpu, err);

	ret = mgpu_vgpu_list(mgpu, NULL, &vgpus, &nr, err);
	if (ret)
		return ret;
	ret = mgpu_vgpu_match(vgpus, nr, key, &found, err);
	/* ask for this vGPU, since lists lack its histograms */
	if (!ret)
		ret = get_vgpu(mgpu, NULL, found->uuid, vgpu, err);
	free(vgpus);
	return ret;
}

int mgpu_vgpu_set(struct mgpu *mgpu, const struct mgpu_vgpu_setting *set,
		  size_t nr, struct mgpu_error *err)
{
	return request(mgpu, mgpu_msg_set((uint16_t)mgpu->family, set, nr),
		       NULL, NULL, NULL, err);
}

int mgpu_dev_set(struct mgpu *mgpu, const struct mgpu_dev_setting *set,
		 struct mgpu_error *err)
{
	return request(mgpu, mgpu_msg_dev_set((uint16_t)mgpu->family, set),
		       NULL, NULL, NULL, err);
}

int mgpu_ctx_preempt(struct mgpu *mgpu, uint32_t vgpu_id, uint32_t ctx_id,
		     uint32_t keep, enum mgpu_preempt_method method, bool hold,
		     struct mgpu_error *err)
{
	return request(mgpu, mgpu_msg_ctx_preempt((uint16_t)mgpu->family,
						  vgpu_id, ctx_id, keep,
						  (uint32_t)method, hold),
		       NULL, NULL, NULL, err);
}

int mgpu_ctx_resume(struct mgpu *mgpu, uint32_t vgpu_id, uint32_t ctx_id,
		    bool first, struct mgpu_error *err)
{
	return request(mgpu, mgpu_msg_ctx_resume((uint16_t)mgpu->family,
						 vgpu_id, ctx_id, first),
		       NULL, NULL, NULL, err);
}

/* ---- watching ---- */

static int join(struct mgpu *mgpu, struct nl_sock *other, const char *family,
		const char *group, struct mgpu_error *err)
{
	int ret = genl_ctrl_resolve_grp(other, family, group);

	if (ret < 0)
		return mgpu_fail(err, -ENOENT,
				 "generic netlink has no group %s of %s: %s",
				 group, family, nl_geterror(ret));
	ret = nl_socket_add_membership(mgpu->sock, ret);
	if (ret == -NLE_PERM)
		return mgpu_fail(err, -EPERM,
				 "not permitted: events of %s need CAP_NET_ADMIN, run as root",
				 family);
	if (ret)
		return mgpu_fail(err, -EIO, "no events of %s: %s", family,
				 nl_geterror(ret));
	return 0;
}

static int subscribe(struct mgpu *mgpu, const char *group,
		     struct mgpu_error *err)
{
	struct nl_sock *other;
	int ret;

	/* Resolve on a socket that receives no events. */
	other = nl_socket_alloc();
	if (!other)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	ret = genl_connect(other);
	if (ret) {
		ret = mgpu_fail(err, -EIO, "no netlink socket: %s",
				nl_geterror(ret));
		goto out;
	}
	/* nlctrl tells when the family is removed. */
	ret = join(mgpu, other, "nlctrl", "notify", err);
	if (!ret)
		ret = join(mgpu, other, MGPU_FAMILY_NAME, group, err);
out:
	nl_socket_free(other);
	return ret;
}

int mgpu_subscribe(struct mgpu *mgpu, struct mgpu_error *err)
{
	return subscribe(mgpu, MGPU_MCGRP_EVENTS, err);
}

int mgpu_subscribe_ctx(struct mgpu *mgpu, struct mgpu_error *err)
{
	int ret = subscribe(mgpu, MGPU_MCGRP_CONTEXTS, err);

	if (ret == -ENOENT)
		mgpu_fail(err, ret,
			  "the module tells no events of contexts: it is older than this program, or was unloaded");
	return ret;
}

static bool is_gone(const struct mgpu *mgpu, const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *genl = NLMSG_DATA(nlh);
	const struct nlattr *nla;

	if (nlh->nlmsg_type != GENL_ID_CTRL || genl->cmd != CTRL_CMD_DELFAMILY)
		return false;
	nla = nlmsg_find_attr((struct nlmsghdr *)nlh, GENL_HDRLEN,
			      CTRL_ATTR_FAMILY_ID);
	return nla && nla_len(nla) == sizeof(uint16_t) &&
	       nla_get_u16(nla) == mgpu->family;
}

int mgpu_event_next(struct mgpu *mgpu, struct mgpu_event *event,
		    struct mgpu_error *err)
{
	const struct nlmsghdr *nlh;
	const struct genlmsghdr *genl;
	ssize_t len;
	int ret;

	for (;;) {
		len = receive(mgpu, mgpu->lost ? MSG_DONTWAIT : 0);
		/*
		 * The kernel reports this once, and drops further events silently until
		 * all earlier ones are read.
		 */
		if (len == -ENOBUFS) {
			mgpu->lost = true;
			continue;
		}
		if (len == -EAGAIN && mgpu->lost) {
			mgpu->lost = false;
			return mgpu_fail(err, -ENOBUFS,
					 "events came faster than they were read, and some are lost");
		}
		if (len < 0)
			return mgpu_fail(err, (int)len, "waiting for events: %s",
					 strerror((int)-len));

		/* The kernel sends one event per datagram. */
		nlh = (const struct nlmsghdr *)mgpu->buf;
		if (!nlmsg_ok(nlh, (int)len) ||
		    nlh->nlmsg_len < NLMSG_HDRLEN + GENL_HDRLEN)
			continue;
		if (is_gone(mgpu, nlh))
			return mgpu_fail(err, -ENODEV, "mgpu was unloaded");
		genl = NLMSG_DATA(nlh);
		if (nlh->nlmsg_type != mgpu->family ||
		    !mgpu_event_name(genl->cmd))
			continue;

		memset(event, 0, sizeof(*event));
		event->cmd = genl->cmd;
		if (mgpu_event_is_dev(genl->cmd))
			ret = mgpu_msg_parse(nlh, mgpu_dev_fields, &event->dev);
		else if (mgpu_event_is_ctx(genl->cmd))
			ret = mgpu_msg_parse(nlh, mgpu_ctx_fields, &event->ctx);
		else
			ret = mgpu_msg_parse(nlh, mgpu_vgpu_fields,
					     &event->vgpu);
		if (ret)
			return mgpu_fail(err, ret, "an event is malformed");
		return 0;
	}
}
