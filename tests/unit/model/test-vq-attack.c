/* SPDX-License-Identifier: MIT */
/* Guests that break the rules, or change memory while the device reads it. */
#include "fake_guest.h"

#define BUF_SIZE 0x10000

/* One way of breaking a rule, on a ring of 8 entries. */
struct attack {
    const char *name;
    void (*prepare)(fake_guest *g);
};

static void head_out_of_ring(fake_guest *g)
{
    fg_offer(g, 8);
}

static void head_far_out_of_ring(fake_guest *g)
{
    fg_offer(g, 0xffff);
}

static void index_too_far(fake_guest *g)
{
    fg_put16(g, FG_AVAIL + 2, 9);
}

static void index_backwards(fake_guest *g)
{
    u8 buf[8];

    fg_offer_simple(g, 0, 8);
    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
    fg_put16(g, FG_AVAIL + 2, 0);
}

static void head_twice(fake_guest *g)
{
    u8 buf[8];

    fg_offer_simple(g, 3, 8);
    fg_offer_simple(g, 3, 8);
    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
}

static void loop_direct(fake_guest *g)
{
    for (u16 i = 0; i < 8; i++)
        fg_desc(g, FG_DESC, i, FG_DATA, 8, F_NEXT, (i + 1) % 8);
    fg_offer(g, 0);
}

static void loop_self(fake_guest *g)
{
    fg_desc(g, FG_DESC, 1, FG_DATA, 8, F_NEXT, 1);
    fg_offer(g, 1);
}

static void open_loop(fake_guest *g, u64 iova, size_t len)
{
    (void)len;
    if (iova == FG_DESC + 16 * 7)
        fg_desc(g, FG_DESC, 0, FG_DATA, 8, 0, 0);
}

static void loop_that_opens(fake_guest *g)
{
    loop_direct(g);
    g->on_read = open_loop;
}

static void next_out_of_ring(fake_guest *g)
{
    fg_desc(g, FG_DESC, 0, FG_DATA, 8, F_NEXT, 8);
    /* Memory after the ring would be a valid entry. */
    fg_desc(g, FG_DESC, 8, FG_DATA, 8, 0, 0);
    fg_offer(g, 0);
}

static void length_zero(fake_guest *g)
{
    fg_offer_simple(g, 0, 0);
}

static void length_zero_at_zero(fake_guest *g)
{
    fg_desc(g, FG_DESC, 0, 0, 0, F_WRITE, 0);
    fg_offer(g, 0);
}

static void length_zero_writable(fake_guest *g)
{
    fg_desc(g, FG_DESC, 0, FG_DATA, 8, F_NEXT, 1);
    fg_desc(g, FG_DESC, 1, FG_DATA, 0, F_WRITE, 0);
    fg_offer(g, 0);
}

static void address_wraps(fake_guest *g)
{
    fg_desc(g, FG_DESC, 0, 0ULL - 16, 17, F_WRITE, 0);
    fg_offer(g, 0);
}

static void readable_after_writable(fake_guest *g)
{
    fg_desc(g, FG_DESC, 0, FG_DATA, 8, F_NEXT | F_WRITE, 1);
    fg_desc(g, FG_DESC, 1, FG_DATA, 8, 0, 0);
    fg_offer(g, 0);
}

static void sum_overflows(fake_guest *g)
{
    fg_desc(g, FG_DESC, 0, FG_DATA, 0xffffffff, F_NEXT, 1);
    fg_desc(g, FG_DESC, 1, FG_DATA, 1, F_WRITE, 0);
    fg_offer(g, 0);
}

static void offer_table(fake_guest *g, u64 addr, u32 len, u16 flags)
{
    fg_desc(g, FG_DESC, 0, addr, len, F_INDIRECT | flags, 1);
    fg_desc(g, FG_DESC, 1, FG_DATA, 8, 0, 0);
    fg_offer(g, 0);
}

static void table_not_negotiated(fake_guest *g)
{
    g->vq.indirect = false;
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, 0, 0);
    offer_table(g, FG_TABLE, 16, 0);
}

static void table_with_next(fake_guest *g)
{
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, 0, 0);
    offer_table(g, FG_TABLE, 16, F_NEXT);
}

static void table_in_table(fake_guest *g)
{
    fg_desc(g, FG_TABLE, 0, FG_TABLE + 16, 16, F_INDIRECT, 0);
    fg_desc(g, FG_TABLE, 1, FG_DATA, 8, 0, 0);
    offer_table(g, FG_TABLE, 32, 0);
}

static void table_of_odd_size(fake_guest *g)
{
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, 0, 0);
    offer_table(g, FG_TABLE, 17, 0);
}

static void table_too_small(fake_guest *g)
{
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, 0, 0);
    offer_table(g, FG_TABLE, 15, 0);
}

static void table_empty(fake_guest *g)
{
    offer_table(g, FG_TABLE, 0, 0);
}

static void table_empty_behind_direct(fake_guest *g)
{
    fg_desc(g, FG_DESC, 2, FG_DATA, 8, F_NEXT, 3);
    fg_desc(g, FG_DESC, 3, 0, 0, F_INDIRECT, 0);
    fg_offer(g, 2);
}

static void table_too_large(fake_guest *g)
{
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, 0, 0);
    offer_table(g, FG_TABLE, 16 * 1025, 0);
}

static void table_huge(fake_guest *g)
{
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, 0, 0);
    offer_table(g, FG_TABLE, 0xfffffff0, 0);
}

static void table_and_direct_too_large(fake_guest *g)
{
    fg_desc(g, FG_DESC, 2, FG_DATA, 8, F_NEXT, 3);
    fg_desc(g, FG_DESC, 3, FG_TABLE, 16 * 1024, F_INDIRECT, 0);
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, 0, 0);
    fg_offer(g, 2);
}

static void table_wraps(fake_guest *g)
{
    offer_table(g, 0ULL - 16, 32, 0);
}

static void table_loop(fake_guest *g)
{
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, F_NEXT, 1);
    fg_desc(g, FG_TABLE, 1, FG_DATA, 8, F_NEXT, 0);
    fg_desc(g, FG_TABLE, 2, FG_DATA, 8, 0, 0);
    offer_table(g, FG_TABLE, 48, 0);
}

static void table_next_outside(fake_guest *g)
{
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, F_NEXT, 2);
    fg_desc(g, FG_TABLE, 2, FG_DATA, 8, 0, 0);
    offer_table(g, FG_TABLE, 32, 0);
}

static void too_many_writable(fake_guest *g)
{
    for (u16 i = 0; i < 65; i++)
        fg_desc(g, FG_TABLE, i, FG_DATA, 8, F_WRITE | (i < 64 ? F_NEXT : 0), i + 1);
    offer_table(g, FG_TABLE, 65 * 16, 0);
}

static void lost_index(fake_guest *g)
{
    fg_offer_simple(g, 0, 8);
    fg_unmap(g, FG_AVAIL + 2, 2);
}

static void lost_entry(fake_guest *g)
{
    fg_offer_simple(g, 0, 8);
    fg_unmap(g, FG_AVAIL + 4, 1);
}

static void lost_descriptor(fake_guest *g)
{
    fg_offer_simple(g, 0, 8);
    fg_unmap(g, FG_DESC + 15, 1);
}

static void lost_table(fake_guest *g)
{
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, 0, 0);
    offer_table(g, FG_TABLE, 16, 0);
    fg_unmap(g, FG_TABLE + 8, 8);
}

static void lost_request(fake_guest *g)
{
    fg_offer_simple(g, 0, 0x1000);
    fg_unmap(g, FG_DATA + 0xfff, 1);
}

static void lost_event(fake_guest *g)
{
    g->vq.event_idx = true;
    fg_unmap(g, FG_USED + 4 + 8 * 8, 2);
}

static const struct attack attacks[] = {
    {"head-out-of-ring", head_out_of_ring},
    {"head-far-out-of-ring", head_far_out_of_ring},
    {"index-too-far", index_too_far},
    {"index-backwards", index_backwards},
    {"head-twice", head_twice},
    {"loop-direct", loop_direct},
    {"loop-self", loop_self},
    {"loop-that-opens", loop_that_opens},
    {"next-out-of-ring", next_out_of_ring},
    {"length-zero", length_zero},
    {"length-zero-at-zero", length_zero_at_zero},
    {"length-zero-writable", length_zero_writable},
    {"address-wraps", address_wraps},
    {"readable-after-writable", readable_after_writable},
    {"sum-overflows", sum_overflows},
    {"table-not-negotiated", table_not_negotiated},
    {"table-with-next", table_with_next},
    {"table-in-table", table_in_table},
    {"table-of-odd-size", table_of_odd_size},
    {"table-too-small", table_too_small},
    {"table-empty", table_empty},
    {"table-empty-behind-direct", table_empty_behind_direct},
    {"table-too-large", table_too_large},
    {"table-huge", table_huge},
    {"table-and-direct-too-large", table_and_direct_too_large},
    {"table-wraps", table_wraps},
    {"table-loop", table_loop},
    {"table-next-outside", table_next_outside},
    {"too-many-writable", too_many_writable},
    {"lost-index", lost_index},
    {"lost-entry", lost_entry},
    {"lost-descriptor", lost_descriptor},
    {"lost-table", lost_table},
    {"lost-request", lost_request},
    {"lost-event", lost_event},
};

/* Everything that an attack does not change is valid, so that only the broken rule can stop it. */
static void fill_right(fake_guest *g)
{
    for (u16 i = 0; i < g->size; i++) {
        fg_desc(g, FG_DESC, i, FG_DATA, 8, 0, 0);
        fg_put16(g, FG_AVAIL + 4 + 2 * i, i);
    }
    for (u16 i = 0; i < VGPU_VQ_MAX_DESCS; i++)
        fg_desc(g, FG_TABLE, i, FG_DATA, 8, 0, 0);
    memcpy(g->table, fg_at(g, FG_TABLE), VGPU_VQ_MAX_DESCS * sizeof(*g->table));
}

static void test_attack(const void *data)
{
    const struct attack *attack = data;
    g_autoptr(fake_guest) g = fake_guest_new(8);
    g_autofree u8 *buf = g_malloc(BUF_SIZE);
    u64 inflight;
    u16 next_avail;

    fill_right(g);
    attack->prepare(g);
    inflight = g->vq.inflight[0];
    next_avail = g->vq.next_avail;
    g_assert_cmpint(fg_pop(g, buf, BUF_SIZE, true), ==, -EPROTO);
    g_assert_true(g->vq.broken);
    g_assert_cmpuint(g->vq.inflight[0], ==, inflight);
    g_assert_cmpuint(g->vq.next_avail, ==, next_avail);

    /* Broken until it is reset, and without an access to the guest. */
    g->reads = g->writes = 0;
    g_assert_cmpint(fg_pop(g, buf, BUF_SIZE, true), ==, -EPROTO);
    g_assert_cmpuint(g->reads + g->writes, ==, 0);
    vgpu_vq_reset(&g->vq);
    g_assert_false(g->vq.broken);
}

static void scribble_behind(fake_guest *g, u64 iova, size_t len)
{
    memset(fg_at(g, iova), 0xff, len);
}

/* Every byte is lost after it was read: no second read may be needed. */
static void test_changed_after_read(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    u8 buf[64];

    for (u8 i = 0; i < 48; i++)
        *fg_at(g, FG_DATA + i) = i;
    fg_desc(g, FG_TABLE, 0, FG_DATA + 16, 32, F_NEXT, 1);
    fg_desc(g, FG_TABLE, 1, FG_DATA + 0x100, 24, F_WRITE, 0);
    fg_desc(g, FG_DESC, 6, FG_DATA, 16, F_NEXT, 4);
    fg_desc(g, FG_DESC, 4, FG_TABLE, 32, F_INDIRECT, 0);
    fg_offer(g, 6);
    g->on_read = scribble_behind;

    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
    g_assert_cmpuint(g->chain.head, ==, 6);
    g_assert_cmpuint(g->chain.request_size, ==, 48);
    g_assert_cmpuint(g->chain.write[0].iova, ==, FG_DATA + 0x100);
    for (u8 i = 0; i < 48; i++)
        g_assert_cmpuint(buf[i], ==, i);
    g_assert_cmpmem(g->chain.header, 24, buf, 24);
    for (u32 i = 0; i < FG_SIZE; i++)
        g_assert_cmpuint(g->nread[i], <=, 1);
}

static void randomise_other(fake_guest *g, u64 iova, size_t len)
{
    u64 at = g_test_rand_int_range(0, 3) ? FG_DESC : FG_TABLE;
    u32 i = (u32)g_test_rand_int_range(0, 8);
    u16 flags = (u16)g_test_rand_int_range(0, 8);

    (void)iova;
    (void)len;
    fg_desc(g, at, i, FG_DATA + (u64)g_test_rand_int_range(0, 4096),
            (u32)g_test_rand_int_range(0, 129), flags, (u16)g_test_rand_int_range(0, 9));
    if (!g_test_rand_int_range(0, 4))
        fg_put16(g, FG_AVAIL + 2, (u16)g_test_rand_int_range(0, 12));
}

static void assert_sane(const fake_guest *g)
{
    u64 sum = 0;

    g_assert_cmpuint(g->chain.nwrite, <=, VGPU_VQ_MAX_WRITE_SEGS);
    for (u16 i = 0; i < g->chain.nwrite; i++)
        sum += g->chain.write[i].len;
    g_assert_cmpuint(sum, ==, g->chain.response_size);
    g_assert_cmpuint(g->chain.head, <, g->size);
}

/* A guest that rewrites its ring at random between any two reads. */
static void test_random_changes(void)
{
    u8 buf[256];
    guint taken = 0, broken = 0;

    for (guint round = 0; round < 20000; round++) {
        g_autoptr(fake_guest) g = fake_guest_new(8);

        for (u16 i = 0; i < 8; i++)
            randomise_other(g, 0, 0);
        for (u16 i = 0; i < 4; i++)
            fg_offer(g, (u16)g_test_rand_int_range(0, 8));
        g->on_read = randomise_other;
        for (guint i = 0; i < 6; i++) {
            int ret = fg_pop(g, buf, sizeof(buf), i % 2);

            g_assert_true(ret == 0 || ret == -EAGAIN || ret == -EMSGSIZE || ret == -EPROTO);
            g_assert_cmpint(g->vq.broken, ==, ret == -EPROTO);
            if (ret == 0) {
                taken++;
                assert_sane(g);
            }
        }
        broken += g->vq.broken;
    }
    g_test_message("%u chains taken, %u queues broken", taken, broken);
    g_assert_cmpuint(taken, >, 1000);
    g_assert_cmpuint(broken, >, 1000);
}

static void test_valid(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(256);
    struct vgpu_vq vq;
    static const u16 bad_sizes[] = {0, 3, 5, 255, 257, 512, 0x8000, 0xffff};

    for (u32 size = 1; size <= 256; size *= 2) {
        g->vq.size = (u16)size;
        g_assert_true(vgpu_vq_valid(&g->vq));
    }
    for (guint i = 0; i < G_N_ELEMENTS(bad_sizes); i++) {
        g->vq.size = bad_sizes[i];
        g_assert_false(vgpu_vq_valid(&g->vq));
    }
    g->vq.size = 256;

#define ASSERT_VALID(field, value, expected)                                                       \
    do {                                                                                           \
        vq = g->vq;                                                                                \
        vq.field = (value);                                                                        \
        g_assert_cmpint(vgpu_vq_valid(&vq), ==, expected);                                         \
    } while (0)

    ASSERT_VALID(desc, 8, false);
    ASSERT_VALID(desc, 16, true);
    ASSERT_VALID(avail, 1, false);
    ASSERT_VALID(avail, 2, true);
    ASSERT_VALID(used, 2, false);
    ASSERT_VALID(used, 4, true);
    /* Rings that end with the last existing byte, and ones that wrap to 0. */
    ASSERT_VALID(desc, 0ULL - 4096, true);
    ASSERT_VALID(desc, 0ULL - 4080, false);
    ASSERT_VALID(avail, 0ULL - (6 + 2 * 256), true);
    ASSERT_VALID(avail, 0ULL - (4 + 2 * 256), false);
    ASSERT_VALID(used, 0ULL - (8 + 8 * 256), true);
    ASSERT_VALID(used, 0ULL - (4 + 8 * 256), false);
#undef ASSERT_VALID
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(attacks); i++) {
        g_autofree char *path = g_strdup_printf("/vq/attack/%s", attacks[i].name);

        g_test_add_data_func(path, &attacks[i], test_attack);
    }
    g_test_add_func("/vq/attack/changed-after-read", test_changed_after_read);
    g_test_add_func("/vq/attack/random-changes", test_random_changes);
    g_test_add_func("/vq/attack/valid", test_valid);
    return g_test_run();
}
