/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/vgpus.h"

#include "host-agent/daemon/methods/lists.h"
#include "host-agent/daemon/methods/vgpu_call.h"

/* Both lists have the same vGPUs. */
static void list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    const char *method = g_dbus_method_invocation_get_method_name(invocation);
    VgpuManager *manager = host_manager(vgpus->host);
    Counters *counters = host_counters(vgpus->host);

    if (g_str_equal(method, "ListVgpusShort"))
        vgpu_manager_complete_list_vgpus_short(
            manager, invocation, list_vgpus_short(counters, vgpus->slices, vgpus->tenants, user));
    else
        vgpu_manager_complete_list_vgpus(
            manager, invocation, list_vgpus(counters, vgpus->slices, vgpus->tenants, user));
}

static gboolean handle_list(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data)
{
    (void)interface;
    vgpu_call_list(data, invocation, list);
    return TRUE;
}

Vgpus *vgpus_new(const Lifecycle *life, Offers *offers, const Tenants *tenants)
{
    Vgpus *vgpus = g_new0(Vgpus, 1);
    VgpuManager *manager = host_manager(life->host);

    vgpus->host = life->host;
    vgpus->life = life;
    vgpus->offers = offers;
    vgpus->slices = life->slices;
    vgpus->tenants = tenants;
    vgpus->claims = life->claims;
    vgpus->vms = vms_new(host_root(life->host));
    vgpus->freed = g_cancellable_new();
    g_signal_connect(manager, "handle-list-vgpus", G_CALLBACK(handle_list), vgpus);
    g_signal_connect(manager, "handle-list-vgpus-short", G_CALLBACK(handle_list), vgpus);
    g_signal_connect(manager, "handle-create-vgpus", G_CALLBACK(vgpu_create_handle), vgpus);
    g_signal_connect(manager, "handle-create-slice", G_CALLBACK(vgpu_create_handle), vgpus);
    g_signal_connect(manager, "handle-run-slice", G_CALLBACK(slice_run_handle), vgpus);
    g_signal_connect(manager, "handle-set-slice", G_CALLBACK(vgpu_set_handle), vgpus);
    g_signal_connect(manager, "handle-remove-slice", G_CALLBACK(vgpu_remove_handle), vgpus);
    g_signal_connect(manager, "handle-list-slices", G_CALLBACK(slice_list_handle), vgpus);
    g_signal_connect(manager, "handle-claim-slice", G_CALLBACK(slice_claim_handle), vgpus);
    g_signal_connect(manager, "handle-release-slice", G_CALLBACK(slice_release_handle), vgpus);
    g_signal_connect(manager, "handle-set-vgpu", G_CALLBACK(vgpu_set_handle), vgpus);
    g_signal_connect(manager, "handle-remove-vgpu", G_CALLBACK(vgpu_remove_handle), vgpus);
    g_signal_connect(manager, "handle-check-definition", G_CALLBACK(vgpu_check_handle), vgpus);
    g_signal_connect(manager, "handle-stop-vgpu", G_CALLBACK(vgpu_stop_handle), vgpus);
    g_signal_connect(manager, "handle-start-vgpu", G_CALLBACK(vgpu_start_handle), vgpus);
    g_signal_connect(manager, "handle-list-names", G_CALLBACK(vgpu_names_handle), vgpus);
    g_signal_connect(manager, "handle-list-types", G_CALLBACK(type_list_handle), vgpus);
    g_signal_connect(manager, "handle-list-vms", G_CALLBACK(vgpu_vms_handle), vgpus);
    g_signal_connect(manager, "handle-release-domain", G_CALLBACK(domain_release_handle), vgpus);
    g_signal_connect(manager, "handle-list-operations", G_CALLBACK(operations_list_handle), vgpus);
    g_signal_connect(manager, "handle-cancel-operation", G_CALLBACK(operation_cancel_handle),
                     vgpus);
    return vgpus;
}

void vgpus_free(Vgpus *vgpus)
{
    g_signal_handlers_disconnect_by_data(host_manager(vgpus->host), vgpus);
    g_cancellable_cancel(vgpus->freed);
    g_object_unref(vgpus->freed);
    vms_unref(vgpus->vms);
    g_free(vgpus);
}
