/* SPDX-License-Identifier: MIT */
#include "mdevctl.h"

#include <json-glib/json-glib.h>
#include <string.h>

#include "agent_error.h"
#include "gpus.h"

#define TIMEOUT_S 60

typedef struct {
    char *line;
    GSubprocess *process;
    guint timeout;
    gboolean timed_out;
    MdevctlFunc func;
    void *data;
} Run;

static void run_free(Run *run)
{
    if (run->timeout)
        g_source_remove(run->timeout);
    g_clear_object(&run->process);
    g_free(run->line);
    g_free(run);
}

static gboolean too_long(void *data)
{
    Run *run = data;

    run->timeout = 0;
    run->timed_out = TRUE;
    g_subprocess_force_exit(run->process);
    return G_SOURCE_REMOVE;
}

/* mdevctl writes "Error: " and a cause or two in lines of their own. */
static char *what_it_said(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    g_autoptr(GString) said = g_string_new(NULL);

    for (guint i = 0; lines[i]; i++) {
        const char *line = g_strstrip(lines[i]);

        if (*line)
            g_string_append_printf(said, "%s%s", said->len ? "; " : "", line);
    }
    return g_string_free(g_steal_pointer(&said), said->len == 0);
}

static GError *error_of(const Run *run, const char *text)
{
    g_autofree char *said = what_it_said(text);

    if (run->timed_out)
        return g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED, "\"%s\" did not end in %d seconds",
                           run->line, TIMEOUT_S);
    return g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED, "\"%s\" failed: %s", run->line,
                       said ? said : "it does not say why");
}

static void ended(GObject *process, GAsyncResult *answer, void *data)
{
    Run *run = data;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;

    if (g_subprocess_communicate_utf8_finish(G_SUBPROCESS(process), answer, NULL, &text, &error) &&
        !g_subprocess_get_successful(G_SUBPROCESS(process)))
        error = error_of(run, text);
    run->func(error, run->data);
    run_free(run);
}

/* Never from within mdevctl_run(): its caller is not ready for the answer then. */
static gboolean tell_not_started(void *data)
{
    Run *run = data;
    g_autoptr(GError) error =
        g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED,
                    "mdevctl can't be started; is the package mdevctl installed?");

    run->func(error, run->data);
    run_free(run);
    return G_SOURCE_REMOVE;
}

void mdevctl_run(const char *const *words, const char *json, MdevctlFunc func, void *data)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    Run *run = g_new0(Run, 1);

    g_ptr_array_add(argv, (char *)"mdevctl");
    for (guint i = 0; words[i]; i++)
        g_ptr_array_add(argv, (char *)words[i]);
    g_ptr_array_add(argv, NULL);
    run->line = g_strjoinv(" ", (char **)argv->pdata);
    run->func = func;
    run->data = data;
    run->process =
        g_subprocess_newv((const char *const *)argv->pdata,
                          G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE |
                              G_SUBPROCESS_FLAGS_STDERR_PIPE,
                          NULL);
    if (!run->process) {
        g_idle_add(tell_not_started, run);
        return;
    }
    run->timeout = g_timeout_add_seconds(TIMEOUT_S, too_long, run);
    g_subprocess_communicate_utf8_async(run->process, json, NULL, ended, run);
}

/**
 * Attribute - of a vGPU, as mdevctl knows it; value 0 of the window: the type's
 */
typedef struct {
    const char *name;
    guint64 value;
} Attribute;

static JsonObject *object_of_attribute(const Attribute *attribute)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, attribute->value);
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, attribute->name, text);
    return object;
}

static gboolean is_attribute(JsonNode *node, const Attribute *attributes, gsize count)
{
    for (gsize i = 0; i < count; i++)
        if (JSON_NODE_HOLDS_OBJECT(node) &&
            json_object_has_member(json_node_get_object(node), attributes[i].name))
            return TRUE;
    return FALSE;
}

/* @old: mdevctl's list, or NULL; what is not among @attributes stays as it is. */
static JsonArray *merge_attributes(JsonArray *old, const Attribute *attributes, gsize count)
{
    JsonArray *list = json_array_new();

    for (guint i = 0; old && i < json_array_get_length(old); i++)
        if (!is_attribute(json_array_get_element(old, i), attributes, count))
            json_array_add_element(list, json_array_dup_element(old, i));
    for (gsize i = 0; i < count; i++)
        if (attributes[i].value || !g_str_has_suffix(attributes[i].name, "window_bytes"))
            json_array_add_object_element(list, object_of_attribute(&attributes[i]));
    return list;
}

static char *text_of(JsonObject *object)
{
    g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), object);

    return json_to_string(node, FALSE);
}

/* All parameters: what a type has may be another thing when the vGPU is started next. */
char *mdevctl_json(const MdevctlSpec *spec)
{
    const Attribute attributes[] = {
        {"vgpu/vram_bytes", spec->slice->vram},   {"vgpu/window_bytes", spec->window},
        {"vgpu/weight", spec->slice->weight},     {"vgpu/cap", spec->slice->cap},
        {"vgpu/priority", spec->slice->priority},
    };
    g_autoptr(JsonObject) object = json_object_new();

    json_object_set_string_member(object, "mdev_type", spec->slice->type);
    json_object_set_string_member(object, "start", spec->slice->autostart ? "auto" : "manual");
    json_object_set_array_member(object, "attrs",
                                 merge_attributes(NULL, attributes, G_N_ELEMENTS(attributes)));
    return text_of(object);
}

char *mdevctl_changed_json(const char *root, const Definition *definition, const Slice *slice)
{
    const Attribute attributes[] = {
        {"vgpu/vram_bytes", slice->vram},
        {"vgpu/weight", slice->weight},
        {"vgpu/cap", slice->cap},
        {"vgpu/priority", slice->priority},
    };
    g_autoptr(JsonObject) object = definition_json(root, definition);
    JsonNode *old = json_object_get_member(object, "attrs");
    JsonArray *list =
        merge_attributes(old && JSON_NODE_HOLDS_ARRAY(old) ? json_node_get_array(old) : NULL,
                         attributes, G_N_ELEMENTS(attributes));

    json_object_set_array_member(object, "attrs", list);
    return text_of(object);
}

const char *mdevctl_parent(const char *gpu)
{
    return gpu_name_is_soft(gpu) ? gpu + strlen(GPU_SOFT_PREFIX) : gpu;
}
