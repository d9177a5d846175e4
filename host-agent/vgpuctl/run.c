/* SPDX-License-Identifier: MIT */
/* vgpuctl run: a program in a slice of its own, which ends with it. */
#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <gio/gio.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/listing.h"
#include "host-agent/vgpuctl/slice_options.h"

/*
 * A scope of systemd for a program and all that it starts, by which vgpud sees when the last of
 * them has ended.
 */

#define SYSTEMD      "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define MANAGER      "org.freedesktop.systemd1.Manager"
#define PATIENCE_S   10

/**
 * Job - of systemd, while it is waited for
 * @path: NULL: not known yet
 * @ended: paths of jobs that ended before it was known
 * @result: "done", or why not; NULL: it goes on
 */
typedef struct {
    GMainLoop *loop;
    char *path;
    GHashTable *ended;
    char *result;
} Job;

/* As "0::/user.slice/…/session-3.scope" of cgroup v2: a unit's own cgroup, and none below it. */
static gboolean is_in_unit(void)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    if (!g_file_get_contents("/proc/self/cgroup", &text, NULL, NULL))
        return FALSE;
    lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++)
        if (g_str_has_prefix(lines[i], "0::"))
            return g_str_has_suffix(lines[i], ".scope") || g_str_has_suffix(lines[i], ".service");
    return FALSE;
}

static void job_removed(GDBusConnection *bus, const char *sender, const char *path,
                        const char *interface, const char *signal, GVariant *parameters, void *data)
{
    Job *job = data;
    const char *removed;
    const char *result;

    (void)bus;
    (void)sender;
    (void)path;
    (void)interface;
    (void)signal;
    g_variant_get(parameters, "(u&o&s&s)", NULL, &removed, NULL, &result);
    if (!job->path)
        g_hash_table_insert(job->ended, g_strdup(removed), g_strdup(result));
    else if (g_str_equal(removed, job->path) && !job->result) {
        job->result = g_strdup(result);
        g_main_loop_quit(job->loop);
    }
}

static gboolean too_late(void *data)
{
    Job *job = data;

    job->result = g_strdup("timeout");
    g_main_loop_quit(job->loop);
    return G_SOURCE_REMOVE;
}

static GVariant *scope_properties(void)
{
    const guint32 pid = (guint32)getpid();
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE("a(sv)"));
    g_variant_builder_add(&builder, "(sv)", "Description",
                          g_variant_new_string("Program in a slice of a GPU"));
    g_variant_builder_add(&builder, "(sv)", "PIDs",
                          g_variant_new_fixed_array(G_VARIANT_TYPE_UINT32, &pid, 1, sizeof(pid)));
    g_variant_builder_add(&builder, "(sv)", "CollectMode",
                          g_variant_new_string("inactive-or-failed"));
    return g_variant_builder_end(&builder);
}

static GVariant *call_systemd(GDBusConnection *bus, const char *method, GVariant *parameters,
                              const char *type, GError **error)
{
    return g_dbus_connection_call_sync(bus, SYSTEMD, SYSTEMD_PATH, MANAGER, method, parameters,
                                       type ? G_VARIANT_TYPE(type) : NULL, G_DBUS_CALL_FLAGS_NONE,
                                       -1, NULL, error);
}

static void wait_for(Job *job)
{
    guint late;

    job->result = g_strdup(g_hash_table_lookup(job->ended, job->path));
    if (job->result)
        return;
    late = g_timeout_add_seconds(PATIENCE_S, too_late, job);
    g_main_loop_run(job->loop);
    if (!g_str_equal(job->result, "timeout"))
        g_source_remove(late);
}

static gboolean start_scope(GDBusConnection *bus, const char *unit, Job *job, GError **error)
{
    g_autoptr(GVariant) subscribed = call_systemd(bus, "Subscribe", NULL, NULL, error);
    g_autoptr(GVariant) started = NULL;

    if (subscribed)
        started = call_systemd(
            bus, "StartTransientUnit",
            g_variant_new("(ss@a(sv)a(sa(sv)))", unit, "fail", scope_properties(), NULL), "(o)",
            error);
    if (!started)
        return FALSE;
    g_variant_get(started, "(o)", &job->path);
    wait_for(job);
    if (g_str_equal(job->result, "done"))
        return TRUE;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "systemd does not start %s: %s", unit,
                job->result);
    return FALSE;
}

/*
 * Moves this process into a scope for the slice @uuid: of the user's own manager, or for root of
 * the system's. A process whose cgroup is not systemd's own stays there: a workload manager or a
 * container runtime has put it there, and counts it there. FALSE: it stays where it is, with
 * @error if systemd was asked and said no.
 */
static gboolean run_scope_enter(const char *uuid, GError **error)
{
    g_autofree char *unit = g_strdup_printf("vgpu-run-%s.scope", uuid);
    g_autoptr(GDBusConnection) bus = NULL;
    Job job = {0};
    guint subscription;
    gboolean done;

    if (!is_in_unit())
        return FALSE;
    /* A user who has not logged in has no manager, as in a job of cron. */
    bus = g_bus_get_sync(geteuid() ? G_BUS_TYPE_SESSION : G_BUS_TYPE_SYSTEM, NULL, NULL);
    if (!bus)
        return FALSE;
    job.loop = g_main_loop_new(NULL, FALSE);
    job.ended = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    subscription =
        g_dbus_connection_signal_subscribe(bus, SYSTEMD, MANAGER, "JobRemoved", SYSTEMD_PATH, NULL,
                                           G_DBUS_SIGNAL_FLAGS_NONE, job_removed, &job, NULL);
    done = start_scope(bus, unit, &job, error);
    g_dbus_connection_signal_unsubscribe(bus, subscription);
    g_hash_table_unref(job.ended);
    g_main_loop_unref(job.loop);
    g_free(job.path);
    g_free(job.result);
    return done;
}

/*
 * vgpuctl run: a program of this host in a slice of its own. This process becomes the program, so
 * signals and the exit status are the program's; vgpud sees when it has ended.
 */

/* As env(1) and shells have them. */
#define CANNOT_RUN    126
#define NO_SUCH       127
#define SOCKET        "0/governor.sock"
#define SOCKET_MS     10000
#define LOOK_AGAIN_MS 10

static char *type;
static int share = -1;
static char **gpus;
static gboolean no_scope;

const GOptionEntry run_options[] = {
    {"share", 0, 0, G_OPTION_ARG_INT, &share, "The same as --compute", "N"},
    {"type", 0, 0, G_OPTION_ARG_STRING, &type, "A type in place of a size, as half", "TYPE"},
    {"gpu", 0, 0, G_OPTION_ARG_STRING_ARRAY, &gpus,
     "Only on GPUs with this address, id (10de:*) or name; may be a pattern", "GPU"},
    {"no-scope", 0, 0, G_OPTION_ARG_NONE, &no_scope, "Stay in the cgroup of the caller", NULL},
    G_OPTION_ENTRY_NULL,
};

static gboolean has_size(GVariantDict *dict)
{
    return type || g_variant_dict_contains(dict, "Vram") ||
           g_variant_dict_contains(dict, "VramPercent");
}

static GVariant *run_request(const char *uuid, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    if (!slice_options_add(&dict, error))
        return NULL;
    if (!has_size(&dict)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                    "--vram or --type is required: how much of a GPU the program gets");
        return NULL;
    }
    g_variant_dict_insert_value(&dict, "Uuids",
                                g_variant_new_strv((const char *[]){uuid, NULL}, -1));
    call_dict_add_text(&dict, "Type", type);
    call_dict_add_number(&dict, "Compute", share);
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
static gboolean become_program(const char *path, char **argv, const struct sigaction *pipe_action,
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
    asked = path ? run_request(uuid, error) : NULL;
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
    return become_program(path, args, &pipe_action, error);
}
