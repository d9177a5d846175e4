// SPDX-License-Identifier: MIT
#include "fence.h"

#include "context.h"
#include "engine.h"

#include <errno.h>
#include <string.h>
#include <virglrenderer.h>

/* ring_idx of fences on the global timeline; real ones have 8 bits. */
#define FENCE_GLOBAL UINT32_MAX

/* queue of fences that no chain waits for. */
#define FENCE_PROBE UINT32_MAX

struct fence {
    uint64_t id;
    uint64_t epoch;
    uint32_t ctx_id;
    uint32_t ring_idx;
    uint32_t queue;
    uint32_t token;
    size_t size;
    uint8_t response[];
};

void fence_table_init(struct fence_table *table)
{
    g_mutex_init(&table->lock);
    g_queue_init(&table->pending);
    table->last_id = 0;
}

void fence_table_clear(struct fence_table *table)
{
    g_queue_clear_full(&table->pending, g_free);
    g_mutex_clear(&table->lock);
}

static size_t answer_size(const struct engine *engine, const struct request *request)
{
    return MIN(engine->response->len, request->response_size);
}

void fence_push(struct engine *engine, const struct request *request)
{
    struct vgpu_transport *transport = engine->transport;

    /* ESTALE: the guest has reset the device; nobody waits for the answer. */
    transport->ops->push(transport, request->epoch, request->queue, request->token,
                         engine->response->data, answer_size(engine, request));
}

static void fence_push_entry(struct engine *engine, const struct fence *fence)
{
    struct vgpu_transport *transport = engine->transport;

    if (fence->queue == FENCE_PROBE)
        return;
    transport->ops->push(transport, fence->epoch, fence->queue, fence->token, fence->response,
                         fence->size);
}

static struct fence *fence_new(struct engine *engine, const struct request *request, uint64_t id)
{
    size_t size = answer_size(engine, request);
    struct fence *fence = g_malloc0(sizeof(*fence) + size);
    bool ring = request->hdr.flags & VIRTIO_GPU_FLAG_INFO_RING_IDX;

    fence->id = id;
    fence->epoch = request->epoch;
    fence->ctx_id = ring ? request->hdr.ctx_id : 0;
    fence->ring_idx = ring ? request->hdr.ring_idx : FENCE_GLOBAL;
    fence->queue = request->queue;
    fence->token = request->token;
    fence->size = size;
    memcpy(fence->response, engine->response->data, size);
    return fence;
}

static bool same_timeline(const struct fence *fence, uint32_t ctx_id, uint32_t ring_idx)
{
    return fence->ctx_id == ctx_id && fence->ring_idx == ring_idx;
}

/* The newest fence of a timeline that matches @id; any id if @id is 0. */
static GList *find_last(struct fence_table *table, uint32_t ctx_id, uint32_t ring_idx, uint64_t id)
{
    uint64_t mask = ring_idx == FENCE_GLOBAL ? UINT32_MAX : UINT64_MAX;

    for (GList *link = table->pending.tail; link; link = link->prev) {
        const struct fence *fence = link->data;

        if (same_timeline(fence, ctx_id, ring_idx) && (id == 0 || (fence->id & mask) == id))
            return link;
    }
    return NULL;
}

/*
 * Pushed under the lock, so that answers of a timeline can't overtake each other. push() does not
 * block on anything that could wait for us.
 */
static void signal_timeline(struct engine *engine, uint32_t ctx_id, uint32_t ring_idx, uint64_t id)
{
    struct fence_table *table = &engine->fences;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    GList *last = find_last(table, ctx_id, ring_idx, id);
    GList *link = last ? table->pending.head : NULL;

    while (link) {
        GList *next = link == last ? NULL : link->next;
        struct fence *fence = link->data;

        if (same_timeline(fence, ctx_id, ring_idx)) {
            fence_push_entry(engine, fence);
            g_queue_delete_link(&table->pending, link);
            g_free(fence);
        }
        link = next;
    }
}

void fence_signal_ring(struct engine *engine, uint32_t ctx_id, uint32_t ring_idx, uint64_t id)
{
    signal_timeline(engine, ctx_id, ring_idx, id);
}

void fence_signal_global(struct engine *engine, uint32_t id)
{
    signal_timeline(engine, 0, FENCE_GLOBAL, id);
}

static void set_response_type(uint8_t *response, size_t size, uint32_t type)
{
    if (size >= sizeof(type))
        memcpy(response, &type, sizeof(type));
}

void fence_fail_context(struct engine *engine, uint32_t ctx_id)
{
    struct fence_table *table = &engine->fences;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    GList *next;

    for (GList *link = table->pending.head; link; link = next) {
        struct fence *fence = link->data;

        next = link->next;
        if (fence->ring_idx == FENCE_GLOBAL || fence->ctx_id != ctx_id)
            continue;
        set_response_type(fence->response, fence->size, VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
        fence_push_entry(engine, fence);
        g_queue_delete_link(&table->pending, link);
        g_free(fence);
    }
}

void fence_forget_all(struct engine *engine)
{
    struct fence_table *table = &engine->fences;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);

    g_queue_clear_full(&table->pending, g_free);
}

/*
 * Linux signals all earlier fences of a timeline with a later one. So an error, which needs no GPU,
 * still has to wait for what is pending before it: it shares the last fence's id.
 */
static bool queue_behind_pending(struct engine *engine, const struct request *request)
{
    struct fence_table *table = &engine->fences;
    bool ring = request->hdr.flags & VIRTIO_GPU_FLAG_INFO_RING_IDX;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    GList *last = find_last(table, ring ? request->hdr.ctx_id : 0,
                            ring ? request->hdr.ring_idx : FENCE_GLOBAL, 0);

    if (!last)
        return false;
    g_queue_push_tail(&table->pending,
                      fence_new(engine, request, ((const struct fence *)last->data)->id));
    return true;
}

/* The global timeline has ids of 32 bits, of which 0 is "any" in find_last(). */
static uint64_t next_id(struct fence_table *table)
{
    do {
        table->last_id++;
    } while ((uint32_t)table->last_id == 0);
    return table->last_id;
}

static uint64_t add_pending(struct engine *engine, const struct request *request)
{
    struct fence_table *table = &engine->fences;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    uint64_t id = next_id(table);

    g_queue_push_tail(&table->pending, fence_new(engine, request, id));
    return id;
}

/* virglrenderer would not take the fence. True if it is still there and has been taken back. */
static bool remove_pending(struct engine *engine, uint64_t id)
{
    struct fence_table *table = &engine->fences;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);

    for (GList *link = table->pending.tail; link; link = link->prev) {
        if (((const struct fence *)link->data)->id == id) {
            g_free(link->data);
            g_queue_delete_link(&table->pending, link);
            return true;
        }
    }
    return false;
}

uint64_t fence_probe_begin(struct engine *engine, uint32_t ctx_id)
{
    struct fence_table *table = &engine->fences;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    struct fence *fence;

    if (find_last(table, ctx_id, 0, 0))
        return 0;
    fence = g_new0(struct fence, 1);
    fence->id = next_id(table);
    fence->ctx_id = ctx_id;
    fence->queue = FENCE_PROBE;
    g_queue_push_tail(&table->pending, fence);
    return fence->id;
}

void fence_probe_cancel(struct engine *engine, uint64_t id)
{
    remove_pending(engine, id);
}

static void respond_error(struct engine *engine, const struct request *request)
{
    if (!queue_behind_pending(engine, request))
        fence_push(engine, request);
}

void fence_respond(struct engine *engine, const struct request *request)
{
    const struct virtio_gpu_ctrl_hdr *response = (const void *)engine->response->data;
    uint32_t flags = request->hdr.flags;
    uint64_t id;
    int ret;

    if (!(flags & VIRTIO_GPU_FLAG_FENCE)) {
        fence_push(engine, request);
        return;
    }
    if (response->type >= VIRTIO_GPU_RESP_ERR_UNSPEC) {
        respond_error(engine, request);
        return;
    }
    if (!(flags & VIRTIO_GPU_FLAG_INFO_RING_IDX) && !engine->virgl) {
        /* Nothing but OpenGL runs on the global timeline: what has been carried out is done. */
        fence_push(engine, request);
        return;
    }

    /* Pending before virglrenderer knows of it: its thread may be faster than we are. */
    id = add_pending(engine, request);
    if (flags & VIRTIO_GPU_FLAG_INFO_RING_IDX)
        ret = context_create_fence(engine, request->hdr.ctx_id, request->hdr.ring_idx, id);
    else
        ret = virgl_renderer_create_fence((int)(uint32_t)id, request->hdr.ctx_id);

    if (ret != 0 && remove_pending(engine, id)) {
        set_response_type(engine->response->data, engine->response->len,
                          ret == -ENOENT ? VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID
                                         : VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
        respond_error(engine, request);
    }
}
