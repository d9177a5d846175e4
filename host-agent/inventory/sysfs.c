/* SPDX-License-Identifier: MIT */
#include "sysfs.h"

#include <stdlib.h>
#include <string.h>

char *sysfs_read(const char *dir, const char *attribute)
{
    g_autofree char *path = g_build_filename(dir, attribute, NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_strstrip(text);
}

gint64 sysfs_number(const char *dir, const char *attribute, gint64 missing)
{
    g_autofree char *text = sysfs_read(dir, attribute);
    char *end;
    gint64 value;

    if (!text)
        return missing;
    value = g_ascii_strtoll(text, &end, 0);
    return end == text ? missing : value;
}

char *sysfs_link_name(const char *dir, const char *link)
{
    g_autofree char *path = g_build_filename(dir, link, NULL);
    g_autofree char *target = g_file_read_link(path, NULL);

    return target ? g_path_get_basename(target) : NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

GStrv sysfs_list(const char *dir)
{
    g_autoptr(GDir) open = g_dir_open(dir, 0, NULL);
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    const char *name;
    GStrv list;

    while (open && (name = g_dir_read_name(open)))
        g_strv_builder_add(names, name);
    list = g_strv_builder_end(names);
    qsort(list, g_strv_length(list), sizeof(*list), compare);
    return list;
}
