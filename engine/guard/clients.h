/* SPDX-License-Identifier: MIT */
/*
 * The guard's clients. Each is served by a process of its own with its own virglrenderer. If one
 * hangs or crashes, others are not affected, and everything is released with the process.
 *
 * A session's process has a render server below it, and that a render worker. If any of them is
 * left when the session's process has ended, it becomes a child of the guard
 * (PR_SET_CHILD_SUBREAPER), and is killed.
 */
#ifndef GUARD_CLIENTS_H
#define GUARD_CLIENTS_H

#include "guard_limits.h"

#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct client
 * @pid: of the process that serves it; 0: a free place
 * @fd: its connection, to notice its end; the session's process has it, too
 * @kill_at: deadline of that process after its client has disconnected (monotonic); 0: connected
 * @who: for messages
 */
struct client {
    pid_t pid;
    int fd;
    gint64 kill_at;
    char *who;
};

/**
 * struct clients
 * @keeper: a child that serves no client, and is left alone; 0: none, or it has ended
 */
struct clients {
    pid_t keeper;
    struct client table[GUARD_MAX_CLIENTS];
    uint64_t met;
};

/* Makes this process the parent of what sessions leave behind. */
void clients_init(struct clients *clients);

/*
 * Whether a new client can be served, or must be refused. False: there is no place, but one is
 * being freed, and a new client can wait for it.
 */
bool clients_ready(const struct clients *clients);

/* Nobody is served, and the processes of those who were have ended. */
bool clients_none(const struct clients *clients);

/*
 * Serves a new client on @fd, which it takes, in a process of its own: @serve is called there, and
 * its return value is the process' exit status. If there are too many clients, or no process can be
 * made, the connection is closed.
 */
void clients_add(struct clients *clients, int fd,
                 int (*serve)(int fd, const char *who, const void *data), const void *data);

/*
 * Fills in the array for poll(), one entry for each connected client, GUARD_MAX_CLIENTS at most;
 * returns how many.
 */
nfds_t clients_poll(const struct clients *clients, struct pollfd *fds);

/*
 * After poll(): notices clients that have disconnected, and ends sessions that do not notice it
 * themselves.
 */
void clients_look(struct clients *clients, const struct pollfd *fds, nfds_t count);

/* When clients_look() has something to do by itself (monotonic), or -1. */
gint64 clients_next(const struct clients *clients);

/*
 * After SIGCHLD: frees the places of sessions that have ended, and kills what they have left
 * behind.
 */
void clients_reap(struct clients *clients);

#endif /* GUARD_CLIENTS_H */
