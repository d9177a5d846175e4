/* SPDX-License-Identifier: MIT */
/*
 * Virtqueues that a hostile guest has built. The device asks for a reset, the engine gets EPROTO,
 * the kernel's log stays clean, and after the reset everything works.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testbed.h"

#define CONTROL VGPU_QUEUE_CONTROL
#define IN_RAM  (TESTBED_RAM_IOVA + 8 * MIB)
#define OUTSIDE (TESTBED_RAM_IOVA + 64 * MIB)

typedef void (*BuildChain)(GuestQueue *q);

static void set_desc(GuestQueue *q, uint16_t i, uint64_t addr, uint32_t len, uint16_t flags,
                     uint16_t next)
{
    q->desc[i] = (struct vring_desc){.addr = addr, .len = len, .flags = flags, .next = next};
}

static void build_head_beyond(GuestQueue *q)
{
    guest_queue_offer(q, GUEST_QUEUE_SIZE);
}
static void build_head_far_beyond(GuestQueue *q)
{
    guest_queue_offer(q, 0xffff);
}

static void build_self_loop(GuestQueue *q)
{
    set_desc(q, 0, IN_RAM, 24, VRING_DESC_F_NEXT, 0);
    guest_queue_offer(q, 0);
}

static void build_loop(GuestQueue *q)
{
    set_desc(q, 0, IN_RAM, 24, VRING_DESC_F_NEXT, 1);
    set_desc(q, 1, IN_RAM, 24, VRING_DESC_F_NEXT, 2);
    set_desc(q, 2, IN_RAM, 24, VRING_DESC_F_NEXT, 0);
    guest_queue_offer(q, 0);
}

static void build_next_beyond(GuestQueue *q)
{
    set_desc(q, 0, IN_RAM, 24, VRING_DESC_F_NEXT, 5000);
    guest_queue_offer(q, 0);
}

static void build_outside(GuestQueue *q)
{
    set_desc(q, 0, OUTSIDE, 24, 0, 0);
    guest_queue_offer(q, 0);
}

static void build_across_end(GuestQueue *q)
{
    set_desc(q, 0, TESTBED_RAM_IOVA + TESTBED_RAM_SIZE - 8, 24, 0, 0);
    guest_queue_offer(q, 0);
}

static void build_wraps(GuestQueue *q)
{
    set_desc(q, 0, UINT64_MAX - 8, 24, 0, 0);
    guest_queue_offer(q, 0);
}

static void build_empty(GuestQueue *q)
{
    set_desc(q, 0, IN_RAM, 0, 0, 0);
    guest_queue_offer(q, 0);
}

static void build_huge(GuestQueue *q)
{
    set_desc(q, 0, IN_RAM, 0xffffffff, VRING_DESC_F_NEXT, 1);
    set_desc(q, 1, IN_RAM, 0xffffffff, 0, 0);
    guest_queue_offer(q, 0);
}

static void build_read_after_write(GuestQueue *q)
{
    set_desc(q, 0, IN_RAM, 24, VRING_DESC_F_WRITE | VRING_DESC_F_NEXT, 1);
    set_desc(q, 1, IN_RAM + 64, 24, 0, 0);
    guest_queue_offer(q, 0);
}

static void build_index_jump(GuestQueue *q)
{
    q->avail->idx += GUEST_QUEUE_SIZE + 1;
}

static void build_index_back(GuestQueue *q)
{
    q->avail->idx--;
}

static void build_twice(GuestQueue *q)
{
    set_desc(q, 0, IN_RAM, 24, VRING_DESC_F_NEXT, 1);
    set_desc(q, 1, IN_RAM + 64, 24, VRING_DESC_F_WRITE, 0);
    guest_queue_offer(q, 0);
    guest_queue_offer(q, 0);
}

static void build_indirect_odd(GuestQueue *q)
{
    set_desc(q, 0, IN_RAM, 17, VRING_DESC_F_INDIRECT, 0);
    guest_queue_offer(q, 0);
}

static void build_indirect_next(GuestQueue *q)
{
    set_desc(q, 0, IN_RAM, 16, VRING_DESC_F_INDIRECT | VRING_DESC_F_NEXT, 1);
    guest_queue_offer(q, 0);
}

static void build_indirect_large(GuestQueue *q)
{
    set_desc(q, 0, IN_RAM, 1u << 20, VRING_DESC_F_INDIRECT, 0);
    guest_queue_offer(q, 0);
}

static void build_indirect_outside(GuestQueue *q)
{
    set_desc(q, 0, OUTSIDE, 64, VRING_DESC_F_INDIRECT, 0);
    guest_queue_offer(q, 0);
}

static struct vring_desc *indirect_table(GuestQueue *q, unsigned entries)
{
    struct vring_desc *table = guest_ptr(q->guest, IN_RAM + 4096);

    memset(table, 0, 4096);
    set_desc(q, 0, IN_RAM + 4096, entries * 16, VRING_DESC_F_INDIRECT, 0);
    return table;
}

static void build_indirect_nested(GuestQueue *q)
{
    struct vring_desc *table = indirect_table(q, 2);

    table[0] = (struct vring_desc){.addr = IN_RAM, .len = 16, .flags = VRING_DESC_F_INDIRECT};
    guest_queue_offer(q, 0);
}

static void build_indirect_loop(GuestQueue *q)
{
    struct vring_desc *table = indirect_table(q, 4);

    for (uint16_t i = 0; i < 4; i++)
        table[i] = (struct vring_desc){
            .addr = IN_RAM, .len = 16, .flags = VRING_DESC_F_NEXT, .next = (uint16_t)((i + 1) % 4)};
    guest_queue_offer(q, 0);
}

static void build_indirect_next_beyond(GuestQueue *q)
{
    struct vring_desc *table = indirect_table(q, 2);

    table[0] =
        (struct vring_desc){.addr = IN_RAM, .len = 16, .flags = VRING_DESC_F_NEXT, .next = 200};
    guest_queue_offer(q, 0);
}

static const struct {
    const char *name;
    BuildChain build;
} chains[] = {
    {"head-beyond", build_head_beyond},
    {"head-far-beyond", build_head_far_beyond},
    {"self-loop", build_self_loop},
    {"loop", build_loop},
    {"next-beyond", build_next_beyond},
    {"outside", build_outside},
    {"across-end", build_across_end},
    {"wraps", build_wraps},
    {"empty", build_empty},
    {"huge", build_huge},
    {"read-after-write", build_read_after_write},
    {"index-jump", build_index_jump},
    {"index-back", build_index_back},
    {"twice", build_twice},
    {"indirect-odd", build_indirect_odd},
    {"indirect-next", build_indirect_next},
    {"indirect-large", build_indirect_large},
    {"indirect-outside", build_indirect_outside},
    {"indirect-nested", build_indirect_nested},
    {"indirect-loop", build_indirect_loop},
    {"indirect-next-beyond", build_indirect_next_beyond},
};

static void assert_needs_reset(Testbed *tb, const char *what)
{
    if (!wait_until(guest_status(&tb->guest) & VIRTIO_CONFIG_S_NEEDS_RESET, GUEST_TIMEOUT_MS))
        g_error("%s: the device did not ask for a reset", what);
    if (!wait_until(atomic_load(&tb->engine->state->error) == EPROTO, GUEST_TIMEOUT_MS))
        g_error("%s: the engine got errno %d, not EPROTO", what,
                atomic_load(&tb->engine->state->error));
    /* The configuration interrupt notifies the guest. */
    if (!vmm_eventfd_take(tb->guest.vector_fd[0], 5000))
        g_error("%s: no configuration interrupt", what);
}

static void start_over(Testbed *tb)
{
    tb->guest.ram_used = 0;
    guest_up(&tb->guest, GUEST_FEATURES);
    atomic_store(&tb->engine->state->error, 0);
}

static void test_chains(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (size_t i = 0; i < G_N_ELEMENTS(chains); i++) {
        GuestQueue *q = &tb->guest.queue[CONTROL];

        assert_round_trip(tb, 1);
        /* "twice": the first use of the head must still be in flight. */
        atomic_store(&tb->engine->state->hold,
                     chains[i].build == build_twice ? ENGINE_HOLD_ANSWERS : 0);
        chains[i].build(q);
        guest_queue_kick_always(q);
        assert_needs_reset(tb, chains[i].name);
        atomic_store(&tb->engine->state->hold, 0);
        start_over(tb);
    }
    assert_round_trip(tb, 2);
}

/* Indirect descriptors without the feature. */
static void test_indirect_not_negotiated(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    guest_up(&tb->guest, GUEST_FEATURES & ~(1ull << VIRTIO_RING_F_INDIRECT_DESC));
    indirect_table(&tb->guest.queue[CONTROL], 1)[0] =
        (struct vring_desc){.addr = IN_RAM, .len = 24};
    guest_queue_offer(&tb->guest.queue[CONTROL], 0);
    guest_queue_kick_always(&tb->guest.queue[CONTROL]);
    assert_needs_reset(tb, "indirect without the feature");
}

/* Rings without memory, and rings that disappear while the device runs. */
static void test_rings_elsewhere(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];

    assert_round_trip(tb, 1);
    assert_ok(vmm_dma_unmap(&tb->container, tb->ram.iova, tb->ram.size));
    guest_queue_offer(q, 0);
    guest_queue_kick_always(q);
    assert_needs_reset(tb, "rings without memory");
    assert_ok(vmm_ram_map(&tb->container, &tb->ram));
    start_over(tb);
    assert_round_trip(tb, 2);
}

/* A response area that is no longer accessible: used with length 0, and nothing breaks. */
static void test_response_elsewhere(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    uint32_t len = 4711;

    set_desc(q, 0, IN_RAM, 24, VRING_DESC_F_NEXT, 1);
    set_desc(q, 1, OUTSIDE, 24, VRING_DESC_F_WRITE, 0);
    guest_queue_offer(q, 0);
    guest_queue_kick_always(q);
    g_assert_cmpint(guest_queue_wait(q, &len, GUEST_TIMEOUT_MS), ==, 0);
    g_assert_cmpuint(len, ==, 0);
    g_assert_false(guest_status(&tb->guest) & VIRTIO_CONFIG_S_NEEDS_RESET);
}

#define FUZZ_ROUNDS 60

/* Random descriptors, under a guest that keeps changing them while the device reads. */
static void test_random_rings(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(GRand) rand = g_rand_new_with_seed(815);

    for (unsigned round = 0; round < FUZZ_ROUNDS; round++) {
        GuestQueue *q = &tb->guest.queue[CONTROL];

        for (unsigned i = 0; i < 200; i++) {
            uint16_t at = (uint16_t)(g_rand_int(rand) % GUEST_QUEUE_SIZE);
            bool wild = g_rand_int(rand) % 16 == 0;

            set_desc(q, at,
                     wild ? (uint64_t)g_rand_int(rand) << 32
                          : IN_RAM + g_rand_int(rand) % (4 * MIB),
                     wild ? g_rand_int(rand) : 1 + g_rand_int(rand) % 6000,
                     (uint16_t)(g_rand_int(rand) % (wild ? 65536 : 4)),
                     (uint16_t)(g_rand_int(rand) % (wild ? 65536 : GUEST_QUEUE_SIZE)));
            if (i % 8 == 0) {
                guest_queue_offer(q, (uint16_t)(g_rand_int(rand) % GUEST_QUEUE_SIZE));
                guest_queue_kick_always(q);
            }
        }
        start_over(tb);
        assert_round_trip(tb, round + 1);
    }
}

#define COMMON(field) offsetof(struct virtio_pci_common_cfg, field)

static void write_common(Testbed *tb, unsigned offset, uint64_t value, size_t len)
{
    guest_reg_write(&tb->guest, &tb->guest.common, offset, value, len);
}

/* Up to the point where queues are set up. */
static void negotiate_anew(Testbed *tb)
{
    tb->guest.ram_used = 0;
    guest_reset(&tb->guest);
    g_assert_true(guest_negotiate(&tb->guest, GUEST_FEATURES));
}

static bool try_enable(Testbed *tb, uint16_t size, uint64_t desc, uint64_t avail, uint64_t used)
{
    const struct {
        unsigned offset;
        uint64_t address;
    } parts[] = {
        {COMMON(queue_desc_lo), desc},
        {COMMON(queue_avail_lo), avail},
        {COMMON(queue_used_lo), used},
    };

    negotiate_anew(tb);
    write_common(tb, COMMON(queue_select), CONTROL, 2);
    write_common(tb, COMMON(queue_size), size, 2);
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        write_common(tb, parts[i].offset, (uint32_t)parts[i].address, 4);
        write_common(tb, parts[i].offset + 4, parts[i].address >> 32, 4);
    }
    write_common(tb, COMMON(queue_enable), 1, 2);
    return guest_reg_read(&tb->guest, &tb->guest.common, COMMON(queue_enable), 2);
}

/*
 * Sizes and addresses that no queue can have: it does not come up, and its doorbell has no effect.
 */
static void test_queue_shapes(void)
{
    static const uint16_t sizes[] = {3, 5, 255, 257, 512, 0x7fff, 0x8000, 0xffff};
    const uint64_t ram = TESTBED_RAM_IOVA;
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    g_assert_true(try_enable(tb, 256, ram, ram + 0x2000, ram + 0x3000));
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        /*
         * The device keeps the size that it offered, or none; never a size that it did not offer.
         */
        if (try_enable(tb, sizes[i], ram, ram + 0x2000, ram + 0x3000)) {
            uint64_t size = guest_reg_read(&tb->guest, &tb->guest.common, COMMON(queue_size), 2);

            g_assert_cmpuint(size, <=, 256);
            g_assert_cmpuint(size & (size - 1), ==, 0);
        }
    }
    g_assert_false(try_enable(tb, 16, ram + 8, ram + 0x2000, ram + 0x3000));
    g_assert_false(try_enable(tb, 16, ram, ram + 0x2001, ram + 0x3000));
    g_assert_false(try_enable(tb, 16, ram, ram + 0x2000, ram + 0x3002));
    g_assert_false(try_enable(tb, 16, UINT64_MAX - 15, ram + 0x2000, ram + 0x3000));
    g_assert_false(try_enable(tb, 16, ram, UINT64_MAX - 1, ram + 0x3000));
    g_assert_false(try_enable(tb, 16, ram, ram + 0x2000, UINT64_MAX - 3));
    guest_set_status(&tb->guest, guest_status(&tb->guest) | VIRTIO_CONFIG_S_DRIVER_OK);
    guest_queue_kick_always(&tb->guest.queue[CONTROL]);
    start_over(tb);
    assert_round_trip(tb, 1);
}

static void test_features(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t offered = guest_device_features(&tb->guest);

    for (unsigned bit = 0; bit < 64; bit++) {
        bool known = offered >> bit & 1;

        guest_reset(&tb->guest);
        if (guest_negotiate(&tb->guest, GUEST_FEATURES | 1ull << bit) != known)
            g_error("feature bit %u, %s offered", bit, known ? "which is" : "which is not");
    }
    guest_reset(&tb->guest);
    g_assert_false(guest_negotiate(&tb->guest, GUEST_FEATURES & ~(1ull << VIRTIO_F_VERSION_1)));
    guest_reset(&tb->guest);
    g_assert_false(
        guest_negotiate(&tb->guest, GUEST_FEATURES & ~(1ull << VIRTIO_F_ACCESS_PLATFORM)));
    start_over(tb);
    assert_round_trip(tb, 1);
}

/* BARs moved, memory and bus mastering disabled and enabled, while requests are in flight. */
static void test_config_moves(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    volatile uint32_t *window = (volatile uint32_t *)testbed_window(tb);
    uint64_t addr;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, PAGE_BYTES, addr));
    for (unsigned i = 0; i < 200; i++) {
        void *resp;

        guest_submit(&tb->guest, CONTROL, &(struct virtio_gpu_ctrl_hdr){.type = 0x100}, 24, 24,
                     &resp);
        for (unsigned bar = 0; bar < 6; bar++)
            vmm_config_write(&tb->dev, PCI_BASE_ADDRESS_0 + 4 * bar, 0xfffff000u * i, 4);
        g_assert_cmpint(guest_queue_wait(&tb->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS), >=, 0);
        vmm_config_write(&tb->dev, PCI_COMMAND, i % 4 | PCI_COMMAND_MASTER, 2);
        g_assert_cmphex(window[0], ==, memory_pattern(0, 0));
        assert_round_trip(tb, i + 1);
    }
    /* Without bus mastering the queues stop, and the driver restarts them; the window stays. */
    for (unsigned i = 0; i < 50; i++) {
        vmm_config_write(&tb->dev, PCI_COMMAND, i % 4, 2);
        g_assert_cmphex(window[0], ==, memory_pattern(0, 0));
        guest_queue_kick_always(&tb->guest.queue[CONTROL]);
        vmm_config_write(&tb->dev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
        guest_set_status(&tb->guest, guest_status(&tb->guest) | VIRTIO_CONFIG_S_DRIVER_OK);
        assert_round_trip(tb, i + 1000);
    }
}

typedef struct {
    volatile uint8_t *mem;
    size_t size;
    atomic_bool stop;
} Flipper;

/* Flips the bits of a descriptor ring repeatedly. */
static void *flip_words(void *data)
{
    Flipper *flipper = data;
    uint32_t state = 1;

    while (!atomic_load(&flipper->stop)) {
        state = state * 1664525u + 1013904223u;
        flipper->mem[(state >> 8) % flipper->size] ^= (uint8_t)(1u << (state >> 29));
    }
    return NULL;
}

/*
 * Chains that change between check and use. The engine gets the size that the driver reports, and a
 * neighbour on the same GPU never notices.
 */
static void test_changing_memory(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) neighbour = testbed_new_on(TESTBED_GPU, TESTBED_TYPE, TESTBED_AT_GUEST);
    int64_t end = now_ms() + 5000;
    uint64_t rounds = 0;

    while (now_ms() < end) {
        GuestQueue *q = &tb->guest.queue[CONTROL];
        Flipper flipper = {.mem = (volatile uint8_t *)q->desc, .size = 4 * sizeof(*q->desc)};
        pthread_t thread;

        set_desc(q, 0, IN_RAM, 4000, VRING_DESC_F_NEXT, 1);
        set_desc(q, 1, IN_RAM + 8192, 64, VRING_DESC_F_NEXT, 2);
        set_desc(q, 2, IN_RAM + 16384, 4000, VRING_DESC_F_WRITE, 0);
        g_assert_cmpint(pthread_create(&thread, NULL, flip_words, &flipper), ==, 0);
        for (unsigned i = 0; i < 50; i++) {
            guest_queue_offer(q, 0);
            guest_queue_kick_always(q);
        }
        atomic_store(&flipper.stop, true);
        pthread_join(thread, NULL);
        assert_round_trip(neighbour, ++rounds);
        start_over(tb);
        assert_round_trip(tb, rounds);
    }
    g_printerr("# %" G_GUINT64_FORMAT " rounds\n", rounds);
    g_assert_false(guest_status(&neighbour->guest) & VIRTIO_CONFIG_S_NEEDS_RESET);
}

/*
 * Resets while requests are fetched, answered, held, and while the last reset is still waited for.
 */
static void test_resets(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    pid_t pid = fork();
    int status = 0;
    uint64_t round = 0;

    if (pid == 0) {
        for (unsigned i = 0; i < 60; i++) {
            vmm_device_reset(&tb->dev);
            g_usleep(10000 + i * 500);
        }
        _exit(0);
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        void *resp;

        atomic_store(&tb->engine->state->hold, ++round % 3 ? 0 : ENGINE_HOLD_ANSWERS);
        tb->guest.ram_used = 0;
        vmm_config_write(&tb->dev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
        guest_set_status(&tb->guest, 0);
        if (!guest_negotiate(&tb->guest, GUEST_FEATURES))
            continue;
        for (unsigned i = 0; i < GUEST_NUM_QUEUES; i++)
            guest_queue_setup(&tb->guest, i, GUEST_QUEUE_SIZE);
        guest_set_status(&tb->guest, guest_status(&tb->guest) | VIRTIO_CONFIG_S_DRIVER_OK);
        for (unsigned i = 0; i < 16; i++)
            guest_submit(&tb->guest, CONTROL, &(struct virtio_gpu_ctrl_hdr){.type = 0x100}, 24, 24,
                         &resp);
        guest_queue_kick_always(&tb->guest.queue[CONTROL]);
    }
    g_assert_cmpint(status, ==, 0);
    atomic_store(&tb->engine->state->hold, 0);
    vmm_config_write(&tb->dev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    start_over(tb);
    assert_round_trip(tb, 1);
    guest_reset(&tb->guest);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add_limit("/hostile-guest/chains", test_chains, 300);
    driver_test_add("/hostile-guest/indirect-not-negotiated", test_indirect_not_negotiated);
    driver_test_add("/hostile-guest/rings-elsewhere", test_rings_elsewhere);
    driver_test_add("/hostile-guest/response-elsewhere", test_response_elsewhere);
    driver_test_add_limit("/hostile-guest/random-rings", test_random_rings, 300);
    driver_test_add("/hostile-guest/queue-shapes", test_queue_shapes);
    driver_test_add("/hostile-guest/features", test_features);
    driver_test_add("/hostile-guest/config-moves", test_config_moves);
    driver_test_add("/hostile-guest/changing-memory", test_changing_memory);
    driver_test_add("/hostile-guest/resets", test_resets);
    return driver_test_run();
}
