/* SPDX-License-Identifier: MIT */
/* Ends processes, each named by its pid and the time at which it began. */
#ifndef SUSPEND_END_H
#define SUSPEND_END_H

#include <stdbool.h>

/* "PID:START" up to NULL; START in ticks since boot, as /proc/PID/stat has it. */
bool end_parse(char *const *words);

/*
 * Kills them, and waits until they have ended. One that has ended before is none of those that have
 * its pid now. NULL: all have ended; else a sentence.
 */
const char *end_all(unsigned int limit_ms);

#endif
