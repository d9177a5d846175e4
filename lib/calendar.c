/* SPDX-License-Identifier: MIT */
#include "lib/calendar.h"

#include <stdio.h>
#include <string.h>

#include "lib/program.h"

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

static void answered(const char *output, const GError *error, void *data)
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
                  cancellable, answered, question);
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
