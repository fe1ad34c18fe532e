// SPDX-License-Identifier: GPL-2.0-only
/*
 * libmgpu's messages, on bytes: requests, valid and invalid answers, and the kernel's
 * errors.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <netlink/msg.h>
#include <stdlib.h>

#include "mgpu.h"
#include "msg.h"
#include "tap.h"

#define FAMILY	31
#define PORT	4711
#define SEQ	99
#define HDR	(NLMSG_HDRLEN + GENL_HDRLEN)

/* A message under construction, in exactly as many bytes as it has. */
struct bytes {
	unsigned char *at;
	size_t len;
};

static size_t grow(struct bytes *b, size_t n)
{
	size_t old = b->len;

	b->at = realloc(b->at, old + n + !n);
	if (!b->at)
		abort();
	memset(b->at + old, 0, n);
	b->len += n;
	return old;
}

static void put(struct bytes *b, uint16_t type, const void *data, size_t len)
{
	struct nlattr nla = { .nla_len = (uint16_t)(NLA_HDRLEN + len),
			      .nla_type = type };
	size_t at = grow(b, NLA_ALIGN(NLA_HDRLEN + len));

	memcpy(b->at + at, &nla, sizeof(nla));
	if (len)
		memcpy(b->at + at + NLA_HDRLEN, data, len);
}

static void put_u32(struct bytes *b, uint16_t type, uint32_t value)
{
	put(b, type, &value, sizeof(value));
}

static void put_u64(struct bytes *b, uint16_t type, uint64_t value)
{
	put(b, type, &value, sizeof(value));
}

static void header(struct bytes *b, uint16_t type, uint16_t flags)
{
	struct nlmsghdr nlh = { .nlmsg_type = type, .nlmsg_flags = flags,
				.nlmsg_seq = SEQ, .nlmsg_pid = PORT };
	size_t at = grow(b, NLMSG_HDRLEN);

	memcpy(b->at + at, &nlh, sizeof(nlh));
}

/* Set the length of the message that begins at @at. */
static void finish(struct bytes *b, size_t at)
{
	uint32_t len = (uint32_t)(b->len - at);

	memcpy(b->at + at, &len, sizeof(len));
}

static void genl(struct bytes *b, uint16_t flags, uint8_t cmd)
{
	struct genlmsghdr hdr = { .cmd = cmd, .version = 1 };
	size_t at;

	header(b, FAMILY, flags);
	at = grow(b, GENL_HDRLEN);
	memcpy(b->at + at, &hdr, sizeof(hdr));
}

static void stats(struct bytes *b)
{
	struct bytes nest = { 0 };

	put_u64(&nest, MGPU_A_STATS_FRAMES, 7);
	put_u64(&nest, MGPU_A_STATS_ENGINE_NS, UINT64_MAX);
	put(b, MGPU_A_VGPU_STATS | NLA_F_NESTED, nest.at, nest.len);
	free(nest.at);
}

static void vgpu(struct bytes *b, uint32_t id, uint16_t flags)
{
	size_t at = b->len;

	genl(b, flags, MGPU_CMD_VGPU_GET);
	put_u32(b, MGPU_A_VGPU_ID, id);
	put(b, MGPU_A_VGPU_UUID, "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001",
	    MGPU_UUID_LEN);
	put(b, MGPU_A_VGPU_OPEN, "\1", 1);
	put_u32(b, MGPU_A_VGPU_FPS_LIMIT, 0);
	put_u64(b, MGPU_A_VGPU_MEM_USED, 1ull << 40);
	stats(b);
	finish(b, at);
}

/* ---- building ---- */

#define ALL_SETTINGS	(MGPU_SETTING_WEIGHT | MGPU_SETTING_FPS_LIMIT |	\
			 MGPU_SETTING_FPS_FLOOR |			\
			 MGPU_SETTING_GPU_LIMIT |			\
			 MGPU_SETTING_GPU_PERIOD | MGPU_SETTING_GPU_BURST | \
			 MGPU_SETTING_MODE | MGPU_SETTING_QUARANTINE | \
			 MGPU_SETTING_FPS_TARGET | MGPU_SETTING_GPU_TARGET)

static void builds_batch(void)
{
	struct mgpu_vgpu_setting set[] = {
		{ .id = 5, .mask = MGPU_SETTING_WEIGHT, .weight = 300 },
		{ .id = 5, .uuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001",
		  .mask = MGPU_SETTING_WEIGHT | MGPU_SETTING_FPS_LIMIT,
		  .weight = 1, .fps_limit = 29970 },
		{ .id = 6, .mask = ALL_SETTINGS & ~MGPU_SETTING_WEIGHT,
		  .weight = 9, .fps_limit = 0, .fps_target = 59940, .fps_floor = 25000,
		  .gpu_limit = 305000,
		  .gpu_target = 205000,
		  .gpu_period = 10000, .gpu_burst = 500, .mode_width = 1280,
		  .mode_height = 720, .quarantine = 1 },
	};
	struct nl_msg *msg = mgpu_msg_set(FAMILY, set, 3);
	struct bytes want = { 0 };
	struct bytes nest = { 0 };

	TAP_NEED(msg);
	put_u32(&nest, MGPU_A_VGPU_ID, 5);
	put_u32(&nest, MGPU_A_VGPU_WEIGHT, 300);
	put(&want, MGPU_A_BATCH_VGPU | NLA_F_NESTED, nest.at, nest.len);
	nest.len = 0;
	put(&nest, MGPU_A_VGPU_UUID, set[1].uuid, MGPU_UUID_LEN);
	put_u32(&nest, MGPU_A_VGPU_WEIGHT, 1);
	put_u32(&nest, MGPU_A_VGPU_FPS_LIMIT, 29970);
	put(&want, MGPU_A_BATCH_VGPU | NLA_F_NESTED, nest.at, nest.len);
	nest.len = 0;
	put_u32(&nest, MGPU_A_VGPU_ID, 6);
	put_u32(&nest, MGPU_A_VGPU_FPS_LIMIT, 0);
	put_u32(&nest, MGPU_A_VGPU_FPS_TARGET, 59940);
	put_u32(&nest, MGPU_A_VGPU_FPS_FLOOR, 25000);
	put_u32(&nest, MGPU_A_VGPU_GPU_LIMIT, 305000);
	put_u32(&nest, MGPU_A_VGPU_GPU_TARGET, 205000);
	put_u32(&nest, MGPU_A_VGPU_GPU_PERIOD, 10000);
	put_u32(&nest, MGPU_A_VGPU_GPU_BURST, 500);
	put_u32(&nest, MGPU_A_VGPU_MODE_WIDTH, 1280);
	put_u32(&nest, MGPU_A_VGPU_MODE_HEIGHT, 720);
	put_u32(&nest, MGPU_A_VGPU_QUARANTINE, 1);
	put(&want, MGPU_A_BATCH_VGPU | NLA_F_NESTED, nest.at, nest.len);

	TAP_EQ(nlmsg_hdr(msg)->nlmsg_len, HDR + want.len);
	TAP_EQ(nlmsg_hdr(msg)->nlmsg_type, FAMILY);
	TAP_EQ(nlmsg_hdr(msg)->nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
	if (nlmsg_hdr(msg)->nlmsg_len == HDR + want.len)
		TAP_MEM((char *)nlmsg_hdr(msg) + HDR, want.at, want.len);
	free(want.at);
	free(nest.at);
	nlmsg_free(msg);
}

static void builds_large_batch(void)
{
	size_t nr = 1024;
	struct mgpu_vgpu_setting *set = calloc(nr, sizeof(*set));
	const struct nlattr *nla;
	struct nl_msg *msg;
	size_t found = 0;
	size_t i;
	int rem;

	TAP_NEED(set);
	for (i = 0; i < nr; i++) {
		snprintf(set[i].uuid, sizeof(set[i].uuid),
			 "83b8f4f2-509f-382f-3c1e-%012zx", i);
		set[i].mask = ALL_SETTINGS;
		set[i].weight = (uint32_t)i + 1;
	}
	msg = mgpu_msg_set(FAMILY, set, nr);
	TAP_CHECK(msg);
	if (msg) {
		/* 64 KiB and more: in one attribute it would not fit */
		TAP_CHECK(nlmsg_hdr(msg)->nlmsg_len > UINT16_MAX);
		nlmsg_for_each_attr(nla, nlmsg_hdr(msg), GENL_HDRLEN, rem)
			found += nla_type(nla) == MGPU_A_BATCH_VGPU;
		TAP_EQ(found, nr);
		TAP_EQ(rem, 0);
	}
	nlmsg_free(msg);
	free(set);
}

/* The message's attributes are @want; the message is freed. */
static void check_attrs(struct nl_msg *msg, const struct bytes *want)
{
	TAP_EQ(nlmsg_hdr(msg)->nlmsg_len, HDR + want->len);
	if (nlmsg_hdr(msg)->nlmsg_len == HDR + want->len)
		TAP_MEM((char *)nlmsg_hdr(msg) + HDR, want->at, want->len);
	nlmsg_free(msg);
}

static void builds_dev_set(void)
{
	struct mgpu_dev_setting set = {
		.id = 3,
		.mask = MGPU_DEV_SETTING_POLICY | MGPU_DEV_SETTING_JOB_TIMEOUT,
		.policy = "best-effort",
		.job_timeout = 500,
	};
	struct nl_msg *msg = mgpu_msg_dev_set(FAMILY, &set);
	struct bytes want = { 0 };

	TAP_NEED(msg);
	put_u32(&want, MGPU_A_DEV_ID, 3);
	put(&want, MGPU_A_DEV_POLICY, "best-effort", 12);
	put_u32(&want, MGPU_A_DEV_JOB_TIMEOUT, 500);
	check_attrs(msg, &want);

	set.mask = MGPU_DEV_SETTING_JOB_TIMEOUT;
	msg = mgpu_msg_dev_set(FAMILY, &set);
	TAP_NEED(msg);
	TAP_EQ(nlmsg_hdr(msg)->nlmsg_len, HDR + 16);
	nlmsg_free(msg);

	set.mask = MGPU_DEV_SETTING_SLOTS;
	set.slots = 7;
	msg = mgpu_msg_dev_set(FAMILY, &set);
	TAP_NEED(msg);
	want.len = 0;
	put_u32(&want, MGPU_A_DEV_ID, 3);
	put_u32(&want, MGPU_A_DEV_SLOTS, 7);
	check_attrs(msg, &want);

	set.mask = MGPU_DEV_SETTING_HANG_LIMIT;
	set.hang_limit = 5;
	msg = mgpu_msg_dev_set(FAMILY, &set);
	TAP_NEED(msg);
	want.len = 0;
	put_u32(&want, MGPU_A_DEV_ID, 3);
	put_u32(&want, MGPU_A_DEV_HANG_LIMIT, 5);
	check_attrs(msg, &want);

	/* the longest name that fits, with all else */
	set.mask = UINT32_MAX;
	memset(set.policy, 'p', sizeof(set.policy) - 1);
	msg = mgpu_msg_dev_set(FAMILY, &set);
	TAP_CHECK(msg);
	nlmsg_free(msg);
	free(want.at);
}

/* The message is @want behind its headers; both are freed. */
static void check_message(struct nl_msg *msg, uint8_t cmd, struct bytes *want)
{
	const struct genlmsghdr *hdr;

	TAP_NEED(msg);
	hdr = nlmsg_data(nlmsg_hdr(msg));
	TAP_EQ(hdr->cmd, cmd);
	TAP_EQ(nlmsg_hdr(msg)->nlmsg_type, FAMILY);
	TAP_EQ(nlmsg_hdr(msg)->nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
	check_attrs(msg, want);
	free(want->at);
}

static void builds_ctx_orders(void)
{
	struct bytes preempt = { 0 };
	struct bytes resume = { 0 };

	put_u32(&preempt, MGPU_A_CTX_VGPU_ID, 5);
	put_u32(&preempt, MGPU_A_CTX_ID, UINT32_MAX);
	put_u32(&preempt, MGPU_A_CTX_SLOTS, 2);
	put_u32(&preempt, MGPU_A_CTX_METHOD, MGPU_PREEMPT_METHOD_DRAIN);
	put(&preempt, MGPU_A_CTX_HOLD, "\1", 1);
	check_message(mgpu_msg_ctx_preempt(FAMILY, 5, UINT32_MAX, 2,
					   MGPU_PREEMPT_METHOD_DRAIN, true),
		      MGPU_CMD_CTX_PREEMPT, &preempt);

	put_u32(&resume, MGPU_A_CTX_VGPU_ID, 5);
	put_u32(&resume, MGPU_A_CTX_ID, 9);
	put(&resume, MGPU_A_CTX_FIRST, "\1", 1);
	check_message(mgpu_msg_ctx_resume(FAMILY, 5, 9, true),
		      MGPU_CMD_CTX_RESUME, &resume);
}

/* ---- answers ---- */

static void reads_vgpu(void)
{
	struct mgpu_vgpu_info info = { 0 };
	struct bytes b = { 0 };
	size_t at;

	vgpu(&b, 12, 0);
	/* of a kernel to come */
	put_u32(&b, 200, 1);
	at = 0;
	finish(&b, at);
	TAP_EQ(mgpu_msg_parse((void *)b.at, mgpu_vgpu_fields, &info), 0);
	TAP_EQ(info.id, 12);
	TAP_STR(info.uuid, "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001");
	TAP_EQ(info.open, 1);
	TAP_EQ(info.mem_used, 1ull << 40);
	TAP_EQ(info.stats.frames, 7);
	TAP_CHECK(info.stats.engine_ns == UINT64_MAX);
	/* 0 is not unknown */
	TAP_EQ(info.fps_limit, 0);
	TAP_CHECK(mgpu_has(&info, MGPU_A_VGPU_FPS_LIMIT));
	TAP_EQ(info.tgid, 0);
	TAP_CHECK(!mgpu_has(&info, MGPU_A_VGPU_TGID));
	TAP_CHECK(mgpu_has(&info.stats, MGPU_A_STATS_FRAMES));
	TAP_CHECK(!mgpu_has(&info.stats, MGPU_A_STATS_JOBS));
	free(b.at);
}

static void reads_ctx(void)
{
	const struct mgpu_field *state =
		mgpu_field_find(mgpu_ctx_fields, "state");
	struct mgpu_ctx info = { 0 };
	struct bytes b = { 0 };
	char name[MGPU_CTX_NAME_LEN + 1];

	TAP_NEED(state);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	genl(&b, 0, MGPU_CMD_CTX_GET);
	put_u32(&b, MGPU_A_CTX_VGPU_ID, 3);
	put_u32(&b, MGPU_A_CTX_ID, 77);
	put(&b, MGPU_A_CTX_NAME, name, sizeof(name));
	put_u32(&b, MGPU_A_CTX_STATE, MGPU_CTX_STATE_HELD);
	put_u32(&b, MGPU_A_CTX_SLOTS, 1);
	put_u32(&b, MGPU_A_CTX_SLOTS_ALLOWED, 2);
	put_u32(&b, MGPU_A_CTX_SLOTS_WANTED, 4);
	put(&b, MGPU_A_CTX_IDEMPOTENT, "\1", 1);
	put_u64(&b, MGPU_A_CTX_JOB_INST, 1ull << 40);
	put_u64(&b, MGPU_A_CTX_SWITCH_NS, UINT64_MAX);
	finish(&b, 0);
	TAP_EQ(mgpu_msg_parse((void *)b.at, mgpu_ctx_fields, &info), 0);
	TAP_EQ(info.vgpu_id, 3);
	TAP_EQ(info.id, 77);
	TAP_STR(info.name, name);
	TAP_STR(mgpu_field_str(state, &info), "held");
	TAP_EQ(info.slots, 1);
	TAP_EQ(info.slots_allowed, 2);
	TAP_EQ(info.slots_wanted, 4);
	TAP_EQ(info.idempotent, 1);
	TAP_EQ(info.job_inst, 1ll << 40);
	TAP_CHECK(info.switch_ns == UINT64_MAX);
	TAP_CHECK(!mgpu_has(&info, MGPU_A_CTX_OP));
	TAP_CHECK(mgpu_has(&info, MGPU_A_CTX_SWITCH_NS));
	free(b.at);
}

static void put_hist(struct bytes *b, uint16_t type, uint64_t first, size_t nr)
{
	uint64_t hist[MGPU_HIST_BUCKETS + 1];
	size_t i;

	for (i = 0; i < nr; i++)
		hist[i] = first + i;
	put(b, type, hist, nr * sizeof(hist[0]));
}

static void reads_hists(void)
{
	const struct mgpu_field *field =
		mgpu_field_find(mgpu_vgpu_fields, "latency-hist");
	struct mgpu_vgpu_info info = { 0 };
	struct bytes b = { 0 };

	TAP_NEED(field);
	genl(&b, 0, MGPU_CMD_VGPU_GET);
	/* at an address that is no multiple of 8 */
	put_u32(&b, MGPU_A_VGPU_GPU_LIMIT, 300000);
	put_hist(&b, MGPU_A_VGPU_LATENCY_HIST, 1ull << 33, MGPU_HIST_BUCKETS);
	finish(&b, 0);
	TAP_EQ(mgpu_msg_parse((void *)b.at, mgpu_vgpu_fields, &info), 0);
	TAP_EQ(info.gpu_limit, 300000);
	TAP_CHECK(mgpu_field_present(field, &info));
	TAP_CHECK(!mgpu_has(&info, MGPU_A_VGPU_FRAME_INTERVAL_HIST));
	TAP_CHECK(mgpu_field_hist(field, &info) == info.latency_hist);
	TAP_EQ(info.latency_hist[0], 1ll << 33);
	TAP_EQ(info.latency_hist[MGPU_HIST_BUCKETS - 1],
	       (1ll << 33) + MGPU_HIST_BUCKETS - 1);
	free(b.at);
}

static void refuses_short_hist(void)
{
	struct mgpu_vgpu_info info = { 0 };
	size_t nr;

	for (nr = MGPU_HIST_BUCKETS - 1; nr <= MGPU_HIST_BUCKETS + 1; nr += 2) {
		struct bytes b = { 0 };

		genl(&b, 0, MGPU_CMD_VGPU_GET);
		put_hist(&b, MGPU_A_VGPU_LATENCY_HIST, 0, nr);
		finish(&b, 0);
		TAP_EQ(mgpu_msg_parse((void *)b.at, mgpu_vgpu_fields, &info),
		       -EBADMSG);
		TAP_CHECK(!mgpu_has(&info, MGPU_A_VGPU_LATENCY_HIST));
		free(b.at);
	}
}

static void reads_policy_exit(void)
{
	const struct mgpu_field *code =
		mgpu_field_find(mgpu_policy_exit_fields, "code");
	const struct mgpu_field *kind =
		mgpu_field_find(mgpu_policy_exit_fields, "kind");
	struct mgpu_dev_info info = { 0 };
	struct bytes nest = { 0 };
	struct bytes b = { 0 };

	TAP_NEED(code && kind);
	put_u32(&nest, MGPU_A_POLICY_EXIT_KIND, MGPU_POLICY_EXIT_KIND_STARVED);
	put_u32(&nest, MGPU_A_POLICY_EXIT_CODE, (uint32_t)-ETIMEDOUT);
	put(&nest, MGPU_A_POLICY_EXIT_POLICY, "edf", 4);
	put(&nest, MGPU_A_POLICY_EXIT_MESSAGE, "vGPU 3 waited", 14);
	genl(&b, 0, MGPU_CMD_DEV_GET);
	put(&b, MGPU_A_DEV_BUILTIN_POLICY, "fixed", 6);
	put(&b, MGPU_A_DEV_POLICY_EXIT | NLA_F_NESTED, nest.at, nest.len);
	finish(&b, 0);
	TAP_EQ(mgpu_msg_parse((void *)b.at, mgpu_dev_fields, &info), 0);
	TAP_STR(info.builtin_policy, "fixed");
	TAP_CHECK(mgpu_has(&info, MGPU_A_DEV_POLICY_EXIT));
	TAP_STR(mgpu_field_str(kind, &info.policy_exit), "starved");
	TAP_EQ(info.policy_exit.code, -ETIMEDOUT);
	TAP_EQ((int64_t)mgpu_field_u64(code, &info.policy_exit), -ETIMEDOUT);
	TAP_STR(info.policy_exit.policy, "edf");
	TAP_STR(info.policy_exit.message, "vGPU 3 waited");
	TAP_CHECK(!mgpu_has(&info.policy_exit, MGPU_A_POLICY_EXIT_VGPU_ID));
	free(nest.at);
	free(b.at);
}

static void refuses_wrong_length(void)
{
	struct mgpu_vgpu_info info = { 0 };
	struct bytes b = { 0 };

	genl(&b, 0, MGPU_CMD_VGPU_GET);
	put(&b, MGPU_A_VGPU_ID, "abc", 2);
	finish(&b, 0);
	TAP_EQ(mgpu_msg_parse((void *)b.at, mgpu_vgpu_fields, &info), -EBADMSG);
	TAP_CHECK(!mgpu_has(&info, MGPU_A_VGPU_ID));
	free(b.at);
}

static void bounds_strings(void)
{
	struct mgpu_dev_info info = { 0 };
	struct bytes b = { 0 };
	char name[300];

	memset(name, 'x', sizeof(name));
	genl(&b, 0, MGPU_CMD_DEV_GET);
	put(&b, MGPU_A_DEV_NAME, name, sizeof(name));
	put(&b, MGPU_A_DEV_BACKEND, name, 4);	/* no 0 at its end */
	put(&b, MGPU_A_DEV_POLICY, name, 0);
	finish(&b, 0);
	TAP_EQ(mgpu_msg_parse((void *)b.at, mgpu_dev_fields, &info), 0);
	TAP_EQ(strlen(info.name), MGPU_NAME_LEN - 1);
	TAP_STR(info.backend, "xxxx");
	TAP_STR(info.policy, "");
	free(b.at);
}

/* Each shorter copy is read in a buffer of its size: the sanitizer watches. */
static void survives_cut(void)
{
	struct bytes b = { 0 };
	size_t refused = 0;
	size_t len;

	vgpu(&b, 1, 0);
	for (len = NLMSG_HDRLEN; len < b.len; len++) {
		struct mgpu_vgpu_info info = { 0 };
		uint32_t len32 = (uint32_t)len;
		char *copy = malloc(len);

		if (!copy)
			abort();
		memcpy(copy, b.at, len);
		memcpy(copy, &len32, sizeof(len32));
		refused += mgpu_msg_parse((void *)copy, mgpu_vgpu_fields,
					  &info) != 0;
		free(copy);
	}
	TAP_CHECK(refused > (b.len - NLMSG_HDRLEN) / 2);
	free(b.at);
}

static void survives_noise(void)
{
	struct bytes b = { 0 };
	unsigned int seed = 1;
	int round;

	vgpu(&b, 1, 0);
	for (round = 0; round < 20000; round++) {
		struct mgpu_vgpu_info info = { 0 };
		char *copy = malloc(b.len);
		int n;

		if (!copy)
			abort();
		memcpy(copy, b.at, b.len);
		for (n = 0; n < 4; n++)
			copy[HDR + (size_t)rand_r(&seed) % (b.len - HDR)] =
				(char)rand_r(&seed);
		(void)mgpu_msg_parse((void *)copy, mgpu_vgpu_fields, &info);
		TAP_CHECK(memchr(info.uuid, 0, sizeof(info.uuid)));
		free(copy);
	}
	free(b.at);
}

/* ---- conversations ---- */

static uint32_t ids[8];
static size_t nr_ids;

static int collect(const struct nlmsghdr *nlh, void *arg)
{
	struct mgpu_vgpu_info info = { 0 };
	int ret = mgpu_msg_parse(nlh, mgpu_vgpu_fields, &info);

	(void)arg;
	if (!ret && nr_ids < 8)
		ids[nr_ids++] = info.id;
	return ret;
}

static struct mgpu_reply new_reply(struct mgpu_error *err)
{
	nr_ids = 0;
	memset(err, 0, sizeof(*err));
	return (struct mgpu_reply){ .seq = SEQ, .port = PORT,
				    .message = collect, .err = err };
}

static void done(struct bytes *b, uint16_t flags, int code)
{
	size_t at = b->len;
	size_t to;

	header(b, NLMSG_DONE, flags);
	to = grow(b, sizeof(code));
	memcpy(b->at + to, &code, sizeof(code));
	finish(b, at);
}

static void reads_dump(void)
{
	struct mgpu_error err;
	struct mgpu_reply reply = new_reply(&err);
	struct bytes b = { 0 };

	vgpu(&b, 3, NLM_F_MULTI);
	vgpu(&b, 4, NLM_F_MULTI);
	mgpu_reply_feed(&reply, b.at, b.len);
	TAP_CHECK(!reply.done);
	b.len = 0;
	vgpu(&b, 9, NLM_F_MULTI);
	done(&b, NLM_F_MULTI, 0);
	mgpu_reply_feed(&reply, b.at, b.len);
	TAP_CHECK(reply.done);
	TAP_EQ(reply.result, 0);
	TAP_CHECK(!reply.interrupted);
	TAP_EQ(nr_ids, 3);
	TAP_EQ(ids[2], 9);
	free(b.at);
}

static void notices_interruption(void)
{
	struct mgpu_error err;
	struct mgpu_reply reply = new_reply(&err);
	struct bytes b = { 0 };

	vgpu(&b, 3, NLM_F_MULTI | NLM_F_DUMP_INTR);
	done(&b, NLM_F_MULTI, 0);
	mgpu_reply_feed(&reply, b.at, b.len);
	TAP_CHECK(reply.done && reply.interrupted);
	free(b.at);
}

static void passes_over_others(void)
{
	struct mgpu_error err;
	struct mgpu_reply reply = new_reply(&err);
	struct bytes b = { 0 };
	uint32_t other = SEQ - 1;

	done(&b, NLM_F_MULTI, -EIO);
	memcpy(b.at + offsetof(struct nlmsghdr, nlmsg_seq), &other,
	       sizeof(other));
	mgpu_reply_feed(&reply, b.at, b.len);
	TAP_CHECK(!reply.done);
	TAP_EQ(reply.result, 0);
	free(b.at);
}

static void refuses_cut_answer(void)
{
	struct mgpu_error err;
	struct mgpu_reply reply = new_reply(&err);
	struct bytes b = { 0 };

	vgpu(&b, 3, NLM_F_MULTI);
	mgpu_reply_feed(&reply, b.at, b.len - 8);
	TAP_CHECK(reply.done);
	TAP_EQ(reply.result, -EBADMSG);
	TAP_CHECK(err.text[0] != '\0');
	free(b.at);
}

/* ---- refusals ---- */

static struct nl_msg *batch(void)
{
	struct mgpu_vgpu_setting set[] = {
		{ .id = 5, .mask = MGPU_SETTING_WEIGHT, .weight = 300 },
		{ .id = 6, .mask = MGPU_SETTING_FPS_LIMIT | MGPU_SETTING_WEIGHT,
		  .weight = 20000, .fps_limit = 1000 },
	};
	struct nl_msg *msg = mgpu_msg_set(FAMILY, set, 2);

	if (!msg)
		abort();
	nlmsg_hdr(msg)->nlmsg_seq = SEQ;
	nlmsg_hdr(msg)->nlmsg_pid = PORT;
	return msg;
}

/* An error with its explanation; the request comes back unless @capped. */
static void error(struct bytes *b, const struct nlmsghdr *request, int code,
		  const char *text, uint32_t offset, bool limits, bool capped)
{
	struct nlmsgerr e = { .error = code, .msg = *request };
	size_t at = b->len;
	size_t extra = NLMSG_ALIGN(request->nlmsg_len) - NLMSG_HDRLEN;
	size_t to;

	header(b, NLMSG_ERROR, (uint16_t)(NLM_F_ACK_TLVS |
					  (capped ? NLM_F_CAPPED : 0)));
	to = grow(b, sizeof(e) + (capped ? 0 : extra));
	memcpy(b->at + to, &e, sizeof(e));
	if (!capped)
		memcpy(b->at + to + sizeof(e),
		       (const char *)request + NLMSG_HDRLEN,
		       request->nlmsg_len - NLMSG_HDRLEN);
	if (text)
		put(b, NLMSGERR_ATTR_MSG, text, strlen(text) + 1);
	if (offset)
		put_u32(b, NLMSGERR_ATTR_OFFS, offset);
	if (limits) {
		struct bytes nest = { 0 };

		put_u64(&nest, NL_POLICY_TYPE_ATTR_MIN_VALUE_U, 1);
		put_u64(&nest, NL_POLICY_TYPE_ATTR_MAX_VALUE_U, 10000);
		put(b, NLMSGERR_ATTR_POLICY | NLA_F_NESTED, nest.at, nest.len);
		free(nest.at);
	}
	finish(b, at);
}

static void check_refusal(uint32_t offset, const char *text, bool limits,
			  bool capped, const char *want)
{
	struct nl_msg *msg = batch();
	struct mgpu_error err;
	struct mgpu_reply reply = new_reply(&err);
	struct bytes b = { 0 };

	reply.request = nlmsg_hdr(msg);
	error(&b, reply.request, -ERANGE, text, offset, limits, capped);
	mgpu_reply_feed(&reply, b.at, b.len);
	TAP_CHECK(reply.done);
	TAP_EQ(reply.result, -ERANGE);
	TAP_EQ(err.code, -ERANGE);
	TAP_STR(err.text, want);
	free(b.at);
	nlmsg_free(msg);
}

/* The first entry takes 20 bytes, the second one begins at HDR + 20. */
#define SECOND	(HDR + 20)

static void explains_refusals(void)
{
	bool capped = false;

	do {
		check_refusal(SECOND + 12, "integer out of range", true, capped,
			      "vGPU 6 (number 2 of 2): weight 20000: integer out of range (allowed: 1 to 10000)");
		check_refusal(SECOND, "in the batch already", false, capped,
			      "vGPU 6 (number 2 of 2): in the batch already");
		/* its id is in the name already */
		check_refusal(HDR + 4, "no such vGPU", false, capped,
			      "vGPU 5 (number 1 of 2): no such vGPU");
		check_refusal(0, "no", false, capped, "no");
		capped = !capped;
	} while (capped);
}

static void survives_wrong_offset(void)
{
	check_refusal(1, "no", false, true, "no");
	check_refusal(HDR - 1, "no", false, true, "no");
	check_refusal(100000, "no", false, true, "no");
	check_refusal(UINT32_MAX, "no", false, true, "no");
}

static void explains_bare_errors(void)
{
	static const int codes[] = { EPERM, EOPNOTSUPP, ENODEV, ENOMEM, EIO };
	struct nl_msg *msg = batch();
	size_t i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct mgpu_error err;
		struct mgpu_reply reply = new_reply(&err);
		struct bytes b = { 0 };

		reply.request = nlmsg_hdr(msg);
		error(&b, reply.request, -codes[i], NULL, 0, false, true);
		mgpu_reply_feed(&reply, b.at, b.len);
		TAP_EQ(reply.result, -codes[i]);
		TAP_CHECK(strlen(err.text) > 5);
		if (codes[i] == EPERM)
			TAP_CHECK(strstr(err.text, "CAP_NET_ADMIN"));
		free(b.at);
	}
	nlmsg_free(msg);
}

/* An error always has a sentence, also if the kernel's is empty or no errno is known. */
static void explains_odd_errors(void)
{
	static const struct {
		int code;
		const char *text;
		int result;
		const char *says;
	} odd[] = {
		{ -EINVAL, "", -EINVAL, "Invalid argument" },
		{ INT32_MIN, NULL, -EBADMSG, "malformed" },
		{ -4096, "no", -EBADMSG, "malformed" },
		{ -4095, "no", -4095, "no" },
	};
	struct nl_msg *msg = batch();

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct mgpu_error err = { 0 };
		struct mgpu_reply reply = new_reply(&err);
		struct bytes b = { 0 };

		reply.request = nlmsg_hdr(msg);
		error(&b, reply.request, odd[i].code, odd[i].text, 0, false, true);
		mgpu_reply_feed(&reply, b.at, b.len);
		TAP_EQ(reply.result, odd[i].result);
		TAP_CHECK(strstr(err.text, odd[i].says));
		free(b.at);
	}
	nlmsg_free(msg);
}

static void explains_refused_dev_set(void)
{
	struct mgpu_dev_setting set = {
		.id = 3,
		.mask = MGPU_DEV_SETTING_POLICY,
		.policy = "wieghted",
	};
	struct nl_msg *msg = mgpu_msg_dev_set(FAMILY, &set);
	struct mgpu_error err;
	struct mgpu_reply reply = new_reply(&err);
	struct bytes b = { 0 };

	TAP_NEED(msg);
	nlmsg_hdr(msg)->nlmsg_seq = SEQ;
	nlmsg_hdr(msg)->nlmsg_pid = PORT;
	reply.request = nlmsg_hdr(msg);
	error(&b, reply.request, -EINVAL, "choose fixed", HDR + 8, false, true);
	mgpu_reply_feed(&reply, b.at, b.len);
	TAP_EQ(reply.result, -EINVAL);
	TAP_STR(err.text, "policy 'wieghted': choose fixed");
	free(b.at);
	nlmsg_free(msg);
}

static void check_ctx_refusal(struct nl_msg *msg, int code, const char *text,
			      uint32_t offset, const char *want)
{
	struct mgpu_error err;
	struct mgpu_reply reply = new_reply(&err);
	struct bytes b = { 0 };

	TAP_NEED(msg);
	nlmsg_hdr(msg)->nlmsg_seq = SEQ;
	nlmsg_hdr(msg)->nlmsg_pid = PORT;
	reply.request = nlmsg_hdr(msg);
	error(&b, reply.request, code, text, offset, false, true);
	mgpu_reply_feed(&reply, b.at, b.len);
	TAP_EQ(reply.result, code);
	/* this tells a missing context from a missing family */
	TAP_EQ(reply.explained, !!text);
	TAP_STR(err.text, want);
	free(b.at);
	nlmsg_free(msg);
}

static void explains_refused_ctx_orders(void)
{
	check_ctx_refusal(mgpu_msg_ctx_preempt(FAMILY, 5, 9, 0, 7, false),
			  -ERANGE, "integer out of range", HDR + 24,
			  "method 7: integer out of range");
	check_ctx_refusal(mgpu_msg_ctx_resume(FAMILY, 5, 9, false), -ENOENT,
			  "no context has it", HDR + 8,
			  "id 9: no context has it");
	check_ctx_refusal(mgpu_msg_ctx_resume(FAMILY, 5, 9, false), -ENODEV,
			  "no vGPU has it", HDR,
			  "vgpu-id 5: no vGPU has it");
	check_ctx_refusal(mgpu_msg_ctx_resume(FAMILY, 5, 9, false), -ENOENT,
			  NULL, 0,
			  "mgpu was unloaded: run 'modprobe mgpu_soft' or load another back end");
}

/* An error of a dump comes with its end. */
static void explains_failed_dump(void)
{
	struct nl_msg *msg = mgpu_msg_new(FAMILY, MGPU_CMD_VGPU_GET, true, 8);
	struct mgpu_error err;
	struct mgpu_reply reply = new_reply(&err);
	struct bytes b = { 0 };

	TAP_NEED(msg);
	TAP_CHECK(nlmsg_hdr(msg)->nlmsg_flags & NLM_F_DUMP);
	reply.request = nlmsg_hdr(msg);
	done(&b, NLM_F_MULTI | NLM_F_ACK_TLVS, -ENODEV);
	put(&b, NLMSGERR_ATTR_MSG, "no such device", 15);
	finish(&b, 0);
	mgpu_reply_feed(&reply, b.at, b.len);
	TAP_CHECK(reply.done);
	TAP_EQ(reply.result, -ENODEV);
	TAP_STR(err.text, "no such device");
	free(b.at);
	nlmsg_free(msg);
}

static void bounds_text(void)
{
	struct nl_msg *msg = batch();
	struct mgpu_error err;
	struct mgpu_reply reply = new_reply(&err);
	struct bytes b = { 0 };
	char text[2000];

	memset(text, 'y', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	reply.request = nlmsg_hdr(msg);
	error(&b, reply.request, -EINVAL, text, SECOND, true, true);
	mgpu_reply_feed(&reply, b.at, b.len);
	TAP_EQ(strlen(err.text), sizeof(err.text) - 1);
	free(b.at);
	nlmsg_free(msg);
}

/* ---- names ---- */

static void matches_keys(void)
{
	static const struct mgpu_vgpu_info vgpus[] = {
		{ .id = 1, .uuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001" },
		{ .id = 2, .uuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1002" },
		{ .id = 83, .uuid = "12345678-509f-382f-3c1e-e6bfe0fa1003" },
	};
	const struct mgpu_vgpu_info *found = NULL;
	struct mgpu_error err;

#define MATCH(key) mgpu_vgpu_match(vgpus, 3, key, &found, &err)
	TAP_EQ(MATCH("2"), 0);
	TAP_CHECK(found == &vgpus[1]);
	/* digits are an id, not the beginning of a UUID */
	TAP_EQ(MATCH("83"), 0);
	TAP_CHECK(found == &vgpus[2]);
	TAP_EQ(MATCH("12345678"), -ENODEV);
	TAP_EQ(MATCH("12345678-"), 0);
	TAP_CHECK(found == &vgpus[2]);
	TAP_EQ(MATCH("83B8F4F2-509F-382F-3C1E-E6BFE0FA1002"), 0);
	TAP_CHECK(found == &vgpus[1]);
	TAP_EQ(MATCH("83b8f"), -EINVAL);
	TAP_EQ(MATCH("abc"), -ENODEV);
	TAP_EQ(MATCH(""), -EINVAL);
	TAP_EQ(MATCH("fast"), -EINVAL);
	TAP_EQ(MATCH("4294967296"), -ENODEV);
	TAP_EQ(MATCH("83b8f4f2-509f-382f-3c1e-e6bfe0fa10011"), -EINVAL);
	TAP_CHECK(err.text[0] != '\0');
}

static void names_values(void)
{
	const struct mgpu_field *field;
	struct mgpu_vgpu_info info = { .charge_source = MGPU_CHARGE_SOURCE_BPF };

	field = mgpu_field_find(mgpu_vgpu_fields, "charge-source");
	TAP_NEED(field);
	TAP_STR(mgpu_field_str(field, &info), "bpf");
	info.charge_source = 0;
	TAP_STR(mgpu_field_str(field, &info), "module");
	info.charge_source = 2;
	TAP_CHECK(!mgpu_field_str(field, &info));
	info.charge_source = UINT32_MAX;
	TAP_CHECK(!mgpu_field_str(field, &info));
	TAP_CHECK(!mgpu_field_find(mgpu_vgpu_fields, "nothing"));
}

static void names_events(void)
{
	TAP_STR(mgpu_event_name(MGPU_CMD_VGPU_HUNG_NTF), "vgpu-hung-ntf");
	TAP_STR(mgpu_event_name(MGPU_CMD_VGPU_QUARANTINE_NTF), "vgpu-quarantine-ntf");
	TAP_CHECK(!mgpu_event_is_dev(MGPU_CMD_VGPU_HUNG_NTF));
	TAP_CHECK(mgpu_event_is_dev(MGPU_CMD_DEV_POLICY_NTF));
	TAP_CHECK(mgpu_event_is_dev(MGPU_CMD_DEV_POLICY_EXIT_NTF));
	TAP_STR(mgpu_event_name(MGPU_CMD_CTX_NTF), "ctx-ntf");
	TAP_CHECK(!mgpu_event_is_dev(MGPU_CMD_CTX_NTF));
	TAP_CHECK(mgpu_event_is_ctx(MGPU_CMD_CTX_NTF));
	TAP_CHECK(!mgpu_event_is_ctx(MGPU_CMD_VGPU_ADDED_NTF));
	/* of no event */
	TAP_CHECK(!mgpu_event_is_ctx(MGPU_CMD_CTX_GET));
	TAP_CHECK(!mgpu_event_name(MGPU_CMD_DEV_GET));
	TAP_CHECK(!mgpu_event_is_dev(MGPU_CMD_DEV_GET));
	TAP_CHECK(!mgpu_event_is_dev(200));
}

/* ---- histograms ---- */

static void quantiles(void)
{
	uint64_t hist[MGPU_HIST_BUCKETS] = { 0 };
	double from;
	double to;

	TAP_CHECK(isnan(mgpu_hist_quantile(hist, 0.5)));
	TAP_EQ(mgpu_hist_total(hist), 0);

	/* 100 from 16.384 ms on: spread over that bucket */
	hist[14] = 100;
	TAP_NEAR(mgpu_hist_quantile(hist, 0), 16384, 1e-6);
	TAP_NEAR(mgpu_hist_quantile(hist, 0.5), 16384 * 1.5, 1e-6);
	TAP_NEAR(mgpu_hist_quantile(hist, 0.99), 16384 * 1.99, 1e-6);
	TAP_NEAR(mgpu_hist_quantile(hist, 1), 32768, 1e-6);

	/* half of them below 2 us, and empty buckets between */
	hist[0] = 100;
	TAP_NEAR(mgpu_hist_quantile(hist, 0.25), 1, 1e-9);
	TAP_NEAR(mgpu_hist_quantile(hist, 0.5), 2, 1e-9);
	TAP_NEAR(mgpu_hist_quantile(hist, 0.51), 16384 * 1.02, 1e-6);
	TAP_EQ(mgpu_hist_total(hist), 200);

	/* beyond the last bound: no more than that is known */
	hist[MGPU_HIST_BUCKETS - 1] = 1000;
	TAP_NEAR(mgpu_hist_quantile(hist, 0.99), 8388608, 1e-6);
	TAP_NEAR(mgpu_hist_quantile(hist, 1), 8388608, 1e-6);

	/* counts that a double cannot hold */
	memset(hist, 0, sizeof(hist));
	hist[3] = UINT64_MAX / 3;
	hist[4] = UINT64_MAX / 3;
	TAP_NEAR(mgpu_hist_quantile(hist, 0.5), 16, 1e-6);
	TAP_NEAR(mgpu_hist_quantile(hist, 1), 32, 1e-6);

	mgpu_hist_bounds(0, &from, &to);
	TAP_NEAR(from, 0, 0);
	TAP_NEAR(to, 2, 0);
	mgpu_hist_bounds(1, &from, &to);
	TAP_NEAR(from, 2, 0);
	TAP_NEAR(to, 4, 0);
	mgpu_hist_bounds(MGPU_HIST_BUCKETS - 1, &from, &to);
	TAP_NEAR(from, 8388608, 0);
	TAP_CHECK(isinf(to));
}

int main(void)
{
	tap_run(builds_batch, "a batch is the bytes that the specification says");
	tap_run(builds_large_batch, "a batch of 1,024 vGPUs is one message");
	tap_run(builds_dev_set, "a device's settings are the bytes that the specification says");
	tap_run(builds_ctx_orders, "requests for contexts are the bytes of the specification");
	tap_run(reads_vgpu, "an answer is read, and unknown is told apart from 0");
	tap_run(reads_ctx, "a context is read, its longest name in full");
	tap_run(reads_hists, "histograms are read, and told from none");
	tap_run(refuses_short_hist, "a histogram of another length is refused");
	tap_run(reads_policy_exit, "how a BPF policy ended is read");
	tap_run(refuses_wrong_length, "an attribute of a wrong length is refused");
	tap_run(bounds_strings, "strings are bounded and terminated");
	tap_run(survives_cut, "an answer that is cut off is read within its bounds");
	tap_run(survives_noise, "noise is read within its bounds");
	tap_run(reads_dump, "a dump is read over several datagrams");
	tap_run(notices_interruption, "a dump that was interrupted is noticed");
	tap_run(passes_over_others, "an answer to another request is passed over");
	tap_run(refuses_cut_answer, "a datagram that is cut off is refused");
	tap_run(explains_refusals, "a refusal names the vGPU, the attribute and the reason");
	tap_run(survives_wrong_offset, "an offset outside of the request is ignored");
	tap_run(explains_bare_errors, "an error without a sentence gets one");
	tap_run(explains_odd_errors, "an error without a text or an errno is explained");
	tap_run(explains_refused_dev_set, "a refusal of a device's setting names it");
	tap_run(explains_refused_ctx_orders,
		"a refusal to a context names the attribute, and the missing vGPU or context");
	tap_run(explains_failed_dump, "a dump that fails says why");
	tap_run(bounds_text, "a long sentence is cut");
	tap_run(matches_keys, "vGPUs are found by id, UUID and its beginning");
	tap_run(names_values, "values of an enumeration have names");
	tap_run(names_events, "events of devices, vGPUs and contexts are told apart");
	tap_run(quantiles, "quantiles lie where the counts say");
	return tap_done();
}
