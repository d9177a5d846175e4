/* SPDX-License-Identifier: MIT */
#include "lib/vgpu.h"

#include <stdlib.h>
#include <string.h>

#include "lib/gpus.h"
#include "lib/sysfs.h"

#define MDEV_DEVICES "sys/bus/mdev/devices"
#define SOFT_CLASS   "/vgpu-soft"

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

static char *text(const char *dir, const char *attribute)
{
    char *found = sysfs_read(dir, attribute);

    return found ? found : g_strdup("");
}

/* "0000:02:00.0", or "soft:NAME". */
static char *gpu_name_of(const char *parent)
{
    g_autofree char *name = g_path_get_basename(parent);
    g_autofree char *dir = g_path_get_dirname(parent);

    return g_str_has_suffix(dir, SOFT_CLASS) ? g_strconcat(GPU_SOFT_PREFIX, name, NULL)
                                             : g_steal_pointer(&name);
}

void vgpu_update(Vgpu *vgpu, const char *dir, const char *state)
{
    g_free(vgpu->device);
    g_free(vgpu->engine);
    g_free(vgpu->failure);
    g_free(vgpu->tenant);
    g_free(vgpu->class);
    vgpu->device = state_word(state, "device");
    vgpu->engine = state_word(state, "engine");
    vgpu->failure = sysfs_read(dir, "failure");
    vgpu->vram = counter(dir, "vram_bytes");
    vgpu->window = counter(dir, "window_bytes");
    vgpu->weight = (guint)sysfs_number(dir, "weight", 0);
    vgpu->cap = (guint)sysfs_number(dir, "cap", 0);
    vgpu->priority = (int)sysfs_number(dir, "priority", 0);
    vgpu->display = (guint)sysfs_number(dir, "display", 0);
    vgpu->tenant = text(dir, "tenant");
    vgpu->class = text(dir, "class");
    vgpu->oversubscribe = sysfs_number(dir, "oversubscribe_bytes", -1);
    vgpu->requests = counter(dir, "requests");
    vgpu->doorbells = counter(dir, "doorbells");
    vgpu->interrupts = counter(dir, "interrupts");
    vgpu->engine_losses = counter(dir, "engine_losses");
}

/* Its place in /sys/devices, by the one link that leads there: of a thousand, each system call counts. */
static char *device_of(const char *root, const char *uuid)
{
    g_autofree char *devices = g_build_filename(root[0] ? root : "/", MDEV_DEVICES, NULL);
    g_autofree char *link = g_build_filename(devices, uuid, NULL);
    g_autofree char *target = g_file_read_link(link, NULL);

    return target ? g_canonicalize_filename(target, devices) : NULL;
}

Vgpu *vgpu_read(const char *root, const char *uuid)
{
    g_autofree char *device = device_of(root, uuid);
    g_autofree char *dir = device ? g_build_filename(device, "vgpu", NULL) : NULL;
    g_autofree char *state = dir ? sysfs_read(dir, "state") : NULL;
    g_autofree char *parent = state ? g_path_get_dirname(device) : NULL;
    Vgpu *vgpu;

    if (!state)
        return NULL;
    vgpu = g_new0(Vgpu, 1);
    vgpu->uuid = g_strdup(uuid);
    vgpu->gpu = gpu_name_of(parent);
    vgpu->type = sysfs_link_name(device, "mdev_type");
    vgpu_update(vgpu, dir, state);
    vgpu->dir = g_steal_pointer(&dir);
    return vgpu;
}

void vgpu_free(Vgpu *vgpu)
{
    g_free(vgpu->uuid);
    g_free(vgpu->dir);
    g_free(vgpu->gpu);
    g_free(vgpu->type);
    g_free(vgpu->device);
    g_free(vgpu->engine);
    g_free(vgpu->failure);
    g_free(vgpu->tenant);
    g_free(vgpu->class);
    g_free(vgpu);
}

static void free_vgpu(void *data)
{
    vgpu_free(data);
}

GStrv vgpu_uuids(const char *root)
{
    g_autofree char *dir = g_build_filename(root[0] ? root : "/", MDEV_DEVICES, NULL);

    return sysfs_list(dir);
}

GPtrArray *vgpus_read(const char *root)
{
    g_auto(GStrv) uuids = vgpu_uuids(root);
    GPtrArray *vgpus = g_ptr_array_new_with_free_func(free_vgpu);

    for (guint i = 0; uuids[i]; i++) {
        Vgpu *vgpu = vgpu_read(root, uuids[i]);

        if (vgpu)
            g_ptr_array_add(vgpus, vgpu);
    }
    return vgpus;
}
