/* SPDX-License-Identifier: MIT */
/* ListNames: the names of vGPUs and slices. */
#include "host-agent/daemon/methods/vgpu_call.h"

static void list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    const GPtrArray *slices = slices_all(vgpus->slices);
    GVariantBuilder names;

    g_variant_builder_init(&names, G_VARIANT_TYPE("a{ss}"));
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (*slice->name && tenants_shows(vgpus->tenants, slice->tenant, user))
            g_variant_builder_add(&names, "{ss}", slice->uuid, slice->name);
    }
    vgpu_manager_complete_list_names(host_manager(vgpus->host), invocation,
                                     g_variant_builder_end(&names));
}

gboolean vgpu_names_handle(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data)
{
    (void)interface;
    vgpu_call_list(data, invocation, list);
    return TRUE;
}
