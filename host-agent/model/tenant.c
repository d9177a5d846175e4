/* SPDX-License-Identifier: MIT */
#include "host-agent/model/tenant.h"

#include <fnmatch.h>

#include "lib/bus.h"
#include "lib/units.h"

void tenant_free(Tenant *tenant)
{
    g_free(tenant->name);
    g_strfreev(tenant->models);
    g_strfreev(tenant->users);
    g_free(tenant);
}

gboolean tenant_name_valid(const char *name)
{
    return g_regex_match_simple("^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$", name, G_REGEX_DOLLAR_ENDONLY,
                                0);
}

TenantUse tenant_use(const char *tenant, const GPtrArray *slices)
{
    TenantUse use = {0};

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (!g_str_equal(slice->tenant, tenant) || !slice_is_promised(slice))
            continue;
        use.vram += slice->vram;
        use.compute += slice->compute;
        use.vgpus++;
    }
    return use;
}

gboolean tenant_may_use(const Tenant *tenant, const Room *room)
{
    if (!tenant->models || !tenant->models[0])
        return TRUE;
    for (guint i = 0; tenant->models[i]; i++)
        if (!fnmatch(tenant->models[i], room->ids, FNM_CASEFOLD) ||
            !fnmatch(tenant->models[i], room->name, FNM_CASEFOLD))
            return TRUE;
    return FALSE;
}

static gboolean refuse(const Tenant *tenant, const char *would, const char *may, GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_QUOTA,
                "tenant %s would have %s, and may have %s; remove a vGPU of the tenant, or let an "
                "administrator raise the quota with \"vgpuctl tenant set %s\"",
                tenant->name, would, may, tenant->name);
    return FALSE;
}

gboolean tenant_admit(const Tenant *tenant, const TenantUse *use, GError **error)
{
    g_autofree char *would = NULL;
    g_autofree char *may = NULL;

    if (tenant->vram && use->vram > tenant->vram) {
        g_autofree char *bytes = size_format(use->vram);
        g_autofree char *most = size_format(tenant->vram);

        would = g_strconcat(bytes, " of VRAM", NULL);
        return refuse(tenant, would, most, error);
    }
    if (tenant->compute && use->compute > tenant->compute) {
        would = g_strdup_printf("%u %% of compute", use->compute);
        may = g_strdup_printf("%u %%", tenant->compute);
        return refuse(tenant, would, may, error);
    }
    if (tenant->vgpus && use->vgpus > tenant->vgpus) {
        would = g_strdup_printf("%u vGPUs", use->vgpus);
        may = g_strdup_printf("%u", tenant->vgpus);
        return refuse(tenant, would, may, error);
    }
    return TRUE;
}
