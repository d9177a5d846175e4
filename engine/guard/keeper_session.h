/* SPDX-License-Identifier: MIT */
/*
 * A session's messages to the keeper (keeper.h).
 *
 * The keeper empties shared memory as soon as it is released. A render worker that still polls a
 * ring there would read zeroes, and end its context: Mesa 25 destroys a ring, and returns its
 * memory at once, without waiting for the worker. So a release waits for a fence on ring 0 that the
 * worker was sent after the memory was taken from it.
 */
#ifndef GUARD_KEEPER_SESSION_H
#define GUARD_KEEPER_SESSION_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct keeper_session
 * @connection: the caller's; -1: there is no keeper
 * @last: number of the last memory that the keeper was given
 * @releases: struct release, in the order of their fences; under @lock
 */
struct keeper_session {
    int connection;
    uint32_t last;
    GMutex lock;
    GQueue releases;
};

void keeper_session_init(struct keeper_session *keeper);
void keeper_session_clear(struct keeper_session *keeper);

/*
 * The keeper holds @fd's memory from now on, by the returned number. To be called before the client
 * has it. 0 with @gone: the keeper has ended; without: the slice's memory does not allow it, or
 * there are too many.
 */
uint32_t keeper_keep(struct keeper_session *keeper, int fd, bool shm, bool *gone);

/* The session has released the memory @number, and the worker was, or will be, sent @fence. */
void keeper_release_after(struct keeper_session *keeper, uint32_t number, uint64_t fence);

/* From any thread: the worker has answered @fence, of ring 0, and so all before it. */
void keeper_fence_done(struct keeper_session *keeper, uint64_t fence);

#endif /* GUARD_KEEPER_SESSION_H */
