/* SPDX-License-Identifier: MIT */
/* Memory of an engine that must not be shown to a guest, of every kind that a process can have. */
#ifndef FORBIDDEN_MEMORY_H
#define FORBIDDEN_MEMORY_H

#include "engine_peer.h"

typedef struct {
    const char *name;
    /* Maps @size bytes, anywhere or, if @at is not NULL, there. The address, or MAP_FAILED. */
    void *(*map)(void *at, size_t size);
} ForbiddenMemory;

/* Terminated by a NULL name. */
extern const ForbiddenMemory forbidden_memory[];

/* Maps it in the engine, at *addr if that is not 0. -ENOSYS if this kernel has no such memory. */
int peer_map_forbidden(EnginePeer *peer, const ForbiddenMemory *kind, uint64_t size,
                       uint64_t *addr);

#endif /* FORBIDDEN_MEMORY_H */
