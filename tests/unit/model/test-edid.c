/* SPDX-License-Identifier: MIT */
/*
 * VFIO's EDID region, by the layout of struct vfio_region_gfx_edid: edid_offset 0, edid_max_size 4,
 * edid_size 8, max_xres 12, max_yres 16, link_state 20 (1: up, 2: down).
 */
#include "edid.h"

#include <glib.h>

static struct vgpu_edid e;

static u32 read_edid(u64 offset)
{
    u32 value;

    vgpu_edid_read(&e, offset, &value, sizeof(value));
    return value;
}

static bool write_edid(u64 offset, u32 value)
{
    return vgpu_edid_write(&e, offset, &value, sizeof(value));
}

static struct vgpu_display describe_monitor(void)
{
    struct vgpu_display display = {0};

    vgpu_edid_describe(&e, &display);
    return display;
}

static void test_registers(void)
{
    vgpu_edid_init(&e);
    g_assert_cmpuint(read_edid(0), ==, 1024);
    g_assert_cmpuint(read_edid(4), ==, 1024);
    g_assert_cmpuint(read_edid(8), ==, 0);
    g_assert_cmpuint(read_edid(12), ==, 3840);
    g_assert_cmpuint(read_edid(16), ==, 2160);
    g_assert_cmpuint(read_edid(20), ==, 1);
    for (u64 at = 24; at < 1024; at += 4)
        g_assert_cmphex(read_edid(at), ==, 0);

    /* Read-only ones stay; so does everything between them and the EDID. */
    for (u64 at = 0; at < 1024; at += 4)
        if (at != 8 && at != 20)
            g_assert_false(write_edid(at, 0xffffffff));
    g_assert_cmpuint(read_edid(0), ==, 1024);
    g_assert_cmpuint(read_edid(12), ==, 3840);
}

/* As QEMU does it. */
static void test_order_of_a_vmm(void)
{
    u8 blob[256];

    vgpu_edid_init(&e);
    memset(blob, 0x5a, sizeof(blob));
    g_assert_true(write_edid(20, 2));
    g_assert_cmpuint(describe_monitor().state, ==, 0);
    g_assert_false(write_edid(8, sizeof(blob)));
    for (u64 at = 0; at < sizeof(blob); at += 8)
        g_assert_false(vgpu_edid_write(&e, 1024 + at, blob + at, 8));
    g_assert_true(write_edid(20, 1));
    g_assert_cmpuint(describe_monitor().state, ==, VGPU_DISPLAY_CONNECTED);
    g_assert_cmpuint(describe_monitor().edid_size, ==, sizeof(blob));
    g_assert_cmpmem(describe_monitor().edid, sizeof(blob), blob, sizeof(blob));
    g_assert_cmphex(read_edid(1024 + 252), ==, 0x5a5a5a5a);

    /* The same data again is no change; shorter data is, and the rest is not shown. */
    g_assert_false(write_edid(20, 1));
    g_assert_false(write_edid(8, sizeof(blob)));
    g_assert_true(write_edid(8, 128));
    g_assert_cmphex(describe_monitor().edid[127], ==, 0x5a);
    g_assert_cmphex(describe_monitor().edid[128], ==, 0);
    g_assert_true(write_edid(1024, 0));
    g_assert_false(write_edid(1024 + 128, 0));
}

static void test_hostile(void)
{
    u8 large[4096];

    vgpu_edid_init(&e);
    memset(large, 0xff, sizeof(large));
    g_assert_false(write_edid(8, 1025));
    g_assert_false(write_edid(8, 0xffffffff));
    g_assert_cmpuint(read_edid(8), ==, 0);
    g_assert_true(write_edid(8, 1024));
    g_assert_false(write_edid(20, 0));
    g_assert_false(write_edid(20, 3));
    g_assert_false(vgpu_edid_write(&e, 20, large, 2));
    g_assert_false(vgpu_edid_write(&e, 9, large, 4));
    g_assert_cmpuint(read_edid(20), ==, 1);
    g_assert_true(vgpu_edid_write(&e, 2040, large, sizeof(large)));
    g_assert_false(vgpu_edid_write(&e, 2048, large, sizeof(large)));
    g_assert_false(vgpu_edid_write(&e, (u64)-8, large, sizeof(large)));
    g_assert_cmphex(read_edid(2044), ==, 0xffffffff);
    g_assert_cmphex(read_edid(2048), ==, 0);
    g_assert_cmphex(read_edid((u64)-4), ==, 0);
    vgpu_edid_read(&e, 2040, large, sizeof(large));
    g_assert_cmphex(large[7], ==, 0xff);
    g_assert_cmphex(large[8], ==, 0);

    /* Two neighbours in one write. */
    memset(large, 0, 8);
    large[4] = 2;
    g_assert_true(vgpu_edid_write(&e, 16, large, 8));
    g_assert_cmpuint(read_edid(16), ==, 2160);
    g_assert_cmpuint(read_edid(20), ==, 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/edid/registers", test_registers);
    g_test_add_func("/edid/order-of-a-vmm", test_order_of_a_vmm);
    g_test_add_func("/edid/hostile", test_hostile);
    return g_test_run();
}
