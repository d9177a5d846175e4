/* SPDX-License-Identifier: MIT */
/* The grammar of --vgpu. */
#include "fleet/request/request.h"

#include <string.h>

/* Longer than any sensible request; what is not, is refused and never copied. */
#define OPTION_MAX 256

#define SIZE_RULE                                                                                  \
    "a size such as 8G or 512M, per cent such as 30%, half, quarter, eighth, sixteenth or full"

typedef struct {
    const char *word;
    uint32_t divisor;
} Part;

static const Part parts[] = {{"half", 2}, {"quarter", 4}, {"eighth", 8}, {"sixteenth", 16}};

static bool set_size(FleetRequest *request, const char *word)
{
    size_t length = strlen(word);
    char number[8];

    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!strcmp(word, parts[i].word)) {
            request->kind = FLEET_SIZE_PART;
            request->size = parts[i].divisor;
            return true;
        }
    }
    if (!strcmp(word, "full")) {
        request->kind = FLEET_SIZE_FULL;
        return true;
    }
    if (length > 1 && length < sizeof(number) && word[length - 1] == '%') {
        memcpy(number, word, length - 1);
        number[length - 1] = 0;
        request->kind = FLEET_SIZE_PERCENT;
        return fleet_number_parse(number, 1, 100, &request->size);
    }
    request->kind = FLEET_SIZE_MIB;
    return fleet_mib_parse(word, &request->size);
}

static bool set_engines(FleetRequest *request, char *words)
{
    char *rest = NULL;

    for (char *word = strtok_r(words, "+", &rest); word; word = strtok_r(NULL, "+", &rest)) {
        unsigned bit = 0;

        while (fleet_engine_word(bit) && strcmp(word, fleet_engine_word(bit)))
            bit++;
        if (!fleet_engine_word(bit))
            return false;
        request->engines |= 1u << bit;
    }
    return request->engines != 0;
}

/* A key that is known; false: @value is none of its. */
static bool set_key(FleetRequest *request, const char *key, char *value)
{
    if (!strcmp(key, "vram"))
        return set_size(request, value);
    if (!strcmp(key, "share"))
        return fleet_number_parse(value, 1, 100, &request->share);
    if (!strcmp(key, "cap"))
        return fleet_number_parse(value, 1, 100, &request->cap);
    if (!strcmp(key, "class"))
        return (request->class = fleet_class_of(value)) != FLEET_CLASS_NONE;
    if (!strcmp(key, "door"))
        return (request->door = fleet_door_of(value)) != FLEET_DOOR_NONE;
    if (!strcmp(key, "spread"))
        return (request->spread = !strcmp(value, "card"));
    if (!strcmp(key, "resident"))
        return fleet_mib_parse(value, &request->resident);
    if (!strcmp(key, "oversubscribe"))
        return fleet_mib_parse(value, &request->oversubscribe);
    if (!strcmp(key, "engines"))
        return set_engines(request, value);
    return fleet_number_parse(value, 0, FLEET_PRIORITY_MAX, &request->priority);
}

static const struct {
    const char *key, *rule;
} keys[] = {
    {"vram", SIZE_RULE},
    {"share", "per cent from 1 to 100, without a sign"},
    {"cap", "per cent from 1 to 100, without a sign"},
    {"class", "guaranteed, burstable or best-effort"},
    {"door", "auto, guarded, native or vm"},
    {"spread", "card"},
    {"resident", "a size such as 2G"},
    {"oversubscribe", "a size such as 4G"},
    {"engines", "graphics, compute, transfer, decode and encode, joined by +"},
    {"priority", "a number from 0 to 15"},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* "KEY=VALUE". @seen has a bit for each key that was said. */
static bool read_key(FleetRequest *request, char *word, unsigned *seen, char *error)
{
    char *value = strchr(word, '=');
    unsigned at = 0;

    if (!value)
        return fleet_error(error, "--vgpu: \"%s\" is no KEY=VALUE", word);
    *value++ = 0;
    while (at < KEYS && strcmp(word, keys[at].key))
        at++;
    if (at == KEYS)
        return fleet_error(
            error,
            "--vgpu: unknown key \"%s\"; the keys are vram, share, cap, class, door, "
            "spread, resident, oversubscribe, engines and priority",
            word);
    if (*seen & 1u << at)
        return fleet_error(error, "--vgpu: %s is given twice", word);
    *seen |= 1u << at;
    /* set_key() may cut @value up. */
    char shown[OPTION_MAX];
    strcpy(shown, value);
    return set_key(request, word, value) ||
           fleet_error(error, "--vgpu: %s=%s: must be %s", word, shown, keys[at].rule);
}

/* "[MODEL:]SIZE" */
static bool read_size(FleetRequest *request, char *word, char *error)
{
    char *size = strchr(word, ':');

    if (size) {
        *size++ = 0;
        if (!fleet_name_ok(word))
            return fleet_error(error, "--vgpu: \"%s\" cannot be the model of a card", word);
        strcpy(request->model, word);
    }
    size = size ? size : word;
    return set_size(request, size) ||
           fleet_error(error, "--vgpu: \"%s\": must be %s", size, SIZE_RULE);
}

/* What no single word says. */
static bool check_whole(const FleetRequest *request, char *error)
{
    if (request->kind == FLEET_SIZE_NONE)
        return fleet_error(error, "--vgpu: no size; it must be %s", SIZE_RULE);
    if (request->share && request->class == FLEET_CLASS_BEST_EFFORT)
        return fleet_error(error, "--vgpu: share= promises compute, and best-effort promises none");
    if (request->cap && request->cap < request->share)
        return fleet_error(error, "--vgpu: cap=%u is less than share=%u", request->cap,
                           request->share);
    if (request->resident && request->class <= FLEET_CLASS_GUARANTEED)
        return fleet_error(error, "--vgpu: resident= is for the classes burstable and best-effort: "
                                  "all memory of a guaranteed slice is always on the card");
    if (request->kind == FLEET_SIZE_FULL &&
        (request->share || request->cap || request->oversubscribe || request->spread ||
         request->class > FLEET_CLASS_GUARANTEED))
        return fleet_error(error,
                           "--vgpu: a full card is not shared: only door, engines and priority "
                           "can be given with it");
    return true;
}

bool fleet_request_parse(const char *text, FleetRequest *request, char *error)
{
    char copy[OPTION_MAX], *rest = copy, *word;
    unsigned seen = 0;
    size_t length = strnlen(text, sizeof(copy));

    *request = (FleetRequest){0};
    if (length >= sizeof(copy))
        return fleet_error(error, "--vgpu: longer than %d characters", OPTION_MAX - 1);
    memcpy(copy, text, length + 1);
    for (bool first = true; (word = strsep(&rest, ",")); first = false) {
        if (first && !strchr(word, '=')) {
            seen |= 1; /* vram */
            if (!read_size(request, word, error))
                return false;
        } else if (!read_key(request, word, &seen, error)) {
            return false;
        }
    }
    return check_whole(request, error);
}
