// SPDX-License-Identifier: GPL-2.0-only
/*
 * The struct_ops type of scheduling policies in BPF: its registration with the BPF
 * core and the validation of a policy before it comes into force.  policy_bpf.c
 * puts policies in force.
 */
#include "compat.h"
#include "mgpu.h"
#include "sched/policy_bpf.h"

#if MGPU_HAS_STRUCT_OPS

#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#include <linux/ctype.h>
#include <linux/module.h>

static bool supported;

MGPU_STRUCT_OPS_LINK(mgpu_bpf_policy_reg, mgpu_bpf_policy_unreg,
		     mgpu_bpf_policy_update)

static int policy_init(struct btf *btf)
{
	return 0;
}

static bool policy_is_valid_access(int off, int size,
				   enum bpf_access_type type,
				   const struct bpf_prog *prog,
				   struct bpf_insn_access_aux *info)
{
	return bpf_tracing_btf_ctx_access(off, size, type, prog, info);
}

/* Programs can read entities and run queues; only kfuncs change them. */
static const struct bpf_verifier_ops policy_verifier_ops = {
	.get_func_proto = bpf_base_func_proto,
	.is_valid_access = policy_is_valid_access,
};

static int policy_check_member(const struct btf_type *t,
			       const struct btf_member *member,
			       const struct bpf_prog *prog)
{
	/* Callbacks run with interrupts off. */
	return mgpu_compat_prog_sleepable(prog) ? -EINVAL : 0;
}

static bool name_is_good(const char *name)
{
	size_t len = strnlen(name, MGPU_POLICY_NAME_LEN);
	size_t i;

	if (!len || len == MGPU_POLICY_NAME_LEN)
		return false;
	for (i = 0; i < len; i++) {
		if (!isascii(name[i]) ||
		    (!isalnum(name[i]) && !strchr("-_.", name[i])))
			return false;
	}
	return !mgpu_policy_find(name);
}

/*
 * Copy a data member.  Return 1 if the member was copied, 0 for a callback, which the
 * BPF core sets, or a negative errno.
 */
static int policy_init_member(const struct btf_type *t,
			      const struct btf_member *member, void *kdata,
			      const void *udata)
{
	const struct mgpu_bpf_policy *from = udata;
	struct mgpu_bpf_policy *to = kdata;

	switch (__btf_member_bit_offset(t, member) / 8) {
	case offsetof(struct mgpu_bpf_policy, dev):
		to->dev = from->dev;
		return 1;
	case offsetof(struct mgpu_bpf_policy, timeout_ms):
		if (from->timeout_ms &&
		    (from->timeout_ms < MGPU_BPF_TIMEOUT_MIN ||
		     from->timeout_ms > MGPU_BPF_TIMEOUT_MAX))
			return -ERANGE;
		to->timeout_ms = from->timeout_ms;
		return 1;
	case offsetof(struct mgpu_bpf_policy, name):
		if (!name_is_good(from->name))
			return -EINVAL;
		strscpy(to->name, from->name, sizeof(to->name));
		return 1;
	}
	return 0;
}

static int policy_validate(void *kdata)
{
	const struct mgpu_bpf_policy *ops = kdata;

	return ops->enqueue && ops->pick ? 0 : -EINVAL;
}

/* The BPF core never calls these stubs; it reads their types. */
static int stub_init(struct mgpu_runq *rq)
{
	return 0;
}

static void stub_exit(struct mgpu_runq *rq)
{
}

static void stub_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u64 now)
{
}

static void stub_detach(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
}

static void stub_enqueue(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u64 now)
{
}

static void stub_dequeue(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
}

static u32 stub_pick(struct mgpu_runq *rq, u64 now)
{
	return 0;
}

static void stub_charge(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u64 ns, u64 now)
{
}

static int stub_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 ran, u64 now)
{
	return 0;
}

static struct mgpu_bpf_policy stubs = {
	.init = stub_init,
	.exit = stub_exit,
	.attach = stub_attach,
	.detach = stub_detach,
	.enqueue = stub_enqueue,
	.dequeue = stub_dequeue,
	.pick = stub_pick,
	.charge = stub_charge,
	.yield = stub_yield,
};

static struct bpf_struct_ops policy_struct_ops = {
	.verifier_ops = &policy_verifier_ops,
	.init = policy_init,
	.check_member = policy_check_member,
	.init_member = policy_init_member,
	.reg = mgpu_bpf_policy_reg_compat,
	.unreg = mgpu_bpf_policy_unreg_compat,
	.update = mgpu_bpf_policy_update_compat,
	.validate = policy_validate,
	.cfi_stubs = &stubs,
	.owner = THIS_MODULE,
	.name = "mgpu_bpf_policy",
};

/*
 * Register the struct_ops type.  A failure is not an error of the module, which has
 * the built-in policies.
 */
int mgpu_policy_bpf_init(void)
{
	int ret;

	ret = mgpu_bpf_policy_kfuncs();
	if (!ret)
		ret = register_bpf_struct_ops(&policy_struct_ops,
					      mgpu_bpf_policy);
	if (ret)
		pr_warn("mgpu: policies in BPF cannot be loaded (error %d): build the module with BTF\n",
			ret);
	supported = !ret;
	return 0;
}

/* Return whether policies in BPF can be loaded. */
bool mgpu_policy_bpf_supported(void)
{
	return supported;
}

#else /* !MGPU_HAS_STRUCT_OPS */

int mgpu_policy_bpf_init(void)
{
	return 0;
}

void mgpu_policy_bpf_exit(void)
{
}

bool mgpu_policy_bpf_supported(void)
{
	return false;
}

void mgpu_policy_bpf_evict(struct mgpu_device *mdev,
			   const struct mgpu_policy_exit *why)
{
}

void mgpu_policy_bpf_device_added(struct mgpu_device *mdev)
{
}

void mgpu_policy_bpf_device_gone(struct mgpu_device *mdev)
{
}

#endif /* MGPU_HAS_STRUCT_OPS */
