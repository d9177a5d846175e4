/* SPDX-License-Identifier: MIT */
/*
 * /etc/vgpu/schedule.conf: modes and pools of GPUs by the clock. When an entry is due is a calendar
 * expression of systemd's (systemd.time(7)), which systemd itself interprets (lib/systemd.h).
 */
#ifndef LIB_SCHEDULE_CONF_H
#define LIB_SCHEDULE_CONF_H

#include "lib/gpus.h"
#include "lib/host_root.h"

#define SCHEDULE_CONF "/etc/vgpu/schedule.conf"

/**
 * ScheduleEntry - an [at NAME] group
 * @pool: which engine places work on it from then on; NULL: as before
 * @calendar: when it is due
 * @warn: seconds before, when users are warned; 0: never
 * @timeout: seconds to wait for the GPU's users; 0: for ever
 * @drain: wait at all
 * @delay: seconds after @calendar at which this host executes it: its part of spread=, the same for
 * all entries
 * @normalized: @calendar as systemd writes it; NULL: not checked
 * @next: when @calendar elapses next, seconds since 1970, or has elapsed and @delay is not over; 0:
 * never, or not known
 */
typedef struct {
    char *name;
    char *gpu;
    GpuMode mode;
    guint partitions;
    char *pool;
    char *calendar;
    guint warn;
    guint timeout;
    gboolean drain;
    guint delay;
    char *normalized;
    gint64 next;
} ScheduleEntry;

/*
 * Of ScheduleEntry, in the order of the file; empty if there is none. Expressions are not checked.
 * REGISTRAR_ERROR_CONFIG.
 */
GPtrArray *schedule_conf_load(HostRoot *root, GError **error);

/*
 * Asks systemd whether the entry's expression is valid, and waits for the answer; sets @normalized
 * and @next. REGISTRAR_ERROR_CONFIG: it is not, or an earlier one of @entries is for the same GPU
 * at the same times; G_IO_ERROR: systemd could not be asked.
 */
gboolean schedule_conf_check(ScheduleEntry *entry, const GPtrArray *entries, GError **error);

/* When this host executes it next; 0: never, or not known. */
gint64 schedule_entry_next(const ScheduleEntry *entry);

/* "becomes shared", "becomes shared in pool slurm". To be freed. */
char *schedule_entry_text(const ScheduleEntry *entry);

/* The entries' expressions, valid as long as they; NULL terminated, to be freed. */
const char **schedule_conf_calendars(const GPtrArray *entries);

#endif
