/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/binding.h"

#include <string.h>
#include <net/if.h>

#include "lib/bus.h"
#include "lib/pci.h"
#include "lib/processes.h"
#include "lib/host_root.h"
#include "host-agent/daemon/modes/kernel_call.h"

#define VFIO_PCI "vfio-pci"
#define BUS      "/sys/bus/pci"

static gboolean write_bus(HostRoot *root, const char *name, const char *text, GError **error)
{
    g_autofree char *path = g_build_filename(BUS, name, NULL);

    return kernel_write(root, path, text, error);
}

/* The driver that drivers_probe will find. @driver: "": the kernel's choice. */
static gboolean set_override(HostRoot *root, const PciDevice *device, const char *driver,
                             GError **error)
{
    g_autofree char *path = g_build_filename(device->dir, "driver_override", NULL);
    g_autofree char *line = g_strconcat(driver, "\n", NULL);

    return kernel_write(root, path, line, error);
}

static gboolean unbind_driver(HostRoot *root, const PciDevice *device, GError **error)
{
    g_autofree char *path = g_strdup_printf("drivers/%s/unbind", device->driver);

    return write_bus(root, path, device->address, error);
}

static gboolean must_have_driver(HostRoot *root, const char *address, gboolean vfio, GError **error)
{
    g_autoptr(PciDevice) device = pci_device_read(root, address);
    gboolean is_vfio = device && g_strcmp0(device->driver, VFIO_PCI) == 0;

    if (device && device->driver && is_vfio == vfio)
        return TRUE;
    if (!device)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "%s: the device has just gone",
                    address);
    else if (vfio)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "%s: vfio-pci did not bind to it; the kernel log may say why (dmesg)", address);
    else if (is_vfio)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "%s: vfio-pci bound to it again at once; are there vfio-pci.ids= on the "
                    "kernel's command line or in /etc/modprobe.d?",
                    address);
    else
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "%s: no driver bound to it; load the vendor's driver", address);
    return FALSE;
}

static PciDevice *read_device(HostRoot *root, const char *address, GError **error)
{
    PciDevice *device = pci_device_read(root, address);

    if (!device)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND, "%s: there is no such PCI device",
                    address);
    return device;
}

gboolean binding_to_vfio(HostRoot *root, const char *address, GError **error)
{
    g_autoptr(PciDevice) device = read_device(root, address, error);

    if (!device || !set_override(root, device, VFIO_PCI, error))
        return FALSE;
    if (g_strcmp0(device->driver, VFIO_PCI) == 0)
        return TRUE;
    if (device->driver && !unbind_driver(root, device, error))
        return FALSE;
    return write_bus(root, "drivers_probe", address, error) &&
           must_have_driver(root, address, TRUE, error);
}

gboolean binding_give_back(HostRoot *root, const char *address, GError **error)
{
    g_autoptr(PciDevice) device = read_device(root, address, error);

    if (!device || !set_override(root, device, "", error))
        return FALSE;
    if (device->driver && !g_str_equal(device->driver, VFIO_PCI))
        return TRUE;
    if (device->driver && !unbind_driver(root, device, error))
        return FALSE;
    return write_bus(root, "drivers_probe", address, error) &&
           must_have_driver(root, address, FALSE, error);
}

gboolean binding_load_vfio(HostRoot *root, GError **error)
{
    static const char *const start[] = {"systemctl", "start", "modprobe@vfio_pci.service", NULL};

    if (root_is(root, BUS "/drivers/" VFIO_PCI, G_FILE_TEST_IS_DIR))
        return TRUE;
    if (!kernel_run(start, NULL, error))
        return FALSE;
    if (root_is(root, BUS "/drivers/" VFIO_PCI, G_FILE_TEST_IS_DIR))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                "the kernel has no vfio-pci; is the module installed (modprobe vfio-pci)?");
    return FALSE;
}

#define PCI_CLASS_STORAGE 0x01
#define PCI_CLASS_NETWORK 0x02

/* "0000:01:00.1" and "0000:01:00.0" are functions of one card. */
static gboolean same_slot(const char *a, const char *b)
{
    const char *function = strrchr(a, '.');

    return function && strncmp(a, b, (gsize)(function - a + 1)) == 0;
}

char *companion_network(HostRoot *root, const PciDevice *device)
{
    g_autofree char *net = g_build_filename(device->dir, "net", NULL);
    g_auto(GStrv) names = sysfs_list(root, net);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *dir = g_build_filename(net, names[i], NULL);

        if (sysfs_number(root, dir, "flags", IFF_UP) & IFF_UP)
            return g_strdup_printf("network interface %s of %s is up", names[i], device->address);
    }
    return NULL;
}

/*
 * All of a file below /proc, which may be longer than an attribute of sysfs; "" if it cannot be
 * read.
 */
static char *proc_text(HostRoot *root, const char *file)
{
    char *text = root_read(root, file, NULL);

    return text ? text : g_strdup("");
}

/* A line of proc_pid_mountinfo(5): "36 35 259:1 / /home rw shared:1 - ext4 /dev/nvme0n1p1 rw". */
static gboolean mounts_node(const char *line, const char *node, const char *number)
{
    g_auto(GStrv) words = g_strsplit(line, " ", 4);
    const char *type = strstr(line, " - ");
    const char *source = type ? strchr(type + strlen(" - "), ' ') : NULL;

    return (number && g_strv_length(words) == 4 && g_str_equal(words[2], number)) ||
           (source && g_str_has_prefix(source + 1, node));
}

/* From the host's mounts: vgpud's own namespace has none below /home. */
static gboolean is_mounted(HostRoot *root, const char *node, const char *number)
{
    g_autofree char *text = proc_text(root, "/proc/1/mountinfo");
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (guint i = 0; lines[i]; i++)
        if (mounts_node(lines[i], node, number))
            return TRUE;
    return FALSE;
}

static gboolean is_swap(HostRoot *root, const char *node)
{
    g_autofree char *text = proc_text(root, "/proc/swaps");

    return strstr(text, node) != NULL;
}

static gboolean is_held(HostRoot *root, const char *dir)
{
    g_autofree char *holders = g_build_filename(dir, "holders", NULL);
    g_auto(GStrv) names = sysfs_list(root, holders);

    return names[0] != NULL;
}

/* A disk or a partition that is mounted, swapped to, or a part of something else (LVM, RAID). */
static char *busy_disk(HostRoot *root, const PciDevice *device)
{
    g_auto(GStrv) nodes = nodes_of_device(root, device);

    for (guint i = 0; nodes[i]; i++) {
        g_autofree char *dir = g_build_filename("/sys/class/block", nodes[i], NULL);
        g_autofree char *number = sysfs_read(root, dir, "dev");
        g_autofree char *node = g_strdup_printf("/dev/%s ", nodes[i]);

        if (is_mounted(root, node, number) || is_swap(root, node) || is_held(root, dir))
            return g_strdup_printf("disk %s of %s is in use", nodes[i], device->address);
    }
    return NULL;
}

static char *open_node(HostRoot *root, const PciDevice *device)
{
    g_auto(GStrv) nodes = nodes_of_device(root, device);
    g_autoptr(GPtrArray) holders = holders_find(root, (const char *const *)nodes);
    const Holder *first = holders->len ? g_ptr_array_index(holders, 0) : NULL;

    return first ? g_strdup_printf("%s has /dev/%s of %s open", first->who, first->node,
                                   device->address)
                 : NULL;
}

static char *may_be_in_use(const PciDevice *device)
{
    return g_strdup_printf("%s (%s) is in the same IOMMU group, and may be in use; unbind its "
                           "driver yourself if it is not",
                           device->address, device->driver);
}

static char *use_of(HostRoot *root, const Gpu *gpu, const PciDevice *device)
{
    char *use = open_node(root, device);

    if (use)
        return use;
    switch (device->class >> 16) {
    case PCI_CLASS_NETWORK:
        return companion_network(root, device);
    case PCI_CLASS_STORAGE:
        /*
         * ZFS, and the second device of a btrfs, cannot be detected: a person must confirm that a
         * disk is unused.
         */
        use = busy_disk(root, device);
        return use ? use : may_be_in_use(device);
    default:
        return same_slot(device->address, gpu->pci->address) ? NULL : may_be_in_use(device);
    }
}

void companions_add_users(GStrvBuilder *users, HostRoot *root, const Gpu *gpu)
{
    for (guint i = 0; gpu->group_in_use[i]; i++) {
        g_autoptr(PciDevice) device = pci_device_read(root, gpu->group_in_use[i]);
        char *use = device ? use_of(root, gpu, device) : NULL;

        if (use)
            g_strv_builder_take(users, use);
    }
}

GStrv companions_moved(HostRoot *root, const Gpu *gpu)
{
    g_autoptr(GStrvBuilder) moved = g_strv_builder_new();

    for (guint i = 0; gpu->group[i]; i++) {
        g_autoptr(PciDevice) device = pci_device_read(root, gpu->group[i]);
        g_autofree char *override =
            device ? sysfs_read(root, device->dir, "driver_override") : NULL;

        if (g_strcmp0(override, "vfio-pci") == 0)
            g_strv_builder_add(moved, device->address);
    }
    return g_strv_builder_end(moved);
}

/* GPUs with hardware partitions: one interface over SR-IOV and the vendors' own methods. */

/*
 * NVIDIA's MIG, through nvidia-smi. Written from its documentation and NOT TRIED: none of our
 * machines has such a GPU. It is used only if nvidia-smi exists and reports that the GPU supports
 * it.
 */

#define PCI_VENDOR_NVIDIA 0x10de
/*
 * The smallest GPU instance profile, of which a GPU holds the most; 19 is 1g on A100, A30 and H100.
 */
#define SMALLEST_PROFILE "19"
#define MOST_INSTANCES   7

/*
 * vgpud's own sandbox has none of NVIDIA's nodes, and not the capability that partitioning a GPU
 * requires. systemd runs the program outside of it, with those nodes and that capability only.
 */
static const char *const outside[] = {
    "systemd-run",
    "--quiet",
    "--collect",
    "--wait",
    "--pipe",
    "--property=DevicePolicy=closed",
    "--property=DeviceAllow=char-nvidia* rw",
    "--property=CapabilityBoundingSet=CAP_SYS_ADMIN CAP_DAC_OVERRIDE CAP_MKNOD",
    "--property=ProtectSystem=strict",
    "--property=ProtectHome=yes",
    "--property=PrivateNetwork=yes",
    "--",
    NVIDIA_SMI,
};

/* @words: of its command line, up to NULL. */
static gboolean run_smi(const char *const *words, char **output, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();

    for (gsize i = 0; i < G_N_ELEMENTS(outside); i++)
        g_ptr_array_add(argv, (char *)outside[i]);
    for (gsize i = 0; words[i]; i++)
        g_ptr_array_add(argv, (char *)words[i]);
    g_ptr_array_add(argv, NULL);
    return kernel_run((const char *const *)argv->pdata, output, error);
}

/* Its answer to one query about one GPU; NULL: none. */
static char *ask_smi(const Gpu *gpu, const char *query)
{
    g_autofree char *id = g_strconcat("--id=", gpu->pci->address, NULL);
    g_autofree char *what = g_strconcat("--query-gpu=", query, NULL);
    const char *const words[] = {id, what, "--format=csv,noheader", NULL};
    char *output = NULL;

    return run_smi(words, &output, NULL) ? g_strstrip(output) : NULL;
}

gboolean nvidia_is_persistent(const Gpu *gpu)
{
    g_autofree char *mode = ask_smi(gpu, "persistence_mode");

    return g_strcmp0(mode, "Enabled") == 0;
}

static gboolean mig_can(HostRoot *root, const Gpu *gpu)
{
    g_autofree char *program = NULL;
    g_autofree char *mode = NULL;

    (void)root;
    if (gpu->pci->vendor != PCI_VENDOR_NVIDIA || g_strcmp0(gpu->pci->driver, "nvidia") != 0)
        return FALSE;
    program = g_find_program_in_path(NVIDIA_SMI);
    mode = program ? ask_smi(gpu, "mig.mode.current") : NULL;
    return mode && (g_str_equal(mode, "Enabled") || g_str_equal(mode, "Disabled"));
}

static GStrv mig_list(HostRoot *root, const Gpu *gpu)
{
    return nvidia_instances(root, gpu->pci->address);
}

static guint mig_most(const Gpu *gpu)
{
    (void)gpu;
    return MOST_INSTANCES;
}

static gboolean run_mig(const Gpu *gpu, const char *option, const char *value, GError **error)
{
    const char *const words[] = {"mig", "-i", gpu->pci->address, option, value, NULL};

    return run_smi(words, NULL, error);
}

static gboolean set_mode(const Gpu *gpu, const char *mode, GError **error)
{
    const char *const words[] = {"-i", gpu->pci->address, "-mig", mode, NULL};

    return run_smi(words, NULL, error);
}

static gboolean mig_take_away(HostRoot *root, const Gpu *gpu, GError **error)
{
    g_auto(GStrv) names = mig_list(root, gpu);

    if (names[0] && (!run_mig(gpu, "-dci", NULL, error) || !run_mig(gpu, "-dgi", NULL, error)))
        return FALSE;
    return set_mode(gpu, "0", error);
}

static gboolean mig_make(HostRoot *root, const Gpu *gpu, guint count, GError **error)
{
    g_auto(GStrv) names = mig_list(root, gpu);
    guint wanted = count ? count : MOST_INSTANCES;
    g_autoptr(GString) profiles = g_string_new(NULL);

    if (g_strv_length(names) == wanted)
        return TRUE;
    if (names[0] && !mig_take_away(root, gpu, error))
        return FALSE;
    for (guint i = 0; i < wanted; i++)
        g_string_append(profiles, i ? "," SMALLEST_PROFILE : SMALLEST_PROFILE);
    if (!set_mode(gpu, "1", error))
        return FALSE;
    /* -C makes the compute instances, too. */
    const char *const words[] = {"mig", "-i", gpu->pci->address, "-cgi", profiles->str, "-C", NULL};

    return run_smi(words, NULL, error);
}

const Partitioner partitioner_mig = {
    .name = "MIG",
    .can = mig_can,
    .list = mig_list,
    .most = mig_most,
    .make = mig_make,
    .remove = mig_take_away,
};

/* SR-IOV: virtual functions (Documentation/PCI/pci-iov-howto.rst). */

static gboolean sriov_can(HostRoot *root, const Gpu *gpu)
{
    (void)root;
    return gpu->pci->total_vfs > 0;
}

/* The links are virtfn0, virtfn1 …; a function's number is not in its address. */
static GStrv sriov_list(HostRoot *root, const Gpu *gpu)
{
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();

    for (guint i = 0; i < gpu->pci->total_vfs; i++) {
        g_autofree char *link = g_strdup_printf("virtfn%u", i);
        char *name = sysfs_link_name(root, gpu->pci->dir, link);

        if (name)
            g_strv_builder_take(names, name);
    }
    return g_strv_builder_end(names);
}

static guint sriov_most(const Gpu *gpu)
{
    return gpu->pci->total_vfs;
}

static gboolean write_number(HostRoot *root, const Gpu *gpu, const char *attribute, guint number,
                             GError **error)
{
    g_autofree char *path = g_build_filename(gpu->pci->dir, attribute, NULL);
    g_autofree char *text = g_strdup_printf("%u", number);

    return kernel_write(root, path, text, error);
}

/* The kernel's default: functions that others make get the host's drivers. */
static gboolean probe_again(HostRoot *root, const Gpu *gpu, GError **error)
{
    return write_number(root, gpu, "sriov_drivers_autoprobe", 1, error);
}

/*
 * The number can only be changed through 0. The host's drivers do not get the functions: they are
 * for VMs, which get them from vfio-pci (libvirt does that by itself).
 */
static gboolean sriov_make(HostRoot *root, const Gpu *gpu, guint count, GError **error)
{
    guint wanted = count ? count : gpu->pci->total_vfs;

    if (gpu->pci->vfs == wanted)
        return TRUE;
    if (gpu->pci->vfs && !write_number(root, gpu, "sriov_numvfs", 0, error))
        return FALSE;
    if (!write_number(root, gpu, "sriov_drivers_autoprobe", 0, error))
        return FALSE;
    if (write_number(root, gpu, "sriov_numvfs", wanted, error))
        return TRUE;
    probe_again(root, gpu, NULL);
    return FALSE;
}

static gboolean sriov_take_away(HostRoot *root, const Gpu *gpu, GError **error)
{
    return !gpu->pci->vfs ||
           (write_number(root, gpu, "sriov_numvfs", 0, error) && probe_again(root, gpu, error));
}

static const Partitioner partitioner_sriov = {
    .name = "SR-IOV",
    .can = sriov_can,
    .list = sriov_list,
    .most = sriov_most,
    .make = sriov_make,
    .remove = sriov_take_away,
};

static const Partitioner *const all[] = {&partitioner_mig, &partitioner_sriov};

const Partitioner *partitioner_of(HostRoot *root, const Gpu *gpu)
{
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        if (all[i]->can(root, gpu))
            return all[i];
    return NULL;
}

GStrv partitioner_list(HostRoot *root, const Gpu *gpu)
{
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();

    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_auto(GStrv) some = all[i]->list(root, gpu);

        g_strv_builder_addv(names, (const char **)some);
    }
    return g_strv_builder_end(names);
}
