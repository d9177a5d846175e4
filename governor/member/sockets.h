/* SPDX-License-Identifier: MIT */
/*
 * Slices' sockets, as a container has them: GPU/SLICE/governor.sock in a directory.
 */
#ifndef GOVERNOR_SOCKETS_H
#define GOVERNOR_SOCKETS_H

#include <stdbool.h>

#pragma GCC visibility push(default)

/*
 * Calls @func with each GPU's name and the path of its socket, in the order of names, until it
 * returns false. Of several slices of a GPU the first by name stands for all (vgpud tells the
 * arbiter so); where that has no socket, the first that has one. False: @func has said so, or there
 * is no GPU (errno).
 */
bool governor_sockets_each(const char *dir,
                           bool (*func)(const char *gpu, const char *path, void *data),
                           void *data);

/* The socket of @gpu's slice in @dir by the same rule, to be freed. NULL: there is none, or no
 * memory. */
char *governor_socket_in(const char *dir, const char *gpu);

#pragma GCC visibility pop

#endif /* GOVERNOR_SOCKETS_H */
