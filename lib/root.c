/* SPDX-License-Identifier: MIT */
#include "lib/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#define PIECE 65536u

char *root_path(const char *root, const char *first, ...)
{
    g_autoptr(GPtrArray) parts = g_ptr_array_new();
    va_list rest;

    g_ptr_array_add(parts, (char *)(root[0] ? root : "/"));
    va_start(rest, first);
    for (const char *part = first; part; part = va_arg(rest, const char *))
        g_ptr_array_add(parts, (char *)part);
    va_end(rest);
    g_ptr_array_add(parts, NULL);
    return g_build_filenamev((char **)parts->pdata);
}

static char *fail(const char *path, int code, GError **error)
{
    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code), "%s can't be read: %s", path,
                g_strerror(code));
    return NULL;
}

/* -1 with errno. */
static ssize_t read_piece(int fd, GByteArray *text)
{
    guint length = text->len;
    ssize_t got;

    g_byte_array_set_size(text, length + PIECE);
    do
        got = read(fd, text->data + length, PIECE);
    while (got < 0 && errno == EINTR);
    g_byte_array_set_size(text, length + (guint)MAX(got, 0));
    if (got > 0 && text->len > ROOT_READ_MAX) {
        errno = ENOSPC;
        return -1;
    }
    return got;
}

char *root_read(const char *root, const char *path, GError **error)
{
    g_autofree char *full = root_path(root, path, NULL);
    g_autoptr(GByteArray) text = g_byte_array_new();
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    int code;

    if (fd < 0)
        return fail(full, errno, error);
    do
        got = read_piece(fd, text);
    while (got > 0);
    code = errno;
    close(fd);
    if (got < 0)
        return fail(full, code, error);
    g_byte_array_append(text, (const guint8 *)"", 1);
    return (char *)g_byte_array_free(g_steal_pointer(&text), FALSE);
}

gboolean root_write(const char *root, const char *path, const char *text, int mode, GError **error)
{
    g_autofree char *full = root_path(root, path, NULL);
    g_autofree char *dir = g_path_get_dirname(full);

    g_mkdir_with_parents(dir, 0700);
    return g_file_set_contents_full(full, text, -1,
                                    G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
                                    mode, error);
}
