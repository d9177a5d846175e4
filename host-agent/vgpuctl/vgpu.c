/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/vgpu.h"

#include "lib/conf.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/output.h"

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
    {"GPU", "Gpu", dict_text, 0},
    {"TYPE", "Type", dict_text, 0},
    {"DEVICE", "Device", dict_text, COLUMN_STATE},
    {"ENGINE", "Engine", dict_text, COLUMN_STATE},
    {"VRAM", "Vram", dict_bytes, 0},
    {"USED", "VramUsed", dict_bytes, COLUMN_WIDE},
    {"CLASS", "Class", dict_text, 0},
    {"COMPUTE", "Compute", dict_number, COLUMN_WIDE},
    {"WEIGHT", "Weight", dict_number, COLUMN_WIDE},
    {"CAP", "Cap", dict_number, COLUMN_WIDE},
    {"DEFINED", "Defined", dict_flag, COLUMN_WIDE},
    {"BOOT", "Autostart", dict_flag, COLUMN_WIDE},
    {"TENANT", "Tenant", dict_text, 0},
    {"VM", "Vm", dict_text, 0},
    {"NAME", "Name", dict_text, 0},
};

static const Column lines[] = {
    {"vGPU", "Uuid", dict_text, 0},
    {"Name", "Name", dict_text, 0},
    {"GPU", "Gpu", dict_text, 0},
    {"Type", "Type", dict_text, 0},
    {"Tenant", "Tenant", dict_text, 0},
    {"Class", "Class", dict_text, 0},
    {"VM", "Vm", dict_text, 0},
    {"Created for VM", "Domain", dict_text, 0},
    {"Defined", "Defined", dict_flag, 0},
    {"Started at boot", "Autostart", dict_flag, 0},
    {"Suspended", "Suspended", dict_flag, 0},
    {"Device", "Device", dict_text, COLUMN_STATE},
    {"Engine", "Engine", dict_text, COLUMN_STATE},
    {"Engine failure", "Failure", dict_text, 0},
    {"Engines lost", "EngineLosses", dict_number, 0},
    {"VRAM", "Vram", dict_bytes, 0},
    {"VRAM used", "VramUsed", dict_bytes, 0},
    {"VRAM peak", "PeakVram", dict_bytes, 0},
    {"Oversubscription", "Oversubscribe", dict_bytes, 0},
    {"Oversubscription used", "Spilled", dict_bytes, 0},
    {"Spill target", "SpillKind", dict_text, 0},
    {"Window", "Window", dict_bytes, 0},
    {"Compute", "Compute", dict_number, 0},
    {"Weight", "Weight", dict_number, 0},
    {"Cap", "Cap", dict_number, 0},
    {"Priority", "Priority", dict_number, 0},
    {"GPU's engines", "Engines", dict_text, 0},
    {"Display", "Display", dict_number, 0},
    {"CUDA", "Cuda", vgpu_cuda_text, 0},
    {"Job", "Job", dict_text, 0},
    {"Replica", "Replica", dict_text, 0},
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

/* The options of a command as a dictionary for vgpud. Options that are not given are not in it. */

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

/* "off" or "0", "on" or "1"; NULL: not given. VGPUCTL_USAGE names @option. */
static gboolean call_dict_add_switch(GVariantDict *dict, const char *key, const char *option,
                                     const char *text, GError **error)
{
    static const char *const words[][2] = {{"0", "off"}, {"1", "on"}};

    if (!text)
        return TRUE;
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

gboolean call_dict_add_vram(GVariantDict *dict, const char *text, GError **error)
{
    g_autofree char *number = NULL;
    guint64 percent;

    if (!text || !g_str_has_suffix(text, "%"))
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

/* The options that describe a vGPU and its place, for all commands that create or change one. */

static int count = -1;
static char **uuids;
static char *tenant;
static char *class_name;
static char *vram;
static char *window;
static int weight = -1;
static int cap = -1;
static int priority = -1;
static int compute = -1;
static char *oversubscribe;
static char *display;
static char *engines;
static char **gpus;
static char **not_gpus;
static char *policy;
static int numa_node = -1;
static char *job;
static char *replica;
static gboolean define;
static gboolean autostart;
static gboolean create_dry_run;

static char *type;
static char *uuid;
static char *uri;

static char *door;
static char *name;
static gboolean ephemeral;

/* clang-format off */
#define PARAMETERS                                                                                 \
    {"vram", 0, 0, G_OPTION_ARG_STRING, &vram, "GPU memory, as 2G or 30%", "SIZE"},                \
    {"weight", 0, 0, G_OPTION_ARG_INT, &weight, "Share of GPU time, 1 to 10000", "N"},             \
    {"cap", 0, 0, G_OPTION_ARG_INT, &cap, "Maximum GPU time, 1 to 100 per cent", "N"},             \
    {"priority", 0, 0, G_OPTION_ARG_INT, &priority, "0 to 15, higher goes first", "N"},            \
    {"compute", 0, 0, G_OPTION_ARG_INT, &compute, "Promised per cent of the GPU", "N"},            \
    {"oversubscribe", 0, 0, G_OPTION_ARG_STRING, &oversubscribe,                                   \
     "Host memory beyond its GPU memory, as 1G; 0: none", "SIZE"},                                 \
    {"engines", 0, 0, G_OPTION_ARG_STRING, &engines,                                               \
     "Of graphics,compute,transfer,decode,encode; or all", "LIST"},                                \
    {"class", 0, 0, G_OPTION_ARG_STRING, &class_name, "guaranteed, burstable or best-effort",      \
     "CLASS"},                                                                                     \
    {"tenant", 0, 0, G_OPTION_ARG_STRING, &tenant, "Whose quota it counts against", "TENANT"},     \
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &create_dry_run, "Only show what would be done", NULL}

#define PLACEMENT                                                                                  \
    {"window", 0, 0, G_OPTION_ARG_STRING, &window, "Size of the window BAR, as 256M", "SIZE"},     \
    {"gpu", 0, 0, G_OPTION_ARG_STRING_ARRAY, &gpus,                                                \
     "Only on GPUs with this address, id (10de:*) or name; may be a pattern", "GPU"},              \
    {"not-gpu", 0, 0, G_OPTION_ARG_STRING_ARRAY, &not_gpus, "Not on these", "GPU"},                \
    {"policy", 0, 0, G_OPTION_ARG_STRING, &policy, "binpack or spread", "POLICY"},                 \
    {"numa-node", 0, 0, G_OPTION_ARG_INT, &numa_node, "Near this NUMA node", "N"},                 \
    {"job", 0, 0, G_OPTION_ARG_STRING, &job, "Near the other GPUs of this job", "JOB"},            \
    {"replica", 0, 0, G_OPTION_ARG_STRING, &replica, "Away from other replicas of this name",      \
     "REPLICA"}

#define NAME(what) {"name", 0, 0, G_OPTION_ARG_STRING, &name, what, "NAME"}

#define DISPLAY {"display", 0, 0, G_OPTION_ARG_STRING, &display, "A display: on or off", "on|off"}

#define CONNECT                                                                                    \
    {"connect", 0, 0, G_OPTION_ARG_STRING, &uri, "Where libvirt is; default: qemu:///system", "URI"}
/* clang-format on */

const GOptionEntry vgpu_create_options[] = {
    {"count", 'n', 0, G_OPTION_ARG_INT, &count, "How many; either all or none are created", "N"},
    {"uuid", 0, 0, G_OPTION_ARG_STRING_ARRAY, &uuids, "Its UUID; once for each", "UUID"},
    NAME("Its name, for commands; with a count of 1"),
    PARAMETERS,
    DISPLAY,
    PLACEMENT,
    {"define", 0, 0, G_OPTION_ARG_NONE, &define, "Keep it in mdevctl's configuration", NULL},
    {"autostart", 0, 0, G_OPTION_ARG_NONE, &autostart, "The same, and start it at boot", NULL},
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry vgpu_set_options[] = {
    NAME("Another name for it; '': none"),
    PARAMETERS,
    DISPLAY,
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry slice_create_options[] = {
    {"door", 0, 0, G_OPTION_ARG_STRING, &door, "auto (the default), native, guarded or vfio",
     "DOOR"},
    NAME("By which containers can ask for it, too"),
    {"ephemeral", 0, 0, G_OPTION_ARG_NONE, &ephemeral, "Remove it when its container ends", NULL},
    {"uuid", 0, 0, G_OPTION_ARG_STRING_ARRAY, &uuids, "Its UUID", "UUID"},
    PARAMETERS,
    PLACEMENT,
    G_OPTION_ENTRY_NULL,
};

#define FOR_DOMAIN                                                                                 \
    {"type", 0, 0, G_OPTION_ARG_STRING, &type, "As \"half\"; required", "TYPE"},                   \
        {"uuid", 0, 0, G_OPTION_ARG_STRING, &uuid, "Its UUID", "UUID"}, PARAMETERS, DISPLAY,       \
        PLACEMENT, CONNECT

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
    call_dict_add_text(dict, "Name", name);
    call_dict_add_text(dict, "Tenant", tenant);
    call_dict_add_text(dict, "Class", class_name);
    call_dict_add_text(dict, "Engines", engines);
    call_dict_add_number(dict, "Weight", weight);
    call_dict_add_number(dict, "Cap", cap);
    call_dict_add_number(dict, "Priority", priority);
    call_dict_add_number(dict, "Compute", compute);
    call_dict_add_flag(dict, "DryRun", create_dry_run);
    return call_dict_add_vram(dict, vram, error) &&
           call_dict_add_size(dict, "Oversubscribe", "--oversubscribe", oversubscribe, TRUE,
                              error) &&
           call_dict_add_switch(dict, "Display", "--display", display, error);
}

/* What CreateVgpus takes besides these and Type. */
static gboolean vgpu_options_placement(GVariantDict *dict, GError **error)
{
    /* As many as there are UUIDs, unless the count is given. */
    if (count < 0 && uuids)
        count = (int)g_strv_length(uuids);
    call_dict_add_number(dict, "Count", count);
    call_dict_add_list(dict, "Uuids", uuids);
    call_dict_add_list(dict, "Gpus", gpus);
    call_dict_add_list(dict, "NotGpus", not_gpus);
    call_dict_add_text(dict, "Policy", policy);
    call_dict_add_text(dict, "Job", job);
    call_dict_add_text(dict, "Replica", replica);
    call_dict_add_flag(dict, "Define", define);
    call_dict_add_flag(dict, "Autostart", autostart);
    if (numa_node >= 0)
        g_variant_dict_insert(dict, "NumaNode", "i", numa_node);
    return call_dict_add_size(dict, "Window", "--window", window, FALSE, error);
}

gboolean vgpu_options_for_slice(GVariantDict *dict, GError **error)
{
    call_dict_add_text(dict, "Door", door ? door : "auto");
    call_dict_add_flag(dict, "Ephemeral", ephemeral);
    return vgpu_options_parameters(dict, error) && vgpu_options_placement(dict, error);
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
    return vgpu_options_parameters(dict, error) && vgpu_options_placement(dict, error);
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
    if (!vgpu_options_parameters(&dict, error) || !vgpu_options_placement(&dict, error))
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
