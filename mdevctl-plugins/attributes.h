/* SPDX-License-Identifier: MIT */
/*
 * Attributes of a vGPU in mdevctl's terms: names of files below the device's directory in sysfs.
 * mdevctl writes them when it starts the vGPU, and fails if one is missing. So no other attribute
 * can be in a definition.
 */
#ifndef MDEVCTL_PLUGINS_ATTRIBUTES_H
#define MDEVCTL_PLUGINS_ATTRIBUTES_H

#include <glib.h>

#include "host-agent/model/slice_keys.h"

/**
 * Attribute
 * @name: mdevctl's, "vgpu/vram_bytes"
 * @key: the row of a slice's attributes; NULL: the window, which is the driver's only
 */
typedef struct {
    char *name;
    const SliceKey *key;
} Attribute;

/* More than there are. */
#define ATTRIBUTES_MAX 32

/* Their number; @list: all of them, kept. */
guint attributes_get(const Attribute **list);

/* The name in vgpu/ of sysfs. Part of the attribute's. */
const char *attribute_file(const Attribute *attribute);

/**
 * Wanted - the values of a definition
 * @values: as the driver shows them: numbers are decimal; NULL: not in the definition
 */
typedef struct {
    gboolean autostart;
    char *values[ATTRIBUTES_MAX];
} Wanted;

/* The value of the attribute whose file is so called; NULL: not in the definition. */
const char *wanted_value(const Wanted *wanted, const char *file);

void wanted_clear(Wanted *wanted);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Wanted, wanted_clear)

/*
 * Stores "@name": "@text". FALSE, with a message, if mdevctl could not start a vGPU that has it.
 * Attributes of sysfs outside vgpu/, such as power/control, are accepted unchecked. Domain:
 * G_OPTION_ERROR.
 */
gboolean attribute_read(Wanted *wanted, const char *name, const char *text, GError **error);

#endif
