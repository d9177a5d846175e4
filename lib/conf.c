/* SPDX-License-Identifier: MIT */
#include "lib/conf.h"

#include <string.h>

/* Amounts of memory as people write them: "512M", "1G", "1/4". */

#define DENOMINATOR_MAX 1024
#define CPU_MAX         100000

/* The digits at the start of @text; FALSE if there are none, or too many. */
static gboolean parse_digits(const char *text, guint64 *value, const char **end)
{
    if (!g_ascii_isdigit(text[0]))
        return FALSE;
    *value = g_ascii_strtoull(text, (char **)end, 10);
    return *value != G_MAXUINT64;
}

static gboolean suffix_shift(const char *suffix, guint *shift)
{
    static const char letters[] = "KMGT";
    const char *letter;

    *shift = 0;
    if (!suffix[0])
        return TRUE;
    letter = strchr(letters, g_ascii_toupper(suffix[0]));
    if (!letter || suffix[1])
        return FALSE;
    *shift = 10 * (guint)(letter - letters + 1);
    return TRUE;
}

gboolean size_parse(const char *text, guint64 *bytes)
{
    const char *suffix;
    guint64 value;
    guint shift;

    if (!parse_digits(text, &value, &suffix) || !suffix_shift(suffix, &shift))
        return FALSE;
    if (value > (G_MAXUINT64 >> 1 >> shift) || value << shift < MIB)
        return FALSE;
    *bytes = value << shift;
    return TRUE;
}

gboolean amount_parse(const char *text, Amount *amount)
{
    guint64 numerator, denominator;
    const char *end;

    *amount = (Amount){0};
    if (!strchr(text, '/'))
        return size_parse(text, &amount->bytes);

    if (!parse_digits(text, &numerator, &end) || *end != '/')
        return FALSE;
    if (!parse_digits(end + 1, &denominator, &end) || *end)
        return FALSE;
    if (numerator < 1 || numerator > denominator || denominator > DENOMINATOR_MAX)
        return FALSE;
    amount->numerator = (guint)numerator;
    amount->denominator = (guint)denominator;
    return TRUE;
}

gboolean cpu_parse(const char *text, guint *percent)
{
    const char *end;
    guint64 value;

    if (!parse_digits(text, &value, &end) || !g_str_equal(end, "%"))
        return FALSE;
    if (value < 1 || value > CPU_MAX)
        return FALSE;
    *percent = (guint)value;
    return TRUE;
}

guint64 amount_resolve(const Amount *amount, guint64 whole)
{
    guint64 part;

    if (!amount->denominator)
        return amount->bytes;
    /* Divided first, so that the product cannot overflow; the rest is added exactly. */
    part = whole / amount->denominator * amount->numerator +
           whole % amount->denominator * amount->numerator / amount->denominator;
    return part / MIB * MIB;
}

char *size_format(guint64 bytes)
{
    static const char *const names[] = {"MiB", "GiB", "TiB"};
    gdouble value = (gdouble)bytes / (gdouble)MIB;
    guint unit = 0;

    while (value >= 1024 && unit + 1 < G_N_ELEMENTS(names)) {
        value /= 1024;
        unit++;
    }
    return g_strdup_printf("%.4g %s", value, names[unit]);
}

#define CONF_SUFFIX ".conf"

G_DEFINE_QUARK(registrar - error - quark, registrar_error)

void conf_bad_value(const ConfGroup *group, const char *key, const char *value, const char *allowed,
                    GError **error)
{
    g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                "%s: [%s]: %s=%s is not allowed: it must be %s", group->file, group->group, key,
                value, allowed);
}

/*
 * GKeyFile silently merges groups and lets the last of two equal keys win. Both are mistakes here,
 * so the text is searched for them, which also gives a line number.
 */
static gboolean check_line(GHashTable *seen, char **group, const char *file, guint number,
                           const char *line, GError **error)
{
    const char *equals = strchr(line, '=');
    g_autofree char *entry = NULL;

    if (line[0] == '[') {
        g_free(*group);
        *group = g_strdup(line);
        entry = g_strdup(line);
    } else if (line[0] && line[0] != '#' && equals) {
        g_autofree char *key = g_strndup(line, (gsize)(equals - line));

        entry = g_strdup_printf("%s in %s", g_strstrip(key), *group ? *group : "no group");
    }
    if (!entry || g_hash_table_add(seen, g_strdup(entry)))
        return TRUE;
    g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                "%s: line %u: %s is given twice; keep one of them", file, number, entry);
    return FALSE;
}

static gboolean check_duplicates(const char *file, const char *text, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree char *group = NULL;

    for (guint i = 0; lines[i]; i++) {
        if (!check_line(seen, &group, file, i + 1, g_strstrip(lines[i]), error))
            return FALSE;
    }
    return TRUE;
}

/* The NAME of "[WORD NAME]". */
static const char *group_name(const char *group, const char *word)
{
    gsize length = strlen(word);

    if (!g_str_has_prefix(group, word) || group[length] != ' ')
        return NULL;
    group += length;
    while (*group == ' ')
        group++;
    return *group ? group : NULL;
}

static gboolean check_keys(const ConfGroup *group, const char *const *keys, GError **error)
{
    g_auto(GStrv) found = g_key_file_get_keys(group->keyfile, group->group, NULL, NULL);

    for (guint i = 0; found && found[i]; i++) {
        if (g_strv_contains(keys, found[i]))
            continue;
        g_autofree char *allowed = g_strjoinv(", ", (char **)keys);

        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                    "%s: [%s]: unknown key \"%s\"; allowed are: %s", group->file, group->group,
                    found[i], allowed);
        return FALSE;
    }
    return TRUE;
}

/* @file: its path in messages. */
static GKeyFile *load_key_file(HostRoot *root, const char *path, const char *file, GError **error)
{
    g_autoptr(GKeyFile) keyfile = g_key_file_new();
    g_autoptr(GError) cause = NULL;
    gsize length;
    g_autofree char *text = root_read_bytes(root, path, &length, &cause);

    if (!text) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG, "%s", cause->message);
        return NULL;
    }
    if (!check_duplicates(file, text, error))
        return NULL;
    if (length && !g_key_file_load_from_data(keyfile, text, length, G_KEY_FILE_NONE, &cause)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG, "%s: %s", file, cause->message);
        return NULL;
    }
    return g_steal_pointer(&keyfile);
}

gboolean conf_foreach(HostRoot *root, const char *path, const char *word, const char *const *keys,
                      ConfGroupFunc func, gpointer data, GError **error)
{
    g_autofree char *file = root_path(root, path, NULL);
    g_autoptr(GKeyFile) keyfile = load_key_file(root, path, file, error);
    g_auto(GStrv) groups = NULL;

    if (!keyfile)
        return FALSE;
    groups = g_key_file_get_groups(keyfile, NULL);
    for (guint i = 0; groups[i]; i++) {
        ConfGroup group = {keyfile, file, groups[i], group_name(groups[i], word)};

        if (!group.name) {
            g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                        "%s: [%s]: unknown group; groups here are written [%s NAME]", file,
                        groups[i], word);
            return FALSE;
        }
        if (!check_keys(&group, keys, error) || !func(&group, data, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean list_dir(HostRoot *root, const char *path, GHashTable *names, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_auto(GStrv) found = root_list(root, path, &cause);

    if (g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_NOENT))
        return TRUE;
    if (!found) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG, "%s", cause->message);
        return FALSE;
    }
    for (char **name = found; *name; name++) {
        if (g_str_has_suffix(*name, CONF_SUFFIX) && *name[0] != '.' &&
            !g_hash_table_contains(names, *name))
            g_hash_table_insert(names, g_strdup(*name), g_build_filename(path, *name, NULL));
    }
    return TRUE;
}

GPtrArray *conf_list(HostRoot *root, const char *const *dirs, GError **error)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GList) sorted = NULL;

    for (guint i = 0; dirs[i]; i++)
        if (!list_dir(root, dirs[i], names, error))
            return NULL;
    sorted = g_list_sort(g_hash_table_get_keys(names), (GCompareFunc)strcmp);
    for (GList *item = sorted; item; item = item->next)
        g_ptr_array_add(files, g_strdup(g_hash_table_lookup(names, item->data)));
    return g_steal_pointer(&files);
}

char *conf_string(const ConfGroup *group, const char *key, GError **error)
{
    g_autoptr(GError) cause = NULL;
    char *value;

    value = g_key_file_get_string(group->keyfile, group->group, key, &cause);
    if (value)
        return g_strstrip(value);
    if (!g_error_matches(cause, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_KEY_NOT_FOUND))
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG, "%s: [%s]: %s: %s", group->file,
                    group->group, key, cause->message);
    return NULL;
}

gboolean conf_number(const ConfGroup *group, const char *key, guint min, guint max, guint otherwise,
                     guint *value, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = conf_string(group, key, &cause);
    g_autofree char *allowed = NULL;
    guint64 number;

    *value = otherwise;
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!text)
        return TRUE;
    if (!g_ascii_string_to_unsigned(text, 10, min, max, &number, NULL)) {
        allowed = g_strdup_printf("a whole number from %u to %u", min, max);
        conf_bad_value(group, key, text, allowed, error);
        return FALSE;
    }
    *value = (guint)number;
    return TRUE;
}
