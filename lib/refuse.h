/* SPDX-License-Identifier: MIT */
/* Refusals of what others wrote: the sentence, and FALSE for the caller to return. */
#ifndef LIB_REFUSE_H
#define LIB_REFUSE_H

#include <gio/gio.h>

/* Sets @error, unless it is NULL. Always FALSE. */
gboolean refuse_with(GError **error, GIOErrorEnum code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

#endif
