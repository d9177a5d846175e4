/* SPDX-License-Identifier: MIT */
/* NVIDIA's driver on a host, and what containers and programs get of it. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "host-agent/daemon/containers/transport.h"
#include "host-agent/model/slice.h"
#include "lib/bus.h"
#include "lib/nvidia_driver.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/elf_kit.h"
#include "tests/unit/host-agent/nvidia_kit.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

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
    HostRoot *root = nvidia_kit_tree();
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
    HostRoot *root = nvidia_kit_tree();
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
    HostRoot *root = nvidia_kit_tree();
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
        HostRoot *root = nvidia_kit_tree();
        g_autofree char *path = root_path(root, needed[i], NULL);

        g_assert_cmpint(g_unlink(path), ==, 0);
        g_assert_null(cuda_door_find(root));
        file_tree_free(root);
    }
}

static void test_cdi(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_kit_tree();

    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    /* For a job's programs, which are in no container. */
    nvidia_kit_assert_link(root, "libcuda.so.1", LIBS "/libcuda.so." VERSION);
    nvidia_kit_assert_link(root, "libnvidia-ml.so.1",
                           LIBS "/nvidia/current/libnvidia-ml.so." VERSION);
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
                   "            \"hookName\" : \"createRuntime\",\n"
                   "            \"path\" : \"/usr/lib/mdev-vgpu/vgpu-container-hook\",\n"
                   "            \"args\" : [\n"
                   "              \"vgpu-container-hook\",\n"
                   "              \"put-cuda\",\n"
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

/* Who asks for no door gets CUDA if the GPU has it, and the guarded one if the CUDA door is
 * missing. */
static void test_auto_door(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_kit_tree();
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
    HostRoot *root = nvidia_kit_tree();

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

/* No node, no driver: two files and a socket, by paths that programs find by themselves. */
static void test_cdi_guarded(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_kit_tree();

    nvidia_kit_add_remote(root);
    agent_on_bus_open_tree(&at, root);
    assert_says("slice create half --door guarded --name web --uuid " UUID, 0, UUID, "");
    assert_in_file(&at, CDI_PATH, "\"hostPath\" : \"/run/vgpu/guard/" UUID "/cuda.sock\"");
    assert_in_file(&at, CDI_PATH, "\"containerPath\" : \"/run/vgpu/cuda.sock\"");
    assert_in_file(&at, CDI_PATH, "\"containerPath\" : \"/run/vgpu/cuda/web.sock\"");
    assert_in_file(&at, CDI_PATH, "\"containerPath\" : \"/usr/lib/mdev-vgpu/guest/libcuda.so.1\"");
    assert_in_file(&at, CDI_PATH, "              \"put-cuda-remote\",\n");
    assert_in_file(&at, CDI_PATH, "\"containerPath\" : \"/run/vgpu/vtest/web.sock\"");
    assert_in_file(&at, CDI_PATH, "\"NVIDIA_VISIBLE_DEVICES=void\"");
    assert_not_in_file(&at, CDI_PATH, "/dev/");
    assert_in_file(&at, CDI_PATH,
                   "\"containerPath\" : \"/usr/lib/mdev-vgpu/guest/libnvidia-ml.so.1\"");
    assert_not_in_file(&at, CDI_PATH, REAL);
    /* For its guard's workers. */
    nvidia_kit_assert_link(root, "libcuda.so.1", LIBS "/libcuda.so." VERSION);
    agent_on_bus_close(&at);
}

/* A guard that was started by an older version, and a card without Vulkan. */
static void test_cdi_guarded_parts(void)
{
    AgentOnBus at;
    HostRoot *root = nvidia_kit_tree();
    g_autofree char *drm =
        root_path(root, "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS "/drm", NULL);
    g_autofree char *away = root_path(root, "/away", NULL);

    nvidia_kit_add_remote(root);
    agent_on_bus_open_tree(&at, root);
    file_tree_write(root, "/run/vgpu/guard/" UUID "/vtest.sock", "");
    assert_says("slice create half --door guarded --uuid " UUID, 0, UUID, "");
    assert_in_file(&at, CDI_PATH, "vtest.sock");
    assert_not_in_file(&at, CDI_PATH, "cuda");
    agent_on_bus_close(&at);

    root = nvidia_kit_tree();
    nvidia_kit_add_remote(root);
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
    HostRoot *root = nvidia_kit_tree();
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
    HostRoot *root = nvidia_kit_tree();

    for (guint i = 0; i < 3; i++) {
        g_autoptr(CudaDoor) door = cuda_door_find(root);
        g_autoptr(GError) error = NULL;

        g_assert_true(cuda_door_link(root, door, &error));
        g_assert_no_error(error);
        nvidia_kit_assert_link(root, "libcuda.so.1",
                               i < 2 ? LIBS "/libcuda.so." VERSION : LIBS "/libcuda.so.575.2");
        nvidia_kit_assert_link(root, "libcuda.so.1.new", NULL);
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
    HostRoot *root = nvidia_kit_tree();
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
    nvidia_kit_assert_link(root, "libcuda.so.1", LIBS "/libcuda.so." VERSION);
    nvidia_kit_assert_link(root, "libnvidia-ml.so.1",
                           LIBS "/nvidia/current/libnvidia-ml.so." VERSION);
    agent_on_bus_close(&at);
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda/mounts", test_mounts);
    g_test_add_func("/cuda/ungoverned", test_ungoverned);
    g_test_add_func("/cuda/graphics", test_graphics);
    g_test_add_func("/cuda/incomplete", test_incomplete);
    g_test_add_func("/cuda/cdi", test_cdi);
    g_test_add_func("/cuda/auto-door", test_auto_door);
    g_test_add_func("/cuda/node-links", test_node_links);
    g_test_add_func("/cuda/cdi-without-display", test_cdi_without_display);
    g_test_add_func("/cuda/links", test_links);
    g_test_add_func("/cuda/run", test_run);
    g_test_add_func("/cuda/cdi-guarded", test_cdi_guarded);
    g_test_add_func("/cuda/cdi-guarded-parts", test_cdi_guarded_parts);
    g_test_add_func("/cuda/hostile-elf", test_hostile_elf);
    return g_test_run();
}
