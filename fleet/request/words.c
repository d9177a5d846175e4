/* SPDX-License-Identifier: MIT */
/* Words of the grammar, numbers, sizes and sentences. */
#include "fleet/request/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const classes[FLEET_CLASSES] = {NULL, "guaranteed", "burstable", "best-effort"};
static const char *const doors[FLEET_DOORS] = {NULL, "guarded", "native", "vm", "auto"};
static const char *const engines[] = {"graphics", "compute", "transfer", "decode", "encode"};

const char *fleet_class_word(FleetClass class)
{
    return class < FLEET_CLASSES ? classes[class] : NULL;
}

const char *fleet_door_word(FleetDoor door)
{
    return door < FLEET_DOORS ? doors[door] : NULL;
}

const char *fleet_engine_word(unsigned bit)
{
    return bit < sizeof(engines) / sizeof(engines[0]) ? engines[bit] : NULL;
}

FleetClass fleet_class_of(const char *word)
{
    for (FleetClass class = FLEET_CLASS_NONE + 1; class < FLEET_CLASSES; class ++)
        if (!strcmp(word, classes[class]))
            return class;
    return FLEET_CLASS_NONE;
}

FleetDoor fleet_door_of(const char *word)
{
    for (FleetDoor door = FLEET_DOOR_NONE + 1; door < FLEET_DOORS; door++)
        if (!strcmp(word, doors[door]))
            return door;
    return FLEET_DOOR_NONE;
}

/* The digits at the start of @word; false if there are none, or more than ten. */
static bool parse_digits(const char *word, uint64_t *value, const char **end)
{
    const char *at = word;

    *value = 0;
    while (*at >= '0' && *at <= '9' && at - word < 10)
        *value = *value * 10 + (uint64_t)(*at++ - '0');
    *end = at;
    return at > word;
}

bool fleet_number_parse(const char *word, uint32_t low, uint32_t high, uint32_t *value)
{
    const char *end;
    uint64_t number;

    if (!parse_digits(word, &number, &end) || *end || number < low || number > high)
        return false;
    *value = (uint32_t)number;
    return true;
}

bool fleet_mib_parse(const char *word, uint32_t *mib)
{
    const char *end;
    uint64_t number;
    unsigned shift;

    if (!parse_digits(word, &number, &end) || !end[0] || end[1])
        return false;
    switch (end[0]) {
    case 'M':
    case 'm':
        shift = 0;
        break;
    case 'G':
    case 'g':
        shift = 10;
        break;
    case 'T':
    case 't':
        shift = 20;
        break;
    default:
        return false;
    }
    if (!number || number > FLEET_MIB_MAX >> shift)
        return false;
    *mib = (uint32_t)(number << shift);
    return true;
}

bool fleet_name_ok(const char *word)
{
    size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-_.");

    return length > 0 && length < FLEET_NAME_MAX && !word[length];
}

bool fleet_error(char *error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, FLEET_ERROR_MAX, format, args);
    va_end(args);
    for (char *at = error; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    return false;
}
