// SPDX-License-Identifier: MIT
#include "rights.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Making a process takes the arbiter's time, so one is for all that came meanwhile. */
#define PERIOD_US 10000

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

void rights_refuse(int listener)
{
    const int on = 0;

    setsockopt(listener, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
}

bool rights_possible(int connection)
{
    int on = 1;
    socklen_t length = sizeof(on);

    return getsockopt(connection, SOL_SOCKET, SO_PASSRIGHTS, &on, &length) < 0 || on;
}

/* A look takes references of the files, but the queue keeps its own. */
bool rights_next(int connection)
{
    struct msghdr packet = {0};

    return recvmsg(connection, &packet, MSG_PEEK | MSG_DONTWAIT) >= 0 &&
           packet.msg_flags & MSG_CTRUNC;
}

/* Anywhere in its queue. */
static bool has_some(int connection)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fdinfo/%d", connection);
    g_autofree char *text = NULL;
    const char *count;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return true;
    count = strstr(text, "scm_fds:");
    return !count || strtoul(count + strlen("scm_fds:"), NULL, 10) > 0;
}

/* Has all that the arbiter has, until it is killed. */
static pid_t make_process(void)
{
    pid_t arbiter = getpid();
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == arbiter)
        pause();
    _exit(EXIT_SUCCESS);
}

static void close_left(struct rights *rights)
{
    pid_t pid = make_process();

    if (pid < 0)
        return;
    for (guint i = 0; i < rights->left->len; i++)
        close(g_array_index(rights->left, int, i));
    g_array_set_size(rights->left, 0);
    kill(pid, SIGKILL);
    rights->process = pid;
}

static void look_soon(struct rights *rights)
{
    sd_event_source_set_time_relative(rights->timer, PERIOD_US);
    sd_event_source_set_enabled(rights->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *data)
{
    struct rights *rights = data;

    (void)source;
    (void)usec;
    if (rights->process && waitpid(rights->process, NULL, WNOHANG) != 0)
        rights->process = 0;
    if (!rights->process && rights->left->len)
        close_left(rights);
    if (rights->process || rights->left->len)
        look_soon(rights);
    return 0;
}

static void leave_file(struct rights *rights, int fd)
{
    g_array_append_val(rights->left, fd);
    look_soon(rights);
}

bool rights_close(struct rights *rights, int connection)
{
    if (rights_possible(connection)) {
        /* From here on nothing can come. */
        shutdown(connection, SHUT_RD);
        if (has_some(connection)) {
            leave_file(rights, connection);
            return false;
        }
    }
    close(connection);
    return true;
}

/* Linux 6.1 does not say what those have sent who were not accepted yet. */
void rights_close_listener(struct rights *rights, int listener)
{
    if (rights_possible(listener))
        leave_file(rights, listener);
    else
        close(listener);
}

void rights_init(struct rights *rights, sd_event *event)
{
    *rights = (struct rights){.left = g_array_new(FALSE, FALSE, sizeof(int))};
    sd_event_add_time(event, &rights->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, rights);
    sd_event_source_set_enabled(rights->timer, SD_EVENT_OFF);
}

void rights_clear(struct rights *rights)
{
    sd_event_source_disable_unref(rights->timer);
    g_array_unref(rights->left);
}
