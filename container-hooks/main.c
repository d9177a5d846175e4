/* SPDX-License-Identifier: MIT */
/*
 * vgpu-container-hook(8): what a container's runtime runs when a container with a slice is made and
 * when it has ended, with the container's state as its standard input. CDI's specification names
 * it; see daemon/containers/cdi_spec.c.
 */
#include <errno.h>
#include <gio/gio.h>
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

#include "lib/agent_client.h"

/* A state is some hundred bytes, and its annotations. */
#define MOST_STATE (1024 * 1024)
/*
 * For an answer of vgpud, which is known to run. It may have to wait for polkit, which may have to
 * be started first.
 */
#define CLAIM_MS 30000
/* A container's end must be quick. */
#define RELEASE_MS 3000

/**
 * State - of a container, in OCI's runtime specification
 * @id: unique for its runtime on this host
 * @pid: of its first process; 0: it has none any more
 */
typedef struct {
    char *id;
    guint pid;
} State;

static void state_clear(State *state)
{
    g_free(state->id);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(State, state_clear)

static GString *read_input(void)
{
    GString *text = g_string_new(NULL);
    char part[4096];
    ssize_t count = 1;

    while (count && text->len <= MOST_STATE) {
        count = read(STDIN_FILENO, part, sizeof(part));
        if (count < 0 && errno != EINTR)
            break;
        if (count > 0)
            g_string_append_len(text, part, count);
    }
    return text;
}

static gboolean read_state(State *state, GError **error)
{
    g_autoptr(GString) text = read_input();
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonNode *root;
    JsonObject *object;
    const char *id;
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
    state->id = g_strdup(id);
    state->pid = (guint)pid;
    return TRUE;
}

/* On standard error, which some runtimes discard, and in the system's log. */
static void say(int priority, const char *format, const char *slice, const char *why)
{
    g_autofree char *text = g_strdup_printf(format, slice, why);

    g_printerr("vgpu-container-hook: %s\n", text);
    openlog("vgpu-container-hook", LOG_PID, LOG_DAEMON);
    syslog(priority, "%s", text);
    closelog();
}

/* If this fails the container does not start: otherwise nobody would know that it has the slice. */
static int claim(const char *slice)
{
    g_auto(State) state = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(AgentClient) link = NULL;

    if (read_state(&state, &error))
        link = agent_client_open(TRUE, &error);
    if (link && agent_client_call_within(link, CLAIM_MS, "ClaimSlice",
                                       g_variant_new("(ssu)", slice, state.id, state.pid), &error))
        return EXIT_SUCCESS;
    say(LOG_ERR, "cannot give the container slice %s: %s", slice, error->message);
    return EXIT_FAILURE;
}

/* vgpud is not started for this: it notices the container's end by itself. */
static int release(const char *slice)
{
    g_auto(State) state = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(AgentClient) link = NULL;

    if (read_state(&state, &error))
        link = agent_client_open(FALSE, &error);
    if (!link || !agent_client_call_within(link, RELEASE_MS, "ReleaseSlice",
                                         g_variant_new("(ss)", slice, state.id), &error))
        say(LOG_WARNING, "cannot give back slice %s now, vgpud will do it later: %s", slice,
            error->message);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 2 && g_str_equal(argv[1], "--version")) {
        puts("vgpu-container-hook " VGPU_VERSION);
        return EXIT_SUCCESS;
    }
    if (argc == 3 && g_str_equal(argv[1], "claim"))
        return claim(argv[2]);
    if (argc == 3 && g_str_equal(argv[1], "release"))
        return release(argv[2]);
    g_printerr(
        "vgpu-container-hook: usage, by container runtimes: vgpu-container-hook claim|release "
        "SLICE, see vgpu-container-hook(8)\n");
    return 2;
}
