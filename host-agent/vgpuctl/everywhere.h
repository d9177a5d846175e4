/* SPDX-License-Identifier: MIT */
/*
 * The options that several commands share, and the parsing of all options.
 */
#ifndef VGPUCTL_EVERYWHERE_H
#define VGPUCTL_EVERYWHERE_H

#include "host-agent/vgpuctl/command.h"

/* Of every command; and of those that list objects (COMMAND_LISTS). */
extern const GOptionEntry everywhere_options[];
extern const GOptionEntry everywhere_list_options[];

/* @arg is one of these that has its value in the next word. */
gboolean everywhere_takes_next(const char *arg);

/*
 * Takes the options out of the command line. @command: NULL: not known; then --help shows the
 * commands of @noun, the first word, or all if that is NULL or no noun. VGPUCTL_USAGE.
 */
gboolean everywhere_parse(const Command *command, const char *noun, int *argc, char ***argv,
                          Options *options, GError **error);

gboolean everywhere_watch(void);
gboolean everywhere_version(void);

#endif
