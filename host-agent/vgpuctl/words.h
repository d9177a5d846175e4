/* SPDX-License-Identifier: MIT */
/*
 * What the names of arguments and of options' values stand for, for the shells' completions.
 */
#ifndef VGPUCTL_WORDS_H
#define VGPUCTL_WORDS_H

#include <glib.h>

#include "lib/host_root.h"

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
