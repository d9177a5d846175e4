/* SPDX-License-Identifier: MIT */
#include "lib/host_root.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <glib/gstdio.h>

/* Most files are smaller than this. Larger pieces are mapped and unmapped each time. */
#define SMALL_PIECE 4096u
#define PIECE       65536u

/**
 * struct HostRoot
 * @dir: without links and without a slash at its end; "" for /
 */
struct HostRoot {
    char *dir;
};

static gboolean fail_on_path(const char *what, const char *path, int code, GError **error)
{
    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code), "cannot %s %s: %s", what, path,
                g_strerror(code));
    return FALSE;
}

HostRoot *host_root_new(const char *dir, GError **error)
{
    g_autofree char *real = dir && *dir ? realpath(dir, NULL) : g_strdup("/");
    HostRoot *root;

    if (!real || !g_file_test(real, G_FILE_TEST_IS_DIR)) {
        fail_on_path("use the root directory", dir, real ? ENOTDIR : errno, error);
        return NULL;
    }
    root = g_atomic_rc_box_new0(HostRoot);
    root->dir = g_strdup(g_str_equal(real, "/") ? "" : real);
    return root;
}

HostRoot *host_root_ref(HostRoot *root)
{
    return g_atomic_rc_box_acquire(root);
}

static void root_clear(void *root)
{
    g_free(((HostRoot *)root)->dir);
}

void host_root_unref(HostRoot *root)
{
    g_atomic_rc_box_release_full(root, root_clear);
}

char *root_path(HostRoot *root, const char *first, ...)
{
    g_autoptr(GPtrArray) parts = g_ptr_array_new();
    va_list rest;

    g_ptr_array_add(parts, (char *)(*root->dir ? root->dir : "/"));
    va_start(rest, first);
    for (const char *part = first; part; part = va_arg(rest, const char *))
        g_ptr_array_add(parts, (char *)part);
    va_end(rest);
    g_ptr_array_add(parts, NULL);
    return g_build_filenamev((char **)parts->pdata);
}

/* The same for one path, which in production is this machine's already. @made: to be freed. */
static const char *full_path(const HostRoot *root, const char *path, char **made)
{
    if (!*root->dir && path[0] == '/')
        return path;
    *made = g_strconcat(root->dir, path[0] == '/' ? "" : "/", path, NULL);
    return *made;
}

int root_open(HostRoot *root, const char *path, int flags, mode_t mode)
{
    g_autofree char *made = NULL;

    return open(full_path(root, path, &made), flags | O_CLOEXEC, mode);
}

/* -1 with errno. */
static gssize read_some(int fd, char *text, gsize size)
{
    gssize got;

    do
        got = read(fd, text, size);
    while (got < 0 && errno == EINTR);
    return got;
}

/* What one read() returns, at most @size bytes, without a NUL; -1 with errno. */
static gssize root_read_once(HostRoot *root, const char *path, char *text, gsize size)
{
    int fd = root_open(root, path, O_RDONLY, 0);
    gssize got = fd < 0 ? -1 : read_some(fd, text, size);
    int code = errno;

    if (fd >= 0)
        close(fd);
    errno = code;
    return got;
}

/* -1 with errno. */
static gssize read_piece(int fd, GByteArray *text)
{
    guint length = text->len;
    guint piece = length < SMALL_PIECE ? SMALL_PIECE : PIECE;
    gssize got;

    g_byte_array_set_size(text, length + piece);
    got = read_some(fd, (char *)text->data + length, piece);
    g_byte_array_set_size(text, length + (guint)MAX(got, 0));
    if (got > 0 && text->len > ROOT_READ_MAX) {
        errno = ENOSPC;
        return -1;
    }
    return got;
}

char *root_read_bytes(HostRoot *root, const char *path, gsize *length, GError **error)
{
    g_autofree char *made = NULL;
    g_autoptr(GByteArray) text = g_byte_array_new();
    int fd = root_open(root, path, O_RDONLY, 0);
    gssize got = fd;
    int code;

    while (got >= 0 && (got = read_piece(fd, text)) > 0)
        ;
    code = errno;
    if (fd >= 0)
        close(fd);
    if (got < 0) {
        fail_on_path("read", full_path(root, path, &made), code, error);
        return NULL;
    }
    *length = text->len;
    g_byte_array_append(text, (const guint8 *)"", 1);
    return (char *)g_byte_array_free(g_steal_pointer(&text), FALSE);
}

char *root_read(HostRoot *root, const char *path, GError **error)
{
    gsize length;

    return root_read_bytes(root, path, &length, error);
}

GKeyFile *root_read_keys(HostRoot *root, const char *path, GKeyFileFlags flags, GError **error)
{
    g_autoptr(GKeyFile) keys = g_key_file_new();
    gsize length;
    g_autofree char *text = root_read_bytes(root, path, &length, error);

    if (!text || (length && !g_key_file_load_from_data(keys, text, length, flags, error)))
        return NULL;
    return g_steal_pointer(&keys);
}

gboolean root_is(HostRoot *root, const char *path, GFileTest test)
{
    g_autofree char *made = NULL;

    return g_file_test(full_path(root, path, &made), test);
}

gboolean root_stat(HostRoot *root, const char *path, struct stat *status)
{
    g_autofree char *made = NULL;

    return stat(full_path(root, path, &made), status) == 0;
}

/* Not by access(), which is refused for a device that the cgroup of a service may not open. */
gboolean root_has(HostRoot *root, const char *path)
{
    struct stat status;

    return root_stat(root, path, &status);
}

mode_t root_device(HostRoot *root, const char *path, dev_t *number)
{
    g_autofree char *made = NULL;
    struct statx status;

    if (statx(AT_FDCWD, full_path(root, path, &made), AT_STATX_DONT_SYNC, STATX_TYPE, &status) <
            0 ||
        (!S_ISCHR(status.stx_mode) && !S_ISBLK(status.stx_mode)))
        return 0;
    *number = makedev(status.stx_rdev_major, status.stx_rdev_minor);
    return status.stx_mode & S_IFMT;
}

char *root_link(HostRoot *root, const char *path)
{
    g_autofree char *made = NULL;

    return g_file_read_link(full_path(root, path, &made), NULL);
}

char *root_resolve(HostRoot *root, const char *path)
{
    g_autofree char *made = NULL;
    g_autofree char *real = realpath(full_path(root, path, &made), NULL);
    gsize length = strlen(root->dir);

    if (!real || !g_str_has_prefix(real, root->dir) || (length && real[length] != '/'))
        return NULL;
    return g_strdup(real + length);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

GStrv root_list_some(HostRoot *root, const char *path, guint most, GError **error)
{
    g_autofree char *made = NULL;
    g_autoptr(GDir) dir = g_dir_open(full_path(root, path, &made), 0, error);
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    const char *name;
    GStrv list;

    if (!dir)
        return NULL;
    while (most-- && (name = g_dir_read_name(dir)))
        g_strv_builder_add(names, name);
    list = g_strv_builder_end(names);
    qsort(list, g_strv_length(list), sizeof(*list), compare_names);
    return list;
}

GStrv root_list(HostRoot *root, const char *path, GError **error)
{
    return root_list_some(root, path, G_MAXUINT, error);
}

GStrv root_glob(HostRoot *root, const char *pattern)
{
    g_autofree char *made = NULL;
    g_autoptr(GStrvBuilder) paths = g_strv_builder_new();
    gsize length = strlen(root->dir);
    glob_t found;

    if (glob(full_path(root, pattern, &made), GLOB_NOSORT, NULL, &found) == 0) {
        for (gsize i = 0; i < found.gl_pathc; i++)
            g_strv_builder_add(paths, found.gl_pathv[i] + length);
        globfree(&found);
    }
    return g_strv_builder_end(paths);
}

gboolean root_mkdir(HostRoot *root, const char *path, int mode, GError **error)
{
    g_autofree char *made = NULL;
    const char *dir = full_path(root, path, &made);

    return g_mkdir_with_parents(dir, mode) == 0 || fail_on_path("make", dir, errno, error);
}

gboolean root_write(HostRoot *root, const char *path, const char *text, int mode, GError **error)
{
    g_autofree char *file = root_path(root, path, NULL);
    g_autofree char *dir = g_path_get_dirname(file);

    g_mkdir_with_parents(dir, 0700);
    return g_file_set_contents_full(
        file, text, -1, G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, mode, error);
}

int root_write_once(HostRoot *root, const char *path, const char *text)
{
    int fd = root_open(root, path, O_WRONLY | O_TRUNC, 0);
    gsize length = strlen(text);
    gssize written = fd < 0 ? -1 : write(fd, text, length);
    int code = written < 0 ? errno : written == (gssize)length ? 0 : EIO;

    if (fd >= 0)
        close(fd);
    return code;
}

void root_remove(HostRoot *root, const char *path)
{
    g_autofree char *made = NULL;

    g_unlink(full_path(root, path, &made));
}

void root_rmdir(HostRoot *root, const char *path)
{
    g_autofree char *made = NULL;

    g_rmdir(full_path(root, path, &made));
}

/* Attributes of sysfs, and other small files of the kernel, by their directory on the host. */

#define ATTRIBUTE_MAX 4097

/* An attribute is one page at most, and one read returns it. */
char *sysfs_read(HostRoot *root, const char *dir, const char *attribute)
{
    char text[ATTRIBUTE_MAX];
    gsize length = strlen(dir);
    gssize got;

    /* The buffer has the path first: with a thousand vGPUs, allocations count. */
    if (length + strlen(attribute) + 2 > sizeof(text)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    memcpy(text, dir, length);
    text[length] = '/';
    strcpy(text + length + 1, attribute);
    got = root_read_once(root, text, text, sizeof(text) - 1);
    if (got < 0)
        return NULL;
    text[got] = '\0';
    return g_strdup(g_strstrip(text));
}

gint64 sysfs_number(HostRoot *root, const char *dir, const char *attribute, gint64 missing)
{
    g_autofree char *text = sysfs_read(root, dir, attribute);
    char *end;
    gint64 value;

    if (!text)
        return missing;
    value = g_ascii_strtoll(text, &end, 0);
    return end == text ? missing : value;
}

int sysfs_write(HostRoot *root, const char *dir, const char *attribute, const char *text)
{
    g_autofree char *path = g_build_filename(dir, attribute, NULL);

    return root_write_once(root, path, text);
}

char *sysfs_link_name(HostRoot *root, const char *dir, const char *link)
{
    g_autofree char *path = g_build_filename(dir, link, NULL);
    g_autofree char *target = root_link(root, path);

    return target ? g_path_get_basename(target) : NULL;
}

GStrv sysfs_list(HostRoot *root, const char *dir)
{
    return sysfs_list_some(root, dir, G_MAXUINT);
}

GStrv sysfs_list_some(HostRoot *root, const char *dir, guint most)
{
    GStrv names = root_list_some(root, dir, most, NULL);

    return names ? names : g_new0(char *, 1);
}

char *process_name(HostRoot *root, const char *dir)
{
    g_autofree char *name = sysfs_read(root, dir, "comm");

    return name ? g_utf8_make_valid(name, -1) : g_strdup("?");
}
