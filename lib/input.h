/* SPDX-License-Identifier: MIT */
/* Standard input, as libvirt, mdevctl and container runtimes give it to their hooks. */
#ifndef LIB_INPUT_H
#define LIB_INPUT_H

#include <glib.h>

/*
 * All of it, ended by a zero. NULL: it cannot be read, or has more than @most bytes. To be freed
 * with g_string_free().
 */
GString *input_read(gsize most, GError **error);

#endif
