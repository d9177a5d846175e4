/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/definition_watch.h"

#include "lib/definition.h"
#include "lib/host_root.h"
#include "lib/sysfs.h"

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
