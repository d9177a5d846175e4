/* SPDX-License-Identifier: MIT */
/*
 * The three ways of a program to the GPU: directly, through the governor's layer as in a container
 * with the native door, and through vgpu-guard's socket as in a container with the guarded door.
 */
#ifndef CARD_PLACE_H
#define CARD_PLACE_H

#include "card.h"
#include "program.h"

typedef enum { PLACE_NATIVE, PLACE_GOVERNED, PLACE_GUARDED, NUM_PLACES } PlaceKind;

extern const char *const place_names[NUM_PLACES];

/**
 * Slice - one of an arbiter's
 * @settings: as in slices/<id>.conf, "weight=20\nvram=…"
 */
typedef struct {
    const char *name;
    const char *settings;
} Slice;

typedef struct Place Place;

/*
 * @slices: of an arbiter that is started only for this place, @count of them; none for
 * PLACE_NATIVE. vgpu-guard serves the first.
 */
Place *place_open(const Card *card, PlaceKind kind, const Slice *slices, guint count,
                  GError **error);

/* Ends what was started. NULL is allowed. */
void place_free(Place *place);

/*
 * Starts a program in slice @slice of the place (0 for PLACE_NATIVE), on its GPU. @args:
 * NULL-terminated, after its name and --device-name.
 */
Program *place_start(const Place *place, guint slice, Tool tool, const char *const *args,
                     GError **error);

/* The same until its end: its output, to be freed. */
char *place_run(const Place *place, guint slice, Tool tool, const char *const *args,
                GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Place, place_free)

#endif
