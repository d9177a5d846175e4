/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's MIG, through nvidia-smi. Written from its documentation and NOT TRIED: none of our
 * machines has such a GPU. It is used only where nvidia-smi is there and says that the GPU can do
 * it.
 */
#include "host-agent/daemon/modes/partitioner.h"

#include "host-agent/daemon/modes/kernel_call.h"
#include "lib/nvidia.h"

#define PCI_VENDOR_NVIDIA 0x10de
#define NVIDIA_SMI        "nvidia-smi"
/* The smallest GPU instance profile, of which a GPU holds the most; 19 is 1g on A100, A30 and H100.
 */
#define SMALLEST_PROFILE "19"
#define MOST_INSTANCES   7

/* What it says to one question about one GPU; NULL: nothing. */
static char *ask(const Gpu *gpu, const char *query)
{
    g_autofree char *id = g_strconcat("--id=", gpu->pci->address, NULL);
    g_autofree char *what = g_strconcat("--query-gpu=", query, NULL);
    const char *const argv[] = {NVIDIA_SMI, id, what, "--format=csv,noheader", NULL};
    char *output = NULL;

    return kernel_run(argv, &output, NULL) ? g_strstrip(output) : NULL;
}

static gboolean can(const char *root, const Gpu *gpu)
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

static GStrv list(const char *root, const Gpu *gpu)
{
    return nvidia_instances(root, gpu->pci->address);
}

static guint most(const Gpu *gpu)
{
    (void)gpu;
    return MOST_INSTANCES;
}

static gboolean mig(const Gpu *gpu, const char *option, const char *value, GError **error)
{
    const char *const argv[] = {NVIDIA_SMI, "mig", "-i", gpu->pci->address, option, value, NULL};

    return kernel_run(argv, NULL, error);
}

static gboolean set_mode(const Gpu *gpu, const char *mode, GError **error)
{
    const char *const argv[] = {NVIDIA_SMI, "-i", gpu->pci->address, "-mig", mode, NULL};

    return kernel_run(argv, NULL, error);
}

static gboolean take_away(const char *root, const Gpu *gpu, GError **error)
{
    g_auto(GStrv) names = list(root, gpu);

    if (names[0] && (!mig(gpu, "-dci", NULL, error) || !mig(gpu, "-dgi", NULL, error)))
        return FALSE;
    return set_mode(gpu, "0", error);
}

static gboolean make(const char *root, const Gpu *gpu, guint count, GError **error)
{
    g_auto(GStrv) names = list(root, gpu);
    guint wanted = count ? count : MOST_INSTANCES;
    g_autoptr(GString) profiles = g_string_new(NULL);

    if (g_strv_length(names) == wanted)
        return TRUE;
    if (names[0] && !take_away(root, gpu, error))
        return FALSE;
    for (guint i = 0; i < wanted; i++)
        g_string_append(profiles, i ? "," SMALLEST_PROFILE : SMALLEST_PROFILE);
    if (!set_mode(gpu, "1", error))
        return FALSE;
    /* -C makes the compute instances too. */
    const char *const argv[] = {NVIDIA_SMI, "mig",         "-i", gpu->pci->address,
                                "-cgi",     profiles->str, "-C", NULL};

    return kernel_run(argv, NULL, error);
}

const Partitioner partitioner_mig = {
    .name = "MIG",
    .can = can,
    .list = list,
    .most = most,
    .make = make,
    .remove = take_away,
};
