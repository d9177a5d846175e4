/* SPDX-License-Identifier: MIT */
/*
 * A worker that hangs, which its guest can bring about, hangs the main thread as soon as that waits
 * for an answer of it. That is the guest's own affair until it resets the device or the vGPU is
 * removed: then this process ends, and the next engine serves the device.
 */
#ifndef ENGINE_STUCK_H
#define ENGINE_STUCK_H

struct engine;

/* Before and after what may hang. Not to be nested. Uses SIGALRM. */
void stuck_watch_begin(struct engine *engine);
void stuck_watch_end(void);

/* In between: one step of many is done, so what comes next has all its time. */
void stuck_watch_progress(void);

#endif /* ENGINE_STUCK_H */
