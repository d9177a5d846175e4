/* SPDX-License-Identifier: MIT */
/* vgpuctl config export: what was set by command, as files for /etc/vgpu. */
#include <errno.h>
#include <string.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/config_state.h"
#include "lib/gpus.h"

#define TENANTS_SUBDIR "tenants.d"

/* What gpus.conf has now, comments included, with the modes that were set by command. NULL with
 * @error. */
static char *gpus_text(const ConfigState *state, HostRoot *root, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(GKeyFile) file = root_read_keys(root, GPUS_CONF, G_KEY_FILE_KEEP_COMMENTS, &cause);

    if (!file && !g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
        g_autofree char *path = root_path(root, GPUS_CONF, NULL);

        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "cannot use %s: %s", path,
                    cause->message);
        return NULL;
    }
    if (!file)
        file = g_key_file_new();
    for (guint i = 0; i < state->gpus->len; i++) {
        const ConfigGpu *gpu = g_ptr_array_index(state->gpus, i);
        g_autofree char *group = g_strconcat("gpu ", gpu->address, NULL);

        g_key_file_set_string(file, group, "mode", gpu->mode);
        /* A number of partitions is of the mode that had it. */
        if (!g_str_equal(gpu->mode, gpu_mode_name(GPU_MODE_PARTITIONED)))
            g_key_file_remove_key(file, group, "partitions", NULL);
    }
    return g_key_file_to_data(file, NULL, NULL);
}

/* Writes a file, or prints it after its name if @dir is NULL. */
static gboolean put(const Options *options, const char *dir, const char *name, const char *text,
                    GError **error)
{
    g_autofree char *path = g_build_filename(dir ? dir : "/etc/vgpu", name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    g_autoptr(GError) cause = NULL;

    if (!dir) {
        fprintf(options->out, "# %s\n%s\n", path, text);
        return TRUE;
    }
    if (g_mkdir_with_parents(parent, 0755) < 0) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "cannot create %s: %s", parent,
                    g_strerror(errno));
        return FALSE;
    }
    if (!g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, &cause)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "cannot write %s: %s", path,
                    cause->message);
        return FALSE;
    }
    output_line(options, "wrote %s", path);
    return TRUE;
}

/* The file below @dir that declares the tenant; a new one if none does. */
static char *tenant_file(const ConfigTenant *tenant, const GPtrArray *declared)
{
    const TenantEntry *entry = tenants_conf_find(declared, tenant->entry.name);
    g_autofree char *base = entry ? g_path_get_basename(entry->file) : NULL;

    return entry ? g_strconcat(TENANTS_SUBDIR "/", base, NULL)
                 : g_strconcat(TENANTS_SUBDIR "/", tenant->entry.name, ".conf", NULL);
}

static const ConfigTenant *set_by_command(const ConfigState *state, const char *name)
{
    for (guint i = 0; i < state->tenants->len; i++) {
        const ConfigTenant *tenant = g_ptr_array_index(state->tenants, i);

        if (g_str_equal(tenant->entry.name, name))
            return tenant;
    }
    return NULL;
}

/* The file of @tenant with all tenants that it declares, as they are now. */
static char *tenant_text(const ConfigState *state, const ConfigTenant *tenant,
                         const GPtrArray *declared)
{
    const TenantEntry *own = tenants_conf_find(declared, tenant->entry.name);
    GString *text = g_string_new(NULL);

    for (guint i = 0; own && i < declared->len; i++) {
        const TenantEntry *entry = g_ptr_array_index(declared, i);
        const ConfigTenant *set = set_by_command(state, entry->name);
        g_autofree char *group = tenants_conf_format(set ? &set->entry : entry);

        if (g_str_equal(entry->file, own->file))
            g_string_append_printf(text, "%s%s", text->len ? "\n" : "", group);
    }
    if (!own) {
        g_autofree char *group = tenants_conf_format(&tenant->entry);

        g_string_append(text, group);
    }
    return g_string_free(text, FALSE);
}

static gboolean export_tenants(const ConfigState *state, const Options *options, const char *dir,
                               GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(GPtrArray) declared = tenants_conf_load(options->root, &cause);

    if (!declared) {
        g_set_error_literal(error, VGPUCTL_ERROR, VGPUCTL_FAILED, cause->message);
        return FALSE;
    }
    for (guint i = 0; i < state->tenants->len; i++) {
        const ConfigTenant *tenant = g_ptr_array_index(state->tenants, i);
        g_autofree char *name = tenant_file(tenant, declared);
        g_autofree char *text = tenant_text(state, tenant, declared);

        if (!put(options, dir, name, text, error))
            return FALSE;
    }
    return TRUE;
}

gboolean config_export_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(ConfigState) state = config_state_read(client, error);
    g_autofree char *gpus = NULL;

    if (!state)
        return FALSE;
    if (!state->gpus->len && !state->tenants->len) {
        output_line(options, "Nothing is set by command: /etc/vgpu declares all there is.");
        return TRUE;
    }
    if (state->gpus->len) {
        gpus = gpus_text(state, options->root, error);
        if (!gpus || !put(options, args[0], "gpus.conf", gpus, error))
            return FALSE;
    }
    return export_tenants(state, options, args[0], error);
}
