/* SPDX-License-Identifier: MIT */
/* vgpuctl doctor: checks this host, and says what to do. Needs no vgpud. */
#include "host-agent/doctor/doctor.h"

#include <errno.h>
#include <unistd.h>

#include "host-agent/vgpuctl/command.h"

static void print_text(const Options *options, const GPtrArray *findings)
{
    for (guint i = 0; i < findings->len; i++) {
        const Finding *finding = g_ptr_array_index(findings, i);

        output_line(options, "%-8s %s: %s", severity_name(finding->severity), finding->subject,
                    finding->text);
        if (finding->advice)
            output_line(options, "%-8s   %s", "", finding->advice);
    }
}

static void print_document(const Options *options, const GPtrArray *findings)
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
    output_node(options, json_node_init_array(json_node_alloc(), array));
    json_array_unref(array);
}

static guint count_severity(const GPtrArray *findings, Severity severity)
{
    guint sum = 0;

    for (guint i = 0; i < findings->len; i++)
        sum += ((const Finding *)g_ptr_array_index(findings, i))->severity == severity;
    return sum;
}

static gboolean with_card;

const GOptionEntry doctor_options[] = {
    {"card", 0, 0, G_OPTION_ARG_NONE, &with_card,
     "Measure the GPU, too: what it can do, and what is left of it when shared (vgpu-card)", NULL},
    {0},
};

/* vgpu-card(1) has all findings on its page. Returns only if it cannot be run. */
static gboolean become_card(const Options *options, GError **error)
{
    static char *const as_page[] = {"vgpu-card", NULL};
    static char *const as_json[] = {"vgpu-card", "--json", "-", NULL};

    execvp("vgpu-card", options->format == FORMAT_JSON ? as_json : as_page);
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED,
                "cannot run vgpu-card: %s; install the package vgpu-card", g_strerror(errno));
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
    problems = count_severity(findings, FINDING_PROBLEM);
    if (output_is_document(options))
        print_document(options, findings);
    else
        print_text(options, findings);
    if (!problems)
        return TRUE;
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED,
                "%u problem%s that prevent%s vGPUs from working, see above", problems,
                problems > 1 ? "s" : "", problems > 1 ? "" : "s");
    return FALSE;
}
