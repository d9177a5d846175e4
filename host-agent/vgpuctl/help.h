/* SPDX-License-Identifier: MIT */
/*
 * Help texts that are made from the table of commands.
 */
#ifndef VGPUCTL_HELP_H
#define VGPUCTL_HELP_H

/* All commands, a line for each. To be freed. */
char *help_commands(void);

/* "list|show|mode" of a noun; NULL: it has no verbs, or there is no such noun. To be freed. */
char *help_verbs(const char *noun);

#endif
