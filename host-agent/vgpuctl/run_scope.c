/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/run_scope.h"

#include <gio/gio.h>
#include <string.h>
#include <unistd.h>

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

static GVariant *properties(void)
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

static GVariant *call(GDBusConnection *bus, const char *method, GVariant *parameters,
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

static gboolean start(GDBusConnection *bus, const char *unit, Job *job, GError **error)
{
    g_autoptr(GVariant) subscribed = call(bus, "Subscribe", NULL, NULL, error);
    g_autoptr(GVariant) started = NULL;

    if (subscribed)
        started = call(bus, "StartTransientUnit",
                       g_variant_new("(ss@a(sv)a(sa(sv)))", unit, "fail", properties(), NULL),
                       "(o)", error);
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

gboolean run_scope_enter(const char *uuid, GError **error)
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
    done = start(bus, unit, &job, error);
    g_dbus_connection_signal_unsubscribe(bus, subscription);
    g_hash_table_unref(job.ended);
    g_main_loop_unref(job.loop);
    g_free(job.path);
    g_free(job.result);
    return done;
}
