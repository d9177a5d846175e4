/* SPDX-License-Identifier: MIT */
/* The engine of operations, with scripted steps and a clock that stands still. */
#include <string.h>

#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "host-agent/daemon/operations/operation.h"
#include "host-agent/store/tables.h"
#include "host-agent/store/db.h"

/**
 * Bench
 * @log: the steps that ran, as "+a0 +b1 -b1 "
 * @hold: a step that does not end by itself, as "+b1"
 * @fails: one that fails
 * @again: one that has the step before it run again, once
 * @held: who is at @hold
 * @said: how operations have ended, as "ok " or a part of their error
 */
typedef struct {
    HostRoot *root;
    Db *db;
    Operations *operations;
    GString *log;
    GString *said;
    char *hold;
    char *fails;
    char *again;
    GPtrArray *held;
    gint64 now;
    gint64 wake;
} Bench;

static void step(Operation *operation, char way, char name, guint item)
{
    Bench *bench = operation_world(operation);
    g_autofree char *word = g_strdup_printf("%c%c%u", way, name, item);

    g_string_append_printf(bench->log, "%s ", word);
    if (g_strcmp0(word, bench->hold) == 0) {
        g_ptr_array_add(bench->held, operation);
    } else if (g_strcmp0(word, bench->again) == 0) {
        g_clear_pointer(&bench->again, g_free);
        operation_step_again(operation);
    } else {
        operation_step_done(operation,
                            g_strcmp0(word, bench->fails) == 0
                                ? g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED, "%s failed", word)
                                : NULL);
    }
}

static void run_a(Operation *operation, guint item)
{
    step(operation, '+', 'a', item);
}

static void undo_a(Operation *operation, guint item)
{
    step(operation, '-', 'a', item);
}

static void run_b(Operation *operation, guint item)
{
    step(operation, '+', 'b', item);
}

static void undo_b(Operation *operation, guint item)
{
    step(operation, '-', 'b', item);
}

static void run_c(Operation *operation, guint item)
{
    step(operation, '+', 'c', item);
}

static const OperationStep step_a = {"a", run_a, undo_a, FALSE};
static const OperationStep step_b = {"b", run_b, undo_b, FALSE};
static const OperationStep step_c = {"c", run_c, NULL, TRUE};

/* a0, b0 for the first object, b1 for the second, … */
static void plan_make(Operation *operation)
{
    operation_add_step(operation, &step_a, 0);
    for (guint i = 0; i < operation_objects(operation); i++)
        operation_add_step(operation, &step_b, i);
}

/* a0, then c0, after which there is no rollback, then b0. */
static void plan_end(Operation *operation)
{
    operation_add_step(operation, &step_a, 0);
    operation_add_step(operation, &step_c, 0);
    operation_add_step(operation, &step_b, 0);
}

static GError *cancelled_turn(const Operation *operation)
{
    return g_error_new(AGENT_ERROR, AGENT_ERROR_IN_USE, "%s stays", operation_object(operation, 0));
}

static const OperationKind make = {.name = "make",
                                   .doing = "being made",
                                   .what = "the making",
                                   .replay = OPERATION_UNDO,
                                   .step_time = 10,
                                   .plan = plan_make};
static const OperationKind finish = {.name = "finish",
                                     .doing = "being finished",
                                     .what = "the end",
                                     .replay = OPERATION_FINISH,
                                     .step_time = 10,
                                     .plan = plan_end};
/* Undone until its final step is begun, and finished after that. */
static const OperationKind turn = {.name = "turn",
                                   .doing = "being turned",
                                   .what = "the turn",
                                   .replay = OPERATION_UNDO,
                                   .plan = plan_end,
                                   .cancelled = cancelled_turn};
static const OperationKind *const kinds[] = {&make, &finish, &turn, NULL};

static gint64 now(void *data)
{
    return ((const Bench *)data)->now;
}

static void wake(gint64 at, void *data)
{
    ((Bench *)data)->wake = at;
}

static void start_engine(Bench *bench)
{
    bench->db = db_open(bench->root, NULL);
    bench->operations = operations_new(bench->db, &(OperationClock){now, wake, bench});
    operations_add_kinds(bench->operations, kinds, bench);
}

static Bench *bench_new(void)
{
    Bench *bench = g_new0(Bench, 1);

    bench->root = file_tree_new();
    bench->log = g_string_new("");
    bench->said = g_string_new("");
    bench->held = g_ptr_array_new();
    bench->now = 1000 * G_USEC_PER_SEC;
    start_engine(bench);
    return bench;
}

static void set(char **text, const char *value)
{
    g_free(*text);
    *text = g_strdup(value);
}

/* Kills vgpud: running operations end without a report. */
static void kill_engine(Bench *bench)
{
    operations_free(bench->operations);
    for (guint i = 0; i < bench->held->len; i++)
        operation_step_done(g_ptr_array_index(bench->held, i), NULL);
    g_ptr_array_set_size(bench->held, 0);
    db_free(bench->db);
}

static void bench_free(Bench *bench)
{
    kill_engine(bench);
    file_tree_free(bench->root);
    g_string_free(bench->log, TRUE);
    g_string_free(bench->said, TRUE);
    g_ptr_array_unref(bench->held);
    g_free(bench->hold);
    g_free(bench->fails);
    g_free(bench->again);
    g_free(bench);
}

static void crash_and_replay(Bench *bench)
{
    kill_engine(bench);
    set(&bench->hold, NULL);
    set(&bench->fails, NULL);
    g_string_truncate(bench->log, 0);
    g_string_truncate(bench->said, 0);
    start_engine(bench);
    g_assert_true(operations_load(bench->operations, NULL));
    g_assert_cmpstr(bench->log->str, ==, "");
    operations_resume(bench->operations);
}

static void let_go(Bench *bench)
{
    Operation *operation = g_ptr_array_steal_index(bench->held, 0);

    set(&bench->hold, NULL);
    operation_step_done(operation, NULL);
}

static void done(const GError *error, void *data)
{
    Bench *bench = data;

    g_string_append_printf(bench->said, "%s; ", error ? error->message : "ok");
}

static gboolean start(Bench *bench, const OperationKind *kind, const char *objects, gboolean waits)
{
    g_auto(GStrv) list = g_strsplit(objects, " ", -1);
    const OperationRequest request = {.kind = kind,
                                      .objects = (const char *const *)list,
                                      .caller = "root",
                                      .waits = waits,
                                      .done = done,
                                      .data = bench};

    return operations_start(bench->operations, &request, NULL);
}

static guint rows(const Bench *bench)
{
    g_autoptr(GPtrArray) list = operation_table_read(bench->db, NULL);

    return list->len;
}

static void assert_log(const Bench *bench, const char *log, const char *said)
{
    g_test_message("%s: %s", bench->log->str, bench->said->str);
    g_assert_cmpstr(bench->log->str, ==, log);
    g_assert_nonnull(strstr(bench->said->str, said));
}

static void test_all_steps(void)
{
    Bench *bench = bench_new();

    g_assert_true(start(bench, &make, "x y", FALSE));
    assert_log(bench, "+a0 +b0 +b1 ", "ok; ");
    g_assert_cmpuint(rows(bench), ==, 0);
    g_assert_cmpint(bench->wake, ==, 0);
    g_assert_null(operations_doing(bench->operations, "x"));
    bench_free(bench);
}

/* One after the other for one object, and at once for others; the order is kept. */
static void test_queues(void)
{
    Bench *bench = bench_new();

    set(&bench->hold, "+b0");
    g_assert_true(start(bench, &make, "x", TRUE));
    set(&bench->hold, NULL);
    g_assert_cmpstr(operations_doing(bench->operations, "x"), ==, "being made");
    g_assert_true(start(bench, &finish, "x y", TRUE));
    g_assert_true(start(bench, &make, "y", TRUE));
    assert_log(bench, "+a0 +b0 ", "");
    g_assert_true(start(bench, &make, "z", TRUE));
    assert_log(bench, "+a0 +b0 +a0 +b0 ", "ok; ");
    g_string_truncate(bench->log, 0);
    g_assert_cmpuint(rows(bench), ==, 3);
    let_go(bench);
    assert_log(bench, "+a0 +c0 +b0 +a0 +b0 ", "ok; ok; ok; ok; ");
    g_assert_cmpuint(rows(bench), ==, 0);
    bench_free(bench);
}

static void test_busy(void)
{
    Bench *bench = bench_new();
    g_autoptr(GError) error = NULL;
    const OperationRequest request = {.kind = &finish, .objects = (const char *[]){"y", "x", NULL}};

    set(&bench->hold, "+a0");
    g_assert_true(start(bench, &make, "x", FALSE));
    g_assert_false(operations_start(bench->operations, &request, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE);
    g_assert_cmpstr(error->message, ==, "x is just being made; try again when that is done");
    g_assert_null(operations_doing(bench->operations, "y"));
    g_assert_cmpuint(rows(bench), ==, 1);
    bench_free(bench);
}

/* Operations without a waiting caller leave the host its time. */
static void test_background(void)
{
    Bench *bench = bench_new();
    OperationRequest request = {.kind = &make, .background = TRUE, .waits = TRUE};
    const char *names[] = {"a", "b", "c", "d", "e", "f"};

    set(&bench->hold, "+b0");
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        request.objects = (const char *[]){names[i], NULL};
        g_assert_true(operations_start(bench->operations, &request, NULL));
    }
    assert_log(bench, "+a0 +b0 +a0 +b0 +a0 +b0 +a0 +b0 ", "");
    g_assert_true(start(bench, &finish, "z", FALSE));
    g_assert_cmpuint(bench->held->len, ==, 5);
    operation_step_done(g_ptr_array_steal_index(bench->held, 0), NULL);
    assert_log(bench, "+a0 +b0 +a0 +b0 +a0 +b0 +a0 +b0 +a0 +c0 +b0 +a0 +b0 ", "");
    bench_free(bench);
}

/* Whichever step fails, all begun steps are undone, the last one first. */
static void test_fail(void)
{
    static const char *const cases[][2] = {
        {"+a0", "+a0 -a0 "},
        {"+b0", "+a0 +b0 -b0 -a0 "},
        {"+b1", "+a0 +b0 +b1 -b1 -b0 -a0 "},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        Bench *bench = bench_new();

        set(&bench->fails, cases[i][0]);
        g_assert_true(start(bench, &make, "x y", FALSE));
        assert_log(bench, cases[i][1], cases[i][0]);
        g_assert_cmpuint(rows(bench), ==, 0);
        bench_free(bench);
    }
}

/* A failed undo does not prevent the others, and the first error is reported. */
static void test_undo_fails(void)
{
    Bench *bench = bench_new();

    set(&bench->hold, "+b1");
    g_assert_true(start(bench, &make, "x y", FALSE));
    set(&bench->fails, "-b1");
    g_assert_true(operations_cancel(bench->operations, 1, NULL));
    let_go(bench);
    assert_log(bench, "+a0 +b0 +b1 -b1 -b0 -a0 ", "the making of x was cancelled");
    g_assert_cmpuint(rows(bench), ==, 0);
    bench_free(bench);
}

static void test_deadline(void)
{
    Bench *bench = bench_new();
    gint64 begun = bench->now;

    set(&bench->hold, "+b0");
    g_assert_true(start(bench, &make, "x", FALSE));
    g_assert_true(start(bench, &make, "x", TRUE));
    g_assert_cmpint(bench->wake, ==, begun + 20 * G_USEC_PER_SEC);
    bench->now = bench->wake - 1;
    operations_expire(bench->operations);
    g_assert_false(
        g_cancellable_is_cancelled(operation_cancellable(g_ptr_array_index(bench->held, 0))));
    bench->now = bench->wake;
    operations_expire(bench->operations);
    g_assert_true(
        g_cancellable_is_cancelled(operation_cancellable(g_ptr_array_index(bench->held, 0))));
    assert_log(bench, "+a0 +b0 ", "");
    g_assert_cmpint(bench->wake, ==, 0);
    let_go(bench);
    assert_log(
        bench, "+a0 +b0 -b0 -a0 +a0 +b0 ",
        "the making of x did not end in 20 seconds, and is undone; it was at the step \"b\"; "
        "ok; ");
    bench_free(bench);
}

/*
 * From a final step on neither a timeout nor a cancellation rolls it back; only its own failure
 * ends it.
 */
static void test_final(void)
{
    Bench *bench = bench_new();
    g_autoptr(GError) error = NULL;

    set(&bench->hold, "+c0");
    g_assert_true(start(bench, &finish, "x", FALSE));
    g_assert_cmpint(bench->wake, ==, 0);
    bench->now += G_GINT64_CONSTANT(3600) * G_USEC_PER_SEC;
    operations_expire(bench->operations);
    g_assert_false(operations_cancel(bench->operations, 1, &error));
    g_assert_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE);
    set(&bench->fails, "+b0");
    let_go(bench);
    assert_log(bench, "+a0 +c0 +b0 -b0 -a0 ", "+b0 failed");
    bench_free(bench);
}

static void test_cancel(void)
{
    static const char *const cases[][2] = {
        {"+a0", "+a0 -a0 "},
        {"+b0", "+a0 +b0 -b0 -a0 "},
        {"+b1", "+a0 +b0 +b1 -b1 -b0 -a0 "},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        Bench *bench = bench_new();
        g_autoptr(GError) error = NULL;

        set(&bench->hold, cases[i][0]);
        g_assert_true(start(bench, &make, "x y", FALSE));
        g_assert_true(operations_cancel(bench->operations, 1, NULL));
        g_assert_false(operations_cancel(bench->operations, 1, &error));
        g_assert_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE);
        let_go(bench);
        assert_log(bench, cases[i][1], "was cancelled");
        g_clear_error(&error);
        g_assert_false(operations_cancel(bench->operations, 1, &error));
        g_assert_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND);
        bench_free(bench);
    }
}

/* One that waits in the queue has done nothing, and ends at once. */
static void test_cancel_waiting(void)
{
    Bench *bench = bench_new();

    set(&bench->hold, "+a0");
    g_assert_true(start(bench, &make, "x", FALSE));
    g_assert_true(start(bench, &make, "x", TRUE));
    g_assert_true(operations_cancel(bench->operations, 2, NULL));
    assert_log(bench, "+a0 ", "was cancelled");
    g_assert_cmpuint(rows(bench), ==, 1);
    let_go(bench);
    assert_log(bench, "+a0 +b0 ", "ok; ");
    bench_free(bench);
}

/* vgpud is killed while a step is run, or undone. @fails: for a rollback; NULL: it continues. */
static void assert_replay(const OperationKind *kind, const char *fails, const char *hold,
                          const char *log)
{
    Bench *bench = bench_new();

    set(&bench->fails, fails);
    set(&bench->hold, hold);
    g_assert_true(start(bench, kind, "x y", FALSE));
    g_assert_cmpuint(bench->held->len, ==, 1);
    crash_and_replay(bench);
    g_test_message("killed at %s", hold);
    assert_log(bench, log, "");
    g_assert_cmpuint(rows(bench), ==, 0);
    g_assert_cmpstr(bench->said->str, ==, "");
    bench_free(bench);
}

static void test_crash(void)
{
    assert_replay(&make, NULL, "+a0", "-a0 ");
    assert_replay(&make, NULL, "+b0", "-b0 -a0 ");
    assert_replay(&make, NULL, "+b1", "-b1 -b0 -a0 ");
    assert_replay(&make, "+b1", "-b1", "-b1 -b0 -a0 ");
    assert_replay(&make, "+b1", "-b0", "-b0 -a0 ");
    assert_replay(&make, "+b1", "-a0", "-a0 ");
    assert_replay(&finish, NULL, "+a0", "+a0 +c0 +b0 ");
    assert_replay(&finish, NULL, "+c0", "+c0 +b0 ");
    assert_replay(&finish, NULL, "+b0", "+b0 ");
    assert_replay(&finish, "+b0", "-a0", "-a0 ");
}

/* Before its final step it is undone, and after that it is finished. */
static void test_crash_of_final(void)
{
    assert_replay(&turn, NULL, "+a0", "-a0 ");
    assert_replay(&turn, NULL, "+c0", "+c0 +b0 ");
    assert_replay(&turn, NULL, "+b0", "+b0 ");
    assert_replay(&turn, "+b0", "-b0", "-b0 -a0 ");
}

/* A step that finds that the one before it has to be done again: nothing is undone for that, and
 * until it comes back it can be cancelled. */
static void test_again(void)
{
    Bench *bench = bench_new();
    g_autoptr(GError) error = NULL;

    set(&bench->again, "+c0");
    g_assert_true(start(bench, &turn, "x", FALSE));
    assert_log(bench, "+a0 +c0 +a0 +c0 +b0 ", "ok; ");
    set(&bench->again, "+c0");
    set(&bench->hold, "+c0");
    g_string_truncate(bench->log, 0);
    g_assert_true(start(bench, &turn, "x", FALSE));
    g_assert_false(operations_cancel(bench->operations, 2, NULL));
    set(&bench->hold, "+a0");
    operation_step_again(g_ptr_array_steal_index(bench->held, 0));
    g_assert_true(operations_cancel(bench->operations, 2, NULL));
    let_go(bench);
    assert_log(bench, "+a0 +c0 +a0 -a0 ", "x stays");
    bench_free(bench);
}

/* What waited is done after the restart, in its order, and keeps its objects until then. */
static void test_crash_waiting(void)
{
    Bench *bench = bench_new();

    set(&bench->hold, "+a0");
    g_assert_true(start(bench, &make, "x", FALSE));
    g_assert_true(start(bench, &finish, "x", TRUE));
    kill_engine(bench);
    start_engine(bench);
    g_string_truncate(bench->log, 0);
    g_assert_true(operations_load(bench->operations, NULL));
    g_assert_cmpstr(operations_doing(bench->operations, "x"), ==, "being made");
    set(&bench->hold, NULL);
    operations_resume(bench->operations);
    assert_log(bench, "-a0 +a0 +c0 +b0 ", "");
    bench_free(bench);
}

/*
 * An operation that is not in the journal any more is done. So one whose row cannot be deleted is
 * undone: a crash would do that to it later.
 */
static void test_full_disk(void)
{
    Bench *bench = bench_new();

    g_assert_true(db_run(bench->db, NULL,
                         "CREATE TRIGGER full BEFORE DELETE ON operation BEGIN "
                         "SELECT RAISE(ABORT, 'no room'); END",
                         ""));
    g_test_expect_message(NULL, G_LOG_LEVEL_WARNING, "*no room*");
    g_assert_true(start(bench, &make, "x", FALSE));
    g_test_assert_expected_messages();
    assert_log(bench, "+a0 +b0 -b0 -a0 ", "no room");
    g_assert_false(start(bench, &make, "x", FALSE));
    g_assert_true(db_run(bench->db, NULL, "DROP TRIGGER full", ""));
    g_assert_cmpuint(rows(bench), ==, 1);
    g_assert_true(start(bench, &make, "x", FALSE));
    g_assert_cmpuint(rows(bench), ==, 0);
    assert_log(bench, "+a0 +b0 -b0 -a0 +a0 +b0 ", "ok; ");
    bench_free(bench);
}

static void test_unknown_kind(void)
{
    Bench *bench = bench_new();

    g_assert_true(db_run(bench->db, NULL,
                         "INSERT INTO operation VALUES (7, 'fly', 'x', '', '', 0, 'a', 0, 0)", ""));
    g_test_expect_message(NULL, G_LOG_LEVEL_WARNING, "*operation 7*fly*dropped*");
    crash_and_replay(bench);
    g_test_assert_expected_messages();
    g_assert_cmpuint(rows(bench), ==, 0);
    assert_log(bench, "", "");
    bench_free(bench);
}

static void assert_row(const OperationRow *row, const char *kind, const char *object,
                       gboolean undoing)
{
    g_assert_cmpstr(row->kind, ==, kind);
    g_assert_cmpstr(row->objects[0], ==, object);
    g_assert_cmpint(row->undoing, ==, undoing);
}

/* A database of 0.1.0, with interrupted calls. */
static void test_upgrade(void)
{
    g_autofree HostRoot *root = file_tree_new();
    g_autofree char *path = root_path(root, "/var/lib/vgpu/state.db", NULL);
    g_autofree char *copy = g_strconcat(path, ".v6", NULL);
    g_autoptr(Db) db = NULL;
    g_autoptr(GPtrArray) list = NULL;
    sqlite3 *old;
    const OperationRow *row;

    file_tree_write(root, "/var/lib/vgpu/x", "");
    g_assert_cmpint(sqlite3_open(path, &old), ==, SQLITE_OK);
    for (guint i = 0; i < 6; i++)
        g_assert_cmpint(sqlite3_exec(old, schema_steps[i], NULL, NULL, NULL), ==, SQLITE_OK);
    g_assert_cmpint(
        sqlite3_exec(
            old,
            "INSERT INTO slice (uuid, state, request, gpu, type, tenant, class, vram,"
            " compute, weight, cap, priority, job, replica, defined, autostart) VALUES"
            " ('u1', 'ready', '', 'g', 't', '', 'guaranteed', 1, 1, 1, 1, 1, '', '', 0, 0),"
            " ('u2', 'creating', '', 'g', 't', '', 'guaranteed', 1, 1, 1, 1, 1, '', '', 0, 0),"
            " ('u3', 'changing', '', 'g', 't', '', 'guaranteed', 1, 1, 1, 1, 1, '', '', 0, 0),"
            " ('u4', 'removing', '', 'g', 't', '', 'guaranteed', 1, 1, 1, 1, 1, '', '', 0, 0);"
            "INSERT INTO mode_switch VALUES ('g1', 'shared', 'partitioned', 'switching', 2, 0),"
            " ('g2', 'shared', 'host', 'draining', 0, 0);"
            "PRAGMA user_version = 6",
            NULL, NULL, NULL),
        ==, SQLITE_OK);
    sqlite3_close(old);
    db = db_open(root, NULL);
    g_assert_nonnull(db);
    /* What it was stays, for who goes back to the older vgpud. */
    g_assert_cmpint(sqlite3_open(copy, &old), ==, SQLITE_OK);
    g_assert_cmpint(
        sqlite3_exec(old, "SELECT state FROM slice WHERE uuid = 'u4'", NULL, NULL, NULL), ==,
        SQLITE_OK);
    sqlite3_close(old);
    list = operation_table_read(db, NULL);
    g_assert_cmpuint(list->len, ==, 5);
    assert_row(g_ptr_array_index(list, 0), "create", "u2", TRUE);
    assert_row(g_ptr_array_index(list, 1), "change", "u3", FALSE);
    assert_row(g_ptr_array_index(list, 2), "remove", "u4", FALSE);
    assert_row(g_ptr_array_index(list, 3), "switch", "g1", FALSE);
    assert_row(g_ptr_array_index(list, 4), "switch", "g2", FALSE);
    row = g_ptr_array_index(list, 3);
    g_assert_cmpstr(row->step, ==, "reconcile");
    g_assert_cmpstr(row->data, ==,
                    "{'origin': <'shared'>, 'target': <'partitioned'>,  'partitions': <uint32 2>}");
    row = g_ptr_array_index(list, 4);
    g_assert_cmpstr(row->step, ==, "wait");
    g_clear_pointer(&db, db_free);
    db = db_open(root, NULL);
    g_assert_nonnull(db);
    file_tree_free(g_steal_pointer(&root));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/operation/all-steps", test_all_steps);
    g_test_add_func("/operation/queues", test_queues);
    g_test_add_func("/operation/busy", test_busy);
    g_test_add_func("/operation/background", test_background);
    g_test_add_func("/operation/fail", test_fail);
    g_test_add_func("/operation/undo-fails", test_undo_fails);
    g_test_add_func("/operation/deadline", test_deadline);
    g_test_add_func("/operation/final", test_final);
    g_test_add_func("/operation/cancel", test_cancel);
    g_test_add_func("/operation/cancel-waiting", test_cancel_waiting);
    g_test_add_func("/operation/crash", test_crash);
    g_test_add_func("/operation/crash-of-final", test_crash_of_final);
    g_test_add_func("/operation/again", test_again);
    g_test_add_func("/operation/crash-waiting", test_crash_waiting);
    g_test_add_func("/operation/full-disk", test_full_disk);
    g_test_add_func("/operation/unknown-kind", test_unknown_kind);
    g_test_add_func("/operation/upgrade", test_upgrade);
    return g_test_run();
}
