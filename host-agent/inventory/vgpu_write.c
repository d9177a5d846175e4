/* SPDX-License-Identifier: MIT */
#include "vgpu_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent_error.h"

static AgentError code_of(int cause)
{
    return cause == ENOSPC  ? AGENT_ERROR_NO_ROOM
           : cause == EBUSY ? AGENT_ERROR_IN_USE
                            : AGENT_ERROR_FAILED;
}

static gboolean write_one(const char *dir, const char *name, guint64 value, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    char text[24];
    int length = snprintf(text, sizeof(text), "%" G_GUINT64_FORMAT "\n", value);
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    ssize_t written = fd < 0 ? -1 : write(fd, text, (size_t)length);
    int cause = errno;

    if (fd >= 0)
        close(fd);
    if (written == length)
        return TRUE;
    g_set_error(error, AGENT_ERROR, code_of(cause),
                "the driver does not take %s=%" G_GUINT64_FORMAT ": %s", name, value,
                g_strerror(cause));
    return FALSE;
}

gboolean vgpu_write(const char *dir, const VgpuWrite *list, gsize count, GError **error)
{
    for (gsize i = 0; i < count; i++) {
        if (list[i].from == list[i].to || write_one(dir, list[i].name, list[i].to, error))
            continue;
        while (i-- > 0)
            if (list[i].from != list[i].to)
                write_one(dir, list[i].name, list[i].from, NULL);
        return FALSE;
    }
    return TRUE;
}
