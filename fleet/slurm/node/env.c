/* SPDX-License-Identifier: MIT */
/*
 * The variables of a job's first card, for a shell that Slurm has not started: that of a login by
 * ssh, which pam_slurm_adopt has put into the job.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "fleet/slurm/node/job_file.h"
#include "fleet/slurm/node/node.h"

/* The job whose cgroup this process is in; 0: none. */
static guint job_of_this_process(HostRoot *root)
{
    g_autofree char *text = root_read(root, "/proc/self/cgroup", NULL);
    const char *at = text ? strstr(text, "/job_") : NULL;

    return at ? (guint)strtoul(at + strlen("/job_"), NULL, 10) : 0;
}

static bool print_variable(const char *name, const char *value, void *data)
{
    g_autofree char *quoted = g_shell_quote(value);
    const char *separator = g_str_has_suffix(name, "LD_LIBRARY_PATH") ? ":"
                            : !strcmp(name, "APPTAINER_BINDPATH")     ? ","
                                                                      : NULL;

    (void)data;
    printf("export %s=%s", name, quoted);
    /* What the user has there stays, as for tasks. */
    if (separator)
        printf("\"${%s:+%s$%s}\"", name, separator, name);
    printf("\n");
    return true;
}

int node_env(HostRoot *root, const char *words)
{
    static char text[JOB_FILE_MAX];
    guint64 job = 0;
    const char *refused;

    if (!words)
        job = job_of_this_process(root);
    else if (!g_ascii_string_to_unsigned(words, 10, 1, G_MAXUINT32, &job, NULL))
        job = 0;
    if (!job) {
        g_printerr("vgpu-slurm: %s%s\n", words ? words : "this process is in no job of Slurm's",
                   words ? " is no number of a job" : "; write vgpu-slurm env JOBID");
        return EXIT_FAILURE;
    }
    if (job_file_read((guint)job, text)) {
        g_printerr("vgpu-slurm: job %u %s\n", (guint)job,
                   errno == ENOENT   ? "has no slice on this node"
                   : errno == EACCES ? "is not yours"
                                     : g_strerror(errno));
        return EXIT_FAILURE;
    }
    refused = job_file_refused(text);
    if (refused || !job_file_task(text, -1, 0, print_variable, NULL)) {
        g_printerr("vgpu-slurm: job %u has no slice on this node%s%.*s\n", (guint)job,
                   refused ? ": " : "", refused ? (int)strcspn(refused, "\n") : 0,
                   refused ? refused : "");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
