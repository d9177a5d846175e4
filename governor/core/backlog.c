// SPDX-License-Identifier: MIT
#include "backlog.h"

#include "clock.h"

/* How far apart markers are: so many submissions, or a part of what may be queued. */
#define EVERY_FIRST 4u
#define EVERY_MOST  256u
#define APART       7u
/* The mean is of this time, at most. */
#define RECENT_MOST_NS (400 * NS_PER_MS)
/* What is queued may wait for the very thread that waits for a marker. */
#define PATIENCE_LEAST_NS (100 * NS_PER_MS)
#define PATIENCE_MOST_NS  NS_PER_S
/* No submission is believed to take longer on average. */
#define MEAN_MOST_NS (10 * NS_PER_S)

static uint64_t clamp_ns(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static uint64_t time_since(uint64_t at, uint64_t now)
{
    return now > at ? now - at : 0;
}

void backlog_init(struct backlog *backlog)
{
    *backlog = (struct backlog){.every = EVERY_FIRST, .due = EVERY_FIRST};
}

bool backlog_waits(const struct backlog *backlog)
{
    return backlog->marker_count > 0;
}

/*
 * @every later or up to a quarter sooner, so that no pattern of submissions keeps to it: of several
 * queues, the one with much work has most of the markers.
 */
static uint64_t due_after(const struct backlog *backlog, uint64_t number)
{
    uint64_t random = (number * 0x9E3779B97F4A7C15u) >> 32, every = backlog->every;

    return number + every - random % ((every + 3) / 4 + (every > 1));
}

bool backlog_place(struct backlog *backlog, uint64_t number, uint64_t count, uint64_t most_ns,
                   uint64_t now)
{
    uint64_t since_last = number - clamp_ns(backlog->placed, 0, number);

    backlog->apart_ns = most_ns / APART;
    backlog->due = due_after(backlog, number);
    if (backlog->marker_count == BACKLOG_MARKERS)
        return false;
    backlog->markers[backlog->marker_count++] = (struct backlog_marker){
        .number = number,
        .count = count ? count : since_last,
        .of_queue = count,
        .placed_at = now,
    };
    backlog->placed = number;
    return true;
}

/*
 * @marker's submissions took as long as since the last marker passed, if this one was there by
 * then. Otherwise the GPU may have had nothing to do for a while, but not since it was placed. Ends
 * that are seen late are seen together: only their sum says something.
 */
static void learn_in_order(struct backlog *backlog, const struct backlog_marker *marker,
                           uint64_t at)
{
    uint64_t most = time_since(backlog->done_at, at), least = time_since(marker->placed_at, at);
    uint64_t count = marker->count, mean = backlog->mean_ns;

    if (marker->placed_at <= backlog->done_at) {
        backlog->recent_ns += most;
        backlog->recent_count += count;
    } else if (!backlog->recent_count || mean > most / count || mean < least / count) {
        backlog->recent_ns = mean > most / count && backlog->done_at ? most : least;
        backlog->recent_count = count;
    }
}

/*
 * Of several queues, markers come close together, each for submissions that were spread over a
 * longer time. Only over many of them is the time that of the submissions. The GPU may have had
 * nothing to do before the marker was placed: then the rest took what is known.
 */
static void learn_of_queue(struct backlog *backlog, const struct backlog_marker *marker,
                           uint64_t at)
{
    uint64_t before = marker->count * backlog->mean_ns;

    backlog->recent_ns +=
        clamp_ns(time_since(backlog->done_at, at), 0, time_since(marker->placed_at, at) + before);
    backlog->recent_count += marker->count;
}

static void learn_marker(struct backlog *backlog, const struct backlog_marker *marker, uint64_t at)
{
    if (marker->of_queue)
        learn_of_queue(backlog, marker, at);
    else
        learn_in_order(backlog, marker, at);
    if (backlog->recent_ns > RECENT_MOST_NS) {
        backlog->recent_ns /= 2;
        backlog->recent_count = (backlog->recent_count + 1) / 2;
    }
    backlog->mean_ns = clamp_ns(backlog->recent_ns / backlog->recent_count, 1, MEAN_MOST_NS);
    backlog->every = (uint32_t)clamp_ns(backlog->apart_ns / backlog->mean_ns, 1, EVERY_MOST);
}

/* What the other markers are behind has not ended, as far as is known. */
static void count_done(struct backlog *backlog, uint64_t now)
{
    uint64_t waits = 0;

    for (uint32_t i = 0; i < backlog->marker_count; i++)
        waits += backlog->markers[i].count;
    backlog->done = backlog->placed - clamp_ns(waits, 0, backlog->placed);
    backlog->done_at = backlog->done_at > now ? backlog->done_at : now;
}

static bool take_out(struct backlog *backlog, uint64_t number, struct backlog_marker *marker)
{
    uint32_t i = 0;

    while (i < backlog->marker_count && backlog->markers[i].number != number)
        i++;
    if (i == backlog->marker_count)
        return false;
    *marker = backlog->markers[i];
    for (backlog->marker_count--; i < backlog->marker_count; i++)
        backlog->markers[i] = backlog->markers[i + 1];
    return true;
}

void backlog_cancel(struct backlog *backlog, uint64_t number)
{
    struct backlog_marker marker;

    if (take_out(backlog, number, &marker))
        backlog->placed -= clamp_ns(marker.count, 0, backlog->placed);
}

void backlog_pass(struct backlog *backlog, uint64_t number, uint64_t at)
{
    struct backlog_marker marker;

    if (!take_out(backlog, number, &marker))
        return;
    backlog->given_up = false;
    if (marker.count)
        learn_marker(backlog, &marker, at);
    count_done(backlog, at);
    if (backlog->due > number + backlog->every && !backlog_waits(backlog))
        backlog->due = number + backlog->every;
}

uint64_t backlog_since(const struct backlog *backlog)
{
    const struct backlog_marker *first = &backlog->markers[0];

    return backlog_waits(backlog) && first->placed_at > backlog->done_at ? first->placed_at
                                                                         : backlog->done_at;
}

uint64_t backlog_left(uint64_t count, uint64_t mean_ns, uint64_t from, uint64_t now)
{
    uint64_t most = MEAN_MOST_NS / (clamp_ns(mean_ns, 0, MEAN_MOST_NS) + 1);
    uint64_t queued = count > most ? MEAN_MOST_NS : count * mean_ns;

    return queued - clamp_ns(time_since(from, now), 0, queued);
}

uint64_t backlog_ns(const struct backlog *backlog, uint64_t number, uint64_t now)
{
    const struct backlog_marker *first = &backlog->markers[0];
    uint64_t count = number > backlog->done ? number - backlog->done : 0;
    uint64_t left = backlog_left(count, backlog->mean_ns, backlog_since(backlog), now);
    uint64_t waited = backlog_waits(backlog) ? time_since(first->placed_at, now) : 0;

    /* What takes so long was there when the marker was placed, and it is likely as much now. */
    return left > waited ? left : waited;
}

uint64_t backlog_patience_ns(const struct backlog *backlog, uint64_t number, uint64_t now)
{
    if (!backlog->mean_ns)
        return PATIENCE_MOST_NS;
    return clamp_ns(2 * backlog_ns(backlog, number, now), PATIENCE_LEAST_NS, PATIENCE_MOST_NS);
}

void backlog_give_up(struct backlog *backlog, uint64_t now)
{
    if (!backlog_waits(backlog))
        return;
    backlog->marker_count = 0;
    backlog->given_up = true;
    count_done(backlog, now);
}

bool backlog_is_full(const struct backlog *backlog, uint64_t number, uint64_t most_ns, uint64_t now)
{
    if (!backlog_waits(backlog) || backlog->given_up)
        return false;
    return !backlog->mean_ns || backlog->marker_count == BACKLOG_MARKERS ||
           backlog_ns(backlog, number, now) > most_ns;
}
