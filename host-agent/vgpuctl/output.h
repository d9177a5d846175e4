/* SPDX-License-Identifier: MIT */
/*
 * How commands print: as tables for people, or as documents for programs.
 */
#ifndef VGPUCTL_OUTPUT_H
#define VGPUCTL_OUTPUT_H

#include <gio/gio.h>
#include <json-glib/json-glib.h>
#include <stdio.h>

#include "lib/host_root.h"

typedef enum {
    FORMAT_TABLE,
    FORMAT_WIDE, /* a table with all of its columns */
    FORMAT_NAME, /* the objects' names alone, as commands take them */
    FORMAT_YAML,
    FORMAT_JSON,
} Format;

/**
 * Options - of every command
 * @colour: states have colours
 * @out: where commands print
 */
typedef struct {
    Format format;
    gboolean no_headers;
    gboolean colour;
    HostRoot *root;
    FILE *out;
} Options;

/* What -o takes, with commas. */
#define FORMAT_WORDS "table, wide, name, yaml, json"

/* FALSE if @name is no format. */
gboolean format_parse(const char *name, Format *format);

/* YAML or JSON is asked for. */
gboolean output_is_document(const Options *options);

/* Colours are wanted on @stream: it is a terminal that has them, and NO_COLOR is not set. */
gboolean output_has_colour(FILE *stream);

/* Prints @node as a document; takes it. */
void output_node(const Options *options, JsonNode *node);

/* The same for a value as D-Bus has it; consumes a floating one. */
void output_variant(const Options *options, GVariant *value);

/* A line of text. Control characters are shown as "?". */
void output_line(const Options *options, const char *format, ...) G_GNUC_PRINTF(2, 3);

#endif
