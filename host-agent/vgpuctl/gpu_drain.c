/* SPDX-License-Identifier: MIT */
/* vgpuctl gpu drain, resume: a GPU that gets no new work, and the wait until it has none. */
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/each.h"
#include "host-agent/vgpuctl/progress.h"

#define POLL_US G_USEC_PER_SEC

static gboolean wait_too;
static int timeout;

const GOptionEntry gpu_drain_options[] = {
    {"wait", 0, 0, G_OPTION_ARG_NONE, &wait_too, "Wait until no VM or container uses them", NULL},
    {"timeout", 0, 0, G_OPTION_ARG_INT, &timeout,
     "With --wait: how long to wait; 0, the default: without limit", "SECONDS"},
    G_OPTION_ENTRY_NULL,
};

static gboolean set_drain(Client *client, const char *name, void *on, GError **error)
{
    g_autoptr(VgpuGpu) gpu = client_gpu(client, name, error);
    g_autoptr(GVariant) answer = NULL;

    if (gpu)
        answer = client_call_object(G_DBUS_PROXY(gpu), "Drain",
                                    g_variant_new("(b)", GPOINTER_TO_INT(on)), NULL, 0, error);
    return answer != NULL;
}

static const char *member(GVariant *object, const char *key)
{
    const char *value = "";

    g_variant_lookup(object, key, "&s", &value);
    return value;
}

static gboolean is_of(GVariant *object, char **gpus)
{
    for (; *gpus; gpus++)
        if (client_address_is(member(object, "Gpu"), *gpus))
            return TRUE;
    return FALSE;
}

/* vGPUs that a VM has open. One whose engine or GPU is lost is open too. */
static gboolean add_vgpus(const Client *client, char **gpus, GPtrArray *users, GError **error)
{
    g_autoptr(GVariant) vgpus = client_get(client, "ListVgpus", NULL, NULL, error);
    g_autoptr(GVariant) vms = vgpus ? client_get(client, "ListVms", NULL, NULL, error) : NULL;

    for (gsize i = 0; vms && i < g_variant_n_children(vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, i);
        const char *device = member(vgpu, "Device");
        const char *uuid = member(vgpu, "Uuid");
        const char *vm = "";

        if (!is_of(vgpu, gpus) || g_str_equal(device, "closed") || g_str_equal(device, "stopped"))
            continue;
        g_variant_lookup(vms, uuid, "&s", &vm);
        g_ptr_array_add(users, *vm ? g_strdup_printf("VM %s (vGPU %s)", vm, uuid)
                                   : g_strdup_printf("a VM (vGPU %s)", uuid));
    }
    return vms != NULL;
}

static gboolean add_slices(const Client *client, char **gpus, GPtrArray *users, GError **error)
{
    g_autoptr(GVariant) slices = client_get(client, "ListSlices", NULL, NULL, error);

    for (gsize i = 0; slices && i < g_variant_n_children(slices); i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(slices, i);
        const char *container = member(slice, "Container");

        if (is_of(slice, gpus) && *container)
            g_ptr_array_add(users, g_strdup_printf("container %s (slice %s)", container,
                                                   member(slice, "Uuid")));
    }
    return slices != NULL;
}

/* Of char *; NULL with @error. */
static GPtrArray *find_users(const Client *client, char **gpus, GError **error)
{
    g_autoptr(GPtrArray) users = g_ptr_array_new_with_free_func(g_free);

    if (!add_vgpus(client, gpus, users, error) || !add_slices(client, gpus, users, error))
        return NULL;
    return g_steal_pointer(&users);
}

static gboolean set_too_late(GPtrArray *users, char **gpus, GError **error)
{
    g_autofree char *names = g_strjoinv(" ", gpus);
    g_autofree char *all = NULL;

    g_ptr_array_add(users, NULL);
    all = g_strjoinv(", ", (char **)users->pdata);
    g_set_error(
        error, VGPUCTL_ERROR, VGPUCTL_IN_USE,
        "after %d seconds still in use: %s; no new work is put on GPU %s until \"vgpuctl gpu "
        "resume %s\"",
        timeout, all, names, names);
    return FALSE;
}

static gboolean wait_until_unused(const Client *client, char **gpus, GError **error)
{
    gint64 end = g_get_monotonic_time() + timeout * G_USEC_PER_SEC;

    for (;;) {
        g_autoptr(GPtrArray) users = find_users(client, gpus, error);

        if (!users)
            return FALSE;
        if (!users->len)
            return TRUE;
        if (timeout && g_get_monotonic_time() >= end)
            return set_too_late(users, gpus, error);
        progress_sleep(POLL_US);
    }
}

gboolean gpu_drain_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autofree char *names = g_strjoinv(" ", args);
    g_autofree char *what = g_strdup_printf("waiting for the users of GPU %s", names);
    gboolean done;

    (void)options;
    if (timeout < 0 || (timeout && !wait_too)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    timeout < 0 ? "--timeout cannot be below 0" : "--timeout needs --wait");
        return FALSE;
    }
    if (!each_name(client, args, "draining GPUs", set_drain, GINT_TO_POINTER(TRUE), error))
        return FALSE;
    if (!wait_too)
        return TRUE;
    progress_begin(what, (guint)timeout);
    done = wait_until_unused(client, args, error);
    progress_end();
    return done;
}

gboolean gpu_resume_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return each_name(client, args, "resuming GPUs", set_drain, GINT_TO_POINTER(FALSE), error);
}
