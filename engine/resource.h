/* SPDX-License-Identifier: MIT */
/*
 * Resources: what the guest shares with the GPU. Blobs of host and of guest memory, and 2D
 * resources (image.h).
 */
#ifndef ENGINE_RESOURCE_H
#define ENGINE_RESOURCE_H

#include "backing.h"

#include <linux/virtio_gpu.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct host_memory;
struct pixel_format;

/* Their numbers are those of saved states. */
enum resource_kind {
    RESOURCE_2D = 0,
    RESOURCE_BLOB = 2,
};

/**
 * struct resource
 * @size: bytes of a blob
 * @blob_flags: VIRTIO_GPU_BLOB_FLAG_*
 * @width, @height: of a 2D resource
 * @image, @image_size, @format: its host's copy; NULL without a display
 * @shm: host shared memory, counted in engine->shm_bytes
 * @maker: serial of the context in which it was made, if it is @shm or lent
 * @lent_at: where a CUDA program has this guest memory, which it lends to its worker; 0: it does
 * not
 * @is_borrowed: the worker may have it (parking.c)
 * @only_guest: a blob of guest memory alone
 * @lost: it was in another host's memory, before the VM was moved
 * @restored: a saved state has given it its content
 * @backing: guest memory behind it
 * @memory: of a blob that is not virglrenderer's; NULL: it is
 * @map_users, @map_addr, @map_size: virglrenderer has it mapped; see resource_map()
 * @mapped: it is in the window at @window_offset
 */
struct resource {
    struct engine *engine;
    uint32_t id;
    enum resource_kind kind;
    uint64_t size;
    uint32_t blob_flags;
    uint32_t width;
    uint32_t height;
    uint8_t *image;
    uint64_t image_size;
    const struct pixel_format *format;
    bool shm;
    uint64_t maker;
    uint64_t lent_at;
    bool is_borrowed;
    bool only_guest;
    bool lost;
    bool restored;
    struct backing backing;
    struct host_memory *memory;
    unsigned int map_users;
    void *map_addr;
    uint64_t map_size;
    bool mapped;
    uint64_t window_offset;
    uint64_t window_size;
};

struct resource *resource_find(struct engine *engine, uint32_t id);

/* Guest memory that this context lends to its worker there; NULL: none. */
struct resource *resource_find_lent(struct engine *engine, uint64_t maker, uint64_t lent_at);

/* Whether virglrenderer knows it. */
bool resource_has_renderer(const struct resource *resource);

/*
 * How handlers make one: whether the guest may use @id for it, a new object, and its insertion into
 * engine->resources.
 */
uint32_t resource_check_new_id(struct engine *engine, uint32_t id);
struct resource *resource_new(struct engine *engine, uint32_t id, enum resource_kind kind);
void resource_add(struct resource *resource);

/* Makes virglrenderer's object of a blob, with guest memory or NULL: 0, or its error. */
int resource_make_blob(const struct virtio_gpu_resource_create_blob *cmd,
                       const struct iovec *backing);

/*
 * Maps the host's memory of a blob into this process by virglrenderer, which does so once: for the
 * window, for the picture, or for both. Fills in @map_addr and @map_size. False: it cannot be
 * mapped. resource_unmap() once for each that returned true.
 *
 * Memory that a worker exports as an opaque descriptor can be mapped by Vulkan only. virglrenderer
 * then makes an instance and a device in this process. A worker that is owned could request that
 * on any GPU, so it is refused unless the driver exports nothing else.
 */
bool resource_map(struct resource *resource);
void resource_unmap(struct resource *resource);

/*
 * As resource_map(), of plain shared memory that the context with this serial has made, as Mesa
 * makes its rings. NULL: it has not, or the resource is of another kind. What is written to a ring
 * must not reach another program's memory, so it is not enough that the guest's kernel has attached
 * it to the context.
 *
 * While the guest has it in its window, as it has its rings, this makes no system call.
 */
void *resource_map_shm(struct engine *engine, uint64_t maker, uint32_t id, uint64_t *size);

/*
 * The destructor for engine->resources. It returns the guest's memory; virglrenderer must have
 * released it before.
 */
void resource_free(void *resource);

#endif /* ENGINE_RESOURCE_H */
