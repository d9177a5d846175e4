/* SPDX-License-Identifier: MIT */
/* vgpuctl gpu mode, users, clear, drain, resume; schedule: what a whole GPU is used for. */
#include "host-agent/vgpuctl/slice.h"
#include "host-agent/vgpuctl/slice_options.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/listing.h"
#include "host-agent/vgpuctl/output.h"

/* vgpuctl gpu mode, users, clear: what a whole GPU is used for. */

static gboolean drain;
static int mode_timeout = -1;
static int partitions = -1;
static gboolean dry_run;

const GOptionEntry gpu_mode_options[] = {
    {"drain", 0, 0, G_OPTION_ARG_NONE, &drain,
     "Put no new work on the GPU, and wait until nobody uses it", NULL},
    {"timeout", 0, 0, G_OPTION_ARG_INT, &mode_timeout,
     "With --drain: how long to wait; 0, the default: without limit", "SECONDS"},
    {"partitions", 0, 0, G_OPTION_ARG_INT, &partitions,
     "With the mode partitioned: how many; default: as many as it can have", "N"},
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only show what would be done", NULL},
    G_OPTION_ENTRY_NULL,
};

static void print_step(VgpuGpu *gpu, const char *step, void *options)
{
    (void)gpu;
    if (output_is_document(options))
        return;
    progress_hide();
    output_line(options, "%s", step);
    fflush(((const Options *)options)->out);
}

static GVariant *mode_arguments(const char *mode)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    call_dict_add_flag(&dict, "Drain", drain);
    call_dict_add_flag(&dict, "DryRun", dry_run);
    call_dict_add_number(&dict, "Timeout", mode_timeout);
    call_dict_add_number(&dict, "Partitions", partitions);
    return g_variant_new("(s@a{sv})", mode, g_variant_dict_end(&dict));
}

/* NULL with @error. Its steps are printed as they are done. */
static GVariant *switch_mode(VgpuGpu *gpu, const char *mode, const Options *options, GError **error)
{
    g_autofree char *what =
        g_strdup_printf("switching GPU %s to %s", vgpu_gpu_get_address(gpu), mode);
    gulong handler = g_signal_connect(gpu, "progress", G_CALLBACK(print_step), (void *)options);
    GVariant *answer = client_call_object(G_DBUS_PROXY(gpu), "SetMode", mode_arguments(mode), what,
                                          mode_timeout > 0 ? (guint)mode_timeout : 0, error);

    g_signal_handler_disconnect(gpu, handler);
    return answer;
}

static void print_sentences(const Options *options, GVariant *list, const char *before)
{
    g_autofree const char **sentences = g_variant_get_strv(list, NULL);

    for (guint i = 0; sentences[i]; i++)
        output_line(options, "%s%s", before, sentences[i]);
}

gboolean gpu_mode_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(VgpuGpu) gpu = NULL;
    g_autoptr(GVariant) answer = NULL;
    g_autoptr(GVariant) steps = NULL;

    if (mode_timeout >= 0 && !drain) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "--timeout needs --drain");
        return FALSE;
    }
    gpu = client_gpu(client, args[0], error);
    answer = gpu ? switch_mode(gpu, args[1], options, error) : NULL;
    if (!answer)
        return FALSE;
    steps = g_variant_get_child_value(answer, 0);
    if (output_is_document(options))
        output_variant(options, steps);
    else if (dry_run)
        print_sentences(options, steps, "");
    return TRUE;
}

/**
 * Users - of several GPUs
 * @lists: of GPU's address to its users, for a document
 * @several: GPUs were asked for
 */
typedef struct {
    const Options *options;
    GVariantDict lists;
    gboolean several;
} Users;

static void add_users(Users *users, const char *address, GVariant *list)
{
    g_autofree char *before = users->several ? g_strconcat(address, ": ", NULL) : g_strdup("");

    if (output_is_document(users->options) && users->several)
        g_variant_dict_insert_value(&users->lists, address, list);
    else if (output_is_document(users->options))
        output_variant(users->options, list);
    else if (g_variant_n_children(list))
        print_sentences(users->options, list, before);
    else
        output_line(users->options, "%sNobody uses this GPU.", before);
}

static gboolean list_users(Client *client, const char *name, void *data, GError **error)
{
    g_autoptr(VgpuGpu) gpu = client_gpu(client, name, error);
    g_autoptr(GVariant) answer = NULL;
    g_autoptr(GVariant) list = NULL;

    if (gpu)
        answer =
            client_call_object(G_DBUS_PROXY(gpu), "ListUsers", NULL, "looking for users", 0, error);
    if (!answer)
        return FALSE;
    list = g_variant_get_child_value(answer, 0);
    add_users(data, vgpu_gpu_get_address(gpu), list);
    return TRUE;
}

/* Addresses of all GPUs. */
static GStrv all_gpus(Client *client, GError **error)
{
    g_autoptr(GPtrArray) gpus = client_gpus(client, error);
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();

    for (guint i = 0; gpus && i < gpus->len; i++)
        g_strv_builder_add(names, vgpu_gpu_get_address(g_ptr_array_index(gpus, i)));
    return gpus ? g_strv_builder_end(names) : NULL;
}

gboolean gpu_users_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GStrv) names = args[0] ? g_strdupv(args) : all_gpus(client, error);
    Users users = {.options = options, .several = g_strv_length(args) != 1};
    gboolean done;

    if (!names)
        return FALSE;
    g_variant_dict_init(&users.lists, NULL);
    done = each_name(client, names, "looking for users", list_users, &users, error);
    if (users.several && output_is_document(options))
        output_variant(options, g_variant_dict_end(&users.lists));
    g_variant_dict_clear(&users.lists);
    return done;
}

static gboolean clear_health(Client *client, const char *name, void *data, GError **error)
{
    g_autoptr(VgpuGpu) gpu = client_gpu(client, name, error);
    g_autoptr(GVariant) answer = NULL;

    (void)data;
    if (gpu)
        answer = client_call_object(G_DBUS_PROXY(gpu), "ClearHealth", NULL, NULL, 0, error);
    return answer != NULL;
}

gboolean gpu_clear_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return each_name(client, args, "clearing GPUs", clear_health, NULL, error);
}

/* vgpuctl gpu drain, resume: a GPU that gets no new work, and the wait until it has none. */

static gboolean wait_too;
static int drain_timeout;

const GOptionEntry gpu_drain_options[] = {
    {"wait", 0, 0, G_OPTION_ARG_NONE, &wait_too, "Wait until no VM, container or job uses them",
     NULL},
    {"timeout", 0, 0, G_OPTION_ARG_INT, &drain_timeout,
     "With --wait: how long to wait; 0, the default: without limit", "SECONDS"},
    G_OPTION_ENTRY_NULL,
};

static gboolean set_drain(Client *client, const char *name, void *on, GError **error)
{
    g_autoptr(VgpuGpu) gpu = client_gpu(client, name, error);
    g_autoptr(GVariant) answer = NULL;

    if (gpu)
        answer = client_call_object(G_DBUS_PROXY(gpu), "Drain",
                                    g_variant_new("(b)", GPOINTER_TO_INT(on)), NULL, 0, error);
    return answer != NULL;
}

gboolean gpu_pool_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(VgpuGpu) gpu = client_gpu(client, args[0], error);
    g_autoptr(GVariant) answer = NULL;

    (void)options;
    if (gpu)
        answer = client_call_object(G_DBUS_PROXY(gpu), "SetPool",
                                    g_variant_new("(sa{sv})", args[1], NULL), NULL, 0, error);
    return answer != NULL;
}

/* vgpud says so itself if it answers. */
static void add_drained(const char *name, GError **error)
{
    g_autoptr(GError) cause = *error;

    *error = NULL;
    g_set_error(error, cause->domain, cause->code,
                "%s. GPU %s stays drained: \"vgpuctl gpu drain --wait %s\" waits again, \"vgpuctl "
                "gpu resume %s\" ends that",
                cause->message, name, name, name);
}

/* @end: of the monotonic clock; 0: without limit. */
static gboolean wait_until_unused(Client *client, const char *name, void *end, GError **error)
{
    const gint64 until = *(const gint64 *)end;
    gint64 left = until - g_get_monotonic_time() + G_USEC_PER_SEC - 1;
    guint seconds = until ? (guint)MAX(left / G_USEC_PER_SEC, 1) : 0;
    g_autoptr(VgpuGpu) gpu = client_gpu(client, name, error);
    g_autofree char *what = g_strdup_printf("waiting for the users of GPU %s", name);
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
    g_autoptr(GVariant) answer = NULL;

    if (!gpu)
        return FALSE;
    g_variant_dict_insert(&dict, "Timeout", "u", seconds);
    answer = client_call_object(G_DBUS_PROXY(gpu), "WaitUnused",
                                g_variant_new("(@a{sv})", g_variant_dict_end(&dict)), what, seconds,
                                error);
    if (!answer && error && (*error)->domain == VGPUCTL_ERROR)
        add_drained(name, error);
    return answer != NULL;
}

gboolean gpu_drain_command(Client *client, const Options *options, char **args, GError **error)
{
    gint64 end =
        drain_timeout ? g_get_monotonic_time() + drain_timeout * (gint64)G_USEC_PER_SEC : 0;

    (void)options;
    if (drain_timeout < 0 || (drain_timeout && !wait_too)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    drain_timeout < 0 ? "--timeout cannot be below 0" : "--timeout needs --wait");
        return FALSE;
    }
    if (!each_name(client, args, "draining GPUs", set_drain, GINT_TO_POINTER(TRUE), error))
        return FALSE;
    return !wait_too ||
           each_name(client, args, "waiting for users", wait_until_unused, &end, error);
}

gboolean gpu_resume_command(Client *client, const Options *options, char **args, GError **error)
{
    (void)options;
    return each_name(client, args, "resuming GPUs", set_drain, GINT_TO_POINTER(FALSE), error);
}

/* vgpuctl schedule, reload: modes by the clock, and the files in /etc/vgpu that have them. */

static char *time_text(GVariant *entry, const char *key)
{
    g_autoptr(GDateTime) time = NULL;
    gint64 next = 0;

    g_variant_lookup(entry, key, "x", &next);
    if (!next)
        return g_strdup("never");
    time = g_date_time_new_from_unix_local(next);
    return g_date_time_format(time, "%a %F %H:%M");
}

static char *minutes_text(GVariant *entry, const char *key)
{
    guint seconds = 0;

    g_variant_lookup(entry, key, "u", &seconds);
    return seconds ? g_strdup_printf("%u min", (seconds + 59) / 60) : NULL;
}

static char *limit_text(GVariant *entry, const char *key)
{
    char *minutes = minutes_text(entry, key);

    return minutes ? minutes : g_strdup("no limit");
}

static const Column columns[] = {
    {"SCHEDULE", "Name", dict_text, 0}, {"GPU", "Gpu", dict_text, 0},
    {"MODE", "Mode", dict_text, 0},     {"POOL", "Pool", dict_text, 0},
    {"NEXT", "Next", time_text, 0},     {"WARNING", "Warn", minutes_text, 0},
    {"WAIT", "Timeout", limit_text, 0}, {"AT", "Calendar", dict_text, COLUMN_WIDE},
};

static const Listing listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .name = "Name",
    .none = "No mode switch is scheduled: /etc/vgpu/schedule.conf has no entry.",
};

gboolean schedule_list_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) entries = client_get(client, "ListSchedule", NULL, NULL, error);

    (void)args;
    if (!entries)
        return FALSE;
    listing_print(options, &listing, entries);
    return TRUE;
}

gboolean schedule_run_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) answer =
        client_call(client, "RunSchedule", g_variant_new("(s)", args[0]), NULL, error);

    (void)options;
    return answer != NULL;
}

gboolean reload_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) answer = client_call(client, "Reload", NULL, "reading /etc/vgpu", error);

    (void)options;
    (void)args;
    return answer != NULL;
}
