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
static void add(GPtrArray *timers, const GPtrArray *entries, guint entry, gboolean warns,
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

        add(timers, entries, i, FALSE, g_strdup(entry->calendar),
            g_strdup_printf("GPU %s %s (schedule %s)", entry->gpu, text, entry->name));
        if (entry->warn && entry->next)
            add(timers, entries, i, TRUE, warning_time(entry),
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

static void listed(GObject *bus, GAsyncResult *answer, void *data)
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
    units_list(bus, PREFIX "*" SUFFIX, cancellable, listed, g_ptr_array_ref(timers));
}

/* While another switch of the GPU is under way, or an owner has it: no event reports its end. */
#define TRY_AGAIN_S 1

struct ScheduledSwitches {
    Host *host;
    Modes *modes;
    PoolSetFunc set_pool;
    void *data;
    GPtrArray *pending; /* of Due */
};

/**
 * Due - an entry whose time has come
 * @switches: NULL: they are freed
 * @pool: NULL: none. It is set after the mode, which then is @switched
 * @until: of the monotonic clock: how long it waits for owners of another pool; 0: for ever
 * @again: a timer, while it waits for them, or for another switch of the GPU to end
 */
typedef struct {
    ScheduledSwitches *switches;
    char *name;
    char *gpu;
    gint64 when;
    GpuMode mode;
    guint partitions;
    char *pool;
    gboolean switched;
    gboolean drain;
    guint timeout;
    gint64 until;
    guint again;
} Due;

static void due_free(Due *due)
{
    g_clear_handle_id(&due->again, g_source_remove);
    g_free(due->name);
    g_free(due->gpu);
    g_free(due->pool);
    g_free(due);
}

/* So that a restart does not take it for missed. */
static void remember(const ScheduledSwitches *switches, const char *gpu, gint64 when)
{
    g_autoptr(GError) error = NULL;

    if (!gpu_table_set_due(host_db(switches->host), gpu, when, &error))
        g_warning("%s", error->message);
}

static void finish(Due *due, const GError *error)
{
    ScheduledSwitches *switches = due->switches;

    g_ptr_array_remove_fast(switches->pending, due);
    modes_hold(switches->modes, due->gpu, FALSE);
    remember(switches, due->gpu, due->when);
    if (error)
        host_event(switches->host, due->switched ? "pool" : "mode", due->gpu, NULL,
                   "schedule %s: %s", due->name, error->message);
    due_free(due);
}

static gboolean may_wait(const Due *due, const GError *error)
{
    return g_error_matches(error, AGENT_ERROR, AGENT_ERROR_IN_USE) && due->drain &&
           (!due->until || g_get_monotonic_time() < due->until);
}

/* An operator may have ended the hold meanwhile, as that of a switch that waits. */
static gboolean give_pool(void *data)
{
    Due *due = data;
    ScheduledSwitches *switches = due->switches;
    gboolean cancelled = due->again && !modes_held(switches->modes, due->gpu);
    g_autoptr(GError) error = NULL;

    if (cancelled)
        g_set_error(&error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "GPU %s stays in its pool, because its drain was ended", due->gpu);
    else
        switches->set_pool(due->gpu, due->pool, &error, switches->data);
    if (cancelled || !may_wait(due, error)) {
        due->again = 0;
        finish(due, error);
        return G_SOURCE_REMOVE;
    }
    if (!due->again)
        host_event(switches->host, "drain", due->gpu, NULL, "schedule %s waits: %s", due->name,
                   error->message);
    due->again = g_timeout_add_seconds(TRY_AGAIN_S, give_pool, due);
    return G_SOURCE_REMOVE;
}

static void switched(const char *const *steps, const GError *error, void *data)
{
    Due *due = data;

    (void)steps;
    if (!due->switches) {
        due_free(due);
        return;
    }
    due->switched = !error;
    if (due->pool && !error)
        give_pool(due);
    else
        finish(due, error);
}

static gboolean begin(void *data)
{
    Due *due = data;
    const SwitchRequest request = {.address = due->gpu,
                                   .target = due->mode,
                                   .partitions = due->partitions,
                                   .drain = due->drain,
                                   .timeout = due->timeout,
                                   .source = AUDIT_BY_SCHEDULE};
    g_autoptr(GError) error = NULL;

    if (due->pool && due->drain)
        modes_hold(due->switches->modes, due->gpu, TRUE);
    if (modes_set(due->switches->modes, &request, switched, due, &error)) {
        due->again = 0;
    } else if (g_error_matches(error, AGENT_ERROR, AGENT_ERROR_IN_USE)) {
        if (!due->again)
            g_message("schedule %s: %s; it comes after that", due->name, error->message);
        due->again = g_timeout_add_seconds(TRY_AGAIN_S, begin, due);
    } else {
        due->again = 0;
        switched(NULL, error, due);
    }
    return G_SOURCE_REMOVE;
}

/* The new entry replaces any earlier one that still waits for the GPU. */
static void supersede(ScheduledSwitches *switches, const ScheduleEntry *entry)
{
    for (guint i = switches->pending->len; i > 0; i--) {
        Due *due = g_ptr_array_index(switches->pending, i - 1);

        if (!g_str_equal(due->gpu, entry->gpu))
            continue;
        host_event(switches->host, "mode", due->gpu, NULL,
                   "schedule %s: skipped, because %s is due now", due->name, entry->name);
        if (due->again) {
            g_ptr_array_remove_index(switches->pending, i - 1);
            due_free(due);
        } else {
            modes_cancel(switches->modes, due->gpu);
        }
    }
}

void scheduled_switches_add(ScheduledSwitches *switches, const ScheduleEntry *entry, gint64 when)
{
    g_autofree char *text = schedule_entry_text(entry);
    Due *due = g_new0(Due, 1);

    supersede(switches, entry);
    due->switches = switches;
    due->name = g_strdup(entry->name);
    due->gpu = g_strdup(entry->gpu);
    due->when = when;
    due->mode = entry->mode;
    due->partitions = entry->partitions;
    due->drain = entry->drain;
    due->pool = g_strdup(entry->pool);
    due->timeout = entry->timeout;
    due->until =
        entry->timeout ? g_get_monotonic_time() + entry->timeout * (gint64)G_USEC_PER_SEC : 0;
    g_ptr_array_add(switches->pending, due);
    g_message("schedule %s: GPU %s %s", entry->name, entry->gpu, text);
    begin(due);
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

ScheduledSwitches *scheduled_switches_new(Host *host, Modes *modes, PoolSetFunc set_pool,
                                          void *data)
{
    ScheduledSwitches *switches = g_new0(ScheduledSwitches, 1);

    switches->host = host;
    switches->modes = modes;
    switches->set_pool = set_pool;
    switches->data = data;
    switches->pending = g_ptr_array_new();
    return switches;
}

void scheduled_switches_free(ScheduledSwitches *switches)
{
    for (guint i = 0; i < switches->pending->len; i++) {
        Due *due = g_ptr_array_index(switches->pending, i);

        due->switches = NULL;
        /* No other entry still waits for the GPU. */
        if (due->again)
            due_free(due);
    }
    g_ptr_array_unref(switches->pending);
    g_free(switches);
}
