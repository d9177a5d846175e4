/* SPDX-License-Identifier: MIT */
/* vgpuctl schedule: modes by the clock. */
#include <stdio.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/json.h"
#include "host-agent/vgpuctl/table.h"

static char *time_text(GVariant *entry)
{
    g_autoptr(GDateTime) time = NULL;
    gint64 next = 0;

    g_variant_lookup(entry, "Next", "x", &next);
    time = g_date_time_new_from_unix_local(next);
    return g_date_time_format(time, "%a %F %H:%M");
}

static char *minutes_text(GVariant *entry, const char *key, const char *zero)
{
    guint seconds = 0;

    g_variant_lookup(entry, key, "u", &seconds);
    return seconds ? g_strdup_printf("%u min", (seconds + 59) / 60) : g_strdup(zero);
}

static void print_table(GVariant *entries)
{
    static const char *const heads[] = {"SCHEDULE", "GPU", "MODE", "NEXT", "WARNS", "WAITS"};
    g_autoptr(Table) table = table_new_with_heads(heads, G_N_ELEMENTS(heads));

    for (gsize i = 0; i < g_variant_n_children(entries); i++) {
        g_autoptr(GVariant) entry = g_variant_get_child_value(entries, i);

        table_add(table, dict_text(entry, "Name"));
        table_add(table, dict_text(entry, "Gpu"));
        table_add(table, dict_text(entry, "Mode"));
        table_add(table, time_text(entry));
        table_add(table, minutes_text(entry, "Warn", NULL));
        table_add(table, minutes_text(entry, "Timeout", "for ever"));
    }
    table_print(table);
}

gboolean schedule_list_command(Client *client, const Options *options, char **args,
                               GError **error)
{
    VgpuManager *manager = client->manager;
    g_autoptr(GVariant) entries = NULL;

    (void)args;
    if (!vgpu_manager_call_list_schedule_sync(manager, &entries, NULL, error))
        return FALSE;
    if (options->json)
        json_print(json_gvariant_serialize(entries));
    else if (!g_variant_n_children(entries))
        puts("No GPU's mode changes by the clock (/etc/vgpu/schedule.conf has no entry).");
    else
        print_table(entries);
    return TRUE;
}
