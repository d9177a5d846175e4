// SPDX-License-Identifier: MIT
/* After a restart: the members of the previous arbiter come back. */
#include "clock.h"
#include "connection.h"
#include "moves.h"

/* Members reconnect within 100 ms. */
#define SETTLE_NS (250 * NS_PER_MS)

static bool resume_one(struct slice *slice)
{
    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *connection = g_ptr_array_index(slice->connections, i);

        if (!connection_resume(connection)) {
            connection_free(connection);
            return true;
        }
    }
    return false;
}

static int on_settled(sd_event_source *source, uint64_t usec, void *data)
{
    struct arbiter *arbiter = data;
    GHashTableIter iter;
    void *slice;

    (void)source;
    (void)usec;
    arbiter->settled = true;
    g_hash_table_iter_init(&iter, arbiter->slices);
    while (g_hash_table_iter_next(&iter, NULL, &slice)) {
        /* Dropping one changes the list. */
        while (resume_one(slice))
            ;
    }
    moves_run(arbiter);
    return 0;
}

void settle_begin(struct arbiter *arbiter)
{
    if (arbiter->settle_timer)
        return;
    arbiter->restarted_ns = clock_since_boot();
    if (sd_event_add_time(arbiter->event, &arbiter->settle_timer, CLOCK_MONOTONIC,
                          (clock_now() + SETTLE_NS) / NS_PER_US, 1000, on_settled, arbiter) >= 0)
        arbiter->settled = false;
}
