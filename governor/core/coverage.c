// SPDX-License-Identifier: MIT
#include "coverage.h"

#include <stdbool.h>
#include <string.h>

/* Replaces @count spans from @first on by @span. */
static void coverage_replace(struct coverage *coverage, uint32_t first, uint32_t count,
                             const struct coverage_span *span)
{
    struct coverage_span *at = &coverage->spans[first];

    memmove(at + 1, at + count, (coverage->count - first - count) * sizeof(*at));
    *at = *span;
    coverage->count += 1 - count;
}

static void coverage_forget_first(struct coverage *coverage)
{
    coverage->forgotten_until = coverage->spans[0].end_at;
    coverage->count--;
    memmove(coverage->spans, coverage->spans + 1, coverage->count * sizeof(*coverage->spans));
}

uint64_t coverage_add(struct coverage *coverage, uint64_t begin_at, uint64_t end_at,
                      CoverageFunc on_new, void *data)
{
    struct coverage_span all = {begin_at, end_at};
    uint32_t first, next;
    uint64_t added = 0;

    if (begin_at >= end_at)
        return 0;
    if (coverage->count == COVERAGE_SPANS)
        coverage_forget_first(coverage);
    /* New spans are among the last. */
    for (first = coverage->count; first && coverage->spans[first - 1].end_at >= begin_at;)
        first--;
    for (next = first; begin_at < end_at; next++) {
        const struct coverage_span *span = &coverage->spans[next];
        bool there = next < coverage->count && span->begin_at <= end_at;
        uint64_t until = there ? span->begin_at : end_at;

        if (begin_at < until) {
            added += until - begin_at;
            if (on_new)
                on_new(data, begin_at, until);
        }
        if (!there)
            break;
        begin_at = span->end_at;
        all.begin_at = all.begin_at < span->begin_at ? all.begin_at : span->begin_at;
        all.end_at = all.end_at > span->end_at ? all.end_at : span->end_at;
    }
    coverage_replace(coverage, first, next - first, &all);
    return added;
}

void coverage_divide(const struct coverage *coverage, uint64_t begin_at, uint64_t end_at,
                     CoverageFunc inside, CoverageFunc outside, void *data)
{
    uint32_t i = coverage->count;

    while (i && coverage->spans[i - 1].end_at > begin_at)
        i--;
    for (; begin_at < end_at; i++) {
        const struct coverage_span *span = &coverage->spans[i];
        bool there = i < coverage->count && span->begin_at < end_at;
        uint64_t from = !there ? end_at : span->begin_at > begin_at ? span->begin_at : begin_at;
        uint64_t until = there && span->end_at < end_at ? span->end_at : end_at;

        if (begin_at < from)
            outside(data, begin_at, from);
        if (from < until)
            inside(data, from, until);
        begin_at = until;
    }
}
