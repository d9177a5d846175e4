// SPDX-License-Identifier: MIT
#include "context_kind.h"

#include "cuda_context.h"
#include "host_memory.h"
#include "resource.h"
#include "worker.h"

#include "wire/control.h"

#include <errno.h>
#include <virglrenderer.h>

/* virglrenderer sends the rest of long commands in one packet, of which a socket takes 208 KiB. */
#define VENUS_MESSAGE_MAX (200u << 10)

/* The rings of a context are in memory that it has made. */
struct venus_access {
    struct engine *engine;
    struct context *context;
};

static void *venus_map(void *data, uint32_t resource, uint64_t *size)
{
    const struct venus_access *access = data;

    return resource_map_shm(access->engine, access->context->serial, resource, size);
}

static void venus_unmap(void *data, uint32_t resource)
{
    const struct venus_access *access = data;

    resource_unmap(resource_find(access->engine, resource));
}

/* A worker that has ended is noticed by its connection. One that has much to do is not asleep. */
static void venus_notify(void *data, uint32_t *commands, uint32_t words)
{
    const struct venus_access *access = data;
    struct context *context = access->context;

    if (credits_in_flight(&context->credits) >= CREDITS_MAX)
        return;
    virgl_renderer_submit_cmd(commands, (int)context->id, (int)words);
    credits_spend(&context->credits, words * sizeof(*commands), false);
}

static const struct venus_ring_access ring_access = {venus_map, venus_unmap, venus_notify};

static int venus_create(struct engine *engine G_GNUC_UNUSED, struct context *context, uint32_t nlen,
                        const char *name, int *connection)
{
    return worker_create_context(context->id, VIRTIO_GPU_CAPSET_VENUS, nlen, name, connection);
}

static void venus_end(struct context *context)
{
    virgl_renderer_context_destroy(context->id);
}

/*
 * A wait for a ring that is over already is not sent: usually it is, and the worker would wake up
 * for nothing. If the guest has forged the ring's head, the guest alone misses the wait.
 */
static int venus_submit(struct engine *engine, struct context *context, uint32_t *commands,
                        size_t words)
{
    struct venus_access access = {engine, context};
    size_t bytes = words * sizeof(*commands);

    if (bytes > VENUS_MESSAGE_MAX)
        return -EMSGSIZE;
    if (venus_rings_wait_is_over(&context->rings, commands, words, &ring_access, &access))
        return 0;
    venus_rings_patch(commands, words);
    if (!venus_rings_learn(&context->rings, commands, words))
        return -EMFILE;
    if (virgl_renderer_submit_cmd(commands, (int)context->id, (int)words) != 0)
        return -EPIPE;
    credits_spend(&context->credits, bytes, !venus_rings_is_instant(commands, words));
    return 0;
}

/* virglrenderer refuses a ring with EINVAL, and returns -1 if the worker cannot be reached. */
static int venus_fence(struct context *context, uint32_t ring_idx, uint64_t id)
{
    int ret = virgl_renderer_context_create_fence(context->id, VIRGL_RENDERER_FENCE_FLAG_MERGEABLE,
                                                  ring_idx, id);

    if (ret == 0)
        credits_spend_fence(&context->credits, ring_idx, id);
    if (ret == -1)
        return -EPIPE;
    return ret < 0 ? ret : -ret;
}

/* The worker has what it has made. */
static void venus_attach(struct context *context, uint32_t resource_id)
{
    virgl_renderer_ctx_attach_resource((int)context->id, (int)resource_id);
    if (g_hash_table_add(context->resources, GUINT_TO_POINTER(resource_id)))
        credits_spend(&context->credits, 0, true);
}

static void venus_detach(struct context *context, uint32_t resource_id)
{
    virgl_renderer_ctx_detach_resource((int)context->id, (int)resource_id);
    if (g_hash_table_remove(context->resources, GUINT_TO_POINTER(resource_id)))
        credits_spend(&context->credits, 0, true);
}

static int venus_blob(struct context *context, const struct virtio_gpu_resource_create_blob *cmd,
                      const struct iovec *backing, struct resource *resource G_GNUC_UNUSED)
{
    int ret = resource_make_blob(cmd, backing);

    if (ret != 0)
        return ret;
    g_hash_table_add(context->resources, GUINT_TO_POINTER(cmd->resource_id));
    credits_blob_answered(&context->credits);
    return 0;
}

static bool venus_wake(struct engine *engine, struct context *context)
{
    struct venus_access access = {engine, context};

    return venus_rings_wake(&context->rings, &ring_access, &access);
}

static bool venus_rest(struct engine *engine, struct context *context)
{
    struct venus_access access = {engine, context};

    return venus_rings_rest(&context->rings, &ring_access, &access);
}

static void venus_fail(struct engine *engine, struct context *context)
{
    struct venus_access access = {engine, context};

    venus_rings_fail(&context->rings, &ring_access, &access);
}

static int cuda_create(struct engine *engine, struct context *context, uint32_t nlen G_GNUC_UNUSED,
                       const char *name G_GNUC_UNUSED, int *connection)
{
    context->cuda = cuda_context_new(engine, context->id, context->serial, connection);
    return context->cuda ? 0 : -ENOMEM;
}

static void cuda_end(struct context *context)
{
    g_clear_pointer(&context->cuda, cuda_context_free);
}

static int cuda_submit(struct engine *engine G_GNUC_UNUSED, struct context *context,
                       uint32_t *commands, size_t words)
{
    return cuda_context_submit(context->cuda, commands, words * sizeof(*commands),
                               &context->dismissed);
}

static int cuda_fence(struct context *context, uint32_t ring_idx, uint64_t id)
{
    cuda_context_fence(context->cuda, ring_idx, id);
    return 0;
}

/* Its worker knows nothing of resources. */
static void cuda_change_resource(struct context *context G_GNUC_UNUSED,
                                 uint32_t resource_id G_GNUC_UNUSED)
{
}

static int cuda_blob(struct context *context, const struct virtio_gpu_resource_create_blob *cmd,
                     const struct iovec *backing, struct resource *resource)
{
    if (!backing) {
        resource->memory = cuda_context_blob(context->cuda, cmd->blob_id, cmd->size);
        return resource->memory ? 0 : -EINVAL;
    }
    /* One of each id: a worker's words are of the id alone. */
    if (!cmd->blob_id || resource_find_lent(resource->engine, context->serial, cmd->blob_id))
        return -EINVAL;
    resource->maker = context->serial;
    resource->lent_at = cmd->blob_id;
    return 0;
}

/* A worker of CUDA's whose wake-up is lost does not exist: both sides have barriers (channel.h). */
static bool cuda_wake(struct engine *engine G_GNUC_UNUSED, struct context *context G_GNUC_UNUSED)
{
    return false;
}

static bool cuda_rest(struct engine *engine G_GNUC_UNUSED, struct context *context G_GNUC_UNUSED)
{
    return true;
}

static void cuda_fail(struct engine *engine G_GNUC_UNUSED, struct context *context)
{
    if (context->cuda)
        cuda_context_fail(context->cuda, context->dismissed);
}

static bool cuda_receive(struct context *context)
{
    return context->cuda && cuda_context_receive(context->cuda);
}

static const struct context_kind kinds[] = {
    {VIRTIO_GPU_CAPSET_VENUS, true, venus_create, venus_end, venus_submit, venus_fence,
     venus_attach, venus_detach, venus_blob, venus_wake, venus_rest, venus_fail, NULL},
    {CONTROL_CAPSET, false, cuda_create, cuda_end, cuda_submit, cuda_fence, cuda_change_resource,
     cuda_change_resource, cuda_blob, cuda_wake, cuda_rest, cuda_fail, cuda_receive},
};

const struct context_kind *context_kind_find(uint32_t capset)
{
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (kinds[i].capset == capset)
            return &kinds[i];
    }
    return NULL;
}
