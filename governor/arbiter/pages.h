/* SPDX-License-Identifier: MIT */
/*
 * The two pages of a member, as memfds. The member cannot write its grant, and cannot change the
 * size of either.
 */
#ifndef GOVERNOR_PAGES_H
#define GOVERNOR_PAGES_H

#include "governor_protocol.h"

#include <stdbool.h>

struct pages {
    struct governor_grant *grant;
    const struct governor_usage *usage;
};

/* Makes and maps both. @fds are for the member; the caller closes them. False: errno. */
bool pages_new(struct pages *pages, int fds[2]);

void pages_free(struct pages *pages);

/*
 * Wakes one of the threads that wait for a change of @grant; it wakes the next. The member decides
 * how many there are, and so how long it takes to wake them all.
 */
void pages_wake(struct governor_class_grant *grant);

#endif
