/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/kernel_call.h"

#include <fcntl.h>

#include "lib/bus.h"
#include "lib/program.h"

/* Drivers of a big card need tens of seconds. */
#define RUN_SECONDS 120

gboolean kernel_write(HostRoot *root, const char *path, const char *text, GError **error)
{
    int code = root_write_once(root, path, text);

    if (!code)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                "\"%s\" can't be written to %s: %s; the kernel log may say more (dmesg)", text,
                path, g_strerror(code));
    return FALSE;
}

gboolean kernel_run(const char *const *argv, char **output, GError **error)
{
    const Program program = {.argv = argv, .seconds = RUN_SECONDS};
    g_autoptr(GError) cause = NULL;
    const char *advice = "";

    if (program_run(&program, output, &cause))
        return TRUE;
    if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
        advice = "; run it yourself to see what it waits for, or read the kernel log (dmesg)";
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "%s%s", cause->message, advice);
    return FALSE;
}

int kernel_hold(HostRoot *root, const char *path)
{
    return root_open(root, path, O_RDWR, 0);
}
