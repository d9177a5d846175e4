/* SPDX-License-Identifier: MIT */
#include "lib/vm_name.h"

#include <string.h>

#include "lib/sysfs.h"

/* The value of "-name": "guest=red,debug-threads=on", or "red". */
static char *name_of_argument(const char *value)
{
    g_auto(GStrv) parts = g_strsplit(value, ",", -1);

    for (guint i = 0; parts[i]; i++)
        if (g_str_has_prefix(parts[i], "guest="))
            return g_strdup(parts[i] + strlen("guest="));
    return parts[0] && !strchr(parts[0], '=') ? g_strdup(parts[0]) : NULL;
}

/* A VMM's own word for its VM. */
static char *name_by_command_line(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "cmdline", NULL);
    g_autofree char *text = NULL;
    gsize length = 0;
    gboolean next = FALSE;

    if (!g_file_get_contents(path, &text, &length, NULL))
        return NULL;
    /* There is a NUL behind the last one too. */
    for (const char *word = text; word < text + length; word += strlen(word) + 1) {
        if (next)
            return name_of_argument(word);
        next = g_str_equal(word, "-name");
    }
    return NULL;
}

/* "a\\x2db" is "a-b" in the name of a unit. */
static char *unit_unescape(const char *name)
{
    GString *text = g_string_new(NULL);

    for (; *name; name++) {
        if (g_str_has_prefix(name, "\\x") && g_ascii_isxdigit(name[2]) &&
            g_ascii_isxdigit(name[3])) {
            g_string_append_c(
                text, (char)(g_ascii_xdigit_value(name[2]) * 16 + g_ascii_xdigit_value(name[3])));
            name += 3;
        } else {
            g_string_append_c(text, *name);
        }
    }
    return g_string_free(text, FALSE);
}

/* ".../machine-qemu\x2d1\x2dred.scope/...", as systemd-machined has it. */
static char *name_by_cgroup(const char *cgroup)
{
    g_autoptr(GRegex) regex =
        g_regex_new("/machine-[^/]*?\\\\x2d[0-9]+\\\\x2d([^/]*)\\.scope", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    g_autofree char *escaped = NULL;

    if (!g_regex_match(regex, cgroup, 0, &match))
        return NULL;
    escaped = g_match_info_fetch(match, 1);
    return unit_unescape(escaped);
}

char *vm_name_of_process(const char *dir, const char *cgroup)
{
    char *name = name_by_command_line(dir);

    return name || !cgroup ? name : name_by_cgroup(cgroup);
}

gboolean vm_is_running(const char *root, const char *name)
{
    g_autofree char *proc = g_build_filename(root[0] ? root : "/", "proc", NULL);
    g_auto(GStrv) entries = sysfs_list(proc);

    for (guint i = 0; entries[i]; i++) {
        g_autofree char *dir = g_build_filename(proc, entries[i], NULL);
        g_autofree char *cgroup = NULL;
        g_autofree char *found = NULL;

        if (!g_ascii_isdigit(entries[i][0]))
            continue;
        cgroup = sysfs_read(dir, "cgroup");
        found = vm_name_of_process(dir, cgroup);
        if (g_strcmp0(found, name) == 0)
            return TRUE;
    }
    return FALSE;
}
