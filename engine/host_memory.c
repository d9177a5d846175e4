// SPDX-License-Identifier: MIT
#include "host_memory.h"

#include "engine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool host_memory_has_room(const struct engine *engine, uint64_t bytes)
{
    uint64_t limit = 2 * engine->info.window_bytes;

    return bytes <= limit && engine->shm_bytes <= limit - bytes &&
           engine->mappings < ENGINE_MAX_MAPPINGS;
}

static struct host_memory *map_descriptor(struct engine *engine, int fd, uint64_t bytes)
{
    void *at = host_memory_has_room(engine, bytes)
                   ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
    struct host_memory *memory;

    if (at == MAP_FAILED)
        return NULL;
    memory = g_new0(struct host_memory, 1);
    *memory = (struct host_memory){engine, 1, at, bytes};
    engine->shm_bytes += bytes;
    engine->mappings++;
    return memory;
}

struct host_memory *host_memory_new(struct engine *engine, uint64_t bytes)
{
    int fd = memfd_create("vgpu-engine", MFD_CLOEXEC);
    struct host_memory *memory =
        fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 ? map_descriptor(engine, fd, bytes) : NULL;

    if (fd >= 0)
        close(fd);
    return memory;
}

struct host_memory *host_memory_adopt(struct engine *engine, int fd, uint64_t bytes)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;

    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 ||
        (uint64_t)st.st_size != bytes)
        return NULL;
    return map_descriptor(engine, fd, bytes);
}

struct host_memory *host_memory_use(struct host_memory *memory)
{
    memory->users++;
    return memory;
}

void host_memory_leave(struct host_memory *memory)
{
    if (!memory || --memory->users > 0)
        return;
    munmap(memory->at, memory->bytes);
    memory->engine->shm_bytes -= memory->bytes;
    memory->engine->mappings--;
    g_free(memory);
}
