// SPDX-License-Identifier: MIT
/* Reads a client's messages, and has the commands in them executed. */
#include "session.h"

#include "vtest.h"
#include "worker.h"

#include <glib.h>

/* Memory that a session keeps between two messages. */
#define KEPT_DATA 65536u

static bool read_data(struct session *session, size_t size)
{
    size_t words = (size + sizeof(uint32_t) - 1) / sizeof(uint32_t);

    if (size > session->data_size || session->data_size > KEPT_DATA) {
        g_free(session->data);
        session->data_size = MAX(words, 64) * sizeof(uint32_t);
        session->data = g_malloc(session->data_size);
    }
    if (size == 0)
        return true;
    switch (wire_read(&session->wire, session->data, size)) {
    case WIRE_OK:
        return true;
    case WIRE_IDLE:
        return false;
    default:
        return session_fail(session, "its message ends in the middle");
    }
}

/* True with *@more false if the client has disconnected in an orderly way. */
static bool serve_message(struct session *session, bool *more)
{
    uint32_t header[VTEST_HEADER_WORDS];
    size_t size;
    enum wire_result result = wire_read(&session->wire, header, sizeof(header));

    if (!session_settle_wait(session))
        return false;
    switch (result) {
    case WIRE_OK:
        break;
    case WIRE_END:
        *more = false;
        return true;
    case WIRE_IDLE:
        return false;
    default:
        return session_fail(session, "its message ends in the middle");
    }
    return session_note_message(session) && command_check(session, header[1], header[0], &size) &&
           read_data(session, size) && command_run(session, header[1], session->data, size);
}

/* The rings come first: what the client waits for hangs up when this process ends. */
bool session_run(struct session *session)
{
    bool more = true;

    /* A client that disconnects while it is answered ends this without a fault. */
    while (!session->fault && more && serve_message(session, &more))
        ;
    if (worker_is_gone(session->worker))
        session_fail(session, "its render worker has ended");
    if (session->fault)
        session_fail_rings(session);
    return !session->fault;
}
