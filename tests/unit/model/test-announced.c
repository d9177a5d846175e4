/* SPDX-License-Identifier: MIT */
/* vGPUs that are announced before they are made. */
#include <glib.h>
#include <string.h>

#include "announced.h"

#define MIB (1ull << 20)

static const u8 a[VGPU_UUID_LEN] = {0xa};
static const u8 b[VGPU_UUID_LEN] = {0xb};

static struct vgpu_announcements all;

static void begin_empty(void)
{
    memset(&all, 0, sizeof(all));
}

static u64 take_announced(const u8 *uuid, u32 type, u64 now)
{
    return vgpu_announced_take(&all, uuid, type, now);
}

static void test_taken_once(void)
{
    begin_empty();
    g_assert_cmpuint(take_announced(a, 0, 0), ==, 0);
    vgpu_announce(&all, a, 1, 64 * MIB, 100);
    vgpu_announce(&all, b, 1, 32 * MIB, 100);
    g_assert_cmpuint(take_announced(a, 0, 100), ==, 0);
    g_assert_cmpuint(take_announced(a, 1, 100), ==, 64 * MIB);
    g_assert_cmpuint(take_announced(a, 1, 100), ==, 0);
    g_assert_cmpuint(take_announced(b, 1, 100), ==, 32 * MIB);
}

static void test_replaced(void)
{
    begin_empty();
    vgpu_announce(&all, a, 1, 64 * MIB, 100);
    vgpu_announce(&all, a, 2, 16 * MIB, 101);
    g_assert_false(vgpu_announced_fits(&all, 1, 1024 * MIB, 101));
    g_assert_cmpuint(take_announced(a, 1, 101), ==, 0);
    g_assert_cmpuint(take_announced(a, 2, 101), ==, 16 * MIB);
    vgpu_announce(&all, a, 2, 16 * MIB, 101);
    vgpu_announce(&all, a, 2, 0, 101);
    g_assert_cmpuint(take_announced(a, 2, 101), ==, 0);
}

static void test_fits(void)
{
    begin_empty();
    g_assert_false(vgpu_announced_fits(&all, 0, G_MAXUINT64, 0));
    vgpu_announce(&all, a, 1, 64 * MIB, 0);
    g_assert_false(vgpu_announced_fits(&all, 1, 64 * MIB - 1, 0));
    g_assert_true(vgpu_announced_fits(&all, 1, 64 * MIB, 0));
    g_assert_false(vgpu_announced_fits(&all, 0, 64 * MIB, 0));
    vgpu_announce(&all, b, 1, 32 * MIB, 0);
    g_assert_true(vgpu_announced_fits(&all, 1, 32 * MIB, 0));
}

static void test_forgotten(void)
{
    begin_empty();
    vgpu_announce(&all, a, 1, 64 * MIB, 100);
    g_assert_true(vgpu_announced_fits(&all, 1, 64 * MIB, 99 + VGPU_ANNOUNCE_SECONDS));
    g_assert_false(vgpu_announced_fits(&all, 1, 64 * MIB, 100 + VGPU_ANNOUNCE_SECONDS));
    g_assert_cmpuint(take_announced(a, 1, 100 + VGPU_ANNOUNCE_SECONDS), ==, 0);
}

static const u8 *uuid_of(u32 i)
{
    static u8 uuid[VGPU_UUID_LEN];

    uuid[0] = 1;
    uuid[15] = (u8)i;
    return uuid;
}

/* The oldest goes for a later one, but for none that is only forgotten. */
static void test_most(void)
{
    begin_empty();
    for (u32 i = 0; i < VGPU_ANNOUNCE_MAX; i++)
        vgpu_announce(&all, uuid_of(i), 0, MIB, 10 + i % 50);
    vgpu_announce(&all, a, 0, 0, 59);
    g_assert_cmpuint(take_announced(uuid_of(0), 0, 59), ==, MIB);
    vgpu_announce(&all, uuid_of(0), 0, MIB, 59);
    vgpu_announce(&all, a, 0, 2 * MIB, 59);
    g_assert_cmpuint(take_announced(uuid_of(50), 0, 59), ==, 0);
    g_assert_cmpuint(take_announced(a, 0, 59), ==, 2 * MIB);
    for (u32 i = 0; i < VGPU_ANNOUNCE_MAX; i++)
        if (i != 50)
            g_assert_cmpuint(take_announced(uuid_of(i), 0, 59), ==, MIB);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/announced/taken-once", test_taken_once);
    g_test_add_func("/announced/replaced", test_replaced);
    g_test_add_func("/announced/fits", test_fits);
    g_test_add_func("/announced/forgotten", test_forgotten);
    g_test_add_func("/announced/most", test_most);
    return g_test_run();
}
