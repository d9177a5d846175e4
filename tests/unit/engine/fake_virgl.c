// SPDX-License-Identifier: MIT
#include "fake_virgl.h"

#include <errno.h>
#include <linux/virtio_gpu.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <virglrenderer.h>

#define PAGE 4096u

struct fake_resource {
    const struct iovec *iov;
    uint64_t size;
    char *map;
    uint64_t map_len;
};

struct fake_virgl fake_virgl;

static void *cookie;
static struct virgl_renderer_callbacks *callbacks;

/*
 * For fences and contexts: tests report fences and kill workers in other threads than the tested
 * one. Held until all fences are reported, as the real one destroys no context while its thread for
 * fences runs.
 */
static GMutex lock;

static void resource_free(void *data)
{
    struct fake_resource *resource = data;

    /* The real one leaks such a mapping. */
    g_assert_null(resource->map);
    g_free(resource);
}

static void worker_free(void *data)
{
    struct fake_worker *worker = data;

    close(worker->connection);
    if (worker->worker >= 0)
        close(worker->worker);
    g_hash_table_destroy(worker->resources);
    g_free(worker);
}

static void worker_start(uint32_t ctx_id)
{
    struct fake_worker *worker = g_new0(struct fake_worker, 1);
    int fds[2];

    g_assert_no_errno(socketpair(
        AF_UNIX, (fake_virgl.no_connection ? SOCK_STREAM : SOCK_SEQPACKET) | SOCK_CLOEXEC, 0, fds));
    worker->connection = fds[0];
    worker->worker = fds[1];
    worker->resources = g_hash_table_new(NULL, NULL);
    g_mutex_lock(&lock);
    g_assert_true(g_hash_table_insert(fake_virgl.contexts, GUINT_TO_POINTER(ctx_id), worker));
    g_mutex_unlock(&lock);
}

void fake_virgl_init(void)
{
    memset(&fake_virgl, 0, sizeof(fake_virgl));
    fake_virgl.fences = g_array_new(FALSE, FALSE, sizeof(struct fake_fence));
    fake_virgl.resources = g_hash_table_new_full(NULL, NULL, NULL, resource_free);
    fake_virgl.contexts = g_hash_table_new_full(NULL, NULL, NULL, worker_free);
    fake_virgl.venus_capset_size = 160;
    fake_virgl.submitted = -1;
}

void fake_virgl_clear(void)
{
    g_array_unref(fake_virgl.fences);
    g_hash_table_destroy(fake_virgl.resources);
    g_hash_table_destroy(fake_virgl.contexts);
}

static struct fake_resource *find_resource(uint32_t id)
{
    return g_hash_table_lookup(fake_virgl.resources, GUINT_TO_POINTER(id));
}

static struct fake_resource *add_resource(uint32_t id)
{
    struct fake_resource *resource = g_new0(struct fake_resource, 1);

    g_assert_cmpuint(id, !=, 0);
    g_assert_null(find_resource(id));
    g_hash_table_insert(fake_virgl.resources, GUINT_TO_POINTER(id), resource);
    return resource;
}

static struct fake_worker *worker_of(uint32_t ctx_id)
{
    struct fake_worker *worker = g_hash_table_lookup(fake_virgl.contexts, GUINT_TO_POINTER(ctx_id));

    g_assert_nonnull(worker);
    return worker;
}

/* What a worker does at once, whatever its rings do. */
static bool is_instant(const uint32_t *words, size_t count)
{
    return (count == 6 && (words[0] == 190 || words[0] == 251)) || (count == 7 && words[0] == 191);
}

/* A packet: this would stop the caller if there is no room. */
static void send_packet(struct fake_worker *worker, size_t bytes, bool may_wait)
{
    if (!fake_virgl.may_block)
        g_assert_cmpuint(worker->sent - worker->answered, <, FAKE_VIRGL_ROOM);
    worker->sent += 1 + bytes / 768;
    if (may_wait)
        worker->waits = worker->sent;
}

static void signal_fence(struct fake_fence fence)
{
    callbacks->write_context_fence(cookie, fence.ctx_id, fence.ring_idx, fence.id);
}

static void take_and_signal(guint index)
{
    struct fake_fence fence = g_array_index(fake_virgl.fences, struct fake_fence, index);

    g_array_remove_index(fake_virgl.fences, index);
    if (fence.ring_idx == 0)
        worker_of(fence.ctx_id)->answered = MAX(worker_of(fence.ctx_id)->answered, fence.sent);
    signal_fence(fence);
}

void fake_virgl_signal(guint index)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&lock);

    take_and_signal(index);
}

void fake_virgl_answer(void)
{
    for (guint i = 0; i < fake_virgl.fences->len;) {
        const struct fake_fence *fence = &g_array_index(fake_virgl.fences, struct fake_fence, i);

        if (fence->ring_idx == 0)
            fake_virgl_signal(i);
        else
            i++;
    }
}

/* Whoever waits for the connection's end destroys the context at once. */
void fake_virgl_kill_worker(uint32_t ctx_id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&lock);
    struct fake_worker *worker = g_hash_table_lookup(fake_virgl.contexts, GUINT_TO_POINTER(ctx_id));

    close(worker->worker);
    worker->worker = -1;
    for (guint i = 0; i < fake_virgl.fences->len;) {
        const struct fake_fence *fence = &g_array_index(fake_virgl.fences, struct fake_fence, i);

        if (fence->ctx_id == ctx_id)
            take_and_signal(i);
        else
            i++;
    }
}

static void *signal_thread(void *data)
{
    signal_fence(*(struct fake_fence *)data);
    return NULL;
}

static int add_fence(struct fake_fence fence)
{
    if (fake_virgl.fence_result)
        return fake_virgl.fence_result;
    if (fake_virgl.signal_at_once) {
        g_thread_join(g_thread_new("fence", signal_thread, &fence));
        return 0;
    }
    g_mutex_lock(&lock);
    g_array_append_val(fake_virgl.fences, fence);
    g_mutex_unlock(&lock);
    return 0;
}

int virgl_renderer_init(void *cookie_arg, int flags, struct virgl_renderer_callbacks *cb)
{
    if (flags & fake_virgl.refuse_flags)
        return -1;
    g_assert_cmpint(cb->version, ==, 3);
    g_assert_true(flags & VIRGL_RENDERER_ASYNC_FENCE_CB);
    g_assert_true(flags & VIRGL_RENDERER_NO_VIRGL);
    cookie = cookie_arg;
    callbacks = cb;
    fake_virgl.flags = flags;
    fake_virgl.governed = g_getenv("VGPU_GOVERNOR") != NULL;
    return 0;
}

static void forget_all(void)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&lock);

    g_hash_table_remove_all(fake_virgl.contexts);
    g_hash_table_remove_all(fake_virgl.resources);
    g_array_set_size(fake_virgl.fences, 0);
}

void virgl_renderer_cleanup(void *cookie_arg G_GNUC_UNUSED)
{
    forget_all();
}

void virgl_renderer_reset(void)
{
    fake_virgl.resets++;
    forget_all();
}

void virgl_set_log_callback(virgl_log_callback_type cb G_GNUC_UNUSED, void *user_data G_GNUC_UNUSED,
                            virgl_free_data_callback_type free_cb G_GNUC_UNUSED)
{
}

void virgl_renderer_get_cap_set(uint32_t set, uint32_t *max_ver, uint32_t *max_size)
{
    *max_ver = 0;
    *max_size = set == VIRTIO_GPU_CAPSET_VENUS ? fake_virgl.venus_capset_size : 0;
}

void virgl_renderer_fill_caps(uint32_t set, uint32_t version G_GNUC_UNUSED, void *caps)
{
    uint32_t max_version;
    uint32_t max_size;

    virgl_renderer_get_cap_set(set, &max_version, &max_size);
    memset(caps, 0xc5, max_size);
}

int virgl_renderer_context_create_with_flags(uint32_t id, uint32_t flags G_GNUC_UNUSED,
                                             uint32_t nlen, const char *name)
{
    volatile char sum = 0;

    if (fake_virgl.context_result)
        return fake_virgl.context_result;
    for (uint32_t i = 0; i < nlen; i++) /* ASan sees whether that much is there */
        sum += name[i];
    g_assert_cmpuint(id, !=, 0);
    worker_start(id);
    return 0;
}

void virgl_renderer_context_destroy(uint32_t id)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&lock);

    g_assert_true(g_hash_table_remove(fake_virgl.contexts, GUINT_TO_POINTER(id)));
    /* Its thread for fences ends; what was pending is never reported. */
    for (guint i = fake_virgl.fences->len; i-- > 0;) {
        const struct fake_fence *fence = &g_array_index(fake_virgl.fences, struct fake_fence, i);

        if (fence->ctx_id == id)
            g_array_remove_index(fake_virgl.fences, i);
    }
}

int virgl_renderer_context_create_fence(uint32_t ctx_id, uint32_t flags G_GNUC_UNUSED,
                                        uint32_t ring_idx, uint64_t fence_id)
{
    struct fake_worker *worker = worker_of(ctx_id);

    if (ring_idx >= 64)
        return -EINVAL;
    send_packet(worker, 0, ring_idx != 0);
    if (fake_virgl.signal_at_once && ring_idx == 0)
        worker->answered = worker->sent;
    return add_fence((struct fake_fence){
        .ctx_id = ctx_id, .ring_idx = ring_idx, .id = fence_id, .sent = worker->sent});
}

int virgl_renderer_submit_cmd(void *buffer, int ctx_id, int ndw)
{
    volatile uint32_t sum = 0;

    send_packet(worker_of((uint32_t)ctx_id), (size_t)ndw * 4, !is_instant(buffer, (size_t)ndw));
    g_assert_cmpuint((uintptr_t)buffer % 4, ==, 0);
    for (int i = 0; i < ndw; i++)
        sum += ((const uint32_t *)buffer)[i];
    fake_virgl.submitted = ndw;
    memcpy(fake_virgl.submitted_words, buffer,
           sizeof(uint32_t) * (size_t)MIN(ndw, FAKE_VIRGL_WORDS));
    return fake_virgl.submit_result;
}

void virgl_renderer_ctx_attach_resource(int ctx_id, int res_handle)
{
    struct fake_worker *worker = worker_of((uint32_t)ctx_id);

    if (!find_resource((uint32_t)res_handle))
        return;
    fake_virgl.attached++;
    if (g_hash_table_add(worker->resources, GINT_TO_POINTER(res_handle)))
        send_packet(worker, 0, true);
}

void virgl_renderer_ctx_detach_resource(int ctx_id, int res_handle)
{
    struct fake_worker *worker = worker_of((uint32_t)ctx_id);

    if (!find_resource((uint32_t)res_handle))
        return;
    fake_virgl.detached++;
    if (g_hash_table_remove(worker->resources, GINT_TO_POINTER(res_handle)))
        send_packet(worker, 0, true);
}

int virgl_renderer_resource_create_blob(const struct virgl_renderer_resource_create_blob_args *args)
{
    struct fake_resource *resource;

    if (fake_virgl.blob_result)
        return fake_virgl.blob_result;
    if (args->blob_mem != VIRTIO_GPU_BLOB_MEM_HOST3D &&
        (args->num_iovs == 0 || args->iovecs[0].iov_len < args->size))
        return -EINVAL;
    /* It waits for the worker's answer. */
    if (args->blob_mem != VIRTIO_GPU_BLOB_MEM_GUEST) {
        struct fake_worker *worker = worker_of(args->ctx_id);

        if (!fake_virgl.may_block)
            g_assert_cmpuint(worker->waits, <=, worker->answered);
        worker->answered = ++worker->sent;
        g_hash_table_add(worker->resources, GUINT_TO_POINTER(args->res_handle));
    }
    resource = add_resource(args->res_handle);
    resource->size = args->size;
    resource->iov = args->iovecs;
    return 0;
}

int virgl_renderer_resource_export_blob(uint32_t id, uint32_t *fd_type, int *fd)
{
    const struct fake_resource *resource = find_resource(id);

    g_assert_nonnull(resource);
    *fd = memfd_create("fake-blob", MFD_CLOEXEC);
    *fd_type = fake_virgl.export_opaque ? VIRGL_RENDERER_BLOB_FD_TYPE_OPAQUE
               : fake_virgl.export_shm  ? VIRGL_RENDERER_BLOB_FD_TYPE_SHM
                                        : VIRGL_RENDERER_BLOB_FD_TYPE_DMABUF;
    g_assert_cmpint(ftruncate(*fd, (off_t)resource->size), ==, 0);
    return 0;
}

void virgl_renderer_resource_unref(uint32_t id)
{
    GHashTableIter iter;
    void *worker;

    g_hash_table_iter_init(&iter, fake_virgl.contexts);
    while (g_hash_table_iter_next(&iter, NULL, &worker)) {
        if (g_hash_table_remove(((struct fake_worker *)worker)->resources, GUINT_TO_POINTER(id)))
            send_packet(worker, 0, true);
    }
    g_hash_table_remove(fake_virgl.resources, GUINT_TO_POINTER(id));
}

void virgl_renderer_resource_detach_iov(int id, struct iovec **iov G_GNUC_UNUSED,
                                        int *n G_GNUC_UNUSED)
{
    struct fake_resource *resource = find_resource((uint32_t)id);

    if (resource)
        resource->iov = NULL;
}

int virgl_renderer_resource_map(uint32_t id, void **map, uint64_t *size)
{
    struct fake_resource *resource = find_resource(id);

    g_assert_nonnull(resource);
    g_assert_null(resource->map);
    if (fake_virgl.map_result)
        return fake_virgl.map_result;
    *size = fake_virgl.map_size ? fake_virgl.map_size : resource->size;
    resource->map_len = *size + PAGE;
    resource->map =
        mmap(NULL, resource->map_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(resource->map != MAP_FAILED);
    if (fake_virgl.map_content)
        memcpy(resource->map, fake_virgl.map_content,
               fake_virgl.map_content_words * sizeof(uint32_t));
    *map = resource->map + (fake_virgl.map_misaligned ? 256 : 0);
    return 0;
}

int virgl_renderer_resource_unmap(uint32_t id)
{
    struct fake_resource *resource = find_resource(id);

    g_assert_nonnull(resource);
    g_assert_nonnull(resource->map);
    munmap(resource->map, resource->map_len);
    resource->map = NULL;
    return 0;
}

int virgl_renderer_resource_get_map_info(uint32_t id, uint32_t *map_info)
{
    g_assert_nonnull(find_resource(id));
    *map_info = VIRTIO_GPU_MAP_CACHE_WC;
    return 0;
}
