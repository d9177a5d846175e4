/* SPDX-License-Identifier: MIT */
/* Numbered objects. Numbers begin with 1 and are reused, because clients index tables by them. */
#ifndef GUARD_SLOTS_H
#define GUARD_SLOTS_H

#include <glib.h>
#include <stdint.h>

struct slots {
    GPtrArray *items; /* NULL if a number is free */
    GArray *free;
};

/* @destroy is called for what is left at slots_clear(). */
void slots_init(struct slots *slots, GDestroyNotify destroy);
void slots_clear(struct slots *slots);

/* How many objects there are. */
uint32_t slots_count(const struct slots *slots);

uint32_t slots_add(struct slots *slots, void *item);

/* NULL: there is none with that number. */
void *slots_find(const struct slots *slots, uint32_t id);

/* Frees the number; the caller owns the object. */
void *slots_take(struct slots *slots, uint32_t id);

#endif /* GUARD_SLOTS_H */
