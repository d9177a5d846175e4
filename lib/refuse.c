/* SPDX-License-Identifier: MIT */
#include "lib/refuse.h"

gboolean refuse_with(GError **error, GIOErrorEnum code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (error)
        *error = g_error_new_valist(G_IO_ERROR, (gint)code, format, args);
    va_end(args);
    return FALSE;
}
