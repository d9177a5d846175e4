/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/bus.h"
#include "lib/root.h"

#define LOCK_DIR  "run/vgpu"
#define LOCK_FILE "vgpud.lock"

static int fail(const char *path, int code, GError **error)
{
    if (code == EWOULDBLOCK)
        g_set_error(
            error, AGENT_ERROR, AGENT_ERROR_IN_USE,
            "another vgpud is running on this host (it holds %s); \"systemctl status vgpud\" "
            "shows it",
            path);
    else
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "%s can't be locked: %s", path,
                    g_strerror(code));
    return -1;
}

int instance_lock(const char *root, GError **error)
{
    g_autofree char *dir = root_path(root, LOCK_DIR, NULL);
    g_autofree char *path = g_build_filename(dir, LOCK_FILE, NULL);
    int fd, code;

    if (g_mkdir_with_parents(dir, 0755) < 0)
        return fail(path, errno, error);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail(path, errno, error);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    code = errno;
    close(fd);
    return fail(path, code, error);
}
