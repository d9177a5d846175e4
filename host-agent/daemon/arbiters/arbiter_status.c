/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/arbiters/arbiter_status.h"

#include <json-glib/json-glib.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-agent/daemon/arbiters/shares.h"

#define WAIT_US   (200 * 1000)
#define MOST_TEXT (4 * 1024 * 1024)

static int connect_to(const char *root, const char *gpu)
{
    const struct timeval limit = {.tv_usec = WAIT_US};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *path =
        g_build_filename(root[0] ? root : "/", GOVERNOR_DIR, gpu, "status.sock", NULL);
    int fd;

    if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
        sizeof(address.sun_path))
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* All that is said to the end; NULL where that does not come in time. */
static GString *read_all(int fd)
{
    g_autoptr(GString) text = g_string_new(NULL);
    gint64 end = g_get_monotonic_time() + WAIT_US;
    char buf[4096];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf))) > 0) {
        g_string_append_len(text, buf, n);
        if (text->len > MOST_TEXT || g_get_monotonic_time() > end)
            return NULL;
    }
    return n == 0 ? g_steal_pointer(&text) : NULL;
}

static guint64 number(JsonObject *object, const char *name)
{
    gint64 value = json_object_get_int_member_with_default(object, name, 0);

    return value > 0 ? (guint64)value : 0;
}

static void tell_one(JsonNode *node, SliceUseFunc func, void *data)
{
    JsonObject *object = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
    const char *id =
        object ? json_object_get_string_member_with_default(object, "id", NULL) : NULL;
    SliceUse use;

    if (!id)
        return;
    use = (SliceUse){
        .members = (guint)number(object, "members"),
        .vram_used = number(object, "vram_used"),
        .spilled = number(object, "spill_used"),
        .spill_kind = g_intern_string(
            json_object_get_string_member_with_default(object, "spill_kind", "none")),
        .submissions = number(object, "submissions"),
        .gpu_ns = number(object, "gpu_ns"),
        .waited_ns = number(object, "waited_ns"),
        .throttled_ns = number(object, "throttled_ns"),
    };
    func(id, &use, data);
}

static gboolean tell_all(const GString *text, SliceUseFunc func, void *data)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonNode *root;
    JsonNode *list;

    if (!json_parser_load_from_data(parser, text->str, (gssize)text->len, NULL))
        return FALSE;
    root = json_parser_get_root(parser);
    list = root && JSON_NODE_HOLDS_OBJECT(root)
               ? json_object_get_member(json_node_get_object(root), "slices")
               : NULL;
    if (!list || !JSON_NODE_HOLDS_ARRAY(list))
        return FALSE;
    for (guint i = 0; i < json_array_get_length(json_node_get_array(list)); i++)
        tell_one(json_array_get_element(json_node_get_array(list), i), func, data);
    return TRUE;
}

gboolean arbiter_status_read(const char *root, const char *gpu, SliceUseFunc func, void *data)
{
    int fd = connect_to(root, gpu);
    g_autoptr(GString) text = fd < 0 ? NULL : read_all(fd);

    if (fd >= 0)
        close(fd);
    return text && tell_all(text, func, data);
}
