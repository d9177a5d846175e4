/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/grpc/session.h"

#include <stdio.h>
#include <string.h>
#include <nghttp2/nghttp2.h>

/* Before each message: whether it is compressed, and its length, big endian. */
#define PREFIX 5

/* Of names and values that a call has. */
#define HEADERS_MAX (16u << 10)

/**
 * GrpcSession
 * @calls: of GrpcCall, those whose streams are open
 */
struct GrpcSession {
    nghttp2_session *http;
    GHashTable *calls;
    const GrpcService *service;
    void (*writable)(void *data);
    void *data;
};

/**
 * GrpcCall - a stream of HTTP/2
 * @session: NULL: the stream is closed
 * @in: the client's bytes so far
 * @out, @taken: bytes for the client, and how many of them it has
 * @begun: the header was sent
 * @ended: no message follows
 * @status, @text: of the end
 */
struct GrpcCall {
    gatomicrefcount refs;
    GrpcSession *session;
    gint32 stream;
    char *path;
    gboolean is_post;
    gboolean is_grpc;
    GByteArray *in;
    GByteArray *out;
    gsize taken;
    gboolean begun;
    gboolean ended;
    GrpcStatus status;
    char *text;
};

GrpcCall *grpc_call_ref(GrpcCall *call)
{
    g_atomic_ref_count_inc(&call->refs);
    return call;
}

void grpc_call_unref(GrpcCall *call)
{
    if (!g_atomic_ref_count_dec(&call->refs))
        return;
    g_free(call->path);
    g_free(call->text);
    g_byte_array_unref(call->in);
    g_byte_array_unref(call->out);
    g_free(call);
}

gboolean grpc_call_is_over(const GrpcCall *call)
{
    return call->ended || !call->session;
}

static nghttp2_nv make_header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

/* gRPC's percent encoding, and no more than fits well into a header. */
static char *encode_percent(const char *text)
{
    GString *out = g_string_new(NULL);

    for (gsize i = 0; text[i] && i < 2048; i++) {
        guchar c = (guchar)text[i];

        if (c >= ' ' && c <= '~' && c != '%')
            g_string_append_c(out, text[i]);
        else
            g_string_append_printf(out, "%%%02X", c);
    }
    return g_string_free(out, FALSE);
}

static void send_status(GrpcCall *call)
{
    char number[8];
    g_autofree char *text = encode_percent(call->text ? call->text : "");
    nghttp2_nv fields[2];

    snprintf(number, sizeof number, "%d", call->status);
    fields[0] = make_header("grpc-status", number);
    fields[1] = make_header("grpc-message", text);
    nghttp2_submit_trailer(call->session->http, call->stream, fields, *text ? 2 : 1);
}

static nghttp2_ssize read_out(nghttp2_session *http, int32_t stream, uint8_t *buffer, size_t length,
                              uint32_t *flags, nghttp2_data_source *source, void *data)
{
    GrpcCall *call = source->ptr;
    gsize count = MIN(length, call->out->len - call->taken);

    (void)http;
    (void)stream;
    (void)data;
    if (!count && !call->ended)
        return NGHTTP2_ERR_DEFERRED;
    if (count)
        memcpy(buffer, call->out->data + call->taken, count);
    call->taken += count;
    if (call->taken == call->out->len) {
        g_byte_array_set_size(call->out, 0);
        call->taken = 0;
        if (call->ended) {
            *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
            send_status(call);
        }
    }
    return (nghttp2_ssize)count;
}

static void call_wake(GrpcCall *call)
{
    const nghttp2_nv fields[] = {make_header(":status", "200"),
                                 make_header("content-type", "application/grpc")};
    const nghttp2_data_provider2 provider = {{.ptr = call}, read_out};
    GrpcSession *session = call->session;

    if (call->begun)
        nghttp2_session_resume_data(session->http, call->stream);
    else
        nghttp2_submit_response2(session->http, call->stream, fields, G_N_ELEMENTS(fields),
                                 &provider);
    call->begun = TRUE;
    session->writable(session->data);
}

void grpc_call_end(GrpcCall *call, GrpcStatus status, const char *text)
{
    if (grpc_call_is_over(call))
        return;
    call->ended = TRUE;
    call->status = status;
    call->text = g_strdup(text);
    call_wake(call);
}

void grpc_call_send(GrpcCall *call, const ProtobufCMessage *message)
{
    gsize length = protobuf_c_message_get_packed_size(message), before = call->out->len;
    guint8 *out;

    if (grpc_call_is_over(call))
        return;
    if (length > GRPC_MESSAGE_MAX || before - call->taken > GRPC_MESSAGE_MAX) {
        grpc_call_end(call, GRPC_RESOURCE_EXHAUSTED, "the client does not read, or asks for much");
        return;
    }
    g_byte_array_set_size(call->out, before + PREFIX + length);
    out = call->out->data + before;
    out[0] = 0;
    for (guint i = 1; i < PREFIX; i++)
        out[i] = (guint8)(length >> (8 * (PREFIX - 1 - i)));
    protobuf_c_message_pack(message, out + PREFIX);
    call_wake(call);
}

void grpc_call_answer(GrpcCall *call, const ProtobufCMessage *message)
{
    grpc_call_send(call, message);
    grpc_call_end(call, GRPC_OK, NULL);
}

static const GrpcMethod *method_of(const GrpcService *service, const char *path)
{
    for (const GrpcMethod *method = service->methods; path && method->path; method++)
        if (g_str_equal(method->path, path))
            return method;
    return NULL;
}

static void call_run(GrpcCall *call, const GrpcMethod *method, void *data)
{
    const guint8 *in = call->in->data;
    gsize length =
        call->in->len < PREFIX ? 0 : (gsize)in[1] << 24 | in[2] << 16 | in[3] << 8 | in[4];
    ProtobufCMessage *message;

    if (call->in->len < PREFIX || length != call->in->len - PREFIX) {
        grpc_call_end(call, GRPC_INTERNAL, "the call does not have one whole message");
        return;
    }
    if (in[0]) {
        grpc_call_end(call, GRPC_UNIMPLEMENTED, "compressed messages are not supported");
        return;
    }
    message = protobuf_c_message_unpack(method->input, NULL, length, in + PREFIX);
    if (!message) {
        grpc_call_end(call, GRPC_INTERNAL, "the message cannot be read");
        return;
    }
    method->func(call, message, data);
    protobuf_c_message_free_unpacked(message, NULL);
}

/* The client has said all. */
static void dispatch_call(GrpcSession *session, GrpcCall *call)
{
    const GrpcMethod *method = call->path ? method_of(session->service, call->path) : NULL;

    if (call->ended)
        return;
    grpc_call_ref(call);
    if (!call->is_post || !call->is_grpc)
        nghttp2_submit_rst_stream(session->http, NGHTTP2_FLAG_NONE, call->stream,
                                  NGHTTP2_PROTOCOL_ERROR);
    else if (method)
        call_run(call, method, session->service->data);
    else
        grpc_call_end(call, GRPC_UNIMPLEMENTED, "there is no such method");
    /* A watch lives long, and its question is known. */
    g_byte_array_set_size(call->in, 0);
    grpc_call_unref(call);
}

/* Drops the stream's reference. */
static void forget_call(void *data)
{
    GrpcCall *call = data;

    call->session = NULL;
    grpc_call_unref(call);
}

/* libnghttp2's callbacks. */

static int on_begin(nghttp2_session *http, const nghttp2_frame *frame, void *data)
{
    GrpcCall *call;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    call = g_new0(GrpcCall, 1);
    g_atomic_ref_count_init(&call->refs);
    call->session = data;
    call->stream = frame->hd.stream_id;
    call->in = g_byte_array_new();
    call->out = g_byte_array_new();
    g_hash_table_add(call->session->calls, call);
    nghttp2_session_set_stream_user_data(http, call->stream, call);
    return 0;
}

static int on_header(nghttp2_session *http, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t length, uint8_t flags,
                     void *data)
{
    GrpcCall *call = nghttp2_session_get_stream_user_data(http, frame->hd.stream_id);

    (void)name_length;
    (void)flags;
    (void)data;
    if (!call)
        return 0;
    /* Both end with a NUL, libnghttp2 says. */
    if (g_str_equal((const char *)name, ":path") && !call->path && length < HEADERS_MAX)
        call->path = g_strdup((const char *)value);
    else if (g_str_equal((const char *)name, ":method"))
        call->is_post = g_str_equal((const char *)value, "POST");
    else if (g_str_equal((const char *)name, "content-type"))
        call->is_grpc = g_str_has_prefix((const char *)value, "application/grpc");
    return 0;
}

static int on_data(nghttp2_session *http, uint8_t flags, int32_t stream, const uint8_t *bytes,
                   size_t length, void *data)
{
    GrpcCall *call = nghttp2_session_get_stream_user_data(http, stream);

    (void)flags;
    (void)data;
    if (!call || call->ended)
        return 0;
    if (call->in->len + length > GRPC_MESSAGE_MAX + PREFIX)
        grpc_call_end(call, GRPC_RESOURCE_EXHAUSTED, "the message is too large");
    else
        g_byte_array_append(call->in, bytes, (guint)length);
    return 0;
}

static int on_frame(nghttp2_session *http, const nghttp2_frame *frame, void *data)
{
    GrpcCall *call;

    if ((frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    call = nghttp2_session_get_stream_user_data(http, frame->hd.stream_id);
    if (call)
        dispatch_call(data, call);
    return 0;
}

static int on_close(nghttp2_session *http, int32_t stream, uint32_t error, void *data)
{
    GrpcCall *call = nghttp2_session_get_stream_user_data(http, stream);

    (void)error;
    if (call)
        g_hash_table_remove(((GrpcSession *)data)->calls, call);
    return 0;
}

GrpcSession *grpc_session_new(const GrpcService *service, void (*writable)(void *data), void *data)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_CALLS_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADERS_MAX},
    };
    GrpcSession *session = g_new0(GrpcSession, 1);
    nghttp2_session_callbacks *calls;
    nghttp2_option *options;

    session->calls = g_hash_table_new_full(NULL, NULL, forget_call, NULL);
    session->service = service;
    session->writable = writable;
    session->data = data;
    if (nghttp2_session_callbacks_new(&calls) || nghttp2_option_new(&options))
        g_error("out of memory");
    /*
     * Older kubelets (1.20 does) have the socket's path as :authority, which HTTP forbids. Of all
     * that HTTP demands of a call, dispatch() looks at what counts here.
     */
    nghttp2_option_set_no_http_messaging(options, 1);
    nghttp2_session_callbacks_set_on_begin_headers_callback(calls, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    if (nghttp2_session_server_new2(&session->http, calls, session, options))
        g_error("out of memory");
    nghttp2_session_callbacks_del(calls);
    nghttp2_option_del(options);
    nghttp2_submit_settings(session->http, NGHTTP2_FLAG_NONE, settings, G_N_ELEMENTS(settings));
    return session;
}

void grpc_session_free(GrpcSession *session)
{
    /* It closes no streams by itself. */
    g_hash_table_unref(session->calls);
    nghttp2_session_del(session->http);
    g_free(session);
}

gboolean grpc_session_feed(GrpcSession *session, const guint8 *bytes, gsize count)
{
    if (nghttp2_session_mem_recv2(session->http, bytes, count) != (nghttp2_ssize)count)
        return FALSE;
    session->writable(session->data);
    return TRUE;
}

gssize grpc_session_take(GrpcSession *session, const guint8 **bytes)
{
    return nghttp2_session_mem_send2(session->http, bytes);
}

gboolean grpc_session_is_over(GrpcSession *session)
{
    return !nghttp2_session_want_read(session->http) && !nghttp2_session_want_write(session->http);
}
