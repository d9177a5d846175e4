// SPDX-License-Identifier: MIT
#include "arbiter_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int listener_error(int fd, const char *path, const char *what)
{
    g_message("%s: %s: %s", path, what, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/*
 * Bound under another name and renamed, so that nobody finds it before it listens and has its mode
 * and owner.
 */
int listener_new(const char *path, int type, mode_t mode, uint32_t owner)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *made = g_strconcat(path, ".new", NULL);
    int fd;

    if (strlen(made) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return listener_error(-1, path, "the path is too long for a socket");
    }
    memcpy(address.sun_path, made, strlen(made) + 1);
    fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return listener_error(fd, path, "cannot make a socket");
    unlink(made);
    rights_refuse(fd);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        (type != SOCK_DGRAM && listen(fd, 256) < 0))
        return listener_error(fd, path, "cannot listen");
    if (chmod(made, mode) < 0 ||
        (owner != SETTINGS_OWNER_NONE && chown(made, owner, (gid_t)-1) < 0))
        return listener_error(fd, path, "cannot give the socket to its owner");
    if (rename(made, path) < 0)
        return listener_error(fd, path, "cannot rename the socket");
    return fd;
}
