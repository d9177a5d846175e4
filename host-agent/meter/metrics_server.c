/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/metrics_server.h"

#include <glib-unix.h>
#include <microhttpd.h>
#include <string.h>
#include <unistd.h>
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>

#include "lib/bus.h"
#include "host-agent/meter/counters.h"
#include "host-agent/meter/gpu_metrics.h"
#include "host-agent/meter/job_metrics.h"
#include "host-agent/meter/vgpu_metrics.h"

#define UNIX_PREFIX     "unix:"
#define CONTENT_TYPE    "text/plain; version=0.0.4; charset=utf-8"
#define MAX_CONNECTIONS 16u
#define IDLE_SECONDS    30u
#define SOCKET_MODE     0660
/* Any local user may ask, and thousand vGPUs take the meter's main loop a tenth of a second. */
#define KEPT_US G_USEC_PER_SEC

/**
 * MetricsServer
 * @clock: of CLOCK_MONOTONIC, in us
 * @kept: the last answer, until @kept_until; NULL: there was none
 */
struct MetricsServer {
    MetricsFunc *func;
    void *data;
    MetricsClock *clock;
    GBytes *kept;
    gint64 kept_until;
    char *path; /* of its socket; NULL: none */
    struct MHD_Daemon *daemon;
    guint watch;
    guint timeout;
};

static enum MHD_Result server_answer(struct MHD_Connection *connection, guint status, char *text,
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

static enum MHD_Result refuse_request(struct MHD_Connection *connection, guint status,
                                      const char *why)
{
    return server_answer(connection, status, g_strdup(why), strlen(why), "text/plain");
}

/* To be freed. */
static char *server_text(MetricsServer *server, gsize *length)
{
    gint64 now = server->clock();
    gconstpointer text;

    if (!server->kept || now >= server->kept_until) {
        char *made = server->func(server->data, length);

        g_clear_pointer(&server->kept, g_bytes_unref);
        server->kept = g_bytes_new_take(made, *length);
        server->kept_until = now + KEPT_US;
    }
    text = g_bytes_get_data(server->kept, length);
    return g_memdup2(text, *length);
}

static enum MHD_Result handle_request(void *data, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *upload, size_t *upload_size, void **context)
{
    gsize length = 0;
    char *text;

    (void)version;
    (void)upload;
    (void)upload_size;
    (void)context;
    if (!g_str_equal(method, "GET") && !g_str_equal(method, "HEAD"))
        return refuse_request(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET is supported.\n");
    if (!g_str_equal(url, "/metrics"))
        return refuse_request(connection, MHD_HTTP_NOT_FOUND, "Only /metrics exists.\n");
    text = server_text(data, &length);
    return server_answer(connection, MHD_HTTP_OK, text, length, CONTENT_TYPE);
}

static void run_daemon(MetricsServer *server);

static gboolean timed_out(void *data)
{
    MetricsServer *server = data;

    server->timeout = 0;
    run_daemon(server);
    return G_SOURCE_REMOVE;
}

static void run_daemon(MetricsServer *server)
{
    MHD_UNSIGNED_LONG_LONG ms;

    MHD_run(server->daemon);
    g_clear_handle_id(&server->timeout, g_source_remove);
    if (MHD_get_timeout(server->daemon, &ms) == MHD_YES)
        server->timeout = g_timeout_add((guint)MIN(ms, G_MAXINT), timed_out, server);
}

static gboolean daemon_ready(int fd, GIOCondition condition, void *data)
{
    (void)fd;
    (void)condition;
    run_daemon(data);
    return G_SOURCE_CONTINUE;
}

/* For a PATH: the socket of a previous meter must be removed first. */
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

static gboolean start_daemon(MetricsServer *server, int fd)
{
    const union MHD_DaemonInfo *info;

    server->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ITC, 0, NULL, NULL, handle_request, server,
                         MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS,
                         MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_END);
    if (!server->daemon) {
        close(fd);
        return FALSE;
    }
    info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return FALSE;
    server->watch = g_unix_fd_add(info->epoll_fd, G_IO_IN, daemon_ready, server);
    return TRUE;
}

MetricsServer *metrics_server_new(HostRoot *root, const char *listen, MetricsFunc *func, void *data,
                                  GError **error)
{
    g_autoptr(MetricsServer) server = g_new0(MetricsServer, 1);
    int fd;

    server->func = func;
    server->data = data;
    server->clock = g_get_monotonic_time;
    fd = listen_at(server, root, listen, error);
    if (fd < 0) {
        g_prefix_error(error, "cannot serve metrics at %s (listen= in vgpud.conf): ", listen);
        return NULL;
    }
    if (!start_daemon(server, fd)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "cannot serve metrics at %s: libmicrohttpd does not start", listen);
        return NULL;
    }
    return g_steal_pointer(&server);
}

void metrics_server_set_clock(MetricsServer *server, MetricsClock *clock)
{
    server->clock = clock;
}

void metrics_server_free(MetricsServer *server)
{
    g_clear_handle_id(&server->watch, g_source_remove);
    g_clear_handle_id(&server->timeout, g_source_remove);
    g_clear_pointer(&server->daemon, MHD_stop_daemon);
    if (server->path)
        g_unlink(server->path);
    g_clear_pointer(&server->kept, g_bytes_unref);
    g_free(server->path);
    g_free(server);
}

/* Answers Prometheus with the values of the agent's modules. */

struct Scrape {
    gint64 started;
    gboolean agent_up;
    const HostView *view;
    const Health *health;
    const PressureWatch *pressure;
    const BypassWatch *bypass;
    Owners *owners;
    MetricsServer *server;
    char *listen;
};

static const Slice *slice_of(const char *uuid, void *data)
{
    const Scrape *scrape = data;

    return host_view_slice(scrape->view, uuid);
}

static GpuMetrics gpu_metrics(const Scrape *scrape, const Gpu *gpu, const GPtrArray *vgpus)
{
    GpuMetrics metrics = {.gpu = gpu};

    gpu_readings_read(host_view_root(scrape->view), gpu->pci, &metrics.readings);
    metrics.capacity = offers_capacity(host_view_offers(scrape->view), gpu, &metrics.vram);
    metrics.vram_used_known = pressure_watch_used(scrape->pressure, gpu, vgpus, &metrics.vram_used);
    metrics.mark = pressure_watch_mark(scrape->pressure, gpu);
    metrics.healthy = health_is_good(scrape->health, gpu->pci->address);
    metrics.health = health_of_gpu(scrape->health, gpu->pci->address);
    return metrics;
}

static void slice_metrics_clear(void *data)
{
    g_strfreev(((SliceMetrics *)data)->containers);
}

/* Of SliceMetrics, after the counters were read. */
static GArray *slice_metrics(const Scrape *scrape)
{
    const GPtrArray *slices = host_view_slices(scrape->view);
    GArray *list = g_array_new(FALSE, FALSE, sizeof(SliceMetrics));

    g_array_set_clear_func(list, slice_metrics_clear);
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const SliceUsers *users = host_view_users(scrape->view, slice->uuid);
        SliceMetrics metrics = {
            .slice = slice,
            .use = counters_use(host_view_counters(scrape->view), slice->uuid),
            .container = users->container,
            .ungoverned = bypass_watch_count(scrape->bypass, slice->uuid),
        };

        if (slice_is_vgpu(slice))
            continue;
        metrics.containers = g_strsplit(users->containers, ", ", -1);
        g_array_append_val(list, metrics);
    }
    return list;
}

static void add_agent(Exposition *exposition, const HostMetrics *host)
{
    g_autoptr(GString) labels = g_string_new(NULL);

    exposition_label(labels, "version", VGPU_VERSION);
    exposition_family(exposition, "vgpu_build_info", METRIC_GAUGE, "The version of vgpu-meter.");
    exposition_count(exposition, labels->str, 1);
    exposition_family(exposition, "vgpu_agent_start_time_seconds", METRIC_GAUGE,
                      "When vgpud was started, in seconds since 1970.");
    exposition_count(exposition, "", (guint64)host->started);
    exposition_family(exposition, "vgpu_agent_up", METRIC_GAUGE, "1: vgpud runs.");
    exposition_count(exposition, "", host->agent_up);
}

static char *text_of(const HostMetrics *host, const GPtrArray *owners, gsize *length)
{
    Exposition *exposition = exposition_new();
    g_autoptr(VgpuTable) vgpus = vgpu_table_new(host);

    add_agent(exposition, host);
    add_gpu_metrics(exposition, host->gpus, vgpus);
    add_vgpu_metrics(exposition, vgpus);
    add_slice_metrics(exposition, host->slices);
    add_tenant_metrics(exposition, vgpus);
    add_job_metrics(exposition, owners);
    return exposition_end(exposition, length);
}

char *scrape_text(Scrape *scrape, gsize *length)
{
    const GPtrArray *gpus = host_view_gpus(scrape->view);
    g_autoptr(GArray) metrics = g_array_new(FALSE, FALSE, sizeof(GpuMetrics));
    HostMetrics host = {
        .started = scrape->started,
        .agent_up = scrape->agent_up,
        .gpus = metrics,
        .vgpus = counters_read(host_view_counters(scrape->view)),
        .slice = slice_of,
        .data = scrape,
    };
    g_autoptr(GArray) containers = slice_metrics(scrape);
    g_autoptr(GPtrArray) owners = NULL;

    host.slices = containers;
    owners_look(scrape->owners);
    owners = owners_list(scrape->owners);
    for (guint i = 0; i < gpus->len; i++) {
        const GpuMetrics gpu = gpu_metrics(scrape, g_ptr_array_index(gpus, i), host.vgpus);

        g_array_append_val(metrics, gpu);
    }
    return text_of(&host, owners, length);
}

static char *scrape_answer(void *data, gsize *length)
{
    return scrape_text(data, length);
}

Scrape *scrape_new(const HostView *view, const Health *health, const PressureWatch *pressure,
                   const BypassWatch *bypass, Owners *owners)
{
    Scrape *scrape = g_new0(Scrape, 1);

    scrape->view = view;
    scrape->health = health;
    scrape->pressure = pressure;
    scrape->bypass = bypass;
    scrape->owners = owners;
    return scrape;
}

void scrape_set_started(Scrape *scrape, gint64 started)
{
    scrape->started = started;
}

void scrape_set_agent_up(Scrape *scrape, gboolean up)
{
    scrape->agent_up = up;
}

gboolean scrape_listen(Scrape *scrape, const char *listen, GError **error)
{
    if (scrape->server && g_strcmp0(scrape->listen, listen) == 0)
        return TRUE;
    g_clear_pointer(&scrape->server, metrics_server_free);
    g_free(scrape->listen);
    scrape->listen = g_strdup(listen);
    if (listen)
        scrape->server =
            metrics_server_new(host_view_root(scrape->view), listen, scrape_answer, scrape, error);
    return !listen || scrape->server;
}

void scrape_free(Scrape *scrape)
{
    g_clear_pointer(&scrape->server, metrics_server_free);
    g_free(scrape->listen);
    g_free(scrape);
}
