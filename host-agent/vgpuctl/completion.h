/* SPDX-License-Identifier: MIT */
/*
 * The shells' completions, made from the table of commands, and the words that this host has for
 * them.
 */
#ifndef VGPUCTL_COMPLETION_H
#define VGPUCTL_COMPLETION_H

#include <glib.h>

#include "lib/host_root.h"
#include "host-agent/vgpuctl/command.h"

/* Called for each option that @command has, its own ones first; not for hidden ones. */
typedef void (*CompletionFunc)(const GOptionEntry *option, GString *text, const Command *command);
void completion_each_option(const Command *command, CompletionFunc func, GString *text);

/* Its value is another word of the command line. */
gboolean completion_has_value(const GOptionEntry *option);

/* All options of all commands that have a value, as "-o" and "--output", once each, with @between.
 * To be freed. */
char *completion_value_options(const char *between);

/* @command is the first, or the last, of those with its noun. */
gboolean completion_is_first(const Command *command);
gboolean completion_is_last(const Command *command);

/* The script of a shell. To be freed. */
char *completion_bash(void);
char *completion_zsh(void);
char *completion_fish(void);

/* What the names of arguments and of options' values stand for, for the shells' completions. */

/**
 * WordKind
 * @name: of an argument or a value, as "GPU" or "SIZE"
 * @fixed: all words that it can be, with blanks between; NULL: not fixed
 * @find: prints those that there are on this host; NULL: nothing to offer
 */
typedef struct {
    const char *name;
    const char *fixed;
    void (*find)(HostRoot *root, GStrvBuilder *words);
} WordKind;

extern const WordKind word_kinds[];
extern const guint word_kinds_count;

/* @name: also in brackets, or with "..." at its end. NULL: there is none of that name. */
const WordKind *word_kind_find(const char *name);

#endif
