/* SPDX-License-Identifier: MIT */
#include "lib/sysfs.h"

#include <string.h>

#define ATTRIBUTE_MAX 4097

/* An attribute is one page at most, and one read returns it. */
char *sysfs_read(HostRoot *root, const char *dir, const char *attribute)
{
    char text[ATTRIBUTE_MAX];
    gsize length = strlen(dir);
    gssize got;

    /* The buffer has the path first: with a thousand vGPUs, allocations count. */
    if (length + strlen(attribute) + 2 > sizeof(text))
        return NULL;
    memcpy(text, dir, length);
    text[length] = '/';
    strcpy(text + length + 1, attribute);
    got = root_read_once(root, text, text, sizeof(text) - 1);
    if (got < 0)
        return NULL;
    text[got] = '\0';
    return g_strdup(g_strstrip(text));
}

gint64 sysfs_number(HostRoot *root, const char *dir, const char *attribute, gint64 missing)
{
    g_autofree char *text = sysfs_read(root, dir, attribute);
    char *end;
    gint64 value;

    if (!text)
        return missing;
    value = g_ascii_strtoll(text, &end, 0);
    return end == text ? missing : value;
}

int sysfs_write(HostRoot *root, const char *dir, const char *attribute, const char *text)
{
    g_autofree char *path = g_build_filename(dir, attribute, NULL);

    return root_write_once(root, path, text);
}

char *sysfs_link_name(HostRoot *root, const char *dir, const char *link)
{
    g_autofree char *path = g_build_filename(dir, link, NULL);
    g_autofree char *target = root_link(root, path);

    return target ? g_path_get_basename(target) : NULL;
}

GStrv sysfs_list(HostRoot *root, const char *dir)
{
    GStrv names = root_list(root, dir, NULL);

    return names ? names : g_new0(char *, 1);
}
