/* SPDX-License-Identifier: MIT */
/* The guest's virtio-gpu driver: capabilities, negotiation, memory. */
#include "virtio_guest.h"

#include <glib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define COMMON(field) offsetof(struct virtio_pci_common_cfg, field)

static void read_cap(Guest *guest, unsigned pos)
{
    uint8_t type = (uint8_t)vmm_config_read(guest->dev, pos + VIRTIO_PCI_CAP_CFG_TYPE, 1);
    GuestCap cap = {
        .bar = (uint8_t)vmm_config_read(guest->dev, pos + VIRTIO_PCI_CAP_BAR, 1),
        .offset = vmm_config_read(guest->dev, pos + VIRTIO_PCI_CAP_OFFSET, 4),
        .length = vmm_config_read(guest->dev, pos + VIRTIO_PCI_CAP_LENGTH, 4),
    };

    switch (type) {
    case VIRTIO_PCI_CAP_COMMON_CFG:
        guest->common = cap;
        break;
    case VIRTIO_PCI_CAP_NOTIFY_CFG:
        guest->notify = cap;
        guest->notify_multiplier = vmm_config_read(guest->dev, pos + VIRTIO_PCI_NOTIFY_CAP_MULT, 4);
        break;
    case VIRTIO_PCI_CAP_ISR_CFG:
        guest->isr = cap;
        break;
    case VIRTIO_PCI_CAP_DEVICE_CFG:
        guest->device = cap;
        break;
    case VIRTIO_PCI_CAP_SHARED_MEMORY_CFG:
        cap.offset |= (uint64_t)vmm_config_read(guest->dev, pos + sizeof(struct virtio_pci_cap), 4)
                      << 32;
        cap.length |=
            (uint64_t)vmm_config_read(guest->dev, pos + sizeof(struct virtio_pci_cap) + 4, 4) << 32;
        guest->shm_id =
            (uint8_t)vmm_config_read(guest->dev, pos + offsetof(struct virtio_pci_cap, id), 1);
        guest->shm = cap;
        break;
    }
}

static void set_vectors(Guest *guest)
{
    for (unsigned i = 0; i < GUEST_NUM_VECTORS; i++) {
        guest->vector_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        g_assert_cmpint(guest->vector_fd[i], >=, 0);
    }
    g_assert_cmpint(
        vmm_set_irqs(guest->dev, VFIO_PCI_MSIX_IRQ_INDEX, 0, GUEST_NUM_VECTORS, guest->vector_fd),
        ==, 0);
}

static void walk_caps(Guest *guest)
{
    unsigned pos = vmm_config_read(guest->dev, PCI_CAPABILITY_LIST, 1);

    for (unsigned guard = 0; pos && guard < 48; guard++) {
        unsigned id = vmm_config_read(guest->dev, pos + PCI_CAP_LIST_ID, 1);

        if (id == PCI_CAP_ID_MSIX)
            vmm_config_write(guest->dev, pos + PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE, 2);
        if (id == PCI_CAP_ID_VNDR)
            read_cap(guest, pos);
        pos = vmm_config_read(guest->dev, pos + PCI_CAP_LIST_NEXT, 1);
    }
}

void guest_probe(Guest *guest, VmmDevice *dev, VmmRam *ram)
{
    memset(guest, 0, sizeof(*guest));
    guest->dev = dev;
    guest->ram = ram;
    for (unsigned i = 0; i < GUEST_NUM_QUEUES; i++) {
        guest->queue[i].guest = guest;
        guest->queue[i].index = i;
    }
    walk_caps(guest);
    vmm_config_write(dev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    set_vectors(guest);
}

void guest_free(Guest *guest)
{
    for (unsigned i = 0; i < GUEST_NUM_VECTORS; i++)
        close(guest->vector_fd[i]);
}

uint64_t guest_reg_read(Guest *guest, const GuestCap *cap, uint64_t offset, size_t len)
{
    uint64_t value = 0;
    int ret = vmm_region_read(guest->dev, cap->bar, cap->offset + offset, &value, len);

    g_assert_cmpint(ret, ==, 0);
    return value;
}

void guest_reg_write(Guest *guest, const GuestCap *cap, uint64_t offset, uint64_t value, size_t len)
{
    int ret = vmm_region_write(guest->dev, cap->bar, cap->offset + offset, &value, len);

    g_assert_cmpint(ret, ==, 0);
}

uint8_t guest_status(Guest *guest)
{
    return (uint8_t)guest_reg_read(guest, &guest->common, COMMON(device_status), 1);
}

void guest_set_status(Guest *guest, uint8_t status)
{
    guest_reg_write(guest, &guest->common, COMMON(device_status), status, 1);
}

uint64_t guest_device_features(Guest *guest)
{
    uint64_t features = 0;

    for (unsigned i = 0; i < 2; i++) {
        guest_reg_write(guest, &guest->common, COMMON(device_feature_select), i, 4);
        features |= guest_reg_read(guest, &guest->common, COMMON(device_feature), 4) << (32 * i);
    }
    return features;
}

bool guest_negotiate(Guest *guest, uint64_t features)
{
    guest_set_status(guest, VIRTIO_CONFIG_S_ACKNOWLEDGE);
    guest_set_status(guest, VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER);
    for (unsigned i = 0; i < 2; i++) {
        guest_reg_write(guest, &guest->common, COMMON(guest_feature_select), i, 4);
        guest_reg_write(guest, &guest->common, COMMON(guest_feature),
                        (uint32_t)(features >> (32 * i)), 4);
    }
    guest_set_status(guest, guest_status(guest) | VIRTIO_CONFIG_S_FEATURES_OK);
    guest->features = features;
    return guest_status(guest) & VIRTIO_CONFIG_S_FEATURES_OK;
}

static void write_address(Guest *guest, unsigned lo, unsigned hi, uint64_t value)
{
    guest_reg_write(guest, &guest->common, lo, (uint32_t)value, 4);
    guest_reg_write(guest, &guest->common, hi, (uint32_t)(value >> 32), 4);
}

static void init_ring(Guest *guest, GuestQueue *q, uint16_t size)
{
    uint64_t iova;

    q->size = size;
    q->event_idx = guest->features & (1ull << VIRTIO_RING_F_EVENT_IDX);
    q->desc = guest_alloc(guest, size * sizeof(*q->desc), 4096, &iova);
    q->avail = guest_alloc(guest, 6 + 2 * size, 4096, &iova);
    q->used = guest_alloc(guest, 6 + 8 * size, 4096, &iova);
    for (uint16_t i = 0; i < size; i++)
        q->desc[i].next = i + 1;
    q->free_head = 0;
    q->num_free = size;
    q->last_used = 0;
    q->last_kick = 0;
}

void guest_queue_setup(Guest *guest, unsigned index, uint16_t size)
{
    const GuestCap *common = &guest->common;
    GuestQueue *q = &guest->queue[index];

    init_ring(guest, q, size);
    guest_reg_write(guest, common, COMMON(queue_select), index, 2);
    guest_reg_write(guest, common, COMMON(queue_size), size, 2);
    write_address(guest, COMMON(queue_desc_lo), COMMON(queue_desc_hi), guest_iova(guest, q->desc));
    write_address(guest, COMMON(queue_avail_lo), COMMON(queue_avail_hi),
                  guest_iova(guest, q->avail));
    write_address(guest, COMMON(queue_used_lo), COMMON(queue_used_hi), guest_iova(guest, q->used));
    guest_reg_write(guest, common, COMMON(queue_msix_vector), 1 + index, 2);
    q->notify_offset =
        guest_reg_read(guest, common, COMMON(queue_notify_off), 2) * guest->notify_multiplier;
    guest_reg_write(guest, common, COMMON(queue_enable), 1, 2);
    q->enabled = guest_reg_read(guest, common, COMMON(queue_enable), 2) == 1;
}

void guest_reset(Guest *guest)
{
    int64_t end = g_get_monotonic_time() + GUEST_RESET_MS * 1000ll;

    guest_set_status(guest, 0);
    /* As Linux does; firmware (edk2) does not check. */
    while (guest_status(guest) && g_get_monotonic_time() < end)
        g_usleep(1000);
    g_assert_cmpint(guest_status(guest), ==, 0);
}

void guest_up(Guest *guest, uint64_t features)
{
    guest_reset(guest);
    g_assert_true(guest_negotiate(guest, features));
    guest_reg_write(guest, &guest->common, COMMON(msix_config), 0, 2);
    for (unsigned i = 0; i < GUEST_NUM_QUEUES; i++) {
        guest_queue_setup(guest, i, GUEST_QUEUE_SIZE);
        g_assert_true(guest->queue[i].enabled);
    }
    guest_set_status(guest, guest_status(guest) | VIRTIO_CONFIG_S_DRIVER_OK);
    g_assert_true(guest_status(guest) & VIRTIO_CONFIG_S_DRIVER_OK);
}

void *guest_alloc(Guest *guest, size_t size, size_t align, uint64_t *iova)
{
    size_t start = (guest->ram_used + align - 1) & ~(align - 1);

    g_assert_cmpuint(start + size, <=, guest->ram->size);
    guest->ram_used = start + size;
    *iova = guest->ram->iova + start;
    memset(guest->ram->mem + start, 0, size);
    return guest->ram->mem + start;
}

void *guest_ptr(Guest *guest, uint64_t iova)
{
    g_assert_cmpuint(iova, >=, guest->ram->iova);
    g_assert_cmpuint(iova - guest->ram->iova, <, guest->ram->size);
    return guest->ram->mem + (iova - guest->ram->iova);
}

uint64_t guest_iova(Guest *guest, const void *ptr)
{
    return guest->ram->iova + (uint64_t)((const uint8_t *)ptr - guest->ram->mem);
}
