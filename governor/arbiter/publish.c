// SPDX-License-Identifier: MIT
/* What the members of a slice find on their pages, beside what the schedulers write. */
#include "arbiter_state.h"

void publish_engines(struct slice *slice)
{
    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *connection = g_ptr_array_index(slice->connections, i);

        if (connection->pages.grant)
            atomic_store_explicit(&connection->pages.grant->engines,
                                  slice->scheduled[0]->settings.engines, memory_order_relaxed);
    }
}

void publish_members(struct slice *slice)
{
    uint32_t count = slice_members(slice->scheduled[0]);

    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *connection = g_ptr_array_index(slice->connections, i);

        if (connection->pages.grant)
            atomic_store_explicit(&connection->pages.grant->members, count, memory_order_relaxed);
    }
}

void publish_memory(struct slice *slice)
{
    slice->vram_peak = MAX(slice->vram_peak, slice->ledger.used);
    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *connection = g_ptr_array_index(slice->connections, i);
        struct governor_grant *grant = connection->pages.grant;

        if (!grant)
            continue;
        atomic_store_explicit(&grant->memory_limit, slice->ledger.limit, memory_order_relaxed);
        atomic_store_explicit(&grant->memory_used, slice->ledger.used, memory_order_relaxed);
        atomic_store_explicit(&grant->spill_limit, slice->ledger.spill_limit, memory_order_relaxed);
        atomic_store_explicit(&grant->spill_used, slice->ledger.spill_used, memory_order_relaxed);
    }
}
