/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/filter.h"

#include <fnmatch.h>
#include <string.h>

#include "host-agent/vgpuctl/command.h"

/* Between the driver's name and the type's. */
#define TYPE_MARK "-vgpu-"

static char **gpus;
static char **tenants;
static char **types;
static char **states;

#define GPU_OPTION                                                                                 \
    {                                                                                              \
        "gpu", 0, 0, G_OPTION_ARG_STRING_ARRAY, &gpus, "Only of this GPU; may be a pattern", "GPU" \
    }
#define TENANT_OPTION                                                                              \
    {                                                                                              \
        "tenant", 0, 0, G_OPTION_ARG_STRING_ARRAY, &tenants, "Only of this tenant; '': of none",   \
            "TENANT"                                                                               \
    }
#define TYPE_OPTION                                                                                \
    {                                                                                              \
        "type", 0, 0, G_OPTION_ARG_STRING_ARRAY, &types, "Only of this type", "TYPE"               \
    }
#define STATE_OPTION(words)                                                                        \
    {                                                                                              \
        "state", 0, 0, G_OPTION_ARG_STRING_ARRAY, &states, "Only in this state: " words, "STATE"   \
    }

const GOptionEntry gpu_list_options[] = {
    GPU_OPTION,
    STATE_OPTION("a mode, draining, healthy, unhealthy"),
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry vgpu_list_options[] = {
    GPU_OPTION,
    TENANT_OPTION,
    TYPE_OPTION,
    STATE_OPTION("running, open, closed, stopped, lost; or the engine's: ready, failed, starting"),
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry slice_list_options[] = {
    GPU_OPTION, TENANT_OPTION, TYPE_OPTION, STATE_OPTION("used, free"), G_OPTION_ENTRY_NULL,
};

const GOptionEntry type_list_options[] = {
    GPU_OPTION,
    TYPE_OPTION,
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry tenant_list_options[] = {
    TENANT_OPTION,
    G_OPTION_ENTRY_NULL,
};

gboolean filter_type_is(const char *type, const char *name)
{
    const char *own = strstr(type, TYPE_MARK);

    return g_str_equal(type, name) || (own && g_str_equal(own + strlen(TYPE_MARK), name));
}

static gboolean is_gpu(const char *value, const char *asked)
{
    return client_address_is(value, asked) || fnmatch(asked, value, 0) == 0;
}

static gboolean is_same(const char *value, const char *asked)
{
    return g_str_equal(value, asked);
}

static gboolean fits(GVariant *object, const char *key, char **asked,
                     gboolean (*is)(const char *value, const char *asked))
{
    const char *value = "";

    if (!key || !asked)
        return TRUE;
    g_variant_lookup(object, key, "&s", &value);
    for (char **at = asked; *at; at++)
        if (is(value, *at))
            return TRUE;
    return FALSE;
}

static gboolean fits_state(GVariant *object, const char *const *keys)
{
    if (!keys || !states)
        return TRUE;
    for (; *keys; keys++)
        if (fits(object, *keys, states, is_same))
            return TRUE;
    return FALSE;
}

gboolean filter_has_state(void *object, FilterIsInState is)
{
    for (char **at = states; at && *at; at++)
        if (is(object, *at))
            return TRUE;
    return !states;
}

static gboolean check_states(const Filter *filter, GError **error)
{
    g_autofree char *all = filter->words ? g_strjoinv(", ", (char **)filter->words) : NULL;

    for (char **at = states; filter->words && at && *at; at++) {
        if (g_strv_contains(filter->words, *at))
            continue;
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--state cannot be \"%s\": it must be one of %s", *at, all);
        return FALSE;
    }
    return TRUE;
}

GVariant *filter_apply(GVariant *objects, const Filter *filter, GError **error)
{
    g_autoptr(GVariant) all = objects;
    GVariantBuilder some;

    if (!check_states(filter, error))
        return NULL;
    if (!gpus && !tenants && !types && !states)
        return g_steal_pointer(&all);
    g_variant_builder_init(&some, G_VARIANT_TYPE("aa{sv}"));
    for (gsize i = 0; i < g_variant_n_children(all); i++) {
        g_autoptr(GVariant) object = g_variant_get_child_value(all, i);

        if (fits(object, filter->gpu, gpus, is_gpu) &&
            fits(object, filter->tenant, tenants, is_same) &&
            fits(object, filter->type, types, filter_type_is) && fits_state(object, filter->states))
            g_variant_builder_add_value(&some, object);
    }
    return g_variant_ref_sink(g_variant_builder_end(&some));
}
