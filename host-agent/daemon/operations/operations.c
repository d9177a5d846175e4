/* SPDX-License-Identifier: MIT */
#include "lib/bus.h"
#include "host-agent/daemon/operations/operation_parts.h"

/*
 * A queue for each object. An entry that waits for several objects is in all of their queues, and
 * runs when it is the first in each. It enters all of them at once, so there is no deadlock.
 */

/**
 * struct Queues
 * @by_object: object to GQueue, which is never empty
 */
struct Queues {
    GHashTable *by_object;
};

static Queues *queues_new(void)
{
    Queues *queues = g_new0(Queues, 1);

    queues->by_object =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_queue_free);
    return queues;
}

/* Waiting entries are not freed. */
static void queues_free(Queues *queues)
{
    g_hash_table_unref(queues->by_object);
    g_free(queues);
}

/* @objects: NULL terminated, copied. @who: becomes the last in each queue. */
static void queues_add(Queues *queues, const char *const *objects, void *who)
{
    for (guint i = 0; objects[i]; i++) {
        GQueue *queue = g_hash_table_lookup(queues->by_object, objects[i]);

        if (!queue) {
            queue = g_queue_new();
            g_hash_table_insert(queues->by_object, g_strdup(objects[i]), queue);
        }
        g_queue_push_tail(queue, who);
    }
}

static void queues_remove(Queues *queues, const char *const *objects, void *who)
{
    for (guint i = 0; objects[i]; i++) {
        GQueue *queue = g_hash_table_lookup(queues->by_object, objects[i]);

        if (queue)
            g_queue_remove(queue, who);
        if (queue && g_queue_is_empty(queue))
            g_hash_table_remove(queues->by_object, objects[i]);
    }
}

/* The entry that works on the object, or will next; NULL: none. */
static void *queues_first(const Queues *queues, const char *object)
{
    GQueue *queue = g_hash_table_lookup(queues->by_object, object);

    return queue ? g_queue_peek_head(queue) : NULL;
}

/* @who is the first in all of its queues. */
static gboolean queues_has_all(const Queues *queues, const char *const *objects, const void *who)
{
    for (guint i = 0; objects[i]; i++)
        if (queues_first(queues, objects[i]) != who)
            return FALSE;
    return TRUE;
}

/* Each mdevctl is a process, and the host has other work. */
#define MOST_IN_BACKGROUND 4

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

void operations_free(Operations *operations)
{
    Operation *operation;

    while ((operation = g_queue_pop_head(&operations->all)))
        operation_abandon(operation);
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

void operations_watch(Operations *operations, const OperationWatch *watch)
{
    operations->watch = *watch;
}

void operations_set_wake(const Operations *operations)
{
    gint64 next = 0;

    for (GList *at = operations->all.head; at; at = at->next) {
        const Operation *operation = at->data;

        if (operation_has_deadline(operation) && (!next || operation->deadline < next))
            next = operation->deadline;
    }
    operations->clock.wake(next, operations->clock.data);
}

static const char *const *objects_of(const Operation *operation)
{
    return (const char *const *)operation->row->objects;
}

static void enqueue_operation(Operation *operation)
{
    g_queue_push_tail(&operation->operations->all, operation);
    queues_add(operation->operations->queues, objects_of(operation), operation);
}

static void dequeue_operation(Operation *operation)
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

static Operation *first_to_run(const Operations *operations)
{
    for (GList *at = operations->all.head; at; at = at->next)
        if (may_run(at->data))
            return at->data;
    return NULL;
}

static void dispatch_ready(Operations *operations)
{
    Operation *operation;

    if (operations->dispatching)
        return;
    operations->dispatching = TRUE;
    while ((operation = first_to_run(operations)))
        operation_begin(operation);
    operations->dispatching = FALSE;
}

void operations_release(Operation *operation)
{
    Operations *operations = operation->operations;
    g_autoptr(GError) error = NULL;

    dequeue_operation(operation);
    operations->in_background -= operation->running && operation->background;
    operations_set_wake(operations);
    if (operation->row->id && !operation_table_end(operations->db, operation->row->id, &error)) {
        g_warning("%s", error->message);
        g_array_append_val(operations->ended, operation->row->id);
    }
    if (operation->kind->ended)
        operation->kind->ended(operation, operation->error);
    if (operations->watch.ended)
        operations->watch.ended(operation, operation->error, operations->watch.data);
    if (operation->done)
        operation->done(operation->error, operation->data);
    operation_free(operation);
    dispatch_ready(operations);
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

static void accept_operation(Operation *operation)
{
    enqueue_operation(operation);
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
    const char *caller = request->caller ? request->caller : request->source;

    row->kind = g_strdup(request->kind->name);
    row->objects = g_strdupv((GStrv)request->objects);
    row->data = details ? g_variant_print(details, TRUE) : g_strdup("");
    row->caller = g_strdup(caller ? caller : "");
    row->begun = g_get_real_time() / G_USEC_PER_SEC;
    row->step = g_strdup("");
    return row;
}

gboolean operations_start(Operations *operations, const OperationRequest *request, GError **error)
{
    g_autoptr(GVariant) details = request->details ? g_variant_ref_sink(request->details) : NULL;
    g_autoptr(OperationRow) row = row_of(request, details);
    const Known *known = find_kind(operations, request->kind->name);
    Operation *operation;

    if (!check_free(operations, request, error) || !erase_ended(operations, error) ||
        !operation_table_begin(operations->db, row, error)) {
        if (request->free_kept)
            request->free_kept(request->kept);
        return FALSE;
    }
    operation =
        operation_new(operations, known->kind, known->world, g_steal_pointer(&row), details);
    operation->background = request->background;
    operation->source = request->source;
    operation_keep(operation, request->kept, request->free_kept);
    operation->progress = request->progress;
    operation->done = request->done;
    operation->data = request->data;
    accept_operation(operation);
    if (may_run(operation))
        operation_begin(operation);
    return TRUE;
}

static void load_operation(Operations *operations, OperationRow *row)
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
    operation = operation_new(operations, known->kind, known->world, row, details);
    operation->background = TRUE;
    operation->replayed = TRUE;
    accept_operation(operation);
    operation_replay(operation);
}

gboolean operations_load(Operations *operations, GError **error)
{
    g_autoptr(GPtrArray) rows = operation_table_read(operations->db, error);

    if (!rows)
        return FALSE;
    g_ptr_array_set_free_func(rows, NULL);
    for (guint i = 0; i < rows->len; i++)
        load_operation(operations, g_ptr_array_index(rows, i));
    return TRUE;
}

void operations_resume(Operations *operations)
{
    dispatch_ready(operations);
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
    operation_turn_back(found,
                        found->kind->cancelled
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
        if (operation_has_deadline(at->data) && ((const Operation *)at->data)->deadline <= now)
            return at->data;
    return NULL;
}

void operations_expire(Operations *operations)
{
    gint64 now = operations->clock.now(operations->clock.data);
    Operation *operation;

    while ((operation = first_late(operations, now)))
        operation_turn_back(operation, too_late(operation));
    operations_set_wake(operations);
}
