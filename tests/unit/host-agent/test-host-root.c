/* SPDX-License-Identifier: MIT */
/* The host's files, through their handle. */
#include "lib/host_root.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/file_tree.h"

static void test_path(void)
{
    g_autoptr(HostRoot) root = host_root_new("", NULL);
    g_autoptr(HostRoot) same = host_root_new("/", NULL);
    HostRoot *other = file_tree_new();
    g_autofree char *real = root_path(root, "/etc/vgpu", "gpus.conf", NULL);
    g_autofree char *relative = root_path(same, "sys", NULL);
    g_autofree char *dir = root_path(other, "", NULL);
    g_autofree char *file = root_path(other, "/etc/vgpu", NULL);
    g_autofree char *expected = g_strconcat(dir, "/etc/vgpu", NULL);

    g_assert_cmpstr(real, ==, "/etc/vgpu/gpus.conf");
    g_assert_cmpstr(relative, ==, "/sys");
    g_assert_cmpstr(file, ==, expected);
    g_assert_true(root_has(root, "/proc/self/stat"));
    file_tree_free(other);
}

/* A misspelt --root is no empty host. */
static void test_missing(void)
{
    HostRoot *tree = file_tree_new();
    g_autofree char *absent = root_path(tree, "absent", NULL);
    g_autofree char *file = root_path(tree, "file", NULL);
    g_autoptr(GError) error = NULL;

    file_tree_write(tree, "/file", "");
    g_assert_null(host_root_new(absent, &error));
    g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
    g_assert_nonnull(strstr(error->message, "/absent: No such file or directory"));
    g_clear_error(&error);
    g_assert_null(host_root_new(file, &error));
    g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_NOTDIR);
    file_tree_free(tree);
}

/* More than a page of sysfs; and no more than the limit. */
static void test_read(void)
{
    HostRoot *root = file_tree_new();
    g_autofree char *large = g_strnfill(70000, 'a');
    g_autofree char *huge = g_strnfill(ROOT_READ_MAX + 1, 'b');
    g_autofree char *found = NULL;
    g_autoptr(GError) absent = NULL;
    g_autoptr(GError) error = NULL;

    file_tree_write(root, "/proc/1/mountinfo", large);
    file_tree_write(root, "/proc/huge", huge);
    found = root_read(root, "/proc/1/mountinfo", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(found, ==, large);
    g_assert_null(root_read(root, "/proc/none", &absent));
    g_assert_error(absent, G_FILE_ERROR, G_FILE_ERROR_NOENT);
    g_assert_nonnull(strstr(absent->message, "cannot read "));
    g_assert_nonnull(strstr(absent->message, "/proc/none: No such file"));
    g_assert_null(root_read(root, "/proc/huge", &error));
    g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
    file_tree_free(root);
}

static void test_keys(void)
{
    HostRoot *root = file_tree_new();
    g_autoptr(GKeyFile) none = NULL;
    g_autoptr(GKeyFile) empty = NULL;
    g_autoptr(GKeyFile) keys = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *value = NULL;

    file_tree_write(root, "/empty", "");
    file_tree_write(root, "/keys", "[a]\nb=c\n");
    empty = root_read_keys(root, "/empty", G_KEY_FILE_NONE, NULL);
    keys = root_read_keys(root, "/keys", G_KEY_FILE_NONE, NULL);
    none = root_read_keys(root, "/none", G_KEY_FILE_NONE, &error);
    g_assert_nonnull(empty);
    g_assert_null(none);
    g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
    value = g_key_file_get_string(keys, "a", "b", NULL);
    g_assert_cmpstr(value, ==, "c");
    file_tree_free(root);
}

/* A resolved path is the host's; a link that leads out of the host has none. */
static void test_links(void)
{
    HostRoot *root = file_tree_new();
    g_autofree char *target = NULL;
    g_autofree char *inside = NULL;
    g_autofree char *outside = NULL;

    file_tree_write(root, "/sys/devices/a/vendor", "1");
    file_tree_link(root, "/sys/bus/a", "../devices/a");
    file_tree_link(root, "/sys/bus/out", "/");
    target = root_link(root, "/sys/bus/a");
    inside = root_resolve(root, "/sys/bus/a");
    outside = root_resolve(root, "/sys/bus/out");
    g_assert_cmpstr(target, ==, "../devices/a");
    g_assert_cmpstr(inside, ==, "/sys/devices/a");
    g_assert_null(outside);
    file_tree_free(root);
}

static void test_lists(void)
{
    HostRoot *root = file_tree_new();
    g_auto(GStrv) names = NULL;
    g_auto(GStrv) paths = NULL;
    g_auto(GStrv) none = NULL;
    g_autoptr(GError) error = NULL;

    file_tree_write(root, "/dir/b/x", "");
    file_tree_write(root, "/dir/a", "");
    names = root_list(root, "/dir", NULL);
    paths = root_glob(root, "/dir/*/x");
    none = sysfs_list(root, "/absent");
    g_assert_cmpstrv(names, ((const char *const[]){"a", "b", NULL}));
    g_assert_cmpstrv(paths, ((const char *const[]){"/dir/b/x", NULL}));
    g_assert_null(none[0]);
    g_assert_null(root_list(root, "/absent", &error));
    g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
    file_tree_free(root);
}

static void test_write(void)
{
    HostRoot *root = file_tree_new();
    g_autofree char *found = NULL;
    g_autoptr(GError) error = NULL;
    struct stat status;

    g_assert_true(root_write(root, "/var/lib/vgpu/file", "old", 0600, &error));
    g_assert_true(root_write(root, "/var/lib/vgpu/file", "new", 0644, &error));
    g_assert_no_error(error);
    found = root_read(root, "/var/lib/vgpu/file", &error);
    g_assert_cmpstr(found, ==, "new");
    g_assert_true(root_stat(root, "/var/lib/vgpu/file", &status));
    g_assert_cmpint(status.st_mode & 0777, ==, 0600);
    g_assert_false(root_write(root, "/var/lib/vgpu/file/below", "x", 0600, &error));
    g_assert_nonnull(error);
    root_remove(root, "/var/lib/vgpu");
    g_assert_true(root_has(root, "/var/lib/vgpu/file"));
    root_remove(root, "/var/lib/vgpu/file");
    root_rmdir(root, "/var/lib/vgpu");
    g_assert_false(root_has(root, "/var/lib/vgpu"));
    file_tree_free(root);
}

/* An attribute is never made. */
static void test_attribute(void)
{
    HostRoot *root = file_tree_new();
    g_autofree char *text = NULL;

    file_tree_write(root, "/sys/a/cap", "  100\n");
    g_assert_cmpint(sysfs_number(root, "/sys/a", "cap", -1), ==, 100);
    g_assert_cmpint(sysfs_write(root, "/sys/a", "cap", "50\n"), ==, 0);
    text = sysfs_read(root, "/sys/a", "cap");
    g_assert_cmpstr(text, ==, "50");
    g_assert_cmpint(sysfs_write(root, "/sys/a", "none", "1"), ==, ENOENT);
    g_assert_cmpint(sysfs_number(root, "/sys/a", "none", -1), ==, -1);
    file_tree_free(root);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host-root/path", test_path);
    g_test_add_func("/host-root/missing", test_missing);
    g_test_add_func("/host-root/read", test_read);
    g_test_add_func("/host-root/keys", test_keys);
    g_test_add_func("/host-root/links", test_links);
    g_test_add_func("/host-root/lists", test_lists);
    g_test_add_func("/host-root/write", test_write);
    g_test_add_func("/host-root/attribute", test_attribute);
    return g_test_run();
}
