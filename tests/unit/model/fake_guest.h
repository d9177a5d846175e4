/* SPDX-License-Identifier: MIT */
/*
 * A guest for the queue tests: bounded memory at an address far from 0, and a driver that fills a
 * split ring in it directly, so that it can also fill it wrongly.
 *
 * Numbers here are the specification's (virtio 1.2, 2.7), not the model's constants.
 */
#pragma once

#include <glib.h>

#include "lost.h"
#include "virtqueue.h"

#define FG_BASE  0x7f0000100000ULL
#define FG_SIZE  0x40000u
#define FG_DESC  (FG_BASE + 0x0000)
#define FG_AVAIL (FG_BASE + 0x1000)
#define FG_USED  (FG_BASE + 0x2000)
#define FG_TABLE (FG_BASE + 0x4000)  /* indirect tables */
#define FG_DATA  (FG_BASE + 0x10000) /* buffers */

#define F_NEXT     1
#define F_WRITE    2
#define F_INDIRECT 4

typedef struct fake_guest fake_guest;

/* Called after an access: plays the other CPUs of the guest. */
typedef void (*fake_guest_hook)(fake_guest *g, u64 iova, size_t len);

struct fake_guest {
    u8 *mem;
    u8 *nread; /* how often each byte was read by the device */
    u16 size;
    u16 avail_idx;
    u64 fail_start, fail_end; /* range that cannot be accessed */
    guint reads, writes;
    fake_guest_hook on_read, on_write;
    void *hook_data;
    struct vgpu_vq vq;
    struct vgpu_vq_desc *table;
    struct vgpu_vq_chain chain;
};

extern const struct vgpu_guest_ops fake_guest_ops;

/* A guest with an empty ring of @size entries and a queue that is enabled on it. */
fake_guest *fake_guest_new(u16 size);
void fake_guest_free(fake_guest *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(fake_guest, fake_guest_free)

/* The guest's own view of its memory; an address outside of it ends the test. */
u8 *fg_at(fake_guest *g, u64 iova);
u16 fg_get16(fake_guest *g, u64 iova);
u32 fg_get32(fake_guest *g, u64 iova);
void fg_put16(fake_guest *g, u64 iova, u16 value);

/* Writes the descriptor at @at, which is FG_DESC or an indirect table, plus 16 * @i. */
void fg_desc(fake_guest *g, u64 at, u32 i, u64 addr, u32 len, u16 flags, u16 next);
/* Puts @head on the available ring. */
void fg_offer(fake_guest *g, u16 head);
/* A one-descriptor request of @len bytes at FG_DATA, offered as @head. */
void fg_offer_simple(fake_guest *g, u16 head, u32 len);
/* Makes all bytes in [@start, @start + @len) inaccessible to the device. */
void fg_unmap(fake_guest *g, u64 start, u64 len);

void fg_set_used_event(fake_guest *g, u16 value);
u16 fg_avail_event(fake_guest *g);
u16 fg_used_idx(fake_guest *g);
u32 fg_used_id(fake_guest *g, u16 i);
u32 fg_used_len(fake_guest *g, u16 i);

/* vgpu_vq_pop() and vgpu_vq_push() with the guest's own scratch. */
int fg_pop(fake_guest *g, void *buf, size_t size, bool truncate);
int fg_push(fake_guest *g, const void *buf, size_t size, bool *interrupt);
