/* SPDX-License-Identifier: MIT */
/* Whether vgpud keeps running. Without systemd this cannot be checked. */
#include <stdlib.h>

#include "host-agent/doctor/findings.h"
#include "lib/program.h"

#define UNIT "vgpud.service"

/* Deaths since somebody last started the unit, or since the last boot. */
static gboolean deaths(guint *count)
{
    const char *argv[] = {"systemctl", "show", "--property=NRestarts", "--value", UNIT, NULL};
    const Program program = {.argv = argv, .seconds = CHECK_SECONDS};
    g_autofree char *out = NULL;

    if (!program_run(&program, &out, NULL) || !g_ascii_isdigit(out[0]))
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
