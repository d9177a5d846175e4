/* SPDX-License-Identifier: MIT */
#include "lib/schedule_conf.h"

#include <gio/gio.h>
#include <string.h>

#include "lib/systemd.h"
#include "lib/conf.h"
#include "lib/host_root.h"

#define DAYS_A_WEEK     7
#define EVERY_DAY       0x7f
#define DEFAULT_WARN    (10 * 60)
#define DEFAULT_TIMEOUT (60 * 60)
#define SPAN_MAX        (7 * 24 * 60 * 60)
#define PARTITIONS_MAX  256
#define CALENDAR_MAX    200
#define CALENDAR_RULE   "a calendar expression of systemd.time(7), as Mon..Fri 08:00"
#define DAYS_RULE       "days as Mon-Fri,Sun"
#define SPAN_RULE       "a time as 90s, 10m or 2h, 168h at most"

static const char *const keys[] = {"gpu",  "mode",    "pool",  "at",         "time",   "days",
                                   "warn", "timeout", "drain", "partitions", "spread", NULL};
static const char *const day_names[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

static void entry_free(ScheduleEntry *entry)
{
    g_free(entry->name);
    g_free(entry->gpu);
    g_free(entry->pool);
    g_free(entry->calendar);
    g_free(entry->normalized);
    g_free(entry);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ScheduleEntry, entry_free)

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

static gboolean is_time(const char *text)
{
    return g_regex_match_simple("^([01][0-9]|2[0-3]):[0-5][0-9]$", text, G_REGEX_DOLLAR_ENDONLY, 0);
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
    *seconds = (guint)(MIN(number, SPAN_MAX) * unit);
    return number <= SPAN_MAX / unit;
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

/* A text that @is_valid accepts; NULL without @error: the key is missing. */
static char *read_text(const ConfGroup *group, const char *key, gboolean (*is_valid)(const char *),
                       const char *rule, GError **error)
{
    g_autofree char *text = conf_string(group, key, error);

    if (!text || is_valid(text))
        return g_steal_pointer(&text);
    conf_bad_value(group, key, text, rule, error);
    return NULL;
}

static gboolean read_gpu(const ConfGroup *group, ScheduleEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;

    entry->gpu = read_text(group, "gpu", gpu_name_valid, GPU_NAME_RULE, &cause);
    if (!entry->gpu && !cause)
        conf_bad_value(group, "gpu", "", GPU_NAME_RULE, &cause);
    if (cause)
        g_propagate_error(error, g_steal_pointer(&cause));
    return entry->gpu != NULL;
}

static gboolean read_pool(const ConfGroup *group, ScheduleEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;

    entry->pool = read_text(group, "pool", gpu_pool_valid, GPU_POOL_RULE, &cause);
    if (!cause)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

/* It is an argument and a property of a unit; what it says is systemd's to check. */
static gboolean may_be_calendar(const char *text)
{
    gsize length = strlen(text);

    for (gsize i = 0; i < length; i++)
        if (!g_ascii_isprint(text[i]))
            return FALSE;
    return length > 0 && length <= CALENDAR_MAX;
}

/* The keys time= and days=, which files had before at=, as an expression. */
static char *calendar_of(const char *time, guint days)
{
    g_autoptr(GString) calendar = g_string_new(NULL);

    for (guint day = 0; days != EVERY_DAY && day < DAYS_A_WEEK; day++)
        if (days >> day & 1)
            g_string_append_printf(calendar, "%s%s", calendar->len ? "," : "", day_names[day]);
    g_string_append_printf(calendar, "%s*-*-* %s:00", calendar->len ? " " : "", time);
    return g_string_free(g_steal_pointer(&calendar), FALSE);
}

static void set_when_error(const ConfGroup *group, const char *at, const char *time,
                           gboolean has_days, GError **error)
{
    if (at)
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [%s]: at= replaces time= and days=; remove those", group->file,
                    group->group);
    else if (has_days && !time)
        conf_bad_value(group, "time", "", "a time of the day as 08:00", error);
    else
        conf_bad_value(group, "at", "", CALENDAR_RULE, error);
}

static gboolean read_when(const ConfGroup *group, ScheduleEntry *entry, GError **error)
{
    g_autoptr(GError) cause = NULL;
    guint days = 0;
    g_autofree char *at = read_text(group, "at", may_be_calendar, CALENDAR_RULE, &cause);
    g_autofree char *time =
        cause ? NULL : read_text(group, "time", is_time, "a time of the day as 08:00", &cause);

    if (!cause)
        read_value(group, "days", parse_days, DAYS_RULE, FALSE, &days, &cause);
    if (!cause && (at ? time || days : !time))
        set_when_error(group, at, time, days != 0, &cause);
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    entry->calendar = at ? g_steal_pointer(&at) : calendar_of(time, days ? days : EVERY_DAY);
    return TRUE;
}

/*
 * From 0 to @spread, the same each time on this host and another on the next one, as systemd's
 * FixedRandomDelay= does it.
 */
static guint delay_of(HostRoot *root, guint spread)
{
    g_autofree char *id = root_read(root, "/etc/machine-id", NULL);
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, id ? id : "", -1);
    g_autofree char *digits = g_strndup(sum, 8);

    return (guint)(g_ascii_strtoull(digits, NULL, 16) % ((guint64)spread + 1));
}

static gboolean read_entry(const ConfGroup *group, ScheduleEntry *entry, GError **error)
{
    guint mode = 0, drain = TRUE, spread = 0;

    entry->name = g_strdup(group->name);
    entry->warn = DEFAULT_WARN;
    entry->timeout = DEFAULT_TIMEOUT;
    if (!read_gpu(group, entry, error) ||
        !read_value(group, "mode", parse_mode, "host, shared, passthrough or partitioned", TRUE,
                    &mode, error) ||
        !read_pool(group, entry, error) || !read_when(group, entry, error) ||
        !read_value(group, "warn", parse_span, SPAN_RULE, FALSE, &entry->warn, error) ||
        !read_value(group, "timeout", parse_span, SPAN_RULE ", or 0: for ever", FALSE,
                    &entry->timeout, error) ||
        !read_value(group, "spread", parse_span, SPAN_RULE, FALSE, &spread, error) ||
        !read_value(group, "drain", parse_yes, "yes or no", FALSE, &drain, error) ||
        !conf_number(group, "partitions", 1, PARTITIONS_MAX, 0, &entry->partitions, error))
        return FALSE;
    entry->mode = (GpuMode)mode;
    entry->drain = drain != 0;
    entry->delay = spread;
    return TRUE;
}

static gboolean add_entry(const ConfGroup *group, gpointer entries, GError **error)
{
    g_autoptr(ScheduleEntry) entry = g_new0(ScheduleEntry, 1);

    if (!read_entry(group, entry, error))
        return FALSE;
    g_ptr_array_add(entries, g_steal_pointer(&entry));
    return TRUE;
}

/*
 * The whole schedule is late by the same time, so entries keep their order. So far @delay is the
 * entry's spread=.
 */
static gboolean set_delays(HostRoot *root, const GPtrArray *entries, GError **error)
{
    const ScheduleEntry *first = entries->len ? g_ptr_array_index(entries, 0) : NULL;
    guint spread = first ? first->delay : 0;

    for (guint i = 0; i < entries->len; i++) {
        ScheduleEntry *entry = g_ptr_array_index(entries, i);

        if (entry->delay != spread) {
            g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                        "%s: [at %s]: spread= must be the same as in [at %s], and in all entries",
                        SCHEDULE_CONF, entry->name, first->name);
            return FALSE;
        }
    }
    for (guint i = 0; i < entries->len; i++)
        ((ScheduleEntry *)g_ptr_array_index(entries, i))->delay = delay_of(root, spread);
    return TRUE;
}

GPtrArray *schedule_conf_load(HostRoot *root, GError **error)
{
    g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);

    if (root_has(root, SCHEDULE_CONF) &&
        !conf_foreach(root, SCHEDULE_CONF, "at", keys, add_entry, entries, error))
        return NULL;
    if (!set_delays(root, entries, error))
        return NULL;
    return g_steal_pointer(&entries);
}

/* An earlier entry of the same GPU whose expression means the same; NULL: none. */
static const ScheduleEntry *find_same(const ScheduleEntry *entry, const GPtrArray *entries)
{
    for (guint i = 0; i < entries->len && g_ptr_array_index(entries, i) != entry; i++) {
        const ScheduleEntry *other = g_ptr_array_index(entries, i);

        if (g_str_equal(other->gpu, entry->gpu) &&
            g_strcmp0(other->normalized, entry->normalized) == 0)
            return other;
    }
    return NULL;
}

gboolean schedule_conf_check(ScheduleEntry *entry, const GPtrArray *entries, GError **error)
{
    const char *expressions[] = {entry->calendar, NULL};
    g_autoptr(GError) cause = NULL;
    g_autoptr(GPtrArray) times = calendar_ask_now(expressions, &cause);
    const ScheduleEntry *same;

    if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [at %s]: at=%s is not allowed: it must be " CALENDAR_RULE, SCHEDULE_CONF,
                    entry->name, entry->calendar);
        return FALSE;
    }
    if (!times) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    g_free(entry->normalized);
    entry->normalized = g_strdup(((const CalendarTime *)g_ptr_array_index(times, 0))->normalized);
    entry->next = ((const CalendarTime *)g_ptr_array_index(times, 0))->next;
    same = find_same(entry, entries);
    if (same)
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [at %s]: [at %s] is for the same GPU at the same time", SCHEDULE_CONF,
                    entry->name, same->name);
    return !same;
}

gint64 schedule_entry_next(const ScheduleEntry *entry)
{
    return entry->next ? entry->next + entry->delay : 0;
}

char *schedule_entry_text(const ScheduleEntry *entry)
{
    return g_strconcat("becomes ", gpu_mode_name(entry->mode), entry->pool ? " in pool " : NULL,
                       entry->pool, NULL);
}

const char **schedule_conf_calendars(const GPtrArray *entries)
{
    const char **list = g_new0(const char *, entries->len + 1);

    for (guint i = 0; i < entries->len; i++)
        list[i] = ((const ScheduleEntry *)g_ptr_array_index(entries, i))->calendar;
    return list;
}
