/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/audit_state.h"

#include "host-agent/daemon/host/gpu_object.h"
#include "host-agent/model/slice.h"
#include "lib/audit.h"

static void add(GString *text, const char *key, const char *value)
{
    g_string_append_printf(text, "%s%s=%s", text->len ? AUDIT_BETWEEN : "", key, value);
}

static void add_number(GString *text, const char *key, guint64 number)
{
    g_autofree char *value = g_strdup_printf("%" G_GUINT64_FORMAT, number);

    add(text, key, value);
}

static void add_flag(GString *text, const char *key, gboolean flag)
{
    add(text, key, flag ? "yes" : "no");
}

static void rename_to(char **name, const char *own)
{
    g_free(*name);
    *name = g_strdup(own);
}

static char *slice_state(const AuditWorld *world, char **name)
{
    const Slice *slice = slices_find_called(world->slices, *name);
    g_autofree char *engines = slice ? engines_format(slice->engines) : NULL;
    const char *user = slice ? claims_claimed_by(world->claims, slice->uuid) : NULL;
    GString *text;

    if (!slice)
        return NULL;
    rename_to(name, slice->uuid);
    text = g_string_new(NULL);
    add(text, "Gpu", slice->gpu);
    add(text, "Type", slice->type);
    add(text, "Door", slice_transport_name(slice->transport));
    add(text, "Name", slice->name);
    add(text, "Tenant", slice->tenant);
    add(text, "Class", slice_class_name(slice->class));
    add_number(text, "Vram", slice->vram);
    add_number(text, "Oversubscribe", slice->oversubscribe);
    add_number(text, "Compute", slice->compute);
    add_number(text, "Weight", slice->weight);
    add_number(text, "Cap", slice->cap);
    add_number(text, "Priority", slice->priority);
    add(text, "Engines", engines);
    add_flag(text, "Display", slice->display > 0);
    add_flag(text, "Started", slice->present);
    add_flag(text, "Defined", slice->defined);
    add_flag(text, "Autostart", slice->autostart);
    add(text, "User", user ? user : "");
    return g_string_free(text, FALSE);
}

static char *tenant_state(const AuditWorld *world, const char *name)
{
    const Tenant *tenant = tenants_find(world->tenants, name);
    g_autofree char *models = tenant ? g_strjoinv(",", tenant->models) : NULL;
    g_autofree char *users = tenant ? g_strjoinv(",", tenant->users) : NULL;
    GString *text;

    if (!tenant)
        return NULL;
    text = g_string_new(NULL);
    add_number(text, "Vram", tenant->vram);
    add_number(text, "Compute", tenant->compute);
    add_number(text, "Vgpus", tenant->vgpus);
    add(text, "Models", models);
    add(text, "Users", users);
    return g_string_free(text, FALSE);
}

/* @name: a path, or an address already. */
static const Gpu *find_gpu(const AuditWorld *world, const char *name)
{
    const GPtrArray *gpus = host_gpus(world->host);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        g_autofree char *path = gpu_object_path(gpu->pci->address);

        if (g_str_equal(path, name) || g_str_equal(gpu->pci->address, name))
            return gpu;
    }
    return NULL;
}

static char *reasons_of(VgpuGpu *interface)
{
    const char *const *reasons = vgpu_gpu_get_health_reasons(interface);

    return reasons ? g_strjoinv(", ", (GStrv)reasons) : g_strdup("");
}

static char *gpu_state(const AuditWorld *world, char **name)
{
    const Gpu *gpu = find_gpu(world, *name);
    VgpuGpu *interface = gpu ? host_gpu_interface(world->host, gpu->pci->address) : NULL;
    g_autofree char *reasons = NULL;
    GString *text;

    if (!interface)
        return NULL;
    reasons = reasons_of(interface);
    rename_to(name, gpu->pci->address);
    text = g_string_new(NULL);
    add(text, "Mode", vgpu_gpu_get_mode(interface));
    add(text, "WantedMode", vgpu_gpu_get_wanted_mode(interface));
    add_flag(text, "Draining", vgpu_gpu_get_draining(interface));
    add_flag(text, "Healthy", vgpu_gpu_get_healthy(interface));
    add(text, "HealthReasons", reasons);
    return g_string_free(text, FALSE);
}

char *audit_state(AuditKind kind, char **name, void *world)
{
    switch (kind) {
    case AUDIT_SLICE:
        return slice_state(world, name);
    case AUDIT_TENANT:
        return tenant_state(world, *name);
    case AUDIT_GPU:
        return gpu_state(world, name);
    default:
        return NULL;
    }
}
