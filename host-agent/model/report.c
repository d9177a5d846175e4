/* SPDX-License-Identifier: MIT */
#include "host-agent/model/report.h"

#include <stdio.h>

#include "lib/units.h"

/* Before that a vGPU is not called idle. */
#define LONG_ENOUGH_S (24 * (guint64)3600)
/* Less busy than this: it should be given back. */
#define IDLE_SHARE 0.05
/* A smaller type must have this much more than the peak. */
#define ROOM_FACTOR 1.1

void report_row_free(void *data)
{
    ReportRow *row = data;

    g_free(row->uuid);
    g_free(row->tenant);
    g_free(row->gpu);
    g_free(row->type);
    g_free(row);
}

/* The smallest type that would have done; NULL: none that is smaller than what it had. */
static const ReportSize *smaller(const ReportRow *row, const GArray *sizes)
{
    double enough = (double)row->peak_vram * ROOM_FACTOR;
    const ReportSize *best = NULL;

    for (guint i = 0; row->peak_vram && i < sizes->len; i++) {
        const ReportSize *size = &g_array_index(sizes, ReportSize, i);

        if ((double)size->vram >= enough && size->vram < row->vram &&
            (!best || size->vram < best->vram))
            best = size;
    }
    return best;
}

char *report_advice(const ReportRow *row, const GArray *sizes)
{
    double busy = row->seconds ? (double)row->busy_seconds / (double)row->seconds : 0;
    const ReportSize *size = smaller(row, sizes);
    g_autofree char *peak = NULL;
    g_autofree char *whole = NULL;

    if (row->seconds >= LONG_ENOUGH_S && busy < IDLE_SHARE)
        return g_strdup_printf("idle for %.0f %% of its time: give it back", (1 - busy) * 100);
    if (row->seconds < LONG_ENOUGH_S || !size)
        return g_strdup("");
    peak = size_format(row->peak_vram);
    whole = size_format(row->vram);
    return g_strdup_printf("peak %s of %s: %s would have done", peak, whole, size->name);
}

gboolean report_month(const char *month, gint64 now, gint64 *begin, gint64 *end)
{
    g_autoptr(GDateTime) at = g_date_time_new_from_unix_utc(now);
    int year = g_date_time_get_year(at);
    int number = g_date_time_get_month(at);
    g_autoptr(GDateTime) first = NULL;
    g_autoptr(GDateTime) next = NULL;

    if (month[0]) {
        if (!g_regex_match_simple("^[0-9]{4}-[0-9]{2}$", month, G_REGEX_DOLLAR_ENDONLY, 0))
            return FALSE;
        sscanf(month, "%4d-%2d", &year, &number);
    }
    first = g_date_time_new_utc(year, number, 1, 0, 0, 0);
    next = first ? g_date_time_add_months(first, 1) : NULL;
    if (!next)
        return FALSE;
    *begin = g_date_time_to_unix(first);
    *end = g_date_time_to_unix(next);
    return TRUE;
}
