/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/mdevctl.h"

#include <json-glib/json-glib.h>
#include <string.h>

#include "lib/bus.h"
#include "lib/gpus.h"

#define TIMEOUT_S 60

typedef struct {
    char *line;
    GSubprocess *process;
    GCancellable *cancellable;
    gulong cancelled;
    guint timeout;
    gboolean timed_out;
    MdevctlFunc func;
    void *data;
} Run;

static void run_free(Run *run)
{
    if (run->timeout)
        g_source_remove(run->timeout);
    g_cancellable_disconnect(run->cancellable, run->cancelled);
    g_clear_object(&run->cancellable);
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

/* Its end is waited for: until then it may still change something. */
static void kill_process(GCancellable *cancellable, void *process)
{
    (void)cancellable;
    g_subprocess_force_exit(process);
}

/* mdevctl writes "Error: " and one or two causes, each on its own line. */
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

/* Never from within mdevctl_run(): its caller does not expect the answer then. */
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

void mdevctl_run(const char *const *words, const char *json, GCancellable *cancellable,
                 MdevctlFunc func, void *data)
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
    if (cancellable) {
        run->cancellable = g_object_ref(cancellable);
        run->cancelled = g_cancellable_connect(cancellable, G_CALLBACK(kill_process),
                                               g_object_ref(run->process), g_object_unref);
    }
    g_subprocess_communicate_utf8_async(run->process, json, NULL, ended, run);
}

#define PREFIX "vgpu/"

static void append(JsonArray *list, const char *name, const char *value)
{
    g_autofree char *attribute = g_strconcat(PREFIX, name, NULL);
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, attribute, value);
    json_array_add_object_element(list, object);
}

/* All values of the slice: the type's may be different when the vGPU is started next. */
static void append_slice(JsonArray *list, const Slice *slice)
{
    g_auto(GStrv) values = slice_attributes(slice);

    for (guint i = 0; i < SLICE_ATTRIBUTES; i++)
        if (*values[i])
            append(list, slice_attribute_names[i], values[i]);
}

static gboolean is_of_slice(JsonNode *node)
{
    for (guint i = 0; JSON_NODE_HOLDS_OBJECT(node) && i < SLICE_ATTRIBUTES; i++) {
        g_autofree char *attribute = g_strconcat(PREFIX, slice_attribute_names[i], NULL);

        if (json_object_has_member(json_node_get_object(node), attribute))
            return TRUE;
    }
    return FALSE;
}

/* Entries of a definition's list that are no values of a slice. */
static void append_others(JsonArray *list, JsonObject *definition)
{
    JsonNode *node = json_object_get_member(definition, "attrs");
    JsonArray *old = node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;

    for (guint i = 0; old && i < json_array_get_length(old); i++)
        if (!is_of_slice(json_array_get_element(old, i)))
            json_array_add_element(list, json_array_dup_element(old, i));
}

static char *text_of(JsonObject *object)
{
    g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), object);

    return json_to_string(node, FALSE);
}

char *mdevctl_json(const MdevctlSpec *spec)
{
    g_autofree char *window = g_strdup_printf("%" G_GUINT64_FORMAT, spec->window);
    g_autoptr(JsonObject) object = json_object_new();
    JsonArray *list = json_array_new();

    append_slice(list, spec->slice);
    if (spec->window)
        append(list, "window_bytes", window);
    json_object_set_string_member(object, "mdev_type", spec->slice->type);
    json_object_set_string_member(object, "start", spec->slice->autostart ? "auto" : "manual");
    json_object_set_array_member(object, "attrs", list);
    return text_of(object);
}

char *mdevctl_changed_json(const char *root, const Definition *definition, const Slice *slice)
{
    g_autoptr(JsonObject) object = definition_json(root, definition);
    JsonArray *list = json_array_new();

    append_others(list, object);
    append_slice(list, slice);
    json_object_set_array_member(object, "attrs", list);
    return text_of(object);
}

const char *mdevctl_parent(const char *gpu)
{
    return gpu_name_is_soft(gpu) ? gpu + strlen(GPU_SOFT_PREFIX) : gpu;
}

const char *const slice_attribute_names[SLICE_ATTRIBUTES] = {
    "vram_bytes", "weight", "cap", "priority", "tenant", "class", "oversubscribe_bytes", "display"};

static void add_number(GStrvBuilder *texts, guint64 number)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, number);

    g_strv_builder_add(texts, text);
}

GStrv slice_attributes(const Slice *slice)
{
    g_autoptr(GStrvBuilder) texts = g_strv_builder_new();

    add_number(texts, slice->vram);
    add_number(texts, slice->weight);
    add_number(texts, slice->cap);
    add_number(texts, slice->priority);
    g_strv_builder_add(texts, slice->tenant);
    g_strv_builder_add(texts, slice_class_name(slice->class));
    add_number(texts, slice->oversubscribe);
    if (slice->display < 0)
        g_strv_builder_add(texts, "");
    else
        add_number(texts, (guint64)slice->display);
    return g_strv_builder_end(texts);
}
