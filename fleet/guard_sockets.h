/* SPDX-License-Identifier: MIT */
/*
 * systemd makes the sockets of a slice's guard some moments after vgpud has made the slice. A
 * program that connects before has no GPU, and a container that mounts them does not start. So
 * whoever hands out a slice waits for them.
 */
#ifndef FLEET_GUARD_SOCKETS_H
#define FLEET_GUARD_SOCKETS_H

#include <glib.h>

/* Adds paths to @sockets (of char *, owned), by @env, the variables of a slice's door. */
void guard_sockets_add(GPtrArray *sockets, const char *const *env);

/* The first that is not there; NULL: all are. */
const char *guard_sockets_missing(const GPtrArray *sockets);

/* Why a slice cannot be used whose socket is @missing. To be freed. */
char *guard_sockets_sentence(const char *missing);

#endif
