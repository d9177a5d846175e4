/* SPDX-License-Identifier: MIT */
/*
 * Attributes of a vGPU as mdevctl has them: names of files below the device's directory in sysfs,
 * which mdevctl writes when it starts the vGPU, and whose being there it insists on. So no other
 * attribute can be in a definition.
 */
#ifndef CALLOUT_ATTRIBUTES_H
#define CALLOUT_ATTRIBUTES_H

#include <glib.h>

enum {
    ATTRIBUTE_VRAM,
    ATTRIBUTE_WINDOW,
    ATTRIBUTE_WEIGHT,
    ATTRIBUTE_CAP,
    ATTRIBUTE_PRIORITY,
    ATTRIBUTE_DISPLAY,
    ATTRIBUTES
};

/**
 * Attribute
 * @name: mdevctl's, "vgpu/vram_bytes"
 * @key: of CheckDefinition's options; NULL: nothing in the ledger or a quota depends on it
 * @wide: bytes (t) and not a number (u)
 * @min, @max: what the driver takes
 */
typedef struct {
    const char *name;
    const char *key;
    gboolean wide;
    guint64 min;
    guint64 max;
} Attribute;

extern const Attribute attributes[ATTRIBUTES];

/* The name in vgpu/ of sysfs. Part of the attribute's. */
const char *attribute_file(const Attribute *attribute);

/**
 * Wanted - what a definition says
 */
typedef struct {
    gboolean autostart;
    gboolean given[ATTRIBUTES];
    guint64 values[ATTRIBUTES];
} Wanted;

/*
 * Takes "@name": "@text" over. FALSE, with a sentence, where mdevctl could not start a vGPU that
 * has it. Attributes of sysfs outside vgpu/, as power/control, are taken for right. Domain:
 * G_OPTION_ERROR.
 */
gboolean attribute_read(Wanted *wanted, const char *name, const char *text, GError **error);

#endif
