/* SPDX-License-Identifier: MIT */
/* A temporary directory that replaces /. Paths in it begin with a slash. */
#ifndef TESTS_UNIT_FILE_TREE_H
#define TESTS_UNIT_FILE_TREE_H

#include <glib.h>

#include "lib/host_root.h"

HostRoot *file_tree_new(void);

/* Removes the directory with its content, and the handle. */
void file_tree_free(HostRoot *root);

/* Writes a file, with its directories. */
void file_tree_write(HostRoot *root, const char *path, const char *text);

void file_tree_link(HostRoot *root, const char *path, const char *target);

#endif
