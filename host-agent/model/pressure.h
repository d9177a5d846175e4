/* SPDX-License-Identifier: MIT */
/*
 * What is done when a GPU has less free memory than its water mark: best-effort tenants are told,
 * then the operator's command runs, then their vGPUs are stopped. It knows no clock and does
 * nothing itself.
 */
#ifndef MODEL_PRESSURE_H
#define MODEL_PRESSURE_H

#include <glib.h>

typedef enum {
    PRESSURE_NOTHING, /* there is nothing to do now */
    PRESSURE_TELL,
    PRESSURE_COMMAND,
    PRESSURE_EVICT, /* stop the best-effort vGPUs */
    PRESSURE_OVER,  /* tell that there is enough again */
} PressureStep;

/**
 * Pressure - of one GPU; zeroed: there is enough
 * @last: the last step that was taken; PRESSURE_NOTHING: there is enough
 * @since: when that was, microseconds
 */
typedef struct {
    PressureStep last;
    gint64 since;
} Pressure;

/*
 * What is to be done now that @free bytes are free and @mark should be. @victims: how many
 * best-effort vGPUs could be stopped. Between steps is @grace_us. After PRESSURE_EVICT, where that
 * was not enough, it begins with PRESSURE_TELL again as soon as there is somebody to stop.
 */
PressureStep pressure_step(Pressure *pressure, guint64 free, guint64 mark, guint victims,
                           gint64 now_us, gint64 grace_us);

/* Something is being done, or has been done and was not enough. */
gboolean pressure_is_on(const Pressure *pressure);

#endif
