/* SPDX-License-Identifier: MIT */
/* A member without the member library: it sends what it likes, when it likes. */
#ifndef GOVERNOR_RAW_H
#define GOVERNOR_RAW_H

#include "governor_protocol.h"

#include <stdbool.h>

/* To the socket at @path; -1: refused. */
int raw_connect(const char *path);

/* @flags: of send(). */
bool raw_send(int fd, uint32_t type, uint64_t value, uint64_t other, int flags);

/* The two descriptors of the welcome that comes after a JOIN; or joins, too. False: no welcome. */
bool raw_welcome(int fd, int fds[2]);
bool raw_join(int fd, int fds[2]);

/* A member that has not taken its pages; -1: none. */
int raw_member(const char *path);

#endif
