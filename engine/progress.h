/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_PROGRESS_H
#define ENGINE_PROGRESS_H

/*
 * One step of many is done, in a loop whose length a guest chooses: neither watchdog (stuck.h,
 * watchdog.h) may take the whole for a hang.
 */
void progress(void);

#endif /* ENGINE_PROGRESS_H */
