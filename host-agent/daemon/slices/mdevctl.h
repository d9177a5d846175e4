/* SPDX-License-Identifier: MIT */
/* mdevctl: running it, and watching its definitions. */
#ifndef VGPUD_SLICES_MDEVCTL_H
#define VGPUD_SLICES_MDEVCTL_H

#include <gio/gio.h>

#include "lib/vgpu.h"
#include "lib/host_root.h"
#include "host-agent/model/slice.h"

/* @error: NULL: it is done. */
typedef void (*MdevctlFunc)(const GError *error, void *data);

/*
 * Runs "mdevctl WORDS…" with @json, if given, as the file /dev/stdin, and calls @func from the main
 * loop when it has ended. AGENT_ERROR_FAILED with mdevctl's message. It is killed after a minute,
 * or when its @cancellable (NULL: none) is cancelled.
 */
void mdevctl_run(const char *const *words, const char *json, GCancellable *cancellable,
                 MdevctlFunc func, void *data);

/**
 * MdevctlSpec - a vGPU in mdevctl's terms
 * @window: bytes; 0: the type's
 */
typedef struct {
    const Slice *slice;
    guint64 window;
} MdevctlSpec;

/* Its JSON (mdevctl(8), "jsonfile"): type, start mode, attributes. To be freed. */
char *mdevctl_json(const MdevctlSpec *spec);

/*
 * The JSON of @definition from mdevctl's configuration, with the parameters replaced by those of
 * @slice, and the rest unchanged. To be freed.
 */
char *mdevctl_changed_json(HostRoot *root, const Definition *definition, const Slice *slice);

/* The GPU's name among mdev parents. Part of @gpu. */
const char *mdevctl_parent(const char *gpu);

/* Reports when definitions in mdevctl's configuration are added, changed or removed. */

typedef struct DefinitionWatch DefinitionWatch;

/* Calls @changed from the main loop with the UUID. A missing directory is waited for. */
DefinitionWatch *definition_watch_new(HostRoot *root, void (*changed)(const char *uuid, void *data),
                                      void *data);

void definition_watch_free(DefinitionWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DefinitionWatch, definition_watch_free)

#endif
