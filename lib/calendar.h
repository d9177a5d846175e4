/* SPDX-License-Identifier: MIT */
/*
 * Calendar expressions of systemd's (systemd.time(7)): whether one is valid, and when it elapses
 * next. The answers are those of "systemd-analyze calendar", so they agree with systemd's timers.
 */
#ifndef LIB_CALENDAR_H
#define LIB_CALENDAR_H

#include <gio/gio.h>

/**
 * CalendarTime - the answer about an expression
 * @normalized: the expression as systemd writes it; the same for all that mean the same
 * @next: when it elapses next, seconds since 1970; 0: never again
 */
typedef struct {
    char *normalized;
    gint64 next;
} CalendarTime;

/*
 * @times: of CalendarTime, one for each expression, in their order; NULL with @error of G_IO_ERROR:
 * INVALID_ARGUMENT: systemd does not accept one of them; CANCELLED: it was cancelled before @func was
 * called; else it could not be asked.
 */
typedef void (*CalendarFunc)(const GPtrArray *times, const GError *error, void *data);

/*
 * @func is called once, later. @expressions: NULL terminated, at least one.
 * @after: the time from which "next" counts, seconds since 1970; 0: now
 */
void calendar_ask(const char *const *expressions, gint64 after, GCancellable *cancellable,
                  CalendarFunc func, void *data);

/* The same from now on, but waits for the answer. To be unreferenced. */
GPtrArray *calendar_ask_now(const char *const *expressions, GError **error);

#endif
