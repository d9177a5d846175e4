/* SPDX-License-Identifier: MIT */
#include "text.h"

/* GLib writes a blank that does not break, which scripts do not expect. */
char *text_of_bytes(guint64 bytes)
{
    g_autofree char *text = g_format_size_full(bytes, G_FORMAT_SIZE_IEC_UNITS);
    g_auto(GStrv) words = g_strsplit(text, "\u00a0", -1);

    return bytes ? g_strjoinv(" ", words) : NULL;
}
