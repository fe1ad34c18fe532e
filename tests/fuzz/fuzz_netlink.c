// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz libmgpu's parser of netlink messages.  First byte of the input: the request that
 * the answer is for; the rest: a datagram, as the socket returns it.  Whatever it
 * holds, the parser reads no byte beyond it, strings end within their fields, and an
 * error has a sentence.
 *
 * Sequence number and port are 0, so that input with zeros reaches the parser.
 */
#include <linux/genetlink.h>
#include <netlink/msg.h>

#include "../../ctl/lib/msg.h"
#include "fuzz.h"

union info {
	struct mgpu_dev_info dev;
	struct mgpu_vgpu_info vgpu;
	struct mgpu_ctx ctx;
};

/* Each string ends, and no attribute that is absent has left a byte. */
static void check_fields(const struct mgpu_field *field, const void *info)
{
	for (; field->attr; field++) {
		const char *at = (const char *)info + field->offset;

		if (field->type == MGPU_FIELD_STRING)
			FUZZ_ASSERT(memchr(at, 0, field->size));
		if (field->type == MGPU_FIELD_NEST) {
			check_fields(field->nest, at);
			continue;
		}
		for (size_t i = 0; !mgpu_field_present(field, info) && i < field->size; i++)
			FUZZ_ASSERT(!at[i]);
	}
}

static int message(const struct nlmsghdr *nlh, void *arg)
{
	const struct mgpu_field *fields = arg;
	union info info = { 0 };
	int ret = mgpu_msg_parse(nlh, fields, &info);

	check_fields(fields, &info);
	return ret;
}

/* A request of each kind, with attributes to which errors may point. */
static struct nl_msg *request(uint8_t kind, const struct mgpu_field **fields)
{
	static const struct mgpu_vgpu_setting batch[] = {
		{ .id = 5, .mask = MGPU_SETTING_WEIGHT, .weight = 7 },
		{ .id = 6, .mask = MGPU_SETTING_FPS_LIMIT | MGPU_SETTING_FPS_TARGET,
		  .fps_limit = 60000, .fps_target = 30000 },
		{ .id = 7, .mask = MGPU_SETTING_GPU_LIMIT | MGPU_SETTING_GPU_TARGET,
		  .gpu_limit = 300000, .gpu_target = 200000 },
	};
	static const struct mgpu_dev_setting dev = {
		.id = 3, .mask = MGPU_DEV_SETTING_POLICY, .policy = "fixed",
	};

	*fields = mgpu_vgpu_fields;
	switch (kind % 5) {
	case 0:
		return mgpu_msg_new(0, MGPU_CMD_VGPU_GET, true, 0);
	case 1:
		return mgpu_msg_set(0, batch, sizeof(batch) / sizeof(batch[0]));
	case 2:
		*fields = mgpu_dev_fields;
		return mgpu_msg_dev_set(0, &dev);
	case 3:
		*fields = mgpu_ctx_fields;
		return mgpu_msg_ctx_preempt(0, 5, 1, 2, 0, true);
	default:
		*fields = mgpu_ctx_fields;
		return mgpu_msg_ctx_resume(0, 5, 1, true);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct mgpu_field *fields;
	struct mgpu_error err = { 0 };
	struct mgpu_reply reply = { .message = message, .err = &err };
	struct nl_msg *msg;
	char *datagram;

	if (!size)
		return 0;
	msg = request(data[0], &fields);
	if (!msg)
		abort();
	/* A copy of this size: the sanitizer sees a read beyond it. */
	datagram = malloc(size);
	if (!datagram)
		abort();
	memcpy(datagram, data + 1, size - 1);
	reply.request = nlmsg_hdr(msg);
	reply.arg = (void *)fields;
	mgpu_reply_feed(&reply, datagram, size - 1);

	FUZZ_ASSERT(memchr(err.text, 0, sizeof(err.text)));
	FUZZ_ASSERT(reply.result <= 0);
	if (reply.result)
		FUZZ_ASSERT(err.text[0] && err.code == reply.result);
	free(datagram);
	nlmsg_free(msg);
	return 0;
}

/* ---- seeds ---- */

struct seed {
	uint8_t data[4096];
	size_t len;
};

static void put(struct seed *s, const void *data, size_t len)
{
	memcpy(s->data + s->len, data, len);
	s->len += (len + 3) & ~(size_t)3;
}

static void put_attr(struct seed *s, uint16_t type, const void *data, size_t len)
{
	struct nlattr nla = { .nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type };

	put(s, &nla, sizeof(nla));
	put(s, data, len);
}

/* Store a message of one header and the attributes in @attrs. */
static void write_seed(const char *dir, const char *name, uint8_t kind,
		       struct nlmsghdr nlh, const void *head, size_t head_len,
		       const struct seed *attrs)
{
	struct seed s = { 0 };
	uint8_t data[sizeof(s.data) + 1];

	nlh.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + head_len + attrs->len);
	put(&s, &nlh, sizeof(nlh));
	put(&s, head, head_len);
	put(&s, attrs->data, attrs->len);
	data[0] = kind;
	memcpy(data + 1, s.data, s.len);
	fuzz_seed(dir, name, data, s.len + 1);
}

/* Attributes of each type of a table, with @value in numbers. */
static void put_fields(struct seed *s, const struct mgpu_field *field)
{
	static const uint8_t zeros[256] = { 1, 2, 3, 4, 5 };

	for (; field->attr; field++) {
		struct seed nest = { 0 };

		if (field->type == MGPU_FIELD_NEST) {
			put_fields(&nest, field->nest);
			put_attr(s, field->attr, nest.data, nest.len);
		} else if (field->type == MGPU_FIELD_STRING) {
			put_attr(s, field->attr, "name", 5);
		} else {
			put_attr(s, field->attr, zeros, field->size);
		}
	}
}

static void write_seeds(const char *dir)
{
	static const struct mgpu_field *const tables[] = {
		mgpu_vgpu_fields, mgpu_vgpu_fields, mgpu_dev_fields, mgpu_ctx_fields,
	};
	static const char *const names[] = { "vgpu", "set", "dev", "ctx" };
	struct genlmsghdr genl = { .cmd = MGPU_CMD_VGPU_GET, .version = 1 };
	struct nlmsghdr nlh = { .nlmsg_type = NLMSG_MIN_TYPE, .nlmsg_flags = NLM_F_MULTI };

	for (uint8_t i = 0; i < 4; i++) {
		uint32_t offset = NLMSG_HDRLEN + GENL_HDRLEN + (i == 1 ? 12 : 0);
		struct nlmsgerr refusal = { .error = -34 };
		struct seed attrs = { 0 }, ack = { 0 }, limits = { 0 };
		struct nlmsghdr error = {
			.nlmsg_type = NLMSG_ERROR,
			.nlmsg_flags = NLM_F_CAPPED | NLM_F_ACK_TLVS,
		};
		const uint64_t min = 1, max = 10000;
		char name[32];

		put_fields(&attrs, tables[i]);
		write_seed(dir, names[i], i, nlh, &genl, sizeof(genl), &attrs);

		put_attr(&limits, NL_POLICY_TYPE_ATTR_MIN_VALUE_U, &min, sizeof(min));
		put_attr(&limits, NL_POLICY_TYPE_ATTR_MAX_VALUE_U, &max, sizeof(max));
		put_attr(&ack, NLMSGERR_ATTR_MSG, "out of range", 13);
		put_attr(&ack, NLMSGERR_ATTR_OFFS, &offset, sizeof(offset));
		put_attr(&ack, NLMSGERR_ATTR_POLICY, limits.data, limits.len);
		snprintf(name, sizeof(name), "refused-%s", names[i]);
		write_seed(dir, name, i, error, &refusal, sizeof(refusal), &ack);
	}
}

FUZZ_SEEDS(write_seeds)
