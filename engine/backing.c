// SPDX-License-Identifier: MIT
#include "backing.h"

#include "engine.h"

#include <errno.h>

/*
 * The guest's list in the driver's form, with neighbours joined. NULL if an entry is not made of
 * whole pages: such entries cannot be contiguous.
 */
static struct vgpu_mem_entry *parse_entries(const struct virtio_gpu_mem_entry *guest,
                                            uint32_t count, uint32_t *joined)
{
    g_autofree struct vgpu_mem_entry *entries = g_new(struct vgpu_mem_entry, count);
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t iova = guest[i].addr;
        uint64_t size = guest[i].length;

        if (size == 0 || (iova | size) % ENGINE_PAGE_SIZE || iova > UINT64_MAX - size)
            return NULL;
        if (n > 0 && entries[n - 1].iova + entries[n - 1].size == iova) {
            entries[n - 1].size += size;
        } else {
            entries[n].iova = iova;
            entries[n].size = size;
            n++;
        }
    }
    *joined = n;
    return g_steal_pointer(&entries);
}

static uint32_t response_of_errno(int ret)
{
    return ret == -ENOMEM ? VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY
                          : VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
}

uint32_t backing_get(struct engine *engine, struct backing *backing, const struct request *request,
                     size_t cmd_size, uint32_t nr_entries)
{
    struct vgpu_transport *transport = engine->transport;
    const struct virtio_gpu_mem_entry *guest = (const void *)(request->data + cmd_size);
    g_autofree struct vgpu_mem_entry *entries = NULL;
    uint32_t count = 0;
    uint64_t size = 0;
    void *addr = NULL;
    int ret;

    if (nr_entries > (request->size - cmd_size) / sizeof(*guest))
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
    if (engine->mappings >= ENGINE_MAX_MAPPINGS)
        return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
    entries = parse_entries(guest, nr_entries, &count);
    if (!entries)
        return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

    ret =
        transport->ops->pin(transport, request->epoch, entries, count, &size, &backing->pin_offset);
    if (ret < 0)
        return response_of_errno(ret);

    ret = transport->ops->map(transport, backing->pin_offset, size, &addr);
    if (ret < 0) {
        transport->ops->unpin(transport, request->epoch, backing->pin_offset);
        return response_of_errno(ret);
    }
    engine->mappings++;
    backing->iov.iov_base = addr;
    backing->iov.iov_len = size;
    backing->entries = g_renew(struct vgpu_mem_entry, g_steal_pointer(&entries), count);
    backing->nr_entries = count;
    return VIRTIO_GPU_RESP_OK_NODATA;
}

void backing_put(struct engine *engine, struct backing *backing)
{
    struct vgpu_transport *transport = engine->transport;

    if (!backing->iov.iov_base)
        return;

    transport->ops->unmap(transport, backing->iov.iov_base, backing->iov.iov_len);
    engine->mappings--;
    /* ESTALE: the driver has taken it back by itself. */
    transport->ops->unpin(transport, engine->epoch, backing->pin_offset);
    g_free(backing->entries);
    *backing = (struct backing){0};
}
