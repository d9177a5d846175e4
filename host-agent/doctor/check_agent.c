/* SPDX-License-Identifier: MIT */
/* Whether vgpud keeps running. Without systemd this cannot be checked. */
#include <stdlib.h>

#include "host-agent/doctor/findings.h"

#define UNIT "vgpud.service"

/* Deaths since somebody last started the unit, or since the last boot. */
static gboolean deaths(guint *count)
{
    g_autofree char *systemctl = g_find_program_in_path("systemctl");
    const char *argv[] = {systemctl, "show", "--property=NRestarts", "--value", UNIT, NULL};
    g_autofree char *out = NULL;
    int status;

    if (!systemctl ||
        !g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL,
                      &status, NULL) ||
        !g_spawn_check_wait_status(status, NULL) || !g_ascii_isdigit(out[0]))
        return FALSE;
    *count = (guint)strtoul(out, NULL, 10);
    return TRUE;
}

void check_agent(Examination *exam)
{
    guint count;

    if (!deaths(&count))
        return;
    if (count == 0)
        finding_ok(exam, "vgpud", "it has not died since it was started");
    else
        finding_add(exam, FINDING_WARNING, "vgpud",
                    g_strdup_printf("vgpud has died %u times since its last manual start; systemd "
                                    "starts it again, after 10 s at most",
                                    count),
                    g_strdup("\"journalctl -u vgpud\" says why; \"systemctl restart vgpud\" resets "
                             "the count"));
}
