/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/schedule.h"

#include <unistd.h>

#include "lib/bus.h"
#include "lib/systemd.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/call.h"

/* Which of several calendar expressions elapsed last. systemd tells only what comes next. */

/**
 * Search
 * @low, @high: whatever elapsed after @last, did so in (@low, @high]
 * @until: the end of the time that is searched
 * @halves: the next question is about the middle; else about @low, which ends the search if nothing
 * elapsed after it. They take turns: mostly nothing, or one elapse, is found.
 * @asked: the time of the question
 */
typedef struct {
    GStrv expressions;
    gint64 low, high, until;
    gboolean halves;
    gint64 asked;
    LastDue last;
    GCancellable *cancellable;
    LastDueFunc func;
    void *data;
} Search;

static void end_search(Search *search, const GError *error)
{
    search->func(&search->last, error, search->data);
    g_strfreev(search->expressions);
    g_clear_object(&search->cancellable);
    g_free(search);
}

/* Whether one has elapsed in (asked, until]; the last of those becomes the result. */
static gboolean take_times(Search *search, const GPtrArray *times)
{
    gboolean found = FALSE;

    for (guint i = 0; i < times->len; i++) {
        const CalendarTime *time = g_ptr_array_index(times, i);

        if (!time->next || time->next > search->until || time->next < search->last.when)
            continue;
        search->last = (LastDue){(int)i, time->next};
        found = TRUE;
    }
    return found;
}

static void ask_calendar(Search *search);

static void calendar_answered(const GPtrArray *times, const GError *error, void *data)
{
    Search *search = data;
    gboolean found = times && take_times(search, times);

    if (!times || (!found && !search->halves)) {
        end_search(search, error);
        return;
    }
    if (found)
        search->low = search->last.when;
    else
        search->high = search->asked;
    search->halves = !search->halves;
    ask_calendar(search);
}

static void ask_calendar(Search *search)
{
    search->asked = search->halves ? search->low + (search->high - search->low) / 2 : search->low;
    calendar_ask((const char *const *)search->expressions, search->asked, search->cancellable,
                 calendar_answered, search);
}

void last_due_find(const char *const *expressions, gint64 after, gint64 until,
                   GCancellable *cancellable, LastDueFunc func, void *data)
{
    Search *search = g_new0(Search, 1);

    search->expressions = g_strdupv((char **)expressions);
    search->low = after;
    search->high = until;
    search->until = until;
    search->last.which = -1;
    search->cancellable = cancellable ? g_object_ref(cancellable) : NULL;
    search->func = func;
    search->data = data;
    ask_calendar(search);
}

/* How far back a GPU is looked at of which no entry was ever executed. */
#define WEEK_S (7 * 24 * 60 * 60)

/**
 * struct Schedule
 * @entries: of ScheduleEntry; never changed, but replaced, as questions refer to it
 * @timers: of ScheduleTimer, for @entries
 * @delayed: the timer while an entry waits for its delay
 * @bus: NULL: not started
 * @end: cancelled when the schedule is freed
 */
struct Schedule {
    Host *host;
    Modes *modes;
    ScheduledSwitches *switches;
    GPtrArray *entries;
    GPtrArray *timers;
    guint delayed;
    GDBusConnection *bus;
    GCancellable *end;
};

/**
 * Question - asked of systemd
 * @entries: the ones it is about
 * @gpu: or NULL
 * @invocation: of ListSchedule, or NULL
 */
typedef struct {
    Schedule *schedule;
    GPtrArray *entries;
    char *gpu;
    GDBusMethodInvocation *invocation;
} Question;

static Question *question_new(Schedule *schedule, GPtrArray *entries)
{
    Question *question = g_new0(Question, 1);

    question->schedule = schedule;
    question->entries = g_ptr_array_ref(entries);
    return question;
}

static void question_free(Question *question)
{
    g_ptr_array_unref(question->entries);
    g_free(question->gpu);
    g_free(question);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Question, question_free)

static gint64 now_s(void)
{
    return g_get_real_time() / G_USEC_PER_SEC;
}

/* The schedule's own time, which is late by this host's part of spread=. */
static gint64 late_now(const GPtrArray *entries)
{
    const ScheduleEntry *first = entries->len ? g_ptr_array_index(entries, 0) : NULL;

    return now_s() - (first ? first->delay : 0);
}

static gboolean is_cancelled(const GError *error)
{
    return g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* Those of the GPU. */
static GPtrArray *entries_of(const Schedule *schedule, const char *gpu)
{
    GPtrArray *entries = g_ptr_array_new();

    for (guint i = 0; i < schedule->entries->len; i++) {
        ScheduleEntry *entry = g_ptr_array_index(schedule->entries, i);

        if (g_str_equal(entry->gpu, gpu))
            g_ptr_array_add(entries, entry);
    }
    return entries;
}

/*
 * The end of what was handled for the GPU. If that is in the future, the clock was set back, and
 * entries become due again at their time.
 */
static gint64 handled_until(const Schedule *schedule, const char *gpu, gint64 at)
{
    gint64 last = scheduled_switches_last(schedule->switches, gpu);

    return last && last <= at ? last : at - WEEK_S;
}

/* Meanwhile the same time may have been handled. */
static void apply_found(const Schedule *schedule, const char *gpu, const LastDue *last)
{
    g_autoptr(GPtrArray) entries = entries_of(schedule, gpu);

    if (last->when > handled_until(schedule, gpu, late_now(schedule->entries)))
        scheduled_switches_add(schedule->switches, g_ptr_array_index(entries, last->which),
                               last->when);
}

static void apply_last(Schedule *schedule, const char *gpu);

static void found_last(const LastDue *last, const GError *error, void *data)
{
    g_autoptr(Question) question = data;

    if (is_cancelled(error))
        return;
    if (error)
        g_warning("cannot find out which mode GPU %s has by the clock: %s", question->gpu,
                  error->message);
    else if (question->entries != question->schedule->entries)
        apply_last(question->schedule, question->gpu);
    else if (last->which >= 0)
        apply_found(question->schedule, question->gpu, last);
}

/* Of the GPU's entries that became due and were not handled, applies the last one. */
static void apply_last(Schedule *schedule, const char *gpu)
{
    gint64 at = late_now(schedule->entries);
    g_autoptr(GPtrArray) entries = entries_of(schedule, gpu);
    g_autofree const char **calendars = schedule_conf_calendars(entries);
    Question *question;

    if (!entries->len)
        return;
    question = question_new(schedule, schedule->entries);
    question->gpu = g_strdup(gpu);
    last_due_find(calendars, handled_until(schedule, gpu, at), at, schedule->end, found_last,
                  question);
}

static void apply_all(Schedule *schedule)
{
    g_autoptr(GHashTable) gpus = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < schedule->entries->len; i++) {
        const ScheduleEntry *entry = g_ptr_array_index(schedule->entries, i);

        if (g_hash_table_add(gpus, entry->gpu))
            apply_last(schedule, entry->gpu);
    }
}

static void sync_timers(Schedule *schedule)
{
    g_ptr_array_unref(schedule->timers);
    schedule->timers = schedule_timers_of(schedule->entries);
    if (schedule->bus)
        schedule_timers_sync(schedule->timers, schedule->bus, schedule->end);
}

static void set_times(const GPtrArray *entries, const GPtrArray *times)
{
    for (guint i = 0; i < entries->len; i++)
        ((ScheduleEntry *)g_ptr_array_index(entries, i))->next =
            ((const CalendarTime *)g_ptr_array_index(times, i))->next;
}

static void ask_times(Question *question, CalendarFunc func)
{
    g_autofree const char **calendars = schedule_conf_calendars(question->entries);

    calendar_ask(calendars, late_now(question->entries), question->schedule->end, func, question);
}

static void told_next(const GPtrArray *times, const GError *error, void *data);

/* The schedule's time has reached an entry. */
static gboolean delay_is_over(void *data)
{
    Schedule *schedule = data;

    schedule->delayed = 0;
    apply_all(schedule);
    ask_times(question_new(schedule, schedule->entries), told_next);
    return G_SOURCE_REMOVE;
}

/* systemd's timers elapse at the time in the file; then the delay begins. */
static void wait_for_delayed(Schedule *schedule)
{
    gint64 at = now_s();
    gint64 left;
    const ScheduleEntry *first = NULL;
    g_autofree char *text = NULL;

    for (guint i = 0; i < schedule->entries->len; i++) {
        const ScheduleEntry *entry = g_ptr_array_index(schedule->entries, i);

        if (entry->delay && entry->next && entry->next <= at &&
            (!first || entry->next < first->next))
            first = entry;
    }
    g_clear_handle_id(&schedule->delayed, g_source_remove);
    if (!first)
        return;
    text = schedule_entry_text(first);
    left = MAX(schedule_entry_next(first) - at, 1);
    g_message("GPU %s %s in %" G_GINT64_FORMAT " s (schedule %s, spread=)", first->gpu, text, left,
              first->name);
    schedule->delayed = g_timeout_add_seconds((guint)left, delay_is_over, schedule);
}

static void told_next(const GPtrArray *times, const GError *error, void *data)
{
    g_autoptr(Question) question = data;

    if (times) {
        set_times(question->entries, times);
        if (question->entries == question->schedule->entries) {
            sync_timers(question->schedule);
            wait_for_delayed(question->schedule);
        }
    } else if (!is_cancelled(error)) {
        g_warning("cannot find out when users are to be warned of a switch: %s", error->message);
    }
}

/* An entry may have elapsed before vgpud was started, or the file was changed. */
static void ask_delayed(Schedule *schedule)
{
    if (schedule->bus && late_now(schedule->entries) < now_s())
        ask_times(question_new(schedule, schedule->entries), told_next);
}

static void run_entry(Schedule *schedule, const ScheduleEntry *entry)
{
    apply_last(schedule, entry->gpu);
    /* Its next warning. */
    ask_times(question_new(schedule, schedule->entries), told_next);
}

static void warn_users(const Schedule *schedule, const ScheduleEntry *entry)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_local(schedule_entry_next(entry));
    g_autofree char *clock = g_date_time_format(time, "%H:%M");
    g_autofree char *text = schedule_entry_text(entry);

    host_event(schedule->host, "schedule-warning", entry->gpu, NULL,
               "GPU %s %s at %s (schedule %s); %s", entry->gpu, text, clock, entry->name,
               entry->drain ? "it then waits for those who use it"
                            : "it stays as it is if it is in use then");
}

/* By root alone: for systemd's service. */
static void run_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Schedule *schedule = data;
    const ScheduleTimer *timer;
    const ScheduleEntry *entry;
    const char *instance;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s)", &instance);
    if (caller->uid != geteuid()) {
        authority_refuse(invocation, caller, ACTION_ADMINISTER, "only systemd's timers do this");
        return;
    }
    timer = schedule_timers_find(schedule->timers, instance);
    if (!timer) {
        call_refuse(invocation, AGENT_ERROR_NOT_FOUND,
                    "the schedule has no entry with the timer %s (any more)", instance);
        return;
    }
    entry = g_ptr_array_index(schedule->entries, timer->entry);
    if (timer->warns)
        warn_users(schedule, entry);
    else
        run_entry(schedule, entry);
    call_answer(invocation, NULL);
}

/* What is never due again comes last. */
static int by_time(const void *a, const void *b)
{
    const ScheduleEntry *left = *(ScheduleEntry *const *)a, *right = *(ScheduleEntry *const *)b;
    guint64 from = (guint64)schedule_entry_next(left) - 1;
    guint64 to = (guint64)schedule_entry_next(right) - 1;

    return (from > to) - (from < to);
}

static void add_entry(GVariantBuilder *list, const ScheduleEntry *entry)
{
    g_variant_builder_open(list, G_VARIANT_TYPE_VARDICT);
    g_variant_builder_add(list, "{sv}", "Name", g_variant_new_string(entry->name));
    g_variant_builder_add(list, "{sv}", "Gpu", g_variant_new_string(entry->gpu));
    g_variant_builder_add(list, "{sv}", "Mode", g_variant_new_string(gpu_mode_name(entry->mode)));
    g_variant_builder_add(list, "{sv}", "Pool",
                          g_variant_new_string(entry->pool ? entry->pool : ""));
    g_variant_builder_add(list, "{sv}", "Calendar", g_variant_new_string(entry->calendar));
    g_variant_builder_add(list, "{sv}", "Next", g_variant_new_int64(schedule_entry_next(entry)));
    g_variant_builder_add(list, "{sv}", "Warn", g_variant_new_uint32(entry->warn));
    g_variant_builder_add(list, "{sv}", "Timeout", g_variant_new_uint32(entry->timeout));
    g_variant_builder_close(list);
}

static void answer_list(GDBusMethodInvocation *invocation, const GPtrArray *entries)
{
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    GVariantBuilder list;

    for (guint i = 0; i < entries->len; i++)
        g_ptr_array_add(sorted, g_ptr_array_index(entries, i));
    g_ptr_array_sort(sorted, by_time);
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < sorted->len; i++)
        add_entry(&list, g_ptr_array_index(sorted, i));
    call_answer(invocation, g_variant_new("(aa{sv})", &list));
}

/* Without an answer of systemd's, the last known times are shown. */
static void told_list(const GPtrArray *times, const GError *error, void *data)
{
    g_autoptr(Question) question = data;

    (void)error;
    if (times)
        set_times(question->entries, times);
    answer_list(question->invocation, question->entries);
}

static void list_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Schedule *schedule = data;
    Question *question;

    (void)caller;
    if (!schedule->entries->len) {
        answer_list(invocation, schedule->entries);
        return;
    }
    question = question_new(schedule, schedule->entries);
    question->invocation = invocation;
    ask_times(question, told_list);
}

/*
 * If systemd cannot be asked, it judges its timers itself: a host must not be without its types
 * because of that.
 */
static gboolean check_entries(const GPtrArray *entries, GError **error)
{
    g_autoptr(GError) cause = NULL;

    for (guint i = 0; i < entries->len && !cause; i++)
        schedule_conf_check(g_ptr_array_index(entries, i), entries, &cause);
    if (!cause)
        return TRUE;
    if (cause->domain != G_IO_ERROR) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    g_warning("cannot check the times in " SCHEDULE_CONF ": %s", cause->message);
    return TRUE;
}

GPtrArray *schedule_read(const Schedule *schedule, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(GPtrArray) entries = schedule_conf_load(host_root(schedule->host), &cause);

    if (entries && check_entries(entries, &cause))
        return g_steal_pointer(&entries);
    g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_INVALID, cause->message);
    return NULL;
}

void schedule_take(Schedule *schedule, GPtrArray *entries)
{
    g_ptr_array_unref(schedule->entries);
    schedule->entries = entries;
    sync_timers(schedule);
    ask_delayed(schedule);
}

void schedule_start(Schedule *schedule, GDBusConnection *bus)
{
    schedule->bus = g_object_ref(bus);
    sync_timers(schedule);
    apply_all(schedule);
    ask_delayed(schedule);
}

/* What became due meanwhile was left for now. */
static void switch_ended(const char *gpu, void *data)
{
    Schedule *schedule = data;

    if (schedule->bus)
        apply_last(schedule, gpu);
}

Schedule *schedule_new(Host *host, Modes *modes)
{
    Schedule *schedule = g_new0(Schedule, 1);

    schedule->host = host;
    schedule->modes = modes;
    schedule->switches = scheduled_switches_new(host, modes);
    modes_watch_switches(modes, switch_ended, schedule);
    schedule->entries = g_ptr_array_new();
    schedule->timers = schedule_timers_of(schedule->entries);
    schedule->end = g_cancellable_new();
    authority_answer(host_manager(host), "handle-list-schedule", ACTION_SEE, list_allowed, NULL,
                     schedule);
    authority_answer(host_manager(host), "handle-run-schedule", ACTION_ADMINISTER, run_allowed,
                     NULL, schedule);
    return schedule;
}

void schedule_free(Schedule *schedule)
{
    modes_watch_switches(schedule->modes, NULL, NULL);
    g_cancellable_cancel(schedule->end);
    g_object_unref(schedule->end);
    g_clear_handle_id(&schedule->delayed, g_source_remove);
    scheduled_switches_free(schedule->switches);
    g_ptr_array_unref(schedule->timers);
    g_ptr_array_unref(schedule->entries);
    g_clear_object(&schedule->bus);
    g_free(schedule);
}
