/* SPDX-License-Identifier: MIT */
/*
 * The guard's clients. Each is served by a process of its own with its own virglrenderer. If one
 * hangs or crashes, others are not affected, and everything is released with the process.
 *
 * One process is kept started for the next client, with its render server: that takes as long as
 * the client's own start. Each process serves one client.
 *
 * A session's process has a render server below it, and that a render worker. If any of them is
 * left when the session's process has ended, it becomes a child of the guard
 * (PR_SET_CHILD_SUBREAPER), and is killed.
 *
 * A client of CUDA is served by a vgpu-cuda-worker instead, which is made when it comes. It has
 * nothing to release: when its client goes it is killed, whatever it does.
 *
 * Clients can send descriptors, and whoever has a file last waits for its end: for days, if it is a
 * TCP socket with SO_LINGER. A process that is killed does not. So the guard closes a connection
 * only while such a process has it, too.
 */
#ifndef GUARD_CLIENTS_H
#define GUARD_CLIENTS_H

#include "cuda_worker.h"
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
 * @is_cuda: by a vgpu-cuda-worker
 * @who: for messages
 */
struct client {
    pid_t pid;
    int fd;
    gint64 kill_at;
    bool is_cuda;
    char *who;
};

/**
 * struct session_calls - what a session's process does
 * @prepare: before it has its client. False: it ends
 * @serve: returns the process' exit status; it owns the descriptors
 */
struct session_calls {
    bool (*prepare)(void);
    int (*serve)(int fd, int keeper, const char *who);
};

/**
 * struct clients
 * @keeper: a child that serves no client, and is left alone; 0: none, or it has ended
 * @spare, @link: the process for the next client, and the connection to it; 0: there is none
 * @spare_at: when it is to be made (monotonic); 0: it is there, or a client makes it
 * @left, @num_left: connections of clients that are gone or refused, still to be closed. As long as
 * there are any, no client comes
 */
struct clients {
    struct session_calls calls;
    pid_t keeper;
    pid_t spare;
    int link;
    gint64 spare_at;
    struct client table[GUARD_CLIENTS_MAX];
    uint64_t met;
    int left[GUARD_CLIENTS_MAX + 1];
    size_t num_left;
};

/* Makes this process the parent of what sessions leave behind. @calls: NULL: there are none. */
void clients_init(struct clients *clients, const struct session_calls *calls);

/* Makes the process for the next client when it is time. */
void clients_prepare(struct clients *clients);

/*
 * Whether a new client can be served, or must be refused. False: there is no place, but one is
 * being freed, or there are connections to be closed; a new client can wait for that.
 */
bool clients_ready(const struct clients *clients);

/* Nobody is served, and the processes of those who were have ended. */
bool clients_none(const struct clients *clients);

/*
 * Serves a new client on @fd, which it takes, in a process of its own. @keeper: of the session, or
 * -1; the caller keeps it. If there are too many clients, or no process can be made, the connection
 * is closed.
 */
void clients_add(struct clients *clients, int fd, int keeper);

/* The same for a client of CUDA. */
void clients_add_cuda(struct clients *clients, int fd, const struct cuda_worker *worker);

/* Takes @fd, of a client that is not served. */
void clients_refuse(struct clients *clients, int fd);

/* Closes connections of clients that are gone or refused, if a process can be made for that. */
void clients_close(struct clients *clients);

/*
 * Fills in the array for poll(), one entry for each connected client, GUARD_CLIENTS_MAX at most;
 * returns how many.
 */
nfds_t clients_poll(const struct clients *clients, struct pollfd *fds);

/*
 * After poll(): notices clients that have disconnected, and ends sessions that do not notice it
 * themselves.
 */
void clients_look(struct clients *clients, const struct pollfd *fds, nfds_t count);

/* When clients_look() or clients_close() has something to do by itself (monotonic), or -1. */
gint64 clients_next(const struct clients *clients);

/*
 * After SIGCHLD: frees the places of sessions that have ended, and kills what they have left
 * behind.
 */
void clients_reap(struct clients *clients);

#endif /* GUARD_CLIENTS_H */
