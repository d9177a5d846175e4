/* SPDX-License-Identifier: MIT */
/* The guest's commands for resources. */
#ifndef ENGINE_RESOURCE_COMMANDS_H
#define ENGINE_RESOURCE_COMMANDS_H

#include <stdint.h>

struct engine;
struct request;

/* Removes all resources from the window and from guest memory, as a reset requires. */
void resource_release_all(struct engine *engine);

/* Handlers, see control.h. */
uint32_t resource_cmd_create_blob(struct engine *engine, const struct request *request);
uint32_t resource_cmd_unref(struct engine *engine, const struct request *request);
uint32_t resource_cmd_attach_backing(struct engine *engine, const struct request *request);
uint32_t resource_cmd_detach_backing(struct engine *engine, const struct request *request);

#endif /* ENGINE_RESOURCE_COMMANDS_H */
