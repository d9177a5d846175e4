/* SPDX-License-Identifier: MIT */
/* Slices' sockets in a container: GPU/SLICE/governor.sock in a directory. */
#ifndef GOVERNOR_SOCKETS_H
#define GOVERNOR_SOCKETS_H

#include <stdbool.h>

#pragma GCC visibility push(default)

/*
 * Calls @func with each GPU's name and the path of its socket, in the order of names, until it
 * returns false. The first of several slices of a GPU, by name, stands for all (vgpud tells the
 * arbiter so); if that has no socket, the first that has one. False: @func returned false, or there
 * is no GPU (errno).
 */
bool governor_sockets_each(const char *dir,
                           bool (*func)(const char *gpu, const char *path, void *data), void *data);

/* The socket of @gpu's slice in @dir, by the same rule; to be freed. NULL: none, or no memory. */
char *governor_socket_in(const char *dir, const char *gpu);

#pragma GCC visibility pop

#endif /* GOVERNOR_SOCKETS_H */
