/* SPDX-License-Identifier: MIT */
/*
 * Definitions of mediated devices in mdevctl's configuration, /etc/mdevctl.d/PARENT/UUID
 * (mdevctl(8)).
 */
#ifndef LIB_DEFINITION_H
#define LIB_DEFINITION_H

#include <json-glib/json-glib.h>

#include "lib/host_root.h"

#define DEFINITIONS_DIR "/etc/mdevctl.d"

/**
 * Definition
 * @parent: in mdevctl's form: a PCI address, or the name of a GPU without hardware
 * @type: mdev type
 * @autostart: started when the parent appears
 * @vram: bytes, the attribute vgpu/vram_bytes; -1, here and in @weight, @cap, @priority and
 * @display: the type's value
 * @tenant, @class: as written by anybody, in any form; NULL: not in the definition
 * @oversubscribe: bytes; -1: the same
 */
typedef struct {
    char *uuid;
    char *parent;
    char *type;
    gboolean autostart;
    gint64 vram;
    gint64 weight;
    gint64 cap;
    gint64 priority;
    gint64 display;
    char *tenant;
    char *class;
    gint64 oversubscribe;
} Definition;

void definition_free(Definition *definition);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Definition, definition_free)

/* All definitions, of Definition. Files that are not mdevctl's JSON are left out. */
GPtrArray *definitions_read(HostRoot *root);

/* The definition of @uuid, whatever its parent; NULL: none. */
Definition *definition_find(HostRoot *root, const char *uuid);

/* There is a file for @uuid below any parent, whatever its content. */
gboolean definition_exists(HostRoot *root, const char *uuid);

/* NULL: none. */
Definition *definition_read(HostRoot *root, const char *parent, const char *uuid);

/* All of its JSON, to be unreferenced; empty if the file is gone or is not JSON. */
JsonObject *definition_json(HostRoot *root, const Definition *definition);

#endif
