/* SPDX-License-Identifier: MIT */
/* The life of an engine from READY to its end. */
#ifndef ENGINE_LOOP_H
#define ENGINE_LOOP_H

#include <glib.h>
#include <linux/vgpu.h>
#include <stdbool.h>

struct engine;

/* Signals that end the loop or report dead children. To be called before any thread starts. */
bool loop_setup(GError **error);

/*
 * Serves the device until it is removed or SIGTERM arrives: true. False with @error set if the
 * engine cannot continue; the code is the exit code.
 */
bool loop_run(struct engine *engine, GError **error);

/* For tests: handles one event. Sets @stop if the engine must end. */
bool loop_handle_event(struct engine *engine, const struct vgpu_engine_event *event, bool *stop,
                       GError **error);

#endif /* ENGINE_LOOP_H */
