/* SPDX-License-Identifier: MIT */
/*
 * Reading memory that is not cached. A displayed blob may be in a card's VRAM, mapped
 * write-combined. There each plain load is a bus access, while streaming loads fetch 64 bytes at a
 * time. Cached memory is read as by memcpy().
 */
#ifndef ENGINE_STREAM_H
#define ENGINE_STREAM_H

#include <stddef.h>

/* As memcpy(). Processors without streaming loads (SSE4.1) use memcpy(). */
void stream_copy(void *dest, const void *source, size_t size);

#endif /* ENGINE_STREAM_H */
