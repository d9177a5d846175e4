/* SPDX-License-Identifier: MIT */
/* Reports when definitions in mdevctl's configuration are added, changed or removed. */
#ifndef VGPUD_SLICES_DEFINITION_WATCH_H
#define VGPUD_SLICES_DEFINITION_WATCH_H

#include <gio/gio.h>

#include "lib/host_root.h"

typedef struct DefinitionWatch DefinitionWatch;

/* Calls @changed from the main loop with the UUID. A missing directory is waited for. */
DefinitionWatch *definition_watch_new(HostRoot *root, void (*changed)(const char *uuid, void *data),
                                      void *data);

void definition_watch_free(DefinitionWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DefinitionWatch, definition_watch_free)

#endif
