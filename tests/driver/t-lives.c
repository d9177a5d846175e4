/* SPDX-License-Identifier: MIT */
/*
 * Whole lives of a GPU and its vGPU leave nothing in the kernel. They come in batches: with a leak
 * of one object in each life every batch leaves something; other changes of the system do not.
 */
#include <string.h>

#include "kernel_counts.h"
#include "testbed.h"

#define WARM_UP 8
#define BATCHES 3
/* Lives in each batch. */
#define LIVES 24
/* Half of the lives use something that the other half does not. */
#define LEAST (LIVES / 2)
/* Of silence: udev may be busy for minutes with what a batch has left it. */
#define LIMIT_S 700
#define SIZE    (16 * PAGE_BYTES)

static void use_window(Testbed *tb)
{
    uint64_t addr;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &addr));
    assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
    assert_window_pattern(tb, PAGE_BYTES, 1);
    assert_ok(peer_unpublish(tb->engine, 0, SIZE));
    assert_window_blank(tb, PAGE_BYTES);
    /* The driver must remove ranges that are still published at the end. */
    assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
    assert_window_pattern(tb, 0, 0);
}

static void use_guest_memory(Testbed *tb)
{
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 8 * MIB, 4 * PAGE_BYTES};
    uint64_t addr;

    memset(tb->ram.mem + 8 * MIB, 0x42, 4 * PAGE_BYTES);
    assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, NULL, &addr));
}

static void live_once(unsigned n)
{
    Testbed *tb = testbed_new(TESTBED_AT_VGPU);

    if (n % 2)
        assert_ok(mdev_attr_set(tb->uuid, "vgpu/display", "1"));
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_round_trip(tb, 1);
    use_window(tb);
    use_guest_memory(tb);
    if (n % 2) {
        engine_peer_kill(tb->engine);
        tb->engine = NULL;
        assert_answered_with_error(tb, 2);
    } else {
        guest_up(&tb->guest, GUEST_FEATURES);
        assert_round_trip(tb, 2);
    }
    testbed_free(tb);
    assert_ok(mdev_gpu_remove(TESTBED_GPU));
}

static void test_lives(void)
{
    KernelCounts *counts[BATCHES + 1];

    for (unsigned n = 0; n < WARM_UP; n++)
        live_once(n);
    counts[0] = kernel_counts_take();
    for (unsigned batch = 1; batch <= BATCHES; batch++) {
        for (unsigned n = 0; n < LIVES; n++)
            live_once(n);
        g_printerr("# %u lives\n", batch * LIVES);
        counts[batch] = kernel_counts_take();
    }
    g_assert_cmpuint(kernel_counts_grown(counts, BATCHES + 1, LEAST), ==, 0);
    for (unsigned i = 0; i <= BATCHES; i++)
        kernel_counts_free(counts[i]);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add_limit("/lives/nothing-left", test_lives, LIMIT_S);
    return driver_test_run();
}
