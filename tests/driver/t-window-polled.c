/* SPDX-License-Identifier: MIT */
/*
 * A guest that polls its rings, as Venus does, while the engine unmaps their memory. A page that is
 * being removed must not be mapped again by a fault in between, because it is freed next, and the
 * guest would write to its next owner's memory.
 */
#include <sys/mman.h>

#include "testbed.h"

#define SIZE (16 * PAGE_BYTES)
/*
 * The pages are removed from one mapping after the other, so the first can fault while the last is
 * still being processed.
 */
#define MAPPINGS 48
#define ROUNDS   40

typedef struct {
    volatile uint32_t *mapping[MAPPINGS];
    volatile int stop;
} Poller;

static void *poll_all(void *data)
{
    Poller *poller = data;
    uint32_t sum = 0;

    while (!poller->stop)
        for (unsigned i = 0; i < MAPPINGS; i++)
            sum += *poller->mapping[i];
    return (void *)(uintptr_t)sum;
}

static void map_all(Testbed *tb, Poller *poller)
{
    testbed_window(tb);
    for (unsigned i = 0; i < MAPPINGS; i++) {
        void *mapping =
            vmm_region_mmap(&tb->dev, VFIO_PCI_BAR2_REGION_INDEX, 0, SIZE, PROT_READ | PROT_WRITE);

        g_assert_true(mapping != MAP_FAILED);
        poller->mapping[i] = mapping;
    }
}

static void unmap_all(const Poller *poller)
{
    for (unsigned i = 0; i < MAPPINGS; i++)
        munmap((void *)poller->mapping[i], SIZE);
}

static void assert_all_blank(const Poller *poller, unsigned round)
{
    for (unsigned i = 0; i < MAPPINGS; i++)
        if (*poller->mapping[i] != VGPU_WINDOW_BLANK)
            g_error("round %u: mapping %u still shows 0x%08x, of memory that the engine has "
                    "unmapped",
                    round, i, *poller->mapping[i]);
}

static void test_munmap(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    Poller poller = {.stop = 0};
    uint64_t addr;

    map_all(tb, &poller);
    for (unsigned round = 0; round < ROUNDS; round++) {
        GThread *thread;

        assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &addr));
        assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
        g_assert_cmphex(*poller.mapping[0], ==, memory_pattern(0, 0));
        poller.stop = 0;
        thread = g_thread_new("guest", poll_all, &poller);
        g_usleep(2000);
        assert_ok(peer_munmap(tb->engine, addr, SIZE));
        assert_all_blank(&poller, round);
        poller.stop = 1;
        g_thread_join(thread);
        assert_ok(peer_unpublish(tb->engine, 0, SIZE));
    }
    unmap_all(&poller);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add_limit("/window-polled/munmap", test_munmap, 120);
    return driver_test_run();
}
