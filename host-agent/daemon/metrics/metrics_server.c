/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/metrics/metrics_server.h"

#include <gio/gunixsocketaddress.h>
#include <glib-unix.h>
#include <glib/gstdio.h>
#include <microhttpd.h>
#include <string.h>
#include <unistd.h>

#include "lib/bus.h"
#include "lib/host_root.h"

#define UNIX_PREFIX     "unix:"
#define CONTENT_TYPE    "text/plain; version=0.0.4; charset=utf-8"
#define MAX_CONNECTIONS 16u
#define IDLE_SECONDS    30u
#define SOCKET_MODE     0660

struct MetricsServer {
    MetricsFunc *func;
    void *data;
    char *path; /* of its socket; NULL: none */
    struct MHD_Daemon *daemon;
    guint watch;
    guint timeout;
};

static enum MHD_Result answer(struct MHD_Connection *connection, guint status, char *text,
                              gsize length, const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(length, text, g_free);
    enum MHD_Result result;

    if (!response) {
        g_free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, guint status, const char *why)
{
    return answer(connection, status, g_strdup(why), strlen(why), "text/plain");
}

static enum MHD_Result handle(void *data, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **context)
{
    const MetricsServer *server = data;
    gsize length = 0;
    char *text;

    (void)version;
    (void)upload;
    (void)upload_size;
    (void)context;
    if (!g_str_equal(method, "GET") && !g_str_equal(method, "HEAD"))
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET is supported.\n");
    if (!g_str_equal(url, "/metrics"))
        return refuse(connection, MHD_HTTP_NOT_FOUND, "Only /metrics exists.\n");
    text = server->func(server->data, &length);
    return answer(connection, MHD_HTTP_OK, text, length, CONTENT_TYPE);
}

static void run(MetricsServer *server);

static gboolean timed_out(void *data)
{
    MetricsServer *server = data;

    server->timeout = 0;
    run(server);
    return G_SOURCE_REMOVE;
}

static void run(MetricsServer *server)
{
    MHD_UNSIGNED_LONG_LONG ms;

    MHD_run(server->daemon);
    g_clear_handle_id(&server->timeout, g_source_remove);
    if (MHD_get_timeout(server->daemon, &ms) == MHD_YES)
        server->timeout = g_timeout_add((guint)MIN(ms, G_MAXINT), timed_out, server);
}

static gboolean ready(int fd, GIOCondition condition, void *data)
{
    (void)fd;
    (void)condition;
    run(data);
    return G_SOURCE_CONTINUE;
}

/* For a PATH: the socket of a previous vgpud must be removed first. */
static GSocketAddress *unix_address(MetricsServer *server, HostRoot *root, const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);

    server->path = root_path(root, path, NULL);
    root_mkdir(root, dir, 0755, NULL);
    root_remove(root, path);
    return g_unix_socket_address_new(server->path);
}

static GSocketAddress *inet_address(const char *text)
{
    const char *colon = strrchr(text, ':');
    g_autofree char *host = g_strndup(text, (gsize)(colon - text));
    gsize length = strlen(host);

    if (host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        memmove(host, host + 1, length - 1);
    }
    return g_inet_socket_address_new_from_string(host,
                                                 (guint)g_ascii_strtoull(colon + 1, NULL, 10));
}

/* A listening socket, owned by the server. */
static int listen_at(MetricsServer *server, HostRoot *root, const char *where, GError **error)
{
    g_autoptr(GSocketAddress) address =
        g_str_has_prefix(where, UNIX_PREFIX)
            ? unix_address(server, root, where + strlen(UNIX_PREFIX))
            : inet_address(where);
    g_autoptr(GSocket) socket = NULL;

    if (!address) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "invalid address");
        return -1;
    }
    socket = g_socket_new(g_socket_address_get_family(address), G_SOCKET_TYPE_STREAM,
                          G_SOCKET_PROTOCOL_DEFAULT, error);
    if (!socket || !g_socket_bind(socket, address, TRUE, error) || !g_socket_listen(socket, error))
        return -1;
    if (server->path)
        g_chmod(server->path, SOCKET_MODE);
    return dup(g_socket_get_fd(socket));
}

static gboolean start(MetricsServer *server, int fd)
{
    const union MHD_DaemonInfo *info;

    server->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ITC, 0, NULL, NULL, handle, server,
                         MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS,
                         MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_END);
    if (!server->daemon) {
        close(fd);
        return FALSE;
    }
    info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return FALSE;
    server->watch = g_unix_fd_add(info->epoll_fd, G_IO_IN, ready, server);
    return TRUE;
}

MetricsServer *metrics_server_new(HostRoot *root, const char *listen, MetricsFunc *func, void *data,
                                  GError **error)
{
    g_autoptr(MetricsServer) server = g_new0(MetricsServer, 1);
    int fd;

    server->func = func;
    server->data = data;
    fd = listen_at(server, root, listen, error);
    if (fd < 0) {
        g_prefix_error(error,
                       "cannot serve metrics at %s (listen= in vgpud.conf): ",
                       listen);
        return NULL;
    }
    if (!start(server, fd)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "cannot serve metrics at %s: libmicrohttpd does not start", listen);
        return NULL;
    }
    return g_steal_pointer(&server);
}

void metrics_server_free(MetricsServer *server)
{
    g_clear_handle_id(&server->watch, g_source_remove);
    g_clear_handle_id(&server->timeout, g_source_remove);
    g_clear_pointer(&server->daemon, MHD_stop_daemon);
    if (server->path)
        g_unlink(server->path);
    g_free(server->path);
    g_free(server);
}
