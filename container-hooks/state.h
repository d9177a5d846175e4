/* SPDX-License-Identifier: MIT */
/* A container's state, which runtimes give their hooks (OCI's runtime specification). */
#ifndef CONTAINER_HOOKS_STATE_H
#define CONTAINER_HOOKS_STATE_H

#include <glib.h>

/**
 * State
 * @id: unique for its runtime on this host
 * @pid: of its first process; 0: it has none any more
 * @bundle: absolute path of the folder with its config.json; NULL: not told
 */
typedef struct {
    char *id;
    guint pid;
    char *bundle;
} State;

/* From standard input. */
gboolean state_read(State *state, GError **error);

void state_clear(State *state);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(State, state_clear)

#endif
