/* SPDX-License-Identifier: MIT */
/* vgpuctl events: what happens to GPUs and vGPUs, line by line, until a signal ends it. */
#include <glib-unix.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host-agent/vgpuctl/command.h"

/* Begins an event. */
static JsonObject *begin_object(const char *event, const char *gpu)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format_iso8601(now);
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "time", time);
    json_object_set_string_member(object, "gpu", gpu);
    json_object_set_string_member(object, "event", event);
    return object;
}

/* Takes @object. JSON is on one line; YAML is a document for each event. */
static void print_object(const Options *options, JsonObject *object)
{
    g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), object);
    g_autofree char *text = NULL;

    json_object_unref(object);
    if (options->format == FORMAT_YAML) {
        fputs("---\n", options->out);
        output_node(options, g_steal_pointer(&node));
        return;
    }
    text = json_to_string(node, FALSE);
    fprintf(options->out, "%s\n", text);
}

/* One event of the GPU at @address. @changed: its properties that have new values, NULL: none. */
static void print_document(const Options *options, const char *address, const char *event,
                           GVariant *changed)
{
    JsonObject *object = begin_object(event, address);

    if (changed)
        json_object_set_member(object, "changed", json_gvariant_serialize(changed));
    print_object(options, object);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* " Driver='vfio-pci' Mode='passthrough'", sorted. */
static char *text_of_changed(GVariant *changed)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    GVariantIter iter;
    GVariant *value;

    g_variant_iter_init(&iter, changed);
    while (g_variant_iter_next(&iter, "{&sv}", &name, &value)) {
        g_autofree char *text = g_variant_print(value, FALSE);

        g_ptr_array_add(words, g_strdup_printf(" %s=%s", name, text));
        g_variant_unref(value);
    }
    g_ptr_array_sort(words, by_name);
    g_ptr_array_add(words, NULL);
    return g_strjoinv("", (char **)words->pdata);
}

static void print_text(const Options *options, const char *address, const char *event,
                       GVariant *changed)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    g_autofree char *time = g_date_time_format(now, "%F %T");
    g_autofree char *what = changed ? text_of_changed(changed) : NULL;

    output_line(options, "%s  GPU %s %s%s", time, address, event, what ? what : "");
}

static void print_event(const Options *options, GDBusObject *object, const char *event,
                        GVariant *changed)
{
    g_autoptr(VgpuGpu) gpu = vgpu_object_get_gpu(VGPU_OBJECT(object));

    if (!gpu)
        return;
    if (output_is_document(options))
        print_document(options, vgpu_gpu_get_address(gpu), event, changed);
    else
        print_text(options, vgpu_gpu_get_address(gpu), event, changed);
    fflush(options->out);
}

static void added(GDBusObjectManager *manager, GDBusObject *object, void *options)
{
    (void)manager;
    print_event(options, object, "added", NULL);
}

static void removed(GDBusObjectManager *manager, GDBusObject *object, void *options)
{
    (void)manager;
    print_event(options, object, "removed", NULL);
}

static void changed(GDBusObjectManagerClient *manager, GDBusObjectProxy *object,
                    GDBusProxy *interface, GVariant *properties, const char *const *invalidated,
                    void *options)
{
    (void)manager;
    (void)interface;
    (void)invalidated;
    print_event(options, G_DBUS_OBJECT(object), "changed", properties);
}

static void told_document(const Options *options, const char *kind, const char *gpu,
                          const char *vgpu, const char *text)
{
    JsonObject *object = begin_object(kind, gpu);

    json_object_set_string_member(object, "vgpu", vgpu);
    json_object_set_string_member(object, "text", text);
    print_object(options, object);
}

/* What vgpud says in words. */
static void told(VgpuManager *manager, const char *kind, const char *gpu, const char *vgpu,
                 const char *text, const Options *options)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    g_autofree char *time = g_date_time_format(now, "%F %T");

    (void)manager;
    if (output_is_document(options))
        told_document(options, kind, gpu, vgpu, text);
    else
        output_line(options, "%s  %s: %s", time, kind, text);
    fflush(options->out);
}

static gboolean end(void *loop)
{
    g_main_loop_quit(loop);
    return G_SOURCE_CONTINUE;
}

gboolean events_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    GDBusObjectManager *objects = client_objects(client, error);

    (void)args;
    if (!objects)
        return FALSE;
    if (geteuid() != 0)
        g_printerr("The bus gives what vgpud says of vGPUs, tenants and users to root only; this "
                   "shows changes of GPUs.\n");
    g_signal_connect(client->manager, "event", G_CALLBACK(told), (void *)options);
    g_signal_connect(objects, "object-added", G_CALLBACK(added), (void *)options);
    g_signal_connect(objects, "object-removed", G_CALLBACK(removed), (void *)options);
    g_signal_connect(objects, "interface-proxy-properties-changed", G_CALLBACK(changed),
                     (void *)options);
    g_unix_signal_add(SIGINT, end, loop);
    g_unix_signal_add(SIGTERM, end, loop);
    g_main_loop_run(loop);
    return TRUE;
}
