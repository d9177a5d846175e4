/* SPDX-License-Identifier: MIT */
/*
 * Pieces of host memory for what is displaced from GPUs. Each is a memfd that the vault has filled
 * before anybody gets it, so all of it is charged to the vault, and a process that uses it is not
 * charged for it. A piece is its process's until that returns it or ends. Then its pages are freed,
 * whoever else still has the descriptor.
 */
#ifndef GOVERNOR_PIECES_H
#define GOVERNOR_PIECES_H

#include "vault_protocol.h"

#include <glib.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

/**
 * struct pieces
 * @all: of struct piece, by number; @bytes: of all of them
 * @ends: the vault ends, and what its pieces hold stays their processes'
 * @available: how much memory the host has left; for tests
 */
struct pieces {
    sd_event *event;
    GHashTable *all;
    uint64_t bytes;
    uint64_t next_number;
    bool ends;
    uint64_t (*available)(void);
};

void pieces_init(struct pieces *pieces, sd_event *event);
void pieces_clear(struct pieces *pieces);

/*
 * A piece as @request says, for the process of @pidfd, which it takes. Its descriptor, which stays
 * the vault's, and its number; or -1 and an errno.
 */
int pieces_take(struct pieces *pieces, const struct vault_request *request, int pidfd,
                uint64_t *number);
/* Nothing, if there is no such piece of that slice. */
void pieces_return(struct pieces *pieces, const struct vault_request *request);

#endif
