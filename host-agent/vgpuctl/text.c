/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/text.h"

#include <stdio.h>

char *text_printable(char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *shown = g_string_new(NULL);

    for (const char *at = valid; *at; at = g_utf8_next_char(at)) {
        gunichar character = g_utf8_get_char(at);

        g_string_append_unichar(
            shown, character != '\n' && g_unichar_iscntrl(character) ? '?' : character);
    }
    g_free(text);
    return g_string_free(shown, FALSE);
}

void text_puts(const char *sentence)
{
    g_autofree char *shown = text_printable(g_strdup(sentence));

    puts(shown);
}

/* GLib writes a blank that does not break, which scripts do not expect. */
char *text_of_bytes(guint64 bytes)
{
    g_autofree char *text = g_format_size_full(bytes, G_FORMAT_SIZE_IEC_UNITS);
    g_auto(GStrv) words = g_strsplit(text, "\u00a0", -1);

    return bytes ? g_strjoinv(" ", words) : NULL;
}
