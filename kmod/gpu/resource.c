// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtio-gpu resources: 2D resources with a copy on the host, and guest blobs.
 * ring_lock protects the table.
 */
#include <linux/slab.h>
#include <linux/virtio_gpu.h>
#include <linux/vmalloc.h>

#include "gpu/resource.h"
#include "mgpu.h"
#include "virgl/devcmd.h"

/* Least charge for a resource, bytes: also an empty one uses memory of the host. */
#define MIN_CHARGE	PAGE_SIZE

void mgpu_resource_init(struct mgpu_vgpu *vgpu)
{
	xa_init(&vgpu->resources);
}

struct mgpu_resource *mgpu_resource_find(struct mgpu_vgpu *vgpu, u32 id)
{
	return xa_load(&vgpu->resources, id);
}

void mgpu_resource_get(struct mgpu_resource *res)
{
	kref_get(&res->ref);
}

static void drop_backing(struct mgpu_resource *res)
{
	if (!res->backing)
		return;
	mgpu_mem_free(res->backing);
	res->backing = NULL;
	mgpu_mem_uncharge(res->vgpu, res->backing_charged);
	res->backing_charged = 0;
}

static void resource_free(struct kref *ref)
{
	struct mgpu_resource *res = container_of(ref, struct mgpu_resource,
						 ref);

	/* Before the device may use the memory for something else. */
	mgpu_hostmem_remove(res, false);
	if (res->dev.host_id)
		mgpu_devres_release(res);
	drop_backing(res);
	vfree(res->host);
	mgpu_mem_uncharge(res->vgpu, res->charged);
	atomic_dec(&res->vgpu->nr_resources);
	kfree(res);
}

void mgpu_resource_put(struct mgpu_resource *res)
{
	kref_put(&res->ref, resource_free);
}

/*
 * Release a reference unless it is the last one; return false if it is, and keep it.
 * Freeing a resource unpins guest memory, which may sleep.  Test and release are one
 * atomic step, because other holders release their references at any time.
 */
bool mgpu_resource_put_unless_last(struct mgpu_resource *res)
{
	return refcount_dec_not_one(&res->ref.refcount);
}

/* Return the VIRTIO_GPU_RESP_ERR_* for a failure to pin guest memory. */
static u32 pin_error(const struct mgpu_mem *mem)
{
	return PTR_ERR(mem) == -ENOMEM ? VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY :
					 VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
}

/**
 * mgpu_resource_new - make a resource
 * @vgpu: vGPU
 * @id: the guest's number of the resource
 * @size: bytes to charge for the resource
 * @err: set to VIRTIO_GPU_RESP_ERR_* on failure
 *
 * Context: must hold ring_lock; may sleep.
 * Return: the resource, in no table, or NULL.
 */
struct mgpu_resource *mgpu_resource_new(struct mgpu_vgpu *vgpu, u32 id,
					u64 size, u32 *err)
{
	struct mgpu_resource *res;
	u64 charge;

	if (mgpu_resource_find(vgpu, id)) {
		*err = VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
		return NULL;
	}

	*err = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (atomic_read(&vgpu->nr_resources) >= vgpu->type->desc->max_resources)
		return NULL;
	if (check_add_overflow(size, (u64)PAGE_SIZE - 1, &charge))
		return NULL;
	charge = max_t(u64, charge & PAGE_MASK, MIN_CHARGE);
	if (mgpu_mem_charge(vgpu, charge))
		return NULL;

	res = kzalloc(sizeof(*res), GFP_GUEST);
	if (!res) {
		mgpu_mem_uncharge(vgpu, charge);
		return NULL;
	}
	atomic_inc(&vgpu->nr_resources);
	kref_init(&res->ref);
	res->vgpu = vgpu;
	res->id = id;
	res->size = size;
	res->charged = charge;
	return res;
}

/* Put a resource into the table, or release it.  Return VIRTIO_GPU_RESP_*. */
u32 mgpu_resource_add(struct mgpu_resource *res)
{
	if (xa_err(xa_store(&res->vgpu->resources, res->id, res,
			    GFP_KERNEL_ACCOUNT))) {
		mgpu_resource_put(res);
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	return VIRTIO_GPU_RESP_OK_NODATA;
}

u32 mgpu_resource_create_2d(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	struct mgpu_resource *res;
	u32 err;

	res = mgpu_resource_new(vgpu, cmd->res_id,
				(u64)cmd->width * cmd->height * 4, &err);
	if (!res)
		return err;
	res->format = cmd->format;
	res->width = cmd->width;
	res->height = cmd->height;
	res->stride = cmd->width * 4;
	res->host = __vmalloc(res->size, GFP_GUEST | __GFP_ZERO);
	if (!res->host) {
		mgpu_resource_put(res);
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	return mgpu_resource_add(res);
}

/**
 * mgpu_resource_pin - give a new blob its guest memory
 * @res: blob whose charge includes the memory
 * @cmd: RESOURCE_CREATE_BLOB with entries
 *
 * Context: must hold ring_lock; may sleep.
 * Return: VIRTIO_GPU_RESP_*.
 */
u32 mgpu_resource_pin(struct mgpu_resource *res, const struct mgpu_cmd *cmd)
{
	struct mgpu_mem *mem = mgpu_mem_pin_cmd(res->vgpu, cmd);

	if (IS_ERR(mem))
		return pin_error(mem);
	res->backing = mem;
	return VIRTIO_GPU_RESP_OK_NODATA;
}

u32 mgpu_resource_create_blob(struct mgpu_vgpu *vgpu,
			      const struct mgpu_cmd *cmd)
{
	struct mgpu_resource *res;
	u32 err;

	if (cmd->blob_mem != VIRTIO_GPU_BLOB_MEM_GUEST)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	/* Charge the pinned memory, which is the whole backing. */
	res = mgpu_resource_new(vgpu, cmd->res_id, mgpu_mem_cmd_bytes(cmd),
				&err);
	if (!res)
		return err;
	res->blob = true;
	res->size = cmd->size;
	err = mgpu_resource_pin(res, cmd);
	if (err != VIRTIO_GPU_RESP_OK_NODATA) {
		mgpu_resource_put(res);
		return err;
	}
	return mgpu_resource_add(res);
}

u32 mgpu_resource_attach(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	struct mgpu_resource *res = mgpu_resource_find(vgpu, cmd->res_id);
	struct mgpu_mem *mem;
	u64 charge;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (res->backing)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;

	charge = mgpu_mem_cmd_bytes(cmd);
	if (mgpu_mem_charge(vgpu, charge))
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	mem = mgpu_mem_pin_cmd(vgpu, cmd);
	if (IS_ERR(mem)) {
		mgpu_mem_uncharge(vgpu, charge);
		return pin_error(mem);
	}
	res->backing = mem;
	res->backing_charged = charge;
	return VIRTIO_GPU_RESP_OK_NODATA;
}

u32 mgpu_resource_detach(struct mgpu_vgpu *vgpu, u32 id)
{
	struct mgpu_resource *res = mgpu_resource_find(vgpu, id);

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	/* A blob's memory is attached from its creation to its end. */
	if (!res->backing || res->blob)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	drop_backing(res);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

u32 mgpu_resource_unref(struct mgpu_vgpu *vgpu, u32 id)
{
	struct mgpu_resource *res = xa_erase(&vgpu->resources, id);

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	mgpu_screen_forget(vgpu, res);
	mgpu_resource_put(res);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

/* Release all resources, for a reset: the ring is stopped, no job is in flight. */
void mgpu_resource_release_all(struct mgpu_vgpu *vgpu)
{
	struct mgpu_resource *res;
	unsigned long id;

	mgpu_devres_release_all(vgpu);
	xa_for_each(&vgpu->resources, id, res) {
		xa_erase(&vgpu->resources, id);
		mgpu_resource_put(res);
		/* A guest may have many. */
		cond_resched();
	}
	xa_destroy(&vgpu->resources);
}
