/* SPDX-License-Identifier: MIT */
/*
 * Help texts that are made from the table of commands.
 */
#ifndef VGPUCTL_HELP_H
#define VGPUCTL_HELP_H

/* All commands, or those of a noun, a line for each. @noun: NULL: all. To be freed. */
char *help_commands(const char *noun);

/* "list|show|mode" of a noun; NULL: it has no verbs, or there is no such noun. To be freed. */
char *help_verbs(const char *noun);

#endif
