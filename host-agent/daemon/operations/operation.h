/* SPDX-License-Identifier: MIT */
/*
 * Operations: all work of several steps. Each slice and each GPU has a queue, so two operations on
 * one object never run at once. An operation is in the journal from before its first step until
 * after its last. It has a deadline, can be cancelled, and has one rollback: its steps are undone
 * in reverse order.
 *
 * A step is run or undone from the main loop, and ends with operation_step_done(), at once or
 * later. Both may be repeated after a crash, and a step may be undone that has never run, so each
 * first checks the actual state.
 */
#ifndef VGPUD_OPERATION_H
#define VGPUD_OPERATION_H

#include <gio/gio.h>

#include "host-agent/store/db.h"

typedef struct Operations Operations;
typedef struct Operation Operation;

/* @item: the step's argument, from operation_add_step(). */
typedef void (*OperationFunc)(Operation *operation, guint item);

/**
 * OperationStep
 * @name: in the journal; never changed after a release
 * @undo: NULL: there is nothing to undo
 * @final: from here on the operation is not cancelled and has no deadline: it cannot be rolled back
 */
typedef struct {
    const char *name;
    OperationFunc run;
    OperationFunc undo;
    gboolean final;
} OperationStep;

/* What the next start of vgpud does with an interrupted operation. */
typedef enum {
    OPERATION_FINISH,   /* continues from the step that was begun last */
    OPERATION_UNDO,     /* rolls back from it; a final step, and those after it, are finished */
    OPERATION_UNDO_ALL, /* rolls all steps back: after a power loss the journal may lack the last */
} OperationReplay;

/**
 * OperationKind
 * @name: in the journal, and on the bus; never changed after a release
 * @doing: for "vGPU … is just being removed"
 * @what: for "the removal of …"
 * @step_time: average seconds for a step; the deadline is this for each step
 * @plan: adds the steps (operation_add_step()); the same for the same objects and data
 * @accepted: the operation is in the queues, or was read from the journal; may be NULL
 * @ended: the objects are free again; before whoever asked is told. May be NULL.
 * @cancelled: the error of one that was cancelled; NULL: a sentence of ours
 */
typedef struct {
    const char *name;
    const char *doing;
    const char *what;
    OperationReplay replay;
    guint step_time;
    void (*plan)(Operation *operation);
    void (*accepted)(Operation *operation);
    void (*ended)(Operation *operation, const GError *error);
    GError *(*cancelled)(const Operation *operation);
} OperationKind;

/**
 * OperationClock - for tests, which have their own time
 * @now: microseconds
 * @wake: operations_expire() must be called at @at; 0: not any more
 */
typedef struct {
    gint64 (*now)(void *data);
    void (*wake)(gint64 at, void *data);
    void *data;
} OperationClock;

/* @clock: copied; NULL: the host's. */
Operations *operations_new(Db *db, const OperationClock *clock);

/*
 * As if vgpud were killed: running operations stay in the journal. Waiting callers are told that
 * vgpud ends.
 */
void operations_free(Operations *operations);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Operations, operations_free)

/*
 * All kinds that may be in the journal are added before operations_load(). @kinds: NULL terminated.
 * @world: the steps' environment (operation_world()); lives longer than the last step.
 */
void operations_add_kinds(Operations *operations, const OperationKind *const *kinds, void *world);

/**
 * OperationWatch - is told of all operations
 * @begins: it has its objects, and its first step comes
 * @ended: its objects are free again; before whoever asked is told. Also of one that never began.
 */
typedef struct {
    void (*begins)(const Operation *operation, void *data);
    void (*ended)(const Operation *operation, const GError *error, void *data);
    void *data;
} OperationWatch;

/* There is one watch. */
void operations_watch(Operations *operations, const OperationWatch *watch);

/* Queues the journal's operations, before new ones are accepted. */
gboolean operations_load(Operations *operations, GError **error);

/* Runs them, once the host is known. */
void operations_resume(Operations *operations);

/* @error: NULL: all of it is done; else everything is rolled back, as far as possible. */
typedef void (*OperationDone)(const GError *error, void *data);

/* A step begins, or is about to be undone (see operation_step() and the like). */
typedef void (*OperationProgress)(const Operation *operation, void *data);

/**
 * OperationRequest
 * @objects: UUIDs of slices, addresses of GPUs; NULL terminated
 * @details: a{sv} for the steps, a floating one is taken; NULL: none
 * @caller: who asks, for people to read; NULL: nobody by a call on the bus
 * @source: why vgpud does it by itself (AUDIT_BY_…); NULL: a call on the bus asks for it
 * @waits: in the queues until its objects are free; else AGENT_ERROR_IN_USE if one of them is not
 * @background: no caller waits for it: only a few of these run at once
 * @kept: operation_kept() from the beginning, freed by @free_kept; taken, even on failure
 * @progress: may be NULL, like @done
 */
typedef struct {
    const OperationKind *kind;
    const char *const *objects;
    GVariant *details;
    const char *caller;
    const char *source;
    gboolean waits;
    gboolean background;
    void *kept;
    GDestroyNotify free_kept;
    OperationProgress progress;
    OperationDone done;
    void *data;
} OperationRequest;

/*
 * Begins it, or queues it. @done is called once, possibly before this returns. FALSE with @error:
 * it was not begun, nothing was done, and @done is not called.
 */
gboolean operations_start(Operations *operations, const OperationRequest *request, GError **error);

/* The operation on the object, as "being removed"; NULL: none. */
const char *operations_doing(const Operations *operations, const char *object);

/* The operation that works on the object, or will next; NULL: none. Valid until the next call. */
const Operation *operations_first(const Operations *operations, const char *object);

/* Of Operation, the oldest first; valid until the next call. To be unreferenced. */
GPtrArray *operations_list(const Operations *operations);

/*
 * It is rolled back, and ends with an error. AGENT_ERROR_NOT_FOUND; AGENT_ERROR_IN_USE: it cannot
 * be rolled back any more, or is already.
 */
gboolean operations_cancel(Operations *operations, guint64 id, GError **error);

/* Ends operations past their deadline. Called by the clock. */
void operations_expire(Operations *operations);

/* --- For kinds --- */

/* In plan(): the next step, with its argument @item. */
void operation_add_step(Operation *operation, const OperationStep *step, guint item);

/* The step that runs, or is undone, has ended. @error: taken; NULL: success. */
void operation_step_done(Operation *operation, GError *error);

/*
 * The step that runs gives up: the previous one is run again. Neither is undone because of that, so
 * the one that gives up has left nothing behind.
 */
void operation_step_again(Operation *operation);

/* The same as operation_step_done(), as a callback; @operation: an Operation. */
void operation_step_ended(const GError *error, void *operation);

void *operation_world(const Operation *operation);

/* The object of that number. */
const char *operation_object(const Operation *operation, guint number);
guint operation_objects(const Operation *operation);

/* From the request; an empty dictionary if it had none. */
GVariant *operation_details(const Operation *operation);

/* Cancelled if the step that runs should end early. The rollback has another one. */
GCancellable *operation_cancellable(const Operation *operation);

/* Data that a step keeps for later ones; @free is called at the end. Lost after a crash. */
void operation_keep(Operation *operation, void *data, GDestroyNotify free);
void *operation_kept(const Operation *operation);

/* It has no caller: it was read from the journal. */
gboolean operation_is_replayed(const Operation *operation);

/* vgpud ends: the step's result is not used, and its world may be gone. */
gboolean operation_is_abandoned(const Operation *operation);

/* --- For people --- */

guint64 operation_id(const Operation *operation);
const OperationKind *operation_kind(const Operation *operation);
const char *operation_caller(const Operation *operation);
/* Why vgpud does it by itself; NULL: it was asked for, by @caller. */
const char *operation_source(const Operation *operation);
gint64 operation_begun(const Operation *operation);
/* "": it waits for its objects. */
const char *operation_step(const Operation *operation);
guint operation_at(const Operation *operation);
guint operation_total(const Operation *operation);
gboolean operation_goes_back(const Operation *operation);

#endif
