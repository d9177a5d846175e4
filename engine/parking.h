/* SPDX-License-Identifier: MIT */
/*
 * Commands that wait, so that others need not. A command is parked if its context is held (hold.h),
 * or becomes so with it, or if it must stay behind a parked one: of the same context, of the same
 * resource, which one program may make and another use, or if both are fenced on the global
 * timeline; and the end of memory that a CUDA program has lent to a worker, until that has ended.
 * All others are executed at once, so answers come out of order, as virtio allows.
 */
#ifndef ENGINE_PARKING_H
#define ENGINE_PARKING_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct request;

/**
 * struct parking - zeroed, it is empty
 * @requests: struct parked, oldest first
 * @bytes: of them all
 * @answered: how many of them the guest has the answers of
 */
struct parking {
    GQueue requests;
    uint64_t bytes;
    guint answered;
};

void parking_clear(struct parking *parking);

/*
 * Keeps a copy of the request if it has to wait. False: execute it now. @truncated: it is to be
 * refused, in its turn.
 */
bool parking_take(struct engine *engine, const struct request *request, bool truncated);

/* Whether a command of that type is parked that names the context, or resource, @id. */
bool parking_has(const struct parking *parking, uint32_t type, uint32_t id);

/* Executes what need not wait any more. To be called when fence_released(). */
void parking_run(struct engine *engine);

#endif /* ENGINE_PARKING_H */
