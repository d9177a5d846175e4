/* SPDX-License-Identifier: MIT */
/* Guest memory behind a resource: pinned by the driver, mapped here in one piece. */
#ifndef ENGINE_BACKING_H
#define ENGINE_BACKING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct engine;
struct vgpu_mem_entry;
struct request;

/**
 * struct backing
 * @iov: guest memory pinned and mapped, in one piece; iov_base is NULL if there is none
 * @pin_offset: the driver's name of that memory
 * @entries, @nr_entries: where it is in the guest
 */
struct backing {
    struct iovec iov;
    uint64_t pin_offset;
    struct vgpu_mem_entry *entries;
    uint32_t nr_entries;
};

/*
 * Reads @nr_entries entries that follow the first @cmd_size bytes of the request and fills
 * @backing. Returns VIRTIO_GPU_RESP_OK_NODATA or an error response.
 */
uint32_t backing_get(struct engine *engine, struct backing *backing, const struct request *request,
                     size_t cmd_size, uint32_t nr_entries);

/* The reverse; does nothing without a backing. */
void backing_put(struct engine *engine, struct backing *backing);

#endif /* ENGINE_BACKING_H */
