// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu: mediated virtio-gpu devices for virtual machines.
 *
 * Initialize the parts of the module in order, and undo that in reverse order.
 */
#include <linux/module.h>

#include "gpu/host_pages.h"
#include "mgpu.h"

struct workqueue_struct *mgpu_wq;

static int __init mgpu_init(void)
{
	int ret;

	mgpu_wq = alloc_workqueue("mgpu", WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!mgpu_wq)
		return -ENOMEM;

	ret = mgpu_host_pages_init();
	if (ret)
		goto err_wq;

	ret = mgpu_mdev_init();
	if (ret)
		goto err_host_pages;

	ret = mgpu_bpf_init();
	if (ret)
		goto err_mdev;

	ret = mgpu_policy_bpf_init();
	if (ret)
		goto err_mdev;

	ret = mgpu_netlink_init();
	if (ret)
		goto err_mdev;

	return 0;

err_mdev:
	mgpu_mdev_exit();
err_host_pages:
	mgpu_host_pages_exit();
err_wq:
	destroy_workqueue(mgpu_wq);
	return ret;
}

static void __exit mgpu_exit(void)
{
	mgpu_netlink_exit();
	mgpu_policy_bpf_exit();
	mgpu_mdev_exit();
	mgpu_host_pages_exit();
	destroy_workqueue(mgpu_wq);
}

module_init(mgpu_init);
module_exit(mgpu_exit);

MODULE_DESCRIPTION("Mediated GPU: shares one GPU between virtual machines");
MODULE_AUTHOR("The mgpu developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(MGPU_VERSION);
