/* SPDX-License-Identifier: MIT */
/*
 * Members of a dictionary from vgpud as cells of a table: to be freed, NULL if it has no such
 * member.
 */
#ifndef VGPUCTL_DICT_H
#define VGPUCTL_DICT_H

#include <glib.h>

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

#endif
