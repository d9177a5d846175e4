/* SPDX-License-Identifier: MIT */
/* What vgpud keeps on the host (outputs.h): made, changed, taken away, tried again. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/acl.h>
#include <acl/libacl.h>

#include "host-agent/daemon/sync/outputs.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"

#define DIR  "/run/vgpu/x"
#define FILE DIR "/conf"

/**
 * World - what the test's kind wants
 * @text: of the file; NULL: none is wanted
 * @settings: of the unit; NULL: none
 * @trouble: in place of what comes before the unit
 * @log: of starts and stops
 */
typedef struct {
    const char *text;
    const char *settings;
    const char *trouble;
    gboolean unknown;
    gboolean anew;
    GString *log;
} World;

static gboolean want_all(Wants *wants, const char *subject, void *data)
{
    const World *world = data;

    g_assert_cmpstr(subject, ==, "a");
    if (world->unknown)
        return FALSE;
    if (world->anew)
        want_anew(wants);
    if (world->text) {
        want_dir(wants, DIR_OWN, DIR, 0755);
        want_file(wants, FILE, world->text);
        want_note(wants, world->text);
    }
    if (world->trouble)
        want_trouble(wants, world->trouble);
    if (world->settings)
        want_unit(wants, world->settings);
    return TRUE;
}

static void note_start(const char *subject, void *data)
{
    const World *world = data;

    (void)subject;
    g_string_append(world->log, "start ");
}

static void stop(const char *subject, void *data)
{
    const World *world = data;

    (void)subject;
    g_string_append(world->log, "stop ");
}

static const OutputKind kind = {
    .level = G_LOG_LEVEL_MESSAGE,
    .trouble = {"subject ", " has nothing"},
    .want = want_all,
    .start = note_start,
    .stop = stop,
};

static void assert_file(HostRoot *root, const char *text)
{
    g_autofree char *found = root_read(root, FILE, NULL);

    g_assert_cmpstr(found, ==, text);
}

/* A directory goes with what daemons have made in it. */
static void test_files(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Outputs) outputs = outputs_new(root);
    World world = {.text = "one"};

    outputs_update(outputs, &kind, &world, "a");
    assert_file(root, "one");
    world.text = "two";
    outputs_update(outputs, &kind, &world, "a");
    assert_file(root, "two");
    g_assert_cmpstr(outputs_note(outputs, &kind, "a"), ==, "two");
    file_tree_write(root, DIR "/below/socket", "");
    world.unknown = TRUE;
    outputs_update(outputs, &kind, &world, "a");
    assert_file(root, "two");
    world = (World){0};
    outputs_update(outputs, &kind, &world, "a");
    g_assert_false(root_has(root, DIR));
    g_assert_null(outputs_note(outputs, &kind, "a"));
    file_tree_free(root);
}

/* What an earlier vgpud has left goes, if it is not wanted. */
static void test_left(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Outputs) outputs = outputs_new(root);
    World world = {0};
    Wants *left = outputs_left(outputs, &kind, &world, "a");

    file_tree_write(root, FILE, "old");
    want_file(left, FILE, "");
    outputs_update_all(outputs, &kind);
    g_assert_false(root_has(root, FILE));
    file_tree_free(root);
}

/* What cannot be changed is still there: it is known, and goes when it is not wanted any more. */
static void test_change_fails(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Outputs) outputs = outputs_new(root);
    g_autoptr(GString) log = g_string_new(NULL);
    World world = {.text = "1", .settings = "1", .log = log};

    outputs_update(outputs, &kind, &world, "a");
    g_assert_true(outputs_started(outputs, &kind, "a"));
    world.text = NULL;
    world.trouble = "no room";
    outputs_update(outputs, &kind, &world, "a");
    g_assert_true(outputs_started(outputs, &kind, "a"));
    world = (World){.log = log};
    outputs_update(outputs, &kind, &world, "a");
    g_assert_cmpstr(log->str, ==, "start stop ");
    file_tree_free(root);
}

/* It is started once, and anew with other settings, or if it was another's. */
static void test_unit(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Outputs) outputs = outputs_new(root);
    g_autoptr(GString) log = g_string_new(NULL);
    World world = {.settings = "1", .log = log};

    outputs_update(outputs, &kind, &world, "a");
    outputs_update(outputs, &kind, &world, "a");
    g_assert_cmpstr(log->str, ==, "start ");
    g_assert_true(outputs_started(outputs, &kind, "a"));
    world.settings = "2";
    outputs_update(outputs, &kind, &world, "a");
    g_assert_cmpstr(log->str, ==, "start stop start ");
    world.anew = TRUE;
    outputs_update(outputs, &kind, &world, "a");
    g_assert_cmpstr(log->str, ==, "start stop start stop start ");
    world = (World){.log = log};
    outputs_update(outputs, &kind, &world, "a");
    g_assert_cmpstr(log->str, ==, "start stop start stop start stop ");
    file_tree_free(root);
}

static gboolean was_started_again(gconstpointer data)
{
    return g_str_has_prefix(((const GString *)data)->str, "start start ");
}

static void test_unit_fails(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Outputs) outputs = outputs_new(root);
    g_autoptr(GString) log = g_string_new(NULL);
    World world = {.settings = "1", .log = log};

    outputs_update(outputs, &kind, &world, "a");
    outputs_failed(outputs, &kind, "a", "no");
    g_assert_false(outputs_started(outputs, &kind, "a"));
    iterate_until(was_started_again, log);
    g_assert_true(outputs_started(outputs, &kind, "a"));
    file_tree_free(root);
}

static gboolean is_file(gconstpointer root)
{
    return root_is((HostRoot *)root, FILE, G_FILE_TEST_IS_REGULAR);
}

/* What is in the way is gone some time. */
static void test_file_fails(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Outputs) outputs = outputs_new(root);
    World world = {.text = "one"};

    file_tree_write(root, DIR, "a file in its place");
    outputs_update(outputs, &kind, &world, "a");
    g_assert_false(is_file(root));
    root_remove(root, DIR);
    iterate_until(is_file, root);
    file_tree_free(root);
}

/* @data: GArray of uid_t. */
static gboolean want_users(Wants *wants, const char *subject, void *data)
{
    (void)subject;
    want_dir_of(wants, DIR_OWN, DIR, "x", data);
    return TRUE;
}

static const OutputKind users_kind = {
    .level = G_LOG_LEVEL_WARNING,
    .trouble = {"subject ", " has nothing"},
    .want = want_users,
};

static void assert_acl(HostRoot *root, const char *expected)
{
    g_autofree char *path = root_path(root, DIR, NULL);
    acl_t acl = acl_get_file(path, ACL_TYPE_ACCESS);
    char *text;

    g_assert_nonnull(acl);
    text = acl_to_any_text(acl, NULL, ',', TEXT_ABBREVIATE | TEXT_NUMERIC_IDS);
    g_assert_cmpstr(text, ==, expected);
    acl_free(text);
    acl_free(acl);
}

/* In any order and named twice. */
static void test_users(void)
{
    const uid_t named[] = {1001, 1000, 1001};
    HostRoot *root = file_tree_new();
    g_autofree char *path = root_path(root, DIR, NULL);
    g_autoptr(Outputs) outputs = outputs_new(root);
    g_autoptr(GArray) uids = g_array_new(FALSE, FALSE, sizeof(uid_t));
    GStatBuf found;

    g_array_append_vals(uids, named, G_N_ELEMENTS(named));
    outputs_update(outputs, &users_kind, uids, "a");
    assert_acl(root, "u::rwx,u:1000:--x,u:1001:--x,g::---,m::--x,o::---");
    g_array_set_size(uids, 0);
    outputs_update(outputs, &users_kind, uids, "a");
    g_assert_cmpint(g_stat(path, &found), ==, 0);
    g_assert_cmpint(found.st_mode & 07777, ==, 0700);
    file_tree_free(root);
}

/**
 * Own - things of a kind's own
 * @names: that are wanted
 * @there: those that are there
 * @stuck: one that can't be taken away; NULL: all can
 */
typedef struct {
    const char *names[3];
    GString *there;
    const char *stuck;
} Own;

static gboolean want_names(Wants *wants, const char *subject, void *data)
{
    const Own *own = data;

    (void)subject;
    for (guint i = 0; own->names[i]; i++)
        want_own(wants, own->names[i]);
    return TRUE;
}

static gboolean give_name(const char *name, void *data, GError **error)
{
    const Own *own = data;

    (void)error;
    if (!strstr(own->there->str, name))
        g_string_append(own->there, name);
    return TRUE;
}

static gboolean take_name(const char *name, void *data, GError **error)
{
    const Own *own = data;

    if (g_strcmp0(own->stuck, name) == 0) {
        g_set_error_literal(error, G_FILE_ERROR, G_FILE_ERROR_IO, "stuck");
        return FALSE;
    }
    g_string_replace(own->there, name, "", 0);
    return TRUE;
}

static const OutputKind own_kind = {
    .level = G_LOG_LEVEL_MESSAGE,
    .trouble = {"subject ", " has too much"},
    .want = want_names,
    .give = give_name,
    .take = take_name,
};

static gboolean is_replaced(gconstpointer data)
{
    return g_str_equal(((const Own *)data)->there->str, "c");
}

/* What can't be taken away is known until it can. */
static void test_own(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(Outputs) outputs = outputs_new(root);
    g_autoptr(GString) there = g_string_new(NULL);
    Own own = {.names = {"a", "b"}, .there = there};

    outputs_update(outputs, &own_kind, &own, "x");
    g_assert_cmpstr(there->str, ==, "ab");
    own.names[0] = "c";
    own.names[1] = NULL;
    own.stuck = "a";
    outputs_update(outputs, &own_kind, &own, "x");
    g_assert_cmpstr(there->str, ==, "a");
    g_assert_true(outputs_has_own(outputs, &own_kind, "x", "a"));
    own.stuck = NULL;
    iterate_until(is_replaced, &own);
    g_assert_false(outputs_has_own(outputs, &own_kind, "x", "a"));
    file_tree_free(root);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/outputs/files", test_files);
    g_test_add_func("/outputs/left", test_left);
    g_test_add_func("/outputs/change-fails", test_change_fails);
    g_test_add_func("/outputs/unit", test_unit);
    g_test_add_func("/outputs/unit-fails", test_unit_fails);
    g_test_add_func("/outputs/file-fails", test_file_fails);
    g_test_add_func("/outputs/users", test_users);
    g_test_add_func("/outputs/own", test_own);
    return g_test_run();
}
