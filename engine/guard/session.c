// SPDX-License-Identifier: MIT
#include "session.h"

#include "vtest.h"
#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <virglrenderer.h>

/* How often rings whose worker sleeps (venus_rings.h) are checked. */
#define PROBE_INTERVAL (5 * G_TIME_SPAN_SECOND)

/* How often a session that receives nothing checks whether its render worker lives. */
#define IDLE_MS 5000

/* Less than that, so that each time is one check. */
#define IDLE_INTERVAL (4 * G_TIME_SPAN_SECOND)

/*
 * A client can cause this as often as it sends a byte. What is said of its worker can only be true
 * here: while a message is being read, it may be the one that wakes the worker.
 */
static bool on_idle(void *data)
{
    struct session *session = data;
    bool rest;

    if (g_get_monotonic_time() - session->probed < IDLE_INTERVAL)
        return true;
    rest = session_rests(session);
    if (rest && session->rests) {
        session->wire.idle_ms = -1;
        return true;
    }
    session->rests = rest;
    return session_probe(session, true);
}

/* Of a wait for syncs. A client that is gone is noticed by its own end. */
static bool answer_wait(void *data, int fd)
{
    return session_answer_fd(data, VTEST_SYNC_WAIT, NULL, 0, fd);
}

/* Before anything else is answered, and before this session's end hangs up what the client has. */
static bool settle_wait(void *data)
{
    struct session *session = data;
    const char *fault = NULL;

    session->wire.soon_us = 0;
    return sync_wait_settle(&session->syncs, &fault) || session_fail(session, "%s", fault);
}

bool session_settle_wait(struct session *session)
{
    return !session->wire.soon_us || settle_wait(session);
}

void session_init(struct session *session, int fd)
{
    *session = (struct session){.worker = -1};
    keeper_session_init(&session->keeper);
    if (!wire_init(&session->wire, fd))
        session_fail(session, "its connection cannot be read: %s", g_strerror(errno));
    session->wire.idle = on_idle;
    session->wire.soon = settle_wait;
    session->wire.data = session;
    session->wire.idle_ms = IDLE_MS;
    slots_init(&session->blobs, g_free);
    sync_table_init(&session->syncs);
    session->syncs.answer = answer_wait;
    session->syncs.data = session;
}

/* The session's thread is somewhere in wire_read(), or soon will be. */
static void *watch_worker(void *data)
{
    const struct session *session = data;
    struct pollfd end = {.fd = session->worker};

    while (poll(&end, 1, -1) < 0 && errno == EINTR)
        ;
    shutdown(session->wire.fd, SHUT_RD);
    return NULL;
}

void session_watch_worker(struct session *session)
{
    if (session->worker >= 0)
        session->watch = g_thread_new("watch-worker", watch_worker, session);
}

void session_clear(struct session *session)
{
    if (session->context)
        virgl_renderer_context_destroy(SESSION_CONTEXT);
    if (session->worker >= 0) {
        shutdown(session->worker, SHUT_RDWR);
        g_thread_join(session->watch);
        close(session->worker);
    }
    session_unmap_blobs(session);
    for (uint32_t id = 1; id <= session->blobs.items->len; id++) {
        if (slots_find(&session->blobs, id))
            virgl_renderer_resource_unref(id);
    }
    slots_clear(&session->blobs);
    sync_table_clear(&session->syncs);
    keeper_session_clear(&session->keeper);
    wire_clear(&session->wire);
    venus_rings_clear(&session->rings);
    g_free(session->data);
    g_free(session->fault);
}

bool session_fail(struct session *session, const char *format, ...)
{
    va_list args;

    if (session->fault)
        return false;
    va_start(args, format);
    session->fault = g_strdup_vprintf(format, args);
    va_end(args);
    return false;
}

/* A message of the protocol, for g_free(). */
static uint32_t *new_answer(uint32_t command, const uint32_t *data, uint32_t words, size_t *size)
{
    uint32_t *answer = g_new(uint32_t, VTEST_HEADER_WORDS + words);

    answer[0] = words;
    answer[1] = command;
    if (words)
        memcpy(answer + VTEST_HEADER_WORDS, data, words * sizeof(*data));
    *size = (VTEST_HEADER_WORDS + words) * sizeof(*answer);
    return answer;
}

bool session_answer(struct session *session, uint32_t command, const uint32_t *data, uint32_t words)
{
    size_t size;
    g_autofree uint32_t *answer = new_answer(command, data, words, &size);

    return wire_write(&session->wire, answer, size);
}

bool session_answer_fd(struct session *session, uint32_t command, const uint32_t *data,
                       uint32_t words, int fd)
{
    size_t size;
    g_autofree uint32_t *answer = new_answer(command, data, words, &size);

    return wire_write_fd(&session->wire, answer, size, fd);
}

void session_fence_done(void *data, uint32_t ctx_id G_GNUC_UNUSED, uint32_t ring_idx, uint64_t id)
{
    struct session *session = data;

    /* All fences of a dead worker are reported as done. */
    if (worker_is_gone(session->worker))
        return;
    sync_fence_done(&session->syncs, ring_idx, id);
    if (ring_idx == 0)
        keeper_fence_done(&session->keeper, id);
}

/* The fence is added before virglrenderer knows of it: its thread may be faster than this one. */
bool session_fence(struct session *session, uint32_t ring_idx, struct sync_entries entries,
                   uint32_t kept)
{
    const char *fault = NULL;
    uint64_t fence = sync_fence_begin(&session->syncs, ring_idx, entries, &fault);

    if (!fence)
        return session_fail(session, "%s", fault);
    if (kept)
        keeper_release_after(&session->keeper, kept, fence);
    if (virgl_renderer_context_create_fence(SESSION_CONTEXT, VIRGL_RENDERER_FENCE_FLAG_MERGEABLE,
                                            ring_idx, fence) == 0)
        return true;
    sync_fence_cancel(&session->syncs, fence);
    return session_fail(session, "its render worker has ended");
}

bool session_probe(struct session *session, bool idle)
{
    const struct sync_entries none = {0};

    session->probed = g_get_monotonic_time();
    session_wake_rings(session, idle);
    if (!session->context || sync_fence_pending(&session->syncs, 0))
        return true;
    return session_fence(session, 0, none, 0);
}

bool session_note_message(struct session *session)
{
    session->rests = false;
    session->wire.idle_ms = IDLE_MS;
    return !session->context || g_get_monotonic_time() - session->probed < PROBE_INTERVAL ||
           session_probe(session, false);
}
