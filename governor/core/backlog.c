// SPDX-License-Identifier: MIT
#include "backlog.h"

#include "clock.h"

/* How far apart markers are: so many submissions, or a part of what may be queued. */
#define EVERY_FIRST 4u
#define EVERY_MOST  4096u
#define APART       7u
/* The mean is of this time, at most. */
#define RECENT_MOST_NS (400 * NS_PER_MS)
/* No submission is believed to take longer on average. */
#define MEAN_MOST_NS (10 * NS_PER_S)

static struct backlog_marker *marker_at(struct backlog *backlog, uint32_t index)
{
    return &backlog->markers[index % BACKLOG_MARKERS];
}

static uint64_t between(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static uint64_t since(uint64_t at, uint64_t now)
{
    return now > at ? now - at : 0;
}

void backlog_init(struct backlog *backlog)
{
    *backlog = (struct backlog){.every = EVERY_FIRST, .due = EVERY_FIRST};
}

bool backlog_waits(const struct backlog *backlog)
{
    return backlog->head != backlog->tail;
}

bool backlog_place(struct backlog *backlog, uint64_t number, uint64_t most_ns, uint64_t now)
{
    backlog->apart_ns = most_ns / APART;
    backlog->due = number + backlog->every;
    if (backlog->tail - backlog->head == BACKLOG_MARKERS)
        return false;
    *marker_at(backlog, backlog->tail++) =
        (struct backlog_marker){.number = number, .placed_at = now};
    return true;
}

/*
 * @count submissions took as long as since the last marker passed, if this one was there by then.
 * Otherwise the GPU may have had nothing to do for a while, but not since it was placed. Ends that
 * are seen late are seen together: only their sum says something.
 */
static void learn(struct backlog *backlog, uint64_t count, uint64_t placed_at, uint64_t now)
{
    uint64_t most = since(backlog->done_at, now), least = since(placed_at, now);

    if (placed_at <= backlog->done_at) {
        backlog->recent_ns += most;
        backlog->recent_count += count;
    } else if (!backlog->recent_count || backlog->mean_ns > most / count ||
               backlog->mean_ns < least / count) {
        backlog->recent_ns = backlog->mean_ns > most / count && backlog->done_at ? most : least;
        backlog->recent_count = count;
    }
    if (backlog->recent_ns > RECENT_MOST_NS) {
        backlog->recent_ns /= 2;
        backlog->recent_count = (backlog->recent_count + 1) / 2;
    }
    backlog->mean_ns = between(backlog->recent_ns / backlog->recent_count, 1, MEAN_MOST_NS);
    backlog->every = (uint32_t)between(backlog->apart_ns / backlog->mean_ns, 1, EVERY_MOST);
}

/* All markers before it have passed, too. */
static void take_first(struct backlog *backlog, uint64_t now)
{
    const struct backlog_marker *marker = marker_at(backlog, backlog->head++);

    if (marker->number <= backlog->done)
        return;
    learn(backlog, marker->number - backlog->done, marker->placed_at, now);
    backlog->done = marker->number;
    backlog->done_at = now;
    if (backlog->due > marker->number + backlog->every && !backlog_waits(backlog))
        backlog->due = marker->number + backlog->every;
}

void backlog_pass(struct backlog *backlog, uint64_t number, uint64_t now)
{
    for (uint32_t i = backlog->head; i != backlog->tail; i++) {
        if (marker_at(backlog, i)->number == number)
            marker_at(backlog, i)->passed = true;
    }
    while (backlog_waits(backlog) && marker_at(backlog, backlog->head)->passed)
        take_first(backlog, now);
}

uint64_t backlog_since(const struct backlog *backlog)
{
    const struct backlog_marker *first = &backlog->markers[backlog->head % BACKLOG_MARKERS];

    return backlog_waits(backlog) && first->placed_at > backlog->done_at ? first->placed_at
                                                                         : backlog->done_at;
}

uint64_t backlog_left(uint64_t count, uint64_t mean_ns, uint64_t from, uint64_t now)
{
    uint64_t most = MEAN_MOST_NS / (between(mean_ns, 0, MEAN_MOST_NS) + 1);
    uint64_t queued = count > most ? MEAN_MOST_NS : count * mean_ns;

    return queued - between(since(from, now), 0, queued);
}

uint64_t backlog_ns(const struct backlog *backlog, uint64_t number, uint64_t now)
{
    const struct backlog_marker *first = &backlog->markers[backlog->head % BACKLOG_MARKERS];
    uint64_t count = number > backlog->done ? number - backlog->done : 0;
    uint64_t left = backlog_left(count, backlog->mean_ns, backlog_since(backlog), now);
    uint64_t waited = backlog_waits(backlog) ? since(first->placed_at, now) : 0;

    /* What takes so long was there when the marker was placed, and it is likely as much now. */
    return left > waited ? left : waited;
}

bool backlog_is_full(const struct backlog *backlog, uint64_t number, uint64_t most_ns, uint64_t now)
{
    if (!backlog_waits(backlog))
        return false;
    return !backlog->mean_ns || backlog->tail - backlog->head == BACKLOG_MARKERS ||
           backlog_ns(backlog, number, now) > most_ns;
}
