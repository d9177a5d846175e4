/* SPDX-License-Identifier: MIT */
/*
 * One client: its connection, its context, and its objects. A process serves one client; what it
 * does in here may block or crash without another client's notice (clients.h).
 *
 * Everything that a client sends is untrusted. Each message is copied once, its length is checked
 * against its command before it is read, and all that it names against the client's objects. The
 * first fault ends the session.
 */
#ifndef GUARD_SESSION_H
#define GUARD_SESSION_H

#include "keeper_session.h"
#include "slots.h"
#include "sync.h"
#include "venus_rings.h"
#include "wire.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* A process has one context. */
#define SESSION_CONTEXT 1u

/**
 * struct session
 * @name: what the client calls itself, printable; "" before it has
 * @context: it has its context
 * @refused: it was refused memory once; only the first time is logged
 * @woken: the same, of its render worker that slept
 * @fault: why the session ends, one line
 * @shm_bytes: of @blobs that are plain shared memory
 * @worker: the connection of the context's render worker (worker.h); -1: there is none
 * @watch: a thread that ends the client's messages when the worker has ended
 * @rests: its rings were at rest at the last look, and it has sent nothing since
 * @probed: when the render worker was last asked whether it lives (monotonic)
 */
struct session {
    struct wire wire;
    char name[32];
    bool context;
    bool refused;
    bool woken;
    char *fault;
    struct keeper_session keeper;
    struct slots blobs;
    uint64_t shm_bytes;
    struct sync_table syncs;
    struct venus_rings rings;
    int worker;
    GThread *watch;
    bool rests;
    gint64 probed;
    uint32_t *data;
    size_t data_size;
};

/*
 * The caller keeps @fd, and what it sets as @keeper.connection. virglrenderer must be started with
 * session_fence_done() and the session.
 */
void session_init(struct session *session, int fd);

/*
 * Serves the client until it disconnects: true. False: it was dropped, and session->fault says why.
 */
bool session_run(struct session *session);

/* Releases the context with all of its objects. virglrenderer must still be there. */
void session_clear(struct session *session);

/* For serve.c. Answers a wait for syncs that is due. False: the session has failed. */
bool session_settle_wait(struct session *session);

/*
 * For serve.c: a message has come, and the render worker is looked after if it is time. False: the
 * session has failed.
 */
bool session_note_message(struct session *session);

/* A renderer_fence. */
void session_fence_done(void *session, uint32_t ctx_id, uint32_t ring_idx, uint64_t id);

/* For handlers of commands. Ends the session: returns false. */
bool session_fail(struct session *session, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* False: the client has disconnected. */
bool session_answer(struct session *session, uint32_t command, const uint32_t *data,
                    uint32_t words);

/* The same, with a descriptor, which stays the caller's. */
bool session_answer_fd(struct session *session, uint32_t command, const uint32_t *data,
                       uint32_t words, int fd);

void session_unmap_blobs(struct session *session);

/*
 * The protocol's commands (commands.c). Whether a client may send @command of @length now; @size:
 * the bytes of its data. Executes it. False: the session has failed, or the client has
 * disconnected.
 */
bool command_check(struct session *session, uint32_t command, uint32_t length, size_t *size);
bool command_run(struct session *session, uint32_t command, const uint32_t *data, size_t size);

/* Handlers: @data has @words words, a number that the table of commands allows. */
bool session_create_blob(struct session *session, const uint32_t *data, uint32_t words);
bool session_unref_blob(struct session *session, const uint32_t *data, uint32_t words);
bool session_submit(struct session *session, const uint32_t *data, uint32_t words);

/*
 * Wakes the render worker if it sleeps with commands in a ring, which is logged once if @said;
 * marks it as lost in all rings; whether it rests over all of them. See venus_rings.h.
 */
void session_wake_rings(struct session *session, bool said);
void session_fail_rings(struct session *session);
bool session_rests(struct session *session);

/* From here on the session ends when its context's render worker, session->worker, ends. */
void session_watch_worker(struct session *session);

/*
 * A blob that is plain shared memory, mapped until the client returns it; NULL: it is another kind,
 * or cannot be mapped.
 */
void *session_map_shm(struct session *session, uint32_t id, uint64_t *size);

/*
 * Asks the context's render worker for a fence on a ring. When it is done, the syncs @entries
 * advance, and the keeper's @kept is released; 0: nothing of it. False: the session has failed.
 */
bool session_fence(struct session *session, uint32_t ring_idx, struct sync_entries entries,
                   uint32_t kept);

/*
 * Checks that the context's render worker lives, by a fence on ring 0, which a living worker
 * signals at once. @idle: no message of the client is being read. False: it has ended.
 */
bool session_probe(struct session *session, bool idle);

#endif /* GUARD_SESSION_H */
