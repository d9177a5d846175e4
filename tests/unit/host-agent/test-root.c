/* SPDX-License-Identifier: MIT */
/* Paths and files of the host below a root. */
#include "lib/root.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/file_tree.h"

static void test_path(void)
{
    g_autofree char *real = root_path("", "/etc/vgpu", "gpus.conf", NULL);
    g_autofree char *relative = root_path("", "sys", NULL);
    g_autofree char *other = root_path("/tmp/tree", "/etc/vgpu", NULL);

    g_assert_cmpstr(real, ==, "/etc/vgpu/gpus.conf");
    g_assert_cmpstr(relative, ==, "/sys");
    g_assert_cmpstr(other, ==, "/tmp/tree/etc/vgpu");
}

/* More than a page of sysfs; and no more than the limit. */
static void test_read(void)
{
    char *root = file_tree_new();
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
    g_assert_nonnull(strstr(absent->message, "/proc/none can't be read: "));
    g_assert_null(root_read(root, "/proc/huge", &error));
    g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
    file_tree_free(root);
}

static void test_write(void)
{
    char *root = file_tree_new();
    g_autofree char *path = root_path(root, "/var/lib/vgpu/file", NULL);
    g_autofree char *found = NULL;
    g_autoptr(GError) error = NULL;
    struct stat status;

    g_assert_true(root_write(root, "/var/lib/vgpu/file", "old", 0600, &error));
    g_assert_true(root_write(root, "/var/lib/vgpu/file", "new", 0644, &error));
    g_assert_no_error(error);
    found = root_read(root, "/var/lib/vgpu/file", &error);
    g_assert_cmpstr(found, ==, "new");
    g_assert_cmpint(stat(path, &status), ==, 0);
    g_assert_cmpint(status.st_mode & 0777, ==, 0600);
    g_assert_false(root_write(root, "/var/lib/vgpu/file/below", "x", 0600, &error));
    g_assert_nonnull(error);
    file_tree_free(root);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/root/path", test_path);
    g_test_add_func("/root/read", test_read);
    g_test_add_func("/root/write", test_write);
    return g_test_run();
}
