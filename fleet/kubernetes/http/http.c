/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/http/http.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <glib-unix.h>
#include <curl/curl.h>

#define CONNECT_SECONDS 10L

/* A connection keeps its certificate, and the kubelet replaces the file of it. */
#define CONNECTION_SECONDS 3600L

#define HTTP_UNAUTHORIZED 401

/* TCP's own probes: a watch says nothing for minutes. */
#define IDLE_SECONDS  30L
#define PROBE_SECONDS 10L

/* For how long what was sent may be without an acknowledgement. */
#define SILENCE_SECONDS 30

/**
 * Connections - which calls share; they are closed when the last reference goes
 * @timer: libcurl's; 0: none
 */
typedef struct {
    CURLM *multi;
    guint timer;
} Connections;

/**
 * Http
 * @connections: for new calls
 * @calls: of HttpCall
 */
struct Http {
    Connections *connections;
    GPtrArray *calls;
};

struct HttpCall {
    Http *http;
    Connections *connections;
    CURL *easy;
    struct curl_slist *headers;
    GBytes *body;
    HttpPieceFunc piece;
    HttpFunc func;
    void *data;
    HttpAnswer answer;
    gboolean is_too_large;
    char why[CURL_ERROR_SIZE];
};

const char *http_answer_header(const HttpAnswer *answer, const char *name)
{
    return g_hash_table_lookup(answer->headers, name);
}

static void connections_close(void *data)
{
    Connections *connections = data;

    curl_multi_cleanup(connections->multi);
    if (connections->timer)
        g_source_remove(connections->timer);
}

static void connections_release(Connections *connections)
{
    g_rc_box_release_full(connections, connections_close);
}

static void call_free(void *data)
{
    HttpCall *call = data;

    curl_multi_remove_handle(call->connections->multi, call->easy);
    curl_easy_cleanup(call->easy);
    connections_release(call->connections);
    curl_slist_free_all(call->headers);
    g_clear_pointer(&call->body, g_bytes_unref);
    g_byte_array_unref(call->answer.body);
    g_hash_table_unref(call->answer.headers);
    g_free(call);
}

static GError *error_of(HttpCall *call, CURLcode code)
{
    const char *why = *call->why ? call->why : curl_easy_strerror(code);

    if (call->is_too_large)
        why = "the answer is too large";
    return g_error_new(G_IO_ERROR,
                       code == CURLE_OPERATION_TIMEDOUT ? G_IO_ERROR_TIMED_OUT : G_IO_ERROR_FAILED,
                       "%s", why);
}

static Connections *connections_new(void);

/*
 * Who is not known may have another certificate by now, and an open connection keeps the one that
 * it was made with. Calls that are under way, such as a watch, stay where they are.
 */
static void leave_connections(Http *http)
{
    connections_release(http->connections);
    http->connections = connections_new();
}

static void connections_finish(Connections *connections)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(connections->multi, &left))) {
        CURLcode code = message->data.result;
        g_autoptr(GError) error = NULL;
        Http *http;
        HttpCall *call;
        long status = 0;
        guint place;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        call->answer.status = (guint)status;
        http = call->http;
        if (status == HTTP_UNAUTHORIZED && connections == http->connections)
            leave_connections(http);
        if (code != CURLE_OK)
            error = error_of(call, code);
        /* No longer to be cancelled. */
        if (g_ptr_array_find(http->calls, call, &place))
            g_ptr_array_steal_index_fast(http->calls, place);
        call->func(error ? NULL : &call->answer, error, call->data);
        call_free(call);
    }
}

static gboolean on_timer(void *data)
{
    Connections *connections = g_rc_box_acquire(data);
    int running;

    connections->timer = 0;
    curl_multi_socket_action(connections->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    connections_finish(connections);
    connections_release(connections);
    return G_SOURCE_REMOVE;
}

static int set_timer(CURLM *multi, long milliseconds, void *data)
{
    Connections *connections = data;

    (void)multi;
    if (connections->timer)
        g_source_remove(connections->timer);
    connections->timer =
        milliseconds < 0 ? 0 : g_timeout_add((guint)milliseconds, on_timer, connections);
    return 0;
}

static gboolean on_socket(int fd, GIOCondition condition, void *data)
{
    Connections *connections = g_rc_box_acquire(data);
    int running, events = (condition & G_IO_OUT ? CURL_CSELECT_OUT : 0) |
                          (condition & (G_IO_IN | G_IO_HUP) ? CURL_CSELECT_IN : 0) |
                          (condition & G_IO_ERR ? CURL_CSELECT_ERR : 0);

    curl_multi_socket_action(connections->multi, fd, events, &running);
    connections_finish(connections);
    connections_release(connections);
    return G_SOURCE_CONTINUE;
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *of_socket)
{
    Connections *connections = data;
    guint source = GPOINTER_TO_UINT(of_socket);

    (void)easy;
    if (source)
        g_source_remove(source);
    source = 0;
    if (what != CURL_POLL_REMOVE)
        source = g_unix_fd_add(fd,
                               (GIOCondition)((what & CURL_POLL_IN ? G_IO_IN : 0) |
                                              (what & CURL_POLL_OUT ? G_IO_OUT : 0)),
                               on_socket, connections);
    curl_multi_assign(connections->multi, fd, GUINT_TO_POINTER(source));
    return 0;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *data)
{
    HttpCall *call = data;
    long status = 0;

    count *= size;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (call->piece && status == 200) {
        call->piece(bytes, count, call->data);
        return count;
    }
    call->is_too_large = call->answer.body->len + count > HTTP_ANSWER_MAX;
    if (call->is_too_large)
        return 0;
    g_byte_array_append(call->answer.body, (const guint8 *)bytes, (guint)count);
    return count;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *data)
{
    HttpCall *call = data;
    g_autofree char *line = g_strndup(bytes, size * count);
    char *colon = strchr(line, ':');

    if (colon) {
        *colon = '\0';
        g_hash_table_replace(call->answer.headers, g_ascii_strdown(line, -1),
                             g_strstrip(g_strdup(colon + 1)));
    }
    return size * count;
}

static Connections *connections_new(void)
{
    Connections *connections = g_rc_box_new0(Connections);
    CURLM *multi = connections->multi = curl_multi_init();

    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, set_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, connections);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, connections);
    return connections;
}

Http *http_new(void)
{
    Http *http = g_new0(Http, 1);

    curl_global_init(CURL_GLOBAL_DEFAULT);
    http->connections = connections_new();
    http->calls = g_ptr_array_new_with_free_func(call_free);
    return http;
}

void http_free(Http *http)
{
    g_ptr_array_unref(http->calls);
    connections_release(http->connections);
    g_free(http);
    curl_global_cleanup();
}

/*
 * The kernel's keepalive does not look at a peer that owes an acknowledgement. Without this the
 * connection, and all calls that share it, would last for a quarter of an hour.
 */
static int limit_silence(void *data, curl_socket_t fd, curlsocktype purpose)
{
    const unsigned ms = SILENCE_SECONDS * 1000;

    (void)data;
    (void)purpose;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    return CURL_SOCKOPT_OK;
}

static void set_peer(HttpCall *call, const HttpRequest *request)
{
    CURL *easy = call->easy;

    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https,http");
    if (request->socket) {
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->socket);
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
        /* The socket's file may be another program's next time. */
        curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
        return;
    }
    if (request->ca)
        curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca);
    curl_easy_setopt(easy, CURLOPT_SSLCERT, request->certificate);
    curl_easy_setopt(easy, CURLOPT_SSLKEY, request->key);
    curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, CONNECTION_SECONDS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, IDLE_SECONDS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, PROBE_SECONDS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPCNT, 3L);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, limit_silence);
}

static void set_content(HttpCall *call, const HttpRequest *request)
{
    CURL *easy = call->easy;
    gsize length = 0;
    const char *bytes;

    /* libcurl would wait for a "100 Continue". */
    call->headers = curl_slist_append(NULL, "Expect:");
    for (guint i = 0; request->headers && request->headers[i]; i++)
        call->headers = curl_slist_append(call->headers, request->headers[i]);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
    if (request->body) {
        call->body = g_bytes_ref(request->body);
        bytes = g_bytes_get_data(call->body, &length);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, bytes ? bytes : "");
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)request->seconds);
}

HttpCall *http_start(Http *http, const HttpRequest *request, HttpPieceFunc piece, HttpFunc func,
                     void *data)
{
    HttpCall *call = g_new0(HttpCall, 1);
    CURL *easy = curl_easy_init();

    call->http = http;
    call->connections = g_rc_box_acquire(http->connections);
    call->easy = easy;
    call->piece = piece;
    call->func = func;
    call->data = data;
    call->answer.body = g_byte_array_new();
    call->answer.headers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->why);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    set_peer(call, request);
    set_content(call, request);
    g_ptr_array_add(http->calls, call);
    curl_multi_add_handle(call->connections->multi, easy);
    return call;
}

void http_cancel(HttpCall *call)
{
    g_ptr_array_remove_fast(call->http->calls, call);
}
