/* SPDX-License-Identifier: MIT */
/* What the kernel tells of a DMA buffer by a descriptor of it. */
#ifndef GUARD_DMABUF_H
#define GUARD_DMABUF_H

#include <stdint.h>

/*
 * How many references there are to what @fd is one of: descriptors and mappings of all processes,
 * and devices that have imported it. 0: it is no DMA buffer, or that can't be told.
 */
uint64_t dmabuf_references(int fd);

/* Its size in bytes; 0: that can't be told. */
uint64_t dmabuf_bytes(int fd);

#endif /* GUARD_DMABUF_H */
