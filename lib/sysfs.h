/* SPDX-License-Identifier: MIT */
/*
 * Reading sysfs. Attributes come and go with their devices: what is not there is NULL, 0 or
 * "unknown", and not an error.
 */
#ifndef LIB_SYSFS_H
#define LIB_SYSFS_H

#include <glib.h>

/* The attribute's text without white space around it; NULL where there is none. To be freed. */
char *sysfs_read(const char *dir, const char *attribute);

/* The number at the beginning of an attribute, in any base that C knows; @missing where there is
 * none. */
gint64 sysfs_number(const char *dir, const char *attribute, gint64 missing);

/* The last component of what a link points to, as a driver's name; NULL where there is none. */
char *sysfs_link_name(const char *dir, const char *link);

/* Names of the entries of a directory, sorted; empty where there is no such directory. */
GStrv sysfs_list(const char *dir);

#endif
