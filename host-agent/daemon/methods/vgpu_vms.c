/* SPDX-License-Identifier: MIT */
/* ListVms: which VM uses which vGPU. */
#include "host-agent/daemon/methods/vgpu_call.h"

/**
 * Look - a call that is answered when a thread has read /proc
 * @invocation: its only reference
 * @user: sees those of its tenants only; NULL: all
 * @open: UUIDs of vGPUs that are open
 */
typedef struct {
    Vgpus *vgpus;
    GDBusMethodInvocation *invocation;
    char *user;
    Vms *vms;
    GStrv open;
} Look;

static void look_free(void *data)
{
    Look *look = data;

    g_clear_object(&look->invocation);
    g_free(look->user);
    vms_unref(look->vms);
    g_strfreev(look->open);
    g_free(look);
}

static GStrv open_vgpus(const Vgpus *vgpus)
{
    const GPtrArray *counters = counters_read(host_counters(vgpus->host));
    g_autoptr(GStrvBuilder) open = g_strv_builder_new();

    for (guint i = 0; i < counters->len; i++) {
        const Vgpu *vgpu = ((const VgpuCounters *)g_ptr_array_index(counters, i))->vgpu;

        if (!g_str_equal(vgpu->device, "closed"))
            g_strv_builder_add(open, vgpu->uuid);
    }
    return g_strv_builder_end(open);
}

static void find(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    const Look *look = data;

    (void)source;
    (void)cancellable;
    g_task_return_pointer(task, vms_look(look->vms, (const char *const *)look->open),
                          (GDestroyNotify)g_hash_table_unref);
}

static void found(GObject *source, GAsyncResult *answer, void *data)
{
    Look *look = g_task_get_task_data(G_TASK(answer));
    g_autoptr(GHashTable) names = g_task_propagate_pointer(G_TASK(answer), NULL);
    const GPtrArray *slices;
    GVariantBuilder vms;

    (void)source;
    (void)data;
    /* vgpud ends. */
    if (!names)
        return;
    slices = slices_all(look->vgpus->slices);
    g_variant_builder_init(&vms, G_VARIANT_TYPE("a{ss}"));
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const char *vm = g_hash_table_lookup(names, slice->uuid);

        if ((vm || slice->domain[0]) &&
            tenants_shows(look->vgpus->tenants, slice->tenant, look->user))
            g_variant_builder_add(&vms, "{ss}", slice->uuid, vm ? vm : slice->domain);
    }
    vgpu_manager_complete_list_vms(host_manager(look->vgpus->host), g_steal_pointer(&look->invocation),
                                   g_variant_builder_end(&vms));
}

static void list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    g_autoptr(GTask) task = g_task_new(NULL, vgpus->freed, found, NULL);
    Look *look = g_new0(Look, 1);

    look->vgpus = vgpus;
    look->invocation = invocation;
    look->user = g_strdup(user);
    look->vms = vms_ref(vgpus->vms);
    look->open = open_vgpus(vgpus);
    g_task_set_task_data(task, look, look_free);
    g_task_run_in_thread(task, find);
}

gboolean vgpu_vms_handle(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data)
{
    (void)interface;
    vgpu_call_list(data, invocation, list);
    return TRUE;
}
