/* SPDX-License-Identifier: MIT */
/*
 * Numbers as people read them.
 */
#ifndef VGPUCTL_TEXT_H
#define VGPUCTL_TEXT_H

#include <glib.h>

/* "16.0 GiB"; NULL for 0, which means that it is not known. To be freed. */
char *text_of_bytes(guint64 bytes);

/* What others wrote, for a terminal: "?" in place of control characters but ends of lines. Takes
 * @text. */
char *text_printable(char *text);

/* Prints it so, with an end of line. */
void text_puts(const char *sentence);

#endif
