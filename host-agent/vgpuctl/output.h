/* SPDX-License-Identifier: MIT */
/*
 * What vgpuctl prints: formats, text for a terminal, progress, and the errors of several objects.
 */
#ifndef VGPUCTL_OUTPUT_H
#define VGPUCTL_OUTPUT_H

#include <glib.h>
#include <stdio.h>
#include <gio/gio.h>
#include <json-glib/json-glib.h>

#include "lib/host_root.h"
#include "host-agent/vgpuctl/client.h"

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

/* Numbers as people read them. */

/* "16.0 GiB"; NULL for 0, which means that it is not known. To be freed. */
char *text_of_bytes(guint64 bytes);

/* What others wrote, for a terminal: "?" in place of control characters but ends of lines. Takes
 * @text. */
char *text_printable(char *text);

/*
 * A line on a terminal's standard error about what takes longer than two seconds: what it is, how
 * long it has taken, and how long it can still take. If standard error is no terminal there is
 * none.
 */

/**
 * progress_begin() - something begins
 * @what: as "removing vGPU red"
 * @limit: seconds after which it is given up; 0: it has no limit
 *
 * The line is kept up to date by the main loop. A second one within another shows the inner.
 */
void progress_begin(const char *what, guint limit);

/* @done of @all parts are done, from which the time left is estimated. */
void progress_parts(guint done, guint all);

/* Takes the line away, before something else is printed. It comes back. */
void progress_hide(void);

void progress_end(void);

/* Sleeps, while the line is kept up to date. */
void progress_sleep(gint64 microseconds);

/* Commands that take several objects: each is done, whatever becomes of the others. */

/* Does it to the object of that name; FALSE with @error. */
typedef gboolean (*EachFunc)(Client *client, const char *name, void *data, GError **error);

/**
 * each_name() - does something to each of @names
 * @doing: for the progress line, as "removing vGPU"
 *
 * With several names each failure is printed as it comes, and @error says how many there were, with
 * the code of the first.
 */
gboolean each_name(Client *client, char **names, const char *doing, EachFunc func, void *data,
                   GError **error);

/* Prints "vgpuctl: " and the error. */
void each_print_error(const GError *error);

#endif
