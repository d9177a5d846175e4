/* SPDX-License-Identifier: MIT */
/* Parts of sparse arrays that have memory. Pure; the caller locks. */
#ifndef GOVERNOR_CUDA_PARTS_H
#define GOVERNOR_CUDA_PARTS_H

#include "cuda_abi.h"

#include <stdbool.h>

struct physical;

/* @context: with which it ends */
struct part {
    CUarrayMapInfo info;
    CUcontext context;
    struct physical *physical;
};

struct parts {
    struct part *list;
    unsigned int count;
    unsigned int room;
};

/* Makes room for @more, so that as many calls of parts_add() cannot fail. */
bool parts_make_room(struct parts *parts, unsigned int more);
void parts_add(struct parts *parts, const struct part *part);
/* They are of another array from now on. */
void parts_rename(struct parts *parts, const void *array, const void *other);
/* Each removes one part and returns what was mapped there; NULL: there is none. */
struct physical *parts_take_within(struct parts *parts, const CUarrayMapInfo *info);
struct physical *parts_take_of_array(struct parts *parts, const void *array);
struct physical *parts_take_of_context(struct parts *parts, CUcontext context);

#endif
