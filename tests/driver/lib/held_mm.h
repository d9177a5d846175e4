/* SPDX-License-Identifier: MIT */
/*
 * A process whose address space is held for a while, by the test's module mm_holder: whoever needs
 * its mmap_lock waits, as for memory that a FUSE server does not deliver.
 */
#ifndef HELD_MM_H
#define HELD_MM_H

#include <stdbool.h>

#define HELD_MM_NODE "/dev/vgpu-test-holder"
#define HELD_MM_MS   4000
/* For a test that ends the hold itself: longer than it takes on a slow, loaded machine. */
#define HELD_MM_LONG_MS 30000

/* Skips the test if the module is not there. */
void held_mm_need(void);

/* The body of a thread: holds the address space of the process that it runs in for HELD_MM_MS. */
void *held_mm_thread(void *data);
/* For HELD_MM_LONG_MS, or until held_mm_let_go(). */
void *held_mm_long_thread(void *data);
void held_mm_let_go(void);

/* Whether an address space is held now. These two map no memory. */
bool held_mm_is_held(void);
/* Returns when one is, from any process, or after HELD_MM_LONG_MS. */
void held_mm_wait(void);

#endif /* HELD_MM_H */
