/* SPDX-License-Identifier: MIT */
/* vgpuctl doctor: what is amiss on this host, and what to do. Needs no vgpud. */
#include "host-agent/doctor/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/json.h"

static void print_text(const GPtrArray *findings)
{
    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        printf("%-8s %s: %s\n", severity_name(finding->severity), finding->subject, finding->text);
        if (finding->advice)
            printf("%-8s   %s\n", "", finding->advice);
    }
}

static void print_json(const GPtrArray *findings)
{
    JsonArray *array = json_array_new();

    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);
        JsonObject *object = json_object_new();

        json_object_set_string_member(object, "severity", severity_name(finding->severity));
        json_object_set_string_member(object, "subject", finding->subject);
        json_object_set_string_member(object, "text", finding->text);
        if (finding->advice)
            json_object_set_string_member(object, "advice", finding->advice);
        json_array_add_object_element(array, object);
    }
    json_print(json_node_init_array(json_node_alloc(), array));
    json_array_unref(array);
}

static guint count(const GPtrArray *findings, Severity severity)
{
    guint sum = 0;

    for (guint i = 0; i < findings->len; i++)
        sum += ((const Finding *)g_ptr_array_index(findings, i))->severity == severity;
    return sum;
}

static gboolean with_card;

const GOptionEntry doctor_options[] = {
    {"card", 0, 0, G_OPTION_ARG_NONE, &with_card,
     "measure the GPU, too: what it can, and what of it is shared (vgpu-card)", NULL},
    {0},
};

/* vgpu-card(1) has all that is found here on its page. Returns only where it can't be run. */
static gboolean become_card(const Options *options, GError **error)
{
    static char *const as_page[] = {"vgpu-card", NULL};
    static char *const as_json[] = {"vgpu-card", "--json", "-", NULL};

    execvp("vgpu-card", options->json ? as_json : as_page);
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "vgpu-card: %s; it is in the package vgpu-card",
                g_strerror(errno));
    return FALSE;
}

gboolean doctor_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GPtrArray) findings = NULL;
    guint problems;

    (void)client;
    (void)args;
    if (with_card)
        return become_card(options, error);
    findings = doctor_examine(options->root);
    problems = count(findings, FINDING_PROBLEM);
    if (options->json)
        print_json(findings);
    else
        print_text(findings);
    if (!problems)
        return TRUE;
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED,
                "%u problem%s, without which vGPUs would work", problems, problems > 1 ? "s" : "");
    return FALSE;
}
