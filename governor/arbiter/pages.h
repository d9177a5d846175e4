/* SPDX-License-Identifier: MIT */
/*
 * The two pages of a member, as memfds. The member can neither write its grant, nor change the size
 * of either under the arbiter's feet.
 */
#ifndef GOVERNOR_PAGES_H
#define GOVERNOR_PAGES_H

#include "governor_protocol.h"

#include <stdbool.h>

struct pages {
    struct governor_grant *grant;
    const struct governor_usage *usage;
};

/* Makes and maps both. @fds: for the member; the caller's to close. False: errno. */
bool pages_new(struct pages *pages, int fds[2]);

void pages_free(struct pages *pages);

/* Wakes one of the threads that wait for a change of the grant; it wakes the next. How many there
 * are is up to the member, and how long it takes to wake them all. */
void pages_wake(struct pages *pages);

#endif
