/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a member that has nothing in flight, and may submit without asking, sends no
 * message about it. If it always submits again at once, each message would cost the arbiter a turn
 * for nothing. The arbiter looks by itself when the lease should be used up, which bounds the cost
 * of a wrong guess.
 */
#ifndef GOVERNOR_SILENCE_H
#define GOVERNOR_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. */
struct silence {
    bool kept;
    uint32_t speaks;      /* messages before it is silent again */
    uint32_t next_speaks; /* after the next failure */
};

/* Nothing is in flight. Returns true if no message is to be sent. */
bool silence_keep(struct silence *silence);

/* The next submission comes @pause_ns later. */
void silence_learn(struct silence *silence, uint64_t pause_ns);

#endif /* GOVERNOR_SILENCE_H */
