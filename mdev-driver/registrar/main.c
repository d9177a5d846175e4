/* SPDX-License-Identifier: MIT */
/*
 * vgpu-registrar: reads types of vGPUs and the list of shared GPUs from files and registers them
 * with the driver. Runs at boot and whenever a GPU gets its driver, and does nothing in between.
 */
#include <stdlib.h>

#include <glib.h>

#include "lib/conf.h"
#include "lib/gpus.h"
#include "mdev-driver/registrar/commands.h"

typedef struct {
    char *root_dir;
    gboolean all;
    gboolean version;
} Options;

static gboolean parse_options(int *argc, char ***argv, Options *options, GError **error)
{
    const GOptionEntry entries[] = {
        {"all", 0, 0, G_OPTION_ARG_NONE, &options->all, "All GPUs instead of one", NULL},
        {"root", 0, 0, G_OPTION_ARG_FILENAME, &options->root_dir,
         "Take all paths from below DIR (for tests)", "DIR"},
        {"version", 0, 0, G_OPTION_ARG_NONE, &options->version, "Print the version", NULL},
        {0},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("COMMAND [GPU]");
    g_autofree char *summary = command_summary();

    g_option_context_set_summary(context, summary);
    g_option_context_add_main_entries(context, entries, NULL);
    return g_option_context_parse(context, argc, argv, error);
}

/* The command, with session->gpu set; NULL with @error if the command line is invalid. */
static const Command *parse_command(int argc, char **argv, const Options *options, Session *session,
                                    GError **error)
{
    const Command *command = argc > 1 ? command_find(argv[1]) : NULL;

    if (!command) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_USAGE,
                    argc > 1 ? "there is no command \"%s\"" : "a command is needed%s",
                    argc > 1 ? argv[1] : "");
        return NULL;
    }
    session->gpu = argc > 2 ? argv[2] : NULL;
    if (argc > 3 || (!command->takes_gpu && (session->gpu || options->all)) ||
        (command->takes_gpu && !session->gpu == !options->all)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_USAGE,
                    command->takes_gpu ? "%s takes one GPU, or --all" : "%s takes no arguments",
                    command->name);
        return NULL;
    }
    if (session->gpu && !gpu_name_valid(session->gpu)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_USAGE, "\"%s\" is not a GPU: give %s",
                    session->gpu, GPU_NAME_RULE);
        return NULL;
    }
    return command;
}

int main(int argc, char **argv)
{
    Session session = {.out = stdout, .log = stderr};
    const Command *command = NULL;
    g_autoptr(GError) error = NULL;
    Options options = {0};
    int result = REGISTRAR_ERROR_USAGE;

    if (parse_options(&argc, &argv, &options, &error) && options.version) {
        printf("vgpu-registrar %s\n", VGPU_VERSION);
        g_free(options.root_dir);
        return EXIT_SUCCESS;
    }
    if (!error)
        command = parse_command(argc, argv, &options, &session, &error);
    if (command)
        session.root = host_root_new(options.root_dir, &error);
    if (session.root) {
        result = command->run(&session);
        host_root_unref(session.root);
    } else {
        fprintf(stderr, "vgpu-registrar: %s; see vgpu-registrar --help\n", error->message);
    }
    if (fflush(stdout) && !result)
        result = REGISTRAR_ERROR_REFUSED;
    g_free(options.root_dir);
    return result;
}
