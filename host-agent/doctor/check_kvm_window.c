/* SPDX-License-Identifier: MIT */
/*
 * What KVM before Linux 6.13 does to a vGPU's window. It takes a reference to each page that it
 * maps, and refuses (EFAULT) one that has none of its own, as tail pages of the blocks that GPU
 * drivers allocate; QEMU then stops. And what it maps for a nested guest it keeps when the
 * driver takes the page back. 6.13 does neither.
 */
#include <stdio.h>

#include "findings.h"
#include "inventory.h"

#define NEWER                                                                                      \
    "install Linux 6.13 or newer; Debian 13 has one in its backports: apt install -t "             \
    "trixie-backports linux-image-amd64 linux-headers-amd64"

/* The host's kernel is older than 6.13. One that can't be told is not. */
static gboolean is_old(const char *release)
{
    unsigned major, minor;

    return release && sscanf(release, "%u.%u", &major, &minor) == 2 &&
           (major < 6 || (major == 6 && minor < 13));
}

/* Drivers that allocate memory in blocks: by TTM, or as huge pages of shmem (i915). */
static gboolean allocates_blocks(const Gpu *gpu)
{
    static const char *const drivers[] = {"amdgpu", "i915", "nouveau", "radeon", "xe", NULL};

    return gpu->pci->driver && g_strv_contains(drivers, gpu->pci->driver);
}

/* The module of KVM that lets VMs have VMs of their own; NULL: none does. */
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

        if (allocates_blocks(gpu))
            finding_add(
                exam, FINDING_PROBLEM, "host kernel",
                g_strdup_printf("Linux %s with GPU %s: its KVM refuses memory of the driver "
                                "%s, and a VM that maps it stops (kvm run failed)",
                                release, gpu->pci->address, gpu->pci->driver),
                g_strdup(NEWER));
    }
}

void check_kvm_window(Examination *exam)
{
    g_autofree char *release = host_read(exam, "/proc/sys/kernel/osrelease");
    const char *module = nesting(exam);

    if (!is_old(release)) {
        finding_ok(exam, "host kernel", "Linux %s", release ? release : "of an unknown version");
        return;
    }
    check_blocks(exam, release);
    if (module)
        finding_add(exam, FINDING_WARNING, "host kernel",
                    g_strdup_printf("Linux %s lets VMs have VMs of their own (%s): such a VM can "
                                    "keep GPU memory that was taken back",
                                    release, module),
                    g_strdup_printf("options %s nested=0 in /etc/modprobe.d, or " NEWER, module));
}
