/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/grpc/server.h"

#include <errno.h>
#include <glib-unix.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Of one read. */
#define CHUNK (16u << 10)

/**
 * GrpcServer
 * @status: of the socket at @path, to know it again
 * @accepting: source; 0: it has as many clients as it takes
 * @clients: of Client
 */
struct GrpcServer {
    char *path;
    const GrpcService *service;
    int fd;
    struct stat status;
    guint accepting;
    GPtrArray *clients;
};

/**
 * Client
 * @pending: bytes that the socket did not take; valid until grpc_session_take()
 * @reading, @writing: sources; @writing: 0: there is nothing to write
 */
typedef struct {
    GrpcServer *server;
    GrpcSession *session;
    int fd;
    const guint8 *pending;
    gsize count;
    guint reading;
    guint writing;
} Client;

static gboolean on_connection(int fd, GIOCondition condition, void *data);

static void client_free(void *data)
{
    Client *client = data;

    grpc_session_free(client->session);
    g_source_remove(client->reading);
    if (client->writing)
        g_source_remove(client->writing);
    close(client->fd);
    g_free(client);
}

static void client_drop(Client *client)
{
    GrpcServer *server = client->server;

    g_ptr_array_remove_fast(server->clients, client);
    if (!server->accepting)
        server->accepting = g_unix_fd_add(server->fd, G_IO_IN, on_connection, server);
}

typedef enum {
    FLUSHED, /* all is written */
    FULL,    /* the socket takes no more now */
    OVER,    /* the connection is to be closed */
} Flush;

static Flush client_flush(Client *client)
{
    for (;;) {
        gssize count = (gssize)client->count;

        if (!count)
            count = grpc_session_take(client->session, &client->pending);
        if (count <= 0)
            return count < 0 || grpc_session_is_over(client->session) ? OVER : FLUSHED;
        client->count = (gsize)count;
        count = send(client->fd, client->pending, client->count, MSG_NOSIGNAL);
        if (count < 0)
            return errno == EAGAIN || errno == EINTR ? FULL : OVER;
        client->pending += count;
        client->count -= (gsize)count;
    }
}

static gboolean on_writable(int fd, GIOCondition condition, void *data)
{
    Client *client = data;
    Flush result = client_flush(client);

    (void)fd;
    (void)condition;
    if (result == FULL)
        return G_SOURCE_CONTINUE;
    client->writing = 0;
    if (result == OVER)
        client_drop(client);
    return G_SOURCE_REMOVE;
}

/* Not at once: libnghttp2 may be in the middle of a callback. */
static void client_writable(void *data)
{
    Client *client = data;

    if (!client->writing)
        client->writing = g_unix_fd_add(client->fd, G_IO_OUT, on_writable, client);
}

static gboolean on_readable(int fd, GIOCondition condition, void *data)
{
    Client *client = data;
    guint8 bytes[CHUNK];
    gssize count = recv(fd, bytes, sizeof bytes, 0);

    (void)condition;
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (count <= 0 || !grpc_session_feed(client->session, bytes, (gsize)count))
        client_drop(client);
    return G_SOURCE_CONTINUE;
}

static gboolean on_connection(int fd, GIOCondition condition, void *data)
{
    GrpcServer *server = data;
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    Client *client;

    (void)condition;
    if (peer < 0)
        return G_SOURCE_CONTINUE;
    client = g_new0(Client, 1);
    client->server = server;
    client->fd = peer;
    client->session = grpc_session_new(server->service, client_writable, client);
    client->reading = g_unix_fd_add(peer, G_IO_IN, on_readable, client);
    g_ptr_array_add(server->clients, client);
    client_writable(client);
    if (server->clients->len < GRPC_CLIENTS_MAX)
        return G_SOURCE_CONTINUE;
    server->accepting = 0;
    return G_SOURCE_REMOVE;
}

/* -1 with errno. */
static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, saved;
    mode_t mask;

    if (g_strlcpy(address.sun_path, path, sizeof address.sun_path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    unlink(path);
    mask = umask(0077);
    if (!bind(fd, (struct sockaddr *)&address, sizeof address) && !listen(fd, GRPC_CLIENTS_MAX)) {
        umask(mask);
        return fd;
    }
    saved = errno;
    umask(mask);
    close(fd);
    errno = saved;
    return -1;
}

GrpcServer *grpc_server_new(const char *path, const GrpcService *service, GError **error)
{
    GrpcServer *server;
    int fd = listen_at(path);

    if (fd < 0) {
        int saved = errno;

        g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(saved),
                    "cannot listen at %s: %s", path, g_strerror(saved));
        return NULL;
    }
    server = g_new0(GrpcServer, 1);
    server->path = g_strdup(path);
    server->service = service;
    server->fd = fd;
    server->clients = g_ptr_array_new_with_free_func(client_free);
    server->accepting = g_unix_fd_add(fd, G_IO_IN, on_connection, server);
    lstat(path, &server->status);
    return server;
}

gboolean grpc_server_is_there(const GrpcServer *server)
{
    struct stat now;

    return !lstat(server->path, &now) && now.st_ino == server->status.st_ino &&
           now.st_dev == server->status.st_dev;
}

void grpc_server_free(GrpcServer *server)
{
    if (grpc_server_is_there(server))
        unlink(server->path);
    if (server->accepting)
        g_source_remove(server->accepting);
    g_ptr_array_unref(server->clients);
    close(server->fd);
    g_free(server->path);
    g_free(server);
}
