/* SPDX-License-Identifier: MIT */
/* ListVms: which VM has which vGPU. */
#include "vgpu_call.h"

static gboolean may_see(const Vgpus *vgpus, const Slice *slice, const char *user)
{
    return !user || tenants_has_user(vgpus->tenants, slice->tenant, user);
}

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

/* @user: NULL: sees all. */
static void list(Vgpus *vgpus, GDBusMethodInvocation *invocation, const char *user)
{
    const GPtrArray *slices = slices_all(vgpus->slices);
    GVariantBuilder vms;

    look(vgpus);
    g_variant_builder_init(&vms, G_VARIANT_TYPE("a{ss}"));
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const char *vm = vms_name(vgpus->vms, slice->uuid);

        if ((vm || slice->domain[0]) && may_see(vgpus, slice, user))
            g_variant_builder_add(&vms, "{ss}", slice->uuid, vm ? vm : slice->domain);
    }
    vgpu_manager_complete_list_vms(host_manager(vgpus->host), invocation,
                                   g_variant_builder_end(&vms));
}

static void list_all(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    (void)caller;
    list(data, invocation, NULL);
}

static void list_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;

    if (tenants_any_has_user(vgpus->tenants, caller->user))
        list(vgpus, invocation, caller->user);
    else
        authority_refuse(invocation, caller, ACTION_SEE, NULL);
}

gboolean vgpu_vms_handle(VgpuManager *interface, GDBusMethodInvocation *invocation, void *data)
{
    (void)interface;
    authority_ask_or(invocation, ACTION_SEE, list_all, list_own, data);
    return TRUE;
}
