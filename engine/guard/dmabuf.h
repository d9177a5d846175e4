/* SPDX-License-Identifier: MIT */
/* What the kernel reports about a DMA buffer by its descriptor. */
#ifndef GUARD_DMABUF_H
#define GUARD_DMABUF_H

#include <stdint.h>

/*
 * The number of references to the object of @fd: descriptors and mappings of all processes, and
 * devices that have imported it. 0: it is not a DMA buffer, or unknown.
 */
uint64_t dmabuf_references(int fd);

/* Its size in bytes; 0: unknown. */
uint64_t dmabuf_bytes(int fd);

#endif /* GUARD_DMABUF_H */
