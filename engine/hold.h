/* SPDX-License-Identifier: MIT */
/*
 * Contexts whose render worker is held up. A worker handles one message after the other, and some
 * make it wait: for a ring that compiles pipelines (vkWaitRingSeqnoMESA), or for a ring's thread to
 * end. virglrenderer asks the worker for each blob and waits for the answer. The engine would wait
 * with it, and so would every other program of the VM.
 *
 * Such a message is followed by a fence on ring 0, the CPU's timeline, which the worker signals
 * when it reaches it. Until then the context is held: its worker is sent nothing, and its commands
 * are parked (parking.h).
 */
#ifndef ENGINE_HOLD_H
#define ENGINE_HOLD_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct context;
struct engine;

/* Holds the context if its worker may wait at these commands (@words of them), just sent to it. */
void hold_submitted(struct engine *engine, struct context *context, const uint32_t *commands,
                    size_t words);

/* Holds the context if its worker has not reached this fence yet; 0: none. */
void hold_unless_reached(struct engine *engine, struct context *context, uint64_t probe);

bool hold_is_on(struct engine *engine, struct context *context);

#endif /* ENGINE_HOLD_H */
