/* SPDX-License-Identifier: MIT */
/*
 * What the engine needs from the driver, as a table of calls, so that unit tests can play the
 * driver. The meaning of each is that of the ioctl of the same name in uapi/linux/vgpu.h.
 *
 * All return 0 or a negative errno. None blocks except exchange(), which sleeps for as long as it
 * is told, or less. push() may be called from any thread, the others only from the main one.
 */
#ifndef ENGINE_TRANSPORT_H
#define ENGINE_TRANSPORT_H

#include <linux/vgpu.h>
#include <stddef.h>
#include <stdint.h>

struct vgpu_transport;

struct vgpu_transport_ops {
    int (*info)(struct vgpu_transport *transport, struct vgpu_engine_info *info);
    int (*attach)(struct vgpu_transport *transport);
    int (*ready)(struct vgpu_transport *transport, uint32_t num_capsets, uint64_t renderer);
    int (*reset_done)(struct vgpu_transport *transport, uint64_t epoch);
    /* exchange->argsz need not be set. */
    int (*exchange)(struct vgpu_transport *transport, struct vgpu_queue_exchange *exchange);
    /* An exchange of one answer. -EPIPE: @connection has hung up, and nothing is done; -1: none. */
    int (*push)(struct vgpu_transport *transport, uint64_t epoch, uint32_t queue, uint32_t token,
                const void *response, size_t size, int connection);
    int (*pin)(struct vgpu_transport *transport, uint64_t epoch,
               const struct vgpu_mem_entry *entries, uint32_t nentries, uint64_t *size,
               uint64_t *offset);
    int (*unpin)(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset);
    /* A file of what pin() named, for a process of the engine's; the caller closes it. */
    int (*export)(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset, int *fd);
    /* Maps what pin() named; unmap() reverses it. */
    int (*map)(struct vgpu_transport *transport, uint64_t offset, uint64_t size, void **addr);
    void (*unmap)(struct vgpu_transport *transport, void *addr, uint64_t size);
    int (*publish)(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset, uint64_t size,
                   void *addr);
    int (*unpublish)(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset,
                     uint64_t size);
    /* The structures' argsz need not be set. The picture is mapped with map(), at
     * VGPU_PICTURE_OFFSET. */
    int (*display)(struct vgpu_transport *transport, struct vgpu_display *display);
    int (*set_scanout)(struct vgpu_transport *transport, struct vgpu_scanout *scanout);
    int (*fail)(struct vgpu_transport *transport, const char *reason);
    int (*state_save)(struct vgpu_transport *transport, uint64_t epoch, const void *state,
                      size_t size);
    /* *size: in, the room at @state; out, what it needs. */
    int (*state_load)(struct vgpu_transport *transport, uint64_t epoch, void *state,
                      uint64_t *size);
};

struct vgpu_transport {
    const struct vgpu_transport_ops *ops;
    int fd;           /* of the driver */
    uint32_t version; /* of the driver, as info() has said last */
};

#endif /* ENGINE_TRANSPORT_H */
