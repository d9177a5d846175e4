/* SPDX-License-Identifier: MIT */
#include "vgpu.h"

#include <stdlib.h>
#include <string.h>

#include "sysfs.h"

#define MDEV_DEVICES "sys/bus/mdev/devices"

/* "device=running engine=ready": the word after "@key=". */
static char *state_word(const char *state, const char *key)
{
    g_auto(GStrv) words = g_strsplit(state, " ", -1);
    g_autofree char *prefix = g_strconcat(key, "=", NULL);

    for (guint i = 0; words[i]; i++)
        if (g_str_has_prefix(words[i], prefix))
            return g_strdup(words[i] + strlen(prefix));
    return g_strdup("");
}

static guint64 counter(const char *dir, const char *attribute)
{
    return (guint64)sysfs_number(dir, attribute, 0);
}

/* NULL where it is not one of ours, or goes just now. */
static Vgpu *read_vgpu(const char *link, const char *uuid)
{
    g_autofree char *device = realpath(link, NULL);
    g_autofree char *dir = device ? g_build_filename(device, "vgpu", NULL) : NULL;
    g_autofree char *state = dir ? sysfs_read(dir, "state") : NULL;
    g_autofree char *parent = state ? g_path_get_dirname(device) : NULL;
    Vgpu *vgpu;

    if (!state)
        return NULL;
    vgpu = g_new0(Vgpu, 1);
    vgpu->uuid = g_strdup(uuid);
    vgpu->gpu = g_path_get_basename(parent);
    vgpu->type = sysfs_link_name(device, "mdev_type");
    vgpu->device = state_word(state, "device");
    vgpu->engine = state_word(state, "engine");
    vgpu->failure = sysfs_read(dir, "failure");
    vgpu->vram = counter(dir, "vram_bytes");
    vgpu->window = counter(dir, "window_bytes");
    vgpu->weight = (guint)sysfs_number(dir, "weight", 0);
    vgpu->cap = (guint)sysfs_number(dir, "cap", 0);
    vgpu->priority = (int)sysfs_number(dir, "priority", 0);
    vgpu->requests = counter(dir, "requests");
    vgpu->doorbells = counter(dir, "doorbells");
    vgpu->interrupts = counter(dir, "interrupts");
    vgpu->engine_losses = counter(dir, "engine_losses");
    return vgpu;
}

void vgpu_free(Vgpu *vgpu)
{
    g_free(vgpu->uuid);
    g_free(vgpu->gpu);
    g_free(vgpu->type);
    g_free(vgpu->device);
    g_free(vgpu->engine);
    g_free(vgpu->failure);
    g_free(vgpu);
}

static void free_vgpu(void *data)
{
    vgpu_free(data);
}

GPtrArray *vgpus_read(const char *root)
{
    g_autofree char *dir = g_build_filename(root[0] ? root : "/", MDEV_DEVICES, NULL);
    g_auto(GStrv) uuids = sysfs_list(dir);
    GPtrArray *vgpus = g_ptr_array_new_with_free_func(free_vgpu);

    for (guint i = 0; uuids[i]; i++) {
        g_autofree char *link = g_build_filename(dir, uuids[i], NULL);
        Vgpu *vgpu = read_vgpu(link, uuids[i]);

        if (vgpu)
            g_ptr_array_add(vgpus, vgpu);
    }
    return vgpus;
}
