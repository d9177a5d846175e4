/* SPDX-License-Identifier: MIT */
/*
 * The host's files: below / in production, below a directory that replaces it in tests. Each
 * program makes one handle in its main(). All files of the host are reached through it, by their
 * paths on that host ("/etc/vgpu/gpus.conf"), which may lack the first slash.
 */
#ifndef LIB_HOST_ROOT_H
#define LIB_HOST_ROOT_H

#include <glib.h>
#include <sys/stat.h>

/* More than any file that is read here can have: a larger one is not the expected file. */
#define ROOT_READ_MAX (16u << 20)

typedef struct HostRoot HostRoot;

/* @dir: "" or NULL: /. G_FILE_ERROR if there is no such directory. */
HostRoot *host_root_new(const char *dir, GError **error);

/* From any thread. */
HostRoot *host_root_ref(HostRoot *root);
void host_root_unref(HostRoot *root);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HostRoot, host_root_unref)

/*
 * The path on this machine, from its components up to NULL; "" alone: of the root. Only for another
 * program or library, and for messages. To be freed.
 */
char *root_path(HostRoot *root, const char *first, ...) G_GNUC_NULL_TERMINATED;

/*
 * The whole file, including those in /proc, which have no size; to be freed. G_FILE_ERROR, with the
 * path; G_FILE_ERROR_NOSPC: it has more than ROOT_READ_MAX bytes.
 */
char *root_read(HostRoot *root, const char *path, GError **error);
/* The same for a file with NULs. There is one more behind its @length bytes. */
char *root_read_bytes(HostRoot *root, const char *path, gsize *length, GError **error);

/* A file in GKeyFile's form; NULL with G_FILE_ERROR or G_KEY_FILE_ERROR. */
GKeyFile *root_read_keys(HostRoot *root, const char *path, GKeyFileFlags flags, GError **error);

gboolean root_has(HostRoot *root, const char *path);
/* Like g_file_test(). */
gboolean root_is(HostRoot *root, const char *path, GFileTest test);
/* Follows links. FALSE with errno. */
gboolean root_stat(HostRoot *root, const char *path, struct stat *status);

/*
 * The type and the number of a device's node that @path is, or is open as: S_IFCHR or S_IFBLK. 0:
 * it is none. Asks no server of a network's file system, which may hang.
 */
mode_t root_device(HostRoot *root, const char *path, dev_t *number);

/* The target of a link, as it is written there; NULL: it is none. To be freed. */
char *root_link(HostRoot *root, const char *path);
/* The path without links; NULL: there is no such file on the host. To be freed. */
char *root_resolve(HostRoot *root, const char *path);

/* The names in a directory, sorted. NULL with G_FILE_ERROR. */
GStrv root_list(HostRoot *root, const char *path, GError **error);
/* @most of them, whichever these are. */
GStrv root_list_some(HostRoot *root, const char *path, guint most, GError **error);

/* The paths on the host that match a pattern of glob(7), in no order; empty: none. */
GStrv root_glob(HostRoot *root, const char *pattern);

/* open(2), closed on exec; -1 with errno. @mode: of a file that it makes. */
int root_open(HostRoot *root, const char *path, int flags, mode_t mode);

/* Makes a directory and those above it. G_FILE_ERROR, with the path. */
gboolean root_mkdir(HostRoot *root, const char *path, int mode, GError **error);

/*
 * Replaces the file by @text atomically and durably: a crash leaves the old one or the new one. Its
 * directory is made, for root alone, if it does not exist. @mode: for a file that did not exist.
 * G_FILE_ERROR, with the path.
 */
gboolean root_write(HostRoot *root, const char *path, const char *text, int mode, GError **error);

/* Gives @text to the kernel in one write() to a file that exists. 0, or an errno. */
int root_write_once(HostRoot *root, const char *path, const char *text);

/* Removes a file, if it exists, and a directory, if it is empty. */
void root_remove(HostRoot *root, const char *path);
void root_rmdir(HostRoot *root, const char *path);

/*
 * Attributes of sysfs, and other small files of the kernel, by their directory on the host. They
 * come and go with their devices: a missing one is NULL, 0 or "unknown", not an error.
 */

/* The attribute's text without white space around it, to be freed; NULL with errno. */
char *sysfs_read(HostRoot *root, const char *dir, const char *attribute);

/* The number at the beginning of an attribute, in any base of C; @missing if there is none. */
gint64 sysfs_number(HostRoot *root, const char *dir, const char *attribute, gint64 missing);

/* Writes @text in one write(). 0, or an errno. */
int sysfs_write(HostRoot *root, const char *dir, const char *attribute, const char *text);

/* The last component of a link's target, as a driver's name; NULL: none. */
char *sysfs_link_name(HostRoot *root, const char *dir, const char *link);

/* Names of the entries of a directory, sorted; empty if there is no such directory. */
GStrv sysfs_list(HostRoot *root, const char *dir);
/* At most @most of them, of a directory that somebody else fills. */
GStrv sysfs_list_some(HostRoot *root, const char *dir, guint most);

/*
 * The name that a process of this directory of /proc has given itself, in UTF-8, with "?" for a
 * process that has ended. To be freed.
 */
char *process_name(HostRoot *root, const char *dir);

#endif
