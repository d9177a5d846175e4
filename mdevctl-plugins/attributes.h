/* SPDX-License-Identifier: MIT */
/*
 * Attributes of a vGPU in mdevctl's terms: names of files below the device's directory in sysfs.
 * mdevctl writes them when it starts the vGPU, and fails if one is missing. So no other attribute
 * can be in a definition.
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
 * @key: of CheckDefinition's options; NULL: neither the ledger nor a quota depends on it
 * @type: of that key: u, t (bytes) or s
 * @min, @max: the driver's range, for numbers
 * @valid: whether the driver accepts it, for words; @rule: what it accepts
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
 * Wanted - the values of a definition
 * @values: as the driver shows them: numbers are decimal; NULL: not in the definition
 */
typedef struct {
    gboolean autostart;
    char *values[ATTRIBUTES];
} Wanted;

void wanted_clear(Wanted *wanted);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Wanted, wanted_clear)

/*
 * Stores "@name": "@text". FALSE, with a message, if mdevctl could not start a vGPU that has it.
 * Attributes of sysfs outside vgpu/, such as power/control, are accepted unchecked. Domain:
 * G_OPTION_ERROR.
 */
gboolean attribute_read(Wanted *wanted, const char *name, const char *text, GError **error);

#endif
