// SPDX-License-Identifier: MIT
#include "stream.h"

#include <smmintrin.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 16u

/* @source is aligned; whole blocks only. */
__attribute__((target("sse4.1"))) static void copy_blocks(uint8_t *dest, const uint8_t *source,
                                                          size_t blocks)
{
    /* What an earlier streaming load has fetched may be old. */
    _mm_mfence();
    for (; blocks > 0; blocks--, dest += BLOCK, source += BLOCK) {
        /* The load does not write, but its prototype predates const. */
        __m128i block = _mm_stream_load_si128((__m128i *)(uintptr_t)source);

        _mm_storeu_si128((__m128i *)dest, block);
    }
}

void stream_copy(void *dest, const void *source, size_t size)
{
    size_t head = -(uintptr_t)source % BLOCK;
    uint8_t *to = dest;
    const uint8_t *from = source;
    size_t whole;

    if (!__builtin_cpu_supports("sse4.1") || size < head + BLOCK) {
        memcpy(dest, source, size);
        return;
    }
    memcpy(to, from, head);
    whole = (size - head) / BLOCK * BLOCK;
    copy_blocks(to + head, from + head, whole / BLOCK);
    memcpy(to + head + whole, from + head + whole, size - head - whole);
}
