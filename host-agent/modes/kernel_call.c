/* SPDX-License-Identifier: MIT */
#include "kernel_call.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent_error.h"

gboolean kernel_write(const char *path, const char *text, GError **error)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t written = fd < 0 ? -1 : write(fd, text, strlen(text));
    int code = errno;

    if (fd >= 0)
        close(fd);
    if (written >= 0)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                "\"%s\" can't be written to %s: %s; the kernel log may say more (dmesg)", text,
                path, g_strerror(code));
    return FALSE;
}

gboolean kernel_run(const char *const *argv, char **output, GError **error)
{
    g_autofree char *line = g_strjoinv(" ", (char **)argv);
    g_autoptr(GError) cause = NULL;
    g_autofree char *said = NULL;
    g_autoptr(GSubprocess) process = g_subprocess_newv(
        argv, G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_MERGE, &cause);

    if (!process || !g_subprocess_communicate_utf8(process, NULL, NULL, &said, NULL, &cause)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "\"%s\" can't be run: %s", line,
                    cause->message);
        return FALSE;
    }
    if (!g_subprocess_get_successful(process)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "\"%s\" failed: %s", line,
                    said ? g_strstrip(said) : "without a word");
        return FALSE;
    }
    if (output)
        *output = g_steal_pointer(&said);
    return TRUE;
}

int kernel_hold(const char *path)
{
    return open(path, O_RDWR | O_CLOEXEC);
}
