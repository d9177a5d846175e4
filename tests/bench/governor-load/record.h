/* SPDX-License-Identifier: MIT */
/* A load's results, batch by batch, and one line of JSON of them. */
#ifndef GOVERNOR_LOAD_RECORD_H
#define GOVERNOR_LOAD_RECORD_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct record
 * @start_ns: CLOCK_MONOTONIC of the start, from which all times count
 * @ends: when each batch was seen to have ended
 * @latencies: of each from its arrival, or its submission, to that
 * @deadline_ns: a longer latency is a miss; 0: none is
 */
struct record {
    uint64_t start_ns;
    uint64_t *ends;
    uint64_t *latencies;
    size_t count;
    size_t room;
    uint64_t deadline_ns;
    size_t missed;
};

void record_add(struct record *record, uint64_t end_ns, uint64_t latency_ns);

/* Prints and empties it; @cpu_ns: the process's use. Times are in microseconds. */
void record_print(struct record *record, const char *name, uint32_t iterations, uint64_t cpu_ns);

#endif /* GOVERNOR_LOAD_RECORD_H */
