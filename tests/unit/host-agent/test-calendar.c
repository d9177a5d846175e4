/* SPDX-License-Identifier: MIT */
/* What systemd-analyze says of calendar expressions, by a stand-in for it in bin/. */
#include <string.h>

#include "host-agent/daemon/modes/schedule.h"
#include "lib/systemd.h"
#include "tests/unit/file_tree.h"

#define NOON 1764072000 /* 2025-11-25 12:00:00 UTC */
#define HOUR 3600

typedef struct {
    HostRoot *root;
} Tree;

static void open_tree(Tree *tree, gconstpointer data)
{
    g_autofree char *dir = NULL;

    (void)data;
    tree->root = file_tree_new();
    dir = root_path(tree->root, "", NULL);
    g_setenv("FAKE_ROOT", dir, TRUE);
}

static void close_tree(Tree *tree, gconstpointer data)
{
    (void)data;
    file_tree_free(tree->root);
}

/* The number of questions that were asked. */
static guint asked(const Tree *tree)
{
    g_autofree char *text = root_read(tree->root, "/calendar-asked", NULL);
    guint lines = 0;

    g_assert_nonnull(text);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    return lines;
}

static void assert_time(const GPtrArray *times, guint at, const char *normalized, gint64 next)
{
    const CalendarTime *time = g_ptr_array_index(times, at);

    g_assert_cmpstr(time->normalized, ==, normalized);
    g_assert_cmpint(time->next, ==, next);
}

/**
 * Answer
 * @times: of CalendarTime
 */
typedef struct {
    GPtrArray *times;
    GError *error;
    gboolean given;
} Answer;

static void take(const GPtrArray *times, const GError *error, void *data)
{
    Answer *answer = data;

    answer->times = times ? g_ptr_array_ref((GPtrArray *)times) : NULL;
    answer->error = error ? g_error_copy(error) : NULL;
    answer->given = TRUE;
}

/* @end: NULL: it is not cancelled. */
static Answer ask(const char *const *expressions, GCancellable *end)
{
    Answer answer = {.given = FALSE};

    calendar_ask(expressions, NOON, end, take, &answer);
    g_cancellable_cancel(end);
    while (!answer.given)
        g_main_context_iteration(NULL, TRUE);
    return answer;
}

/* In UTC, whatever the host's time zone is; 0 if it never elapses again. */
static void test_answers(Tree *tree, gconstpointer data)
{
    const char *expressions[] = {"daily (again)", "once", "--never", NULL};
    Answer answer;

    (void)data;
    file_tree_write(tree->root, "/calendar",
                    "daily (again)\t2025-11-24 12:00:00,2025-11-25 12:00:00,2025-11-25 14:00:00\n"
                    "once\t2025-11-25 13:00:00\n--never\t2025-11-24 12:00:00\n");
    answer = ask(expressions, NULL);
    g_assert_no_error(answer.error);
    g_assert_cmpuint(answer.times->len, ==, 3);
    assert_time(answer.times, 0, "daily", NOON + 2 * HOUR);
    assert_time(answer.times, 1, "once", NOON + HOUR);
    assert_time(answer.times, 2, "--never", 0);
    g_ptr_array_unref(answer.times);
}

static void assert_fails(const char *expression, int code, const char *words)
{
    const char *expressions[] = {"daily", expression, NULL};
    g_autoptr(GError) error = NULL;
    Answer answer = ask(expressions, NULL);

    g_assert_null(answer.times);
    g_assert_error(answer.error, G_IO_ERROR, code);
    g_assert_nonnull(strstr(answer.error->message, words));
    g_assert_null(calendar_ask_now(expressions, &error));
    g_assert_error(error, G_IO_ERROR, code);
    g_error_free(answer.error);
}

static void test_errors(Tree *tree, gconstpointer data)
{
    g_autofree char *path = g_strdup(g_getenv("PATH"));

    (void)data;
    assert_fails("invalid", G_IO_ERROR_INVALID_ARGUMENT,
                 "calendar specification 'invalid': Invalid argument");
    file_tree_write(tree->root, "/calendar-fails", "the disk is gone");
    assert_fails("weekly", G_IO_ERROR_FAILED, "the disk is gone");
    g_setenv("PATH", "/nonexistent", TRUE);
    assert_fails("weekly", G_IO_ERROR_NOT_FOUND, "systemd-analyze");
    g_setenv("PATH", path, TRUE);
}

/* A question about something that hangs ends when it is cancelled. */
static void test_cancelled(Tree *tree, gconstpointer data)
{
    const char *expressions[] = {"hanging", NULL};
    g_autoptr(GCancellable) end = g_cancellable_new();
    Answer answer = ask(expressions, end);

    (void)tree;
    (void)data;
    g_assert_error(answer.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_error_free(answer.error);
}

/* The process that was asked has answered, and has ended. */
static gboolean has_ended(const Tree *tree)
{
    g_autofree char *pid = root_read(tree->root, "/calendar-pid", NULL);
    g_autofree char *process = pid && *pid ? g_strconcat("/proc/", pid, NULL) : NULL;

    return process && !g_file_test(process, G_FILE_TEST_EXISTS);
}

/* An answer that is there already, but was not delivered, is none: who cancels may be gone. */
static void test_cancelled_late(Tree *tree, gconstpointer data)
{
    const char *expressions[] = {"daily", NULL};
    g_autoptr(GCancellable) end = g_cancellable_new();
    Answer answer = {.given = FALSE};

    (void)data;
    calendar_ask(expressions, NOON, end, take, &answer);
    while (!has_ended(tree))
        g_usleep(1000);
    g_cancellable_cancel(end);
    while (!answer.given)
        g_main_context_iteration(NULL, TRUE);
    g_assert_error(answer.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_assert_null(answer.times);
    g_error_free(answer.error);
}

typedef struct {
    LastDue last;
    gboolean ended;
    gboolean failed;
} Found;

static void found(const LastDue *last, const GError *error, void *data)
{
    Found *result = data;

    result->last = *last;
    result->failed = error != NULL;
    result->ended = TRUE;
}

/* What elapsed last in a week. */
static Found find(const char *const *expressions)
{
    Found result = {.ended = FALSE};

    last_due_find(expressions, NOON - 7 * 24 * HOUR, NOON, NULL, found, &result);
    while (!result.ended)
        g_main_context_iteration(NULL, TRUE);
    return result;
}

/* The later of two, the last of several at one time; not what elapses afterwards. */
static void test_last(Tree *tree, gconstpointer data)
{
    const char *expressions[] = {"day", "night", "never", "yearly", NULL};
    const char *const *others = expressions + 2;
    Found result;

    (void)data;
    file_tree_write(tree->root, "/calendar",
                    "day\t2025-11-22 08:00:00,2025-11-25 08:00:00,2025-11-26 08:00:00\n"
                    "night\t2025-11-22 20:00:00,2025-11-24 20:00:00,2025-11-25 12:00:01\n"
                    "never\t\nyearly\t2024-11-25 12:00:00\n");
    result = find(expressions);
    g_assert_cmpint(result.last.which, ==, 0);
    g_assert_cmpint(result.last.when, ==, NOON - 4 * HOUR);
    result = find(others);
    g_assert_false(result.failed);
    g_assert_cmpint(result.last.which, ==, -1);
    file_tree_write(tree->root, "/calendar",
                    "day\t2025-11-25 12:00:00\nnight\t2025-11-25 12:00:00\n");
    result = find(expressions);
    g_assert_cmpint(result.last.which, ==, 1);
    g_assert_cmpint(result.last.when, ==, NOON);
    file_tree_write(tree->root, "/calendar-fails", "no");
    g_assert_true(find(expressions).failed);
}

/* Few questions, however often it elapsed. */
static void test_often(Tree *tree, gconstpointer data)
{
    const char *expressions[] = {"hourly", NULL};
    g_autoptr(GString) text = g_string_new("hourly\t");

    (void)data;
    for (gint64 when = NOON - 8 * 24 * HOUR - 60; when < NOON + 24 * HOUR; when += HOUR) {
        g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(when);
        g_autofree char *clock = g_date_time_format(time, "%F %T,");

        g_string_append(text, clock);
    }
    g_string_append(text, "\n");
    file_tree_write(tree->root, "/calendar", text->str);
    g_assert_cmpint(find(expressions).last.when, ==, NOON - 60);
    g_assert_cmpuint(asked(tree), <=, 30);
}

static void test_escape(void)
{
    static const char *const cases[][2] = {
        {"night", "night"},   {"Mon-Fri", "Mon\\x2dFri"},       {"a b/c", "a\\x20b-c"},
        {".x.y", "\\x2ex.y"}, {"\xc3\xa4%", "\\xc3\\xa4\\x25"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *name = unit_name_escape(cases[i][0]);

        g_assert_cmpstr(name, ==, cases[i][1]);
    }
}

int main(int argc, char **argv)
{
    g_autofree char *path = g_strconcat(HOSTS "/../bin:", g_getenv("PATH"), NULL);

    g_test_init(&argc, &argv, NULL);
    g_setenv("PATH", path, TRUE);
    g_test_add("/calendar/answers", Tree, NULL, open_tree, test_answers, close_tree);
    g_test_add("/calendar/errors", Tree, NULL, open_tree, test_errors, close_tree);
    g_test_add("/calendar/cancelled", Tree, NULL, open_tree, test_cancelled, close_tree);
    g_test_add("/calendar/cancelled-late", Tree, NULL, open_tree, test_cancelled_late, close_tree);
    g_test_add("/calendar/last", Tree, NULL, open_tree, test_last, close_tree);
    g_test_add("/calendar/often", Tree, NULL, open_tree, test_often, close_tree);
    g_test_add_func("/calendar/escape", test_escape);
    return g_test_run();
}
