/* SPDX-License-Identifier: MIT */
#include "lib/vgpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/bus.h"
#include "lib/gpus.h"
#include "lib/mdev.h"
#include "lib/root.h"
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

/*
 * Its path in /sys/devices, from the one link that leads there: with a thousand vGPUs, each system
 * call counts.
 */
static char *device_of(const char *root, const char *uuid)
{
    g_autofree char *devices = mdev_dir(root);
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

GPtrArray *vgpus_read(const char *root)
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

gboolean vgpu_wait_ready(const char *root, const char *uuid, guint timeout_ms, GError **error)
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

static gboolean write_one(const char *dir, const char *name, const char *value, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *line = g_strconcat(value, "\n", NULL);
    ssize_t length = (ssize_t)strlen(line);
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    ssize_t written = fd < 0 ? -1 : write(fd, line, (size_t)length);
    int cause = errno;

    if (fd >= 0)
        close(fd);
    if (written == length)
        return TRUE;
    g_set_error(error, AGENT_ERROR, code_of(cause), "the driver does not accept %s=%s: %s", name,
                value, text_of(cause));
    return FALSE;
}

static gboolean is_change(const VgpuWrite *write)
{
    return !g_str_equal(write->from, write->to);
}

gboolean vgpu_write(const char *dir, const VgpuWrite *list, gsize count, GError **error)
{
    for (gsize i = 0; i < count; i++) {
        if (!is_change(&list[i]) || write_one(dir, list[i].name, list[i].to, error))
            continue;
        while (i-- > 0)
            if (is_change(&list[i]))
                write_one(dir, list[i].name, list[i].from, NULL);
        return FALSE;
    }
    return TRUE;
}
