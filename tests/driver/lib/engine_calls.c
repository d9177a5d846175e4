/* SPDX-License-Identifier: MIT */
/* A fake engine: the ioctls, in its process and from the test. */
#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "engine_peer.h"

#define MAX_ENTRIES 64

int engine_ioctl(EngineCtx *ctx, unsigned long request, void *arg)
{
    return ioctl(ctx->fd, request, arg) < 0 ? -errno : 0;
}

int engine_info(EngineCtx *ctx, struct vgpu_engine_info *info)
{
    memset(info, 0, sizeof(*info));
    info->argsz = sizeof(*info);
    return engine_ioctl(ctx, VGPU_ENGINE_INFO, info);
}

uint64_t engine_epoch(EngineCtx *ctx)
{
    struct vgpu_engine_info info;

    return engine_info(ctx, &info) ? UINT64_MAX : info.epoch;
}

struct vgpu_queue_exchange exchange_for_pop(unsigned queue, uint64_t epoch, void *buf, size_t size,
                                            struct vgpu_queue_request *request)
{
    return (struct vgpu_queue_exchange){
        .argsz = sizeof(struct vgpu_queue_exchange),
        .epoch = epoch,
        .requests = (uintptr_t)request,
        .nrequests = 1,
        .buf = (uintptr_t)buf,
        .buf_size = size,
        .queues = 1u << queue,
    };
}

struct vgpu_queue_exchange exchange_for_push(uint64_t epoch, struct vgpu_queue_answer *answer)
{
    return (struct vgpu_queue_exchange){
        .argsz = sizeof(struct vgpu_queue_exchange),
        .epoch = epoch,
        .answers = (uintptr_t)answer,
        .nanswers = 1,
    };
}

int engine_exchange_pop(EngineCtx *ctx, struct vgpu_queue_exchange *x)
{
    struct vgpu_queue_request *request = (void *)(uintptr_t)x->requests;
    int ret = engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, x);

    if (ret)
        return ret;
    if (x->nrequests) {
        atomic_fetch_add(&ctx->state->pops, 1);
        return 0;
    }
    request->request_size = x->wanted;
    if (x->state & VGPU_EXCHANGE_STALE)
        return -ESTALE;
    if (x->state & VGPU_EXCHANGE_BROKEN)
        return -EPROTO;
    return x->wanted ? -EMSGSIZE : -EAGAIN;
}

int engine_pop(EngineCtx *ctx, unsigned queue, uint64_t epoch, void *buf, size_t size,
               struct vgpu_queue_request *request)
{
    struct vgpu_queue_exchange x = exchange_for_pop(queue, epoch, buf, size, request);

    return engine_exchange_pop(ctx, &x);
}

int engine_push(EngineCtx *ctx, unsigned queue, uint64_t epoch, uint32_t token, const void *buf,
                size_t size)
{
    struct vgpu_queue_answer answer = {
        .queue = queue,
        .token = token,
        .buf = (uintptr_t)buf,
        .size = (uint32_t)size,
    };
    struct vgpu_queue_exchange x = exchange_for_push(epoch, &answer);
    int ret = engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, &x);

    if (!ret)
        ret = answer.result;
    if (!ret)
        atomic_fetch_add(&ctx->state->pushes, 1);
    return ret;
}

size_t engine_echo(const uint8_t *req, size_t req_size, uint8_t *resp, size_t resp_size)
{
    struct virtio_gpu_ctrl_hdr in = {0}, out = {0};
    size_t size = MIN(MAX(req_size, sizeof(out)), resp_size);

    memcpy(&in, req, MIN(req_size, sizeof(in)));
    out.type = VIRTIO_GPU_RESP_OK_NODATA;
    out.flags = in.flags;
    out.fence_id = in.fence_id;
    out.ctx_id = in.ctx_id;
    out.ring_idx = in.ring_idx;
    memset(resp, 0, size);
    memcpy(resp, &out, MIN(sizeof(out), size));
    if (size > sizeof(out))
        memcpy(resp + sizeof(out), req + sizeof(out), size - sizeof(out));
    return size;
}

static int call_info(EngineCtx *ctx, void *arg)
{
    return engine_info(ctx, arg);
}

int peer_info(EnginePeer *peer, struct vgpu_engine_info *info)
{
    return engine_peer_call(peer, call_info, info, sizeof(*info));
}

uint64_t peer_epoch(EnginePeer *peer)
{
    struct vgpu_engine_info info;

    g_assert_cmpint(peer_info(peer, &info), ==, 0);
    return info.epoch;
}

static int call_ready(EngineCtx *ctx, void *arg)
{
    return engine_ioctl(ctx, VGPU_ENGINE_READY, arg);
}

int peer_ready(EnginePeer *peer, uint32_t num_capsets)
{
    struct vgpu_engine_ready ready = {.argsz = sizeof(ready), .num_capsets = num_capsets};

    return engine_peer_call(peer, call_ready, &ready, sizeof(ready));
}

static int call_reset_done(EngineCtx *ctx, void *arg)
{
    return engine_ioctl(ctx, VGPU_ENGINE_RESET_DONE, arg);
}

int peer_reset_done(EnginePeer *peer, uint64_t epoch)
{
    struct vgpu_engine_epoch done = {.argsz = sizeof(done), .epoch = epoch};

    return engine_peer_call(peer, call_reset_done, &done, sizeof(done));
}

static int call_fail(EngineCtx *ctx, void *arg)
{
    return engine_ioctl(ctx, VGPU_ENGINE_FAIL, arg);
}

int peer_fail(EnginePeer *peer, const char *reason)
{
    struct vgpu_engine_fail fail = {.argsz = sizeof(fail)};

    g_strlcpy(fail.reason, reason, sizeof(fail.reason));
    return engine_peer_call(peer, call_fail, &fail, sizeof(fail));
}

static int call_publish(EngineCtx *ctx, void *arg)
{
    struct vgpu_window_range *range = arg;

    range->epoch = engine_epoch(ctx);
    return engine_ioctl(ctx, VGPU_ENGINE_WINDOW_PUBLISH, range);
}

int peer_publish(EnginePeer *peer, uint64_t offset, uint64_t size, uint64_t addr)
{
    struct vgpu_window_range range = {
        .argsz = sizeof(range),
        .offset = offset,
        .size = size,
        .addr = addr,
    };

    return engine_peer_call(peer, call_publish, &range, sizeof(range));
}

static int call_unpublish(EngineCtx *ctx, void *arg)
{
    struct vgpu_window_range *range = arg;

    range->epoch = engine_epoch(ctx);
    return engine_ioctl(ctx, VGPU_ENGINE_WINDOW_UNPUBLISH, range);
}

int peer_unpublish(EnginePeer *peer, uint64_t offset, uint64_t size)
{
    struct vgpu_window_range range = {.argsz = sizeof(range), .offset = offset, .size = size};

    return engine_peer_call(peer, call_unpublish, &range, sizeof(range));
}

typedef struct {
    struct vgpu_mem_pin pin;
    struct vgpu_mem_entry entries[MAX_ENTRIES];
    uint64_t addr;
} PinCall;

static int call_pin(EngineCtx *ctx, void *arg)
{
    PinCall *call = arg;
    void *addr;
    int prot = PROT_READ | (call->pin.flags & VGPU_MEM_WRITE ? PROT_WRITE : 0);
    int ret;

    call->pin.epoch = engine_epoch(ctx);
    call->pin.entries = (uintptr_t)call->entries;
    ret = engine_ioctl(ctx, VGPU_ENGINE_MEM_PIN, &call->pin);
    if (ret)
        return ret;
    addr = mmap(NULL, call->pin.size, prot, MAP_SHARED, ctx->fd, (off_t)call->pin.offset);
    if (addr == MAP_FAILED)
        return -errno;
    call->addr = (uintptr_t)addr;
    return 0;
}

int peer_pin(EnginePeer *peer, const struct vgpu_mem_entry *entries, unsigned nentries,
             uint32_t flags, uint64_t *offset, uint64_t *addr)
{
    PinCall call = {
        .pin = {.argsz = sizeof(call.pin), .flags = flags, .nentries = nentries},
    };
    int ret;

    g_assert_cmpuint(nentries, <=, MAX_ENTRIES);
    memcpy(call.entries, entries, nentries * sizeof(*entries));
    ret = engine_peer_call(peer, call_pin, &call, sizeof(call));
    if (offset)
        *offset = call.pin.offset;
    if (addr)
        *addr = call.addr;
    return ret;
}

static int call_unpin(EngineCtx *ctx, void *arg)
{
    struct vgpu_mem_unpin *unpin = arg;

    unpin->epoch = engine_epoch(ctx);
    return engine_ioctl(ctx, VGPU_ENGINE_MEM_UNPIN, unpin);
}

int peer_unpin(EnginePeer *peer, uint64_t offset)
{
    struct vgpu_mem_unpin unpin = {.argsz = sizeof(unpin), .offset = offset};

    return engine_peer_call(peer, call_unpin, &unpin, sizeof(unpin));
}
