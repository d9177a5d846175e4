/* SPDX-License-Identifier: MIT */
/*
 * A queue for each object. An entry that waits for several objects is in all of their queues, and
 * runs when it is the first in each. It enters all of them at once, so there is no deadlock.
 */
#ifndef VGPUD_OPERATIONS_QUEUES_H
#define VGPUD_OPERATIONS_QUEUES_H

#include <glib.h>

typedef struct Queues Queues;

Queues *queues_new(void);

/* Waiting entries are not freed. */
void queues_free(Queues *queues);

/* @objects: NULL terminated, copied. @who: becomes the last in each queue. */
void queues_add(Queues *queues, const char *const *objects, void *who);
void queues_remove(Queues *queues, const char *const *objects, void *who);

/* The entry that works on the object, or will next; NULL: none. */
void *queues_first(const Queues *queues, const char *object);

/* @who is the first in all of its queues. */
gboolean queues_has_all(const Queues *queues, const char *const *objects, const void *who);

#endif
