/* SPDX-License-Identifier: MIT */
/*
 * A slice of the GPU: its socket, its memory, its members.
 */
#ifndef GOVERNOR_SLICE_H
#define GOVERNOR_SLICE_H

#include "arbiter_state.h"

/* Whether @id is a valid name of a slice, which is also a file name. */
bool slice_id_valid(const char *id);

/*
 * With its socket, and the mark beside it that tells programs to wait for it. Logs and returns NULL
 * on failure.
 */
struct slice *slice_new(struct arbiter *arbiter, const char *id,
                        const struct slice_settings *settings);

/* Drops its members. Its files stay, and tell the next arbiter that there were members. */
void slice_free(struct slice *slice);
/* The slice is no more. */
void slice_remove_files(const struct slice *slice);

void slice_change(struct slice *slice, const struct slice_settings *settings);

/*
 * What it uses that no member reports is charged to it: its memory beyond the limit as well, and
 * the time by which the counter has grown. False: an impossible number, and nothing has changed.
 */
bool slice_set_ungoverned(struct slice *slice, const struct slice_ungoverned *ungoverned);

#endif
