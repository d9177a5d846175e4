/* SPDX-License-Identifier: MIT */
/* NVIDIA's driver on a host, and what containers, programs and the doctor get of it. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "host-agent/daemon/containers/transport.h"
#include "host-agent/daemon/host/audit.h"
#include "host-agent/doctor/doctor.h"
#include "host-agent/model/slice.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"
#include "lib/nvidia_driver.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/elf_kit.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

#if defined(__aarch64__)
#define LIBS "/usr/lib/aarch64-linux-gnu"
#else
#define LIBS "/usr/lib/x86_64-linux-gnu"
#endif
#define DOOR    "/usr/lib/mdev-vgpu/cuda/libcuda.so.1"
#define VERSION "570.1"
#define KNOWN   "cuInit cuCtxGetDevice cuMemAlloc_v2 cuMemFree_v2 cuMemGetInfo_v2"

static void add_driver(HostRoot *root)
{
    static const char *const libraries[][2] = {
        {LIBS "/libcuda.so." VERSION, "libcuda.so.1"},
        {LIBS "/nvidia/current/libnvidia-ml.so." VERSION, "libnvidia-ml.so.1"},
        {LIBS "/libnvcuvid.so." VERSION, "libnvcuvid.so.1"},
        {LIBS "/libnvidia-encode.so." VERSION, "libnvidia-encode.so.1"},
        {LIBS "/libnvidia-glcore.so." VERSION, "libnvidia-glcore.so." VERSION},
        {LIBS "/libGLX_nvidia.so." VERSION, "libGLX_nvidia.so.0"},
        {LIBS "/libEGL_nvidia.so." VERSION, "libEGL_nvidia.so.0"},
        {LIBS "/libGLESv2_nvidia.so." VERSION, "libGLESv2_nvidia.so.2"},
        {LIBS "/libvdpau_nvidia.so." VERSION, "libvdpau_nvidia.so.1"},
        {LIBS "/libnvidia-opencl.so." VERSION, "libnvidia-opencl.so.1"},
        {LIBS "/libnvidia-opticalflow.so." VERSION, "libnvidia-opticalflow.so.1"},
        {"/usr/lib64/libnvidia-ml.so." VERSION, "libnvidia-ml.so.1"},
        /* Of no interest: another version, and no name. */
        {LIBS "/libcuda.so.535.1", "libcuda.so.1"},
        {LIBS "/libnvidia-nameless.so." VERSION, NULL},
        {LIBS "/libnvidia-astray.so." VERSION, "../libastray.so.1"},
    };

    file_tree_write(root, "/sys/module/nvidia/version", VERSION "\n");
    file_tree_write(root, "/proc/driver/nvidia/gpus/" ADDRESS "/information",
                    "Model: \t\t A\nDevice Minor: \t 3\n");
    for (guint i = 0; i < G_N_ELEMENTS(libraries); i++)
        elf_kit_write(root, libraries[i][0], libraries[i][1], KNOWN);
    file_tree_write(root, LIBS "/libnvidia-broken.so." VERSION, "no library");
    file_tree_write(root, "/dev/nvidiactl", "");
    file_tree_write(root, "/dev/nvidia-uvm", "");
    file_tree_write(root, "/usr/bin/nvidia-smi", "");
    elf_kit_write(root, DOOR, "libcuda.so.1", KNOWN);
}

static HostRoot *nvidia_tree(void)
{
    HostRoot *root = shared_tree();

    add_driver(root);
    return root;
}

#define GPU_DIR "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS

/* A host that shares an NVIDIA GPU with VMs, and has no slice. */
static HostRoot *vgpu_tree(void)
{
    HostRoot *root = recorded_host_new("empty");

    recorded_host_add(root, "pci0000:00/0000:00:01.0 class=0x060400 driver=pcieport");
    recorded_host_add(root, "pci0000:00/0000:00:01.0/" ADDRESS
                            " class=0x030200 vendor=0x10de device=0x2330 driver=nvidia "
                            "drm=card0,renderD128 types=nvidia-vgpu-full,nvidia-vgpu-half");
    file_tree_write(root, GPU_DIR "/mdev_supported_types/nvidia-vgpu-half/description",
                    "vram=8192M window=4096M weight=400 cap=100% priority=0 cuda\n");
    file_tree_write(root, "/run/vgpu/readings/" ADDRESS, "[gpu]\nmemory=17179869184\n");
    complete_tree(root);
    add_driver(root);
    return root;
}

static const CudaMount *mount_to(const GPtrArray *mounts, const char *to)
{
    for (guint i = 0; i < mounts->len; i++) {
        const CudaMount *mount = g_ptr_array_index(mounts, i);

        if (g_str_equal(mount->to, to))
            return mount;
    }
    return NULL;
}

#define REAL "/usr/lib/mdev-vgpu/real/"

static void test_mounts(void)
{
    HostRoot *root = nvidia_tree();
    g_autoptr(CudaDoor) door = cuda_door_find(root);
    g_autoptr(GPtrArray) all = cuda_door_mounts(door, 0);
    g_autoptr(GPtrArray) few = cuda_door_mounts(door, ENGINE_COMPUTE | ENGINE_DECODE);

    g_assert_cmpuint(all->len, ==, 4 + 10 + 1);
    g_assert_cmpstr(mount_to(all, REAL "libcuda.so.1")->from, ==, LIBS "/libcuda.so." VERSION);
    g_assert_cmpstr(mount_to(all, REAL "libnvidia-ml.so.1")->from, ==,
                    LIBS "/nvidia/current/libnvidia-ml.so." VERSION);
    g_assert_nonnull(mount_to(all, REAL "libnvidia-glcore.so." VERSION));
    g_assert_cmpstr(mount_to(all, DOOR)->from, ==, DOOR);
    g_assert_nonnull(mount_to(all, REAL "libnvidia-encode.so.1"));
    g_assert_cmpuint(few->len, ==, all->len - 3);
    g_assert_null(mount_to(few, REAL "libnvidia-encode.so.1"));
    g_assert_null(mount_to(few, REAL "libnvidia-opticalflow.so.1"));
    g_assert_nonnull(mount_to(few, REAL "libnvcuvid.so.1"));
    g_assert_nonnull(mount_to(few, REAL "libvdpau_nvidia.so.1"));
    file_tree_free(root);
}

/* OpenCL never, for nothing holds it to a slice; of GL what Vulkan does not need. */
static void test_ungoverned(void)
{
    HostRoot *root = nvidia_tree();
    g_autoptr(CudaDoor) door = cuda_door_find(root);
    g_autoptr(GPtrArray) all = cuda_door_mounts(door, 0);
    g_autoptr(GPtrArray) compute = cuda_door_mounts(door, ENGINE_COMPUTE);

    g_assert_null(mount_to(all, REAL "libnvidia-opencl.so.1"));
    g_assert_null(mount_to(compute, REAL "libnvidia-opencl.so.1"));
    g_assert_nonnull(mount_to(all, REAL "libGLESv2_nvidia.so.2"));
    g_assert_nonnull(mount_to(all, REAL "libnvidia-opticalflow.so.1"));
    g_assert_null(mount_to(compute, REAL "libGLESv2_nvidia.so.2"));
    g_assert_null(mount_to(compute, REAL "libvdpau_nvidia.so.1"));
    g_assert_null(mount_to(compute, REAL "libnvidia-opticalflow.so.1"));
    g_assert_nonnull(mount_to(compute, REAL "libGLX_nvidia.so.0"));
    g_assert_nonnull(mount_to(compute, REAL "libEGL_nvidia.so.0"));
    g_assert_nonnull(mount_to(compute, REAL "libnvidia-glcore.so." VERSION));
    file_tree_free(root);
}

/* OptiX, EGL and GBM: without their files OptiX fails, and EGL is Mesa's without a word. */
static void test_graphics(void)
{
    static const char *const files[] = {
        "/usr/share/glvnd/egl_vendor.d/10_nvidia.json",
        "/usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
        "/etc/egl/egl_external_platform.d/10_nvidia_wayland.json",
    };
    HostRoot *root = nvidia_tree();
    g_autoptr(CudaDoor) door = NULL;
    g_autoptr(GPtrArray) all = NULL, drawing = NULL, compute = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(files); i++)
        file_tree_write(root, files[i], "{}");
    file_tree_write(root, "/usr/share/glvnd/egl_vendor.d/50_mesa.json", "{}");
    file_tree_write(root, "/usr/share/nvidia/nvoptix.bin", "weights");
    elf_kit_write(root, LIBS "/libnvidia-egl-gbm.so.1.1.2", "libnvidia-egl-gbm.so.1", KNOWN);
    file_tree_link(root, LIBS "/libnvidia-egl-gbm.so.1", "libnvidia-egl-gbm.so.1.1.2");
    elf_kit_write(root, LIBS "/libnvidia-allocator.so." VERSION, "libnvidia-allocator.so.1", KNOWN);
    door = cuda_door_find(root);
    all = cuda_door_mounts(door, 0);
    drawing = cuda_door_mounts(door, ENGINE_GRAPHICS | ENGINE_COMPUTE);
    compute = cuda_door_mounts(door, ENGINE_COMPUTE);
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_assert_cmpstr(mount_to(all, files[i])->from, ==, files[i]);
        g_assert_nonnull(mount_to(drawing, files[i]));
        g_assert_null(mount_to(compute, files[i]));
    }
    g_assert_null(mount_to(all, "/usr/share/glvnd/egl_vendor.d/50_mesa.json"));
    g_assert_cmpstr(mount_to(all, REAL "libnvidia-egl-gbm.so.1")->from, ==,
                    LIBS "/libnvidia-egl-gbm.so.1.1.2");
    g_assert_nonnull(mount_to(drawing, REAL "libnvidia-egl-gbm.so.1"));
    g_assert_null(mount_to(compute, REAL "libnvidia-egl-gbm.so.1"));
    g_assert_nonnull(mount_to(all, REAL "libnvidia-allocator.so.1"));
    /* OptiX computes. */
    g_assert_nonnull(mount_to(compute, "/usr/share/nvidia/nvoptix.bin"));
    file_tree_free(root);
}

/* Without any of these there is nothing to offer. */
static void test_incomplete(void)
{
    static const char *const needed[] = {"/sys/module/nvidia/version", LIBS "/libcuda.so." VERSION,
                                         DOOR};

    for (guint i = 0; i < G_N_ELEMENTS(needed); i++) {
        HostRoot *root = nvidia_tree();
        g_autofree char *path = root_path(root, needed[i], NULL);

        g_assert_cmpint(g_unlink(path), ==, 0);
        g_assert_null(cuda_door_find(root));
        file_tree_free(root);
    }
}

static void assert_link(HostRoot *root, const char *name, const char *expected)
{
    g_autofree char *path = root_path(root, CUDA_REAL_LINKS "/", name, NULL);
    g_autofree char *target = g_file_read_link(path, NULL);

    g_assert_cmpstr(target, ==, expected);
}

static void test_cdi(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_tree();

    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    /* For a job's programs, which are in no container. */
    assert_link(root, "libcuda.so.1", LIBS "/libcuda.so." VERSION);
    assert_link(root, "libnvidia-ml.so.1", LIBS "/nvidia/current/libnvidia-ml.so." VERSION);
    assert_in_file(&at, CDI_PATH, "\"/dev/dri/renderD128\"");
    assert_in_file(&at, CDI_PATH, "\"/dev/nvidia3\"");
    assert_in_file(&at, CDI_PATH, "\"/dev/nvidiactl\"");
    assert_in_file(&at, CDI_PATH, "\"/dev/nvidia-uvm\"");
    assert_not_in_file(&at, CDI_PATH, "nvidia-uvm-tools");
    assert_in_file(&at, CDI_PATH, "\"containerPath\" : \"" REAL "libcuda.so.1\"");
    assert_in_file(&at, CDI_PATH, "\"NVIDIA_VISIBLE_DEVICES=void\"");
    assert_in_file(&at, CDI_PATH, "\"JULIA_CUDA_USE_COMPAT=false\"");
    assert_not_in_file(&at, CDI_PATH, "opencl");
    assert_in_file(&at, CDI_PATH,
                   "            \"hookName\" : \"createContainer\",\n"
                   "            \"path\" : \"/usr/lib/mdev-vgpu/vgpu-container-hook\",\n"
                   "            \"args\" : [\n"
                   "              \"vgpu-container-hook\",\n"
                   "              \"cuda\",\n"
                   "              \"/usr/lib/mdev-vgpu\"\n"
                   "            ],\n"
                   "            \"timeout\" : 40,\n"
                   "            \"env\" : [\n"
                   "              \"LC_ALL=C.UTF-8\"\n"
                   "            ]\n");
    assert_says("slice remove " UUID, 0, "", "");
    assert_says("slice create half --door guarded --uuid " UUID, 0, UUID, "");
    assert_not_in_file(&at, CDI_PATH, "nvidia");
    agent_on_bus_close(&at);
}

#define VGPU_ATTRIBUTES                                                                            \
    "state=device=closed engine=ready|failure=|vram_bytes=1073741824|window_bytes=268435456|"      \
    "weight=100|cap=100|priority=0"

/* For its engine's workers, on a host that has no slice for containers. */
static void test_vgpu_links(void)
{
    HostRoot *root = vgpu_tree();
    AgentOnBus at;

    agent_on_bus_open_tree(&at, root);
    assert_link(root, "libcuda.so.1", NULL);
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    assert_link(root, "libcuda.so.1", LIBS "/libcuda.so." VERSION);
    assert_link(root, "libnvidia-ml.so.1", LIBS "/nvidia/current/libnvidia-ml.so." VERSION);
    agent_on_bus_close(&at);
}

/* At boot a vGPU is there before vgpud. */
static void test_vgpu_links_at_start(void)
{
    HostRoot *root = vgpu_tree();
    AgentOnBus at;

    recorded_host_add_vgpu(root, "pci0000:00/0000:00:01.0/" ADDRESS, UUID, "nvidia-vgpu-half",
                           VGPU_ATTRIBUTES);
    agent_on_bus_open_tree(&at, root);
    assert_link(root, "libcuda.so.1", LIBS "/libcuda.so." VERSION);
    agent_on_bus_close(&at);
}

/* Of a type without a word on it; a vGPU that is older than its module has none. */
static void test_vgpu(void)
{
    AgentOnBus at;

    agent_on_bus_open_tree(&at, vgpu_tree());
    assert_says("type show half", 0, "CUDA:              yes\n", "");
    assert_says("type show half", 0, "Window:            4.0 GiB\n", "");
    assert_says("type list -o wide", 0, "CUDA", "");
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    assert_says("vgpu show " UUID, 0, "CUDA:                   yes\n", "");
    assert_says("slice create half --door vfio --uuid " UUID2, 0, UUID2, "");
    assert_says("slice show " UUID2, 0, "CUDA:                   yes\n", "");
    assert_says("vgpu remove " UUID, 0, "", "");
    recorded_host_add_vgpu(at.root, "pci0000:00/0000:00:01.0/" ADDRESS, UUID, "nvidia-vgpu-half",
                           VGPU_ATTRIBUTES);
    agent_update_vgpu(at.agent, UUID);
    assert_says("vgpu show " UUID, 0, "CUDA:                   no\n", "");
    assert_says("vgpu show " UUID, 0, "Window:                 256.0 MiB\n", "");
    agent_on_bus_close(&at);
}

static void test_vgpu_alone(void)
{
    HostRoot *root = vgpu_tree();
    AgentOnBus at;

    file_tree_write(root, "/run/vgpu/vulkan/" ADDRESS, "[vulkan]\nmissing=it has no render node\n");
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door vfio --uuid " UUID, 0, UUID, "");
    assert_says("slice show " UUID, 0, "CUDA:                   yes, without Vulkan\n", "");
    assert_says("vgpu show " UUID, 0, "CUDA:                   yes, without Vulkan\n", "");
    agent_on_bus_close(&at);
}

/* Who asks for no door gets CUDA if the GPU has it, and the guarded one if the CUDA door is
 * missing. */
static void test_auto_door(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_tree();
    g_autofree char *door = root_path(root, DOOR, NULL);

    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --uuid " UUID, 0, "native", "");
    assert_in_file(&at, CDI_PATH, "\"/dev/nvidia3\"");
    g_assert_cmpint(g_unlink(door), ==, 0);
    assert_says("slice create half --door auto --uuid " UUID2, 0, "guarded", "");
    agent_on_bus_close(&at);
}

static void make_node(HostRoot *root, const char *path, guint major, guint minor)
{
    g_autofree char *node = root_path(root, path, NULL);

    g_unlink(node);
    g_assert_cmpint(mknod(node, S_IFCHR | 0666, makedev(major, minor)), ==, 0);
}

static void assert_target(HostRoot *root, const char *path, const char *expected)
{
    g_autofree char *link = root_path(root, path, NULL);
    g_autofree char *target = g_file_read_link(link, NULL);

    g_assert_cmpstr(target, ==, expected);
}

/*
 * At a daemon-reload, systemd takes devices without a link in /dev/char from containers, and udev
 * makes none for NVIDIA's.
 */
static void test_node_links(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_tree();

    make_node(root, "/dev/nvidia3", 195, 3);
    make_node(root, "/dev/nvidiactl", 195, 255);
    make_node(root, "/dev/nvidia-uvm", 511, 0);
    /* Of an earlier loading of the module, when this number was another node's. */
    file_tree_link(root, "/dev/char/511:0", "../nvidia-modeset");
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_target(root, "/dev/char/195:3", "../nvidia3");
    assert_target(root, "/dev/char/195:255", "../nvidiactl");
    assert_target(root, "/dev/char/511:0", "../nvidia-uvm");
    /* The module was loaded again. */
    make_node(root, "/dev/nvidia-uvm", 510, 0);
    assert_says("reload", 0, "", "");
    assert_target(root, "/dev/char/510:0", "../nvidia-uvm");
    agent_on_bus_close(&at);
}

/* The libraries and the program of those without a node. */
static void add_remote(HostRoot *root)
{
    elf_kit_write(root, "/usr/lib/mdev-vgpu/guest/libcuda.so.1", "libcuda.so.1", KNOWN);
    file_tree_write(root, "/usr/lib/mdev-vgpu/vgpu-cuda-worker", "");
}

/* No node, no driver: two files and a socket, by paths that programs find by themselves. */
static void test_cdi_guarded(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_tree();

    add_remote(root);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door guarded --name web --uuid " UUID, 0, UUID, "");
    assert_in_file(&at, CDI_PATH, "\"hostPath\" : \"/run/vgpu/guard/" UUID "/cuda.sock\"");
    assert_in_file(&at, CDI_PATH, "\"containerPath\" : \"/run/vgpu/cuda.sock\"");
    assert_in_file(&at, CDI_PATH, "\"containerPath\" : \"/run/vgpu/cuda/web.sock\"");
    assert_in_file(&at, CDI_PATH, "\"containerPath\" : \"/usr/lib/mdev-vgpu/guest/libcuda.so.1\"");
    assert_in_file(&at, CDI_PATH, "              \"cuda-remote\",\n");
    assert_in_file(&at, CDI_PATH, "\"containerPath\" : \"/run/vgpu/vtest/web.sock\"");
    assert_in_file(&at, CDI_PATH, "\"NVIDIA_VISIBLE_DEVICES=void\"");
    assert_not_in_file(&at, CDI_PATH, "/dev/");
    assert_in_file(&at, CDI_PATH,
                   "\"containerPath\" : \"/usr/lib/mdev-vgpu/guest/libnvidia-ml.so.1\"");
    assert_not_in_file(&at, CDI_PATH, REAL);
    /* For its guard's workers. */
    assert_link(root, "libcuda.so.1", LIBS "/libcuda.so." VERSION);
    agent_on_bus_close(&at);
}

/* A guard that was started by an older version, and a card without Vulkan. */
static void test_cdi_guarded_parts(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_tree();
    g_autofree char *drm =
        root_path(root, "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS "/drm", NULL);
    g_autofree char *away = root_path(root, "/away", NULL);

    add_remote(root);
    agent_on_bus_open_tree(&at, root);
    file_tree_write(root, "/run/vgpu/guard/" UUID "/vtest.sock", "");
    assert_says("slice create half --door guarded --uuid " UUID, 0, UUID, "");
    assert_in_file(&at, CDI_PATH, "vtest.sock");
    assert_not_in_file(&at, CDI_PATH, "cuda");
    agent_on_bus_close(&at);

    root = nvidia_tree();
    add_remote(root);
    g_free(g_steal_pointer(&drm));
    g_free(g_steal_pointer(&away));
    drm = root_path(root, "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS "/drm", NULL);
    away = root_path(root, "/away", NULL);
    g_assert_cmpint(g_rename(drm, away), ==, 0);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door guarded --uuid " UUID, 0, UUID, "");
    assert_in_file(&at, CDI_PATH, "/cuda.sock");
    assert_not_in_file(&at, CDI_PATH, "vtest");
    agent_on_bus_close(&at);
}

/* A card for computing alone has no node of DRM. */
static void test_cdi_without_display(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_tree();
    g_autofree char *drm =
        root_path(root, "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS "/drm", NULL);
    g_autofree char *away = root_path(root, "/away", NULL);

    g_assert_cmpint(g_rename(drm, away), ==, 0);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_not_in_file(&at, CDI_PATH, "renderD");
    assert_in_file(&at, CDI_PATH, "\"/dev/nvidia3\"");
    agent_on_bus_close(&at);
}

/* The driver of the host, which may be replaced by another one. */
static void test_links(void)
{
    HostRoot *root = nvidia_tree();

    for (guint i = 0; i < 3; i++) {
        g_autoptr(CudaDoor) door = cuda_door_find(root);
        g_autoptr(GError) error = NULL;

        g_assert_true(cuda_door_link(root, door, &error));
        g_assert_no_error(error);
        assert_link(root, "libcuda.so.1",
                    i < 2 ? LIBS "/libcuda.so." VERSION : LIBS "/libcuda.so.575.2");
        assert_link(root, "libcuda.so.1.new", NULL);
        file_tree_write(root, "/sys/module/nvidia/version", i ? "575.2\n" : VERSION "\n");
        elf_kit_write(root, LIBS "/libcuda.so.575.2", "libcuda.so.1", KNOWN);
        elf_kit_write(root, LIBS "/libnvidia-ml.so.575.2", "libnvidia-ml.so.1", KNOWN);
    }
    file_tree_free(root);
}

static void got_answer(GObject *bus, GAsyncResult *result, void *data)
{
    g_autoptr(GError) error = NULL;

    *(GVariant **)data = g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, &error);
    g_assert_no_error(error);
}

static gboolean is_there(gconstpointer data)
{
    return *(GVariant *const *)data != NULL;
}

/* A VM's room: the type's window becomes smaller, and never larger. */
static guint64 window_with(const char *request)
{
    g_autoptr(GDBusConnection) bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, NULL);
    g_autoptr(GVariant) answer = NULL;
    g_autoptr(GVariant) vgpus = NULL;
    g_autoptr(GVariant) vgpu = NULL;
    guint64 window = 0;

    g_dbus_connection_call(bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH, "org.mdev_vgpu.Host1.Manager",
                           "CreateVgpus", g_variant_new_parsed(request), NULL,
                           G_DBUS_CALL_FLAGS_NONE, -1, NULL, got_answer, &answer);
    iterate_until(is_there, &answer);
    g_variant_get_child(answer, 0, "@aa{sv}", &vgpus);
    vgpu = g_variant_get_child_value(vgpus, 0);
    g_variant_lookup(vgpu, "Window", "t", &window);
    return window;
}

static void test_window(void)
{
    AgentOnBus at;

    agent_on_bus_open_tree(&at, vgpu_tree());
    g_assert_cmpuint(window_with("({'Type': <'half'>, 'WindowMost': <uint64 1073741824>},)"), ==,
                     1073741824);
    /* What mdevctl does not write is the fake kernel's. */
    g_assert_cmpuint(window_with("({'Type': <'half'>, 'WindowMost': <uint64 8589934592>},)"), ==,
                     268435456);
    agent_on_bus_close(&at);
}

/* The environment that vgpud tells this process, as if it were vgpuctl run. */
static GVariant *run_slice(void)
{
    g_autoptr(GDBusConnection) bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, NULL);
    g_autoptr(GVariant) answer = NULL;
    GVariant *environment;

    g_dbus_connection_call(
        bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH, "org.mdev_vgpu.Host1.Manager", "RunSlice",
        g_variant_new_parsed("({'Vram': <uint64 1073741824>}, '/usr/bin/train')"), NULL,
        G_DBUS_CALL_FLAGS_NONE, -1, NULL, got_answer, &answer);
    iterate_until(is_there, &answer);
    g_variant_get(answer, "(@a{sv}@a{ss})", NULL, &environment);
    return environment;
}

/* A program of the host is told where the door is, and the door where the driver is. */
static void test_run(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_tree();
    g_autofree char *process = g_strdup_printf("/proc/%d", (int)getpid());
    g_autoptr(GVariant) environment = NULL;
    const char *path = NULL;

    file_tree_link(root, process, process);
    agent_on_bus_open_tree(&at, root);
    environment = run_slice();
    g_assert_true(g_variant_lookup(environment, "LD_LIBRARY_PATH", "&s", &path));
    g_assert_cmpstr(path, ==, "/usr/lib/mdev-vgpu/cuda");
    g_assert_true(g_variant_lookup(environment, "JULIA_CUDA_USE_COMPAT", "&s", &path));
    g_assert_cmpstr(path, ==, "false");
    assert_link(root, "libcuda.so.1", LIBS "/libcuda.so." VERSION);
    assert_link(root, "libnvidia-ml.so.1", LIBS "/nvidia/current/libnvidia-ml.so." VERSION);
    agent_on_bus_close(&at);
}

/* The doctor's finding on CUDA that is not the first one's; NULL: none. */
static const Finding *find(const GPtrArray *findings)
{
    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        if (g_str_equal(finding->subject, "CUDA"))
            return finding;
    }
    return NULL;
}

static void assert_finds(HostRoot *root, Severity severity, const char *words)
{
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    const Finding *found = find(findings);

    g_assert_nonnull(found);
    g_test_message("%s: %s", severity_name(found->severity), found->text);
    g_assert_cmpint(found->severity, ==, severity);
    g_assert_nonnull(strstr(found->text, words));
}

static void test_doctor(void)
{
    HostRoot *root = nvidia_tree();
    g_autofree char *uvm = root_path(root, "/dev/nvidia-uvm", NULL);
    g_autofree char *door = root_path(root, DOOR, NULL);

    assert_finds(root, FINDING_OK,
                 "driver " VERSION ", the CUDA door knows all of its 5 functions");
    elf_kit_write(root, LIBS "/libcuda.so." VERSION, "libcuda.so.1",
                  KNOWN " cuMemAlloc_v77 cuAbacus cudbgMain -cuNeeded other");
    assert_finds(root, FINDING_WARNING,
                 "2 functions that the CUDA door does not know: cuAbacus, cuMemAlloc_v77");
    elf_kit_write(root, LIBS "/libcuda.so." VERSION, "libcuda.so.1",
                  KNOWN " cuA cuB cuC cuD cuE cuF");
    assert_finds(root, FINDING_WARNING,
                 "6 functions that the CUDA door does not know: cuA, cuB, "
                 "cuC, cuD, cuE, …");
    elf_kit_write(root, LIBS "/libcuda.so." VERSION, "libcuda.so.1", "cuInit");
    assert_finds(root, FINDING_WARNING, "has no function cuCtxGetDevice");
    elf_kit_write(root, LIBS "/libcuda.so." VERSION, "libcuda.so.1", KNOWN);
    file_tree_write(root, DOOR, "no library");
    assert_finds(root, FINDING_WARNING, "is not a shared library");
    g_assert_cmpint(g_unlink(door), ==, 0);
    assert_finds(root, FINDING_WARNING, "the CUDA door is not installed");
    file_tree_write(root, "/sys/module/nvidia/version", "999.1\n");
    assert_finds(root, FINDING_INFO, "the module is version 999.1");
    file_tree_free(root);
}

/* What else it says of CUDA, behind what it says of the door. */
static void assert_says_too(HostRoot *root, const char *words, gboolean expected)
{
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    gboolean said = FALSE;

    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        if (g_str_equal(finding->subject, "CUDA") && strstr(finding->text, words)) {
            g_assert_cmpint(finding->severity, ==, FINDING_INFO);
            said = TRUE;
        }
    }
    g_assert_cmpint(said, ==, expected);
}

/* What a host lacks for the door guarded. */
static void test_doctor_guarded(void)
{
    HostRoot *root = nvidia_tree();

    assert_says_too(root, "nvidia-drm is not loaded", TRUE);
    assert_says_too(root, "HMM", FALSE);
    file_tree_write(root, "/sys/module/nvidia_drm/refcnt", "0\n");
    file_tree_write(root, "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "N\n");
    assert_says_too(root, "nvidia-drm is not loaded", FALSE);
    assert_says_too(root, "HMM", TRUE);
    file_tree_write(root, "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "Y\n");
    assert_says_too(root, "HMM", FALSE);
    file_tree_free(root);
}

/* Of CUDA in VMs. @words: NULL: nothing at all. */
static void assert_of_vms(HostRoot *root, Severity severity, const char *words)
{
    g_autoptr(GPtrArray) findings = doctor_examine(root);
    gboolean said = FALSE;

    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        if (!g_str_equal(finding->subject, "CUDA in VMs"))
            continue;
        g_test_message("%s: %s", severity_name(finding->severity), finding->text);
        g_assert_nonnull(words);
        g_assert_cmpint(finding->severity, ==, severity);
        said = said || strstr(finding->text, words);
    }
    g_assert_cmpint(said, ==, words != NULL);
}

static void take_away(HostRoot *root, const char *path)
{
    g_autofree char *full = root_path(root, path, NULL);

    g_assert_cmpint(g_unlink(full), ==, 0);
}

static HostRoot *doctor_tree(void)
{
    HostRoot *root = vgpu_tree();

    file_tree_write(root, "/sys/module/mdev_vgpu/version", "1\n");
    add_remote(root);
    return root;
}

/* What is missing, one thing after the other. */
static void test_doctor_vms(void)
{
    HostRoot *root = doctor_tree();

    assert_of_vms(root, FINDING_OK, "guests need the package vgpu-guest-cuda");
    take_away(root, "/usr/lib/mdev-vgpu/vgpu-cuda-worker");
    assert_of_vms(root, FINDING_WARNING, "vgpu-cuda-worker is not installed");
    add_remote(root);
    take_away(root, "/usr/lib/mdev-vgpu/guest/libcuda.so.1");
    assert_of_vms(root, FINDING_WARNING, "the libcuda.so.1 of guests and containers is not");
    add_remote(root);
    take_away(root, LIBS "/libcuda.so." VERSION);
    assert_of_vms(root, FINDING_WARNING, "libcuda and NVML of the loaded module's version");
    file_tree_free(root);
}

/* A window that is too small; and types without CUDA need nothing. */
static void test_doctor_vms_window(void)
{
    HostRoot *root = doctor_tree();

    file_tree_write(root, "/etc/vgpu/types.d/20.conf", "[type small]\nvram=1G\nwindow=256M\n");
    assert_of_vms(root, FINDING_WARNING, "type small has a window of 256 MiB, which all memory");
    file_tree_write(root, "/etc/vgpu/types.d/20.conf", "");
    assert_of_vms(root, FINDING_OK, "");
    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", "[type a]\nvram=1G\ncuda=no\n");
    take_away(root, "/usr/lib/mdev-vgpu/vgpu-cuda-worker");
    assert_of_vms(root, FINDING_OK, NULL);
    file_tree_free(root);
}

/* A driver that was upgraded or removed under a vGPU. */
static void test_doctor_vms_link(void)
{
    HostRoot *root = doctor_tree();

    recorded_host_add_vgpu(root, "pci0000:00/0000:00:01.0/" ADDRESS, UUID, "nvidia-vgpu-half",
                           VGPU_ATTRIBUTES "|cuda=1");
    assert_of_vms(root, FINDING_WARNING, "/run/vgpu/nvidia/libcuda.so.1 leads to no driver");
    file_tree_link(root, CUDA_REAL_LINKS "/libcuda.so.1", LIBS "/libcuda.so." VERSION);
    assert_of_vms(root, FINDING_OK, "");
    file_tree_free(root);
}

static void test_doctor_without(void)
{
    HostRoot *root = shared_tree();
    g_autoptr(GPtrArray) findings = doctor_examine(root);

    g_assert_null(find(findings));
    file_tree_free(root);
}

/* Each byte of a library's tables, changed or cut off: what is read stays in the file. */
static void test_hostile_elf(void)
{
    g_autoptr(GByteArray) good = elf_kit_bytes("libcuda.so.1", KNOWN);
    HostRoot *root = file_tree_new();
    g_autofree char *path = root_path(root, "/library", NULL);

    for (guint i = 0; i < good->len * 3; i++) {
        static const guint8 values[] = {0xff, 0x80, 0x01};
        g_autofree guint8 *bytes = g_memdup2(good->data, good->len);
        gsize size = i % 7 == 0 ? i / 3 : good->len;
        g_autoptr(ElfFile) file = NULL;
        g_autoptr(GHashTable) names = NULL;
        const char *soname;

        bytes[i / 3] = values[i % 3];
        g_assert_true(g_file_set_contents(path, (const char *)bytes, (gssize)size, NULL));
        file = elf_file_open(root, "/library", NULL);
        if (!file)
            continue;
        names = elf_file_exports(file);
        soname = elf_file_soname(file);
        g_assert_cmpuint(g_hash_table_size(names), <=, 5);
        g_assert_true(!soname || strlen(soname) < good->len);
    }
    file_tree_free(root);
}

#define SUSPEND_LOG "/suspend-log"
#define FAILS       "/suspend-fails"
#define UNIT        "vgpu-suspend-" UUID ".service"

/* A container that starts meanwhile would find no memory. */
static void assert_no_claim(const char *uuid)
{
    const char *argv[] = {"gdbus",
                          "call",
                          "--system",
                          "--dest=" VGPU_BUS_NAME,
                          "--object-path=" VGPU_MANAGER_PATH,
                          "--method=" VGPU_MANAGER_INTERFACE ".ClaimSlice",
                          uuid,
                          "a-container",
                          "1",
                          NULL};
    Said said = run_program(argv);

    g_test_message("%s", said.err);
    g_assert_cmpint(said.status, !=, 0);
    g_assert_nonnull(strstr(said.err, "is suspended; resume it first"));
    said_clear(&said);
}

/* While it is suspended others have its room; it goes on when there is room for it again. */
static void test_suspend(void)
{
    HostRoot *root = nvidia_tree();
    g_autofree char *state = NULL;
    FakeArbiter arbiter;
    AgentOnBus at;

    fake_arbiter_open(&arbiter, root);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create full --door native --uuid " UUID, 0, UUID, "");
    assert_says("slice create half --door native --uuid " UUID2, 7, "", "no room");
    assert_says("slice suspend " UUID, 0, "", "");
    assert_in_file(&at, SUSPEND_LOG, "--gpu " ADDRESS " --bytes 4096 suspend 77 78\n");
    assert_in_file(&at, SHARE_OF(UUID), "vram=1\nspill=0\n");
    assert_says("slice show " UUID, 0, "Suspended", "");
    assert_no_claim(UUID);
    state = audit_state_of(AUDIT_SLICE, UUID);
    g_assert_nonnull(strstr(state, "Suspended=yes"));
    assert_says("slice create half --door native --uuid " UUID2, 0, UUID2, "");
    assert_says("slice resume " UUID, 7, "", ADDRESS);
    assert_not_in_file(&at, SUSPEND_LOG, "resume");
    /* What was suspended is, for the next vgpud as well. */
    agent_on_bus_restart(&at);
    assert_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    assert_says("slice remove " UUID2, 0, "", "");
    assert_says("slice resume " UUID, 0, "", "");
    assert_in_file(&at, SUSPEND_LOG, "\n--gpu " ADDRESS " --bytes 4096 resume 77 78\n");
    assert_not_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    assert_says("slice create half --door native --uuid " UUID2, 7, "", "no room");
    agent_on_bus_close(&at);
    fake_arbiter_close(&arbiter);
}

/* All is as before, and the driver's reason is told. */
static void test_suspend_fails(void)
{
    HostRoot *root = nvidia_tree();
    FakeArbiter arbiter;
    AgentOnBus at;

    fake_arbiter_open(&arbiter, root);
    file_tree_write(root, FAILS, "suspend\n");
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_says("slice suspend " UUID, 1, "", "cannot lock process 77: the driver says so");
    assert_not_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    file_tree_write(root, FAILS, "resume\n");
    assert_says("slice suspend " UUID, 0, "", "");
    assert_says("slice resume " UUID, 1, "", "cannot resume slice " UUID);
    assert_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    agent_on_bus_close(&at);
    fake_arbiter_close(&arbiter);
}

static gboolean has_resumed(gconstpointer at)
{
    g_autofree char *log = text_of(at, SUSPEND_LOG);

    return log && strstr(log, "resume 77 78\n");
}

/* vgpud was killed while it suspended, which goes on without it: that ends before the way back. */
static void test_suspend_interrupted(void)
{
    HostRoot *root = nvidia_tree();
    OperationRow row = {.kind = (char *)"suspend",
                        .objects = (char *[]){(char *)UUID, NULL},
                        .data = (char *)"@a{sv} {}",
                        .caller = (char *)"",
                        .step = (char *)"suspend"};
    FakeArbiter arbiter;
    AgentOnBus at;

    fake_arbiter_open(&arbiter, root);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    g_assert_true(operation_table_begin(host_db(agent_host(at.agent)), &row, NULL));
    file_tree_write(root, "/unit-runs", UNIT "\n");
    agent_on_bus_restart(&at);
    iterate_until(has_resumed, &at);
    assert_in_file(&at, SUSPEND_LOG,
                   UNIT " has ended\n--gpu " ADDRESS " --bytes 4096 resume 77 78\n");
    agent_on_bus_close(&at);
    fake_arbiter_close(&arbiter);
}

/* Its programs may have been left suspended. If that fails, they are not suspended for it. */
static void test_resume_running(void)
{
    HostRoot *root = nvidia_tree();
    FakeArbiter arbiter;
    AgentOnBus at;

    fake_arbiter_open(&arbiter, root);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door guarded --uuid " UUID2, 0, UUID2, "");
    assert_says("slice resume " UUID2, 0, "", "");
    g_assert_false(exists(&at, SUSPEND_LOG));
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_says("slice resume " UUID, 0, "", "");
    assert_in_file(&at, SUSPEND_LOG, "resume 77 78\n");
    file_tree_write(root, FAILS, "resume\n");
    assert_says("slice resume " UUID, 1, "", "cannot resume slice " UUID);
    assert_not_in_file(&at, SUSPEND_LOG, "suspend");
    assert_not_in_file(&at, SHARE_OF(UUID), "vram=1\n");
    agent_on_bus_close(&at);
    fake_arbiter_close(&arbiter);
}

static void test_suspend_refused(void)
{
    AgentOnBus at;

    agent_on_bus_open_tree(&at, nvidia_tree());
    assert_says("slice create half --door guarded --uuid " UUID, 0, UUID, "");
    assert_says("slice suspend " UUID, 1, "", "its door is guarded");
    assert_says("slice create half --door native --uuid " UUID2, 0, UUID2, "");
    assert_says("slice suspend " UUID2, 1, "", "arbiter of its GPU does not say");
    agent_on_bus_close(&at);
    agent_on_bus_open_tree(&at, shared_tree());
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_says("slice suspend " UUID, 1, "", "use Vulkan only cannot be suspended");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda/mounts", test_mounts);
    g_test_add_func("/cuda/ungoverned", test_ungoverned);
    g_test_add_func("/cuda/graphics", test_graphics);
    g_test_add_func("/cuda/incomplete", test_incomplete);
    g_test_add_func("/cuda/cdi", test_cdi);
    g_test_add_func("/cuda/auto-door", test_auto_door);
    g_test_add_func("/cuda/vgpu", test_vgpu);
    g_test_add_func("/cuda/doctor-vms", test_doctor_vms);
    g_test_add_func("/cuda/doctor-vms-window", test_doctor_vms_window);
    g_test_add_func("/cuda/doctor-vms-link", test_doctor_vms_link);
    g_test_add_func("/cuda/window", test_window);
    g_test_add_func("/cuda/vgpu-alone", test_vgpu_alone);
    g_test_add_func("/cuda/vgpu-links", test_vgpu_links);
    g_test_add_func("/cuda/vgpu-links-at-start", test_vgpu_links_at_start);
    g_test_add_func("/cuda/node-links", test_node_links);
    g_test_add_func("/cuda/cdi-without-display", test_cdi_without_display);
    g_test_add_func("/cuda/links", test_links);
    g_test_add_func("/cuda/run", test_run);
    g_test_add_func("/cuda/cdi-guarded", test_cdi_guarded);
    g_test_add_func("/cuda/cdi-guarded-parts", test_cdi_guarded_parts);
    g_test_add_func("/cuda/doctor", test_doctor);
    g_test_add_func("/cuda/doctor-guarded", test_doctor_guarded);
    g_test_add_func("/cuda/doctor-without", test_doctor_without);
    g_test_add_func("/cuda/hostile-elf", test_hostile_elf);
    g_test_add_func("/cuda/suspend", test_suspend);
    g_test_add_func("/cuda/suspend-fails", test_suspend_fails);
    g_test_add_func("/cuda/suspend-interrupted", test_suspend_interrupted);
    g_test_add_func("/cuda/resume-running", test_resume_running);
    g_test_add_func("/cuda/suspend-refused", test_suspend_refused);
    return g_test_run();
}
