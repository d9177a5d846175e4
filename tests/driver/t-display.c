/* SPDX-License-Identifier: MIT */
/* The picture and the monitor of a vGPU with a display, for a VMM, a guest and an engine. */
#include <linux/virtio_gpu.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "testbed.h"

#define REGION_PICTURE 9
#define REGION_EDID    10
#define XRGB8888       0x34325258u

#define EDID_REG(field) offsetof(struct vfio_region_gfx_edid, field)

/* A vGPU with a display, at any stage from AT_VGPU on. */
static Testbed *display_new(TestbedStage stage)
{
    Testbed *tb = testbed_new(TESTBED_AT_VGPU);

    assert_ok(mdev_attr_set(tb->uuid, "vgpu/display", "1"));
    testbed_advance(tb, stage);
    return tb;
}

static int query_plane(Testbed *tb, uint32_t flags, struct vfio_device_gfx_plane_info *plane)
{
    memset(plane, 0xee, sizeof(*plane));
    plane->argsz = sizeof(*plane);
    plane->flags = flags;
    return ioctl(tb->dev.fd, VFIO_DEVICE_QUERY_GFX_PLANE, plane) < 0 ? -errno : 0;
}

static int region_info(Testbed *tb, unsigned index, struct vfio_region_info *info, size_t room)
{
    memset(info, 0, room);
    info->argsz = (uint32_t)room;
    info->index = index;
    return ioctl(tb->dev.fd, VFIO_DEVICE_GET_REGION_INFO, info) < 0 ? -errno : 0;
}

static off_t region_offset(Testbed *tb, unsigned index)
{
    struct vfio_region_info info;

    assert_ok(region_info(tb, index, &info, sizeof(info)));
    return (off_t)info.offset;
}

static void *map_region(Testbed *tb, unsigned index, size_t size, int prot, int flags)
{
    return mmap(NULL, size, prot, flags, tb->dev.fd, region_offset(tb, index));
}

/* ---- in the engine ---- */

static int call_set_scanout(EngineCtx *ctx, void *arg)
{
    struct vgpu_scanout *scanout = arg;

    if (scanout->epoch == UINT64_MAX)
        scanout->epoch = engine_epoch(ctx);
    return engine_ioctl(ctx, VGPU_ENGINE_SET_SCANOUT, scanout);
}

static int set_scanout(Testbed *tb, uint32_t width, uint32_t height)
{
    struct vgpu_scanout scanout = {
        .argsz = sizeof(scanout),
        .epoch = UINT64_MAX,
        .width = width,
        .height = height,
        .stride = 4 * width,
        .drm_format = width ? XRGB8888 : 0,
    };

    return engine_peer_call(tb->engine, call_set_scanout, &scanout, sizeof(scanout));
}

/* Maps the picture, or a part of it, and stores the mapping in @addr. */
typedef struct {
    uint64_t offset, size, addr;
    int prot, flags;
} MapCall;

static int call_map(EngineCtx *ctx, void *arg)
{
    MapCall *call = arg;
    void *addr = mmap(NULL, call->size, call->prot, call->flags, ctx->fd, (off_t)call->offset);

    if (addr == MAP_FAILED)
        return -errno;
    call->addr = (uintptr_t)addr;
    return 0;
}

static int map_picture(Testbed *tb, uint64_t offset, uint64_t size, int prot, int flags,
                       uint64_t *addr)
{
    MapCall call = {VGPU_PICTURE_OFFSET + offset, size, 0, prot, flags};
    int ret = engine_peer_call(tb->engine, call_map, &call, sizeof(call));

    *addr = call.addr;
    return ret;
}

typedef struct {
    uint64_t addr, value;
} PokeCall;

static int call_poke(EngineCtx *ctx, void *arg)
{
    const PokeCall *call = arg;

    (void)ctx;
    *(volatile uint64_t *)(uintptr_t)call->addr = call->value;
    return 0;
}

static void write_guest(Testbed *tb, uint64_t addr, uint64_t value)
{
    PokeCall call = {addr, value};

    assert_ok(engine_peer_call(tb->engine, call_poke, &call, sizeof(call)));
}

static int call_display(EngineCtx *ctx, void *arg)
{
    return engine_ioctl(ctx, VGPU_ENGINE_DISPLAY, arg);
}

static int read_display(Testbed *tb, struct vgpu_display *display)
{
    memset(display, 0, sizeof(*display));
    display->argsz = sizeof(*display);
    return engine_peer_call(tb->engine, call_display, display, sizeof(*display));
}

/* ---- tests ---- */

static void test_none(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vfio_device_gfx_plane_info plane;
    struct vfio_region_info info;
    struct vgpu_display display;
    uint64_t addr;

    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/display"), ==, 0);
    assert_fails(query_plane(tb, VFIO_GFX_PLANE_TYPE_PROBE | VFIO_GFX_PLANE_TYPE_REGION, &plane),
                 ENOTTY);
    assert_fails(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION, &plane), ENOTTY);
    for (unsigned i = REGION_PICTURE; i <= REGION_EDID; i++) {
        assert_ok(region_info(tb, i, &info, sizeof(info)));
        g_assert_cmpuint(info.size, ==, 0);
        g_assert_cmphex(info.flags, ==, 0);
    }
    assert_fails(region_info(tb, REGION_EDID + 1, &info, sizeof(info)), EINVAL);
    g_assert_true(map_region(tb, REGION_PICTURE, PAGE_BYTES, PROT_READ, MAP_SHARED) == MAP_FAILED);
    assert_fails(read_display(tb, &display), ENODEV);
    assert_fails(set_scanout(tb, 640, 480), ENODEV);
    assert_fails(map_picture(tb, 0, PAGE_BYTES, PROT_READ, MAP_SHARED, &addr), ENODEV);
    g_assert_false(guest_device_features(&tb->guest) & 1ull << VIRTIO_GPU_F_EDID);
}

static void test_attribute(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_VGPU);
    struct vgpu_engine_info info;

    assert_fails(mdev_attr_set(tb->uuid, "vgpu/display", "2"), EINVAL);
    assert_fails(mdev_attr_set(tb->uuid, "vgpu/display", "on"), EINVAL);
    assert_fails(mdev_attr_set(tb->uuid, "vgpu/display", "-1"), EINVAL);
    assert_ok(mdev_attr_set(tb->uuid, "vgpu/display", "1"));
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_ok(peer_info(tb->engine, &info));
    g_assert_cmpuint(info.num_scanouts, ==, 1);
    g_assert_cmpuint(guest_reg_read(&tb->guest, &tb->guest.device,
                                    offsetof(struct virtio_gpu_config, num_scanouts), 4),
                     ==, 1);
    g_assert_true(guest_device_features(&tb->guest) & 1ull << VIRTIO_GPU_F_EDID);
    assert_fails(mdev_attr_set(tb->uuid, "vgpu/display", "0"), EBUSY);
    testbed_close_vmm(tb);
    assert_ok(mdev_attr_set(tb->uuid, "vgpu/display", "0"));
}

static void test_type(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GPU);
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);
    g_autofree char *description = NULL;

    type.scanouts = 1;
    assert_ok(mdev_gpu_set_types(TESTBED_GPU, TESTBED_GPU_VRAM, &type, 1));
    description = mdev_type_attr(TESTBED_GPU, TESTBED_TYPE, "description");
    g_assert_true(g_str_has_suffix(description, " display"));
    testbed_advance(tb, TESTBED_AT_VGPU);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/display"), ==, 1);
}

/*
 * QEMU's order: dma-bufs are refused, the region is accepted; no picture until the engine sets one.
 */
static void test_plane(void)
{
    g_autoptr(Testbed) tb = display_new(TESTBED_AT_GUEST);
    struct vfio_device_gfx_plane_info plane;

    assert_fails(query_plane(tb, VFIO_GFX_PLANE_TYPE_PROBE | VFIO_GFX_PLANE_TYPE_DMABUF, &plane),
                 EINVAL);
    assert_ok(query_plane(tb, VFIO_GFX_PLANE_TYPE_PROBE | VFIO_GFX_PLANE_TYPE_REGION, &plane));
    assert_fails(query_plane(tb, VFIO_GFX_PLANE_TYPE_PROBE, &plane), EINVAL);
    assert_fails(query_plane(tb, VFIO_GFX_PLANE_TYPE_DMABUF, &plane), EINVAL);
    assert_fails(query_plane(tb, 0, &plane), EINVAL);
    assert_fails(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION | 1u << 31, &plane), EINVAL);

    assert_ok(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION, &plane));
    g_assert_cmpuint(plane.drm_format, ==, 0);
    g_assert_cmpuint(plane.size, ==, 0);

    assert_ok(set_scanout(tb, 640, 480));
    assert_ok(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION, &plane));
    g_assert_cmphex(plane.drm_format, ==, XRGB8888);
    g_assert_cmpuint(plane.drm_format_mod, ==, 0);
    g_assert_cmpuint(plane.width, ==, 640);
    g_assert_cmpuint(plane.height, ==, 480);
    g_assert_cmpuint(plane.stride, ==, 2560);
    g_assert_cmpuint(plane.size, ==, 2560 * 480);
    g_assert_cmpuint(plane.x_pos | plane.y_pos | plane.x_hot | plane.y_hot, ==, 0);
    g_assert_cmpuint(plane.region_index, ==, REGION_PICTURE);

    assert_ok(set_scanout(tb, VGPU_PICTURE_MAX_WIDTH, VGPU_PICTURE_MAX_HEIGHT));
    assert_ok(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION, &plane));
    g_assert_cmpuint(plane.size, <=, VGPU_PICTURE_SIZE);
    assert_ok(set_scanout(tb, 0, 0));
    assert_ok(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION, &plane));
    g_assert_cmpuint(plane.drm_format, ==, 0);

    plane.argsz = offsetof(struct vfio_device_gfx_plane_info, region_index);
    plane.flags = VFIO_GFX_PLANE_TYPE_REGION;
    g_assert_cmpint(ioctl(tb->dev.fd, VFIO_DEVICE_QUERY_GFX_PLANE, &plane), ==, -1);
    g_assert_cmpint(errno, ==, EINVAL);
    g_assert_cmpint(ioctl(tb->dev.fd, VFIO_DEVICE_QUERY_GFX_PLANE, NULL), ==, -1);
    g_assert_cmpint(errno, ==, EFAULT);
}

/* The VMM sees the engine's writes, across resizes; who may map which memory. */
static void test_picture(void)
{
    g_autoptr(Testbed) tb = display_new(TESTBED_AT_GUEST);
    const size_t end = VGPU_PICTURE_SIZE - 8;
    struct vfio_region_info info;
    const volatile uint64_t *seen;
    uint64_t addr, beyond;

    assert_ok(region_info(tb, REGION_PICTURE, &info, sizeof(info)));
    g_assert_cmpuint(info.size, ==, VGPU_PICTURE_SIZE);
    g_assert_cmphex(info.flags, ==, VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_MMAP);
    g_assert_true(map_region(tb, REGION_PICTURE, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED) ==
                  MAP_FAILED);
    g_assert_true(map_region(tb, REGION_PICTURE, PAGE_BYTES, PROT_READ, MAP_PRIVATE) == MAP_FAILED);
    g_assert_true(map_region(tb, REGION_PICTURE, VGPU_PICTURE_SIZE + PAGE_BYTES, PROT_READ,
                             MAP_SHARED) == MAP_FAILED);
    seen = map_region(tb, REGION_PICTURE, VGPU_PICTURE_SIZE, PROT_READ, MAP_SHARED);
    g_assert_true(seen != MAP_FAILED);
    g_assert_cmpint(mprotect((void *)seen, PAGE_BYTES, PROT_READ | PROT_WRITE), ==, -1);

    assert_ok(map_picture(tb, 0, VGPU_PICTURE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, &addr));
    assert_fails(map_picture(tb, 0, VGPU_PICTURE_SIZE + PAGE_BYTES, PROT_READ, MAP_SHARED, &beyond),
                 EINVAL);
    assert_fails(map_picture(tb, VGPU_PICTURE_SIZE, PAGE_BYTES, PROT_READ, MAP_SHARED, &beyond),
                 EINVAL);
    assert_fails(map_picture(tb, 0, PAGE_BYTES, PROT_READ, MAP_PRIVATE, &beyond), EINVAL);
    g_assert_cmphex(seen[0], ==, 0);
    write_guest(tb, addr, 0x1122334455667788);
    write_guest(tb, addr + end, 0x99);
    g_assert_cmphex(seen[0], ==, 0x1122334455667788);
    g_assert_cmphex(seen[end / 8], ==, 0x99);
    for (uint32_t width = 640; width <= VGPU_PICTURE_MAX_WIDTH; width += 640) {
        assert_ok(set_scanout(tb, width, 480));
        write_guest(tb, addr + 4 * width * 479, width);
        g_assert_cmpuint(seen[width * 479 / 2], ==, width);
    }
    munmap((void *)seen, VGPU_PICTURE_SIZE);
}

/* Nor by a mapping that the kernel makes again from the first one's file. */
static void test_read_only(void)
{
    g_autoptr(Testbed) tb = display_new(TESTBED_AT_GUEST);
    uint64_t *seen = map_region(tb, REGION_PICTURE, 2 * PAGE_BYTES, PROT_READ, MAP_SHARED);
    uint64_t addr;

    g_assert_true(seen != MAP_FAILED);
    assert_ok(map_picture(tb, 0, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, &addr));
    write_guest(tb, addr, 1);
    g_assert_cmpint(mprotect(seen, PAGE_BYTES, PROT_READ | PROT_WRITE), ==, -1);
    g_assert_cmpint(errno, ==, EACCES);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    g_assert_cmpint(remap_file_pages(seen, PAGE_BYTES, 0, 0, 0), ==, 0);
#pragma GCC diagnostic pop
    g_assert_cmpuint(*(volatile uint64_t *)seen, ==, 1);
    g_assert_cmpint(mprotect(seen, PAGE_BYTES, PROT_READ | PROT_WRITE), ==, -1);
    g_assert_cmpint(errno, ==, EACCES);
    munmap(seen, 2 * PAGE_BYTES);
}

static void test_hostile_engine(void)
{
    g_autoptr(Testbed) tb = display_new(TESTBED_AT_GUEST);
    struct vgpu_scanout good = {
        .argsz = sizeof(good),
        .epoch = UINT64_MAX,
        .width = 640,
        .height = 480,
        .stride = 2560,
        .drm_format = XRGB8888,
    };
    struct vfio_device_gfx_plane_info plane;
    struct vgpu_scanout bad;

#define REFUSED(change, error)                                                                     \
    do {                                                                                           \
        bad = good;                                                                                \
        change;                                                                                    \
        assert_fails(engine_peer_call(tb->engine, call_set_scanout, &bad, sizeof(bad)), error);    \
    } while (0)

    REFUSED(bad.argsz = sizeof(bad) - 1, EINVAL);
    REFUSED(bad.flags = 1, EINVAL);
    REFUSED(bad.reserved[3] = 1, EINVAL);
    REFUSED(bad.height = 0, EINVAL);
    REFUSED(bad.height = VGPU_PICTURE_MAX_HEIGHT + 1, EINVAL);
    REFUSED(bad.height = UINT32_MAX, EINVAL);
    REFUSED((bad.width = VGPU_PICTURE_MAX_WIDTH + 1, bad.stride = 4 * bad.width), EINVAL);
    REFUSED((bad.width = 0x40000001, bad.stride = 4), EINVAL);
    REFUSED(bad.width = 0, EINVAL);
    REFUSED(bad.stride = 2564, EINVAL);
    REFUSED(bad.stride = UINT32_MAX, EINVAL);
    REFUSED(bad.drm_format = 0x34324241, EINVAL);
    REFUSED(bad.drm_format = 0, EINVAL);
    REFUSED(bad.epoch = 0, ESTALE);
    assert_ok(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION, &plane));
    g_assert_cmpuint(plane.drm_format, ==, 0);
}

/* The guest's reset and the VMM's, the engine's death, the VMM's end. */
static void test_life(void)
{
    g_autoptr(Testbed) tb = display_new(TESTBED_AT_GUEST);
    struct vfio_device_gfx_plane_info plane;
    const volatile uint64_t *seen, *after;
    uint64_t addr;

    assert_ok(map_picture(tb, 0, VGPU_PICTURE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, &addr));
    seen = map_region(tb, REGION_PICTURE, VGPU_PICTURE_SIZE, PROT_READ, MAP_SHARED);
    g_assert_true(seen != MAP_FAILED);
    write_guest(tb, addr, 0x5ec2e7);
    assert_ok(set_scanout(tb, 640, 480));
    guest_reset(&tb->guest);
    assert_ok(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION, &plane));
    g_assert_cmpuint(plane.drm_format, ==, 0);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_ok(set_scanout(tb, 640, 480));
    assert_ok(vmm_device_reset(&tb->dev));
    assert_ok(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION, &plane));
    g_assert_cmpuint(plane.drm_format, ==, 0);

    /*
     * The next VMM gets a blank picture; neither the previous VMM's nor its engine's mapping shows
     * it.
     */
    testbed_close_vmm(tb);
    assert_fails(map_picture(tb, 0, PAGE_BYTES, PROT_READ, MAP_SHARED, &addr), ENODEV);
    testbed_advance(tb, TESTBED_AT_GUEST);
    after = map_region(tb, REGION_PICTURE, VGPU_PICTURE_SIZE, PROT_READ, MAP_SHARED);
    g_assert_true(after != MAP_FAILED);
    g_assert_cmphex(after[0], ==, 0);
    assert_ok(map_picture(tb, 0, VGPU_PICTURE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, &addr));
    write_guest(tb, addr, 0x7e77);
    g_assert_cmphex(after[0], ==, 0x7e77);
    g_assert_cmphex(seen[0], ==, 0x5ec2e7);

    /* A dead engine's last picture stays until the guest resets the device. */
    assert_ok(set_scanout(tb, 640, 480));
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    assert_answered_with_error(tb, 1);
    assert_ok(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION, &plane));
    g_assert_cmpuint(plane.width, ==, 640);
    g_assert_cmphex(after[0], ==, 0x7e77);
    tb->engine = engine_peer_start(tb->uuid, 0);
    assert_fails(set_scanout(tb, 320, 200), ESTALE);
    guest_reset(&tb->guest);
    assert_ok(query_plane(tb, VFIO_GFX_PLANE_TYPE_REGION, &plane));
    g_assert_cmpuint(plane.drm_format, ==, 0);
    munmap((void *)seen, VGPU_PICTURE_SIZE);
    munmap((void *)after, VGPU_PICTURE_SIZE);
}

static uint32_t edid_reg(Testbed *tb, size_t offset)
{
    uint32_t value = 0;

    g_assert_cmpint(pread(tb->dev.fd, &value, 4, region_offset(tb, REGION_EDID) + (off_t)offset),
                    ==, 4);
    return value;
}

static void edid_write(Testbed *tb, size_t offset, const void *data, size_t len)
{
    g_assert_cmpint(pwrite(tb->dev.fd, data, len, region_offset(tb, REGION_EDID) + (off_t)offset),
                    ==, (ssize_t)len);
}

static void edid_set(Testbed *tb, size_t offset, uint32_t value)
{
    edid_write(tb, offset, &value, sizeof(value));
}

/* The region as QEMU finds it: by its type, among all regions. */
static void test_edid_region(void)
{
    g_autoptr(Testbed) tb = display_new(TESTBED_AT_OPEN);
    struct {
        struct vfio_region_info info;
        struct vfio_region_info_cap_type type;
    } region;
    struct vfio_region_info small;

    g_assert_cmpuint(tb->dev.info.num_regions, ==, REGION_EDID + 1);
    assert_ok(region_info(tb, REGION_EDID, &small, sizeof(small)));
    g_assert_true(small.flags & VFIO_REGION_INFO_FLAG_CAPS);
    g_assert_cmpuint(small.argsz, ==, sizeof(region));
    g_assert_cmpuint(small.cap_offset, ==, 0);
    assert_ok(region_info(tb, REGION_EDID, &region.info, sizeof(region)));
    g_assert_cmpuint(region.info.cap_offset, ==, sizeof(region.info));
    g_assert_cmpuint(region.type.header.id, ==, VFIO_REGION_INFO_CAP_TYPE);
    g_assert_cmpuint(region.type.header.next, ==, 0);
    g_assert_cmpuint(region.type.type, ==, VFIO_REGION_TYPE_GFX);
    g_assert_cmpuint(region.type.subtype, ==, VFIO_REGION_SUBTYPE_GFX_EDID);

    g_assert_cmpuint(edid_reg(tb, EDID_REG(max_xres)), ==, VGPU_PICTURE_MAX_WIDTH);
    g_assert_cmpuint(edid_reg(tb, EDID_REG(max_yres)), ==, VGPU_PICTURE_MAX_HEIGHT);
    g_assert_cmpuint(edid_reg(tb, EDID_REG(edid_offset)) + edid_reg(tb, EDID_REG(edid_max_size)),
                     <=, small.size);
    edid_set(tb, EDID_REG(max_xres), 1);
    g_assert_cmpuint(edid_reg(tb, EDID_REG(max_xres)), ==, VGPU_PICTURE_MAX_WIDTH);
    g_assert_true(map_region(tb, REGION_EDID, PAGE_BYTES, PROT_READ, MAP_SHARED) == MAP_FAILED);
}

static uint32_t guest_events(Testbed *tb)
{
    return (uint32_t)guest_reg_read(&tb->guest, &tb->guest.device,
                                    offsetof(struct virtio_gpu_config, events_read), 4);
}

static void test_edid(void)
{
    g_autoptr(Testbed) tb = display_new(TESTBED_AT_GUEST);
    struct vgpu_display display;
    uint32_t at = edid_reg(tb, EDID_REG(edid_offset));
    uint8_t edid[256];

    assert_ok(read_display(tb, &display));
    g_assert_cmphex(display.state, ==, VGPU_DISPLAY_CONNECTED);
    g_assert_cmpuint(display.edid_size, ==, 0);
    g_assert_cmphex(guest_events(tb), ==, 0);

    /* The VMM's order: off, EDID, on; the guest is notified of both. */
    for (unsigned i = 0; i < sizeof(edid); i++)
        edid[i] = (uint8_t)(i * 7);
    vmm_eventfd_take(tb->guest.vector_fd[0], 0);
    edid_set(tb, EDID_REG(link_state), VFIO_DEVICE_GFX_LINK_STATE_DOWN);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[0], 5000), ==, 1);
    g_assert_cmphex(guest_events(tb), ==, VIRTIO_GPU_EVENT_DISPLAY);
    guest_reg_write(&tb->guest, &tb->guest.device, offsetof(struct virtio_gpu_config, events_clear),
                    VIRTIO_GPU_EVENT_DISPLAY, 4);
    g_assert_cmphex(guest_events(tb), ==, 0);
    edid_set(tb, EDID_REG(edid_size), sizeof(edid));
    edid_write(tb, at, edid, sizeof(edid));
    assert_ok(read_display(tb, &display));
    g_assert_cmphex(display.state, ==, 0);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[0], 0), ==, 0);
    edid_set(tb, EDID_REG(link_state), VFIO_DEVICE_GFX_LINK_STATE_UP);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[0], 5000), ==, 1);
    g_assert_cmphex(guest_events(tb), ==, VIRTIO_GPU_EVENT_DISPLAY);
    assert_ok(read_display(tb, &display));
    g_assert_cmphex(display.state, ==, VGPU_DISPLAY_CONNECTED);
    g_assert_cmpmem(display.edid, display.edid_size, edid, sizeof(edid));

    /* The guest's reset does not reset the monitor; the VMM's end does. */
    guest_reset(&tb->guest);
    g_assert_cmphex(guest_events(tb), ==, 0);
    assert_ok(read_display(tb, &display));
    g_assert_cmpuint(display.edid_size, ==, sizeof(edid));
    testbed_close_vmm(tb);
    testbed_advance(tb, TESTBED_AT_OPEN);
    assert_ok(read_display(tb, &display));
    g_assert_cmpuint(display.edid_size, ==, 0);
}

static void test_hostile_edid(void)
{
    g_autoptr(Testbed) tb = display_new(TESTBED_AT_GUEST);
    g_autofree uint8_t *junk = g_malloc(8192);
    off_t region = region_offset(tb, REGION_EDID);
    struct vgpu_display display;

    memset(junk, 0xff, 8192);
    edid_set(tb, EDID_REG(edid_size), 1025);
    edid_set(tb, EDID_REG(edid_size), UINT32_MAX);
    edid_set(tb, EDID_REG(link_state), 7);
    edid_set(tb, EDID_REG(link_state), 0);
    assert_ok(read_display(tb, &display));
    g_assert_cmphex(display.state, ==, VGPU_DISPLAY_CONNECTED);
    g_assert_cmpuint(display.edid_size, ==, 0);

    /* All of it at once, and beyond its end. */
    g_assert_cmpint(pwrite(tb->dev.fd, junk, 8192, region), ==, 2048);
    g_assert_cmpint(pwrite(tb->dev.fd, junk, 8, region + 2048), ==, -1);
    g_assert_cmpint(pread(tb->dev.fd, junk, 8192, region), ==, 2048);
    assert_ok(read_display(tb, &display));
    g_assert_cmpuint(display.edid_size, ==, 0);
    display.argsz = sizeof(display);
    display.flags = 1;
    assert_fails(engine_peer_call(tb->engine, call_display, &display, sizeof(display)), EINVAL);
    display.flags = 0;
    display.argsz--;
    assert_fails(engine_peer_call(tb->engine, call_display, &display, sizeof(display)), EINVAL);
    assert_round_trip(tb, 1);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/display/none", test_none);
    driver_test_add("/display/attribute", test_attribute);
    driver_test_add("/display/type", test_type);
    driver_test_add("/display/plane", test_plane);
    driver_test_add("/display/picture", test_picture);
    driver_test_add("/display/read-only", test_read_only);
    driver_test_add("/display/hostile-engine", test_hostile_engine);
    driver_test_add("/display/life", test_life);
    driver_test_add("/display/edid-region", test_edid_region);
    driver_test_add("/display/edid", test_edid);
    driver_test_add("/display/hostile-edid", test_hostile_edid);
    return driver_test_run();
}
