/* SPDX-License-Identifier: MIT */
#include "lib/vgpu.h"

#include <errno.h>
#include <string.h>

#include "lib/bus.h"
#include "lib/gpus.h"
#include "lib/host_root.h"
#include "lib/mdev.h"
#include "lib/sysfs.h"

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

static guint64 counter(HostRoot *root, const char *dir, const char *attribute)
{
    return (guint64)sysfs_number(root, dir, attribute, 0);
}

static char *text(HostRoot *root, const char *dir, const char *attribute)
{
    char *found = sysfs_read(root, dir, attribute);

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

void vgpu_update(HostRoot *root, Vgpu *vgpu, const char *dir, const char *state)
{
    g_free(vgpu->device);
    g_free(vgpu->engine);
    g_free(vgpu->failure);
    g_free(vgpu->tenant);
    g_free(vgpu->class);
    vgpu->device = state_word(state, "device");
    vgpu->engine = state_word(state, "engine");
    vgpu->failure = sysfs_read(root, dir, "failure");
    vgpu->vram = counter(root, dir, "vram_bytes");
    vgpu->window = counter(root, dir, "window_bytes");
    vgpu->weight = (guint)sysfs_number(root, dir, "weight", 0);
    vgpu->cap = (guint)sysfs_number(root, dir, "cap", 0);
    vgpu->priority = (int)sysfs_number(root, dir, "priority", 0);
    vgpu->display = (guint)sysfs_number(root, dir, "display", 0);
    vgpu->tenant = text(root, dir, "tenant");
    vgpu->class = text(root, dir, "class");
    vgpu->oversubscribe = sysfs_number(root, dir, "oversubscribe_bytes", -1);
    vgpu->requests = counter(root, dir, "requests");
    vgpu->doorbells = counter(root, dir, "doorbells");
    vgpu->interrupts = counter(root, dir, "interrupts");
    vgpu->engine_losses = counter(root, dir, "engine_losses");
}

/*
 * Its path in /sys/devices, from the one link that leads there: with a thousand vGPUs, each system
 * call counts.
 */
static char *device_of(HostRoot *root, const char *uuid)
{
    g_autofree char *link = mdev_path(uuid);
    g_autofree char *target = root_link(root, link);

    return target ? g_canonicalize_filename(target, MDEV_DIR) : NULL;
}

Vgpu *vgpu_read(HostRoot *root, const char *uuid)
{
    g_autofree char *device = device_of(root, uuid);
    g_autofree char *dir = device ? g_build_filename(device, "vgpu", NULL) : NULL;
    g_autofree char *state = dir ? sysfs_read(root, dir, "state") : NULL;
    g_autofree char *parent = state ? g_path_get_dirname(device) : NULL;
    Vgpu *vgpu;

    if (!state)
        return NULL;
    vgpu = g_new0(Vgpu, 1);
    vgpu->uuid = g_strdup(uuid);
    vgpu->gpu = gpu_name_of(parent);
    vgpu->type = sysfs_link_name(root, device, "mdev_type");
    vgpu_update(root, vgpu, dir, state);
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

GPtrArray *vgpus_read(HostRoot *root)
{
    g_auto(GStrv) uuids = mdev_list(root);
    GPtrArray *vgpus = g_ptr_array_new_with_free_func(free_vgpu);

    for (guint i = 0; uuids[i]; i++) {
        Vgpu *vgpu = vgpu_read(root, uuids[i]);

        if (vgpu)
            g_ptr_array_add(vgpus, vgpu);
    }
    return vgpus;
}

#define PERIOD_US 50000

/* TRUE: the result is known; @error is set if it is a failure. */
static gboolean has_ended(const Vgpu *vgpu, const char *uuid, GError **error)
{
    if (!vgpu)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "vGPU %s was removed while waiting for its engine", uuid);
    else if (g_str_equal(vgpu->engine, "failed"))
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "the engine of vGPU %s gave up: %s; \"journalctl -u vgpu-engine@%s\" has more",
                    uuid, vgpu->failure && *vgpu->failure ? vgpu->failure : "it does not say why",
                    uuid);
    else
        return g_str_equal(vgpu->engine, "ready");
    return TRUE;
}

gboolean vgpu_wait_ready(HostRoot *root, const char *uuid, guint timeout_ms, GError **error)
{
    gint64 end = g_get_monotonic_time() + (gint64)timeout_ms * 1000;

    for (;;) {
        g_autoptr(Vgpu) vgpu = vgpu_read(root, uuid);
        g_autoptr(GError) failure = NULL;

        if (has_ended(vgpu, uuid, &failure)) {
            if (!failure)
                return TRUE;
            g_propagate_error(error, g_steal_pointer(&failure));
            return FALSE;
        }
        if (g_get_monotonic_time() >= end) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                        "the engine of vGPU %s is not ready after %u s; \"systemctl status "
                        "vgpu-engine@%s\" says why",
                        uuid, timeout_ms / 1000, uuid);
            return FALSE;
        }
        g_usleep(PERIOD_US);
    }
}

static AgentError code_of(int cause)
{
    return cause == ENOSPC  ? AGENT_ERROR_NO_ROOM
           : cause == EBUSY ? AGENT_ERROR_IN_USE
                            : AGENT_ERROR_FAILED;
}

static const char *text_of(int cause)
{
    return cause == ENOENT
               ? "it has no such attribute, because the loaded module is older"
           : cause == EBUSY ? "a VM has the vGPU open"
                            : g_strerror(cause);
}

static gboolean write_one(HostRoot *root, const char *dir, const char *name, const char *value,
                          GError **error)
{
    g_autofree char *line = g_strconcat(value, "\n", NULL);
    int cause = sysfs_write(root, dir, name, line);

    if (!cause)
        return TRUE;
    g_set_error(error, AGENT_ERROR, code_of(cause), "the driver does not accept %s=%s: %s", name,
                value, text_of(cause));
    return FALSE;
}

static gboolean is_change(const VgpuWrite *write)
{
    return !g_str_equal(write->from, write->to);
}

gboolean vgpu_write(HostRoot *root, const char *dir, const VgpuWrite *list, gsize count,
                    GError **error)
{
    for (gsize i = 0; i < count; i++) {
        if (!is_change(&list[i]) || write_one(root, dir, list[i].name, list[i].to, error))
            continue;
        while (i-- > 0)
            if (is_change(&list[i]))
                write_one(root, dir, list[i].name, list[i].from, NULL);
        return FALSE;
    }
    return TRUE;
}
