// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: state and settings of devices, vGPUs and contexts for
 * user space.  Documentation/netlink/specs/mgpu.yaml describes it; the policies and
 * the table of operations are generated from that.
 *
 * Requests hold mgpu_registry_lock, a dump for one message at a time.  Callers of
 * mgpu_netlink_event() may hold it or not, so messages about a vGPU read the vGPU
 * without the lock; the caller keeps the vGPU alive.  Callers of
 * mgpu_netlink_dev_event() hold it, since it, or sched->lock, protects the attributes
 * of a device.
 */
#include <linux/sort.h>
#include <linux/uuid.h>
#include <net/genetlink.h>
#include <uapi/linux/mgpu.h>

#include "compute/context.h"
#include "mgpu.h"
#include "netlink_gen.h"
#include "sched/sched_policy.h"

static struct genl_family mgpu_nl_family;

/* Changes when a vGPU is added or removed; never 0, which means unset in dumps. */
static atomic_t mgpu_nl_generation = ATOMIC_INIT(1);

struct mgpu_nl_stat {
	u16 attr;
	u16 offset;
};

#define MGPU_NL_STAT(NAME, name) \
	{ MGPU_A_STATS_##NAME, offsetof(struct mgpu_stats, name) }

static const struct mgpu_nl_stat mgpu_nl_stats[] = {
	MGPU_NL_STAT(FRAMES, frames),
	MGPU_NL_STAT(JOBS, jobs),
	MGPU_NL_STAT(JOB_ERRORS, job_errors),
	MGPU_NL_STAT(BYTES, bytes),
	MGPU_NL_STAT(ENGINE_NS, engine_ns),
	MGPU_NL_STAT(ENGINE_CYCLES, engine_cycles),
	MGPU_NL_STAT(CHARGED_BPF_NS, charged_bpf_ns),
	MGPU_NL_STAT(CHARGED_SELF_NS, charged_self_ns),
	MGPU_NL_STAT(THROTTLED_NS, throttled_ns),
	MGPU_NL_STAT(THROTTLED, throttled),
	MGPU_NL_STAT(QUEUE_NS, queue_ns),
	MGPU_NL_STAT(COMMANDS, commands),
	MGPU_NL_STAT(COMMAND_ERRORS, command_errors),
	MGPU_NL_STAT(DOORBELLS, doorbells),
	MGPU_NL_STAT(INTERRUPTS, interrupts),
	MGPU_NL_STAT(RESETS, resets),
	MGPU_NL_STAT(LIMITED_NS, limited_ns),
	MGPU_NL_STAT(LIMITED, limited),
	MGPU_NL_STAT(PREEMPTED, preempted),
	MGPU_NL_STAT(TIMEOUTS, timeouts),
	MGPU_NL_STAT(HANGS, hangs),
	MGPU_NL_STAT(LOST, lost),
};

static_assert(ARRAY_SIZE(mgpu_nl_stats) ==
	      sizeof(struct mgpu_stats) / sizeof(atomic64_t),
	      "a counter is missing here");
static_assert(ARRAY_SIZE(mgpu_nl_stats) ==
	      MGPU_A_STATS_MAX - MGPU_A_STATS_PAD,
	      "a counter is missing in the spec");

/*
 * Upper bounds of a message: numbers, strings of at most MGPU_NL_STRING bytes, and in
 * the answer to a request the histograms.  A larger message would fail with EMSGSIZE.
 */
#define MGPU_NL_ATTR(len)	(NLA_ALIGN(NLA_HDRLEN + (len)))
#define MGPU_NL_U64		(2 * MGPU_NL_ATTR(0) + sizeof(u64))
#define MGPU_NL_STRING		128
#define MGPU_NL_HIST		(MGPU_HIST_BUCKETS * sizeof(u64))

static_assert(MGPU_A_VGPU_MAX * MGPU_NL_U64 +
	      MGPU_A_STATS_MAX * MGPU_NL_U64 +
	      4 * MGPU_NL_ATTR(MGPU_NL_STRING) +
	      2 * MGPU_NL_ATTR(MGPU_NL_HIST) <= GENLMSG_DEFAULT_SIZE,
	      "a vGPU does not fit into a message");
static_assert(MGPU_A_DEV_MAX * MGPU_NL_U64 +
	      MGPU_A_POLICY_EXIT_MAX * MGPU_NL_U64 +
	      4 * MGPU_NL_ATTR(MGPU_NL_STRING) +
	      MGPU_NL_ATTR(MGPU_POLICY_NAME_LEN) +
	      MGPU_NL_ATTR(MGPU_POLICY_EXIT_MSG_LEN) <= GENLMSG_DEFAULT_SIZE,
	      "a device does not fit into a message");

static_assert(MGPU_A_CTX_MAX * MGPU_NL_U64 +
	      2 * MGPU_NL_ATTR(MGPU_CMD_NAME_LEN) <= GENLMSG_DEFAULT_SIZE,
	      "a context does not fit into a message");
static_assert(sizeof_field(struct mgpu_cmd, name) == MGPU_CTX_NAME_LEN + 1);
static_assert(MGPU_HANG_LIMIT_MAX == 16 && MGPU_HANG_WINDOW == 600,
	      "an error message has this number");

static u64 mgpu_nl_stat_read(const struct mgpu_stats *stats,
			     const struct mgpu_nl_stat *stat)
{
	return atomic64_read((const atomic64_t *)((const char *)stats +
						  stat->offset));
}

static int mgpu_nl_put_stats(struct sk_buff *skb, const struct mgpu_stats *stats)
{
	struct nlattr *nest = nla_nest_start(skb, MGPU_A_VGPU_STATS);
	size_t i;

	if (!nest)
		return -EMSGSIZE;

	for (i = 0; i < ARRAY_SIZE(mgpu_nl_stats); i++) {
		const struct mgpu_nl_stat *stat = &mgpu_nl_stats[i];

		if (nla_put_u64_64bit(skb, stat->attr,
				      mgpu_nl_stat_read(stats, stat),
				      MGPU_A_STATS_PAD))
			return -EMSGSIZE;
	}

	nla_nest_end(skb, nest);
	return 0;
}

static int mgpu_nl_put_hist(struct sk_buff *skb, int attr,
			    const struct mgpu_hist *hist)
{
	struct nlattr *nla = nla_reserve(skb, attr, MGPU_NL_HIST);
	size_t i;

	static_assert(ARRAY_SIZE(hist->count) == MGPU_HIST_BUCKETS);
	if (!nla)
		return -EMSGSIZE;

	for (i = 0; i < ARRAY_SIZE(hist->count); i++) {
		u64 count = atomic64_read(&hist->count[i]);

		/* Attributes are aligned to 4 bytes only. */
		memcpy((u64 *)nla_data(nla) + i, &count, sizeof(count));
	}
	return 0;
}

static int mgpu_nl_put_hists(struct sk_buff *skb, const struct mgpu_vgpu *vgpu)
{
	/* The first open allocates the histograms; they stay until the vGPU is freed. */
	const struct mgpu_hists *hists = READ_ONCE(vgpu->hists);

	if (!hists)
		return 0;
	if (mgpu_nl_put_hist(skb, MGPU_A_VGPU_FRAME_INTERVAL_HIST,
			     &hists->interval) ||
	    mgpu_nl_put_hist(skb, MGPU_A_VGPU_LATENCY_HIST, &hists->latency))
		return -EMSGSIZE;
	return 0;
}

/*
 * Add the scanout's size.  It is read without the screen's lock, which drawing holds
 * for long: during a change of mode it may have the old width and the new height.
 */
static int mgpu_nl_put_scanout(struct sk_buff *skb, const struct mgpu_vgpu *vgpu)
{
	const struct mgpu_view *view = &vgpu->screen.view;

	if (!READ_ONCE(view->res))
		return 0;
	if (nla_put_u32(skb, MGPU_A_VGPU_SCANOUT_WIDTH,
			READ_ONCE(view->rect.width)) ||
	    nla_put_u32(skb, MGPU_A_VGPU_SCANOUT_HEIGHT,
			READ_ONCE(view->rect.height)))
		return -EMSGSIZE;
	return 0;
}

static int mgpu_nl_put_charge_source(struct sk_buff *skb,
				     const struct mgpu_vgpu *vgpu)
{
	/* The source is unknown before the first job is complete. */
	if (!atomic64_read(&vgpu->stats.jobs))
		return 0;
	return nla_put_u32(skb, MGPU_A_VGPU_CHARGE_SOURCE,
			   READ_ONCE(vgpu->last_charge_bpf) ?
			   MGPU_CHARGE_SOURCE_BPF : MGPU_CHARGE_SOURCE_MODULE);
}

/* Put a limit and its setter, if there is one. */
static int mgpu_nl_put_bound(struct sk_buff *skb, int attr, u32 value,
			     int attr_by, const char *by)
{
	if (nla_put_u32(skb, attr, value) ||
	    (value && nla_put_string(skb, attr_by, by)))
		return -EMSGSIZE;
	return 0;
}

/* Limits and their setters, all of the same moment. */
static int mgpu_nl_put_bounds(struct sk_buff *skb, const struct mgpu_vgpu *vgpu)
{
	spinlock_t *lock = &vgpu->mdev->sched.lock;
	struct mgpu_bound fps, gpu;

	spin_lock_irq(lock);
	fps = vgpu->fps;
	gpu = vgpu->gpu;
	spin_unlock_irq(lock);

	return mgpu_nl_put_bound(skb, MGPU_A_VGPU_FPS_LIMIT, fps.limit,
				 MGPU_A_VGPU_FPS_LIMIT_BY, fps.limit_by) ?:
	       mgpu_nl_put_bound(skb, MGPU_A_VGPU_FPS_TARGET, fps.target,
				 MGPU_A_VGPU_FPS_TARGET_BY, fps.target_by) ?:
	       mgpu_nl_put_bound(skb, MGPU_A_VGPU_GPU_LIMIT, gpu.limit,
				 MGPU_A_VGPU_GPU_LIMIT_BY, gpu.limit_by) ?:
	       mgpu_nl_put_bound(skb, MGPU_A_VGPU_GPU_TARGET, gpu.target,
				 MGPU_A_VGPU_GPU_TARGET_BY, gpu.target_by);
}

static int mgpu_nl_put_vgpu(struct sk_buff *skb, const struct mgpu_vgpu *vgpu)
{
	char uuid[UUID_STRING_LEN + 1];
	u32 tgid = READ_ONCE(vgpu->tgid);
	u32 width, height;

	mgpu_vgpu_mode(vgpu, &width, &height);
	BUILD_BUG_ON(UUID_STRING_LEN != MGPU_UUID_STRLEN);
	snprintf(uuid, sizeof(uuid), "%pUl", &vgpu->uuid);

	if (nla_put_u32(skb, MGPU_A_VGPU_ID, vgpu->id) ||
	    nla_put_string(skb, MGPU_A_VGPU_UUID, uuid) ||
	    nla_put_u32(skb, MGPU_A_VGPU_DEV_ID, vgpu->mdev->id) ||
	    nla_put_string(skb, MGPU_A_VGPU_DEV_NAME, vgpu->mdev->name) ||
	    nla_put_string(skb, MGPU_A_VGPU_TYPE, vgpu->type->desc->name) ||
	    nla_put_u8(skb, MGPU_A_VGPU_OPEN, !!tgid) ||
	    (tgid && nla_put_u32(skb, MGPU_A_VGPU_TGID, tgid)) ||
	    nla_put_u32(skb, MGPU_A_VGPU_WEIGHT,
			READ_ONCE(vgpu->entity.weight)) ||
	    nla_put_u32(skb, MGPU_A_VGPU_FPS_FLOOR,
			READ_ONCE(vgpu->fps_floor)) ||
	    mgpu_nl_put_bounds(skb, vgpu) ||
	    nla_put_u32(skb, MGPU_A_VGPU_GPU_PERIOD,
			READ_ONCE(vgpu->gpu_period)) ||
	    nla_put_u32(skb, MGPU_A_VGPU_GPU_BURST,
			READ_ONCE(vgpu->gpu_burst)) ||
	    nla_put_u32(skb, MGPU_A_VGPU_MODE_WIDTH, width) ||
	    nla_put_u32(skb, MGPU_A_VGPU_MODE_HEIGHT, height) ||
	    nla_put_u32(skb, MGPU_A_VGPU_QUARANTINE,
			READ_ONCE(vgpu->quarantine)) ||
	    nla_put_u64_64bit(skb, MGPU_A_VGPU_MEM_USED,
			      atomic64_read(&vgpu->mem.used),
			      MGPU_A_VGPU_PAD) ||
	    nla_put_u64_64bit(skb, MGPU_A_VGPU_MEM_LIMIT,
			      vgpu->type->desc->mem_limit, MGPU_A_VGPU_PAD) ||
	    nla_put_u64_64bit(skb, MGPU_A_VGPU_PINNED_PAGES,
			      atomic64_read(&vgpu->mem.pinned),
			      MGPU_A_VGPU_PAD) ||
	    mgpu_nl_put_scanout(skb, vgpu) ||
	    mgpu_nl_put_charge_source(skb, vgpu) ||
	    mgpu_nl_put_stats(skb, &vgpu->stats))
		return -EMSGSIZE;
	return 0;
}

static int mgpu_nl_put_exit(struct sk_buff *skb,
			    const struct mgpu_policy_exit *why)
{
	struct nlattr *nest;

	if (why->kind == MGPU_POLICY_EXIT_KIND_NONE)
		return 0;

	nest = nla_nest_start(skb, MGPU_A_DEV_POLICY_EXIT);
	if (!nest ||
	    nla_put_u32(skb, MGPU_A_POLICY_EXIT_KIND, why->kind) ||
	    nla_put_s32(skb, MGPU_A_POLICY_EXIT_CODE, why->code) ||
	    nla_put_string(skb, MGPU_A_POLICY_EXIT_POLICY, why->policy) ||
	    (why->vgpu && nla_put_u32(skb, MGPU_A_POLICY_EXIT_VGPU_ID,
				      why->vgpu)) ||
	    nla_put_string(skb, MGPU_A_POLICY_EXIT_MESSAGE, why->message))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int mgpu_nl_put_sched(struct sk_buff *skb, struct mgpu_device *mdev)
{
	struct mgpu_sched *sched = &mdev->sched;
	char policy[MGPU_POLICY_NAME_LEN];
	unsigned long flags;
	bool shares;
	u32 waiting;

	/* The name of a BPF policy is freed with the policy. */
	spin_lock_irqsave(&sched->lock, flags);
	strscpy(policy, sched->rq.policy->name, sizeof(policy));
	shares = sched->rq.policy->shares;
	waiting = sched->rq.nr_ready;
	spin_unlock_irqrestore(&sched->lock, flags);

	if (nla_put_string(skb, MGPU_A_DEV_POLICY, policy) ||
	    nla_put_string(skb, MGPU_A_DEV_BUILTIN_POLICY,
			   sched->builtin->name) ||
	    nla_put_u32(skb, MGPU_A_DEV_JOB_TIMEOUT,
			READ_ONCE(sched->job_timeout_ms)) ||
	    nla_put_u32(skb, MGPU_A_DEV_WAITING, waiting) ||
	    nla_put_u32(skb, MGPU_A_DEV_SLOTS, READ_ONCE(sched->slots)) ||
	    nla_put_u8(skb, MGPU_A_DEV_POLICY_SHARES, shares) ||
	    nla_put_u32(skb, MGPU_A_DEV_HANG_LIMIT,
			READ_ONCE(sched->hang_limit)) ||
	    mgpu_nl_put_exit(skb, &sched->exit))
		return -EMSGSIZE;
	return 0;
}

static int mgpu_nl_put_dev(struct sk_buff *skb, struct mgpu_device *mdev)
{
	const struct mgpu_vgpu *vgpu;
	u64 engine = 0;
	u64 bpf = 0;
	u64 self = 0;

	lockdep_assert_held(&mgpu_registry_lock);

	list_for_each_entry(vgpu, &mdev->vgpus, node) {
		engine += atomic64_read(&vgpu->stats.engine_ns);
		bpf += atomic64_read(&vgpu->stats.charged_bpf_ns);
		self += atomic64_read(&vgpu->stats.charged_self_ns);
	}

	if (nla_put_u32(skb, MGPU_A_DEV_ID, mdev->id) ||
	    nla_put_string(skb, MGPU_A_DEV_NAME, mdev->name) ||
	    nla_put_string(skb, MGPU_A_DEV_BACKEND, mdev->ops->name) ||
	    nla_put_u32(skb, MGPU_A_DEV_ENGINES, mdev->caps.engines) ||
	    nla_put_u8(skb, MGPU_A_DEV_ENGINE_ON_CPU,
		       mdev->caps.engine_on_cpu) ||
	    nla_put_u32(skb, MGPU_A_DEV_VGPUS, mdev->nr_vgpus) ||
	    nla_put_u32(skb, MGPU_A_DEV_MAX_VGPUS, mdev->caps.max_vgpus) ||
	    nla_put_u64_64bit(skb, MGPU_A_DEV_ENGINE_NS, engine,
			      MGPU_A_DEV_PAD) ||
	    nla_put_u64_64bit(skb, MGPU_A_DEV_CHARGED_BPF_NS, bpf,
			      MGPU_A_DEV_PAD) ||
	    nla_put_u64_64bit(skb, MGPU_A_DEV_CHARGED_SELF_NS, self,
			      MGPU_A_DEV_PAD) ||
	    mgpu_nl_put_sched(skb, mdev))
		return -EMSGSIZE;
	return 0;
}

/* Make a message about a vGPU; @hists adds histograms, which dumps and events omit. */
static int mgpu_nl_vgpu_msg(struct sk_buff *skb, const struct mgpu_vgpu *vgpu,
			    u32 portid, u32 seq, int flags, u8 cmd, bool hists,
			    struct netlink_callback *cb)
{
	void *hdr = genlmsg_put(skb, portid, seq, &mgpu_nl_family, flags, cmd);

	if (!hdr)
		return -EMSGSIZE;
	if (cb)
		genl_dump_check_consistent(cb, hdr);
	if (mgpu_nl_put_vgpu(skb, vgpu) ||
	    (hists && mgpu_nl_put_hists(skb, vgpu))) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

static int mgpu_nl_dev_msg(struct sk_buff *skb, struct mgpu_device *mdev,
			   u32 portid, u32 seq, int flags, u8 cmd)
{
	void *hdr = genlmsg_put(skb, portid, seq, &mgpu_nl_family, flags, cmd);

	if (!hdr)
		return -EMSGSIZE;
	if (mgpu_nl_put_dev(skb, mdev)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

static struct mgpu_device *mgpu_nl_find_dev(const struct nlattr *id,
					    struct netlink_ext_ack *extack)
{
	struct mgpu_device *mdev = mgpu_device_find(nla_get_u32(id));

	if (!mdev) {
		NL_SET_ERR_MSG_ATTR(extack, id,
				    "no device has this id: list the devices, they come and go with their back end's module");
		return ERR_PTR(-ENODEV);
	}
	return mdev;
}

/*
 * Find the vGPU by @id or @uuid.  @nest is the attribute that contains them, NULL for
 * the message itself.
 */
static struct mgpu_vgpu *mgpu_nl_find_vgpu(const struct nlattr *id,
					   const struct nlattr *uuid,
					   const struct nlattr *nest,
					   struct netlink_ext_ack *extack)
{
	struct mgpu_vgpu *vgpu;
	guid_t guid;

	if (id && uuid) {
		NL_SET_ERR_MSG_ATTR(extack, uuid,
				    "a vGPU is named by id or by uuid, not by both: leave one out");
		return ERR_PTR(-EINVAL);
	}
	if (id) {
		vgpu = mgpu_vgpu_find(nla_get_u32(id));
		if (!vgpu) {
			NL_SET_ERR_MSG_ATTR(extack, id,
					    "no vGPU has this id: list the vGPUs, it may have been removed");
			return ERR_PTR(-ENODEV);
		}
		return vgpu;
	}
	if (uuid) {
		if (guid_parse(nla_data(uuid), &guid)) {
			NL_SET_ERR_MSG_ATTR(extack, uuid,
					    "not a UUID: write 32 hexadecimal digits in groups of 8-4-4-4-12");
			return ERR_PTR(-EINVAL);
		}
		vgpu = mgpu_vgpu_find_uuid(&guid);
		if (!vgpu) {
			NL_SET_ERR_MSG_ATTR(extack, uuid,
					    "no vGPU has this uuid: list the vGPUs, or create it through mdev");
			return ERR_PTR(-ENODEV);
		}
		return vgpu;
	}

	if (nest)
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "the vGPU is missing: add its id or its uuid");
	else
		NL_SET_ERR_MSG(extack,
			       "the vGPU is missing: add its id or its uuid");
	NL_SET_ERR_ATTR_MISS(extack, nest, MGPU_A_VGPU_ID);
	return ERR_PTR(-EINVAL);
}

int mgpu_nl_dev_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct mgpu_device *mdev;
	struct sk_buff *msg;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, MGPU_A_DEV_ID)) {
		NL_SET_ERR_MSG(info->extack,
			       "the device is missing: add its id, or ask for a dump");
		return -EINVAL;
	}

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;

	mutex_lock(&mgpu_registry_lock);
	mdev = mgpu_nl_find_dev(info->attrs[MGPU_A_DEV_ID], info->extack);
	if (IS_ERR(mdev))
		err = PTR_ERR(mdev);
	else
		err = mgpu_nl_dev_msg(msg, mdev, info->snd_portid,
				      info->snd_seq, 0, MGPU_CMD_DEV_GET);
	mutex_unlock(&mgpu_registry_lock);

	if (err) {
		nlmsg_free(msg);
		return err;
	}
	return genlmsg_reply(msg, info);
}

/* Return the device with the lowest ID from @from on, or NULL. */
static struct mgpu_device *mgpu_nl_next_dev(u64 from)
{
	struct mgpu_device *next = NULL;
	struct mgpu_device *mdev;

	list_for_each_entry(mdev, &mgpu_devices, node)
		if (mdev->id >= from && (!next || mdev->id < next->id))
			next = mdev;
	return next;
}

int mgpu_nl_dev_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *tb[MGPU_A_DEV_ID + 1];
	struct mgpu_device *mdev;
	int err;

	err = genlmsg_parse(cb->nlh, &mgpu_nl_family, tb, MGPU_A_DEV_ID,
			    mgpu_dev_get_nl_policy, cb->extack);
	if (err)
		return err;
	if (tb[MGPU_A_DEV_ID]) {
		NL_SET_ERR_MSG_ATTR(cb->extack, tb[MGPU_A_DEV_ID],
				    "a dump lists every device: leave the id out, or do not ask for a dump");
		return -EINVAL;
	}

	/* args[0]: first id that has not been sent */
	mutex_lock(&mgpu_registry_lock);
	while ((mdev = mgpu_nl_next_dev(cb->args[0]))) {
		err = mgpu_nl_dev_msg(skb, mdev, NETLINK_CB(cb->skb).portid,
				      cb->nlh->nlmsg_seq, NLM_F_MULTI,
				      MGPU_CMD_DEV_GET);
		if (err)
			break;
		cb->args[0] = (unsigned long)mdev->id + 1;
	}
	mutex_unlock(&mgpu_registry_lock);

	return skb->len ?: err;
}

/*
 * Error message for an unknown name of a built-in policy, with all names.  It is made
 * once, because a message of an extended acknowledgment must stay valid.
 */
static char mgpu_nl_policies[256] __ro_after_init;

static void __init mgpu_nl_list_policies(void)
{
	const struct mgpu_policy_ops * const *ops;
	size_t size = sizeof(mgpu_nl_policies);
	char *text = mgpu_nl_policies;
	size_t len;

	len = scnprintf(text, size, "no built-in policy has this name: choose");
	for (ops = mgpu_policies; *ops; ops++)
		len += scnprintf(text + len, size - len, "%s %s",
				 ops == mgpu_policies ? "" :
				 ops[1] ? "," : " or", (*ops)->name);
	scnprintf(text + len, size - len,
		  "; a BPF policy takes over when it is loaded");
}

int mgpu_nl_dev_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *policy = info->attrs[MGPU_A_DEV_POLICY];
	const struct nlattr *timeout = info->attrs[MGPU_A_DEV_JOB_TIMEOUT];
	const struct nlattr *slots = info->attrs[MGPU_A_DEV_SLOTS];
	const struct nlattr *hangs = info->attrs[MGPU_A_DEV_HANG_LIMIT];
	struct mgpu_dev_settings set = { .mask = 0 };
	struct mgpu_device *mdev;
	int err = 0;

	if (GENL_REQ_ATTR_CHECK(info, MGPU_A_DEV_ID)) {
		NL_SET_ERR_MSG(info->extack,
			       "the device is missing: add its id");
		return -EINVAL;
	}
	if (policy) {
		set.mask |= MGPU_DEV_SET_POLICY;
		set.policy = mgpu_policy_find(nla_data(policy));
		if (!set.policy) {
			NL_SET_BAD_ATTR(info->extack, policy);
			info->extack->_msg = mgpu_nl_policies;
			return -EINVAL;
		}
	}
	if (timeout) {
		set.mask |= MGPU_DEV_SET_JOB_TIMEOUT;
		set.job_timeout_ms = nla_get_u32(timeout);
		if (set.job_timeout_ms < MGPU_JOB_TIMEOUT_MIN ||
		    set.job_timeout_ms > MGPU_JOB_TIMEOUT_MAX) {
			NL_SET_ERR_MSG_ATTR(info->extack, timeout,
					    "job-timeout is in milliseconds: 100 to 60000 (1 min)");
			return -ERANGE;
		}
	}
	if (slots) {
		set.mask |= MGPU_DEV_SET_SLOTS;
		set.slots = nla_get_u32(slots);
	}
	if (hangs) {
		set.mask |= MGPU_DEV_SET_HANG_LIMIT;
		set.hang_limit = nla_get_u32(hangs);
		if (set.hang_limit > MGPU_HANG_LIMIT_MAX) {
			NL_SET_ERR_MSG_ATTR(info->extack, hangs,
					    "hang-limit is a number of hangs within 10 minutes: 1 to 16, or 0 for no quarantine");
			return -ERANGE;
		}
	}
	if (!set.mask) {
		NL_SET_ERR_MSG(info->extack,
			       "nothing to set for this device: add policy, job-timeout, slots or hang-limit");
		return -EINVAL;
	}

	mutex_lock(&mgpu_registry_lock);
	mdev = mgpu_nl_find_dev(info->attrs[MGPU_A_DEV_ID], info->extack);
	if (IS_ERR(mdev)) {
		err = PTR_ERR(mdev);
	} else if (slots && (!set.slots || set.slots > mgpu_max_slots(mdev))) {
		NL_SET_ERR_MSG_ATTR(info->extack, slots,
				    "slots is 1 to the device's number of engines, or of jobs that it can queue");
		err = -ERANGE;
	} else {
		mgpu_device_apply(mdev, &set);
	}
	mutex_unlock(&mgpu_registry_lock);
	return err;
}

int mgpu_nl_vgpu_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *dev = info->attrs[MGPU_A_VGPU_DEV_ID];
	struct mgpu_vgpu *vgpu;
	struct sk_buff *msg;
	int err;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;

	mutex_lock(&mgpu_registry_lock);
	vgpu = mgpu_nl_find_vgpu(info->attrs[MGPU_A_VGPU_ID],
				 info->attrs[MGPU_A_VGPU_UUID], NULL,
				 info->extack);
	if (IS_ERR(vgpu)) {
		err = PTR_ERR(vgpu);
	} else if (dev && nla_get_u32(dev) != vgpu->mdev->id) {
		NL_SET_ERR_MSG_ATTR(info->extack, dev,
				    "the vGPU is a part of another device: leave dev-id out");
		err = -ENODEV;
	} else {
		err = mgpu_nl_vgpu_msg(msg, vgpu, info->snd_portid,
				       info->snd_seq, 0, MGPU_CMD_VGPU_GET,
				       true, NULL);
	}
	mutex_unlock(&mgpu_registry_lock);

	if (err) {
		nlmsg_free(msg);
		return err;
	}
	return genlmsg_reply(msg, info);
}

int mgpu_nl_vgpu_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *tb[MGPU_A_VGPU_DEV_ID + 1];
	struct mgpu_device *mdev = NULL;
	struct mgpu_vgpu *vgpu;
	unsigned long id;
	int err;

	err = genlmsg_parse(cb->nlh, &mgpu_nl_family, tb, MGPU_A_VGPU_DEV_ID,
			    mgpu_vgpu_get_nl_policy, cb->extack);
	if (err)
		return err;
	if (tb[MGPU_A_VGPU_ID] || tb[MGPU_A_VGPU_UUID]) {
		NL_SET_ERR_MSG_ATTR(cb->extack, tb[MGPU_A_VGPU_ID] ?:
				    tb[MGPU_A_VGPU_UUID],
				    "a dump takes dev-id only: to get one vGPU, do not ask for a dump");
		return -EINVAL;
	}

	mutex_lock(&mgpu_registry_lock);
	cb->seq = atomic_read(&mgpu_nl_generation);
	if (tb[MGPU_A_VGPU_DEV_ID]) {
		mdev = mgpu_nl_find_dev(tb[MGPU_A_VGPU_DEV_ID], cb->extack);
		if (IS_ERR(mdev)) {
			err = PTR_ERR(mdev);
			goto unlock;
		}
	}

	/* args[0]: first id that has not been sent */
	xa_for_each_start(&mgpu_vgpus, id, vgpu, cb->args[0]) {
		if (mdev && vgpu->mdev != mdev)
			continue;
		err = mgpu_nl_vgpu_msg(skb, vgpu, NETLINK_CB(cb->skb).portid,
				       cb->nlh->nlmsg_seq, NLM_F_MULTI,
				       MGPU_CMD_VGPU_GET, false, cb);
		if (err)
			break;
		cb->args[0] = id + 1;
	}
unlock:
	mutex_unlock(&mgpu_registry_lock);

	return skb->len ?: err;
}

/**
 * struct mgpu_nl_change - a checked entry of a batch
 * @vgpu: vGPU to change
 * @set: its new settings
 * @nla: attribute of the request that has the entry
 */
struct mgpu_nl_change {
	struct mgpu_vgpu *vgpu;
	struct mgpu_settings set;
	const struct nlattr *nla;
};

/* Settings that are numbers. */
static const struct {
	u16 attr;
	u32 bit;
} mgpu_nl_settings[] = {
	{ MGPU_A_VGPU_WEIGHT, MGPU_SET_WEIGHT },
	{ MGPU_A_VGPU_FPS_LIMIT, MGPU_SET_FPS_LIMIT },
	{ MGPU_A_VGPU_FPS_TARGET, MGPU_SET_FPS_TARGET },
	{ MGPU_A_VGPU_FPS_FLOOR, MGPU_SET_FPS_FLOOR },
	{ MGPU_A_VGPU_QUARANTINE, MGPU_SET_QUARANTINE },
	{ MGPU_A_VGPU_GPU_LIMIT, MGPU_SET_GPU_LIMIT },
	{ MGPU_A_VGPU_GPU_TARGET, MGPU_SET_GPU_TARGET },
	{ MGPU_A_VGPU_GPU_PERIOD, MGPU_SET_GPU_PERIOD },
	{ MGPU_A_VGPU_GPU_BURST, MGPU_SET_GPU_BURST },
};

/* Refuse an attribute with a message of settings.c. */
static int mgpu_nl_refuse(struct netlink_ext_ack *extack, const struct nlattr *nla,
			  const char *why)
{
	NL_SET_BAD_ATTR(extack, nla);
	extack->_msg = why;
	return -ERANGE;
}

static int mgpu_nl_check_numbers(struct nlattr **tb, struct mgpu_settings *set,
				 struct netlink_ext_ack *extack)
{
	const char *why;
	u32 bad = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mgpu_nl_settings); i++) {
		const struct nlattr *nla = tb[mgpu_nl_settings[i].attr];

		if (!nla)
			continue;
		set->mask |= mgpu_nl_settings[i].bit;
		*mgpu_setting_value(set, mgpu_nl_settings[i].bit) = nla_get_u32(nla);
	}
	why = mgpu_settings_check(set, &bad);
	if (!why)
		return 0;
	for (i = 0; mgpu_nl_settings[i].bit != bad; i++)
		;
	return mgpu_nl_refuse(extack, tb[mgpu_nl_settings[i].attr], why);
}

static int mgpu_nl_check_mode(struct nlattr **tb, const struct mgpu_vgpu *vgpu,
			      const struct nlattr *nla,
			      struct mgpu_settings *set,
			      struct netlink_ext_ack *extack)
{
	const struct nlattr *width = tb[MGPU_A_VGPU_MODE_WIDTH];
	const struct nlattr *height = tb[MGPU_A_VGPU_MODE_HEIGHT];
	const char *why;
	bool is_width;

	if (!width && !height)
		return 0;
	if (!width || !height) {
		NL_SET_ERR_MSG_ATTR(extack, width ?: height,
				    "a mode has a width and a height: add mode-width and mode-height both");
		NL_SET_ERR_ATTR_MISS(extack, nla, width ?
				     MGPU_A_VGPU_MODE_HEIGHT :
				     MGPU_A_VGPU_MODE_WIDTH);
		return -EINVAL;
	}
	set->mask |= MGPU_SET_MODE;
	why = mgpu_mode_check(vgpu->type->desc, nla_get_u32(width), nla_get_u32(height),
			      &set->mode, &is_width);
	return why ? mgpu_nl_refuse(extack, is_width ? width : height, why) : 0;
}

static int mgpu_nl_check_change(const struct nlattr *nla,
				struct mgpu_nl_change *change,
				struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(mgpu_setting_nl_policy)];
	struct mgpu_settings *set = &change->set;
	struct mgpu_vgpu *vgpu;
	int err;

	/* The policy refuses unknown attributes and a weight out of range. */
	err = nla_parse_nested(tb, ARRAY_SIZE(tb) - 1, nla,
			       mgpu_setting_nl_policy, extack);
	if (err)
		return err;

	vgpu = mgpu_nl_find_vgpu(tb[MGPU_A_VGPU_ID], tb[MGPU_A_VGPU_UUID], nla,
				 extack);
	if (IS_ERR(vgpu))
		return PTR_ERR(vgpu);

	err = mgpu_nl_check_numbers(tb, set, extack);
	if (!err)
		err = mgpu_nl_check_mode(tb, vgpu, nla, set, extack);
	if (err)
		return err;
	if (!set->mask) {
		NL_SET_ERR_MSG_ATTR(extack, nla,
				    "nothing to set for this vGPU: add weight, fps-limit, fps-target, fps-floor, gpu-limit, gpu-target, gpu-period, gpu-burst, quarantine or a mode");
		return -EINVAL;
	}

	change->vgpu = vgpu;
	change->nla = nla;
	return 0;
}

/* Order entries by vGPU, and entries of the same vGPU by place in the message. */
static int mgpu_nl_cmp_change(const void *a, const void *b)
{
	const struct mgpu_nl_change *l = a;
	const struct mgpu_nl_change *r = b;

	if (l->vgpu != r->vgpu)
		return l->vgpu < r->vgpu ? -1 : 1;
	return l->nla < r->nla ? -1 : 1;
}

int mgpu_nl_vgpu_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct mgpu_nl_change *changes;
	char by[TASK_COMM_LEN];
	const struct nlattr *nla;
	size_t nr = 0;
	size_t i = 0;
	int err = 0;
	int rem;

	/* info->attrs has only the last vgpu attribute. */
	nlmsg_for_each_attr(nla, info->nlhdr, GENL_HDRLEN, rem)
		if (nla_type(nla) == MGPU_A_BATCH_VGPU)
			nr++;
	if (!nr) {
		NL_SET_ERR_MSG(info->extack,
			       "nothing to set: add a vgpu attribute for each vGPU to change");
		NL_SET_ERR_ATTR_MISS(info->extack, NULL, MGPU_A_BATCH_VGPU);
		return -EINVAL;
	}

	changes = kvcalloc(nr, sizeof(*changes), GFP_KERNEL_ACCOUNT);
	if (!changes)
		return -ENOMEM;

	get_task_comm(by, current);
	mutex_lock(&mgpu_registry_lock);
	nlmsg_for_each_attr(nla, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(nla) != MGPU_A_BATCH_VGPU)
			continue;
		changes[i].set.by = by;
		err = mgpu_nl_check_change(nla, &changes[i++], info->extack);
		if (err)
			goto unlock;
	}

	sort(changes, nr, sizeof(*changes), mgpu_nl_cmp_change, NULL);
	for (i = 1; i < nr; i++) {
		if (changes[i].vgpu != changes[i - 1].vgpu)
			continue;
		NL_SET_ERR_MSG_ATTR(info->extack, changes[i].nla,
				    "duplicate vGPU in the batch: put its settings into one entry");
		err = -EINVAL;
		goto unlock;
	}

	for (i = 0; i < nr; i++)
		mgpu_vgpu_apply(changes[i].vgpu, &changes[i].set);
unlock:
	mutex_unlock(&mgpu_registry_lock);
	kvfree(changes);
	return err;
}

/* ---- contexts ---- */

static int mgpu_nl_ctx_msg(struct sk_buff *skb, const struct mgpu_vgpu *vgpu,
			   const struct mgpu_context_info *c, u32 portid,
			   u32 seq, int flags, u8 cmd)
{
	const struct {
		u16 attr;
		u64 value;
	} counters[] = {
		{ MGPU_A_CTX_JOB_INST, c->job_inst },
		{ MGPU_A_CTX_JOB_INST_DONE, c->job_inst_done },
		{ MGPU_A_CTX_JOB_BYTES, c->job_bytes },
		{ MGPU_A_CTX_ARRIVED_NS, c->arrived_ns },
		{ MGPU_A_CTX_JOBS, c->jobs },
		{ MGPU_A_CTX_JOB_ERRORS, c->job_errors },
		{ MGPU_A_CTX_INST, c->inst },
		{ MGPU_A_CTX_BYTES, c->bytes },
		{ MGPU_A_CTX_ENGINE_NS, c->engine_ns },
		{ MGPU_A_CTX_ENGINE_CYCLES, c->engine_cycles },
		{ MGPU_A_CTX_PREEMPTIONS, c->preemptions },
		{ MGPU_A_CTX_RESUMES, c->resumes },
		{ MGPU_A_CTX_FLUSHES, c->flushes },
		{ MGPU_A_CTX_SWITCH_NS, c->switch_ns },
		{ MGPU_A_CTX_COPIES, c->copies },
	};
	void *hdr = genlmsg_put(skb, portid, seq, &mgpu_nl_family, flags, cmd);
	size_t i;

	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_u32(skb, MGPU_A_CTX_VGPU_ID, vgpu->id) ||
	    nla_put_u32(skb, MGPU_A_CTX_ID, c->id) ||
	    nla_put_u32(skb, MGPU_A_CTX_DEV_ID, vgpu->mdev->id) ||
	    nla_put_string(skb, MGPU_A_CTX_NAME, c->name) ||
	    nla_put_u32(skb, MGPU_A_CTX_STATE, c->state) ||
	    (c->op && nla_put_string(skb, MGPU_A_CTX_OP,
				     mgpu_compute_op_name(c->op))) ||
	    nla_put_u32(skb, MGPU_A_CTX_SLOTS, c->slots) ||
	    nla_put_u32(skb, MGPU_A_CTX_SLOTS_ALLOWED, c->slots_allowed) ||
	    nla_put_u32(skb, MGPU_A_CTX_SLOTS_WANTED, c->slots_wanted) ||
	    nla_put_u32(skb, MGPU_A_CTX_QUEUED, c->queued) ||
	    nla_put_u8(skb, MGPU_A_CTX_IDEMPOTENT, c->idempotent) ||
	    nla_put_u32(skb, MGPU_A_CTX_LIVE_BYTES, c->live_bytes))
		goto full;
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		if (nla_put_u64_64bit(skb, counters[i].attr, counters[i].value,
				      MGPU_A_CTX_PAD))
			goto full;
	}
	genlmsg_end(skb, hdr);
	return 0;

full:
	genlmsg_cancel(skb, hdr);
	return -EMSGSIZE;
}

static struct mgpu_vgpu *mgpu_nl_ctx_vgpu(struct nlattr **tb,
					  struct netlink_ext_ack *extack)
{
	if (!tb[MGPU_A_CTX_VGPU_ID] || !tb[MGPU_A_CTX_ID]) {
		NL_SET_ERR_MSG(extack,
			       "the context is missing: add vgpu-id and id");
		return ERR_PTR(-EINVAL);
	}
	return mgpu_nl_find_vgpu(tb[MGPU_A_CTX_VGPU_ID], NULL, NULL, extack);
}

static void mgpu_nl_no_ctx(struct nlattr **tb, struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG_ATTR(extack, tb[MGPU_A_CTX_ID],
			    "the vGPU has no context with this id: list the contexts, guests make and end them");
}

int mgpu_nl_ctx_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct mgpu_context_info ctx;
	struct mgpu_vgpu *vgpu;
	struct sk_buff *msg;
	int err;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;

	mutex_lock(&mgpu_registry_lock);
	vgpu = mgpu_nl_ctx_vgpu(info->attrs, info->extack);
	if (IS_ERR(vgpu)) {
		err = PTR_ERR(vgpu);
	} else {
		err = mgpu_context_info(vgpu,
					nla_get_u32(info->attrs[MGPU_A_CTX_ID]),
					true, &ctx);
		if (err)
			mgpu_nl_no_ctx(info->attrs, info->extack);
		else
			err = mgpu_nl_ctx_msg(msg, vgpu, &ctx, info->snd_portid,
					      info->snd_seq, 0,
					      MGPU_CMD_CTX_GET);
	}
	mutex_unlock(&mgpu_registry_lock);

	if (err) {
		nlmsg_free(msg);
		return err;
	}
	return genlmsg_reply(msg, info);
}

int mgpu_nl_ctx_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *tb[MGPU_A_CTX_ID + 1];
	struct mgpu_context_info ctx;
	struct mgpu_vgpu *vgpu;
	unsigned long id;
	u32 only = 0;
	int err;

	err = genlmsg_parse(cb->nlh, &mgpu_nl_family, tb, MGPU_A_CTX_ID,
			    mgpu_ctx_get_nl_policy, cb->extack);
	if (err)
		return err;
	if (tb[MGPU_A_CTX_ID]) {
		NL_SET_ERR_MSG_ATTR(cb->extack, tb[MGPU_A_CTX_ID],
				    "a dump takes vgpu-id only: to get one context, do not ask for a dump");
		return -EINVAL;
	}

	mutex_lock(&mgpu_registry_lock);
	if (tb[MGPU_A_CTX_VGPU_ID]) {
		vgpu = mgpu_nl_find_vgpu(tb[MGPU_A_CTX_VGPU_ID], NULL, NULL,
					 cb->extack);
		if (IS_ERR(vgpu)) {
			err = PTR_ERR(vgpu);
			goto unlock;
		}
		only = vgpu->id;
	}

	/* args: first vGPU that is not complete, and its first context not sent */
	xa_for_each_start(&mgpu_vgpus, id, vgpu, cb->args[0]) {
		if (id != cb->args[0]) {
			cb->args[0] = id;
			cb->args[1] = 0;
		}
		if (only && vgpu->id != only)
			continue;
		while (cb->args[1] <= U32_MAX &&
		       !mgpu_context_info(vgpu, cb->args[1], false, &ctx)) {
			err = mgpu_nl_ctx_msg(skb, vgpu, &ctx,
					      NETLINK_CB(cb->skb).portid,
					      cb->nlh->nlmsg_seq, NLM_F_MULTI,
					      MGPU_CMD_CTX_GET);
			if (err)
				goto unlock;
			cb->args[1] = (unsigned long)ctx.id + 1;
		}
		cb->args[1] = 1UL + U32_MAX;
	}
unlock:
	mutex_unlock(&mgpu_registry_lock);

	return skb->len ?: err;
}

int mgpu_nl_ctx_preempt_doit(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *slots = info->attrs[MGPU_A_CTX_SLOTS];
	const struct nlattr *method = info->attrs[MGPU_A_CTX_METHOD];
	const struct nlattr *hold = info->attrs[MGPU_A_CTX_HOLD];
	const char *why = NULL;
	struct mgpu_vgpu *vgpu;
	int err;

	mutex_lock(&mgpu_registry_lock);
	vgpu = mgpu_nl_ctx_vgpu(info->attrs, info->extack);
	if (IS_ERR(vgpu)) {
		err = PTR_ERR(vgpu);
		goto unlock;
	}
	err = mgpu_context_preempt(vgpu, nla_get_u32(info->attrs[MGPU_A_CTX_ID]),
				   slots ? nla_get_u32(slots) : 0,
				   method ? nla_get_u32(method) :
					    MGPU_PREEMPT_METHOD_SWITCH,
				   hold && nla_get_u8(hold), &why);
	if (err == -ENOENT)
		mgpu_nl_no_ctx(info->attrs, info->extack);
	if (why) {
		NL_SET_BAD_ATTR(info->extack, info->attrs[MGPU_A_CTX_ID]);
		info->extack->_msg = why;
	}
unlock:
	mutex_unlock(&mgpu_registry_lock);
	return err;
}

int mgpu_nl_ctx_resume_doit(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *first = info->attrs[MGPU_A_CTX_FIRST];
	struct mgpu_vgpu *vgpu;
	int err;

	mutex_lock(&mgpu_registry_lock);
	vgpu = mgpu_nl_ctx_vgpu(info->attrs, info->extack);
	if (IS_ERR(vgpu)) {
		err = PTR_ERR(vgpu);
		goto unlock;
	}
	err = mgpu_context_resume(vgpu, nla_get_u32(info->attrs[MGPU_A_CTX_ID]),
				  first && nla_get_u8(first));
	if (err)
		mgpu_nl_no_ctx(info->attrs, info->extack);
unlock:
	mutex_unlock(&mgpu_registry_lock);
	return err;
}

static u8 mgpu_nl_event_cmd(enum mgpu_event event)
{
	switch (event) {
	case MGPU_EVENT_ADDED:
		return MGPU_CMD_VGPU_ADDED_NTF;
	case MGPU_EVENT_REMOVED:
		return MGPU_CMD_VGPU_REMOVED_NTF;
	case MGPU_EVENT_OPENED:
		return MGPU_CMD_VGPU_OPENED_NTF;
	case MGPU_EVENT_CLOSED:
		return MGPU_CMD_VGPU_CLOSED_NTF;
	case MGPU_EVENT_HUNG:
		return MGPU_CMD_VGPU_HUNG_NTF;
	case MGPU_EVENT_QUARANTINE:
		return MGPU_CMD_VGPU_QUARANTINE_NTF;
	}
	return 0;
}

static u8 mgpu_nl_dev_event_cmd(enum mgpu_dev_event event)
{
	switch (event) {
	case MGPU_DEV_EVENT_POLICY:
		return MGPU_CMD_DEV_POLICY_NTF;
	case MGPU_DEV_EVENT_POLICY_EXIT:
		return MGPU_CMD_DEV_POLICY_EXIT_NTF;
	}
	return 0;
}

/* Send @msg; after an error, have the listeners know that an event is missing. */
static void mgpu_nl_send_event(struct sk_buff *msg, int err)
{
	if (!err) {
		genlmsg_multicast_netns(&mgpu_nl_family, &init_net, msg, 0,
					MGPU_NLGRP_EVENTS, GFP_KERNEL);
		return;
	}
	nlmsg_free(msg);
	/* To listeners ENOBUFS means that events were lost and to dump again. */
	genl_set_err(&mgpu_nl_family, &init_net, 0, MGPU_NLGRP_EVENTS, ENOBUFS);
}

/**
 * mgpu_netlink_event() - send an event of a vGPU to listeners
 * @vgpu: the vGPU; the caller keeps it alive
 * @event: the event
 *
 * Context: may sleep; the caller may hold mgpu_registry_lock and VFIO's locks.
 */
void mgpu_netlink_event(struct mgpu_vgpu *vgpu, enum mgpu_event event)
{
	struct sk_buff *msg;
	int err = -ENOMEM;

	if (event == MGPU_EVENT_ADDED || event == MGPU_EVENT_REMOVED)
		if (!atomic_inc_return(&mgpu_nl_generation))
			atomic_inc(&mgpu_nl_generation);

	if (!genl_has_listeners(&mgpu_nl_family, &init_net, MGPU_NLGRP_EVENTS))
		return;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (msg)
		err = mgpu_nl_vgpu_msg(msg, vgpu, 0, 0, 0,
				       mgpu_nl_event_cmd(event), false, NULL);
	mgpu_nl_send_event(msg, err);
}

/**
 * mgpu_netlink_dev_event() - send an event of a device to listeners
 * @mdev: the device
 * @event: the event
 *
 * Context: may sleep; must hold mgpu_registry_lock, which protects the attributes of
 * the event (the sums over vGPUs, the built-in policy, the end of the last BPF policy),
 * and no lock that nests inside it.
 */
void mgpu_netlink_dev_event(struct mgpu_device *mdev,
			    enum mgpu_dev_event event)
{
	struct sk_buff *msg;
	int err = -ENOMEM;

	lockdep_assert_held(&mgpu_registry_lock);

	if (!genl_has_listeners(&mgpu_nl_family, &init_net, MGPU_NLGRP_EVENTS))
		return;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (msg)
		err = mgpu_nl_dev_msg(msg, mdev, 0, 0, 0,
				      mgpu_nl_dev_event_cmd(event));
	mgpu_nl_send_event(msg, err);
}

/* Time between two events of a vGPU's contexts, nanoseconds. */
#define CTX_EVENT_NS	NSEC_PER_MSEC

static void ctx_event_work(struct work_struct *work)
{
	struct mgpu_vgpu *vgpu = container_of(to_delayed_work(work),
					      struct mgpu_vgpu, ctx_event);
	struct mgpu_context_info info;
	struct sk_buff *msg;

	WRITE_ONCE(vgpu->ctx_event_ns, ktime_get_ns());
	if (mgpu_context_info(vgpu, READ_ONCE(vgpu->ctx_event_id), true, &info))
		return;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (msg && !mgpu_nl_ctx_msg(msg, vgpu, &info, 0, 0, 0,
				    MGPU_CMD_CTX_NTF)) {
		genlmsg_multicast_netns(&mgpu_nl_family, &init_net, msg, 0,
					MGPU_NLGRP_CONTEXTS, GFP_KERNEL);
		return;
	}
	nlmsg_free(msg);
	genl_set_err(&mgpu_nl_family, &init_net, 0, MGPU_NLGRP_CONTEXTS,
		     ENOBUFS);
}

/**
 * mgpu_netlink_ctx_event() - send an event of a context to listeners
 * @vgpu: the vGPU, open
 * @ctx: number of the context; no event is sent if it does not exist any more
 *
 * Listeners are the daemons that decide which contexts get slots.
 *
 * A guest can complete jobs faster than messages can be made, and the callers are
 * engine threads, whose time belongs to all vGPUs.  A work item therefore makes the
 * message, at once if the vGPU's last one is %CTX_EVENT_NS old, or else at the next
 * tick; meanwhile events are combined into one, about the last context.  This holds a
 * process off, too, that joins the group's number in a network namespace of its own:
 * the process receives nothing, but it counts as a listener.
 *
 * Context: any that may queue work; does not sleep.
 */
void mgpu_netlink_ctx_event(struct mgpu_vgpu *vgpu, u32 ctx)
{
	u64 age;

	if (!genl_has_listeners(&mgpu_nl_family, &init_net, MGPU_NLGRP_CONTEXTS))
		return;

	/* Queuing a work item that is queued already does nothing, and is a barrier. */
	WRITE_ONCE(vgpu->ctx_event_id, ctx);
	age = ktime_get_ns() - READ_ONCE(vgpu->ctx_event_ns);
	queue_delayed_work(system_unbound_wq, &vgpu->ctx_event,
			   age < CTX_EVENT_NS);
}

/**
 * mgpu_netlink_init_vgpu - prepare the events of a new vGPU's contexts
 * @vgpu: vGPU
 *
 * Context: before anything else uses it.
 */
void mgpu_netlink_init_vgpu(struct mgpu_vgpu *vgpu)
{
	INIT_DELAYED_WORK(&vgpu->ctx_event, ctx_event_work);
}

/**
 * mgpu_netlink_stop - stop the events of a vGPU's contexts
 * @vgpu: vGPU that was reset, so that no context is left
 *
 * Context: may sleep.
 */
void mgpu_netlink_stop(struct mgpu_vgpu *vgpu)
{
	cancel_delayed_work_sync(&vgpu->ctx_event);
}

static struct genl_family mgpu_nl_family __ro_after_init = {
	.name		= MGPU_FAMILY_NAME,
	.version	= MGPU_FAMILY_VERSION,
	.module		= THIS_MODULE,
	.parallel_ops	= true,
	.ops		= mgpu_nl_ops,
	.n_ops		= ARRAY_SIZE(mgpu_nl_ops),
	.resv_start_op	= MGPU_CMD_DEV_GET,
	.mcgrps		= mgpu_nl_mcgrps,
	.n_mcgrps	= ARRAY_SIZE(mgpu_nl_mcgrps),
};

int __init mgpu_netlink_init(void)
{
	mgpu_nl_list_policies();
	return genl_register_family(&mgpu_nl_family);
}

void mgpu_netlink_exit(void)
{
	genl_unregister_family(&mgpu_nl_family);
}
