/* SPDX-License-Identifier: MIT */
/*
 * vgpu-card: measures a GPU and its Vulkan driver, and this project's parts on it, on the host
 * itself, without a VM, the kernel module, or root. It changes nothing: all of its files are below
 * a temporary directory.
 */
#ifndef CARD_CARD_H
#define CARD_CARD_H

#include <json-glib/json-glib.h>

/**
 * Card - the GPU that is measured, and the tools for it
 * @name: in Vulkan
 * @address: PCI address, or "soft:card" for software Vulkan
 * @software: it is the CPU
 * @memory: bytes of its largest heap
 * @processor: the only one on which software Vulkan computes, so that there is one resource to
 * share; otherwise -1
 * @build: a build directory whose programs are used instead of the installed ones; NULL: the
 * installed ones
 * @guard_env: NAME=VALUE for vgpu-guard's renderer; NULL: none
 * @rounds: how often each speed is measured
 * @sheet: all results, as they are written at the end
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

/* Its path, to be freed; NULL, and its name in @error, if it is missing. */
char *card_tool(const Card *card, Tool tool, GError **error);

/*
 * Directory of the layer's manifest; NULL if it is where the loader looks by itself. To be freed.
 */
char *card_layers(const Card *card);

/* One line of progress, on standard error. */
void card_say(const char *format, ...) G_GNUC_PRINTF(1, 2);

/*
 * A result could not be obtained: recorded in the sheet and printed, and the measurement continues.
 * Takes ownership of @error.
 */
void card_failed(Card *card, const char *what, GError *error);

/* An array of the sheet, made on first use. */
JsonArray *card_list(Card *card, const char *name);

/* Each part's contribution to the sheet. */
gboolean machine_describe(Card *card, GError **error);
void speed_measure(Card *card);
void shares_measure(Card *card);
/* Derived from the other parts. */
void verdict_reach(Card *card);

/* The sheet as Markdown, to be freed. */
char *page_of(JsonObject *sheet);

#endif
