/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/driver_types.h"

#include <unistd.h>

#include "lib/bus.h"
#include "lib/conf.h"
#include "lib/control.h"

static gboolean is_for_driver(const Offers *offers, const Gpu *gpu)
{
    const GpuEntry *entry = offers_settings(offers, gpu->pci->address);

    return gpu->types[0] && entry && entry->mode == GPU_MODE_SHARED;
}

/*
 * Of Plan. A GPU that cannot be read now keeps what the driver has; a mistake in the files is an
 * error.
 */
static GPtrArray *plans_new(const Host *host, const Offers *offers, GError **error)
{
    g_autoptr(GPtrArray) plans = g_ptr_array_new_with_free_func((GDestroyNotify)plan_free);
    const GPtrArray *gpus = host_gpus(host);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        g_autoptr(GError) cause = NULL;
        Plan *plan;

        if (!is_for_driver(offers, gpu))
            continue;
        plan = offers_plan_new(offers, gpu, &cause);
        if (plan) {
            g_ptr_array_add(plans, plan);
        } else if (g_error_matches(cause, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG)) {
            g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_INVALID, cause->message);
            return NULL;
        } else {
            g_message("GPU %s keeps the types that the driver knows: %s", gpu->pci->address,
                      cause->message);
        }
    }
    return g_steal_pointer(&plans);
}

/* The types of another driver's mediated devices are no concern of ours. */
static gboolean update_types(int fd, HostRoot *root, const Plan *plan, GError **error)
{
    g_autoptr(GError) cause = NULL;

    if (control_update(fd, root, plan, &cause) ||
        g_error_matches(cause, REGISTRAR_ERROR, REGISTRAR_ERROR_ABSENT))
        return TRUE;
    g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_FAILED, cause->message);
    return FALSE;
}

/* The first @count GPUs of @plans. */
static void go_back(int fd, const Host *host, const Offers *before, const GPtrArray *plans,
                    guint count)
{
    for (guint i = 0; i < count; i++) {
        const char *address = ((const Plan *)g_ptr_array_index(plans, i))->gpu;
        g_autoptr(GError) error = NULL;
        g_autoptr(Plan) plan = offers_plan_new(before, host_gpu(host, address), &error);

        if (!plan || !update_types(fd, host_root(host), plan, &error))
            g_warning("GPU %s: the driver keeps types that vgpud does not use: %s; correct "
                      "/etc/vgpu, then \"vgpuctl reload\"",
                      address, error->message);
    }
}

static gboolean update_all(int fd, const Host *host, const Offers *before, const GPtrArray *plans,
                           GError **error)
{
    for (guint i = 0; i < plans->len; i++) {
        if (update_types(fd, host_root(host), g_ptr_array_index(plans, i), error))
            continue;
        go_back(fd, host, before, plans, i);
        return FALSE;
    }
    return TRUE;
}

gboolean driver_types_update(const Host *host, const Offers *before, const Offers *offers,
                             GError **error)
{
    g_autoptr(GPtrArray) plans = NULL;
    g_autoptr(GError) cause = NULL;
    int fd = control_open(host_root(host), &cause);
    gboolean done;

    if (fd < 0) {
        if (g_error_matches(cause, REGISTRAR_ERROR, REGISTRAR_ERROR_NO_DRIVER))
            return TRUE;
        g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_FAILED, cause->message);
        return FALSE;
    }
    plans = plans_new(host, offers, error);
    done = plans && update_all(fd, host, before, plans, error);
    close(fd);
    return done;
}
