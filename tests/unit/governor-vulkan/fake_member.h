/* SPDX-License-Identifier: MIT */
/*
 * Replaces libgovernor-member in the layer under test: grants what a test says, and records the
 * layer's calls. A test finds it in the layer's library, which the loader has loaded.
 */
#ifndef FAKE_MEMBER_H
#define FAKE_MEMBER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_MEMBER_SYMBOL "fake_member"

struct fake_member {
    /* Set by tests. */
    _Atomic bool metered;
    _Atomic bool marks;         /* asks for a marker with each free submission */
    _Atomic uint64_t behind_ns; /* of others' work, for what is submitted now */
    _Atomic uint32_t passes;    /* of the member so far */
    _Atomic uint64_t limit;
    _Atomic uint64_t spill_limit;
    _Atomic uint32_t engines;        /* 0: all */
    _Atomic bool holds_until_beside; /* submissions wait until nothing is in flight before them */

    /* Recorded from the layer. */
    _Atomic uint64_t joined, left;
    _Atomic uint64_t counted;
    _Atomic uint64_t begun, deferred, ended, cancelled, stalled;
    _Atomic uint64_t came_beside; /* that were held so */
    _Atomic uint64_t executing;   /* that were deferred or had stalled, and have begun */
    _Atomic uint64_t measured_ns, last_measured_ns, last_estimate_ns;
    _Atomic uint64_t reserved, released, refused;
    _Atomic uint64_t exported, imported, forgotten; /* objects; imported ones are reserved too */
    _Atomic uint64_t used, spilled;
    _Atomic uint64_t pages;
    _Atomic uint64_t driver;
    _Atomic uint64_t ran, last_begin_ns, last_end_ns; /* ended ones with their times */
    _Atomic uint64_t placed, passed;                  /* markers */
    _Atomic uint64_t wrong; /* markers out of order; debits ended twice, or that never began */
};

#endif /* FAKE_MEMBER_H */
