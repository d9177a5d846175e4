/* SPDX-License-Identifier: MIT */
/*
 * Definitions of mediated devices in mdevctl's configuration, /etc/mdevctl.d/PARENT/UUID
 * (mdevctl(8)).
 */
#ifndef LIB_DEFINITION_H
#define LIB_DEFINITION_H

#include <json-glib/json-glib.h>

#define DEFINITIONS_DIR "etc/mdevctl.d"

/**
 * Definition
 * @parent: as mdevctl has it: a PCI address, or the name of a GPU without hardware
 * @type: mdev type
 * @autostart: started when the parent appears
 * @vram: bytes, the attribute vgpu/vram_bytes; like @weight, @cap, @priority and @display -1 where
 * it is the type's
 * @tenant, @class: as somebody wrote them, in whatever form; NULL: the definition does not say
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

/* All that there are; of Definition. What is not mdevctl's JSON is left out. */
GPtrArray *definitions_read(const char *root);

/* That of @uuid, whatever its parent; NULL: there is none. */
Definition *definition_find(const char *root, const char *uuid);

/* There is a file for @uuid below any parent, whatever is in it. */
gboolean definition_exists(const char *root, const char *uuid);

/* NULL: there is none. */
Definition *definition_read(const char *root, const char *parent, const char *uuid);

/* All of its JSON, to be unreferenced; empty where it is gone or is none. */
JsonObject *definition_json(const char *root, const Definition *definition);

#endif
