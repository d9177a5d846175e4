/* SPDX-License-Identifier: MIT */
/*
 * What the engine says of itself when its VM is saved, and how another engine goes on with it
 * (STATE_SAVE and STATE_LOAD in uapi/linux/vgpu.h). Little endian: 32 bits with STATE_VERSION, then
 * records, each with its kind and its size in 32 bits:
 *
 *   context   its ids; it is lost, because what the GPU has of it cannot be moved
 *   resource  one in the host's memory, lost as well; its id stays taken until the guest gives it
 *             back
 *   request   a command of virtio-gpu, to be executed again: resources in guest memory, and what is
 *             shown
 *   cursor    its picture
 *
 * It may be anybody's, and is checked like what a guest sends.
 */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

#define STATE_VERSION 1u

/* Appends the state to @out. */
void state_save(struct engine *engine, GByteArray *out);

/*
 * Into an engine that has nothing of a guest. Records that fail are left out, as if the guest's
 * command had failed. False with ENGINE_ERROR: it is no state of an engine.
 */
bool state_load(struct engine *engine, const uint8_t *data, size_t size, GError **error);

#endif /* ENGINE_STATE_H */
