/* SPDX-License-Identifier: MIT */
#include "host-agent/model/pressure.h"

static PressureStep next(const Pressure *pressure, guint victims)
{
    switch (pressure->last) {
    case PRESSURE_TELL:
        return PRESSURE_COMMAND;
    case PRESSURE_COMMAND:
        return victims ? PRESSURE_EVICT : PRESSURE_NOTHING;
    case PRESSURE_EVICT:
        return victims ? PRESSURE_TELL : PRESSURE_NOTHING;
    default:
        return PRESSURE_TELL;
    }
}

PressureStep pressure_step(Pressure *pressure, guint64 free, guint64 mark, guint victims,
                           gint64 now_us, gint64 grace_us)
{
    PressureStep step;

    if (free >= mark) {
        step = pressure_is_on(pressure) ? PRESSURE_OVER : PRESSURE_NOTHING;
        pressure->last = PRESSURE_NOTHING;
        return step;
    }
    if (pressure_is_on(pressure) && now_us - pressure->since < grace_us)
        return PRESSURE_NOTHING;
    step = next(pressure, victims);
    if (step != PRESSURE_NOTHING) {
        pressure->last = step;
        pressure->since = now_us;
    }
    return step;
}

gboolean pressure_is_on(const Pressure *pressure)
{
    return pressure->last != PRESSURE_NOTHING;
}
