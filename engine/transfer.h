/* SPDX-License-Identifier: MIT */
/* Copies between guest memory and OpenGL resources. Venus and native contexts don't use them. */
#ifndef ENGINE_TRANSFER_H
#define ENGINE_TRANSFER_H

#include <stdint.h>

struct engine;
struct request;

/* Handlers, see control.h. */
uint32_t transfer_cmd_to_host_3d(struct engine *engine, const struct request *request);
uint32_t transfer_cmd_from_host_3d(struct engine *engine, const struct request *request);

#endif /* ENGINE_TRANSFER_H */
