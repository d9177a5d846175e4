/* SPDX-License-Identifier: MIT */
#include "host-agent/model/way_back.h"

/* A driver needs a little more to restore than there was; it loses what meets a full card. */
#define MORE_PARTS 33

static gint64 wait_of(const WayBack *way)
{
    return way->wait_us ? way->wait_us : WAY_BACK_S * G_USEC_PER_SEC;
}

static void wait_longer(WayBack *way)
{
    way->wait_us = MIN(2 * wait_of(way), WAY_BACK_MAX_S * G_USEC_PER_SEC);
}

void way_back_begin(WayBack *way, guint64 bytes, gint64 now_us)
{
    way->bytes = bytes;
    way->open_us = 0;
    if (!way->back_us)
        return;
    if (now_us - way->back_us < WAY_BACK_EARLY_S * G_USEC_PER_SEC)
        wait_longer(way);
    else
        way->wait_us = 0;
}

gboolean way_back_is_open(WayBack *way, guint64 free, guint64 mark, gint64 now_us)
{
    if (!way->bytes || free < mark || free - mark < way->bytes + way->bytes / MORE_PARTS) {
        way->open_us = 0;
        return FALSE;
    }
    if (!way->open_us)
        way->open_us = now_us;
    if (now_us - way->open_us < wait_of(way))
        return FALSE;
    way->open_us = 0;
    way->back_us = now_us;
    return TRUE;
}

void way_back_close(WayBack *way)
{
    way->open_us = 0;
}

void way_back_fail(WayBack *way)
{
    way->open_us = 0;
    wait_longer(way);
}
