/* SPDX-License-Identifier: MIT */
/*
 * Whether a member that has nothing in flight, and may submit without asking, keeps silent about
 * it: where it always submits again at once, each message would take a turn of the arbiter for
 * nothing. The arbiter looks by itself when the lease should be used up, which bounds what a wrong
 * guess costs.
 */
#ifndef GOVERNOR_SILENCE_H
#define GOVERNOR_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. */
struct silence {
    bool kept;
    uint32_t speaks;      /* so often before it is kept again */
    uint32_t next_speaks; /* after the next failure */
};

/* Nothing is in flight: true where nobody is to be told. */
bool silence_keep(struct silence *silence);

/* The next submission comes @pause_ns later. */
void silence_learn(struct silence *silence, uint64_t pause_ns);

#endif /* GOVERNOR_SILENCE_H */
