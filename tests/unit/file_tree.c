/* SPDX-License-Identifier: MIT */
#include "tests/unit/file_tree.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

HostRoot *file_tree_new(void)
{
    g_autofree char *dir = g_dir_make_tmp("tree-XXXXXX", NULL);
    HostRoot *root = host_root_new(dir, NULL);

    g_assert_nonnull(root);
    return root;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status;
    (void)type;
    (void)at;
    return remove(path);
}

void file_tree_free(HostRoot *root)
{
    g_autofree char *dir = root_path(root, "", NULL);

    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    host_root_unref(root);
}

/* The full path, with its directory made. */
static char *prepare(HostRoot *root, const char *path)
{
    char *full = root_path(root, path, NULL);
    g_autofree char *dir = g_path_get_dirname(full);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    return full;
}

void file_tree_write(HostRoot *root, const char *path, const char *text)
{
    g_autofree char *full = prepare(root, path);

    g_assert_true(g_file_set_contents(full, text, -1, NULL));
}

void file_tree_link(HostRoot *root, const char *path, const char *target)
{
    g_autofree char *full = prepare(root, path);

    g_assert_cmpint(symlink(target, full), ==, 0);
}
