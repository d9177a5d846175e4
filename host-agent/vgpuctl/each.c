/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/each.h"

#include "host-agent/vgpuctl/progress.h"
#include "host-agent/vgpuctl/text.h"

void each_print_error(const GError *error)
{
    g_autoptr(GError) copy = g_error_copy(error);
    g_autofree char *shown = NULL;

    g_dbus_error_strip_remote_error(copy);
    shown = text_printable(g_strdup(copy->message));
    progress_hide();
    g_printerr("vgpuctl: %s\n", shown);
}

/* One of several: @first is kept. */
static void fail(GError *cause, GError **first)
{
    each_print_error(cause);
    if (*first)
        g_error_free(cause);
    else
        *first = cause;
}

gboolean each_name(Client *client, char **names, const char *doing, EachFunc func, void *data,
                   GError **error)
{
    g_autoptr(GError) first = NULL;
    guint all = g_strv_length(names);
    guint failed = 0;

    if (all == 1)
        return func(client, names[0], data, error);
    progress_begin(doing, 0);
    for (guint i = 0; i < all; i++) {
        GError *cause = NULL;

        progress_parts(i, all);
        if (func(client, names[i], data, &cause))
            continue;
        failed++;
        fail(cause, &first);
    }
    progress_end();
    if (!first)
        return TRUE;
    g_set_error(error, first->domain, first->code,
                "%u of %u failed, see above; the others are done", failed, all);
    return FALSE;
}
