/* SPDX-License-Identifier: MIT */
/* Lines that a guest, or a client, can cause as often as it likes: they must not fill the journal.
 */
#ifndef ENGINE_GUEST_LOG_H
#define ENGINE_GUEST_LOG_H

#include <glib.h>
#include <stdbool.h>

/* Whether another such line may be written now; from any thread. */
bool guest_log_has_room(void);

#define guest_warning(...)                                                                         \
    do {                                                                                           \
        if (guest_log_has_room())                                                                  \
            g_warning(__VA_ARGS__);                                                                \
    } while (0)

#endif /* ENGINE_GUEST_LOG_H */
