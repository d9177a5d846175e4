/* SPDX-License-Identifier: MIT */
/*
 * A queue for each object. Who waits for several objects is in all of their queues, and has them
 * when it is the first in each. All are put in at once, so nobody waits for somebody who waits for
 * them.
 */
#ifndef VGPUD_OPERATIONS_QUEUES_H
#define VGPUD_OPERATIONS_QUEUES_H

#include <glib.h>

typedef struct Queues Queues;

Queues *queues_new(void);

/* Who waits is not freed. */
void queues_free(Queues *queues);

/* @objects: NULL terminated, copied. @who: the last in each queue. */
void queues_add(Queues *queues, const char *const *objects, void *who);
void queues_remove(Queues *queues, const char *const *objects, void *who);

/* Who has the object, or is to have it next; NULL: nobody. */
void *queues_first(const Queues *queues, const char *object);

/* @who is the first in all of them. */
gboolean queues_has_all(const Queues *queues, const char *const *objects, const void *who);

#endif
