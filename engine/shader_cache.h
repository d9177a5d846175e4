/* SPDX-License-Identifier: MIT */
/*
 * The drivers' cache of compiled shaders, so that a program's second start does not compile them
 * again. What is in it becomes the driver's input, and render workers write it. So it belongs to
 * one vGPU or slice, and is emptied before another VM or tenant can come: containers of one tenant
 * that follow each other within 30 s may share it. The unit's directory is in memory, of limited
 * size, and ends with the unit.
 */
#ifndef ENGINE_SHADER_CACHE_H
#define ENGINE_SHADER_CACHE_H

#include <stdbool.h>

/*
 * For render workers that start from now on. @directory: empty from here on; NULL: no cache, which
 * is also so before the first call. If it is missing or cannot be written, drivers do without.
 * So they do if it cannot be emptied.
 */
void shader_cache_use(const char *directory);

/*
 * Nothing if there is no cache. No render worker may be left. False: something is still in it. Then
 * this process must end, so that its unit gets another directory.
 */
bool shader_cache_empty(void);

#endif /* ENGINE_SHADER_CACHE_H */
