/* SPDX-License-Identifier: MIT */
/* Lists of objects from vgpud: their cells, their filters, and how they are printed. */
#ifndef VGPUCTL_LISTING_H
#define VGPUCTL_LISTING_H

#include <glib.h>

#include "host-agent/vgpuctl/output.h"

enum {
    COLUMN_WIDE = 1 << 0,  /* in wide tables only */
    COLUMN_LONG = 1 << 1,  /* cut off at the end of a terminal's line, unless the table is wide */
    COLUMN_STATE = 1 << 2, /* a word that has a colour */
};

/* A cell's text, to be freed; NULL: "-". */
typedef char *(*CellFunc)(GVariant *object, const char *key);

/**
 * Column
 * @head: in upper case for a table of many objects; a label for one object
 * @key: of the member that @cell reads
 * @cell: NULL: as a slice's attribute of that name is shown (slice_keys.h)
 */
typedef struct {
    const char *head;
    const char *key;
    CellFunc cell;
    guint flags;
} Column;

/**
 * Listing - objects of one kind
 * @columns: of a table with a line for each
 * @lines: of a table of one object, after its name
 * @title: the label of its name there; NULL: @lines have it
 * @is_slice: the attributes of a slice that it has are lines, too
 * @name: key of the member by which commands take an object
 * @none: what is said if there is no object
 */
typedef struct {
    const Column *columns;
    guint columns_count;
    const Column *lines;
    guint lines_count;
    const char *name;
    const char *none;
    const char *title;
    gboolean is_slice;
} Listing;

/* @objects: of aa{sv}. */
void listing_print(const Options *options, const Listing *listing, GVariant *objects);

/*
 * All about each of @objects, of GVariant (a{sv}).
 * @list: several were asked for, so that a document has a list of them
 */
void listing_show(const Options *options, const Listing *listing, const GPtrArray *objects,
                  gboolean list);

/* A table of the caller's own: cells of @columns heads, row after row; takes none of them. */
void listing_print_cells(const Options *options, const char *const *heads, guint columns,
                         const GPtrArray *cells);

/* A member of a dictionary from vgpud, which keeps it; "" if it has no such member. */
const char *dict_string(GVariant *dict, const char *key);

/*
 * Members of a dictionary from vgpud as cells of a table: to be freed, NULL if it has no such
 * member.
 */

char *dict_text(GVariant *dict, const char *key);

char *dict_number(GVariant *dict, const char *key);

/* NULL for 0 as well, which stands for no limit. */
char *dict_limit(GVariant *dict, const char *key);

/* "yes", "no". */
char *dict_flag(GVariant *dict, const char *key);

/* As text_of_bytes(). */
char *dict_bytes(GVariant *dict, const char *key);

/* All strings of a list, with @between. */
char *dict_list(GVariant *dict, const char *key, const char *between);

/* --gpu, --tenant, --type and --state of the commands that list objects. */

/**
 * Filter - where the objects of a list have what is asked for
 * @gpu, @tenant, @type: keys of members; NULL: there is no such option
 * @states: keys, NULL terminated, of members any of which may be the state
 * @words: all states that there are, for a misspelt one; NULL: any word is right
 */
typedef struct {
    const char *gpu;
    const char *tenant;
    const char *type;
    const char *const *states;
    const char *const *words;
} Filter;

/* The object is in the state that @asked names. */
typedef gboolean (*FilterIsInState)(void *object, const char *asked);

/* The object is in one of the states that --state asks for, if it is given. */
gboolean filter_has_state(void *object, FilterIsInState is);

/* Objects of a list, found by the names that people give. */

/* The object is called so. */
typedef gboolean (*ObjectIs)(GVariant *object, const char *name);

/* By its members Uuid, in any case, and Name. */
gboolean object_is_slice(GVariant *object, const char *name);

/* By its member Name. */
gboolean object_is_named(GVariant *object, const char *name);

/* By its member Id, whole or without the driver's prefix. */
gboolean object_is_type(GVariant *object, const char *name);

/**
 * objects_list() - shows those of @objects that fit the options of @filter
 * @objects: of aa{sv}, taken; NULL: they could not be read, and @error says why
 *
 * VGPUCTL_USAGE for a state that there is not.
 */
gboolean objects_list(const Options *options, const Listing *listing, GVariant *objects,
                      const Filter *filter, GError **error);

/**
 * objects_show() - shows those of @objects that @names name, in their order
 * @objects: of aa{sv}
 * @what, @list_command: for the error, as "vGPU" and "vgpu list"
 *
 * VGPUCTL_NOT_FOUND if one is missing; the others are shown.
 */
gboolean objects_show(const Options *options, const Listing *listing, GVariant *objects,
                      char **names, ObjectIs is, const char *what, const char *list_command,
                      GError **error);

#endif
