/* SPDX-License-Identifier: MIT */
/* Requirements of the machine: KVM, an IOMMU with sane groups. */
#include "host-agent/doctor/findings.h"
#include "lib/gpu.h"

void check_kvm(Examination *exam)
{
    /* Not /dev/kvm: containers have device nodes without a driver. */
    if (host_has(exam, "/sys/class/misc/kvm"))
        finding_ok(exam, "KVM", "on");
    else
        finding_add_for_vms(exam, FINDING_WARNING, "KVM", g_strdup("off, so VMs are emulated, and slow"),
                    g_strdup("switch virtualization (VT-x, AMD-V) on in the firmware, and load "
                             "kvm_intel or kvm_amd"));
}

void check_iommu(Examination *exam)
{
    g_auto(GStrv) units = host_list(exam, "/sys/class/iommu");

    if (units[0])
        finding_ok(exam, "IOMMU", "on");
    else
        finding_add_for_vms(exam, FINDING_WARNING, "IOMMU",
                    g_strdup("off, so no GPU can be assigned to a VM as a whole"),
                    g_strdup("switch VT-d or AMD-Vi on in the firmware; with Intel add "
                             "intel_iommu=on to the kernel's command line"));
}

static void check_group(Examination *exam, const Gpu *gpu)
{
    g_autofree char *in_use = g_strjoinv(", ", gpu->group_in_use);

    if (!gpu->pci->iommu_group)
        return;
    if (!gpu->group_in_use[0])
        finding_ok(exam, "IOMMU group", "GPU %s can be assigned to a VM without other devices",
                   gpu->pci->address);
    else
        finding_add_for_vms(exam, FINDING_WARNING, "IOMMU group",
                    g_strdup_printf("GPU %s shares group %s with %s, which the host uses",
                                    gpu->pci->address, gpu->pci->iommu_group, in_use),
                    g_strdup("to assign the whole GPU to a VM, these must be bound to vfio-pci "
                             "with it; another slot may have a separate group"));
}

void check_groups(Examination *exam)
{
    g_autoptr(Inventory) inventory = inventory_new(exam->root);
    g_autoptr(GPtrArray) gpus = inventory_read(inventory);

    if (!gpus->len)
        finding_add(exam, FINDING_WARNING, "GPU", g_strdup("this host has no GPU"),
                    g_strdup("lspci -D lists its devices; the CPU can replace a GPU (gpus.conf, "
                             "soft:NAME)"));
    for (guint i = 0; i < gpus->len; i++)
        check_group(exam, g_ptr_array_index(gpus, i));
}
