/* SPDX-License-Identifier: MIT */
/*
 * The colours of states: green for what works, yellow for what waits, red for what needs an
 * operator.
 */
#ifndef VGPUCTL_COLOUR_H
#define VGPUCTL_COLOUR_H

/* As libsmartcols names it; NULL: the terminal's own. */
const char *colour_of_state(const char *state);

#endif
