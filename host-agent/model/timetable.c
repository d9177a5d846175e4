/* SPDX-License-Identifier: MIT */
#include "host-agent/model/timetable.h"

#include <string.h>

#include "lib/conf.h"
#include "lib/host_root.h"

#define DAYS_A_WEEK     7
#define EVERY_DAY       0x7f
#define MINUTES_AN_HOUR 60
#define DEFAULT_WARN    (10 * 60)
#define DEFAULT_TIMEOUT (60 * 60)
#define MAX_SPAN        (7 * 24 * 60 * 60)
#define MAX_PARTITIONS  256
#define DAYS_RULE       "days as Mon-Fri,Sun"
#define SPAN_RULE       "a time as 90s, 10m or 2h, 168h at most"

static const char *const keys[] = {"gpu",     "mode",  "time",       "days", "warn",
                                   "timeout", "drain", "partitions", NULL};
static const char *const day_names[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

static void entry_free(TimetableEntry *entry)
{
    g_free(entry->name);
    g_free(entry->gpu);
    g_free(entry);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TimetableEntry, entry_free)

static gboolean parse_day(const char *text, guint *day)
{
    for (*day = 0; *day < DAYS_A_WEEK; (*day)++)
        if (g_ascii_strcasecmp(text, day_names[*day]) == 0)
            return TRUE;
    return FALSE;
}

/* "Fri-Mon" wraps around the end of the week. */
static gboolean parse_range(const char *text, guint *days)
{
    g_auto(GStrv) ends = g_strsplit(text, "-", 2);
    guint first, last;

    if (!ends[0] || !parse_day(g_strstrip(ends[0]), &first))
        return FALSE;
    last = first;
    if (ends[1] && !parse_day(g_strstrip(ends[1]), &last))
        return FALSE;
    for (guint day = first;; day = (day + 1) % DAYS_A_WEEK) {
        *days |= 1u << day;
        if (day == last)
            return TRUE;
    }
}

static gboolean parse_days(const char *text, guint *days)
{
    g_auto(GStrv) ranges = g_strsplit(text, ",", -1);

    *days = 0;
    for (guint i = 0; ranges[i]; i++)
        if (!parse_range(ranges[i], days))
            return FALSE;
    return *days != 0;
}

static gboolean parse_time(const char *text, guint *minute)
{
    guint64 hour, rest;

    if (!g_regex_match_simple("^[0-9]{2}:[0-9]{2}$", text, G_REGEX_DOLLAR_ENDONLY, 0))
        return FALSE;
    hour = g_ascii_strtoull(text, NULL, 10);
    rest = g_ascii_strtoull(text + strlen("hh:"), NULL, 10);
    *minute = (guint)(hour * MINUTES_AN_HOUR + rest);
    return hour < 24 && rest < MINUTES_AN_HOUR;
}

/* "0", "90s", "10m", "2h" */
static gboolean parse_span(const char *text, guint *seconds)
{
    guint64 number, unit = 1;
    char *end;

    if (!g_ascii_isdigit(text[0]))
        return FALSE;
    number = g_ascii_strtoull(text, &end, 10);
    if (g_str_equal(end, "h"))
        unit = 60 * 60;
    else if (g_str_equal(end, "m"))
        unit = 60;
    else if (!g_str_equal(end, "s") && !(end[0] == '\0' && number == 0))
        return FALSE;
    *seconds = (guint)(MIN(number, MAX_SPAN) * unit);
    return number <= MAX_SPAN / unit;
}

static gboolean parse_yes(const char *text, guint *yes)
{
    *yes = g_str_equal(text, "yes");
    return *yes || g_str_equal(text, "no");
}

/* A value that @parse accepts; @value is unchanged if the key is missing. */
static gboolean read_value(const ConfGroup *group, const char *key,
                           gboolean (*parse)(const char *text, guint *value), const char *rule,
                           gboolean required, guint *value, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, key, &cause);
    guint parsed;

    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text && !required)
        return TRUE;
    if (text && parse(text, &parsed)) {
        *value = parsed;
        return TRUE;
    }
    conf_bad_value(group, key, text ? text : "", rule, error);
    return FALSE;
}

static gboolean parse_mode(const char *text, guint *value)
{
    GpuMode mode;

    if (!gpu_mode_parse(text, &mode))
        return FALSE;
    *value = mode;
    return TRUE;
}

static gboolean read_gpu(const ConfGroup *group, TimetableEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;

    entry->gpu = conf_string(group, "gpu", &cause);
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (entry->gpu && gpu_name_valid(entry->gpu))
        return TRUE;
    conf_bad_value(group, "gpu", entry->gpu ? entry->gpu : "", GPU_NAME_RULE, error);
    return FALSE;
}

static gboolean read_entry(const ConfGroup *group, TimetableEntry *entry, GError **error)
{
    guint mode = 0, drain = TRUE;

    entry->name = g_strdup(group->name);
    entry->days = EVERY_DAY;
    entry->warn = DEFAULT_WARN;
    entry->timeout = DEFAULT_TIMEOUT;
    if (!read_gpu(group, entry, error) ||
        !read_value(group, "mode", parse_mode, "host, shared, passthrough or partitioned", TRUE,
                    &mode, error) ||
        !read_value(group, "time", parse_time, "a time of the day as 08:00", TRUE, &entry->minute,
                    error) ||
        !read_value(group, "days", parse_days, DAYS_RULE, FALSE, &entry->days, error) ||
        !read_value(group, "warn", parse_span, SPAN_RULE, FALSE, &entry->warn, error) ||
        !read_value(group, "timeout", parse_span, SPAN_RULE ", or 0: for ever", FALSE,
                    &entry->timeout, error) ||
        !read_value(group, "drain", parse_yes, "yes or no", FALSE, &drain, error) ||
        !conf_number(group, "partitions", 1, MAX_PARTITIONS, 0, &entry->partitions, error))
        return FALSE;
    entry->mode = (GpuMode)mode;
    entry->drain = drain != 0;
    return TRUE;
}

static gboolean add_entry(const ConfGroup *group, gpointer data, GError **error)
{
    g_autoptr(TimetableEntry) entry = g_new0(TimetableEntry, 1);
    GPtrArray *entries = data;

    if (!read_entry(group, entry, error))
        return FALSE;
    for (guint i = 0; i < entries->len; i++) {
        const TimetableEntry *other = g_ptr_array_index(entries, i);

        if (g_str_equal(other->gpu, entry->gpu) && other->minute == entry->minute &&
            (other->days & entry->days)) {
            g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                        "%s: [%s]: [at %s] is for the same GPU at the same time", group->file,
                        group->group, other->name);
            return FALSE;
        }
    }
    g_ptr_array_add(entries, g_steal_pointer(&entry));
    return TRUE;
}

GPtrArray *timetable_load(HostRoot *root, GError **error)
{
    g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);

    if (root_has(root, SCHEDULE_CONF) &&
        !conf_foreach(root, SCHEDULE_CONF, "at", keys, add_entry, entries, error))
        return NULL;
    return g_steal_pointer(&entries);
}

/* The time on @at's day plus @offset days; NULL: it is not due on that day. */
static GDateTime *on_day(const TimetableEntry *entry, GDateTime *at, int offset)
{
    /* From noon, so that a day of 23 or 25 hours does not change the day. */
    g_autoptr(GDateTime) noon =
        g_date_time_new(g_date_time_get_timezone(at), g_date_time_get_year(at),
                        g_date_time_get_month(at), g_date_time_get_day_of_month(at), 12, 0, 0);
    g_autoptr(GDateTime) day = g_date_time_add_days(noon, offset);

    if (!(entry->days >> (g_date_time_get_day_of_week(day) - 1) & 1))
        return NULL;
    return g_date_time_new(g_date_time_get_timezone(at), g_date_time_get_year(day),
                           g_date_time_get_month(day), g_date_time_get_day_of_month(day),
                           (int)(entry->minute / MINUTES_AN_HOUR),
                           (int)(entry->minute % MINUTES_AN_HOUR), 0);
}

GDateTime *timetable_next(const TimetableEntry *entry, GDateTime *after)
{
    for (int offset = 0; offset <= DAYS_A_WEEK; offset++) {
        GDateTime *due = on_day(entry, after, offset);

        if (due && g_date_time_compare(due, after) > 0)
            return due;
        g_clear_pointer(&due, g_date_time_unref);
    }
    g_assert_not_reached();
}

GDateTime *timetable_last(const TimetableEntry *entry, GDateTime *at)
{
    for (int offset = 0; offset <= DAYS_A_WEEK; offset++) {
        GDateTime *due = on_day(entry, at, -offset);

        if (due && g_date_time_compare(due, at) <= 0)
            return due;
        g_clear_pointer(&due, g_date_time_unref);
    }
    g_assert_not_reached();
}
