// SPDX-License-Identifier: MIT
#include "rate_limit.h"

#include "clock.h"

/*
 * A loop that pauses after each submission sends two or three messages for it, so this is some
 * thousand submissions a second. Pipelines and loops without pauses send next to none. With few
 * members it is a tenth of a processor.
 */
#define TOKENS_PER_S 20000.0
#define TOKEN_NS     5000.0
#define MOST_TOKENS  1000.0
/* Sockets are read again at this number of tokens. */
#define REFILL_TOKENS 200.0
/* With this many members a look at the slice takes twice as long as with one, if all of them work.
 */
#define MEMBERS_OF_PRICE 64

void rate_limit_init(struct rate_limit *limit)
{
    *limit = (struct rate_limit){0};
    budget_init(&limit->tokens, TOKENS_PER_S / (double)NS_PER_S, MOST_TOKENS, clock_now());
}

void rate_limit_clear(struct rate_limit *limit)
{
    limit->refill = sd_event_source_disable_unref(limit->refill);
}

void rate_limit_spend(struct slice *slice, unsigned tokens)
{
    unsigned price = 1 + slice->connections->len / MEMBERS_OF_PRICE;

    budget_spend(&slice->limit.tokens, (double)tokens * price);
}

uint64_t rate_limit_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void rate_limit_spend_since(struct slice *slice, uint64_t begin)
{
    budget_spend(&slice->limit.tokens, (double)(rate_limit_clock() - begin) / TOKEN_NS);
}

void rate_limit_close(struct slice *slice, int connection)
{
    if (!rights_close(&slice->arbiter->rights, connection))
        rate_limit_spend(slice, RATE_RIGHTS);
}

static bool set_refill(struct slice *slice, uint64_t now);

static int on_refill(sd_event_source *source, uint64_t usec, void *data)
{
    struct slice *slice = data;
    uint64_t now = clock_now();

    (void)source;
    (void)usec;
    rate_limit_clear(&slice->limit);
    /* Disabling many sockets has cost more than is there yet. */
    if (budget_balance(&slice->limit.tokens, now) < REFILL_TOKENS && set_refill(slice, now))
        return 0;
    sd_event_source_set_enabled(slice->io, SD_EVENT_ON);
    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *connection = g_ptr_array_index(slice->connections, i);

        sd_event_source_set_enabled(connection->io, SD_EVENT_ON);
    }
    return 0;
}

static bool set_refill(struct slice *slice, uint64_t now)
{
    struct rate_limit *limit = &slice->limit;
    uint64_t at = budget_when(&limit->tokens, REFILL_TOKENS, now) / NS_PER_US + 1;

    return limit->refill || sd_event_add_time(slice->arbiter->event, &limit->refill,
                                              CLOCK_MONOTONIC, at, 1000, on_refill, slice) >= 0;
}

bool rate_limit_admits(struct slice *slice, sd_event_source *source)
{
    uint64_t now = clock_now();

    /* After a restart all members reconnect at once, and must be back before memory is granted. */
    if (!slice->arbiter->settled)
        return true;
    if (!slice->limit.refill && budget_balance(&slice->limit.tokens, now) > 0)
        return true;
    if (!set_refill(slice, now))
        return true;
    sd_event_source_set_enabled(source, SD_EVENT_OFF);
    rate_limit_spend(slice, RATE_MESSAGE);
    return false;
}
