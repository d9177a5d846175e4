/* SPDX-License-Identifier: MIT */
/* ListVms: which VM has which vGPU. */
#include "host-agent/daemon/methods/vgpu_call.h"

/* Looks who has those that are open. */
static void look(const Vgpus *vgpus)
{
    const GPtrArray *counters = counters_read(host_counters(vgpus->host));
    g_autoptr(GPtrArray) open = g_ptr_array_new();

    for (guint i = 0; i < counters->len; i++) {
        const Vgpu *vgpu = ((const VgpuCounters *)g_ptr_array_index(counters, i))->vgpu;

        if (!g_str_equal(vgpu->device, "closed"))
            g_ptr_array_add(open, vgpu->uuid);
    }
    g_ptr_array_add(open, NULL);
    vms_look(vgpus->vms, (const char *const *)open->pdata);
}

static void list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    const GPtrArray *slices = slices_all(vgpus->slices);
    GVariantBuilder vms;

    look(vgpus);
    g_variant_builder_init(&vms, G_VARIANT_TYPE("a{ss}"));
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const char *vm = vms_name(vgpus->vms, slice->uuid);

        if ((vm || slice->domain[0]) && tenants_shows(vgpus->tenants, slice->tenant, user))
            g_variant_builder_add(&vms, "{ss}", slice->uuid, vm ? vm : slice->domain);
    }
    vgpu_manager_complete_list_vms(host_manager(vgpus->host), invocation,
                                   g_variant_builder_end(&vms));
}

gboolean vgpu_vms_handle(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data)
{
    (void)interface;
    vgpu_call_list(data, invocation, list);
    return TRUE;
}
