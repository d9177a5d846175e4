/* SPDX-License-Identifier: MIT */
/* How the parts add to the sheet, and progress messages. */
#include "card.h"

void card_say(const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_printerr("vgpu-card: %s\n", text);
}

JsonArray *card_list(Card *card, const char *name)
{
    if (!json_object_has_member(card->sheet, name))
        json_object_set_array_member(card->sheet, name, json_array_new());
    return json_object_get_array_member(card->sheet, name);
}

void card_failed(Card *card, const char *what, GError *error)
{
    JsonObject *object = json_object_new();

    card_say("%s: %s", what, error->message);
    json_object_set_string_member(object, "what", what);
    json_object_set_string_member(object, "why", error->message);
    json_array_add_object_element(card_list(card, "failed"), object);
    g_error_free(error);
}
