/* SPDX-License-Identifier: MIT */
#include "lib/input.h"

#include <errno.h>
#include <gio/gio.h>
#include <unistd.h>

GString *input_read(gsize most, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char part[16384];
    ssize_t count;

    while ((count = read(STDIN_FILENO, part, sizeof(part))) != 0) {
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno),
                        "cannot read standard input: %s", g_strerror(errno));
            return NULL;
        }
        g_string_append_len(text, part, count);
        if (text->len > most) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE,
                        "standard input has more than %" G_GSIZE_FORMAT " bytes", most);
            return NULL;
        }
    }
    return g_steal_pointer(&text);
}
