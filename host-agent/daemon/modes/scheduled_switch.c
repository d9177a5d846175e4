/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/scheduled_switch.h"

#include <string.h>

#include "lib/bus.h"
#include "lib/systemd.h"
#include "host-agent/store/tables.h"

/* systemd's timers for the schedule. */

#define PREFIX         "vgpu-schedule@"
#define SUFFIX         ".timer"
#define MAX_NAME       100
#define CHECKSUM_CHARS 8

static void timer_free(void *data)
{
    ScheduleTimer *timer = data;

    g_free(timer->instance);
    g_free(timer->calendar);
    g_free(timer->description);
    g_free(timer);
}

/* systemd limits the length of names; the checksum tells long ones apart. */
static char *instance_of(const char *name, const ScheduleTimer *timer)
{
    g_autofree char *all = g_strjoin("\n", name, timer->calendar, timer->description, NULL);
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, all, -1);
    g_autofree char *escaped = unit_name_escape(name);

    return g_strdup_printf("%.*s-%.*s", MAX_NAME, escaped, CHECKSUM_CHARS, sum);
}

/* Takes @calendar and @description. */
static void add_timer(GPtrArray *timers, const GPtrArray *entries, guint entry, gboolean warns,
                      char *calendar, char *description)
{
    ScheduleTimer *timer = g_new0(ScheduleTimer, 1);

    timer->calendar = calendar;
    timer->description = description;
    timer->entry = entry;
    timer->warns = warns;
    timer->instance =
        instance_of(((const ScheduleEntry *)g_ptr_array_index(entries, entry))->name, timer);
    g_ptr_array_add(timers, timer);
}

/*
 * A time before each elapse cannot be expressed, so it is one point of time. One that is over stays
 * until its entry is due, and does nothing.
 */
static char *warning_time(const ScheduleEntry *entry)
{
    g_autoptr(GDateTime) time =
        g_date_time_new_from_unix_utc(schedule_entry_next(entry) - entry->warn);

    return g_date_time_format(time, "%F %T UTC");
}

GPtrArray *schedule_timers_of(const GPtrArray *entries)
{
    GPtrArray *timers = g_ptr_array_new_with_free_func(timer_free);

    for (guint i = 0; i < entries->len; i++) {
        const ScheduleEntry *entry = g_ptr_array_index(entries, i);
        g_autofree char *text = schedule_entry_text(entry);

        add_timer(timers, entries, i, FALSE, g_strdup(entry->calendar),
                  g_strdup_printf("GPU %s %s (schedule %s)", entry->gpu, text, entry->name));
        if (entry->warn && entry->next)
            add_timer(timers, entries, i, TRUE, warning_time(entry),
                      g_strdup_printf("Warning that GPU %s %s (schedule %s)", entry->gpu, text,
                                      entry->name));
    }
    return timers;
}

const ScheduleTimer *schedule_timers_find(const GPtrArray *timers, const char *instance)
{
    for (guint i = 0; i < timers->len; i++) {
        const ScheduleTimer *timer = g_ptr_array_index(timers, i);

        if (g_str_equal(timer->instance, instance))
            return timer;
    }
    return NULL;
}

static char *unit_of(const ScheduleTimer *timer)
{
    return g_strconcat(PREFIX, timer->instance, SUFFIX, NULL);
}

/*
 * Not Persistent=: after a boot that would execute each missed entry, and vgpud executes the last
 * one of each GPU.
 */
static GVariant *properties_of(const ScheduleTimer *timer)
{
    GVariantBuilder list, calendars;

    g_variant_builder_init(&calendars, G_VARIANT_TYPE("a(ss)"));
    g_variant_builder_add(&calendars, "(ss)", "OnCalendar", timer->calendar);
    g_variant_builder_init(&list, G_VARIANT_TYPE("a(sv)"));
    g_variant_builder_add(&list, "(sv)", "Description", g_variant_new_string(timer->description));
    g_variant_builder_add(&list, "(sv)", "TimersCalendar", g_variant_builder_end(&calendars));
    g_variant_builder_add(&list, "(sv)", "AccuracyUSec", g_variant_new_uint64(G_USEC_PER_SEC));
    g_variant_builder_add(&list, "(sv)", "CollectMode", g_variant_new_string("inactive-or-failed"));
    return g_variant_builder_end(&list);
}

static void stop_others(GDBusConnection *bus, const char *const *units, const GPtrArray *timers)
{
    for (guint i = 0; units[i]; i++) {
        g_autofree char *instance = g_strdup(units[i] + strlen(PREFIX));

        instance[strlen(instance) - strlen(SUFFIX)] = '\0';
        if (!schedule_timers_find(timers, instance))
            unit_call(bus, "StopUnit", units[i]);
    }
}

static void start_missing(GDBusConnection *bus, const char *const *units, const GPtrArray *timers)
{
    for (guint i = 0; i < timers->len; i++) {
        const ScheduleTimer *timer = g_ptr_array_index(timers, i);
        g_autofree char *unit = unit_of(timer);

        if (!g_strv_contains(units, unit))
            unit_start_transient(bus, unit, properties_of(timer));
    }
}

static void timers_listed(GObject *bus, GAsyncResult *answer, void *data)
{
    g_autoptr(GPtrArray) timers = data;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) units = units_list_finish(G_DBUS_CONNECTION(bus), answer, &error);

    if (units) {
        stop_others(G_DBUS_CONNECTION(bus), (const char *const *)units, timers);
        start_missing(G_DBUS_CONNECTION(bus), (const char *const *)units, timers);
    } else if (timers->len && !g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        g_warning("cannot list systemd's timers, so no GPU changes its mode by the clock: %s",
                  error->message);
    }
}

void schedule_timers_sync(GPtrArray *timers, GDBusConnection *bus, GCancellable *cancellable)
{
    units_list(bus, PREFIX "*" SUFFIX, cancellable, timers_listed, g_ptr_array_ref(timers));
}

struct ScheduledSwitches {
    Host *host;
    Modes *modes;
    GPtrArray *pending; /* of Due */
};

/**
 * Due - an entry whose switch is under way
 * @switches: NULL: they are freed
 */
typedef struct {
    ScheduledSwitches *switches;
    char *name;
    char *gpu;
    gint64 when;
} Due;

static void due_free(Due *due)
{
    g_free(due->name);
    g_free(due->gpu);
    g_free(due);
}

/* So that it is not due again. */
static void remember_due(const ScheduledSwitches *switches, const char *gpu, gint64 when)
{
    g_autoptr(GError) error = NULL;

    if (!gpu_table_set_due(host_db(switches->host), gpu, when, &error))
        g_warning("%s", error->message);
}

static void mode_switched(const char *const *steps, const GError *error, void *data)
{
    Due *due = data;
    ScheduledSwitches *switches = due->switches;

    (void)steps;
    if (switches) {
        g_ptr_array_remove_fast(switches->pending, due);
        remember_due(switches, due->gpu, due->when);
        if (error)
            host_event(switches->host, "mode", due->gpu, NULL, "schedule %s: %s", due->name,
                       error->message);
    }
    due_free(due);
}

/* The new entry replaces any earlier one that still waits for the GPU. */
static void supersede_switch(const ScheduledSwitches *switches, const ScheduleEntry *entry)
{
    for (guint i = switches->pending->len; i > 0; i--) {
        const Due *due = g_ptr_array_index(switches->pending, i - 1);

        if (!g_str_equal(due->gpu, entry->gpu))
            continue;
        host_event(switches->host, "mode", due->gpu, NULL,
                   "schedule %s: skipped, because %s is due now", due->name, entry->name);
        modes_cancel(switches->modes, due->gpu);
    }
}

void scheduled_switches_add(ScheduledSwitches *switches, const ScheduleEntry *entry, gint64 when)
{
    g_autofree char *text = schedule_entry_text(entry);
    const SwitchRequest request = {.address = entry->gpu,
                                   .target = entry->mode,
                                   .partitions = entry->partitions,
                                   .pool = entry->pool,
                                   .drain = entry->drain,
                                   .timeout = entry->timeout,
                                   .source = AUDIT_BY_SCHEDULE};
    Due *due = g_new0(Due, 1);
    g_autoptr(GError) error = NULL;

    supersede_switch(switches, entry);
    due->switches = switches;
    due->name = g_strdup(entry->name);
    due->gpu = g_strdup(entry->gpu);
    due->when = when;
    g_ptr_array_add(switches->pending, due);
    g_message("schedule %s: GPU %s %s", entry->name, entry->gpu, text);
    if (modes_set(switches->modes, &request, mode_switched, due, &error))
        return;
    if (!g_error_matches(error, AGENT_ERROR, AGENT_ERROR_IN_USE)) {
        mode_switched(NULL, error, due);
        return;
    }
    g_message("schedule %s: %s; it comes after that", entry->name, error->message);
    g_ptr_array_remove_fast(switches->pending, due);
    due_free(due);
}

gint64 scheduled_switches_last(const ScheduledSwitches *switches, const char *gpu)
{
    gint64 last = gpu_table_due(host_db(switches->host), gpu);

    for (guint i = 0; i < switches->pending->len; i++) {
        const Due *due = g_ptr_array_index(switches->pending, i);

        if (g_str_equal(due->gpu, gpu))
            last = due->when;
    }
    return last;
}

ScheduledSwitches *scheduled_switches_new(Host *host, Modes *modes)
{
    ScheduledSwitches *switches = g_new0(ScheduledSwitches, 1);

    switches->host = host;
    switches->modes = modes;
    switches->pending = g_ptr_array_new();
    return switches;
}

void scheduled_switches_free(ScheduledSwitches *switches)
{
    for (guint i = 0; i < switches->pending->len; i++)
        ((Due *)g_ptr_array_index(switches->pending, i))->switches = NULL;
    g_ptr_array_unref(switches->pending);
    g_free(switches);
}
