/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/last_due.h"

#include "lib/calendar.h"

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

static void end(Search *search, const GError *error)
{
    search->func(&search->last, error, search->data);
    g_strfreev(search->expressions);
    g_clear_object(&search->cancellable);
    g_free(search);
}

/* Whether one has elapsed in (asked, until]; the last of those becomes the result. */
static gboolean take(Search *search, const GPtrArray *times)
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

static void ask(Search *search);

static void answered(const GPtrArray *times, const GError *error, void *data)
{
    Search *search = data;
    gboolean found = times && take(search, times);

    if (!times || (!found && !search->halves)) {
        end(search, error);
        return;
    }
    if (found)
        search->low = search->last.when;
    else
        search->high = search->asked;
    search->halves = !search->halves;
    ask(search);
}

static void ask(Search *search)
{
    search->asked = search->halves ? search->low + (search->high - search->low) / 2 : search->low;
    calendar_ask((const char *const *)search->expressions, search->asked, search->cancellable,
                 answered, search);
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
    ask(search);
}
