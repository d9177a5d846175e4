/* SPDX-License-Identifier: MIT */
/* Goals of a test as a table, beside what was reached: tests/prove -v TEST | grep '# |'. */
#ifndef GOVERNOR_GOAL_H
#define GOVERNOR_GOAL_H

#include <math.h>

/**
 * struct goal - of a number
 * @least, @most: what it is to be; 0 and INFINITY: no bound
 * @missed: it is missed, and is no more than this
 */
struct goal {
    double least;
    double most;
    double missed;
};

void goal_say_head(void);
/* Fails, unless the goal is reached or missed as is known. */
void goal_check(const char *what, double value, struct goal goal);

#endif
