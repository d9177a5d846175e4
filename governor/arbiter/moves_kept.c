// SPDX-License-Identifier: MIT
/* Members that say they gave memory are judged by the library's readings. */
#include "moves.h"
#include "clock.h"

#define LOOK_NS (NS_PER_S / 2)

static struct connection *connection_at(const struct slice *slice, guint i)
{
    return g_ptr_array_index(slice->connections, i);
}

/* Of members together, and of none by itself. */
static uint64_t shared_of(const struct slice *slice)
{
    uint64_t bytes = slice->ledger.used - slice->ledger.driver - slice->ledger.ungoverned;

    for (guint i = 0; i < slice->connections->len; i++)
        bytes -= connection_at(slice, i)->holding.device;
    return bytes;
}

static void judge_slice(struct slice *slice, const struct readings *readings)
{
    uint64_t shared = shared_of(slice);

    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *connection = connection_at(slice, i);
        struct moves_member *member = &connection->moves;
        const struct kept_claim claim = {
            .pid = peer_pid(connection->fd),
            .there = member->residency.resident + member->unbelieved + connection->holding.driver,
            .out = member->residency.out,
            .shared = shared,
        };

        if (member->residency.slice)
            kept_judge(&member->account, readings, &claim);
    }
}

static void forgive_in(const struct slice *slice, uint64_t now)
{
    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *connection = connection_at(slice, i);
        uint64_t bytes = kept_forgive(&connection->moves.account, now);

        if (bytes)
            g_message("slice %s: process %d has not given %" G_GUINT64_FORMAT
                      " bytes for 30 s; they are now taken for its own, and its memory comes back; "
                      "if others of this GPU find no room, end it",
                      slice->id, (int)peer_pid(connection->fd), bytes);
    }
}

static bool awaits_reading(const struct slice *slice)
{
    for (guint i = 0; i < slice->connections->len; i++) {
        const struct moves_member *member = &connection_at(slice, i)->moves;

        if (member->residency.out && (!member->account.judged || member->account.kept))
            return true;
    }
    return false;
}

/* True: somebody is to be judged by another reading. */
static bool judge_all(struct arbiter *arbiter, bool is_new, uint64_t now)
{
    bool awaited = false;
    GHashTableIter iter;
    void *slice;

    g_hash_table_iter_init(&iter, arbiter->slices);
    while (g_hash_table_iter_next(&iter, NULL, &slice)) {
        if (is_new)
            judge_slice(slice, &arbiter->moves.readings);
        forgive_in(slice, now);
        awaited |= awaits_reading(slice);
    }
    return awaited;
}

uint64_t moves_look_for_kept(struct arbiter *arbiter, uint64_t now)
{
    struct moves *moves = &arbiter->moves;
    bool is_due = now >= moves->judged_at + LOOK_NS;
    bool awaited = judge_all(arbiter, is_due && readings_look(&moves->readings), now);

    if (is_due)
        moves->judged_at = now;
    /* Without a first reading there is no such library. */
    if (!awaited || !moves->readings.at)
        return TIME_NEVER;
    if (is_due)
        readings_want(&moves->readings);
    return moves->judged_at + LOOK_NS;
}
