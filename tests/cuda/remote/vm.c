// SPDX-License-Identifier: MIT
/*
 * A VM for a program under LD_PRELOAD: /dev/dri/renderD128 is a virtio-gpu as Linux' driver shows
 * it, and behind it is the engine, on a thread of its own between a fake driver and a fake
 * virglrenderer. So the program's libcuda, the engine and the worker are the real ones, and what
 * lies between is the guest's kernel, as far as its driver's calls go. Of the environment:
 *
 *	VM_WORKER	vgpu-cuda-worker
 *	VM_WINDOW	MiB of the window (default: 1024)
 *	VM_MEMORY	"anonymous": no file can be made of it, so none is lent; "unmappable": it
 *			is lent, but the guest's kernel has no room to map it
 *	VM_KERNEL	"old": a driver without contexts; "no-cuda": a host without CUDA;
 *			"minor-1": an engine of version 1.1; sent what is newer, the program ends
 *
 * SIGUSR1 kills the engine and its workers: from then on the driver answers everything. SIGUSR2
 * unplugs the vGPU: its memory is gone, and so is the driver.
 */
#include "engine.h"
#include "fake_driver.h"
#include "fake_virgl.h"
#include "watch.h"
#include "wire/control.h"

#include <drm/virtgpu_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NODE   "/dev/dri/renderD128"
#define NODES  "/dev/dri/renderD"
#define BLOBS  1024

/* A blob of the program's. @memory: of the guest's; 0: it is the host's, at @offset of the window.
 */
struct blob {
    uint32_t resource;
    uint64_t offset, bytes;
    int memory;
    void *at;
    bool has_handle;
};

struct fence {
    uint32_t token;
    int fd;
};

struct question {
    const void *data;
    size_t bytes;
    uint32_t token;
    bool is_done;
};

/* The lock is for all; the engine's thread has it while it works. */
static GMutex lock;
static GCond answered;
static GQueue questions = G_QUEUE_INIT;
static GArray *fences;
static struct blob blobs[BLOBS];
static struct fake_driver driver;
static struct engine engine;
static bool is_node[1024];      /* by descriptor */
static uint32_t contexts[1024]; /* by descriptor; 0: it has none */
static uint32_t last_context = 4;
static int bell = -1;
static pid_t owner;
static uint32_t last_resource;
static volatile sig_atomic_t is_killed, is_pulled;
static bool is_unplugged;

static void look_at_fences(void)
{
    for (guint i = 0; i < fences->len;) {
        const struct fence *fence = &g_array_index(fences, struct fence, i);

        if (!fake_driver_answer(&driver, fence->token)) {
            i++;
            continue;
        }
        eventfd_write(fence->fd, 1);
        close(fence->fd);
        g_array_remove_index_fast(fences, i);
    }
}

static void reap(void)
{
    GHashTableIter iter;
    void *pid;

    g_hash_table_iter_init(&iter, engine.cuda.children);
    while (g_hash_table_iter_next(&iter, &pid, NULL)) {
        if (waitpid(GPOINTER_TO_INT(pid), NULL, WNOHANG) > 0)
            g_hash_table_iter_remove(&iter);
    }
}

/* What is not answered yet, and what still comes, gets an answer; no memory changes. */
static void answer_all(void)
{
    struct question *question;

    while ((question = g_queue_pop_head(&questions)))
        question->is_done = true;
    for (guint i = 0; i < fences->len; i++) {
        eventfd_write(g_array_index(fences, struct fence, i).fd, 1);
        close(g_array_index(fences, struct fence, i).fd);
    }
    g_array_set_size(fences, 0);
    cuda_host_kill(&engine.cuda, NULL);
    reap();
    g_cond_broadcast(&answered);
}

static void *real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* No fence is signalled, and whoever touches what was mapped gets SIGBUS. */
static void unplug(void)
{
    int nothing = memfd_create("nothing", MFD_CLOEXEC);

    cuda_host_kill(&engine.cuda, NULL);
    for (size_t i = 0; i < BLOBS; i++) {
        if (blobs[i].at)
            real_mmap(blobs[i].at, blobs[i].bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                      nothing, 0);
        blobs[i] = (struct blob){0};
    }
    close(nothing);
    is_unplugged = true;
}

static void work(void)
{
    struct question *question;

    if (is_killed) {
        answer_all();
        return;
    }
    while ((question = g_queue_pop_head(&questions))) {
        question->token =
            fake_driver_send(&driver, VGPU_QUEUE_CONTROL, question->data, question->bytes, 4096);
        g_assert_cmpint(queue_run(&engine, VGPU_QUEUE_CONTROL, 16), ==, 0);
        question->is_done = true;
    }
    if (is_pulled && !is_unplugged)
        unplug();
    watch_lost(&engine);
    reap();
    if (!is_unplugged)
        look_at_fences();
    g_cond_broadcast(&answered);
}

static void *run_engine(void *data)
{
    struct pollfd fds[] = {{.fd = bell, .events = POLLIN},
                           {.fd = engine.lifelines.fd, .events = POLLIN}};
    eventfd_t none;

    for (;;) {
        if (poll(fds, G_N_ELEMENTS(fds), 100) < 0 && errno != EINTR)
            return data;
        if (fds[0].revents)
            eventfd_read(bell, &none);
        g_mutex_lock(&lock);
        work();
        g_mutex_unlock(&lock);
    }
}

/* With the lock. The token of a request, which the engine has handled. */
static uint32_t ask(const void *data, size_t bytes)
{
    struct question question = {.data = data, .bytes = bytes};

    g_queue_push_tail(&questions, &question);
    eventfd_write(bell, 1);
    while (!question.is_done)
        g_cond_wait(&answered, &lock);
    return question.token;
}

static uint32_t type_of(uint32_t token)
{
    const GByteArray *answer = fake_driver_answer(&driver, token);

    return answer ? ((const struct virtio_gpu_ctrl_hdr *)answer->data)->type : 0;
}

static void on_signal(int number)
{
    if (number == SIGUSR1)
        is_killed = true;
    else
        is_pulled = true;
}

/* By its resource, or a free one: 0. */
static struct blob *find_blob(uint32_t resource)
{
    for (size_t i = 0; i < BLOBS; i++) {
        if (blobs[i].resource == resource)
            return &blobs[i];
    }
    return NULL;
}

/* Guest memory lies where its resource's number says. */
static int export_memory(struct fake_driver *of G_GNUC_UNUSED, const struct fake_range *range)
{
    const struct blob *blob = find_blob((uint32_t)(range->iova >> 32));

    if (!g_strcmp0(getenv("VM_MEMORY"), "anonymous"))
        return -EOPNOTSUPP;
    return fcntl(blob->memory, F_DUPFD_CLOEXEC, 0);
}

static void start_engine(void)
{
    struct cuda_worker worker = {.path = getenv("VM_WORKER"), .is_of_vm = true};
    const char *window = getenv("VM_WINDOW");
    g_autoptr(GError) error = NULL;

    owner = getpid();
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    g_unsetenv("LD_PRELOAD");
    g_unsetenv("LD_LIBRARY_PATH");
    fences = g_array_new(FALSE, FALSE, sizeof(struct fence));
    fake_virgl_init();
    fake_driver_init(&driver);
    driver.info.window_bytes = (window ? strtoull(window, NULL, 10) : 1024) << 20;
    driver.info.features = VGPU_FEATURE_EXPORT;
    driver.info.cuda = 1;
    driver.export = export_memory;
    engine_init(&engine, &driver.base);
    engine.info = driver.info;
    engine.epoch = driver.info.epoch;
    if (g_strcmp0(getenv("VM_KERNEL"), "no-cuda"))
        cuda_host_offer(&engine.cuda, &worker);
    g_assert_true(engine_start_renderer(&engine, &error));
    bell = eventfd(0, EFD_CLOEXEC);
    g_thread_unref(g_thread_new("engine", run_engine, NULL));
}

static int fail(int reason)
{
    errno = reason;
    return -1;
}

static uint64_t capsets(void)
{
    uint64_t ids = 0;

    for (uint32_t i = 0; i < engine.num_capsets; i++)
        ids |= 1ull << engine.capsets[i].id;
    return ids;
}

static int get_param(const struct drm_virtgpu_getparam *param)
{
    if (param->param != VIRTGPU_PARAM_SUPPORTED_CAPSET_IDs ||
        !g_strcmp0(getenv("VM_KERNEL"), "old"))
        return fail(EINVAL);
    *(uint64_t *)(uintptr_t)param->value = capsets();
    return 0;
}

static bool is_minor_1(void)
{
    return !g_strcmp0(getenv("VM_KERNEL"), "minor-1");
}

static int get_caps(const struct drm_virtgpu_get_caps *get)
{
    const struct virtio_gpu_get_capset cmd = {.hdr.type = VIRTIO_GPU_CMD_GET_CAPSET,
                                              .capset_id = get->cap_set_id,
                                              .capset_version = get->cap_set_ver};
    const GByteArray *answer = fake_driver_answer(&driver, ask(&cmd, sizeof(cmd)));
    const struct virtio_gpu_resp_capset *capset = answer ? (const void *)answer->data : NULL;
    struct control_caps *caps = (void *)(uintptr_t)get->addr;

    if (!capset || capset->hdr.type != VIRTIO_GPU_RESP_OK_CAPSET)
        return fail(EINVAL);
    memcpy(caps, capset->capset_data, MIN(get->size, answer->len - sizeof(capset->hdr)));
    if (is_minor_1()) {
        caps->minor = 1;
        caps->flags = 0;
    }
    return 0;
}

/* One for each library; others open the node to look at it. */
static int init_context(int fd, const struct drm_virtgpu_context_init *init)
{
    const struct drm_virtgpu_context_set_param *params = (void *)(uintptr_t)init->ctx_set_params;
    struct virtio_gpu_ctx_create cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = last_context + 1}};

    for (uint32_t i = 0; i < init->num_params; i++) {
        if (params[i].param == VIRTGPU_CONTEXT_PARAM_CAPSET_ID)
            cmd.context_init = (uint32_t)params[i].value;
    }
    if (contexts[fd] || !(capsets() & 1ull << cmd.context_init))
        return fail(EINVAL);
    contexts[fd] = ++last_context;
    ask(&cmd, sizeof(cmd)); /* Linux does not look at the answer */
    return 0;
}

static int execute(int fd, struct drm_virtgpu_execbuffer *execbuffer)
{
    bool is_fenced = execbuffer->flags & VIRTGPU_EXECBUF_FENCE_FD_OUT;
    const struct control_message *message = (const void *)(uintptr_t)execbuffer->command;
    struct virtio_gpu_cmd_submit *cmd = g_malloc0(sizeof(*cmd) + execbuffer->size);
    struct fence fence = {.fd = -1};

    g_assert_true(!is_minor_1() || message->kind <= CONTROL_WAIT);
    if (is_fenced) {
        execbuffer->fence_fd = eventfd(0, EFD_CLOEXEC);
        fence.fd = fcntl(execbuffer->fence_fd, F_DUPFD_CLOEXEC, 0);
        if (fence.fd < 0) {
            close(execbuffer->fence_fd);
            g_free(cmd);
            return fail(EMFILE);
        }
    }
    cmd->hdr = (struct virtio_gpu_ctrl_hdr){
        .type = VIRTIO_GPU_CMD_SUBMIT_3D,
        .ctx_id = contexts[fd],
        .flags = is_fenced ? VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX : 0,
        .fence_id = 1,
        .ring_idx = (uint8_t)execbuffer->ring_idx,
    };
    cmd->size = execbuffer->size;
    memcpy(cmd + 1, (const void *)(uintptr_t)execbuffer->command, execbuffer->size);
    fence.token = ask(cmd, sizeof(*cmd) + cmd->size);
    if (is_fenced) {
        if (is_killed)
            eventfd_write(fence.fd, 1);
        g_array_append_val(fences, fence);
        look_at_fences();
    }
    g_free(cmd);
    return 0;
}

/* The first gap. False: the window is full. */
static bool find_offset(uint64_t bytes, uint64_t *offset)
{
    bool is_free = false;

    for (*offset = 0; !is_free && *offset + bytes <= driver.info.window_bytes;) {
        is_free = true;
        for (size_t i = 0; is_free && i < BLOBS; i++) {
            if (!blobs[i].resource || blobs[i].memory || *offset + bytes <= blobs[i].offset ||
                *offset >= blobs[i].offset + blobs[i].bytes)
                continue;
            *offset = blobs[i].offset + blobs[i].bytes;
            is_free = false;
        }
    }
    return is_free;
}

/* Pages of the guest's: only that the engine pins them is looked at, as Linux does. */
static int create_guest_blob(int fd, struct drm_virtgpu_resource_create_blob *create)
{
    struct blob *blob = find_blob(0);
    struct {
        struct virtio_gpu_resource_create_blob cmd;
        struct virtio_gpu_mem_entry entry;
    } request = {
        .cmd = {.hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = contexts[fd]},
                .resource_id = ++last_resource,
                .blob_mem = create->blob_mem,
                .blob_flags = create->blob_flags,
                .nr_entries = 1,
                .blob_id = create->blob_id,
                .size = create->size},
        .entry = {.addr = (uint64_t)last_resource << 32, .length = (uint32_t)create->size},
    };

    *blob = (struct blob){.resource = last_resource,
                          .bytes = create->size,
                          .memory = memfd_create("guest", MFD_CLOEXEC),
                          .has_handle = true};
    if (blob->memory < 0 || fallocate(blob->memory, 0, 0, (off_t)create->size) < 0)
        return fail(ENOMEM);
    ask(&request, sizeof(request));
    create->bo_handle = create->res_handle = blob->resource;
    return 0;
}

static int create_blob(int fd, struct drm_virtgpu_resource_create_blob *create)
{
    struct blob blob = {.bytes = create->size, .has_handle = true};
    struct virtio_gpu_resource_create_blob cmd = {
        .hdr = {.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = contexts[fd]},
        .blob_mem = create->blob_mem,
        .blob_flags = create->blob_flags,
        .blob_id = create->blob_id,
        .size = create->size,
    };
    struct virtio_gpu_resource_map_blob map = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB};

    if (!find_offset(blob.bytes, &blob.offset))
        return fail(ENOSPC);
    cmd.resource_id = map.resource_id = blob.resource = ++last_resource;
    map.offset = blob.offset;
    *find_blob(0) = blob;
    ask(&cmd, sizeof(cmd));
    if (type_of(ask(&map, sizeof(map))) != VIRTIO_GPU_RESP_OK_MAP_INFO)
        find_blob(blob.resource)->bytes = 0;
    create->bo_handle = create->res_handle = blob.resource;
    return 0;
}

static void end_if_unused(struct blob *blob)
{
    struct virtio_gpu_resource_unref cmd = {.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF,
                                            .resource_id = blob->resource};

    if (blob->at || blob->has_handle)
        return;
    ask(&cmd, sizeof(cmd));
    if (blob->memory)
        syscall(SYS_close, blob->memory);
    *blob = (struct blob){0};
}

static int map_handle(struct drm_virtgpu_map *map)
{
    if (find_blob(map->handle)->memory && !g_strcmp0(getenv("VM_MEMORY"), "unmappable"))
        return fail(ENOMEM);
    map->offset = (uint64_t)map->handle << 32;
    return 0;
}

static int close_handle(const struct drm_gem_close *end)
{
    struct blob *blob = find_blob(end->handle);

    g_assert_nonnull(blob);
    blob->has_handle = false;
    end_if_unused(blob);
    return 0;
}

/* Without room for the name, its length is asked for. */
static void get_version(struct drm_version *version)
{
    static const char name[] = "virtio_gpu";

    if (version->name)
        strncpy(version->name, name, version->name_len);
    version->name_len = strlen(name);
    version->date_len = version->desc_len = 0;
}

static int call(int fd, unsigned long request, void *argument)
{
    switch (request) {
    case DRM_IOCTL_VERSION:
        get_version(argument);
        return 0;
    case DRM_IOCTL_VIRTGPU_GETPARAM:
        return get_param(argument);
    case DRM_IOCTL_VIRTGPU_GET_CAPS:
        return get_caps(argument);
    case DRM_IOCTL_VIRTGPU_CONTEXT_INIT:
        return init_context(fd, argument);
    case DRM_IOCTL_VIRTGPU_EXECBUFFER:
        return execute(fd, argument);
    case DRM_IOCTL_VIRTGPU_RESOURCE_CREATE_BLOB:
        return ((struct drm_virtgpu_resource_create_blob *)argument)->blob_mem ==
                       VIRTGPU_BLOB_MEM_HOST3D_GUEST
                   ? create_guest_blob(fd, argument)
                   : create_blob(fd, argument);
    case DRM_IOCTL_VIRTGPU_MAP:
        return map_handle(argument);
    case DRM_IOCTL_GEM_CLOSE:
        return close_handle(argument);
    default:
        return fail(ENOTTY);
    }
}

static bool is_of_node(int fd)
{
    return fd >= 0 && fd < (int)G_N_ELEMENTS(is_node) && is_node[fd];
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    void *argument;
    int ret;

    va_start(list, request);
    argument = va_arg(list, void *);
    va_end(list);
    if (!is_of_node(fd))
        return (int)syscall(SYS_ioctl, fd, request, argument);
    g_mutex_lock(&lock);
    ret = is_unplugged ? fail(ENODEV) : call(fd, request, argument);
    g_mutex_unlock(&lock);
    return ret;
}

static int open_any(const char *path, int flags, mode_t mode)
{
    int fd;

    if (strncmp(path, NODES, strlen(NODES)))
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (strcmp(path, NODE) || (owner && owner != getpid())) /* a child has no engine */
        return fail(ENOENT);
    if (!owner)
        start_engine();
    fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", flags, mode);
    if (fd >= (int)G_N_ELEMENTS(is_node)) {
        syscall(SYS_close, fd);
        return fail(EMFILE);
    }
    if (fd >= 0)
        is_node[fd] = true;
    return fd;
}

static mode_t mode_of(int flags, va_list list)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

EXPORT int open(const char *path, int flags, ...)
{
    va_list list;
    int fd;

    va_start(list, flags);
    fd = open_any(path, flags, mode_of(flags, list));
    va_end(list);
    return fd;
}

EXPORT int open64(const char *path, int flags, ...)
{
    va_list list;
    int fd;

    va_start(list, flags);
    fd = open_any(path, flags, mode_of(flags, list));
    va_end(list);
    return fd;
}

EXPORT int close(int fd)
{
    struct virtio_gpu_ctx_destroy cmd = {.hdr.type = VIRTIO_GPU_CMD_CTX_DESTROY};

    if (is_of_node(fd) && getpid() == owner) {
        g_mutex_lock(&lock);
        is_node[fd] = false;
        cmd.hdr.ctx_id = contexts[fd];
        contexts[fd] = 0;
        if (cmd.hdr.ctx_id && !is_unplugged)
            ask(&cmd, sizeof(cmd));
        g_mutex_unlock(&lock);
    }
    return (int)syscall(SYS_close, fd);
}

/* What was mapped there is not any more. */
static void forget_mappings(const void *at, size_t bytes)
{
    for (size_t i = 0; i < BLOBS; i++) {
        const char *is = blobs[i].at;

        if (!is || is < (const char *)at || is >= (const char *)at + bytes)
            continue;
        blobs[i].at = NULL;
        end_if_unused(&blobs[i]);
    }
}

/* The same pages once more. */
static void *map_blob(struct blob *blob, void *at, size_t bytes, int flags)
{
    const struct fake_range *range = g_hash_table_lookup(driver.published, &blob->offset);

    if (blob->memory) {
        blob->at =
            real_mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, blob->memory, 0);
        return blob->at;
    }
    if (!range || bytes > range->size)
        return errno = EINVAL, MAP_FAILED;
    blob->at = flags & MAP_FIXED ? mremap(range->addr, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at)
                                 : mremap(range->addr, 0, bytes, MREMAP_MAYMOVE);
    return blob->at;
}

EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    struct blob *blob;
    void *mapped;

    if (is_of_node(fd)) {
        g_mutex_lock(&lock);
        blob = find_blob((uint32_t)(offset >> 32));
        mapped = blob && blob->bytes ? map_blob(blob, at, bytes, flags) : MAP_FAILED;
        g_mutex_unlock(&lock);
        return mapped;
    }
    mapped = real_mmap(at, bytes, protection, flags, fd, offset);
    if (owner == getpid() && fd < 0 && flags & MAP_FIXED) {
        g_mutex_lock(&lock);
        forget_mappings(at, bytes);
        g_mutex_unlock(&lock);
    }
    return mapped;
}

EXPORT void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));
