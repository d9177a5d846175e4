/* SPDX-License-Identifier: MIT */
#include "lib/tenants_conf.h"

#include "lib/conf.h"

#define TENANTS_DIR "/etc/vgpu/tenants.d"

#define NO_LIMIT     "0"
#define COMPUTE_MAX  1000000
#define VGPUS_MAX    1000000
#define LIST_BETWEEN ";"

static const char *const dirs[] = {TENANTS_DIR, NULL};
static const char *const keys[] = {"vram",   "compute", "vgpus", "displaced",
                                   "models", "users",   NULL};

void tenant_free(Tenant *tenant)
{
    g_free(tenant->name);
    g_free(tenant->file);
    g_strfreev(tenant->models);
    g_strfreev(tenant->users);
    g_free(tenant);
}

Tenant *tenant_copy(const Tenant *tenant)
{
    Tenant *copy = g_memdup2(tenant, sizeof(*tenant));

    copy->name = g_strdup(tenant->name);
    copy->file = g_strdup(tenant->file);
    copy->models = g_strdupv(tenant->models);
    copy->users = g_strdupv(tenant->users);
    return copy;
}

static gboolean read_bytes(const ConfGroup *group, const char *key, guint64 *bytes, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, key, &cause);

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text || g_str_equal(text, NO_LIMIT) || size_parse(text, bytes))
        return TRUE;
    conf_bad_value(group, key, text, SIZE_RULE ", or 0 for no limit", error);
    return FALSE;
}

/* NULL with @error. */
static char **read_list(const ConfGroup *group, const char *key, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, key, &cause);
    g_auto(GStrv) parts = g_strsplit(text ? text : "", LIST_BETWEEN, -1);
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return NULL;
    }
    for (char **part = parts; *part; part++)
        if (*g_strstrip(*part))
            g_strv_builder_add(list, *part);
    return g_strv_builder_end(list);
}

gboolean tenant_name_valid(const char *name)
{
    return g_regex_match_simple("^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$", name, G_REGEX_DOLLAR_ENDONLY,
                                0);
}

static gboolean check_name(const ConfGroup *group, const GPtrArray *tenants, GError **error)
{
    const Tenant *other = tenants_conf_find(tenants, group->name);

    if (!tenant_name_valid(group->name)) {
        g_set_error(
            error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
            "%s: [%s]: a tenant's name must be up to 63 letters, digits, \"_\", \"-\" and \".\"",
            group->file, group->group);
        return FALSE;
    }
    if (!other)
        return TRUE;
    g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                "%s: [%s]: the tenant is declared in %s already; keep one of them", group->file,
                group->group, other->file);
    return FALSE;
}

static gboolean tenant_add(const ConfGroup *group, gpointer tenants, GError **error)
{
    Tenant *tenant;

    if (!check_name(group, tenants, error))
        return FALSE;
    tenant = g_new0(Tenant, 1);
    g_ptr_array_add(tenants, tenant);
    tenant->name = g_strdup(group->name);
    tenant->file = g_strdup(group->file);
    tenant->models = read_list(group, "models", error);
    tenant->users = tenant->models ? read_list(group, "users", error) : NULL;
    return tenant->users && read_bytes(group, "vram", &tenant->vram, error) &&
           read_bytes(group, "displaced", &tenant->displaced, error) &&
           conf_number(group, "compute", 0, COMPUTE_MAX, 0, &tenant->compute, error) &&
           conf_number(group, "vgpus", 0, VGPUS_MAX, 0, &tenant->vgpus, error);
}

GPtrArray *tenants_conf_load(HostRoot *root, GError **error)
{
    g_autoptr(GPtrArray) tenants = g_ptr_array_new_with_free_func((GDestroyNotify)tenant_free);
    g_autoptr(GPtrArray) files = conf_list(root, dirs, error);

    for (guint i = 0; files && i < files->len; i++)
        if (!conf_foreach(root, g_ptr_array_index(files, i), "tenant", keys, tenant_add, tenants,
                          error))
            return NULL;
    return files ? g_steal_pointer(&tenants) : NULL;
}

const Tenant *tenants_conf_find(const GPtrArray *tenants, const char *name)
{
    for (guint i = 0; i < tenants->len; i++) {
        const Tenant *tenant = g_ptr_array_index(tenants, i);

        if (g_str_equal(tenant->name, name))
            return tenant;
    }
    return NULL;
}

/* In the largest unit that leaves no rest: "8G", "1536M". */
static char *size_text(guint64 bytes)
{
    static const char units[] = "KMGT";
    guint unit = 0;

    bytes /= 1024;
    while (bytes && bytes % 1024 == 0 && units[unit + 1]) {
        bytes /= 1024;
        unit++;
    }
    return g_strdup_printf("%" G_GUINT64_FORMAT "%c", bytes, units[unit]);
}

static void add_list(GString *text, const char *key, char **list)
{
    g_autofree char *value = g_strjoinv(LIST_BETWEEN, list);

    if (*value)
        g_string_append_printf(text, "%s=%s\n", key, value);
}

char *tenants_conf_format(const Tenant *tenant)
{
    GString *text = g_string_new(NULL);
    g_autofree char *vram = size_text(tenant->vram);
    g_autofree char *displaced = size_text(tenant->displaced);

    g_string_append_printf(text, "[tenant %s]\n", tenant->name);
    if (tenant->vram)
        g_string_append_printf(text, "vram=%s\n", vram);
    if (tenant->compute)
        g_string_append_printf(text, "compute=%u\n", tenant->compute);
    if (tenant->vgpus)
        g_string_append_printf(text, "vgpus=%u\n", tenant->vgpus);
    if (tenant->displaced)
        g_string_append_printf(text, "displaced=%s\n", displaced);
    add_list(text, "models", tenant->models);
    add_list(text, "users", tenant->users);
    return g_string_free(text, FALSE);
}
