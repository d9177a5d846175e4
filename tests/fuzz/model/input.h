/* SPDX-License-Identifier: MIT */
/* The fuzzer's bytes, taken from the front; where none are left they are 0. */
#pragma once

#include <stdlib.h>

#include "platform.h"

struct input {
    const u8 *data;
    size_t left;
};

static inline u8 take8(struct input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->data++;
}

static inline u16 take16(struct input *in)
{
    u16 low = take8(in);

    return (u16)(low | take8(in) << 8);
}

/* Fills @buf, up to @len bytes of it with input. */
static inline void take_bytes(struct input *in, u8 *buf, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buf[i] = take8(in);
}

/* What must hold whatever a guest does. */
#define INVARIANT(condition)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
