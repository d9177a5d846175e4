/* SPDX-License-Identifier: MIT */
/* A VMM's possible actions on a vGPU, in any order and with any value. */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "random_world.h"

#define REGION_SHIFT 40
#define MAX_ACCESS   4096

void world_open_vmm(World *w)
{
    if (vmm_container_open(&w->container))
        return;
    if (vmm_vgpu_open(&w->container, &w->dev, w->uuid)) {
        vmm_container_close(&w->container);
        return;
    }
    w->vmm_open = true;
    vmm_ram_map(&w->container, &w->ram);
}

static void unmap_slot(World *w, unsigned i)
{
    pthread_mutex_lock(&w->touch);
    if (w->mapping[i].addr)
        munmap(w->mapping[i].addr, w->mapping[i].size);
    w->mapping[i].addr = NULL;
    pthread_mutex_unlock(&w->touch);
}

/* A mapping may outlive the descriptor, and a container its group. */
void world_close_vmm(World *w)
{
    bool mappings_first = !one_in(w, 3);

    for (unsigned i = 0; mappings_first && i < WORLD_MAPPINGS; i++)
        unmap_slot(w, i);
    vmm_device_close(&w->dev);
    vmm_container_close(&w->container);
    for (unsigned i = 0; i < WORLD_MAPPINGS; i++)
        unmap_slot(w, i);
    w->vmm_open = false;
}

static void op_reopen(World *w)
{
    if (w->vmm_open)
        world_close_vmm(w);
    if (!w->engine)
        w->engine = engine_peer_start(w->uuid, 0);
    world_open_vmm(w);
    /* An engine that has given up, or does not release a previous epoch. */
    if (!w->vmm_open) {
        engine_peer_stop(w->engine);
        w->engine = NULL;
    }
}

static void op_region(World *w)
{
    static const size_t lengths[] = {0, 1, 2, 3, 4, 5, 8, 16, 64, MAX_ACCESS};
    uint8_t buf[MAX_ACCESS];
    size_t len = lengths[below(w, G_N_ELEMENTS(lengths))];
    uint64_t offset = one_in(w, 3) ? odd_number(w) : below(w, 0x4000);
    off_t pos =
        (off_t)((uint64_t)below(w, VFIO_PCI_NUM_REGIONS + 3) << REGION_SHIFT) + (off_t)offset;

    if (one_in(w, 2)) {
        random_bytes(w, buf, len);
        if (pwrite(w->dev.fd, buf, len, pos) > (ssize_t)len)
            g_error("a write of %zu bytes wrote more", len);
    } else if (pread(w->dev.fd, buf, len, pos) > (ssize_t)len) {
        g_error("a read of %zu bytes read more", len);
    }
}

/* The command register, BARs, MSI-X: moved while in use. */
static void op_config(World *w)
{
    static const uint8_t places[] = {0x04, 0x05, 0x10, 0x14, 0x18, 0x1c, 0x30, 0x3c};
    uint32_t value = one_in(w, 2) ? (uint32_t)odd_number(w) : 6;
    size_t len = 1u << below(w, 3);

    vmm_region_write(&w->dev, VFIO_PCI_CONFIG_REGION_INDEX,
                     one_in(w, 2) ? places[below(w, G_N_ELEMENTS(places))] : below(w, 256), &value,
                     len);
}

static void op_irqs(World *w)
{
    uint8_t buf[sizeof(struct vfio_irq_set) + 8 * sizeof(int)] = {0};
    struct vfio_irq_set *set = (struct vfio_irq_set *)buf;
    int *fds = (int *)set->data;

    set->argsz = one_in(w, 8) ? below(w, sizeof(buf)) : sizeof(buf);
    set->flags = one_in(w, 3) ? g_rand_int(w->rand) & 0x3f
                              : VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    set->index = one_in(w, 8) ? (uint32_t)odd_number(w) : below(w, VFIO_PCI_NUM_IRQS);
    set->start = one_in(w, 8) ? (uint32_t)odd_number(w) : below(w, 4);
    set->count = one_in(w, 8) ? (uint32_t)odd_number(w) : below(w, 5);
    for (unsigned i = 0; i < 8; i++)
        fds[i] = one_in(w, 4) ? (int)below(w, 64) - 2 : w->eventfd;
    ioctl(w->dev.fd, VFIO_DEVICE_SET_IRQS, set);
}

static void op_dma_map(World *w)
{
    uint64_t at = below(w, WORLD_RAM_SIZE / PAGE_BYTES) * PAGE_BYTES;
    uint64_t size = (1 + below(w, 64)) * PAGE_BYTES;
    uint32_t flags = 1 + below(w, 3);
    void *addr = w->ram.mem + at;

    if (one_in(w, 4) && w->mapping[0].addr)
        addr = w->mapping[0].addr; /* the window, as RAM of the guest */
    if (one_in(w, 2))
        vmm_ram_map(&w->container, &w->ram);
    else
        vmm_dma_map(&w->container, addr, odd_iova(w), MIN(size, WORLD_RAM_SIZE - at), flags);
}

static void op_dma_unmap(World *w)
{
    if (one_in(w, 2))
        vmm_dma_unmap(&w->container, w->ram.iova, w->ram.size);
    else
        vmm_dma_unmap(&w->container, odd_iova(w), odd_number(w) & ~(PAGE_BYTES - 1));
}

static void op_mmap(World *w)
{
    unsigned slot = below(w, WORLD_MAPPINGS);
    unsigned region =
        one_in(w, 4) ? below(w, VFIO_PCI_NUM_REGIONS + 3) : VFIO_PCI_BAR2_REGION_INDEX;
    uint64_t offset = one_in(w, 4) ? odd_number(w) & ~(PAGE_BYTES - 1)
                                   : below(w, TESTBED_WINDOW / PAGE_BYTES) * PAGE_BYTES;
    size_t size = (1 + below(w, 512)) * PAGE_BYTES;
    int prot = slot ? (int)below(w, 8) : PROT_READ | PROT_WRITE;
    int flags = one_in(w, 8) ? MAP_PRIVATE : MAP_SHARED;
    void *addr;

    unmap_slot(w, slot);
    addr = mmap(NULL, size, prot, flags, w->dev.fd,
                (off_t)(((uint64_t)region << REGION_SHIFT) + offset));
    if (addr == MAP_FAILED)
        return;
    if (flags == MAP_PRIVATE)
        g_error("region %u was mapped private", region);
    madvise(addr, size, MADV_DONTFORK);
    pthread_mutex_lock(&w->touch);
    w->mapping[slot] = (WorldMapping){addr, size, prot};
    pthread_mutex_unlock(&w->touch);
}

static void op_touch(World *w)
{
    WorldMapping *m = &w->mapping[below(w, WORLD_MAPPINGS)];
    volatile uint64_t *at;

    if (!m->addr || !(m->prot & PROT_READ))
        return;
    at = (volatile uint64_t *)((uint8_t *)m->addr +
                               below(w, (uint32_t)(m->size / PAGE_BYTES)) * PAGE_BYTES);
    (void)*at;
    if (m->prot & PROT_WRITE)
        *at = g_rand_int(w->rand);
}

/* Changes that QEMU and others make to an existing mapping. */
static void op_remap(World *w)
{
    WorldMapping *m = &w->mapping[1 + below(w, WORLD_MAPPINGS - 1)];
    static const int advice[] = {MADV_DONTNEED, MADV_WILLNEED, MADV_HUGEPAGE, MADV_REMOVE,
                                 MADV_DONTDUMP};

    if (!m->addr)
        return;
    if (one_in(w, 3) && m->size > PAGE_BYTES) {
        munmap((uint8_t *)m->addr + m->size - PAGE_BYTES, PAGE_BYTES);
        m->size -= PAGE_BYTES;
    } else if (one_in(w, 2)) {
        void *addr = mremap(m->addr, m->size, m->size, MREMAP_MAYMOVE | MREMAP_FIXED, m->addr);

        if (addr != MAP_FAILED)
            m->addr = addr;
    } else {
        madvise(m->addr, m->size, advice[below(w, G_N_ELEMENTS(advice))]);
    }
}

/* The plane lies in the region that it names, whatever the engine has set. */
static void op_plane(World *w)
{
    struct vfio_device_gfx_plane_info plane = {.argsz = sizeof(plane)};

    plane.flags = one_in(w, 4) ? g_rand_int(w->rand) & 7 : VFIO_GFX_PLANE_TYPE_REGION;
    if (ioctl(w->dev.fd, VFIO_DEVICE_QUERY_GFX_PLANE, &plane) < 0 ||
        plane.flags != VFIO_GFX_PLANE_TYPE_REGION || !plane.drm_format)
        return;
    if ((uint64_t)plane.stride * plane.height > VGPU_PICTURE_SIZE ||
        plane.stride < 4ull * plane.width || plane.region_index != VFIO_PCI_NUM_REGIONS)
        g_error("a plane of %ux%u with %u bytes a row", plane.width, plane.height, plane.stride);
}

/* Of the monitor: off, another EDID, on; or anything. */
static void op_edid(World *w)
{
    uint32_t value = one_in(w, 4) ? (uint32_t)odd_number(w) : below(w, 4);
    off_t pos = (off_t)((VFIO_PCI_NUM_REGIONS + 1ull) << REGION_SHIFT) + 4 * (off_t)below(w, 7);

    if (pwrite(w->dev.fd, &value, sizeof(value), pos) > (ssize_t)sizeof(value))
        g_error("a write of 4 bytes wrote more");
}

static void op_reset(World *w)
{
    vmm_device_reset(&w->dev);
}

static void op_ioctl(World *w)
{
    uint32_t buf[64];

    random_bytes(w, buf, sizeof(buf));
    buf[0] = one_in(w, 2) ? sizeof(buf) : (uint32_t)odd_number(w);
    buf[2] = one_in(w, 2) ? below(w, 12) : buf[2];
    /* ioctls of VFIO devices, and some others. SET_IRQS has its own operation. */
    if (one_in(w, 8))
        ioctl(w->dev.fd, _IO(VFIO_TYPE, VFIO_BASE + 7 + below(w, 24)), one_in(w, 4) ? NULL : buf);
    else
        ioctl(w->dev.fd, _IO(VFIO_TYPE, VFIO_BASE + 7 + below(w, 3)), buf);
}

/* Half of the time back to where the VM runs, so that the other operations have something to do. */
static void op_state(World *w)
{
    unsigned state = one_in(w, 2) ? VFIO_DEVICE_STATE_RUNNING : below(w, 10);
    int fd;

    vmm_migration_set_state(&w->dev, state, &fd);
    if (fd < 0)
        return;
    close(w->state_fd);
    w->state_fd = fd;
    if (one_in(w, 2))
        w->state_size = 0;
}

/* What was saved is read in parts; and written, mostly whole and sometimes changed. */
static void op_transfer(World *w)
{
    size_t room = WORLD_STATE_MAX - w->state_size, part = 1 + below(w, 8192);
    ssize_t n = read(w->state_fd, w->state + w->state_size, MIN(room, part));

    if (n > 0)
        w->state_size += (size_t)n;
    if (n >= 0 || !w->state_size)
        return;
    if (one_in(w, 4))
        w->state[below(w, (uint32_t)w->state_size)] = (uint8_t)g_rand_int(w->rand);
    if (write(w->state_fd, w->state, one_in(w, 4) ? part : w->state_size) >= 0 && one_in(w, 2))
        vmm_migration_set_state(&w->dev, VFIO_DEVICE_STATE_STOP, &(int){0});
}

static void op_log(World *w)
{
    static uint64_t bitmap[WORLD_RAM_SIZE / VMM_LOG_PAGE / 64];
    uint64_t iova = one_in(w, 4) ? odd_iova(w) : WORLD_RAM_IOVA;

    if (one_in(w, 4))
        vmm_log_start(&w->dev, iova, WORLD_RAM_SIZE);
    else if (one_in(w, 4))
        vmm_log_stop(&w->dev);
    else
        vmm_log_report(&w->dev, iova, WORLD_RAM_SIZE, bitmap);
}

/* Any other feature, with any data. */
static void op_feature(World *w)
{
    uint32_t buf[32];
    struct vfio_device_feature *feature = (struct vfio_device_feature *)buf;

    random_bytes(w, buf, sizeof(buf));
    feature->argsz = one_in(w, 4) ? (uint32_t)odd_number(w) : 8 + 4 * below(w, 30);
    feature->flags = below(w, 14) | (1 + below(w, 7)) << 16;
    if (one_in(w, 8))
        feature->flags = g_rand_int(w->rand);
    /* A file that nobody would close, and bitmaps at any of our addresses. */
    if ((feature->flags & VFIO_DEVICE_FEATURE_MASK) == VFIO_DEVICE_FEATURE_MIG_DEVICE_STATE ||
        (feature->flags & VFIO_DEVICE_FEATURE_MASK) == VFIO_DEVICE_FEATURE_DMA_LOGGING_REPORT)
        return;
    ioctl(w->dev.fd, VFIO_DEVICE_FEATURE, feature);
}

const WorldOp world_vmm_ops[] = {
    {"reopen", 2, op_reopen},    {"region", 60, op_region},    {"config", 10, op_config},
    {"irqs", 12, op_irqs},       {"dma-map", 16, op_dma_map},  {"dma-unmap", 8, op_dma_unmap},
    {"mmap", 12, op_mmap},       {"touch", 60, op_touch},      {"remap", 6, op_remap},
    {"vfio-reset", 3, op_reset}, {"vfio-ioctl", 10, op_ioctl}, {"plane", 8, op_plane},
    {"edid", 8, op_edid},        {"state", 12, op_state},      {"transfer", 16, op_transfer},
    {"log", 8, op_log},          {"feature", 8, op_feature},   {NULL, 0, NULL},
};
