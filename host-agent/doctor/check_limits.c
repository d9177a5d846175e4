/* SPDX-License-Identifier: MIT */
/* Whether something below a slice's door holds its limit of GPU memory. */
#include <string.h>

#include "host-agent/doctor/findings.h"
#include "lib/gpu.h"
#include "lib/nvidia_driver.h"

#define SUBJECT  "memory limits"
#define FUNCTION "nvmlDeviceSetMemoryLimits_v1"

static void say_none(Examination *exam, const char *gpu, const char *why, const char *advice)
{
    finding_add(
        exam, FINDING_INFO, SUBJECT,
        g_strdup_printf("GPU %s: %s, so a program that goes round its slice's door can take "
                        "more GPU memory than the slice has",
                        gpu, why),
        g_strdup(advice));
}

static gboolean driver_has_limits(const Examination *exam, const NvidiaDriver *driver)
{
    const char *path = nvidia_driver_library(driver, NVIDIA_ML)->path;
    g_autoptr(ElfFile) file = elf_file_open(exam->root, path, NULL);
    g_autoptr(GHashTable) exports = file ? elf_file_exports(file) : NULL;

    return exports && g_hash_table_contains(exports, FUNCTION);
}

static void check_nvidia(Examination *exam, const char *gpu)
{
    g_autoptr(NvidiaDriver) driver = nvidia_driver_find(exam->root);

    if (driver && driver_has_limits(exam, driver))
        finding_ok(exam, SUBJECT, "GPU %s: driver %s holds containers and programs to their slice",
                   gpu, driver->version);
    else
        say_none(exam, gpu, "its driver cannot limit the memory of a cgroup",
                 "install NVIDIA's driver 615 or later, with its libraries");
}

static gboolean kernel_has_limits(const Examination *exam, const char *gpu)
{
    g_autofree char *capacity = host_read(exam, "/sys/fs/cgroup/dmem.capacity");
    g_autofree char *region = g_strdup_printf("drm/%s/vram", gpu);

    return capacity && strstr(capacity, region);
}

static void check_gpu(Examination *exam, const Gpu *gpu)
{
    const char *address = gpu->pci->address, *driver = gpu->pci->driver;

    if (!driver || g_str_equal(driver, "vfio-pci"))
        return;
    if (g_str_equal(driver, "nvidia"))
        check_nvidia(exam, address);
    else if (kernel_has_limits(exam, address))
        finding_ok(exam, SUBJECT, "GPU %s: the kernel holds containers and programs to their slice",
                   address);
    else
        say_none(exam, address, "kernel and driver cannot limit the memory of a cgroup (dmem)",
                 "amdgpu and xe can with Linux 6.14 or later; give containers that you do not "
                 "trust the guarded door");
}

void check_limits(Examination *exam)
{
    g_autoptr(Inventory) inventory = inventory_new(exam->root);
    g_autoptr(GPtrArray) gpus = inventory_read(inventory);

    for (guint i = 0; i < gpus->len; i++)
        check_gpu(exam, g_ptr_array_index(gpus, i));
}
