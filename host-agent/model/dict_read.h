/* SPDX-License-Identifier: MIT */
/*
 * Strict reading of a dictionary (a{sv}) from the bus. An unknown key, a duplicate key or another
 * type is an error: if it were silently ignored, the result would differ from the request.
 */
#ifndef MODEL_DICT_READ_H
#define MODEL_DICT_READ_H

#include <glib.h>

/**
 * DictKey - an allowed key
 * @type: s, t, u, i, b, or a for "as"
 * @value: destination: char *, guint64, guint, int, gboolean, GStrv
 * @given: set to TRUE if the key is present; NULL: not needed
 * @min, @max: for t and u; both 0: any
 */
typedef struct {
    const char *key;
    char type;
    void *value;
    gboolean *given;
    guint64 min;
    guint64 max;
} DictKey;

/* Strings and lists are copied; the caller frees them. AGENT_ERROR_INVALID. */
gboolean dict_read(GVariant *dict, const DictKey *keys, gsize count, GError **error);

#endif
