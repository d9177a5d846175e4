/* SPDX-License-Identifier: MIT */
/*
 * What operation.c (the steps of one) and operations.c (the queues of all) share.
 */
#ifndef VGPUD_OPERATION_PARTS_H
#define VGPUD_OPERATION_PARTS_H

#include "host-agent/daemon/operations/operation.h"
#include "host-agent/store/tables.h"

/* A kind, and its steps' environment. */
typedef struct {
    const OperationKind *kind;
    void *world;
} Known;

/* A step of a plan, and its argument. */
typedef struct {
    const OperationStep *step;
    guint item;
} Planned;

typedef struct Queues Queues;

/**
 * struct Operations
 * @kinds: of Known
 * @all: of Operation, the oldest first
 * @queues: of Operation
 * @ended: of guint64: rows of the journal that could not be deleted
 * @in_background: how many of these run
 * @timer: of the host's clock
 */
struct Operations {
    Db *db;
    GArray *kinds;
    OperationClock clock;
    GQueue all;
    Queues *queues;
    GArray *ended;
    guint in_background;
    OperationWatch watch;
    guint timer;
    gboolean dispatching;
};

/**
 * struct Operation
 * @row: its row in the journal
 * @steps: of Planned
 * @at: number of steps begun and not undone
 * @pending: a step has not ended yet
 * @source: a word of lib/bus.h, or NULL
 * @cancellable: of the step that runs
 * @error: why it is rolled back
 */
struct Operation {
    Operations *operations;
    const OperationKind *kind;
    void *world;
    OperationRow *row;
    GVariant *details;
    GArray *steps;
    guint at;
    const char *source;
    gboolean background, replayed;
    gboolean running, pending, advancing, final, over, abandoned;
    gint64 deadline;
    GCancellable *cancellable;
    GError *error;
    void *kept;
    GDestroyNotify free_kept;
    OperationProgress progress;
    OperationDone done;
    void *data;
};

/* --- operation.c --- */

/* @row: taken. @details: NULL: none. */
Operation *operation_new(Operations *operations, const OperationKind *kind, void *world,
                         OperationRow *row, GVariant *details);

void operation_free(Operation *operation);

/* Its first step. May end it. */
void operation_begin(Operation *operation);

/* The step that was begun last, by the journal, is repeated or undone in operation_begin(). */
void operation_replay(Operation *operation);

/* It can be rolled back, and is not yet. */
gboolean operation_has_deadline(const Operation *operation);

/*
 * It is rolled back as soon as the step that runs has ended; one that waits in the queues ends now.
 * @error: taken.
 */
void operation_turn_back(Operation *operation, GError *error);

/* vgpud ends: it stays in the journal, and is freed as soon as no step of it runs. */
void operation_abandon(Operation *operation);

/* --- operations.c --- */

/* It is over: it leaves the journal and the queues, its caller is told, and it is freed. */
void operations_release(Operation *operation);

/* After a change of what operation_has_deadline() says. */
void operations_set_wake(const Operations *operations);

#endif
