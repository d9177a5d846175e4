/* SPDX-License-Identifier: MIT */
#include "container-hooks/namespaces.h"

#include <errno.h>
#include <gio/gio.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/refuse.h"

static gboolean enter_failed(guint pid, GError **error)
{
    return refuse_with(error, g_io_error_from_errno(errno),
                       "the namespaces of the container's process %u cannot be entered: %s", pid,
                       g_strerror(errno));
}

/* Setns(2) refuses to enter the own user namespace, and a mount namespace's root may be another. */
static gboolean find_differing(guint pid, const char *name, int flag, int *flags)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/ns/%s", pid, name);
    g_autofree char *own_path = g_strconcat("/proc/self/ns/", name, NULL);
    struct stat its, own;

    if (stat(path, &its) < 0 || stat(own_path, &own) < 0)
        return FALSE;
    if (its.st_dev != own.st_dev || its.st_ino != own.st_ino)
        *flags |= flag;
    return TRUE;
}

/* What the hook makes belongs to the container's root. */
static gboolean become_root(void)
{
    /* A user namespace may forbid it; then the groups are those of the user who made it. */
    if (setgroups(0, NULL) < 0 && errno != EPERM)
        return FALSE;
    return setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0;
}

gboolean namespaces_enter(guint pid, GError **error)
{
    int process = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    int flags = 0;
    gboolean done;

    if (!pid)
        return refuse_with(error, G_IO_ERROR_INVALID_DATA,
                           "the runtime names no process of the container");
    done = process >= 0 && find_differing(pid, "user", CLONE_NEWUSER, &flags) &&
           find_differing(pid, "mnt", CLONE_NEWNS, &flags);
    /* Processes of that user namespace must not trace this one. */
    if (done && flags & CLONE_NEWUSER)
        done = prctl(PR_SET_DUMPABLE, 0) == 0;
    if (done && flags)
        done = setns(process, flags) == 0;
    if (done && flags & CLONE_NEWUSER)
        done = become_root();
    if (!done)
        enter_failed(pid, error);
    if (process >= 0)
        close(process);
    return done;
}
