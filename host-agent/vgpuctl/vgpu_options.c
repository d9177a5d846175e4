/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/vgpu_options.h"

#include "host-agent/vgpuctl/call_dict.h"
#include "host-agent/vgpuctl/command.h"

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
static gboolean dry_run;

static char *type;
static char *uuid;
static char *uri;

static char *door;
static char *name;
static gboolean ephemeral;

/* clang-format off */
#define PARAMETERS                                                                                 \
    {"vram", 0, 0, G_OPTION_ARG_STRING, &vram, "GPU memory, as 2G", "SIZE"},                       \
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
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only show what would be done", NULL}

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
    {"door", 0, 0, G_OPTION_ARG_STRING, &door, "native, guarded or vfio; required", "DOOR"},
    NAME("By which containers can ask for it, too"),
    {"ephemeral", 0, 0, G_OPTION_ARG_NONE, &ephemeral, "Remove it when its container ends", NULL},
    {"uuid", 0, 0, G_OPTION_ARG_STRING_ARRAY, &uuids, "Its UUID", "UUID"},
    PARAMETERS,
    PLACEMENT,
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry vgpu_for_domain_options[] = {
    {"type", 0, 0, G_OPTION_ARG_STRING, &type, "As \"half\"; required", "TYPE"},
    {"uuid", 0, 0, G_OPTION_ARG_STRING, &uuid, "Its UUID", "UUID"},
    PARAMETERS,
    DISPLAY,
    PLACEMENT,
    CONNECT,
    G_OPTION_ENTRY_NULL,
};

const GOptionEntry detach_options[] = {
    CONNECT,
    G_OPTION_ENTRY_NULL,
};

gboolean vgpu_options_parameters(GVariantDict *dict, GError **error)
{
    call_dict_add_text(dict, "Name", name);
    call_dict_add_text(dict, "Tenant", tenant);
    call_dict_add_text(dict, "Class", class_name);
    call_dict_add_text(dict, "Engines", engines);
    call_dict_add_number(dict, "Weight", weight);
    call_dict_add_number(dict, "Cap", cap);
    call_dict_add_number(dict, "Priority", priority);
    call_dict_add_number(dict, "Compute", compute);
    call_dict_add_flag(dict, "DryRun", dry_run);
    return call_dict_add_size(dict, "Vram", "--vram", vram, FALSE, error) &&
           call_dict_add_size(dict, "Oversubscribe", "--oversubscribe", oversubscribe, TRUE,
                              error) &&
           call_dict_add_switch(dict, "Display", "--display", display, error);
}

gboolean vgpu_options_placement(GVariantDict *dict, GError **error)
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
    if (!door) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--door is required: native, guarded or vfio; see vgpuctl(1)");
        return FALSE;
    }
    call_dict_add_text(dict, "Door", door);
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

gboolean vgpu_options_dry_run(void)
{
    return dry_run;
}
