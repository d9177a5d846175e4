/* SPDX-License-Identifier: MIT */
#include "lib/systemd.h"

#include <stdio.h>
#include <string.h>

#include "lib/program.h"
#include "lib/host_root.h"

#define SYSTEM  "/sys/fs/cgroup/system.slice/"
#define ENGINES SYSTEM "system-vgpu\\x2dengine.slice"
#define GUARDS  SYSTEM "system-vgpu\\x2dguard.slice"

char *engine_unit_name(const char *uuid)
{
    return g_strconcat("vgpu-engine@", uuid, ".service", NULL);
}

char *guard_unit_name(const char *uuid)
{
    return g_strconcat("vgpu-guard@", uuid, ".service", NULL);
}

char *engine_unit_cgroup(const char *uuid)
{
    g_autofree char *unit = engine_unit_name(uuid);

    return g_build_filename(ENGINES, unit, NULL);
}

char *guard_unit_cgroup(const char *uuid)
{
    g_autofree char *unit = guard_unit_name(uuid);

    return g_build_filename(GUARDS, unit, NULL);
}

guint64 engine_unit_cpu_us(HostRoot *root, const char *uuid)
{
    static const char key[] = "usage_usec ";
    g_autofree char *dir = engine_unit_cgroup(uuid);
    g_autofree char *text = sysfs_read(root, dir, "cpu.stat");
    const char *at = text ? strstr(text, key) : NULL;

    return at ? g_ascii_strtoull(at + strlen(key), NULL, 10) : 0;
}

GStrv engine_unit_processes(HostRoot *root, const char *uuid)
{
    g_autofree char *dir = engine_unit_cgroup(uuid);
    g_autofree char *path = g_build_filename(dir, "cgroup.procs", NULL);
    g_autofree char *text = root_read(root, path, NULL);

    return g_strsplit(text ? g_strchomp(text) : "", "\n", -1);
}

static void systemd_answered(GObject *bus, GAsyncResult *answer, void *data)
{
    g_autofree char *unit = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) job = g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), answer, &error);

    if (!job)
        g_message("%s can't be started or stopped: %s", unit, error->message);
}

static void manager_call(GDBusConnection *bus, const char *method, GVariant *parameters,
                         GCancellable *cancellable, GAsyncReadyCallback func, void *data)
{
    g_dbus_connection_call(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                           "org.freedesktop.systemd1.Manager", method, parameters, NULL,
                           G_DBUS_CALL_FLAGS_NONE, -1, cancellable, func, data);
}

void unit_call(GDBusConnection *bus, const char *method, const char *unit)
{
    manager_call(bus, method, g_variant_new("(ss)", unit, "replace"), NULL, systemd_answered,
                 g_strdup(unit));
}

void unit_start_transient(GDBusConnection *bus, const char *unit, GVariant *properties)
{
    GVariant *others = g_variant_new_array(G_VARIANT_TYPE("(sa(sv))"), NULL, 0);

    manager_call(bus, "StartTransientUnit",
                 g_variant_new("(ss@a(sv)@a(sa(sv)))", unit, "replace", properties, others), NULL,
                 systemd_answered, g_strdup(unit));
}

void units_list(GDBusConnection *bus, const char *pattern, GCancellable *cancellable,
                GAsyncReadyCallback func, void *data)
{
    const char *states[] = {"active", NULL};
    const char *patterns[] = {pattern, NULL};

    manager_call(bus, "ListUnitsByPatterns", g_variant_new("(^as^as)", states, patterns),
                 cancellable, func, data);
}

/* Of the ten members of each answer the first is the name. */
GStrv units_list_finish(GDBusConnection *bus, GAsyncResult *answer, GError **error)
{
    g_autoptr(GVariant) result = g_dbus_connection_call_finish(bus, answer, error);
    g_autoptr(GVariant) list = NULL;
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();

    if (!result)
        return NULL;
    list = g_variant_get_child_value(result, 0);
    for (gsize i = 0; i < g_variant_n_children(list); i++) {
        g_autoptr(GVariant) unit = g_variant_get_child_value(list, i);
        g_autoptr(GVariant) name = g_variant_get_child_value(unit, 0);

        g_strv_builder_add(names, g_variant_get_string(name, NULL));
    }
    return g_strv_builder_end(names);
}

char *unit_name_escape(const char *text)
{
    GString *name = g_string_new(NULL);

    for (const char *at = text; *at; at++)
        if (*at == '/')
            g_string_append_c(name, '-');
        else if (g_ascii_isalnum(*at) || *at == ':' || *at == '_' || (*at == '.' && at > text))
            g_string_append_c(name, *at);
        else
            g_string_append_printf(name, "\\x%02x", (guint8)*at);
    return g_string_free(name, FALSE);
}

/* Calendar expressions of systemd's (systemd.time(7)). */

#define UTC_SUFFIX " UTC"
#define SECONDS    10

static void time_free(void *data)
{
    CalendarTime *time = data;

    g_free(time->normalized);
    g_free(time);
}

/* "Wed 2026-11-25 08:00:00 UTC"; in another time zone, or no time at all: nothing. */
static void parse_utc(const char *text, gint64 *seconds)
{
    g_autoptr(GDateTime) time = NULL;
    int year, month, day, hour, minute, second;

    if (!g_str_has_suffix(text, UTC_SUFFIX) ||
        sscanf(text, "%*s %d-%d-%d %d:%d:%d", &year, &month, &day, &hour, &minute, &second) != 6)
        return;
    time = g_date_time_new_utc(year, month, day, hour, minute, second);
    if (time)
        *seconds = g_date_time_to_unix(time);
}

/*
 * "Next elapse: Wed 2026-11-25 08:00:00 CET", followed by "(in UTC): …" unless the host's time zone
 * is UTC.
 */
static void read_line(GPtrArray *times, const char *key, const char *value)
{
    CalendarTime *time = times->len ? g_ptr_array_index(times, times->len - 1) : NULL;

    if (g_str_equal(key, "Normalized form")) {
        time = g_new0(CalendarTime, 1);
        time->normalized = g_strdup(value);
        g_ptr_array_add(times, time);
    } else if (time && (g_str_equal(key, "Next elapse") || g_str_equal(key, "(in UTC)"))) {
        parse_utc(value, &time->next);
    }
}

/* NULL with @error: the program said something else than was expected. */
static GPtrArray *read_times(const char *output, guint count, GError **error)
{
    g_autoptr(GPtrArray) times = g_ptr_array_new_with_free_func(time_free);
    g_auto(GStrv) lines = g_strsplit(output, "\n", -1);

    for (char **line = lines; *line; line++) {
        char *colon = strstr(*line, ": ");

        if (!colon)
            continue;
        *colon = '\0';
        read_line(times, g_strstrip(*line), g_strstrip(colon + strlen(": ")));
    }
    if (times->len == count)
        return g_steal_pointer(&times);
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                "\"systemd-analyze calendar\" gave %u answers to %u questions", times->len, count);
    return NULL;
}

/* @error: the program's. */
static GError *error_of(const GError *error)
{
    int code = G_IO_ERROR_FAILED;

    if (error->domain == G_SPAWN_ERROR)
        code = G_IO_ERROR_NOT_FOUND;
    else if (strstr(error->message, "Failed to parse calendar specification"))
        code = G_IO_ERROR_INVALID_ARGUMENT;
    else if (error->domain == G_IO_ERROR)
        code = error->code;
    return g_error_new_literal(G_IO_ERROR, code, error->message);
}

/* Of the strings in it, only @base is the array's own. */
static GPtrArray *argv_of(const char *const *expressions, char *base)
{
    GPtrArray *argv = g_ptr_array_new();

    g_ptr_array_add(argv, (char *)"systemd-analyze");
    g_ptr_array_add(argv, (char *)"--no-pager");
    g_ptr_array_add(argv, (char *)"calendar");
    if (base)
        g_ptr_array_add(argv, base);
    g_ptr_array_add(argv, (char *)"--");
    for (; *expressions; expressions++)
        g_ptr_array_add(argv, (char *)*expressions);
    g_ptr_array_add(argv, NULL);
    return argv;
}

typedef struct {
    guint count;
    GCancellable *cancellable;
    CalendarFunc func;
    void *data;
} Question;

static void calendar_answered(const char *output, const GError *error, void *data)
{
    Question *question = data;
    g_autoptr(GError) cause = error ? error_of(error) : NULL;
    g_autoptr(GPtrArray) times = NULL;

    /* Also if the program had ended by itself: who cancels may be gone. */
    if (g_cancellable_is_cancelled(question->cancellable)) {
        g_clear_error(&cause);
        g_cancellable_set_error_if_cancelled(question->cancellable, &cause);
    }
    if (!cause)
        times = read_times(output, question->count, &cause);
    question->func(times, cause, question->data);
    g_clear_object(&question->cancellable);
    g_free(question);
}

void calendar_ask(const char *const *expressions, gint64 after, GCancellable *cancellable,
                  CalendarFunc func, void *data)
{
    g_autofree char *base = after ? g_strdup_printf("--base-time=@%" G_GINT64_FORMAT, after) : NULL;
    g_autoptr(GPtrArray) argv = argv_of(expressions, base);
    Question *question = g_new0(Question, 1);

    question->count = g_strv_length((char **)expressions);
    question->cancellable = cancellable ? g_object_ref(cancellable) : NULL;
    question->func = func;
    question->data = data;
    program_start(&(Program){.argv = (const char *const *)argv->pdata, .seconds = SECONDS},
                  cancellable, calendar_answered, question);
}

GPtrArray *calendar_ask_now(const char *const *expressions, GError **error)
{
    g_autoptr(GPtrArray) argv = argv_of(expressions, NULL);
    g_autoptr(GError) cause = NULL;
    g_autofree char *output = NULL;

    if (program_run(&(Program){.argv = (const char *const *)argv->pdata, .seconds = SECONDS},
                    &output, &cause))
        return read_times(output, g_strv_length((char **)expressions), error);
    g_propagate_error(error, error_of(cause));
    return NULL;
}
