/* SPDX-License-Identifier: MIT */
#include "tests/unit/file_tree.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

char *file_tree_new(void)
{
    char *root = g_dir_make_tmp("tree-XXXXXX", NULL);

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

void file_tree_free(char *root)
{
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    g_free(root);
}

/* The full path, with its directory made. */
static char *prepare(const char *root, const char *path)
{
    char *full = g_strconcat(root, path, NULL);
    g_autofree char *dir = g_path_get_dirname(full);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    return full;
}

void file_tree_write(const char *root, const char *path, const char *text)
{
    g_autofree char *full = prepare(root, path);

    g_assert_true(g_file_set_contents(full, text, -1, NULL));
}

void file_tree_link(const char *root, const char *path, const char *target)
{
    g_autofree char *full = prepare(root, path);

    g_assert_cmpint(symlink(target, full), ==, 0);
}
