/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/schedule.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "host-agent/daemon/host/authority.h"
#include "host-agent/model/timetable.h"
#include "host-agent/store/gpu_table.h"
#include "lib/bus.h"

/**
 * struct Schedule
 * @entries: of TimetableEntry
 * @checked: seconds since 1970: everything due until then was handled
 * @pending: of Due: switches under way
 * @timer: a timerfd, which also reports that the clock was set
 */
struct Schedule {
    Host *host;
    Modes *modes;
    GPtrArray *entries;
    GPtrArray *pending;
    gint64 checked;
    int timer;
    guint source;
    gboolean started;
};

/* While another switch of the GPU is under way: no event reports its end. */
#define TRY_AGAIN_S 1

/**
 * Due - an entry whose time has come
 * @schedule: NULL: it is freed
 * @again: a timer, while it waits for another switch of the GPU to end
 */
typedef struct {
    Schedule *schedule;
    char *name;
    char *gpu;
    gint64 when;
    GpuMode mode;
    guint partitions;
    gboolean drain;
    guint timeout;
    guint again;
} Due;

static void due_free(Due *due)
{
    g_clear_handle_id(&due->again, g_source_remove);
    g_free(due->name);
    g_free(due->gpu);
    g_free(due);
}

static gint64 now(void)
{
    return g_get_real_time() / G_USEC_PER_SEC;
}

static gint64 next_time(const TimetableEntry *entry, gint64 after)
{
    g_autoptr(GDateTime) from = g_date_time_new_from_unix_local(after);
    g_autoptr(GDateTime) next = timetable_next(entry, from);

    return g_date_time_to_unix(next);
}

static gint64 last_time(const TimetableEntry *entry, gint64 at)
{
    g_autoptr(GDateTime) from = g_date_time_new_from_unix_local(at);
    g_autoptr(GDateTime) last = timetable_last(entry, from);

    return g_date_time_to_unix(last);
}

/* So that a restart does not take it for missed. */
static void remember(const Schedule *schedule, const char *gpu, gint64 when)
{
    g_autoptr(GError) error = NULL;

    if (!gpu_table_set_due(host_db(schedule->host), gpu, when, &error))
        g_warning("%s", error->message);
}

static void switched(const char *const *steps, const GError *error, void *data)
{
    Due *due = data;
    Schedule *schedule = due->schedule;

    (void)steps;
    if (schedule) {
        g_ptr_array_remove_fast(schedule->pending, due);
        remember(schedule, due->gpu, due->when);
        if (error)
            host_event(schedule->host, "mode", due->gpu, NULL, "schedule %s: %s", due->name,
                       error->message);
    }
    due_free(due);
}

static gboolean begin(void *data)
{
    Due *due = data;
    const SwitchRequest request = {.address = due->gpu,
                                   .target = due->mode,
                                   .partitions = due->partitions,
                                   .drain = due->drain,
                                   .timeout = due->timeout};
    g_autoptr(GError) error = NULL;

    if (modes_set(due->schedule->modes, &request, switched, due, &error)) {
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
static void supersede(Schedule *schedule, const TimetableEntry *entry)
{
    for (guint i = schedule->pending->len; i > 0; i--) {
        Due *due = g_ptr_array_index(schedule->pending, i - 1);

        if (!g_str_equal(due->gpu, entry->gpu))
            continue;
        host_event(schedule->host, "mode", due->gpu, NULL,
                   "schedule %s: skipped, because %s is due now", due->name, entry->name);
        if (due->again) {
            g_ptr_array_remove_index(schedule->pending, i - 1);
            due_free(due);
        } else {
            modes_cancel(schedule->modes, due->gpu);
        }
    }
}

static void apply(Schedule *schedule, const TimetableEntry *entry, gint64 when)
{
    Due *due = g_new0(Due, 1);

    supersede(schedule, entry);
    due->schedule = schedule;
    due->name = g_strdup(entry->name);
    due->gpu = g_strdup(entry->gpu);
    due->when = when;
    due->mode = entry->mode;
    due->partitions = entry->partitions;
    due->drain = entry->drain;
    due->timeout = entry->timeout;
    g_ptr_array_add(schedule->pending, due);
    g_message("schedule %s: GPU %s becomes %s", entry->name, entry->gpu,
              gpu_mode_name(entry->mode));
    begin(due);
}

/* The entry of @gpu that was due last, in (@after, @at]; NULL: none was. */
static const TimetableEntry *last_due(const Schedule *schedule, const char *gpu, gint64 after,
                                      gint64 at, gint64 *when)
{
    const TimetableEntry *last = NULL;

    *when = after;
    for (guint i = 0; i < schedule->entries->len; i++) {
        const TimetableEntry *entry = g_ptr_array_index(schedule->entries, i);
        gint64 due = g_str_equal(entry->gpu, gpu) ? last_time(entry, at) : 0;

        if (due > *when) {
            *when = due;
            last = entry;
        }
    }
    return last;
}

/* The first entry of each GPU represents the GPU. */
static gboolean is_first_of_gpu(const Schedule *schedule, guint at)
{
    const TimetableEntry *entry = g_ptr_array_index(schedule->entries, at);

    for (guint i = 0; i < at; i++)
        if (g_str_equal(((const TimetableEntry *)g_ptr_array_index(schedule->entries, i))->gpu,
                        entry->gpu))
            return FALSE;
    return TRUE;
}

static void apply_due(Schedule *schedule, gint64 at)
{
    for (guint i = 0; i < schedule->entries->len; i++) {
        const TimetableEntry *entry = g_ptr_array_index(schedule->entries, i);
        gint64 when;
        const TimetableEntry *due =
            is_first_of_gpu(schedule, i)
                ? last_due(schedule, entry->gpu, schedule->checked, at, &when)
                : NULL;

        if (due)
            apply(schedule, due, when);
    }
}

static void warn(const Schedule *schedule, const TimetableEntry *entry, gint64 when)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_local(when);
    g_autofree char *clock = g_date_time_format(time, "%H:%M");

    host_event(schedule->host, "schedule-warning", entry->gpu, NULL,
               "GPU %s becomes %s at %s (schedule %s); who has it then %s", entry->gpu,
               gpu_mode_name(entry->mode), clock, entry->name,
               entry->drain ? "is waited for" : "keeps it from that");
}

static void warn_due(const Schedule *schedule, gint64 at)
{
    for (guint i = 0; i < schedule->entries->len; i++) {
        const TimetableEntry *entry = g_ptr_array_index(schedule->entries, i);
        gint64 next = next_time(entry, at);
        gint64 warning = next - entry->warn;

        if (entry->warn && warning > schedule->checked && warning <= at)
            warn(schedule, entry, next);
    }
}

/* Seconds since 1970; 0: none. */
static gint64 next_event(const Schedule *schedule, gint64 at)
{
    gint64 first = 0;

    for (guint i = 0; i < schedule->entries->len; i++) {
        const TimetableEntry *entry = g_ptr_array_index(schedule->entries, i);
        gint64 next = next_time(entry, at);

        if (next - entry->warn > at)
            next -= entry->warn;
        if (!first || next < first)
            first = next;
    }
    return first;
}

static void arm(const Schedule *schedule)
{
    const struct itimerspec when = {.it_value.tv_sec = next_event(schedule, schedule->checked)};

    if (timerfd_settime(schedule->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL) <
        0)
        g_warning("the schedule's timer can't be set: %m");
}

static void check(Schedule *schedule)
{
    gint64 at = now();

    /* The clock was set back: entries between then and now become due again at their time. */
    schedule->checked = MIN(schedule->checked, at);
    warn_due(schedule, at);
    apply_due(schedule, at);
    schedule->checked = at;
    arm(schedule);
}

/* ECANCELED: the clock was set. In both cases the due entries are searched again. */
static gboolean timer_fired(int fd, GIOCondition condition, void *data)
{
    guint64 times;

    (void)condition;
    if (read(fd, &times, sizeof(times)) >= 0 || errno == ECANCELED)
        check(data);
    return G_SOURCE_CONTINUE;
}

/* The first one that is due if nothing is stored, or another than the one handled last. */
static void apply_missed(Schedule *schedule, gint64 at)
{
    for (guint i = 0; i < schedule->entries->len; i++) {
        const TimetableEntry *entry = g_ptr_array_index(schedule->entries, i);
        const TimetableEntry *last;
        gint64 when;

        if (!is_first_of_gpu(schedule, i))
            continue;
        last = last_due(schedule, entry->gpu, 0, at, &when);
        if (last && when != gpu_table_due(host_db(schedule->host), entry->gpu))
            apply(schedule, last, when);
    }
}

void schedule_start(Schedule *schedule)
{
    schedule->timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (schedule->timer < 0) {
        g_warning("there is no timer for the schedule: %m");
        return;
    }
    schedule->source = g_unix_fd_add(schedule->timer, G_IO_IN, timer_fired, schedule);
    schedule->started = TRUE;
    schedule->checked = now();
    apply_missed(schedule, schedule->checked);
    arm(schedule);
}

gboolean schedule_reload(Schedule *schedule, GError **error)
{
    g_autoptr(GError) cause = NULL;
    GPtrArray *entries = timetable_load(host_root(schedule->host), &cause);

    if (!entries) {
        g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_INVALID, cause->message);
        return FALSE;
    }
    g_ptr_array_unref(schedule->entries);
    schedule->entries = entries;
    if (schedule->started)
        arm(schedule);
    return TRUE;
}

/* An entry with the time when it is due next. */
typedef struct {
    const TimetableEntry *entry;
    gint64 next;
} Coming;

static int by_time(const void *a, const void *b)
{
    const Coming *left = a, *right = b;

    return (left->next > right->next) - (left->next < right->next);
}

static void add_entry(GVariantBuilder *list, const Coming *coming)
{
    const TimetableEntry *entry = coming->entry;

    g_variant_builder_open(list, G_VARIANT_TYPE_VARDICT);
    g_variant_builder_add(list, "{sv}", "Name", g_variant_new_string(entry->name));
    g_variant_builder_add(list, "{sv}", "Gpu", g_variant_new_string(entry->gpu));
    g_variant_builder_add(list, "{sv}", "Mode", g_variant_new_string(gpu_mode_name(entry->mode)));
    g_variant_builder_add(list, "{sv}", "Next", g_variant_new_int64(coming->next));
    g_variant_builder_add(list, "{sv}", "Warn", g_variant_new_uint32(entry->warn));
    g_variant_builder_add(list, "{sv}", "Timeout", g_variant_new_uint32(entry->timeout));
    g_variant_builder_close(list);
}

static void list_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Schedule *schedule = data;
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(Coming));
    GVariantBuilder list;
    gint64 at = now();

    (void)caller;
    for (guint i = 0; i < schedule->entries->len; i++) {
        const TimetableEntry *entry = g_ptr_array_index(schedule->entries, i);
        const Coming coming = {entry, next_time(entry, at)};

        g_array_append_val(all, coming);
    }
    g_array_sort(all, by_time);
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < all->len; i++)
        add_entry(&list, &g_array_index(all, Coming, i));
    g_dbus_method_invocation_return_value(invocation, g_variant_new("(aa{sv})", &list));
}

static gboolean handle_list_schedule(VgpuManager *interface, GDBusMethodInvocation *invocation,
                                     void *data)
{
    (void)interface;
    authority_ask(invocation, ACTION_SEE, list_allowed, data);
    return TRUE;
}

Schedule *schedule_new(Host *host, Modes *modes)
{
    Schedule *schedule = g_new0(Schedule, 1);

    schedule->host = host;
    schedule->modes = modes;
    schedule->entries = g_ptr_array_new();
    schedule->pending = g_ptr_array_new();
    schedule->timer = -1;
    g_signal_connect(host_manager(host), "handle-list-schedule", G_CALLBACK(handle_list_schedule),
                     schedule);
    return schedule;
}

void schedule_free(Schedule *schedule)
{
    for (guint i = 0; i < schedule->pending->len; i++) {
        Due *due = g_ptr_array_index(schedule->pending, i);

        due->schedule = NULL;
        /* No other entry still waits for the GPU. */
        if (due->again)
            due_free(due);
    }
    g_ptr_array_unref(schedule->pending);
    g_ptr_array_unref(schedule->entries);
    if (schedule->source)
        g_source_remove(schedule->source);
    if (schedule->timer >= 0)
        close(schedule->timer);
    g_free(schedule);
}
