/* SPDX-License-Identifier: MIT */
/*
 * The host's files below @root: "" in production, else a directory that replaces /. All paths of
 * the host are built here.
 */
#ifndef LIB_ROOT_H
#define LIB_ROOT_H

#include <glib.h>

/* More than any file that is read here can have: a larger one is not the expected file. */
#define ROOT_READ_MAX (16u << 20)

/*
 * A path of the host from its components, up to NULL; to be freed. A component may be an absolute
 * path.
 */
char *root_path(const char *root, const char *first, ...) G_GNUC_NULL_TERMINATED;

/*
 * The whole file, including those in /proc, which have no size; to be freed. G_FILE_ERROR, with the
 * path; G_FILE_ERROR_NOSPC: it has more than ROOT_READ_MAX bytes.
 */
char *root_read(const char *root, const char *path, GError **error);

/*
 * Replaces the file by @text atomically and durably: a crash leaves the old one or the new one. Its
 * folder is made, for root alone, if it does not exist. @mode: for a file that
 * did not exist. G_FILE_ERROR, with the path.
 */
gboolean root_write(const char *root, const char *path, const char *text, int mode, GError **error);

#endif
