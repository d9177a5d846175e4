/* SPDX-License-Identifier: MIT */
/* Giving chains back: response, used ring, interrupt. */
#include "fake_guest.h"

/* Takes a chain at @head with response buffers of 24 and 16 bytes that are not adjacent. */
static void pop_two_part(fake_guest *g, u16 head)
{
    u8 buf[8];

    fg_desc(g, FG_DESC, head, FG_TABLE, 48, F_INDIRECT, 0);
    fg_desc(g, FG_TABLE, 0, FG_DATA, 8, F_NEXT, 1);
    fg_desc(g, FG_TABLE, 1, FG_DATA + 0x100, 24, F_NEXT | F_WRITE, 2);
    fg_desc(g, FG_TABLE, 2, FG_DATA + 0x200, 16, F_WRITE, 0);
    fg_offer(g, head);
    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
}

static void test_response(void)
{
    static const size_t sizes[] = {0, 1, 24, 25, 40};

    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(fake_guest) g = fake_guest_new(8);
        u8 resp[40];
        bool interrupt;

        for (u8 b = 0; b < 40; b++)
            resp[b] = b + 1;
        pop_two_part(g, 5);
        g_assert_cmpint(fg_push(g, resp, sizes[i], &interrupt), ==, 0);
        for (u8 b = 0; b < 40; b++) {
            u8 seen = *fg_at(g, b < 24 ? FG_DATA + 0x100 + b : FG_DATA + 0x200 + b - 24);

            g_assert_cmpuint(seen, ==, b < sizes[i] ? b + 1 : 0);
        }
        g_assert_cmpuint(fg_used_idx(g), ==, 1);
        g_assert_cmpuint(fg_used_id(g, 0), ==, 5);
        g_assert_cmpuint(fg_used_len(g, 0), ==, sizes[i]);
        g_assert_cmpuint(g->vq.inflight[0], ==, 0);
    }
}

static void test_too_large(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    u8 resp[41] = {0};
    bool interrupt = true;

    pop_two_part(g, 0);
    g->writes = 0;
    g_assert_cmpint(fg_push(g, resp, 41, &interrupt), ==, -EMSGSIZE);
    g_assert_false(interrupt);
    g_assert_cmpuint(g->writes, ==, 0);
    g_assert_cmpint(fg_push(g, resp, 40, &interrupt), ==, 0);
}

static void test_not_inflight(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    bool interrupt;

    g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, -ENOENT);
    pop_two_part(g, 4);
    g->chain.head = 3;
    g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, -ENOENT);
    g->chain.head = 8;
    g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, -ENOENT);
    g->chain.head = 0xffff;
    g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, -ENOENT);
    g_assert_cmpuint(fg_used_idx(g), ==, 0);
    g->chain.head = 4;
    g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, 0);
    g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, -ENOENT);
    g_assert_cmpuint(fg_used_idx(g), ==, 1);
}

static void test_any_order(void)
{
    static const u16 order[] = {70, 0, 255, 128};
    g_autoptr(fake_guest) g = fake_guest_new(256);
    struct vgpu_vq_chain chains[256];
    u8 buf[8];
    bool interrupt;

    for (u16 i = 0; i < 256; i++) {
        fg_offer_simple(g, i, 8);
        g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
        chains[i] = g->chain;
    }
    for (guint i = 0; i < G_N_ELEMENTS(order); i++) {
        g->chain = chains[order[i]];
        g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, 0);
        g_assert_cmpuint(fg_used_id(g, (u16)i), ==, order[i]);
    }
    /* A returned chain may be used again; others may not. */
    fg_offer_simple(g, 70, 8);
    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, 0);
    fg_offer_simple(g, 71, 8);
    g_assert_cmpint(fg_pop(g, buf, sizeof(buf), false), ==, -EPROTO);
}

static void log_write(fake_guest *g, u64 iova, size_t len)
{
    g_string_append_printf(g->hook_data, "%s%zu ",
                           iova >= FG_DATA                              ? "data"
                           : iova == FG_USED + 2                        ? "idx"
                           : iova >= FG_USED && iova < FG_USED + 0x1000 ? "elem"
                                                                        : "?",
                           len);
}

/* The guest relies on the index: everything else must be written before it. */
static void test_write_order(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    g_autoptr(GString) log = g_string_new(NULL);
    u8 resp[40] = {0};
    bool interrupt;

    pop_two_part(g, 0);
    g->hook_data = log;
    g->on_write = log_write;
    g_assert_cmpint(fg_push(g, resp, 40, &interrupt), ==, 0);
    g_assert_cmpstr(log->str, ==, "data24 data16 elem8 idx2 ");
}

static void test_response_unreachable(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    u8 resp[40] = {1};
    bool interrupt;

    pop_two_part(g, 2);
    fg_unmap(g, FG_DATA + 0x200, 0x100);
    g_assert_cmpint(fg_push(g, resp, 40, &interrupt), ==, 0);
    g_assert_true(interrupt);
    g_assert_false(g->vq.broken);
    g_assert_cmpuint(fg_used_idx(g), ==, 1);
    g_assert_cmpuint(fg_used_id(g, 0), ==, 2);
    g_assert_cmpuint(fg_used_len(g, 0), ==, 0);
}

static void assert_push_breaks(u64 lost, u64 len, bool event_idx)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    bool interrupt = true;

    g->vq.event_idx = event_idx;
    pop_two_part(g, 0);
    fg_unmap(g, lost, len);
    g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, -EPROTO);
    g_assert_false(interrupt);
    g_assert_true(g->vq.broken);
}

static void test_ring_unreachable(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    bool interrupt = true;

    assert_push_breaks(FG_USED + 4, 8, false);         /* entry */
    assert_push_breaks(FG_USED + 2, 2, false);         /* index */
    assert_push_breaks(FG_AVAIL, 2, false);            /* flags */
    assert_push_breaks(FG_AVAIL + 4 + 2 * 8, 2, true); /* used_event */

    pop_two_part(g, 0);
    g->vq.broken = true;
    g->writes = 0;
    g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, -EPROTO);
    g_assert_false(interrupt);
    g_assert_cmpuint(g->writes, ==, 0);
}

static void test_interrupt_flags(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    bool interrupt;

    /* Without EVENT_IDX used_event means nothing. */
    for (u16 flags = 0; flags < 4; flags++) {
        pop_two_part(g, 0);
        fg_put16(g, FG_AVAIL, flags);
        fg_set_used_event(g, 0x1234);
        g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, 0);
        g_assert_cmpint(interrupt, ==, !(flags & 1));
    }
}

/* The specification's formula (2.7.10.1), for steps of one. */
static bool need_event(u16 event, u16 new)
{
    return (u16)(new - event - 1) < 1;
}

static void test_interrupt_event(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    guint interrupts = 0;

    g->vq.event_idx = true;
    fg_put16(g, FG_AVAIL, 1); /* means nothing with EVENT_IDX */
    for (u32 i = 0; i < 66000; i++) {
        u16 event = (u16)(i - i % 5 + 3);
        bool interrupt;

        pop_two_part(g, 0);
        fg_set_used_event(g, event);
        g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, 0);
        g_assert_cmpint(interrupt, ==, need_event(event, (u16)(i + 1)));
        interrupts += interrupt;
    }
    g_assert_cmpuint(interrupts, ==, 66000 / 5);
}

static void ask_for_interrupt(fake_guest *g, u64 iova, size_t len)
{
    (void)len;
    if (iova == FG_USED + 2)
        fg_put16(g, FG_AVAIL, 0);
}

/* A guest that asks just before it could see the index gets its interrupt. */
static void test_interrupt_race(void)
{
    g_autoptr(fake_guest) g = fake_guest_new(8);
    bool interrupt;

    pop_two_part(g, 0);
    fg_put16(g, FG_AVAIL, 1);
    g->on_write = ask_for_interrupt;
    g_assert_cmpint(fg_push(g, NULL, 0, &interrupt), ==, 0);
    g_assert_true(interrupt);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vq/push/response", test_response);
    g_test_add_func("/vq/push/too-large", test_too_large);
    g_test_add_func("/vq/push/not-inflight", test_not_inflight);
    g_test_add_func("/vq/push/any-order", test_any_order);
    g_test_add_func("/vq/push/write-order", test_write_order);
    g_test_add_func("/vq/push/response-unreachable", test_response_unreachable);
    g_test_add_func("/vq/push/ring-unreachable", test_ring_unreachable);
    g_test_add_func("/vq/push/interrupt-flags", test_interrupt_flags);
    g_test_add_func("/vq/push/interrupt-event", test_interrupt_event);
    g_test_add_func("/vq/push/interrupt-race", test_interrupt_race);
    return g_test_run();
}
