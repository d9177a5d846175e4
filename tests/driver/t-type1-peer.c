/* SPDX-License-Identifier: MIT */
/*
 * A physical PCI device by vfio-pci beside the vGPU in one VM. VFIO's type1 must never take a page
 * of the window as a DMA target of that device: it would keep it after it was removed from the
 * window.
 *
 * Needs a PCI device that is alone in its IOMMU group; the rig has a spare network card (class
 * 0200). Memory in a BAR of a GPU, PFNs without struct page as with VRAM, needs rig up --gpu pci.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <drm/virtgpu_drm.h>

#include "testbed.h"

#define PCI_DEVICES   "/sys/bus/pci/devices"
#define NETWORK_CLASS "0x0200"
#define SIZE          (16 * PAGE_BYTES)
#define WINDOW_IOVA   0x200000000ull
#define RW            (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)

static char *read_attribute(const char *device, const char *name)
{
    g_autofree char *path = g_build_filename(PCI_DEVICES, device, name, NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_strchomp(text);
}

static bool alone_in_group(const char *device)
{
    g_autofree char *path = g_build_filename(PCI_DEVICES, device, "iommu_group/devices", NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);

    return dir && g_dir_read_name(dir) && !g_dir_read_name(dir);
}

static bool is_virtio(const char *device)
{
    g_autofree char *vendor = read_attribute(device, "vendor");

    return g_strcmp0(vendor, "0x1af4") == 0;
}

static char *find_peer(void)
{
    g_autoptr(GDir) dir = g_dir_open(PCI_DEVICES, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *class = read_attribute(name, "class");

        if (class && g_str_has_prefix(class, NETWORK_CLASS) && !is_virtio(name) &&
            alone_in_group(name))
            return g_strdup(name);
    }
    return NULL;
}

/* Binds the device to vfio-pci, permanently: nothing else in the rig uses it. */
static char *require_peer(void)
{
    char *peer = find_peer();
    g_autofree char *unbind = NULL;
    g_autofree char *override = NULL;

    if (!peer)
        driver_test_skip("no network card to spare that is alone in an IOMMU group");
    unbind = g_build_filename(PCI_DEVICES, peer, "driver/unbind", NULL);
    override = g_build_filename(PCI_DEVICES, peer, "driver_override", NULL);
    if (access("/sys/bus/pci/drivers/vfio-pci", F_OK))
        driver_test_skip("vfio-pci is not loaded (tests/driver/prepare loads it)");
    assert_ok(sysfs_write(override, "vfio-pci"));
    sysfs_write(unbind, peer);
    assert_ok(sysfs_write("/sys/bus/pci/drivers_probe", peer));
    return peer;
}

static int attach_peer(VmmContainer *container, VmmDevice *dev, const char *peer)
{
    g_autofree char *sysfs = g_build_filename(PCI_DEVICES, peer, NULL);

    return vmm_device_open(container, dev, sysfs, peer);
}

static void publish_memory(Testbed *tb, MemoryKind kind)
{
    uint64_t addr;

    assert_ok(peer_alloc(tb->engine, kind, SIZE, &addr));
    assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
}

static void touch_window(Testbed *tb)
{
    for (uint64_t page = 0; page < SIZE / PAGE_BYTES; page++)
        assert_window_pattern(tb, page * PAGE_BYTES, page);
}

static int map_window(Testbed *tb)
{
    return vmm_dma_map(&tb->container, (void *)testbed_window(tb), WINDOW_IOVA, SIZE, RW);
}

/* With the PCI device in the container all of the window would have to be pinned. */
static void refused_beside(Testbed *tb, const char *peer)
{
    VmmDevice dev;

    assert_ok(attach_peer(&tb->container, &dev, peer));
    assert_fails(map_window(tb), EFAULT);
    touch_window(tb);
    assert_fails(map_window(tb), EFAULT);
    /* Again with blank pages, which are the driver's own. */
    assert_ok(peer_unpublish(tb->engine, 0, SIZE));
    assert_window_blank(tb, 0);
    assert_fails(map_window(tb), EFAULT);
    /* RAM is allowed, and the vGPU continues to work. */
    assert_ok(vmm_dma_map(&tb->container, tb->ram.mem, WINDOW_IOVA, MIB, RW));
    assert_ok(vmm_dma_unmap(&tb->container, WINDOW_IOVA, MIB));
    assert_round_trip(tb, 1);
    vmm_device_close(&dev);
}

/* vGPU first: as long as it is alone nothing is pinned. */
static void vgpu_first(MemoryKind kind)
{
    g_autofree char *peer = require_peer();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    publish_memory(tb, kind);
    refused_beside(tb, peer);
}

/* The render node of a virtio-gpu whose host shows memory in a BAR, and that GPU's address. */
static char *find_bar_gpu(char **gpu)
{
    g_autoptr(GDir) dir = g_dir_open("/sys/class/drm", 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *link = g_build_filename("/sys/class/drm", name, "device", NULL);
        g_autofree char *target = g_file_read_link(link, NULL);
        g_autofree char *node = g_build_filename("/dev/dri", name, NULL);
        struct drm_virtgpu_getparam get = {.param = VIRTGPU_PARAM_HOST_VISIBLE};
        int value = 0, fd;

        if (!g_str_has_prefix(name, "renderD") || !target)
            continue;
        fd = open(node, O_RDWR | O_CLOEXEC);
        get.value = (uintptr_t)&value;
        if (fd >= 0 && ioctl(fd, DRM_IOCTL_VIRTGPU_GETPARAM, &get) == 0 && value) {
            close(fd);
            *gpu = g_path_get_basename(target);
            return g_steal_pointer(&node);
        }
        close(fd);
    }
    return NULL;
}

typedef struct {
    char node[64];
    uint64_t addr;
} BarCall;

static int virtgpu_blob(int fd, uint64_t *offset)
{
    struct drm_virtgpu_context_set_param capset = {.param = VIRTGPU_CONTEXT_PARAM_CAPSET_ID,
                                                   .value = VIRTIO_GPU_CAPSET_VENUS};
    struct drm_virtgpu_context_init init = {.num_params = 1, .ctx_set_params = (uintptr_t)&capset};
    struct drm_virtgpu_resource_create_blob blob = {.blob_mem = VIRTGPU_BLOB_MEM_HOST3D,
                                                    .blob_flags = VIRTGPU_BLOB_FLAG_USE_MAPPABLE,
                                                    .size = SIZE};
    struct drm_virtgpu_map map = {0};

    if (ioctl(fd, DRM_IOCTL_VIRTGPU_CONTEXT_INIT, &init) < 0 ||
        ioctl(fd, DRM_IOCTL_VIRTGPU_RESOURCE_CREATE_BLOB, &blob) < 0)
        return -errno;
    map.handle = blob.bo_handle;
    if (ioctl(fd, DRM_IOCTL_VIRTGPU_MAP, &map) < 0)
        return -errno;
    *offset = map.offset;
    return 0;
}

static int call_map_bar(EngineCtx *ctx, void *arg)
{
    BarCall *call = arg;
    int fd = open(call->node, O_RDWR | O_CLOEXEC);
    uint64_t offset = 0;
    uint32_t *words;
    int ret;

    (void)ctx;
    ret = fd < 0 ? -errno : virtgpu_blob(fd, &offset);
    if (ret)
        return ret;
    words = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    if (words == MAP_FAILED)
        return -errno;
    for (uint64_t i = 0; i < SIZE / 4; i++)
        words[i] = memory_pattern(i / 1024, i % 1024);
    call->addr = (uintptr_t)words;
    return 0;
}

/* Memory in a PCI BAR of the vGPU's own GPU. */
static void test_vgpu_first_bar(void)
{
    g_autofree char *peer = require_peer();
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);
    const char *const load[] = {"modprobe", "virtio_gpu", NULL};
    g_autofree char *gpu = NULL;
    g_autofree char *node = NULL;
    BarCall call = {0};
    Testbed *tb;

    g_spawn_sync(NULL, (char **)load, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    if (!wait_until((node = find_bar_gpu(&gpu)) != NULL, 3000))
        driver_test_skip("no GPU that shows memory in a BAR (check-driver --gpu pci)");
    g_strlcpy(call.node, node, sizeof(call.node));

    assert_ok(mdev_gpu_add(gpu, TESTBED_GPU_VRAM, &type, 1));
    tb = testbed_new_on(gpu, TESTBED_TYPE, TESTBED_AT_GUEST);
    assert_ok(engine_peer_call(tb->engine, call_map_bar, &call, sizeof(call)));
    assert_ok(peer_publish(tb->engine, 0, SIZE, call.addr));
    refused_beside(tb, peer);
    testbed_free(tb);
    assert_ok(mdev_gpu_remove(gpu));
}

static void test_vgpu_first(void)
{
    vgpu_first(MEMORY_MEMFD);
}

static void test_vgpu_first_udmabuf(void)
{
    if (access("/dev/udmabuf", R_OK | W_OK))
        driver_test_skip("this kernel has no /dev/udmabuf");
    vgpu_first(MEMORY_UDMABUF);
}

/* The window mapped while the vGPU was alone must keep the PCI device out. */
static void test_mapped_before(void)
{
    g_autofree char *peer = require_peer();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    VmmDevice dev;

    publish_memory(tb, MEMORY_MEMFD);
    touch_window(tb);
    assert_ok(map_window(tb));
    assert_fails(attach_peer(&tb->container, &dev, peer), EFAULT);
    assert_ok(vmm_dma_unmap(&tb->container, WINDOW_IOVA, SIZE));
    assert_ok(attach_peer(&tb->container, &dev, peer));
    assert_fails(map_window(tb), EFAULT);
    touch_window(tb);
    assert_round_trip(tb, 1);
    vmm_device_close(&dev);
}

/* PCI device first, with RAM mapped; then the vGPU is hot-plugged. */
static void test_peer_first(void)
{
    g_autofree char *peer = require_peer();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_ENGINE);
    VmmContainer container;
    VmmDevice dev, vgpu;
    VmmRam ram;
    Guest guest;
    volatile uint32_t *window;

    assert_ok(vmm_container_open(&container));
    assert_ok(attach_peer(&container, &dev, peer));
    assert_ok(vmm_ram_new(&ram, TESTBED_RAM_SIZE, TESTBED_RAM_IOVA));
    assert_ok(vmm_ram_map(&container, &ram));
    assert_ok(vmm_vgpu_open(&container, &vgpu, tb->uuid));
    guest_probe(&guest, &vgpu, &ram);
    guest_up(&guest, GUEST_FEATURES);

    publish_memory(tb, MEMORY_MEMFD);
    window = vmm_region_mmap(&vgpu, VFIO_PCI_BAR2_REGION_INDEX, 0, SIZE, PROT_READ | PROT_WRITE);
    g_assert_true((void *)window != MAP_FAILED);
    assert_fails(vmm_dma_map(&container, (void *)window, WINDOW_IOVA, SIZE, RW), EFAULT);
    for (uint64_t page = 0; page < SIZE / PAGE_BYTES; page++)
        g_assert_cmphex(window[page * 1024 + 1], ==, memory_pattern(page, 1));
    assert_fails(vmm_dma_map(&container, (void *)window, WINDOW_IOVA, SIZE, RW), EFAULT);
    assert_ok(vmm_dma_unmap(&container, ram.iova, ram.size));
    assert_ok(vmm_ram_map(&container, &ram));

    munmap((void *)window, SIZE);
    guest_free(&guest);
    vmm_device_close(&vgpu);
    vmm_device_close(&dev);
    vmm_container_close(&container);
    vmm_ram_free(&ram);
}

/* The vGPU itself cannot use its own window as guest memory either. */
static void test_window_as_guest_memory(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_mem_entry entry = {WINDOW_IOVA, PAGE_BYTES};

    publish_memory(tb, MEMORY_MEMFD);
    assert_ok(map_window(tb));
    assert_fails(peer_pin(tb->engine, &entry, 1, 0, NULL, NULL), EFAULT);
    touch_window(tb);
    assert_fails(peer_pin(tb->engine, &entry, 1, 0, NULL, NULL), EFAULT);
    assert_ok(vmm_dma_unmap(&tb->container, WINDOW_IOVA, SIZE));
    assert_round_trip(tb, 1);
}

/* With a PCI device in the container pins of the vGPU are not accounted twice, and still end. */
static void test_pins_beside_peer(void)
{
    g_autofree char *peer = require_peer();
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 4 * MIB, 4 * PAGE_BYTES};
    VmmDevice dev;
    uint64_t addr;
    uint8_t byte = 0;

    assert_ok(attach_peer(&tb->container, &dev, peer));
    memset(tb->ram.mem + 4 * MIB, 0x42, 4 * PAGE_BYTES);
    assert_ok(peer_pin(tb->engine, &entry, 1, VGPU_MEM_WRITE, NULL, &addr));
    assert_ok(peer_peek(tb->engine, addr + 77, &byte, 1));
    g_assert_cmphex(byte, ==, 0x42);
    assert_ok(vmm_dma_unmap(&tb->container, tb->ram.iova, tb->ram.size));
    assert_ok(peer_peek(tb->engine, addr + 77, &byte, 1));
    g_assert_cmphex(byte, ==, 0xff);
    vmm_device_close(&dev);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/type1-peer/vgpu-first", test_vgpu_first);
    driver_test_add("/type1-peer/vgpu-first-udmabuf", test_vgpu_first_udmabuf);
    driver_test_add("/type1-peer/vgpu-first-bar", test_vgpu_first_bar);
    driver_test_add("/type1-peer/mapped-before", test_mapped_before);
    driver_test_add("/type1-peer/peer-first", test_peer_first);
    driver_test_add("/type1-peer/window-as-guest-memory", test_window_as_guest_memory);
    driver_test_add("/type1-peer/pins-beside-peer", test_pins_beside_peer);
    return driver_test_run();
}
