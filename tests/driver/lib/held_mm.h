/* SPDX-License-Identifier: MIT */
/*
 * A process whose address space is held for a while, by the test's module mm_holder: whoever needs
 * its mmap_lock waits, as for memory that a FUSE server does not deliver.
 */
#ifndef HELD_MM_H
#define HELD_MM_H

#define HELD_MM_NODE "/dev/vgpu-test-holder"
#define HELD_MM_MS   4000

/* Skips the test if the module is not there. */
void held_mm_need(void);

/* The body of a thread: holds the address space of the process that it runs in for HELD_MM_MS. */
void *held_mm_thread(void *data);

#endif /* HELD_MM_H */
