// SPDX-License-Identifier: MIT
#include "credits.h"

/* Of a message, or less: a short one takes 768 bytes of its socket's room. */
#define BYTES_OF_ONE 1024u

uint64_t credits_cost(size_t bytes)
{
    return 1 + bytes / BYTES_OF_ONE;
}

uint64_t credits_in_flight(const struct credits *credits)
{
    return credits->sent - credits->answered;
}

void credits_spend(struct credits *credits, size_t bytes, bool may_wait)
{
    credits->sent += credits_cost(bytes);
    if (may_wait)
        credits->waits = credits->sent;
}

void credits_spend_fence(struct credits *credits, uint32_t ring_idx, uint64_t id)
{
    credits_spend(credits, 0, ring_idx != 0);
    if (ring_idx != 0)
        return;
    credits->fence = id;
    credits->fence_sent = credits->sent;
}

void credits_fence_answered(struct credits *credits)
{
    credits->fence = 0;
    if (credits->answered < credits->fence_sent)
        credits->answered = credits->fence_sent;
}

void credits_blob_answered(struct credits *credits)
{
    credits_spend(credits, 0, false);
    credits->answered = credits->sent;
}
