// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink messages. libnl builds them; replies are parsed here, since libnl 3.7 does not
 * parse extended acknowledgments.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/genetlink.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "msg.h"

int mgpu_fail(struct mgpu_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		err->code = code;
		va_start(ap, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
	}
	return code;
}

/* ---- building ---- */

struct nl_msg *mgpu_msg_new(uint16_t family, uint8_t cmd, bool dump,
			    size_t payload)
{
	size_t size = NLMSG_HDRLEN + GENL_HDRLEN + payload;
	struct nl_msg *msg;

	msg = nlmsg_alloc_size(size);
	if (!msg)
		return NULL;
	if (!genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, family, 0,
			 NLM_F_REQUEST | (dump ? NLM_F_DUMP : NLM_F_ACK), cmd,
			 MGPU_FAMILY_VERSION)) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

#define NR_SETTINGS	11

/* Size of one vGPU's entry: nest, name and all settings. */
#define SETTING_SIZE							\
	((size_t)(nla_total_size(0) + nla_total_size(MGPU_UUID_LEN) +	\
		  NR_SETTINGS * nla_total_size(sizeof(uint32_t))))

static int put_setting(struct nl_msg *msg, const struct mgpu_vgpu_setting *set)
{
	const struct {
		uint32_t bit;
		int attr;
		uint32_t value;
	} values[] = {
		{ MGPU_SETTING_WEIGHT, MGPU_A_VGPU_WEIGHT, set->weight },
		{ MGPU_SETTING_FPS_LIMIT, MGPU_A_VGPU_FPS_LIMIT,
		  set->fps_limit },
		{ MGPU_SETTING_FPS_TARGET, MGPU_A_VGPU_FPS_TARGET,
		  set->fps_target },
		{ MGPU_SETTING_FPS_FLOOR, MGPU_A_VGPU_FPS_FLOOR,
		  set->fps_floor },
		{ MGPU_SETTING_GPU_LIMIT, MGPU_A_VGPU_GPU_LIMIT,
		  set->gpu_limit },
		{ MGPU_SETTING_GPU_TARGET, MGPU_A_VGPU_GPU_TARGET,
		  set->gpu_target },
		{ MGPU_SETTING_GPU_PERIOD, MGPU_A_VGPU_GPU_PERIOD,
		  set->gpu_period },
		{ MGPU_SETTING_GPU_BURST, MGPU_A_VGPU_GPU_BURST,
		  set->gpu_burst },
		{ MGPU_SETTING_MODE, MGPU_A_VGPU_MODE_WIDTH,
		  set->mode_width },
		{ MGPU_SETTING_MODE, MGPU_A_VGPU_MODE_HEIGHT,
		  set->mode_height },
		{ MGPU_SETTING_QUARANTINE, MGPU_A_VGPU_QUARANTINE,
		  set->quarantine },
	};
	struct nlattr *nest;
	size_t i;
	int err;

	_Static_assert(sizeof(values) / sizeof(values[0]) == NR_SETTINGS,
		       "SETTING_SIZE counts them");
	nest = nla_nest_start(msg, MGPU_A_BATCH_VGPU | NLA_F_NESTED);
	if (!nest)
		return -NLE_NOMEM;
	if (set->uuid[0])
		err = nla_put_string(msg, MGPU_A_VGPU_UUID, set->uuid);
	else
		err = nla_put_u32(msg, MGPU_A_VGPU_ID, set->id);
	for (i = 0; i < NR_SETTINGS && !err; i++)
		if (set->mask & values[i].bit)
			err = nla_put_u32(msg, values[i].attr, values[i].value);
	if (err)
		return err;
	/* not nla_nest_end(), which removes an empty nest */
	nest->nla_len = (uint16_t)((char *)nlmsg_tail(nlmsg_hdr(msg)) -
				   (char *)nest);
	return 0;
}

struct nl_msg *mgpu_msg_set(uint16_t family,
			    const struct mgpu_vgpu_setting *set, size_t nr)
{
	struct nl_msg *msg;
	size_t i;

	if (nr > (INT32_MAX - 4096) / SETTING_SIZE)
		return NULL;
	msg = mgpu_msg_new(family, MGPU_CMD_VGPU_SET, false, nr * SETTING_SIZE);
	if (!msg)
		return NULL;
	for (i = 0; i < nr; i++) {
		if (put_setting(msg, &set[i])) {
			nlmsg_free(msg);
			return NULL;
		}
	}
	return msg;
}

struct nl_msg *mgpu_msg_dev_set(uint16_t family,
				const struct mgpu_dev_setting *set)
{
	struct nl_msg *msg;
	int err;

	msg = mgpu_msg_new(family, MGPU_CMD_DEV_SET, false,
			   (size_t)(4 * nla_total_size(sizeof(uint32_t)) +
				    nla_total_size(sizeof(set->policy))));
	if (!msg)
		return NULL;
	err = nla_put_u32(msg, MGPU_A_DEV_ID, set->id);
	if (!err && (set->mask & MGPU_DEV_SETTING_POLICY))
		err = nla_put_string(msg, MGPU_A_DEV_POLICY, set->policy);
	if (!err && (set->mask & MGPU_DEV_SETTING_JOB_TIMEOUT))
		err = nla_put_u32(msg, MGPU_A_DEV_JOB_TIMEOUT,
				  set->job_timeout);
	if (!err && (set->mask & MGPU_DEV_SETTING_SLOTS))
		err = nla_put_u32(msg, MGPU_A_DEV_SLOTS, set->slots);
	if (!err && (set->mask & MGPU_DEV_SETTING_HANG_LIMIT))
		err = nla_put_u32(msg, MGPU_A_DEV_HANG_LIMIT, set->hang_limit);
	if (err) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

struct nl_msg *mgpu_msg_ctx_preempt(uint16_t family, uint32_t vgpu_id,
				    uint32_t ctx_id, uint32_t keep,
				    uint32_t method, bool hold)
{
	struct nl_msg *msg;

	msg = mgpu_msg_new(family, MGPU_CMD_CTX_PREEMPT, false,
			   (size_t)(4 * nla_total_size(sizeof(uint32_t)) +
				    nla_total_size(sizeof(uint8_t))));
	if (!msg)
		return NULL;
	if (nla_put_u32(msg, MGPU_A_CTX_VGPU_ID, vgpu_id) ||
	    nla_put_u32(msg, MGPU_A_CTX_ID, ctx_id) ||
	    nla_put_u32(msg, MGPU_A_CTX_SLOTS, keep) ||
	    nla_put_u32(msg, MGPU_A_CTX_METHOD, method) ||
	    nla_put_u8(msg, MGPU_A_CTX_HOLD, hold)) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

struct nl_msg *mgpu_msg_ctx_resume(uint16_t family, uint32_t vgpu_id,
				   uint32_t ctx_id, bool first)
{
	struct nl_msg *msg;

	msg = mgpu_msg_new(family, MGPU_CMD_CTX_RESUME, false,
			   (size_t)(2 * nla_total_size(sizeof(uint32_t)) +
				    nla_total_size(sizeof(uint8_t))));
	if (!msg)
		return NULL;
	if (nla_put_u32(msg, MGPU_A_CTX_VGPU_ID, vgpu_id) ||
	    nla_put_u32(msg, MGPU_A_CTX_ID, ctx_id) ||
	    nla_put_u8(msg, MGPU_A_CTX_FIRST, first)) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

/* ---- taking apart ---- */

/*
 * True if there is another attribute. After the last one @len may be negative: its
 * padding.
 */
static bool attr_ok(const struct nlattr *nla, int len)
{
	return len >= NLA_HDRLEN && nla->nla_len >= NLA_HDRLEN &&
	       nla->nla_len <= len;
}

static int parse_attr(const struct nlattr *nla, const struct mgpu_field *field,
		      void *info);

static int parse_attrs(const struct nlattr *nla, int len,
		       const struct mgpu_field *fields, void *info)
{
	const struct mgpu_field *field;
	int err;

	for (; attr_ok(nla, len); nla = nla_next(nla, &len)) {
		for (field = fields; field->attr; field++)
			if (field->attr == nla_type(nla))
				break;
		/* Skip attributes of later kernels. */
		if (!field->attr)
			continue;
		err = parse_attr(nla, field, info);
		if (err)
			return err;
	}
	return len > 0 ? -EBADMSG : 0;
}

static int parse_attr(const struct nlattr *nla, const struct mgpu_field *field,
		      void *info)
{
	char *to = (char *)info + field->offset;
	size_t len = (size_t)nla_len(nla);
	uint64_t *present = info;
	int err;

	switch (field->type) {
	case MGPU_FIELD_U8:
	case MGPU_FIELD_U32:
	case MGPU_FIELD_S32:
	case MGPU_FIELD_U64:
	case MGPU_FIELD_BINARY:
		if (len != field->size)
			return -EBADMSG;
		memcpy(to, nla_data(nla), len);
		break;
	case MGPU_FIELD_STRING:
		len = strnlen(nla_data(nla), len);
		if (len > field->size - 1)
			len = field->size - 1;
		memcpy(to, nla_data(nla), len);
		to[len] = '\0';
		break;
	case MGPU_FIELD_NEST:
		err = parse_attrs(nla_data(nla), (int)len, field->nest, to);
		if (err)
			return err;
		break;
	}
	*present |= MGPU_HAS(field->attr);
	return 0;
}

int mgpu_msg_parse(const struct nlmsghdr *nlh, const struct mgpu_field *fields,
		   void *info)
{
	int hdr = NLMSG_HDRLEN + GENL_HDRLEN;

	if (nlh->nlmsg_len < (uint32_t)hdr)
		return -EBADMSG;
	return parse_attrs((const struct nlattr *)((const char *)nlh + hdr),
			   (int)nlh->nlmsg_len - hdr, fields, info);
}

/* ---- explaining ---- */

/**
 * struct ext_ack - content of an extended acknowledgment
 * @text: the kernel's sentence of @text_len bytes, 0 for none
 * @offset: offset of the invalid attribute in the request, 0 for none
 * @min: lowest valid value of the attribute, if @limits
 * @max: highest valid value of the attribute, if @limits
 */
struct ext_ack {
	const char *text;
	int text_len;
	uint32_t offset;
	bool limits;
	uint64_t min;
	uint64_t max;
};

static void parse_policy(const struct nlattr *nla, int len, struct ext_ack *ack)
{
	bool min = false;
	bool max = false;

	for (; attr_ok(nla, len); nla = nla_next(nla, &len)) {
		if (nla_len(nla) != sizeof(uint64_t))
			continue;
		if (nla_type(nla) == NL_POLICY_TYPE_ATTR_MIN_VALUE_U) {
			memcpy(&ack->min, nla_data(nla), sizeof(ack->min));
			min = true;
		} else if (nla_type(nla) == NL_POLICY_TYPE_ATTR_MAX_VALUE_U) {
			memcpy(&ack->max, nla_data(nla), sizeof(ack->max));
			max = true;
		}
	}
	ack->limits = min && max;
}

static void parse_ext_ack(const struct nlattr *nla, int len,
			  struct ext_ack *ack)
{
	for (; attr_ok(nla, len); nla = nla_next(nla, &len)) {
		switch (nla_type(nla)) {
		case NLMSGERR_ATTR_MSG:
			ack->text = nla_data(nla);
			ack->text_len = (int)strnlen(nla_data(nla),
						     (size_t)nla_len(nla));
			break;
		case NLMSGERR_ATTR_OFFS:
			if (nla_len(nla) == sizeof(ack->offset))
				memcpy(&ack->offset, nla_data(nla),
				       sizeof(ack->offset));
			break;
		case NLMSGERR_ATTR_POLICY:
			parse_policy(nla_data(nla), nla_len(nla), ack);
			break;
		}
	}
}

struct text {
	char *at;
	size_t left;
};

__attribute__((format(printf, 2, 3)))
static void add(struct text *text, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text->at, text->left, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= text->left)
		n = text->left ? (int)text->left - 1 : 0;
	text->at += n;
	text->left -= (size_t)n;
}

static void add_value(struct text *text, const struct nlattr *nla,
		      const struct mgpu_field *field)
{
	uint32_t u32;

	if (field->type == MGPU_FIELD_STRING) {
		add(text, " '%.*s'", (int)strnlen(nla_data(nla),
						  (size_t)nla_len(nla)),
		    (const char *)nla_data(nla));
	} else if (field->type == MGPU_FIELD_U32 &&
		   nla_len(nla) == sizeof(u32)) {
		memcpy(&u32, nla_data(nla), sizeof(u32));
		add(text, " %" PRIu32, u32);
	}
}

static const struct nlattr *attr_at(const struct nlattr *nla, int len,
				    const char *at)
{
	for (; attr_ok(nla, len); nla = nla_next(nla, &len))
		if (at >= (const char *)nla &&
		    at < (const char *)nla + nla_len(nla) + NLA_HDRLEN)
			return nla;
	return NULL;
}

static void add_attr(struct text *text, const struct nlattr *nla,
		     const struct mgpu_field *fields)
{
	for (; fields->attr; fields++) {
		if (fields->attr != nla_type(nla))
			continue;
		add(text, "%s", fields->name);
		add_value(text, nla, fields);
		add(text, ": ");
		return;
	}
	add(text, "attribute %d: ", nla_type(nla));
}

/* Name the vGPU of an entry of a batch. */
static void add_entry(struct text *text, const struct nlattr *first, int len,
		      const struct nlattr *entry)
{
	const struct nlattr *nla;
	unsigned int number = 0;
	unsigned int all = 0;
	int rem = len;

	for (nla = first; attr_ok(nla, rem); nla = nla_next(nla, &rem)) {
		all++;
		if (nla == entry)
			number = all;
	}
	add(text, "vGPU");
	rem = nla_len(entry);
	for (nla = nla_data(entry); attr_ok(nla, rem);
	     nla = nla_next(nla, &rem)) {
		if (nla_type(nla) == MGPU_A_VGPU_ID ||
		    nla_type(nla) == MGPU_A_VGPU_UUID) {
			add_value(text, nla, nla_type(nla) == MGPU_A_VGPU_ID ?
				  mgpu_field_find(mgpu_vgpu_fields, "id") :
				  mgpu_field_find(mgpu_vgpu_fields, "uuid"));
			break;
		}
	}
	if (all > 1)
		add(text, " (number %u of %u)", number, all);
	add(text, ": ");
}

/* Name the attribute at @offset of the request. */
static void add_place(struct text *text, const struct nlmsghdr *request,
		      uint32_t offset)
{
	const struct genlmsghdr *genl = NLMSG_DATA(request);
	const char *at = (const char *)request + offset;
	int hdr = NLMSG_HDRLEN + GENL_HDRLEN;
	const struct nlattr *first = (const struct nlattr *)
				     ((const char *)request + hdr);
	int len = (int)request->nlmsg_len - hdr;
	const struct nlattr *nla;

	if (len < 0 || offset < (uint32_t)hdr || offset >= request->nlmsg_len)
		return;
	nla = attr_at(first, len, at);
	if (!nla)
		return;

	if (genl->cmd == MGPU_CMD_DEV_GET || genl->cmd == MGPU_CMD_DEV_SET) {
		add_attr(text, nla, mgpu_dev_fields);
	} else if (genl->cmd == MGPU_CMD_VGPU_GET) {
		add_attr(text, nla, mgpu_vgpu_fields);
	} else if (genl->cmd == MGPU_CMD_CTX_GET ||
		   genl->cmd == MGPU_CMD_CTX_PREEMPT ||
		   genl->cmd == MGPU_CMD_CTX_RESUME) {
		add_attr(text, nla, mgpu_ctx_order_fields);
	} else if (genl->cmd == MGPU_CMD_VGPU_SET) {
		add_entry(text, first, len, nla);
		nla = attr_at(nla_data(nla), nla_len(nla), at);
		/* id and uuid are in the name of the entry */
		if (nla && nla_type(nla) != MGPU_A_VGPU_ID &&
		    nla_type(nla) != MGPU_A_VGPU_UUID)
			add_attr(text, nla, mgpu_vgpu_fields);
	}
}

/* Sentence for an error without a text of the kernel. */
static const char *plain_error(int code)
{
	switch (-code) {
	case EPERM:
	case EACCES:
		return "not permitted: requests to mgpu need CAP_NET_ADMIN, run as root";
	case EOPNOTSUPP:
		return "the module does not know this command: it is older than this program";
	case ENOENT:
		return "mgpu was unloaded: run 'modprobe mgpu_soft' or load another back end";
	case ENODEV:
		return "there is no such device or vGPU";
	case ENOMEM:
	case ENOBUFS:
		return "the kernel is out of memory for the answer: try again";
	default:
		return strerror(-code);
	}
}

static void explain(const struct mgpu_reply *reply, int code,
		    const struct ext_ack *ack)
{
	struct text text;

	if (!reply->err)
		return;
	reply->err->code = code;
	text.at = reply->err->text;
	text.left = sizeof(reply->err->text);
	text.at[0] = '\0';

	if (ack->offset && reply->request)
		add_place(&text, reply->request, ack->offset);
	if (ack->text_len)
		add(&text, "%.*s", ack->text_len, ack->text);
	else
		add(&text, "%s", plain_error(code));
	if (ack->limits)
		add(&text, " (allowed: %" PRIu64 " to %" PRIu64 ")", ack->min,
		    ack->max);
}

/* The kernel's largest errno. */
#define ERRNO_MAX	4095

/* Process an acknowledgment or the end of a dump; both begin with a result. */
static void end_of_reply(struct mgpu_reply *reply, const struct nlmsghdr *nlh,
			 size_t tlvs)
{
	struct ext_ack ack = { 0 };
	int code;

	reply->done = true;
	if (nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(code)) {
		/* the end of a dump may have no result */
		if (nlh->nlmsg_type == NLMSG_ERROR)
			reply->result = mgpu_fail(reply->err, -EBADMSG,
						  "the kernel's answer is cut off");
		return;
	}
	memcpy(&code, NLMSG_DATA(nlh), sizeof(code));
	if (code >= 0)
		return;
	if (code < -ERRNO_MAX) {
		reply->result = mgpu_fail(reply->err, -EBADMSG,
					  "the kernel's answer is malformed");
		return;
	}

	if ((nlh->nlmsg_flags & NLM_F_ACK_TLVS) && tlvs < nlh->nlmsg_len)
		parse_ext_ack((const struct nlattr *)((const char *)nlh + tlvs),
			      (int)(nlh->nlmsg_len - tlvs), &ack);
	reply->result = code;
	reply->explained = ack.text_len;
	explain(reply, code, &ack);
}

static size_t error_tlvs(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = NLMSG_DATA(nlh);
	size_t at = NLMSG_HDRLEN + sizeof(*e);

	if (nlh->nlmsg_len < at)
		return nlh->nlmsg_len;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED) && e->error &&
	    e->msg.nlmsg_len > NLMSG_HDRLEN)
		at += NLMSG_ALIGN(e->msg.nlmsg_len - NLMSG_HDRLEN);
	return at;
}

void mgpu_reply_feed(struct mgpu_reply *reply, const void *buf, size_t len)
{
	const struct nlmsghdr *nlh = buf;
	size_t step;
	int err;

	while (!reply->done && len >= NLMSG_HDRLEN) {
		if (nlh->nlmsg_len < NLMSG_HDRLEN || nlh->nlmsg_len > len)
			break;
		if (nlh->nlmsg_seq != reply->seq ||
		    nlh->nlmsg_pid != reply->port)
			goto next;	/* answer to an earlier request that was given up */

		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
			reply->interrupted = true;

		switch (nlh->nlmsg_type) {
		case NLMSG_ERROR:
			end_of_reply(reply, nlh, error_tlvs(nlh));
			break;
		case NLMSG_DONE:
			end_of_reply(reply, nlh, NLMSG_HDRLEN +
				     NLMSG_ALIGN(sizeof(int)));
			break;
		case NLMSG_NOOP:
			break;
		default:
			if (nlh->nlmsg_type < NLMSG_MIN_TYPE ||
			    !reply->message || reply->result)
				break;
			err = reply->message(nlh, reply->arg);
			if (err)
				reply->result = mgpu_fail(reply->err, err, "%s",
							  err == -EBADMSG ?
							  "the kernel's answer is malformed" :
							  strerror(-err));
		}
next:
		step = NLMSG_ALIGN(nlh->nlmsg_len);
		if (step >= len)
			return;
		len -= step;
		nlh = (const struct nlmsghdr *)((const char *)nlh + step);
	}
	if (!reply->done && len) {
		reply->done = true;
		reply->result = mgpu_fail(reply->err, -EBADMSG,
					  "the kernel's answer is cut off");
	}
}
