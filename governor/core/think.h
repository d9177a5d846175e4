/* SPDX-License-Identifier: MIT */
/*
 * How long a slice takes from the end of its work to its next submission. A loop that submits and
 * waits has nothing in flight when the arbiter looks, though it will have at once.
 *
 * Requests that come in bursts have short pauses and a long one after each burst, and a mean that
 * is neither. So only the short ones have a mean, together with how often a pause is short.
 */
#ifndef GOVERNOR_THINK_H
#define GOVERNOR_THINK_H

#include <stdint.h>

/**
 * struct think
 * @mean_ns, @deviation_ns: of pauses that are short
 * @part_short: of all pauses, 0 to 1
 */
struct think {
    double mean_ns;
    double deviation_ns;
    double part_short;
};

/* Expects little until it has learned. */
void think_init(struct think *think);

/* @short_ns: nobody waits for the end of a longer pause. */
void think_learn(struct think *think, uint64_t ns, uint64_t short_ns);

/* How long it pays to wait at most; 0: it does not, within @most_ns. */
uint64_t think_patience(const struct think *think, uint64_t most_ns);

#endif
