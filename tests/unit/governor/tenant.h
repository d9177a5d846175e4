/* SPDX-License-Identifier: MIT */
/*
 * Processes that are members of slices on one line (line.h), and how a test follows them. Every
 * failure ends the test.
 */
#ifndef GOVERNOR_TENANT_H
#define GOVERNOR_TENANT_H

#include "line.h"
#include "live.h"

/* That of the open test. */
extern struct line *line;

/* live_open() with a line, and its end. */
void tenant_open(struct live *live, const char *const *slices);
void tenant_close(struct live *live);

/* In a process of its own, from here on. */
GovernorMember *tenant_join(const char *socket_path, struct live_report *report);
void tenant_done(struct live_report *report, uint64_t length);
/* Submits, waits, and reports the duration. */
void tenant_execute(GovernorMember *member, struct live_report *report, uint64_t estimate,
                    uint64_t length);

/* For live_spawn(): 2 ms after 2 ms. */
void tenant_batches(struct live *live, const char *socket_path, struct live_report *report);

#endif
