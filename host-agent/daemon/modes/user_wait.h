/* SPDX-License-Identifier: MIT */
/*
 * Waiting until nobody uses a GPU. No event reports that a process closes a device node, so its
 * users are looked for each second. Who they are is said once for each list of them.
 */
#ifndef VGPUD_MODES_USER_WAIT_H
#define VGPUD_MODES_USER_WAIT_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/modes/mode_work.h"

/*
 * @users: empty: nobody uses the GPU; else the time is over, and these still do. NULL with @error:
 * they can't be found out, or with G_IO_ERROR_CANCELLED the wait was ended.
 */
typedef void (*UserWaitDone)(const char *const *users, const GError *error, void *data);

/**
 * UserWait
 * @look: finds the users that are waited for, and tells @func later
 * @with_slices: these and the users of slices; to be freed
 * @until: of the monotonic clock; 0: for ever
 * @twice: nobody must have been found twice: while an arbiter is restarted, the users of its slices
 * may be missing
 * @cancellable: ends the wait; the host is not used after that
 * @asker: who waits, on the bus, and is told by name who uses the GPU; NULL: nobody
 * @said: a sentence for @data, too; may be NULL
 * @done: called once, later
 */
typedef struct {
    Host *host;
    const char *gpu;
    void (*look)(UsersFunc func, void *func_data, void *data);
    GStrv (*with_slices)(const GStrv users, void *data);
    gint64 until;
    gboolean twice;
    GCancellable *cancellable;
    const char *asker;
    void (*said)(const char *sentence, void *data);
    UserWaitDone done;
    void *data;
} UserWait;

/* @wait: copied. */
void user_wait_start(const UserWait *wait);

#endif
