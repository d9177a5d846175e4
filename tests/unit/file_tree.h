/* SPDX-License-Identifier: MIT */
/* A temporary directory that replaces /. Paths in it begin with a slash. */
#ifndef TESTS_UNIT_FILE_TREE_H
#define TESTS_UNIT_FILE_TREE_H

#include <glib.h>

/* The directory's path. */
char *file_tree_new(void);

/* Removes it with its content, and frees @root. */
void file_tree_free(char *root);

/* Writes a file, with its directories. */
void file_tree_write(const char *root, const char *path, const char *text);

void file_tree_link(const char *root, const char *path, const char *target);

#endif
