// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/mgpu.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "netlink_gen.h"

#include <uapi/linux/mgpu.h>

/* Common nested types */
const struct nla_policy mgpu_setting_nl_policy[MGPU_A_VGPU_FPS_FLOOR + 1] = {
	[MGPU_A_VGPU_ID] = { .type = NLA_U32, },
	[MGPU_A_VGPU_UUID] = { .type = NLA_NUL_STRING, .len = MGPU_UUID_STRLEN, },
	[MGPU_A_VGPU_WEIGHT] = NLA_POLICY_RANGE(NLA_U32, MGPU_WEIGHT_MIN, MGPU_WEIGHT_MAX),
	[MGPU_A_VGPU_FPS_LIMIT] = { .type = NLA_U32, },
	[MGPU_A_VGPU_GPU_LIMIT] = { .type = NLA_U32, },
	[MGPU_A_VGPU_GPU_PERIOD] = { .type = NLA_U32, },
	[MGPU_A_VGPU_GPU_BURST] = { .type = NLA_U32, },
	[MGPU_A_VGPU_MODE_WIDTH] = { .type = NLA_U32, },
	[MGPU_A_VGPU_MODE_HEIGHT] = { .type = NLA_U32, },
	[MGPU_A_VGPU_QUARANTINE] = { .type = NLA_U32, },
	[MGPU_A_VGPU_FPS_TARGET] = { .type = NLA_U32, },
	[MGPU_A_VGPU_GPU_TARGET] = { .type = NLA_U32, },
	[MGPU_A_VGPU_FPS_FLOOR] = { .type = NLA_U32, },
};

/* MGPU_CMD_DEV_GET - do */
const struct nla_policy mgpu_dev_get_nl_policy[MGPU_A_DEV_ID + 1] = {
	[MGPU_A_DEV_ID] = { .type = NLA_U32, },
};

/* MGPU_CMD_VGPU_GET - do */
const struct nla_policy mgpu_vgpu_get_nl_policy[MGPU_A_VGPU_DEV_ID + 1] = {
	[MGPU_A_VGPU_ID] = { .type = NLA_U32, },
	[MGPU_A_VGPU_UUID] = { .type = NLA_NUL_STRING, .len = MGPU_UUID_STRLEN, },
	[MGPU_A_VGPU_DEV_ID] = { .type = NLA_U32, },
};

/* MGPU_CMD_VGPU_SET - do */
const struct nla_policy mgpu_vgpu_set_nl_policy[MGPU_A_BATCH_VGPU + 1] = {
	[MGPU_A_BATCH_VGPU] = NLA_POLICY_NESTED(mgpu_setting_nl_policy),
};

/* MGPU_CMD_DEV_SET - do */
const struct nla_policy mgpu_dev_set_nl_policy[MGPU_A_DEV_HANG_LIMIT + 1] = {
	[MGPU_A_DEV_ID] = { .type = NLA_U32, },
	[MGPU_A_DEV_POLICY] = { .type = NLA_NUL_STRING, .len = MGPU_POLICY_NAME_LEN, },
	[MGPU_A_DEV_JOB_TIMEOUT] = { .type = NLA_U32, },
	[MGPU_A_DEV_SLOTS] = { .type = NLA_U32, },
	[MGPU_A_DEV_HANG_LIMIT] = { .type = NLA_U32, },
};

/* MGPU_CMD_CTX_GET - do */
const struct nla_policy mgpu_ctx_get_nl_policy[MGPU_A_CTX_ID + 1] = {
	[MGPU_A_CTX_VGPU_ID] = { .type = NLA_U32, },
	[MGPU_A_CTX_ID] = { .type = NLA_U32, },
};

/* MGPU_CMD_CTX_PREEMPT - do */
const struct nla_policy mgpu_ctx_preempt_nl_policy[MGPU_A_CTX_HOLD + 1] = {
	[MGPU_A_CTX_VGPU_ID] = { .type = NLA_U32, },
	[MGPU_A_CTX_ID] = { .type = NLA_U32, },
	[MGPU_A_CTX_SLOTS] = { .type = NLA_U32, },
	[MGPU_A_CTX_METHOD] = NLA_POLICY_MAX(NLA_U32, 2),
	[MGPU_A_CTX_HOLD] = { .type = NLA_U8, },
};

/* MGPU_CMD_CTX_RESUME - do */
const struct nla_policy mgpu_ctx_resume_nl_policy[MGPU_A_CTX_FIRST + 1] = {
	[MGPU_A_CTX_VGPU_ID] = { .type = NLA_U32, },
	[MGPU_A_CTX_ID] = { .type = NLA_U32, },
	[MGPU_A_CTX_FIRST] = { .type = NLA_U8, },
};

/* Ops table for mgpu */
const struct genl_ops mgpu_nl_ops[7] = {
	{
		.cmd		= MGPU_CMD_DEV_GET,
		.doit		= mgpu_nl_dev_get_doit,
		.dumpit		= mgpu_nl_dev_get_dumpit,
		.policy		= mgpu_dev_get_nl_policy,
		.maxattr	= MGPU_A_DEV_ID,
		.flags		= GENL_ADMIN_PERM,
	},
	{
		.cmd		= MGPU_CMD_VGPU_GET,
		.doit		= mgpu_nl_vgpu_get_doit,
		.dumpit		= mgpu_nl_vgpu_get_dumpit,
		.policy		= mgpu_vgpu_get_nl_policy,
		.maxattr	= MGPU_A_VGPU_DEV_ID,
		.flags		= GENL_ADMIN_PERM,
	},
	{
		.cmd		= MGPU_CMD_VGPU_SET,
		.doit		= mgpu_nl_vgpu_set_doit,
		.policy		= mgpu_vgpu_set_nl_policy,
		.maxattr	= MGPU_A_BATCH_VGPU,
		.flags		= GENL_ADMIN_PERM,
	},
	{
		.cmd		= MGPU_CMD_DEV_SET,
		.doit		= mgpu_nl_dev_set_doit,
		.policy		= mgpu_dev_set_nl_policy,
		.maxattr	= MGPU_A_DEV_HANG_LIMIT,
		.flags		= GENL_ADMIN_PERM,
	},
	{
		.cmd		= MGPU_CMD_CTX_GET,
		.doit		= mgpu_nl_ctx_get_doit,
		.dumpit		= mgpu_nl_ctx_get_dumpit,
		.policy		= mgpu_ctx_get_nl_policy,
		.maxattr	= MGPU_A_CTX_ID,
		.flags		= GENL_ADMIN_PERM,
	},
	{
		.cmd		= MGPU_CMD_CTX_PREEMPT,
		.doit		= mgpu_nl_ctx_preempt_doit,
		.policy		= mgpu_ctx_preempt_nl_policy,
		.maxattr	= MGPU_A_CTX_HOLD,
		.flags		= GENL_ADMIN_PERM,
	},
	{
		.cmd		= MGPU_CMD_CTX_RESUME,
		.doit		= mgpu_nl_ctx_resume_doit,
		.policy		= mgpu_ctx_resume_nl_policy,
		.maxattr	= MGPU_A_CTX_FIRST,
		.flags		= GENL_ADMIN_PERM,
	},
};

const struct genl_multicast_group mgpu_nl_mcgrps[] = {
	[MGPU_NLGRP_EVENTS] = { "events", GENL_MCAST_CAP_NET_ADMIN, },
	[MGPU_NLGRP_CONTEXTS] = { "contexts", GENL_MCAST_CAP_NET_ADMIN, },
};
