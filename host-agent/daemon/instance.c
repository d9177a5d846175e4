/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/bus.h"
#include "lib/host_root.h"

#define LOCK_DIR  "/run/vgpu"
#define LOCK_FILE LOCK_DIR "/vgpud.lock"

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

int instance_lock(HostRoot *root, GError **error)
{
    g_autofree char *path = root_path(root, LOCK_FILE, NULL);
    int fd, code;

    root_mkdir(root, LOCK_DIR, 0755, NULL);
    fd = root_open(root, LOCK_FILE, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        return fail(path, errno, error);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    code = errno;
    close(fd);
    return fail(path, code, error);
}
