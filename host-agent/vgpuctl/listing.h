/* SPDX-License-Identifier: MIT */
/*
 * Objects as D-Bus has them, dictionaries, printed: many as a table with a line for each, one as a
 * table with a line for each member.
 */
#ifndef VGPUCTL_LISTING_H
#define VGPUCTL_LISTING_H

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
 * @lines: of a table of one object
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

#endif
