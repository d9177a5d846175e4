/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/progress.h"

#include <stdio.h>
#include <unistd.h>

/* Shorter things need no explanation. */
#define SILENCE_US (2 * G_USEC_PER_SEC)
#define REDRAW_MS  250
#define DEPTH      4
/* To the line's begin, and blank to its end. */
#define CLEAR_LINE "\r\033[K"

/**
 * Step - something that is being done
 * @since, @limit_at: of the monotonic clock; @limit_at: 0: no limit
 * @all: 0: it has no parts
 */
typedef struct {
    char *what;
    gint64 since;
    gint64 limit_at;
    guint done;
    guint all;
} Step;

static Step steps[DEPTH];
static guint depth;
static guint timer;
static gboolean drawn;

/* "1:05", "12 s" */
static char *duration(gint64 microseconds)
{
    gint64 seconds = MAX(microseconds, 0) / G_USEC_PER_SEC;

    if (seconds < 60)
        return g_strdup_printf("%d s", (int)seconds);
    return g_strdup_printf("%d:%02d min", (int)(seconds / 60), (int)(seconds % 60));
}

/* What is left by the parts that are done; else until it is given up. NULL: nobody knows. */
static char *left_text(const Step *step, gint64 now)
{
    g_autofree char *left = NULL;

    if (step->done && step->done < step->all) {
        left = duration((now - step->since) / step->done * (step->all - step->done));
        return g_strdup_printf("about %s left", left);
    }
    if (!step->limit_at)
        return NULL;
    left = duration(step->limit_at - now + G_USEC_PER_SEC - 1);
    return g_strdup_printf("at most %s left", left);
}

static void draw(const Step *step, gint64 now)
{
    g_autofree char *taken = duration(now - step->since);
    g_autofree char *left = left_text(step, now);

    fprintf(stderr, CLEAR_LINE "%s", step->what);
    if (step->all)
        fprintf(stderr, ", %u of %u done", step->done, step->all);
    fprintf(stderr, ": %s%s%s", taken, left ? ", " : "", left ? left : "");
    fflush(stderr);
    drawn = TRUE;
}

static gboolean redraw(void *data)
{
    gint64 now = g_get_monotonic_time();
    const Step *shown = &steps[depth - 1];

    (void)data;
    /* The outermost that counts parts says most. */
    for (guint i = depth; i > 0; i--)
        if (steps[i - 1].all > 1)
            shown = &steps[i - 1];
    if (now - steps[0].since >= SILENCE_US)
        draw(shown, now);
    return G_SOURCE_CONTINUE;
}

void progress_begin(const char *what, guint limit)
{
    Step *step;

    g_return_if_fail(depth < DEPTH);
    step = &steps[depth++];
    *step = (Step){.what = g_strdup(what), .since = g_get_monotonic_time()};
    if (limit)
        step->limit_at = step->since + limit * G_USEC_PER_SEC;
    if (depth == 1 && isatty(STDERR_FILENO))
        timer = g_timeout_add(REDRAW_MS, redraw, NULL);
}

void progress_parts(guint done, guint all)
{
    steps[depth - 1].done = done;
    steps[depth - 1].all = all;
}

void progress_hide(void)
{
    if (drawn)
        fputs(CLEAR_LINE, stderr);
    drawn = FALSE;
}

void progress_end(void)
{
    progress_hide();
    g_free(steps[--depth].what);
    if (!depth)
        g_clear_handle_id(&timer, g_source_remove);
}

static gboolean wake(void *woken)
{
    *(gboolean *)woken = TRUE;
    return G_SOURCE_REMOVE;
}

void progress_sleep(gint64 microseconds)
{
    gboolean woken = FALSE;

    g_timeout_add((guint)(microseconds / 1000), wake, &woken);
    while (!woken)
        g_main_context_iteration(NULL, TRUE);
}
