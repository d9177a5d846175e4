// SPDX-License-Identifier: MIT
#include "progress.h"

#include "stuck.h"
#include "watchdog.h"

#include <glib.h>

void progress(void)
{
    stuck_watch_progress();
    watchdog_alive(g_get_monotonic_time());
}
