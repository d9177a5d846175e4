/* SPDX-License-Identifier: MIT */
/* vgpuctl schedule, reload: modes by the clock, and the files in /etc/vgpu that have them. */
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/listing.h"

static char *time_text(GVariant *entry, const char *key)
{
    g_autoptr(GDateTime) time = NULL;
    gint64 next = 0;

    g_variant_lookup(entry, key, "x", &next);
    if (!next)
        return g_strdup("never");
    time = g_date_time_new_from_unix_local(next);
    return g_date_time_format(time, "%a %F %H:%M");
}

static char *minutes_text(GVariant *entry, const char *key)
{
    guint seconds = 0;

    g_variant_lookup(entry, key, "u", &seconds);
    return seconds ? g_strdup_printf("%u min", (seconds + 59) / 60) : NULL;
}

static char *limit_text(GVariant *entry, const char *key)
{
    char *minutes = minutes_text(entry, key);

    return minutes ? minutes : g_strdup("no limit");
}

static const Column columns[] = {
    {"SCHEDULE", "Name", dict_text, 0},
    {"GPU", "Gpu", dict_text, 0},
    {"MODE", "Mode", dict_text, 0},
    {"NEXT", "Next", time_text, 0},
    {"WARNING", "Warn", minutes_text, 0},
    {"WAIT", "Timeout", limit_text, 0},
    {"AT", "Calendar", dict_text, COLUMN_WIDE},
};

static const Listing listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .name = "Name",
    .none = "No mode switch is scheduled: /etc/vgpu/schedule.conf has no entry.",
};

gboolean schedule_list_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) entries = client_get(client, "ListSchedule", NULL, NULL, error);

    (void)args;
    if (!entries)
        return FALSE;
    listing_print(options, &listing, entries);
    return TRUE;
}

gboolean schedule_run_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) answer =
        client_call(client, "RunSchedule", g_variant_new("(s)", args[0]), NULL, error);

    (void)options;
    return answer != NULL;
}

gboolean reload_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) answer = client_call(client, "Reload", NULL, "reading /etc/vgpu", error);

    (void)options;
    (void)args;
    return answer != NULL;
}
