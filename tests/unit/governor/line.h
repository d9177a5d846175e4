/* SPDX-License-Identifier: MIT */
/*
 * A GPU for several processes, in memory that they share: it executes work in the order of
 * submission, and takes exactly as long as it is told. It has only a clock, so that a busy machine
 * makes the submitters late but not the work long.
 */
#ifndef GOVERNOR_LINE_H
#define GOVERNOR_LINE_H

#include <stdatomic.h>
#include <stdint.h>

struct line {
    _Atomic uint64_t free_at; /* CLOCK_MONOTONIC */
};

/* To be made before the processes are. */
struct line *line_new(void);
void line_free(struct line *line);

/* Returns when it will have ended; does not wait. */
uint64_t line_submit(struct line *line, uint64_t length_ns);
void line_await(uint64_t end_ns);

#endif
