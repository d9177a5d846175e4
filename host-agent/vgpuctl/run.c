/* SPDX-License-Identifier: MIT */
/*
 * vgpuctl run: a program of this host in a slice of its own. This process becomes the program, so
 * signals and the exit status are the program's; vgpud sees when it has ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "host-agent/vgpuctl/call_dict.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/run_scope.h"

/* As env(1) and shells have them. */
#define CANNOT_RUN    126
#define NO_SUCH       127
#define SOCKET        "0/governor.sock"
#define SOCKET_MS     10000
#define LOOK_AGAIN_MS 10

static char *type;
static char *vram;
static int share = -1;
static int weight = -1;
static int cap = -1;
static int priority = -1;
static char *oversubscribe;
static char *engines;
static char *class_name;
static char *tenant;
static char **gpus;
static gboolean no_scope;

const GOptionEntry run_options[] = {
    {"vram", 0, 0, G_OPTION_ARG_STRING, &vram, "GPU memory, as 2G", "SIZE"},
    {"share", 0, 0, G_OPTION_ARG_INT, &share, "Promised per cent of the GPU's time", "N"},
    {"type", 0, 0, G_OPTION_ARG_STRING, &type, "A type in place of a size, as half", "TYPE"},
    {"weight", 0, 0, G_OPTION_ARG_INT, &weight, "Share of GPU time, 1 to 10000", "N"},
    {"cap", 0, 0, G_OPTION_ARG_INT, &cap, "Maximum GPU time, 1 to 100 per cent", "N"},
    {"priority", 0, 0, G_OPTION_ARG_INT, &priority, "0 to 15, higher goes first", "N"},
    {"oversubscribe", 0, 0, G_OPTION_ARG_STRING, &oversubscribe,
     "Host memory beyond its GPU memory, as 1G", "SIZE"},
    {"engines", 0, 0, G_OPTION_ARG_STRING, &engines,
     "Of graphics,compute,transfer,decode,encode; or all", "LIST"},
    {"class", 0, 0, G_OPTION_ARG_STRING, &class_name, "guaranteed, burstable or best-effort",
     "CLASS"},
    {"tenant", 0, 0, G_OPTION_ARG_STRING, &tenant, "Whose quota it counts against", "TENANT"},
    {"gpu", 0, 0, G_OPTION_ARG_STRING_ARRAY, &gpus,
     "Only on GPUs with this address, id (10de:*) or name; may be a pattern", "GPU"},
    {"no-scope", 0, 0, G_OPTION_ARG_NONE, &no_scope, "Stay in the cgroup of the caller", NULL},
    G_OPTION_ENTRY_NULL,
};

static GVariant *request(const char *uuid, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    if (!type && !vram) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--vram or --type is required: how much of a GPU the program gets");
        return NULL;
    }
    if (!call_dict_add_size(&dict, "Vram", "--vram", vram, FALSE, error) ||
        !call_dict_add_size(&dict, "Oversubscribe", "--oversubscribe", oversubscribe, TRUE, error))
        return NULL;
    g_variant_dict_insert_value(&dict, "Uuids",
                                g_variant_new_strv((const char *[]){uuid, NULL}, -1));
    call_dict_add_text(&dict, "Type", type);
    call_dict_add_number(&dict, "Compute", share);
    call_dict_add_number(&dict, "Weight", weight);
    call_dict_add_number(&dict, "Cap", cap);
    call_dict_add_number(&dict, "Priority", priority);
    call_dict_add_text(&dict, "Engines", engines);
    call_dict_add_text(&dict, "Class", class_name);
    call_dict_add_text(&dict, "Tenant", tenant);
    call_dict_add_list(&dict, "Gpus", gpus);
    return g_variant_dict_end(&dict);
}

/* Before anything is made for it. To be freed. */
static char *find_program(const char *name, GError **error)
{
    char *path = g_find_program_in_path(name);

    if (!path)
        g_set_error(error, VGPUCTL_ERROR, NO_SUCH, "cannot run %s: there is no such program", name);
    return path;
}

/* What the user has there stays, behind ours: it may have libraries that the program needs. */
static void set_library_path(const char *folder)
{
    const char *rest = g_getenv("LD_LIBRARY_PATH");
    g_autofree char *path = rest && *rest ? g_strconcat(folder, ":", rest, NULL) : g_strdup(folder);

    g_setenv("LD_LIBRARY_PATH", path, TRUE);
}

static void set_environment(GVariant *environment)
{
    GVariantIter iter;
    const char *name;
    const char *value;

    /* It would turn the governor off, and the program would have no GPU. */
    g_unsetenv("VGPU_GOVERNOR_DISABLE");
    g_variant_iter_init(&iter, environment);
    while (g_variant_iter_next(&iter, "{&s&s}", &name, &value))
        if (g_str_equal(name, "LD_LIBRARY_PATH"))
            set_library_path(value);
        else
            g_setenv(name, value, TRUE);
}

/* The arbiter hears of a new slice by its own file, so it may need a moment. */
static gboolean wait_for_arbiter(GVariant *slice, GVariant *environment, GError **error)
{
    g_autofree char *gpu = dict_text(slice, "Gpu");
    g_autofree char *uuid = dict_text(slice, "Uuid");
    g_autofree char *path = NULL;
    const char *dir = "";

    g_variant_lookup(environment, "VGPU_GOVERNOR_SLICES", "&s", &dir);
    path = g_build_filename(dir, gpu, SOCKET, NULL);
    for (guint waited = 0; waited < SOCKET_MS; waited += LOOK_AGAIN_MS) {
        if (access(path, F_OK) == 0)
            return TRUE;
        g_usleep(LOOK_AGAIN_MS * 1000);
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED,
                "cannot use slice %s: the arbiter of GPU %s has made no socket for it (%s); "
                "\"systemctl status vgpu-arbiter@%s\" says why",
                uuid, gpu, path, gpu);
    return FALSE;
}

/* Returns only where it fails. @argv: as the caller gave it. */
static gboolean become(const char *path, char **argv, const struct sigaction *pipe_action,
                       GError **error)
{
    int code;

    /* GLib ignores it, and what is ignored stays so in the program. */
    sigaction(SIGPIPE, pipe_action, NULL);
    execv(path, argv);
    code = errno;
    g_set_error(error, VGPUCTL_ERROR, code == ENOENT ? NO_SUCH : CANNOT_RUN, "cannot run %s: %s",
                path, g_strerror(code));
    return FALSE;
}

static void enter_scope(const char *uuid)
{
    g_autoptr(GError) error = NULL;

    if (!no_scope && !run_scope_enter(uuid, &error) && error)
        g_printerr(
            "vgpuctl: the program has no scope of its own (%s): its slice is given back when "
            "it has ended and no child of it uses the GPU\n",
            error->message);
}

/* polkit may ask for a password, by an agent of the session: one of ours would outlive vgpuctl. */
static gboolean ask_slice(const Client *client, GVariant *request, const char *program,
                          GVariant **slice, GVariant **environment, GError **error)
{
    g_autoptr(GVariant) answer = g_dbus_proxy_call_sync(
        G_DBUS_PROXY(client->manager), "RunSlice", g_variant_new("(@a{sv}s)", request, program),
        G_DBUS_CALL_FLAGS_ALLOW_INTERACTIVE_AUTHORIZATION, G_MAXINT, NULL, error);

    if (!answer)
        return FALSE;
    g_variant_get(answer, "(@a{sv}@a{ss})", slice, environment);
    return TRUE;
}

gboolean run_command(Client *unused, const Options *options, char **args, GError **error)
{
    struct sigaction pipe_action;
    g_autofree char *uuid = g_uuid_string_random();
    g_autofree char *path = NULL;
    g_autoptr(Client) client = NULL;
    g_autoptr(GVariant) asked = NULL;
    g_autoptr(GVariant) slice = NULL;
    g_autoptr(GVariant) environment = NULL;

    (void)unused;
    (void)options;
    sigaction(SIGPIPE, NULL, &pipe_action);
    args += g_str_equal(args[0], "--") && args[1];
    path = find_program(args[0], error);
    asked = path ? request(uuid, error) : NULL;
    if (!asked)
        return FALSE;
    g_variant_ref_sink(asked);
    client = client_new(error);
    if (!client)
        return FALSE;
    enter_scope(uuid);
    if (!ask_slice(client, asked, args[0], &slice, &environment, error) ||
        !wait_for_arbiter(slice, environment, error))
        return FALSE;
    set_environment(environment);
    return become(path, args, &pipe_action, error);
}
