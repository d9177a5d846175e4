/* SPDX-License-Identifier: MIT */
/* vgpuctl gpu mode, users, clear: what a whole GPU is used for. */
#include "host-agent/vgpuctl/call_dict.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/each.h"
#include "host-agent/vgpuctl/progress.h"

static gboolean drain;
static int timeout = -1;
static int partitions = -1;
static gboolean dry_run;

const GOptionEntry gpu_mode_options[] = {
    {"drain", 0, 0, G_OPTION_ARG_NONE, &drain,
     "Put no new work on the GPU, and wait until nobody uses it", NULL},
    {"timeout", 0, 0, G_OPTION_ARG_INT, &timeout,
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
    call_dict_add_number(&dict, "Timeout", timeout);
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
                                          timeout > 0 ? (guint)timeout : 0, error);

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

    if (timeout >= 0 && !drain) {
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

gboolean gpu_users_command(Client *client, const Options *options, char **args, GError **error)
{
    Users users = {.options = options, .several = g_strv_length(args) > 1};
    gboolean done;

    g_variant_dict_init(&users.lists, NULL);
    done = each_name(client, args, "looking for users", list_users, &users, error);
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
