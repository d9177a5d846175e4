// SPDX-License-Identifier: MIT
#include "watchdog.h"

#include <systemd/sd-daemon.h>

/* systemd's timeout; 0: there is no watchdog. */
static uint64_t period;
static gint64 last_told;

void watchdog_setup(void)
{
    if (sd_watchdog_enabled(0, &period) <= 0)
        period = 0;
}

void watchdog_alive(gint64 now)
{
    if (period == 0 || now - last_told < (gint64)(period / 4))
        return;
    sd_notify(0, "WATCHDOG=1");
    last_told = now;
}

int watchdog_sleep(void)
{
    return period == 0 ? -1 : (int)MIN(period / 2000, (uint64_t)G_MAXINT32);
}
