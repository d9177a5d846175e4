/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/operations/operation.h"

#include "lib/bus.h"
#include "host-agent/daemon/operations/queues.h"
#include "host-agent/store/operation_table.h"

/* Each mdevctl is a process, and the host has other work. */
#define MOST_IN_BACKGROUND 4

typedef struct {
    const OperationStep *step;
    guint item;
} Planned;

typedef struct {
    const OperationKind *kind;
    void *world;
} Known;

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
    guint timer;
    gboolean dispatching;
};

/**
 * struct Operation
 * @row: its row in the journal
 * @steps: of Planned
 * @at: number of steps begun and not undone
 * @pending: a step has not ended yet
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

static void operation_free(Operation *operation)
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

static gint64 host_now(void *data)
{
    (void)data;
    return g_get_monotonic_time();
}

static gboolean expire_now(void *data)
{
    Operations *operations = data;

    operations->timer = 0;
    operations_expire(operations);
    return G_SOURCE_REMOVE;
}

static void host_wake(gint64 at, void *data)
{
    Operations *operations = data;
    gint64 left = at ? (at - g_get_monotonic_time()) / 1000 + 1 : 0;

    g_clear_handle_id(&operations->timer, g_source_remove);
    if (at)
        operations->timer = g_timeout_add((guint)CLAMP(left, 1, G_MAXINT), expire_now, operations);
}

Operations *operations_new(Db *db, const OperationClock *clock)
{
    Operations *operations = g_new0(Operations, 1);

    operations->db = db;
    operations->kinds = g_array_new(FALSE, FALSE, sizeof(Known));
    operations->clock = clock ? *clock : (OperationClock){host_now, host_wake, operations};
    operations->queues = queues_new();
    operations->ended = g_array_new(FALSE, FALSE, sizeof(guint64));
    g_queue_init(&operations->all);
    return operations;
}

static void abandon(Operation *operation)
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

void operations_free(Operations *operations)
{
    Operation *operation;

    while ((operation = g_queue_pop_head(&operations->all)))
        abandon(operation);
    g_clear_handle_id(&operations->timer, g_source_remove);
    queues_free(operations->queues);
    g_array_unref(operations->ended);
    g_array_unref(operations->kinds);
    g_free(operations);
}

void operations_add_kinds(Operations *operations, const OperationKind *const *kinds, void *world)
{
    for (guint i = 0; kinds[i]; i++) {
        const Known known = {kinds[i], world};

        g_array_append_val(operations->kinds, known);
    }
}

/* It can be rolled back, and is not yet. */
static gboolean has_deadline(const Operation *operation)
{
    return operation->running && !operation->final && !operation->error && operation->deadline;
}

static void set_wake(const Operations *operations)
{
    gint64 next = 0;

    for (GList *at = operations->all.head; at; at = at->next) {
        const Operation *operation = at->data;

        if (has_deadline(operation) && (!next || operation->deadline < next))
            next = operation->deadline;
    }
    operations->clock.wake(next, operations->clock.data);
}

static const char *const *objects_of(const Operation *operation)
{
    return (const char *const *)operation->row->objects;
}

static void enqueue(Operation *operation)
{
    g_queue_push_tail(&operation->operations->all, operation);
    queues_add(operation->operations->queues, objects_of(operation), operation);
}

static void dequeue(Operation *operation)
{
    g_queue_remove(&operation->operations->all, operation);
    queues_remove(operation->operations->queues, objects_of(operation), operation);
}

static gboolean may_run(const Operation *operation)
{
    const Operations *operations = operation->operations;

    if (operation->running ||
        (operation->background && operations->in_background >= MOST_IN_BACKGROUND))
        return FALSE;
    return queues_has_all(operations->queues, objects_of(operation), operation);
}

/*
 * Rows that remained because of a full disk: their UUIDs may be another vGPU's by the next start.
 */
static gboolean erase_ended(Operations *operations, GError **error)
{
    while (operations->ended->len) {
        if (!operation_table_end(operations->db, g_array_index(operations->ended, guint64, 0),
                                 error))
            return FALSE;
        g_array_remove_index(operations->ended, 0);
    }
    return TRUE;
}

static void fail(Operation *operation, GError *error)
{
    if (operation->error)
        g_error_free(error);
    else
        operation->error = error;
}

/* Marks as finished, in the journal, an operation that would be undone. */
static gboolean commit(Operation *operation)
{
    GError *error = NULL;

    if (operation->kind->replay == OPERATION_FINISH || operation->final)
        return TRUE;
    if (operation_table_end(operation->operations->db, operation->row->id, &error)) {
        operation->row->id = 0;
        return TRUE;
    }
    fail(operation, error);
    return FALSE;
}

static gboolean mark(Operation *operation, const Planned *planned, GError **error)
{
    OperationRow *row = operation->row;

    g_free(row->step);
    row->step = g_strdup(planned->step->name);
    row->item = planned->item;
    row->undoing = operation->error != NULL;
    return operation_table_mark(operation->operations->db, row, error);
}

static void tell(const Operation *operation)
{
    if (operation->progress)
        operation->progress(operation, operation->data);
}

static void run_next(Operation *operation)
{
    const Planned *planned = &g_array_index(operation->steps, Planned, operation->at);
    GError *error = NULL;

    if (!mark(operation, planned, &error)) {
        /* Steps of an operation that is finished anyway may run twice. */
        if (operation->kind->replay == OPERATION_UNDO && !operation->final) {
            fail(operation, error);
            return;
        }
        g_warning("%s", error->message);
        g_clear_error(&error);
    }
    operation->at++;
    operation->pending = TRUE;
    if (planned->step->final && !operation->final) {
        operation->final = TRUE;
        set_wake(operation->operations);
    }
    tell(operation);
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
    if (!mark(operation, planned, &error))
        g_warning("%s", error->message);
    operation->pending = TRUE;
    tell(operation);
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
        operation->over = commit(operation);
}

static void dispatch(Operations *operations);

static void end(Operation *operation)
{
    Operations *operations = operation->operations;
    g_autoptr(GError) error = NULL;

    dequeue(operation);
    operations->in_background -= operation->running && operation->background;
    set_wake(operations);
    if (operation->row->id && !operation_table_end(operations->db, operation->row->id, &error)) {
        g_warning("%s", error->message);
        g_array_append_val(operations->ended, operation->row->id);
    }
    if (operation->kind->ended)
        operation->kind->ended(operation, operation->error);
    if (operation->done)
        operation->done(operation->error, operation->data);
    operation_free(operation);
    dispatch(operations);
}

/* A loop instead of a recursion: of a thousand steps most end at once. */
static void advance(Operation *operation)
{
    if (operation->advancing)
        return;
    operation->advancing = TRUE;
    while (!operation->pending && !operation->over)
        do_next(operation);
    operation->advancing = FALSE;
    if (operation->over)
        end(operation);
}

static void begin(Operation *operation)
{
    Operations *operations = operation->operations;
    guint64 time = (guint64)operation->kind->step_time * operation->steps->len;

    operation->running = TRUE;
    operations->in_background += operation->background;
    if (time)
        operation->deadline =
            operations->clock.now(operations->clock.data) + (gint64)time * G_USEC_PER_SEC;
    set_wake(operations);
    advance(operation);
}

static Operation *first_to_run(const Operations *operations)
{
    for (GList *at = operations->all.head; at; at = at->next)
        if (may_run(at->data))
            return at->data;
    return NULL;
}

static void dispatch(Operations *operations)
{
    Operation *operation;

    if (operations->dispatching)
        return;
    operations->dispatching = TRUE;
    while ((operation = first_to_run(operations)))
        begin(operation);
    operations->dispatching = FALSE;
}

static void release(Operation *operation)
{
    operation->over = TRUE;
    end(operation);
}

/* A failed undo is reported together with the first failure. */
static void take_error(Operation *operation, GError *error)
{
    if (operation->error && operation->row->undoing)
        g_prefix_error(&operation->error, "the rollback failed, too (%s): ", error->message);
    fail(operation, error);
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
    advance(operation);
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

static const Known *find_kind(const Operations *operations, const char *name)
{
    for (guint i = 0; i < operations->kinds->len; i++) {
        const Known *known = &g_array_index(operations->kinds, Known, i);

        if (g_str_equal(known->kind->name, name))
            return known;
    }
    return NULL;
}

static Operation *operation_new(Operations *operations, const Known *known, OperationRow *row,
                                GVariant *details)
{
    Operation *operation = g_new0(Operation, 1);

    operation->operations = operations;
    operation->kind = known->kind;
    operation->world = known->world;
    operation->row = row;
    operation->details = g_variant_ref_sink(
        details ? details : g_variant_new_array(G_VARIANT_TYPE("{sv}"), NULL, 0));
    operation->steps = g_array_new(FALSE, FALSE, sizeof(Planned));
    operation->cancellable = g_cancellable_new();
    return operation;
}

static void accept(Operation *operation)
{
    enqueue(operation);
    operation->kind->plan(operation);
    if (operation->kind->accepted)
        operation->kind->accepted(operation);
}

static gboolean check_free(const Operations *operations, const OperationRequest *request,
                           GError **error)
{
    for (guint i = 0; !request->waits && request->objects[i]; i++) {
        const char *doing = operations_doing(operations, request->objects[i]);

        if (!doing)
            continue;
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "%s is just %s; try again when that is done", request->objects[i], doing);
        return FALSE;
    }
    return TRUE;
}

static OperationRow *row_of(const OperationRequest *request, GVariant *details)
{
    OperationRow *row = g_new0(OperationRow, 1);

    row->kind = g_strdup(request->kind->name);
    row->objects = g_strdupv((GStrv)request->objects);
    row->data = details ? g_variant_print(details, TRUE) : g_strdup("");
    row->caller = g_strdup(request->caller ? request->caller : "");
    row->begun = g_get_real_time() / G_USEC_PER_SEC;
    row->step = g_strdup("");
    return row;
}

gboolean operations_start(Operations *operations, const OperationRequest *request, GError **error)
{
    g_autoptr(GVariant) details = request->details ? g_variant_ref_sink(request->details) : NULL;
    g_autoptr(OperationRow) row = row_of(request, details);
    Operation *operation;

    if (!check_free(operations, request, error) || !erase_ended(operations, error) ||
        !operation_table_begin(operations->db, row, error)) {
        if (request->free_kept)
            request->free_kept(request->kept);
        return FALSE;
    }
    operation = operation_new(operations, find_kind(operations, request->kind->name),
                              g_steal_pointer(&row), details);
    operation->background = request->background;
    operation_keep(operation, request->kept, request->free_kept);
    operation->progress = request->progress;
    operation->done = request->done;
    operation->data = request->data;
    accept(operation);
    if (may_run(operation))
        begin(operation);
    return TRUE;
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

/* The step that was begun last is repeated, or undone. */
static void replay(Operation *operation)
{
    guint begun = steps_begun(operation);

    operation->final = !operation->row->undoing && is_final(operation, begun);
    if ((operation->kind->replay == OPERATION_UNDO && !operation->final) || operation->row->undoing)
        operation->error =
            g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED, "vgpud ended while %s was %s",
                        operation_object(operation, 0), operation->kind->doing);
    operation->at = operation->error || !begun ? begun : begun - 1;
}

static void load(Operations *operations, OperationRow *row)
{
    const Known *known = find_kind(operations, row->kind);
    g_autoptr(GVariant) details =
        *row->data ? g_variant_parse(G_VARIANT_TYPE_VARDICT, row->data, NULL, NULL, NULL) : NULL;
    Operation *operation;

    if (!known || !*row->objects) {
        g_warning("operation %" G_GUINT64_FORMAT " of the journal has an unknown kind (%s): it is "
                                                 "dropped",
                  row->id, row->kind);
        operation_table_end(operations->db, row->id, NULL);
        operation_row_free(row);
        return;
    }
    g_message("%s was left incomplete (%s): continuing", row->objects[0], known->kind->doing);
    operation = operation_new(operations, known, row, details);
    operation->background = TRUE;
    operation->replayed = TRUE;
    accept(operation);
    replay(operation);
}

gboolean operations_load(Operations *operations, GError **error)
{
    g_autoptr(GPtrArray) rows = operation_table_read(operations->db, error);

    if (!rows)
        return FALSE;
    g_ptr_array_set_free_func(rows, NULL);
    for (guint i = 0; i < rows->len; i++)
        load(operations, g_ptr_array_index(rows, i));
    return TRUE;
}

void operations_resume(Operations *operations)
{
    dispatch(operations);
}

const Operation *operations_first(const Operations *operations, const char *object)
{
    return queues_first(operations->queues, object);
}

const char *operations_doing(const Operations *operations, const char *object)
{
    const Operation *operation = operations_first(operations, object);

    return operation ? operation->kind->doing : NULL;
}

GPtrArray *operations_list(const Operations *operations)
{
    GPtrArray *list = g_ptr_array_new();

    for (GList *at = operations->all.head; at; at = at->next)
        g_ptr_array_add(list, at->data);
    return list;
}

/*
 * It is rolled back as soon as the step that runs has ended; one that waits in the queues ends now.
 */
static void turn_back(Operation *operation, GError *error)
{
    fail(operation, error);
    /* The step may end within this call, and the operation with it. */
    if (operation->running)
        g_cancellable_cancel(operation->cancellable);
    else
        release(operation);
}

gboolean operations_cancel(Operations *operations, guint64 id, GError **error)
{
    Operation *found = NULL;

    for (GList *at = operations->all.head; at && !found; at = at->next)
        if (operation_id(at->data) == id)
            found = at->data;
    if (!found) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                    "there is no operation %" G_GUINT64_FORMAT "; it may have ended", id);
        return FALSE;
    }
    if (found->final || found->error) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "%s of %s can't be cancelled any more: it %s", found->kind->what,
                    operation_object(found, 0), found->error ? "goes back already" : "is too far");
        return FALSE;
    }
    turn_back(found, found->kind->cancelled
                         ? found->kind->cancelled(found)
                         : g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED, "%s of %s was cancelled",
                                       found->kind->what, operation_object(found, 0)));
    return TRUE;
}

static GError *too_late(const Operation *operation)
{
    return g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED,
                       "%s of %s did not end in %u seconds, and is undone; it was at the step "
                       "\"%s\"",
                       operation->kind->what, operation_object(operation, 0),
                       operation->kind->step_time * operation->steps->len, operation->row->step);
}

/* Running, and past its deadline; NULL: none. */
static Operation *first_late(const Operations *operations, gint64 now)
{
    for (GList *at = operations->all.head; at; at = at->next)
        if (has_deadline(at->data) && ((const Operation *)at->data)->deadline <= now)
            return at->data;
    return NULL;
}

void operations_expire(Operations *operations)
{
    gint64 now = operations->clock.now(operations->clock.data);
    Operation *operation;

    while ((operation = first_late(operations, now)))
        turn_back(operation, too_late(operation));
    set_wake(operations);
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
