/* SPDX-License-Identifier: MIT */
/*
 * Reading sysfs. Attributes come and go with their devices: a missing one is NULL, 0 or "unknown",
 * not an error.
 */
#ifndef LIB_SYSFS_H
#define LIB_SYSFS_H

#include <glib.h>

/* The attribute's text without white space around it; NULL if it is missing. To be freed. */
char *sysfs_read(const char *dir, const char *attribute);

/* The number at the beginning of an attribute, in any base of C; @missing if there is none. */
gint64 sysfs_number(const char *dir, const char *attribute, gint64 missing);

/* The last component of a link's target, as a driver's name; NULL: none. */
char *sysfs_link_name(const char *dir, const char *link);

/* Names of the entries of a directory, sorted; empty if there is no such directory. */
GStrv sysfs_list(const char *dir);

#endif
