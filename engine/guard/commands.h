/* SPDX-License-Identifier: MIT */
/* The protocol's commands: when each is allowed, its length, and its handler. */
#ifndef GUARD_COMMANDS_H
#define GUARD_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

/*
 * Whether a client may send @command of @length now. @size: the bytes of its data. False: the
 * session has failed.
 */
bool command_check(struct session *session, uint32_t command, uint32_t length, size_t *size);

/* Executes it. False: the session has failed, or the client has disconnected. */
bool command_run(struct session *session, uint32_t command, const uint32_t *data, size_t size);

#endif /* GUARD_COMMANDS_H */
