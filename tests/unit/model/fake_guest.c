/* SPDX-License-Identifier: MIT */
#include "fake_guest.h"

static bool is_reachable(const fake_guest *g, u64 iova, size_t len)
{
    /* The model's accesses always have a length, and never wrap. */
    g_assert_cmpuint(len, >, 0);
    g_assert_cmpuint(iova + (len - 1), >=, iova);
    if (iova < FG_BASE || iova - FG_BASE > FG_SIZE || len > FG_SIZE - (iova - FG_BASE))
        return false;
    return iova + len <= g->fail_start || iova >= g->fail_end;
}

static int fake_read(void *guest, u64 iova, void *buf, size_t len)
{
    fake_guest *g = guest;

    g->reads++;
    if (!is_reachable(g, iova, len))
        return -EFAULT;
    memcpy(buf, g->mem + (iova - FG_BASE), len);
    for (size_t i = 0; i < len; i++)
        g->nread[iova - FG_BASE + i]++;
    if (g->on_read)
        g->on_read(g, iova, len);
    return 0;
}

static int fake_write(void *guest, u64 iova, const void *buf, size_t len)
{
    fake_guest *g = guest;

    g->writes++;
    if (!is_reachable(g, iova, len))
        return -EFAULT;
    memcpy(g->mem + (iova - FG_BASE), buf, len);
    if (g->on_write)
        g->on_write(g, iova, len);
    return 0;
}

const struct vgpu_guest_ops fake_guest_ops = {.read = fake_read, .write = fake_write};

fake_guest *fake_guest_new(u16 size)
{
    fake_guest *g = g_new0(fake_guest, 1);

    g->mem = g_malloc0(FG_SIZE);
    g->nread = g_malloc0(FG_SIZE);
    g->table = g_new0(struct vgpu_vq_desc, VGPU_VQ_MAX_DESCS);
    g->size = size;
    vgpu_vq_reset(&g->vq);
    g->vq.desc = FG_DESC;
    g->vq.avail = FG_AVAIL;
    g->vq.used = FG_USED;
    g->vq.size = size;
    g->vq.indirect = true;
    g->vq.enabled = true;
    g_assert_true(vgpu_vq_valid(&g->vq));
    return g;
}

void fake_guest_free(fake_guest *g)
{
    g_free(g->mem);
    g_free(g->nread);
    g_free(g->table);
    g_free(g);
}

u8 *fg_at(fake_guest *g, u64 iova)
{
    g_assert_cmpuint(iova, >=, FG_BASE);
    g_assert_cmpuint(iova - FG_BASE, <, FG_SIZE);
    return g->mem + (iova - FG_BASE);
}

u16 fg_get16(fake_guest *g, u64 iova)
{
    const u8 *p = fg_at(g, iova);

    return (u16)(p[0] + 256 * p[1]);
}

u32 fg_get32(fake_guest *g, u64 iova)
{
    return fg_get16(g, iova) + 65536u * fg_get16(g, iova + 2);
}

void fg_put16(fake_guest *g, u64 iova, u16 value)
{
    u8 *p = fg_at(g, iova);

    p[0] = value % 256;
    p[1] = value / 256;
}

static void fg_put32(fake_guest *g, u64 iova, u32 value)
{
    fg_put16(g, iova, value % 65536);
    fg_put16(g, iova + 2, value / 65536);
}

void fg_desc(fake_guest *g, u64 at, u32 i, u64 addr, u32 len, u16 flags, u16 next)
{
    u64 d = at + 16 * (u64)i;

    fg_put32(g, d, (u32)addr);
    fg_put32(g, d + 4, addr >> 32);
    fg_put32(g, d + 8, len);
    fg_put16(g, d + 12, flags);
    fg_put16(g, d + 14, next);
}

void fg_offer(fake_guest *g, u16 head)
{
    fg_put16(g, FG_AVAIL + 4 + 2 * (g->avail_idx % g->size), head);
    fg_put16(g, FG_AVAIL + 2, ++g->avail_idx);
}

void fg_offer_simple(fake_guest *g, u16 head, u32 len)
{
    fg_desc(g, FG_DESC, head, FG_DATA, len, 0, 0);
    fg_offer(g, head);
}

void fg_unmap(fake_guest *g, u64 start, u64 len)
{
    g->fail_start = start;
    g->fail_end = start + len;
}

void fg_set_used_event(fake_guest *g, u16 value)
{
    fg_put16(g, FG_AVAIL + 4 + 2 * g->size, value);
}

u16 fg_avail_event(fake_guest *g)
{
    return fg_get16(g, FG_USED + 4 + 8 * g->size);
}

u16 fg_used_idx(fake_guest *g)
{
    return fg_get16(g, FG_USED + 2);
}

u32 fg_used_id(fake_guest *g, u16 i)
{
    return fg_get32(g, FG_USED + 4 + 8 * (i % g->size));
}

u32 fg_used_len(fake_guest *g, u16 i)
{
    return fg_get32(g, FG_USED + 8 + 8 * (i % g->size));
}

int fg_pop(fake_guest *g, void *buf, size_t size, bool truncate)
{
    return vgpu_vq_pop(&g->vq, &fake_guest_ops, g, g->table, &g->chain, buf, size, truncate);
}

int fg_push(fake_guest *g, const void *buf, size_t size, bool *interrupt)
{
    return vgpu_vq_push(&g->vq, &fake_guest_ops, g, &g->chain, buf, size, interrupt);
}
