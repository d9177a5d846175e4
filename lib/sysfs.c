/* SPDX-License-Identifier: MIT */
#include "lib/sysfs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ATTRIBUTE_MAX 4097

/* An attribute is a page at most, and comes in one piece. */
char *sysfs_read(const char *dir, const char *attribute)
{
    char text[ATTRIBUTE_MAX];
    gsize length = strlen(dir);
    int fd;
    ssize_t got;

    if (length + strlen(attribute) + 2 > sizeof(text))
        return NULL;
    memcpy(text, dir, length);
    text[length] = '/';
    strcpy(text + length + 1, attribute);
    fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (got < 0)
        return NULL;
    text[got] = '\0';
    return g_strdup(g_strstrip(text));
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
