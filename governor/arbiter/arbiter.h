/* SPDX-License-Identifier: MIT */
/* The arbiter of one physical GPU. One thread, one event loop, no persistent state. */
#ifndef GOVERNOR_ARBITER_H
#define GOVERNOR_ARBITER_H

#include "arbiter_state.h"

/* @tree replaces /. */
void arbiter_init(struct arbiter *arbiter, sd_event *event, const char *tree, const char *gpu);
void arbiter_clear(struct arbiter *arbiter);

/*
 * conf.c: makes the directories, reads the files, and follows their changes. Logs and returns false
 * on failure.
 */
bool conf_watch(struct arbiter *arbiter);

#endif
