/* SPDX-License-Identifier: MIT */
/* The host, as in a bug report. */
#include "card.h"

#include <gio/gio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The value of the first line that begins with @key, in files like /proc/cpuinfo and os-release. */
static char *value_in(const char *path, const char *key, char separator)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        char *value = g_str_has_prefix(*line, key) ? strchr(*line, separator) : NULL;

        if (!value)
            continue;
        g_strdelimit(++value, "\"", ' ');
        return g_strdup(g_strstrip(value));
    }
    return NULL;
}

gboolean machine_describe(Card *card, GError **error)
{
    g_autofree char *system = value_in("/etc/os-release", "PRETTY_NAME", '=');
    g_autofree char *processor = value_in("/proc/cpuinfo", "model name", ':');
    g_autofree char *memory = value_in("/proc/meminfo", "MemTotal", ':');
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *date = g_date_time_format(now, "%Y-%m-%d");
    JsonObject *machine = json_object_new();
    struct utsname kernel;

    if (uname(&kernel) < 0) {
        json_object_unref(machine);
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "the kernel does not say what it is");
        return FALSE;
    }
    json_object_set_string_member(machine, "date", date);
    json_object_set_string_member(machine, "kernel", kernel.release);
    json_object_set_string_member(machine, "system", system ? system : "");
    json_object_set_string_member(machine, "processor", processor ? processor : "");
    json_object_set_int_member(machine, "processors", sysconf(_SC_NPROCESSORS_ONLN));
    json_object_set_int_member(machine, "memory_mib",
                               memory ? g_ascii_strtoll(memory, NULL, 10) / 1024 : 0);
    json_object_set_object_member(card->sheet, "machine", machine);
    return TRUE;
}
