/* SPDX-License-Identifier: MIT */
/*
 * The attributes of a slice, a row each. Copies, stored dictionaries, the database, requests,
 * lists, the audit, mdevctl's definitions and its callout's checks, and the options and lists of
 * vgpuctl are made from the rows; CONTRIBUTING.md, "A new attribute of a slice", says how one is
 * added.
 */
#ifndef MODEL_SLICE_KEYS_H
#define MODEL_SLICE_KEYS_H

#include "host-agent/model/slice.h"

/* What the member of Slice is. */
typedef enum {
    SLICE_KEY_TEXT,    /* char *, never NULL */
    SLICE_KEY_FLAG,    /* gboolean */
    SLICE_KEY_NUMBER,  /* guint */
    SLICE_KEY_LEVEL,   /* guint, which lists have as a signed number */
    SLICE_KEY_BYTES,   /* guint64 */
    SLICE_KEY_TIME,    /* gint64 */
    SLICE_KEY_SWITCH,  /* int: 0, 1; -1: not known */
    SLICE_KEY_DOOR,    /* SliceTransport; like the next two a word for people */
    SLICE_KEY_CLASS,   /* SliceClass */
    SLICE_KEY_ENGINES, /* guint, of Engine */
} SliceKeyType;

/* Where a row is used. */
enum {
    SLICE_KEY_ASKED = 1 << 0,       /* CreateSlices takes it */
    SLICE_KEY_CHANGED = 1 << 1,     /* SetSlice takes it */
    SLICE_KEY_AUDITED = 1 << 2,     /* the audit compares it */
    SLICE_KEY_LISTED = 1 << 3,      /* FindSlices has it, if it is known */
    SLICE_KEY_CONTAINER = 1 << 4,   /* that only for a container's slice */
    SLICE_KEY_OWNED = 1 << 5,       /* that only for an owner's slice */
    SLICE_KEY_ASKED_SLICE = 1 << 6, /* CreateSlices takes it, not for a VM */
    SLICE_KEY_RUN = 1 << 7,         /* an option of "vgpuctl run" */
    SLICE_KEY_VM = 1 << 8,          /* an option of the commands that give a VM a vGPU */
    SLICE_KEY_DEFINITION = 1 << 9,  /* CheckDefinition takes it */
};

/**
 * SliceKey
 * @name: on the bus and in the audit
 * @column: in the database and in stored dictionaries; NULL: not stored
 * @attribute: of its vGPU, in the driver and in mdevctl's configuration; NULL: none
 * @offset, @size: of the member
 * @min, @max: what a request may have; both 0: anything
 * @unset: what lists say in place of ""; NULL: ""
 * @check: whether a request may have that text; NULL: any
 * @option: help of the option that sets it, whose name is the column; NULL: no such option
 * @value: what --help and completions call the option's value; NULL: it has none
 * @label: before its value in the list of all about a slice; NULL: not there
 */
typedef struct {
    const char *name;
    const char *column;
    const char *attribute;
    SliceKeyType type;
    guint uses;
    gsize offset;
    gsize size;
    guint64 min;
    guint64 max;
    const char *unset;
    gboolean (*check)(const char *name, const char *text, GError **error);
    const char *option;
    const char *value;
    const char *label;
} SliceKey;

extern const SliceKey slice_keys[];
extern const guint slice_keys_count;

/* More than any GPU has, and small enough to be summed. */
#define SLICE_BYTES_MAX (G_GUINT64_CONSTANT(1) << 50)

/* The row of that name; NULL: there is none. */
const SliceKey *slice_key_find(const char *name);

/* A request may have that text for the value of that name. AGENT_ERROR_INVALID. */
gboolean slice_key_check(const char *name, const char *text, GError **error);

/* Its bit in a set of rows. */
guint64 slice_key_bit(const SliceKey *key);

/* Its type in a request: s, b, u or t. */
char slice_key_asked_as(const SliceKey *key);

/* The value is a text, or a word for a number. */
gboolean slice_key_is_text(const SliceKey *key);

/* Any value as text, "" if it is not known. To be freed. */
char *slice_key_text(const SliceKey *key, const Slice *slice);

/* FALSE: it is not of the words that there are, and nothing is changed. Only for those that are
 * texts. */
gboolean slice_key_set_text(const SliceKey *key, Slice *slice, const char *text);

/* For all but SLICE_KEY_TEXT. */
gint64 slice_key_number(const SliceKey *key, const Slice *slice);
void slice_key_set_number(const SliceKey *key, Slice *slice, gint64 number);

/* As lists have it; NULL: it is not known. Floating. */
GVariant *slice_key_listed(const SliceKey *key, const Slice *slice);

/* As stored dictionaries have it. Floating; and back: a value of another type is ignored. */
GVariant *slice_key_stored(const SliceKey *key, const Slice *slice);
void slice_key_restore(const SliceKey *key, Slice *slice, GVariant *value);

/*
 * Takes the value of its attribute, as the driver or a definition has it: anybody may have written
 * it, past the callout. NULL, "" and what the slice can't have change nothing.
 */
void slice_key_adopt(const SliceKey *key, Slice *slice, const char *text);

void slice_key_copy(const SliceKey *key, Slice *to, const Slice *from);

gboolean slice_key_is_same(const SliceKey *key, const Slice *a, const Slice *b);

#endif
