/* SPDX-License-Identifier: MIT */
/*
 * The monitor's description for a guest whose VMM gave none: QEMU writes an EDID only if it shows
 * the picture by OpenGL.
 */
#ifndef ENGINE_MONITOR_H
#define ENGINE_MONITOR_H

#include <stddef.h>
#include <stdint.h>

#define MONITOR_EDID_SIZE 128u

/* The default of QEMU's own virtio-gpu. */
#define MONITOR_WIDTH  1280u
#define MONITOR_HEIGHT 800u

/*
 * An EDID 1.4 that prefers @width x @height (at most 4095 each) and has the usual smaller and
 * larger modes.
 */
void monitor_edid(uint8_t edid[MONITOR_EDID_SIZE], uint32_t width, uint32_t height);

/*
 * The preferred mode of any EDID, at most *@width x *@height as they are on entry; the default if
 * it has none.
 */
void monitor_preferred(const uint8_t *edid, size_t size, uint32_t *width, uint32_t *height);

#endif /* ENGINE_MONITOR_H */
