// SPDX-License-Identifier: MIT
#include "session.h"

#include "vtest.h"

#include <virglrenderer.h>

/* A worker takes commands in one packet of a socket, which has room for 208 KiB. */
#define SUBMIT_WORDS_MAX ((200u << 10) / sizeof(uint32_t))

#define BATCH_WORDS (sizeof(struct vtest_batch) / sizeof(uint32_t))

static bool is_inside(uint64_t offset, uint64_t size, uint32_t words)
{
    return offset + size <= words;
}

static const char *find_fault(const struct vtest_batch *batch, uint32_t words)
{
    if (batch->flags & ~VTEST_SUBMIT_RING_IDX)
        return "its submission has unknown flags";
    if (!is_inside(batch->cmd_offset, batch->cmd_size, words) ||
        !is_inside(batch->sync_offset, (uint64_t)batch->sync_count * VTEST_SYNC_ENTRY_WORDS, words))
        return "its submission names data outside of it";
    if ((batch->flags & VTEST_SUBMIT_RING_IDX) && batch->ring_idx >= VTEST_TIMELINES)
        return "its submission names an unknown ring";
    return NULL;
}

static void *map_ring(void *session, uint32_t resource, uint64_t *size)
{
    return session_map_shm(session, resource, size);
}

/* A ring is looked at with each wait for it, so it stays mapped. */
static void unmap_ring(void *session G_GNUC_UNUSED, uint32_t resource G_GNUC_UNUSED)
{
}

static void send_commands(void *session G_GNUC_UNUSED, uint32_t *commands, uint32_t words)
{
    virgl_renderer_submit_cmd(commands, (int)SESSION_CONTEXT, (int)words);
}

static const struct venus_ring_access ring_access = {map_ring, unmap_ring, send_commands};

void session_fail_rings(struct session *session)
{
    venus_rings_fail(&session->rings, &ring_access, session);
}

bool session_rests(struct session *session)
{
    return !sync_fence_pending(&session->syncs, 0) &&
           venus_rings_rest(&session->rings, &ring_access, session);
}

void session_wake_rings(struct session *session, bool said)
{
    if (!venus_rings_wake(&session->rings, &ring_access, session) || !said)
        return;
    if (!session->woken)
        g_message("the render worker of a client, %s, slept with commands in a ring, and is woken",
                  session->name);
    session->woken = true;
}

/* A wait for a ring that is over need not wake the worker (venus_rings.h). */
static bool submit_commands(struct session *session, uint32_t *commands, uint32_t words)
{
    if (words == 0 ||
        venus_rings_wait_is_over(&session->rings, commands, words, &ring_access, session))
        return true;
    if (words > SUBMIT_WORDS_MAX)
        return session_fail(session, "it sends %u words of commands at once", words);
    venus_rings_patch(commands, words);
    if (!venus_rings_learn(&session->rings, commands, words))
        return session_fail(session, "it makes more than %u rings", VENUS_RINGS_MAX);
    return virgl_renderer_submit_cmd(commands, (int)SESSION_CONTEXT, (int)words) == 0 ||
           session_fail(session, "its render worker does not take commands");
}

static bool submit_batch(struct session *session, const struct vtest_batch *batch,
                         const uint32_t *data)
{
    const struct sync_entries entries = {
        .words = data + batch->sync_offset,
        .count = batch->sync_count,
    };
    uint32_t *commands = (uint32_t *)data + batch->cmd_offset; /* in the session's own copy */
    const char *fault = NULL;

    if (!submit_commands(session, commands, batch->cmd_size))
        return false;
    if (batch->sync_count == 0)
        return true;
    if (batch->flags & VTEST_SUBMIT_RING_IDX)
        return session_fence(session, batch->ring_idx, entries, 0);
    return sync_write(&session->syncs, entries, &fault) || session_fail(session, "%s", fault);
}

bool session_submit(struct session *session, const uint32_t *data, uint32_t words)
{
    const struct vtest_batch *batches = (const void *)(data + 1);
    uint32_t count = data[0];

    if (count > (words - 1) / BATCH_WORDS)
        return session_fail(session, "its submission names data outside of it");
    for (uint32_t i = 0; i < count; i++) {
        /* A copy: commands may overlap their own batch, and patching them would change it. */
        const struct vtest_batch batch = batches[i];
        const char *fault = find_fault(&batch, words);

        if (fault)
            return session_fail(session, "%s", fault);
        if (!submit_batch(session, &batch, data))
            return false;
    }
    return true;
}
