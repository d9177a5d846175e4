/* SPDX-License-Identifier: MIT */
/*
 * What a job asks of a card, in the words of --vgpu, and the text that travels with the job.
 * Pure: no I/O, no allocation, no locale, no library but libc's strings.
 *
 *   [MODEL:]SIZE[,KEY=VALUE...]       8G   30%   half   full   a100-80g:half,spread=card
 *
 * Amounts of memory are in MiB, shares in per cent of a card.
 */
#ifndef FLEET_REQUEST_REQUEST_H
#define FLEET_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#define FLEET_NAME_MAX  32  /* bytes of a name of a model, with the terminator */
#define FLEET_TEXT_MAX  200 /* bytes of a canonical text, with the terminator */
#define FLEET_ERROR_MAX 256 /* bytes of a sentence */

/* A card has no more: 16 TiB. */
#define FLEET_MIB_MAX (UINT32_C(16) << 20)

#define FLEET_PRIORITY_MAX 15

typedef enum {
    FLEET_SIZE_NONE,
    FLEET_SIZE_MIB,     /* @size MiB */
    FLEET_SIZE_PERCENT, /* @size per cent of the card's memory */
    FLEET_SIZE_PART,    /* one @size'th of it */
    FLEET_SIZE_FULL,    /* the card, alone */
} FleetSizeKind;

typedef enum {
    FLEET_CLASS_NONE, /* not said */
    FLEET_CLASS_GUARANTEED,
    FLEET_CLASS_BURSTABLE,
    FLEET_CLASS_BEST_EFFORT,
    FLEET_CLASSES,
} FleetClass;

typedef enum {
    FLEET_DOOR_NONE, /* not said */
    FLEET_DOOR_GUARDED,
    FLEET_DOOR_NATIVE,
    FLEET_DOOR_VM,
    FLEET_DOOR_AUTO, /* guarded or native, by the card: the one by which programs have CUDA */
    FLEET_DOORS,
} FleetDoor;

/**
 * FleetRequest
 * @model: "": any
 * @share, @cap: per cent of the card's compute; 0: not said
 * @resident: MiB of it that are always on the card, the rest moves; 0: all
 * @oversubscribe: MiB of host memory that may replace the card's; 0: none
 * @engines: bits, by the order of fleet_engine_word(); 0: all
 * @priority: on the card, 0 to FLEET_PRIORITY_MAX
 * @spread: each task on a card of its own
 */
typedef struct {
    char model[FLEET_NAME_MAX];
    FleetSizeKind kind;
    uint32_t size;
    uint32_t share;
    uint32_t cap;
    uint32_t resident;
    uint32_t oversubscribe;
    uint32_t engines;
    uint32_t priority;
    FleetClass class;
    FleetDoor door;
    bool spread;
} FleetRequest;

/*
 * Reads what a user wrote. false: @error (FLEET_ERROR_MAX bytes) is a sentence with the word that
 * is wrong, printable whatever the user wrote.
 */
bool fleet_request_parse(const char *text, FleetRequest *request, char *error);

/*
 * The canonical text of a request whose size is in MiB or full; the same request always has the
 * same text: "vgpu1;vram=8192;share=30;class=guaranteed;door=auto". @text has FLEET_TEXT_MAX
 * bytes, which suffice.
 */
void fleet_request_format(const FleetRequest *request, char *text);

/* Reads a canonical text. false: it is none of ours, or not of this version. */
bool fleet_request_read(const char *text, FleetRequest *request);

/* Words of the grammar; NULL beyond the last, and for _NONE. */
const char *fleet_class_word(FleetClass class);
const char *fleet_door_word(FleetDoor door);
const char *fleet_engine_word(unsigned bit);

/* _NONE: no such word. */
FleetClass fleet_class_of(const char *word);
FleetDoor fleet_door_of(const char *word);

/* "8G", "512M", "1T": in MiB. false: no size, or more than FLEET_MIB_MAX. */
bool fleet_mib_parse(const char *word, uint32_t *mib);

/* Digits alone, from @low to @high. */
bool fleet_number_parse(const char *word, uint32_t low, uint32_t high, uint32_t *value);

/* A name: lower-case letters, digits, '-', '_' and '.', fewer than FLEET_NAME_MAX. */
bool fleet_name_ok(const char *word);

/* Writes a sentence into @error; bytes that cannot be printed become '?'. Returns false. */
__attribute__((format(printf, 2, 3))) bool fleet_error(char *error, const char *format, ...);

#endif
