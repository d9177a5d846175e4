// SPDX-License-Identifier: MIT
#include "parking.h"

#include "context.h"
#include "control.h"
#include "engine.h"
#include "guest_log.h"
#include "hold.h"
#include "resource.h"

#include <string.h>

/* Mesa sends some tens of bytes besides its rings, and the control queue has 256 chains. */
#define MAX_BYTES (64ull << 20)

/* Requests that are answered before they are executed: a program may end with many buffers. */
#define MAX_ANSWERED 2048u

/**
 * struct parked
 * @resource: that it names; 0: none
 * @answered: the guest has its answer already
 * @data: the request's
 */
struct parked {
    struct request request;
    uint32_t resource;
    bool truncated;
    bool answered;
    uint64_t data[];
};

void parking_clear(struct parking *parking)
{
    g_queue_clear_full(&parking->requests, g_free);
    parking->bytes = 0;
    parking->answered = 0;
}

bool parking_has(const struct parking *parking, uint32_t type, uint32_t id)
{
    for (const GList *link = parking->requests.head; link; link = link->next) {
        const struct parked *parked = link->data;
        uint32_t named = parked->resource ? parked->resource : parked->request.hdr.ctx_id;

        if (parked->request.hdr.type == type && named == id)
            return true;
    }
    return false;
}

static bool is_held(struct engine *engine, uint32_t ctx_id)
{
    struct context *context = context_find(engine, ctx_id);

    return context && hold_is_on(engine, context);
}

static bool is_on_global_timeline(const struct request *request)
{
    return (request->hdr.flags & VIRTIO_GPU_FLAG_FENCE) &&
           !(request->hdr.flags & VIRTIO_GPU_FLAG_INFO_RING_IDX);
}

/* The worker of each context that has the resource is told of its end. */
static bool must_wait_for_all(struct engine *engine, uint32_t resource)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, engine->contexts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct context *context = value;

        if (g_hash_table_contains(context->resources, GUINT_TO_POINTER(resource)) &&
            hold_unless_room(engine, context, 0))
            return true;
    }
    return false;
}

/*
 * A program asks its worker for what it has lent before it ends it. One that does not was killed,
 * or is none of ours: its worker is ended. The guest gives the memory to others after the answer.
 */
static bool must_wait_for_borrower(struct engine *engine, uint32_t id)
{
    const struct resource *resource = resource_find(engine, id);
    GHashTableIter iter;
    void *value;

    if (!resource || !resource->is_borrowed || !cuda_host_has(&engine->cuda, resource->maker))
        return false;
    g_hash_table_iter_init(&iter, engine->contexts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct context *context = value;

        if (context->serial == resource->maker)
            context_end(engine, context);
    }
    return true;
}

/* Whether a worker may not be ready for what it would be sent. */
static bool must_wait_for_worker(struct engine *engine, const struct request *request,
                                 uint32_t resource)
{
    const struct virtio_gpu_resource_create_blob *blob = (const void *)request->data;
    const uint32_t ring_fence = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX;
    struct context *context = context_find(engine, request->hdr.ctx_id);

    if (request->hdr.type == VIRTIO_GPU_CMD_RESOURCE_UNREF &&
        (must_wait_for_all(engine, resource) || must_wait_for_borrower(engine, resource)))
        return true;
    if (!context || request->hdr.type == VIRTIO_GPU_CMD_CTX_DESTROY)
        return false;
    switch (request->hdr.type) {
    case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
        if (request->size >= sizeof(*blob) && blob->blob_mem != VIRTIO_GPU_BLOB_MEM_GUEST &&
            hold_unless_idle(engine, context))
            return true;
        break;
    case VIRTIO_GPU_CMD_SUBMIT_3D:
    case VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE:
    case VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE:
        return hold_unless_room(engine, context, request->size);
    }
    return (request->hdr.flags & ring_fence) == ring_fence && hold_unless_room(engine, context, 0);
}

/* @until: only what is parked before it counts; NULL: all. */
static bool has_to_wait(struct engine *engine, const struct request *request, uint32_t resource,
                        const GList *until)
{
    uint32_t ctx_id = request->hdr.ctx_id;

    if (is_held(engine, ctx_id))
        return true;
    for (const GList *link = engine->parking.requests.head; link != until; link = link->next) {
        const struct parked *earlier = link->data;

        if ((ctx_id && ctx_id == earlier->request.hdr.ctx_id) ||
            (resource && resource == earlier->resource) ||
            (is_on_global_timeline(request) && is_on_global_timeline(&earlier->request)))
            return true;
    }
    return must_wait_for_worker(engine, request, resource);
}

/*
 * A guest can do nothing about it if a command that returns memory fails. Until the answer, the
 * command occupies a chain of the control queue. A program that ends returns hundreds of buffers
 * before its context, and then nobody else's commands would come through. Memory of the guest's own
 * must be out of use before the answer.
 */
static bool may_be_answered(struct engine *engine, const struct request *request,
                            uint32_t resource_id)
{
    const struct resource *resource = resource_find(engine, resource_id);

    if ((request->hdr.flags & VIRTIO_GPU_FLAG_FENCE) || engine->parking.answered >= MAX_ANSWERED ||
        !resource || resource->mapped || resource->backing.iov.iov_base)
        return false;
    return request->hdr.type == VIRTIO_GPU_CMD_RESOURCE_UNREF ||
           (request->hdr.type == VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE &&
            context_find(engine, request->hdr.ctx_id));
}

static void park_request(struct engine *engine, const struct request *request, uint32_t resource,
                         bool truncated)
{
    struct parking *parking = &engine->parking;
    size_t size = truncated ? sizeof(request->hdr) : request->size;
    struct parked *parked = g_malloc(sizeof(*parked) + size);

    parked->request = *request;
    parked->request.size = size;
    parked->request.data = (const uint8_t *)parked->data;
    parked->resource = resource;
    parked->truncated = truncated;
    parked->answered = false;
    if (size)
        memcpy(parked->data, request->data, size);
    g_queue_push_tail(&parking->requests, parked);
    parking->bytes += size;
    if (truncated || !may_be_answered(engine, request, resource))
        return;
    parked->answered = true;
    parking->answered++;
    control_answer(engine, request, VIRTIO_GPU_RESP_OK_NODATA);
}

/* Its parked commands are useless now: they fail, each in its turn. */
static void end_if_held(struct engine *engine, uint32_t ctx_id)
{
    if (!is_held(engine, ctx_id))
        return;
    context_end(engine, context_find(engine, ctx_id));
    parking_run(engine);
}

static uint64_t bytes_of(const struct parking *parking, uint32_t ctx_id)
{
    uint64_t bytes = 0;

    for (const GList *link = parking->requests.head; link; link = link->next) {
        const struct parked *parked = link->data;

        if (parked->request.hdr.ctx_id == ctx_id)
            bytes += parked->request.size;
    }
    return bytes;
}

/* Only a hostile program sends this much to a held context. Ends the one with the most. */
static void end_largest(struct engine *engine)
{
    const struct context *largest = NULL;
    GHashTableIter iter;
    uint64_t most = 0;
    void *value;

    g_hash_table_iter_init(&iter, engine->contexts);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct context *context = value;
        uint64_t bytes = bytes_of(&engine->parking, context->id);

        if (bytes > most && is_held(engine, context->id)) {
            largest = context;
            most = bytes;
        }
    }
    if (!largest)
        return;
    guest_warning("context %u: its render worker is held up, and %" G_GUINT64_FORMAT
                  " bytes of commands wait for it: it is ended",
                  largest->id, most);
    end_if_held(engine, largest->id);
}

bool parking_take(struct engine *engine, const struct request *request, bool truncated)
{
    struct parking *parking = &engine->parking;
    uint32_t resource;

    if (request->hdr.type == VIRTIO_GPU_CMD_CTX_DESTROY)
        end_if_held(engine, request->hdr.ctx_id);
    resource = control_resource_of(request);
    if (!has_to_wait(engine, request, resource, NULL))
        return false;
    park_request(engine, request, resource, truncated);
    if (parking->bytes > MAX_BYTES)
        end_largest(engine);
    return true;
}

void parking_run(struct engine *engine)
{
    struct parking *parking = &engine->parking;
    GList *next;

    /* Their answers go in order, and after one that waits for the next exchange. */
    fence_flush(&engine->fences, engine->epoch);
    fence_keep_next(&engine->fences, false);
    fence_take_released(&engine->fences);
    for (GList *link = parking->requests.head; link; link = next) {
        struct parked *parked = link->data;

        next = link->next;
        if (has_to_wait(engine, &parked->request, parked->resource, link))
            continue;
        g_queue_delete_link(&parking->requests, link);
        parking->bytes -= parked->request.size;
        parking->answered -= parked->answered;
        if (parked->answered)
            control_execute(engine, &parked->request);
        else if (parked->truncated)
            control_answer(engine, &parked->request, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
        else
            control_process(engine, &parked->request);
        g_free(parked);
    }
}
