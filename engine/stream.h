/* SPDX-License-Identifier: MIT */
/*
 * Reading memory that is not cached. A blob that is shown may lie in a card's VRAM, mapped
 * write-combined: there each plain load goes over the bus by itself, while streaming loads fetch 64
 * bytes at a time. From cached memory it reads as memcpy() does.
 */
#ifndef ENGINE_STREAM_H
#define ENGINE_STREAM_H

#include <stddef.h>

/* As memcpy(). A processor without streaming loads (SSE4.1) uses just that. */
void stream_copy(void *dest, const void *source, size_t size);

#endif /* ENGINE_STREAM_H */
