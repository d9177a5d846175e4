/* SPDX-License-Identifier: MIT */
/* vgpu-slurm(8). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include "fleet/slurm/node/node.h"

void node_say(int priority, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_printerr("vgpu-slurm: %s\n", text);
    openlog("vgpu-slurm", LOG_PID, LOG_DAEMON);
    syslog(priority, "%s", text);
    closelog();
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HostRoot) root = host_root_new(g_getenv("VGPU_ROOT"), &error);
    const char *verb = argc > 1 ? argv[1] : "";

    if (!root) {
        node_say(LOG_ERR, "%s", error->message);
        return EXIT_FAILURE;
    }
    if (argc == 2 && g_str_equal(verb, "--version")) {
        puts("vgpu-slurm " VGPU_VERSION);
        return EXIT_SUCCESS;
    }
    if (argc == 2 && g_str_equal(verb, "prolog"))
        return node_prolog(root);
    if (argc == 2 && g_str_equal(verb, "epilog"))
        return node_epilog(root);
    if (argc == 2 && g_str_equal(verb, "check"))
        return node_check(root);
    if (argc == 2 && g_str_equal(verb, "health"))
        return node_health(root);
    if (argc == 2 && g_str_equal(verb, "pressure"))
        return node_pressure();
    if ((argc == 2 || argc == 3) && g_str_equal(verb, "env"))
        return node_env(root, argv[2]);
    if (g_str_equal(verb, "gres-conf")) {
        gboolean for_node = FALSE, write = FALSE, known = TRUE;

        for (int i = 2; i < argc; i++) {
            for_node = for_node || g_str_equal(argv[i], "--node");
            write = write || g_str_equal(argv[i], "--write");
            known = known && (g_str_equal(argv[i], "--node") || g_str_equal(argv[i], "--write"));
        }
        if (known)
            return node_gres_conf(root, for_node, write);
    }
    g_printerr(
        "usage: vgpu-slurm prolog|epilog|health|pressure|check|env [JOBID]|gres-conf [--node] "
        "[--write]|--version, see vgpu-slurm(8)\n");
    return 2;
}
