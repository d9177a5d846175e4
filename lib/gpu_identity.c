/* SPDX-License-Identifier: MIT */
#include "lib/gpu_identity.h"

#include <string.h>

#include "lib/gpu_name.h"

#define WORDS_MAX 32

/* "A100 PCIe 80GB" of "GA100 [A100 PCIe 80GB]"; the first of several that are separated by "/". */
static char *marketing_name(const char *name)
{
    const char *open = strrchr(name, '[');
    const char *close = open ? strchr(open, ']') : NULL;
    g_autofree char *inside = close ? g_strndup(open + 1, (gsize)(close - open - 1)) : NULL;

    if (!inside || g_str_equal(inside, "AMD/ATI"))
        return g_strdup("");
    inside[strcspn(inside, "/")] = '\0';
    return g_steal_pointer(&inside);
}

/* Of a connector or a memory, or of the vendor: one card has it and its sister has not. */
static gboolean is_left_out(const char *word)
{
    return g_regex_match_simple("^(nvidia|amd|intel|geforce|radeon|instinct|graphics|pcie|sxm[0-9]*"
                                "|nvl|oam|[0-9]+ ?g(i?b)?)$",
                                word, 0, 0);
}

/* Words of the name, joined by "-". */
static GString *words_of(const char *name)
{
    g_autofree char *lower = g_ascii_strdown(name, -1);
    g_auto(GStrv) words = NULL;
    GString *joined = g_string_new(NULL);

    for (char *at = lower; *at; at++)
        if (!g_ascii_isalnum(*at) && *at != '.')
            *at = ' ';
    words = g_strsplit(lower, " ", -1);
    for (guint i = 0; words[i]; i++)
        if (*words[i] && !is_left_out(words[i]) && joined->len + strlen(words[i]) < WORDS_MAX)
            g_string_append_printf(joined, "%s%s", joined->len ? "-" : "", words[i]);
    return joined;
}

char *gpu_model(const char *name, const PciDevice *pci, guint64 vram)
{
    g_autofree char *shown = marketing_name(name);
    g_autoptr(GString) model =
        gpu_name_is_soft(pci->address) ? g_string_new("soft") : words_of(shown);
    guint64 gib = (vram + (G_GUINT64_CONSTANT(1) << 29)) >> 30;

    if (!model->len)
        g_string_append_printf(model, "%04x-%04x", pci->vendor, pci->device);
    if (gib)
        g_string_append_printf(model, "-%" G_GUINT64_FORMAT "g", gib);
    return g_strdup(model->str);
}

/* "GPU UUID: \t GPU-…" in the file that NVIDIA's driver has for each card. */
static char *nvidia_uuid(HostRoot *root, const char *address)
{
    g_autofree char *path = g_strconcat("/proc/driver/nvidia/gpus/", address, "/information", NULL);
    g_autofree char *text = root_read(root, path, NULL);
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

    for (guint i = 0; lines[i]; i++)
        if (g_str_has_prefix(lines[i], "GPU UUID:"))
            return g_strdup(g_strstrip(lines[i] + strlen("GPU UUID:")));
    return NULL;
}

char *gpu_uuid(HostRoot *root, const PciDevice *pci)
{
    char *uuid = gpu_name_is_soft(pci->address) ? NULL : nvidia_uuid(root, pci->address);

    /* amdgpu's. */
    if (!uuid && !gpu_name_is_soft(pci->address))
        uuid = sysfs_read(root, pci->dir, "unique_id");
    return uuid ? uuid : g_strdup("");
}

char *gpu_local_cpus(HostRoot *root, const PciDevice *pci)
{
    char *cpus =
        gpu_name_is_soft(pci->address) ? NULL : sysfs_read(root, pci->dir, "local_cpulist");

    return cpus ? cpus : g_strdup("");
}

char *gpu_pcie_root(const PciDevice *pci)
{
    g_auto(GStrv) parts = g_strsplit(pci->dir ? pci->dir : "", "/", -1);

    for (guint i = 0; parts[i]; i++)
        if (g_regex_match_simple("^pci[0-9a-f]+:[0-9a-f]+$", parts[i], G_REGEX_DOLLAR_ENDONLY, 0))
            return g_strdup(parts[i]);
    return g_strdup("");
}
