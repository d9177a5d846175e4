/* SPDX-License-Identifier: MIT */
/* A member's connection. Its end, for any reason, returns all that the member held. */
#ifndef GOVERNOR_CONNECTION_H
#define GOVERNOR_CONNECTION_H

#include "ledger.h"
#include "moves.h"
#include "pages.h"
#include "scheduler.h"

#include <systemd/sd-event.h>

struct arbiter;
struct slice;

/**
 * struct connection
 * @pidfd: reports its death even if a child has inherited the socket
 * @version: of the protocol, as in its messages; 0: it has sent none
 * @takes_rights: the kernel does not refuse descriptors that it sends
 * @joined: has been welcomed; @members (by class), @pages, @holding and @moves are valid
 * @returned: bytes of device memory that it has RELEASEd
 * @vault_ticket: of the piece of the vault that it waits for; 0: it does not
 * @postponed: a RESERVE or ATTACH that came before all holders of memory had the time to declare it
 */
struct connection {
    struct slice *slice;
    int fd;
    int pidfd;
    uint32_t version;
    sd_event_source *io;
    sd_event_source *death;
    bool takes_rights;
    bool joined;
    bool has_postponed;
    struct governor_message postponed;
    struct sched_member members[GOVERNOR_CLASSES];
    struct pages pages;
    struct holding holding;
    struct moves_member moves;
    uint64_t vault_ticket;
    uint64_t returned;
};

/*
 * Takes ownership of @fd. NULL, and @fd is closed, if its process is not known or there is no
 * memory or descriptor; that is logged.
 */
struct connection *connection_new(struct slice *slice, int fd);

/* The process that connected. */
pid_t connection_pid(const struct connection *connection);

/* Closes it, and removes it from its slice. */
void connection_free(struct connection *connection);

/*
 * Executes the message of @length bytes at @data. False: drop the member; the reason has been
 * logged.
 */
bool connection_message(struct connection *connection, const void *data, size_t length);

/*
 * The vault's answer, with the descriptor @memory if @error is 0, which stays the caller's. False
 * as above.
 */
bool connection_vaulted(struct connection *connection, int error, uint64_t number, int memory);

/* All holders of memory have declared it: executes what was postponed. False as above. */
bool connection_resume(struct connection *connection);

#endif
