/* SPDX-License-Identifier: MIT */
#include "container-hooks/in_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEW_LINK ".vgpu-new-link"
#define NEW_FILE ".vgpu-new-file"

static int open_in_root(int root, const char *path, guint64 flags, guint64 resolve)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve,
    };

    return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static gboolean path_failed(const char *what, const char *path, GError **error)
{
    int code = errno;

    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code), "%s %s: %s", what, path,
                g_strerror(code));
    return FALSE;
}

int in_root_open(const char *path, GError **error)
{
    int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root < 0)
        path_failed("cannot open the container's root", path, error);
    return root;
}

static int find_or_say(int root, const char *path, guint64 flags, guint64 resolve, GError **error)
{
    int fd = open_in_root(root, path, flags, resolve);

    if (fd < 0 && errno == ELOOP)
        path_failed("the image's links go in circles, or through /proc:", path, error);
    else if (fd < 0 && errno == EXDEV)
        path_failed("the image's folder for libraries is on a volume:", path, error);
    else if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
        path_failed("cannot follow the image's path", path, error);
    return fd;
}

int in_root_find_folder(int root, const char *path, GError **error)
{
    return find_or_say(root, path, O_PATH | O_DIRECTORY, RESOLVE_NO_XDEV, error);
}

int in_root_find(int root, const char *path, struct stat *found, GError **error)
{
    int fd = find_or_say(root, path, O_PATH, 0, error);

    if (fd >= 0 && fstat(fd, found) < 0) {
        path_failed("cannot look at the image's file", path, error);
        close(fd);
        return -1;
    }
    return fd;
}

/* In pieces: the file may grow meanwhile. */
static GByteArray *read_up_to(int fd, gsize most)
{
    GByteArray *bytes = g_byte_array_new();
    guint8 piece[65536];
    ssize_t got;

    while (bytes->len <= most && (got = read(fd, piece, sizeof(piece))) != 0)
        if (got > 0)
            g_byte_array_append(bytes, piece, (guint)got);
        else if (errno != EINTR)
            break;
    return bytes;
}

GBytes *in_root_read(int root, const char *path, gsize most)
{
    /* A FIFO would wait for a writer. */
    int fd = open_in_root(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    GByteArray *bytes = NULL;
    struct stat found;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode))
        bytes = read_up_to(fd, most);
    close(fd);
    if (bytes && bytes->len > most)
        g_clear_pointer(&bytes, g_byte_array_unref);
    return bytes ? g_byte_array_free_to_bytes(bytes) : NULL;
}

GPtrArray *in_root_list(int root, const char *path, guint most)
{
    int fd = open_in_root(root, path, O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    GPtrArray *names = dir ? g_ptr_array_new_with_free_func(g_free) : NULL;
    struct dirent *entry;

    while (names && names->len < most && (entry = readdir(dir)))
        if (!g_str_equal(entry->d_name, ".") && !g_str_equal(entry->d_name, ".."))
            g_ptr_array_add(names, g_strdup(entry->d_name));
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    return names;
}

/* Its own mount of what @fd is, which nothing shows yet. */
static int copy_mount(int fd, struct mount_attr *attributes)
{
    int copy = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (copy >= 0 && mount_setattr(copy, "", AT_EMPTY_PATH, attributes, sizeof(*attributes)) < 0) {
        int code = errno;

        close(copy);
        errno = code;
        return -1;
    }
    return copy;
}

gboolean in_root_cover(int source, int target, const char *path, GError **error)
{
    struct mount_attr attributes = {.attr_set =
                                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    int copy = copy_mount(source, &attributes);
    gboolean done;

    if (copy < 0)
        return path_failed("cannot mount over the image's", path, error);
    done = move_mount(copy, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
    if (!done)
        path_failed("cannot mount over the image's", path, error);
    close(copy);
    return done;
}

static void close_quietly(int fd)
{
    int code = errno;

    close(fd);
    errno = code;
}

/* FALSE with errno. */
static gboolean make_one(int root, const char *path, gboolean is_folder)
{
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);
    int dir = open_in_root(root, folder, O_PATH | O_DIRECTORY, 0);
    int fd = -1;
    gboolean done;

    if (dir < 0)
        return FALSE;
    if (!is_folder)
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    done = is_folder ? mkdirat(dir, name, 0755) == 0 : fd >= 0;
    close_quietly(dir);
    if (fd >= 0)
        close(fd);
    return done || errno == EEXIST;
}

int in_root_make_place(int root, const char *path, gboolean is_folder, GError **error)
{
    g_auto(GStrv) names = g_strsplit(path, "/", -1);
    g_autoptr(GString) at = g_string_new(NULL);
    gboolean done = TRUE;
    int fd = -1;

    for (guint i = 0; done && names[i]; i++) {
        if (!*names[i])
            continue;
        g_string_append_printf(at, "/%s", names[i]);
        done = make_one(root, at->str, is_folder || names[i + 1]);
    }
    if (done)
        fd = open_in_root(root, path, O_PATH, 0);
    if (fd < 0)
        path_failed("cannot make", path, error);
    return fd;
}

/* The name is free, or a link's that leads nowhere. FALSE with errno. */
static gboolean make_link(int dir, const char *name, const char *target)
{
    if (symlinkat(target, dir, name) == 0)
        return TRUE;
    if (errno != EEXIST)
        return FALSE;
    unlinkat(dir, NEW_LINK, 0);
    return symlinkat(target, dir, NEW_LINK) == 0 && renameat(dir, NEW_LINK, dir, name) == 0;
}

/*
 * The same directory to write to: a container's root that shall be read-only may be so already, and
 * only for the container. -1 with errno.
 */
static int writable_copy(int dir)
{
    struct mount_attr attributes = {.attr_clr = MOUNT_ATTR_RDONLY};
    int copy = copy_mount(dir, &attributes);

    if (copy < 0)
        errno = EROFS;
    return copy;
}

gboolean in_root_link(int dir, const char *name, const char *target, GError **error)
{
    gboolean done = make_link(dir, name, target);
    int copy = !done && errno == EROFS ? writable_copy(dir) : -1;

    if (copy >= 0) {
        done = make_link(copy, name, target);
        close_quietly(copy);
    }
    return done ||
           path_failed("cannot make a link in the image's folder for libraries:", name, error);
}

gboolean in_root_make_folder(int dir, const char *name, GError **error)
{
    gboolean done = mkdirat(dir, name, 0755) == 0 || errno == EEXIST;
    int copy = !done && errno == EROFS ? writable_copy(dir) : -1;

    if (copy >= 0) {
        done = mkdirat(copy, name, 0755) == 0 || errno == EEXIST;
        close_quietly(copy);
    }
    return done ||
           path_failed("cannot make a folder in the image's folder for libraries:", name, error);
}

/* FALSE with errno. */
static gboolean write_all(int fd, const guint8 *bytes, gsize size)
{
    while (size) {
        ssize_t put = write(fd, bytes, size);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return FALSE;
        bytes += put;
        size -= (gsize)put;
    }
    return TRUE;
}

static gboolean make_file(int dir, const char *name, const void *bytes, gsize size)
{
    gboolean done;
    int fd;

    unlinkat(dir, NEW_FILE, 0);
    fd = openat(dir, NEW_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return FALSE;
    /* Whatever the umask is. */
    done = fchmod(fd, 0644) == 0 && write_all(fd, bytes, size);
    close_quietly(fd);
    done = done && renameat(dir, NEW_FILE, dir, name) == 0;
    if (!done) {
        int code = errno;

        unlinkat(dir, NEW_FILE, 0);
        errno = code;
    }
    return done;
}

gboolean in_root_write(int root, const char *path, const char *name, const void *bytes, gsize size,
                       GError **error)
{
    int dir = in_root_find_folder(root, path, error);
    gboolean done;
    int copy;

    if (dir < 0 && !*error)
        errno = ENOENT;
    if (dir < 0)
        return *error ? FALSE : path_failed("the image has no folder", path, error);
    done = make_file(dir, name, bytes, size);
    copy = !done && errno == EROFS ? writable_copy(dir) : -1;
    if (copy >= 0) {
        done = make_file(copy, name, bytes, size);
        close_quietly(copy);
    }
    close_quietly(dir);
    return done || path_failed("cannot write the image's file", name, error);
}
