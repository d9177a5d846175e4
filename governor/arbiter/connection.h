/* SPDX-License-Identifier: MIT */
/*
 * The connection of a member. Its end, for whatever reason, gives back all that the member had.
 */
#ifndef GOVERNOR_CONNECTION_H
#define GOVERNOR_CONNECTION_H

#include "ledger.h"
#include "pages.h"
#include "scheduler.h"

#include <systemd/sd-event.h>

struct arbiter;
struct slice;

/**
 * struct connection
 * @pidfd: tells of its death even where a child has inherited the socket; -1: the kernel didn't say
 * @joined: has been welcomed; @member, @pages and @holding are of use
 * @postponed: a RESERVE or ATTACH that came before all who hold memory had the time to say so
 */
struct connection {
    struct slice *slice;
    int fd;
    int pidfd;
    sd_event_source *io;
    sd_event_source *death;
    bool joined;
    bool has_postponed;
    struct governor_message postponed;
    struct sched_member member;
    struct pages pages;
    struct holding holding;
};

/* Takes @fd over. NULL, and @fd is closed: no memory or descriptors, which is logged. */
struct connection *connection_new(struct slice *slice, int fd);

/* Closes it, and takes it out of its slice. */
void connection_free(struct connection *connection);

/*
 * Does what a message of @length bytes at @data says. False: the member is to be dropped; the
 * reason has been logged.
 */
bool connection_message(struct connection *connection, const void *data, size_t length);

/* All who hold memory have said so: what was postponed is done. False as above. */
bool connection_resume(struct connection *connection);

#endif
