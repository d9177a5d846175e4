/* SPDX-License-Identifier: MIT */
/*
 * What a VMM can do with iommufd and not with a container: take all memory away from a vGPU, or
 * exchange it, at any moment.
 */
#include <pthread.h>
#include <string.h>

#include "testbed.h"

#define IOVA   (TESTBED_RAM_IOVA + 8 * MIB)
#define PAGES  16
#define BLANK  0xffffffff
#define ROUNDS 300

/* A testbed with its guest up, and another address space that has other memory at the same place.
 */
typedef struct {
    Testbed *tb;
    VmmContainer other;
    VmmRam ram;
} Exchange;

static void set_word(const VmmRam *ram, uint32_t word)
{
    for (uint64_t i = 0; i < PAGES; i++)
        memcpy(ram->mem + (IOVA - ram->iova) + i * PAGE_BYTES, &word, sizeof(word));
}

static Exchange exchange_new(void)
{
    Exchange x = {0};

    if (!vmm_by_iommufd())
        driver_test_skip("VMMs use type1 here (check-driver --iommufd)");
    x.tb = testbed_new(TESTBED_AT_GUEST);
    assert_ok(vmm_container_another(&x.tb->container, &x.other));
    assert_ok(vmm_ram_new(&x.ram, TESTBED_RAM_SIZE, TESTBED_RAM_IOVA));
    assert_ok(vmm_ram_map(&x.other, &x.ram));
    set_word(&x.tb->ram, 0x11111111);
    set_word(&x.ram, 0x22222222);
    return x;
}

static int pin_page(Exchange *x, uint64_t *addr)
{
    const struct vgpu_mem_entry entry = {IOVA, PAGES * PAGE_BYTES};

    return peer_pin(x->tb->engine, &entry, 1, VGPU_MEM_WRITE, NULL, addr);
}

static uint32_t peek_word(Exchange *x, uint64_t addr)
{
    uint32_t word = 0;

    assert_ok(peer_peek(x->tb->engine, addr + (PAGES - 1) * PAGE_BYTES, &word, sizeof(word)));
    return word;
}

static uint64_t pinned_bytes(Exchange *x)
{
    return mdev_attr_u64(x->tb->uuid, "vgpu/pinned_bytes");
}

/* The guest has lost its rings; it comes up again, and works. */
static void finish_exchange(Exchange *x)
{
    guest_reset(&x->tb->guest);
    guest_up(&x->tb->guest, GUEST_FEATURES);
    assert_round_trip(x->tb, 1);
    g_assert_cmpuint(pinned_bytes(x), ==, 0);
    testbed_free(x->tb);
    vmm_ram_free(&x->ram);
}

static void test_detach(void)
{
    Exchange x = exchange_new();
    uint64_t addr, again;

    assert_ok(pin_page(&x, &addr));
    g_assert_cmphex(peek_word(&x, addr), ==, 0x11111111);
    assert_ok(vmm_device_detach(&x.tb->dev));
    g_assert_cmphex(peek_word(&x, addr), ==, BLANK);
    g_assert_cmpuint(pinned_bytes(&x), ==, 0);
    g_assert_cmpint(pin_page(&x, &again), <, 0);
    assert_ok(vmm_device_detach(&x.tb->dev));
    assert_ok(vmm_device_attach(&x.tb->container, &x.tb->dev));
    assert_ok(pin_page(&x, &again));
    g_assert_cmphex(peek_word(&x, again), ==, 0x11111111);
    finish_exchange(&x);
}

static void test_replace(void)
{
    Exchange x = exchange_new();
    uint64_t addr, again;

    assert_ok(pin_page(&x, &addr));
    assert_ok(vmm_device_attach(&x.other, &x.tb->dev));
    g_assert_cmphex(peek_word(&x, addr), ==, BLANK);
    assert_ok(pin_page(&x, &again));
    g_assert_cmphex(peek_word(&x, again), ==, 0x22222222);
    /* Memory of the first is not the device's any more. */
    assert_ok(vmm_dma_unmap(&x.tb->container, x.tb->ram.iova, x.tb->ram.size));
    g_assert_cmphex(peek_word(&x, again), ==, 0x22222222);
    assert_ok(vmm_ram_map(&x.tb->container, &x.tb->ram));
    assert_ok(vmm_device_attach(&x.tb->container, &x.tb->dev));
    g_assert_cmphex(peek_word(&x, again), ==, BLANK);
    finish_exchange(&x);
}

static void *pin_again_and_again(void *data)
{
    EngineCtx *ctx = data;
    const struct vgpu_mem_entry entry = {IOVA, PAGES * PAGE_BYTES};
    uint64_t epoch = engine_epoch(ctx);

    for (;;) {
        struct vgpu_mem_pin call = {.argsz = sizeof(call),
                                    .flags = VGPU_MEM_WRITE,
                                    .epoch = epoch,
                                    .nentries = 1,
                                    .entries = (uintptr_t)&entry};
        struct vgpu_mem_unpin unpin = {.argsz = sizeof(unpin), .epoch = epoch};

        if (engine_ioctl(ctx, VGPU_ENGINE_MEM_PIN, &call) == 0) {
            unpin.offset = call.offset;
            engine_ioctl(ctx, VGPU_ENGINE_MEM_UNPIN, &unpin);
        }
    }
    return NULL;
}

static int call_pin_again_and_again(EngineCtx *ctx, void *arg)
{
    pthread_t thread;

    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        if (pthread_create(&thread, NULL, pin_again_and_again, ctx))
            return -EAGAIN;
        pthread_detach(thread);
    }
    return 0;
}

/* All that a VMM can do to the memory, while two threads of the engine pin and unpin it. */
static void test_while_pinning(void)
{
    Exchange x = exchange_new();

    assert_ok(engine_peer_call(x.tb->engine, call_pin_again_and_again, NULL, 0));
    for (unsigned i = 0; i < ROUNDS; i++) {
        const VmmContainer *container = i % 2 ? &x.other : &x.tb->container;

        assert_ok(vmm_device_attach(container, &x.tb->dev));
        if (i % 3 == 0)
            assert_ok(vmm_device_detach(&x.tb->dev));
        if (i % 5)
            continue;
        assert_ok(vmm_dma_unmap(&x.other, x.ram.iova, x.ram.size));
        assert_ok(vmm_ram_map(&x.other, &x.ram));
    }
    engine_peer_kill(x.tb->engine);
    x.tb->engine = engine_peer_start(x.tb->uuid, 0);
    assert_ok(vmm_device_attach(&x.tb->container, &x.tb->dev));
    finish_exchange(&x);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/iommufd/detach", test_detach);
    driver_test_add("/iommufd/replace", test_replace);
    driver_test_add("/iommufd/while-pinning", test_while_pinning);
    return driver_test_run();
}
