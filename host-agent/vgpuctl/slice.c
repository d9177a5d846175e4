/* SPDX-License-Identifier: MIT */
/* vgpuctl slice: parts of GPUs, for VMs (door vm) and for containers (the other doors). */
#include "host-agent/vgpuctl/slice.h"

#include <errno.h>
#include <sys/stat.h>

#include "host-agent/doctor/doctor.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/output.h"
#include "host-agent/vgpuctl/slice_options.h"

GVariant *slices_get(const Client *client, const char *const *doors, const char *const *keys,
                     GError **error)
{
    g_auto(GVariantDict) filter = G_VARIANT_DICT_INIT(NULL);

    call_dict_add_list(&filter, "Doors", (char **)doors);
    call_dict_add_list(&filter, "Keys", (char **)keys);
    return client_get(client, "FindSlices", g_variant_new("(@a{sv})", g_variant_dict_end(&filter)),
                      "listing slices", error);
}

/* "yes", "no", "yes, without Vulkan". */
static char *cuda_text(GVariant *slice, const char *key)
{
    gboolean has_cuda = FALSE;
    gboolean has_vulkan = TRUE;

    g_variant_lookup(slice, key, "b", &has_cuda);
    g_variant_lookup(slice, "Vulkan", "b", &has_vulkan);
    return has_cuda && !has_vulkan ? g_strdup("yes, without Vulkan") : dict_flag(slice, key);
}

static const Column columns[] = {
    {"SLICE", "Uuid", NULL, 0},
    {"NAME", "Name", NULL, 0},
    {"DOOR", "Door", NULL, 0},
    {"GPU", "Gpu", NULL, 0},
    {"TYPE", "Type", NULL, COLUMN_WIDE},
    {"VRAM", "Vram", NULL, 0},
    {"USED", "VramUsed", dict_bytes, 0},
    {"CLASS", "Class", NULL, 0},
    {"COMPUTE", "Compute", NULL, COLUMN_WIDE},
    {"WEIGHT", "Weight", NULL, COLUMN_WIDE},
    {"CAP", "Cap", NULL, COLUMN_WIDE},
    {"DEVICE", "Device", dict_text, COLUMN_STATE},
    {"ENGINE", "Engine", dict_text, COLUMN_WIDE | COLUMN_STATE},
    {"PROCESSES", "Members", dict_number, COLUMN_WIDE},
    {"TENANT", "Tenant", NULL, 0},
    {"VM", "Vm", dict_text, 0},
    {"CONTAINER", "Container", dict_text, 0},
    {"OWNER", "Owner", NULL, 0},
};

/* What vgpud gets from others; all attributes are shown, too. */
static const Column lines[] = {
    {"VM", "Vm", dict_text, 0},
    {"Container", "Container", dict_text, 0},
    {"Counted with", "CountedWith", dict_text, 0},
    {"Device", "Device", dict_text, COLUMN_STATE},
    {"Engine", "Engine", dict_text, COLUMN_STATE},
    {"Engine failure", "Failure", dict_text, 0},
    {"Engines lost", "EngineLosses", dict_number, 0},
    {"VRAM used", "VramUsed", dict_bytes, 0},
    {"VRAM peak", "PeakVram", dict_bytes, 0},
    {"On the GPU", "OnGpu", dict_bytes, 0},
    {"Of that unmovable", "Unmovable", dict_bytes, 0},
    {"In host memory", "Displaced", dict_bytes, 0},
    {"Moved", "Moved", dict_bytes, 0},
    {"Oversubscription used", "Spilled", dict_bytes, 0},
    {"Spill target", "SpillKind", dict_text, 0},
    {"Processes", "Members", dict_number, 0},
    {"Window", "Window", dict_bytes, 0},
    {"CUDA", "Cuda", cuda_text, 0},
    {"Requests", "Requests", dict_number, 0},
    {"Doorbells", "Doorbells", dict_number, 0},
    {"Interrupts", "Interrupts", dict_number, 0},
};

static const Listing listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .lines = lines,
    .lines_count = G_N_ELEMENTS(lines),
    .name = "Uuid",
    .title = "Slice",
    .is_slice = TRUE,
    .none = "This host has no slice.",
};

static const char *const words[] = {"used",     "free", "running", "open",  "closed",
                                    "stopped",  "lost", "removed", "ready", "failed",
                                    "starting", "none", NULL};

/* "used" and "free" are for all; the others are a vGPU's, of its device or its engine. */
static gboolean is_in_state(void *slice, const char *state)
{
    gboolean used = *dict_string(slice, "Container") || *dict_string(slice, "Vm");

    return g_str_equal(state, used ? "used" : "free") ||
           g_str_equal(state, dict_string(slice, "Device")) ||
           g_str_equal(state, dict_string(slice, "Engine"));
}

static GVariant *in_state(GVariant *slices)
{
    g_autoptr(GVariant) all = slices;
    GVariantBuilder some;

    g_variant_builder_init(&some, G_VARIANT_TYPE("aa{sv}"));
    for (gsize i = 0; i < g_variant_n_children(all); i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(all, i);

        if (filter_has_state(slice, is_in_state))
            g_variant_builder_add_value(&some, slice);
    }
    return g_variant_ref_sink(g_variant_builder_end(&some));
}

/* Members for the options of a list that choose some of it. */
static const char *const filtered[] = {"Uuid",   "Gpu",    "Tenant",    "Type",
                                       "Device", "Engine", "Container", "Vm"};

/* A table needs little of all that there is to know, which is much work for a thousand slices. */
static GStrv keys_of(const Listing *shown)
{
    g_autoptr(GStrvBuilder) keys = g_strv_builder_new();

    for (guint i = 0; i < G_N_ELEMENTS(filtered); i++)
        g_strv_builder_add(keys, filtered[i]);
    for (guint i = 0; i < shown->columns_count; i++)
        if (!(shown->columns[i].flags & COLUMN_WIDE))
            g_strv_builder_add(keys, shown->columns[i].key);
    return g_strv_builder_end(keys);
}

gboolean slices_list(const Client *client, const Options *options, const char *const *doors,
                     const Listing *shown, GError **error)
{
    static const Filter filter = {"Gpu", "Tenant", "Type", NULL, words};
    gboolean all = output_is_document(options) || options->format == FORMAT_WIDE;
    g_auto(GStrv) keys = all ? NULL : keys_of(shown);
    GVariant *slices = slices_get(client, doors, (const char *const *)keys, error);

    if (slices)
        warn_of_meter(options, slices);
    return objects_list(options, shown, slices ? in_state(slices) : NULL, &filter, error);
}

gboolean slice_list_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)args;
    return slices_list(client, options, NULL, &listing, error);
}

gboolean slice_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) slices = slices_get(client, NULL, NULL, error);

    if (slices)
        warn_of_meter(options, slices);
    return slices && objects_show(options, &listing, slices, args, object_is_slice, "slice",
                                  "slice list", error);
}

void warn_of_meter(const Options *options, GVariant *list)
{
    static gboolean said;
    g_autoptr(GVariant) first =
        g_variant_n_children(list) ? g_variant_get_child_value(list, 0) : NULL;
    gboolean metered = TRUE;

    if (first)
        g_variant_lookup(first, "Metered", "b", &metered);
    if (!metered && !said && !output_is_document(options))
        g_printerr("vgpuctl: what slices use is not known, because vgpu-meter does not answer; "
                   "\"systemctl status vgpu-meter\" shows why\n");
    said = said || !metered;
}

/* Says of each GPU of @slices that its arbiter hangs, if root asks. */
static void warn_of_arbiters(const Options *options, GVariant *slices)
{
    g_autoptr(GHashTable) asked = g_hash_table_new(g_str_hash, g_str_equal);

    for (gsize i = 0; i < g_variant_n_children(slices); i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(slices, i);
        const char *gpu = "";

        g_variant_lookup(slice, "Gpu", "&s", &gpu);
        if (g_hash_table_add(asked, (void *)gpu) && doctor_arbiter_hangs(options->root, gpu))
            g_printerr("vgpuctl: the arbiter of GPU %s does not answer, so programs that start "
                       "there wait; systemd restarts it within a minute, or \"systemctl restart "
                       "vgpu-arbiter@%s\" does\n",
                       gpu, gpu);
    }
}

#define GUARD_MS      10000
#define LOOK_AGAIN_MS 20

/* Only root and users of its tenant may look into the folder; nobody else has to wait in vain. */
static gboolean has_socket(const Options *options, const char *socket)
{
    struct stat status;

    return root_stat(options->root, socket, &status) || errno == EACCES;
}

/*
 * systemd makes the sockets of a slice's guard some moments after the slice, and a runtime starts
 * no container to mount what is not there.
 */
static void wait_for_guard(const Options *options, GVariant *slice)
{
    g_autofree char *door = dict_text(slice, "Door");
    g_autofree char *uuid = dict_text(slice, "Uuid");
    g_autofree char *socket = g_strconcat("/run/vgpu/guard/", uuid, "/vtest.sock", NULL);

    if (!g_str_equal(door, "guarded") ||
        !root_is(options->root, "/run/systemd/system", G_FILE_TEST_IS_DIR))
        return;
    for (guint waited = 0; waited < GUARD_MS; waited += LOOK_AGAIN_MS) {
        if (has_socket(options, socket))
            return;
        g_usleep(LOOK_AGAIN_MS * 1000);
    }
    g_printerr("vgpuctl: the guard of slice %s has no socket yet, and until then no container "
               "starts with it; \"systemctl status vgpu-guard@%s\" says why\n",
               uuid, uuid);
}

/* One slice is a document of its own. The old name makes a list of it. */
static void print_created(const Options *options, const Listing *shown, GVariant *slices)
{
    g_autoptr(GVariant) only = NULL;

    if (output_is_document(options) && shown == &listing && g_variant_n_children(slices) == 1)
        only = g_variant_get_child_value(slices, 0);
    if (only)
        output_variant(options, only);
    else
        listing_print(options, shown, slices);
}

gboolean slices_make(const Client *client, const Options *options, char **args, const char *door,
                     const Listing *shown, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
    g_autoptr(GVariant) slices = NULL;

    call_dict_add_text(&dict, "Type", args[0]);
    if (!slice_options_for_creation(&dict, door, error))
        return FALSE;
    slices = slices_create(client, g_variant_dict_end(&dict), "creating slices", error);
    if (!slices)
        return FALSE;
    print_created(options, shown, slices);
    warn_of_arbiters(options, slices);
    for (gsize i = 0; i < g_variant_n_children(slices); i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(slices, i);

        wait_for_guard(options, slice);
    }
    return TRUE;
}

GVariant *slices_create(const Client *client, GVariant *request, const char *doing, GError **error)
{
    return client_get(client, "CreateSlices",
                      g_variant_new("(@aa{sv})", g_variant_new_array(NULL, &request, 1)), doing,
                      error);
}

gboolean slice_create_command(Client *client, const Options *options, char **args, GError **error)
{
    return slices_make(client, options, args, "auto", &listing, error);
}

/**
 * Change - what is done to each slice
 * @doing: as "removing slice", for the progress line
 */
typedef struct {
    const char *method;
    const char *doing;
    GVariant *options;
} Change;

static gboolean change_slice(Client *client, const char *name, void *data, GError **error)
{
    const Change *change = data;
    g_autofree char *what = g_strdup_printf("%s %s", change->doing, name);
    g_autoptr(GVariant) answer = client_call(
        client, change->method, g_variant_new("(s@a{sv})", name, change->options), what, error);

    return answer != NULL;
}

/* @dict: consumed; NULL: no options. */
static gboolean change_each(Client *client, char **names, const char *method, const char *doing,
                            GVariant *dict, GError **error)
{
    g_autoptr(GVariant) options = g_variant_ref_sink(dict ? dict : g_variant_new("a{sv}", NULL));
    Change all = {method, doing, options};

    return each_name(client, names, doing, change_slice, &all, error);
}

gboolean slice_set_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    return slice_options_for_change(&dict, error) &&
           change_each(client, args, "SetSlice", "changing slice", g_variant_dict_end(&dict),
                       error);
}

gboolean slice_start_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return change_each(client, args, "StartSlice", "starting slice", NULL, error);
}

gboolean slice_stop_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return change_each(client, args, "StopSlice", "stopping slice", NULL, error);
}

static gboolean force;
static gboolean dry_run;

const GOptionEntry slice_remove_options[] = {
    {"force", 0, 0, G_OPTION_ARG_NONE, &force, "Also if a container uses it", NULL},
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only check whether it is possible", NULL},
    G_OPTION_ENTRY_NULL,
};

gboolean slice_remove_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    (void)options;
    call_dict_add_flag(&dict, "DryRun", dry_run);
    call_dict_add_flag(&dict, "Force", force);
    return change_each(client, args, "RemoveSlice", "removing slice", g_variant_dict_end(&dict),
                       error);
}

gboolean slice_suspend_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return change_each(client, args, "SuspendSlice", "suspending slice", NULL, error);
}

gboolean slice_resume_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return change_each(client, args, "ResumeSlice", "resuming slice", NULL, error);
}

gboolean slice_warm_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return change_each(client, args, "WarmSlice", "warming slice", NULL, error);
}

static int claim_pid;
static char *claim_name;

const GOptionEntry slice_claim_options[] = {
    {"pid", 0, 0, G_OPTION_ARG_INT, &claim_pid, "Of the container's first process; required",
     "PID"},
    {"name", 0, 0, G_OPTION_ARG_STRING, &claim_name, "The container's name; required", "NAME"},
    G_OPTION_ENTRY_NULL,
};

/* For runtimes that do not know CDI and its hooks, such as LXC and Incus. */
gboolean slice_claim_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autofree char *doing = NULL;
    g_autoptr(GVariant) answer = NULL;

    (void)options;
    if (claim_pid <= 0 || !claim_name) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--pid and --name are required: the container's first process, as the host "
                    "counts processes, and its name");
        return FALSE;
    }
    doing = g_strdup_printf("claiming slice %s", args[0]);
    answer =
        client_call(client, "ClaimSlice",
                    g_variant_new("(ssu)", args[0], claim_name, (guint)claim_pid), doing, error);
    return answer != NULL;
}

/* Of vGPUs alone. */

static const Column vgpu_columns[] = {
    {"VGPU", "Uuid", NULL, 0},
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

const Listing vgpu_listing = {
    .columns = vgpu_columns,
    .columns_count = G_N_ELEMENTS(vgpu_columns),
    .lines = lines,
    .lines_count = G_N_ELEMENTS(lines),
    .name = "Uuid",
    .title = "vGPU",
    .is_slice = TRUE,
    .none = "This host has no vGPU.",
};

const char *const vgpu_doors[] = {"vm", "vfio", NULL};
