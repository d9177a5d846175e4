/* SPDX-License-Identifier: MIT */
/* CUDA of VMs: what it needs on the host, apart from the CUDA door. */
#include "lib/conf.h"
#include "lib/gpu.h"
#include "lib/mdev.h"
#include "lib/nvidia_driver.h"
#include "lib/nvidia_readings.h"
#include "lib/types.h"
#include "lib/vgpu.h"
#include "host-agent/doctor/findings.h"

#define SUBJECT "CUDA in VMs"
#define LINK    "/run/vgpu/nvidia/" NVIDIA_CUDA
/* Some dozens of threads that compute, and buffers to copy from. */
#define LEAST_WINDOW (1024 * MIB)

static gboolean is_installed(const Examination *exam, const char *file)
{
    g_autofree char *usual = g_strconcat("/usr/lib/mdev-vgpu/", file, NULL);
    g_autofree char *local = g_strconcat("/usr/local/lib/mdev-vgpu/", file, NULL);

    return host_has(exam, usual) || host_has(exam, local);
}

static void check_worker(Examination *exam)
{
    if (!is_installed(exam, "vgpu-cuda-worker"))
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup("vgpu-cuda-worker is not installed, so vGPUs have no CUDA"),
                    g_strdup("install the package vgpu-governor, or put cuda=no into the types"));
}

static void check_driver(Examination *exam)
{
    g_autoptr(NvidiaDriver) driver = nvidia_driver_find(exam->root);

    if (!driver)
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup("libcuda and NVML of the loaded module's version are not installed, "
                             "so vGPUs have no CUDA"),
                    g_strdup("install the driver's libraries, or put cuda=no into the types"));
}

/* A link of a folder of the host, which may lead to a file that is gone. */
static gboolean is_link_good(const Examination *exam)
{
    g_autofree char *target = root_link(exam->root, LINK);

    return target && host_has(exam, target);
}

static void check_link(Examination *exam)
{
    g_auto(GStrv) uuids = mdev_list(exam->root);

    for (guint i = 0; uuids[i]; i++) {
        g_autoptr(Vgpu) vgpu = vgpu_read(exam->root, uuids[i]);

        if (!vgpu || !vgpu->cuda || is_link_good(exam))
            continue;
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup_printf(LINK " leads to no driver, so programs of vGPU %s cannot "
                                         "compute",
                                    uuids[i]),
                    g_strdup("systemctl restart vgpud, which makes the link"));
        return;
    }
}

static void check_guest_library(Examination *exam)
{
    if (!is_installed(exam, "guest/" NVIDIA_CUDA))
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup("the libcuda.so.1 of guests and containers is not installed, so "
                             "containers with the door guarded have no CUDA"),
                    g_strdup("install the package vgpu-governor again; VMs need vgpu-guest-cuda of "
                             "the same version inside"));
}

static void check_window(Examination *exam, const GpuType *type)
{
    guint64 bytes = type_window(type, NVIDIA_DRIVER);
    g_autofree char *window = size_format(bytes);

    if (bytes < LEAST_WINDOW)
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup_printf("type %s has a window of %s, which all memory that programs "
                                    "share with the GPU must fit into",
                                    type->name, window),
                    g_strdup_printf("put window=4G into %s, or leave window= out", type->file));
}

static gboolean has_nvidia_gpu(const Examination *exam)
{
    g_autoptr(Inventory) inventory = inventory_new(exam->root);
    g_autoptr(GPtrArray) gpus = inventory_read(inventory);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (gpu->mode == GPU_MODE_SHARED && g_strcmp0(gpu->pci->driver, NVIDIA_DRIVER) == 0)
            return TRUE;
    }
    return FALSE;
}

/* FALSE: none has CUDA. */
static gboolean check_windows(Examination *exam)
{
    g_autoptr(GPtrArray) types = types_load(exam->root, NULL);
    gboolean has_cuda = FALSE;

    for (guint i = 0; types && i < types->len; i++) {
        const GpuType *type = g_ptr_array_index(types, i);

        if (!type_has_cuda(type, NVIDIA_DRIVER))
            continue;
        has_cuda = TRUE;
        check_window(exam, type);
    }
    return has_cuda;
}

void check_cuda_vms(Examination *exam)
{
    guint before = exam->findings->len;

    if (!exam->for_vms || !has_nvidia_gpu(exam) || !check_windows(exam))
        return;
    check_worker(exam);
    check_driver(exam);
    check_link(exam);
    check_guest_library(exam);
    if (exam->findings->len == before)
        finding_ok(exam, SUBJECT, "types offer it; guests need the package vgpu-guest-cuda");
}
