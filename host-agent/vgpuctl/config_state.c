/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/config_state.h"

#define BY_COMMAND "by command"

static void gpu_free(void *data)
{
    ConfigGpu *gpu = data;

    g_free(gpu->address);
    g_free(gpu->mode);
    g_free(gpu->sentence);
    g_free(gpu);
}

static void tenant_free(void *data)
{
    ConfigTenant *tenant = data;

    g_free(tenant->entry.name);
    g_strfreev(tenant->entry.models);
    g_strfreev(tenant->entry.users);
    g_free(tenant->sentence);
    g_free(tenant);
}

void config_state_free(ConfigState *state)
{
    g_ptr_array_unref(state->gpus);
    g_ptr_array_unref(state->tenants);
    g_free(state);
}

static gboolean add_gpus(ConfigState *state, Client *client, GError **error)
{
    g_autoptr(GPtrArray) gpus = client_gpus(client, error);

    for (guint i = 0; gpus && i < gpus->len; i++) {
        VgpuGpu *gpu = g_ptr_array_index(gpus, i);
        const char *source = vgpu_gpu_get_mode_source(gpu);
        ConfigGpu *entry;

        if (!source || !g_str_has_prefix(source, BY_COMMAND))
            continue;
        entry = g_new0(ConfigGpu, 1);
        entry->address = g_strdup(vgpu_gpu_get_address(gpu));
        entry->mode = g_strdup(vgpu_gpu_get_wanted_mode(gpu));
        entry->declared = !g_str_equal(source, BY_COMMAND);
        entry->sentence = g_strdup_printf("GPU %s: mode %s is set by command, and not declared",
                                          entry->address, entry->mode);
        g_ptr_array_add(state->gpus, entry);
    }
    return gpus != NULL;
}

static void add_tenant(ConfigState *state, GVariant *dict)
{
    const char *source = "";
    ConfigTenant *tenant;

    g_variant_lookup(dict, "Source", "&s", &source);
    if (!g_str_has_prefix(source, BY_COMMAND))
        return;
    tenant = g_new0(ConfigTenant, 1);
    g_variant_lookup(dict, "Name", "s", &tenant->entry.name);
    g_variant_lookup(dict, "Vram", "t", &tenant->entry.vram);
    g_variant_lookup(dict, "Compute", "u", &tenant->entry.compute);
    g_variant_lookup(dict, "Vgpus", "u", &tenant->entry.vgpus);
    g_variant_lookup(dict, "Models", "^as", &tenant->entry.models);
    g_variant_lookup(dict, "Users", "^as", &tenant->entry.users);
    tenant->declared = !g_str_equal(source, BY_COMMAND);
    tenant->sentence =
        g_strdup_printf("tenant %s: set by command, and not declared", tenant->entry.name);
    g_ptr_array_add(state->tenants, tenant);
}

ConfigState *config_state_read(Client *client, GError **error)
{
    g_autoptr(ConfigState) state = g_new0(ConfigState, 1);
    g_autoptr(GVariant) tenants = NULL;

    state->gpus = g_ptr_array_new_with_free_func(gpu_free);
    state->tenants = g_ptr_array_new_with_free_func(tenant_free);
    tenants = client_get(client, "ListTenants", NULL, NULL, error);
    if (!tenants || !add_gpus(state, client, error))
        return NULL;
    for (gsize i = 0; i < g_variant_n_children(tenants); i++) {
        g_autoptr(GVariant) tenant = g_variant_get_child_value(tenants, i);

        add_tenant(state, tenant);
    }
    return g_steal_pointer(&state);
}
