// SPDX-License-Identifier: MIT
#include "spans.h"

static uint64_t load_word(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}

void spans_begin(struct span_reader *reader, const struct governor_class_usage *page, uint64_t seen,
                 uint64_t earliest, uint64_t now)
{
    uint64_t believed = now > GOVERNOR_IN_FLIGHT_MOST_NS ? now - GOVERNOR_IN_FLIGHT_MOST_NS : 0;

    *reader = (struct span_reader){
        .page = page,
        .next = seen ? seen - 1 : 0,
        .count = load_word(&page->span_count),
        .earliest = earliest > believed ? earliest : believed,
        .latest = now,
    };
    if (reader->count < seen)
        reader->count = seen;
    if (reader->count - reader->next > GOVERNOR_SPANS)
        reader->next = reader->count - GOVERNOR_SPANS;
}

/* The member goes on writing: the oldest may be another's by now. */
static bool read_span(const struct span_reader *reader, uint64_t number, uint64_t *begin_at,
                      uint64_t *end_at)
{
    const struct governor_span *span = &reader->page->spans[number % GOVERNOR_SPANS];

    *begin_at = load_word(&span->begin_at_ns);
    *end_at = load_word(&span->end_at_ns);
    return load_word(&reader->page->span_count) - number < GOVERNOR_SPANS;
}

bool spans_next(struct span_reader *reader, uint64_t *begin_at, uint64_t *end_at)
{
    while (reader->next < reader->count) {
        bool whole = read_span(reader, reader->next++, begin_at, end_at);

        if (*begin_at < reader->earliest)
            *begin_at = reader->earliest;
        if (*end_at > reader->latest)
            *end_at = reader->latest;
        if (whole && *begin_at < *end_at)
            return true;
    }
    return false;
}
