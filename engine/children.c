// SPDX-License-Identifier: MIT
#include "children.h"

#include <glib.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

void children_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* What the main thread has forked, and what was adopted. NULL: the kernel does not say. */
static char **names(void)
{
    g_autofree char *text = NULL;

    if (!g_file_get_contents("/proc/thread-self/children", &text, NULL, NULL))
        return NULL;
    return g_strsplit(g_strchomp(text), " ", -1);
}

static pid_t number(const char *name)
{
    return (pid_t)strtol(name, NULL, 10);
}

pid_t children_only(void)
{
    g_auto(GStrv) all = names();

    return all && all[0] && !all[1] ? number(all[0]) : 0;
}

void children_kill(bool (*keep)(pid_t pid, const void *data), const void *data)
{
    g_auto(GStrv) all = names();

    for (char **name = all; name && *name; name++) {
        pid_t pid = number(*name);

        if (pid > 0 && !keep(pid, data))
            kill(pid, SIGKILL);
    }
}
