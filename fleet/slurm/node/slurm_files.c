/* SPDX-License-Identifier: MIT */
#include "fleet/slurm/node/slurm_files.h"

#include <stdlib.h>
#include <string.h>

#include "fleet/slurm/slurm_api.h"

#define USUAL_DIR "/etc/slurm"

char *slurm_files_dir(HostRoot *root)
{
    const char *given = g_getenv("SLURM_CONF");

    if (given && *given)
        return g_path_get_dirname(given);
    if (!root_has(root, USUAL_DIR "/slurm.conf") && root_has(root, SLURM_FILES_CACHE "/slurm.conf"))
        return g_strdup(SLURM_FILES_CACHE);
    return g_strdup(USUAL_DIR);
}

GStrv slurm_files_lines(const char *text)
{
    GStrv lines = g_strsplit(text ? text : "", "\n", -1);
    guint first = 0;

    for (guint i = 0; lines[i]; i++) {
        gboolean goes_on;

        lines[i][strcspn(lines[i], "#")] = 0;
        g_strstrip(lines[i]);
        goes_on = g_str_has_suffix(lines[i], "\\");
        if (goes_on)
            lines[i][strlen(lines[i]) - 1] = 0;
        if (first < i) {
            char *joined = g_strconcat(lines[first], " ", lines[i], NULL);

            g_free(lines[first]);
            lines[first] = joined;
            lines[i][0] = 0;
        }
        if (!goes_on)
            first = i + 1;
    }
    return lines;
}

char *slurm_line_value(const char *line, const char *key)
{
    gsize length = strlen(key);

    for (const char *at = line; *at;) {
        gsize name = strcspn(at, "= \t");
        const char *value = at + name + strspn(at + name, " \t"), *end;

        if (*value != '=') {
            at += name + strspn(at + name, " \t=") + !name;
            continue;
        }
        value += 1 + strspn(value + 1, " \t");
        end = *value == '"' ? strchrnul(++value, '"') : value + strcspn(value, " \t");
        if (name == length && !g_ascii_strncasecmp(at, key, length))
            return g_strndup(value, (gsize)(end - value));
        at = end + (*end == '"');
        at += strspn(at, " \t");
    }
    return NULL;
}

gboolean slurm_line_has_node(const char *line, const char *key, const char *node)
{
    g_autofree char *list = slurm_line_value(line, key);
    hostlist_t *hosts;
    gboolean has;

    if (!list)
        return FALSE;
    if (!g_ascii_strcasecmp(list, "ALL"))
        return TRUE;
    hosts = slurm_hostlist_create(list);
    has = hosts && slurm_hostlist_find(hosts, node) >= 0;
    slurm_hostlist_destroy(hosts);
    return has;
}

GStrv slurm_list_expand(const char *list)
{
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    hostlist_t *hosts = slurm_hostlist_create(list);
    char *name;

    while (hosts && (name = slurm_hostlist_shift(hosts))) {
        g_strv_builder_add(names, name);
        free(name);
    }
    slurm_hostlist_destroy(hosts);
    return g_strv_builder_end(names);
}
