/* SPDX-License-Identifier: MIT */
/* Parts of the picture that are to be painted. */
#ifndef ENGINE_DAMAGE_H
#define ENGINE_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

/* A cursor's move and a window's update leave a few; what is between them is not painted. */
#define DAMAGE_MAX_AREAS 8u

/* In pixels of the picture; empty unless left < right and top < bottom. */
struct area {
    int64_t left, top, right, bottom;
};

struct damage {
    struct area areas[DAMAGE_MAX_AREAS];
    unsigned int count;
};

struct area area_intersect(struct area a, struct area b);
bool area_is_empty(struct area area);

/* Areas that overlap become one, and all of them do if there are too many. */
void damage_add(struct damage *damage, struct area area);

/* Takes some rows out, @pixels or one row at most. False: there is none. */
bool damage_take(struct damage *damage, int64_t pixels, struct area *area);

#endif /* ENGINE_DAMAGE_H */
