/* SPDX-License-Identifier: MIT */
/* The guard's life from READY to its end. */
#ifndef GUARD_SERVER_H
#define GUARD_SERVER_H

#include <glib.h>
#include <stdbool.h>

/* Signals that end the loop or report dead children. To be called before children are made. */
void server_setup(void);

/*
 * Accepts clients from the listening socket @fd until SIGTERM: true. False with @error set if it
 * cannot continue.
 */
bool server_run(int fd, GError **error);

#endif /* GUARD_SERVER_H */
