/* SPDX-License-Identifier: MIT */
/* Memory of every kind in the fake engine, to be published in the window, or refused. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "engine_peer.h"

typedef enum {
    MEMORY_MEMFD,         /* shared, writable: virglrenderer's memory of a SHM blob */
    MEMORY_UDMABUF,       /* a dma-buf of memfd pages */
    MEMORY_UDMABUF_HUGE,  /* the same of huge pages of 2 MiB */
    MEMORY_UDMABUF_TWICE, /* half of that, twice */
    MEMORY_TEST_BUFFER,   /* of test_buffer.h, and not touched by the engine since it was mapped */
    MEMORY_MEMFD_PRIVATE, /* MAP_PRIVATE */
    MEMORY_MEMFD_READ_ONLY, /* shared, PROT_READ */
    MEMORY_ANONYMOUS,       /* private anonymous */
    MEMORY_HUGETLB_PRIVATE,
    MEMORY_FILE,        /* shared mapping of a file on disk or in devtmpfs */
    MEMORY_HALF_MAPPED, /* a memfd with a hole in the middle of the mapping */
    MEMORY_TWO_FILES,   /* two memfds side by side */
} MemoryKind;

/*
 * Allocates in the engine, filled with a different pattern for each page (memory_pattern()), and
 * keeps the descriptor. Returns 0 or a negative errno.
 */
int peer_alloc(EnginePeer *peer, MemoryKind kind, uint64_t size, uint64_t *addr);
uint32_t memory_pattern(uint64_t page, uint64_t word);

/* Copies between the test and the engine's memory; any size. */
int peer_peek(EnginePeer *peer, uint64_t addr, void *buf, size_t len);
int peer_poke(EnginePeer *peer, uint64_t addr, const void *buf, size_t len);
int peer_munmap(EnginePeer *peer, uint64_t addr, uint64_t size);
/* Punches a hole into the latest memfd of MEMORY_MEMFD; @offset in it. */
int peer_punch_hole(EnginePeer *peer, uint64_t offset, uint64_t size);
/* Shortens that memfd. */
int peer_truncate(EnginePeer *peer, uint64_t size);

#endif /* ENGINE_MEMORY_H */
