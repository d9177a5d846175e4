/* SPDX-License-Identifier: MIT */
/* The canonical text: one request, one text. */
#include "fleet/request/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERSION "vgpu1"

__attribute__((format(printf, 2, 3))) static void text_append(char *text, const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + length, FLEET_TEXT_MAX - length, format, args);
    va_end(args);
}

static void append_number(char *text, const char *key, uint32_t value)
{
    if (value)
        text_append(text, ";%s=%u", key, value);
}

void fleet_request_format(const FleetRequest *request, char *text)
{
    strcpy(text, VERSION);
    if (request->model[0])
        text_append(text, ";model=%s", request->model);
    if (request->kind == FLEET_SIZE_FULL)
        text_append(text, ";full");
    else
        append_number(text, "vram", request->size);
    append_number(text, "share", request->share);
    append_number(text, "cap", request->cap);
    if (request->class)
        text_append(text, ";class=%s", fleet_class_word(request->class));
    if (request->door)
        text_append(text, ";door=%s", fleet_door_word(request->door));
    if (request->spread)
        text_append(text, ";spread=card");
    append_number(text, "resident", request->resident);
    append_number(text, "oversubscribe", request->oversubscribe);
    append_number(text, "engines", request->engines);
    append_number(text, "priority", request->priority);
}

/* "KEY=VALUE" or "full"; false: not known. The text is checked as a whole afterwards. */
static bool take_word(FleetRequest *request, const char *word)
{
    const char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value - word) : strlen(word);

#define IS(key) (length == strlen(key) && !memcmp(word, key, length))
    if (!value) {
        request->kind = FLEET_SIZE_FULL;
        return IS("full");
    }
    value++;
    if (IS("vram")) {
        request->kind = FLEET_SIZE_MIB;
        return fleet_number_parse(value, 1, FLEET_MIB_MAX, &request->size);
    }
    if (IS("model"))
        return fleet_name_ok(value) && strcpy(request->model, value);
    if (IS("share"))
        return fleet_number_parse(value, 1, 100, &request->share);
    if (IS("cap"))
        return fleet_number_parse(value, 1, 100, &request->cap);
    if (IS("class"))
        return (request->class = fleet_class_of(value)) != FLEET_CLASS_NONE;
    if (IS("door"))
        return (request->door = fleet_door_of(value)) != FLEET_DOOR_NONE;
    if (IS("spread"))
        return (request->spread = !strcmp(value, "card"));
    if (IS("resident"))
        return fleet_number_parse(value, 1, FLEET_MIB_MAX, &request->resident);
    if (IS("oversubscribe"))
        return fleet_number_parse(value, 1, FLEET_MIB_MAX, &request->oversubscribe);
    if (IS("engines"))
        return fleet_number_parse(value, 1, 31, &request->engines);
    if (IS("priority"))
        return fleet_number_parse(value, 1, FLEET_PRIORITY_MAX, &request->priority);
#undef IS
    return false;
}

bool fleet_request_read(const char *text, FleetRequest *request)
{
    char copy[FLEET_TEXT_MAX], again[FLEET_TEXT_MAX], *rest = copy, *word;

    *request = (FleetRequest){0};
    if (strnlen(text, sizeof(copy)) >= sizeof(copy))
        return false;
    strcpy(copy, text);
    word = strsep(&rest, ";");
    if (strcmp(word, VERSION))
        return false;
    while ((word = strsep(&rest, ";")))
        if (!take_word(request, word))
            return false;
    /* Whatever is not exactly what fleet_request_format() writes was not written by it. */
    if (request->kind == FLEET_SIZE_NONE)
        return false;
    fleet_request_format(request, again);
    return !strcmp(text, again);
}
