/* SPDX-License-Identifier: MIT */
/* Parts of sparse arrays that have memory. Pure; the caller locks. */
#ifndef GOVERNOR_CUDA_PARTS_H
#define GOVERNOR_CUDA_PARTS_H

#include "cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct physical;

/**
 * struct part
 * @context: with which it ends
 * @change: the call of the driver that is making it, or unmaps it (@leaves); 0: none
 */
struct part {
    CUarrayMapInfo info;
    CUcontext context;
    struct physical *physical;
    uint64_t change;
    bool leaves;
};

/* @changes: numbers of calls so far */
struct parts {
    struct part *list;
    uint64_t changes;
    unsigned int count;
    unsigned int room;
};

/* Makes room for @more, so that as many calls of parts_add() cannot fail. */
bool parts_make_room(struct parts *parts, unsigned int more);
void parts_add(struct parts *parts, const struct part *part);
/* They are of another array from now on. */
void parts_rename(struct parts *parts, const void *array, const void *other);
/* @change unmaps what is there, but not what another call is changing. */
void parts_unmap(struct parts *parts, const CUarrayMapInfo *info, uint64_t change);
/* After parts_take_changed(): what is left of @change is mapped. */
void parts_settle(struct parts *parts, uint64_t change);
/* Each removes one part and returns what was mapped there; NULL: there is none. */
struct physical *parts_take_changed(struct parts *parts, uint64_t change, bool leaves);
struct physical *parts_take_of_array(struct parts *parts, const void *array);
struct physical *parts_take_of_context(struct parts *parts, CUcontext context);

#endif
