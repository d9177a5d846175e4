/* SPDX-License-Identifier: MIT */
#include "container-hooks/state.h"

#include <errno.h>
#include <gio/gio.h>
#include <json-glib/json-glib.h>
#include <unistd.h>

/* A state is some hundred bytes, and its annotations. */
#define STATE_MAX (1024 * 1024)

void state_clear(State *state)
{
    g_free(state->id);
    g_free(state->bundle);
}

static GString *read_input(void)
{
    GString *text = g_string_new(NULL);
    char part[4096];
    ssize_t count = 1;

    while (count && text->len <= STATE_MAX) {
        count = read(STDIN_FILENO, part, sizeof(part));
        if (count < 0 && errno != EINTR)
            break;
        if (count > 0)
            g_string_append_len(text, part, count);
    }
    return text;
}

gboolean state_read(State *state, GError **error)
{
    g_autoptr(GString) text = read_input();
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonNode *root;
    JsonObject *object;
    const char *id;
    const char *bundle;
    gint64 pid;

    if (!json_parser_load_from_data(parser, text->str, (gssize)text->len, error))
        return FALSE;
    root = json_parser_get_root(parser);
    object = root && JSON_NODE_HOLDS_OBJECT(root) ? json_node_get_object(root) : NULL;
    id = object ? json_object_get_string_member_with_default(object, "id", NULL) : NULL;
    pid = object ? json_object_get_int_member_with_default(object, "pid", 0) : 0;
    if (!id || !*id || pid < 0 || pid > G_MAXINT32) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "the runtime's standard input is not a container's state: no id, or an invalid "
                    "pid");
        return FALSE;
    }
    bundle = json_object_get_string_member_with_default(object, "bundle", NULL);
    state->id = g_strdup(id);
    state->pid = (guint)pid;
    state->bundle = bundle && g_path_is_absolute(bundle) ? g_strdup(bundle) : NULL;
    return TRUE;
}
