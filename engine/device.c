// SPDX-License-Identifier: MIT
#include "device.h"

#include "device_v1.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int device_control(int fd, unsigned long request, void *arg)
{
    int ret;

    do {
        ret = ioctl(fd, request, arg);
    } while (ret < 0 && errno == EINTR);

    return ret < 0 ? -errno : 0;
}

static int device_ioctl(struct vgpu_transport *transport, unsigned long request, void *arg)
{
    return device_control(transport->fd, request, arg);
}

static ssize_t device_read(int fd, void *buf, size_t size)
{
    ssize_t n;

    do {
        n = read(fd, buf, size);
    } while (n < 0 && errno == EINTR);

    return n < 0 ? -errno : n;
}

static int device_info(struct vgpu_transport *transport, struct vgpu_engine_info *info)
{
    int ret;

    memset(info, 0, sizeof(*info));
    info->argsz = sizeof(*info);
    ret = device_ioctl(transport, VGPU_ENGINE_INFO, info);
    transport->version = info->api_version;
    return ret;
}

static int device_attach(struct vgpu_transport *transport)
{
    return device_ioctl(transport, VGPU_ENGINE_ATTACH, NULL);
}

static int device_ready(struct vgpu_transport *transport, uint32_t num_capsets, uint64_t renderer)
{
    struct vgpu_engine_ready ready = {
        .argsz = sizeof(ready),
        .num_capsets = num_capsets,
        .renderer = renderer,
    };

    return device_ioctl(transport, VGPU_ENGINE_READY, &ready);
}

static int device_reset_done(struct vgpu_transport *transport, uint64_t epoch)
{
    struct vgpu_engine_epoch done = {.argsz = sizeof(done), .epoch = epoch};

    return device_ioctl(transport, VGPU_ENGINE_RESET_DONE, &done);
}

static int device_exchange(struct vgpu_transport *transport, struct vgpu_queue_exchange *exchange)
{
    const struct device_v1 v1 = {transport->fd, device_control, device_read};

    if (transport->version == 1)
        return device_v1_exchange(&v1, exchange);
    exchange->argsz = sizeof(*exchange);
    return device_ioctl(transport, VGPU_ENGINE_QUEUE_EXCHANGE, exchange);
}

static int device_push(struct vgpu_transport *transport, uint64_t epoch, uint32_t queue,
                       uint32_t token, const void *response, size_t size, int connection)
{
    struct vgpu_queue_answer answer = {
        .queue = queue,
        .token = token,
        .buf = (uintptr_t)response,
        .size = (uint32_t)size,
    };
    struct vgpu_queue_exchange exchange = {
        .flags = connection >= 0 ? VGPU_EXCHANGE_CONNECTED : 0,
        .epoch = epoch,
        .answers = (uintptr_t)&answer,
        .nanswers = 1,
        .wait_fd = connection,
    };
    int ret = device_exchange(transport, &exchange);

    return ret < 0 ? ret : answer.result;
}

static int device_pin(struct vgpu_transport *transport, uint64_t epoch,
                      const struct vgpu_mem_entry *entries, uint32_t nentries, uint64_t *size,
                      uint64_t *offset)
{
    struct vgpu_mem_pin pin = {
        .argsz = sizeof(pin),
        .flags = VGPU_MEM_WRITE,
        .epoch = epoch,
        .entries = (uintptr_t)entries,
        .nentries = nentries,
    };
    int ret = device_ioctl(transport, VGPU_ENGINE_MEM_PIN, &pin);

    if (ret == 0) {
        *size = pin.size;
        *offset = pin.offset;
    }
    return ret;
}

static int device_unpin(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset)
{
    struct vgpu_mem_unpin unpin = {.argsz = sizeof(unpin), .epoch = epoch, .offset = offset};

    return device_ioctl(transport, VGPU_ENGINE_MEM_UNPIN, &unpin);
}

static int device_export(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset, int *fd)
{
    struct vgpu_mem_export export = {.argsz = sizeof(export), .epoch = epoch, .offset = offset};
    int ret = device_ioctl(transport, VGPU_ENGINE_MEM_EXPORT, &export);

    *fd = ret < 0 ? -1 : export.fd;
    return ret;
}

static int device_map(struct vgpu_transport *transport, uint64_t offset, uint64_t size, void **addr)
{
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, transport->fd, (off_t)offset);

    if (map == MAP_FAILED)
        return -errno;
    *addr = map;
    return 0;
}

static void device_unmap(struct vgpu_transport *transport G_GNUC_UNUSED, void *addr, uint64_t size)
{
    munmap(addr, size);
}

static int device_range(struct vgpu_transport *transport, unsigned long request, uint64_t epoch,
                        uint64_t offset, uint64_t size, void *addr)
{
    struct vgpu_window_range range = {
        .argsz = sizeof(range),
        .epoch = epoch,
        .offset = offset,
        .size = size,
        .addr = (uintptr_t)addr,
    };

    return device_ioctl(transport, request, &range);
}

static int device_publish(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset,
                          uint64_t size, void *addr)
{
    return device_range(transport, VGPU_ENGINE_WINDOW_PUBLISH, epoch, offset, size, addr);
}

static int device_unpublish(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset,
                            uint64_t size)
{
    return device_range(transport, VGPU_ENGINE_WINDOW_UNPUBLISH, epoch, offset, size, NULL);
}

static int device_display(struct vgpu_transport *transport, struct vgpu_display *display)
{
    memset(display, 0, sizeof(*display));
    display->argsz = sizeof(*display);
    return device_ioctl(transport, VGPU_ENGINE_DISPLAY, display);
}

static int device_set_scanout(struct vgpu_transport *transport, struct vgpu_scanout *scanout)
{
    scanout->argsz = sizeof(*scanout);
    return device_ioctl(transport, VGPU_ENGINE_SET_SCANOUT, scanout);
}

static int device_fail(struct vgpu_transport *transport, const char *reason)
{
    struct vgpu_engine_fail fail = {.argsz = sizeof(fail)};

    /* The driver accepts one line of printable ASCII. */
    for (size_t i = 0; i + 1 < sizeof(fail.reason) && reason[i]; i++)
        fail.reason[i] = g_ascii_isprint(reason[i]) ? reason[i] : '?';

    return device_ioctl(transport, VGPU_ENGINE_FAIL, &fail);
}

static int device_state_save(struct vgpu_transport *transport, uint64_t epoch, const void *state,
                             size_t size)
{
    struct vgpu_engine_state arg = {
        .argsz = sizeof(arg),
        .epoch = epoch,
        .buf = (uintptr_t)state,
        .size = size,
    };

    return device_ioctl(transport, VGPU_ENGINE_STATE_SAVE, &arg);
}

static int device_state_load(struct vgpu_transport *transport, uint64_t epoch, void *state,
                             uint64_t *size)
{
    struct vgpu_engine_state arg = {
        .argsz = sizeof(arg),
        .epoch = epoch,
        .buf = (uintptr_t)state,
        .size = *size,
    };
    int ret = device_ioctl(transport, VGPU_ENGINE_STATE_LOAD, &arg);

    *size = arg.size;
    return ret;
}

static const struct vgpu_transport_ops device_ops = {
    .info = device_info,
    .attach = device_attach,
    .ready = device_ready,
    .reset_done = device_reset_done,
    .exchange = device_exchange,
    .push = device_push,
    .pin = device_pin,
    .unpin = device_unpin,
    .export = device_export,
    .map = device_map,
    .unmap = device_unmap,
    .publish = device_publish,
    .unpublish = device_unpublish,
    .display = device_display,
    .set_scanout = device_set_scanout,
    .fail = device_fail,
    .state_save = device_state_save,
    .state_load = device_state_load,
};

struct vgpu_transport *device_adopt(int fd, GError **error)
{
    struct vgpu_transport *transport;

    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "file descriptor %d is not usable: %s", fd, g_strerror(errno));
        return NULL;
    }
    if (!g_unix_set_fd_nonblocking(fd, TRUE, error))
        return NULL;

    transport = g_new0(struct vgpu_transport, 1);
    transport->ops = &device_ops;
    transport->fd = fd;
    return transport;
}

struct vgpu_transport *device_open(const char *path, GError **error)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno), "cannot open %s: %s", path,
                    g_strerror(errno));
        return NULL;
    }
    return device_adopt(fd, error);
}

void device_close(struct vgpu_transport *transport)
{
    if (!transport)
        return;
    close(transport->fd);
    g_free(transport);
}
