// SPDX-License-Identifier: MIT
/*
 * The worker is on the host of this VM, whose vGPU offers CUDA: a context of virtio-gpu for it.
 * Memory is its blobs, messages are its execbuffers, and fences tell what has happened there.
 */
#include "lost_memory.h"
#include "transport.h"

#include <drm/virtgpu_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NODE 128
#define NODES      64
#define PAGE_BYTES 4096u
#define LOOK_AFTER 1000 /* milliseconds after which a worker that does not answer is looked at */
#define NO_RING    UINT32_MAX

static int node = -1;
static uint16_t engine_minor;
static struct control_page *page;
static uint64_t asked;
static bool can_lend;               /* the engine takes memory of the VM's */
static _Atomic bool is_cut;         /* there is no engine */
static _Atomic time_t looked_again; /* seconds of a clock */

static int call_driver(unsigned long request, void *argument)
{
    int ret;

    do
        ret = ioctl(node, request, argument);
    while (ret < 0 && (errno == EINTR || errno == EAGAIN));
    return ret;
}

static bool has_worker(void)
{
    return *(volatile uint32_t *)&page->alive == CONTROL_MAGIC;
}

/* A fence on a ring of the context, to be closed; -1: none was wanted, or the device is gone. */
static int submit_message(const void *message, size_t bytes, uint32_t ring)
{
    struct drm_virtgpu_execbuffer execbuffer = {
        .size = (uint32_t)bytes,
        .command = (uintptr_t)message,
        .fence_fd = -1,
    };

    if (ring != NO_RING) {
        execbuffer.flags = VIRTGPU_EXECBUF_FENCE_FD_OUT | VIRTGPU_EXECBUF_RING_IDX;
        execbuffer.ring_idx = ring;
    }
    return call_driver(DRM_IOCTL_VIRTGPU_EXECBUFFER, &execbuffer) == 0 ? execbuffer.fence_fd : -1;
}

/* Why submit_message() has sent nothing: the program has no descriptor or memory left for a fence.
 * That is no sign of anybody's end. */
static bool is_short(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
}

/* Until it is signalled, or the worker is gone. */
static void await_fence(int fence)
{
    struct pollfd end = {.fd = fence, .events = POLLIN};

    while (poll(&end, 1, LOOK_AFTER) <= 0 && has_worker())
        ;
    close(fence);
}

/*
 * Of an engine that was killed all memory stays as it was, and the guest's driver gets an answer to
 * everything, which it does not tell.
 */
static bool has_engine(void)
{
    const struct control_message message = {CONTROL_MAGIC, CONTROL_WAIT, 0, 0};
    uint64_t before = *(volatile uint64_t *)&page->taken;
    int fence = submit_message(&message, sizeof(message), CONTROL_RING_WAIT);

    if (fence < 0)
        return is_short();
    await_fence(fence);
    return *(volatile uint64_t *)&page->taken != before;
}

/* The engine is asked once a second. */
static bool is_gone(void)
{
    struct timespec now;

    if (is_cut || !has_worker())
        return true;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (atomic_exchange(&looked_again, now.tv_sec) != now.tv_sec && !has_engine())
        is_cut = true;
    return is_cut;
}

/* A handle, which need not stay: a mapping keeps the memory. 0: there is none. */
static uint32_t create_blob(uint32_t memory, uint64_t id, uint64_t bytes)
{
    struct drm_virtgpu_resource_create_blob blob = {
        .blob_mem = memory,
        .blob_flags = VIRTGPU_BLOB_FLAG_USE_MAPPABLE,
        .size = bytes,
        .blob_id = id,
    };

    return call_driver(DRM_IOCTL_VIRTGPU_RESOURCE_CREATE_BLOB, &blob) == 0 ? blob.bo_handle : 0;
}

static void *map_handle(uint32_t handle, uint64_t bytes, void *at, int flags)
{
    struct drm_virtgpu_map map = {.handle = handle};

    if (call_driver(DRM_IOCTL_VIRTGPU_MAP, &map) < 0)
        return MAP_FAILED;
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, node, (off_t)map.offset);
}

static void close_handle(uint32_t handle)
{
    struct drm_gem_close end = {.handle = handle};

    call_driver(DRM_IOCTL_GEM_CLOSE, &end);
}

/* Memory of the host, once the engine has it. */
static void *map_blob(uint64_t id, uint64_t bytes, void *at, int flags)
{
    uint32_t handle = create_blob(VIRTGPU_BLOB_MEM_HOST3D, id, bytes);
    void *mapped = handle ? map_handle(handle, bytes, at, flags) : MAP_FAILED;

    if (handle)
        close_handle(handle);
    return mapped;
}

/* A capset of this number could be somebody else's: the magic says that it is ours. */
static bool has_cuda(void)
{
    char driver[16] = "";
    struct drm_version version = {.name = driver, .name_len = sizeof(driver) - 1};
    struct control_caps caps = {0};
    uint64_t capsets = 0;
    struct drm_virtgpu_getparam ask = {.param = VIRTGPU_PARAM_SUPPORTED_CAPSET_IDs,
                                       .value = (uintptr_t)&capsets};
    struct drm_virtgpu_get_caps get = {
        .cap_set_id = CONTROL_CAPSET, .addr = (uintptr_t)&caps, .size = sizeof(caps)};

    if (call_driver(DRM_IOCTL_VERSION, &version) < 0 || strcmp(driver, "virtio_gpu") != 0 ||
        call_driver(DRM_IOCTL_VIRTGPU_GETPARAM, &ask) < 0 || !(capsets & 1ull << CONTROL_CAPSET) ||
        call_driver(DRM_IOCTL_VIRTGPU_GET_CAPS, &get) < 0 || caps.magic != CONTROL_MAGIC)
        return false;
    engine_minor = caps.minor;
    can_lend = caps.flags & CONTROL_CAPS_GUEST_MEMORY;
    if (caps.major == CONTROL_MAJOR)
        return true;
    fprintf(stderr,
            "libcuda.so.1: this VM's host speaks version %u of vGPU's CUDA, this library version "
            "%u; update the older of the two\n",
            caps.major, CONTROL_MAJOR);
    return false;
}

static bool make_context(void)
{
    struct drm_virtgpu_context_set_param params[] = {
        {VIRTGPU_CONTEXT_PARAM_CAPSET_ID, CONTROL_CAPSET},
        {VIRTGPU_CONTEXT_PARAM_NUM_RINGS, CONTROL_RINGS},
    };
    struct drm_virtgpu_context_init init = {.num_params = 2, .ctx_set_params = (uintptr_t)params};
    void *at;

    if (call_driver(DRM_IOCTL_VIRTGPU_CONTEXT_INIT, &init) < 0)
        return false;
    at = map_blob(CONTROL_PAGE_BLOB, PAGE_BYTES, NULL, 0);
    if (at == MAP_FAILED)
        return false;
    madvise(at, PAGE_BYTES, MADV_DONTFORK);
    page = at;
    lost_memory_replace(at, PAGE_BYTES);
    return true;
}

/* Of a child its parent's page is not mapped, and only its copy of the descriptor is closed. */
static void close_node(void)
{
    lost_memory_forget();
    if (page)
        munmap(page, PAGE_BYTES);
    page = NULL;
    asked = 0;
    is_cut = false;
    close(node);
    node = -1;
}

/* @path: NULL: the first that offers CUDA. */
static bool open_node(const char *path, uint16_t minor)
{
    for (int i = 0; i < NODES; i++) {
        char name[32];

        snprintf(name, sizeof(name), "/dev/dri/renderD%d", FIRST_NODE + i);
        node = open(path ? path : name, O_RDWR | O_CLOEXEC);
        if (node >= 0 && has_cuda() && engine_minor >= minor && make_context())
            return true;
        if (node >= 0)
            close_node();
        if (path)
            break;
    }
    return false;
}

/* A worker that says why it can't serve the program ends at once; the reply counts nevertheless. */
static bool ask_worker(const void *message, size_t bytes, void *reply, size_t reply_bytes)
{
    const struct control_reply not_sent = {CONTROL_MAGIC, CONTROL_NO_MEMORY, 0};
    int fence = submit_message(message, bytes, CONTROL_RING_ASK);

    if (fence < 0) {
        memcpy(reply, &not_sent, sizeof(not_sent));
        return is_short();
    }
    await_fence(fence);
    if (*(volatile uint64_t *)&page->replies != ++asked)
        return false;
    atomic_thread_fence(memory_order_acquire);
    memcpy(reply, page->reply, reply_bytes);
    return true;
}

/* Failed: the window may be full. */
static bool share_memory(const struct control_message *message, struct control_reply *reply,
                         bool *is_mapped)
{
    if (!ask_worker(message, sizeof(*message), reply, sizeof(*reply)))
        return false;
    *is_mapped = reply->result == CONTROL_OK &&
                 map_blob(message->address, message->bytes, (void *)(uintptr_t)message->address,
                          MAP_FIXED) != MAP_FAILED;
    return true;
}

/* The VM's own memory, of which the guest's kernel tells the engine where it is. */
static bool lend_memory(const struct control_message *message, struct control_reply *reply,
                        bool *is_mapped)
{
    const struct control_message back = {CONTROL_MAGIC, CONTROL_SHARE_END, message->address, 0};
    struct control_reply answer;
    uint32_t handle =
        can_lend ? create_blob(VIRTGPU_BLOB_MEM_HOST3D_GUEST, message->address, message->bytes) : 0;
    bool ok = true;

    *reply = (struct control_reply){CONTROL_MAGIC, CONTROL_NO_MEMORY, 0};
    if (!handle)
        return true;
    ok = ask_worker(message, sizeof(*message), reply, sizeof(*reply));
    if (ok && reply->result == CONTROL_REFUSED)
        can_lend = false;
    *is_mapped = ok && reply->result == CONTROL_OK &&
                 map_handle(handle, message->bytes, (void *)(uintptr_t)message->address,
                            MAP_FIXED) != MAP_FAILED;
    if (ok && reply->result == CONTROL_OK && !*is_mapped) {
        /* Before the blob ends: the engine ends a program whose blob does while its worker has it.
         */
        ok = ask_worker(&back, sizeof(back), &answer, sizeof(answer));
        reply->result = CONTROL_NO_MEMORY;
    }
    close_handle(handle);
    return ok;
}

static void wake_worker(struct channel_shared *channel)
{
    const struct control_message message = {CONTROL_MAGIC, CONTROL_WAKE, (uintptr_t)channel, 0};

    submit_message(&message, sizeof(message), NO_RING);
}

/* If the engine has too many that wait, it lets some go at once: they do not come back at once. */
static void await_answers(struct channel_shared *channel, uint64_t answers)
{
    const struct control_message message = {CONTROL_MAGIC, CONTROL_WAIT, (uintptr_t)channel,
                                            answers};
    const struct timespec moment = {.tv_nsec = 1000000};
    /* Those of threads that wait at the same time should be different, but need not. */
    const uint32_t rings = CONTROL_RINGS - CONTROL_RING_WAIT;
    uint32_t ring = CONTROL_RING_WAIT + (uint32_t)(((uintptr_t)channel >> 16) % rings);

    atomic_exchange(&channel->client.state, CHANNEL_ASLEEP_FAR);
    if (!transport_has_answers(channel, answers)) {
        int fence = submit_message(&message, sizeof(message), ring);

        if (fence >= 0)
            await_fence(fence);
        if (!transport_has_answers(channel, answers))
            nanosleep(&moment, NULL);
    }
    atomic_store(&channel->client.state, CHANNEL_AWAKE);
}

/*
 * All fences of the context are signalled when its worker has ended. An older engine ends it a
 * moment after its program.
 */
static void end_worker(int milliseconds)
{
    const struct control_message message = {CONTROL_MAGIC, CONTROL_END, 0, 0};
    struct pollfd end = {.fd = -1, .events = POLLIN};

    if (engine_minor >= CONTROL_MINOR_END)
        end.fd = submit_message(&message, sizeof(message), CONTROL_RING_ASK);
    if (end.fd < 0)
        return;
    poll(&end, 1, milliseconds);
    close(end.fd);
}

const struct transport transport_virtio = {
    "the VM's vGPU",
    "no worker was started, or it has no driver; \"journalctl -u 'vgpu-engine@*'\" on the host "
    "says why",
    open_node,
    ask_worker,
    share_memory,
    lend_memory,
    wake_worker,
    await_answers,
    is_gone,
    end_worker,
    close_node,
};
