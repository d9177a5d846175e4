/* SPDX-License-Identifier: MIT */
/* vgpuctl audit: the changes that vgpud has written to the journal, by journalctl(1). */
#include "lib/audit.h"

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/listing.h"

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
static char *time_text(GVariant *change, const char *key)
{
    g_autoptr(GDateTime) time = NULL;
    gint64 microseconds = 0;

    g_variant_lookup(change, key, "x", &microseconds);
    time = g_date_time_new_from_unix_local(microseconds / G_USEC_PER_SEC);
    return g_date_time_format(time, "%F %T");
}

static const Column columns[] = {
    {"TIME", "Time", time_text, 0},
    {"USER", "User", dict_text, 0},
    {"METHOD", "Method", dict_text, 0},
    {"OBJECT", "Object", dict_text, 0},
    {"RESULT", "Result", dict_text, COLUMN_STATE},
    {"BEFORE", "Before", dict_text, COLUMN_WIDE},
    {"AFTER", "After", dict_text, COLUMN_WIDE},
    {"CHANGE", "Change", dict_text, 0},
};

static const Listing listing = {
    .columns = columns,
    .columns_count = G_N_ELEMENTS(columns),
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
static const char *member(JsonObject *entry, const char *name)
{
    return json_object_get_string_member_with_default(entry, name, "");
}

static GVariant *change_of(JsonObject *entry)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
    g_autofree char *change =
        audit_difference(member(entry, AUDIT_BEFORE), member(entry, AUDIT_AFTER));

    g_variant_dict_insert(&dict, "Time", "x",
                          g_ascii_strtoll(member(entry, "__REALTIME_TIMESTAMP"), NULL, 10));
    g_variant_dict_insert(&dict, "User", "s", member(entry, AUDIT_USER));
    g_variant_dict_insert(&dict, "Method", "s", member(entry, AUDIT_METHOD));
    g_variant_dict_insert(&dict, "Object", "s", member(entry, AUDIT_OBJECT));
    g_variant_dict_insert(&dict, "Result", "s", member(entry, AUDIT_RESULT));
    g_variant_dict_insert(&dict, "Before", "s", member(entry, AUDIT_BEFORE));
    g_variant_dict_insert(&dict, "After", "s", member(entry, AUDIT_AFTER));
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
    listing_print(options, &listing, changes);
    return TRUE;
}
