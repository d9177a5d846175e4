/* SPDX-License-Identifier: MIT */
/* The guard's life between READY and its end. */
#ifndef GUARD_SERVER_H
#define GUARD_SERVER_H

#include <glib.h>
#include <stdbool.h>

/* Signals that end the loop or tell of dead children. To be called before children are made. */
void server_setup(void);

/*
 * Takes clients from the listening socket @fd until SIGTERM: true. False with @error set where it
 * can't go on.
 * @render_node: of the GPU, or NULL.
 */
bool server_run(int fd, const char *render_node, GError **error);

#endif /* GUARD_SERVER_H */
