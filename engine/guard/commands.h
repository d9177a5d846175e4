/* SPDX-License-Identifier: MIT */
/* The commands of the protocol: which there are, when, how long, and what is done. */
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

/* Carries it out. False: the session has failed, or the client has gone. */
bool command_run(struct session *session, uint32_t command, const uint32_t *data, size_t size);

#endif /* GUARD_COMMANDS_H */
