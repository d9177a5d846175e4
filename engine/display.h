/* SPDX-License-Identifier: MIT */
/*
 * The 2D commands of a device without displays. Transfers and flushes are checked and then done:
 * nobody could see what they would copy.
 */
#ifndef ENGINE_DISPLAY_H
#define ENGINE_DISPLAY_H

#include <stdint.h>

struct engine;
struct request;

/* Handlers, see control.h. */
uint32_t display_cmd_get_info(struct engine *engine, const struct request *request);
uint32_t display_cmd_no_scanout(struct engine *engine, const struct request *request);
uint32_t display_cmd_flush(struct engine *engine, const struct request *request);
uint32_t display_cmd_transfer(struct engine *engine, const struct request *request);

#endif /* ENGINE_DISPLAY_H */
