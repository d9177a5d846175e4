/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/operations/operation_parts.h"

#include "lib/bus.h"

Operation *operation_new(Operations *operations, const OperationKind *kind, void *world,
                         OperationRow *row, GVariant *details)
{
    Operation *operation = g_new0(Operation, 1);

    operation->operations = operations;
    operation->kind = kind;
    operation->world = world;
    operation->row = row;
    operation->details = g_variant_ref_sink(
        details ? details : g_variant_new_array(G_VARIANT_TYPE("{sv}"), NULL, 0));
    operation->steps = g_array_new(FALSE, FALSE, sizeof(Planned));
    operation->cancellable = g_cancellable_new();
    return operation;
}

void operation_free(Operation *operation)
{
    if (operation->free_kept)
        operation->free_kept(operation->kept);
    operation_row_free(operation->row);
    g_variant_unref(operation->details);
    g_array_unref(operation->steps);
    g_object_unref(operation->cancellable);
    g_clear_error(&operation->error);
    g_free(operation);
}

void operation_abandon(Operation *operation)
{
    g_autoptr(GError) error =
        g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED,
                    "vgpud ends; %s of %s is finished or undone at its next start",
                    operation->kind->what, operation_object(operation, 0));

    operation->abandoned = TRUE;
    if (operation->done && !operation->background)
        operation->done(error, operation->data);
    if (operation->pending)
        g_cancellable_cancel(operation->cancellable);
    else
        operation_free(operation);
}

gboolean operation_has_deadline(const Operation *operation)
{
    return operation->running && !operation->final && !operation->error && operation->deadline;
}

static void note_error(Operation *operation, GError *error)
{
    if (operation->error)
        g_error_free(error);
    else
        operation->error = error;
}

static gboolean is_undone(const Operation *operation)
{
    return operation->kind->replay != OPERATION_FINISH;
}

/* Marks as finished, in the journal, an operation that would be undone. */
static gboolean commit_end(Operation *operation)
{
    GError *error = NULL;

    if (!is_undone(operation) || operation->final)
        return TRUE;
    if (operation_table_end(operation->operations->db, operation->row->id, &error)) {
        operation->row->id = 0;
        return TRUE;
    }
    note_error(operation, error);
    return FALSE;
}

static gboolean mark_step(Operation *operation, const Planned *planned, GError **error)
{
    OperationRow *row = operation->row;

    g_free(row->step);
    row->step = g_strdup(planned->step->name);
    row->item = planned->item;
    row->undoing = operation->error != NULL;
    return operation_table_mark(operation->operations->db, row, error);
}

static void tell_progress(const Operation *operation)
{
    if (operation->progress)
        operation->progress(operation, operation->data);
}

static void run_next(Operation *operation)
{
    const Planned *planned = &g_array_index(operation->steps, Planned, operation->at);
    GError *error = NULL;

    if (!mark_step(operation, planned, &error)) {
        /* Steps of an operation that is finished anyway may run twice. */
        if (is_undone(operation) && !operation->final) {
            note_error(operation, error);
            return;
        }
        g_warning("%s", error->message);
        g_clear_error(&error);
    }
    operation->at++;
    operation->pending = TRUE;
    if (planned->step->final && !operation->final) {
        operation->final = TRUE;
        operations_set_wake(operation->operations);
    }
    tell_progress(operation);
    planned->step->run(operation, planned->item);
}

static void undo_next(Operation *operation)
{
    const Planned *planned = &g_array_index(operation->steps, Planned, --operation->at);
    g_autoptr(GError) error = NULL;

    if (!planned->step->undo)
        return;
    /* An earlier cancellation does not interrupt the rollback. */
    if (g_cancellable_is_cancelled(operation->cancellable)) {
        g_object_unref(operation->cancellable);
        operation->cancellable = g_cancellable_new();
    }
    if (!mark_step(operation, planned, &error))
        g_warning("%s", error->message);
    operation->pending = TRUE;
    tell_progress(operation);
    planned->step->undo(operation, planned->item);
}

static void do_next(Operation *operation)
{
    if (operation->error && operation->at)
        undo_next(operation);
    else if (operation->error)
        operation->over = TRUE;
    else if (operation->at < operation->steps->len)
        run_next(operation);
    else
        operation->over = commit_end(operation);
}

/* A loop instead of a recursion: of a thousand steps most end at once. */
static void advance_steps(Operation *operation)
{
    if (operation->advancing)
        return;
    operation->advancing = TRUE;
    while (!operation->pending && !operation->over)
        do_next(operation);
    operation->advancing = FALSE;
    if (operation->over)
        operations_release(operation);
}

void operation_begin(Operation *operation)
{
    Operations *operations = operation->operations;
    guint64 time = (guint64)operation->kind->step_time * operation->steps->len;

    operation->running = TRUE;
    operations->in_background += operation->background;
    if (time)
        operation->deadline =
            operations->clock.now(operations->clock.data) + (gint64)time * G_USEC_PER_SEC;
    operations_set_wake(operations);
    if (operations->watch.begins)
        operations->watch.begins(operation, operations->watch.data);
    advance_steps(operation);
}

/* A failed undo is reported together with the first failure. */
static void take_error(Operation *operation, GError *error)
{
    if (operation->error && operation->row->undoing)
        g_prefix_error(&operation->error, "the rollback failed, too (%s): ", error->message);
    note_error(operation, error);
}

void operation_step_done(Operation *operation, GError *error)
{
    operation->pending = FALSE;
    if (operation->abandoned) {
        g_clear_error(&error);
        operation_free(operation);
        return;
    }
    if (error)
        take_error(operation, error);
    advance_steps(operation);
}

void operation_step_again(Operation *operation)
{
    operation->at -= 2;
    operation->final = FALSE;
    operation_step_done(operation, NULL);
}

void operation_step_ended(const GError *error, void *operation)
{
    operation_step_done(operation, error ? g_error_copy(error) : NULL);
}

/* Number of begun steps. All of them, if the journal's step is not in the plan. */
static guint steps_begun(const Operation *operation)
{
    const OperationRow *row = operation->row;

    if (!*row->step && !row->undoing)
        return 0;
    for (guint i = 0; i < operation->steps->len; i++) {
        const Planned *planned = &g_array_index(operation->steps, Planned, i);

        if (g_str_equal(planned->step->name, row->step) && planned->item == row->item)
            return i + 1;
    }
    return operation->steps->len;
}

static gboolean is_final(const Operation *operation, guint begun)
{
    for (guint i = 0; i < begun; i++)
        if (g_array_index(operation->steps, Planned, i).step->final)
            return TRUE;
    return FALSE;
}

void operation_replay(Operation *operation)
{
    guint begun = steps_begun(operation);

    operation->final = !operation->row->undoing && is_final(operation, begun);
    if (operation->kind->replay == OPERATION_UNDO_ALL && !operation->row->undoing)
        begun = operation->steps->len;
    if ((is_undone(operation) && !operation->final) || operation->row->undoing)
        operation->error =
            g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED, "vgpud ended while %s was %s",
                        operation_object(operation, 0), operation->kind->doing);
    operation->at = operation->error || !begun ? begun : begun - 1;
}

void operation_turn_back(Operation *operation, GError *error)
{
    note_error(operation, error);
    /* The step may end within this call, and the operation with it. */
    if (operation->running) {
        g_cancellable_cancel(operation->cancellable);
    } else {
        operation->over = TRUE;
        operations_release(operation);
    }
}

void operation_add_step(Operation *operation, const OperationStep *step, guint item)
{
    const Planned planned = {step, item};

    g_array_append_val(operation->steps, planned);
}

void *operation_world(const Operation *operation)
{
    return operation->world;
}

const char *operation_object(const Operation *operation, guint number)
{
    return operation->row->objects[number];
}

guint operation_objects(const Operation *operation)
{
    return g_strv_length(operation->row->objects);
}

GVariant *operation_details(const Operation *operation)
{
    return operation->details;
}

GCancellable *operation_cancellable(const Operation *operation)
{
    return operation->cancellable;
}

void operation_keep(Operation *operation, void *data, GDestroyNotify free)
{
    if (operation->free_kept)
        operation->free_kept(operation->kept);
    operation->kept = data;
    operation->free_kept = free;
}

void *operation_kept(const Operation *operation)
{
    return operation->kept;
}

gboolean operation_is_replayed(const Operation *operation)
{
    return operation->replayed;
}

gboolean operation_is_abandoned(const Operation *operation)
{
    return operation->abandoned;
}

guint64 operation_id(const Operation *operation)
{
    return operation->row->id;
}

const OperationKind *operation_kind(const Operation *operation)
{
    return operation->kind;
}

const char *operation_caller(const Operation *operation)
{
    return operation->row->caller;
}

const char *operation_source(const Operation *operation)
{
    return operation->source;
}

gint64 operation_begun(const Operation *operation)
{
    return operation->row->begun;
}

const char *operation_step(const Operation *operation)
{
    return operation->row->step;
}

guint operation_at(const Operation *operation)
{
    return operation->at;
}

guint operation_total(const Operation *operation)
{
    return operation->steps->len;
}

gboolean operation_goes_back(const Operation *operation)
{
    return operation->error != NULL;
}
