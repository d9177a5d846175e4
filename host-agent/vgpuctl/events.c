/* SPDX-License-Identifier: MIT */
/* vgpuctl events, operation, audit: what happens on this host, and what has happened. */
#include <glib-unix.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/bus.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/listing.h"
#include "host-agent/vgpuctl/output.h"

/* vgpuctl events: what happens to GPUs and vGPUs, line by line, until a signal ends it. */

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

static void gpu_added(GDBusObjectManager *manager, GDBusObject *object, void *options)
{
    (void)manager;
    print_event(options, object, "added", NULL);
}

static void gpu_removed(GDBusObjectManager *manager, GDBusObject *object, void *options)
{
    (void)manager;
    print_event(options, object, "removed", NULL);
}

static void gpu_changed(GDBusObjectManagerClient *manager, GDBusObjectProxy *object,
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
static void event_told(VgpuManager *manager, const char *kind, const char *gpu, const char *vgpu,
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

static gboolean end_loop(void *loop)
{
    g_main_loop_quit(loop);
    return G_SOURCE_CONTINUE;
}

/* As audit and journalctl have; here there is nothing before the present. */
static gboolean no_lines(const char *name, const char *value, void *data, GError **error)
{
    (void)value;
    (void)data;
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                "events has no %s: it shows what happens from now on; \"vgpuctl audit -n N\" shows "
                "the last changes",
                name);
    return FALSE;
}

const GOptionEntry events_options[] = {
    {"lines", 'n', G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_CALLBACK, (void *)no_lines, NULL, "N"},
    G_OPTION_ENTRY_NULL,
};

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
    g_signal_connect(client->manager, "event", G_CALLBACK(event_told), (void *)options);
    g_signal_connect(objects, "object-added", G_CALLBACK(gpu_added), (void *)options);
    g_signal_connect(objects, "object-removed", G_CALLBACK(gpu_removed), (void *)options);
    g_signal_connect(objects, "interface-proxy-properties-changed", G_CALLBACK(gpu_changed),
                     (void *)options);
    g_unix_signal_add(SIGINT, end_loop, loop);
    g_unix_signal_add(SIGTERM, end_loop, loop);
    g_main_loop_run(loop);
    return TRUE;
}

/* vgpuctl operation: what vgpud does in several steps, and what waits for it. */

static char *objects_text(GVariant *operation, const char *key)
{
    return dict_list(operation, key, " ");
}

/* "start (2 of 3)", "undoing start (2 of 3)", "waiting" */
static char *step_text(GVariant *operation, const char *key)
{
    const char *step = "";
    guint at = 0;
    guint total = 0;
    gboolean undoing = FALSE;

    g_variant_lookup(operation, key, "&s", &step);
    g_variant_lookup(operation, "At", "u", &at);
    g_variant_lookup(operation, "Total", "u", &total);
    g_variant_lookup(operation, "Undoing", "b", &undoing);
    if (!*step)
        return g_strdup("waiting");
    return g_strdup_printf("%s%s (%u of %u)", undoing ? "undoing " : "", step, at, total);
}

static char *operation_time_text(GVariant *operation, const char *key)
{
    g_autoptr(GDateTime) time = NULL;
    gint64 begun = 0;

    g_variant_lookup(operation, key, "x", &begun);
    time = g_date_time_new_from_unix_local(begun);
    return g_date_time_format(time, "%F %T");
}

static char *id_text(GVariant *operation, const char *key)
{
    guint64 id = 0;

    g_variant_lookup(operation, key, "t", &id);
    return g_strdup_printf("%" G_GUINT64_FORMAT, id);
}

static const Column operation_columns[] = {
    {"ID", "Id", id_text, 0},           {"KIND", "Kind", dict_text, 0},
    {"STEP", "Step", step_text, 0},     {"BEGUN", "Begun", operation_time_text, 0},
    {"CALLER", "Caller", dict_text, 0}, {"OBJECTS", "Objects", objects_text, COLUMN_LONG},
};

static const Listing operation_listing = {
    .columns = operation_columns,
    .columns_count = G_N_ELEMENTS(operation_columns),
    .name = "Id",
    .none = "Nothing is being done.",
};

gboolean operation_list_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) operations = client_get(client, "ListOperations", NULL, NULL, error);

    (void)args;
    if (!operations)
        return FALSE;
    listing_print(options, &operation_listing, operations);
    return TRUE;
}

static gboolean cancel_operation(Client *client, const char *name, void *data, GError **error)
{
    g_autoptr(GVariant) answer = NULL;
    guint64 id;

    (void)data;
    if (!g_ascii_string_to_unsigned(name, 10, 1, G_MAXUINT64, &id, NULL)) {
        g_set_error(
            error, VGPUCTL_ERROR, VGPUCTL_USAGE,
            "\"%s\" is not the number of an operation; \"vgpuctl operation list\" shows them",
            name);
        return FALSE;
    }
    answer = client_call(client, "CancelOperation", g_variant_new("(t)", id), "cancelling", error);
    return answer != NULL;
}

gboolean operation_cancel_command(Client *client, const Options *options, char **args,
                                  GError **error)
{
    (void)options;
    return each_name(client, args, "cancelling operations", cancel_operation, NULL, error);
}

/* vgpuctl audit: the changes that vgpud has written to the journal, by journalctl(1). */

static char *since;
static char *until;
static char *user;
static char *object;
static int count;

const GOptionEntry audit_options[] = {
    {"since", 0, 0, G_OPTION_ARG_STRING, &since, "As \"-2h\" or \"2026-11-24 08:00\"", "TIME"},
    {"until", 0, 0, G_OPTION_ARG_STRING, &until, "The same", "TIME"},
    {"user", 0, 0, G_OPTION_ARG_STRING, &user, "Only changes by this user", "USER"},
    {"object", 0, 0, G_OPTION_ARG_STRING, &object, "Only of this GPU, vGPU, slice or tenant",
     "OBJECT"},
    {"lines", 'n', 0, G_OPTION_ARG_INT, &count, "Only the last so many", "N"},
    G_OPTION_ENTRY_NULL,
};

/* "2026-11-24 08:20:00" */
static char *audit_time_text(GVariant *change, const char *key)
{
    g_autoptr(GDateTime) time = NULL;
    gint64 microseconds = 0;

    g_variant_lookup(change, key, "x", &microseconds);
    time = g_date_time_new_from_unix_local(microseconds / G_USEC_PER_SEC);
    return g_date_time_format(time, "%F %T");
}

static const Column audit_columns[] = {
    {"TIME", "Time", audit_time_text, 0},
    {"USER", "User", dict_text, 0},
    {"METHOD", "Method", dict_text, 0},
    {"OBJECT", "Object", dict_text, 0},
    {"RESULT", "Result", dict_text, COLUMN_STATE},
    {"BEFORE", "Before", dict_text, COLUMN_WIDE},
    {"AFTER", "After", dict_text, COLUMN_WIDE},
    {"CHANGE", "Change", dict_text, 0},
};

static const Listing audit_listing = {
    .columns = audit_columns,
    .columns_count = G_N_ELEMENTS(audit_columns),
    .name = "Object",
    .none = "The journal has no such change.",
};

static GPtrArray *journalctl_line(void)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(argv, g_strdup("journalctl"));
    g_ptr_array_add(argv, g_strdup("--quiet"));
    g_ptr_array_add(argv, g_strdup("--output=json"));
    g_ptr_array_add(argv, g_strdup("MESSAGE_ID=" AUDIT_MESSAGE_ID));
    /* Anybody may send the journal such an entry; journald itself adds whose it is. */
    g_ptr_array_add(argv, g_strdup("_SYSTEMD_UNIT=vgpud.service"));
    if (since)
        g_ptr_array_add(argv, g_strconcat("--since=", since, NULL));
    if (until)
        g_ptr_array_add(argv, g_strconcat("--until=", until, NULL));
    if (user)
        g_ptr_array_add(argv, g_strconcat(AUDIT_USER "=", user, NULL));
    if (object)
        g_ptr_array_add(argv, g_strconcat(AUDIT_OBJECT "=", object, NULL));
    if (count > 0)
        g_ptr_array_add(argv, g_strdup_printf("--lines=%d", count));
    g_ptr_array_add(argv, NULL);
    return argv;
}

/* What journalctl prints; NULL with @error. */
static char *read_journal(GError **error)
{
    g_autoptr(GPtrArray) argv = journalctl_line();
    g_autoptr(GError) cause = NULL;
    g_autofree char *said = NULL;
    g_autofree char *out = NULL;
    g_autoptr(GSubprocess) process =
        g_subprocess_newv((const char *const *)argv->pdata,
                          G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, &cause);

    if (process && g_subprocess_communicate_utf8(process, NULL, NULL, &out, &said, &cause) &&
        g_subprocess_get_successful(process))
        return g_steal_pointer(&out);
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED,
                "cannot read the journal: %s; members of the group systemd-journal may",
                cause ? cause->message : g_strchomp(said));
    return NULL;
}

/* journalctl has null for what is not text. */
static const char *text_member(JsonObject *entry, const char *name)
{
    return json_object_get_string_member_with_default(entry, name, "");
}

static GVariant *change_of(JsonObject *entry)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
    g_autofree char *change =
        audit_difference(text_member(entry, AUDIT_BEFORE), text_member(entry, AUDIT_AFTER));

    g_variant_dict_insert(&dict, "Time", "x",
                          g_ascii_strtoll(text_member(entry, "__REALTIME_TIMESTAMP"), NULL, 10));
    g_variant_dict_insert(&dict, "User", "s", text_member(entry, AUDIT_USER));
    g_variant_dict_insert(&dict, "Method", "s", text_member(entry, AUDIT_METHOD));
    g_variant_dict_insert(&dict, "Object", "s", text_member(entry, AUDIT_OBJECT));
    g_variant_dict_insert(&dict, "Result", "s", text_member(entry, AUDIT_RESULT));
    g_variant_dict_insert(&dict, "Before", "s", text_member(entry, AUDIT_BEFORE));
    g_variant_dict_insert(&dict, "After", "s", text_member(entry, AUDIT_AFTER));
    g_variant_dict_insert(&dict, "Change", "s", change);
    return g_variant_dict_end(&dict);
}

/* A line that is not JSON is one of journalctl's own. */
static void add_line(GVariantBuilder *list, const char *line)
{
    g_autoptr(JsonNode) node = *line ? json_from_string(line, NULL) : NULL;

    if (node && JSON_NODE_HOLDS_OBJECT(node))
        g_variant_builder_add_value(list, change_of(json_node_get_object(node)));
}

gboolean audit_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autofree char *journal = read_journal(error);
    g_auto(GStrv) lines = g_strsplit(journal ? journal : "", "\n", -1);
    g_autoptr(GVariant) changes = NULL;
    GVariantBuilder list;

    (void)client;
    (void)args;
    if (!journal)
        return FALSE;
    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (char **line = lines; *line; line++)
        add_line(&list, *line);
    changes = g_variant_ref_sink(g_variant_builder_end(&list));
    listing_print(options, &audit_listing, changes);
    return TRUE;
}
