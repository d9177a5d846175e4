/* SPDX-License-Identifier: MIT */
/*
 * Times of late, without overlap: when one process used an engine, whose queues may have used it at
 * once, and whose ends may be seen in any order; when a slice was allowed to.
 *
 * Plain memory of a fixed size; not thread-safe. Times are ns of any one clock.
 */
#ifndef GOVERNOR_COVERAGE_H
#define GOVERNOR_COVERAGE_H

#include <stdint.h>

#define COVERAGE_SPANS 128u

struct coverage_span {
    uint64_t begin_at;
    uint64_t end_at;
};

/**
 * struct coverage
 * @spans: @count of them, by time, with gaps between them
 * @forgotten_until: what was before is not known any more, and counts again. Otherwise short work
 * on one queue would make long work on another free.
 */
struct coverage {
    struct coverage_span spans[COVERAGE_SPANS];
    uint32_t count;
    uint64_t forgotten_until;
};

typedef void (*CoverageFunc)(void *data, uint64_t begin_at, uint64_t end_at);

/*
 * It is covered from @begin_at to @end_at. Returns how much of that is new; @on_new, which may be
 * NULL, is called for each part of it.
 */
uint64_t coverage_add(struct coverage *coverage, uint64_t begin_at, uint64_t end_at,
                      CoverageFunc on_new, void *data);

/* Divides the time from @begin_at to @end_at into what is covered and what is not, in order. */
void coverage_divide(const struct coverage *coverage, uint64_t begin_at, uint64_t end_at,
                     CoverageFunc inside, CoverageFunc outside, void *data);

#endif
