/* SPDX-License-Identifier: MIT */
/*
 * Files of a container's image before the container's root is the root of anything. The image is
 * not trusted: its links are followed inside of its root only (openat2(2), RESOLVE_IN_ROOT), never
 * through /proc, and what was found is used by its descriptor, so that nothing can be exchanged.
 */
#ifndef CONTAINER_HOOKS_IN_ROOT_H
#define CONTAINER_HOOKS_IN_ROOT_H

#include <glib.h>
#include <sys/stat.h>

/* The container's root; -1, with G_FILE_ERROR. */
int in_root_open(const char *path, GError **error);

/*
 * A descriptor (O_PATH) of the file or directory at @path in @root; -1: there is none (@error is
 * not set), or it cannot be reached.
 */
int in_root_find(int root, const char *path, struct stat *found, GError **error);

/* The same for a directory on the root's own mount: others are volumes, which are the host's. */
int in_root_find_folder(int root, const char *path, GError **error);

/* The text of a regular file, NULL if there is none or it is larger than @most bytes. */
GBytes *in_root_read(int root, const char *path, gsize most);

/*
 * Names in the directory at @path, @most at most: texts without "." and "..". NULL: it is none, or
 * cannot be read.
 */
GPtrArray *in_root_list(int root, const char *path, guint most);

/* Puts the file @source in place of the file @target; both are descriptors. Read-only. */
gboolean in_root_cover(int source, int target, const char *path, GError **error);

/*
 * Makes a link @name to @target in the directory @dir. One that leads nowhere is replaced; whatever
 * else has that name stays. A directory that is mounted read-only is written to nevertheless, if
 * its file system can be.
 */
gboolean in_root_link(int dir, const char *name, const char *target, GError **error);

/*
 * A descriptor (O_PATH) of a file or folder at @path to mount on, which is made if it is not there,
 * with the folders above it; on a volume, too, as runtimes do. -1: it cannot be made.
 */
int in_root_make_place(int root, const char *path, gboolean is_folder, GError **error);

/* Makes a directory @name in the directory @dir, unless there is something of that name. */
gboolean in_root_make_folder(int dir, const char *name, GError **error);

/*
 * Puts a file of those bytes, with mode 0644, in place of whatever is called @name in the folder at
 * @path. All or nothing. A folder on a volume is not written to, which is an error; one that is
 * mounted read-only is, as by in_root_link().
 */
gboolean in_root_write(int root, const char *path, const char *name, const void *bytes, gsize size,
                       GError **error);

#endif
