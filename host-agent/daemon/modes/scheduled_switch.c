/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/scheduled_switch.h"

#include "host-agent/store/tables.h"
#include "lib/audit.h"
#include "lib/bus.h"

/* While another switch of the GPU is under way: no event reports its end. */
#define TRY_AGAIN_S 1

struct ScheduledSwitches {
    Host *host;
    Modes *modes;
    GPtrArray *pending; /* of Due */
};

/**
 * Due - an entry whose time has come
 * @switches: NULL: they are freed
 * @again: a timer, while it waits for another switch of the GPU to end
 */
typedef struct {
    ScheduledSwitches *switches;
    char *name;
    char *gpu;
    gint64 when;
    GpuMode mode;
    guint partitions;
    gboolean drain;
    guint timeout;
    guint again;
} Due;

static void due_free(Due *due)
{
    g_clear_handle_id(&due->again, g_source_remove);
    g_free(due->name);
    g_free(due->gpu);
    g_free(due);
}

/* So that a restart does not take it for missed. */
static void remember(const ScheduledSwitches *switches, const char *gpu, gint64 when)
{
    g_autoptr(GError) error = NULL;

    if (!gpu_table_set_due(host_db(switches->host), gpu, when, &error))
        g_warning("%s", error->message);
}

static void switched(const char *const *steps, const GError *error, void *data)
{
    Due *due = data;
    ScheduledSwitches *switches = due->switches;

    (void)steps;
    if (switches) {
        g_ptr_array_remove_fast(switches->pending, due);
        remember(switches, due->gpu, due->when);
        if (error)
            host_event(switches->host, "mode", due->gpu, NULL, "schedule %s: %s", due->name,
                       error->message);
    }
    due_free(due);
}

static gboolean begin(void *data)
{
    Due *due = data;
    const SwitchRequest request = {.address = due->gpu,
                                   .target = due->mode,
                                   .partitions = due->partitions,
                                   .drain = due->drain,
                                   .timeout = due->timeout,
                                   .source = AUDIT_BY_SCHEDULE};
    g_autoptr(GError) error = NULL;

    if (modes_set(due->switches->modes, &request, switched, due, &error)) {
        due->again = 0;
    } else if (g_error_matches(error, AGENT_ERROR, AGENT_ERROR_IN_USE)) {
        if (!due->again)
            g_message("schedule %s: %s; it comes after that", due->name, error->message);
        due->again = g_timeout_add_seconds(TRY_AGAIN_S, begin, due);
    } else {
        due->again = 0;
        switched(NULL, error, due);
    }
    return G_SOURCE_REMOVE;
}

/* The new entry replaces any earlier one that still waits for the GPU. */
static void supersede(ScheduledSwitches *switches, const ScheduleEntry *entry)
{
    for (guint i = switches->pending->len; i > 0; i--) {
        Due *due = g_ptr_array_index(switches->pending, i - 1);

        if (!g_str_equal(due->gpu, entry->gpu))
            continue;
        host_event(switches->host, "mode", due->gpu, NULL,
                   "schedule %s: skipped, because %s is due now", due->name, entry->name);
        if (due->again) {
            g_ptr_array_remove_index(switches->pending, i - 1);
            due_free(due);
        } else {
            modes_cancel(switches->modes, due->gpu);
        }
    }
}

void scheduled_switches_add(ScheduledSwitches *switches, const ScheduleEntry *entry, gint64 when)
{
    Due *due = g_new0(Due, 1);

    supersede(switches, entry);
    due->switches = switches;
    due->name = g_strdup(entry->name);
    due->gpu = g_strdup(entry->gpu);
    due->when = when;
    due->mode = entry->mode;
    due->partitions = entry->partitions;
    due->drain = entry->drain;
    due->timeout = entry->timeout;
    g_ptr_array_add(switches->pending, due);
    g_message("schedule %s: GPU %s becomes %s", entry->name, entry->gpu,
              gpu_mode_name(entry->mode));
    begin(due);
}

gint64 scheduled_switches_last(const ScheduledSwitches *switches, const char *gpu)
{
    gint64 last = gpu_table_due(host_db(switches->host), gpu);

    for (guint i = 0; i < switches->pending->len; i++) {
        const Due *due = g_ptr_array_index(switches->pending, i);

        if (g_str_equal(due->gpu, gpu))
            last = due->when;
    }
    return last;
}

ScheduledSwitches *scheduled_switches_new(Host *host, Modes *modes)
{
    ScheduledSwitches *switches = g_new0(ScheduledSwitches, 1);

    switches->host = host;
    switches->modes = modes;
    switches->pending = g_ptr_array_new();
    return switches;
}

void scheduled_switches_free(ScheduledSwitches *switches)
{
    for (guint i = 0; i < switches->pending->len; i++) {
        Due *due = g_ptr_array_index(switches->pending, i);

        due->switches = NULL;
        /* No other entry still waits for the GPU. */
        if (due->again)
            due_free(due);
    }
    g_ptr_array_unref(switches->pending);
    g_free(switches);
}
