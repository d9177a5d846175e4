/* SPDX-License-Identifier: MIT */
/* Checks of the host: its hardware, kernel and programs, and VMs that have vGPUs. */
#include <stdlib.h>
#include <string.h>

#include "lib/gpu.h"
#include "lib/pci.h"
#include "lib/host_root.h"
#include "lib/program.h"
#include "lib/types.h"
#include "lib/conf.h"
#include "host-agent/doctor/findings.h"
#include "host-agent/doctor/root_ports.h"

/* Requirements of the machine: KVM, an IOMMU with sane groups. */

void check_kvm(Examination *exam)
{
    /* Not /dev/kvm: containers have device nodes without a driver. */
    if (host_has(exam, "/sys/class/misc/kvm"))
        finding_ok(exam, "KVM", "on");
    else
        finding_add_for_vms(
            exam, FINDING_WARNING, "KVM", g_strdup("off, so VMs are emulated, and slow"),
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
        finding_add_for_vms(
            exam, FINDING_WARNING, "IOMMU group",
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

/* KVM before Linux 6.13, and its effect on a vGPU's window (host-kernel.h). */

/* The KVM module that allows nested VMs; NULL: none does. */
static const char *nesting_module(const Examination *exam)
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
    const char *module = nesting_module(exam);

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

/* Requirements of the kernel: our module, Landlock, controllers, udmabuf. */

#define SECURE_BOOT      "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define SECURE_BOOT_SIZE 5 /* 4 bytes of attributes, and the value */

static gboolean secure_boot(const Examination *exam)
{
    gsize size = 0;
    g_autofree char *bytes = root_read_bytes(exam->root, SECURE_BOOT, &size, NULL);

    return size == SECURE_BOOT_SIZE && bytes[SECURE_BOOT_SIZE - 1] == 1;
}

/* Why the kernel loads signed modules only, without Secure Boot; NULL: it loads any. */
static const char *signing_rule(const Examination *exam)
{
    g_autofree char *enforced = host_read(exam, "/sys/module/module/parameters/sig_enforce");
    g_autofree char *lockdown = host_read(exam, "/sys/kernel/security/lockdown");

    if (enforced && *enforced == 'Y')
        return "module.sig_enforce=1";
    /* As "none [integrity] confidentiality". */
    if (lockdown && strchr(lockdown, '[') && !strstr(lockdown, "[none]"))
        return "lockdown=";
    return NULL;
}

static char *why_not_loaded(const Examination *exam)
{
    const char *rule = signing_rule(exam);

    if (rule && !secure_boot(exam))
        return g_strdup_printf("modprobe mdev_vgpu; the kernel loads only modules that are signed "
                               "with a key that it knows (%s), and DKMS's is none: sign the module "
                               "with such a key, or boot without %s",
                               rule, rule);
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

/* Required programs: a Vulkan driver, and VM tools that support mediated devices. */

#define DESCRIPTIONS "/run/vgpu/vulkan"

/**
 * struct program
 * @least: the version that was seen working with ours
 */
static const struct program {
    const char *name;
    const char *what;
    guint least[2];
} programs[] = {
    {"mdevctl", "mdevctl", {1, 4}},
    {"qemu-system-x86_64", "QEMU", {10, 0}},
    {"virsh", "libvirt", {11, 3}},
};

/* The result of the engine's look at the GPU, which vgpud starts (vgpu-describe@.service). */
static void check_export(Examination *exam)
{
    g_auto(GStrv) gpus = host_list(exam, DESCRIPTIONS);

    for (guint i = 0; gpus[i]; i++) {
        g_autofree char *path = g_build_filename(DESCRIPTIONS, gpus[i], NULL);
        g_autoptr(GKeyFile) keyfile = root_read_keys(exam->root, path, G_KEY_FILE_NONE, NULL);
        g_autofree char *device = NULL;

        if (!keyfile)
            continue;
        device = g_key_file_get_string(keyfile, "vulkan", "device", NULL);
        /* Of a GPU without Vulkan there is only the reason. */
        if (device && !g_key_file_get_boolean(keyfile, "vulkan", "exports-memory", NULL))
            finding_add(exam, FINDING_WARNING, "Vulkan",
                        g_strdup_printf("GPU %s (%s): its driver can't export memory as dma-bufs",
                                        gpus[i], device),
                        g_strdup("use a driver with VK_EXT_external_memory_dma_buf; without it "
                                 "guests' memory uses a slower path"));
    }
}

void check_vulkan(Examination *exam)
{
    static const char *const dirs[] = {"/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"};

    for (guint i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_auto(GStrv) drivers = host_list(exam, dirs[i]);
        g_autofree char *names = g_strjoinv(", ", drivers);

        if (!drivers[0])
            continue;
        finding_ok(exam, "Vulkan", "%s", names);
        check_export(exam);
        return;
    }
    finding_add(exam, FINDING_PROBLEM, "Vulkan", g_strdup("no Vulkan driver is installed"),
                g_strdup("install the GPU's own, or mesa-vulkan-drivers"));
}

/* The first number with a dot in a program's version output. */
static gboolean parse_version(const char *text, guint version[2])
{
    for (const char *at = text; *at; at++) {
        char *end;

        if (!g_ascii_isdigit(*at) || (at > text && (g_ascii_isalnum(at[-1]) || at[-1] == '_')))
            continue;
        version[0] = (guint)strtoul(at, &end, 10);
        if (*end != '.' || !g_ascii_isdigit(end[1]))
            continue;
        version[1] = (guint)strtoul(end + 1, NULL, 10);
        return TRUE;
    }
    return FALSE;
}

static gboolean version_of(const char *path, guint version[2])
{
    const char *argv[] = {path, "--version", NULL};
    const Program program = {.argv = argv, .seconds = CHECK_SECONDS};
    g_autofree char *out = NULL;

    return program_run(&program, &out, NULL) && parse_version(out, version);
}

static void check_program(Examination *exam, const struct program *program)
{
    g_autofree char *path = g_find_program_in_path(program->name);
    guint version[2];

    if (!path)
        finding_add_for_vms(exam, FINDING_WARNING, program->what,
                            g_strdup_printf("%s is not installed, or not in PATH", program->name),
                            g_strdup("install it if this host runs VMs with it"));
    else if (!version_of(path, version))
        finding_add_for_vms(exam, FINDING_WARNING, program->what,
                            g_strdup_printf("%s does not say its version", path),
                            g_strdup_printf("see whether \"%s --version\" works", program->name));
    else if (version[0] < program->least[0] ||
             (version[0] == program->least[0] && version[1] < program->least[1]))
        finding_add_for_vms(exam, FINDING_WARNING, program->what,
                            g_strdup_printf("version %u.%u; %u.%u is the oldest tested version",
                                            version[0], version[1], program->least[0],
                                            program->least[1]),
                            g_strdup("upgrade it, if something does not work"));
    else
        finding_ok(exam, program->what, "version %u.%u", version[0], version[1]);
}

void check_programs(Examination *exam)
{
    for (guint i = 0; i < G_N_ELEMENTS(programs); i++)
        check_program(exam, &programs[i]);
}

/* Room for a vGPU's window behind the root ports of running VMs. */

/* Of the smallest window among @types on GPUs at @driver; 0: no types. */
static guint64 least_of_driver(const GPtrArray *types, const char *driver)
{
    guint64 least = 0;

    for (guint i = 0; i < types->len; i++) {
        guint64 window = type_window(g_ptr_array_index(types, i), driver);

        least = least ? MIN(least, window) : window;
    }
    return least;
}

/* The same on any GPU of the host. */
static guint64 least_window(HostRoot *root)
{
    g_autoptr(GPtrArray) types = types_load(root, NULL);
    g_autoptr(Inventory) inventory = inventory_new(root);
    g_autoptr(GPtrArray) gpus = inventory_read(inventory);
    guint64 least = 0;

    for (guint i = 0; types && i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        guint64 window = least_of_driver(types, gpu->pci->driver);

        least = least ? MIN(least, window) : window;
    }
    return least;
}

static void judge_window(Examination *exam, const char *vm, const RootPorts *ports, guint64 least)
{
    g_autofree char *window = size_format(ports->window);
    g_autofree char *needed = size_format(least);

    if (!ports->count)
        finding_add(exam, FINDING_WARNING, "VM",
                    g_strdup_printf("%s has no free root port, so no vGPU can be attached while "
                                    "it runs",
                                    vm),
                    g_strdup("add <controller type='pci' model='pcie-root-port'/> to it, and "
                             "restart it"));
    else if (ports->window < least)
        finding_add(exam, FINDING_WARNING, "VM",
                    g_strdup_printf("%s has room for windows of %s behind its free root ports, "
                                    "and a vGPU needs %s at least",
                                    vm, window, needed),
                    g_strdup("see " ROOT_PORTS_ADVICE ": memory above "
                             "4 GiB and 46 address bits, or OVMF; the VM has to be restarted. "
                             "\"vgpuctl attach\" gives it a vGPU with a smaller window"));
    else
        finding_ok(exam, "VM", "%s: %u free root ports, windows of up to %s", vm, ports->count,
                   window);
}

/* A program's output; NULL if it fails. To be freed. */
static char *output_of(const char *const *argv)
{
    const Program program = {.argv = argv, .seconds = CHECK_SECONDS};
    char *out = NULL;

    return program_run(&program, &out, NULL) ? out : NULL;
}

void check_vms(Examination *exam)
{
    const char *const list[] = {"virsh", "-q", "list", "--name", NULL};
    g_autofree char *names = output_of(list);
    g_auto(GStrv) vms = g_strsplit(names ? names : "", "\n", -1);
    guint64 least = least_window(exam->root);

    for (guint i = 0; least && vms[i]; i++) {
        RootPorts ports;

        if (*vms[i] && root_ports_read(NULL, vms[i], &ports))
            judge_window(exam, vms[i], &ports, least);
    }
}
