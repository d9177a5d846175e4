/* SPDX-License-Identifier: MIT */
/* Taking chains from a guest that follows the rules. */
#include "fake_guest.h"

static void fill_memory(fake_guest *g, u64 iova, size_t len, u8 first)
{
    for (size_t i = 0; i < len; i++)
        *fg_at(g, iova + i) = (u8)(first + i);
}

static void assert_run(const u8 *buf, size_t len, u8 first)
{
    for (size_t i = 0; i < len; i++)
        g_assert_cmpuint(buf[i], ==, (u8)(first + i));
}

static void test_empty(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    u8 buf[8];

    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, -EAGAIN);
    g_assert_cmpuint(g->writes, ==, 0);
    g_assert_false(g->vq.broken);

    fg_offer_simple(g, 0, 8);
    g->vq.enabled = false;
    g->reads = 0;
    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, -EAGAIN);
    g_assert_cmpuint(g->reads, ==, 0);
}

static void test_direct(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    u8 buf[100];

    fill_memory(g, FG_DATA, 40, 1);
    fill_memory(g, FG_DATA + 0x1000, 30, 41);
    fg_desc(g, FG_DESC, 5, FG_DATA, 40, F_NEXT, 2);
    fg_desc(g, FG_DESC, 2, FG_DATA + 0x1000, 30, F_NEXT, 7);
    fg_desc(g, FG_DESC, 7, FG_DATA + 0x2000, 24, F_NEXT | F_WRITE, 0);
    fg_desc(g, FG_DESC, 0, FG_DATA + 0x3000, 100, F_WRITE, 3);
    fg_offer(g, 5);

    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
    g_assert_cmpuint(g->chain.head, ==, 5);
    g_assert_cmpuint(g->chain.request_size, ==, 70);
    g_assert_cmpuint(g->chain.response_size, ==, 124);
    g_assert_cmpuint(g->chain.nwrite, ==, 2);
    g_assert_cmpuint(g->chain.write[0].iova, ==, FG_DATA + 0x2000);
    g_assert_cmpuint(g->chain.write[0].len, ==, 24);
    g_assert_cmpuint(g->chain.write[1].iova, ==, FG_DATA + 0x3000);
    g_assert_cmpuint(g->chain.write[1].len, ==, 100);
    assert_run(buf, 70, 1);
    assert_run(g->chain.header, 24, 1);
    g_assert_cmpuint(g->vq.inflight[0], ==, 1u << 5);
    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, -EAGAIN);
}

static void test_indirect(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(4);
    u8 buf[64];

    fill_memory(g, FG_DATA, 48, 7);
    /* Linked out of order, with one entry that is not part of the chain. */
    fg_desc(g, FG_TABLE, 0, FG_DATA, 16, F_NEXT, 3);
    fg_desc(g, FG_TABLE, 1, 0, 0, F_INDIRECT, 9);
    fg_desc(g, FG_TABLE, 2, FG_DATA + 0x800, 24, F_WRITE, 0);
    fg_desc(g, FG_TABLE, 3, FG_DATA + 16, 32, F_NEXT, 2);
    /* The specification requires the device to ignore F_WRITE beside F_INDIRECT. */
    fg_desc(g, FG_DESC, 1, FG_TABLE, 64, F_INDIRECT | F_WRITE, 0);
    fg_offer(g, 1);

    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
    g_assert_cmpuint(g->chain.request_size, ==, 48);
    g_assert_cmpuint(g->chain.response_size, ==, 24);
    g_assert_cmpuint(g->chain.write[0].iova, ==, FG_DATA + 0x800);
    assert_run(buf, 48, 7);
    /* Index, entry, descriptor, table, two parts of the request. */
    g_assert_cmpuint(g->reads, ==, 6);
}

static void test_direct_then_indirect(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(4);
    u8 buf[64];

    fill_memory(g, FG_DATA, 60, 100);
    fg_desc(g, FG_DESC, 3, FG_DATA, 10, F_NEXT, 1);
    fg_desc(g, FG_DESC, 1, FG_DATA + 10, 20, F_NEXT, 2);
    fg_desc(g, FG_DESC, 2, FG_TABLE, 48, F_INDIRECT, 0);
    fg_desc(g, FG_TABLE, 0, FG_DATA + 30, 30, F_NEXT, 2);
    fg_desc(g, FG_TABLE, 2, FG_DATA + 0x900, 8, F_WRITE, 0);
    fg_offer(g, 3);

    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
    g_assert_cmpuint(g->chain.request_size, ==, 60);
    g_assert_cmpuint(g->chain.response_size, ==, 8);
    assert_run(buf, 60, 100);
    assert_run(g->chain.header, 24, 100);
}

static void test_one_sided(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(4);
    u8 buf[64];
    static const u8 zero[24];

    fg_desc(g, FG_DESC, 0, FG_DATA, 24, F_WRITE, 0);
    fg_offer(g, 0);
    fill_memory(g, FG_DATA + 100, 10, 1);
    fg_desc(g, FG_DESC, 1, FG_DATA + 100, 10, 0, 0);
    fg_offer(g, 1);

    memset(&g->chain, 0xaa, sizeof(g->chain));
    g_assert_cmpint(fg_pop(g, NULL, 0, false), ==, 0);
    g_assert_cmpuint(g->chain.request_size, ==, 0);
    g_assert_cmpuint(g->chain.response_size, ==, 24);
    g_assert_cmpmem(g->chain.header, 24, zero, 24);

    memset(&g->chain, 0xaa, sizeof(g->chain));
    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
    g_assert_cmpuint(g->chain.request_size, ==, 10);
    g_assert_cmpuint(g->chain.response_size, ==, 0);
    g_assert_cmpuint(g->chain.nwrite, ==, 0);
    assert_run(g->chain.header, 10, 1);
    g_assert_cmpmem(g->chain.header + 10, 14, zero, 14);
}

static void test_too_large(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(4);
    u8 buf[100];

    fill_memory(g, FG_DATA, 100, 1);
    fg_offer_simple(g, 2, 100);
    g_assert_cmpint(fg_pop(g, buf, 99, false), ==, -EMSGSIZE);
    g_assert_cmpuint(g->chain.request_size, ==, 100);
    g_assert_cmpuint(g->vq.inflight[0], ==, 0);
    g_assert_cmpuint(g->vq.next_avail, ==, 0);
    g_assert_false(g->vq.broken);

    g_assert_cmpint(fg_pop(g, buf, 100, false), ==, 0);
    assert_run(buf, 100, 1);
}

static void test_truncate(void)
{
    static const size_t sizes[] = {0, 1, 10, 23, 24, 25, 39, 40, 41, 60};

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(fake_guest) g = fake_guest_new(4);
        g_autofree u8 *buf = g_malloc(sizes[i]);
        size_t got = MIN(sizes[i], 40);

        fill_memory(g, FG_DATA, 40, 50);
        fg_desc(g, FG_DESC, 0, FG_DATA, 20, F_NEXT, 1);
        fg_desc(g, FG_DESC, 1, FG_DATA + 20, 20, 0, 0);
        fg_offer(g, 0);
        g_assert_cmpint(fg_pop(g, buf, sizes[i], true), ==, 0);
        g_assert_cmpuint(g->chain.request_size, ==, 40);
        assert_run(buf, got, 50);
        assert_run(g->chain.header, 24, 50);
        for (size_t b = 0; b < 40; b++)
            g_assert_cmpuint(g->nread[FG_DATA - FG_BASE + b], <=, 1);
    }
}

static void test_limits(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(256);
    g_autofree u8 *buf = g_malloc(2048);
    u16 i;

    /* A chain of the whole ring; then, with nothing left of it, one of a whole table. */
    for (i = 0; i < 256; i++)
        fg_desc(g, FG_DESC, i, FG_DATA + 2 * i, 2, i < 255 ? F_NEXT : 0, i + 1);
    fg_offer(g, 0);
    g_assert_cmpint(fg_pop(g, buf, 2048, false), ==, 0);
    g_assert_cmpuint(g->chain.request_size, ==, 512);

    for (i = 0; i < 1024; i++)
        fg_desc(g, FG_TABLE, i, FG_DATA + i, 1, F_NEXT | (i >= 960 ? F_WRITE : 0), i + 1);
    fg_desc(g, FG_TABLE, 1023, FG_DATA, 1, F_WRITE, 0);
    fg_desc(g, FG_DESC, 255, FG_TABLE, 1024 * 16, F_INDIRECT, 0);
    fg_offer(g, 255);
    g_assert_cmpint(fg_pop(g, buf, 2048, false), ==, 0);
    g_assert_cmpuint(g->chain.request_size, ==, 960);
    g_assert_cmpuint(g->chain.nwrite, ==, 64);
    g_assert_cmpuint(g->chain.response_size, ==, 64);
}

static void test_four_gigabytes(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(4);

    /* The maximum of a chain, and an address range that ends at the very last byte. */
    fg_desc(g, FG_DESC, 0, 0ULL - 0xfffffffe, 0xfffffffe, F_NEXT | F_WRITE, 1);
    fg_desc(g, FG_DESC, 1, FG_DATA, 1, F_WRITE, 0);
    fg_offer(g, 0);
    g_assert_cmpint(fg_pop(g, NULL, 0, false), ==, 0);
    g_assert_cmpuint(g->chain.response_size, ==, 0xffffffff);
}

static void test_index_read_once(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    u8 buf[8];

    for (u16 i = 0; i < 8; i++)
        fg_offer_simple(g, i, 8);
    for (u16 i = 0; i < 8; i++) {
        g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
        g_assert_cmpuint(g->chain.head, ==, i);
    }
    g_assert_cmpuint(g->nread[FG_AVAIL + 2 - FG_BASE], ==, 1);
    g_assert_cmpuint(g->reads, ==, 1 + 3 * 8);
}

static void test_event(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(4);
    u8 buf[8];

    g->vq.event_idx = true;
    for (u16 i = 0; i < 3; i++) {
        fg_offer_simple(g, i, 8);
        g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
        /* Only an empty ring requests a notification. */
        g_assert_cmpuint(fg_avail_event(g), ==, i);
        g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, -EAGAIN);
        g_assert_cmpuint(fg_avail_event(g), ==, i + 1);
    }
}

static void offer_late(fake_guest *g, u64 iova, size_t len)
{
    (void)len;
    if (iova != FG_USED + 4 + 8 * g->size)
        return;
    g->on_write = NULL;
    fg_offer_simple(g, 1, 8);
}

/*
 * A polling consumer does not write avail_event, and finds new chains; when it stops polling, they
 * are announced.
 */
static void test_quiet(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(4);
    u8 buf[8];

    g->vq.event_idx = true;
    g->vq.quiet = true;
    for (u16 i = 0; i < 3; i++) {
        fg_offer_simple(g, i, 8);
        g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
        g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, -EAGAIN);
        g_assert_cmpuint(fg_avail_event(g), ==, 0);
    }
    g->vq.quiet = false;
    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, -EAGAIN);
    g_assert_cmpuint(fg_avail_event(g), ==, 3);
}

/* A chain that is added while avail_event is being written is not announced. */
static void test_event_race(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(4);
    u8 buf[8];

    g->vq.event_idx = true;
    g->on_write = offer_late;
    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
    g_assert_cmpuint(g->chain.head, ==, 1);
    g_assert_null(g->on_write);
}

/* More chains than the indices can count, in all phases of the ring. */
static void test_wrap(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(4);
    u8 buf[8];
    bool interrupt;

    g->vq.event_idx = true;
    for (u32 i = 0; i < 70000; i++) {
        *fg_at(g, FG_DATA) = (u8)i;
        fg_offer_simple(g, i % 3, 8);
        fg_set_used_event(g, (u16)i);
        g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
        g_assert_cmpuint(buf[0], ==, (u8)i);
        g_assert_cmpuint(g->chain.head, ==, i % 3);
        g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, 0);
        g_assert_true(interrupt);
        g_assert_cmpuint(fg_used_idx(g), ==, (u16)(i + 1));
        g_assert_cmpuint(fg_used_id(g, (u16)i), ==, i % 3);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vq/pop/empty", test_empty);
    g_test_add_func("/vq/pop/direct", test_direct);
    g_test_add_func("/vq/pop/indirect", test_indirect);
    g_test_add_func("/vq/pop/direct-then-indirect", test_direct_then_indirect);
    g_test_add_func("/vq/pop/one-sided", test_one_sided);
    g_test_add_func("/vq/pop/too-large", test_too_large);
    g_test_add_func("/vq/pop/truncate", test_truncate);
    g_test_add_func("/vq/pop/limits", test_limits);
    g_test_add_func("/vq/pop/four-gigabytes", test_four_gigabytes);
    g_test_add_func("/vq/pop/index-read-once", test_index_read_once);
    g_test_add_func("/vq/pop/event", test_event);
    g_test_add_func("/vq/pop/quiet", test_quiet);
    g_test_add_func("/vq/pop/event-race", test_event_race);
    g_test_add_func("/vq/pop/wrap", test_wrap);
    return g_test_run();
}
