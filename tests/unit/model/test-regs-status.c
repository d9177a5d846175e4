/* SPDX-License-Identifier: MIT */
/* Negotiation: features, the status register and its rules. */
#include "regs.h"

static struct vgpu_regs r;

static void set_up(void)
{
    memset(&r, 0xa5, sizeof(r));
    vgpu_regs_init(&r, 0, 1);
}

static void test_offered(void)
{
    static const u32 high[] = {2, 3, 4, 31, 32, 0x80000000, 0xffffffff};

    set_up();
    g_assert_cmphex(regs_rd(&r, R_DEVICE_FEATURE, 4), ==, OFFERED & 0xffffffff);
    regs_wr(&r, R_DEVICE_FEATURE_SELECT, 1, 4);
    g_assert_cmphex(regs_rd(&r, R_DEVICE_FEATURE_SELECT, 4), ==, 1);
    g_assert_cmphex(regs_rd(&r, R_DEVICE_FEATURE, 4), ==, OFFERED >> 32);
    for (guint i = 0; i < G_N_ELEMENTS(high); i++) {
        regs_wr(&r, R_DEVICE_FEATURE_SELECT, high[i], 4);
        g_assert_cmphex(regs_rd(&r, R_DEVICE_FEATURE, 4), ==, 0);
    }
    /* A driver cannot change the offered features. */
    regs_wr(&r, R_DEVICE_FEATURE_SELECT, 0, 4);
    regs_wr(&r, R_DEVICE_FEATURE, 0, 4);
    g_assert_cmphex(regs_rd(&r, R_DEVICE_FEATURE, 4), ==, OFFERED & 0xffffffff);

    vgpu_regs_init(&r, 1, 1); /* a display brings EDID */
    g_assert_cmphex(regs_rd(&r, R_DEVICE_FEATURE, 4), ==, (OFFERED & 0xffffffff) | 2);
}

static void test_features_ok(void)
{
    set_up();
    g_assert_cmphex(regs_negotiate(&r, OFFERED), ==, S_ACK | S_DRIVER | S_FEATURES_OK);
    set_up();
    g_assert_cmphex(regs_negotiate(&r, REQUIRED), ==, S_ACK | S_DRIVER | S_FEATURES_OK);
    for (guint bit = 0; bit < 64; bit++) {
        bool acceptable = OFFERED & (1ULL << bit);
        u8 status;

        set_up();
        status = regs_negotiate(&r, REQUIRED | 1ULL << bit);
        g_assert_cmpint(!!(status & S_FEATURES_OK), ==, acceptable);
    }
    for (guint bit = 32; bit < 34; bit++) {
        set_up();
        g_assert_cmphex(regs_negotiate(&r, OFFERED & ~(1ULL << bit)), ==, S_ACK | S_DRIVER);
    }
}

static void test_features_second_try(void)
{
    set_up();
    g_assert_cmphex(regs_negotiate(&r, OFFERED | 1ULL << 40), ==, S_ACK | S_DRIVER);
    g_assert_cmphex(regs_negotiate(&r, OFFERED), ==, S_ACK | S_DRIVER | S_FEATURES_OK);
}

static void test_features_beyond(void)
{
    set_up();
    regs_wr(&r, R_DRIVER_FEATURE_SELECT, 2, 4); /* newer drivers write 128 bits */
    regs_wr(&r, R_DRIVER_FEATURE, 0, 4);
    g_assert_cmphex(regs_rd(&r, R_DRIVER_FEATURE, 4), ==, 0);
    g_assert_true(regs_negotiate(&r, OFFERED) & S_FEATURES_OK);

    set_up();
    regs_wr(&r, R_DRIVER_FEATURE_SELECT, 2, 4);
    regs_wr(&r, R_DRIVER_FEATURE, 1, 4);
    g_assert_false(regs_negotiate(&r, OFFERED) & S_FEATURES_OK);
    vgpu_regs_reset(&r);
    g_assert_true(regs_negotiate(&r, OFFERED) & S_FEATURES_OK);
}

static void test_features_final(void)
{
    set_up();
    regs_negotiate(&r, OFFERED);
    for (u32 i = 0; i < 2; i++) {
        regs_wr(&r, R_DRIVER_FEATURE_SELECT, i, 4);
        regs_wr(&r, R_DRIVER_FEATURE, 0, 4);
        g_assert_cmphex(regs_rd(&r, R_DRIVER_FEATURE, 4), ==, (u32)(OFFERED >> (32 * i)));
    }
    g_assert_cmphex(r.driver_features, ==, OFFERED);
}

static void test_status_order(void)
{
    set_up();
    /* FEATURES_OK needs ACKNOWLEDGE and DRIVER, DRIVER_OK needs FEATURES_OK. */
    r.driver_features = OFFERED;
    g_assert_cmpuint(regs_wr(&r, R_STATUS, S_FEATURES_OK, 1), ==, 0);
    g_assert_cmphex(r.status, ==, 0);
    regs_wr(&r, R_STATUS, S_ACK | S_FEATURES_OK, 1);
    g_assert_cmphex(r.status, ==, S_ACK);
    g_assert_cmpuint(regs_wr(&r, R_STATUS, S_ACK | S_DRIVER | S_DRIVER_OK, 1), ==, 0);
    g_assert_cmphex(r.status, ==, S_ACK | S_DRIVER);
    g_assert_false(vgpu_regs_driver_ok(&r));
    regs_wr(&r, R_STATUS, S_FEATURES_OK, 1);
    /* Bits stay: only a reset clears them. */
    g_assert_cmphex(r.status, ==, S_ACK | S_DRIVER | S_FEATURES_OK);
    g_assert_cmpuint(regs_wr(&r, R_STATUS, S_DRIVER_OK, 1), ==, VGPU_EFFECT_DRIVER_OK);
    g_assert_cmphex(r.status, ==, S_ACK | S_DRIVER | S_FEATURES_OK | S_DRIVER_OK);
    g_assert_true(vgpu_regs_driver_ok(&r));
    /* Up only once. */
    g_assert_cmpuint(regs_wr(&r, R_STATUS, 0x0f, 1), ==, 0);
    /* Undefined bits, and the device's own. */
    regs_wr(&r, R_STATUS, 0x70, 1);
    g_assert_cmphex(r.status, ==, 0x0f);
    regs_wr(&r, R_STATUS, 0x8f, 1);
    g_assert_cmphex(r.status, ==, 0x8f);
}

static void test_all_at_once(void)
{
    set_up();
    r.driver_features = OFFERED;
    g_assert_cmpuint(regs_wr(&r, R_STATUS, 0x0f, 1), ==, VGPU_EFFECT_DRIVER_OK);
    set_up();
    g_assert_cmpuint(regs_wr(&r, R_STATUS, 0x0f, 1), ==, 0); /* no features accepted */
    g_assert_cmphex(r.status, ==, S_ACK | S_DRIVER);
}

static void test_failed(void)
{
    set_up();
    regs_negotiate(&r, OFFERED);
    regs_wr(&r, R_STATUS, S_FAILED, 1);
    g_assert_cmpuint(regs_wr(&r, R_STATUS, S_DRIVER_OK, 1), ==, 0);
    g_assert_false(vgpu_regs_driver_ok(&r));
}

static void test_needs_reset(void)
{
    set_up();
    regs_negotiate(&r, OFFERED);
    g_assert_false(vgpu_regs_needs_reset(&r)); /* no driver is ready yet */
    g_assert_cmphex(r.status & S_NEEDS_RESET, ==, S_NEEDS_RESET);
    g_assert_cmpuint(regs_wr(&r, R_STATUS, 0x0f, 1), ==, 0);
    g_assert_false(vgpu_regs_driver_ok(&r));

    set_up();
    regs_negotiate(&r, OFFERED);
    regs_wr(&r, R_STATUS, 0x0f, 1);
    g_assert_true(vgpu_regs_needs_reset(&r));
    g_assert_false(vgpu_regs_needs_reset(&r)); /* once is enough */
    g_assert_cmphex(r.status, ==, 0x4f);
    regs_wr(&r, R_STATUS, 0x0f, 1); /* the driver cannot clear it */
    g_assert_cmphex(r.status, ==, 0x4f);
    vgpu_regs_reset(&r);
    g_assert_cmphex(r.status, ==, 0);
}

static void test_reset_effect(void)
{
    struct vgpu_regs before;

    set_up();
    g_assert_cmpuint(regs_wr(&r, R_STATUS, 0, 1), ==, VGPU_EFFECT_RESET);
    regs_negotiate(&r, OFFERED);
    regs_enable_queue(&r, 0, 64, 0x10000);
    regs_wr(&r, R_STATUS, 0x0f, 1);
    before = r;
    g_assert_cmpuint(regs_wr(&r, R_STATUS, 0, 1), ==, VGPU_EFFECT_RESET);
    g_assert_cmpmem(&r, sizeof(r), &before, sizeof(before));
}

static void test_reset(void)
{
    struct vgpu_regs fresh;

    set_up();
    r.num_capsets = 3;
    fresh = r;
    regs_negotiate(&r, OFFERED);
    r.driver_features_beyond = true;
    regs_wr(&r, R_DEVICE_FEATURE_SELECT, 1, 4);
    regs_wr(&r, R_CONFIG_VECTOR, 0, 2);
    for (u16 q = 0; q < 2; q++) {
        g_assert_cmpuint(regs_enable_queue(&r, q, 64, 0x10000), ==, 1);
        regs_wr(&r, R_QUEUE_VECTOR, q + 1, 2);
    }
    regs_wr(&r, R_STATUS, 0x0f, 1);
    r.events_read = 1;
    r.vq[0].broken = true;
    r.vq[0].next_avail = r.vq[1].next_used = 7;
    vgpu_regs_raise(&r, true);
    vgpu_regs_needs_reset(&r);

    vgpu_regs_reset(&r);
    g_assert_cmpmem(&r, sizeof(r), &fresh, sizeof(fresh));
    g_assert_cmpuint(regs_rd(&r, R_NUM_CAPSETS, 4), ==, 3);
}

static void test_display_changed(void)
{
    set_up();
    g_assert_false(vgpu_regs_display_changed(&r)); /* no driver is ready yet, but it is not lost */
    g_assert_cmphex(regs_rd(&r, R_EVENTS_READ, 4), ==, 1);
    regs_wr(&r, R_EVENTS_CLEAR, 1, 4);
    g_assert_cmphex(regs_rd(&r, R_EVENTS_READ, 4), ==, 0);
    regs_negotiate(&r, REQUIRED);
    regs_wr(&r, R_STATUS, S_ACK | S_DRIVER | S_FEATURES_OK | S_DRIVER_OK, 1);
    g_assert_true(vgpu_regs_display_changed(&r));
    g_assert_true(vgpu_regs_display_changed(&r));
    vgpu_regs_reset(&r);
    g_assert_cmphex(regs_rd(&r, R_EVENTS_READ, 4), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/regs/features/offered", test_offered);
    g_test_add_func("/regs/features/ok", test_features_ok);
    g_test_add_func("/regs/features/second-try", test_features_second_try);
    g_test_add_func("/regs/features/beyond", test_features_beyond);
    g_test_add_func("/regs/features/final", test_features_final);
    g_test_add_func("/regs/status/order", test_status_order);
    g_test_add_func("/regs/status/all-at-once", test_all_at_once);
    g_test_add_func("/regs/status/failed", test_failed);
    g_test_add_func("/regs/status/needs-reset", test_needs_reset);
    g_test_add_func("/regs/status/display-changed", test_display_changed);
    g_test_add_func("/regs/status/reset-effect", test_reset_effect);
    g_test_add_func("/regs/status/reset", test_reset);
    return g_test_run();
}
