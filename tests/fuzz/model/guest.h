/* SPDX-License-Identifier: MIT */
/* The memory of a fuzzed guest: rings at fixed places, of which it may make anything. */
#pragma once

#include "input.h"
#include "virtqueue.h"

#define MEM_SIZE 0x6000u /* room for a table that is too large */
#define RING     16u
#define AVAIL    0x100u
#define USED     0x200u
#define TABLE    0x400u
#define DATA     0x800u

struct guest {
    u8 mem[MEM_SIZE];
    u16 hole, hole_len; /* not mapped */
    u16 avail_idx;
    u8 changes; /* reads after which memory changes by itself */
    struct input *in;
};

static inline bool reachable(const struct guest *g, u64 iova, size_t len)
{
    if (iova > MEM_SIZE || len > MEM_SIZE - iova)
        return false;
    return iova + len <= g->hole || iova >= (u64)g->hole + g->hole_len;
}

static inline int guest_read(void *guest, u64 iova, void *buf, size_t len)
{
    struct guest *g = guest;

    if (!reachable(g, iova, len))
        return -EFAULT;
    memcpy(buf, g->mem + iova, len);
    if (g->changes) {
        u16 at = take16(g->in) % DATA;

        g->changes--;
        g->mem[at] = take8(g->in);
    }
    return 0;
}

static inline int guest_write(void *guest, u64 iova, const void *buf, size_t len)
{
    struct guest *g = guest;

    if (!reachable(g, iova, len))
        return -EFAULT;
    memcpy(g->mem + iova, buf, len);
    return 0;
}

/* A descriptor in the ring or in a table; mostly in memory, seldom at the end of all addresses. */
static inline void put_desc(struct guest *g)
{
    u8 place = take8(g->in);
    u8 *d = g->mem + (place & 0x80 ? TABLE + 16 * (place & 0x3f) : 16 * (place % RING));
    u16 addr = take16(g->in);

    vgpu_put_le64(d, addr == 0xffff ? (u64)0 - 16 : addr % MEM_SIZE);
    vgpu_put_le32(d + 8, addr == 0xfffe ? U32_MAX : take16(g->in));
    vgpu_put_le16(d + 12, take8(g->in));
    vgpu_put_le16(d + 14, take8(g->in));
}

static inline void put_avail(struct guest *g)
{
    vgpu_put_le16(g->mem + AVAIL + 4 + 2 * (g->avail_idx % RING), take8(g->in));
    vgpu_put_le16(g->mem + AVAIL + 2, ++g->avail_idx);
}

/* What a guest may do to its own memory. */
static inline void change_guest(struct guest *g, u8 op)
{
    u16 at;

    switch (op) {
    case 0:
        put_desc(g);
        break;
    case 1:
        put_avail(g);
        break;
    case 2:
        g->changes = take8(g->in);
        break;
    case 3:
        g->hole = take16(g->in) % MEM_SIZE;
        g->hole_len = take8(g->in);
        break;
    default:
        at = take16(g->in) % MEM_SIZE;
        g->mem[at] = take8(g->in);
        break;
    }
}
