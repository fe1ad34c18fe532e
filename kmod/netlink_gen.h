/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/mgpu.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_MGPU_GEN_H
#define _LINUX_MGPU_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <uapi/linux/mgpu.h>

/* Common nested types */
extern const struct nla_policy mgpu_setting_nl_policy[MGPU_A_VGPU_FPS_FLOOR + 1];

extern const struct nla_policy mgpu_dev_get_nl_policy[MGPU_A_DEV_ID + 1];

extern const struct nla_policy mgpu_vgpu_get_nl_policy[MGPU_A_VGPU_DEV_ID + 1];

extern const struct nla_policy mgpu_vgpu_set_nl_policy[MGPU_A_BATCH_VGPU + 1];

extern const struct nla_policy mgpu_dev_set_nl_policy[MGPU_A_DEV_HANG_LIMIT + 1];

extern const struct nla_policy mgpu_ctx_get_nl_policy[MGPU_A_CTX_ID + 1];

extern const struct nla_policy mgpu_ctx_preempt_nl_policy[MGPU_A_CTX_HOLD + 1];

extern const struct nla_policy mgpu_ctx_resume_nl_policy[MGPU_A_CTX_FIRST + 1];

/* Ops table for mgpu */
extern const struct genl_ops mgpu_nl_ops[7];

int mgpu_nl_dev_get_doit(struct sk_buff *skb, struct genl_info *info);
int mgpu_nl_dev_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int mgpu_nl_vgpu_get_doit(struct sk_buff *skb, struct genl_info *info);
int mgpu_nl_vgpu_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int mgpu_nl_vgpu_set_doit(struct sk_buff *skb, struct genl_info *info);
int mgpu_nl_dev_set_doit(struct sk_buff *skb, struct genl_info *info);
int mgpu_nl_ctx_get_doit(struct sk_buff *skb, struct genl_info *info);
int mgpu_nl_ctx_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int mgpu_nl_ctx_preempt_doit(struct sk_buff *skb, struct genl_info *info);
int mgpu_nl_ctx_resume_doit(struct sk_buff *skb, struct genl_info *info);

enum {
	MGPU_NLGRP_EVENTS,
	MGPU_NLGRP_CONTEXTS,
};

extern const struct genl_multicast_group mgpu_nl_mcgrps[MGPU_NLGRP_CONTEXTS + 1];

#endif /* _LINUX_MGPU_GEN_H */
