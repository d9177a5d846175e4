/* SPDX-License-Identifier: MIT */
/*
 * The host's files, below @root: "" in production, else a directory that stands for /. All paths
 * of the host are put together here.
 */
#ifndef LIB_ROOT_H
#define LIB_ROOT_H

#include <glib.h>

/* More than any file that is read here has: what is larger is not what it should be. */
#define ROOT_READ_MAX (16u << 20)

/* A path of the host's, of its components, up to NULL; to be freed. An absolute path is a component, too. */
char *root_path(const char *root, const char *first, ...) G_GNUC_NULL_TERMINATED;

/*
 * The whole file, also of /proc, whose files tell no size; to be freed. G_FILE_ERROR, with the path;
 * G_FILE_ERROR_NOSPC: it has more than ROOT_READ_MAX bytes.
 */
char *root_read(const char *root, const char *path, GError **error);

/*
 * Replaces the file by @text, at once and for good: a crash leaves the old one or the new one. Its folder is made, for
 * root alone, if it is not there. @mode: of a file that was not there. G_FILE_ERROR, with the path.
 */
gboolean root_write(const char *root, const char *path, const char *text, int mode, GError **error);

#endif
