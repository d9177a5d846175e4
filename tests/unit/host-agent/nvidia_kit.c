/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/nvidia_kit.h"

#include "host-agent/daemon/containers/transport.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/elf_kit.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

#define GPU_DIR "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS

void nvidia_kit_add_driver(HostRoot *root)
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

void nvidia_kit_add_remote(HostRoot *root)
{
    elf_kit_write(root, "/usr/lib/mdev-vgpu/guest/libcuda.so.1", "libcuda.so.1", KNOWN);
    file_tree_write(root, "/usr/lib/mdev-vgpu/vgpu-cuda-worker", "");
}

HostRoot *nvidia_kit_tree(void)
{
    HostRoot *root = shared_tree();

    nvidia_kit_add_driver(root);
    return root;
}

HostRoot *nvidia_kit_vgpu_tree(void)
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
    nvidia_kit_add_driver(root);
    return root;
}

void nvidia_kit_assert_link(HostRoot *root, const char *name, const char *expected)
{
    g_autofree char *path = root_path(root, CUDA_REAL_LINKS "/", name, NULL);
    g_autofree char *target = g_file_read_link(path, NULL);

    g_assert_cmpstr(target, ==, expected);
}
