/* SPDX-License-Identifier: MIT */
/*
 * Strict reading of a dictionary (a{sv}) that came over the bus: a key that is not known, is there twice or is of
 * another type is an error, since what was silently ignored would be done differently from what was asked.
 */
#ifndef MODEL_DICT_READ_H
#define MODEL_DICT_READ_H

#include <glib.h>

/**
 * DictKey - a key that is allowed
 * @type: s, t, u, i, b, or a for "as"
 * @value: where to: char *, guint64, guint, int, gboolean, GStrv
 * @given: set to TRUE where the key is there; NULL: not asked for
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

/* Strings and lists are copied, for the caller to free. AGENT_ERROR_INVALID. */
gboolean dict_read(GVariant *dict, const DictKey *keys, gsize count, GError **error);

#endif
