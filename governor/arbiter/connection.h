/* SPDX-License-Identifier: MIT */
/* A member's connection. Its end, for any reason, returns all that the member held. */
#ifndef GOVERNOR_CONNECTION_H
#define GOVERNOR_CONNECTION_H

#include "arbiter_state.h"

/*
 * Takes ownership of @fd. NULL, and @fd is closed, if its process is not known or there is no
 * memory or descriptor; that is logged.
 */
struct connection *connection_new(struct slice *slice, int fd);

/* Closes it, and removes it from its slice. */
void connection_free(struct connection *connection);

/*
 * Executes the message of @length bytes at @data. False: drop the member; the reason has been
 * logged.
 */
bool connection_message(struct connection *connection, const void *data, size_t length);

/*
 * The vault's answer, with the descriptor @memory if @error is 0, which stays the caller's. False:
 * the member is gone.
 */
bool connection_vaulted(struct connection *connection, int error, uint64_t number, int memory);

/* All holders of memory have declared it: executes what was postponed. False as above. */
bool connection_resume(struct connection *connection);

#endif
