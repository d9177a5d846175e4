/* SPDX-License-Identifier: MIT */
/* From all results: which doors can be used on this GPU, and the line for the README's table. */
#include "card.h"

#include <gio/gio.h>

static gboolean has_ability(Card *card, const char *name)
{
    JsonArray *list = card_list(card, "abilities");

    for (guint i = 0; i < json_array_get_length(list); i++) {
        JsonObject *object = json_array_get_object_element(list, i);

        if (g_str_equal(json_object_get_string_member(object, "name"), name))
            return json_object_get_boolean_member(object, "has");
    }
    return FALSE;
}

/* The results at @place were right; otherwise @why says what was not. */
static gboolean results_are_right(Card *card, const char *place, const char **why)
{
    JsonArray *list = card_list(card, "correct");

    *why = "not tried; see the missing results";
    for (guint i = 0; i < json_array_get_length(list); i++) {
        JsonObject *object = json_array_get_object_element(list, i);

        if (!g_str_equal(json_object_get_string_member(object, "place"), place))
            continue;
        if (json_object_get_boolean_member(object, "right"))
            return TRUE;
        *why = json_object_get_string_member(object, "why");
    }
    return FALSE;
}

static void add_door(Card *card, const char *door, gboolean open, const char *why)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "door", door);
    json_object_set_boolean_member(object, "works", open);
    json_object_set_string_member(object, "why", why);
    json_array_add_object_element(card_list(card, "doors"), object);
}

static void judge_vms(Card *card)
{
    if (!has_ability(card, "memory as dma-buf"))
        add_door(card, "VMs", FALSE,
                 "the driver exports no dma-bufs, so guests could map none of its memory");
    else if (!has_ability(card, "host-visible dma-buf, mapped by the CPU"))
        add_door(
            card, "VMs", FALSE,
            "the CPU cannot map the driver's dma-bufs, so guests could map none of its memory");
    else
        add_door(card, "VMs", TRUE,
                 "expected from the driver's features; not tried, because that needs the module "
                 "and a VM. "
                 "What the host lacks for it is listed below");
}

static void judge_containers(Card *card)
{
    static const char *const doors[][2] = {{"containers, native door", "governed"},
                                           {"containers, guarded door", "guarded"}};

    for (guint i = 0; i < G_N_ELEMENTS(doors); i++) {
        const char *why;
        gboolean works = results_are_right(card, doors[i][1], &why);

        add_door(card, doors[i][0], works,
                 works ? "results were verified element by element" : why);
    }
}

static void write_line(Card *card)
{
    JsonObject *gpu = json_object_get_object_member(card->sheet, "gpu");
    JsonObject *machine = json_object_get_object_member(card->sheet, "machine");
    JsonArray *doors = card_list(card, "doors");
    g_autoptr(GString) seen = g_string_new(NULL);
    g_autofree char *line = NULL;

    for (guint i = 0; i < json_array_get_length(doors); i++) {
        JsonObject *door = json_array_get_object_element(doors, i);

        /* VMs are not tried here. */
        if (json_object_get_boolean_member(door, "works") &&
            !g_str_equal(json_object_get_string_member(door, "door"), "VMs"))
            g_string_append_printf(seen, "%s%s", seen->len ? "; " : "",
                                   json_object_get_string_member(door, "door"));
    }
    line = g_strdup_printf(
        "| %s | %s %s, Linux %s | %s |", json_object_get_string_member(gpu, "name"),
        json_object_get_string_member(gpu, "driver"),
        json_object_get_string_member(gpu, "driver_info"),
        json_object_get_string_member(machine, "kernel"), seen->len ? seen->str : "nothing");
    json_object_set_string_member(card->sheet, "seen_on", line);
}

void verdict_reach(Card *card)
{
    judge_containers(card);
    judge_vms(card);
    write_line(card);
}
