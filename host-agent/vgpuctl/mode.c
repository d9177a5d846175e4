/* SPDX-License-Identifier: MIT */
/* vgpuctl gpu mode, drain, resume, users: what a whole GPU is used for. */
#include <stdio.h>

#include "host-agent/vgpuctl/call_dict.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/json.h"
#include "host-agent/vgpuctl/text.h"

static gboolean drain;
static int timeout = -1;
static int partitions = -1;
static gboolean dry_run;

const GOptionEntry gpu_mode_options[] = {
    {"drain", 0, 0, G_OPTION_ARG_NONE, &drain,
     "Wait until nobody has the GPU; meanwhile nobody new gets it", NULL},
    {"timeout", 0, 0, G_OPTION_ARG_INT, &timeout,
     "With --drain: how long to wait; 0, the default: for ever", "SECONDS"},
    {"partitions", 0, 0, G_OPTION_ARG_INT, &partitions,
     "With the mode partitioned: how many; else as many as can be", "N"},
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only say what would be done", NULL},
    G_OPTION_ENTRY_NULL,
};

/* A call that takes long, while its steps are printed. */
typedef struct {
    GMainLoop *loop;
    gboolean quiet;
    GVariant *answer;
    GError *error;
} Call;

static void print_step(VgpuGpu *gpu, const char *step, void *data)
{
    const Call *call = data;

    (void)gpu;
    if (call->quiet)
        return;
    text_puts(step);
    fflush(stdout);
}

static void answered(GObject *gpu, GAsyncResult *result, void *data)
{
    Call *call = data;

    call->answer = g_dbus_proxy_call_finish(G_DBUS_PROXY(gpu), result, &call->error);
    g_main_loop_quit(call->loop);
}

/* NULL with @error. Waits as long as vgpud does, which knows when to give up. */
static GVariant *call_gpu(VgpuGpu *gpu, const char *method, GVariant *arguments, gboolean quiet,
                          GError **error)
{
    Call call = {.quiet = quiet};
    gulong handler = g_signal_connect(gpu, "progress", G_CALLBACK(print_step), &call);

    call.loop = g_main_loop_new(NULL, FALSE);
    g_dbus_proxy_call(G_DBUS_PROXY(gpu), method, arguments,
                      G_DBUS_CALL_FLAGS_ALLOW_INTERACTIVE_AUTHORIZATION, G_MAXINT, NULL, answered,
                      &call);
    g_main_loop_run(call.loop);
    g_main_loop_unref(call.loop);
    g_signal_handler_disconnect(gpu, handler);
    if (call.error)
        g_propagate_error(error, call.error);
    return call.answer;
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

/* The only out argument, a list of sentences. */
static void print_list(GVariant *answer, const Options *options, const char *none)
{
    g_autoptr(GVariant) list = g_variant_get_child_value(answer, 0);
    g_autofree const char **sentences = g_variant_get_strv(list, NULL);

    if (options->json) {
        json_print(json_gvariant_serialize(list));
        return;
    }
    for (guint i = 0; sentences[i]; i++)
        text_puts(sentences[i]);
    if (!sentences[0] && none)
        puts(none);
}

gboolean gpu_mode_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(VgpuGpu) gpu = NULL;
    g_autoptr(GVariant) answer = NULL;

    if (timeout >= 0 && !drain) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE, "--timeout goes with --drain");
        return FALSE;
    }
    gpu = client_gpu(client, args[0], error);
    if (gpu)
        answer = call_gpu(gpu, "SetMode", mode_arguments(args[1]), options->json, error);
    if (!answer)
        return FALSE;
    /* Steps that were done have been printed as they were. */
    if (options->json || dry_run)
        print_list(answer, options, NULL);
    return TRUE;
}

static gboolean set_drain(Client *client, const char *address, gboolean on, GError **error)
{
    g_autoptr(VgpuGpu) gpu = client_gpu(client, address, error);
    g_autoptr(GVariant) answer =
        gpu ? call_gpu(gpu, "Drain", g_variant_new("(b)", on), TRUE, error) : NULL;

    return answer != NULL;
}

gboolean gpu_drain_command(Client *client, const Options *options, char **args,
                           GError **error)
{
    (void)options;
    return set_drain(client, args[0], TRUE, error);
}

gboolean gpu_resume_command(Client *client, const Options *options, char **args,
                            GError **error)
{
    (void)options;
    return set_drain(client, args[0], FALSE, error);
}

gboolean gpu_users_command(Client *client, const Options *options, char **args,
                           GError **error)
{
    g_autoptr(VgpuGpu) gpu = client_gpu(client, args[0], error);
    g_autoptr(GVariant) answer = gpu ? call_gpu(gpu, "ListUsers", NULL, TRUE, error) : NULL;

    if (!answer)
        return FALSE;
    print_list(answer, options, "Nobody has this GPU.");
    return TRUE;
}
