// SPDX-License-Identifier: MIT
#include "clients.h"

#include "children.h"

#include "lib/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Time for a session to release its context. */
#define GOING_TIME (5 * G_TIME_SPAN_SECOND)

/* After a client, so that it has the processor first. */
#define SPARE_TIME (100 * G_TIME_SPAN_MILLISECOND)

/* Until another try to make a process. */
#define RETRY_TIME (100 * G_TIME_SPAN_MILLISECOND)

/**
 * struct spare_client - what a session's process that was started before its client gets of that
 * @fd: its connection
 * @keeper: the connection to the keeper; -1: there is none
 * @who: for messages
 */
struct spare_client {
    int fd;
    int keeper;
    char who[96];
};

/* The client's connection, and the keeper's if there is one. */
#define SPARE_FDS 2

void clients_init(struct clients *clients, const struct session_calls *calls)
{
    *clients = (struct clients){0};
    if (calls) {
        clients->calls = *calls;
        clients->spare_at = g_get_monotonic_time();
    }
    children_adopt();
}

static struct client *client_find(const struct clients *clients, pid_t pid)
{
    for (size_t i = 0; i < GUARD_CLIENTS_MAX; i++) {
        if (clients->table[i].pid == pid)
            return (struct client *)&clients->table[i];
    }
    return NULL;
}

static bool is_known(pid_t pid, const void *data)
{
    const struct clients *clients = data;

    return client_find(clients, pid) || pid == clients->keeper || pid == clients->spare;
}

bool clients_ready(const struct clients *clients)
{
    bool leaving = false;

    if (clients->num_left)
        return false;
    for (size_t i = 0; i < GUARD_CLIENTS_MAX; i++) {
        if (!clients->table[i].pid)
            return true;
        leaving |= clients->table[i].kill_at != 0;
    }
    return !leaving;
}

static char *client_describe(struct clients *clients, int fd)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);

    clients->met++;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return g_strdup_printf("%" G_GUINT64_FORMAT, clients->met);
    return g_strdup_printf("%" G_GUINT64_FORMAT " (process %d, user %u)", clients->met, peer.pid,
                           peer.uid);
}

/*
 * The guard must not close a connection before a new session has closed its copy: that session
 * would be the last to have it, and wait.
 */
static pid_t fork_apart(const struct clients *clients)
{
    int ends[2];
    char none;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid = fork();
    /* A connection of another client must not stay open in there when that client is dropped. */
    for (size_t i = 0; pid == 0 && i < GUARD_CLIENTS_MAX; i++) {
        if (clients->table[i].pid)
            close(clients->table[i].fd);
    }
    close(ends[1]);
    /* The end of the other one's copy. */
    while (pid > 0 && read(ends[0], &none, 1) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    return pid;
}

/* The life of a session's process. Its name says whether it has a client. */
G_NORETURN static void run_session(const struct session_calls *calls, pid_t guard, int link)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGCHLD};
    struct spare_client client;
    int fds[SPARE_FDS];
    sigset_t none;

    prctl(PR_SET_CHILD_SUBREAPER, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard)
        _exit(EXIT_FAILURE);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
        signal(signals[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, "vgpu-spare");
    if (!calls->prepare() ||
        descriptor_receive(link, &client, sizeof(client), 0, fds, SPARE_FDS) != sizeof(client) ||
        fds[0] < 0)
        _exit(EXIT_FAILURE);
    prctl(PR_SET_NAME, "vgpu-guard");
    close(link);
    _exit(calls->serve(fds[0], fds[1], client.who));
}

/* False: no process can be made (errno). */
static bool make_spare(struct clients *clients)
{
    pid_t guard = getpid();
    int ends[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    pid = fork_apart(clients);
    if (pid == 0) {
        close(ends[0]);
        run_session(&clients->calls, guard, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    clients->spare = pid;
    clients->link = ends[0];
    return true;
}

static void forget_spare(struct clients *clients)
{
    close(clients->link);
    clients->spare = 0;
}

/* A process that stays must not have a connection that is still to be closed. */
void clients_prepare(struct clients *clients)
{
    if (!clients->spare_at || clients->num_left || g_get_monotonic_time() < clients->spare_at)
        return;
    clients->spare_at = 0;
    if (!clients->spare)
        make_spare(clients);
}

void clients_refuse(struct clients *clients, int fd)
{
    clients->left[clients->num_left++] = fd;
}

/* The new process has what the guard has, until it is killed. */
void clients_close(struct clients *clients)
{
    pid_t guard = getpid();
    pid_t pid;

    if (!clients->num_left)
        return;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == guard)
            pause();
        _exit(EXIT_SUCCESS);
    }
    if (pid < 0)
        return;
    for (size_t i = 0; i < clients->num_left; i++)
        close(clients->left[i]);
    clients->num_left = 0;
    kill(pid, SIGKILL);
}

/* The process that was kept may have been killed meanwhile. */
static bool hand_over(struct clients *clients, const struct spare_client *client)
{
    const int fds[SPARE_FDS] = {client->fd, client->keeper};

    for (int tries = 0; tries < 2; tries++) {
        if (!clients->spare && !make_spare(clients))
            return false;
        if (descriptor_send(clients->link, client, sizeof(*client), 0, fds, SPARE_FDS) ==
            sizeof(*client))
            return true;
        forget_spare(clients);
    }
    return false;
}

/* NULL: there is none, and the client is refused. */
static struct client *find_place(struct clients *clients, int fd, const char *who)
{
    struct client *place = client_find(clients, 0);

    if (place)
        return place;
    g_message("client %s is refused: there are %u", who, GUARD_CLIENTS_MAX);
    clients_refuse(clients, fd);
    return NULL;
}

void clients_add(struct clients *clients, int fd, int keeper)
{
    g_autofree char *who = client_describe(clients, fd);
    struct client *place = find_place(clients, fd, who);
    struct spare_client client = {.fd = fd, .keeper = keeper};

    if (!place)
        return;
    g_strlcpy(client.who, who, sizeof(client.who));
    if (!hand_over(clients, &client)) {
        g_message("client %s is refused: no process for it: %s", who, g_strerror(errno));
        clients_refuse(clients, fd);
        return;
    }
    *place = (struct client){.pid = clients->spare, .fd = fd, .who = g_steal_pointer(&who)};
    forget_spare(clients);
    clients->spare_at = g_get_monotonic_time() + SPARE_TIME;
}

void clients_add_cuda(struct clients *clients, int fd, const struct cuda_worker *worker)
{
    g_autofree char *who = client_describe(clients, fd);
    struct client *place = find_place(clients, fd, who);
    g_auto(GStrv) environment = cuda_worker_environment();
    pid_t guard = getpid();
    pid_t pid;

    if (!place)
        return;
    pid = fork_apart(clients);
    if (pid == 0)
        cuda_worker_become(worker, environment, guard, fd);
    if (pid < 0) {
        g_message("client %s of CUDA is refused: no process for it: %s", who, g_strerror(errno));
        clients_refuse(clients, fd);
        return;
    }
    *place = (struct client){.pid = pid, .fd = fd, .is_cuda = true, .who = g_steal_pointer(&who)};
}

nfds_t clients_poll(const struct clients *clients, struct pollfd *fds)
{
    nfds_t count = 0;

    for (size_t i = 0; i < GUARD_CLIENTS_MAX; i++) {
        const struct client *client = &clients->table[i];

        /* Nothing is read here: the end of a connection is reported without being requested. */
        if (client->pid && !client->kill_at)
            fds[count++] = (struct pollfd){.fd = client->fd};
    }
    return count;
}

static bool has_gone(const struct client *client, const struct pollfd *fds, nfds_t count)
{
    for (nfds_t i = 0; i < count; i++) {
        if (fds[i].fd == client->fd)
            return fds[i].revents != 0;
    }
    return false;
}

void clients_look(struct clients *clients, const struct pollfd *fds, nfds_t count)
{
    gint64 now = g_get_monotonic_time();

    for (size_t i = 0; i < GUARD_CLIENTS_MAX; i++) {
        struct client *client = &clients->table[i];

        if (!client->pid)
            continue;
        if (!client->kill_at && has_gone(client, fds, count))
            client->kill_at = client->is_cuda ? now : now + GOING_TIME;
        if (!client->kill_at || client->kill_at > now)
            continue;
        if (!client->is_cuda)
            g_message("client %s has disconnected, but its renderer hangs: killed", client->who);
        kill(client->pid, SIGKILL);
        client->kill_at = now + GOING_TIME;
    }
}

bool clients_none(const struct clients *clients)
{
    for (size_t i = 0; i < GUARD_CLIENTS_MAX; i++) {
        if (clients->table[i].pid)
            return false;
    }
    return true;
}

gint64 clients_next(const struct clients *clients)
{
    gint64 next = clients->num_left ? g_get_monotonic_time() + RETRY_TIME : -1;

    if (clients->spare_at && next < 0)
        next = clients->spare_at;

    for (size_t i = 0; i < GUARD_CLIENTS_MAX; i++) {
        const struct client *client = &clients->table[i];

        if (client->pid && client->kill_at && (next < 0 || client->kill_at < next))
            next = client->kill_at;
    }
    return next;
}

void clients_reap(struct clients *clients)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct client *client = client_find(clients, pid);

        if (pid == clients->keeper)
            clients->keeper = 0;
        if (pid == clients->spare)
            forget_spare(clients);
        if (!client)
            continue;
        if (WIFSIGNALED(status) && !client->kill_at)
            g_message("client %s is dropped: its %s was killed by signal %d", client->who,
                      client->is_cuda ? "CUDA worker" : "session", WTERMSIG(status));
        clients_refuse(clients, client->fd);
        g_free(client->who);
        *client = (struct client){0};
    }
    children_kill(is_known, clients);
}
