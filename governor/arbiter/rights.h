/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that members pass along with their messages (SCM_RIGHTS). The arbiter wants none, but
 * the kernel queues them, and whoever has a file last waits for its end. That can take days: a TCP
 * socket with SO_LINGER. So the arbiter never takes such a message and never closes such a
 * connection as the last one. A process that is killed waits for none of that, so it leaves them to
 * one.
 *
 * From Linux 6.16 on its sockets refuse descriptors, so that there are none.
 */
#ifndef GOVERNOR_RIGHTS_H
#define GOVERNOR_RIGHTS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

/**
 * struct rights
 * @left: descriptors to be closed by the next process
 * @process: it has ended, or is about to; one at a time. 0: none
 * @timer: armed while there is anything to do
 */
struct rights {
    GArray *left;
    pid_t process;
    sd_event_source *timer;
};

void rights_init(struct rights *rights, sd_event *event);

/* Before the arbiter ends. What is left ends with it. */
void rights_clear(struct rights *rights);

/* For a socket that does not listen yet, and all connections to it. */
void rights_refuse(int listener);

/* False: the kernel has refused them from the connection's begin. */
bool rights_possible(int connection);

/* Whether the next message has some. */
bool rights_next(int connection);

/* Closes a connection. False: later, because some were waiting there. */
bool rights_close(struct rights *rights, int connection);

/* Closes a socket that listens, and whoever was not accepted yet. */
void rights_close_listener(struct rights *rights, int listener);

#endif
