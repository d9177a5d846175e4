/* SPDX-License-Identifier: MIT */
/*
 * Memory of the host that a resource shows to the guest, and that is not virglrenderer's: it is
 * shared memory of a fixed size, mapped into this process. Resources and CUDA contexts share it; it
 * is there until the last of them has ended.
 */
#ifndef ENGINE_HOST_MEMORY_H
#define ENGINE_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct engine;

struct host_memory {
    struct engine *engine;
    unsigned int users;
    void *at;
    uint64_t bytes;
};

/*
 * Whether there is room for @bytes more in engine->shm_bytes, and for their mapping. It is useful
 * only in the window; a factor leaves room for what is not mapped yet.
 */
bool host_memory_has_room(const struct engine *engine, uint64_t bytes);

/* New memory, with one user; NULL: there is none. */
struct host_memory *host_memory_new(struct engine *engine, uint64_t bytes);

/*
 * The same of a worker's file, which the caller closes. NULL: it is no memory of exactly so many
 * bytes, or somebody could cut it off, which would end whoever reads there.
 */
struct host_memory *host_memory_adopt(struct engine *engine, int fd, uint64_t bytes);

struct host_memory *host_memory_use(struct host_memory *memory);
void host_memory_leave(struct host_memory *memory);

#endif /* ENGINE_HOST_MEMORY_H */
