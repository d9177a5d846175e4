/* SPDX-License-Identifier: MIT */
/*
 * Configuration space as a guest walks it. Offsets and values are those of the PCI and virtio
 * specifications, written out, so that a wrong constant in the model is seen.
 */
#include <glib.h>

#include "pci_config.h"

#define MIB 0x100000ULL
#define GIB 0x40000000ULL

static struct vgpu_pci pci;

static void set_up(u64 window)
{
    memset(&pci, 0xa5, sizeof(pci));
    vgpu_pci_init(&pci, window, 0x1234);
}

static u32 read_config(u64 offset, size_t len)
{
    u8 raw[4] = {0};

    vgpu_pci_read(&pci, offset, raw, len);
    return raw[0] | raw[1] << 8 | raw[2] << 16 | (u32)raw[3] << 24;
}

static void write_config(u64 offset, u32 value, size_t len)
{
    u8 raw[4] = {(u8)value, (u8)(value >> 8), (u8)(value >> 16), (u8)(value >> 24)};

    vgpu_pci_write(&pci, offset, raw, len);
}

static void test_header(void)
{
    set_up(256 * MIB);
    g_assert_cmphex(read_config(0x00, 4), ==, 0x10501af4);
    g_assert_cmphex(read_config(0x04, 2), ==, 0x0000); /* command */
    g_assert_cmphex(read_config(0x06, 2), ==, 0x0010); /* status: capabilities */
    g_assert_cmphex(read_config(0x08, 4), ==, 0x03800001);
    g_assert_cmphex(read_config(0x0e, 1), ==, 0x00);
    g_assert_cmphex(read_config(0x28, 4), ==, 0);
    g_assert_cmphex(read_config(0x2c, 4), ==, 0x12341af4);
    g_assert_cmphex(read_config(0x30, 4), ==, 0); /* no ROM */
    g_assert_cmphex(read_config(0x3d, 1), ==, 0); /* no INTx */
}

static void test_bar_sizing(void)
{
    for (u64 window = MIB; window <= 64 * GIB; window *= 2) {
        u64 size;

        set_up(window);
        g_assert_cmphex(read_config(0x10, 4), ==, 0x0);
        g_assert_cmphex(read_config(0x14, 4), ==, 0x0);
        g_assert_cmphex(read_config(0x18, 4), ==, 0xc);
        g_assert_cmphex(read_config(0x1c, 4), ==, 0x0);
        for (u64 bar = 0x10; bar < 0x28; bar += 4)
            write_config(bar, 0xffffffff, 4);
        g_assert_cmphex(read_config(0x10, 4), ==, 0xffffc000);
        g_assert_cmphex(read_config(0x14, 4), ==, 0xfffff000);
        g_assert_cmphex(read_config(0x18, 4) & 0xf, ==, 0xc);
        size = ((u64)read_config(0x1c, 4) << 32) | (read_config(0x18, 4) & ~0xfu);
        g_assert_cmphex(~size + 1, ==, window);
        g_assert_cmphex(read_config(0x20, 4), ==, 0);
        g_assert_cmphex(read_config(0x24, 4), ==, 0);
    }
}

static void test_bar_address(void)
{
    set_up(256 * MIB);
    write_config(0x10, 0xfebf1234, 4);
    g_assert_cmphex(read_config(0x10, 4), ==, 0xfebf0000);
    write_config(0x14, 0xfeaf1fff, 4);
    g_assert_cmphex(read_config(0x14, 4), ==, 0xfeaf1000);
    write_config(0x18, 0xefffffff, 4);
    write_config(0x1c, 0x00000038, 4);
    g_assert_cmphex(read_config(0x18, 4), ==, 0xe000000c);
    g_assert_cmphex(read_config(0x1c, 4), ==, 0x38);
    /* By bytes, as some firmware does. */
    write_config(0x13, 0x80, 1);
    write_config(0x10, 0xff, 1);
    g_assert_cmphex(read_config(0x10, 4), ==, 0x80bf0000);
}

static void test_command(void)
{
    set_up(256 * MIB);
    g_assert_false(vgpu_pci_bus_master(&pci));
    write_config(0x04, 0x0002, 2);
    g_assert_false(vgpu_pci_bus_master(&pci));
    write_config(0x04, 0x0004, 2);
    g_assert_true(vgpu_pci_bus_master(&pci));
    write_config(0x04, 0xffffffff, 4);
    g_assert_cmphex(read_config(0x04, 4), ==, 0x00100406);
    write_config(0x04, 0, 4);
    g_assert_cmphex(read_config(0x04, 4), ==, 0x00100000);
}

/* The only bytes that change when all ones, then all zeros, are written everywhere. */
static void test_read_only(void)
{
    u8 mask[256] = {
        [0x04] = 0x06, [0x05] = 0x04, [0x11] = 0xc0, [0x12] = 0xff, [0x13] = 0xff, [0x15] = 0xf0,
        [0x16] = 0xff, [0x17] = 0xff, [0x1b] = 0xf0, [0x1c] = 0xff, [0x1d] = 0xff, [0x1e] = 0xff,
        [0x1f] = 0xff, [0x3c] = 0xff, [0x43] = 0xc0, [0xac] = 0xff, [0xb0] = 0xff, [0xb1] = 0xff,
        [0xb2] = 0xff, [0xb3] = 0xff, [0xb4] = 0xff, [0xb5] = 0xff, [0xb6] = 0xff, [0xb7] = 0xff,
        [0xb8] = 0xff, [0xb9] = 0xff, [0xba] = 0xff, [0xbb] = 0xff};
    u8 before[256], ones[256], zeros[256], all[256];

    set_up(256 * MIB);
    vgpu_pci_read(&pci, 0, before, 256);
    memset(all, 0xff, 256);
    vgpu_pci_write(&pci, 0, all, 256);
    vgpu_pci_read(&pci, 0, ones, 256);
    memset(all, 0, 256);
    vgpu_pci_write(&pci, 0, all, 256);
    vgpu_pci_read(&pci, 0, zeros, 256);
    for (guint i = 0; i < 256; i++) {
        g_assert_cmphex(ones[i], ==, before[i] | mask[i]);
        g_assert_cmphex(zeros[i], ==, before[i] & ~mask[i]);
    }
}

struct seen {
    guint msix, type[16], count;
    u64 last;
};

/* One virtio capability: struct virtio_pci_cap, 16 bytes and more. */
static void look_at_virtio(struct seen *seen, u64 cap, u64 window)
{
    static const u8 lens[] = {[1] = 16, [2] = 20, [3] = 16, [4] = 16, [5] = 20, [8] = 24};
    static const u32 offsets[] = {[1] = 0x0000, [2] = 0x3000, [3] = 0x1000, [4] = 0x2000};
    u32 type = read_config(cap + 3, 1);

    g_assert_cmpuint(type, <, G_N_ELEMENTS(lens));
    g_assert_cmpuint(read_config(cap + 2, 1), ==, lens[type]);
    seen->type[type]++;
    if (type == 8) {
        u64 offset = read_config(cap + 8, 4) | (u64)read_config(cap + 16, 4) << 32;
        u64 length = read_config(cap + 12, 4) | (u64)read_config(cap + 20, 4) << 32;

        g_assert_cmphex(read_config(cap + 4, 1), ==, 2);
        g_assert_cmphex(read_config(cap + 5, 1), ==, 1); /* id: host visible */
        g_assert_cmphex(offset, ==, 0);
        g_assert_cmphex(length, ==, window);
        return;
    }
    g_assert_cmphex(read_config(cap + 4, 4), ==, 0); /* BAR, id, padding */
    if (type == 5) {
        g_assert_cmphex(read_config(cap + 8, 4), ==, 0);
        g_assert_cmphex(read_config(cap + 12, 4), ==, 0);
        return;
    }
    g_assert_cmphex(read_config(cap + 8, 4), ==, offsets[type]);
    g_assert_cmphex(read_config(cap + 12, 4), ==, 0x1000);
    if (type == 2)
        g_assert_cmphex(read_config(cap + 16, 4), ==, 4);
}

static void walk_capabilities(u64 window)
{
    struct seen seen = {0};
    u64 end = 0x40;

    set_up(window);
    for (u64 cap = read_config(0x34, 1); cap; cap = read_config(cap + 1, 1)) {
        u32 id = read_config(cap, 1);

        g_assert_cmpuint(cap % 4, ==, 0);
        g_assert_cmpuint(cap, >=, end); /* none lies in the one before */
        g_assert_cmpuint(++seen.count, <, 20);
        if (id == 0x11) {
            seen.msix++;
            g_assert_cmphex(read_config(cap + 2, 2), ==, 0x0002); /* three vectors, off */
            g_assert_cmphex(read_config(cap + 4, 4), ==, 0x0001); /* table: BAR 1 at 0 */
            g_assert_cmphex(read_config(cap + 8, 4), ==, 0x0801); /* pending: BAR 1 at 0x800 */
            end = cap + 12;
        } else {
            g_assert_cmphex(id, ==, 0x09);
            look_at_virtio(&seen, cap, window);
            end = cap + read_config(cap + 2, 1);
        }
    }
    g_assert_cmpuint(end, <=, 256);
    g_assert_cmpuint(seen.msix, ==, 1);
    g_assert_cmpuint(seen.count, ==, 7);
    for (guint type = 0; type < 16; type++)
        g_assert_cmpuint(seen.type[type], ==, (type >= 1 && type <= 5) || type == 8);
}

static void test_capabilities(void)
{
    walk_capabilities(MIB);
    walk_capabilities(256 * MIB);
    walk_capabilities(8 * GIB);
    walk_capabilities(64 * GIB);
}

/* What an access to config space is, with the window in config space set to a place in a BAR. */
static bool is_accessed(u8 bar, u32 offset, u32 len, u64 at, size_t size,
                        struct vgpu_pci_cfg_access *access)
{
    write_config(0xac, bar, 1);
    write_config(0xb0, offset, 4);
    write_config(0xb4, len, 4);
    return vgpu_pci_cfg_access(&pci, at, size, access);
}

static void test_cfg_access(void)
{
    struct vgpu_pci_cfg_access access;

    set_up(256 * MIB);
    g_assert_false(vgpu_pci_cfg_access(&pci, 0xb8, 4, &access)); /* no length yet */
    for (u32 len = 1; len <= 4; len *= 2) {
        g_assert_true(is_accessed(2, 0x1238, len, 0xb8, len, &access));
        g_assert_cmphex(access.bar, ==, 2);
        g_assert_cmphex(access.offset, ==, 0x1238);
        g_assert_cmpuint(access.len, ==, len);
    }
    /* The BAR gets the data that a write has stored, and a read sees the BAR's data. */
    write_config(0xb8, 0x12345678, 4);
    g_assert_cmpmem(access.data, 4, "\x78\x56\x34\x12", 4);
    access.data[0] = 0x99;
    g_assert_cmphex(read_config(0xb8, 4), ==, 0x12345699);
    /* Lengths and offsets that the specification does not allow. */
    g_assert_false(is_accessed(0, 0, 0, 0xb8, 4, &access));
    g_assert_false(is_accessed(0, 0, 3, 0xb8, 4, &access));
    g_assert_false(is_accessed(0, 0, 8, 0xb8, 4, &access));
    g_assert_false(is_accessed(0, 0, 0xffffffff, 0xb8, 4, &access));
    g_assert_false(is_accessed(0, 2, 4, 0xb8, 4, &access));
    g_assert_true(is_accessed(0, 0xfffffffc, 4, 0xb8, 4, &access));
    g_assert_cmphex(access.offset, ==, 0xfffffffc);
    /* Elsewhere in config space nothing is accessed. */
    g_assert_true(is_accessed(0, 0, 4, 0xbb, 1, &access));
    g_assert_false(is_accessed(0, 0, 4, 0xb4, 4, &access));
    g_assert_false(is_accessed(0, 0, 4, 0xbc, 4, &access));
    g_assert_false(is_accessed(0, 0, 4, 0x00, 4, &access));
    g_assert_false(vgpu_pci_cfg_access(&pci, UINT64_MAX - 1, 4, &access));
    g_assert_false(vgpu_pci_cfg_access(&pci, 0, SIZE_MAX, &access));
}

static void test_msix_control(void)
{
    set_up(256 * MIB);
    g_assert_cmphex(read_config(0x40, 1), ==, 0x11);
    write_config(0x42, 0xffff, 2);
    g_assert_cmphex(read_config(0x42, 2), ==, 0xc002);
    write_config(0x42, 0x8000, 2);
    g_assert_cmphex(read_config(0x42, 2), ==, 0x8002);
    write_config(0x42, 0x0000, 2);
    g_assert_cmphex(read_config(0x42, 2), ==, 0x0002);
}

static void test_bounds(void)
{
    u8 raw[8] = {0};
    struct vgpu_pci copy;

    set_up(256 * MIB);
    vgpu_pci_read(&pci, 252, raw, 8);
    g_assert_cmpmem(raw, 8, "\0\0\0\0\xff\xff\xff\xff", 8);
    memset(raw, 0, sizeof(raw));
    vgpu_pci_read(&pci, 256, raw, 8);
    g_assert_cmpmem(raw, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    memset(raw, 0, sizeof(raw));
    vgpu_pci_read(&pci, UINT64_MAX - 1, raw, 4);
    g_assert_cmpmem(raw, 4, "\xff\xff\xff\xff", 4);
    vgpu_pci_read(&pci, 0, raw, 0);

    copy = pci;
    vgpu_pci_write(&pci, 252, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    vgpu_pci_write(&pci, 256, "\xff\xff\xff\xff", 4);
    vgpu_pci_write(&pci, UINT64_MAX - 1, "\xff\xff\xff\xff", 4);
    g_assert_cmpmem(&pci, sizeof(pci), &copy, sizeof(copy));
}

static void test_reset(void)
{
    struct vgpu_pci fresh;

    set_up(8 * GIB);
    fresh = pci;
    write_config(0x04, 0x0006, 2);
    write_config(0x18, 0xc0000000, 4);
    write_config(0x42, 0x8000, 2);
    write_config(0x3c, 0x0b, 1);
    g_assert_cmpint(memcmp(&pci, &fresh, sizeof(pci)), !=, 0);
    vgpu_pci_reset(&pci);
    g_assert_cmpmem(&pci, sizeof(pci), &fresh, sizeof(fresh));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pci/header", test_header);
    g_test_add_func("/pci/bar-sizing", test_bar_sizing);
    g_test_add_func("/pci/bar-address", test_bar_address);
    g_test_add_func("/pci/command", test_command);
    g_test_add_func("/pci/read-only", test_read_only);
    g_test_add_func("/pci/capabilities", test_capabilities);
    g_test_add_func("/pci/cfg-access", test_cfg_access);
    g_test_add_func("/pci/msix-control", test_msix_control);
    g_test_add_func("/pci/bounds", test_bounds);
    g_test_add_func("/pci/reset", test_reset);
    return g_test_run();
}
