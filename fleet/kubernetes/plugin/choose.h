/* SPDX-License-Identifier: MIT */
/* Which of the free seats a container should have. Pure. */
#ifndef KUBERNETES_PLUGIN_CHOOSE_H
#define KUBERNETES_PLUGIN_CHOOSE_H

#include <glib.h>

/*
 * @count seats of @available: first those of @required, then those of the cards with the fewest
 * free seats, or with @spread of as many cards as possible. A seat's name is that of its card,
 * SEAT_MARK and a number. NULL: there are too few. To be freed with g_strfreev().
 */
#define SEAT_MARK "-seat-"

GStrv choose_seats(const char *const *available, gsize available_count, const char *const *required,
                   gsize required_count, gsize count, gboolean spread);

#endif
