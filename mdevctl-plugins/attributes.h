/* SPDX-License-Identifier: MIT */
/*
 * Attributes of a vGPU as mdevctl has them: names of files below the device's directory in sysfs,
 * which mdevctl writes when it starts the vGPU, and whose being there it insists on. So no other
 * attribute can be in a definition.
 */
#ifndef MDEVCTL_PLUGINS_ATTRIBUTES_H
#define MDEVCTL_PLUGINS_ATTRIBUTES_H

#include <glib.h>

enum {
    ATTRIBUTE_VRAM,
    ATTRIBUTE_WINDOW,
    ATTRIBUTE_WEIGHT,
    ATTRIBUTE_CAP,
    ATTRIBUTE_PRIORITY,
    ATTRIBUTE_DISPLAY,
    ATTRIBUTE_TENANT,
    ATTRIBUTE_CLASS,
    ATTRIBUTE_OVERSUBSCRIBE,
    ATTRIBUTES
};

/**
 * Attribute
 * @name: mdevctl's, "vgpu/vram_bytes"
 * @key: of CheckDefinition's options; NULL: nothing in the ledger or a quota depends on it
 * @type: of that key: u, t (bytes) or s
 * @min, @max: what the driver takes, of numbers
 * @valid: whether it takes it, of words; @rule: what it takes
 */
typedef struct {
    const char *name;
    const char *key;
    char type;
    guint64 min;
    guint64 max;
    gboolean (*valid)(const char *text);
    const char *rule;
} Attribute;

extern const Attribute attributes[ATTRIBUTES];

/* The name in vgpu/ of sysfs. Part of the attribute's. */
const char *attribute_file(const Attribute *attribute);

/**
 * Wanted - what a definition says
 * @values: as the driver shows them: numbers are decimal; NULL: it does not say
 */
typedef struct {
    gboolean autostart;
    char *values[ATTRIBUTES];
} Wanted;

void wanted_clear(Wanted *wanted);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Wanted, wanted_clear)

/*
 * Takes "@name": "@text" over. FALSE, with a sentence, where mdevctl could not start a vGPU that
 * has it. Attributes of sysfs outside vgpu/, as power/control, are taken for right. Domain:
 * G_OPTION_ERROR.
 */
gboolean attribute_read(Wanted *wanted, const char *name, const char *text, GError **error);

#endif
