/* SPDX-License-Identifier: MIT */
/*
 * The keeper: a process of the guard that has each DMA buffer that a client was given, for as long
 * as anybody else has it. It is a member of the slice, so that the memory stays charged: a client
 * can free memory in its render worker and keep the descriptor, or hand it on.
 *
 * Sessions tell it what they give to their clients, and when they give it up themselves; the end of
 * a session gives up all that was its. From then on the kernel's count of references says when
 * nobody else has it.
 */
#ifndef GUARD_KEEPER_H
#define GUARD_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of all clients together: what the arbiter remembers of one process (LEDGER_MEMBER_OBJECTS). */
#define KEEPER_MAX_KEPT 4096u

/**
 * struct keeper - as the guard has it
 * @pid: 0: there is none, for nothing is governed
 * @control: to give it connections of sessions
 */
struct keeper {
    pid_t pid;
    int control;
};

/* Starts it, as a member of the slice behind @socket_path; NULL: of none. False: errno. */
bool keeper_start(struct keeper *keeper, const char *socket_path);

/* A session's connection to it, or -1: it has gone (errno). */
int keeper_connect(const struct keeper *keeper);

/*
 * In a session: the keeper has @fd's memory from now on, as number @id. Before the client has it.
 * False with @gone: there is no keeper any more; without: the slice's memory does not allow it, or
 * there are too many.
 */
bool keeper_keep(int connection, uint32_t id, int fd, bool *gone);

/* In a session: it has given up what is number @id. */
void keeper_release(int connection, uint32_t id);

/* The life of the keeper's process: until @control's other end is closed. */
void keeper_run(int control, const char *socket_path);

#endif /* GUARD_KEEPER_H */
