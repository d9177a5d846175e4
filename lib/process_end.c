/* SPDX-License-Identifier: MIT */
#include "lib/process_end.h"

/* Of vgpu-suspend, for the end of what it has killed, and of all. */
#define LIMIT_MS "20000"
#define LIMIT_S  30

char *process_end_name(guint pid, guint64 started)
{
    return g_strdup_printf("%u:%" G_GUINT64_FORMAT, pid, started);
}

void process_end(const char *const *processes, GCancellable *cancellable, ProgramFunc func,
                 void *data)
{
    static const char *const outside[] = {"systemd-run",
                                          "--quiet",
                                          "--collect",
                                          "--wait",
                                          "--pipe",
                                          "--",
                                          "/usr/lib/mdev-vgpu/vgpu-suspend",
                                          "--limit",
                                          LIMIT_MS,
                                          "end",
                                          NULL};
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) argv = NULL;
    Program program = {.seconds = LIMIT_S};

    g_strv_builder_addv(builder, (const char **)outside);
    g_strv_builder_addv(builder, (const char **)processes);
    argv = g_strv_builder_end(builder);
    program.argv = (const char *const *)argv;
    program_start(&program, cancellable, func, data);
}
