/* SPDX-License-Identifier: MIT */
/* Commands of displays. A vGPU has one display or none; without one there is nothing to show. */
#ifndef ENGINE_DISPLAY_H
#define ENGINE_DISPLAY_H

#include <stdint.h>

struct engine;
struct request;

/* Handlers, see control.h. */
uint32_t display_cmd_get_info(struct engine *engine, const struct request *request);
uint32_t display_cmd_get_edid(struct engine *engine, const struct request *request);
uint32_t display_cmd_set_scanout(struct engine *engine, const struct request *request);
uint32_t display_cmd_set_scanout_blob(struct engine *engine, const struct request *request);
uint32_t display_cmd_flush(struct engine *engine, const struct request *request);

/* A command of the cursor queue. It has no answer; errors in it are ignored. */
void display_cursor_command(struct engine *engine, const struct request *request);

#endif /* ENGINE_DISPLAY_H */
