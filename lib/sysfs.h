/* SPDX-License-Identifier: MIT */
/*
 * Attributes of sysfs, and other small files of the kernel, by their directory on the host. They
 * come and go with their devices: a missing one is NULL, 0 or "unknown", not an error.
 */
#ifndef LIB_SYSFS_H
#define LIB_SYSFS_H

#include <glib.h>

#include "lib/host_root.h"

/* The attribute's text without white space around it; NULL if it is missing. To be freed. */
char *sysfs_read(HostRoot *root, const char *dir, const char *attribute);

/* The number at the beginning of an attribute, in any base of C; @missing if there is none. */
gint64 sysfs_number(HostRoot *root, const char *dir, const char *attribute, gint64 missing);

/* Writes @text in one write(). 0, or an errno. */
int sysfs_write(HostRoot *root, const char *dir, const char *attribute, const char *text);

/* The last component of a link's target, as a driver's name; NULL: none. */
char *sysfs_link_name(HostRoot *root, const char *dir, const char *link);

/* Names of the entries of a directory, sorted; empty if there is no such directory. */
GStrv sysfs_list(HostRoot *root, const char *dir);

#endif
