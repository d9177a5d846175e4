/* SPDX-License-Identifier: MIT */
/* Whether systemd understands the times in schedule.conf. vgpud ignores a file with an error. */
#include <gio/gio.h>

#include "host-agent/doctor/findings.h"
#include "lib/schedule_conf.h"

#define SUBJECT "schedule"

static void add_error(Examination *exam, const GError *error)
{
    gboolean is_asked = error->domain != G_IO_ERROR;

    finding_add(exam, FINDING_WARNING, SUBJECT, g_strdup(error->message),
                is_asked ? g_strdup("correct it, and run \"vgpuctl reload\"; until then the GPUs' "
                                    "modes change as the file said before, or not at all")
                         : g_strdup("systemd-analyze, of the package systemd, checks the times"));
}

/* An earlier entry of the same GPU that is due next at the same time; NULL: none. */
static const ScheduleEntry *find_rival(const ScheduleEntry *entry, const GPtrArray *entries)
{
    for (guint i = 0; i < entries->len && g_ptr_array_index(entries, i) != entry; i++) {
        const ScheduleEntry *other = g_ptr_array_index(entries, i);

        if (g_str_equal(other->gpu, entry->gpu) && other->next == entry->next)
            return other;
    }
    return NULL;
}

static void check_times(Examination *exam, const ScheduleEntry *entry, const GPtrArray *entries)
{
    const ScheduleEntry *rival = entry->next ? find_rival(entry, entries) : NULL;

    if (!entry->next)
        finding_add(
            exam, FINDING_WARNING, SUBJECT,
            g_strdup_printf("[at %s] is never due again: at=%s", entry->name, entry->calendar),
            g_strdup("remove it from " SCHEDULE_CONF));
    else if (rival)
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup_printf("[at %s] and [at %s] are for the same GPU, and are due next at "
                                    "the same time",
                                    rival->name, entry->name),
                    g_strdup("the last one in " SCHEDULE_CONF " holds; give them other times"));
}

void check_schedule(Examination *exam)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries = schedule_conf_load(exam->root, &error);
    guint before = exam->findings->len;

    for (guint i = 0; entries && i < entries->len && !error; i++) {
        ScheduleEntry *entry = g_ptr_array_index(entries, i);

        if (schedule_conf_check(entry, entries, &error))
            check_times(exam, entry, entries);
    }
    if (error)
        add_error(exam, error);
    else if (entries->len && exam->findings->len == before)
        finding_ok(exam, SUBJECT, "systemd understands its times");
}
