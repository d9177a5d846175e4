/* SPDX-License-Identifier: MIT */
/* Limits of what one client, and all clients of a slice together, can make the guard hold. */
#ifndef GUARD_GUARD_LIMITS_H
#define GUARD_GUARD_LIMITS_H

#define GUARD_MAX_CLIENTS 64u /* each is a process, a render server and a render worker */

/*
 * Bytes of one message. A render worker takes commands in one packet of a socket, which is smaller
 * still.
 */
#define GUARD_MAX_MESSAGE (1u << 20)
#define GUARD_MAX_NAME    1024u /* bytes of CREATE_RENDERER */

#define GUARD_MAX_BLOBS     16384u
#define GUARD_MAX_SHM_BYTES (1ull << 30) /* blobs that are plain shared memory */
#define GUARD_MAX_BLOB_BYTES                                                                       \
    (1ull << 46) /* larger sizes make no sense, and would overflow when rounded */

#define GUARD_MAX_SYNCS 65536u
#define GUARD_MAX_WAITS 4096u
/* Syncs that all waits, and all pending fences, name together. */
#define GUARD_MAX_SYNC_ENTRIES 65536u

#endif /* GUARD_GUARD_LIMITS_H */
