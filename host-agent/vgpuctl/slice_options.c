/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/slice_options.h"

#include <string.h>

#include "lib/conf.h"
#include "host-agent/vgpuctl/command.h"

void call_dict_add_text(GVariantDict *dict, const char *key, const char *value)
{
    if (value)
        g_variant_dict_insert(dict, key, "s", value);
}

void call_dict_add_list(GVariantDict *dict, const char *key, char **list)
{
    if (list)
        g_variant_dict_insert(dict, key, "^as", list);
}

void call_dict_add_number(GVariantDict *dict, const char *key, int value)
{
    if (value >= 0)
        g_variant_dict_insert(dict, key, "u", (guint)value);
}

void call_dict_add_flag(GVariantDict *dict, const char *key, gboolean value)
{
    if (value)
        g_variant_dict_insert(dict, key, "b", TRUE);
}

gboolean call_dict_add_size(GVariantDict *dict, const char *key, const char *option,
                            const char *text, gboolean zero, GError **error)
{
    guint64 bytes = 0;

    if (!text)
        return TRUE;
    if (!(zero && g_str_equal(text, "0")) && !size_parse(text, &bytes)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "%s cannot be \"%s\": it must be %s%s",
                    option, text, SIZE_RULE, zero ? ", or 0" : "");
        return FALSE;
    }
    g_variant_dict_insert(dict, key, "t", bytes);
    return TRUE;
}

/* "off" or "0", "on" or "1". */
static gboolean add_switch(GVariantDict *dict, const char *key, const char *option,
                           const char *text, GError **error)
{
    static const char *const words[][2] = {{"0", "off"}, {"1", "on"}};

    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        if (!g_str_equal(text, words[i][0]) && !g_str_equal(text, words[i][1]))
            continue;
        g_variant_dict_insert(dict, key, "u", i);
        return TRUE;
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "%s cannot be \"%s\": it must be on or off",
                option, text);
    return FALSE;
}

/* A size, or a part of the GPU's memory, as 30%. */
static gboolean add_vram(GVariantDict *dict, const char *text, GError **error)
{
    g_autofree char *number = NULL;
    guint64 percent;

    if (!g_str_has_suffix(text, "%"))
        return call_dict_add_size(dict, "Vram", "--vram", text, FALSE, error);
    number = g_strndup(text, strlen(text) - 1);
    if (!g_ascii_string_to_unsigned(number, 10, 1, 100, &percent, NULL)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--vram cannot be \"%s\": it must be %s, or 1%% to 100%%", text, SIZE_RULE);
        return FALSE;
    }
    g_variant_dict_insert(dict, "VramPercent", "u", (guint32)percent);
    return TRUE;
}

/* What was given for a row: a flag, a number, or a text; NULL and below 0: nothing. */
typedef struct {
    gboolean flag;
    int number;
    char *text;
} Given;

static Given given[64];

static GOptionEntry entry_of(const SliceKey *key, Given *value)
{
    GOptionEntry entry = {
        .long_name = key->column, .description = key->option, .arg_description = key->value};

    switch (key->type) {
    case SLICE_KEY_FLAG:
        entry.arg = G_OPTION_ARG_NONE;
        entry.arg_data = &value->flag;
        break;
    case SLICE_KEY_NUMBER:
    case SLICE_KEY_LEVEL:
        entry.arg = G_OPTION_ARG_INT;
        entry.arg_data = &value->number;
        break;
    default:
        entry.arg = G_OPTION_ARG_STRING;
        entry.arg_data = &value->text;
    }
    return entry;
}

const GOptionEntry *slice_options(guint uses)
{
    static GHashTable *made;
    GArray *entries;

    if (!made) {
        made = g_hash_table_new(NULL, NULL);
        for (guint i = 0; i < slice_keys_count; i++)
            given[i].number = -1;
    }
    entries = g_hash_table_lookup(made, GUINT_TO_POINTER(uses));
    if (entries)
        return (const GOptionEntry *)entries->data;
    entries = g_array_new(TRUE, TRUE, sizeof(GOptionEntry));
    for (guint i = 0; i < slice_keys_count; i++) {
        GOptionEntry entry = entry_of(&slice_keys[i], &given[i]);

        if (slice_keys[i].option && slice_keys[i].uses & uses)
            g_array_append_val(entries, entry);
    }
    g_hash_table_insert(made, GUINT_TO_POINTER(uses), entries);
    return (const GOptionEntry *)entries->data;
}

static gboolean add_given(GVariantDict *dict, const SliceKey *key, const Given *value,
                          GError **error)
{
    g_autofree char *option = g_strconcat("--", key->column, NULL);

    if (value->flag)
        call_dict_add_flag(dict, key->name, TRUE);
    if (key->type == SLICE_KEY_NUMBER || key->type == SLICE_KEY_LEVEL)
        call_dict_add_number(dict, key->name, value->number);
    if (!value->text)
        return TRUE;
    if (key == slice_key_find("Vram"))
        return add_vram(dict, value->text, error);
    if (key->type == SLICE_KEY_BYTES)
        return call_dict_add_size(dict, key->name, option, value->text, !key->min, error);
    if (key->type == SLICE_KEY_SWITCH)
        return add_switch(dict, key->name, option, value->text, error);
    call_dict_add_text(dict, key->name, value->text);
    return TRUE;
}

gboolean slice_options_add(GVariantDict *dict, GError **error)
{
    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].option && !add_given(dict, &slice_keys[i], &given[i], error))
            return FALSE;
    return TRUE;
}

/* The options of a slice's number and place, besides its attributes. */

static int count = -1;
static char **uuids;
static char *window;
static char **gpus;
static char **not_gpus;
static char *policy;
static int numa_node = -1;
static gboolean define;
static gboolean create_dry_run;

static char *type;
static char *uuid;
static char *uri;

static char *door;

/* clang-format off */
#define DRY_RUN                                                                                    \
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &create_dry_run, "Only show what would be done", NULL}

#define PLACEMENT                                                                                  \
    {"window", 0, 0, G_OPTION_ARG_STRING, &window, "Size of the window BAR, as 256M", "SIZE"},     \
    {"gpu", 0, 0, G_OPTION_ARG_STRING_ARRAY, &gpus,                                                \
     "Only on GPUs with this address, id (10de:*) or name; may be a pattern", "GPU"},              \
    {"not-gpu", 0, 0, G_OPTION_ARG_STRING_ARRAY, &not_gpus, "Not on these", "GPU"},                \
    {"policy", 0, 0, G_OPTION_ARG_STRING, &policy, "binpack or spread", "POLICY"},                 \
    {"numa-node", 0, 0, G_OPTION_ARG_INT, &numa_node, "Near this NUMA node", "N"}

#define CONNECT                                                                                    \
    {"connect", 0, 0, G_OPTION_ARG_STRING, &uri, "Where libvirt is; default: qemu:///system", "URI"}
/* clang-format on */

/* clang-format off */
#define CREATE                                                                                     \
    {"count", 'n', 0, G_OPTION_ARG_INT, &count, "How many; either all or none are created", "N"},  \
    {"uuid", 0, 0, G_OPTION_ARG_STRING_ARRAY, &uuids, "Its UUID; once for each", "UUID"},          \
    {"define", 0, 0, G_OPTION_ARG_NONE, &define, "Keep it in mdevctl's configuration", NULL}
/* clang-format on */

const GOptionEntry vgpu_create_options[] = {
    CREATE,
    PLACEMENT,
    DRY_RUN,
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry slice_set_options[] = {
    DRY_RUN,
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry slice_create_options[] = {
    {"door", 0, 0, G_OPTION_ARG_STRING, &door,
     "vm; or for containers native, guarded or vfio; default: auto, native or guarded", "DOOR"},
    CREATE,
    PLACEMENT,
    DRY_RUN,
    G_OPTION_ENTRY_NULL,
};

#define FOR_DOMAIN                                                                                 \
    {"type", 0, 0, G_OPTION_ARG_STRING, &type, "As \"half\"; required", "TYPE"},                   \
        {"uuid", 0, 0, G_OPTION_ARG_STRING, &uuid, "Its UUID", "UUID"}, PLACEMENT, DRY_RUN,        \
        CONNECT

const GOptionEntry vgpu_for_domain_options[] = {
    FOR_DOMAIN,
    G_OPTION_ENTRY_NULL,
};

static gboolean replace;

const GOptionEntry domain_prepare_options[] = {
    FOR_DOMAIN,
    {"replace", 0, 0, G_OPTION_ARG_NONE, &replace,
     "Instead of the vGPUs that the domain requests so far", NULL},
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry detach_options[] = {
    CONNECT,
    G_OPTION_ENTRY_NULL,
};

gboolean slice_options_for_change(GVariantDict *dict, GError **error)
{
    call_dict_add_flag(dict, "DryRun", create_dry_run);
    return slice_options_add(dict, error);
}

gboolean slice_options_for_creation(GVariantDict *dict, const char *preset, GError **error)
{
    /* As many as there are UUIDs, unless the count is given. */
    if (count < 0 && uuids)
        count = (int)g_strv_length(uuids);
    call_dict_add_text(dict, "Door", door ? door : preset);
    call_dict_add_number(dict, "Count", count);
    call_dict_add_list(dict, "Uuids", uuids);
    call_dict_add_list(dict, "Gpus", gpus);
    call_dict_add_list(dict, "NotGpus", not_gpus);
    call_dict_add_text(dict, "Policy", policy);
    call_dict_add_flag(dict, "Define", define);
    if (numa_node >= 0)
        g_variant_dict_insert(dict, "NumaNode", "i", numa_node);
    return call_dict_add_size(dict, "Window", "--window", window, FALSE, error) &&
           slice_options_for_change(dict, error);
}

gboolean slice_options_for_domain(GVariantDict *dict, GError **error)
{
    g_autofree char *made_up = g_uuid_string_random();
    const char *chosen = uuid ? uuid : made_up;

    if (!type) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--type is required; \"vgpuctl type list\" shows the types that there are");
        return FALSE;
    }
    if (!g_uuid_string_is_valid(chosen)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--uuid cannot be \"%s\": it must be a UUID", chosen);
        return FALSE;
    }
    g_variant_dict_insert(dict, "Type", "s", type);
    g_variant_dict_insert_value(dict, "Uuids",
                                g_variant_new_strv((const char *[]){chosen, NULL}, -1));
    return slice_options_for_creation(dict, NULL, error);
}

const char *slice_options_uri(void)
{
    const char *preset = g_getenv("LIBVIRT_DEFAULT_URI");

    if (uri)
        return uri;
    return preset && *preset ? preset : "qemu:///system";
}

gboolean slice_options_replace(void)
{
    return replace;
}

gboolean slice_options_dry_run(void)
{
    return create_dry_run;
}
