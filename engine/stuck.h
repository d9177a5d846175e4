/* SPDX-License-Identifier: MIT */
/*
 * A guest can make a worker hang. A hanging worker hangs the main thread as soon as that waits for
 * its answer. That concerns only the guest itself, until it resets the device or the vGPU is
 * removed: then this process ends, and the next engine serves the device.
 */
#ifndef ENGINE_STUCK_H
#define ENGINE_STUCK_H

struct engine;

/* Before and after a call that may hang. Not to be nested. Uses SIGALRM. */
void stuck_watch_begin(struct engine *engine);
void stuck_watch_end(void);

/*
 * In between: one step of many is done, in a loop whose length a guest chooses. The next one has
 * the full time, also of systemd's watchdog (watchdog.h).
 */
void stuck_watch_progress(void);

#endif /* ENGINE_STUCK_H */
