// SPDX-License-Identifier: MIT
/* Which process is at the other end of a member's socket. */
#include "arbiter_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static struct ucred peer_of(int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t length = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
        peer.pid = 0;
    return peer;
}

pid_t peer_pid(int fd)
{
    return peer_of(fd).pid;
}

/* With hidepid= and gid= it shows the arbiter no other user's process, nor root's first one. */
static bool proc_hides_others(void)
{
    return !g_file_test("/proc/1/status", G_FILE_TEST_EXISTS);
}

/* Whether the effective user, as SO_PEERCRED's, is another one by now, as far as /proc tells. */
static bool is_of_another_user(const struct ucred *peer)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)peer->pid);
    g_autofree char *text = NULL;
    unsigned user = (unsigned)-1;
    const char *line;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return !proc_hides_others();
    line = strstr(text, "\nUid:");
    return !line || sscanf(line, "\nUid: %*u %u", &user) != 1 || user != peer->uid;
}

/*
 * The process may have ended, and another one have its number. All that can be seen of that is
 * another user.
 */
static int pidfd_of_number(int fd)
{
    struct ucred peer = peer_of(fd);
    int pidfd = peer.pid > 0 ? (int)syscall(SYS_pidfd_open, peer.pid, 0) : -1;

    if (pidfd < 0 || !is_of_another_user(&peer))
        return pidfd;
    close(pidfd);
    return -1;
}

/* Linux 6.5 has the option. With any other failure the process is not known. */
int peer_pidfd(int fd)
{
    socklen_t length = sizeof(int);
    int pidfd = -1;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
        return pidfd;
    return errno == ENOPROTOOPT ? pidfd_of_number(fd) : -1;
}
