/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/vgpu.h"

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/output.h"
#include "host-agent/vgpuctl/slice_options.h"

/* vgpuctl vgpu list, show: vGPUs, whoever created them. */

char *vgpu_cuda_text(GVariant *vgpu, const char *key)
{
    gboolean has_cuda = FALSE;
    gboolean has_vulkan = TRUE;

    g_variant_lookup(vgpu, key, "b", &has_cuda);
    g_variant_lookup(vgpu, "Vulkan", "b", &has_vulkan);
    return has_cuda && !has_vulkan ? g_strdup("yes, without Vulkan") : dict_flag(vgpu, key);
}

static const Column columns[] = {
    {"VGPU", "Uuid", dict_text, 0},
    {"GPU", "Gpu", NULL, 0},
    {"TYPE", "Type", NULL, 0},
    {"DEVICE", "Device", dict_text, COLUMN_STATE},
    {"ENGINE", "Engine", dict_text, COLUMN_STATE},
    {"VRAM", "Vram", NULL, 0},
    {"USED", "VramUsed", dict_bytes, COLUMN_WIDE},
    {"CLASS", "Class", NULL, 0},
    {"COMPUTE", "Compute", NULL, COLUMN_WIDE},
    {"WEIGHT", "Weight", NULL, COLUMN_WIDE},
    {"CAP", "Cap", NULL, COLUMN_WIDE},
    {"DEFINED", "Defined", NULL, COLUMN_WIDE},
    {"BOOT", "Autostart", NULL, COLUMN_WIDE},
    {"TENANT", "Tenant", NULL, 0},
    {"VM", "Vm", dict_text, 0},
    {"NAME", "Name", NULL, 0},
};

static const Column lines[] = {
    {"VM", "Vm", dict_text, 0},
    {"Device", "Device", dict_text, COLUMN_STATE},
    {"Engine", "Engine", dict_text, COLUMN_STATE},
    {"Engine failure", "Failure", dict_text, 0},
    {"Engines lost", "EngineLosses", dict_number, 0},
    {"VRAM used", "VramUsed", dict_bytes, 0},
    {"VRAM peak", "PeakVram", dict_bytes, 0},
    {"Oversubscription used", "Spilled", dict_bytes, 0},
    {"Spill target", "SpillKind", dict_text, 0},
    {"Window", "Window", dict_bytes, 0},
    {"CUDA", "Cuda", vgpu_cuda_text, 0},
    {"Requests", "Requests", dict_number, 0},
    {"Doorbells", "Doorbells", dict_number, 0},
    {"Interrupts", "Interrupts", dict_number, 0},
};

const Listing vgpu_listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .lines = lines,
    .lines_count = G_N_ELEMENTS(lines),
    .name = "Uuid",
    .title = "vGPU",
    .is_slice = TRUE,
    .none = "This host has no vGPU.",
};

static const char *const state_keys[] = {"Device", "Engine", NULL};
static const char *const states[] = {"running", "open",   "closed",   "stopped", "lost", "removed",
                                     "ready",   "failed", "starting", "none",    NULL};
static const Filter filter = {"Gpu", "Tenant", "Type", state_keys, states};

/*
 * vgpud's answer to @method, a text for each of some vGPUs: by UUID, of texts that are the
 * @answer's. NULL with @error.
 */
static GHashTable *texts_get(const Client *client, const char *method, GVariant **answer,
                             GError **error)
{
    GHashTable *texts;
    GVariantIter iter;
    char *uuid, *text;

    *answer = client_get(client, method, NULL, NULL, error);
    if (!*answer)
        return NULL;
    texts = g_hash_table_new(g_str_hash, g_str_equal);
    g_variant_iter_init(&iter, *answer);
    while (g_variant_iter_next(&iter, "{&s&s}", &uuid, &text))
        g_hash_table_insert(texts, uuid, text);
    return texts;
}

static GVariant *text_of(GHashTable *texts, const char *uuid)
{
    const char *text = g_hash_table_lookup(texts, uuid);

    return g_variant_new_string(text ? text : "");
}

/* @vgpu, of ListVgpus, with its VM as one more member. */
static GVariant *with_vm(GVariant *vgpu, GHashTable *vms)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(vgpu);
    const char *uuid = "";

    g_variant_lookup(vgpu, "Uuid", "&s", &uuid);
    g_variant_dict_insert_value(&dict, "Vm", text_of(vms, uuid));
    return g_variant_dict_end(&dict);
}

/* All vGPUs that the caller may see, of aa{sv}, each with the VM that has it as its member Vm. */
static GVariant *vgpu_list_all(const Client *client, GError **error)
{
    g_autoptr(GVariant) vgpus = client_get(client, "ListVgpus", NULL, "listing vGPUs", error);
    g_autoptr(GVariant) answer = NULL;
    g_autoptr(GHashTable) vms = vgpus ? texts_get(client, "ListVms", &answer, error) : NULL;
    GVariantBuilder list;

    if (!vms)
        return NULL;
    warn_of_meter(vgpus);
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (gsize i = 0; i < g_variant_n_children(vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, i);

        g_variant_builder_add_value(&list, with_vm(vgpu, vms));
    }
    return g_variant_ref_sink(g_variant_builder_end(&list));
}

/* The members of ListVgpusShort's tuples, in the words of ListVgpus, and two that are added. */
static const char *const short_keys[] = {"Uuid", "Gpu",   "Type",   "Device", "Engine",
                                         "Vram", "Class", "Tenant", "Vm",     "Name"};

#define SHORT_KEYS G_N_ELEMENTS(short_keys)

/*
 * @keys: the @short_keys. There may be a thousand vGPUs, so nothing is parsed or copied for each
 * that need not be.
 */
static GVariant *object_of_short(GVariant *vgpu, GVariant *const *keys, GHashTable *vms,
                                 GHashTable *names)
{
    GVariant *values[SHORT_KEYS], *members[SHORT_KEYS];
    const char *uuid;

    for (gsize i = 0; i < SHORT_KEYS - 2; i++)
        values[i] = g_variant_get_child_value(vgpu, i);
    uuid = g_variant_get_string(values[0], NULL);
    values[SHORT_KEYS - 2] = text_of(vms, uuid);
    values[SHORT_KEYS - 1] = text_of(names, uuid);
    for (gsize i = 0; i < SHORT_KEYS; i++)
        members[i] = g_variant_new_dict_entry(keys[i], g_variant_new_variant(values[i]));
    for (gsize i = 0; i < SHORT_KEYS - 2; i++)
        g_variant_unref(values[i]);
    return g_variant_new_array(G_VARIANT_TYPE("{sv}"), members, SHORT_KEYS);
}

static GVariant *objects_of_short(GVariant *vgpus, GHashTable *vms, GHashTable *names)
{
    GVariant *keys[SHORT_KEYS];
    GVariantBuilder list;

    for (gsize i = 0; i < SHORT_KEYS; i++)
        keys[i] = g_variant_ref_sink(g_variant_new_string(short_keys[i]));
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (gsize i = 0; i < g_variant_n_children(vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, i);

        g_variant_builder_add_value(&list, object_of_short(vgpu, keys, vms, names));
    }
    for (gsize i = 0; i < SHORT_KEYS; i++)
        g_variant_unref(keys[i]);
    return g_variant_ref_sink(g_variant_builder_end(&list));
}

/* The table alone needs little of all that there is to know. */
static GVariant *list_short(const Client *client, GError **error)
{
    g_autoptr(GVariant) vgpus = client_get(client, "ListVgpusShort", NULL, "listing vGPUs", error);
    g_autoptr(GVariant) vm_answer = NULL, name_answer = NULL;
    g_autoptr(GHashTable) vms = vgpus ? texts_get(client, "ListVms", &vm_answer, error) : NULL;
    g_autoptr(GHashTable) names = vms ? texts_get(client, "ListNames", &name_answer, error) : NULL;

    return names ? objects_of_short(vgpus, vms, names) : NULL;
}

gboolean vgpu_list_command(Client *client, const Options *options, char **args, GError **error)
{
    gboolean full = output_is_document(options) || options->format == FORMAT_WIDE;
    GVariant *list = full ? vgpu_list_all(client, error) : list_short(client, error);

    (void)args;
    return objects_list(options, &vgpu_listing, list, &filter, error);
}

gboolean vgpu_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) vgpus = vgpu_list_all(client, error);

    return vgpus && objects_show(options, &vgpu_listing, vgpus, args, object_is_slice, "vGPU",
                                 "vgpu list", error);
}

/* The options that describe a vGPU's place and number, besides its attributes. */

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

const GOptionEntry vgpu_create_options[] = {
    {"count", 'n', 0, G_OPTION_ARG_INT, &count, "How many; either all or none are created", "N"},
    {"uuid", 0, 0, G_OPTION_ARG_STRING_ARRAY, &uuids, "Its UUID; once for each", "UUID"},
    {"define", 0, 0, G_OPTION_ARG_NONE, &define, "Keep it in mdevctl's configuration", NULL},
    PLACEMENT,
    DRY_RUN,
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry vgpu_set_options[] = {
    DRY_RUN,
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry slice_create_options[] = {
    {"door", 0, 0, G_OPTION_ARG_STRING, &door, "auto (the default), native, guarded or vfio",
     "DOOR"},
    {"uuid", 0, 0, G_OPTION_ARG_STRING_ARRAY, &uuids, "Its UUID", "UUID"},
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

/* What SetVgpu takes, into @dict. VGPUCTL_USAGE names the option. */
static gboolean vgpu_options_parameters(GVariantDict *dict, GError **error)
{
    call_dict_add_flag(dict, "DryRun", create_dry_run);
    return slice_options_add(dict, error);
}

/* What CreateVgpus takes besides Type. */
static gboolean vgpu_options_all(GVariantDict *dict, GError **error)
{
    /* As many as there are UUIDs, unless the count is given. */
    if (count < 0 && uuids)
        count = (int)g_strv_length(uuids);
    call_dict_add_number(dict, "Count", count);
    call_dict_add_list(dict, "Uuids", uuids);
    call_dict_add_list(dict, "Gpus", gpus);
    call_dict_add_list(dict, "NotGpus", not_gpus);
    call_dict_add_text(dict, "Policy", policy);
    call_dict_add_flag(dict, "Define", define);
    if (numa_node >= 0)
        g_variant_dict_insert(dict, "NumaNode", "i", numa_node);
    return call_dict_add_size(dict, "Window", "--window", window, FALSE, error) &&
           vgpu_options_parameters(dict, error);
}

gboolean vgpu_options_for_slice(GVariantDict *dict, GError **error)
{
    call_dict_add_text(dict, "Door", door ? door : "auto");
    return vgpu_options_all(dict, error);
}

gboolean vgpu_options_for_domain(GVariantDict *dict, GError **error)
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
    return vgpu_options_all(dict, error);
}

const char *vgpu_options_uri(void)
{
    const char *preset = g_getenv("LIBVIRT_DEFAULT_URI");

    if (uri)
        return uri;
    return preset && *preset ? preset : "qemu:///system";
}

gboolean vgpu_options_replace(void)
{
    return replace;
}

gboolean vgpu_options_dry_run(void)
{
    return create_dry_run;
}

/* vgpuctl vgpu create, set, start, stop, remove. */

static gboolean remove_dry_run;

const GOptionEntry vgpu_remove_options[] = {
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &remove_dry_run, "Only check whether it is possible",
     NULL},
    G_OPTION_ENTRY_NULL,
};

gboolean vgpu_create_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) vgpus = NULL;
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    g_variant_dict_insert(&dict, "Type", "s", args[0]);
    if (!vgpu_options_all(&dict, error))
        return FALSE;
    vgpus = client_get(client, "CreateVgpus", g_variant_new("(@a{sv})", g_variant_dict_end(&dict)),
                       "creating vGPUs", error);
    if (!vgpus)
        return FALSE;
    listing_print(options, &vgpu_listing, vgpus);
    warn_of_arbiters(options, vgpus);
    return TRUE;
}

/**
 * Change - what is done to each vGPU
 * @doing: as "removing vGPU", for the progress line
 */
typedef struct {
    const char *method;
    const char *doing;
    GVariant *options;
} Change;

static gboolean change(Client *client, const char *name, void *data, GError **error)
{
    const Change *change = data;
    g_autofree char *what = g_strdup_printf("%s %s", change->doing, name);
    g_autoptr(GVariant) answer = client_call(
        client, change->method, g_variant_new("(s@a{sv})", name, change->options), what, error);

    return answer != NULL;
}

/* @dict: consumed. */
static gboolean change_each(Client *client, char **names, const char *method, const char *doing,
                            GVariant *dict, GError **error)
{
    g_autoptr(GVariant) options = g_variant_ref_sink(dict);
    Change all = {method, doing, options};

    return each_name(client, names, doing, change, &all, error);
}

gboolean vgpu_set_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    return vgpu_options_parameters(&dict, error) &&
           change_each(client, args, "SetVgpu", "changing vGPU", g_variant_dict_end(&dict), error);
}

gboolean slice_set_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    return vgpu_options_parameters(&dict, error) &&
           change_each(client, args, "SetSlice", "changing slice", g_variant_dict_end(&dict),
                       error);
}

gboolean vgpu_start_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return change_each(client, args, "StartVgpu", "starting vGPU", g_variant_new("a{sv}", NULL),
                       error);
}

gboolean vgpu_stop_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return change_each(client, args, "StopVgpu", "stopping vGPU", g_variant_new("a{sv}", NULL),
                       error);
}

gboolean vgpu_remove_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    call_dict_add_flag(&dict, "DryRun", remove_dry_run);
    return change_each(client, args, "RemoveVgpu", "removing vGPU", g_variant_dict_end(&dict),
                       error);
}
