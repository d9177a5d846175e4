/* SPDX-License-Identifier: MIT */
/*
 * /etc/vgpu/schedule.conf: modes by the clock, and when each is due. Times are local, so that
 * "22:00" stays 22:00 when daylight saving time begins or ends.
 */
#ifndef MODEL_TIMETABLE_H
#define MODEL_TIMETABLE_H

#include "lib/gpus.h"
#include "lib/host_root.h"

#define SCHEDULE_CONF "/etc/vgpu/schedule.conf"

/**
 * TimetableEntry - an [at NAME] group
 * @minute: of the day
 * @days: bit 0: Monday
 * @warn: seconds before, when users are warned
 * @timeout: seconds to wait for the GPU's users; 0: for ever
 * @drain: wait at all
 */
typedef struct {
    char *name;
    char *gpu;
    GpuMode mode;
    guint partitions;
    guint minute;
    guint days;
    guint warn;
    guint timeout;
    gboolean drain;
} TimetableEntry;

/* Of TimetableEntry, in the order of the file; empty if there is none. REGISTRAR_ERROR_CONFIG. */
GPtrArray *timetable_load(HostRoot *root, GError **error);

/*
 * The first time after @after when it is due, in @after's time zone. A time that the clock skips
 * comes right after the skip; one that occurs twice counts once. To be unreferenced.
 */
GDateTime *timetable_next(const TimetableEntry *entry, GDateTime *after);

/* The last time when it was due, not after @at. To be unreferenced. */
GDateTime *timetable_last(const TimetableEntry *entry, GDateTime *at);

#endif
