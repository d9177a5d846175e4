/* SPDX-License-Identifier: MIT */
/* vgpuctl operation: what vgpud does in several steps, and what waits for it. */
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/each.h"
#include "host-agent/vgpuctl/listing.h"

static char *objects_text(GVariant *operation, const char *key)
{
    return dict_list(operation, key, " ");
}

/* "start (2 of 3)", "undoing start (2 of 3)", "waiting" */
static char *step_text(GVariant *operation, const char *key)
{
    const char *step = "";
    guint at = 0;
    guint total = 0;
    gboolean undoing = FALSE;

    g_variant_lookup(operation, key, "&s", &step);
    g_variant_lookup(operation, "At", "u", &at);
    g_variant_lookup(operation, "Total", "u", &total);
    g_variant_lookup(operation, "Undoing", "b", &undoing);
    if (!*step)
        return g_strdup("waiting");
    return g_strdup_printf("%s%s (%u of %u)", undoing ? "undoing " : "", step, at, total);
}

static char *time_text(GVariant *operation, const char *key)
{
    g_autoptr(GDateTime) time = NULL;
    gint64 begun = 0;

    g_variant_lookup(operation, key, "x", &begun);
    time = g_date_time_new_from_unix_local(begun);
    return g_date_time_format(time, "%F %T");
}

static char *id_text(GVariant *operation, const char *key)
{
    guint64 id = 0;

    g_variant_lookup(operation, key, "t", &id);
    return g_strdup_printf("%" G_GUINT64_FORMAT, id);
}

static const Column columns[] = {
    {"ID", "Id", id_text, 0},           {"KIND", "Kind", dict_text, 0},
    {"STEP", "Step", step_text, 0},     {"BEGUN", "Begun", time_text, 0},
    {"CALLER", "Caller", dict_text, 0}, {"OBJECTS", "Objects", objects_text, COLUMN_LONG},
};

static const Listing listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
    .name = "Id",
    .none = "Nothing is being done.",
};

gboolean operation_list_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) operations = client_get(client, "ListOperations", NULL, NULL, error);

    (void)args;
    if (!operations)
        return FALSE;
    listing_print(options, &listing, operations);
    return TRUE;
}

static gboolean cancel(Client *client, const char *name, void *data, GError **error)
{
    g_autoptr(GVariant) answer = NULL;
    guint64 id;

    (void)data;
    if (!g_ascii_string_to_unsigned(name, 10, 1, G_MAXUINT64, &id, NULL)) {
        g_set_error(
            error, VGPUCTL_ERROR, VGPUCTL_USAGE,
            "\"%s\" is not the number of an operation; \"vgpuctl operation list\" shows them",
            name);
        return FALSE;
    }
    answer = client_call(client, "CancelOperation", g_variant_new("(t)", id), "cancelling", error);
    return answer != NULL;
}

gboolean operation_cancel_command(Client *client, const Options *options, char **args,
                                  GError **error)
{
    (void)options;
    return each_name(client, args, "cancelling operations", cancel, NULL, error);
}
