// SPDX-License-Identifier: MIT
#include "guest_log.h"

/* Of all such lines together; the unit's own limit is 200 lines in 30 s. */
#define LOG_BURST    50
#define LOG_INTERVAL (10 * G_TIME_SPAN_SECOND)

bool guest_log_has_room(void)
{
    static GMutex lock;
    static gint64 since;
    static unsigned int count;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&lock);
    gint64 now = g_get_monotonic_time();

    if (now - since > LOG_INTERVAL) {
        since = now;
        count = 0;
    }
    return count++ < LOG_BURST;
}
