/* SPDX-License-Identifier: MIT */
/* The life of an engine between READY and its end. */
#ifndef ENGINE_LOOP_H
#define ENGINE_LOOP_H

#include <glib.h>
#include <linux/vgpu.h>
#include <stdbool.h>

struct engine;

/* Signals that end the loop or tell of dead children. To be called before any thread starts. */
bool loop_setup(GError **error);

/*
 * Serves the device until it goes away or SIGTERM: true. False with @error set where the engine
 * can't go on; the code is the exit code.
 */
bool loop_run(struct engine *engine, GError **error);

/* For tests: carries out one event. Sets @stop where the engine is to end. */
bool loop_handle_event(struct engine *engine, const struct vgpu_engine_event *event, bool *stop,
                       GError **error);

#endif /* ENGINE_LOOP_H */
