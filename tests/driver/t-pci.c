/* SPDX-License-Identifier: MIT */
/* What a VMM and a guest find: VFIO's description, config space, BARs, capabilities, registers. */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testbed.h"

#define COMMON(field) offsetof(struct virtio_pci_common_cfg, field)

static void test_info(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);
    const struct vfio_region_info *r = tb->dev.region;

    g_assert_true(tb->dev.info.flags & VFIO_DEVICE_FLAGS_PCI);
    g_assert_true(tb->dev.info.flags & VFIO_DEVICE_FLAGS_RESET);
    g_assert_cmpuint(tb->dev.info.num_regions, >=, VFIO_PCI_CONFIG_REGION_INDEX + 1);
    g_assert_cmpuint(tb->dev.info.num_irqs, >=, VFIO_PCI_REQ_IRQ_INDEX + 1);

    for (unsigned i = VFIO_PCI_BAR0_REGION_INDEX; i <= VFIO_PCI_BAR1_REGION_INDEX; i++) {
        g_assert_cmpuint(r[i].size, >, 0);
        g_assert_cmphex(r[i].flags & 7, ==,
                        VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE);
    }
    g_assert_cmpuint(r[VFIO_PCI_BAR2_REGION_INDEX].size, ==, TESTBED_WINDOW);
    g_assert_true(r[VFIO_PCI_BAR2_REGION_INDEX].flags & VFIO_REGION_INFO_FLAG_MMAP);
    g_assert_cmpuint(r[VFIO_PCI_BAR3_REGION_INDEX].size, ==, 0);
    g_assert_cmpuint(r[VFIO_PCI_BAR4_REGION_INDEX].size, ==, 0);
    g_assert_cmpuint(r[VFIO_PCI_BAR5_REGION_INDEX].size, ==, 0);
    g_assert_cmpuint(r[VFIO_PCI_ROM_REGION_INDEX].size, ==, 0);
    g_assert_cmpuint(r[VFIO_PCI_CONFIG_REGION_INDEX].size, ==, 256);
}

static void test_info_arguments(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);
    struct vfio_region_info region = {.argsz = sizeof(region), .index = 4711};
    struct vfio_irq_info irq = {.argsz = sizeof(irq), .index = 4711};

    g_assert_cmpint(ioctl(tb->dev.fd, VFIO_DEVICE_GET_REGION_INFO, &region), ==, -1);
    g_assert_cmpint(errno, ==, EINVAL);
    g_assert_cmpint(ioctl(tb->dev.fd, VFIO_DEVICE_GET_IRQ_INFO, &irq), ==, -1);
    g_assert_cmpint(errno, ==, EINVAL);
    irq = (struct vfio_irq_info){.argsz = sizeof(irq), .index = VFIO_PCI_MSIX_IRQ_INDEX};
    g_assert_cmpint(ioctl(tb->dev.fd, VFIO_DEVICE_GET_IRQ_INFO, &irq), ==, 0);
    g_assert_cmpuint(irq.count, ==, GUEST_NUM_VECTORS);
    g_assert_true(irq.flags & VFIO_IRQ_INFO_EVENTFD);
    irq = (struct vfio_irq_info){.argsz = sizeof(irq), .index = VFIO_PCI_REQ_IRQ_INDEX};
    g_assert_cmpint(ioctl(tb->dev.fd, VFIO_DEVICE_GET_IRQ_INFO, &irq), ==, 0);
    g_assert_cmpuint(irq.count, ==, 1);
    irq.argsz = 4;
    g_assert_cmpint(ioctl(tb->dev.fd, VFIO_DEVICE_GET_IRQ_INFO, &irq), ==, -1);
    g_assert_cmpint(ioctl(tb->dev.fd, _IO(';', 250)), ==, -1);
}

static void test_header(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);

    g_assert_cmphex(vmm_config_read(&tb->dev, PCI_VENDOR_ID, 4), ==, 0x10501af4);
    g_assert_cmphex(vmm_config_read(&tb->dev, PCI_CLASS_REVISION, 4), ==, 0x03800001);
    g_assert_true(vmm_config_read(&tb->dev, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST);
    g_assert_cmphex(vmm_config_read(&tb->dev, PCI_HEADER_TYPE, 1), ==, 0);
    g_assert_cmphex(vmm_config_read(&tb->dev, PCI_INTERRUPT_PIN, 1), ==, 0);
    /* Every byte can be read, ids cannot be written. */
    for (unsigned i = 0; i < 256; i++)
        vmm_config_read(&tb->dev, i, 1);
    vmm_config_write(&tb->dev, PCI_VENDOR_ID, 0, 4);
    vmm_config_write(&tb->dev, PCI_CLASS_REVISION, 0, 4);
    g_assert_cmphex(vmm_config_read(&tb->dev, PCI_VENDOR_ID, 4), ==, 0x10501af4);
    g_assert_cmphex(vmm_config_read(&tb->dev, PCI_CLASS_REVISION, 4), ==, 0x03800001);
}

static uint64_t bar_size(Testbed *tb, unsigned bar, bool wide)
{
    unsigned at = PCI_BASE_ADDRESS_0 + 4 * bar;
    uint32_t lo = vmm_config_read(&tb->dev, at, 4), hi = 0;
    uint64_t mask;

    vmm_config_write(&tb->dev, at, 0xffffffff, 4);
    mask = vmm_config_read(&tb->dev, at, 4) & PCI_BASE_ADDRESS_MEM_MASK;
    vmm_config_write(&tb->dev, at, lo, 4);
    if (wide) {
        hi = vmm_config_read(&tb->dev, at + 4, 4);
        vmm_config_write(&tb->dev, at + 4, 0xffffffff, 4);
        mask |= (uint64_t)vmm_config_read(&tb->dev, at + 4, 4) << 32;
        vmm_config_write(&tb->dev, at + 4, hi, 4);
    } else {
        mask |= 0xffffffffull << 32;
    }
    return ~mask + 1;
}

static void test_bars(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);
    const struct vfio_region_info *r = tb->dev.region;
    uint32_t window_flags;

    g_assert_cmphex(bar_size(tb, 0, false), ==, r[0].size);
    g_assert_cmphex(bar_size(tb, 1, false), ==, r[1].size);
    g_assert_cmphex(bar_size(tb, 2, true), ==, TESTBED_WINDOW);
    window_flags = vmm_config_read(&tb->dev, PCI_BASE_ADDRESS_2, 4) & ~PCI_BASE_ADDRESS_MEM_MASK;
    g_assert_cmphex(window_flags, ==, PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);

    /* An address is kept. */
    vmm_config_write(&tb->dev, PCI_BASE_ADDRESS_2, 0x40000000, 4);
    vmm_config_write(&tb->dev, PCI_BASE_ADDRESS_3, 0x23, 4);
    g_assert_cmphex(vmm_config_read(&tb->dev, PCI_BASE_ADDRESS_2, 4) & PCI_BASE_ADDRESS_MEM_MASK,
                    ==, 0x40000000);
    g_assert_cmphex(vmm_config_read(&tb->dev, PCI_BASE_ADDRESS_3, 4), ==, 0x23);
}

/* The registers, at the capabilities' offsets, within their BAR. */
static void assert_cap(Testbed *tb, const GuestCap *cap, uint64_t at_least)
{
    g_assert_cmpuint(cap->length, >=, at_least);
    g_assert_cmpuint(cap->offset + cap->length, <=, tb->dev.region[cap->bar].size);
}

static void test_capabilities(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    Guest *guest = &tb->guest;

    assert_cap(tb, &guest->common, sizeof(struct virtio_pci_common_cfg));
    assert_cap(tb, &guest->isr, 1);
    assert_cap(tb, &guest->device, sizeof(struct virtio_gpu_config));
    assert_cap(tb, &guest->notify, 2 + guest->notify_multiplier);
    assert_cap(tb, &guest->shm, TESTBED_WINDOW);
    g_assert_cmpuint(guest->shm.bar, ==, 2);
    g_assert_cmpuint(guest->shm.offset, ==, 0);
    g_assert_cmpuint(guest->shm.length, ==, TESTBED_WINDOW);
    g_assert_cmpuint(guest->shm_id, ==, 1);
}

/* The MSI-X table has its own BAR, because a VMM traps every access to that. */
static void test_msix_capability(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);
    unsigned pos = vmm_config_read(&tb->dev, PCI_CAPABILITY_LIST, 1);
    uint32_t table, pba;

    while (pos && vmm_config_read(&tb->dev, pos, 1) != PCI_CAP_ID_MSIX)
        pos = vmm_config_read(&tb->dev, pos + 1, 1);
    g_assert_cmpuint(pos, !=, 0);
    g_assert_cmpuint((vmm_config_read(&tb->dev, pos + PCI_MSIX_FLAGS, 2) & PCI_MSIX_FLAGS_QSIZE) +
                         1,
                     ==, GUEST_NUM_VECTORS);
    table = vmm_config_read(&tb->dev, pos + PCI_MSIX_TABLE, 4);
    pba = vmm_config_read(&tb->dev, pos + PCI_MSIX_PBA, 4);
    g_assert_cmpuint(table & PCI_MSIX_TABLE_BIR, ==, 1);
    g_assert_cmpuint(pba & PCI_MSIX_PBA_BIR, ==, 1);
    g_assert_cmpuint((table & PCI_MSIX_TABLE_OFFSET) + 16 * GUEST_NUM_VECTORS, <=,
                     pba & PCI_MSIX_PBA_OFFSET);
}

/* The registers by the window in config space, as firmware reaches a BAR that is mapped nowhere
 * (virtio 1.2, 4.1.4.9). */
static unsigned cfg_cap(Testbed *tb)
{
    unsigned pos = vmm_config_read(&tb->dev, PCI_CAPABILITY_LIST, 1);

    while (pos && (vmm_config_read(&tb->dev, pos, 1) != PCI_CAP_ID_VNDR ||
                   vmm_config_read(&tb->dev, pos + 3, 1) != VIRTIO_PCI_CAP_PCI_CFG))
        pos = vmm_config_read(&tb->dev, pos + 1, 1);
    g_assert_cmpuint(pos, !=, 0);
    return pos;
}

static void cfg_select(Testbed *tb, unsigned cap, uint8_t bar, uint32_t offset, uint32_t len)
{
    vmm_config_write(&tb->dev, cap + 4, bar, 1);
    vmm_config_write(&tb->dev, cap + 8, offset, 4);
    vmm_config_write(&tb->dev, cap + 12, len, 4);
}

static void test_cfg_window(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    unsigned cap = cfg_cap(tb), data = cap + 16;
    const GuestCap *common = &tb->guest.common;
    uint32_t status = (uint32_t)(common->offset + COMMON(device_status));

    cfg_select(tb, cap, common->bar, status, 1);
    g_assert_cmphex(vmm_config_read(&tb->dev, data, 1), ==, guest_status(&tb->guest));
    cfg_select(tb, cap, common->bar, (uint32_t)(common->offset + COMMON(num_queues)), 2);
    g_assert_cmphex(vmm_config_read(&tb->dev, data, 2), ==, GUEST_NUM_QUEUES);
    /* A reset and a driver's first two steps, with access to memory disabled. */
    vmm_config_write(&tb->dev, PCI_COMMAND, 0, 2);
    cfg_select(tb, cap, common->bar, status, 1);
    vmm_config_write(&tb->dev, data, 0, 1);
    g_assert_true(wait_until(vmm_config_read(&tb->dev, data, 1) == 0, GUEST_TIMEOUT_MS));
    vmm_config_write(&tb->dev, data, 3, 1);
    g_assert_cmphex(vmm_config_read(&tb->dev, data, 1), ==, 3);
    g_assert_cmphex(guest_status(&tb->guest), ==, 3);
    /* The window is blank there, and other offsets have no effect. */
    cfg_select(tb, cap, 2, 0, 4);
    g_assert_cmphex(vmm_config_read(&tb->dev, data, 4), ==, (uint32_t)VGPU_WINDOW_BLANK);
    for (unsigned bar = 0; bar < 256; bar += 5) {
        cfg_select(tb, cap, (uint8_t)bar, 0xfffffffc, 4);
        vmm_config_write(&tb->dev, data, 0xffffffff, 4);
        vmm_config_read(&tb->dev, data, 4);
    }
    cfg_select(tb, cap, common->bar, status, 3);
    vmm_config_write(&tb->dev, data, 0, 4);
    g_assert_cmphex(guest_status(&tb->guest), ==, 3);
}

/* A read of gigabytes is served in small pieces; its caller can be killed meanwhile. */
static void test_long_read_killed(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    pid_t pid;

    assert_ok(mdev_attr_set(tb->uuid, "vgpu/window_bytes", "4294967296"));
    pid = fork();
    if (pid == 0) {
        size_t size = 1ull << 30;
        void *buf = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        testbed_advance(tb, TESTBED_AT_OPEN);
        pread(tb->dev.fd, buf, size, (off_t)tb->dev.region[VFIO_PCI_BAR2_REGION_INDEX].offset);
        _exit(1);
    }
    g_usleep(2500000);
    kill(pid, SIGKILL);
    g_assert_true(wait_until(waitpid(pid, NULL, WNOHANG) == pid, 3000));
}

static void test_features(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    Guest *guest = &tb->guest;
    const uint64_t v1 = 1ull << VIRTIO_F_VERSION_1;
    const uint64_t platform = 1ull << VIRTIO_F_ACCESS_PLATFORM;

    g_assert_cmphex(guest_device_features(guest), ==, GUEST_FEATURES);

    guest_reset(guest);
    g_assert_false(guest_negotiate(guest, v1));
    guest_reset(guest);
    g_assert_false(guest_negotiate(guest, platform));
    guest_reset(guest);
    g_assert_false(guest_negotiate(guest, v1 | platform | 1ull << VIRTIO_GPU_F_EDID));
    guest_reset(guest);
    g_assert_false(guest_negotiate(guest, v1 | platform | 1ull << 45));
    guest_reset(guest);
    g_assert_true(guest_negotiate(guest, v1 | platform));
}

static void test_device_config(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    Guest *guest = &tb->guest;
    struct virtio_gpu_config config;

    config.num_scanouts = (uint32_t)guest_reg_read(
        guest, &guest->device, offsetof(struct virtio_gpu_config, num_scanouts), 4);
    config.num_capsets = (uint32_t)guest_reg_read(
        guest, &guest->device, offsetof(struct virtio_gpu_config, num_capsets), 4);
    g_assert_cmpuint(config.num_scanouts, ==, 0);
    g_assert_cmpuint(config.num_capsets, ==, ENGINE_NUM_CAPSETS);
    g_assert_cmpuint(guest_reg_read(guest, &guest->common, COMMON(num_queues), 2), ==,
                     GUEST_NUM_QUEUES);
}

/* A queue that is not set up by the specification does not come up, and nothing breaks. */
static void test_bad_queue_setup(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    Guest *guest = &tb->guest;
    const GuestCap *common = &guest->common;

    guest_reset(guest);
    g_assert_true(guest_negotiate(guest, GUEST_FEATURES));
    guest_reg_write(guest, common, COMMON(queue_select), 0, 2);
    guest_reg_write(guest, common, COMMON(queue_size), 3, 2);
    guest_reg_write(guest, common, COMMON(queue_desc_lo), 1, 4);
    guest_reg_write(guest, common, COMMON(queue_enable), 1, 2);
    g_assert_cmpuint(guest_reg_read(guest, common, COMMON(queue_enable), 2), ==, 0);
    guest_reg_write(guest, common, COMMON(queue_select), 77, 2);
    g_assert_cmpuint(guest_reg_read(guest, common, COMMON(queue_size), 2), ==, 0);
    guest_reg_write(guest, common, COMMON(queue_size), 64, 2);
    guest_reg_write(guest, common, COMMON(queue_enable), 1, 2);
    guest_up(guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

/* Accesses of every width at every offset of the register BARs; then the device still works. */
static void test_odd_accesses(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint8_t buf[64];

    for (unsigned bar = 0; bar < 2; bar++) {
        for (uint64_t at = 0; at < tb->dev.region[bar].size; at += 61) {
            for (size_t len = 1; len <= 8; len++)
                vmm_region_read(&tb->dev, bar, at, buf, len);
        }
        g_assert_cmpint(vmm_region_read(&tb->dev, bar, tb->dev.region[bar].size, buf, 4), <, 0);
        g_assert_cmpint(vmm_region_read(&tb->dev, bar, tb->dev.region[bar].size - 2, buf, 4), <, 0);
        g_assert_cmpint(vmm_region_write(&tb->dev, bar, tb->dev.region[bar].size, buf, 4), <, 0);
    }
    vmm_region_read(&tb->dev, VFIO_PCI_CONFIG_REGION_INDEX, 0, buf, sizeof(buf));
    vmm_region_read(&tb->dev, VFIO_PCI_CONFIG_REGION_INDEX, 253, buf, 8);
    g_assert_cmpint(pread(tb->dev.fd, buf, 4, INT64_MAX - 2), <, 0);
    assert_round_trip(tb, 1);
}

/* Random writes to the whole of config space and of the registers: they must do no harm. */
static void test_random_writes(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(GRand) rand = g_rand_new_with_seed(4711);
    static const unsigned regions[] = {VFIO_PCI_CONFIG_REGION_INDEX, 0, 1};

    for (unsigned i = 0; i < 4000; i++) {
        unsigned region = regions[i % 3];
        uint64_t at = g_rand_int(rand) % tb->dev.region[region].size;
        uint64_t value = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);

        vmm_region_write(&tb->dev, region, at, &value, 1ul << (g_rand_int(rand) % 4));
    }
    assert_ok(vmm_device_reset(&tb->dev));
    guest_free(&tb->guest);
    guest_probe(&tb->guest, &tb->dev, &tb->ram);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

static void test_mmap_rules(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);
    const struct vfio_region_info *window = &tb->dev.region[VFIO_PCI_BAR2_REGION_INDEX];
    void *addr;

    for (unsigned bar = 0; bar < 2; bar++)
        g_assert_true(vmm_region_mmap(&tb->dev, bar, 0, 4096, PROT_READ) == MAP_FAILED);
    g_assert_true(vmm_region_mmap(&tb->dev, VFIO_PCI_BAR2_REGION_INDEX, 0, TESTBED_WINDOW + 4096,
                                  PROT_READ) == MAP_FAILED);
    g_assert_true(vmm_region_mmap(&tb->dev, VFIO_PCI_BAR2_REGION_INDEX, TESTBED_WINDOW, 4096,
                                  PROT_READ) == MAP_FAILED);
    addr = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, tb->dev.fd, (off_t)window->offset);
    g_assert_true(addr == MAP_FAILED);
    g_assert_cmpint(errno, ==, EINVAL);
    /* A part of it is allowed: QEMU maps sparse areas. */
    addr =
        vmm_region_mmap(&tb->dev, VFIO_PCI_BAR2_REGION_INDEX, 8192, 4096, PROT_READ | PROT_WRITE);
    g_assert_true(addr != MAP_FAILED);
    g_assert_cmphex(*(volatile uint64_t *)addr, ==, VGPU_WINDOW_BLANK);
    munmap(addr, 4096);
}

/* The device can be opened by one VMM at a time, and again after it. */
static void test_open_again(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_OPEN);
    VmmContainer second;
    VmmDevice dev;

    assert_ok(vmm_container_open(&second));
    /* By iommufd the node opens, and binding it is refused. */
    assert_fails(vmm_vgpu_open(&second, &dev, tb->uuid), vmm_by_iommufd() ? EINVAL : EBUSY);
    vmm_container_close(&second);
    for (int i = 0; i < 3; i++) {
        testbed_close_vmm(tb);
        testbed_advance(tb, TESTBED_AT_GUEST);
        assert_round_trip(tb, 1);
    }
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/pci/info", test_info);
    driver_test_add("/pci/info-arguments", test_info_arguments);
    driver_test_add("/pci/header", test_header);
    driver_test_add("/pci/bars", test_bars);
    driver_test_add("/pci/capabilities", test_capabilities);
    driver_test_add("/pci/msix-capability", test_msix_capability);
    driver_test_add("/pci/cfg-window", test_cfg_window);
    driver_test_add("/pci/long-read-killed", test_long_read_killed);
    driver_test_add("/pci/features", test_features);
    driver_test_add("/pci/device-config", test_device_config);
    driver_test_add("/pci/bad-queue-setup", test_bad_queue_setup);
    driver_test_add("/pci/odd-accesses", test_odd_accesses);
    driver_test_add("/pci/random-writes", test_random_writes);
    driver_test_add("/pci/mmap-rules", test_mmap_rules);
    driver_test_add("/pci/open-again", test_open_again);
    return driver_test_run();
}
