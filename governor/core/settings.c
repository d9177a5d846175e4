// SPDX-License-Identifier: MIT
#include "settings.h"

#include "governor_protocol.h"

#include <string.h>

static const char *const policies[] = {
    [POLICY_SHARES] = "shares",
    [POLICY_BEST_EFFORT] = "best-effort",
    [POLICY_EQUAL] = "equal",
    [POLICY_FIXED] = "fixed",
};

const char *gpu_policy_name(enum gpu_policy policy)
{
    return policies[policy];
}

static bool refuse_value(GError **error, const char *key, const char *value, const char *what)
{
    g_set_error(error, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_INVALID_VALUE, "%s=%s: must be %s", key,
                value, what);
    return false;
}

/* False only on an error: a missing key leaves @number unchanged. */
static bool read_number(GKeyFile *file, const char *group, const char *key, uint64_t max,
                        uint64_t *number, GError **error)
{
    g_autofree char *text = g_key_file_get_value(file, group, key, NULL);
    g_autofree char *range = NULL;
    guint64 read;

    if (!text)
        return true;
    if (g_ascii_string_to_unsigned(text, 10, 0, max, &read, NULL)) {
        *number = read;
        return true;
    }
    range = g_strdup_printf("a number from 0 to %" G_GUINT64_FORMAT, max);
    return refuse_value(error, key, text, range);
}

static bool read_number32(GKeyFile *file, const char *key, uint32_t max, uint32_t *number,
                          GError **error)
{
    uint64_t wide = *number;

    if (!read_number(file, "slice", key, max, &wide, error))
        return false;
    *number = (uint32_t)wide;
    return true;
}

static bool read_bool(GKeyFile *file, const char *key, bool *value, GError **error)
{
    g_autofree char *text = g_key_file_get_value(file, "slice", key, NULL);

    if (!text)
        return true;
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return refuse_value(error, key, text, "true or false");
    *value = strcmp(text, "true") == 0;
    return true;
}

static uint32_t engine_called(const char *name)
{
    static const struct {
        const char *name;
        uint32_t engine;
    } engines[] = {
        {"graphics", GOVERNOR_ENGINE_GRAPHICS}, {"compute", GOVERNOR_ENGINE_COMPUTE},
        {"transfer", GOVERNOR_ENGINE_TRANSFER}, {"decode", GOVERNOR_ENGINE_DECODE},
        {"encode", GOVERNOR_ENGINE_ENCODE},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(engines); i++) {
        if (strcmp(engines[i].name, name) == 0)
            return engines[i].engine;
    }
    return 0;
}

static bool read_engines(GKeyFile *file, uint32_t *engines, GError **error)
{
    g_autofree char *text = g_key_file_get_value(file, "slice", "engines", NULL);
    g_auto(GStrv) names = g_strsplit(text ? text : "", ",", -1);

    for (gsize i = 0; names[i]; i++) {
        uint32_t engine = engine_called(names[i]);

        if (!engine)
            return refuse_value(
                error, "engines", text,
                "a list of graphics, compute, transfer, decode, encode, with commas");
        *engines |= engine;
    }
    if (*engines == GOVERNOR_ENGINES_ALL)
        *engines = 0;
    return true;
}

static bool read_partners(GKeyFile *file, char *partners, GError **error)
{
    g_autofree char *text = g_key_file_get_value(file, "slice", "partners", NULL);

    if (!text)
        return true;
    if (strlen(text) > SETTINGS_PARTNERS_MAX ||
        text[strspn(text, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS ":._-")])
        return refuse_value(error, "partners", text,
                            "up to 64 letters, digits, \":\", \".\", \"_\" and \"-\"");
    strcpy(partners, text);
    return true;
}

static bool read_policy(GKeyFile *file, enum gpu_policy *policy, GError **error)
{
    g_autofree char *text = g_key_file_get_value(file, "gpu", "policy", NULL);

    if (!text)
        return true;
    for (gsize i = 0; i < G_N_ELEMENTS(policies); i++) {
        if (strcmp(text, policies[i]) == 0) {
            *policy = (enum gpu_policy)i;
            return true;
        }
    }
    return refuse_value(error, "policy", text, "shares, best-effort, equal or fixed");
}

static GKeyFile *load_group(const char *text, gsize length, const char *group, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();

    if (!g_key_file_load_from_data(file, text, length, G_KEY_FILE_NONE, error))
        return NULL;
    if (!g_key_file_has_group(file, group)) {
        g_set_error(error, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_GROUP_NOT_FOUND, "no [%s] in it",
                    group);
        return NULL;
    }
    return g_steal_pointer(&file);
}

bool gpu_settings_parse(struct gpu_settings *settings, const char *text, gsize length,
                        GError **error)
{
    struct gpu_settings read = {.policy = POLICY_SHARES};
    g_autoptr(GKeyFile) file = load_group(text, length, "gpu", error);

    if (!file || !read_number(file, "gpu", "vram", G_MAXINT64, &read.vram, error) ||
        !read_number(file, "gpu", "capacity", G_MAXINT64, &read.capacity, error) ||
        !read_number(file, "gpu", "displaced", G_MAXINT64, &read.displaced, error) ||
        !read_policy(file, &read.policy, error))
        return false;
    *settings = read;
    return true;
}

bool slice_settings_parse(struct slice_settings *settings, const char *text, gsize length,
                          GError **error)
{
    struct slice_settings read = {
        .weight = 100, .guaranteed = true, .resident = UINT64_MAX, .owner = SETTINGS_OWNER_NONE};
    g_autoptr(GKeyFile) file = load_group(text, length, "slice", error);

    if (!file || !read_number32(file, "weight", SETTINGS_WEIGHT_MAX, &read.weight, error) ||
        !read_number32(file, "cap", 100, &read.cap, error) ||
        !read_bool(file, "hard", &read.hard, error) ||
        !read_number32(file, "priority", SETTINGS_PRIORITY_MAX, &read.priority, error) ||
        !read_number(file, "slice", "vram", G_MAXINT64, &read.vram, error) ||
        !read_number(file, "slice", "spill", G_MAXINT64, &read.spill, error) ||
        !read_number(file, "slice", "resident", G_MAXINT64, &read.resident, error) ||
        !read_number32(file, "share", 1000000, &read.share_ppm, error) ||
        !read_bool(file, "guaranteed", &read.guaranteed, error) ||
        !read_bool(file, "best-effort", &read.best_effort, error) ||
        !read_engines(file, &read.engines, error) ||
        !read_number32(file, "owner", SETTINGS_OWNER_NONE, &read.owner, error) ||
        !read_partners(file, read.partners, error))
        return false;
    if (!read.weight)
        return refuse_value(error, "weight", "0", "a number from 1 to 10000");
    if (read.cap == 100)
        read.cap = 0;
    read.resident = MIN(read.resident, read.vram);
    *settings = read;
    return true;
}

bool slice_ungoverned_parse(struct slice_ungoverned *ungoverned, const char *text, gsize length,
                            GError **error)
{
    struct slice_ungoverned read = {0};
    g_autoptr(GKeyFile) file = load_group(text, length, "ungoverned", error);

    if (!file || !read_number(file, "ungoverned", "memory", G_MAXINT64, &read.memory, error) ||
        !read_number(file, "ungoverned", "gpu_ns", G_MAXINT64, &read.gpu_ns, error))
        return false;
    *ungoverned = read;
    return true;
}
