/* SPDX-License-Identifier: MIT */
/*
 * A client's syncs: counters that the client, and fences of its context, advance, and that the
 * client waits for.
 *
 * Fences are reported on a thread of virglrenderer's; everything here takes the table's lock.
 * Functions that can get invalid arguments set @fault to the error: one line, static.
 */
#ifndef GUARD_SYNC_H
#define GUARD_SYNC_H

#include "slots.h"

#include <stdbool.h>

/* A wait that took no longer than this was quick, and so is the next one, probably. */
#define SYNC_QUICK_US 200

/**
 * struct sync_table
 * @entries: syncs that waits and fences name
 * @reached: a pipe with data and no writer; -1: none was needed yet
 * @answer: gives the client the answer to its deferred wait, on any thread and under @lock; NULL:
 * no wait is deferred
 * @deferred: the wait that has no answer yet; NULL: there is none
 * @quick: the last wait was
 */
struct sync_table {
    GMutex lock;
    struct slots syncs;
    GQueue waits;
    GQueue fences;
    uint64_t last_fence;
    uint32_t entries;
    int reached;
    bool (*answer)(void *data, int fd);
    void *data;
    struct wait *deferred;
    bool quick;
};

/* Syncs and their target values, in the protocol's form: three words each. */
struct sync_entries {
    const uint32_t *words;
    uint32_t count;
};

void sync_table_init(struct sync_table *table);
void sync_table_clear(struct sync_table *table);

/* 0 with @fault set if there are too many. */
uint32_t sync_create(struct sync_table *table, uint64_t value, const char **fault);
bool sync_unref(struct sync_table *table, uint32_t id, const char **fault);
bool sync_read(struct sync_table *table, uint32_t id, uint64_t *value, const char **fault);

/* Sets all to their values at once, whatever they were, and wakes the waits for them. */
bool sync_write(struct sync_table *table, struct sync_entries entries, const char **fault);

/*
 * Returns the read end of a pipe; @fresh: the caller has to close it, otherwise it is the table's,
 * for all waits that are over when they come. It has data as soon as all of the syncs, or
 * with @any one of them, have reached their values, and hangs up without data if this process ends
 * before. Mesa takes that for a lost device. After @timeout ms nobody reads any more; more than
 * INT32_MAX: forever. -1 with @fault set.
 *
 * SYNC_DEFERRED: it will probably be over soon, and then answer() gives the pipe of all that are
 * over. It saves a pipe of its own, and the client a sleep. But no other thread of the client's
 * sends anything meanwhile: it is for at most SYNC_QUICK_US, and until the client's next message.
 */
#define SYNC_DEFERRED (-2)
int sync_wait(struct sync_table *table, struct sync_entries entries, bool any, uint32_t timeout,
              bool *fresh, const char **fault);

/* Gives the deferred wait, if there is one, a pipe of its own. False with @fault set. */
bool sync_wait_settle(struct sync_table *table, const char **fault);

/*
 * A fence that advances syncs when it is done. Returns its number for virglrenderer, by which it
 * must be cancelled if virglrenderer does not accept it; 0 with @fault set.
 */
uint64_t sync_fence_begin(struct sync_table *table, uint32_t ring_idx, struct sync_entries entries,
                          const char **fault);
void sync_fence_cancel(struct sync_table *table, uint64_t fence);

/* virglrenderer has finished @fence, and so all before it on that ring. From any thread. */
void sync_fence_done(struct sync_table *table, uint32_t ring_idx, uint64_t fence);

/* Whether a fence on that ring is still pending. */
bool sync_fence_pending(struct sync_table *table, uint32_t ring_idx);

#endif /* GUARD_SYNC_H */
