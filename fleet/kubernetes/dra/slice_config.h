/* SPDX-License-Identifier: MIT */
/*
 * What claims and DeviceClasses say about a slice beyond its size, in opaque parameters:
 *
 *   {"apiVersion": "mdev-vgpu.org/v1", "kind": "SliceConfig", "door": "native", "cap": 50, ...}
 *   {"apiVersion": "mdev-vgpu.org/v1", "kind": "SliceLimits", "doors": ["guarded", "native"], ...}
 *
 * SliceLimits are for a DeviceClass alone. A DeviceClass's SliceConfig has the defaults. Without
 * SliceLimits a claim may have what its class's SliceConfig says, or less.
 */
#ifndef KUBERNETES_DRA_SLICE_CONFIG_H
#define KUBERNETES_DRA_SLICE_CONFIG_H

#include <json-glib/json-glib.h>

#include "fleet/kubernetes/agent.h"

/* On a card: the engines' weights know no more. */
#define SLICE_PRIORITY_MAX 15

/**
 * SliceConfig
 * @door, @class, @engines: vgpud's words; NULL: not said
 * @cap: per cent; 0: not said
 * @priority: -1: not said
 * @oversubscribe: bytes; -1: not said
 * @vram: bytes that the slice may use if the card has them free, where the claim's memory is what
 * it is promised; not for the class guaranteed; -1: not said
 * @moves: what is beyond that promise moves to the host's memory while others use the card
 */
typedef struct {
    char *door;
    char *class;
    char *engines;
    guint cap;
    gint priority;
    gint64 oversubscribe;
    gint64 vram;
    gboolean moves;
} SliceConfig;

/**
 * SliceLimits
 * @doors, @classes: allowed ones; NULL: not said
 * @priority, @cap, @oversubscribe, @vram: maximum; as above if not said
 */
typedef struct {
    GStrv doors;
    GStrv classes;
    guint cap;
    gint priority;
    gint64 oversubscribe;
    gint64 vram;
} SliceLimits;

/**
 * SliceSettings - all that concerns one request of a claim; initialize with SLICE_SETTINGS_INIT
 * @of_class, @of_claim: of the DeviceClass and the claim
 */
typedef struct {
    SliceConfig of_class;
    SliceConfig of_claim;
    SliceLimits limits;
} SliceSettings;

#define SLICE_SETTINGS_INIT                                                                        \
    {                                                                                              \
        .of_class = {.priority = -1, .oversubscribe = -1, .vram = -1},                             \
        .of_claim = {.priority = -1, .oversubscribe = -1, .vram = -1},                             \
        .limits = {.priority = -1, .oversubscribe = -1, .vram = -1},                               \
    }

void slice_settings_clear(SliceSettings *settings);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SliceSettings, slice_settings_clear)

/*
 * Takes one set of parameters; a later one of the same kind and source replaces the fields that it
 * has. FALSE with G_IO_ERROR: a field that is not known, or a value that is never valid.
 */
gboolean slice_settings_add(SliceSettings *settings, JsonObject *parameters, gboolean is_of_class,
                            GError **error);

/* Sets what @slice gets, whose memory is that of the claim. FALSE with G_IO_ERROR: the class does
 * not allow it. */
gboolean slice_settings_apply(const SliceSettings *settings, AgentSlice *slice, GError **error);

#endif
