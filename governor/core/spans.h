/* SPDX-License-Identifier: MIT */
/*
 * What a member says of when the GPU worked for it. It may write its page at any time, and may lie:
 * no span is longer than the time that is believed to be in flight, and none ends in the future.
 */
#ifndef GOVERNOR_SPANS_H
#define GOVERNOR_SPANS_H

#include "governor_protocol.h"

#include <stdbool.h>

/**
 * struct span_reader - a way through the new spans of a page
 * @next: number of the span to read next; @count: how many there were when it began
 * @earliest, @latest: what is beyond is cut off
 */
struct span_reader {
    const struct governor_class_usage *page;
    uint64_t next;
    uint64_t count;
    uint64_t earliest;
    uint64_t latest;
};

/*
 * From where the last one of @page ended, @seen: that may have become longer. Times before
 * @earliest and after @now are not believed.
 */
void spans_begin(struct span_reader *reader, const struct governor_class_usage *page, uint64_t seen,
                 uint64_t earliest, uint64_t now);

/* The next one; false: there is none. */
bool spans_next(struct span_reader *reader, uint64_t *begin_at, uint64_t *end_at);

#endif
