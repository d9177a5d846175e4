/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/share.h"

#include <unistd.h>

#include "host-agent/daemon/modes/kernel_call.h"
#include "lib/bus.h"
#include "lib/conf.h"
#include "lib/containers_only.h"
#include "lib/control.h"
#include "lib/host_root.h"
#include "lib/mdev.h"
#include "lib/types.h"


/* The registrar's codes are exit codes; its sentences are used here, too. */
static gboolean fail(GError *cause, GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "%s", cause->message);
    g_error_free(cause);
    return FALSE;
}

static Plan *plan_of(HostRoot *root, const char *address, GError **error)
{
    g_autoptr(GPtrArray) types = types_load(root, error);
    g_autoptr(GPtrArray) entries = types ? gpus_load(root, error) : NULL;
    GpuEntry *entry = entries ? gpus_find(entries, address) : NULL;
    GpuEntry unnamed = {.name = (char *)address, .overcommit = 1};

    return entries ? plan_new(root, entry ? entry : &unnamed, types, error) : NULL;
}

static gboolean has_no_driver(const GError *cause)
{
    return g_error_matches(cause, REGISTRAR_ERROR, REGISTRAR_ERROR_NO_DRIVER);
}

gboolean share_has_driver(HostRoot *root)
{
    g_autoptr(GError) cause = NULL;
    int fd = control_open(root, &cause);

    if (fd >= 0)
        close(fd);
    return fd >= 0 || !has_no_driver(cause);
}

/* Without the driver only vgpud enforces the ledger. */
static gboolean add(HostRoot *root, const Plan *plan, GError **error)
{
    gboolean existed, done;
    GError *cause = NULL;
    int fd = control_open(root, &cause);

    if (fd < 0 && has_no_driver(cause)) {
        g_error_free(cause);
        return containers_only_set(root, plan->gpu, error);
    }
    done = fd >= 0 && control_add(fd, root, plan, &existed, &cause);
    if (fd >= 0)
        close(fd);
    if (!done)
        g_propagate_error(error, cause);
    else
        containers_only_clear(root, plan->gpu);
    return done;
}

gboolean share_register(HostRoot *root, const char *address, GError **error)
{
    GError *cause = NULL;
    Plan *plan = plan_of(root, address, &cause);
    gboolean done = plan && add(root, plan, &cause);

    if (plan)
        plan_free(plan);
    return done || fail(cause, error);
}

/* Absent: the driver is not loaded, or the GPU is not registered. */
static gboolean is_absent(const GError *cause)
{
    return g_error_matches(cause, REGISTRAR_ERROR, REGISTRAR_ERROR_ABSENT) || has_no_driver(cause);
}

static gboolean done_or_absent(int fd, gboolean done, GError *cause, GError **error)
{
    if (fd >= 0)
        close(fd);
    if (done)
        return TRUE;
    if (!is_absent(cause))
        return fail(cause, error);
    g_error_free(cause);
    return TRUE;
}

gboolean share_unregister(HostRoot *root, const char *address, GError **error)
{
    GError *cause = NULL;
    int fd = control_open(root, &cause);
    gboolean done = fd >= 0 && control_remove(fd, root, address, &cause);

    containers_only_clear(root, address);
    return done_or_absent(fd, done, cause, error);
}

gboolean share_drain(HostRoot *root, const char *address, gboolean on, GError **error)
{
    GError *cause = NULL;
    int fd = control_open(root, &cause);
    gboolean done = fd >= 0 && control_drain(fd, address, on, &cause);

    return done_or_absent(fd, done, cause, error);
}

gboolean share_stop_vgpu(HostRoot *root, const char *uuid, GError **error)
{
    g_autofree char *dir = mdev_path(uuid);
    g_autofree char *path = g_build_filename(dir, "remove", NULL);

    /* Another process may have been faster. */
    return kernel_write(root, path, "1", error) ||
           (!root_has(root, dir) && (g_clear_error(error), TRUE));
}

gboolean share_start_vgpu(HostRoot *root, const char *uuid, GError **error)
{
    const char *const argv[] = {"mdevctl", "start", "--uuid", uuid, NULL};
    g_autofree char *dir = mdev_path(uuid);
    g_autoptr(GError) cause = NULL;

    if (root_has(root, dir) || kernel_run(argv, NULL, &cause))
        return TRUE;
    /* When the GPU is registered, udev starts the vGPUs with automatic start at the same time. */
    if (root_has(root, dir))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}
