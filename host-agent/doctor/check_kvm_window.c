/* SPDX-License-Identifier: MIT */
/* KVM before Linux 6.13, and its effect on a vGPU's window (host-kernel.h). */
#include "host-agent/doctor/findings.h"
#include "lib/gpu.h"
#include "lib/hardware.h"

/* The KVM module that allows nested VMs; NULL: none does. */
static const char *nesting(const Examination *exam)
{
    static const char *const modules[] = {"kvm_amd", "kvm_intel"};

    for (guint i = 0; i < G_N_ELEMENTS(modules); i++) {
        g_autofree char *path = g_strdup_printf("/sys/module/%s/parameters/nested", modules[i]);
        g_autofree char *nested = host_read(exam, path);

        if (nested && (nested[0] == '1' || nested[0] == 'Y'))
            return modules[i];
    }
    return NULL;
}

static void check_blocks(Examination *exam, const char *release)
{
    g_autoptr(Inventory) inventory = inventory_new(exam->root);
    g_autoptr(GPtrArray) gpus = inventory_read(inventory);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (host_kernel_refuses(release, gpu->pci->driver))
            finding_add(
                exam, FINDING_PROBLEM, "host kernel",
                g_strdup_printf("Linux %s with GPU %s: its KVM refuses memory of the driver "
                                "%s, and a VM that maps it stops (kvm run failed)",
                                release, gpu->pci->address, gpu->pci->driver),
                g_strdup(HOST_KERNEL_NEWER));
    }
}

void check_kvm_window(Examination *exam)
{
    g_autofree char *release = host_kernel_release(exam->root);
    const char *module = nesting(exam);

    if (!exam->for_vms)
        return;
    if (!host_kernel_is_old(release)) {
        finding_ok(exam, "host kernel", "Linux %s", release ? release : "of an unknown version");
        return;
    }
    check_blocks(exam, release);
    if (module)
        finding_add(exam, FINDING_WARNING, "host kernel",
                    g_strdup_printf("Linux %s allows nested VMs (%s): a nested VM can keep GPU "
                                    "memory that was taken back",
                                    release, module),
                    g_strdup_printf("options %s nested=0 in /etc/modprobe.d, or " HOST_KERNEL_NEWER,
                                    module));
}
