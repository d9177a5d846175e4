// SPDX-License-Identifier: MIT
#include "options.h"

/* @own: the program's; those here are of both programs. */
static bool parse_options(struct options *options, const GOptionEntry *own, const char *summary,
                          int argc, char **argv, GError **error)
{
    gboolean no_landlock = FALSE;
    gboolean show_version = FALSE;
    const GOptionEntry entries[] = {
        {"icd", 0, 0, G_OPTION_ARG_FILENAME, &options->icd,
         "Manifest of the Vulkan driver to use; it must show only this GPU", "PATH"},
        {"setenv", 'E', 0, G_OPTION_ARG_STRING_ARRAY, &options->environment,
         "Environment of the renderer, which is otherwise empty", "NAME=VALUE"},
        {"shader-cache", 0, 0, G_OPTION_ARG_FILENAME, &options->shader_cache,
         "Keep compiled shaders in this directory, which nothing else uses (default: do not)",
         "PATH"},
        {"no-landlock", 0, 0, G_OPTION_ARG_NONE, &no_landlock,
         "Run without Landlock: it can then reach other GPUs", NULL},
        {"sysroot", 0, 0, G_OPTION_ARG_FILENAME, &options->sysroot,
         "Look up sysfs and driver manifests below PATH (for tests)", "PATH"},
        {"version", 'V', 0, G_OPTION_ARG_NONE, &show_version, "Print the version", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_auto(GStrv) args = g_new0(char *, (gsize)argc + 1);

    *options = (struct options){.fd = -1};
    for (int i = 0; i < argc; i++)
        args[i] = g_strdup(argv[i]);
    g_option_context_set_summary(context, summary);
    g_option_context_add_main_entries(context, own, NULL);
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse_strv(context, &args, error))
        return false;
    options->no_landlock = no_landlock;
    options->show_version = show_version;
    if (!options->sysroot)
        options->sysroot = g_strdup("");
    if (args[0] && args[1]) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "unknown argument \"%s\"",
                    args[1]);
        return false;
    }
    return true;
}

bool options_parse(struct options *options, int argc, char **argv, GError **error)
{
    const GOptionEntry own[] = {
        {"device", 'd', 0, G_OPTION_ARG_FILENAME, &options->device, "The vGPU: /dev/vgpu/<uuid>",
         "PATH"},
        {"fd", 'f', 0, G_OPTION_ARG_INT, &options->fd, "The vGPU as an open file", "N"},
        {"cuda-worker", 0, 0, G_OPTION_ARG_FILENAME, &options->cuda_worker,
         "Offer CUDA by this program, for any GPU (for tests)", "PATH"},
        {"describe", 0, 0, G_OPTION_ARG_STRING, &options->describe,
         "Print what Vulkan shows of this GPU, and exit", "GPU"},
        G_OPTION_ENTRY_NULL,
    };

    if (!parse_options(options, own,
                       "The GPU side of one vGPU; normally started by systemd as "
                       "vgpu-engine@UUID.service.",
                       argc, argv, error))
        return false;
    if (!options->device || options->fd < 0)
        return true;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
                "--device and --fd exclude each other");
    return false;
}

bool options_parse_guard(struct options *options, int argc, char **argv, GError **error)
{
    const GOptionEntry own[] = {
        {"config", 'c', 0, G_OPTION_ARG_FILENAME, &options->config,
         "The GPU, by a key file with [slice] gpu=ADDRESS", "PATH"},
        {"gpu", 'g', 0, G_OPTION_ARG_STRING, &options->gpu, "The same, without a file", "ADDRESS"},
        {"socket", 's', 0, G_OPTION_ARG_FILENAME, &options->socket,
         "Listen on this path instead of systemd's socket", "PATH"},
        {"cuda-socket", 0, 0, G_OPTION_ARG_FILENAME, &options->cuda_socket,
         "The same for CUDA; needs --socket", "PATH"},
        {"cuda-worker", 0, 0, G_OPTION_ARG_FILENAME, &options->cuda_worker,
         "The program that serves CUDA, for any GPU (for tests)", "PATH"},
        G_OPTION_ENTRY_NULL,
    };

    return parse_options(options, own,
                         "The GPU side of one slice that containers use through a socket; normally "
                         "started by systemd as vgpu-guard@UUID.service.",
                         argc, argv, error);
}

void options_clear(struct options *options)
{
    g_free(options->describe);
    g_free(options->device);
    g_free(options->config);
    g_free(options->gpu);
    g_free(options->socket);
    g_free(options->cuda_socket);
    g_free(options->cuda_worker);
    g_free(options->icd);
    g_free(options->sysroot);
    g_free(options->shader_cache);
    g_strfreev(options->environment);
}
