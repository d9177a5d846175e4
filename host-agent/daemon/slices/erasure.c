/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/erasure.h"

#include <errno.h>
#include <unistd.h>

#include "host-agent/daemon/modes/kernel_call.h"
#include "lib/bus.h"
#include "lib/definition.h"
#include "lib/mdev.h"
#include "lib/root.h"
#include "lib/sysfs.h"
#include "lib/vgpu.h"

/* How long a VM may take to let the group go, after it has closed the vGPU. */
#define HOLD_AGAIN_MS 100
#define HOLD_TRIES    100

/**
 * Erasure
 * @group: its VFIO group, held open until the vGPU is gone; -1: it is not
 * @tries: to have that
 */
typedef struct {
    Host *host;
    Slices *slices;
    char *uuid;
    int group;
    guint tries;
    MdevctlFunc func;
    void *data;
} Erasure;

static void finish(Erasure *erasure, const GError *error)
{
    if (!error)
        slices_forget(erasure->slices, erasure->uuid);
    erasure->func(error, erasure->data);
    g_free(erasure->uuid);
    g_free(erasure);
}

static void undefined(const GError *error, void *data)
{
    finish(data, error);
}

/* Also where there was nothing to stop: a crash may have come between the two. */
static void stopped(const GError *error, void *data)
{
    Erasure *erasure = data;
    g_autoptr(Definition) definition = NULL;
    const Slice *slice;

    if (erasure->group >= 0)
        close(erasure->group);
    if (error) {
        finish(erasure, error);
        return;
    }
    /* Another driver's may have the same UUID below another parent. */
    slice = slices_find(erasure->slices, erasure->uuid);
    if (slice)
        definition = definition_read(host_root(erasure->host), mdevctl_parent(slice->gpu),
                                     erasure->uuid);
    if (definition) {
        const char *words[] = {"undefine",         "--uuid", erasure->uuid, "--parent",
                               definition->parent, NULL};

        mdevctl_run(words, NULL, undefined, erasure);
    } else {
        finish(erasure, NULL);
    }
}

static void stop(Erasure *erasure)
{
    const char *words[] = {"stop", "--uuid", erasure->uuid, NULL};

    mdevctl_run(words, NULL, stopped, erasure);
}

/* FALSE with errno. Without a node no VM can open the vGPU. */
static gboolean hold_group(Erasure *erasure)
{
    g_autofree char *path = mdev_node(host_root(erasure->host), erasure->uuid);

    erasure->group = path ? kernel_hold(path) : -1;
    return !path || erasure->group >= 0 || errno == ENOENT || errno == ENODEV || errno == ENXIO;
}

static GError *error_of(const Erasure *erasure, int code)
{
    if (code == EBUSY)
        return g_error_new(AGENT_ERROR, AGENT_ERROR_IN_USE,
                           "a VM has just opened vGPU %s, or still closes it; shut the VM down, or "
                           "detach the vGPU from it, and try again",
                           erasure->uuid);
    return g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED,
                       "vGPU %s can't be kept from VMs while it is removed (VFIO's group: %s)",
                       erasure->uuid, g_strerror(code));
}

/*
 * VFIO's group can be opened once. While it is held no VM opens the vGPU between the look at its state and its end: the
 * kernel would ask QEMU to unplug it from a VM that has just started. A VM that has closed the vGPU has the group for
 * as long as its memory takes to be unpinned.
 */
static gboolean hold_and_stop(void *data)
{
    Erasure *erasure = data;
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(erasure->host), erasure->uuid);
    gboolean closed = vgpu && g_str_equal(vgpu->device, "closed");
    gboolean held = !vgpu || hold_group(erasure);
    int code = errno;

    if (!vgpu) {
        stopped(NULL, erasure);
    } else if (held) {
        stop(erasure);
    } else if (code == EBUSY && closed && erasure->tries++ < HOLD_TRIES) {
        g_timeout_add(HOLD_AGAIN_MS, hold_and_stop, erasure);
    } else {
        g_autoptr(GError) error = error_of(erasure, code);

        finish(erasure, error);
    }
    return G_SOURCE_REMOVE;
}

void erasure_run(Host *host, Slices *slices, const char *uuid, MdevctlFunc func, void *data)
{
    Erasure *erasure = g_new0(Erasure, 1);

    erasure->host = host;
    erasure->slices = slices;
    erasure->uuid = g_strdup(uuid);
    erasure->func = func;
    erasure->data = data;
    erasure->group = -1;
    g_idle_add(hold_and_stop, erasure);
}
