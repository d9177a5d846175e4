/* SPDX-License-Identifier: MIT */
/*
 * The keeper: a process of the guard that holds each DMA buffer that a client was given, for as
 * long as anybody else holds it (kept.h). It is a member of the slice, so that the memory stays
 * charged: a client can free memory in its render worker and keep the descriptor, or pass it on. Of
 * plain shared memory, the keeper gives the content back instead.
 *
 * Sessions tell it what they give to their clients, and when they release it themselves; the end of
 * a session releases all of its buffers. From then on the kernel's reference count shows when
 * nobody else holds it.
 */
#ifndef GUARD_KEEPER_H
#define GUARD_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct keeper - in the guard
 * @pid: 0: there is none, because nothing is governed
 * @control: to give it connections of sessions
 */
struct keeper {
    pid_t pid;
    int control;
};

/* Starts it, as a member of the slice behind @socket_path; NULL: no slice. False: errno. */
bool keeper_start(struct keeper *keeper, const char *socket_path);

/* A session's connection to it, or -1: it has ended (errno). */
int keeper_connect(const struct keeper *keeper);

/* The life of the keeper's process: until @control's other end is closed. */
void keeper_run(int control, const char *socket_path);

#endif /* GUARD_KEEPER_H */
