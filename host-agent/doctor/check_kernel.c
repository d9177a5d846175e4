/* SPDX-License-Identifier: MIT */
/* Requirements of the kernel: our module, Landlock, controllers, udmabuf. */
#include <string.h>

#include "host-agent/doctor/findings.h"
#include "lib/host_root.h"

#define SECURE_BOOT      "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define SECURE_BOOT_SIZE 5 /* 4 bytes of attributes, and the value */

static gboolean secure_boot(const Examination *exam)
{
    gsize size = 0;
    g_autofree char *bytes = root_read_bytes(exam->root, SECURE_BOOT, &size, NULL);

    return size == SECURE_BOOT_SIZE && bytes[SECURE_BOOT_SIZE - 1] == 1;
}

static char *why_not_loaded(const Examination *exam)
{
    if (secure_boot(exam))
        return g_strdup("modprobe mdev_vgpu; Secure Boot is on, so its key must be enrolled first: "
                        "mokutil --import /var/lib/dkms/mok.pub, and confirm at the next boot");
    return g_strdup("modprobe mdev_vgpu; if there is no such module, dkms status shows the reason");
}

void check_module(Examination *exam)
{
    g_autofree char *version = host_read(exam, "/sys/module/mdev_vgpu/version");

    if (!exam->for_vms)
        finding_add(exam, FINDING_INFO, "driver",
                    g_strdup("mdev_vgpu is not installed: GPUs are shared with containers and "
                             "jobs, not with VMs"),
                    g_strdup("to share them with VMs, install the package mdev-vgpu"));
    else if (!host_has(exam, "/sys/module/mdev_vgpu"))
        finding_add(exam, FINDING_PROBLEM, "driver", g_strdup("mdev_vgpu is not loaded"),
                    why_not_loaded(exam));
    else if (g_strcmp0(version, VGPU_VERSION))
        finding_add(exam, FINDING_WARNING, "driver",
                    g_strdup_printf("mdev_vgpu %s is loaded, and the programs are of " VGPU_VERSION,
                                    version ? version : "of an unknown version"),
                    g_strdup("upgrade the module by draining, as the operator's guide says"));
    else
        finding_ok(exam, "driver", "mdev_vgpu %s", version);
}

static gboolean has_word(const char *text, const char *separators, const char *word)
{
    g_auto(GStrv) words = g_strsplit_set(text ? text : "", separators, -1);

    return g_strv_contains((const char *const *)words, word);
}

void check_lsm(Examination *exam)
{
    g_autofree char *lsm = host_read(exam, "/sys/kernel/security/lsm");

    if (has_word(lsm, ",", "landlock"))
        finding_ok(exam, "Landlock", "on");
    else
        finding_add(exam, FINDING_PROBLEM, "Landlock",
                    g_strdup("off, and no engine starts without it: it confines an engine to its "
                             "own GPU"),
                    g_strdup("put landlock first in lsm= on the kernel's command line"));
}

void check_cgroups(Examination *exam)
{
    static const char *const wanted[] = {"cpu", "memory", "pids"};
    g_autofree char *controllers = host_read(exam, "/sys/fs/cgroup/cgroup.controllers");

    for (guint i = 0; i < G_N_ELEMENTS(wanted); i++) {
        if (has_word(controllers, " ", wanted[i]))
            continue;
        finding_add(exam, FINDING_WARNING, "cgroups",
                    g_strdup_printf("the controller \"%s\" is missing, so engines' limits are not "
                                    "enforced",
                                    wanted[i]),
                    g_strdup("use the unified hierarchy (cgroup v2), and take cgroup_disable= off "
                             "the kernel's command line"));
        return;
    }
    finding_ok(exam, "cgroups", "cpu, memory and pids");
}

void check_udmabuf(Examination *exam)
{
    if (host_has(exam, "/sys/class/misc/udmabuf"))
        finding_ok(exam, "udmabuf", "loaded");
    else
        finding_add_for_vms(exam, FINDING_WARNING, "udmabuf",
                    g_strdup("not loaded, so guests cannot use blobs in their own memory"),
                    g_strdup("modprobe udmabuf"));
}
