/* SPDX-License-Identifier: MIT */
/* A descriptor that hurts whoever closes it last, passed along with a message. */
#ifndef GOVERNOR_LINGERING_H
#define GOVERNOR_LINGERING_H

#include <stdbool.h>
#include <stddef.h>

/* So long its last close() takes. */
#define LINGERING_S 10

/*
 * Sends @size bytes and such a descriptor, of which this process keeps none. False: the kernel does
 * not let it be sent (errno EPERM), because the receiver refuses descriptors.
 */
bool lingering_send(int connection, const void *data, size_t size);

#endif
