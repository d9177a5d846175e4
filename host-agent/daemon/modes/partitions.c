/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/partitions.h"

#include "host-agent/daemon/modes/kernel_call.h"
#include "lib/hardware.h"
#include "lib/sysfs.h"

/*
 * NVIDIA's MIG, through nvidia-smi. Written from its documentation and NOT TRIED: none of our
 * machines has such a GPU. It is used only if nvidia-smi exists and reports that the GPU supports
 * it.
 */

#define PCI_VENDOR_NVIDIA 0x10de
#define NVIDIA_SMI        "nvidia-smi"
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
static gboolean smi(const char *const *words, char **output, GError **error)
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
static char *ask(const Gpu *gpu, const char *query)
{
    g_autofree char *id = g_strconcat("--id=", gpu->pci->address, NULL);
    g_autofree char *what = g_strconcat("--query-gpu=", query, NULL);
    const char *const words[] = {id, what, "--format=csv,noheader", NULL};
    char *output = NULL;

    return smi(words, &output, NULL) ? g_strstrip(output) : NULL;
}

static gboolean mig_can(HostRoot *root, const Gpu *gpu)
{
    g_autofree char *program = NULL;
    g_autofree char *mode = NULL;

    (void)root;
    if (gpu->pci->vendor != PCI_VENDOR_NVIDIA || g_strcmp0(gpu->pci->driver, "nvidia") != 0)
        return FALSE;
    program = g_find_program_in_path(NVIDIA_SMI);
    mode = program ? ask(gpu, "mig.mode.current") : NULL;
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

static gboolean mig(const Gpu *gpu, const char *option, const char *value, GError **error)
{
    const char *const words[] = {"mig", "-i", gpu->pci->address, option, value, NULL};

    return smi(words, NULL, error);
}

static gboolean set_mode(const Gpu *gpu, const char *mode, GError **error)
{
    const char *const words[] = {"-i", gpu->pci->address, "-mig", mode, NULL};

    return smi(words, NULL, error);
}

static gboolean mig_take_away(HostRoot *root, const Gpu *gpu, GError **error)
{
    g_auto(GStrv) names = mig_list(root, gpu);

    if (names[0] && (!mig(gpu, "-dci", NULL, error) || !mig(gpu, "-dgi", NULL, error)))
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
    const char *const words[] = {"mig",         "-i", gpu->pci->address, "-cgi",
                                 profiles->str, "-C", NULL};

    return smi(words, NULL, error);
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

const Partitioner partitioner_sriov = {
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
