/* SPDX-License-Identifier: MIT */
#include "container-hooks/state.h"

#include <gio/gio.h>

#include "lib/input.h"
#include "lib/json.h"

/* A state is some hundred bytes, and its annotations. */
#define STATE_MAX (1024 * 1024)

void state_clear(State *state)
{
    g_free(state->id);
    g_free(state->bundle);
}

gboolean state_read(State *state, GError **error)
{
    g_autoptr(GString) text = input_read(STATE_MAX, error);
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonObject *object;
    const char *id;
    const char *bundle;
    gint64 pid;

    if (!text || !json_parser_load_from_data(parser, text->str, (gssize)text->len, error))
        return FALSE;
    object = json_object_of(json_parser_get_root(parser));
    id = json_text_in(object, "id");
    pid = object ? json_object_get_int_member_with_default(object, "pid", 0) : 0;
    if (!id || !*id || pid < 0 || pid > G_MAXINT32) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "the runtime's standard input is not a container's state: no id, or an invalid "
                    "pid");
        return FALSE;
    }
    bundle = json_text_in(object, "bundle");
    state->id = g_strdup(id);
    state->pid = (guint)pid;
    state->bundle = bundle && g_path_is_absolute(bundle) ? g_strdup(bundle) : NULL;
    return TRUE;
}
