/* SPDX-License-Identifier: MIT */
/* Limits of what one client, and all clients of a slice together, can make the guard hold. */
#ifndef GUARD_GUARD_LIMITS_H
#define GUARD_GUARD_LIMITS_H

#define GUARD_CLIENTS_MAX 64u /* each is a process, a render server and a render worker */

/*
 * Bytes of one message. A render worker takes commands in one packet of a socket, which is smaller
 * still.
 */
#define GUARD_MESSAGE_MAX (1u << 20)
#define GUARD_NAME_MAX    1024u /* bytes of CREATE_RENDERER */

#define GUARD_BLOBS_MAX     16384u
#define GUARD_SHM_BYTES_MAX (1ull << 30) /* blobs that are plain shared memory */
#define GUARD_BLOB_BYTES_MAX                                                                       \
    (1ull << 46) /* larger sizes make no sense, and would overflow when rounded */

/*
 * DMA buffers of all clients together: what the arbiter remembers of one process
 * (LEDGER_MEMBER_OBJECTS).
 */
#define GUARD_KEPT_MAX 4096u
/* The same of memfds: a part of the files that the keeper may have open. */
#define GUARD_KEPT_SHM_MAX 65536u

#define GUARD_SYNCS_MAX 65536u
#define GUARD_WAITS_MAX 4096u
/* Syncs that all waits, and all pending fences, name together. */
#define GUARD_SYNC_ENTRIES_MAX 65536u

#endif /* GUARD_GUARD_LIMITS_H */
