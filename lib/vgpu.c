/* SPDX-License-Identifier: MIT */
#include "lib/vgpu.h"

#include <errno.h>
#include <string.h>

#include "lib/bus.h"
#include "lib/gpus.h"
#include "lib/mdev.h"
#include "lib/host_root.h"

#define SOFT_CLASS       "/vgpu-soft"
#define ATTRIBUTE_PREFIX "vgpu/"

/* "device=running engine=ready": the word after "@key=". */
static char *state_word(const char *state, const char *key)
{
    g_auto(GStrv) words = g_strsplit(state, " ", -1);
    g_autofree char *prefix = g_strconcat(key, "=", NULL);

    for (guint i = 0; words[i]; i++)
        if (g_str_has_prefix(words[i], prefix))
            return g_strdup(words[i] + strlen(prefix));
    return g_strdup("");
}

static guint64 read_counter(HostRoot *root, const char *dir, const char *attribute)
{
    return (guint64)sysfs_number(root, dir, attribute, 0);
}

/* "0000:02:00.0", or "soft:NAME". */
static char *gpu_name_of(const char *parent)
{
    g_autofree char *name = g_path_get_basename(parent);
    g_autofree char *dir = g_path_get_dirname(parent);

    return g_str_has_suffix(dir, SOFT_CLASS) ? g_strconcat(GPU_SOFT_PREFIX, name, NULL)
                                             : g_steal_pointer(&name);
}

void vgpu_update(HostRoot *root, Vgpu *vgpu, const char *dir, const char *state)
{
    g_free(vgpu->device);
    g_free(vgpu->engine);
    g_free(vgpu->failure);
    vgpu->device = state_word(state, "device");
    vgpu->engine = state_word(state, "engine");
    vgpu->failure = sysfs_read(root, dir, "failure");
    vgpu->vram = read_counter(root, dir, "vram_bytes");
    vgpu->window = read_counter(root, dir, "window_bytes");
    vgpu->weight = (guint)sysfs_number(root, dir, "weight", 0);
    vgpu->requests = read_counter(root, dir, "requests");
    vgpu->doorbells = read_counter(root, dir, "doorbells");
    vgpu->interrupts = read_counter(root, dir, "interrupts");
    vgpu->engine_losses = read_counter(root, dir, "engine_losses");
}

/*
 * Its path in /sys/devices, from the one link that leads there: with a thousand vGPUs, each system
 * call counts.
 */
static char *device_of(HostRoot *root, const char *uuid)
{
    g_autofree char *link = mdev_path(uuid);
    g_autofree char *target = root_link(root, link);

    return target ? g_canonicalize_filename(target, MDEV_DIR) : NULL;
}

Vgpu *vgpu_read(HostRoot *root, const char *uuid)
{
    g_autofree char *device = device_of(root, uuid);
    g_autofree char *dir = device ? g_build_filename(device, "vgpu", NULL) : NULL;
    g_autofree char *state = dir ? sysfs_read(root, dir, "state") : NULL;
    g_autofree char *parent = state ? g_path_get_dirname(device) : NULL;
    Vgpu *vgpu;

    if (!state)
        return NULL;
    vgpu = g_new0(Vgpu, 1);
    vgpu->uuid = g_strdup(uuid);
    vgpu->gpu = gpu_name_of(parent);
    vgpu->type = sysfs_link_name(root, device, "mdev_type");
    vgpu->cuda = sysfs_number(root, dir, "cuda", 0) > 0;
    vgpu_update(root, vgpu, dir, state);
    vgpu->dir = g_steal_pointer(&dir);
    return vgpu;
}

void vgpu_free(Vgpu *vgpu)
{
    g_free(vgpu->uuid);
    g_free(vgpu->dir);
    g_free(vgpu->gpu);
    g_free(vgpu->type);
    g_free(vgpu->device);
    g_free(vgpu->engine);
    g_free(vgpu->failure);
    g_free(vgpu);
}

GPtrArray *vgpus_read(HostRoot *root)
{
    g_auto(GStrv) uuids = mdev_list(root);
    GPtrArray *vgpus = g_ptr_array_new_with_free_func((GDestroyNotify)vgpu_free);

    for (guint i = 0; uuids[i]; i++) {
        Vgpu *vgpu = vgpu_read(root, uuids[i]);

        if (vgpu)
            g_ptr_array_add(vgpus, vgpu);
    }
    return vgpus;
}

#define PERIOD_US 50000

/* TRUE: the result is known; @error is set if it is a failure. */
static gboolean has_ended(const Vgpu *vgpu, const char *uuid, GError **error)
{
    if (!vgpu)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "vGPU %s was removed while waiting for its engine", uuid);
    else if (g_str_equal(vgpu->engine, "failed"))
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "the engine of vGPU %s gave up: %s; \"journalctl -u vgpu-engine@%s\" has more",
                    uuid, vgpu->failure && *vgpu->failure ? vgpu->failure : "it does not say why",
                    uuid);
    else
        return g_str_equal(vgpu->engine, "ready");
    return TRUE;
}

gboolean vgpu_wait_ready(HostRoot *root, const char *uuid, guint timeout_ms, GError **error)
{
    gint64 end = g_get_monotonic_time() + (gint64)timeout_ms * 1000;

    for (;;) {
        g_autoptr(Vgpu) vgpu = vgpu_read(root, uuid);
        g_autoptr(GError) failure = NULL;

        if (has_ended(vgpu, uuid, &failure)) {
            if (!failure)
                return TRUE;
            g_propagate_error(error, g_steal_pointer(&failure));
            return FALSE;
        }
        if (g_get_monotonic_time() >= end) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                        "the engine of vGPU %s is not ready after %u s; \"systemctl status "
                        "vgpu-engine@%s\" says why",
                        uuid, timeout_ms / 1000, uuid);
            return FALSE;
        }
        g_usleep(PERIOD_US);
    }
}

static AgentError code_of(int cause)
{
    return cause == ENOSPC  ? AGENT_ERROR_NO_ROOM
           : cause == EBUSY ? AGENT_ERROR_IN_USE
                            : AGENT_ERROR_FAILED;
}

static const char *text_of(int cause)
{
    return cause == ENOENT  ? "it has no such attribute, because the loaded module is older"
           : cause == EBUSY ? "a VM has the vGPU open"
                            : g_strerror(cause);
}

static gboolean write_one(HostRoot *root, const char *dir, const char *name, const char *value,
                          GError **error)
{
    g_autofree char *line = g_strconcat(value, "\n", NULL);
    int cause = sysfs_write(root, dir, name, line);

    if (!cause)
        return TRUE;
    g_set_error(error, AGENT_ERROR, code_of(cause), "the driver does not accept %s=%s: %s", name,
                value, text_of(cause));
    return FALSE;
}

static gboolean is_change(const VgpuWrite *write)
{
    return !g_str_equal(write->from, write->to);
}

gboolean vgpu_write(HostRoot *root, const char *dir, const VgpuWrite *list, gsize count,
                    GError **error)
{
    for (gsize i = 0; i < count; i++) {
        if (!is_change(&list[i]) || write_one(root, dir, list[i].name, list[i].to, error))
            continue;
        while (i-- > 0)
            if (is_change(&list[i]))
                write_one(root, dir, list[i].name, list[i].from, NULL);
        return FALSE;
    }
    return TRUE;
}

/* Definitions of mediated devices in mdevctl's configuration. */

void definition_free(Definition *definition)
{
    g_free(definition->uuid);
    g_free(definition->parent);
    g_free(definition->type);
    g_hash_table_unref(definition->attributes);
    g_free(definition);
}

/* mdevctl has a list of objects with one member each, and writes them in order. */
static GHashTable *read_attributes(JsonObject *object)
{
    JsonNode *node = json_object_get_member(object, "attrs");
    JsonArray *list = node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
    GHashTable *attributes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    for (guint i = 0; list && i < json_array_get_length(list); i++) {
        JsonNode *entry = json_array_get_element(list, i);
        JsonObjectIter iter;
        const char *name;
        JsonNode *value;

        if (!JSON_NODE_HOLDS_OBJECT(entry))
            continue;
        json_object_iter_init(&iter, json_node_get_object(entry));
        while (json_object_iter_next(&iter, &name, &value))
            if (g_str_has_prefix(name, ATTRIBUTE_PREFIX) && JSON_NODE_HOLDS_VALUE(value) &&
                json_node_get_value_type(value) == G_TYPE_STRING)
                g_hash_table_replace(attributes, g_strdup(name + strlen(ATTRIBUTE_PREFIX)),
                                     json_node_dup_string(value));
    }
    return attributes;
}

/* NULL: no file, or no JSON object. */
static JsonObject *load_object(HostRoot *root, const char *parent, const char *uuid)
{
    g_autofree char *path = g_build_filename(DEFINITIONS_DIR, parent, uuid, NULL);
    g_autofree char *text = root_read(root, path, NULL);
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonNode *root_node;

    /* No root: mdevctl has created the file but not yet written it. */
    if (!text || !json_parser_load_from_data(parser, text, -1, NULL) ||
        !(root_node = json_parser_get_root(parser)) || !JSON_NODE_HOLDS_OBJECT(root_node))
        return NULL;
    return json_node_dup_object(root_node);
}

Definition *definition_read(HostRoot *root, const char *parent, const char *uuid)
{
    g_autoptr(JsonObject) object = load_object(root, parent, uuid);
    const char *type =
        object ? json_object_get_string_member_with_default(object, "mdev_type", NULL) : NULL;
    Definition *definition;

    if (!type)
        return NULL;
    definition = g_new0(Definition, 1);
    definition->uuid = g_strdup(uuid);
    definition->parent = g_strdup(parent);
    definition->type = g_strdup(type);
    definition->autostart =
        g_strcmp0(json_object_get_string_member_with_default(object, "start", NULL), "auto") == 0;
    definition->attributes = read_attributes(object);
    return definition;
}

JsonObject *definition_json(HostRoot *root, const Definition *definition)
{
    JsonObject *object = load_object(root, definition->parent, definition->uuid);

    return object ? object : json_object_new();
}

GPtrArray *definitions_read(HostRoot *root)
{
    g_auto(GStrv) parents = sysfs_list(root, DEFINITIONS_DIR);
    GPtrArray *definitions = g_ptr_array_new_with_free_func((GDestroyNotify)definition_free);

    for (guint i = 0; parents[i]; i++) {
        g_autofree char *parent_dir = g_build_filename(DEFINITIONS_DIR, parents[i], NULL);
        g_auto(GStrv) uuids = sysfs_list(root, parent_dir);

        for (guint k = 0; uuids[k]; k++) {
            /* Editors and packages leave copies in the same folder, such as UUID.orig. */
            Definition *definition = g_uuid_string_is_valid(uuids[k])
                                         ? definition_read(root, parents[i], uuids[k])
                                         : NULL;

            if (definition)
                g_ptr_array_add(definitions, definition);
        }
    }
    return definitions;
}

gboolean definition_exists(HostRoot *root, const char *uuid)
{
    g_auto(GStrv) parents = sysfs_list(root, DEFINITIONS_DIR);
    gboolean exists = FALSE;

    for (guint i = 0; !exists && parents[i]; i++) {
        g_autofree char *path = g_build_filename(DEFINITIONS_DIR, parents[i], uuid, NULL);

        exists = root_has(root, path);
    }
    return exists;
}

Definition *definition_find(HostRoot *root, const char *uuid)
{
    g_auto(GStrv) parents = sysfs_list(root, DEFINITIONS_DIR);
    Definition *definition = NULL;

    for (guint i = 0; !definition && parents[i]; i++)
        definition = definition_read(root, parents[i], uuid);
    return definition;
}
