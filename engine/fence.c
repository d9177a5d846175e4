// SPDX-License-Identifier: MIT
#include "fence.h"

#include "request.h"
#include "transport.h"
#include "worker.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* queue of the engine's own fences, which no chain waits for. */
#define FENCE_OWN UINT32_MAX

/**
 * struct fence
 * @id: virglrenderer's; an error shares that of the fence before it
 * @wake: the main thread is woken when it is done
 * @withheld: only fence_fail_context() ends it
 */
struct fence {
    uint64_t id;
    uint64_t epoch;
    uint32_t ctx_id;
    uint32_t ring_idx;
    uint32_t queue;
    uint32_t token;
    bool wake;
    bool withheld;
    size_t size;
    uint8_t response[];
};

void fence_table_init(struct fence_table *table, struct vgpu_transport *transport)
{
    *table = (struct fence_table){
        .transport = transport,
        .pending = G_QUEUE_INIT,
        .wake_fd = -1,
        .kept_response = g_byte_array_new(),
    };
    g_mutex_init(&table->lock);
}

void fence_table_clear(struct fence_table *table)
{
    g_queue_clear_full(&table->pending, g_free);
    g_clear_pointer(&table->kept_response, g_byte_array_unref);
    g_mutex_clear(&table->lock);
}

static size_t answer_size(const struct request *request, const GByteArray *response)
{
    return MIN(response->len, request->response_size);
}

void fence_keep_next(struct fence_table *table, bool keep)
{
    table->keep = keep;
}

struct vgpu_queue_answer *fence_kept(struct fence_table *table)
{
    return table->kept.token ? &table->kept : NULL;
}

void fence_kept_done(struct fence_table *table)
{
    table->kept.token = 0;
}

void fence_flush(struct fence_table *table, uint64_t epoch)
{
    struct vgpu_transport *transport = table->transport;
    const struct vgpu_queue_answer *answer = fence_kept(table);

    if (answer)
        transport->ops->push(transport, epoch, answer->queue, answer->token,
                             table->kept_response->data, answer->size, -1);
    fence_kept_done(table);
}

void fence_push(struct fence_table *table, const struct request *request,
                const GByteArray *response)
{
    struct vgpu_transport *transport = table->transport;
    size_t size = answer_size(request, response);

    if (table->keep) {
        g_byte_array_set_size(table->kept_response, 0);
        g_byte_array_append(table->kept_response, response->data, (guint)size);
        table->kept = (struct vgpu_queue_answer){
            .queue = request->queue,
            .token = request->token,
            .buf = (uintptr_t)table->kept_response->data,
            .size = (uint32_t)size,
        };
        table->keep = false;
        return;
    }
    /* ESTALE: the guest has reset the device; nobody waits for the answer. */
    transport->ops->push(transport, request->epoch, request->queue, request->token, response->data,
                         size, -1);
}

static struct fence *fence_new(const struct request *request, const GByteArray *response,
                               uint64_t id)
{
    size_t size = answer_size(request, response);
    struct fence *fence = g_malloc0(sizeof(*fence) + size);

    fence->id = id;
    fence->epoch = request->epoch;
    fence->ctx_id = request->hdr.ctx_id;
    fence->ring_idx = request->hdr.ring_idx;
    fence->queue = request->queue;
    fence->token = request->token;
    fence->size = size;
    memcpy(fence->response, response->data, size);
    return fence;
}

static bool same_timeline(const struct fence *fence, uint32_t ctx_id, uint32_t ring_idx)
{
    return fence->ctx_id == ctx_id && fence->ring_idx == ring_idx;
}

/* The newest fence of a timeline that matches @id; any id if @id is 0. */
static GList *find_last(struct fence_table *table, uint32_t ctx_id, uint32_t ring_idx, uint64_t id)
{
    for (GList *link = table->pending.tail; link; link = link->prev) {
        const struct fence *fence = link->data;

        if (same_timeline(fence, ctx_id, ring_idx) && (id == 0 || fence->id == id))
            return link;
    }
    return NULL;
}

void fence_release(struct fence_table *table)
{
    uint64_t one = 1;

    g_atomic_int_set(&table->released, 1);
    if (table->wake_fd >= 0 && write(table->wake_fd, &one, sizeof(one)) < 0) {
        /* EAGAIN: it is awake already. */
    }
}

static void drop_fence(struct fence_table *table, GList *link)
{
    struct fence *fence = link->data;

    table->own -= fence->queue == FENCE_OWN;
    table->withheld -= fence->withheld;
    g_queue_delete_link(&table->pending, link);
    g_free(fence);
}

/*
 * Pushed under the lock, so that answers of a timeline cannot overtake each other. push() never
 * blocks on a thread that could wait for this one. False: @connection has hung up.
 */
static bool complete_fence(struct fence_table *table, GList *link, int connection)
{
    struct vgpu_transport *transport = table->transport;
    struct fence *fence = link->data;

    if (fence->queue == FENCE_OWN) {
        if (worker_is_gone(connection))
            return false;
    } else if (transport->ops->push(transport, fence->epoch, fence->queue, fence->token,
                                    fence->response, fence->size, connection) == -EPIPE) {
        return false;
    }
    if (fence->wake)
        fence_release(table);
    drop_fence(table, link);
    return true;
}

void fence_signal_ring(struct fence_table *table, uint32_t ctx_id, uint32_t ring_idx, uint64_t id,
                       int connection)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    GList *last = find_last(table, ctx_id, ring_idx, id);
    GList *link = last ? table->pending.head : NULL;

    while (link) {
        GList *next = link == last ? NULL : link->next;

        if (same_timeline(link->data, ctx_id, ring_idx)) {
            if (!complete_fence(table, link, connection))
                return;
            connection = -1; /* once is enough */
        }
        link = next;
    }
}

/* Turns the answers of a context into errors, and gives them or withholds them. */
static void fail_fences(struct fence_table *table, uint32_t ctx_id, bool withhold)
{
    const uint32_t type = VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
    GList *next;

    for (GList *link = table->pending.head; link; link = next) {
        struct fence *fence = link->data;

        next = link->next;
        if (fence->ctx_id != ctx_id)
            continue;
        if (fence->size >= sizeof(type))
            memcpy(fence->response, &type, sizeof(type));
        if (withhold && fence->queue != FENCE_OWN) {
            fence->withheld = true;
            table->withheld++;
        } else {
            complete_fence(table, link, -1);
        }
    }
}

void fence_fail_context(struct fence_table *table, uint32_t ctx_id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);

    fail_fences(table, ctx_id, false);
}

bool fence_withhold(struct fence_table *table, uint32_t ctx_id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);

    fail_fences(table, ctx_id, true);
    return table->withheld <= FENCE_MAX_WITHHELD;
}

void fence_forget_all(struct fence_table *table)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);

    g_queue_clear_full(&table->pending, g_free);
    fence_kept_done(table);
    table->own = 0;
    table->withheld = 0;
}

bool fence_queue_behind(struct fence_table *table, const struct request *request,
                        const GByteArray *response)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    GList *last = find_last(table, request->hdr.ctx_id, request->hdr.ring_idx, 0);

    if (!last)
        return false;
    g_queue_push_tail(&table->pending,
                      fence_new(request, response, ((const struct fence *)last->data)->id));
    return true;
}

uint64_t fence_add(struct fence_table *table, const struct request *request,
                   const GByteArray *response)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    uint64_t id = ++table->last_id;

    g_queue_push_tail(&table->pending, fence_new(request, response, id));
    return id;
}

bool fence_add_withheld(struct fence_table *table, const struct request *request,
                        const GByteArray *response)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    struct fence *fence;

    if (table->withheld >= FENCE_MAX_WITHHELD)
        return false;
    fence = fence_new(request, response, ++table->last_id);
    fence->withheld = true;
    table->withheld++;
    g_queue_push_tail(&table->pending, fence);
    return true;
}

/* The newest with that id. */
static GList *find_id(struct fence_table *table, uint64_t id)
{
    for (GList *link = table->pending.tail; link; link = link->prev) {
        if (((const struct fence *)link->data)->id == id)
            return link;
    }
    return NULL;
}

bool fence_take_back(struct fence_table *table, uint64_t id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    GList *link = find_id(table, id);

    if (link)
        drop_fence(table, link);
    return link != NULL;
}

uint64_t fence_add_own(struct fence_table *table, uint32_t ctx_id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    struct fence *fence = g_new0(struct fence, 1);

    fence->id = ++table->last_id;
    fence->ctx_id = ctx_id;
    fence->queue = FENCE_OWN;
    g_queue_push_tail(&table->pending, fence);
    table->own++;
    return fence->id;
}

bool fence_is_pending(struct fence_table *table, uint64_t id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);

    return find_id(table, id) != NULL;
}

bool fence_wake_when_done(struct fence_table *table, uint64_t id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&table->lock);
    GList *link = find_id(table, id);

    if (link)
        ((struct fence *)link->data)->wake = true;
    return link != NULL;
}

bool fence_released(struct fence_table *table)
{
    return g_atomic_int_get(&table->released);
}

void fence_take_released(struct fence_table *table)
{
    g_atomic_int_set(&table->released, 0);
}
