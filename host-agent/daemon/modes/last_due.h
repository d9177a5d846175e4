/* SPDX-License-Identifier: MIT */
/*
 * Which of several calendar expressions elapsed last. systemd tells only what comes next, so it is
 * asked again and again, from later times.
 */
#ifndef VGPUD_MODES_LAST_DUE_H
#define VGPUD_MODES_LAST_DUE_H

#include <gio/gio.h>

/**
 * LastDue
 * @which: number of the expression; of several at the same time, the last one; -1: none elapsed
 * @when: seconds since 1970
 */
typedef struct {
    int which;
    gint64 when;
} LastDue;

/* @error: systemd could not be asked, or it was cancelled; else @last is known. */
typedef void (*LastDueFunc)(const LastDue *last, const GError *error, void *data);

/* In (@after, @until]. @func is called once, from the main loop. @expressions: as calendar_ask().
 */
void last_due_find(const char *const *expressions, gint64 after, gint64 until,
                   GCancellable *cancellable, LastDueFunc func, void *data);

#endif
