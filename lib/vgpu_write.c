/* SPDX-License-Identifier: MIT */
#include "lib/vgpu_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/agent_error.h"

static AgentError code_of(int cause)
{
    return cause == ENOSPC  ? AGENT_ERROR_NO_ROOM
           : cause == EBUSY ? AGENT_ERROR_IN_USE
                            : AGENT_ERROR_FAILED;
}

static const char *text_of(int cause)
{
    return cause == ENOENT
               ? "it has no such attribute, so the module that is loaded is an older one"
           : cause == EBUSY ? "a VM has the vGPU open"
                            : g_strerror(cause);
}

static gboolean write_one(const char *dir, const char *name, const char *value, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *line = g_strconcat(value, "\n", NULL);
    ssize_t length = (ssize_t)strlen(line);
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    ssize_t written = fd < 0 ? -1 : write(fd, line, (size_t)length);
    int cause = errno;

    if (fd >= 0)
        close(fd);
    if (written == length)
        return TRUE;
    g_set_error(error, AGENT_ERROR, code_of(cause), "the driver does not take %s=%s: %s", name,
                value, text_of(cause));
    return FALSE;
}

static gboolean is_change(const VgpuWrite *write)
{
    return !g_str_equal(write->from, write->to);
}

gboolean vgpu_write(const char *dir, const VgpuWrite *list, gsize count, GError **error)
{
    for (gsize i = 0; i < count; i++) {
        if (!is_change(&list[i]) || write_one(dir, list[i].name, list[i].to, error))
            continue;
        while (i-- > 0)
            if (is_change(&list[i]))
                write_one(dir, list[i].name, list[i].from, NULL);
        return FALSE;
    }
    return TRUE;
}
