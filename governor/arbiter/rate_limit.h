/* SPDX-License-Identifier: MIT */
/*
 * Limits how much of the arbiter's time the members of one slice may take, by a token bucket. When
 * it is empty, the slice's sockets are not read until it has refilled a little. Messages wait in
 * the sockets meanwhile, and their senders wait when these are full. Other slices have buckets of
 * their own.
 */
#ifndef GOVERNOR_RATE_LIMIT_H
#define GOVERNOR_RATE_LIMIT_H

#include "arbiter_state.h"

/*
 * Tokens pay for a message, for a line in the log, and for descriptors that a member has sent: so
 * much that no more than one such connection in a second is left to another process (rights.h).
 */
#define RATE_MESSAGE 1
#define RATE_DROP    50
#define RATE_RIGHTS  20000

void rate_limit_init(struct rate_limit *limit);
void rate_limit_clear(struct rate_limit *limit);

/*
 * Pays for something that members of @slice caused. The price rises with the number of members,
 * because the arbiter looks at all of them.
 */
void rate_limit_spend(struct slice *slice, unsigned tokens);

/*
 * The same for connections, their pages and their end, by the processor time of this thread since
 * @begin, which rate_limit_clock() gave: what they cost differs from machine to machine.
 */
uint64_t rate_limit_clock(void);
void rate_limit_spend_since(struct slice *slice, uint64_t begin);

/* Closes a member's connection. Descriptors that wait there are the slice's to pay. */
void rate_limit_close(struct slice *slice, int connection);

/* False: @source, a socket of @slice, is not to be read now; it is disabled until it may be. */
bool rate_limit_admits(struct slice *slice, sd_event_source *source);

#endif
