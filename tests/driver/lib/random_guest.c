/* SPDX-License-Identifier: MIT */
/* A guest driver's possible actions: right, half right and wrong. */
#include <string.h>

#include "random_world.h"

#define REGS         VFIO_PCI_BAR0_REGION_INDEX
#define NOTIFY       0x3000u
#define COMMON(f)    offsetof(struct virtio_pci_common_cfg, f)
#define RING_SIZE    16u
#define QUEUE_BYTES  0x4000u
#define DESC(q)      ((q) * QUEUE_BYTES)
#define AVAIL(q)     ((q) * QUEUE_BYTES + 0x1000u)
#define USED(q)      ((q) * QUEUE_BYTES + 0x2000u)
#define TABLE(q)     ((q) * QUEUE_BYTES + 0x3000u)
#define BUFFERS      0x8000u
#define BUFFER_BYTES (WORLD_RINGS_SIZE - BUFFERS)

static void reg_write(World *w, uint64_t offset, uint64_t value, size_t len)
{
    vmm_region_write(&w->dev, REGS, offset, &value, len);
}

static uint64_t reg_read(World *w, uint64_t offset, size_t len)
{
    uint64_t value = 0;

    vmm_region_read(&w->dev, REGS, offset, &value, len);
    return value;
}

static void set_status(World *w, uint8_t bits)
{
    reg_write(w, COMMON(device_status), reg_read(w, COMMON(device_status), 1) | bits, 1);
}

static void write_address(World *w, unsigned lo, uint64_t value)
{
    reg_write(w, lo, (uint32_t)value, 4);
    reg_write(w, lo + 4, value >> 32, 4);
}

static void set_up_queue(World *w, unsigned q)
{
    memset(w->ram.mem + DESC(q), 0, QUEUE_BYTES);
    reg_write(w, COMMON(queue_select), q, 2);
    reg_write(w, COMMON(queue_size), RING_SIZE, 2);
    write_address(w, COMMON(queue_desc_lo), WORLD_RAM_IOVA + DESC(q));
    write_address(w, COMMON(queue_avail_lo), WORLD_RAM_IOVA + AVAIL(q));
    write_address(w, COMMON(queue_used_lo), WORLD_RAM_IOVA + USED(q));
    reg_write(w, COMMON(queue_msix_vector), 1 + q, 2);
    reg_write(w, COMMON(queue_enable), 1, 2);
}

/* As Linux does it, so that later actions meet a running device. */
static void op_up(World *w)
{
    uint64_t features =
        one_in(w, 4) ? GUEST_FEATURES & ~(1ull << VIRTIO_RING_F_EVENT_IDX) : GUEST_FEATURES;
    uint16_t command = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;

    atomic_store(&w->mutate, false);
    vmm_region_write(&w->dev, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, &command, 2);
    vmm_ram_map(&w->container, &w->ram);
    reg_write(w, COMMON(device_status), 0, 1);
    set_status(w, VIRTIO_CONFIG_S_ACKNOWLEDGE);
    set_status(w, VIRTIO_CONFIG_S_DRIVER);
    for (unsigned i = 0; i < 2; i++) {
        reg_write(w, COMMON(guest_feature_select), i, 4);
        reg_write(w, COMMON(guest_feature), (uint32_t)(features >> (32 * i)), 4);
    }
    set_status(w, VIRTIO_CONFIG_S_FEATURES_OK);
    reg_write(w, COMMON(msix_config), 0, 2);
    for (unsigned q = 0; q < VGPU_NUM_QUEUES; q++)
        set_up_queue(w, q);
    set_status(w, VIRTIO_CONFIG_S_DRIVER_OK);
}

static void op_reset(World *w)
{
    reg_write(w, COMMON(device_status), 0, 1);
}

static void op_register(World *w)
{
    static const struct {
        uint8_t offset, len;
    } regs[] = {
        {COMMON(device_feature_select), 4},
        {COMMON(guest_feature_select), 4},
        {COMMON(guest_feature), 4},
        {COMMON(msix_config), 2},
        {COMMON(device_status), 1},
        {COMMON(queue_select), 2},
        {COMMON(queue_size), 2},
        {COMMON(queue_msix_vector), 2},
        {COMMON(queue_enable), 2},
        {COMMON(queue_desc_lo), 4},
        {COMMON(queue_desc_hi), 4},
        {COMMON(queue_avail_lo), 4},
        {COMMON(queue_avail_hi), 4},
        {COMMON(queue_used_lo), 4},
        {COMMON(queue_used_hi), 4},
    };
    unsigned i = below(w, G_N_ELEMENTS(regs));

    if (one_in(w, 3))
        reg_read(w, regs[i].offset, regs[i].len);
    else
        reg_write(w, regs[i].offset, odd_number(w), one_in(w, 8) ? 8 : regs[i].len);
}

static void put_desc(World *w, uint32_t at)
{
    struct vring_desc *desc = (struct vring_desc *)(w->ram.mem + at);
    bool wild = one_in(w, 12);

    desc->addr = wild ? odd_number(w)
                      : WORLD_RAM_IOVA +
                            (one_in(w, 6) ? TABLE(below(w, 2)) : BUFFERS + below(w, BUFFER_BYTES));
    desc->len = wild ? (uint32_t)odd_number(w) : 16 * below(w, 64);
    desc->flags = (uint16_t)(wild ? g_rand_int(w->rand) : below(w, one_in(w, 6) ? 8 : 4));
    desc->next = (uint16_t)(wild ? g_rand_int(w->rand) : below(w, RING_SIZE));
}

static void kick_queue(World *w, unsigned q)
{
    reg_write(w, NOTIFY + 4 * q, q, 2);
}

static void offer_chain(World *w, unsigned q, uint16_t head)
{
    volatile struct vring_avail *avail = (volatile struct vring_avail *)(w->ram.mem + AVAIL(q));

    avail->ring[avail->idx % RING_SIZE] = head;
    __sync_synchronize();
    avail->idx = (uint16_t)(avail->idx + 1);
}

/* A valid request. */
static void op_request(World *w)
{
    struct vring_desc *desc = (struct vring_desc *)(w->ram.mem + DESC(0));
    uint16_t head = (uint16_t)(below(w, RING_SIZE / 2) * 2);

    desc[head] = (struct vring_desc){WORLD_RAM_IOVA + BUFFERS, 24 + below(w, 2000),
                                     VRING_DESC_F_NEXT, (uint16_t)(head + 1)};
    desc[head + 1] = (struct vring_desc){WORLD_RAM_IOVA + BUFFERS + 0x4000, 24 + below(w, 2000),
                                         VRING_DESC_F_WRITE, 0};
    offer_chain(w, 0, head);
    kick_queue(w, 0);
}

/* Chains that are half right. */
static void op_chain(World *w)
{
    unsigned q = below(w, VGPU_NUM_QUEUES);

    for (unsigned i = below(w, 8); i; i--)
        put_desc(w, (one_in(w, 4) ? TABLE(q) : DESC(q)) + below(w, RING_SIZE) * 16);
    offer_chain(w, q, (uint16_t)(one_in(w, 32) ? g_rand_int(w->rand) : below(w, RING_SIZE)));
    if (one_in(w, 64))
        *(volatile uint16_t *)(w->ram.mem + AVAIL(q) + 2) = (uint16_t)g_rand_int(w->rand);
    kick_queue(w, q);
}

static void op_kick(World *w)
{
    reg_write(w, NOTIFY + below(w, 0x1000), odd_number(w), 1u << below(w, 4));
}

static void op_mutate(World *w)
{
    atomic_store(&w->mutate, one_in(w, 3));
}

const WorldOp world_guest_ops[] = {
    {"guest-up", 16, op_up},       {"guest-reset", 3, op_reset},
    {"register", 16, op_register}, {"request", 40, op_request},
    {"chain", 24, op_chain},       {"kick", 10, op_kick},
    {"mutate", 8, op_mutate},      {NULL, 0, NULL},
};
