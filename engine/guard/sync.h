/* SPDX-License-Identifier: MIT */
/*
 * A client's syncs: counters that it, and fences of its context, move, and that it waits for.
 *
 * Fences are reported on a thread of virglrenderer's; everything here takes the table's lock.
 * Functions that can be asked for nonsense set @fault to what is wrong: one line, static.
 */
#ifndef GUARD_SYNC_H
#define GUARD_SYNC_H

#include "slots.h"

#include <stdbool.h>

struct sync_table {
    GMutex lock;
    struct slots syncs;
    GQueue waits;
    GQueue fences;
    uint64_t last_fence;
    uint32_t entries; /* syncs that waits and fences name */
};

/* Syncs and the values they are to have, as the protocol has them: three words each. */
struct sync_entries {
    const uint32_t *words;
    uint32_t count;
};

void sync_table_init(struct sync_table *table);
void sync_table_clear(struct sync_table *table);

/* 0 with @fault set where there are too many. */
uint32_t sync_create(struct sync_table *table, uint64_t value, const char **fault);
bool sync_unref(struct sync_table *table, uint32_t id, const char **fault);
bool sync_read(struct sync_table *table, uint32_t id, uint64_t *value, const char **fault);

/* Sets all to their values at once, whatever they were, and wakes who waits for that. */
bool sync_write(struct sync_table *table, struct sync_entries entries, const char **fault);

/*
 * Returns the read end of a pipe, which is the caller's: it has data as soon as all of the syncs,
 * or with @any one of them, have come to their values, and hangs up without data where this process
 * ends before. Mesa takes that for a lost device. After @timeout ms nobody looks any more; more
 * than INT32_MAX: for ever. -1 with @fault set.
 */
int sync_wait(struct sync_table *table, struct sync_entries entries, bool any, uint32_t timeout,
              const char **fault);

/*
 * A fence that moves syncs when it is done. Returns its number, for virglrenderer, with which it is
 * to be cancelled where virglrenderer does not take it; 0 with @fault set.
 */
uint64_t sync_fence_begin(struct sync_table *table, uint32_t ring_idx, struct sync_entries entries,
                          const char **fault);
void sync_fence_cancel(struct sync_table *table, uint64_t fence);

/* Virglrenderer has done @fence, and so all before it on that ring. From any thread. */
void sync_fence_done(struct sync_table *table, uint32_t ring_idx, uint64_t fence);

/* Whether a fence on that ring is not done yet. */
bool sync_fence_pending(struct sync_table *table, uint32_t ring_idx);

#endif /* GUARD_SYNC_H */
