/* SPDX-License-Identifier: MIT */
/*
 * Limits of the arguments of the driver's own interfaces, each rule with a value that just keeps
 * and one that just breaks it.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "uapi_check.h"

#define PAGE   4096ull
#define MIB    0x100000ull
#define WINDOW (16 * MIB)
#define TASK   0x7ffffffff000ull

static int check_range(u64 offset, u64 size, u64 addr)
{
    struct vgpu_window_range arg = {.offset = offset, .size = size, .addr = addr};

    return vgpu_check_window_range(&arg, WINDOW, TASK);
}

static void test_window_range(void)
{
    g_assert_cmpint(check_range(0, WINDOW, 0x10000), ==, 0);
    g_assert_cmpint(check_range(WINDOW - PAGE, PAGE, TASK - PAGE), ==, 0);
    g_assert_cmpint(check_range(0, 0, 0x10000), ==, -EINVAL);
    g_assert_cmpint(check_range(WINDOW, PAGE, 0x10000), ==, -EINVAL);
    g_assert_cmpint(check_range(PAGE, WINDOW, 0x10000), ==, -EINVAL);
    g_assert_cmpint(check_range(PAGE, (u64)0 - PAGE, 0x10000), ==, -EINVAL);
    g_assert_cmpint(check_range(0, PAGE, TASK), ==, -EINVAL);
    g_assert_cmpint(check_range(0, 2 * PAGE, TASK - PAGE), ==, -EINVAL);
    g_assert_cmpint(check_range(0, 2 * PAGE, (u64)0 - PAGE), ==, -EINVAL);
    g_assert_cmpint(check_range(1, PAGE, 0x10000), ==, -EINVAL);
    g_assert_cmpint(check_range(0, PAGE + 1, 0x10000), ==, -EINVAL);
    g_assert_cmpint(check_range(0, PAGE, 0x10001), ==, -EINVAL);
}

static int check_entries(u64 iova, u64 size, u32 n, u64 *pages)
{
    struct vgpu_mem_entry entry[4];

    for (u32 i = 0; i < 4; i++)
        entry[i] = (struct vgpu_mem_entry){iova, size};
    return vgpu_check_mem_entries(entry, n, pages);
}

static void test_mem_entries(void)
{
    const u64 most = VGPU_MEM_MAX_PAGES * PAGE;
    u64 pages = 0;

    g_assert_cmpint(check_entries(PAGE, 3 * PAGE, 4, &pages), ==, 0);
    g_assert_cmpuint(pages, ==, 12);
    g_assert_cmpint(check_entries(0, most / 4, 4, &pages), ==, 0);
    g_assert_cmpuint(pages, ==, VGPU_MEM_MAX_PAGES);
    g_assert_cmpint(check_entries(0, most / 4 + PAGE, 4, &pages), ==, -ENOMEM);
    g_assert_cmpint(check_entries(0, 1ull << 63, 4, &pages), ==, -ENOMEM);
    g_assert_cmpint(check_entries(0, PAGE, 0, &pages), ==, -EINVAL);
    g_assert_cmpint(check_entries(0, PAGE, VGPU_MEM_MAX_ENTRIES + 1, &pages), ==, -EINVAL);
    g_assert_cmpint(check_entries(0, 0, 1, &pages), ==, -EINVAL);
    g_assert_cmpint(check_entries(8, PAGE, 1, &pages), ==, -EINVAL);
    g_assert_cmpint(check_entries(0, PAGE + 8, 1, &pages), ==, -EINVAL);
    g_assert_cmpint(check_entries((u64)0 - PAGE, 2 * PAGE, 1, &pages), ==, -EINVAL);
}

static struct vgpu_type_desc good_type(const char *name)
{
    struct vgpu_type_desc desc = {
        .vram_bytes = 1, .window_bytes = MIB, .weight = 1, .cap = 100, .priority = 15};

    g_strlcpy(desc.name, name, sizeof(desc.name));
    return desc;
}

static void assert_type(int expected, size_t at, u64 value, size_t len)
{
    struct vgpu_type_desc desc = good_type("a");

    memcpy((u8 *)&desc + at, &value, len);
    g_assert_cmpint(vgpu_check_types(&desc, 1), ==, expected);
}

#define assert_field(expected, name, value)                                                        \
    assert_type(expected, offsetof(struct vgpu_type_desc, name), value,                            \
                sizeof(((struct vgpu_type_desc *)0)->name))

static void test_type_numbers(void)
{
    assert_field(0, weight, 10000);
    assert_field(-EINVAL, weight, 10001);
    assert_field(-EINVAL, weight, 0);
    assert_field(-EINVAL, cap, 0);
    assert_field(-EINVAL, cap, 101);
    assert_field(-EINVAL, priority, 16);
    assert_field(-EINVAL, vram_bytes, 0);
    assert_field(0, scanouts, 1);
    assert_field(-EINVAL, scanouts, 2);
    assert_field(0, cuda, 1);
    assert_field(-EINVAL, cuda, 2);
    assert_field(0, window_bytes, 64ull << 30);
    assert_field(-EINVAL, window_bytes, 128ull << 30);
    assert_field(-EINVAL, window_bytes, MIB / 2);
    assert_field(-EINVAL, window_bytes, 3 * MIB);
    assert_field(-EINVAL, reserved[5], 1);
}

static void test_type_names(void)
{
    static const char *const bad[] = {"", ".a", "-a", "_a", "A", "aB", "a b", "a/b", "a%s", "ä"};
    struct vgpu_type_desc two[2] = {good_type("a"), good_type("a")};
    struct vgpu_type_desc desc;

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        desc = good_type(bad[i]);
        g_assert_cmpint(vgpu_check_types(&desc, 1), ==, -EINVAL);
    }
    desc = good_type("0a._-z");
    g_assert_cmpint(vgpu_check_types(&desc, 1), ==, 0);
    memset(desc.name, 'a', sizeof(desc.name));
    g_assert_cmpint(vgpu_check_types(&desc, 1), ==, -EINVAL);
    g_assert_cmpint(vgpu_check_types(two, 2), ==, -EINVAL);
    two[1].name[0] = 'b';
    g_assert_cmpint(vgpu_check_types(two, 2), ==, 0);
}

static int check_gpu(const char *name, u32 ntypes, u64 vram)
{
    struct vgpu_control_gpu arg = {.argsz = sizeof(arg),
                                   .ntypes = ntypes,
                                   .type_size = sizeof(struct vgpu_type_desc),
                                   .vram_bytes = vram};

    strncpy(arg.gpu, name, sizeof(arg.gpu));
    return vgpu_check_gpu(&arg);
}

static void test_gpu(void)
{
    g_autofree char *longest = g_strnfill(VGPU_GPU_NAME_LEN - 1, 'a');
    g_autofree char *too_long = g_strnfill(VGPU_GPU_NAME_LEN, 'a');

    g_assert_cmpint(check_gpu("0000:01:00.0", 1, 1), ==, 0);
    g_assert_cmpint(check_gpu("soft:a", VGPU_MAX_TYPES, 1), ==, 0);
    g_assert_cmpint(check_gpu(longest, 1, 1), ==, 0);
    g_assert_cmpint(check_gpu(too_long, 1, 1), ==, -EINVAL);
    g_assert_cmpint(check_gpu("", 1, 1), ==, -EINVAL);
    g_assert_cmpint(check_gpu("soft:", 1, 1), ==, -EINVAL);
    g_assert_cmpint(check_gpu("soft:.", 1, 1), ==, -EINVAL);
    g_assert_cmpint(check_gpu("soft:a/b", 1, 1), ==, -EINVAL);
    g_assert_cmpint(check_gpu("soft:a", 0, 1), ==, -EINVAL);
    g_assert_cmpint(check_gpu("soft:a", VGPU_MAX_TYPES + 1, 1), ==, -EINVAL);
    g_assert_cmpint(check_gpu("soft:a", 1, 0), ==, -EINVAL);
}

static void test_drain(void)
{
    struct vgpu_control_drain arg = {.argsz = sizeof(arg), .gpu = "0000:01:00.0"};

    g_assert_cmpint(vgpu_check_drain(&arg), ==, 0);
    arg.flags = VGPU_DRAIN_ON;
    g_assert_cmpint(vgpu_check_drain(&arg), ==, 0);
    arg.flags = VGPU_DRAIN_ON << 1;
    g_assert_cmpint(vgpu_check_drain(&arg), ==, -EINVAL);
    arg.flags = 0;
    arg.argsz--;
    g_assert_cmpint(vgpu_check_drain(&arg), ==, -EINVAL);
    arg.argsz += 2;
    g_assert_cmpint(vgpu_check_drain(&arg), ==, 0);
    memset(arg.gpu, 'a', sizeof(arg.gpu));
    g_assert_cmpint(vgpu_check_drain(&arg), ==, -EINVAL);
}

static void test_announce(void)
{
    struct vgpu_control_announce arg = {.argsz = sizeof(arg), .gpu = "0000:01:00.0", .type = "t"};

    g_assert_cmpint(vgpu_check_announce(&arg), ==, 0);
    arg.flags = 1;
    g_assert_cmpint(vgpu_check_announce(&arg), ==, -EINVAL);
    arg.flags = 0;
    arg.reserved[2] = 1;
    g_assert_cmpint(vgpu_check_announce(&arg), ==, -EINVAL);
    arg.reserved[2] = 0;
    arg.argsz--;
    g_assert_cmpint(vgpu_check_announce(&arg), ==, -EINVAL);
    arg.argsz++;
    memset(arg.type, 'a', sizeof(arg.type));
    g_assert_cmpint(vgpu_check_announce(&arg), ==, -EINVAL);
    arg.type[sizeof(arg.type) - 1] = 0;
    g_assert_cmpint(vgpu_check_announce(&arg), ==, 0);
    memset(arg.gpu, 'a', sizeof(arg.gpu));
    g_assert_cmpint(vgpu_check_announce(&arg), ==, -EINVAL);
}

#define XRGB 0x34325258

static void assert_scanout(int expected, u32 width, u32 height, u32 stride, u32 format)
{
    struct vgpu_scanout scanout = {
        .argsz = sizeof(scanout),
        .width = width,
        .height = height,
        .stride = stride,
        .drm_format = format,
    };

    g_assert_cmpint(vgpu_check_scanout(&scanout), ==, expected);
    scanout.flags = 1;
    g_assert_cmpint(vgpu_check_scanout(&scanout), ==, -EINVAL);
    scanout.flags = 0;
    scanout.reserved[3] = 1;
    g_assert_cmpint(vgpu_check_scanout(&scanout), ==, -EINVAL);
    scanout.reserved[3] = 0;
    scanout.argsz--;
    g_assert_cmpint(vgpu_check_scanout(&scanout), ==, -EINVAL);
}

static void test_scanout(void)
{
    assert_scanout(0, 640, 480, 2560, XRGB);
    assert_scanout(0, 1, 1, 4, XRGB);
    assert_scanout(0, 3840, 2160, 15360, XRGB);
    assert_scanout(0, 0, 0, 0, 0);
    assert_scanout(-EINVAL, 0, 1, 0, 0);
    assert_scanout(-EINVAL, 0, 0, 4, 0);
    assert_scanout(-EINVAL, 0, 0, 0, XRGB);
    assert_scanout(-EINVAL, 640, 0, 2560, XRGB);
    assert_scanout(-EINVAL, 3841, 1, 15364, XRGB);
    assert_scanout(-EINVAL, 1, 2161, 4, XRGB);
    assert_scanout(-EINVAL, 640, 480, 2564, XRGB);
    assert_scanout(-EINVAL, 640, 480, 2556, XRGB);
    assert_scanout(-EINVAL, 640, 480, 2560, 0x34324258);
    assert_scanout(-EINVAL, 0x40000001, 1, 4, XRGB);
    assert_scanout(-EINVAL, 1, UINT32_MAX, 4, XRGB);
}

static void test_text(void)
{
    g_assert_true(vgpu_text_ok("", 1));
    g_assert_true(vgpu_text_ok(" ~", 3));
    g_assert_false(vgpu_text_ok("ab", 2));
    g_assert_false(vgpu_text_ok("a\nb", 4));
    g_assert_false(vgpu_text_ok("\x7f", 2));
    g_assert_false(vgpu_text_ok("\xc3\xa4", 3));
}

static gboolean tenant_ok(const char *name)
{
    return vgpu_tenant_ok(name, strlen(name));
}

static void test_tenant(void)
{
    g_autofree char *longest = g_strnfill(VGPU_TENANT_LEN - 1, 'x');
    g_autofree char *longer = g_strnfill(VGPU_TENANT_LEN, 'x');

    g_assert_true(tenant_ok("r"));
    g_assert_true(tenant_ok("7-Red_team.eu"));
    g_assert_true(tenant_ok(longest));
    g_assert_false(tenant_ok(longer));
    g_assert_false(tenant_ok(""));
    g_assert_false(tenant_ok("-red"));
    g_assert_false(tenant_ok(".."));
    g_assert_false(tenant_ok("a/b"));
    g_assert_false(tenant_ok("a b"));
    g_assert_false(tenant_ok("red\n"));
    g_assert_false(tenant_ok("r\xc3\xa9"));
    g_assert_false(vgpu_tenant_ok("a\0b", 3));
}

static int check_exchange(u32 nanswers, u32 nrequests, u32 queues, u32 poll_us, u32 flags)
{
    struct vgpu_queue_exchange arg = {
        .argsz = sizeof(arg),
        .flags = flags,
        .nanswers = nanswers,
        .nrequests = nrequests,
        .queues = queues,
        .poll_us = poll_us,
    };

    return vgpu_check_exchange(&arg);
}

static int waiting_exchange(u32 nrequests, u32 flags)
{
    struct vgpu_queue_exchange arg = {
        .argsz = sizeof(arg),
        .flags = flags,
        .nrequests = nrequests,
        .wait_ms = VGPU_EXCHANGE_FOREVER,
        .wait_fd = -1,
    };

    return vgpu_check_exchange(&arg);
}

static void test_exchange(void)
{
    const u32 all = VGPU_EXCHANGE_TRUNCATE | VGPU_EXCHANGE_EVENTS, most = VGPU_EXCHANGE_MAX;
    struct vgpu_queue_exchange arg = {.argsz = sizeof(arg), .reserved = 1};

    g_assert_cmpint(check_exchange(0, 0, 0, 0, 0), ==, 0);
    g_assert_cmpint(check_exchange(most, most, 3, VGPU_EXCHANGE_POLL_MAX, all), ==, 0);
    g_assert_cmpint(check_exchange(most + 1, 0, 0, 0, 0), ==, -EINVAL);
    g_assert_cmpint(check_exchange(0, most + 1, 0, 0, 0), ==, -EINVAL);
    g_assert_cmpint(check_exchange(0, 0, 4, 0, 0), ==, -EINVAL);
    g_assert_cmpint(check_exchange(0, 0, 1u << 31, 0, 0), ==, -EINVAL);
    g_assert_cmpint(check_exchange(0, 0, 0, VGPU_EXCHANGE_POLL_MAX + 1, 0), ==, -EINVAL);
    g_assert_cmpint(check_exchange(1, 0, 0, 0, VGPU_EXCHANGE_CONNECTED), ==, 0);
    g_assert_cmpint(check_exchange(0, 0, 0, 0, 8), ==, -EINVAL);
    g_assert_cmpint(waiting_exchange(1, VGPU_EXCHANGE_EVENTS), ==, 0);
    g_assert_cmpint(waiting_exchange(0, VGPU_EXCHANGE_EVENTS), ==, -EINVAL);
    g_assert_cmpint(waiting_exchange(1, VGPU_EXCHANGE_TRUNCATE), ==, -EINVAL);
    g_assert_cmpint(waiting_exchange(1, VGPU_EXCHANGE_EVENTS | VGPU_EXCHANGE_CONNECTED), ==,
                    -EINVAL);
    g_assert_cmpint(vgpu_check_exchange(&arg), ==, -EINVAL);
    arg = (struct vgpu_queue_exchange){.argsz = sizeof(arg) - 1};
    g_assert_cmpint(vgpu_check_exchange(&arg), ==, -EINVAL);
}

static void test_answers(void)
{
    struct vgpu_queue_answer answer[VGPU_EXCHANGE_MAX] = {{.queue = 1, .size = VGPU_REQUEST_MAX}};

    g_assert_cmpint(vgpu_check_answers(answer, 0), ==, 0);
    g_assert_cmpint(vgpu_check_answers(answer, VGPU_EXCHANGE_MAX), ==, 0);
    answer[VGPU_EXCHANGE_MAX - 1].size = 1;
    g_assert_cmpint(vgpu_check_answers(answer, VGPU_EXCHANGE_MAX), ==, -EMSGSIZE);
    for (u32 i = 0; i < VGPU_EXCHANGE_MAX; i++)
        answer[i].size = UINT32_MAX;
    g_assert_cmpint(vgpu_check_answers(answer, VGPU_EXCHANGE_MAX), ==, -EMSGSIZE);
    answer[1].queue = VGPU_NUM_QUEUES;
    g_assert_cmpint(vgpu_check_answers(answer, VGPU_EXCHANGE_MAX), ==, -EINVAL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/uapi/window-range", test_window_range);
    g_test_add_func("/uapi/mem-entries", test_mem_entries);
    g_test_add_func("/uapi/type-numbers", test_type_numbers);
    g_test_add_func("/uapi/type-names", test_type_names);
    g_test_add_func("/uapi/gpu", test_gpu);
    g_test_add_func("/uapi/drain", test_drain);
    g_test_add_func("/uapi/announce", test_announce);
    g_test_add_func("/uapi/scanout", test_scanout);
    g_test_add_func("/uapi/exchange", test_exchange);
    g_test_add_func("/uapi/answers", test_answers);
    g_test_add_func("/uapi/text", test_text);
    g_test_add_func("/uapi/tenant", test_tenant);
    return g_test_run();
}
