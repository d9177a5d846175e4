/* SPDX-License-Identifier: MIT */
/*
 * vgpu-card: what a GPU and its Vulkan driver can, and what this project makes of it, measured on
 * the host itself, without a VM, without the kernel module, without root. It changes nothing: all
 * of its files are below a temporary directory.
 */
#ifndef CARD_CARD_H
#define CARD_CARD_H

#include <json-glib/json-glib.h>

/**
 * Card - the GPU that is looked at, and what it is looked at with
 * @name: as Vulkan has it
 * @address: PCI address, or "soft:card" for software Vulkan
 * @software: it is the CPU
 * @memory: bytes of its largest heap
 * @processor: software Vulkan computes there, and nowhere else, so that there is one thing to be
 * shared; else -1
 * @build: a build directory whose programs are used instead of the installed ones; NULL: the
 * installed ones
 * @guard_env: NAME=VALUE for vgpu-guard's renderer; NULL: none
 * @rounds: how often each speed is measured
 * @sheet: all that is found out, as it is written in the end
 */
typedef struct {
    char *name;
    char *address;
    gboolean software;
    guint64 memory;
    int processor;
    const char *build;
    char **guard_env;
    guint rounds;
    JsonObject *sheet;
} Card;

typedef enum {
    TOOL_ARBITER,
    TOOL_GUARD,
    TOOL_BENCH,
    TOOL_LOAD,
    TOOL_COMPUTE,
    TOOL_DOCTOR,
} Tool;

/* Its path, to be freed; NULL, and a name for @error, where it is missing. */
char *card_tool(const Card *card, Tool tool, GError **error);

/* Directory of the layer's manifest; NULL where it lies where the loader looks by itself. To be
 * freed. */
char *card_layers(const Card *card);

/* One line of progress, on standard error. */
void card_say(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* Something could not be found out: kept in the sheet, told, and the rest goes on. @error is taken.
 */
void card_failed(Card *card, const char *what, GError *error);

/* An array of the sheet, made when it is first asked for. */
JsonArray *card_list(Card *card, const char *name);

/* What each part adds to the sheet. */
gboolean machine_describe(Card *card, GError **error);
void speed_measure(Card *card);
void shares_measure(Card *card);
/* From all that the others found. */
void verdict_reach(Card *card);

/* The sheet as Markdown, to be freed. */
char *page_of(JsonObject *sheet);

#endif
