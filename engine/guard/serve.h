/* SPDX-License-Identifier: MIT */
/* Reads a client's messages, and has the commands in them executed. */
#ifndef GUARD_SERVE_H
#define GUARD_SERVE_H

#include <stdbool.h>

struct session;

/*
 * Serves the client until it disconnects: true. False: it was dropped, and session->fault says why.
 */
bool session_run(struct session *session);

#endif /* GUARD_SERVE_H */
