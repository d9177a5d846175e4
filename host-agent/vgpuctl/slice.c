/* SPDX-License-Identifier: MIT */
/* vgpuctl slice, cdi: slices for containers. */
#include <errno.h>
#include <sys/stat.h>

#include "host-agent/doctor/doctor.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/listing.h"
#include "host-agent/vgpuctl/output.h"
#include "host-agent/vgpuctl/slice_options.h"
#include "host-agent/vgpuctl/vgpu.h"

/* vgpuctl slice: parts of GPUs for containers. */

static gboolean force;
static gboolean dry_run;

const GOptionEntry slice_remove_options[] = {
    {"force", 0, 0, G_OPTION_ARG_NONE, &force, "Also if a container uses it", NULL},
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only check whether it is possible", NULL},
    G_OPTION_ENTRY_NULL,
};

static const Column columns[] = {
    {"SLICE", "Uuid", dict_text, 0},
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
    {"PROCESSES", "Members", dict_number, COLUMN_WIDE},
    {"TENANT", "Tenant", NULL, 0},
    {"CONTAINER", "Container", dict_text, 0},
    {"OWNER", "Owner", NULL, 0},
};

static const Column lines[] = {
    {"Container", "Container", dict_text, 0},
    {"Counted with", "CountedWith", dict_text, 0},
    {"VRAM used", "VramUsed", dict_bytes, 0},
    {"VRAM peak", "PeakVram", dict_bytes, 0},
    {"Oversubscription used", "Spilled", dict_bytes, 0},
    {"Processes", "Members", dict_number, 0},
    {"Window", "Window", dict_bytes, 0},
    {"CUDA", "Cuda", vgpu_cuda_text, 0},
};

static const Listing listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .lines = lines,
    .lines_count = G_N_ELEMENTS(lines),
    .name = "Uuid",
    .title = "Slice",
    .is_slice = TRUE,
    .none = "This host has no slice for containers.",
};

static gboolean is_in_state(void *slice, const char *state)
{
    const char *container = "";

    g_variant_lookup(slice, "Container", "&s", &container);
    return g_str_equal(state, *container ? "used" : "free");
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

gboolean slice_list_command(Client *client, const Options *options, char **args, GError **error)
{
    static const char *const words[] = {"used", "free", NULL};
    static const Filter filter = {"Gpu", "Tenant", "Type", NULL, words};
    GVariant *slices = client_get(client, "ListSlices", NULL, "listing slices", error);

    (void)args;
    if (slices)
        warn_of_meter(slices);
    return objects_list(options, &listing, slices ? in_state(slices) : NULL, &filter, error);
}

gboolean slice_show_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) slices = client_get(client, "ListSlices", NULL, "listing slices", error);

    if (slices)
        warn_of_meter(slices);
    return slices && objects_show(options, &listing, slices, args, object_is_slice, "slice",
                                  "slice list", error);
}

void warn_of_meter(GVariant *list)
{
    static gboolean said;
    g_autoptr(GVariant) first =
        g_variant_n_children(list) ? g_variant_get_child_value(list, 0) : NULL;
    gboolean metered = TRUE;

    if (first)
        g_variant_lookup(first, "Metered", "b", &metered);
    if (!metered && !said)
        g_printerr("vgpuctl: what slices use is not known, because vgpu-meter does not answer; "
                   "\"systemctl status vgpu-meter\" shows why\n");
    said = said || !metered;
}

void warn_of_arbiters(const Options *options, GVariant *slices)
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

gboolean slice_create_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) slice = NULL;
    g_autoptr(GVariant) list = NULL;
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    call_dict_add_text(&dict, "Type", args[0]);
    if (!vgpu_options_for_slice(&dict, error))
        return FALSE;
    slice = client_get(client, "CreateSlice", g_variant_new("(@a{sv})", g_variant_dict_end(&dict)),
                       "creating a slice", error);
    if (!slice)
        return FALSE;
    list = g_variant_ref_sink(g_variant_new_array(NULL, &slice, 1));
    if (output_is_document(options))
        output_variant(options, slice);
    else
        listing_print(options, &listing, list);
    warn_of_arbiters(options, list);
    wait_for_guard(options, slice);
    return TRUE;
}

static gboolean remove_slice(Client *client, const char *name, void *data, GError **error)
{
    g_autofree char *what = g_strdup_printf("removing slice %s", name);
    g_autoptr(GVariant) answer =
        client_call(client, "RemoveSlice", g_variant_new("(s@a{sv})", name, data), what, error);

    return answer != NULL;
}

gboolean slice_remove_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
    g_autoptr(GVariant) how = NULL;

    (void)options;
    call_dict_add_flag(&dict, "DryRun", dry_run);
    call_dict_add_flag(&dict, "Force", force);
    how = g_variant_ref_sink(g_variant_dict_end(&dict));
    return each_name(client, args, "removing slices", remove_slice, how, error);
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

/* @method: one whose options are none. */
static gboolean call_without_options(const Client *client, const char *method, const char *what,
                                     const char *name, GError **error)
{
    g_autofree char *doing = g_strdup_printf("%s slice %s", what, name);
    GVariant *none = g_variant_new("(s@a{sv})", name, g_variant_new("a{sv}", NULL));
    g_autoptr(GVariant) answer = client_call(client, method, none, doing, error);

    return answer != NULL;
}

static gboolean suspend_slice(Client *client, const char *name, void *data, GError **error)
{
    (void)data;
    return call_without_options(client, "SuspendSlice", "suspending", name, error);
}

static gboolean resume_slice(Client *client, const char *name, void *data, GError **error)
{
    (void)data;
    return call_without_options(client, "ResumeSlice", "resuming", name, error);
}

gboolean slice_suspend_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return each_name(client, args, "suspending slices", suspend_slice, NULL, error);
}

gboolean slice_resume_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return each_name(client, args, "resuming slices", resume_slice, NULL, error);
}

/* vgpuctl cdi: what containers can ask for by --device. */

static char *output_file;

const GOptionEntry cdi_generate_options[] = {
    {"file", 'f', 0, G_OPTION_ARG_FILENAME, &output_file, "Write it to FILE", "FILE"},
    G_OPTION_ENTRY_NULL,
};

static char *get_spec(const Client *client, GError **error)
{
    g_autoptr(GVariant) spec = client_get(client, "GetCdi", NULL, NULL, error);

    return spec ? g_variant_dup_string(spec, NULL) : NULL;
}

/* "mdev-vgpu.org/slice=web" of each device. */
static GStrv names_of(const char *spec, GError **error)
{
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonObject *root;
    JsonArray *devices;

    if (!*spec)
        return g_strv_builder_end(names);
    if (!json_parser_load_from_data(parser, spec, -1, error))
        return NULL;
    root = json_node_get_object(json_parser_get_root(parser));
    devices = json_object_get_array_member(root, "devices");
    for (guint i = 0; i < json_array_get_length(devices); i++)
        g_strv_builder_take(
            names, g_strdup_printf("%s=%s", json_object_get_string_member(root, "kind"),
                                   json_object_get_string_member(
                                       json_array_get_object_element(devices, i), "name")));
    return g_strv_builder_end(names);
}

gboolean cdi_list_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autofree char *spec = get_spec(client, error);
    g_auto(GStrv) names = spec ? names_of(spec, error) : NULL;

    (void)args;
    if (!names)
        return FALSE;
    if (output_is_document(options)) {
        output_variant(options, g_variant_new_strv((const char *const *)names, -1));
        return TRUE;
    }
    if (!names[0])
        output_line(
            options,
            "This host has no device for containers; \"vgpuctl slice create\" creates one.");
    for (guint i = 0; names[i]; i++)
        output_line(options, "%s", names[i]);
    return TRUE;
}

gboolean cdi_generate_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autofree char *spec = get_spec(client, error);

    (void)args;
    if (!spec)
        return FALSE;
    if (!*spec) {
        g_set_error(
            error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
            "cannot print a CDI specification: this host has no device for containers; \"vgpuctl "
            "slice create\" creates one");
        return FALSE;
    }
    if (output_file)
        return g_file_set_contents_full(output_file, spec, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644,
                                        error);
    fputs(spec, options->out);
    return TRUE;
}
