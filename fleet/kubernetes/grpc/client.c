/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/grpc/client.h"

#define PREFIX 5

typedef struct {
    GrpcDoneFunc func;
    void *data;
} Done;

static GBytes *frame_message(const ProtobufCMessage *message)
{
    gsize length = protobuf_c_message_get_packed_size(message);
    guint8 *bytes = g_malloc0(PREFIX + length);

    for (guint i = 1; i < PREFIX; i++)
        bytes[i] = (guint8)(length >> (8 * (PREFIX - 1 - i)));
    protobuf_c_message_pack(message, bytes + PREFIX);
    return g_bytes_new_take(bytes, PREFIX + length);
}

static void on_answer(const HttpAnswer *answer, const GError *error, void *data)
{
    Done *done = data;
    g_autoptr(GError) refused = NULL;

    if (answer) {
        const char *status = http_answer_header(answer, "grpc-status");
        const char *text = http_answer_header(answer, "grpc-message");
        g_autofree char *plain = text ? g_uri_unescape_string(text, NULL) : NULL;

        if (g_strcmp0(status, "0"))
            refused = g_error_new(G_IO_ERROR, G_IO_ERROR_FAILED, "%s (status %s)",
                                  plain ? plain : "no answer", status ? status : "missing");
    }
    done->func(answer ? refused : error, done->data);
    g_free(done);
}

HttpCall *grpc_client_call(Http *http, const char *socket, const char *path,
                           const ProtobufCMessage *message, guint seconds, GrpcDoneFunc func,
                           void *data)
{
    static const char *const headers[] = {"Content-Type: application/grpc", "TE: trailers", NULL};
    g_autofree char *url = g_strconcat("http://localhost", path, NULL);
    g_autoptr(GBytes) body = frame_message(message);
    const HttpRequest request = {.method = "POST",
                                 .url = url,
                                 .socket = socket,
                                 .headers = headers,
                                 .body = body,
                                 .seconds = seconds};
    Done *done = g_new0(Done, 1);

    done->func = func;
    done->data = data;
    return http_start(http, &request, NULL, on_answer, done);
}
