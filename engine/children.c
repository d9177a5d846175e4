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

/* What a thread has forked, and what was adopted. NULL: the kernel does not say. */
static char **list_names(const char *path)
{
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_strsplit(g_strchomp(text), " ", -1);
}

#define OWN "/proc/thread-self/children"

pid_t children_only(void)
{
    g_auto(GStrv) all = list_names(OWN);

    return all && all[0] && !all[1] ? atoi(all[0]) : 0;
}

static unsigned int kill_all(const char *path, bool (*keep)(pid_t pid, const void *data),
                             const void *data)
{
    g_auto(GStrv) all = list_names(path);
    unsigned int count = 0;

    for (char **name = all; name && *name; name++) {
        pid_t pid = atoi(*name);

        if (pid <= 0 || (keep && keep(pid, data)))
            continue;
        kill(pid, SIGKILL);
        count++;
    }
    return count;
}

unsigned int children_kill(bool (*keep)(pid_t pid, const void *data), const void *data)
{
    return kill_all(OWN, keep, data);
}

unsigned int children_kill_of(pid_t parent)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", parent, parent);

    return kill_all(path, NULL, NULL);
}
