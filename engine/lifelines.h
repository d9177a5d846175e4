/* SPDX-License-Identifier: MIT */
/*
 * The connections of all contexts to their render workers (worker.h): they show for which contexts
 * virglrenderer's fences can be believed, and which have lost their worker.
 *
 * They are what wakes the main thread beside the driver, and so is an eventfd of the loop's.
 */
#ifndef ENGINE_LIFELINES_H
#define ENGINE_LIFELINES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct lifelines
 * @connections: context -> its connection
 * @fd: readable when lifelines_next_cut() has one, and once after each write to the eventfd; -1:
 * not available, and it never is
 */
struct lifelines {
    GMutex lock;
    GHashTable *connections;
    int fd;
};

void lifelines_init(struct lifelines *lines);
void lifelines_clear(struct lifelines *lines);

/* Writes to @eventfd make @fd readable until lifelines_next_cut(). Nobody reads the eventfd. */
bool lifelines_wake_by(struct lifelines *lines, int eventfd);

/*
 * Takes ownership of @connection. False, and it is closed: it cannot be watched. @is_read: what
 * comes by it counts as lifelines_next_cut(), until somebody has read it.
 */
bool lifelines_add(struct lifelines *lines, uint32_t ctx_id, int connection, bool is_read);
void lifelines_remove(struct lifelines *lines, uint32_t ctx_id);

/*
 * From any thread: the connection of a context, which stays open until lifelines_return(). -1: the
 * context does not exist any more.
 */
int lifelines_borrow(struct lifelines *lines, uint32_t ctx_id);
void lifelines_return(struct lifelines *lines);

/* A context that has lost its worker and has not been removed, or is to be read; 0: there is none,
 * or @fd still says so. */
uint32_t lifelines_next_cut(struct lifelines *lines);

#endif /* ENGINE_LIFELINES_H */
