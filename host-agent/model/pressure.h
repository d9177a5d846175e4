/* SPDX-License-Identifier: MIT */
/*
 * The steps if a GPU has less free memory than its water mark: best-effort tenants are told, then
 * the operator's command runs, then their vGPUs are stopped. It has no clock and no side effects.
 */
#ifndef MODEL_PRESSURE_H
#define MODEL_PRESSURE_H

#include <glib.h>

typedef enum {
    PRESSURE_NOTHING, /* no step now */
    PRESSURE_TELL,
    PRESSURE_COMMAND,
    PRESSURE_EVICT, /* stop the best-effort vGPUs */
    PRESSURE_OVER,  /* tell that enough is free again */
} PressureStep;

/**
 * Pressure - of one GPU; zeroed: enough is free
 * @last: the last step; PRESSURE_NOTHING: enough is free
 * @since: the time of that step, microseconds
 */
typedef struct {
    PressureStep last;
    gint64 since;
} Pressure;

/*
 * The next step if @free bytes are free and @mark are desired. @victims: number of best-effort
 * vGPUs that can be stopped. @grace_us is the time between steps. If PRESSURE_EVICT was not enough,
 * it restarts with PRESSURE_TELL as soon as there is a vGPU to stop.
 */
PressureStep pressure_step(Pressure *pressure, guint64 free, guint64 mark, guint victims,
                           gint64 now_us, gint64 grace_us);

/* Steps are being taken, or have been taken and were not enough. */
gboolean pressure_is_on(const Pressure *pressure);

#endif
