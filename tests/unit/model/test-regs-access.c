/* SPDX-License-Identifier: MIT */
/* Widths, bounds, device configuration and ISR. */
#include "regs.h"

static struct vgpu_regs r;

static void set_up(void)
{
    vgpu_regs_init(&r, 0, 1);
    g_assert_true(regs_negotiate(&r, OFFERED) & S_FEATURES_OK);
}

/* The width of writes for each register; queue addresses have a separate test. */
static const struct {
    u64 offset;
    size_t width;
} registers[] = {
    {R_DEVICE_FEATURE_SELECT, 4},
    {R_DRIVER_FEATURE_SELECT, 4},
    {R_DRIVER_FEATURE, 4},
    {R_CONFIG_VECTOR, 2},
    {R_STATUS, 1},
    {R_QUEUE_SELECT, 2},
    {R_QUEUE_SIZE, 2},
    {R_QUEUE_VECTOR, 2},
    {R_QUEUE_ENABLE, 2},
    {R_EVENTS_CLEAR, 4},
};

static bool takes_width(u64 offset, size_t width)
{
    for (guint i = 0; i < G_N_ELEMENTS(registers); i++) {
        if (registers[i].offset == offset)
            return registers[i].width == width;
    }
    return offset >= R_QUEUE_DESC && offset < 0x38 && offset % 4 == 0 && width >= 4;
}

/* In all of BAR 0 and beyond: a write that hits no register changes nothing. */
static void test_other_writes(void)
{
    static const size_t widths[] = {0, 1, 2, 3, 4, 5, 8};
    struct vgpu_regs before;

    set_up();
    r.events_read = 0xffffffff;
    before = r;
    for (u64 offset = 0; offset < R_END + 16; offset++) {
        for (guint i = 0; i < G_N_ELEMENTS(widths); i++) {
            if (takes_width(offset, widths[i]))
                continue;
            g_assert_cmpuint(regs_wr(&r, offset, 0x0101010101010101, widths[i]), ==, 0);
        }
    }
    g_assert_cmpmem(&r, sizeof(r), &before, sizeof(before));
}

static void test_far_away(void)
{
    static const u64 far[] = {R_END, 0x100000000, 0x100000014, 1ULL << 63, UINT64_MAX - 3};
    struct vgpu_regs before;
    u8 raw[64];

    set_up();
    vgpu_regs_raise(&r, true);
    before = r;
    for (guint i = 0; i < G_N_ELEMENTS(far); i++) {
        g_assert_cmphex(regs_rd(&r, far[i], 8), ==, 0);
        g_assert_cmpuint(regs_wr(&r, far[i], 0, 1), ==, 0);
    }
    memset(raw, 0, sizeof(raw));
    g_assert_cmpuint(vgpu_regs_write(&r, 0, raw, sizeof(raw)), ==, 0);
    vgpu_regs_read(&r, R_ISR, raw, 0); /* not even the ISR */
    g_assert_cmpmem(&r, sizeof(r), &before, sizeof(before));
}

/* Reads of any offset and width are windows into the same bytes. */
static void test_reads(void)
{
    g_autofree u8 *all = g_malloc(R_END + 8);

    set_up();
    regs_wr(&r, R_CONFIG_VECTOR, 1, 2);
    regs_enable_queue(&r, 1, 32, 0x8877665544332000);
    vgpu_regs_raise(&r, false);
    memset(all, 0xee, R_END + 8);
    vgpu_regs_read(&r, 0, all, R_END + 8);
    g_assert_cmphex(all[R_ISR], ==, 1);
    all[R_ISR] = 0; /* that has cleared it */

    g_assert_cmphex(all[R_STATUS], ==, 0x0b);
    g_assert_cmphex(all[R_QUEUE_SIZE], ==, 32);
    g_assert_cmphex(all[R_QUEUE_DESC + 7], ==, 0x88);
    g_assert_cmphex(all[R_NUM_CAPSETS], ==, 1);
    for (u64 i = R_QUEUE_NOTIFY_DATA; i < R_ISR; i++)
        g_assert_cmphex(all[i], ==, 0);
    for (u64 i = R_NOTIFY; i < R_END + 8; i++)
        g_assert_cmphex(all[i], ==, 0);

    for (u64 offset = 0; offset < R_END; offset++) {
        for (size_t len = 1; len <= 8; len++) {
            u8 raw[8];

            memset(raw, 0xee, sizeof(raw));
            vgpu_regs_read(&r, offset, raw, len);
            g_assert_cmpmem(raw, len, all + offset, len);
        }
    }
}

static void test_isr(void)
{
    set_up();
    g_assert_cmphex(regs_rd(&r, R_ISR, 1), ==, 0);
    vgpu_regs_raise(&r, false);
    g_assert_cmphex(regs_rd(&r, R_ISR + 1, 1), ==, 0); /* a neighbour clears nothing */
    g_assert_cmphex(regs_rd(&r, R_ISR, 1), ==, 1);
    g_assert_cmphex(regs_rd(&r, R_ISR, 1), ==, 0);
    vgpu_regs_raise(&r, true);
    g_assert_cmphex(regs_rd(&r, R_ISR, 1), ==, 2);
    vgpu_regs_raise(&r, true);
    vgpu_regs_raise(&r, false);
    regs_wr(&r, R_ISR, 0, 1);
    g_assert_cmphex(regs_rd(&r, R_ISR, 4), ==, 3);
    g_assert_cmphex(regs_rd(&r, R_ISR, 1), ==, 0);
}

static void test_device_config(void)
{
    vgpu_regs_init(&r, 2, 5);
    g_assert_cmphex(regs_rd(&r, R_EVENTS_READ, 4), ==, 0);
    g_assert_cmphex(regs_rd(&r, R_NUM_SCANOUTS, 4), ==, 2);
    g_assert_cmphex(regs_rd(&r, R_NUM_CAPSETS, 4), ==, 5);
    regs_wr(&r, R_NUM_SCANOUTS, 9, 4);
    regs_wr(&r, R_NUM_CAPSETS, 9, 4);
    g_assert_cmphex(regs_rd(&r, R_NUM_SCANOUTS, 8), ==, 0x0000000500000002);

    g_assert_cmphex(regs_rd(&r, R_GENERATION, 1), ==, 0);
    r.events_read = 0x7;
    regs_wr(&r, R_EVENTS_READ, 0, 4);
    g_assert_cmphex(regs_rd(&r, R_EVENTS_READ, 4), ==, 0x7);
    regs_wr(&r, R_EVENTS_CLEAR, 0x5, 4); /* ones clear */
    g_assert_cmphex(regs_rd(&r, R_EVENTS_READ, 4), ==, 0x2);
    g_assert_cmphex(regs_rd(&r, R_EVENTS_CLEAR, 4), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/regs/access/other-writes", test_other_writes);
    g_test_add_func("/regs/access/far-away", test_far_away);
    g_test_add_func("/regs/access/reads", test_reads);
    g_test_add_func("/regs/access/isr", test_isr);
    g_test_add_func("/regs/access/device-config", test_device_config);
    return g_test_run();
}
