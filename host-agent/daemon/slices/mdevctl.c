/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/mdevctl.h"

#include <string.h>
#include <json-glib/json-glib.h>

#include "host-agent/model/slice_keys.h"
#include "lib/bus.h"
#include "lib/gpus.h"
#include "lib/program.h"
#include "lib/host_root.h"

#define TIMEOUT_S 60

typedef struct {
    MdevctlFunc func;
    void *data;
} Run;

/* The driver has no room, as somebody has made vGPUs of this GPU since vgpud has looked. */
static gboolean is_full(const GError *error)
{
    return strstr(error->message, "No available instances") ||
           strstr(error->message, "No space left on device (os error 28)");
}

static void mdevctl_ended(const char *output, const GError *cause, void *data)
{
    g_autofree Run *run = data;
    g_autoptr(GError) error = NULL;

    (void)output;
    if (cause && cause->domain == G_SPAWN_ERROR)
        error = g_error_new(AGENT_ERROR, AGENT_ERROR_FAILED,
                            "mdevctl can't be started; is the package mdevctl installed?");
    else if (cause)
        error = g_error_new_literal(
            AGENT_ERROR, is_full(cause) ? AGENT_ERROR_NO_ROOM : AGENT_ERROR_FAILED, cause->message);
    run->func(error, run->data);
}

void mdevctl_run(const char *const *words, const char *json, GCancellable *cancellable,
                 MdevctlFunc func, void *data)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    Program program = {.input = json, .seconds = TIMEOUT_S};
    Run *run = g_new0(Run, 1);

    g_ptr_array_add(argv, (char *)"mdevctl");
    for (guint i = 0; words[i]; i++)
        g_ptr_array_add(argv, (char *)words[i]);
    g_ptr_array_add(argv, NULL);
    program.argv = (const char *const *)argv->pdata;
    run->func = func;
    run->data = data;
    program_start(&program, cancellable, mdevctl_ended, run);
}

#define PREFIX "vgpu/"

static void append_attribute(JsonArray *list, const char *name, const char *value)
{
    g_autofree char *attribute = g_strconcat(PREFIX, name, NULL);
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, attribute, value);
    json_array_add_object_element(list, object);
}

/* All values of the slice: the type's may be different when the vGPU is started next. */
static void append_slice(JsonArray *list, const Slice *slice)
{
    for (guint i = 0; i < slice_keys_count; i++) {
        const char *name = slice_keys[i].attribute;
        g_autofree char *value = name ? slice_key_text(&slice_keys[i], slice) : NULL;

        if (value && *value)
            append_attribute(list, name, value);
    }
}

static gboolean is_of_slice(JsonNode *node)
{
    for (guint i = 0; JSON_NODE_HOLDS_OBJECT(node) && i < slice_keys_count; i++) {
        const char *name = slice_keys[i].attribute;
        g_autofree char *attribute = name ? g_strconcat(PREFIX, name, NULL) : NULL;

        if (name && json_object_has_member(json_node_get_object(node), attribute))
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
        append_attribute(list, "window_bytes", window);
    json_object_set_string_member(object, "mdev_type", spec->slice->type);
    json_object_set_string_member(object, "start", spec->slice->autostart ? "auto" : "manual");
    json_object_set_array_member(object, "attrs", list);
    return text_of(object);
}

char *mdevctl_changed_json(HostRoot *root, const Definition *definition, const Slice *slice)
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

/* Reports when definitions in mdevctl's configuration are added, changed or removed. */

struct DefinitionWatch {
    HostRoot *root;
    GFileMonitor *parents;
    GHashTable *monitors; /* directory of a parent to GFileMonitor */
    void (*changed)(const char *uuid, void *data);
    void *data;
};

/* Temporary files of mdevctl and editors have other names. */
static void definition_event(GFileMonitor *monitor, GFile *file, GFile *other,
                             GFileMonitorEvent event, void *data)
{
    const DefinitionWatch *watch = data;
    g_autofree char *name = g_file_get_basename(file);

    (void)monitor;
    (void)other;
    if (event != G_FILE_MONITOR_EVENT_CHANGED && g_uuid_string_is_valid(name))
        watch->changed(name, watch->data);
}

static GFileMonitor *monitor_dir(const char *path, void *callback, void *data)
{
    g_autoptr(GFile) dir = g_file_new_for_path(path);
    GFileMonitor *monitor = g_file_monitor_directory(dir, G_FILE_MONITOR_NONE, NULL, NULL);

    if (monitor)
        g_signal_connect(monitor, "changed", callback, data);
    return monitor;
}

static void add_parent(DefinitionWatch *watch, const char *name)
{
    g_autofree char *path = root_path(watch->root, DEFINITIONS_DIR, name, NULL);
    GFileMonitor *monitor;

    if (g_hash_table_contains(watch->monitors, path) || !g_file_test(path, G_FILE_TEST_IS_DIR))
        return;
    monitor = monitor_dir(path, G_CALLBACK(definition_event), watch);
    if (monitor)
        g_hash_table_insert(watch->monitors, g_steal_pointer(&path), monitor);
}

/* Files that were written before the watch began are reported, too. */
static void tell_all(const DefinitionWatch *watch, const char *parent)
{
    g_autofree char *path = g_build_filename(DEFINITIONS_DIR, parent, NULL);
    g_auto(GStrv) names = sysfs_list(watch->root, path);

    for (guint i = 0; names[i]; i++)
        if (g_uuid_string_is_valid(names[i]))
            watch->changed(names[i], watch->data);
}

static void parent_event(GFileMonitor *monitor, GFile *file, GFile *other, GFileMonitorEvent event,
                         void *data)
{
    DefinitionWatch *watch = data;
    g_autofree char *name = g_file_get_basename(file);
    g_autofree char *path = g_file_get_path(file);

    (void)monitor;
    (void)other;
    if (event == G_FILE_MONITOR_EVENT_DELETED) {
        g_hash_table_remove(watch->monitors, path);
    } else if (event == G_FILE_MONITOR_EVENT_CREATED) {
        add_parent(watch, name);
        tell_all(watch, name);
    }
}

DefinitionWatch *definition_watch_new(HostRoot *root, void (*changed)(const char *uuid, void *data),
                                      void *data)
{
    DefinitionWatch *watch = g_new0(DefinitionWatch, 1);
    g_autofree char *dir = root_path(root, DEFINITIONS_DIR, NULL);
    g_auto(GStrv) parents = NULL;

    watch->root = host_root_ref(root);
    watch->monitors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
    watch->changed = changed;
    watch->data = data;
    watch->parents = monitor_dir(dir, G_CALLBACK(parent_event), watch);
    parents = sysfs_list(root, DEFINITIONS_DIR);
    for (guint i = 0; parents[i]; i++)
        add_parent(watch, parents[i]);
    return watch;
}

void definition_watch_free(DefinitionWatch *watch)
{
    g_clear_object(&watch->parents);
    g_hash_table_unref(watch->monitors);
    host_root_unref(watch->root);
    g_free(watch);
}
